"""``gui``, ``tour``, ``init``, ``import``, ``check``, ``export``: a workspace as a whole.

They open it in the app, make its policy, convert another program's into one, check it, and pass it on.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from enum import StrEnum
from json import loads
from pathlib import Path
from typing import Annotated

import typer

from gatewright.base.errors import PolicyInvalid
from gatewright.cli.main import launch, run_app
from gatewright.cli.output import (
    Exit,
    JsonOption,
    PolicyArgument,
    StateOption,
    TrustOption,
    UsageProblem,
    print_error,
    print_json,
    print_line,
    print_text,
    require_agent,
)
from gatewright.policyfile import write_policy_text
from gatewright.workspace import (
    Workspace,
    create_workspace,
    example_names,
    migrate,
    name_schema,
    template_names,
    verify_export,
    write_migrated,
)

WorkspaceArgument = Annotated[
    Path | None, typer.Argument(metavar="WORKSPACE", help="a folder with a policy.toml, or a policy file")
]


def gui(workspace: WorkspaceArgument = None) -> None:
    """Open the app (with the last workspace, or the demo)."""
    raise typer.Exit(launch(workspace))


def tour(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="the folder for pictures and the exported policy")],
    workspace: WorkspaceArgument = None,
    json: JsonOption = False,
) -> None:
    """Drive the real window through the main job; a picture of each step, and tour.json with what was checked."""
    if not json:
        raise typer.Exit(run_app("tour", workspace, out))
    with redirect_stdout(sys.stderr):
        status = run_app("tour", workspace, out)
    print_json(loads((out / "tour.json").read_text(encoding="utf-8")))
    raise typer.Exit(status)


def init(
    folder: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="the folder to make")] = None,
    template: Annotated[str, typer.Option("--template", help="demo, or empty")] = "empty",
    example: Annotated[
        str | None,
        typer.Option("--example", metavar="NAME", help="coding-agent, research-assistant, runbook or support-bot"),
    ] = None,
    machine: Annotated[
        bool, typer.Option("--machine", help="instead: put a gate into the coding agents of this machine")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="with --machine: take the gates out again")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="with --machine: do it without asking")] = False,
    json: JsonOption = False,
) -> None:
    """Write a new workspace: policy.toml and what it needs. With --machine gate the coding agents that are here."""
    if machine:
        from gatewright.cli.hook import gate_machine

        gate_machine(undo=undo, yes=yes, as_json=json)
    if folder is None or undo or yes:
        raise UsageProblem("name the folder to make; --undo and --yes go with --machine")
    if example is not None and example not in example_names():
        raise UsageProblem(f"no example `{example}` (known are {', '.join(example_names())})")
    if template not in template_names():
        raise UsageProblem(f"no template `{template}` (known are {', '.join(template_names())})")
    policy_path = create_workspace(folder, example or template)
    name_schema(policy_path)
    if json:
        print_json({"policy": str(policy_path)})
    else:
        print_line(str(policy_path))


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="settings and rules of one coding agent, or a file of Pattern"),
    ],
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="ID", help="whose rights they become; by default named for it")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host", metavar="HOST", help="claude-code, codex, gemini-cli or opencode, if FILE does not show"
        ),
    ] = None,
    project: Annotated[
        Path | None, typer.Option("--project", metavar="DIR", help="the folder that settings are about, if not theirs")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="POLICY", help="write it there, else print it")] = None,
    json: JsonOption = False,
) -> None:
    """Make a policy of the rules of a coding agent, or of a file of Pattern: never more open than they are."""
    if out is None:
        text, notes = migrate(files, agent_id=agent, project=project, host=host)
    elif out.exists():
        raise UsageProblem(f"`{out}` exists already; nothing was written")
    else:
        text, notes = write_migrated(out, files, agent_id=agent, project=project, host=host)
    if json:
        print_json({"policy": text, "notes": list(notes)})
    elif out is not None:
        print_line(str(out))
    else:
        print_text(text)
    for note in notes:
        print_error(f"not carried over: {note}")


_ENDPOINTS = "endpoints."


def check(
    policy: PolicyArgument,
    only: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...", help="with --trust: trust the servers of these catalogs, or endpoints.NAME, alone"
        ),
    ] = None,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Report every problem of a policy; exit 1 when it may not be enforced. What --trust trusts is named."""
    if only and not trust:
        raise UsageProblem("catalogs and endpoints are named with `--trust` alone")
    trusted: dict[str, str] = {}
    try:
        if only:
            with Workspace.open(policy, state=state) as workspace:
                for name in only:
                    target = name.removeprefix(_ENDPOINTS)
                    workspace.trust_server(name) if target == name else workspace.trust_endpoint(target)
        with Workspace.open(policy, state=state, trust=trust and not only) as workspace:
            problems = workspace.problems
            if trust:
                named = {catalog.catalog_id: catalog.runs for catalog in workspace.policy.catalogs if catalog.runs}
                named |= {f"{_ENDPOINTS}{one}": url for one, url in workspace.policy.endpoints.outside.items()}
                trusted = {name: what for name, what in named.items() if not only or name in only}
            summary = f"{workspace.policy_path}: fine, {_count_words(len(workspace.policy.agents), 'agent')}"
    except PolicyInvalid as error:
        problems, summary = error.problems, ""
    errors = sum(problem.is_error for problem in problems)
    if json:
        said = {"trusted": list(trusted)} if trust else {}
        print_json({"ok": errors == 0, "problems": [problem.to_json() for problem in problems], **said})
    else:
        for name, what in trusted.items():
            print_error(f"gatewright: trusts `{name}` from now on: {what}")
        for problem in problems:
            print_error(str(problem))
        warnings = _count_words(len(problems) - errors, "warning")
        print_line(f"{_count_words(errors, 'error')}, {warnings}" if errors else f"{summary}, {warnings}")
    raise typer.Exit(Exit.PROBLEMS if errors else Exit.OK)


