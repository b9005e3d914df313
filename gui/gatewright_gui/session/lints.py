"""What each provider's spelling changes of the tools an agent sees: refused, looser, narrower, or just worth knowing.

It does not know how that is drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatewright.schema.formats.listing import Level

if TYPE_CHECKING:
    from gatewright.gate import AgentView


TO_DO: Mapping[str, str] = {
    "too-many-tools": "turn tools off for this agent until they are few enough, or send them in several requests",
    "reference": "mend the schema where the tool comes from; until then turn the tool off for this agent",
    "not-strict": "nothing, if strict mode is not needed: the gate checks every call itself",
    "object-only": "declare the type in the schema of the tool, if other values than objects are needed",
    "dropped": "nothing; if models often get it wrong, say it in the description of the parameter",
    "other-keys": "nothing; if models often make keys up, name the allowed ones in the description",
    "json-text": "nothing; one plain type in place of the choice would be sent as it is",
    "description": "nothing; shorten the description where the tool comes from, if its end matters most",
    "root-wrapped": "nothing; hand calls through the adapter or `restore`, which unwraps them",
    "format": "nothing; a pattern in place of the format would be checked by the provider too",
    "name": "nothing; hand calls through the adapter or `restore`, which knows the own name",
}
"""By the code of a lint: what the operator can do. What is not here goes by its level."""
TO_DO_BY_LEVEL: Mapping[Level, str] = {
    "refused": "mend it where the tool comes from, or turn the tool off for this agent",
    "looser": "nothing; the gate refuses what the provider lets through",
    "narrower": "widen the schema where the tool comes from, if those calls are needed",
    "note": "nothing",
}
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

    @property
    def to_do(self) -> str:
        """What the operator can do about it; `nothing` where all is well as it is."""
        if self.level == "refused" and self.code == "key":
            return "rename the parameter where the tool comes from, or turn the tool off for this agent"
        return TO_DO.get(self.code, TO_DO_BY_LEVEL[self.level])


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


def lint_rows(view: "AgentView", provider: str, tool: str | None) -> tuple[LintRow, ...]:
    """The lints of a provider on one tool, or on all of them; the worst first."""
    found = [
        LintRow(lint.level, name, lint.code, lint.pointer, lint.reason, lint.advice)
        for name, lints in view.lints(provider).items()
        if tool is None or name == tool
        for lint in lints
    ]
    return tuple(sorted(found, key=lambda row: LEVELS.index(row.level)))


def provider_states(view: "AgentView", tool: str | None) -> tuple[ProviderState, ...]:
    """How every provider takes one tool, or all of them."""
    from gatewright.schema.formats import FORMATS

    return tuple(_state(name, lint_rows(view, name, tool)) for name in FORMATS)


def _state(provider: str, rows: Sequence[LintRow]) -> ProviderState:
    worst = rows[0].level if rows else None
    return ProviderState(provider, worst, sum(row.level == worst for row in rows))
