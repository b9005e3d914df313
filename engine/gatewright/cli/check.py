"""``check``: every problem of a policy, with its place. It enforces nothing."""

from __future__ import annotations

import typer

from gatewright.base.errors import PolicyInvalid
from gatewright.cli.exit import Exit
from gatewright.cli.opening import JsonOption, PolicyArgument, StateOption, TrustOption, opened
from gatewright.cli.output import print_error, print_json, print_line


def check(
    policy: PolicyArgument, json: JsonOption = False, state: StateOption = None, trust: TrustOption = False
) -> None:
    """Report every problem of a policy; exit 1 when it may not be enforced."""
    try:
        with opened(policy, state=state, trust=trust) as workspace:
            problems = workspace.problems
            summary = f"{workspace.policy_path}: fine, {_counted(len(workspace.policy.agents), 'agent')}"
    except PolicyInvalid as error:
        problems, summary = error.problems, ""
    errors = sum(problem.is_error for problem in problems)
    if json:
        print_json({"ok": errors == 0, "problems": [problem.to_json() for problem in problems]})
    else:
        for problem in problems:
            print_error(str(problem))
        warnings = _counted(len(problems) - errors, "warning")
        print_line(f"{_counted(errors, 'error')}, {warnings}" if errors else f"{summary}, {warnings}")
    raise typer.Exit(Exit.PROBLEMS if errors else Exit.OK)


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"
