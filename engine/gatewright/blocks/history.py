"""The steps of a block, the changes between two of its states, and the present effect of undo or redo.

A change of a sequence (text, list) is a list of runs: keep n, drop n, add these; rebasing is operational transformation
over those runs. In a map the later change of a key wins; counters add up.

Undo takes back the steps of one author and outlives the process, unlike the library's own: it walks the steps from the
target to the last, and rebases the change back over the later steps of others. Text by others stays, even inside a text
that is removed; a field that somebody else has set since then keeps its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import cast

import loro

from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks.part import CounterOp, ListOp, MapOp, Op, TextOp, guard
from gatewright.blocks.textedit import Splice


@frozen
class Keep:
    """Keeps the next ``count``."""

    count: int


@frozen
class Drop:
    """Drops the next ``count``."""

    count: int


@frozen
class Add:
    """Inserts ``items`` here: characters of a text, or values."""

    items: str | tuple[JsonValue, ...]


Run = Keep | Drop | Add


@frozen
class Delta:
    """A change, by container of the document."""

    texts: dict[str, list[Run]] = field(default_factory=dict[str, "list[Run]"])
    lists: dict[str, list[Run]] = field(default_factory=dict[str, "list[Run]"])
    maps: dict[str, dict[str, JsonValue]] = field(default_factory=dict[str, "dict[str, JsonValue]"])
    counters: dict[str, int] = field(default_factory=dict[str, int])

    def rebase_over(self, other: Delta, *, first: bool = False) -> Delta:
        """Return this change as it applies after ``other``; both begin at the same state.

        ``first``: where both add, this change's additions come first, and its value wins for a key that both set.
        """
        return Delta(
            {name: _rebase_runs(runs, other.texts.get(name, []), first=first) for name, runs in self.texts.items()},
            {name: _rebase_runs(runs, other.lists.get(name, []), first=first) for name, runs in self.lists.items()},
            {
                name: {k: v for k, v in keys.items() if first or k not in other.maps.get(name, {})}
                for name, keys in self.maps.items()
            },
            dict(self.counters),
        )

    def ops(self) -> tuple[Op, ...]:
        """Turn the change into operations on a document in its first state."""
        found: list[Op] = []
        for name, runs in self.texts.items():
            splices = tuple(Splice(at, gone, cast("str", added or "")) for at, gone, added in _changes(runs))
            if splices:
                found.append(TextOp(name, splices))
        for name, runs in self.lists.items():
            changes = [*_changes(runs)]
            found += (ListOp(name, at, gone, tuple(added or ())) for at, gone, added in reversed(changes))
        for name, keys in self.maps.items():
            found += (MapOp(name, key, value) for key, value in keys.items())
        found += (CounterOp(name, by) for name, by in self.counters.items() if by)
        return tuple(found)


def delta_between(document: loro.LoroDoc, before: loro.Frontiers, after: loro.Frontiers) -> Delta:
    """Compute the change from one state to another. Loro raises if it lacks one of them."""
    found = Delta()
    for container, change in document.diff(before, after).get_diff():
        if not isinstance(container, loro.ContainerID.Root):
            continue
        if isinstance(change, loro.Diff.Text):
            found.texts[container.name] = [_run(run) for run in change.diff]
        elif isinstance(change, loro.Diff.List):
            found.lists[container.name] = [_run(run) for run in change.diff]
        elif isinstance(change, loro.Diff.Map):
            found.maps[container.name] = {key: _plain(value) for key, value in change.diff.updated.items()}
        elif isinstance(change, loro.Diff.Counter):
            found.counters[container.name] = round(change.diff)
    return found


def _run(run: loro.TextDelta | loro.ListDiffItem) -> Run:
    if isinstance(run, loro.TextDelta.Retain | loro.ListDiffItem.Retain):
        return Keep(run.retain)
    if isinstance(run, loro.TextDelta.Delete | loro.ListDiffItem.Delete):
        return Drop(run.delete)
    added = cast("loro.TextDelta.Insert | loro.ListDiffItem.Insert", run).insert
    return Add(added if isinstance(added, str) else tuple(_plain(item) for item in added))


def _plain(value: object) -> JsonValue:
    return cast("JsonValue", value.value) if isinstance(value, loro.ValueOrContainer.Value) else None


def _rebase_runs(runs: Sequence[Run], over: Sequence[Run], *, first: bool) -> list[Run]:
    """Rebase ``runs`` over ``over``."""
    mine, theirs = _Reader(runs), _Reader(over)
    found: list[Run] = []
    while mine.left:
        if isinstance(theirs.head, Add) and (not isinstance(mine.head, Add) or not first):
            found.append(Keep(len(theirs.head.items)))
            theirs.skip()
        elif isinstance(mine.head, Add):
            found.append(mine.head)
            mine.skip()
        elif not theirs.left:
            found.append(mine.take(mine.count))
        else:
            count = min(mine.count, theirs.count)
            run, other = mine.take(count), theirs.take(count)
            if not isinstance(other, Drop):
                found.append(run)
    return found


class _Reader:
    """Reads runs in pieces."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._at = 0
        self._done = 0

    @property
    def left(self) -> bool:
        return self._at < len(self._runs)

    @property
    def head(self) -> Run | None:
        return self._runs[self._at] if self.left else None

    @property
    def count(self) -> int:
        """The rest of the next run; additions have no count."""
        run = self._runs[self._at]
        return 0 if isinstance(run, Add) else run.count - self._done

    def skip(self) -> None:
        self._at += 1
        self._done = 0

    def take(self, count: int) -> Run:
        run = self._runs[self._at]
        if count >= self.count:
            self.skip()
        else:
            self._done += count
        return Keep(count) if isinstance(run, Keep) else Drop(count)


