"""Tools made of data: of a definition, whose schema describes the arguments, or of calls of other tools.

The gate decides each step of a composition when its turn comes, so a composition can do nothing that its agent cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Required, TypedDict, Unpack

from gatewright.base.errors import RegistrationError, SchemaError, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.jsonvalue import digest as digest_of
from gatewright.base.late import once
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.composition import (
    MAX_DEPTH,
    ORIGIN,
    Composition,
    CompositionStep,
    NoValue,
    fill_in,
    ordinal,
    step_operations,
)
from gatewright.policy.document import OutputCheck, Policy
from gatewright.policy.right import ToolFacts
from gatewright.policy.rulematch import with_settings
from gatewright.policy.verdict import SafetyTier
from gatewright.schema import check_schema
from gatewright.schema.check import SchemaChecker
from gatewright.schema.walk import Schema, as_object, linear_part, pattern_problems, pointer_text
from gatewright.tools.context import StepFailure, ToolExecutionContext
from gatewright.tools.declaration import Normalization, ResourceBounds, ResultType, SideEffect
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.parameter import Mark
from gatewright.tools.schemashape import Runner, answering, definition_shape, select
from gatewright.tools.tool import Tool

_MOST_PATTERNS = 20


class Given(TypedDict, total=False):
    """The options of a `DefinedTool`."""

    origin: Required[str]
    trusted: bool
    runner: Runner | None
    listed_name: str
    held: str
    instructions: str
    side_effects: frozenset[SideEffect]
    capabilities: frozenset[CapabilityKind]


class DefinedTool(Tool, abstract=True):
    """A tool that only its definition describes. Without a ``runner`` agents see it and the gate decides its calls,
    which then fail at execution.

    ``trusted``: the tiers of the definition count; otherwise every operation is privileged. ``listed_name``: its name
    at the server, if another. Raises RegistrationError for a definition that no model could be shown or no gate could
    check.
    """

    result_type = ResultType.ANY
    normalization = Normalization.JSON
    needs_description = False
    leaves_copy = True
    output_check = OutputCheck.WARN
    _marks: Mapping[str, tuple[Mark, ...]] = MappingProxyType({})

    def __init__(
        self,
        definition: ToolDefinition,
        *,
        origin: str,
        trusted: bool = False,
        runner: Runner | None = None,
        listed_name: str = "",
        held: str = "",
        instructions: str = "",
        side_effects: frozenset[SideEffect] = frozenset(),
        capabilities: frozenset[CapabilityKind] = frozenset(),
    ) -> None:
        self.name = definition.name
        self.version = definition.version
        self.description = definition.description
        self.origin = origin
        self.output_schema = definition.output_schema
        self.definition, self.recipe = definition, definition.run
        self.is_executable = runner is not None
        self.listed_name = listed_name or definition.name
        self.held, self.instructions, self.side_effects, self.required_capabilities = (
            held,
            instructions,
            side_effects,
            capabilities,
        )
        tier = definition.safety_tier if trusted else None
        tiers: Mapping[str, SafetyTier] = definition.operation_tiers if trusted else MappingProxyType({})
        self.safety_tier = tier or SafetyTier.PRIVILEGED
        self.destroys = definition.destroys if trusted or definition.destroys else None
        schema = linear_part(definition.input_schema)
        self.unchecked_arguments = () if schema is definition.input_schema else _patterns(definition.input_schema)
        problems = check_schema(schema)
        if problems:
            where = f" at `{problems[0].pointer}`" if problems[0].pointer else ""
            raise RegistrationError(f"tool `{self.name}`: its schema cannot be used{where}: {problems[0].message}")
        try:
            shape = definition_shape(schema, self.safety_tier, tiers, runner, self._marks)
            if definition.operation_field is not None or definition.operations is not None:
                shape = select(shape, definition.operation_field, definition.operations, self.safety_tier, tiers)
            if definition.operation_outputs:
                shape = answering(shape, definition.operation_outputs)
        except SchemaError as error:
            raise RegistrationError(f"tool `{self.name}`: {error}") from None
        self._shape = shape
        self.operation_field = shape.operation_field or self.operation_field
        self._tiers = tiers

    @once
    def output_checker(self) -> SchemaChecker | None:
        """The part of the output schema that can be checked in linear time. Raises SchemaError."""
        return None if self.output_schema is None else SchemaChecker(linear_part(self.output_schema))

    def output_checker_of(self, operation: str) -> SchemaChecker | None:
        """Return the checker of an operation's results, without the parts that take more than linear time; it compiles
        on first use.
        """
        said = self.definition.operation_outputs.get(operation)
        if said is None:
            return self.output_checker
        return self._output_checkers.get(operation) or self._output_checkers.setdefault(
            operation, SchemaChecker(linear_part(said))
        )

    @once
    def _output_checkers(self) -> dict[str, SchemaChecker]:
        return {}

    @property
    def unchecked_output(self) -> str:
        """The reason why results are not checked against the whole output schema; empty if they are."""
        if self.definition.output_fault:
            return f"cannot be used ({self.definition.output_fault}); results are not checked"
        for pointer, why in _patterns(self.output_schema) if self.output_schema is not None else ():
            return f"holds a pattern that cannot be checked, at `{pointer}`: {why}; results are checked without it"
        return ""


class RunTool(DefinedTool, abstract=True):
    """A tool that this program runs as its definition describes; the definition declares its results and limits."""

    enforces_bounds = True
    outside = True

    def __init__(self, definition: ToolDefinition, **given: Unpack[Given]) -> None:
        super().__init__(definition, **given)
        conduct = definition.conduct
        self.result_type, self.normalization = conduct.result_type, conduct.normalization or self.normalization
        self.determinism, self.resource_bounds = conduct.determinism, conduct.bounds


def _patterns(schema: Schema) -> tuple[tuple[str, str], ...]:
    """Return the first patterns that cannot run: a pointer to each, and the reason."""
    found = islice(pattern_problems(schema), _MOST_PATTERNS)
    return tuple((pointer_text(problem.pointer), problem.message) for problem in found)


QUESTION_S = 60.0
"""The time that a composition waits for the questions of each step, besides the time of the step itself."""

_TIERS = tuple(SafetyTier)


@frozen
class Reach:
    """The sum over the steps of a composition: the highest tier, all side effects, and the time that they may take."""

    tier: SafetyTier = SafetyTier.READ_ONLY
    destroys: bool = False
    side_effects: frozenset[SideEffect] = frozenset()
    timeout_s: float = 0.0

    def plus(self, other: Reach) -> Reach:
        """Add the reach of a step that runs afterwards."""
        return Reach(
            max(self.tier, other.tier, key=_TIERS.index),
            self.destroys or other.destroys,
            self.side_effects | other.side_effects,
            self.timeout_s + other.timeout_s,
        )


class ComposedTool(DefinedTool, abstract=True):
    """The tool of a composition; ``reach``: the sum over its steps.

    In a disposable copy each step is decided by itself.
    """

    leaves_copy = False

    def __init__(self, composition: Composition, reach: Reach) -> None:
        self.composition, self.reach = composition, reach
        # each step's own call decides about them
        self.texts = frozenset(as_object(composition.input.get("properties")) or ())
        self.resource_bounds = ResourceBounds(timeout_s=reach.timeout_s)
        definition = ToolDefinition(
            composition.name,
            composition.description or f"Calls {len(composition.steps)} tools, one after the other.",
            dict(composition.input),
            safety_tier=reach.tier,
            destroys=reach.destroys,
        )
        super().__init__(
            definition, origin=ORIGIN, trusted=True, runner=self._carry_out, side_effects=reach.side_effects
        )
        self._conditions = [
            SchemaChecker(step.when) if isinstance(step.when, dict) else step.when for step in composition.steps
        ]

    def facts(self) -> ToolFacts:
        """Return the facts of every tool, but with no argument as a path."""
        return self._own_facts

    @once
    def _own_facts(self) -> ToolFacts:
        facts = super().facts()
        rows = tuple(replace(row, paths=(), holds_texts=False) for row in facts.operations)
        return replace(facts, operations=rows, texts=())

    @once
    def digest(self) -> str:
        """Return the SHA-256 of what policies and models see of it, including its steps."""
        steps: list[JsonValue] = [
            {"tool": step.tool, "arguments": dict(step.arguments), "when": _plain(step.when)}
            for step in self.composition.steps
        ]
        return digest_of(
            {
                "name": self.name,
                "description": self.description,
                "input_schema": self.input_schema(),
                "tier": str(self.reach.tier),
                "steps": steps,
            }
        )

    def with_defaults(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the arguments with the defaults of the schema, as input of the steps."""
        properties = as_object(self.composition.input.get("properties")) or {}
        defaults = {
            name: table["default"]
            for name, held in properties.items()
            if (table := as_object(held)) is not None and "default" in table
        }
        return {**defaults, **arguments}  # pyright: ignore[reportReturnType]

    def applies(self, number: int, given: JsonValue, results: Sequence[JsonValue]) -> bool:
        """Tell whether a step's condition is met. Raises SchemaError if nobody can tell."""
        condition = self._conditions[number]
        if isinstance(condition, SchemaChecker):
            return condition.holds({"input": given, "steps": list(results)})
        return condition is not False

    async def _carry_out(self, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> JsonValue:
        """Return the result of the last step that applied. Raises ToolFailure if a step ended the composition."""
        if context.step is None:
            raise ToolFailure("a composition cannot be executed here", code="not-supported")
        given, steps = self.with_defaults(arguments), self.composition.steps
        results: list[JsonValue] = []
        ran: list[bool] = []
        last: JsonValue = None
        for number, step in enumerate(steps):
            try:
                if not self.applies(number, given, results):
                    await context.step(number, step.tool, None)
                    results.append(None)
                    ran.append(False)
                    continue
                call = fill_in(step.arguments, given, results, ran)
            except NoValue as error:
                raise _failure_of(number, len(steps), ran, StepFailure(_missing(error), "", "no-value")) from None
            except SchemaError as error:
                said = "whether it applies cannot be told of these values"
                raise _failure_of(number, len(steps), ran, StepFailure(said, str(error), "no-condition")) from None
            done = await context.step(number, step.tool, call)
            if done.failure is not None:
                raise _failure_of(number, len(steps), ran, done.failure)
            last = done.result
            results.append(last)
            ran.append(True)
            if context.progress is not None:
                context.progress(float(number + 1), float(len(steps)), None)
        return last


def _failure_of(number: int, count: int, ran: Sequence[bool], failure: StepFailure) -> ToolFailure:
    """Return the failure of a composition that ended at a step; it leaves out the step's tool, which the agent may not
    see.
    """
    which = f"the {ordinal(number)} of {count} steps"
    done = [ordinal(index) for index, has_run in enumerate(ran) if has_run]
    before = f"done before that, and not undone: the {', the '.join(done)} step" if done else "nothing was done before"
    end = "failed" if failure.began else "was not made"
    detail = f"{which} {end}: {failure.detail}; {before}" if failure.detail else ""
    return ToolFailure(f"{which} {end}: {failure.said}; {before}", code=failure.code, detail=detail)


def _missing(error: NoValue) -> str:
    step = error.reference.step
    if step is None:
        return "it needs an argument that was not given"
    return f"it needs something of the result of the {ordinal(step)} step that is not there"


def _plain(when: Mapping[str, JsonValue] | bool | None) -> JsonValue:
    return dict(when) if isinstance(when, Mapping) else when


def compose(policy: Policy, facts: Iterable[ToolFacts], tools: Iterable[Tool] = ()) -> tuple[ComposedTool, ...]:
    """Make the tools of the policy's compositions, as far as the present tools allow.

    Raises RegistrationError for an unusable one. ``facts`` describe the present tools to policies; ``tools``, if given,
    add side effects and times.
    """
    made: dict[str, ComposedTool | None] = {}
    known: dict[str, list[ToolFacts]] = {}
    for row in facts:
        known.setdefault(row.name, []).append(with_settings(policy, row))
    actors: dict[str, list[Tool]] = {}
    for tool in tools:
        actors.setdefault(tool.name, []).append(tool)
    by_name = {one.name: one for one in policy.compositions if one.name not in known}

    def reach_of(step: CompositionStep, depth: int) -> Reach | None:
        if step.tool in by_name:
            below = tool_of(by_name[step.tool], depth + 1)
            rows = [with_settings(policy, below.facts())] if below is not None else []
            bounds = [below.reach] if below is not None else []
        else:
            rows = known.get(step.tool, [])
            bounds = [
                Reach(side_effects=tool.side_effects, timeout_s=tool.resource_bounds.timeout_s)
                for tool in actors.get(step.tool, ())
            ] or [Reach(timeout_s=ResourceBounds().timeout_s)]
        operations = [row for one in rows for row in step_operations(one, step)]
        if not operations:
            return None
        tier = max((row.tier for row in operations), key=_TIERS.index)
        effects = frozenset[SideEffect]().union(*(one.side_effects for one in bounds))
        longest = max(one.timeout_s for one in bounds) + QUESTION_S
        return Reach(tier, any(row.destroys for row in operations), effects, longest)

    def tool_of(composition: Composition, depth: int) -> ComposedTool | None:
        if composition.name not in made:
            made[composition.name] = None  # C while it is being made, it cannot be its own step
            reach = Reach()
            for step in composition.steps if depth <= MAX_DEPTH else ():
                found = reach_of(step, depth)
                if found is None:
                    return None
                reach = reach.plus(found)
            if depth <= MAX_DEPTH:
                tool = made[composition.name] = ComposedTool(composition, reach)
                tool.check()
        return made[composition.name]

    found = (tool_of(one, 1) for one in by_name.values())
    return tuple(tool for tool in found if tool is not None)
