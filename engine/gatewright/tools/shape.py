"""Two of the ways in which tools take their input: one function, and one method per operation.

``InputShape`` in ``schemashape`` is all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from gatewright.base.errors import WeMustFix
from gatewright.base.frozen import frozen
from gatewright.policy.verdict import SafetyTier
from gatewright.schema.walk import Schema
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.operation import ArgumentIssue, OperationSpec, issues_of
from gatewright.tools.parameter import Parameter

if TYPE_CHECKING:
    from gatewright.tools.signature import Binding


PLAIN = ""
"""The name under which policies hold the one operation of a tool without operations."""

_PLAIN_ONLY = (PLAIN,)


@frozen
class PlainShape:
    """One function, no operations."""

    binding: Binding
    operation_field: None = None
    found: None = None
    operations: tuple[OperationSpec, ...] = ()

    def parameters(self, operation: str) -> tuple[Parameter, ...]:
        """What the function takes."""
        return self.binding.parameters if operation == PLAIN else ()

    def schema_for(self, shown: frozenset[str]) -> Schema | None:
        """The parameters object, closed."""
        from gatewright.tools.flat import plain_schema

        return plain_schema(self.binding.parameters) if PLAIN in shown else None

    def cleaned(self, text: str, shown: frozenset[str]) -> str:  # noqa: ARG002
        """As it is: nothing is hidden."""
        return text

    def operations_of(self, arguments: Mapping[str, object]) -> tuple[str, ...] | None:  # noqa: ARG002
        """Always the plain one."""
        return _PLAIN_ONLY

    def missing(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """Parameters left out, and names that are no parameter."""
        spec = OperationSpec(PLAIN, "", SafetyTier.PRIVILEGED, parameters=self.binding.parameters)
        return issues_of(spec, arguments) if operation == PLAIN else ()

    async def run(
        self,
        owner: object,  # noqa: ARG002
        operation: str,
        arguments: Mapping[str, object],
        context: ToolExecutionContext,
    ) -> object:
        """Call the function."""
        if operation != PLAIN:
            raise WeMustFix(f"a tool without operations was asked for `{operation}`")
        return await self.binding.run(arguments, context)


@frozen
class MethodShape:
    """One method per operation; the schema is one flat object."""

    operation_field: str
    operations: tuple[OperationSpec, ...]
    bindings: Mapping[str, Binding] = field(hash=False)
    found: None = None

    def parameters(self, operation: str) -> tuple[Parameter, ...]:
        """What the operation's method takes."""
        return self.bindings[operation].parameters if operation in self.bindings else ()

    def schema_for(self, shown: frozenset[str]) -> Schema | None:
        """Written for the shown operations; nothing in it comes from a hidden one."""
        from gatewright.tools.flat import flat_schema

        rows = [spec for spec in self.operations if spec.name in shown]
        return flat_schema(self.operation_field, rows, frozenset(self.bindings) - shown) if rows else None

    def cleaned(self, text: str, shown: frozenset[str]) -> str:
        """Names that a shown operation or a parameter of one bears may stay."""
        from gatewright.schema.prose import clean_text

        hidden = self.bindings.keys() - shown
        if not hidden:
            return text
        kept = [parameter.name for name in shown for parameter in self.parameters(name)]
        return clean_text(text, hidden, shown.union(kept))

    def operations_of(self, arguments: Mapping[str, object]) -> tuple[str, ...] | None:
        """The text in the operation field."""
        given = arguments.get(self.operation_field)
        return (given,) if isinstance(given, str) else None

    def missing(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """By the operation's own signature and its choices."""
        spec = next((spec for spec in self.operations if spec.name == operation), None)
        return issues_of(spec, arguments, ignored=(self.operation_field,)) if spec else ()

    async def run(
        self, owner: object, operation: str, arguments: Mapping[str, object], context: ToolExecutionContext
    ) -> object:
        """Call the operation's method."""
        binding = self.bindings.get(operation)
        if binding is None:
            raise WeMustFix(f"no operation `{operation}`")
        given = {name: value for name, value in arguments.items() if name != self.operation_field}
        return await binding.run(given, context, owner)
