"""``preview`` and ``rules``: what the model of one agent sees. It does not call anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from gatewright.cli.exit import UsageProblem
from gatewright.cli.opening import (
    AgentOption,
    JsonOption,
    PolicyArgument,
    StateOption,
    TrustOption,
    opened,
    require_agent,
)
from gatewright.cli.output import print_error, print_json, print_line
from gatewright.schema.formats import format_named
from gatewright.schema.tokens import count_tokens
from gatewright.workspace import format_names

if TYPE_CHECKING:
    from gatewright.gate.view import AgentView


def preview(
    policy: PolicyArgument,
    agent: AgentOption,
    format: Annotated[  # noqa: A002
        str, typer.Option("--format", help="mcp, openai, openai-responses, anthropic, gemini or genai")
    ] = "mcp",
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Print the list of tools that the model of one agent gets, as JSON; what it costs and lost on stderr."""
    if format not in format_names():
        raise UsageProblem(f"no format `{format}` (there are: {', '.join(format_names())})")
    with opened(policy, state=state, trust=trust) as workspace:
        view = workspace.view(require_agent(workspace, agent))
        print_json(view.tools(format))
        if not json:
            for line in _notes(view, format):
                print_error(line)


def _notes(view: AgentView, form: str) -> Iterator[str]:
    """The tokens of each tool and in all, and what the provider's spelling could not keep."""
    listings = view.listings()
    count = count_tokens(listings, form, view.unrestricted_listings())
    about = "" if count.exact else "about "
    for name, tokens in count.per_tool.items():
        yield f"{name}: {about}{tokens:,} tokens"
    yield f"{about}{count.total:,} tokens in all ({count.encoding}), {count.saving or 0:.0%} less than unrestricted"
    for name, lints in format_named(form).lints_all(listings).items():
        for lint in lints:
            where = f" at {lint.pointer}" if lint.pointer else ""
            yield f"{lint.level}: {name or 'all tools'}{where}: {lint.message}"


def rules(
    policy: PolicyArgument,
    agent: AgentOption,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Print the usage rules that the model of one agent gets, as Markdown."""
    with opened(policy, state=state, trust=trust) as workspace:
        text = workspace.view(require_agent(workspace, agent)).usage_rules
    if json:
        print_json({"rules": text})
    else:
        print_line(text.rstrip("\n"))
