"""The gate: every call of every agent passes here. It compiles, decides, asks, executes, records; it edits nothing.

A call that waits for an approval is decided again, all stages, on the policy as it is when the answer comes.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gatewright.base.clock import SystemClock
from gatewright.base.errors import WorkspaceError
from gatewright.base.ids import new_id
from gatewright.gate.audit import AuditUnavailable
from gatewright.gate.call import CallPorts, CallState
from gatewright.gate.callrun import CallRun
from gatewright.gate.decision import nowhere
from gatewright.gate.pipeline import Passage
from gatewright.gate.session import Session
from gatewright.gate.snapshot import AgentSnapshot, Snapshot
from gatewright.gate.view import AgentView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gatewright.base.clock import Clock
    from gatewright.gate.approval import Approver
    from gatewright.gate.audit import AuditLog
    from gatewright.gate.call import RawArguments, RowBuilder
    from gatewright.gate.decision import Decision, Places
    from gatewright.gate.outcome import Outcome
    from gatewright.gate.pipeline import OnStage
    from gatewright.policy.document import Policy
    from gatewright.policy.edit import ChangeSet
    from gatewright.tools.context import ToolExecutionContext
    from gatewright.tools.port import SourcePort
    from gatewright.tools.registry import ToolRegistry


class Gate:
    """One policy enforced over one registry. ``audit`` None: nothing is recorded (a disposable copy, a test).

    ``absent`` says why a known tool is not there, for the operator who asks about a call of it.
    """

    def __init__(
        self,
        policy: Policy,
        registry: ToolRegistry,
        *,
        sources: SourcePort | None = None,
        audit: AuditLog | None = None,
        clock: Clock | None = None,
        places: Places = nowhere,
        approver: Approver | None = None,
        absent: Mapping[str, str] | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._snapshot = Snapshot(policy, registry)
        self._audit = audit
        self._places = places
        self._approver = approver
        self._ports = CallPorts(sources, clock or SystemClock(), self._commit, absent or {})
        self._views: dict[str, tuple[AgentSnapshot, AgentView]] = {}

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._snapshot.policy

    def reload(self, policy: Policy, changed: ChangeSet | None = None, *, places: Places | None = None) -> None:
        """Put another policy in force, at once and whole; running calls finish on the old one.

        ``places`` resolves the addresses of the new policy; without it the resolver stays.
        """
        with self._lock:
            self._snapshot = self._snapshot.renewed(policy, changed)
            self._places = places or self._places
            self._views = {agent_id: held for agent_id, held in self._views.items() if agent_id in policy.agents}

    def snapshot(self) -> Snapshot:
        """Policy and tools as they are now; whoever holds it sees no mixture."""
        snapshot = self._snapshot
        return snapshot if snapshot.is_current else self._recompiled()

    def view(self, agent_id: str) -> AgentView:
        """What the agent's model is shown now. Raises WorkspaceError for an agent that the policy does not have."""
        agent = self.snapshot().agent(agent_id)
        if agent is None:
            raise WorkspaceError(f"no agent `{agent_id}` in the policy")
        views = self._views
        held = views.get(agent_id)
        if held is None or held[0] is not agent:
            held = views[agent_id] = (agent, AgentView(agent))
        return held[1]

    def decide(
        self,
        agent_id: str,
        tool: str,
        arguments: RawArguments,
        *,
        session: Session | None = None,
        context: ToolExecutionContext | None = None,
    ) -> Decision:
        """What the gate says to the call, without any effect. Without a session, as the first call of a new one."""
        state = self.state(agent_id, tool, arguments, session=session, context=context)
        return Passage(state, self._places).decide()

    def state(
        self,
        agent_id: str,
        tool: str,
        arguments: RawArguments,
        *,
        session: Session | None = None,
        context: ToolExecutionContext | None = None,
    ) -> CallState:
        """The call before its first stage, for whoever runs stages by themselves."""
        return self._begin(agent_id, tool, arguments, session or Session("none"), context, "")

    async def call(
        self,
        agent_id: str,
        tool: str,
        arguments: RawArguments,
        *,
        session: Session | None = None,
        context: ToolExecutionContext | None = None,
        on_stage: OnStage | None = None,
        approver: Approver | None = None,
    ) -> Outcome:
        """Decide and, if allowed or approved, execute. Of ``context`` only the user counts; the rest the gate knows.

        ``on_stage`` is told each stage as it passes, those of the second round after an approval too.
        """
        state = self._begin(agent_id, tool, arguments, session or Session(), context, new_id("call"))
        return await CallRun(self.passage, state, on_stage, approver or self._approver).run()

    def _recompiled(self) -> Snapshot:
        """The policy over the tools as they came to be; under the lock, so that a policy swapped meanwhile stays."""
        with self._lock:
            if not self._snapshot.is_current:
                self._snapshot = self._snapshot.renewed(self._snapshot.policy, None)
            return self._snapshot

    def _begin(
        self,
        agent_id: str,
        tool: str,
        arguments: RawArguments,
        session: Session,
        context: ToolExecutionContext | None,
        call_id: str,
    ) -> CallState:
        agent = self.snapshot().agent(agent_id)
        user = context.user_id if context is not None and context.user_id else agent.agent.user_id if agent else None
        return CallState(call_id, agent_id, tool, arguments, agent, session, self._ports, user)

    def passage(self, state: CallState, on_stage: OnStage | None) -> Passage:
        """The way of a call through the stages under the policy as it is now."""
        fresh = state.having(agent=self.snapshot().agent(state.agent_id))
        return Passage(fresh, self._places, on_stage)

    def _commit(self, build: RowBuilder) -> None:
        """Write rows; rows that cannot even be made are as bad as a log that cannot be written."""
        if self._audit is None:
            return
        try:
            self._audit.append(build(self._audit))
        except (ValueError, TypeError, RecursionError) as error:
            raise AuditUnavailable(f"a row for the audit log cannot be made: {error}") from error
