"""``export``: the policy for a deployment, or in Pattern's shape. It changes nothing in the workspace."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gatewright.cli.exit import Exit, UsageProblem
from gatewright.cli.option import JsonOption, PolicyArgument, StateOption, TrustOption, require_agent
from gatewright.cli.output import print_error, print_json, print_line, print_text
from gatewright.workspace import Workspace, verify_export


class DialectName(StrEnum):
    """The shape to write."""

    GATEWRIGHT = "gatewright"
    PATTERN = "pattern"


def export(
    policy: PolicyArgument,
    dialect: Annotated[DialectName, typer.Option("--dialect", help="gatewright or pattern")] = DialectName.GATEWRIGHT,
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="only this agent (pattern)")] = None,
    team: Annotated[
        bool, typer.Option("--team", help="with a README, who may do what, a starter, and a manifest of hashes")
    ] = False,
    verify: Annotated[bool, typer.Option("--verify", help="POLICY is such a folder: find what was changed")] = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="write files there, else print")] = None,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Write the policy as it is enforced; pattern writes one file per agent and says what its runtime leaves out."""
    if verify:
        raise typer.Exit(_verify(policy, as_json=json))
    if team and (out is None or dialect != DialectName.GATEWRIGHT):
        raise UsageProblem("`--team` writes a folder in our own dialect: name it with `--out`")
    with Workspace.open(policy, state=state, trust=trust) as workspace:
        agent_id = require_agent(workspace, agent) if agent else None
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
    """Say which agents have no file: in Pattern's shape an empty list of tools would mean all of them."""
    left_out = () if agent_id else workspace.not_exported(dialect)
    if left_out:
        named = ", ".join(f"`{one}`" for one in left_out)
        print_error(f"gatewright: without a tool, so without a file: {named} (an empty list means every tool there)")
