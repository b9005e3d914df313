"""The ``vault_copyto`` tool: a file of the vault, copied to where it can be used. It does no I/O itself.

The only way out of the vault, in two steps that the log tells apart: reading there, writing here. What the file holds
is told to nobody, not even to whoever approves the call: size and digest stand for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.result import agreed, done
from gatewright.builtins.rooted import FROM_VAULT, OPEN_ROOTS, VAULT, WRITTEN, Input, RootTool, text_of
from gatewright.policy.permission import Action
from gatewright.policy.target import Assessment, Later
from gatewright.policy.tier import SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResourceBounds, SideEffect

if TYPE_CHECKING:
    from gatewright.sources.rootfolder import RootFolders


class VaultCopy(Input):
    """What to copy where."""

    source_path: Annotated[str, FROM_VAULT, Field(description="The file in the vault, such as `vault/report.pdf`.")]
    destination_path: Annotated[str, WRITTEN, Field(description="The file to write, such as `shared/report.pdf`.")]


class VaultCopyTool(RootTool):
    """Copies one file out of the vault."""

    name = "vault_copyto"
    description = (
        "Copies a file out of the vault, where it cannot be read, to a file below `shared/` or `tmp/`. "
        "The source begins with `vault/`."
    )
    examples = ({"source_path": "vault/report.pdf", "destination_path": "shared/report.pdf"},)
    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.FS_READ, SideEffect.FS_WRITE})
    required_capabilities = frozenset[str]()  # each path is judged by its own kind, and by that alone
    resource_bounds = ResourceBounds(timeout_s=30.0)
    input_model = VaultCopy
    needs = (VAULT, OPEN_ROOTS)

    def assess(
        self,
        operation: str,  # noqa: ARG002
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
    ) -> Assessment:
        """What happens at the destination; the source is read, whatever this says."""
        roots = context.require_roots()
        source, destination = text_of(arguments, "source_path"), text_of(arguments, "destination_path")
        action = Action.OVERWRITE if roots.stands(destination) else Action.APPEND
        return Assessment(action, later=Later(partial(_change, roots, source, destination)))

    async def run(self, arguments: VaultCopy, context: ToolExecutionContext) -> JsonValue:
        """Copy it."""
        roots = context.require_roots()
        copied, written = arguments.source_path, arguments.destination_path
        approved = agreed(context, lambda: _change(roots, copied, written))
        data = await roots.copy(copied, written, context.granted, approved=approved)
        source, destination = roots.shown(arguments.source_path), roots.shown(arguments.destination_path)
        return done(f"`{source}` was copied to `{destination}`", data)


def _change(roots: RootFolders, source: str, destination: str) -> str:
    copied, there = roots.note_of(source), roots.note_of(destination)
    if copied is None:
        raise ToolFailure("there is no such file to copy", code="not-found")
    text = f"copies {roots.shown(source)} ({copied}) to {roots.shown(destination)}"
    return text if there is None else f"{text}, which replaces {there}"
