"""Coding agents that run their tools themselves and ask a hook before each call: one module for each.

A host turns its own message into a `HostEvent` and a `HostAnswer` into the words that it obeys; the resident gate
decides between the two and knows no host. A host also knows the files in which it looks for hooks, and how our entry
stands there (`adapters/hosts/entry.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, cast

from gatewright.base.errors import JsonRefused
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, parse_object
from gatewright.policy.verdict import Verdict


class EventKind(StrEnum):
    """The moments of which a host tells its hook.

    ``before``: a call waits for a decision. ``after``, ``failed``: it has ended. ``show``: the host is about to
    describe a tool to its model. ``end``: the conversation is over. ``other``: a moment that asks for no decision.
    """

    SHOW = "show"
    BEFORE = "before"
    AFTER = "after"
    FAILED = "failed"
    END = "end"
    OTHER = "other"


@frozen
class HostEvent:
    """One message of a host.

    ``tool``: its own name of the tool, ``arguments``: as the model gave them. ``conversation``: the id of its session;
    ``call_id``: its id of the call, empty if it gives none. ``folder``: where the host works. ``child``: the kind of
    the sub-agent that calls, empty for the agent itself; ``child_id``: the host's id of it. ``is_attended``: a person
    sits before the host and can answer a question there. ``result``: of a call that ended. ``name``: the host's own
    name of the moment. ``transcript``: the file in which the host keeps the conversation.
    """

    kind: EventKind
    name: str = ""
    tool: str = ""
    arguments: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue], hash=False)
    conversation: str = ""
    call_id: str = ""
    folder: str = ""
    child: str = ""
    child_id: str = ""
    is_attended: bool = False
    result: JsonValue = None
    transcript: str = field(default="", compare=False)


@frozen
class HostAnswer:
    """The decision on a call before it runs. ``reason``: for the model, and for the person who is asked.

    ``arguments``: those that run in place of the model's, for a host that takes them. To ``show`` it is *deny* for a
    tool that the model must not see, else ``arguments`` is the schema that the model gets. ``defers``: a question for
    whose answer the host ends now; it makes the very same call again when it goes on.
    """

    verdict: Verdict
    reason: str = ""
    arguments: Mapping[str, JsonValue] | None = None
    defers: bool = False


@frozen
class Reply:
    """The end of a hook's process, as the host reads it."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


@frozen
class Enforcement:
    """The decisions that a host really carries out.

    ``asks``: it can put a question to its person. ``changes``: its tools whose changed arguments run. ``fails_closed``:
    a hook that crashes or is too slow blocks the call. ``needs_trust``: it silently skips hooks that its person has not
    reviewed. ``open_ways``: the ways past the hook, each as a sentence for the operator. ``is_tried``: this was seen in
    the real program, not only read in its documentation.
    """

    asks: bool
    changes: frozenset[str]
    fails_closed: bool
    needs_trust: bool = False
    open_ways: tuple[str, ...] = ()
    is_tried: bool = True


class HostScope(StrEnum):
    """The reach of a file of hooks: all work of one user, one project, or everybody on the machine."""

    USER = "user"
    PROJECT = "project"
    MANAGED = "managed"


@frozen
class Around:
    """The surroundings in which a host looks for its files. ``project``: the folder in which it works, if known."""

    home: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    project: Path | None = None
    platform: str = sys.platform
    root: Path = Path("/")

    def folder(self, variable: str, below_home: str) -> Path:
        """Return the folder that the variable names, else the one below the home folder."""
        named = self.environment.get(variable)
        return Path(named) if named else self.home / below_home

    def shared(self, linux: str, mac: str) -> Path:
        """Return a place for the whole machine."""
        return self.root / (mac if self.platform == "darwin" else linux)

    def within(self, *names: str) -> tuple[Path, ...]:
        """Return places in the project; none without one."""
        return () if self.project is None else tuple(self.project / name for name in names)


