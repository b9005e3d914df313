"""``inbox``: the messages that wait for an agent, or for the user."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from gatewright.base.clock import iso_utc
from gatewright.cli.option import JsonOption, PolicyArgument, StateOption, require_agent
from gatewright.cli.output import print_json, print_passage
from gatewright.workspace import Workspace

if TYPE_CHECKING:
    from gatewright.memory.inbox import Received


def inbox(
    policy: PolicyArgument,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="ID", help="the agent whose messages; else those to the user")
    ] = None,
    take: Annotated[bool, typer.Option("--take", help="take them out: they wait no more")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="how many at most")] = 100,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Print the messages that wait, the oldest first."""
    with Workspace.open(policy, state=state) as workspace:
        held = workspace.inbox("" if agent is None else require_agent(workspace, agent))
        messages = held.take(limit=limit) if take else held.list(limit=limit)
    if json:
        print_json([message.to_json() for message in messages])
    else:
        print_messages(messages)


def print_messages(messages: Iterable[Received]) -> None:
    """Each with who sent it and when; further lines of it cannot pass for ours."""
    for message in messages:
        group = f" to {message.group}" if message.group else ""
        print_passage(f"{iso_utc(message.sent_at)}  {message.sender}{group}: ", message.content)
