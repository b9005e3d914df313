"""Edits of a block as values, each with one meaning.

``section`` names a composite's section; None elsewhere.
"""

from __future__ import annotations

from typing import assert_never

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue


@frozen
class Append:
    """Add ``content`` at the end of a text, list or log; a text gets exactly this, without a line end.

    A text is read as JSON unless the items or entries are texts.
    """

    content: JsonValue
    section: str | None = None


@frozen
class Replace:
    """Put ``new`` in the place of ``old``: at its first place, everywhere, or at the ``nth`` (from 1).

    ``regex``: ``old`` is an RE2 pattern and ``new`` may hold ``\\1`` to ``\\9`` for its groups, ``\\0`` for the match
    and ``\\\\`` for a backslash. ``everywhere`` and ``nth`` exclude each other.
    """

    old: str
    new: str
    everywhere: bool = False
    nth: int | None = None
    regex: bool = False
    section: str | None = None


@frozen
class Patch:
    """Apply a unified diff of this one text; its context and removed lines have to match."""

    patch: str
    section: str | None = None


@frozen
class SetField:
    """Give a field a value; None takes it away. ``section`` None in a composite: ``field`` names a whole section."""

    field: str
    value: JsonValue
    section: str | None = None


@frozen
class Overwrite:
    """Replace all content: text, object, list; for a composite an object of sections.

    Empties the fields that an object omits, but leaves omitted sections alone.
    """

    content: JsonValue
    section: str | None = None


@frozen
class Undo:
    """Take back this author's last edit in force; the edits of others stay."""


@frozen
class Redo:
    """Repeat the edit that this author took back last."""


Edit = Append | Replace | Patch | SetField | Overwrite | Undo | Redo


def kind_of(edit: Edit) -> str:
    """The edit's name in a history."""
    match edit:
        case Append():
            return "append"
        case Replace():
            return "replace"
        case Patch():
            return "patch"
        case SetField():
            return "set_field"
        case Overwrite():
            return "overwrite"
        case Undo():
            return "undo"
        case Redo():
            return "redo"
        case _:
            assert_never(edit)


def is_addition(edit: Edit) -> bool:
    """Tell whether the edit only adds at the end."""
    return isinstance(edit, Append)
