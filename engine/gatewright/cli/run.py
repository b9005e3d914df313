"""``run``: a program of yours under what the policy says of an agent, held by the kernel."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from gatewright.base.errors import ToolFailure
from gatewright.cli.exit import Exit
from gatewright.cli.option import AgentOption, PolicyArgument, StateOption, require_agent
from gatewright.cli.output import print_error
from gatewright.cli.place import PlaceOption, places_of
from gatewright.workspace import Workspace


def run(
    policy: PolicyArgument,
    agent: AgentOption,
    words: Annotated[list[str], typer.Argument(metavar="-- PROGRAM ARGS...", help="what is run, from this folder")],
    place: PlaceOption = None,
    state: StateOption = None,
) -> None:
    """Run a program that sees and reaches no more than shell commands of an agent, and --place, whatever it does.

    It gets the root `shared` and what FsRead and FsWrite grant, with the levels of the sources, and the hosts of
    NetRead and NetWrite. What it changed in a place given as `snapshot` is written back when it ended, as far as levels
    let it without asking; what was and what was not is told. Its exit code is the program's.
    """
    given = {} if place is None else places_of(place)
    with Workspace.open(policy, state=state) as workspace:
        agent_id = require_agent(workspace, agent)
        try:
            code = asyncio.run(workspace.run_program(agent_id, words, Path.cwd(), given, _tell))
        except ToolFailure as failure:
            print_error(f"gatewright: `{words[0]}` was not started: {failure}: {failure.detail}".rstrip(": "))
            raise typer.Exit(Exit.DENIED) from None
    raise typer.Exit(code)


def _tell(words: str) -> None:
    print_error(f"gatewright: {words}")
