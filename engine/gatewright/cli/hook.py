"""``hook``: puts the gate into a coding agent's file of hooks, takes it out, and says how it stands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated

import typer

from gatewright.adapters.hosts import HOST_IDS, Around, Host, HostScope
from gatewright.base.amount import iso_utc, plural
from gatewright.base.errors import GatewrightError, WorkspaceError
from gatewright.base.printable import printable
from gatewright.cli.output import Exit, JsonOption, UsageProblem, print_error, print_json, print_line, require_agent
from gatewright.policy.document import Confine
from gatewright.policy.verdict import Permission, Verdict
from gatewright.policyfile.reader import value_of
from gatewright.sources.ground import policy_path_of
from gatewright.workspace import Workspace
from gatewright.workspace.client_file import client_files, read_client_file
from gatewright.workspace.host_files import (
    HostEdit,
    HostFile,
    host_around,
    host_file,
    host_of,
    install_edit,
    records,
    require_systemd,
    start_by_systemd,
    uninstall_edit,
    write_host_file,
)
from gatewright.workspace.host_status import HostCalls, HostLevel, HostStatus, find_hosts, host_doctor, host_status
from gatewright.workspace.template import agent_policy, agent_policy_path, write_agent_policy

HostArgument = Annotated[
    str, typer.Argument(metavar="HOST", help="claude-code, codex, gemini-cli, opencode, copilot, cursor or vscode")
]
MaybeHost = Annotated[str, typer.Argument(metavar="[HOST]", help="one coding agent, else all")]
UserOption = Annotated[bool, typer.Option("--user", help="in your own settings: for all that you do with it")]
ProjectOption = Annotated[
    Path | None, typer.Option("--project", metavar="DIR", help="in the settings of that project (else of this folder)")
]
ManagedOption = Annotated[bool, typer.Option("--managed", help="in the settings of the machine, as an administrator")]
DiffOption = Annotated[bool, typer.Option("--diff", help="show the whole difference of the agent's file")]
YesOption = Annotated[bool, typer.Option("--yes", help="do it without asking")]
_FEW = 8
_LEVELS = {Permission.READ_WRITE: "reads and edits", Permission.READ_ONLY: "reads", Permission.ADMIN: "does everything"}


def install(
    host: HostArgument,
    policy: Annotated[
        Path | None, typer.Option("--policy", metavar="FILE", help="the policy that decides, else a new one")
    ] = None,
    agent: Annotated[str, typer.Option("--agent", metavar="ID", help="the agent whose rights it gets")] = "",
    user: UserOption = False,
    project: ProjectOption = None,
    managed: ManagedOption = False,
    systemd: Annotated[
        bool, typer.Option("--systemd", help="systemd starts the gate for the first hook, by units in your settings")
    ] = False,
    diff: DiffOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Put the gate into a coding agent, so that each of its calls is decided first. Says what changes, then asks.

    Without --policy it makes one for this project, in `.gatewright-policy`, or adds the agent to that one.
    """
    file = _file(host, user=user, project=project, managed=managed)
    if systemd:
        require_systemd()
    folder = Path(os.path.realpath(_folder(project)))
    if file.scope is HostScope.PROJECT and not host_of(host).trusts(folder, host_around(folder)):
        print_error(f"{host_of(host).title} skips hooks of `{folder}` until you trust that folder there")
        if project is None and not yes and _agrees("Use your own settings instead, which need no trust (`--user`)?"):
            file = _file(host, user=True, project=None, managed=False)
    path = policy_path_of(policy) if policy is not None else agent_policy_path(file.scope, folder)
    is_new = not path.exists()
    text = agent_policy(host, folder, path)[0] if policy is None else ""
    who = _agent_of(path, agent or (host_of(host).prefix if policy is None else ""), text)
    edit = install_edit(file, path, who)
    if not json:
        for line in _rights(host_of(host), path, who, text):
            print_line(line)
        if text and (is_new or text != path.read_text("utf-8")):
            print_line(f"{'makes' if is_new else 'adds the agent to'} {path}")
    _agree(edit, "the gate is there already", yes=yes, quiet=json, whole=diff)
    if text:
        write_agent_policy(host, folder, path)
    write_host_file(edit)
    if systemd:
        print_error(f"gatewright: systemd starts the gate: {start_by_systemd(path)}")
    status = host_status(host, host_around(_folder(project)))
    if json:
        with closing(HostCalls()) as calls:
            print_json(calls.counted(status).to_json())
        return
    is_open = status.level is HostLevel.RED
    said = "has the gate, which does not hold yet" if is_open else "asks the gate before each call"
    print_line(f"{status.title} {said}: {file.path}")
    _print_facts(status, least=HostLevel.AMBER)


