"""What each provider's spelling changes of the tools an agent sees: refused, looser, narrower, or just worth knowing.

It does not know how that is drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gatewright.gate import AgentView
from gatewright.schema.formats import FORMATS
from gatewright.schema.formats.format import Level

LEVELS: tuple[Level, ...] = ("refused", "looser", "narrower", "note")
"""The worst first."""
PROVIDER_WORDS: Mapping[str, str] = {
    "mcp": "MCP",
    "openai": "OpenAI",
    "openai-responses": "Responses",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "genai": "GenAI",
}


@dataclass(frozen=True, slots=True)
class LintRow:
    """One lint on one tool; an empty `tool` means all of them together. `line`: in the schema text, from 1."""

    level: Level
    tool: str
    code: str
    pointer: str
    reason: str
    advice: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class ProviderState:
    """How one provider takes what is shown: `level` is the worst, None when nothing has to be said."""

    provider: str
    level: Level | None
    count: int

    @property
    def words(self) -> str:
        """`ok`, `1 note`, `2 refused`: how many there are of the worst."""
        if self.level is None:
            return "ok"
        return f"{self.count} {self.level}{'s' if self.level == 'note' and self.count != 1 else ''}"


def lint_rows(view: AgentView, provider: str, tool: str | None) -> tuple[LintRow, ...]:
    """The lints of a provider on one tool, or on all of them; the worst first."""
    found = [
        LintRow(lint.level, name, lint.code, lint.pointer, lint.reason, lint.advice)
        for name, lints in view.lints(provider).items()
        if tool is None or name == tool
        for lint in lints
    ]
    return tuple(sorted(found, key=lambda row: LEVELS.index(row.level)))


def provider_states(view: AgentView, tool: str | None) -> tuple[ProviderState, ...]:
    """How every provider takes one tool, or all of them."""
    return tuple(_state(name, lint_rows(view, name, tool)) for name in FORMATS)


def _state(provider: str, rows: Sequence[LintRow]) -> ProviderState:
    worst = rows[0].level if rows else None
    return ProviderState(provider, worst, sum(row.level == worst for row in rows))
