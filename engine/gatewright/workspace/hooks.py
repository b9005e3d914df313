"""The resident gate: decides the calls that coding agents make themselves, as their hooks tell of them.

Each call is an ordinary call of the gate, whose effect another program has: the host gets *allow*, and its report of
the end is the result. A command of a host that takes changed arguments comes back to be run here, in a room with the
files that its agent's levels permit, once and as it was decided. The policy is read again before the first call after a
change; while it has errors, every call is denied with the reason.

It has more than 450 lines because the way of a call, from a host's message to its end, is read best in one place.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import signal
import stat
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import cast

from gatewright.adapters.hook_exchange import GIVEN
from gatewright.adapters.hook_socket import CLIENT_FILE, HookPlace, HookRequest, HookServer, Lost, listen
from gatewright.adapters.hosts import (
    DOCTOR,
    DOCTOR_SESSION,
    DOCTOR_TOOL,
    EventKind,
    Host,
    HostAnswer,
    HostEvent,
    Reply,
    SubAgents,
    load_host,
)
from gatewright.base.amount import new_id
from gatewright.base.errors import GatewrightError, PolicyInvalid, ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import unbroken
from gatewright.gate import Approval, ApprovalRequest, Session, Status, key_folder
from gatewright.gate.call import Effect
from gatewright.gate.callrun import Outcome
from gatewright.policy.delegation import Lineage
from gatewright.policy.document import Confine
from gatewright.policy.verdict import Verdict
from gatewright.record.folder import StatePlace
from gatewright.schema.walk import as_object
from gatewright.sources.ground import policy_path_of
from gatewright.tools import DefinedTool, Tool, ToolExecutionContext
from gatewright.tools.definition import ArgumentUse
from gatewright.tools.host_tool import HostTool
from gatewright.workspace.manifest import parse_json
from gatewright.workspace.workspace import Workspace

IDLE_S = 15 * 60.0
"""The time without a call after which the gate ends."""
REPORT_S = 24 * 3600.0
"""The longest time for the report of a call; then its end is unknown."""
MOST_CALLS = 1_000
MOST_HELD_BYTES = 64 << 20
"""The most bytes of the messages about calls whose end is not reported."""
MOST_SESSIONS = 64
MOST_FAMILIES = 256
"""The most conversations whose sub-agents are known; of another one everybody counts who may have started one."""
_LOOK_S = 0.1
_SPARE_S = 0.1
_SESSION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
_SHELL = "/bin/bash"
_WITH_RIGHTS = 'set `confine = "none"` for the shell in `[workspace]` to let it run with all your rights'
_MOST_PLACES, _LONGEST_PLACE = 100, 1_000
"""The most texts of a call whose places are compared after it, and the longest."""
_ELSEWHERE = "it would start in another folder than it was judged in; begin the command with `cd FOLDER &&` instead"
_TAKEN_BACK = b"gatewright: files that it made against the policy were taken back\n"
_log = logging.getLogger(__name__)


class HookGate:
    """The gate of one policy file for its coding agents. ``tell`` receives lines for the operator.

    ``began`` is called with the workspace once it is open, and what it returns at the end.
    """

    def __init__(
        self,
        policy: Path,
        tell: Callable[[str], None],
        *,
        state: StatePlace | None = None,
        idle_s: float = IDLE_S,
        began: Callable[[Workspace], Callable[[], None]] = lambda _: lambda: None,
    ) -> None:
        self._policy, self._state, self._tell, self._idle_s, self._began = policy, state, tell, idle_s, began
        self._file = policy_path_of(policy)
        self.place = HookPlace.of(self._file, key_folder())
        self._opening = asyncio.Lock()
        self._is_over = False
        self._open: Workspace | None = None
        self._end: Callable[[], None] = lambda: None
        self._marks: tuple[object, ...] = ()
        self._calls: list[_HostCall] = []
        self._commands: dict[str, _HostCall] = {}
        """The commands that were allowed and not run yet, by their id."""
        self._sessions: dict[tuple[str, str], _Conversation] = {}
        self._families: dict[tuple[str, str, str], SubAgents] = {}
        """The sub-agents by host, agent and conversation."""

    async def serve(self) -> None:
        """Answer until nobody has called for a while, or the process must end. Raises WorkspaceError."""
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        async with listen(self.place) as (listening, key):
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, stopped.set)
            server = HookServer(listening, key, self.place, self.handle)
            self._tell(f"answering hooks at {self.place.socket}")
            works = {asyncio.ensure_future(one) for one in (server.serve(), stopped.wait(), self._idle(server))}
            await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            for one in works:
                one.cancel()
            await asyncio.gather(*works, return_exceptions=True)
        await self.close()

    async def close(self) -> None:
        """Give up every call, and save every session."""
        await self._abandon(self._calls)
        for one in [*self._sessions.values()]:
            await self._leave(one)
        self._end()
        if self._open is not None:
            self._open.close()

    async def _idle(self, server: HookServer) -> None:
        """Return once nobody has called for a while, or, after the last hook was taken out, nobody is connected."""
        since_s = asyncio.get_running_loop().time()
        while (now_s := asyncio.get_running_loop().time()) - since_s < self._idle_s:
            if not server.is_idle or self._calls:
                since_s = now_s
            await asyncio.sleep(min(1.0, self._idle_s / 4))
            if self._is_over and server.is_idle:
                return

    async def handle(self, request: HookRequest) -> None:
        """Answer one request of a client."""
        if request.kind == "confined" and len(request.parts) == 4:
            await self._run_confined(request)
        elif request.kind == "end":
            self._is_over = True
            await request.answer(b"R")
        elif request.kind == "event" and len(request.parts) == 4:
            host_id, agent_id, left_ms = (part.decode("utf-8", "replace") for part in request.parts[:3])
            deadline_s = asyncio.get_running_loop().time() + (int(left_ms) / 1000 if left_ms.isdecimal() else 0.0)
            work = asyncio.ensure_future(self._event(host_id, agent_id, deadline_s, request))
            gone = asyncio.ensure_future(request.gone())
            try:
                await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    body, call = work.result()
                    try:
                        await request.answer(body)
                    except Lost:
                        await self._abandon([call] if call is not None else [])
            finally:
                for one in (work, gone):
                    one.cancel()
                await asyncio.gather(work, gone, return_exceptions=True)

    async def _event(
        self, host_id: str, agent_id: str, deadline_s: float, request: HookRequest
    ) -> tuple[bytes, _HostCall | None]:
        """Return the reply to a message, and the call that it allows."""
        try:
            host = load_host(host_id)
            message = request.parts[3]
            event = host.read(_read(message))
        except Exception as error:  # noqa: BLE001 whatever a stranger's message causes is a denial
            what = f"no host `{host_id}`" if isinstance(error, KeyError) else f"its message cannot be read: {error}"
            return b"F" + what.encode("utf-8", "replace"), None
        if event.kind is EventKind.BEFORE:
            words = request.started_by()
            answer, call = await self._before(host, agent_id, event, deadline_s, words, len(message))
            return _reply(host.reply(event, answer)), call
        if event.kind is EventKind.SHOW:
            return _reply(host.reply(event, await self._show(host, agent_id, event))), None
        if event.kind in {EventKind.AFTER, EventKind.FAILED}:
            self._report(host, event)
        elif event.kind is EventKind.END:
            await self._end_conversation(host, event.conversation)
        return _reply(Reply()), None

    # -- the policy

    async def _workspace(self) -> Workspace:
        """Return the workspace under the policy as it is on disk. Raises GatewrightError for one with errors."""
        held = self._open
        if held is None or held.file_marks() != self._marks:
            async with self._opening:
                held = self._open
                if held is None:
                    self._open = held = await asyncio.to_thread(self._open_workspace)
                    self._end = self._began(held)
                elif (marks := held.file_marks()) != self._marks:
                    self._marks = marks
                    with suppress(GatewrightError):  # an alarm says it
                        await asyncio.to_thread(held.reload)
        if held.alarm is not None:
            raise WorkspaceError(f"the policy has errors: {next(iter(held.alarm.problems), held.alarm)}")
        return held

    def _open_workspace(self) -> Workspace:
        made = Workspace.open(self._policy, state=self._state)
        try:
            made.audit.check()
            self._marks = made.file_marks()
        except BaseException:
            made.close()
            raise
        return made

    # -- calls

    async def _before(
        self, host: Host, agent_id: str, event: HostEvent, deadline_s: float, words: Sequence[str], size: int
    ) -> tuple[HostAnswer, _HostCall | None]:
        """Decide a call; also return it if this is the first message about it."""
        try:
            workspace = await self._workspace()
            if agent_id not in workspace.policy.agents:
                raise WorkspaceError(f"the policy has no agent `{agent_id}`")
        except PolicyInvalid as error:
            return _denial(f"the policy has errors: {error.problems[0]}"), None
        except GatewrightError as error:
            return _denial(str(error)), None
        known = next((one for one in self._calls if event.call_id and one.is_of(host, event)), None)
        if known is not None:
            if (known.event.tool, known.event.arguments) != (event.tool, event.arguments):
                return _denial("this call id belongs to another call of the conversation"), None
            call, mine = known, None
        elif len(self._calls) >= MOST_CALLS or sum(one.size for one in self._calls) + size > MOST_HELD_BYTES:
            return _denial("too many calls wait for their end"), None
        else:
            family = self._family(host, agent_id, event.conversation)
            call = mine = _HostCall(host, event, family, _tool_name(workspace, host, event.tool), words, size)
            call.find_agent(workspace, agent_id)
            self._calls.append(call)
            call.task = asyncio.ensure_future(self._run(workspace, call, deadline_s))
        try:
            async with asyncio.timeout_at(deadline_s - _SPARE_S):
                return await asyncio.shield(call.answer), mine
        except BaseException as error:
            if mine is not None:
                await self._abandon([mine])
            if isinstance(error, TimeoutError):
                return _denial("the decision took longer than the host waits"), None
            raise

    async def _show(self, host: Host, agent_id: str, event: HostEvent) -> HostAnswer:
        """Return what the host's model may see of a tool: its schema as the agent's rights leave it."""
        try:
            workspace = await self._workspace()
            name = _tool_name(workspace, host, event.tool)
            listings = workspace.view(agent_id).listings()
        except GatewrightError as error:
            return _denial(str(error))
        shown = next((one for one in listings if one.name == name), None)
        return _denial("not available") if shown is None else HostAnswer(Verdict.ALLOW, "", shown.schema)

    def _family(self, host: Host, agent_id: str, conversation: str) -> SubAgents:
        """Return the sub-agents of a conversation; the longest unused one comes first."""
        key = host.host_id, agent_id, conversation
        if key not in self._families and len(self._families) >= MOST_FAMILIES:
            del self._families[next(iter(self._families))]
        found = self._families[key] = self._families.pop(key, None) or SubAgents()
        return found

    async def _run(self, workspace: Workspace, call: _HostCall, deadline_s: float) -> None:
        """Make the call; its answer is there in any case."""
        try:
            async with asyncio.timeout(REPORT_S):
                conversation = await self._enter(workspace, call)
                try:
                    outcome = await self._call(workspace, call, conversation.session, deadline_s)
                finally:
                    conversation.calls -= 1
            reason = _reason(workspace, call, outcome)
            if outcome.question is not None and await _defers(call, deadline_s):
                call.offer(HostAnswer(Verdict.ASK, reason, defers=True))
            call.deny(reason)
        except GatewrightError as error:
            call.deny(str(error))
        except TimeoutError:
            _log.warning("no report of the call %s came within %g s", call.key, REPORT_S)
        except Exception:  # noqa: BLE001 a denial in any case
            _log.exception("a call of `%s` failed", call.host.title)
            call.deny("the gate failed")
        finally:
            call.deny("the gate has ended")
            self._calls.remove(call)
            self._commands.pop(call.run_id, None)

    async def _call(self, workspace: Workspace, call: _HostCall, session: Session, deadline_s: float) -> Outcome:
        """Pass the call through the gate, and wait for an operator or let the host ask its person where it can."""
        event, host, loop = call.event, call.host, asyncio.get_running_loop()
        form = workspace.audit.digest(
            [ascii(call.tool), dict(event.arguments), *([event.folder] if event.folder else [])]
        )
        store = workspace.broker.grants
        if store.version():
            standing = await asyncio.to_thread(store.find_alike, call.agent_id, event.conversation, form)
            call.key = standing.call_key if standing is not None else call.key
        tool = workspace.gate.snapshot().registry.get(call.tool)
        starts = event.tool in host.shells or _argument(tool, ArgumentUse.COMMAND) is not None
        call.start, call.places = _start(event, tool), _places(event, tool)
        confines = starts and workspace.policy.shell.confine is Confine.POLICY

        async def go(*, asks: bool) -> Outcome:
            async def perform(_: str, __: dict[str, JsonValue], context: ToolExecutionContext) -> JsonValue | bytes:
                if started := host.started(event):
                    call.family.begin(event, started[0], context.call_id)
                return await self._perform(workspace, call, confines=confines)

            async def consent(request: ApprovalRequest) -> Approval:
                call.offer(HostAnswer(Verdict.ASK, _asking(request), self._changed(call, confines=confines)))
                await asyncio.wait({call.report, call.claim}, return_when=asyncio.FIRST_COMPLETED)
                return Approval(True, f"the person at {host.title}")

            return await workspace.gate.call(
                call.agent_id,
                call.tool,
                event.arguments,
                session=session,
                context=_context(call.agent_id, host, event),
                approver=consent if asks else None,
                call_id=call.key,
                conversation=event.conversation,
                on_ask="wait" if asks else "suspend",
                effect=Effect(perform, ends=confines),
                lineage=call.lineage,
            )

        can_ask = host.enforcement.asks and event.is_attended and not host.is_headless(call.words)
        is_attended = can_ask and await workspace.broker.is_attended()
        outcome = await go(asks=can_ask and not is_attended)
        if outcome.status is Status.WAITING:
            is_attended = await workspace.broker.is_attended()
        while outcome.status is Status.WAITING and is_attended and loop.time() < deadline_s - 4 * _SPARE_S:
            await asyncio.sleep(_LOOK_S)
            assert outcome.question is not None
            if outcome.question.request_id in await asyncio.to_thread(store.answers):
                outcome = await go(asks=False)
        if outcome.status is Status.WAITING and can_ask:
            outcome = await go(asks=True)
        return outcome

    async def _perform(self, workspace: Workspace, call: _HostCall, *, confines: bool) -> JsonValue:
        """Let the host do it, and return what it reports; or run the command that it was given in its place.

        Raises ToolFailure.
        """
        if confines and (why := await asyncio.to_thread(_why_unconfined, call)):
            raise ToolFailure(f"the command cannot be confined: {why}; {_WITH_RIGHTS}", code="not-confined")
        call.offer(HostAnswer(Verdict.ALLOW, "", self._changed(call, confines=confines)))
        if not confines:
            reported = await call.report
            led = [one for one, place in call.places.items() if _place(call.event, one) != place]
            if led:
                where = "; ".join(f"`{one}` to `{_place(call.event, one)}`" for one in led)
                raise ToolFailure(f"while the host did it, somebody led {where}", code="led-elsewhere")
            return reported
        await asyncio.wait({call.report, call.claim}, return_when=asyncio.FIRST_COMPLETED)
        if not call.claim.done():
            await call.report
            raise ToolFailure("the host did not run it confined", code="ran-unconfined")
        return {"exit_code": await _run_claim(workspace, call, call.claim.result())}

    def _changed(self, call: _HostCall, *, confines: bool) -> Mapping[str, JsonValue] | None:
        """Return the arguments by which the host has a command run here."""
        if not confines:
            return None
        self._commands[call.run_id] = call
        words = (sys.executable, "-I", "-S", str(CLIENT_FILE), "confined", call.run_id)
        where = ("--policy", os.path.realpath(self._file), "--key", str(self.place.key))
        changed = shlex.join((*words, *where, "--", call.command))
        call.given = {**call.event.arguments, call.host.shells[call.event.tool]: changed}
        return call.given

    def _report(self, host: Host, event: HostEvent) -> None:
        """Tell the call of an ended one: without ids the one with its arguments, or the only one that it can be."""
        meant = [one for one in self._calls if one.is_reported_by(host, event)]
        exact = [one for one in meant if event.call_id or event.arguments in (one.event.arguments, one.given)]
        found = next(iter(exact), meant[0] if len(meant) == 1 else None)
        if found is None or found.report.done():
            return
        if event.kind is EventKind.AFTER and (started := host.started(event)):
            found.family.end(event, started[1])
        if event.kind is EventKind.AFTER:
            found.report.set_result(event.result)
        else:
            said = event.result if isinstance(event.result, str) else "the host reported a failure"
            found.report.set_exception(ToolFailure(said, code="host-failed"))

    async def _run_confined(self, request: HookRequest) -> None:
        """Pass the streams of a client to the command that was allowed under this id, and tell how it ended."""
        run_id = request.parts[0].decode("ascii", "replace")
        command = request.parts[3].decode("utf-8", "surrogateescape")
        call = self._commands.pop(run_id, None)
        if call is None or call.claim.done():
            await request.answer(b"Fno command was allowed under this id, or it has been run already")
            return
        claim = _Claim(request)
        call.claim.set_result(claim)
        if command != call.command or len(request.descriptors) != 3 or any(map(_is_unfit, request.descriptors)):
            claim.fault = "this is not the command that was allowed"
        await claim.ended.wait()
        await request.answer(claim.answer)

    async def _abandon(self, calls: list[_HostCall]) -> None:
        """Give up calls: what the host made of them is unknown."""
        tasks = [one.task for one in calls]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- sessions

    async def _enter(self, workspace: Workspace, call: _HostCall) -> _Conversation:
        """Return the conversation of a call, whose session is held for this process alone. Raises WorkspaceError."""
        key = call.agent_id, f"{call.host.host_id} {call.event.conversation}"
        found = self._sessions.get(key)
        if found is None:
            if len(self._sessions) >= MOST_SESSIONS:
                idle = [one for one in self._sessions.values() if not one.calls]
                if not idle:
                    raise WorkspaceError("too many conversations at once")
                await self._leave(idle[0])
            found = self._sessions[key] = _Conversation(key)
        else:  # the longest unused one comes first
            self._sessions[key] = self._sessions.pop(key)
        found.calls += 1
        try:
            await found.enter(workspace)
        except BaseException:
            found.calls -= 1
            self._sessions.pop(key, None)
            raise
        return found

    async def _leave(self, conversation: _Conversation) -> None:
        self._sessions.pop(conversation.key, None)
        await unbroken(asyncio.ensure_future(conversation.leave()))

    async def _end_conversation(self, host: Host, conversation: str) -> None:
        """Give up what a conversation that is over never reported, and save its sessions."""
        await self._abandon([one for one in self._calls if one.is_in(host, conversation)])
        for family in [one for one in self._families if (one[0], one[2]) == (host.host_id, conversation)]:
            del self._families[family]
        for one in [*self._sessions.values()]:
            if one.key[1] == f"{host.host_id} {conversation}" and not one.calls:
                await self._leave(one)


class _Claim:
    """A client that came for an allowed command; ``fault``: why it does not run."""

    def __init__(self, request: HookRequest) -> None:
        self.request, self.fault, self.answer = request, "", b"Fthe command was ended"
        self.ended = asyncio.Event()
        self.group = 0


class _HostCall:
    """A call from its decision to its end. ``key``: its id in its conversation; ``run_id``: of its command, which was
    judged in the folder ``start``; ``given``: the arguments that the host got in place of its own; ``words``: those
    that started the host; ``size``: the bytes of the message; ``places``: where its paths led when it was decided.
    ``family``: the sub-agents of its conversation; ``lineage``: of the one that makes it.
    """

    task: asyncio.Task[None]
    agent_id: str
    lineage: Lineage | None = None

    def __init__(
        self, host: Host, event: HostEvent, family: SubAgents, tool: str, words: Sequence[str], size: int
    ) -> None:
        self.host, self.event, self.family, self.tool = host, event, family, tool
        self.words, self.size = words, size
        self.key, self.run_id, self.start = event.call_id or new_id("host"), new_id("run"), ""
        self.given: Mapping[str, JsonValue] | None = None
        self.places: dict[str, str] = {}
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[HostAnswer] = loop.create_future()
        self.report: asyncio.Future[JsonValue] = loop.create_future()
        self.claim: asyncio.Future[_Claim] = loop.create_future()

    @property
    def command(self) -> str:
        """The command, of a tool that runs one."""
        said = self.event.arguments.get(self.host.shells.get(self.event.tool, ""), "")
        return said if isinstance(said, str) else ""

    def find_agent(self, workspace: Workspace, agent_id: str) -> None:
        """Find the agent whose rights count, and its callers; ``agent_id``: the one that the hook names."""
        self.agent_id, event = agent_id, self.event
        if event.child:
            descent = self.family.descent(event)
            self.lineage = Lineage(agent_id, event.child, descent.lines, event.child_id, descent.within)
            self.agent_id = self.lineage.sub_agent(workspace.policy).agent_id

    def bounds(self, workspace: Workspace) -> tuple[str, ...]:
        """List the callers that it may never exceed."""
        callers = () if self.lineage is None else self.lineage.sub_agent(workspace.policy).callers
        return tuple(one.agent_id for one in callers if one.whole)

    def offer(self, answer: HostAnswer) -> None:
        """Answer the host, unless it was answered."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def deny(self, reason: str) -> None:
        """Answer the host with a denial, unless it was answered."""
        self.offer(_denial(reason))

    def is_in(self, host: Host, conversation: str) -> bool:
        """Tell whether it belongs to that conversation."""
        return (self.host.host_id, self.event.conversation) == (host.host_id, conversation)

    def is_of(self, host: Host, event: HostEvent) -> bool:
        """Tell whether the event has its id."""
        return self.is_in(host, event.conversation) and self.event.call_id == event.call_id

    def is_reported_by(self, host: Host, event: HostEvent) -> bool:
        """Tell whether the event is the end of this call, which has begun; a host without ids names the tool."""
        if not self.answer.done() or not self.is_of(host, event):
            return False
        return event.call_id != "" or (not self.report.done() and self.event.tool == event.tool)


