"""The state of the gate in coding agents: found, there, trusted, failing closed, and what it cannot stop.

It reads files and the PATH, and starts none of them. The doctor also starts our entry as they do. Calls are counted
apart from that: a long log, or one that is being written, holds up nothing else.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gatewright.adapters.hosts import (
    DOCTOR,
    DOCTOR_SESSION,
    DOCTOR_TOOL,
    HOST_IDS,
    TIMEOUT_S,
    Around,
    EventKind,
    Host,
    HostScope,
    Reply,
    is_denial,
)
from gatewright.base.amount import new_id
from gatewright.base.errors import GatewrightError, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, digest
from gatewright.gate import AuditFilter, AuditIndex, state_folder
from gatewright.policy.right import Effect
from gatewright.policy.verdict import Word
from gatewright.tools import read_definitions
from gatewright.tools.host_tool import HostTool
from gatewright.workspace.client_file import content_of
from gatewright.workspace.host_files import (
    HostFile,
    HostRecord,
    files_of,
    has_entry,
    host_around,
    host_of,
    read_host_file,
    records,
    unit_of,
)
from gatewright.workspace.manifest import shipped_host
from gatewright.workspace.workspace import Workspace


class HostLevel(Word):
    """The weight of a fact about a coding agent: nothing to do, worth a look, or a way past the gate."""

    OK = "ok"
    AMBER = "amber"
    RED = "red"


@frozen
class HostFact:
    """One fact about a host's hook: a ``name`` for scripts, and a sentence for people."""

    name: str
    level: HostLevel
    sentence: str


