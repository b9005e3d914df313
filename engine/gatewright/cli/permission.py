"""``permission``: the level of paths by a source's rules, and the deciding rule. It opens no file of the source."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gatewright.base.printable import printable
from gatewright.base.problem import near_hint
from gatewright.cli.exit import UsageProblem
from gatewright.cli.option import JsonOption, PolicyArgument, StateOption, TrustOption
from gatewright.cli.output import decode, print_json, print_line
from gatewright.workspace import Workspace


def permission(
    policy: PolicyArgument,
    source: Annotated[str, typer.Option("--source", metavar="ID", help="the source")],
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH...", help="else one path per line on stdin")
    ] = None,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Print the permission level of each path (a trailing / means a folder) and the rule that gives it."""
    with Workspace.open(policy, state=state, trust=trust) as workspace:
        known = [one.source_id for one in workspace.policy.file_sources]
        if source not in known:
            near = near_hint(source, known, listed=True)
            raise UsageProblem(f"no source `{source}` in {workspace.policy_path}{near}")
        rows = workspace.explain_paths(source, _paths(paths))
    if json:
        print_json([row.to_json() for row in rows])
        return
    for row in rows:
        why = (
            "outside"
            if row.outside
            else f"rule {row.index + 1} `{row.pattern}`"
            if row.index is not None
            else "default"
        )
        print_line(f"{row.permission}\t{printable(row.path)}\t{printable(why)}")


def _paths(paths: list[str] | None) -> list[str]:
    if paths and paths != ["-"]:
        return paths
    return [line for line in decode(sys.stdin.buffer.read(), "stdin").splitlines() if line]