class _Conversation:
    """A conversation of a host with one agent; ``calls``: the number of its running calls."""

    session: Session

    def __init__(self, key: tuple[str, str]) -> None:
        self.key, self.calls = key, 0
        self._stack, self._turn, self._is_held = AsyncExitStack(), asyncio.Lock(), False

    async def enter(self, workspace: Workspace) -> None:
        """Hold the session. Raises WorkspaceError."""
        async with self._turn:
            if not self._is_held:
                agent_id, name = self.key
                name = f"hook-{name.replace(' ', '-')}"
                if not _SESSION_NAME.fullmatch(name):
                    name = f"hook-{workspace.audit.digest(ascii(name))[:32]}"
                held = workspace.sessions.hold(name, agent_id=agent_id, patience_s=0.0)
                self.session = await self._stack.enter_async_context(held)
                self._is_held = True

    async def leave(self) -> None:
        """Save the session and let go of it."""
        with suppress(WorkspaceError):
            await self._stack.aclose()


async def _run_claim(workspace: Workspace, call: _HostCall, claim: _Claim) -> int:
    """Run the command of a call on the streams of the client that came for it; returns its exit code.

    It ends with its client. Raises ToolFailure.
    """
    from gatewright.adapters.server_process import Command
    from gatewright.adapters.shell import ENVIRONMENT, run_on

    try:
        if claim.fault:
            raise ToolFailure(claim.fault, code="other-command")
        _, folder, given, _ = claim.request.parts
        start = Path(os.fsdecode(folder))
        if os.path.realpath(start) != call.start:
            raise ToolFailure(_ELSEWHERE, code="other-folder")
        project = Path(call.event.folder)
        room = await workspace.host_room(call.agent_id, start, call.host.host_id, project, call.bounds(workspace))
        if room is None:
            raise ToolFailure("the policy changed: it would not be confined any more", code="not-confined")
        try:
            if str(room.start) != os.path.realpath(start):
                reason = f"`{start}` does not exist for the commands of this agent: no source or grant has it"
                raise ToolFailure(reason, code="not-confined")
            command = Command(
                _SHELL,
                ("--noprofile", "--norc", "-c", call.command),
                {**ENVIRONMENT, **_variables(given)},
                room.start,
            )
            streams = cast("tuple[int, int, int]", tuple(claim.request.descriptors))
            running = asyncio.ensure_future(run_on(room, command, streams, lambda group: _group_of(claim, group)))
            passing = asyncio.ensure_future(_pass_signals(claim))
            try:
                await asyncio.wait({running, passing}, return_when=asyncio.FIRST_COMPLETED)
                if not running.done():
                    raise ToolFailure("the host ended it", code="host-ended")
                code = running.result()
            finally:
                for one in (running, passing):
                    one.cancel()
                await asyncio.gather(running, passing, return_exceptions=True)
        finally:
            await unbroken(asyncio.ensure_future(room.close()))
        claim.answer = b"X" + code.to_bytes(4, "big", signed=True) + (_TAKEN_BACK if room.taken_back else b"")
        return code
    except GatewrightError as failure:
        claim.answer = b"F" + str(failure).encode("utf-8", "replace")  # the model reads it; the log has the detail
        raise
    finally:
        claim.ended.set()


