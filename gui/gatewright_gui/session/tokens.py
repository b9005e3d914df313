"""What the tools of an agent cost in tokens, tool by tool, and what its limits save.

Where no tokenizer is there, four bytes count as a token, which is said.
"""

from collections.abc import Mapping
from dataclasses import field

from gatewright.workspace.api import Workspace, frozen


@frozen
class TokenRow:
    """One tool; `tokens` is 0 where the model does not see it."""

    tool: str
    tokens: int
    unrestricted: int
    is_shown: bool = True

    @property
    def saving(self) -> float:
        """The share that is saved, 0 to 1; negative where a filtered schema takes more."""
        return (self.unrestricted - self.tokens) / self.unrestricted if self.unrestricted else 0.0


@frozen
class TokenReport:
    """All tools of one agent in one provider's spelling, in the order of the catalog."""

    agent_id: str
    provider: str
    rows: tuple[TokenRow, ...]
    exact: bool
    encoding: str
    total: TokenRow = field(init=False)

    def __post_init__(self) -> None:
        total = TokenRow("", sum(row.tokens for row in self.rows), sum(row.unrestricted for row in self.rows))
        object.__setattr__(self, "total", total)

    @property
    def by_tool(self) -> Mapping[str, int]:
        """The tokens of every tool that the model sees."""
        return {row.tool: row.tokens for row in self.rows if row.is_shown}

    def row_of(self, tool: str | None) -> TokenRow | None:
        """One tool's row; all of them together for None."""
        return self.total if tool is None else next((row for row in self.rows if row.tool == tool), None)


def count_words(tokens: int, *, exact: bool) -> str:
    """A number of tokens; an estimate is marked."""
    return f"{tokens:,}" if exact else f"~{tokens:,}"


def token_report(workspace: Workspace, agent_id: str, provider: str) -> TokenReport:
    """Count the tools of an agent. The first count takes half a second, and an estimate where it cannot be exact."""
    from gatewright.workspace.api import count_tokens, format_named

    view, form = workspace.view(agent_id), format_named(provider)
    shown, whole = count_tokens(view.listings(), form), count_tokens(view.full_listings(), form)
    rows = tuple(
        TokenRow(tool, shown.per_tool.get(tool, 0), before, tool in shown.per_tool)
        for tool, before in whole.per_tool.items()
    )
    return TokenReport(agent_id, provider, rows, shown.exact, shown.encoding)
