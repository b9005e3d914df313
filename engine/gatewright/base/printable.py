"""Text of strangers made safe to show on a line: nothing in it moves a cursor, hides or reorders what stands around."""

from __future__ import annotations

import unicodedata

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(text: str, *, keep: str = "") -> str:
    """``text`` with each control, format (bidi), surrogate, private and unassigned character as ``\\uXXXX``.

    The escapes are those of JSON, so that JSON stays the same value. ``keep``: such characters that stay.
    """
    if text.isprintable():
        return text
    unseen = {c for c in set(text) - set(keep) if not c.isprintable() and unicodedata.category(c) in _UNSEEN}
    return text.translate({ord(c): _escape(c) for c in unseen}) if unseen else text


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
