"""Edits of a block as values, each with one meaning.

``section`` names a composite's section; None for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from gatewright.base.frozen import frozen

if TYPE_CHECKING:
    from gatewright.base.jsonvalue import JsonValue


@frozen
class Append:
    """Add at the end of a text, list or log. To a text exactly ``content``, with no line end of ours.

    For items and entries that are not text, text is read as JSON.
    """

    content: JsonValue
    section: str | None = None


@frozen
class Replace:
    """Put ``new`` in the place of ``old``: at its first place, at all, or at the ``nth`` (from 1).

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
    """Apply a unified diff for this one text; context and removed lines have to be there."""

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
    """New content in the place of all there was: text, object, list; for a composite an object of sections.

    Fields and sections that are not named in an object: fields are emptied, sections left as they are.
    """

    content: JsonValue
    section: str | None = None


@frozen
class Undo:
    """Take back this author's last edit that still stands; what others did stays."""


@frozen
class Redo:
    """Do again what this author took back last."""


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
    """Whether the edit leaves everything that was there as it is, and only adds at the end."""
    return isinstance(edit, Append)
