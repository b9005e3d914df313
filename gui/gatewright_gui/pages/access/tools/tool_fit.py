"""Which tools and operations of the tree fit a search text and filters."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
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
from gatewright_gui.pages.access.tools.tool_group import MORE
from gatewright_gui.pages.access.tools.tool_tree import ToolTreeModel
from gatewright_gui.session.tool_groups import ToolGroup


class State(StrEnum):
    """The states of an operation: on, asks first, off, on and asking for some calls, ticked without effect.

    `MIXED`: a tool with some operations on and some not, with all its operations.
    """

    ON = "on"
    OFF = "off"
    ASKS = "asks"
    SOME_ASK = "some ask"
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
    """The tools that are shown, in order, by their rows in the tree; of each the places that fit, and how many rows
    these are.

    The first `loose` tools stand at the top by themselves: all of them where they come from one place, but for those
    of which nothing is on. The others stand in `groups`; `starts`: the place of the first tool of each group, and last
    the number of tools. `places`: the place of a tool by its row.
    """

    rows: Sequence[int]
    fitting: Sequence[Sequence[int]]
    sizes: Sequence[int]
    groups: Sequence[ToolGroup]
    starts: Sequence[int]
    loose: int
    places: Mapping[int, int] = field(compare=False)

    @classmethod
    def of_all(cls, tree: ToolTreeModel) -> "Shown":
        """Everything, the agent's own tools first: those of which nothing is on stand in a group of their own."""
        rights = tree.rights
        own = [row for row, right in enumerate(rights) if right.ticked]
        more = [row for row, right in enumerate(rights) if not right.ticked]
        if not own or not more:
            own, more = [*own, *more], []
        return cls._of(tree, own, more, [range(len(rights[row].operations)) for row in (*own, *more)])

    @classmethod
    def of(cls, tree: ToolTreeModel, rows: Sequence[int], fitting: Sequence[Sequence[int]]) -> "Shown":
        """Tools by their rows in the tree, each with the places of its operations that fit."""
        return cls._of(tree, rows, (), fitting)

    @classmethod
    def _of(
        cls, tree: ToolTreeModel, own: Sequence[int], more: Sequence[int], fitting: Sequence[Sequence[int]]
    ) -> "Shown":
        rows = [*own, *more]
        sizes = [len(fit) if tree.sizes[row] else 0 for row, fit in zip(rows, fitting, strict=True)]
        held: list[tuple[ToolGroup, int]] = []
        if len(tree.groups) > 1:
            firsts = [bisect_left(own, first) for _, first in tree.groups]
            spans = zip((group for group, _ in tree.groups), firsts, (*firsts[1:], len(own)), strict=True)
            held = [(group, start) for group, start, end in spans if start < end]
        if more:
            held.append((ToolGroup(MORE, ""), len(own)))
        groups = tuple([group for group, _ in held])
        starts = (*(start for _, start in held), len(rows)) if held else ()
        loose = starts[0] if starts else len(rows)
        return cls(rows, fitting, sizes, groups, starts, loose, {row: place for place, row in enumerate(rows)})


class Fit:
    """The choice of what fits in a tree: each word has to be in a name or a description, and each filter has to fit."""

    def __init__(self, tree: ToolTreeModel) -> None:
        self._tree = tree
        self.words: tuple[str, ...] = ()
        self.filters = NO_FILTERS
        self.problems: frozenset[str] = frozenset()
        """The tools that have one."""
        self._texts: dict[str, _Texts] = {}

    @property
    def leaves_out(self) -> bool:
        """Tell whether anything may not fit."""
        return bool(self.words) or self.filters != NO_FILTERS

    def rows_to_show(self) -> Shown:
        """The rows that fit now."""
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
        if row.verdict is Verdict.ASK:
            return State.ASKS in states
        return State.ON in states or (State.SOME_ASK in states and row.asks_for_some)


class _Texts:
    """Texts that a tool and each of its operations can be found by; of the operations once they are looked at."""

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