@contextmanager
def _group_of(claim: _Claim, group: int) -> Generator[None]:
    claim.group = group
    try:
        yield
    finally:
        claim.group = 0


async def _pass_signals(claim: _Claim) -> None:
    """Pass the client's signals on until it ends."""
    async for number in claim.request.signals():
        if claim.group and number in {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(claim.group, number)


def _variables(given: bytes) -> dict[str, str]:
    """Return the variables that a client may pass on."""
    pairs = (line.partition("=") for line in given.decode("utf-8", "replace").splitlines())
    return {name: value for name, _, value in pairs if name in GIVEN}


def _is_unfit(number: int) -> bool:
    """Tell whether a descriptor could open a way out of a room: anything but a stream or a file."""
    mode = os.fstat(number).st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode))


def _argument(tool: Tool | None, use: ArgumentUse) -> str | None:
    """Return the first argument of a tool that its definition says to be that."""
    uses = (tool.definition.arguments or {}) if isinstance(tool, DefinedTool) else {}
    return next((name for name, one in uses.items() if one is use), None)


def _start(event: HostEvent, tool: Tool | None) -> str:
    """Return the folder in which a command is judged: where the host works, or the one that the call names."""
    named = event.arguments.get(_argument(tool, ArgumentUse.FOLDER) or "")
    return os.path.realpath(os.path.join(event.folder, named) if isinstance(named, str) else event.folder)  # noqa: PTH118 - names of any bytes