def _rights(host: Host, path: Path, agent_id: str, text: str) -> Generator[str]:
    """Say in words what the agent may do by the policy at ``path``, which will be ``text`` unless that is empty."""
    if text:
        policy = value_of(text, path.stem)
        assert policy is not None  # we made it
        tools = policy.agents[agent_id].tools or ()
    else:
        with Workspace.open(path) as workspace:
            policy, tools = workspace.policy, _tools_on(workspace, agent_id)
    agent, own = policy.agents[agent_id], [name for name in tools if name.startswith(f"{host.prefix}.")]
    asking = [name.removeprefix(f"{host.prefix}.") for name in own if agent.approvals.get(name) is Verdict.ASK]
    first = f"; ask first: {_listed(asking)}" if asking else ""
    yield f"{host.title} asks the gate before each call, as agent `{agent_id}` of {path}"
    yield f"  tools     {plural(len(own), 'of its tools is', 'of its tools are')} on{first}; all others are denied"
    for source in policy.folder_sources:
        if agent.sources is None or source.source_id in agent.sources:
            base = os.path.normpath(path.parent / source.base_path)
            said = _LEVELS.get(source.default_permission, f"`{source.default_permission}`")
            levels = [row.permission for row in source.permission_rules]
            for level in sorted(set(levels), key=list(Permission).index):
                patterns = [row.pattern for row in source.permission_rules if row.permission is level]
                named = "closed" if level is Permission.NONE else f"`{level}`"
                base += f"; {named}: {_listed(sorted(patterns, key=len))}"
            yield f"  files     {said} {base}"
    if any(name.removeprefix(f"{host.prefix}.") in host.shells for name in own):
        shell = policy.shell
        how = "confined" if shell.confine is Confine.POLICY else "with your rights"
        words = (("", shell.allow), ("ask first: ", shell.ask), ("never: ", sorted(shell.deny, key=len)))
        lists = "; ".join(f"{what}{_listed(names)}" for what, names in words if names)
        yield f"  commands  run {how}, if they begin with {lists or 'nothing yet: `[workspace.shell]` allows none'}"


def _tools_on(workspace: Workspace, agent_id: str) -> list[str]:
    return [str(tool["name"]) for tool in workspace.gate.view(agent_id).tools("mcp")]


def _listed(names: Sequence[str]) -> str:
    """Name the first few, and the number of the others."""
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(f"`{name}`" for name in names[:_FEW]) + more


