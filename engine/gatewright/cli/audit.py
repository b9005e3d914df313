"""``audit verify`` and ``audit export``: the log of a workspace, proved or written out."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

import typer

from gatewright.cli.exit import Exit
from gatewright.cli.opening import JsonOption, PolicyArgument, StateOption, user_name
from gatewright.cli.output import print_error, print_json, print_line
from gatewright.workspace import audit_log

_MOST_TOLD = 5


MovedOption = Annotated[
    bool, typer.Option("--moved", help="the workspace was moved here: have its log go on, and say so in it")
]


def verify(
    policy: PolicyArgument, json: JsonOption = False, state: StateOption = None, moved: MovedOption = False
) -> None:
    """Prove the chain of the log; exit 1 when a row was edited, removed, moved, added or cut off.

    Calls that were begun and have no end, being under way or killed, are told and are no failure.
    Without ``--moved`` it changes nothing.
    """
    log = audit_log(policy, state=state)
    if moved:
        log.accept_move(user_name())
        log.close()
    report = log.verify()
    if json:
        print_json(report.to_json())
    else:
        for problem in report.problems:
            print_error(problem)
        print_line(f"{report.rows} rows proved, {len(report.problems)} problems")
        if report.unended:
            print_line(f"{len(report.unended)} calls without an end (under way or killed):")
        for row in report.unended[:_MOST_TOLD]:
            print_line(f"  {row.time} {row.agent} {row.tool} {row.call_id}")
        if len(report.unended) > _MOST_TOLD:
            print_line(f"  and {len(report.unended) - _MOST_TOLD} more")
    raise typer.Exit(Exit.OK if report.is_sound else Exit.PROBLEMS)


def export(policy: PolicyArgument, json: JsonOption = False, state: StateOption = None) -> None:  # noqa: ARG001
    """Print the log as JSON Lines, oldest row first; nothing when there is no log. It proves nothing."""
    for row in audit_log(policy, state=state).rows():
        print_line(jsonlib.dumps(row.to_json(), ensure_ascii=False))
