"""``import``: a policy made of what another program has. It changes nothing there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gatewright.cli.exit import UsageProblem
from gatewright.cli.option import JsonOption
from gatewright.cli.output import print_error, print_json, print_line, print_text
from gatewright.policyfile import write_policy_text
from gatewright.workspace import migrate


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="`.claude/settings.json` and its neighbours, or a file of Pattern"),
    ],
    agent: Annotated[str, typer.Option("--agent", metavar="ID", help="whose rights they become")] = "claude",
    project: Annotated[
        Path | None, typer.Option("--project", metavar="DIR", help="the folder that settings are about, if not theirs")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="POLICY", help="write it there, else print it")] = None,
    json: JsonOption = False,
) -> None:
    """Make a policy of permission rules of Claude Code, or of a file of Pattern: never more open than they are."""
    text, notes = migrate(files, agent_id=agent, project=project)
    if out is not None:
        if out.exists():
            raise UsageProblem(f"`{out}` exists already; nothing was written")
        write_policy_text(out, text, expected=None)
    if json:
        print_json({"policy": text, "notes": list(notes)})
    elif out is not None:
        print_line(str(out))
    else:
        print_text(text)
    for note in notes:
        print_error(f"not carried over: {note}")