CLIENT_FILE = "hook_client.py"
"""The file name of the program that a host starts, by which our entries are found in files of hooks."""
TIMEOUT_S = 120
"""The patience of a host with its hook; the client denies after half of it."""
DOCTOR = "gatewright hook doctor"
"""The client that the log names for a call by which `gatewright hook doctor` tries a hook."""
DOCTOR_SESSION, DOCTOR_TOOL = "gatewright-doctor", "gatewright_doctor"
NO_GATE = "Gatewright did not answer, so nothing runs"


@frozen
class Hook:
    """The command that a host starts: Python, the client, the host's id, and what the client is told."""

    command: tuple[str, ...]

    @property
    def report(self) -> Hook:
        """The command after a call, which starts no gate: without the one that waits for it nobody needs it."""
        return Hook((*self.command, "--report"))


class Entry(Protocol):
    """Our entry in a host's file. A missing file is an empty text; a text it cannot take raises WorkspaceError."""

    def put(self, text: str, hook: Hook) -> str:
        """Return the text with exactly one entry of ours, and no other change."""
        ...

    def drop(self, text: str, before: str) -> str:
        """Return the text without any entry of ours; of what is then empty, what ``before`` has stays."""
        ...

    def hooks(self, text: str) -> JsonValue:
        """Return what the text says of hooks, to compare it with later."""
        ...


class Host(Protocol):
    """One coding agent. Modules derive from it, and say only what differs."""

    host_id: str
    """As in ``[[catalogs]] id`` and on the command line."""
    title: str
    prefix: str
    """Of its built-in tools in a policy: ``prefix.name``."""
    programs: tuple[str, ...]
    """Its names on the PATH."""
    enforcement: Enforcement
    shells: Mapping[str, str]
    """Its tools that run a command, each with the argument that holds it."""
    starters: Mapping[str, str] = MappingProxyType({})
    """Its tools that start a sub-agent, each with the argument that names the kind."""
    usual_kind: str = ""
    """The kind of a sub-agent whose start names none."""
    kinds: Mapping[str, EventKind]
    """The moments of which it tells its hook, by its own names; any other asks for no decision."""
    gives_ids: bool = True
    """False for a host that gives calls no ids."""
    entry: Entry

    @property
    def narrows(self) -> bool:
        """True if it asks our hook for the schema that its model gets of a tool, and hides a tool that is off."""
        return EventKind.SHOW in self.kinds.values()

    def read(self, message: Mapping[str, JsonValue]) -> HostEvent:
        """Read a message of the host, in any spelling that hosts use.

        Raises ValueError for one that lacks what a decision needs.
        """
        name = self.moment(message)
        kind = self.kinds.get(name, EventKind.OTHER)
        folder = text_or(message, "cwd", "directory")
        if kind is EventKind.SHOW:
            return HostEvent(kind, name, text_in(message, *_TOOL), folder=folder)
        conversation = text_in(message, *_CONVERSATION)
        if kind in {EventKind.OTHER, EventKind.END}:
            return HostEvent(kind, name, conversation=conversation, folder=folder)
        tool, arguments = self.called(name, message)
        if not folder:
            raise ValueError("the message has no `cwd`")
        return HostEvent(
            kind,
            name,
            tool,
            arguments,
            conversation,
            text_in(message, *_CALL) if self.needs_id(name) else text_or(message, *_CALL),
            folder,
            text_or(message, *_CHILD, *_CHILD_ID),
            text_or(message, *_CHILD_ID, *_CHILD),
            is_attended=self.enforcement.asks and self.is_attended(name, message),
            result=next((message[key] for key in _RESULT if key in message), None),
            transcript=text_or(message, "transcript_path", "transcriptPath"),
        )

    def started(self, event: HostEvent) -> tuple[str, str] | None:
        """Return the kind of the sub-agent that a call starts, and its id if the call has ended and names it.

        None for any other call.
        """
        argument = self.starters.get(event.tool)
        if argument is None:
            return None
        result = event.result if isinstance(event.result, dict) else {}
        return text_or(event.arguments, argument) or self.usual_kind, text_or(result, *_CHILD_ID)

    def moment(self, message: Mapping[str, JsonValue]) -> str:
        """Return the host's name of the moment. Raises ValueError."""
        return text_in(message, "hook_event_name", "hookEventName", "event")

    def called(self, name: str, message: Mapping[str, JsonValue]) -> tuple[str, dict[str, JsonValue]]:  # noqa: ARG002 - for most hosts the same at all moments
        """Return the tool and the arguments of a message. Raises ValueError."""
        return text_in(message, *_TOOL), arguments_in(message, *_ARGUMENTS)

    def needs_id(self, name: str) -> bool:  # noqa: ARG002 - for most hosts the same at all moments
        """Tell whether a message without the id of its call is refused."""
        return self.gives_ids

    def is_attended(self, name: str, message: Mapping[str, JsonValue]) -> bool:  # noqa: ARG002 - for most hosts always
        """Tell whether somebody sits before it, if it can ask at all."""
        return True

    def is_headless(self, words: Sequence[str]) -> bool:  # noqa: ARG002 - most hosts ask nobody anyway
        """Tell whether a program that was started with these words talks to nobody and ends by itself."""
        return False

    async def can_defer(self, event: HostEvent, words: Sequence[str]) -> bool:  # noqa: ARG002 - most hosts cannot
        """Tell whether one started so would end with this call, say so, and make it again when it goes on."""
        return False

    def reply(self, event: HostEvent, answer: HostAnswer) -> Reply:
        """Spell an answer for the host. A question that it cannot ask becomes a denial."""
        ...

    def folder(self, around: Around) -> Path:
        """Return the folder of its settings, which exists where somebody has used it."""
        ...

    def file(self, scope: HostScope, around: Around) -> Path | None:
        """Return the file that takes our entry; None if the host has none of that scope."""
        ...

    def other_files(self, around: Around) -> tuple[Path, ...]:  # noqa: ARG002 - most hosts have none
        """List further files that add hooks or switch them off."""
        return ()

    def switched_off(self, text: str, scope: HostScope | None) -> str:  # noqa: ARG002 - most hosts have no switch
        """Say, for the operator, what in a file of that scope keeps our hook from running; "" if nothing does."""
        return ""

    def trusts(self, project: Path, around: Around) -> bool:  # noqa: ARG002 - most hosts ask nobody
        """Tell whether its person has trusted that folder; without that it skips the hooks of the project."""
        return True

    def is_trusted(self, path: Path, text: str, around: Around) -> bool | None:  # noqa: ARG002 - most hosts ask nobody
        """Tell whether its person has reviewed our entry at ``path``; None if it asks for no review."""
        return None


