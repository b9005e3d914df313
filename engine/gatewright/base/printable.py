"""Safe display of a stranger's text on one line: no character moves the cursor, hides or reorders its surroundings."""

from __future__ import annotations

import unicodedata

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_STYLES = "\ufe0e\ufe0f"
"""Variation selectors 15 and 16: a symbol as text, as a picture."""
_IGNORED = (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, *range(0xFE00, 0xFE10), 0xFFA0)
_EMPTY = frozenset(map(chr, (*_IGNORED, *range(0xE0100, 0xE01F0), 0x2800, 0x1D159)))
"""Letters, marks and symbols without a visible shape: characters of those categories with
Default_Ignorable_Code_Point in the Unicode Character Database (DerivedCoreProperties.txt), U+2800 and U+1D159."""


def printable(text: str, *, keep: str = "") -> str:
    """Write each control, format (bidi), surrogate, private, unassigned or empty character as ``\\uXXXX``.

    JSON uses the same escapes, so that JSON keeps its value. ``keep``: characters to leave alone; a variation selector
    behind its symbol stays as well.
    """
    if text.isascii() and text.isprintable():
        return text
    unseen = {c for c in set(text) - set(keep) if c in _EMPTY or unicodedata.category(c) in _UNSEEN}
    if not unseen:
        return text
    if unseen.isdisjoint(_STYLES):
        return text.translate({ord(c): _escape(c) for c in unseen})
    shown: list[str] = []
    for before, c in zip(f" {text}", text, strict=False):
        is_style = c in _STYLES and unicodedata.category(before) == "So"
        shown.append(_escape(c) if c in unseen and not is_style else c)
    return "".join(shown)


def is_visible(text: str) -> bool:
    """Tell whether every character is visible and the plain space is the only space, as a name needs it."""
    return text.isprintable() and printable(text) == text


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
