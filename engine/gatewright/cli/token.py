"""``token add``, ``list`` and ``revoke``: what clients of the gateway show over HTTP to say who they speak for."""

from __future__ import annotations

from typing import Annotated

import typer

from gatewright.base.problem import near_hint
from gatewright.cli.exit import UsageProblem
from gatewright.cli.option import AgentOption, JsonOption, PolicyArgument, require_agent
from gatewright.cli.output import print_error, print_json, print_line
from gatewright.workspace import Workspace


def add(
    policy: PolicyArgument,
    agent: AgentOption,
    user: Annotated[str | None, typer.Option("--user", metavar="ID", help="the user, else the agent's own")] = None,
    elicit: Annotated[
        bool, typer.Option("--elicit", help="ask the user of the client, if it can, in place of the operator")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Make a token for one agent and user, and print it: it is not kept and cannot be shown again."""
    with Workspace.open(policy) as workspace:
        made, secret = workspace.tokens.add(require_agent(workspace, agent), user_id=user, elicit=elicit)
    if json:
        print_json({**made.to_json(), "token": secret})
    else:
        print_line(secret)
        print_error(f"{made.token_id}: copy it now, only its hash is kept")


def list_(policy: PolicyArgument, json: JsonOption = False) -> None:
    """Print the tokens of a policy, without what they are."""
    with Workspace.open(policy) as workspace:
        tokens = workspace.tokens.list()
    if json:
        print_json([token.to_json() for token in tokens])
        return
    for token in tokens:
        for_user = f" for {token.user_id}" if token.user_id else ""
        print_line(f"{token.token_id}  {token.agent_id}{for_user}{', elicits' if token.elicit else ''}, {token.made}")
    if not tokens:
        print_line("there is no token")


def revoke(
    policy: PolicyArgument,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="the token, as `token list` names it")],
    json: JsonOption = False,
) -> None:
    """Take a token back; what is connected by it is cut off."""
    with Workspace.open(policy) as workspace:
        tokens = workspace.tokens
        revoked = tokens.revoke(token_id)
        if revoked is None:
            near = near_hint(token_id, (token.token_id for token in tokens.list()), listed=True)
            raise UsageProblem(f"no token `{token_id}`{near}")
    if json:
        print_json({"revoked": revoked.to_json()})
    else:
        print_line(f"{token_id} revoked")
