"""The contract of whatever executes tools by their definitions: HTTP requests, processes, WASM modules.

An adapter is told the definition that was accepted and the catalog as the policy has it now, which is trusted; who may
call with which arguments was decided before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import Catalog
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.definition import ToolDefinition


class ToolAdapter(Protocol):
    """Executes the tools of the catalogs of one type, in any thread and any loop."""

    def check(self, definition: ToolDefinition, /) -> None:
        """Raises RegistrationError for a definition whose ``run`` it does not understand."""
        ...

    async def run(
        self,
        catalog: Catalog,
        definition: ToolDefinition,
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
        /,
    ) -> object:
        """Execute one call: a JSON value, bytes, or (of a stream) what yields its pieces. Raises ToolFailure.

        Whoever cancels it ends all that it started. Raises WorkspaceError where what it needs is not there.
        """
        ...

    def close(self) -> None:
        """End what still runs; it waits for a few seconds at most."""
        ...