_Line = tuple[str, ...]
"""The kinds of sub-agents that started each other, from the outermost in."""
MOST_STARTS = 256


@frozen
class Descent:
    """The ways in which a sub-agent may have been started, none if nobody saw it; ``within``: the one call that did."""

    lines: tuple[_Line, ...] = ()
    within: str = ""


class SubAgents:
    """The sub-agents of one conversation. Hosts do not say who started one, so its start is matched by its kind."""

    def __init__(self) -> None:
        self._starts: dict[str, tuple[str, Descent]] = {}
        """The kind and the descent of those that have not called yet, by the host's id of the call."""
        self._known: dict[str, Descent] = {}

    def descent(self, event: HostEvent) -> Descent:
        """Return the descent of whoever makes a call; a start that fits it alone is its own from now on."""
        if not event.child:
            return Descent(((),))
        found = self._known.get(event.child_id)
        if found is None:
            fitting = [call_id for call_id, (kind, _) in self._starts.items() if kind == event.child]
            starts = [self._starts[call_id][1] for call_id in fitting]
            lines = tuple(dict.fromkeys(line for one in starts for line in one.lines))
            found = Descent(lines if all(one.lines for one in starts) else ())
            if len(starts) == 1:
                found = self._settle(fitting[0], event.child_id)
        return found

    def begin(self, event: HostEvent, kind: str, call_id: str) -> None:
        """Note that an allowed call starts a sub-agent; ``call_id``: as in the log."""
        lines = tuple((*line, kind) for line in self.descent(event).lines)
        if len(self._starts) >= MOST_STARTS:
            del self._starts[next(iter(self._starts))]
        self._starts[event.call_id] = kind, Descent(lines, call_id)

    def end(self, event: HostEvent, child_id: str) -> None:
        """Note the end of a call that started a sub-agent, which may go on; ``child_id``: the host's id of it."""
        if child_id and event.call_id in self._starts:
            self._settle(event.call_id, child_id)

    def _settle(self, call_id: str, child_id: str) -> Descent:
        _, found = self._starts.pop(call_id)
        if len(self._known) >= MOST_STARTS:
            del self._known[next(iter(self._known))]
        self._known[child_id] = found
        return found