def _count_words(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


class DialectName(StrEnum):
    """The dialect to write."""

    GATEWRIGHT = "gatewright"
    PATTERN = "pattern"


def export(
    policy: PolicyArgument,
    dialect: Annotated[DialectName, typer.Option("--dialect", help="gatewright or pattern")] = DialectName.GATEWRIGHT,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="HOST", help="what claude-code, codex, gemini-cli or opencode enforces itself"),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="ID", help="only this agent (`--host`, pattern)")
    ] = None,
    team: Annotated[
        bool, typer.Option("--team", help="with a README, who may do what, a starter, and a manifest of hashes")
    ] = False,
    verify: Annotated[bool, typer.Option("--verify", help="POLICY is such a folder: find what was changed")] = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="write files there, else print")] = None,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Write the policy as it is enforced, or what another runtime can enforce of it; what that leaves out is told."""
    if verify:
        raise typer.Exit(_verify(policy, as_json=json))
    if team and (out is None or dialect != DialectName.GATEWRIGHT):
        raise UsageProblem("`--team` writes a folder in our own dialect: name it with `--out`")
    with Workspace.open(policy, state=state, trust=trust) as workspace:
        agent_id = require_agent(workspace, agent) if agent else None
        if host is not None:
            _export_host(workspace, host, agent_id, out, as_json=json)
            return
        if out is not None:
            files = workspace.export(out, dialect=dialect, agent_id=agent_id, team=team)
            if json:
                print_json({"files": [str(path) for path in files]})
            else:
                for path in files:
                    print_line(str(path))
            _note_left_out(workspace, dialect, agent_id)
            for bound in workspace.bound_paths() if dialect == DialectName.GATEWRIGHT else ():
                print_error(f"gatewright: {bound}")
            return
        texts = workspace.export_texts(dialect, agent_id)
        _note_left_out(workspace, dialect, agent_id)
    if json:
        print_json(texts)
    else:
        print_text("\n".join(text.rstrip("\n") for text in texts.values()))


def _export_host(workspace: Workspace, host: str, agent_id: str | None, out: Path | None, *, as_json: bool) -> None:
    """Print the rules for a coding agent, or write them below a folder, and say what it cannot enforce."""
    only = agent_id or next(iter(workspace.policy.agents), "")
    if agent_id is None and len(workspace.policy.agents) != 1:
        raise UsageProblem("the policy has several agents: name one with `--agent`")
    made = workspace.export_host(host, only)
    if out is not None:
        path = out / made.file
        if path.exists():
            raise UsageProblem(f"`{path}` exists already; nothing was written: merge it by hand")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_policy_text(path, made.text, expected=None)
    if as_json:
        print_json({"file": made.file, "text": made.text, "lost": list(made.lost)})
    elif out is not None:
        print_line(str(out / made.file))
    else:
        print_text(made.text)
    for lost in made.lost:
        print_error(f"not enforced there: {lost}")


def _verify(folder: Path, *, as_json: bool) -> Exit:
    """Print what differs from the manifest of an export for a team."""
    digest, files, problems = verify_export(folder)
    if as_json:
        print_json({"ok": not problems, "files": files, "manifest": digest, "problems": list(problems)})
    else:
        for problem in problems:
            print_line(problem)
        count = f"{len(problems)} difference{'' if len(problems) == 1 else 's'}"
        print_line(f"{files} files, {count}; the manifest is sha256:{digest}")
    return Exit.PROBLEMS if problems else Exit.OK


def _note_left_out(workspace: Workspace, dialect: str, agent_id: str | None) -> None:
    """List the agents without a file, since in Pattern's dialect an empty list of tools would mean all of them."""
    left_out = () if agent_id else workspace.not_exported(dialect)
    if left_out:
        named = ", ".join(f"`{one}`" for one in left_out)
        print_error(f"gatewright: without a tool, so without a file: {named} (an empty list means every tool there)")
