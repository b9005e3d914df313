"""One tool of one agent, compiled: the plan that a call reads instead of the policy, and the shape that the model sees.

All agents that see the same operations of a tool share one shape; they share conditions too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from gatewright.base.errors import Address, GatewrightError
from gatewright.base.jsonvalue import JsonValue, copy_value
from gatewright.base.late import once
from gatewright.compile.operation import CombinedPlans, DeclaredTools, OperationPlan, Redactor, path_plans
from gatewright.compile.rule_test import BoundRule, Conditions, Constraint, Finding, compile_rules, constraints_of
from gatewright.policy.document import OutputCheck, Policy, ToolSettings
from gatewright.policy.layer import Layers
from gatewright.policy.observe import passes_code
from gatewright.policy.reach import source_rules
from gatewright.policy.right import Layer, OperationRight, Reason, ToolFacts, ToolRight
from gatewright.policy.rule import AllowedOperations, ArgumentConstraints, RequiresConsent, RuleKind
from gatewright.policy.rulekind import consent_words
from gatewright.policy.rulematch import address_of, rules_for_operation, settings_of
from gatewright.policy.verdict import Action, Verdict
from gatewright.record.process import fork_safe_lock
from gatewright.schema.check import SchemaChecker
from gatewright.schema.operation import ToolListing
from gatewright.schema.selector import KEYED_FIELD
from gatewright.schema.walk import objects
from gatewright.tools.parameter import LabelParameter, Role
from gatewright.tools.tool import Tool

if TYPE_CHECKING:
    from gatewright.compile.narrowing import Limit
    from gatewright.schema.formats import Format


_MAX_SHAPES = 16_384
_NO_NAMES: frozenset[str] = frozenset()
_Key: TypeAlias = "tuple[str, int, frozenset[str], str | None, tuple[Limit, ...], bool, bool, bool]"


class ToolShape:
    """A tool with ``shown`` as its operations; checker and renderings are made on first use.

    ``narrowed``: the fields whose constraints the schema expresses; ``unsaid``: the other constrained fields, each with
    the reason (empty if words express it). ``closed``: it refuses arguments that it does not name; ``open_why``: the
    reason why it accepts them although it should not. ``check_formats``: its checker demands that texts match a known
    `format`. ``tried``: the self-check's notes on the listing (None) and its calls, by operation.
    """

    def __init__(
        self,
        tool: Tool,
        shown: frozenset[str],
        listing: ToolListing,
        narrowed_from: ToolShape | None = None,
        *,
        check_formats: bool = False,
    ) -> None:
        self.tool = tool
        self.shown = shown
        self.listing = listing
        self.check_formats = check_formats
        self.narrowed = _NO_NAMES
        self.unsaid: tuple[tuple[str, str], ...] = ()
        self.closed = False
        self.open_why = ""
        self.tried: dict[str | None, Any] = {}
        self._narrowed_from = narrowed_from
        self._rendered: dict[tuple[Format, str], dict[str, Any]] = {}

    def with_limits(self, limits: tuple[Limit, ...], *, closed: bool = False) -> ToolShape:
        """The shape with as many limits in its schema as possible; ``closed``: it also refuses unknown arguments."""
        from gatewright.compile.narrowing import apply_limits

        found = apply_limits(
            self.tool, self.shown, self.listing.schema, limits, closed=closed, check_formats=self.check_formats
        )
        listing = self.listing
        if found.schema is not listing.schema:
            listing = ToolListing(listing.name, listing.description, found.schema, listing.output)
        other = ToolShape(self.tool, self.shown, listing, self, check_formats=self.check_formats)
        other.narrowed, other.unsaid = found.names, found.unsaid
        other.closed, other.open_why = closed and not found.open_why, found.open_why
        if found.checker is not None:
            vars(other)["checker"] = found.checker
        return other

    @property
    def whole(self) -> ToolShape:
        """The shape without limits in its schema."""
        return self._narrowed_from or self

    @once
    def checker(self) -> SchemaChecker:
        """The compiled schema. Raises SchemaError."""
        return SchemaChecker(self.listing.schema, check_formats=self.check_formats)

    def compile(self) -> None:
        """Compile the checker now. Raises SchemaError."""
        _ = self.checker

    @once
    def usage_rule(self) -> str | None:
        """The tool's own usage rule, and those of the operations in the shape."""
        return self.tool.usage_rule_for(self.shown)

    def render(self, form: Format, name: str) -> dict[str, Any]:
        """The tool as JSON in a provider's format under ``name``, apart from the schema that the gate checks."""
        found = self._rendered.get((form, name))
        if found is None:
            found = self._rendered[form, name] = copy_value(form.fit(self.listing).body(name))
        return found


