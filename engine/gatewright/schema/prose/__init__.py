"""Cleaning of descriptions: the hidden operations leave, what stays still reads well. It knows texts, not schemas."""

from __future__ import annotations

from gatewright.schema.prose.document import clean_text
from gatewright.schema.prose.words import Words

__all__ = ["Words", "clean_text"]
