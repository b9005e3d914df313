"""What a list of tools costs in a provider's format, and what the format could not keep. It does not render."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gatewright.schema.formats import ProviderLint, ToolListing, format_named
from gatewright.schema.tokens import count_tokens

LEVELS = ("refused", "looser", "narrower", "note")


def notes(listings: Sequence[ToolListing], form: str, unrestricted: Sequence[ToolListing]) -> Iterator[str]:
    """The tokens of each tool and in all, then the lints, the gravest first; a note that repeats is one line."""
    count = count_tokens(listings, form, unrestricted)
    about = "" if count.exact else "about "
    for name, tokens in count.per_tool.items():
        yield f"{name}: {about}{tokens:,} tokens"
    how = "exact" if count.exact else "an estimate"
    saving = f"{count.saving or 0:.0%} less than unrestricted"
    yield f"{about}{count.total:,} tokens in all ({count.encoding}), {how}, {saving}"
    found = [(name, lint) for name, lints in format_named(form).lints_all(listings).items() for lint in lints]
    noted: dict[str, list[str]] = {}
    for name, lint in sorted(found, key=lambda row: LEVELS.index(row[1].level)):
        if lint.level == "note":
            noted.setdefault(lint.message, []).append(_line(name, lint))
        else:
            yield _line(name, lint)
    for message, lines in noted.items():
        yield lines[0] if len(lines) == 1 else f"note: {len(lines):,} times: {message}"


def _line(name: str, lint: ProviderLint) -> str:
    where = f" at {lint.pointer}" if lint.pointer else ""
    return f"{lint.level}: {name or 'all tools'}{where}: {lint.message}"
