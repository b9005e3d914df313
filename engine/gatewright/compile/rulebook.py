"""An agent's tool rules compiled per operation: their tests, the tools that they name, the calls that they count.

Rules of the agent limit its calls, rules of a source the calls to it, rules of a tool the tool's calls. Groups, starts
and requirements before the end hold for the whole session, whichever tool they stand on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar, assert_never

from gatewright.base.jsonvalue import canonical_json
from gatewright.base.late import once
from gatewright.compile.rule_test import (
    BoundRule,
    CallsTest,
    Due,
    ExitTest,
    FollowingTest,
    GapTest,
    GroupTest,
    OutsideTest,
    PrecedingTest,
    Rate,
    RateTest,
    RuleBook,
    SessionTest,
    StartTest,
    ToolRef,
    report_order,
)
from gatewright.policy import rule as kinds
from gatewright.policy.document import Agent, Source
from gatewright.policy.right import ToolFacts, ToolRight
from gatewright.policy.rule import ANY_TOOL, OPERATION_CONDITION, ToolRule
from gatewright.policy.verdict import names_tool, split_name

MOST_BATCHES = 256

_T = TypeVar("_T", SessionTest, RateTest, ExitTest, BoundRule)


WideRule = tuple[str, str, int, ToolRule]
"""A rule that the model also reads at tools which it does not name: its owner (kind and id), its place there, the
rule.
"""


class AgentRules:
    """All rules for an agent. ``books``: by tool and operation, each compiled on first use."""

    def __init__(self, agent: Agent, sources: Iterable[Source], rights: Mapping[str, ToolRight]) -> None:
        self._agent = agent
        self._agent_id = agent.agent_id
        self._sources = tuple(sources)
        self._rights = rights
        self.books: dict[tuple[str, str], RuleBook] = {}
        self._batches: dict[tuple[str, frozenset[str]], RuleBook] = {}

    @once
    def requirements(self) -> tuple[ExitTest, ...]:
        """The requirements before the end of the loop."""
        return tuple(self._exit_tests())

    @once
    def due(self) -> tuple[Due, ...]:
        """The calls that are due at intervals."""
        return tuple(self._dues())

    @once
    def _tools(self) -> Mapping[str, ToolFacts]:
        return {name: right.facts for name, right in self._rights.items()}

    @once
    def _visible(self) -> tuple[str, ...]:
        return tuple(name for name, right in self._rights.items() if right.shown)

    @once
    def _rules(self) -> tuple[BoundRule, ...]:
        return tuple(sorted(_all_rules(self._agent, self._sources, self._rights), key=report_order))

    @once
    def _starts(self) -> tuple[StartTest, ...]:
        return tuple(self._start_tests())

    @once
    def _groups(self) -> tuple[tuple[BoundRule, tuple[ToolRef, ...]], ...]:
        return tuple(self._all_groups())

    @once
    def _index(self) -> _Index:
        return _Index(self._rules, self._groups)

    def book(self, tool: str, operation: str) -> RuleBook:
        """The tests of a call of the operation."""
        found = self.books.get((tool, operation))
        if found is None:
            found = self.books[tool, operation] = self._compile(self._tools[tool], operation)
        return found

    def book_of(self, tool: str, operations: frozenset[str]) -> RuleBook:
        """The tests of a call of several operations at once: those of each."""
        found = self._batches.get((tool, operations))
        if found is None:
            found = _join([self.book(tool, operation) for operation in sorted(operations)])
            if len(self._batches) >= MOST_BATCHES:
                self._batches.clear()
            self._batches[tool, operations] = found
        return found

    def rules_for_model(self, tool: str) -> tuple[BoundRule, ...]:
        """The rules that the model reads at the tool: the rules on it, and those that have it in a group."""
        facts, groups_with = self._tools[tool], self._index.groups_with(tool)
        near = self._index.near(tool)
        return tuple(self._rules[at] for at in near if at in groups_with or _stands_on(self._rules[at], facts))

    def _compile(self, facts: ToolFacts, operation: str) -> RuleBook:
        near = (self._rules[at] for at in self._index.near(facts.name))
        rules = [bound for bound in near if _binds(bound, facts, operation)]
        tests = [
            *self._own_tests(facts, operation),
            *(one for bound in rules for one in self._tests(bound, facts, operation)),
        ]
        exits = tuple(bound for bound in rules if isinstance(bound.rule.rule_type, kinds.ExitLoop))
        due = [one for one in self.requirements if exits and not one.required.covers(facts.name, operation)]
        return RuleBook(
            tuple(sorted(tests, key=lambda test: report_order(test.bound))),
            tuple(self._rates(rules, facts.name)),
            exits,
            tuple(due),
            tuple(b for b in rules if b.source_id is not None and isinstance(b.rule.rule_type, kinds.RequiresConsent)),
        )

    def _own_tests(self, facts: ToolFacts, operation: str) -> Iterator[SessionTest]:
        """The tests of the kinds of rules that may be on any tool."""
        if not any(test.start.covers(facts.name, operation) for test in self._starts):
            yield from self._starts
        for bound, group in self._groups:
            own = tuple(ref for ref in group if ref.covers(facts.name, operation))
            others = tuple(ref for ref in group if ref not in own)
            if own and others:
                yield GroupTest(bound, own, others)

    def _tests(self, bound: BoundRule, facts: ToolFacts, operation: str) -> Iterator[SessionTest]:
        kind = bound.rule.rule_type
        counted = ToolRef(facts.name, bound.operations)
        match kind:
            case kinds.MaxCalls():
                yield CallsTest(bound, counted, kind.calls)
            case kinds.Cooldown():
                yield GapTest(bound, counted, kind.seconds)
            case kinds.AfterOutside():
                yield OutsideTest(bound, kind.effect)
            case kinds.RequiresPrecedingTools():
                if refs := self._prerequisites(bound, facts, operation):
                    yield PrecedingTest(bound, refs)
            case kinds.RequiresFollowingTools():
                if refs := self._prerequisites(bound, facts, operation):
                    yield FollowingTest(bound, refs)
            case (
                kinds.AllowedOperations()
                | kinds.ContinueLoop()
                | kinds.ExitLoop()
                | kinds.StartConstraint()
                | kinds.ExclusiveGroups()
                | kinds.RequiredBeforeExit()
                | kinds.RequiredBeforeExitIf()
                | kinds.RateLimit()
                | kinds.Periodic()
                | kinds.RequiresConsent()
                | kinds.ArgumentConstraints()
                | kinds.Needed()
            ):
                return
            case _:
                assert_never(kind)

    def _prerequisites(self, bound: BoundRule, facts: ToolFacts, operation: str) -> tuple[ToolRef, ...]:
        """The tools that the conditions name, as far as this call must wait for them.

        If the conditions name the call itself, the tools under the same rule are left out: they would wait for each
        other for ever.
        """
        refs = self._refs(bound.rule)
        if not any(ref.covers(facts.name, operation) for ref in refs):
            return refs
        return tuple(ref for ref in refs if not self._is_bound(bound, ref))

    def _is_bound(self, bound: BoundRule, ref: ToolRef) -> bool:
        facts = self._tools.get(ref.tool)
        if facts is None:
            return False
        return any(_binds(bound, facts, name) for name in facts.operation_names or ("",) if ref.covers(ref.tool, name))

    def _refs(self, rule: ToolRule) -> tuple[ToolRef, ...]:
        written = [text for text in rule.conditions if not text.startswith(OPERATION_CONDITION)]
        return tuple(resolve(text, self._tools) for text in dict.fromkeys(written))

    def _rates(self, rules: Iterable[BoundRule], tool: str) -> Iterator[RateTest]:
        """The rates on a call. The key of recorded starts says what a rate limits, not its numbers, so that an edit
        forgets no start.

        Of several rates for the same calls the longest comes first: if another one is changed or removed, the record
        still reaches far enough back.
        """
        found = [(bound, kind) for bound in rules if isinstance(kind := bound.rule.rule_type, kinds.RateLimit)]
        numbers = Counter[bytes]()
        for bound, kind in sorted(found, key=lambda pair: -pair[1].per_s):
            named = None if bound.operations is None else sorted(bound.operations)
            what = canonical_json([self._agent_id, tool, named, bound.source_id])
            yield RateTest(bound, Rate(f"{what.decode()}#{numbers[what]}", kind))
            numbers[what] += 1

    def _start_tests(self) -> Iterator[StartTest]:
        for bound in self._rules:
            if isinstance(bound.rule.rule_type, kinds.StartConstraint) and bound.rule.tool_name != ANY_TOOL:
                yield StartTest(bound, self._subject(bound))

    def _all_groups(self) -> Iterator[tuple[BoundRule, tuple[ToolRef, ...]]]:
        for bound in self._rules:
            kind = bound.rule.rule_type
            for group in kind.groups if isinstance(kind, kinds.ExclusiveGroups) else ():
                refs = [self._member(bound, resolve(text, self._tools)) for text in dict.fromkeys(group)]
                yield bound, tuple(ref for ref in refs if ref.operations is None or ref.operations)

    def _member(self, bound: BoundRule, ref: ToolRef) -> ToolRef:
        """A member of a group; the rule's own operations limit the tool that the rule is on."""
        facts = self._tools.get(ref.tool)
        if bound.operations is None or facts is None or not _stands_on(bound, facts):
            return ref
        return ToolRef(ref.tool, bound.operations if ref.operations is None else bound.operations & ref.operations)

    def _exit_tests(self) -> Iterator[ExitTest]:
        for bound in self._rules:
            kind = bound.rule.rule_type
            if isinstance(kind, (kinds.RequiredBeforeExit, kinds.RequiredBeforeExitIf)):
                given = self._refs(bound.rule) if isinstance(kind, kinds.RequiredBeforeExitIf) else ()
                for subject in self._subjects(bound):
                    yield ExitTest(bound, subject, given)

    def _dues(self) -> Iterator[Due]:
        for bound in self._rules:
            kind = bound.rule.rule_type
            if isinstance(kind, kinds.Periodic):
                yield from (Due(bound, ref, kind.seconds) for ref in self._subjects(bound) if ref.tool in self._visible)

    def _subjects(self, bound: BoundRule) -> Iterator[ToolRef]:
        """The tools that a rule is on; ``*`` means every visible tool."""
        if bound.rule.tool_name != ANY_TOOL:
            yield self._subject(bound)
            return
        for name in self._visible:
            if _stands_on(bound, self._tools[name]):
                yield ToolRef(name, bound.operations)

    def _subject(self, bound: BoundRule) -> ToolRef:
        return ToolRef(resolve(bound.rule.tool_name, self._tools).tool, bound.operations)


