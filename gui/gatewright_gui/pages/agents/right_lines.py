"""What a plan for rights would change, in lines. The worker process makes them, so nothing of Qt is loaded here."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from gatewright.workspace.api import AgentDiff, Capability, RequiresConsent, RightChange, RightState, ToolRule, frozen
from gatewright_gui.pages.agents.limits import PlacedRule, sentence

MOST_ROWS = 20_000
"""More rows nobody reads; the counts are of all of them."""
OTHER = "also changed"


class ChangeRow(NamedTuple):
    """One line. `kind`: a `ChangeKind`, or `OTHER` for limits, sources, capabilities.

    A tuple, since thousands come from the worker process at once.
    """

    agent_id: str
    what: str
    now: str
    then: str
    kind: str
    before: RightState | None = None
    after: RightState | None = None


@frozen
class AgentLines:
    """What changes of one agent: the lines that there is room for, what each is found by, and how many of each kind."""

    rows: Sequence[ChangeRow]
    texts: Sequence[str]
    counts: Mapping[str, int]


def lines_of(diff: AgentDiff, room: int = MOST_ROWS) -> AgentLines:
    """The lines of one agent; of a large catalog there are thousands."""
    rows = tuple(islice(rows_of(diff), max(room, 0)))
    texts = tuple([f"{row.agent_id} {row.what} {row.now} {row.then}".casefold() for row in rows])
    counts = Counter([str(row.kind) for row in diff.rows])
    if others := sum(1 for _ in _others(diff)):
        counts[OTHER] = others
    return AgentLines(rows, texts, counts)


def rows_of(diff: AgentDiff) -> Iterator[ChangeRow]:
    """Every line of one agent: what else changes first, then the operations in the order of the catalog."""
    yield from _others(diff)
    yield from map(_operation, diff.rows)


def _others(diff: AgentDiff) -> Iterator[ChangeRow]:
    name = diff.agent_id
    if diff.sources is not None:
        yield ChangeRow(name, "sources", _sources(diff.sources[0]), _sources(diff.sources[1]), OTHER)
    if diff.capabilities is not None:
        now, then = diff.capabilities
        yield ChangeRow(name, "capabilities", _capabilities(now), _capabilities(then), OTHER)
    for rule in diff.limits_gone:
        yield ChangeRow(name, f"limit of {rule.tool_name}", _limit(rule), "none", OTHER)
    for rule in diff.limits_come:
        yield ChangeRow(name, f"limit of {rule.tool_name}", "none", _limit(rule), OTHER)


def _operation(row: RightChange) -> ChangeRow:
    what = f"{row.tool}.{row.operation}" if row.operation else row.tool
    return ChangeRow(row.agent_id, what, str(row.before), str(row.after), str(row.kind), row.before, row.after)


def _sources(sources: Sequence[str] | None) -> str:
    return "every source" if sources is None else ", ".join(sources) or "none"


def _capabilities(capabilities: Sequence[Capability]) -> str:
    """With what each reaches: a wider list of the same kind is a change too."""
    return ", ".join(_capability(one) for one in capabilities) or "none"


def _capability(one: Capability) -> str:
    reach = one.text or ("nothing" if one.scope is not None else "")
    return f"{type(one).__name__} ({reach})" if reach else type(one).__name__


def _limit(rule: ToolRule) -> str:
    kind = rule.rule_type
    if isinstance(kind, RequiresConsent):
        only = f"only {', '.join(sorted(rule.operations))}: " if rule.operations else ""
        return f"{only}asks, unless a grant covers {f'the scope {kind.scope}' if kind.scope else 'it'}"
    return sentence(PlacedRule(rule, None)) or rule.kind
