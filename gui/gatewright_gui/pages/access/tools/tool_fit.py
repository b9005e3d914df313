"""Which tools and operations of the tree fit a search text and filters."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property

from gatewright.workspace.api import (
    ANY_TOOL,
    Agent,
    AllowedOperations,
    ContinueLoop,
    OperationRight,
    SafetyTier,
    Source,
    ToolFacts,
    ToolRight,
    ToolRule,
    Verdict,
    frozen,
    names_tool,
    split_name,
)
from gatewright_gui.pages.access.tools.tool_tree import ToolTreeModel
from gatewright_gui.session.tool_groups import ToolGroup


class State(StrEnum):
    """Of an operation; `MIXED` is of a tool with some on and some not, with all its operations."""

    ON = "on"
    OFF = "off"
    ASKS = "asks"
    OVERRULED = "overruled"
    MIXED = "mixed"


@frozen
class Filters:
    """An empty set leaves nothing out; of two kinds of filters a row has to fit both."""

    states: frozenset[State] = frozenset()
    tiers: frozenset[SafetyTier] = frozenset()
    origins: frozenset[str] = frozenset()
    has_problem: bool = False
    has_limits: bool = False


NO_FILTERS = Filters()


@frozen
class Shown:
    """The tools that are shown by their rows in the tree; of each the places that fit, and how many rows these are.

    `groups`: those that have a tool that is shown; none where all tools come from one place, since then a row for it
    would say nothing. `starts`: the place of the first tool of each group, and last how many tools are shown.
    """

    rows: Sequence[int]
    fitting: Sequence[Sequence[int]]
    sizes: Sequence[int]
    groups: Sequence[ToolGroup]
    starts: Sequence[int]

    @classmethod
    def of_all(cls, tree: ToolTreeModel) -> "Shown":
        """Everything; equal to what a filter that all of them fit gives."""
        return cls.of(tree, range(len(tree.rights)), [range(len(right.operations)) for right in tree.rights])

    @classmethod
    def of(cls, tree: ToolTreeModel, rows: Sequence[int], fitting: Sequence[Sequence[int]]) -> "Shown":
        """Tools by their rows in the tree, each with the places of its operations that fit."""
        sizes = [len(fit) if tree.sizes[row] else 0 for row, fit in zip(rows, fitting, strict=True)]
        if len(tree.groups) < 2:
            return cls(list(rows), fitting, sizes, (), ())
        firsts = [bisect_left(rows, first) for _, first in tree.groups]
        spans = zip((group for group, _ in tree.groups), firsts, (*firsts[1:], len(rows)), strict=True)
        held = [(group, start) for group, start, end in spans if start < end]
        starts = (*(start for _, start in held), len(rows))
        return cls(list(rows), fitting, sizes, tuple([group for group, _ in held]), starts)


class Fit:
    """Says what of a tree fits: every word has to be in a name or a description, and each filter that is set."""

    def __init__(self, tree: ToolTreeModel) -> None:
        self._tree = tree
        self.words: tuple[str, ...] = ()
        self.filters = NO_FILTERS
        self.problems: frozenset[str] = frozenset()
        """The tools that have one."""
        self._texts: dict[str, _Texts] = {}

    @property
    def leaves_out(self) -> bool:
        """Whether anything may not fit."""
        return bool(self.words) or self.filters != NO_FILTERS

    def shown(self) -> Shown:
        """What fits now."""
        if not self.leaves_out:
            return Shown.of_all(self._tree)
        limited = _Limited(self._tree.agent, self._tree.sources) if self.filters.has_limits else None
        rows: list[int] = []
        found: list[Sequence[int]] = []
        for row, right in enumerate(self._tree.rights):
            if fitting := self._fitting(right, limited):
                rows.append(row)
                found.append(fitting)
        return Shown.of(self._tree, rows, found)

    def _fitting(self, right: ToolRight, limited: "_Limited | None") -> Sequence[int]:
        """The places of the operations that fit; none where the tool does not."""
        operations, filters = right.facts.operations, self.filters
        places: Sequence[int] = range(len(operations))
        if filters.origins and right.facts.origin not in filters.origins:
            return ()
        if filters.has_problem and right.facts.name not in self.problems:
            return ()
        if filters.states and not (State.MIXED in filters.states and 0 < len(right.shown) < len(operations)):
            places = [at for at in places if self._in_state(right.operations[at])]
        if filters.tiers:
            places = [at for at in places if operations[at].tier in filters.tiers]
        if limited is not None and places:
            places = limited.of(right.facts, right.operations, places)
        return self._with_words(right.facts, places) if self.words and places else places

    def _with_words(self, facts: ToolFacts, places: Sequence[int]) -> Sequence[int]:
        held = self._texts.get(facts.name)
        if held is None or held.facts is not facts:
            held = self._texts[facts.name] = _Texts(facts)
        left = [word for word in self.words if word not in held.whole]
        if not left:
            return places
        if not all(word in held.every for word in left):
            return ()
        return [at for at in places if all(word in held.own[at] for word in left)]

    def _in_state(self, row: OperationRight) -> bool:
        states = self.filters.states
        if row.is_hidden:
            return State.OFF in states or (row.ticked and State.OVERRULED in states)
        asks = row.verdict is Verdict.ASK or row.asks_for_some
        return State.ON in states or (asks and State.ASKS in states)


class _Texts:
    """What a tool and each of its operations can be found by; of the operations once they are looked at."""

    def __init__(self, facts: ToolFacts) -> None:
        self.facts = facts
        self.whole = f"{facts.name} {facts.origin} {facts.description}".casefold()

    @cached_property
    def own(self) -> tuple[str, ...]:
        """One text for each operation."""
        return tuple([f"{row.name} {row.description}".casefold() for row in self.facts.operations])

    @cached_property
    def every(self) -> str:
        """All of them, to leave out a tool at one look."""
        return "\n".join(self.own)


class _Limited:
    """Which operations some rule limits; the rules are sorted by tool once."""

    def __init__(self, agent: Agent, sources: Iterable[Source]) -> None:
        self._rules: dict[str, list[ToolRule]] = {}
        for rule in (*agent.tool_rules, *(rule for source in sources for rule in source.required_tools)):
            if not isinstance(rule.rule_type, AllowedOperations):
                self._rules.setdefault(split_name(rule.tool_name)[0], []).append(rule)

    def of(self, facts: ToolFacts, rows: Sequence[OperationRight], places: Sequence[int]) -> Sequence[int]:
        named = (*self._rules.get(facts.name, ()), *self._rules.get(ANY_TOOL, ()), *facts.tool_rules)
        rules = [
            rule
            for rule in named
            if names_tool(rule.tool_name, facts) and not isinstance(rule.rule_type, AllowedOperations | ContinueLoop)
        ]
        return [at for at in places if any(rule.binds(rows[at].operation) for rule in rules)] if rules else ()
