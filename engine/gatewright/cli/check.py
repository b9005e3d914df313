"""``check``: every problem of a policy, with its place. It enforces nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from gatewright.base.errors import PolicyInvalid
from gatewright.cli.exit import Exit, UsageProblem
from gatewright.cli.option import JsonOption, PolicyArgument, StateOption, TrustOption
from gatewright.cli.output import print_error, print_json, print_line
from gatewright.workspace import Workspace

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
            summary = f"{workspace.policy_path}: fine, {_counted(len(workspace.policy.agents), 'agent')}"
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
        warnings = _counted(len(problems) - errors, "warning")
        print_line(f"{_counted(errors, 'error')}, {warnings}" if errors else f"{summary}, {warnings}")
    raise typer.Exit(Exit.PROBLEMS if errors else Exit.OK)


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"
