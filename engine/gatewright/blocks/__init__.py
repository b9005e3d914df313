"""Loro documents behind blocks; the only package that knows Loro. It knows no file and no level."""

from gatewright.blocks.text import TextBlock, count_overlapping

__all__ = ["TextBlock", "count_overlapping"]
