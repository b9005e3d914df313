"""The steps that made a block what it is, and what an author's undo or redo would do now. It changes nothing.

Undo is by author and outlives the process, which the library's own undo does not: the steps are walked from the one to
be undone to the last, and the way back is rebased over what others did since. What others wrote stays, also inside a
text that goes; a field that somebody else has set since keeps that value.
"""

from __future__ import annotations

from collections.abc import Sequence

import loro

from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.blocks.delta import Delta, delta_between
from gatewright.blocks.guard import guarded

UNDO, REDO, CREATE = "undo", "redo", "create"


@frozen
class Step:
    """One entry of the history. ``after``: the state it led to, b"" when that can no longer be had.

    ``number``: from 1 without gaps; ``at_s``: s since 1970; ``kind``: the edit's name; ``target``: the step that an
    undo or redo concerned; ``has_changes``: False for what only changed the block's record (pinned, archived);
    ``undoable``: False for what nobody takes back (an entry of a log).
    """

    number: int
    at_s: float
    author: str
    kind: str
    after: bytes = b""
    target: int | None = None
    has_changes: bool = True
    undoable: bool = True


class _Back:
    """A change back to an earlier state, worked out when it is first needed: most are undone and done again unseen."""

    def __init__(self, document: loro.LoroDoc, after: loro.Frontiers, before: loro.Frontiers) -> None:
        self._document, self._after, self._before = document, after, before
        self._delta: Delta | None = None

    @property
    def delta(self) -> Delta:
        """The change."""
        if self._delta is None:
            self._delta = delta_between(self._document, self._after, self._before)
        return self._delta

    @delta.setter
    def delta(self, delta: Delta) -> None:
        self._delta = delta


def undo_target(steps: Sequence[Step], author: str) -> int | None:
    """The number of the step that an undo of this author takes back."""
    done, _ = _stacks(steps, author)
    return done[-1] if done else None


def redo_target(steps: Sequence[Step], author: str) -> int | None:
    """The number of the step that a redo of this author does again."""
    _, undone = _stacks(steps, author)
    return undone[-1] if undone else None


def way(document: loro.LoroDoc, steps: Sequence[Step], author: str, *, redo: bool) -> tuple[int, Delta]:
    """The step that an undo (or redo) concerns, and the change that it makes now.

    Raises ToolFailure (``nothing-to-undo``, ``nothing-to-redo``, ``too-old``).
    """
    target = redo_target(steps, author) if redo else undo_target(steps, author)
    word = REDO if redo else UNDO
    if target is None:
        raise ToolFailure(f"there is nothing of yours to {word} in this block", code=f"nothing-to-{word}")
    too_old = ToolFailure(f"the edit to {word} is too old: its history is no longer kept", code="too-old")
    with guarded(too_old):
        done, undone = _walked(document, _changing(steps), author, target)
        return target, (undone if redo else done)[-1].delta


def _stacks(steps: Sequence[Step], author: str) -> tuple[list[int], list[int]]:
    """The numbers of the author's steps that stand and that are undone, the next to be taken last."""
    done: list[int] = []
    undone: list[int] = []
    for step in _changing(steps):
        if not _is_own(step, author):
            continue
        if step.kind == UNDO:
            _move(step.target, done, undone)
        elif step.kind == REDO:
            _move(step.target, undone, done)
        else:
            done.append(step.number)
            undone.clear()
    return done, undone


def _move(target: int | None, source: list[int], goal: list[int]) -> None:
    if target is not None and source and source[-1] == target:
        goal.append(source.pop())


def _is_own(step: Step, author: str) -> bool:
    return step.undoable and step.author == author


def _changing(steps: Sequence[Step]) -> list[Step]:
    return [step for step in steps if step.has_changes]


def _walked(document: loro.LoroDoc, steps: Sequence[Step], author: str, target: int) -> tuple[list[_Back], list[_Back]]:
    """The changes that take back the author's steps from ``target`` on, and those that do them again."""
    first = _beginning(steps, author, target)
    done: list[_Back] = []
    undone: list[_Back] = []
    state = _state(steps[first - 1])
    at = first
    while at < len(steps):
        step = steps[at]
        if not _is_own(step, author):
            while at + 1 < len(steps) and not _is_own(steps[at + 1], author):
                at += 1
            after = _state(steps[at])
            if done or undone:
                change = delta_between(document, state, after)
                _rebase(done, change)
                _rebase(undone, change)
        else:
            after = _state(step)
            _own(step, _Back(document, after, state), done, undone)
        state = after
        at += 1
    return done, undone


def _beginning(steps: Sequence[Step], author: str, target: int) -> int:
    """Where to begin, so that every step that an own undo or redo from there on concerns is among them."""
    lowest = target
    for step in reversed(steps):
        if step.number < lowest:
            break
        if step.target is not None and _is_own(step, author):
            lowest = min(lowest, step.target)
    first = next((at for at, step in enumerate(steps) if step.number == lowest), 0)
    if first == 0:
        raise ValueError("the state before the first step is not known")
    return first


def _own(step: Step, back: _Back, done: list[_Back], undone: list[_Back]) -> None:
    """An own step: its way back goes on the stack where the next undo or redo finds it."""
    if step.kind == UNDO:
        done.pop()
        undone.append(back)
    elif step.kind == REDO:
        undone.pop()
        done.append(back)
    else:
        done.append(back)
        undone.clear()


def _rebase(stack: list[_Back], change: Delta) -> None:
    """Every change of the stack as it reads after ``change``; the last one begins at the state that it begins at."""
    for at in range(len(stack) - 1, -1, -1):
        held = stack[at].delta
        stack[at].delta = held.rebased_over(change)
        change = change.rebased_over(held, first=True)


def _state(step: Step) -> loro.Frontiers:
    if not step.after:
        raise ValueError("the state is no longer kept")
    return loro.Frontiers.decode(step.after)