class ShapeCache:
    """Shapes by tool, operations, description and limits; compiled conditions; declared tools. For any thread."""

    def __init__(self) -> None:
        self.conditions = Conditions()
        self.declared = DeclaredTools()
        self._shapes: dict[_Key, ToolShape] = {}
        self._lock = fork_safe_lock()

    def shape(
        self,
        tool: Tool,
        shown: frozenset[str],
        description: str | None = None,
        *,
        limits: tuple[Limit, ...] = (),
        closed: bool = False,
        check_formats: bool = False,
        tells_output: bool = True,
    ) -> ToolShape | None:
        """The shape, or None if the model sees no operation. Raises GatewrightError for a tool without a usable schema.

        ``description`` replaces the tool's own. ``limits`` go into the schema as far as possible; ``closed``: refuse
        arguments that it does not name. ``check_formats``: see ``ToolShape``. ``tells_output``: the listing includes
        the schema of results.
        """
        key = (tool.name, tool.major, shown, description, limits, closed, check_formats, tells_output)
        found = self._shapes.get(key)
        if found is not None and found.tool is tool:
            return found
        if limits or closed:
            whole = self.shape(tool, shown, description, check_formats=check_formats, tells_output=tells_output)
            if whole is None:
                return None
            shape = whole.with_limits(limits, closed=closed)
        else:
            schema = tool.schema_for(shown)
            if schema is None:
                return None
            output = tool.model_output(shown) if tells_output else None
            listing = ToolListing(tool.name, tool.description_for(shown, description), schema, output)
            shape = ToolShape(tool, shown, listing, check_formats=check_formats)
        with self._lock:
            if len(self._shapes) >= _MAX_SHAPES:
                self._shapes.clear()
            self._shapes[key] = shape
        return shape


@dataclass(frozen=True)
class ToolPlan:
    """One tool. ``operations``: the shown ones; ``hidden``: the denial of each other one; ``closed``: the denial of
    all.

    ``scrub``: remove secrets from its results; ``output``: the treatment of a result that misfits its schema.
    ``observation``: what is only noted; None: everything is enforced.
    """

    tool: Tool
    right: ToolRight
    shape: ToolShape | None
    closed: Finding | None
    operations: Mapping[str, OperationPlan]
    hidden: Mapping[str, Finding]
    timeout_s: float
    max_output_bytes: int
    hidden_tools: frozenset[str] = field(default=frozenset())
    scrub: bool = True
    output: OutputCheck = OutputCheck.STRICT
    observation: Observation | None = None

    @property
    def has_operations(self) -> bool:
        """True if a field of the arguments selects the operation."""
        return self.right.facts.has_operations

    @property
    def tool_digest(self) -> str:
        """The digest of the tool as registered."""
        return self.tool.digest

    @once
    def actor(self) -> Tool:
        """The object that does the tool's work (`Tool.actor`)."""
        return self.tool.actor

    @once
    def batches(self) -> CombinedPlans:
        """The plans of calls of several operations at once."""
        return CombinedPlans(self.operations, (row.operation for row in self.right.operations))

    @once
    def examples(self) -> tuple[Mapping[str, JsonValue], ...]:
        """Arguments to try that fit the model's schema: the tool's examples and those in its schema."""
        if self.shape is None:
            return ()
        given = (*self.tool.examples, *objects(self.shape.listing.schema.get("examples")))
        return tuple(one for one in given if self.shape.checker.is_valid(one) and self._is_shown(one))

    def _is_shown(self, arguments: Mapping[str, JsonValue]) -> bool:
        called = self.tool.operations_of(arguments)
        return called is not None and self.operations.keys() >= frozenset(called)

    @once
    def unknown_operation(self) -> str:
        """The answer to an unknown or hidden operation: the list of visible ones."""
        names = ", ".join(f"`{name}`" for name in sorted(self.operations))
        field = self.tool.operation_field
        return f"{'the only argument' if field == KEYED_FIELD else f'`{field}`'} must be one of {names}"

    @once
    def redactor(self) -> Redactor:
        """The function that removes hidden names from the tool's failure messages."""
        return Redactor(self.hidden, self.hidden_tools)


