"""The gate: every call of every agent passes here. It compiles, decides, asks, executes, records; it edits nothing.

A call that waits for an approval is decided again, all stages, on the policy as it is when the answer comes. It has
more than 400 lines because it is the one public face of the gate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gatewright.base.clock import Clock, SystemClock
from gatewright.base.errors import PolicyInvalid, ToolFailure, WorkspaceError
from gatewright.base.ids import new_id
from gatewright.base.problem import Problem
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.snapshot import OperationProof, Snapshot
from gatewright.compile.view import AgentView
from gatewright.gate.approval import Approver
from gatewright.gate.approvalstore import ApprovalStore
from gatewright.gate.audit import AuditLog, AuditUnavailable, RowBuilder
from gatewright.gate.broker import PermissionBroker
from gatewright.gate.call import MOST_AT_ONCE, CallState, RawArguments, Recorder, Services
from gatewright.gate.decision import Decision, DecisionProof, Places, nowhere
from gatewright.gate.history import PureResults, RateBook
from gatewright.gate.inforce import NOTHING, Alarm, AlarmBell, InForce, OnAlarm, PolicyHistory, ProofKeys
from gatewright.gate.session import OwnSessions, Session
from gatewright.policy.document import Policy
from gatewright.policy.right import Reason
from gatewright.policy.rulematch import unknown_tools
from gatewright.policy.verdict import Verdict
from gatewright.record.process import fork_safe_lock
from gatewright.tools.context import OnPiece, Ports, ToolExecutionContext
from gatewright.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from gatewright.gate.callrun import Outcome, StepWatch
    from gatewright.gate.pipeline import OnStage, Passage
    from gatewright.gate.trial import ProvenCall, StepForecast, Verification
    from gatewright.gate.turn import BrokenCall, OnCallStage, ToolCall
    from gatewright.policy.edit import ChangeSet


class Gate:
    """One policy enforced over one registry. ``audit`` None: nothing is recorded (a disposable copy, a test).

    ``absent`` says why a known tool is not there, for the operator who asks about a call of it, and that a policy may
    limit it: one that limits any other tool which is not registered is refused (PolicyInvalid).
    ``in_copy``: it is the gate of a disposable copy, where a tool that leaves the copy is decided and not executed.
    ``ports``: what calls can reach; by default nothing. ``file``: the policy's, for the log and the alarm.
    ``broker``: the approver of calls that bring none, and, without ``grants``, the standing approvals.
    """

    def __init__(
        self,
        policy: Policy,
        registry: ToolRegistry,
        *,
        ports: Ports | None = None,
        audit: AuditLog | None = None,
        clock: Clock | None = None,
        places: Places = nowhere,
        approver: Approver | None = None,
        absent: Mapping[str, str] | None = None,
        rates: RateBook | None = None,
        grants: ApprovalStore | None = None,
        broker: PermissionBroker | None = None,
        file: str | None = None,
        in_copy: bool = False,
    ) -> None:
        self._lock = fork_safe_lock()
        self._audit = audit
        self._approver = approver or broker
        grants = broker.grants if grants is None and broker is not None else grants
        services = Services(
            ports or Ports(),
            clock or SystemClock(),
            Recorder(self._write),
            absent or {},
            rates or RateBook(),
            grants,
            PureResults(),
            in_copy,
        )
        _refuse_unknown(policy, None, registry, services.absent)
        self._force = InForce(Snapshot(policy, registry), places, services, ProofKeys(audit))
        self._history = PolicyHistory(self._force.snapshot, file)
        self._written: Snapshot | None = None
        self._bell = AlarmBell()
        self._views: dict[str, tuple[AgentSnapshot, AgentView]] = {}
        self._sessions = OwnSessions()
        self._is_closed = False

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._force.snapshot.policy

    @property
    def alarm(self) -> Alarm | None:
        """The alarm that lasts since a policy could not be taken over; None while all is well."""
        return self._bell.alarm

    def on_alarm(self, listener: OnAlarm) -> Callable[[], None]:
        """Tell ``listener`` of alarms, and of their end, from now on; the answer ends it."""
        return self._bell.subscribe(listener)

    def reload(
        self,
        policy: Policy,
        changed: ChangeSet | None = None,
        *,
        places: Places | None = None,
        ports: Ports | None = None,
        tools: Callable[[], None] | None = None,
    ) -> None:
        """Put another policy in force, at once and whole: running calls finish, waiting ones decide again.

        ``places`` resolves the addresses of the new policy, ``ports`` have its levels and its roots and reach what it
        lets them; without them the old ones stay.
        ``tools`` changes the registry, if that has to go with it: nobody sees the one without the other. A good policy
        ends an alarm. One that says something else than the policy in force takes in the tools that are held as new
        (``new_tools``); what ``tools`` brings is never new. Raises PolicyInvalid for one that limits a tool which is
        not there; the old one stays.
        """
        self._force.snapshot.registry.list_operations()
        with self._lock:
            old = self._force
            there = old.snapshot.registry.keys()
            if tools is not None:
                tools()
            _refuse_unknown(policy, old.snapshot.policy, old.snapshot.registry, old.services.absent)
            services = old.services if ports is None else replace(old.services, ports=ports)
            known = old.snapshot.registry.keys()
            if policy.is_same(old.snapshot.policy):
                known = old.snapshot.known | (known - there)
            snapshot = old.snapshot.renew(policy, changed, known=known)
            self._force = InForce(snapshot, places or old.places, services, old.keys)
            self._views = {agent_id: held for agent_id, held in self._views.items() if agent_id in policy.agents}
        self._bell.clear()

    def accept_new_tools(self) -> tuple[str, ...]:
        """Take in every tool that is held as new (``new_tools``); their names, with ``@major`` above 1."""
        with self._lock:
            snapshot = self._force.snapshot
            there = snapshot.registry.keys()
            holds = snapshot.policy.defaults.new_tools == "hold"
            new = sorted(there - snapshot.known) if holds else []
            if new:
                self._force = replace(self._force, snapshot=snapshot.renew(snapshot.policy, None, known=there))
        return tuple(name if major == 1 else f"{name}@{major}" for name, major in new)

    def refuse(self, problems: Iterable[Problem]) -> Alarm:
        """Raise the alarm: a policy with these problems was not put in force. The log says so with its next row."""
        alarm = Alarm(self._force.services.clock.wall_s(), tuple(problems), self._history.file)
        self._history.refuse(alarm.problems)
        self._bell.ring(alarm)
        return alarm

    def snapshot(self) -> Snapshot:
        """Policy and tools as they are now; whoever holds it sees no mixture."""
        return self.in_force().snapshot

    def in_force(self) -> InForce:
        """Everything that a call is decided by, as one."""
        force = self._force
        snapshot = force.snapshot
        return force if snapshot.revision == snapshot.registry.revision else self._recompiled()

    def view(self, agent_id: str) -> AgentView:
        """What the agent's model is shown now. Raises WorkspaceError for an agent that the policy does not have."""
        agent, views = self._agent(agent_id), self._views
        held = views.get(agent_id)
        if held is None or held[0] is not agent:
            held = views[agent_id] = (agent, AgentView(agent, held[1] if held is not None else None))
        return held[1]

    def check(self, agent_id: str, tool: str, operation: str = "") -> OperationProof:
        """Whether an operation is open to the agent at all, whatever the arguments: a few look-ups, no stage."""
        return self.snapshot().operation(agent_id, tool, operation)

    def problems(self) -> tuple[Reason, ...]:
        """What of the policy does not fit the tools that are registered now; each closes the tools that it names."""
        return self.snapshot().problems

    def decide(
        self,
        agent_id: str,
        tool: str,
        arguments: RawArguments,
        *,
        session: Session | None = None,
        context: ToolExecutionContext | None = None,
    ) -> Decision:
        """What the gate says to the call, without any effect. ``session``: as for `call`."""
        from gatewright.gate.pipeline import Passage

        force = self.in_force()
        state = self._state(force, agent_id, tool, arguments, session, context, "")
        return Passage(state, force).decide()

    def steps(
        self,
        agent_id: str,
        tool: str,
        arguments: RawArguments,
        *,
        session: Session | None = None,
        context: ToolExecutionContext | None = None,
    ) -> tuple[StepForecast, ...]:
        """Decide the steps of a composition, as far as their values are known; without any effect.

        Empty for a call that is denied, and for one of any other tool. ``session``: as for `call`.
        """
        from gatewright.gate.trial import forecast

        force = self.in_force()
        return forecast(self._state(force, agent_id, tool, arguments, session, context, ""), force)

    def change(
        self, agent_id: str, tool: str, arguments: RawArguments, *, session: Session | None = None
    ) -> str | None:
        """What the call would change in a text, as a unified diff, without any effect; takes time and reads the disk.

        None for a call that is denied or cannot be done, and for one that changes no text or does not say how.
        """
        from gatewright.gate.pipeline import Passage

        force = self.in_force()
        state = self._state(force, agent_id, tool, arguments, session, None, "")
        passage = Passage(state, force)
        if passage.decide().verdict is Verdict.DENY or passage.state.assessment is None:
            return None
        try:
            return passage.state.assessment.change()
        except ToolFailure:
            return None

    def state(
        self,
        agent_id: str,
        tool: str,
        arguments: RawArguments,
        *,
        session: Session | None = None,
        context: ToolExecutionContext | None = None,
    ) -> CallState:
        """The call before its first stage, for whoever runs stages by themselves; without a session, of a new one."""
        return self._state(self.in_force(), agent_id, tool, arguments, session or Session(), context, "")

    async def call(
        self,
        agent_id: str,
        tool: str,
        arguments: RawArguments,
        *,
        session: Session | None = None,
        context: ToolExecutionContext | None = None,
        on_stage: OnStage | None = None,
        on_piece: OnPiece | None = None,
        on_step: StepWatch | None = None,
        approver: Approver | None = None,
        unanswered: str = "",
    ) -> Outcome:
        """Decide and, if allowed or approved, execute. Of ``context`` only user, client and progress count.

        ``session``: the conversation that the call belongs to, else the own one of the agent and user (see `session`).
        Raises WorkspaceError for a session that belongs to another agent, and for a user too many.
        ``on_stage`` is told each stage as it passes, those after an approval too, ``on_piece`` each piece of a stream.
        ``on_step`` watches the steps of a composition and may hold each up before it is made.
        ``unanswered``: the tool of an earlier call of the turn that got no yes, after which this one is not made.
        """
        from gatewright.gate.callrun import CallRun, Watched

        state = self._state(self.in_force(), agent_id, tool, arguments, session, context, new_id("call"))
        state.on_piece = on_piece
        if unanswered:
            state.unanswered = unanswered
        calls = state.services.record.calls
        calls.add(state.call_id)
        try:
            watched = Watched(on_step) if on_step is not None else None
            return await CallRun(self.passage, state, on_stage, approver or self._approver, watched).run()
        finally:
            calls.discard(state.call_id)

    async def call_many(
        self,
        agent_id: str,
        calls: Iterable[ToolCall | BrokenCall],
        *,
        session: Session | None = None,
        context: ToolExecutionContext | None = None,
        on_stage: OnCallStage | None = None,
        approver: Approver | None = None,
        most: int = MOST_AT_ONCE,
    ) -> tuple[Outcome, ...]:
        """The calls of one turn: neighbouring read-only ones together, everything else alone and in order.

        After one that is not read-only and whose question got no yes the rest are denied (`earlier-unanswered`).
        Outcomes are in the order of ``calls``. ``session``: as for `call`.
        """
        from gatewright.gate.turn import call_many

        if session is None:
            agent = self.snapshot().agent(agent_id)
            session = self._sessions.find(agent_id, _user_of(agent, context), keep=agent is not None)
        make = partial(self.call, agent_id, session=session, context=context, approver=approver)
        look = partial(self.state, agent_id, session=session, context=context)
        return await call_many(make, look, calls, on_stage, most=most)

    def session(self, agent_id: str, *, user_id: str | None = None) -> Session:
        """The own session of the agent with that user: what calls that name none belong to, while this gate lives.

        Without a user: the one that the policy gives the agent, or nobody. Raises WorkspaceError for an unknown agent,
        and for a user too many (`MOST_USERS`).
        """
        agent = self._agent(agent_id)
        return self._sessions.find(agent_id, user_id or agent.agent.user_id, keep=True)

    def close(self) -> None:
        """Take no more: from now on calls and decisions raise WorkspaceError; those that are under way end."""
        self._is_closed = True

    def pending_exit(self, agent_id: str, session: Session) -> tuple[str, ...]:
        """What must still succeed before the agent's loop may end, as the operator names it. Raises WorkspaceError."""
        from gatewright.gate.breach import pending

        agent = self._agent(agent_id)
        left = pending(agent.rules.requirements, session.facts())
        return tuple(dict.fromkeys(str(test.required) for test in left))

    def reminders(self, agent_id: str, session: Session) -> tuple[str, ...]:
        """A sentence for the model for each shown tool that is due. Raises WorkspaceError for an unknown agent."""
        from gatewright.gate.rulewords import reminders

        agent, now_s = self._agent(agent_id), self.in_force().services.clock.monotonic_s()
        session.begin(now_s)
        return reminders(agent, session.facts(), now_s) if agent.rules.due else ()

    def _agent(self, agent_id: str) -> AgentSnapshot:
        agent = self.snapshot().agent(agent_id)
        if agent is None:
            raise WorkspaceError(f"no agent `{agent_id}` in the policy")
        return agent

    def verify(self, proof: DecisionProof, call: ProvenCall) -> Verification:
        """Whether the proof is ours, unchanged, for this call, and what the gate says now with the facts of then.

        It has no effect, and looks at no session, clock, rate or standing approval of now.
        """
        from gatewright.gate.trial import verified

        return verified(proof, call, self.in_force())

    def passage(self, state: CallState, on_stage: OnStage | None) -> Passage:
        """The way of a call through the stages under the policy as it is now."""
        from gatewright.gate.pipeline import Passage

        force, agent_id = self.in_force(), state.agent_id
        agent = force.snapshot.agents.get(agent_id) or force.snapshot.agent(agent_id)
        return Passage(state.afresh(agent, force.services), force, on_stage)

    def _state(
        self,
        force: InForce,
        agent_id: str,
        tool: str,
        arguments: RawArguments,
        session: Session | None,
        context: ToolExecutionContext | None,
        call_id: str,
    ) -> CallState:
        """The call before its first stage; ``call_id`` empty: it is only to be decided."""
        if self._is_closed:
            raise WorkspaceError("the workspace is closed")
        agent = force.snapshot.agents.get(agent_id) or force.snapshot.agent(agent_id)
        user = _user_of(agent, context)
        session = session or self._sessions.find(agent_id, user, keep=agent is not None and call_id != "")
        if session.agent_id and session.agent_id != agent_id:
            raise WorkspaceError(f"the session `{session.session_id}` belongs to the agent `{session.agent_id}`")
        if not session.is_counted and self._audit is not None:
            with suppress(AuditUnavailable):  # no call is made then
                self._audit.count(session)
        state = CallState(call_id, agent_id, tool, arguments, agent, session, force.services, user)
        if context is not None:
            state.client, state.progress = context.client, context.progress
        return state

    def _recompiled(self) -> InForce:
        """The policy over the tools as they came to be; under the lock, so that a policy swapped meanwhile stays."""
        with self._lock:
            force = self._force
            if not force.snapshot.is_current:
                renewed = force.snapshot.renew(force.snapshot.policy, None)
                self._force = force = replace(force, snapshot=renewed)
            return force

    def _write(self, build: RowBuilder, wait: bool) -> bool:
        """Write rows; rows that cannot even be made are as bad as a log that cannot be written.

        False: nothing was written, because others write, or the digest of a new policy takes a moment, and ``wait``
        says not to wait for it.
        """
        if self._audit is None:
            return True
        snapshot, history = self._force.snapshot, self._history
        if not (wait or snapshot is self._written or snapshot.is_digested):
            return False
        is_told = history.recorded is snapshot and not history.refused
        first = NOTHING if is_told else history.claim(lambda: self._force.snapshot)
        written = False
        try:
            rows = build(self._audit)
            written = self._audit.append((*first.rows, *rows) if first.rows else rows, wait=wait)
        except (ValueError, TypeError, RecursionError) as error:
            raise AuditUnavailable(f"a row for the audit log cannot be made: {error}") from error
        finally:
            if not written:
                history.give_back(first)
        self._written = snapshot if written else None
        return written


def _user_of(agent: AgentSnapshot | None, context: ToolExecutionContext | None) -> str | None:
    """Whom a call is made for: whom the caller names, else whom the policy gives the agent."""
    if context is not None and context.user_id:
        return context.user_id
    return agent.agent.user_id if agent is not None else None


def _refuse_unknown(policy: Policy, before: Policy | None, registry: ToolRegistry, absent: Mapping[str, str]) -> None:
    if problems := unknown_tools(policy, before, registry.facts(), absent):
        raise PolicyInvalid(problems)