def _places(event: HostEvent, tool: Tool | None) -> dict[str, str]:
    """Return where the paths that a call names lead now."""
    named = list(islice(_texts(dict(event.arguments)), _MOST_PLACES))
    if isinstance(tool, HostTool):
        with suppress(ToolFailure):
            named += [one.text for one in tool.paths_in(event.arguments)]
    fit = (one for one in named if 0 < len(one) <= _LONGEST_PLACE and one.isprintable())
    return {one: _place(event, one) for one in fit}


def _place(event: HostEvent, path: str) -> str:
    return os.path.realpath(os.path.join(event.folder, path))  # noqa: PTH118 - as it is written


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _why_unconfined(call: _HostCall) -> str:
    tool = call.event.tool
    if tool not in call.host.enforcement.changes or tool not in call.host.shells or "powershell" in tool.casefold():
        return f"the command of `{tool}` cannot be handed back to {call.host.title} as a confined one"
    return Workspace.why_not_confined()


def _read(message: bytes) -> dict[str, JsonValue]:
    """Read a message. Raises WorkspaceError."""
    table = as_object(parse_json(message, "the message"))
    if table is None:
        raise WorkspaceError("the message is no JSON object")
    return table


def _tool_name(workspace: Workspace, host: Host, tool: str) -> str:
    """Return the name in the policy of a tool as the host calls it, also of an MCP server's tool."""
    found = workspace.host_tool(host.host_id, tool)
    return found if isinstance(found, str) else f"{host.prefix}.{tool}"