def gate_machine(*, undo: bool, yes: bool, as_json: bool) -> None:
    """Put the gate into every coding agent on this machine, or take it out of all; name the servers of clients.

    One that cannot be changed does not affect the others; then the exit code is 1.
    """
    folder = Path(os.path.realpath("."))
    path = agent_policy_path(HostScope.USER, folder)
    edits: list[HostEdit] = []
    failed: list[str] = []
    files = [HostFile(one.host_id, one.scope, Path(one.path)) for one in records()] if undo else []
    if not undo:
        for one in find_hosts(host_around(folder)):
            if one.is_found and one.file is not None:
                print_error(f"{one.title} has a gate: {one.file.path}")
            elif one.is_found:
                files.append(host_file(one.host_id, HostScope.USER, host_around(folder)))
    for file in files:
        host = host_of(file.host_id)
        try:
            if not undo:
                agent_policy(file.host_id, folder, path)
            edits.append(uninstall_edit(file) if undo else install_edit(file, path, host.prefix))
            print_error(f"{host.title}: {'takes the gate out of' if undo else 'puts the gate into'} {file.path}")
        except GatewrightError as error:
            failed.append(file.host_id)
            print_error(f"{host.title} is left alone: {error}")
    if edits and not undo:
        print_error(f"decided by {path}; they work in {folder}, and everything else is denied")
    servers = {} if undo else _servers(folder)
    for place, names in servers.items():
        how = f"gatewright catalog import {path} --from {place}"
        print_error(f"{place} starts {', '.join(names)}: `{how}` brings them in")
    if edits and not yes and not _agrees("Do this?"):
        print_error("gatewright: nothing was changed (--yes does it without asking)")
        raise typer.Exit(Exit.ASK_UNANSWERED)
    for edit in edits:
        try:
            if not undo:
                write_agent_policy(edit.file.host_id, folder, path)
            write_host_file(edit)
        except GatewrightError as error:
            failed.append(edit.file.host_id)
            print_error(f"{host_of(edit.file.host_id).title} was left alone: {error}")
            continue
        facts = () if undo else host_status(edit.file.host_id, host_around(folder)).facts
        for fact in facts:
            if fact.level is HostLevel.RED:
                print_error(f"not yet: {fact.sentence}")
    if as_json:
        done = [edit.file.host_id for edit in edits if edit.file.host_id not in failed]
        print_json({"policy": str(path), "changed": done, "failed": failed, "servers": servers})
    raise typer.Exit(Exit.PROBLEMS if failed else Exit.OK)


def _servers(folder: Path) -> dict[str, list[str]]:
    """List the servers that the files of clients name, by file."""
    found: dict[str, list[str]] = {}
    for file in client_files(folder):
        with suppress(WorkspaceError):
            if file.path.is_file() and (servers := read_client_file(file.path)):
                found[str(file.path)] = [server.server_id for server in servers]
    return found


def _agent_of(path: Path, agent: str, text: str) -> str:
    """Return the agent that calls, if the policy has it, or will have it as ``text``. Raises UsageProblem."""
    if text:
        return agent
    with Workspace.open(path) as workspace:
        agents = list(workspace.policy.agents)
        return require_agent(workspace, agent or (agents[0] if len(agents) == 1 else ""))


