"""What the tools of the roots (shared, tmp, vault) have in common: markers, needs, when to stop. It does no I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.result import ObjectTool
from gatewright.policy.document import SHELL
from gatewright.policy.scope import EVERY_ENDPOINT, TARGETS
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, SideEffect
from gatewright.tools.parameter import FileParameter

OPEN_ROOTS = ("shared", "tmp")
VAULT = ("vault",)
READ = FileParameter(roots=OPEN_ROOTS)
WRITTEN = FileParameter(writes=True, roots=OPEN_ROOTS)
FROM_VAULT = FileParameter(roots=VAULT)
_MARGIN_S = 1.0
"""How long before its end a tool that goes through many files begins to answer with what it has."""


def _undescribed(schema: dict[str, Any]) -> None:
    """The description of an input is its tool's."""
    schema.pop("description", None)


class Input(BaseModel):
    """The arguments of such a tool; nothing else may be given."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_undescribed)


class RootTool(ObjectTool, abstract=True):
    """A tool that needs roots, the shell or endpoints.

    ``needs``: of each group the policy provides one (`Policy.provides`).
    """

    determinism = Determinism.DETERMINISTIC
    needs: tuple[tuple[str, ...], ...] = (OPEN_ROOTS,)

    def is_there(self, provided: frozenset[str]) -> bool:
        """Whether a policy that provides this has the tool."""
        return not any(provided.isdisjoint(group) for group in self.needs)


class ReadingTool(RootTool, abstract=True):
    """One that only reads."""

    safety_tier = SafetyTier.READ_ONLY
    side_effects = frozenset({SideEffect.FS_READ})
    actions = (Action.READ,)


def why_absent(name: str, needs: tuple[tuple[str, ...], ...]) -> str:
    """Why the tool is not there, for the operator."""
    if EVERY_ENDPOINT in needs:
        return f"`{name}` comes with `[workspace] endpoints`, where the policy has to name one of {', '.join(TARGETS)}"
    wanted = " and ".join(" or ".join(f"`{root}`" for root in group) for group in needs if group != (SHELL,))
    shell = ", and with a `backend` in `[workspace] shell`" if (SHELL,) in needs else ""
    return f"`{name}` comes with `[workspace] roots`, where the policy has to name a folder for {wanted}{shell}"


def until_stopped(context: ToolExecutionContext) -> Callable[[], bool]:
    """Whether it is time to come to an end."""

    def is_over() -> bool:
        left = context.remaining_s()
        return context.cancelled or (left is not None and left < _MARGIN_S)

    return is_over


def counted(data: JsonValue, key: str) -> int:
    """How many things stand under a key of a result."""
    if not isinstance(data, dict):
        raise ToolFailure("the result is no object", code="bad-result")
    rows = data.get(key)
    return len(rows) if isinstance(rows, list) else 0