@dataclass(frozen=True)
class Observation:
    """The part of a tool's policy that is only noted. ``enforced``: the plan without observing, by ``layers``.

    ``whole``: all denials and asks that may pass do; otherwise those of the policy rules at ``rules``.
    """

    enforced: ToolPlan
    layers: Layers = field(repr=False)
    whole: bool
    rules: frozenset[Address]

    def passes(self, stage: str, finding: Finding) -> bool:
        """Tell whether the finding of that stage is only noted."""
        return finding.noted or (self.whole and passes_code(stage, finding.code))


def compile_tool(
    layers: Layers,
    tool: Tool,
    right: ToolRight,
    shapes: ShapeCache,
    hidden_tools: frozenset[str],
    shape: ToolShape | None = None,
    observation: Observation | None = None,
) -> ToolPlan:
    """Make the plan of one tool; a tool that cannot be enforced as written is closed with the reason.

    ``shape``: the shape that the model sees, if known already. With an ``observation`` the plan shows what ``right``
    does and holds all that is noted.
    """
    policy, facts = layers.policy, right.facts
    closed = None
    operations: dict[str, OperationPlan] = {}
    if right.is_hidden:
        closed = _denial(right.reasons or tuple(r for row in right.operations for r in row.reasons[:1]))
    else:
        try:
            shape = shape or shape_of(layers, tool, right, shapes)
            parts = _Parts(observation.layers if observation else layers, tool, facts, shapes)
            rows = (observation.enforced.right if observation else right).operations
            operations = {row.operation: parts.operation(row) for row in rows if row.operation in right.shown}
        except GatewrightError as error:
            closed, shape = (
                Finding(Verdict.DENY, "schema-unusable", f"`{tool.name}` has no usable schema: {error}"),
                None,
            )
        if shape is None and closed is None:
            closed = Finding(Verdict.DENY, "nothing-shown", f"`{tool.name}` has nothing to show")
    settings = settings_of(policy, tool.name, tool.major)
    return ToolPlan(
        tool,
        right,
        shape,
        closed,
        operations if closed is None else {},
        {row.operation: _denial(row.reasons) for row in right.operations if row.is_hidden},
        _timeout(policy, tool),
        policy.defaults.max_output_bytes,
        hidden_tools,
        settings.scrub if settings is not None else True,
        _output_check(settings, tool),
        observation,
    )


def shape_of(layers: Layers, tool: Tool, right: ToolRight, shapes: ShapeCache) -> ToolShape | None:
    """The shape that the agent's model sees, or None if it sees no operation.

    Raises GatewrightError for a tool without a usable schema.
    """
    limits: tuple[Limit, ...] = ()
    if not layers.passes(right.facts) and (rules := _bound_rules(layers, right.facts, ArgumentConstraints)):
        from gatewright.compile.narrowing import limits_of

        limits = limits_of(rules, right.facts, right.shown)
    words, closed = None, bool(limits)
    settings = settings_of(layers.policy, tool.name, tool.major)
    if settings is not None:
        words = settings.description or None
        closed = closed if settings.extra_arguments is None else settings.extra_arguments is Verdict.DENY
    check_formats = layers.policy.defaults.check_formats
    return shapes.shape(
        tool,
        right.shown,
        words,
        limits=limits,
        closed=closed,
        check_formats=check_formats,
        tells_output=_output_check(settings, tool) is not OutputCheck.OFF,
    )


def _output_check(settings: ToolSettings | None, tool: Tool) -> OutputCheck:
    return (settings.output if settings is not None else None) or tool.output_check


def _bound_rules(layers: Layers, facts: ToolFacts, *kinds: type[RuleKind]) -> list[BoundRule]:
    """The rules of these kinds on every call, from the agent and the tool itself, the most important first."""
    if not facts.tool_rules and layers.kinds.isdisjoint(kinds):
        return []
    found = [
        BoundRule(rule, address, rule.operations, owner=None if address else facts.name)
        for address, rule in layers.rules_with_address(facts)
        if isinstance(rule.rule_type, kinds)
    ]
    return sorted(found, key=lambda bound: -bound.rule.priority)


def unusable(layers: Layers, facts: ToolFacts, shapes: ShapeCache) -> Reason | None:
    """The reason why a condition on the tool's arguments cannot be checked, so that the tool must close."""
    for index, rule in layers.policy_rules(facts):
        try:
            compile_rules([(rule, address_of(index))], shapes.conditions)
        except GatewrightError as error:
            text = f"the condition of policy rule `{rule.name}` cannot be checked, so `{facts.name}` is closed: {error}"
            return Reason(Layer.POLICY, Verdict.DENY, "condition-unusable", text, address_of(index), rule.name)
    for bound in (*_bound_rules(layers, facts, ArgumentConstraints), *(one for _, one in _source_bound(layers, facts))):
        try:
            tuple(constraints_of([bound], None, shapes.conditions))
        except GatewrightError as error:
            text = f"a constraint on `{facts.name}` cannot be checked, so the tool is closed: {error}"
            return Reason(Layer.RULE, Verdict.DENY, "constraint-unusable", text, bound.address, bound.rule.rule_id)
    return None