class _Index:
    """For each tool, the places of the rules that may affect it, in the order of report, which saves a search of all
    rules.
    """

    def __init__(self, rules: Sequence[BoundRule], groups: Iterable[tuple[BoundRule, tuple[ToolRef, ...]]]) -> None:
        self._by_tool: dict[str, list[int]] = {}
        self._grouped: dict[str, set[int]] = {}
        for at, bound in enumerate(rules):
            self._by_tool.setdefault(split_name(bound.rule.tool_name)[0], []).append(at)
        places = {id(bound): at for at, bound in enumerate(rules)}
        for bound, group in groups:
            for ref in group:
                self._grouped.setdefault(ref.tool, set()).add(places[id(bound)])

    def groups_with(self, tool: str) -> AbstractSet[int]:
        """The rules with a group that contains the tool."""
        return self._grouped.get(tool, _NO_PLACES)

    def near(self, tool: str) -> list[int]:
        """The rules that name the tool, every tool, or a group with it, in their order."""
        return sorted({*self._by_tool.get(tool, ()), *self._by_tool.get(ANY_TOOL, ()), *self.groups_with(tool)})


_NO_PLACES: frozenset[int] = frozenset()


def resolve(written: str, tools: Mapping[str, ToolFacts]) -> ToolRef:
    """Read ``tool``, ``tool.operation``, either with ``@major``; the longest registered name wins.

    An unknown name, or a major that is not the chosen one, stays as written and matches no call.
    """
    end = len(written)
    while end > 0:
        name, major = split_name(written[:end])
        facts = tools.get(name)
        if facts is not None:
            operation = written[end + 1 :]
            is_known = end == len(written) or operation in facts.operation_names
            if major not in {None, facts.major} or not is_known:
                break
            return ToolRef(name, frozenset({operation}) if operation else None)
        end = written.rfind(".", 0, end)
    return ToolRef(written)


