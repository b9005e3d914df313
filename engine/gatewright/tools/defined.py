"""A tool made of a definition: its schema tells what it takes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType
from typing import Required, TypedDict, Unpack

from gatewright.base.errors import RegistrationError, SchemaError
from gatewright.base.late import once
from gatewright.policy.document import OutputCheck
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.policy.verdict import SafetyTier
from gatewright.schema import SchemaChecker, check_schema
from gatewright.schema.engine import linear_part, pattern_problems
from gatewright.schema.walk import Schema, pointer_text
from gatewright.tools.declaration import Normalization, ResultType, SideEffect
from gatewright.tools.definition import ToolDefinition
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
    """A stranger's tool. Without a ``runner`` it is shown and gated, and a call of it fails at execution.

    ``trusted``: the tiers of the definition count; otherwise everything is privileged. ``listed_name``: its name at the
    server, if another. Raises RegistrationError for a definition that cannot be shown or checked.
    """

    result_type = ResultType.ANY
    normalization = Normalization.JSON
    needs_description = False
    leaves_copy = True
    output_check = OutputCheck.WARN

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
            shape = definition_shape(schema, self.safety_tier, tiers, runner)
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
        """Return the checker of an operation without the parts that need more than linear time; each compiles on first
        use.
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
        """The reason why results are not checked against all of the given output schema; empty if they are."""
        if self.definition.output_fault:
            return f"cannot be used ({self.definition.output_fault}); results are not checked"
        for pointer, why in _patterns(self.output_schema) if self.output_schema is not None else ():
            return f"holds a pattern that cannot be checked, at `{pointer}`: {why}; results are checked without it"
        return ""


class RunTool(DefinedTool, abstract=True):
    """A tool that this program runs by its definition, which describes its results and limits."""

    enforces_bounds = True

    def __init__(self, definition: ToolDefinition, **given: Unpack[Given]) -> None:
        super().__init__(definition, **given)
        conduct = definition.conduct
        self.result_type, self.normalization = conduct.result_type, conduct.normalization or self.normalization
        self.determinism, self.resource_bounds = conduct.determinism, conduct.bounds


def _patterns(schema: Schema) -> tuple[tuple[str, str], ...]:
    """Return the first patterns that cannot run: a pointer to each, and the reason."""
    found = islice(pattern_problems(schema), _MOST_PATTERNS)
    return tuple((pointer_text(problem.pointer), problem.message) for problem in found)