def has_conditions(layers: Layers) -> bool:
    """Tell whether anything but a tool's own rules puts conditions on arguments."""
    theirs = (rule for source in layers.sources for rule in source.required_tools)
    return (
        ArgumentConstraints in layers.kinds
        or any(isinstance(rule.rule_type, ArgumentConstraints) for rule in theirs)
        or any(not rule.is_unconditional for rule in layers.policy.rules)
    )


class _Parts:
    """The material that the plans of one tool's operations share."""

    def __init__(self, layers: Layers, tool: Tool, facts: ToolFacts, shapes: ShapeCache) -> None:
        self._tool = tool
        self._facts = {row.name: row for row in facts.operations}
        self._rules = _bound_rules(layers, facts, ArgumentConstraints, RequiresConsent)
        self._conditions = shapes.conditions
        self._policy_rules = layers.policy_rules(facts)
        self._sources = tuple(_source_bound(layers, facts))

    def operation(self, row: OperationRight) -> OperationPlan:
        """The plan of one operation. Raises SchemaError for a condition that cannot be compiled."""
        name, declared = row.operation, self._facts[row.operation]
        matching = rules_for_operation(self._policy_rules, name)
        roles = tuple(p for p in self._tool.parameters(name) if p.role is not Role.PLAIN)
        return OperationPlan(
            name,
            tuple(action for action in Action if action in declared.actions),
            row,
            tuple(self._asks(row)),
            roles,
            declared.capabilities,
            compile_rules(((rule, address_of(index)) for index, rule in matching), self._conditions),
            tuple(self._constraints(name)),
            dict(self._denials(name)),
            path_plans(declared),
            any(isinstance(mark.marker, LabelParameter) for role in roles for mark in role.marks),
            self._tool.actor.assessment_of(name),
        )

    def _constraints(self, operation: str) -> Iterator[Constraint]:
        yield from constraints_of(self._rules, operation, self._conditions)
        for source_id, bound in self._sources:
            yield from constraints_of([bound], operation, self._conditions, source_id)

    def _denials(self, operation: str) -> Iterator[tuple[str, Finding]]:
        for source_id, bound in reversed(self._sources):
            kind = bound.rule.rule_type
            if isinstance(kind, AllowedOperations) and operation not in kind.operations:
                text = f"source `{source_id}` does not permit `{operation}` of `{self._tool.name}`"
                finding = Finding(Verdict.DENY, "source-operation-not-allowed", text, bound.address, bound.rule.rule_id)
                yield source_id, finding

    def _asks(self, row: OperationRight) -> Iterator[Finding]:
        """The reasons to ask for every call: consents by priority, then the approvals key or tier."""
        for bound in self._rules:
            kind = bound.rule.rule_type
            if isinstance(kind, RequiresConsent) and bound.binds(row.operation):
                text = consent_words(f"`{self._tool.name}`", kind.scope)
                yield Finding(
                    Verdict.ASK, "requires-consent", text, bound.address, bound.rule.rule_id, scope=kind.scope
                )
        for reason in row.reasons:
            if reason.layer is Layer.APPROVALS and reason.verdict is Verdict.ASK:
                yield Finding(reason.verdict, reason.code, reason.text, reason.address)


def _source_bound(layers: Layers, facts: ToolFacts) -> Iterator[tuple[str, BoundRule]]:
    for source in layers.sources:
        for index, rule in source_rules(source, facts):
            address = ("sources", source.source_id, "required_tools", index)
            yield source.source_id, BoundRule(rule, address, rule.operations, source_id=source.source_id)


def _denial(reasons: tuple[Reason, ...]) -> Finding:
    reason = next((reason for reason in reasons if reason.verdict is Verdict.DENY), None)
    if reason is None:
        return Finding(Verdict.DENY, "hidden", "nothing allows it")
    return Finding(Verdict.DENY, reason.code, reason.text, reason.address, reason.rule_id)


def _timeout(policy: Policy, tool: Tool) -> float:
    settings = settings_of(policy, tool.name, tool.major)
    if settings is not None and settings.timeout_s is not None:
        return settings.timeout_s
    if policy.defaults.timeout_s is not None:
        return policy.defaults.timeout_s
    return tool.resource_bounds.timeout_s
