"""Changes of a document between two of its states, and one change rebased over another.

Sequences (texts, lists) are runs in order: keep n, drop n, add these; rebasing is operational transformation over
those runs. Of a map the later change of a key holds; counters add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import cast

import loro

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks.part import CounterOp, ListOp, MapOp, Op, TextOp
from gatewright.blocks.replacement import Splice


@frozen
class Keep:
    """The next ``count`` stay."""

    count: int


@frozen
class Drop:
    """The next ``count`` go."""

    count: int


@frozen
class Add:
    """``items`` come here: characters of a text, or values."""

    items: str | tuple[JsonValue, ...]


Run = Keep | Drop | Add


@frozen
class Delta:
    """A change, by container."""

    texts: dict[str, list[Run]] = field(default_factory=dict[str, "list[Run]"])
    lists: dict[str, list[Run]] = field(default_factory=dict[str, "list[Run]"])
    maps: dict[str, dict[str, JsonValue]] = field(default_factory=dict[str, "dict[str, JsonValue]"])
    counters: dict[str, int] = field(default_factory=dict[str, int])

    def rebased_over(self, other: Delta, *, first: bool = False) -> Delta:
        """This change when ``other`` was done before it; both begin at the same state.

        ``first``: where both add at one place, this one's stands first; and a key that both set stays this one's.
        """
        return Delta(
            {name: _rebased(runs, other.texts.get(name, []), first=first) for name, runs in self.texts.items()},
            {name: _rebased(runs, other.lists.get(name, []), first=first) for name, runs in self.lists.items()},
            {
                name: {k: v for k, v in keys.items() if first or k not in other.maps.get(name, {})}
                for name, keys in self.maps.items()
            },
            dict(self.counters),
        )

    def ops(self) -> tuple[Op, ...]:
        """The change as operations of the document that it begins at."""
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
    """The change from one state to another. Loro raises when it no longer has them."""
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


def _rebased(runs: Sequence[Run], over: Sequence[Run], *, first: bool) -> list[Run]:
    """``runs`` as they read after ``over``."""
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
    """Runs, taken piece by piece."""

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
        """How many of the next run are left; not for additions."""
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
    """Start, how many go, what comes: in order, not overlapping, neighbours joined."""
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
            found[-1] = (start, before + gone, _joined(earlier, added))
        else:
            found.append((at, gone, added))
        at += gone
    return found


def _joined(
    one: str | tuple[JsonValue, ...] | None, other: str | tuple[JsonValue, ...] | None
) -> str | tuple[JsonValue, ...] | None:
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, str):
        return one + cast("str", other)
    return (*one, *cast("tuple[JsonValue, ...]", other))
