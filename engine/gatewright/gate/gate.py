"""The gate: every call of every agent passes here to be compiled, decided, asked about, executed and recorded.

A call that waits for an approval is decided again, by all stages, under the policy at the time of the answer. The
module has more than 450 lines because it is the one public face of the gate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from gatewright.base.amount import Clock, SystemClock, new_id
from gatewright.base.errors import PolicyInvalid, Problem, ToolFailure, WorkspaceError
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.snapshot import OperationProof, Snapshot
from gatewright.gate.approval import Approver
from gatewright.gate.approvalstore import ApprovalStore
from gatewright.gate.broker import PermissionBroker
from gatewright.gate.call import MOST_AT_ONCE, CallState, Effect, RawArguments, Recorder, Services
from gatewright.gate.decision import Decision, DecisionProof, Places, nowhere
from gatewright.gate.history import PureResults, RateBook
from gatewright.gate.inforce import NOTHING, Alarm, AlarmBell, InForce, OnAlarm, PolicyHistory, ProofKeys
from gatewright.gate.port import AuditUnavailable, Log, Rates, RowBuilder
from gatewright.gate.session import OwnSessions, Session
from gatewright.gate.stop import StopSwitch
from gatewright.policy.delegation import Lineage
from gatewright.policy.document import Policy
from gatewright.policy.right import Reason
from gatewright.policy.rulematch import unknown_tools
from gatewright.policy.verdict import Verdict
from gatewright.record.process import fork_safe_lock
from gatewright.tools.context import OnPiece, Ports, ToolExecutionContext
from gatewright.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from gatewright.compile.view import AgentView
    from gatewright.gate.callrun import CallRun, OnCall, Outcome, StepWatch
    from gatewright.gate.inforce import ProvenCall, Verification
    from gatewright.gate.ledger import Ledger
    from gatewright.gate.pipeline import OnStage, Passage, StepForecast
    from gatewright.gate.turn import BrokenCall, OnCallStage, ToolCall
    from gatewright.policy.edit import ChangeSet


OnAsk = Literal["wait", "suspend"]


class Gate:
    """One policy enforced over one registry. ``audit`` None: no records (a disposable copy, a test).

    ``absent``: the reason why a known tool is missing, for the operator; a policy may limit such tools, but
    PolicyInvalid refuses one that limits any other unregistered tool. ``in_copy``: the gate of a disposable copy, where
    an effect outside is decided but not executed. ``ports``: the reach of calls; by default nothing. ``file``: the
    policy's, for the log and the alarm. ``broker``: the approver of calls that bring none, and, without ``grants``, the
    standing approvals. ``stops``: what stops its calls; None: a stop of its own.
    """

    def __init__(
        self,
        policy: Policy,
        registry: ToolRegistry,
        *,
        ports: Ports | None = None,
        audit: Log | None = None,
        clock: Clock | None = None,
        places: Places = nowhere,
        approver: Approver | None = None,
        absent: Mapping[str, str] | None = None,
        rates: Rates | None = None,
        grants: ApprovalStore | None = None,
        broker: PermissionBroker | None = None,
        file: str | None = None,
        in_copy: bool = False,
        stops: StopSwitch | None = None,
    ) -> None:
        self._lock = fork_safe_lock()
        self._audit = audit
        self._approver = approver or broker
        grants = broker.grants if grants is None and broker is not None else grants
        clock = clock or SystemClock()
        services = Services(
            ports or Ports(),
            clock,
            Recorder(self._write),
            absent or {},
            rates or RateBook(),
            grants,
            PureResults(),
            in_copy,
            stops or StopSwitch(clock=clock),
        )
        _refuse_unknown(policy, None, registry, services.absent)
        self._force = InForce(Snapshot(policy, registry, clock=clock), places, services, ProofKeys(audit))
        self._history = PolicyHistory(self._force.snapshot, file)
        self._written: Snapshot | None = None
        self._bell = AlarmBell()
        self._views: dict[str, tuple[AgentSnapshot, AgentView]] = {}
        self._sessions = OwnSessions()
        self._ledger: Ledger | None = None
        self._is_closed = False
        self._followers: tuple[OnCall, ...] = ()

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._force.snapshot.policy

    @property
    def stops(self) -> StopSwitch:
        """The stop of its calls: to pull, lift and look at."""
        stops = self._force.services.stops
        assert stops is not None
        return stops

    def without_stop(self) -> Gate:
        """The same gate for questions about the policy, which no stop changes."""
        twin = copy(self)
        twin._force = replace(self._force, services=replace(self._force.services, stops=None))
        return twin

    @property
    def alarm(self) -> Alarm | None:
        """The alarm since a new policy failed; None while all is well."""
        return self._bell.alarm

    def on_alarm(self, listener: OnAlarm) -> Callable[[], None]:
        """Report alarms and their ends to ``listener`` from now on; the returned function stops it."""
        return self._bell.subscribe(listener)

    def on_outcome(self, listener: Callable[[Outcome], None]) -> Callable[[], None]:
        """Report each call's outcome to ``listener`` from now on, and that of each step of a composition.

        That includes calls that were denied, got no answer or are waiting for one, and those whose caller gave up
        (``abandoned``, ``cancelled``). The loop of the call calls it, before the caller gets the outcome; its failure
        stops no call. The returned function stops it.
        """
        return self.follow(lambda _: listener)

    def follow(self, begin: OnCall) -> Callable[[], None]:
        """Call ``begin`` with each call before its first stage, and what it returns with the outcome, from now on.

        Both run in the call's own context. The returned function stops it.
        """
        with self._lock:
            self._followers = (*self._followers, begin)
        return lambda: self._unfollow(begin)

    def _unfollow(self, begin: OnCall) -> None:
        with self._lock:
            self._followers = tuple(other for other in self._followers if other is not begin)

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

        ``places`` resolves the addresses of the new policy, ``ports`` carry its levels, roots and reach; without them
        the old ones stay. ``tools`` changes the registry, if that must change too; nobody sees one change without the
        other. A good policy ends an alarm. A policy that differs from the one in force accepts the tools that are held
        as new (``new_tools``); those of ``tools`` are never new. Raises PolicyInvalid for a policy that limits a
        missing tool; the old one stays.
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
        """Accept every tool that is held as new (``new_tools``); returns their names, with ``@major`` above 1."""
        with self._lock:
            snapshot = self._force.snapshot
            there = snapshot.registry.keys()
            holds = snapshot.policy.defaults.new_tools == "hold"
            new = sorted(there - snapshot.known) if holds else []
            if new:
                self._force = replace(self._force, snapshot=snapshot.renew(snapshot.policy, None, known=there))
        return tuple(name if major == 1 else f"{name}@{major}" for name, major in new)

    def refuse(self, problems: Iterable[Problem]) -> Alarm:
        """Raise the alarm: a policy with these problems does not come into force.

        The next row of the log records that.
        """
        alarm = Alarm(self._force.services.clock.wall_s(), tuple(problems), self._history.file)
        self._history.refuse(alarm.problems)
        self._bell.ring(alarm)
        return alarm

    def snapshot(self) -> Snapshot:
        """The present policy and tools as one consistent value."""
        return self.in_force().snapshot

    def in_force(self) -> InForce:
        """Everything that decides a call, as one value."""
        force = self._force
        snapshot = force.snapshot
        if snapshot.revision == snapshot.registry.revision and (snapshot.span is None or snapshot.is_current):
            return force
        return self._recompile()

    def view(self, agent_id: str) -> AgentView:
        """The agent's present tools as its model sees them. Raises WorkspaceError for an unknown agent."""
        from gatewright.compile.view import AgentView

        agent, views = self._agent(agent_id), self._views
        held = views.get(agent_id)
        if held is None or held[0] is not agent:
            held = views[agent_id] = (agent, AgentView(agent, held[1] if held is not None else None))
        return held[1]

    def check(self, agent_id: str, tool: str, operation: str = "") -> OperationProof:
        """Prove whether an operation is open to the agent, whatever the arguments: a few look-ups, no stage."""
        return self.snapshot().operation(agent_id, tool, operation)

    def problems(self) -> tuple[Reason, ...]:
        """The parts of the policy that misfit the registered tools; each closes the tools that it names."""
        return self.snapshot().problems

    def decide(
        self,
        agent_id: str,
        tool: str,
        arguments: RawArguments,
        *,
        session: Session | None = None,
        context: ToolExecutionContext | None = None,
        lineage: Lineage | None = None,
    ) -> Decision:
        """Decide the call without any effect. ``session``, ``lineage``: see `call`."""
        from gatewright.gate.pipeline import Passage

        force = self.in_force()
        state = self._state(force, agent_id, tool, arguments, session, context, "")
        state.lineage = lineage
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
        """Decide the steps of a composition without any effect, as far as their values are known.

        Empty for a denied call and for any other tool. ``session``: see `call`.
        """
        from gatewright.gate.pipeline import forecast

        force = self.in_force()
        return forecast(self._state(force, agent_id, tool, arguments, session, context, ""), force)

    def change(
        self, agent_id: str, tool: str, arguments: RawArguments, *, session: Session | None = None
    ) -> str | None:
        """The change that the call would make to a text, as a unified diff, without any effect; it takes time and reads
        the disk.

        None for a call that is denied or impossible, and for one that changes no text or does not say how.
        """
        from gatewright.gate.pipeline import Passage

        force = self.in_force()
        state = self._state(force, agent_id, tool, arguments, session, None, "")
        passage = Passage(state, force)
        if passage.decide().effect is Verdict.DENY or passage.state.assessment is None:
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
        """The call before its first stage, for running single stages; without a session, in a new one."""
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
        call_id: str = "",
        conversation: str = "",
        on_ask: OnAsk = "wait",
        effect: Effect | None = None,
        lineage: Lineage | None = None,
    ) -> Outcome:
        """Decide and, if allowed or approved, execute. Of ``context`` only user, client, folder and progress count.

        ``session``: the conversation of the call, else the gate's own for the agent and user (see `session`). Raises
        WorkspaceError for a session of another agent, and for a user too many. ``on_stage`` gets each stage that the
        call passes, also after an approval, ``on_piece`` each piece of a stream. ``on_step`` observes the steps of a
        composition and may delay each one. ``unanswered``: the tool of an earlier call of the turn without approval,
        after which this one is not made.

        ``call_id``: the program's own name of this call in its ``conversation``, by which it runs at most once and
        tells its recorded outcome afterwards; without a conversation a replay is not recognised. ``on_ask``
        ``suspend``: a call that asks returns its question at once, with the status ``waiting``; the same call with the
        same id takes the answer, in any process. Raises WorkspaceError for either in a gate without a log, or without
        a store of questions. ``effect``: the work of another program, in place of the tool's and without its time-out.
        ``lineage``: of the sub-agent that ``agent_id`` is; what its callers are denied explicitly, it is too.
        """
        from gatewright.gate.callrun import CallRun, Watched

        force, given_id = self.in_force(), new_id("call")
        state = self._state(force, agent_id, tool, arguments, session, context, given_id)
        state.on_piece, state.effect, state.lineage = on_piece, effect, lineage
        if unanswered:
            state.unanswered = unanswered
        make = CallRun
        if call_id or on_ask != "wait":
            make = self._claim(force, state, call_id, conversation, on_ask)
        calls = state.services.record.calls
        calls.add(given_id)
        try:
            watched = Watched(on_step) if on_step is not None else None
            approver, followers = approver or self._approver, self._followers
            run = make(self.passage, state, on_stage, approver, watched, followers=followers)
            return await (run.follow() if followers else run.run())
        finally:
            calls.discard(given_id)

    def _claim(self, force: InForce, state: CallState, call_id: str, conversation: str, on_ask: OnAsk) -> type[CallRun]:
        """Name the call, and return the class of its run."""
        from gatewright.gate.ledger import Claim, ClaimedRun, Ledger

        if on_ask not in {"wait", "suspend"}:
            raise ValueError(f"`on_ask` is {on_ask!r}: `wait` or `suspend`")
        if self._audit is None or (on_ask == "suspend" and force.services.grants is None):
            raise WorkspaceError("a call with an id needs a gate with a log, and one that is suspended also a broker")
        with self._lock:
            self._ledger = self._ledger or Ledger(self._audit, force.services.grants, force.services.clock)
        waits = force.snapshot.policy.questions
        suspends = on_ask == "suspend"
        state.claim = Claim(self._ledger, call_id or state.call_id, conversation, suspends=suspends, waits=waits)
        return ClaimedRun

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
        conversation: str = "",
        on_ask: OnAsk = "wait",
    ) -> tuple[Outcome, ...]:
        """Make the calls of one turn: neighbouring read-only ones together, all others alone and in order.

        After one that is not read-only and got no approval the rest are denied (`earlier-unanswered`). Outcomes follow
        the order of ``calls``. ``session`` and ``on_ask``: as for `call`; in a ``conversation`` each call's
        ``tool_call_id`` is its call id.
        """
        from gatewright.gate.turn import call_many

        if session is None:
            agent = self.snapshot().agent(agent_id)
            session = self._sessions.find(agent_id, _user_of(agent, context), keep=agent is not None)
        asks = {"conversation": conversation, "on_ask": on_ask}
        make = partial(self.call, agent_id, session=session, context=context, approver=approver, **asks)
        look = partial(self.state, agent_id, session=session, context=context)
        return await call_many(make, look, calls, on_stage, most=most, with_ids=conversation != "")

    def session(self, agent_id: str, *, user_id: str | None = None) -> Session:
        """The gate's own session of the agent with that user, for calls that name no session.

        Without a user: the policy's user for the agent, or nobody. Raises WorkspaceError for an unknown agent, and for
        too many users (`MOST_USERS`).
        """
        agent = self._agent(agent_id)
        return self._sessions.find(agent_id, user_id or agent.agent.user_id, keep=True)

    def close(self) -> None:
        """Stop taking calls; running ones finish. From now on calls and decisions raise WorkspaceError."""
        self._is_closed = True
        if self._ledger is not None:
            self._ledger.close()

    def pending_exit(self, agent_id: str, session: Session) -> tuple[str, ...]:
        """The operator's names for all that must still succeed before the loop may end. Raises WorkspaceError."""
        from gatewright.gate.breach import pending

        agent = self._agent(agent_id)
        left = pending(agent.rules.requirements, session.facts())
        return tuple(dict.fromkeys(str(test.required) for test in left))

    def reminders(self, agent_id: str, session: Session) -> tuple[str, ...]:
        """A sentence to the model for each visible tool that is due. Raises WorkspaceError for an unknown agent."""
        from gatewright.gate.breach import reminders

        agent, now_s = self._agent(agent_id), self.in_force().services.clock.monotonic_s()
        session.begin(now_s)
        return reminders(agent, session.facts(), now_s) if agent.rules.due else ()

    def _agent(self, agent_id: str) -> AgentSnapshot:
        agent = self.snapshot().agent(agent_id)
        if agent is None:
            raise WorkspaceError(f"no agent `{agent_id}` in the policy")
        return agent

    def verify(self, proof: DecisionProof, call: ProvenCall) -> Verification:
        """Check that the proof is ours, unchanged and for this call, and decide again with its facts.

        It has no effect and ignores the present sessions, clocks, rates and standing approvals.
        """
        from gatewright.gate.pipeline import verify

        return verify(proof, call, self.in_force())

    def passage(self, state: CallState, on_stage: OnStage | None) -> Passage:
        """The way of a call through the stages under the present policy."""
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
        """The call before its first stage; an empty ``call_id`` means that it is only decided."""
        if self._is_closed:
            raise WorkspaceError("the workspace is closed")
        agent = force.snapshot.agents.get(agent_id) or force.snapshot.agent(agent_id)
        user = _user_of(agent, context)
        session = session or self._sessions.find(agent_id, user, keep=agent is not None and call_id != "")
        if session.agent_id and session.agent_id != agent_id:
            raise WorkspaceError(f"the session `{session.session_id}` belongs to the agent `{session.agent_id}`")
        if not session.is_counted and self._audit is not None:
            with suppress(AuditUnavailable):  # then no call is made
                self._audit.count(session)
        state = CallState(call_id, agent_id, tool, arguments, agent, session, force.services, user)
        if context is not None:
            state.client, state.progress, state.folder = context.client, context.progress, context.folder
        return state

    def _recompile(self) -> InForce:
        """Compile the policy over the changed tools, or for the rules that hold now; under the lock, so that a policy
        swapped meanwhile stays.
        """
        with self._lock:
            force = self._force
            if not force.snapshot.is_current:
                renew = force.snapshot.renew(force.snapshot.policy, None)
                self._force = force = replace(force, snapshot=renew)
            return force

    def _write(self, build: RowBuilder, wait: bool) -> bool:
        """Write rows; rows that cannot be made count as a log that cannot be written.

        False without ``wait``: nothing was written, because others write, or the digest of a new policy takes a moment.
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
    """The user of a call: the caller's, by default the policy's user for the agent."""
    if context is not None and context.user_id:
        return context.user_id
    return agent.agent.user_id if agent is not None else None


def _refuse_unknown(policy: Policy, before: Policy | None, registry: ToolRegistry, absent: Mapping[str, str]) -> None:
    if problems := unknown_tools(policy, before, registry.facts(), absent):
        raise PolicyInvalid(problems)