def uninstall(
    host: HostArgument,
    user: UserOption = False,
    project: ProjectOption = None,
    managed: ManagedOption = False,
    diff: DiffOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Take the gate out of a coding agent: its file is then as it was before, to the byte."""
    file = _file(host, user=user, project=project, managed=managed)
    edit = uninstall_edit(file)
    _agree(edit, "no gate is there", yes=yes, quiet=json, whole=diff)
    write_host_file(edit)
    if json:
        print_json({"host": host, "file": str(file.path), "removed": edit.changes})
    elif not edit.changes:
        for record in records():
            if record.host_id == host:
                print_line(f"{host_of(host).title}: a gate is in {record.path} (`--{record.scope}`)")
    else:
        is_gone = edit.before is not None and edit.after is None
        print_line(f"{host_of(host).title}: {file.path}" + (" is gone again" if is_gone else " is as before"))


def status(host: MaybeHost = "", project: ProjectOption = None, json: JsonOption = False) -> None:
    """Say of each coding agent whether a gate is there and what it cannot stop; exit 1 if something is red.

    It reads files and the log, and starts none of them.
    """
    _report(host, project, host_status, as_json=json)


def doctor(host: MaybeHost = "", project: ProjectOption = None, json: JsonOption = False) -> None:
    """Say the same after trying it: open the policy, start our entry as the agent does, and see a call denied.

    The denied call of a tool that nobody has is in the log. Exit 1 if something is red.
    """
    _report(host, project, host_doctor, as_json=json)


def _report(host: str, project: Path | None, look: Callable[[str, Around], HostStatus], *, as_json: bool) -> None:
    where = host_around(_folder(project))
    with closing(HostCalls()) as calls:
        every = tuple(calls.counted(look(one, where)) for one in ([host] if host else HOST_IDS))
    found = sorted(every, key=lambda one: not one.is_found)
    if as_json:
        print_json([one.to_json() for one in found])
    else:
        for one in found:
            if host or one.is_found:
                _print_status(one)
        missing = [one.title for one in found if not one.is_found]
        if missing and not host:
            print_line(f"not on this machine: {', '.join(missing)}")
    raise typer.Exit(Exit.PROBLEMS if any(one.level is HostLevel.RED and one.file for one in found) else Exit.OK)


def _folder(project: Path | None) -> Path:
    return project if project is not None else Path()


def _file(host: str, *, user: bool, project: Path | None, managed: bool) -> HostFile:
    """Return the file that the options mean. Raises UsageProblem, WorkspaceError."""
    if user + managed + (project is not None) > 1:
        raise UsageProblem("say one of --user, --project and --managed")
    if project is not None and not project.is_dir():
        raise UsageProblem(f"`{project}` is no folder")
    scope = HostScope.USER if user else HostScope.MANAGED if managed else HostScope.PROJECT
    return host_file(host, scope, host_around(_folder(project)))


def _agree(edit: HostEdit, nothing: str, *, yes: bool, quiet: bool, whole: bool) -> None:
    """Show the edit, the ``whole`` difference or in a few words, and ask; raise typer.Exit without a yes."""
    path = edit.file.path
    if not edit.changes:
        print_error(f"gatewright: {nothing}: `{path}`")
    elif not quiet:
        if whole:
            _print_difference(edit)
        else:
            lines = edit.difference.splitlines()
            counts = [
                (sum(line.startswith(sign) for line in lines), word) for sign, word in (("+", "new"), ("-", "old"))
            ]
            said = ", ".join(plural(count, f"{word} line") for count, word in counts if count)
            print_line(f"{_what(edit)} {path} ({said}; `--diff` shows them)")
    if edit.changes and not yes and not _agrees(f"Write `{path}`?", None if whole else edit):
        print_error("gatewright: nothing was changed (--yes does it without asking)")
        raise typer.Exit(Exit.ASK_UNANSWERED)


def _what(edit: HostEdit) -> str:
    return "makes" if edit.before is None else "removes" if edit.after is None else "changes"


def _print_difference(edit: HostEdit) -> None:
    print_line(f"--- {edit.file.path}")
    for line in edit.difference.splitlines():
        print_line(line)


def _agrees(question: str, edit: HostEdit | None = None) -> bool:
    """Ask on a terminal; `d` shows the whole difference of the edit first."""
    while sys.stdin.isatty():
        choices = "y/N" if edit is None else "y/N, d: the whole difference"
        said = typer.prompt(f"{printable(question)} [{choices}]", default="n", show_default=False, err=True)
        if said.strip().casefold() != "d" or edit is None:
            return said.strip().casefold() in {"y", "yes"}
        _print_difference(edit)
    return False


def _print_status(one: HostStatus) -> None:
    if one.file is None:
        how = f"`gatewright hook install {one.host_id}` puts one there"
        print_line(f"{one.title}: no gate; {how if one.is_found else 'it is not on this machine'}")
        return
    calls = "" if one.calls_today is None else f", {plural(one.calls_today, 'call')} today"
    last = "" if one.last_call_s is None else f", the last at {iso_utc(one.last_call_s)}"
    print_line(f"{one.title}: gate in {one.file.path}, agent `{one.agent_id}` of {one.policy}{calls}{last}")
    _print_facts(one, least=HostLevel.OK)


def _print_facts(one: HostStatus, *, least: HostLevel) -> None:
    order = list(HostLevel)
    for fact in one.facts:
        if order.index(fact.level) >= order.index(least):
            print_line(f"  {fact.level!s:<6} {fact.sentence}")
