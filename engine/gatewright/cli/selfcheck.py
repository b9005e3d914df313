"""``selfcheck``: listed, valid and callable compared for every agent, tool and operation."""

from __future__ import annotations

import typer

from gatewright.cli.exit import Exit
from gatewright.cli.option import JsonOption, PolicyArgument, StateOption, TrustOption
from gatewright.cli.output import print_json, print_line
from gatewright.workspace import Workspace


def selfcheck(
    policy: PolicyArgument, json: JsonOption = False, state: StateOption = None, trust: TrustOption = False
) -> None:
    """Compare what is shown with what can be called; exit 1 when they differ."""
    with Workspace.open(policy, state=state, trust=trust) as workspace:
        result = workspace.selfcheck()
    if json:
        print_json(result.to_json())
    else:
        print_line(
            f"{result.checked} checked, {len(result.differences)} differences, {len(result.no_witness)} no witness"
        )
        for difference in result.differences:
            print_line(f"  {difference}")
    raise typer.Exit(Exit.PROBLEMS if result.differences else Exit.OK)