def _changes(runs: Sequence[Run]) -> list[tuple[int, int, str | tuple[JsonValue, ...] | None]]:
    """List start, removed count and addition of each change, in order, neighbours joined."""
    found: list[tuple[int, int, str | tuple[JsonValue, ...] | None]] = []
    at = 0
    for run in runs:
        if isinstance(run, Keep):
            at += run.count
            continue
        gone = run.count if isinstance(run, Drop) else 0
        added = run.items if isinstance(run, Add) else None
        if found and found[-1][0] + found[-1][1] == at:
            start, before, earlier = found[-1]
            found[-1] = (start, before + gone, _join(earlier, added))
        else:
            found.append((at, gone, added))
        at += gone
    return found


def _join(
    one: str | tuple[JsonValue, ...] | None, other: str | tuple[JsonValue, ...] | None
) -> str | tuple[JsonValue, ...] | None:
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, str):
        return one + cast("str", other)
    return (*one, *cast("tuple[JsonValue, ...]", other))


UNDO, REDO, CREATE = "undo", "redo", "create"


@frozen
class Step:
    """One entry of the history. ``after``: the state it led to, b"" if the history lacks it.

    ``number``: from 1 without gaps; ``at_s``: s since 1970; ``kind``: the edit's name; ``target``: the step of an undo
    or redo; ``has_changes``: False if only the block's record changed (a pin, the archive); ``undoable``: False if
    nobody may take it back (an entry of a log).
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
    """A change back to an earlier state, computed at its first use: most are undone and redone before anybody needs
    them.
    """

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
    """Return the number of the step that this author's undo takes back."""
    done, _ = _stacks(steps, author)
    return done[-1] if done else None


def redo_target(steps: Sequence[Step], author: str) -> int | None:
    """Return the number of the step that this author's redo repeats."""
    _, undone = _stacks(steps, author)
    return undone[-1] if undone else None


def way(document: loro.LoroDoc, steps: Sequence[Step], author: str, *, redo: bool) -> tuple[int, Delta]:
    """Return the step of an undo (or redo), and the change that it would make now.

    Raises ToolFailure (``nothing-to-undo``, ``nothing-to-redo``, ``too-old``).
    """
    target = redo_target(steps, author) if redo else undo_target(steps, author)
    word = REDO if redo else UNDO
    if target is None:
        raise ToolFailure(f"there is nothing of yours to {word} in this block", code=f"nothing-to-{word}")
    too_old = ToolFailure(f"the edit to {word} is too old: its history is no longer kept", code="too-old")
    with guard(too_old):
        done, undone = _collect_ways(document, _changing(steps), author, target)
        return target, (undone if redo else done)[-1].delta


def _stacks(steps: Sequence[Step], author: str) -> tuple[list[int], list[int]]:
    """Number the author's steps in force and the undone ones; the next target comes last."""
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


def _collect_ways(
    document: loro.LoroDoc, steps: Sequence[Step], author: str, target: int
) -> tuple[list[_Back], list[_Back]]:
    """Collect the changes that take back the author's steps from ``target`` on, and the changes that repeat them."""
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
    """Find the first step to walk from, early enough for the target of every later undo or redo of the author."""
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
    """Move the change that reverts an own step to the stack of the next undo or redo."""
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
    """Rebase each change of the stack over ``change``, from the last one down."""
    for at in range(len(stack) - 1, -1, -1):
        held = stack[at].delta
        stack[at].delta = held.rebase_over(change)
        change = change.rebase_over(held, first=True)


def _state(step: Step) -> loro.Frontiers:
    if not step.after:
        raise ValueError("the state is no longer kept")
    return loro.Frontiers.decode(step.after)