def _context(agent_id: str, host: Host, event: HostEvent) -> ToolExecutionContext:
    is_trial = (event.conversation, event.tool) == (DOCTOR_SESSION, DOCTOR_TOOL)
    client = DOCTOR if is_trial else host.title
    return ToolExecutionContext(agent_id=agent_id, session_id="", client=client, folder=event.folder or None)


def _denial(reason: str) -> HostAnswer:
    return HostAnswer(Verdict.DENY, f"Gatewright: {reason}")


async def _defers(call: _HostCall, deadline_s: float) -> bool:
    """Tell whether the host ends with a call until it is answered; not if that does not show while the host waits."""
    with suppress(TimeoutError):
        async with asyncio.timeout_at(deadline_s - 2 * _SPARE_S):
            return await call.host.can_defer(call.event, call.words)
    return False


def _asking(request: ApprovalRequest) -> str:
    whose = f" for {request.whose}" if request.callers else ""
    return f"Gatewright asks{whose}: {'; '.join(request.reasons)}"


def _reason(workspace: Workspace, call: _HostCall, outcome: Outcome) -> str:
    """Return the reason for the host's model, and the next step for its person."""
    policy = shlex.quote(str(workspace.policy_path))
    if outcome.question is not None:
        asked = outcome.question.request_id
        return (
            f"this call waits for the approval {asked}. A person allows it by `gatewright approvals answer {policy} "
            f"{asked} --once`, or in the app; then make exactly this call again"
        )
    if outcome.replayed:
        return "this very call was made before, and is not repeated"
    if outcome.code == "unknown-tool":
        return (
            f"`{call.event.tool}` is not among the accepted tools of {call.host.title}. A person accepts it by "
            f"`gatewright catalog import {policy} --host {call.host.host_id}` and `gatewright catalog accept`"
        )
    return outcome.output


def _reply(reply: Reply) -> bytes:
    out, said = (text.encode("utf-8", "replace") for text in (reply.stdout, reply.stderr))
    return b"R" + bytes((reply.exit_code,)) + len(out).to_bytes(4, "big") + out + said