def text_in(message: Mapping[str, JsonValue], *names: str) -> str:
    """Return the first text that a message has under one of these names. Raises ValueError if it has none."""
    for name in names:
        value = message.get(name)
        if isinstance(value, str) and value:
            return value
    raise ValueError(f"the message has no `{names[0]}`")


def text_or(message: Mapping[str, JsonValue], *names: str) -> str:
    """Return the first text under one of these names, "" without one."""
    return next((value for name in names if isinstance(value := message.get(name), str)), "")


def arguments_in(message: Mapping[str, JsonValue], *names: str) -> dict[str, JsonValue]:
    """Return the arguments of a call, which some hosts give as JSON text. Raises ValueError if it has none."""
    for name in names:
        value = message.get(name)
        if isinstance(value, dict):
            return value
        if isinstance(value, str):
            try:
                return parse_object(value)
            except JsonRefused as error:
                raise ValueError(f"`{name}` is no object: {error}") from None
    raise ValueError(f"the message has no `{names[0]}`")


_CONVERSATION = ("session_id", "sessionId", "sessionID", "conversation_id", "conversationId")
_TOOL = ("tool_name", "toolName", "tool")
_ARGUMENTS = ("tool_input", "toolInput", "toolArgs", "args")
_CHILD = ("agent_type", "agentType", "subagent_type")
_CHILD_ID = ("agent_id", "agentId")
_CALL = ("tool_use_id", "toolUseId", "callID", "call_id", "tool_call_id")
_RESULT = ("tool_response", "toolResponse", "toolResult", "tool_output", "output", "error_message", "error")
"""The spellings of hosts."""


def is_denial(reply: Reply) -> bool:
    """Tell whether a reply stops the call, in any host's words."""
    try:
        value = parse_object(reply.stdout)
    except JsonRefused:
        return reply.exit_code == _DENIED
    inner = value.get("hookSpecificOutput")
    said = inner if isinstance(inner, dict) else value
    words = [said.get(key) for key in ("permissionDecision", "permission", "decision")]
    return reply.exit_code == _DENIED or "deny" in words


_DENIED = 2


def effective(host: Host, event: HostEvent, answer: HostAnswer) -> HostAnswer:
    """Return the answer as far as the host can carry it out: else it is a denial.

    A denial has a reason, a question needs a host that can ask, and changed arguments a tool whose arguments the host
    takes from a hook.
    """
    changed = answer.arguments is not None and dict(answer.arguments) != dict(event.arguments)
    if changed and answer.verdict is not Verdict.DENY and event.tool not in host.enforcement.changes:
        return HostAnswer(Verdict.DENY, f"{host.title} would run `{event.tool}` unconfined")
    asks = answer.verdict is Verdict.ASK and host.enforcement.asks
    if answer.verdict is Verdict.ALLOW or asks:
        return HostAnswer(answer.verdict, answer.reason, answer.arguments if changed else None)
    return HostAnswer(Verdict.DENY, answer.reason or "the policy does not allow this call")


_MODULES = {
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini-cli": "gemini_cli",
    "opencode": "opencode",
    "copilot": "copilot",
    "cursor": "cursor",
    "vscode": "vscode",
}
HOST_IDS = tuple(_MODULES)


def load_host(host_id: str) -> Host:
    """Load the module of a host. Raises KeyError for an unknown id."""
    module = import_module(f"gatewright.adapters.hosts.{_MODULES[host_id]}")
    return cast("Host", module.HOST)
