"""Cleaning of descriptions: the hidden operations leave, what stays still reads well. It knows texts, not schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.door import door

if TYPE_CHECKING:
    from gatewright.schema.prose.document import clean_text
    from gatewright.schema.prose.words import Words

__all__ = ["Words", "clean_text"]

door(
    __name__,
    {
        "gatewright.schema.prose.document": ("clean_text",),
        "gatewright.schema.prose.words": ("Words",),
    },
)