@frozen
class HostStatus:
    """The state of one host: ``program``: where it is, None if it is not on the PATH; ``is_found``: it or its settings
    exist. With a hook: its file, policy and agent; the last call and the calls of today, which `HostCalls` adds (None
    stands for unknown). ``is_everywhere``: the hook holds in more than one project.
    """

    host_id: str
    title: str
    is_found: bool
    program: Path | None
    file: HostFile | None = None
    policy: Path | None = None
    agent_id: str = ""
    is_trusted: bool | None = None
    fails_closed: bool = False
    is_confined: bool = False
    last_call_s: float | None = None
    calls_today: int | None = None
    facts: tuple[HostFact, ...] = ()
    is_everywhere: bool = False

    @property
    def level(self) -> HostLevel:
        """The worst level of its facts."""
        return max((fact.level for fact in self.facts), key=list(HostLevel).index, default=HostLevel.OK)

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: host, title, found, program, hook (null, or scope, file, policy, agent, ...), level, facts."""
        hook: JsonValue = None
        if self.file is not None:
            hook = {
                "scope": str(self.file.scope),
                "file": str(self.file.path),
                "policy": None if self.policy is None else str(self.policy),
                "agent": self.agent_id,
                "trusted": self.is_trusted,
                "fails_closed": self.fails_closed,
                "confined": self.is_confined,
                "last_call": self.last_call_s,
                "calls_today": self.calls_today,
            }
        return {
            "host": self.host_id,
            "title": self.title,
            "found": self.is_found,
            "program": None if self.program is None else str(self.program),
            "hook": hook,
            "level": str(self.level),
            "facts": [{"name": one.name, "level": str(one.level), "sentence": one.sentence} for one in self.facts],
        }


def find_hosts(where: Around | None = None, *, keys: Path | None = None) -> tuple[HostStatus, ...]:
    """Return the status of every known host, those on this machine first."""
    found = [host_status(host_id, where, keys=keys) for host_id in HOST_IDS]
    return tuple(sorted(found, key=lambda one: not one.is_found))


def host_files_there(where: Around | None = None) -> tuple[Path, ...]:
    """List the existing files of all hosts in which `find_hosts` looks for hooks."""
    where = where or host_around()
    files = {file.path for host_id in HOST_IDS for file in files_of(host_of(host_id), where)}
    return tuple(sorted(path for path in files if path.is_file()))


def host_effects(host_id: str) -> frozenset[Effect]:
    """Return what the built-in tools of a host do, by our definitions of them. Raises WorkspaceError."""
    definitions, _ = read_definitions(shipped_host(host_id)[1])
    tools = (HostTool(one, origin=host_id, trusted=True) for one in definitions)
    return frozenset(op.effect for tool in tools for op in tool.facts().operations)


def host_status(host_id: str, where: Around | None = None, *, keys: Path | None = None) -> HostStatus:
    """Say how a host is gated, by its files alone."""
    host, where = host_of(host_id), where or host_around()
    program = next((Path(found) for name in host.programs if (found := _on_path(name, where))), None)
    files = files_of(host, where)
    try:
        known = tuple(record for record in records(keys) if record.host_id == host_id)
    except WorkspaceError as error:
        known, facts = (), [HostFact("records", HostLevel.RED, str(error))]
    else:
        facts = list[HostFact]()
    there = {record.path for record in known}
    files += tuple(HostFile(host_id, one.scope, Path(one.path)) for one in known if Path(one.path) not in
                   {file.path for file in files})  # fmt: skip
    gated = [file for file in files if str(file.path) in there or has_entry(host, file.path)]
    is_found = program is not None or host.folder(where).is_dir() or bool(gated)
    if not gated:
        said = "no gate is there: its calls pass nobody" if is_found else "it is not on this machine"
        facts.append(HostFact("hook", HostLevel.AMBER if is_found else HostLevel.OK, f"{host.title}: {said}"))
        return HostStatus(host_id, host.title, is_found, program, facts=tuple(facts))
    file = gated[-1]
    record = next((one for one in known if one.path == str(file.path)), None)
    facts += _entry_facts(host, gated, known)
    facts += _switch_facts(host, files, where)
    trusted = _trusted(host, file, where)
    if trusted is False:
        is_open = file.scope is HostScope.PROJECT and where.project and not host.trusts(where.project, where)
        steps = ["start it", *["trust the project there"] * bool(is_open)]
        steps += ["review the hook with `/hooks`"] * host.enforcement.needs_trust
        said = f"{host.title} skips the hook without a word until you {', '.join(steps[:-1])} and {steps[-1]}"
        said += "; one of your own settings (`--user`) needs no trusted project" * bool(is_open)
        facts.append(HostFact("trusted", HostLevel.RED, said))
    facts.append(_failure_fact(host))
    if not host.enforcement.is_tried:
        said = f"what {host.title} enforces is known from its documentation, and was not tried with the program"
        facts.append(HostFact("tried", HostLevel.AMBER, said))
    obstacle = Workspace.why_not_confined() if host.shells.keys() <= host.enforcement.changes else ""
    confined = host.shells.keys() <= host.enforcement.changes and not obstacle
    facts.append(_confinement_fact(host, obstacle, confined=confined))
    facts += [HostFact("open", HostLevel.AMBER, f"it cannot stop this: {way}") for way in host.enforcement.open_ways]
    if record is not None and (unit := unit_of(Path(record.policy), keys=keys)) is not None:
        facts.append(HostFact("systemd", HostLevel.OK, f"systemd starts the gate: `{unit}`"))
    if record is not None and not Path(record.policy).is_file():
        facts.append(HostFact("policy", HostLevel.RED, f"its policy `{record.policy}` is gone: every call is denied"))
    return HostStatus(
        host_id,
        host.title,
        is_found,
        program,
        file,
        None if record is None else Path(record.policy),
        "" if record is None else record.agent_id,
        trusted,
        host.enforcement.fails_closed,
        confined,
        facts=tuple(facts),
        is_everywhere=any(one.scope is not HostScope.PROJECT for one in gated),
    )


def host_doctor(host_id: str, where: Around | None = None, *, keys: Path | None = None) -> HostStatus:
    """Say the same after trying it: the policy has the agent, and our entry denies a tool that nobody knows.

    The log has the denied call, from `gatewright hook doctor`. Starts the gate if nobody serves.
    """
    status = host_status(host_id, where, keys=keys)
    found = list[HostRecord]()
    with suppress(WorkspaceError):  # the status says it
        found += [one for one in records(keys) if status.file is not None and one.path == str(status.file.path)]
    tried = [fact for record in found for fact in (_policy_fact(host_of(host_id), record), _answer_fact(record))]
    return replace(status, facts=(*status.facts, *tried))


def _policy_fact(host: Host, record: HostRecord) -> HostFact:
    try:
        with Workspace.open(Path(record.policy)) as workspace:
            if record.agent_id not in workspace.policy.agents:
                said = f"`{record.policy}` has no agent `{record.agent_id}`: every call is denied"
                return HostFact("policy", HostLevel.RED, said)
            names = [str(tool["name"]) for tool in workspace.gate.view(record.agent_id).tools("mcp")]
    except (GatewrightError, OSError) as error:
        first = str(error).partition("\n")[0]
        return HostFact("policy", HostLevel.RED, f"every call is denied, since the policy cannot be enforced: {first}")
    own = sum(name.startswith(f"{host.prefix}.") for name in names)
    if not own:
        said = f"none of the tools of {host.title} is on for `{record.agent_id}`: every call is denied"
        return HostFact("policy", HostLevel.AMBER, said)
    return HostFact("policy", HostLevel.OK, f"{own} tools of {host.title} are on for `{record.agent_id}`")


def _answer_fact(record: HostRecord) -> HostFact:
    """Start our entry as the host does, for a call of an unknown tool."""
    host = host_of(record.host_id)
    name = next(name for name, kind in host.kinds.items() if kind is EventKind.BEFORE)
    message = {"hook_event_name": name, "session_id": DOCTOR_SESSION, "cwd": str(Path(record.policy).parent)}
    message |= {"tool_name": DOCTOR_TOOL, "tool_use_id": new_id("doctor")}
    text, began = json.dumps({**message, "tool_input": {}}), time.perf_counter()
    try:
        done = subprocess.run(
            record.command, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return HostFact("answer", HostLevel.RED, f"our entry does not run: {error}")
    took_ms = (time.perf_counter() - began) * 1000
    if not is_denial(Reply(done.stdout, done.stderr, done.returncode)):
        said = f"our entry lets a call of an unknown tool run (exit code {done.returncode})"
        return HostFact("answer", HostLevel.RED, said)
    if done.stderr.strip():
        return HostFact("answer", HostLevel.RED, f"every call is denied: {done.stderr.strip()}")
    return HostFact("answer", HostLevel.OK, f"the gate answers in {took_ms:.0f} ms, and denies a tool that is unknown")


def _entry_facts(host: Host, gated: Iterable[HostFile], known: tuple[HostRecord, ...]) -> Generator[HostFact]:
    """Compare each file with what we left there."""
    for file in gated:
        record = next((one for one in known if one.path == str(file.path)), None)
        try:
            text = read_host_file(file)[1]
            if record is None:
                yield HostFact("hook", HostLevel.AMBER, f"`{file.path}` has an entry of ours that we have no record of")
            elif not has_entry(host, file.path):
                yield HostFact("hook", HostLevel.RED, f"our entry is gone from `{file.path}`: its calls pass nobody")
            elif digest(host.entry.hooks(text)) != record.hooks:
                said = f"hooks in `{file.path}` were changed since the gate was put there"
                yield HostFact("hook", HostLevel.RED, f"{said}: look at them, then install it again")
            elif not Path(record.command[0]).is_file() or not Path(record.command[3]).is_file():
                yield HostFact("hook", HostLevel.RED, f"the hook in `{file.path}` starts a program that is gone")
            else:
                yield HostFact("hook", HostLevel.OK, f"the gate is in `{file.path}`")
        except WorkspaceError as error:
            yield HostFact("hook", HostLevel.RED, str(error))


def _switch_facts(host: Host, files: Iterable[HostFile], where: Around) -> Generator[HostFact]:
    scopes: dict[Path, HostScope | None] = {file.path: file.scope for file in files}
    for path in host.other_files(where):
        scopes.setdefault(path, None)
    for path, scope in scopes.items():
        with suppress(WorkspaceError, UnicodeDecodeError):
            if path.is_file() and (said := host.switched_off(content_of(path).decode(), scope)):
                yield HostFact("switched-off", HostLevel.RED, f"in `{path}` {said}")


def _failure_fact(host: Host) -> HostFact:
    if host.enforcement.fails_closed:
        return HostFact("fails-closed", HostLevel.OK, f"{host.title} blocks a call whose hook crashes or is too slow")
    said = f"{host.title} lets a call run if it kills the hook or cannot start it: it fails open"
    return HostFact("fails-closed", HostLevel.AMBER, f"{said}; whatever else goes wrong in our entry is a denial")


def _confinement_fact(host: Host, obstacle: str, *, confined: bool) -> HostFact:
    if confined:
        return HostFact("confined", HostLevel.OK, "its commands run confined: they see files by their levels")
    if obstacle:
        return HostFact("confined", HostLevel.RED, f"its commands are denied, as they cannot be confined: {obstacle}")
    names = ", ".join(f"`{name}`" for name in sorted(host.shells.keys() - host.enforcement.changes))
    return HostFact("confined", HostLevel.RED, f"{names} run with your rights: {host.title} changes no command")


class HostCalls:
    """The calls before gates, from the logs of their policies: each is read from its end, as far as necessary, and then
    followed. Any thread may ask.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: dict[Path, AuditIndex] = {}
        self._counted: dict[tuple[Path, str], tuple[float, float | None, int]] = {}
        self._is_closed = False

    def counted(self, status: HostStatus) -> HostStatus:
        """Add the time of the last call and the number of today's, without those of the doctor."""
        if status.policy is None:
            return status
        midnight = time.mktime((*time.localtime()[:3], 0, 0, 0, 0, 0, -1))
        with self._lock, suppress(GatewrightError, OSError):
            if not self._is_closed:
                last_s, today = self._count(state_folder(status.policy), status.agent_id, midnight)
                return replace(status, last_call_s=last_s, calls_today=today)
        return status

    def close(self) -> None:
        """Let go of the logs."""
        with self._lock:
            self._is_closed = True
            for log in self._logs.values():
                log.close()

    def _count(self, state: Path, agent_id: str, midnight: float) -> tuple[float | None, int]:
        log = self._logs.setdefault(state, AuditIndex(state))
        is_new, held = log.read_newer() is not None, self._counted.get((state, agent_id))
        if held is not None and held[0] == midnight and not is_new:
            return held[1:]
        if is_new:  # for all agents of this log
            self._counted = {key: found for key, found in self._counted.items() if key[0] != state}
        trials, of_doctor, numbers = AuditFilter(agent=agent_id, client=DOCTOR), set[int](), list[int]()
        has_older = True
        while has_older:
            has_older = log.read_older()
            of_doctor, begin = set(log.numbers(trials)), log.span()
            numbers = [one for one in log.numbers(AuditFilter(agent=agent_id)) if one not in of_doctor]
            if numbers and begin is not None and begin[0] < midnight:
                break
        today = set(log.numbers(AuditFilter(agent=agent_id, since_s=midnight))) - of_doctor
        calls = log.calls(numbers[:1])
        found = midnight, calls[0].wall_s if calls else None, len(today)
        self._counted[state, agent_id] = found
        return found[1:]


def _trusted(host: Host, file: HostFile, where: Around) -> bool | None:
    try:
        return host.is_trusted(file.path, read_host_file(file)[1], where)
    except WorkspaceError:
        return False


def _on_path(name: str, where: Around) -> str | None:
    return shutil.which(name, path=where.environment.get("PATH", ""))
