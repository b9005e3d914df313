"""What a running tool is told about its call: an immutable snapshot. It does not know the gate."""

from __future__ import annotations

from dataclasses import dataclass

from gatewright.base.errors import ToolFailure
from gatewright.policy.permission import Action
from gatewright.tools.port import SourcePort


@dataclass(frozen=True, slots=True)
class ToolExecutionContext:
    """One call: who calls, in which session, what was granted, and the ports. ``granted``: the action allowed."""

    agent_id: str
    session_id: str
    call_id: str = ""
    user_id: str | None = None
    source_ids: tuple[str, ...] = ()
    granted: Action | None = None
    sources: SourcePort | None = None

    def require_sources(self) -> SourcePort:
        """The sources, or a ToolFailure when the workspace has none."""
        if self.sources is None:
            raise ToolFailure("no file source is attached", code="no-source")
        return self.sources
