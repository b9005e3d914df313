"""Where a model's path leads, what its level is and what a call would do there, as values. It touches no disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gatewright.policy.permission import Action, Permission


@dataclass(frozen=True, slots=True)
class Located:
    """A place in a source: ``relative`` is canonical with ``/`` (``.`` for the base), ``absolute`` is resolved."""

    source_id: str
    relative: str
    absolute: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a path or label is not accepted. ``reason`` is the operator's; ``hint`` is safe to show the model."""

    code: str
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class LevelDecision:
    """The level of a place and what decided it: a rule's index (from 0) and pattern, the default, or protection.

    ``source_id``: whose rule or default it is, where it is another source over the same files; None: the place's own.
    """

    permission: Permission
    index: int | None = None
    pattern: str | None = None
    protected: bool = False
    source_id: str | None = None


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a call would do: the action it needs, why it should ask by itself, and the change to the text.

    ``later`` gives the change where working it out costs something: only whoever is asked needs it.
    """

    action: Action | None = None
    ask: str | None = None
    diff: str | None = None
    later: Callable[[], str | None] | None = field(default=None, compare=False, repr=False)

    def change(self) -> str | None:
        """The change to the text, if any, worked out now."""
        return self.diff if self.later is None else self.later()


@dataclass(frozen=True, slots=True)
class FileText:
    """Text of a file and where it came from: ``block`` (with unsaved edits perhaps) or ``disk``."""

    content: str
    origin: str
    unsaved: bool = False
