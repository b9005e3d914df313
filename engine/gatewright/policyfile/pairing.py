"""Which row of a list after edits is which row before them, and the steps from one list to the other.

A row carries its identity through the edits; what has none, or comes from elsewhere, is known by what it says or by its
name. A row in the place of one that went is a new row, so that what an author wrote about the old one is never left
standing above it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any, Generic, Literal, TypeVar

from gatewright.base.frozen import frozen
from gatewright.policy.composition import Composition, CompositionStep
from gatewright.policy.document import Agent, Catalog, PermissionRule, Source
from gatewright.policy.identity import Row as Identified
from gatewright.policy.kinds.capability import Capability, kind_of
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.rule import ToolRule
from gatewright.policy.toolname import split_name

T = TypeVar("T")
MAX_GUESSES = 1_000
"""As many pairs of rows are compared to find out which are alike, for each list."""


@frozen
class Naming(Generic[T]):
    """By what a row is known: equal names, the surest first. ``guessed``: rows may be the same though no name is."""

    names: tuple[Callable[[T], Hashable], ...]
    guessed: bool = False


@frozen
class Step:
    """``keep``: old ``i`` is new ``j`` (perhaps changed). ``delete``: old ``i`` up to ``i_end`` goes.

    ``insert``: new ``j`` up to ``j_end`` comes before old ``i_end``; the old one before it that stays is ``i - 1``.
    """

    what: Literal["keep", "delete", "insert"]
    i: int
    i_end: int
    j: int
    j_end: int


@frozen
class Pairing:
    """``origins``: new to old places of the rows that are in both lists. ``steps``: from one list to the other.

    ``moved``: new to old places of those that a step deletes and another one inserts.
    """

    origins: Mapping[int, int]
    steps: tuple[Step, ...]
    moved: Mapping[int, int]


def pairing(before: Sequence[T], after: Sequence[T], naming: Naming[T], *, related: bool = True) -> Pairing:
    """Pair the rows of two lists. ``related``: ``after`` came of ``before`` by edits, so that nothing is guessed."""
    origins: dict[int, int] = {}
    for name_of in naming.names:
        taken = set(origins.values())
        waiting: dict[Hashable, list[int]] = {}
        for i in reversed(range(len(before))):
            if i not in taken:
                waiting.setdefault(name_of(before[i]), []).append(i)
        for j, row in enumerate(after):
            if j not in origins and waiting.get(name := name_of(row)):
                origins[j] = waiting[name].pop()
    if naming.guessed and not related:
        _pair_alike(before, after, origins)
    kept = _in_order(origins)
    steps = tuple(_steps(len(before), len(after), kept))
    return Pairing(origins, steps, {j: i for j, i in origins.items() if j not in kept})


def _pair_alike(before: Sequence[T], after: Sequence[T], origins: dict[int, int]) -> None:
    """Of the rows left over between the same neighbours, the most alike ones first."""
    taken = set(origins.values())
    found: list[tuple[float, int, int]] = []
    kept = [(-1, -1), *sorted(_in_order(origins).items()), (len(after), len(before))]
    for (j, i), (j_end, i_end) in pairwise(kept):
        old = [at for at in range(i + 1, i_end) if at not in taken]
        new = [at for at in range(j + 1, j_end) if at not in origins]
        if len(old) * len(new) + len(found) <= MAX_GUESSES:
            found += [(_likeness(before[one], after[other]), one, other) for one in old for other in new]
    for likeness, i, j in sorted(found, key=lambda guess: (-guess[0], guess[1:])):
        if likeness >= 0.5 and j not in origins and i not in taken:
            origins[j] = i
            taken.add(i)


def _likeness(one: object, other: object) -> float:
    """The share of what either says that both say; two of which nothing is said are alike."""
    if not is_dataclass(one) or not is_dataclass(other):
        return 0.0
    named: list[str] = [field.name for field in fields(one) if field.compare]
    pairs: list[tuple[Any, Any]] = [(getattr(one, name), getattr(other, name)) for name in named]
    said = [left == right for left, right in pairs if left or right]
    return sum(said) / len(said) if said else 1.0


def _in_order(origins: Mapping[int, int]) -> dict[int, int]:
    """The most of the pairs whose rows have the same order in both lists."""
    ends: list[int] = []
    last: list[int] = []
    before: dict[int, int | None] = {}
    for j in sorted(origins):
        at = bisect_left(ends, origins[j])
        before[j] = last[at - 1] if at else None
        ends[at : at + 1] = [origins[j]]
        last[at : at + 1] = [j]
    kept: dict[int, int] = {}
    j = last[-1] if last else None
    while j is not None:
        kept[j] = origins[j]
        j = before[j]
    return kept


def _steps(old: int, new: int, kept: Mapping[int, int]) -> Iterator[Step]:
    i = j = 0
    for j_kept, i_kept in [*sorted(kept.items()), (new, old)]:
        if i < i_kept:
            yield Step("delete", i, i_kept, j, j)
        if j < j_kept:
            yield Step("insert", i, i_kept, j, j_kept)
        if j_kept < new:
            yield Step("keep", i_kept, i_kept + 1, j_kept, j_kept + 1)
        i, j = i_kept + 1, j_kept + 1


def _itself(row: Hashable) -> Hashable:
    return row


def _same_and_equal(row: ToolRule | PermissionRule | Source | PolicyRule) -> Hashable:
    return row.identity, row


def _identity(row: Identified) -> Hashable:
    return row.identity


def _tool_and_kind(rule: ToolRule) -> tuple[str, str]:
    return split_name(rule.tool_name)[0], rule.kind


WORDS: Naming[str] = Naming((_itself,))
AGENTS: Naming[Agent] = Naming((_identity, lambda agent: agent.agent_id), guessed=True)
TOOL_RULES: Naming[ToolRule] = Naming(
    (
        _same_and_equal,
        _identity,
        _itself,
        lambda rule: (*_tool_and_kind(rule), rule.conditions),
        _tool_and_kind,
    )
)
LEVELS: Naming[PermissionRule] = Naming((_same_and_equal, _identity, _itself, lambda rule: rule.pattern), guessed=True)
SOURCES: Naming[Source] = Naming((_identity, lambda source: source.source_id), guessed=True)
CATALOGS: Naming[Catalog] = Naming((_identity, lambda catalog: catalog.catalog_id), guessed=True)
POLICY_RULES: Naming[PolicyRule] = Naming((_identity, lambda rule: rule.name), guessed=True)
COMPOSITIONS: Naming[Composition] = Naming((_identity, lambda composition: composition.name), guessed=True)
COMPOSITION_STEPS: Naming[CompositionStep] = Naming((_identity, _itself), guessed=True)
CAPABILITIES: Naming[Capability] = Naming((_itself, kind_of))
