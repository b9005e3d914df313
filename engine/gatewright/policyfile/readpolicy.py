"""Reads ``[policy]`` and ``[[policy.rules]]``, and finds rules that miss calls, hit every one, or match no tool.

To find calls that evade a condition, its schema is judged with some parameters known to be absent and others known to
be present: the schema is then certainly true, certainly false, or open (None). ``properties`` alone says nothing about
a missing field; ``required`` does. The module exceeds 450 lines because it holds all keys of a policy rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import reduce
from typing import Annotated

from pydantic import Field

from gatewright.base.errors import RawPath, Report, SchemaError, ToolPart, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.row import Row, Shape, json_table, one_of, option, several
from gatewright.policy.document import Policy
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import (
    ANY_TOOL,
    DAYS,
    HOURS_PATTERN,
    PolicyRule,
    Times,
    UnknownZone,
    available_zones,
    minutes_of,
    zone_of,
)
from gatewright.policy.verdict import Mode, Verdict, names_tool, selected_catalog, selector_of, split_name
from gatewright.policyfile.names import KnownTools, Names
from gatewright.policyfile.table import Form, Id, Moment, Name, Table, When, check_mode, read_keys
from gatewright.schema.fault import check_json_schema
from gatewright.schema.inline import inline_references
from gatewright.schema.walk import Schema, as_list, as_object, names_required, objects, properties_of

Judged = bool | None
_OPEN = (
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "const",
    "enum",
    "$ref",
)
"""Keywords whose result stays open, whatever is known here."""
_UNDEMANDING = frozenset({"properties", "title", "description", "$comment"})
"""A schema with only these keywords at its root holds if its fields are missing."""


@frozen
class Known:
    """What is known about the arguments of a call."""

    absent: frozenset[str]
    present: frozenset[str]

    def without(self, *names: str) -> Known:
        """The same knowledge, with these arguments absent too."""
        return Known(self.absent.union(names), self.present)


class Condition:
    """One ``when``, with the arguments that it demands."""

    def __init__(self, when: Mapping[str, object]) -> None:
        schema = dict(when)
        try:
            self._schema: Schema = inline_references(schema)
        except SchemaError:
            self._schema = schema
        self.fields = frozenset(_mentions(self._schema))
        self.holds_without_fields = bool(self.fields) and judge(self._schema, Known(self.fields, frozenset())) is True
        self._demands = not self._schema.keys() <= _UNDEMANDING
        self._escapes: dict[Known, tuple[str, ...]] = {}

    def is_about_given(self, parameters: Iterable[str]) -> bool:
        """True if it requires every parameter that it mentions, so that no call can evade it by an omission."""
        return self.fields.intersection(parameters) <= frozenset(names_required(self._schema))

    def escapes(self, parameters: Iterable[str], required: Iterable[str]) -> tuple[str, ...]:
        """The mentioned parameters that a call can omit to evade the condition, some of them only together."""
        if not self._demands:
            return ()
        always = Known(self.fields.difference(parameters), self.fields.intersection(required))
        if always not in self._escapes:
            self._escapes[always] = self._escaping(always)
        return self._escapes[always]

    def _escaping(self, always: Known) -> tuple[str, ...]:
        optional = sorted(self.fields - always.present - always.absent)
        if not optional or judge(self._schema, always) is False:
            return ()
        single = [name for name in optional if judge(self._schema, always.without(name)) is False]
        if single:
            return tuple(single)
        return tuple(optional) if judge(self._schema, always.without(*optional)) is False else ()

    def lacks(self, parameters: Iterable[str], required: Iterable[str]) -> tuple[str, ...]:
        """The mentioned fields that are no parameters, if the condition can never hold without them."""
        others = self.fields.difference(parameters) if self._demands else frozenset[str]()
        known = Known(others, self.fields.intersection(required))
        return tuple(sorted(others)) if others and judge(self._schema, known) is False else ()


def judge(schema: object, known: Known) -> Judged:
    """Judge whether an object that fits ``known`` fits ``schema``: True, False, or None if it depends."""
    if isinstance(schema, bool):
        return schema
    node = as_object(schema)
    return None if node is None else _all(_parts(node, known))


def _parts(node: Schema, known: Known) -> Iterator[Judged]:
    kind = node.get("type")
    yield kind is None or kind == "object" or "object" in (as_list(kind) or ())
    yield from (False if name in known.absent else (name in known.present or None) for name in names_required(node))
    for name, schema in properties_of(node).items():
        yield True if name in known.absent or schema is True or schema == {} else _value(schema, name, known)
    for schema in as_list(node.get("allOf")) or ():
        yield judge(schema, known)
    if (branches := as_list(node.get("anyOf"))) is not None:
        yield _any(judge(schema, known) for schema in branches)
    if (branches := as_list(node.get("oneOf"))) is not None:
        yield _one([judge(schema, known) for schema in branches])
    if "not" in node:
        yield _not(judge(node["not"], known))
    if "if" in node:
        yield _conditional(node, known)
    yield from (None for keyword in _OPEN if keyword in node)


def _value(schema: object, name: str, known: Known) -> Judged:
    return False if schema is False and name in known.present else None


def _conditional(node: Schema, known: Known) -> Judged:
    then, otherwise = judge(node.get("then", True), known), judge(node.get("else", True), known)
    test = judge(node["if"], known)
    if test is None:
        return then if then == otherwise else None
    return then if test else otherwise


def _all(parts: Iterable[Judged]) -> Judged:
    return reduce(_and, parts, True)


def _and(one: Judged, other: Judged) -> Judged:
    if one is False or other is False:
        return False
    return True if one and other else None


def _any(parts: Iterable[Judged]) -> Judged:
    return _not(_all(_not(part) for part in parts))


def _one(parts: list[Judged]) -> Judged:
    if parts.count(True) > 1 or (None not in parts and True not in parts):
        return False
    return True if None not in parts else None


def _not(part: Judged) -> Judged:
    return None if part is None else not part


def _mentions(node: Schema) -> Iterator[str]:
    """The names of arguments that the schema mentions, at the root of the arguments only."""
    yield from properties_of(node)
    yield from names_required(node)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in objects(node.get(keyword)):
            yield from _mentions(branch)
    for keyword in ("not", "if", "then", "else"):
        if (branch := as_object(node.get(keyword))) is not None:
            yield from _mentions(branch)


_HOURS: Shape = {"type": "string", "pattern": HOURS_PATTERN}
_DAYS = several(one_of(DAYS), 1)


def _read_hours(row: Row, key: str) -> str | None:
    hours = row.text(key)
    try:
        if hours is not None:
            minutes_of(hours)
    except ValueError as error:
        row.fault(key, "bad-value", str(error))
        return None
    return hours


def _read_days(row: Row, key: str) -> tuple[str, ...] | None:
    given = _words(row, key)
    options = {day: day for day in DAYS}
    found = [option(word, row.at(key, index), row.report, "a day", options) for index, word in given or ()]
    return tuple(day for day in DAYS if day in found) or None


class TimesTable(Table, of=Times):
    """The key ``times`` of a policy rule."""

    zone: str = Field(description="The time zone of the clock that counts, such as `Europe/Berlin`")
    hours: Annotated[str, Form(lambda: _HOURS, _read_hours)] | None = Field(
        None, description="Hours such as `08:00-18:00`, also over midnight; absent: all day"
    )
    days: Annotated[tuple[str, ...], Form(lambda: _DAYS, _read_days, list)] | None = Field(
        None, description="The days on which the hours begin, as `mon` to `sun`; absent: every day"
    )


class PolicyRuleTable(Table, of=PolicyRule):
    """A row of ``[[policy.rules]]``."""

    name: Id = Field(description="Its name in reports, refusals and the log")
    effect: Verdict = Field(description="The verdict on calls that it matches; the strictest rule wins")
    agents: tuple[Name, ...] | None = Field(None, min_length=1, description="The agents that it is about; absent: all")
    tools: tuple[Name, ...] | None = Field(
        None,
        min_length=1,
        description="The tools that it is about, as `name`, `name@major` or `catalog:ID`; absent: all",
    )
    operations: tuple[Name, ...] | None = Field(
        None, min_length=1, description="The operations that it is about; absent: all"
    )
    when: When | None = Field(None, description="A JSON Schema that the canonical arguments must fit; absent: always")
    times: Times | None = Field(None, description="When the rule holds; absent: always")
    message: str | None = Field(None, description="Words for the model when it denies")
    mode: Mode = Field(Mode.ENFORCE, description="`observe`: its denials and asks are noted, not enforced")
    observe_until_s: Moment | None = Field(
        None, alias="observe_until", description="The time when enforcing begins again, at most 30 days ahead"
    )


class PolicyTable(Table):
    """``[policy]``."""

    default: Verdict = Field(Verdict.ALLOW, description="The verdict on calls that no rule matches")
    rules: tuple[PolicyRule, ...] = Field((), description="Rules for calls of any agent")


_WHAT = "a policy rule"


def read_policy_rules(row: Row | None, names: Names, agents: Collection[str]) -> tuple[Verdict, tuple[PolicyRule, ...]]:
    """Read the default and the rules; a faulty rule is reported and left out."""
    if row is None:
        return Verdict.ALLOW, ()
    keys = read_keys(row, PolicyTable, "`[policy]`")
    seen: dict[str, int] = {}
    found: list[PolicyRule] = []
    for number, entry in enumerate(row.rows("rules"), 1):
        rule = read_policy_rule(entry, names, agents)
        if rule is None:
            continue
        found.append(rule)
        if seen.setdefault(rule.name, number) != number:
            entry.fault("name", "duplicate", f"policy rule {seen[rule.name]} is named {shown(rule.name)} too")
    return keys.get("default", Verdict.ALLOW), tuple(found)


def read_policy_rule(row: Row, names: Names, agents: Collection[str]) -> PolicyRule | None:
    """Read one rule; None if it is faulty, which is reported."""
    found = read_keys(row, PolicyRuleTable, _WHAT)
    check_mode(row, found)
    if found.get("effect") is Verdict.ALLOW and found.get("mode") is Mode.OBSERVE:
        row.fault("mode", "bad-value", "a rule that allows has nothing to observe: it neither denies nor asks")
    who = _agents(row, agents, names)
    tools, facts = _tools(row, names)
    operations, when, times = _operations(row, names, facts), _when(row), _times(row)
    if not {"name", "effect"} <= found.keys():
        return None
    return PolicyRule(**found, agents=who, tools=tools, operations=operations, when=when, times=times)


def _words(row: Row, key: str) -> list[tuple[int, str]] | None:
    """Read a list of different texts, None if absent; an empty list is an error, since it matches nothing."""
    if key not in row.raw:
        return None
    found = row.texts(key)
    if row.raw[key] == []:
        row.fault(key, "bad-value", f"an empty `{key}` matches nothing: leave it out to mean all of them")
    seen: set[str] = set()
    for index, word in found:
        if word in seen:
            row.report.error(row.at(key, index), "duplicate", f"{shown(word)} is listed already")
        seen.add(word)
    return found


def _agents(row: Row, known: Collection[str], names: Names) -> tuple[str, ...] | None:
    found = _words(row, "agents")
    for index, agent_id in found or ():
        if agent_id not in known and names.known is not None:
            near = row.report.near(agent_id, known)
            row.report.error(
                row.at("agents", index), "unknown-agent", f"no agent is named {shown(agent_id)}", near=near
            )
    return None if found is None else tuple(word for _, word in found)


def _tools(row: Row, names: Names) -> tuple[tuple[str, ...] | None, tuple[ToolFacts, ...]]:
    """Read the names as written, and the tools that the rule may match."""
    found = _words(row, "tools")
    if found is None:
        return None, names.known.facts if names.known else ()
    facts: list[ToolFacts] = []
    for index, written in found:
        if written == ANY_TOOL:
            message = "`*` is no tool: to mean every tool leave `tools` out"
            row.report.error(row.at("tools", index), "bad-value", message)
        else:
            facts += names.selected(written, row.at("tools", index))
    return tuple(word for _, word in found), tuple(facts)


def _operations(row: Row, names: Names, facts: tuple[ToolFacts, ...]) -> tuple[str, ...] | None:
    found = _words(row, "operations")
    where = "none of the tools of the rule" if "tools" in row.raw else "no tool"
    if facts:
        for index, operation in found or ():
            names.operation_of_any(facts, operation, row.at("operations", index), where)
    return None if found is None else tuple(word for _, word in found)


def _when(row: Row) -> Mapping[str, JsonValue] | bool | None:
    value = row.raw.get("when")
    if value is None:
        return None
    if isinstance(value, bool):
        if not value:
            message = "`when = false` fits no call: the rule has no effect"
            row.report.warning(row.at("when"), "rule-without-effect", message)
        return value
    table = row.table("when")
    schema = json_table(table.raw, table.path, row.report) if table else None
    if schema is not None:
        check_json_schema(schema, row.at("when"), row.report)
    return schema


def _times(row: Row) -> Times | None:
    table = row.table("times")
    if table is None:
        return None
    found = read_keys(table, TimesTable, "`times`")
    if "zone" not in found:
        return None
    try:
        zone_of(found["zone"])
    except UnknownZone as unknown:
        near = row.report.near(found["zone"], available_zones())
        table.fault("zone", "unknown-zone", str(unknown), near=near)
        return None
    if table.raw.keys() == {"zone"}:
        message = "`times` names neither hours nor days: the rule holds always, as without `times`"
        row.report.warning(row.at("times"), "rule-without-effect", message)
    return Times(**found)


MAX_NAMED = 3
_ESCAPES = {Verdict.DENY: "is not denied", Verdict.ASK: "does not ask"}
_BEFALLS = {Verdict.DENY: "are denied", Verdict.ASK: "ask"}
Target = tuple["ToolFacts", "OperationFacts"]
Signature = tuple[tuple[str, ...], tuple[str, ...]]
"""The parameters of an operation, and the required ones."""


def check_policy_rules(policy: Policy, known: KnownTools, report: Report) -> None:
    """Add the warnings about policy rules."""
    strict = _StrictRules(known.facts, report)
    for index, rule in enumerate(policy.rules):
        for position, written in enumerate(rule.tools or ()) if rule.operations is not None else ():
            named = known.selected(written)
            if not named and selected_catalog(written) is not None:
                continue  # none of its tools is known yet
            if not any(name in facts.operation_names for facts in named for name in rule.operations or ()):
                place: RawPath = ("policy", "rules", index, "tools", position)
                message = f"{shown(written)} has none of these operations: the rule never matches it"
                report.warning(place, "rule-without-effect", message, at_value=True)
        if rule.effect is not Verdict.ALLOW and isinstance(rule.when, Mapping) and rule.when:
            strict.check(rule, index, rule.when)


class _Targets:
    """Groups of operations that take the same parameters, which no condition can tell apart.

    It holds the operations of all tools, or those that a rule matches.
    """

    def __init__(self, catalog: Iterable[ToolFacts]) -> None:
        self.rows: list[Target] = [(facts, operation) for facts in catalog for operation in facts.operations]
        self._by_tool: dict[str, list[int]] = {}
        self._by_operation: dict[str, list[int]] = {}
        for number, (facts, operation) in enumerate(self.rows):
            self._by_tool.setdefault(facts.name, []).append(number)
            self._by_tool.setdefault(selector_of(facts.origin), []).append(number)
            self._by_operation.setdefault(operation.name, []).append(number)
        self._all = self._group(range(len(self.rows)))

    def groups(self, rule: PolicyRule) -> Mapping[Signature, list[int]]:
        """The numbers of the rows that a rule matches, in the order of the catalog; equal rows of two majors count
        once.
        """
        if rule.tools is None and rule.operations is None:
            return self._all
        if rule.tools is not None:
            near = (self._by_tool.get(split_name(written)[0], ()) for written in rule.tools)
        else:
            near = (self._by_operation.get(name, ()) for name in rule.operations or ())
        numbers = sorted({number for some in near for number in some})
        return self._group(number for number in numbers if _matches(rule, *self.rows[number]))

    def _group(self, numbers: Iterable[int]) -> dict[Signature, list[int]]:
        found: dict[Signature, dict[tuple[str, str], int]] = {}
        for number in numbers:
            facts, operation = self.rows[number]
            signature = (operation.parameters, operation.required)
            found.setdefault(signature, {}).setdefault((facts.name, operation.name), number)
        return {signature: list(some.values()) for signature, some in found.items()}


class _Named:
    """The operations that a warning names: the first few in the order of the catalog, and the number of others."""

    def __init__(self, targets: _Targets) -> None:
        self._targets = targets
        self._first: list[tuple[int, str]] = []
        self._added: list[list[int]] = []
        self.count = 0

    def add(self, numbers: list[int], what: str = "") -> None:
        self.count += len(numbers)
        self._added.append(numbers)
        self._first += [(number, what) for number in numbers[:MAX_NAMED]]

    @property
    def tools(self) -> tuple[ToolPart, ...]:
        """The tools of all of these operations, in the order of the catalog."""
        numbers = sorted(number for some in self._added for number in some)
        return tuple((name, None) for name in dict.fromkeys(self._targets.rows[number][0].name for number in numbers))

    def __str__(self) -> str:
        first: list[str] = []
        for number, what in sorted(self._first)[:MAX_NAMED]:
            facts, operation = self._targets.rows[number]
            first.append(f"`{facts.name}{operation.name and '.'}{operation.name}`{what}")
        return ", ".join(first) + (f" (and {self.count - MAX_NAMED} more)" if self.count > MAX_NAMED else "")


class _StrictRules:
    """The warnings on rules that deny or ask; each distinct ``when`` is examined once."""

    def __init__(self, catalog: Iterable[ToolFacts], report: Report) -> None:
        self._report = report
        self._conditions: dict[bytes, Condition] = {}
        self._targets = _Targets(catalog)

    def check(self, rule: PolicyRule, index: int, when: Mapping[str, object]) -> None:
        key = canonical_json(when)
        if key not in self._conditions:
            self._conditions[key] = Condition(when)
        condition, place = self._conditions[key], ("policy", "rules", index, "when")
        missed, hit, omitted = self._examine(rule, condition)
        if missed.count:
            text = f"a call without the arguments that `when` names {_ESCAPES[rule.effect]}: {missed}"
            self._report.warning(place, f"{rule.effect}-may-miss", text, tools=missed.tools)
        if hit.count:
            fields = " or ".join(map(shown, sorted(condition.fields)))
            what = f"so all of these {_BEFALLS[rule.effect]}: {hit}"
            text = f"`when` holds for every call that cannot have {fields}, {what}"
            self._report.warning(place, f"{rule.effect}-always", text, tools=hit.tools)
        if omitted.count:
            text = f"`when` holds for a call that leaves out all that it speaks of, so that asks: {omitted}"
            hint = "name the arguments in `required` to ask only when they are given"
            self._report.warning(place, "ask-when-omitted", f"{text}; {hint}", tools=omitted.tools)

    def _examine(self, rule: PolicyRule, condition: Condition) -> tuple[_Named, _Named, _Named]:
        """The operations whose calls evade the condition, those that it hits since they lack its fields, and those that
        then ask.
        """
        missed, hit, omitted = _Named(self._targets), _Named(self._targets), _Named(self._targets)
        names_some = rule.tools is not None or rule.operations is not None
        for (parameters, required), numbers in self._targets.groups(rule).items():
            foreign = condition.fields.isdisjoint(parameters)
            given = rule.effect is Verdict.ASK and condition.is_about_given(parameters)
            if not foreign and not given and (fields := condition.escapes(parameters, required)):
                missed.add(numbers, f" may leave out {_in_words(fields)}")
            if names_some and parameters and (fields := condition.lacks(parameters, required)):
                missed.add(self._meant(rule, numbers), f" takes no {_in_words(fields)}")
            if foreign and parameters and condition.holds_without_fields:
                hit.add(numbers)
            optional = condition.fields.isdisjoint(required) and not foreign
            if rule.effect is Verdict.ASK and optional and condition.holds_without_fields:
                fields = sorted(condition.fields.intersection(parameters))
                omitted.add(numbers, f" may leave out {_in_words(fields)}")
        return missed, hit, omitted

    def _meant(self, rule: PolicyRule, numbers: list[int]) -> list[int]:
        """The operations that the rule names itself; others may lack the field, and ``when`` spares them on purpose."""
        return [number for number in numbers if rule.operations or not self._targets.rows[number][0].has_operations]


def _matches(rule: PolicyRule, facts: ToolFacts, operation: OperationFacts) -> bool:
    if rule.operations is not None and operation.name not in rule.operations:
        return False
    return rule.tools is None or any(names_tool(written, facts) for written in rule.tools)


def _in_words(fields: Iterable[str]) -> str:
    return " and ".join(map(shown, fields))
