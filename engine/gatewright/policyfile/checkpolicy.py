"""What only policy rules and tools together show: rules that miss calls or hit every one, tools never matched.

It reads no TOML and checks no call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gatewright.base.jsonvalue import canonical_json
from gatewright.base.problem import ToolPart
from gatewright.base.report import RawPath, Report, shown
from gatewright.policy.document import Policy
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.toolname import names_tool, split_name
from gatewright.policy.verdict import Verdict
from gatewright.policyfile.known import KnownTools
from gatewright.policyfile.maymiss import Condition

MAX_NAMED = 3
_ESCAPES = {Verdict.DENY: "is not denied", Verdict.ASK: "does not ask"}
_BEFALLS = {Verdict.DENY: "are denied", Verdict.ASK: "ask"}
Target = tuple["ToolFacts", "OperationFacts"]
Signature = tuple[tuple[str, ...], tuple[str, ...]]
"""The parameters of an operation, and the required ones."""


def check_policy_rules(policy: Policy, known: KnownTools, report: Report) -> None:
    """Add the warnings."""
    strict = _StrictRules(known.facts, report)
    for index, rule in enumerate(policy.rules):
        for position, written in enumerate(rule.tools or ()) if rule.operations is not None else ():
            if not any(name in facts.operation_names for facts in known.of(written) for name in rule.operations or ()):
                place: RawPath = ("policy", "rules", index, "tools", position)
                message = f"{shown(written)} has none of these operations: the rule never matches it"
                report.warning(place, "rule-without-effect", message, at_value=True)
        if rule.effect is not Verdict.ALLOW and isinstance(rule.when, Mapping) and rule.when:
            strict.check(rule, index, rule.when)


class _Targets:
    """Every operation; of a rule those that it matches, by what they take, as no condition tells more apart."""

    def __init__(self, catalog: Iterable[ToolFacts]) -> None:
        self.rows: list[Target] = [(facts, operation) for facts in catalog for operation in facts.operations]
        self._by_tool: dict[str, list[int]] = {}
        self._by_operation: dict[str, list[int]] = {}
        for number, (facts, operation) in enumerate(self.rows):
            self._by_tool.setdefault(facts.name, []).append(number)
            self._by_operation.setdefault(operation.name, []).append(number)
        self._all = self._grouped(range(len(self.rows)))

    def groups(self, rule: PolicyRule) -> Mapping[Signature, list[int]]:
        """The numbers of the rows, in the order of the catalog; of two majors that are alike one."""
        if rule.tools is None and rule.operations is None:
            return self._all
        if rule.tools is not None:
            near = (self._by_tool.get(split_name(written)[0], ()) for written in rule.tools)
        else:
            near = (self._by_operation.get(name, ()) for name in rule.operations or ())
        numbers = sorted({number for some in near for number in some})
        return self._grouped(number for number in numbers if _matches(rule, *self.rows[number]))

    def _grouped(self, numbers: Iterable[int]) -> dict[Signature, list[int]]:
        found: dict[Signature, dict[tuple[str, str], int]] = {}
        for number in numbers:
            facts, operation = self.rows[number]
            signature = (operation.parameters, operation.required)
            found.setdefault(signature, {}).setdefault((facts.name, operation.name), number)
        return {signature: list(some.values()) for signature, some in found.items()}


class _Named:
    """What a warning names: the first few in the order of the catalog, and how many more there are."""

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
        """The tools of all of them, in the order of the catalog."""
        numbers = sorted(number for some in self._added for number in some)
        return tuple((name, None) for name in dict.fromkeys(self._targets.rows[number][0].name for number in numbers))

    def __str__(self) -> str:
        first: list[str] = []
        for number, what in sorted(self._first)[:MAX_NAMED]:
            facts, operation = self._targets.rows[number]
            first.append(f"`{facts.name}{operation.name and '.'}{operation.name}`{what}")
        return ", ".join(first) + (f" (and {self.count - MAX_NAMED} more)" if self.count > MAX_NAMED else "")


class _StrictRules:
    """The warnings on rules that deny or ask; what a condition demands is worked out once per distinct ``when``."""

    def __init__(self, catalog: Iterable[ToolFacts], report: Report) -> None:
        self._report = report
        self._conditions: dict[bytes, Condition] = {}
        self._targets = _Targets(catalog)

    def check(self, rule: PolicyRule, index: int, when: Mapping[str, object]) -> None:
        key = canonical_json(when)
        if key not in self._conditions:
            self._conditions[key] = Condition(when)
        condition, place = self._conditions[key], ("policy", "rules", index, "when")
        missed, hit, omitted = self._found(rule, condition)
        if missed.count:
            text = f"a call that leaves out what `when` needs {_ESCAPES[rule.effect]}: {missed}"
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

    def _found(self, rule: PolicyRule, condition: Condition) -> tuple[_Named, _Named, _Named]:
        """What comes past the condition, what it hits for want of its fields, what asks where they are left out."""
        missed, hit, omitted = _Named(self._targets), _Named(self._targets), _Named(self._targets)
        names_some = rule.tools is not None or rule.operations is not None
        for (parameters, required), numbers in self._targets.groups(rule).items():
            foreign = condition.fields.isdisjoint(parameters)
            given = rule.effect is Verdict.ASK and condition.is_about_given(parameters)
            if not foreign and not given and (fields := condition.escapes(parameters, required)):
                missed.add(numbers, f" may leave out {_named(fields)}")
            if names_some and parameters and (fields := condition.lacks(parameters, required)):
                missed.add(self._meant(rule, numbers), f" takes no {_named(fields)}")
            if foreign and parameters and condition.holds_without_fields:
                hit.add(numbers)
            optional = condition.fields.isdisjoint(required) and not foreign
            if rule.effect is Verdict.ASK and optional and condition.holds_without_fields:
                fields = sorted(condition.fields.intersection(parameters))
                omitted.add(numbers, f" may leave out {_named(fields)}")
        return missed, hit, omitted

    def _meant(self, rule: PolicyRule, numbers: list[int]) -> list[int]:
        """What the rule names itself: that other operations lack the field is what ``when`` is for."""
        return [number for number in numbers if rule.operations or not self._targets.rows[number][0].has_operations]


def _matches(rule: PolicyRule, facts: ToolFacts, operation: OperationFacts) -> bool:
    if rule.operations is not None and operation.name not in rule.operations:
        return False
    return rule.tools is None or any(names_tool(written, facts.name, facts.major) for written in rule.tools)


def _named(fields: Iterable[str]) -> str:
    return " and ".join(map(shown, fields))