def _join(books: Sequence[RuleBook]) -> RuleBook:
    """Join the books; equal entries appear once."""
    return RuleBook(
        tuple(sorted(_once(test for book in books for test in book.tests), key=lambda test: report_order(test.bound))),
        tuple(sorted(_once(test for book in books for test in book.rates), key=lambda test: report_order(test.bound))),
        tuple(_once(bound for book in books for bound in book.exits)),
        tuple(_once(test for book in books for test in book.requirements)),
        tuple(_once(bound for book in books for bound in book.consents)),
    )


def _once(items: Iterable[_T]) -> Iterator[_T]:
    """Each distinct item once; identity counts, since comparing the values of rules is slow."""
    seen: set[object] = set()
    for item in items:
        key = _key(item)
        if key not in seen:
            seen.add(key)
            yield item


def _key(item: object) -> object:
    if isinstance(item, BoundRule):
        return id(item)
    values = (getattr(item, name) for name in getattr(type(item), "__slots__", ()))
    return (type(item), *(id(value) if isinstance(value, BoundRule) else value for value in values))


def wide_rules(agent: Agent, sources: Iterable[Source], rights: Mapping[str, ToolRight]) -> tuple[WideRule, ...]:
    """The rules of an agent that the model may read at a tool which they do not name: rules on every tool, and
    groups.
    """
    written: list[tuple[str, str, Sequence[ToolRule]]] = [("agent", agent.agent_id, agent.tool_rules)]
    written += [("source", source.source_id, source.required_tools) for source in sources]
    written += [("tool", name, right.facts.tool_rules) for name, right in rights.items() if right.shown]
    return tuple(
        (kind, whose, place, rule)
        for kind, whose, rules in written
        for place, rule in enumerate(rules)
        if rule.tool_name[:1] == ANY_TOOL or isinstance(rule.rule_type, kinds.ExclusiveGroups)
    )


def _all_rules(agent: Agent, sources: Iterable[Source], rights: Mapping[str, ToolRight]) -> Iterator[BoundRule]:
    for index, rule in enumerate(agent.tool_rules):
        yield BoundRule(rule, ("agents", agent.agent_id, "tool_rules", index), rule.operations)
    for source in sources:
        for index, rule in enumerate(source.required_tools):
            address = ("sources", source.source_id, "required_tools", index)
            yield BoundRule(rule, address, rule.operations, source_id=source.source_id)
    for name, right in rights.items():
        if not right.is_hidden:
            yield from (BoundRule(rule, None, rule.operations, owner=name) for rule in right.facts.tool_rules)


def _stands_on(bound: BoundRule, facts: ToolFacts) -> bool:
    is_owned = bound.owner is None or bound.owner == facts.name
    return is_owned and names_tool(bound.rule.tool_name, facts)


def _binds(bound: BoundRule, facts: ToolFacts, operation: str) -> bool:
    return _stands_on(bound, facts) and bound.binds(operation)
