"""What a plan for rights, or saving, would change, in lines. The worker process makes them: nothing of Qt is loaded."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from gatewright.workspace.api import (
    AgentDiff,
    Capability,
    ChangeKind,
    PolicyDiff,
    RequiresConsent,
    RightChange,
    RightState,
    ToolRule,
    Verdict,
    frozen,
    plural,
)
from gatewright_gui.pages.agents.limits import PlacedRule, sentence
from gatewright_gui.session.review import Replay

MOST_ROWS = 20_000
"""More rows nobody reads; the counts are of all of them."""
MOST_SAVED_ROWS = 2_000
"""So many lines are told before saving, the riskiest; they come from the worker process at once."""
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
    before: RightState | Verdict | None = None
    after: RightState | Verdict | None = None


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


# what saving would change


@frozen
class SavedChange:
    """What saving would change of what agents may do: a sentence for each agent, and the lines, the riskiest first.

    ``opens``: somebody may do more somewhere, or that cannot be told.
    """

    agents: tuple[str, ...]
    lines: AgentLines
    opens: bool

    @property
    def is_empty(self) -> bool:
        """Whether every agent may do the same."""
        return not (self.agents or self.lines.rows)


def saved_change(diff: PolicyDiff) -> SavedChange:
    """What saving would change."""
    rows = sorted((row for agent in diff.agents for row in agent.rows), key=lambda row: row.risk)
    gains = sum(row.opens for row in rows)
    others = [ChangeRow("", one.what, one.before, one.after, OTHER) for one in diff.parts]
    others += [line for agent in diff.agents for line in _others(agent)]
    lines = [*map(_risky, rows[:gains]), *others, *map(_risky, rows[gains:])][:MOST_SAVED_ROWS]
    counts = Counter([str(row.kind) for row in rows])
    return SavedChange(
        tuple([_agent_words(agent) for agent in diff.agents]), AgentLines(lines, [""] * len(lines), counts), diff.opens
    )


def _risky(row: RightChange) -> ChangeRow:
    line = _operation(row)
    return line._replace(what=f"{line.what} ({row.danger})") if row.danger else line


def _agent_words(diff: AgentDiff) -> str:
    """`researcher gains 2 (1 privileged), loses 1; 1 limit changed`."""
    gains = [row for row in diff.rows if row.opens and row.kind is not ChangeKind.FREE]
    dangers = Counter([row.danger for row in gains if row.danger])
    counts, asks_now = diff.counts(), sum(row.kind is ChangeKind.ASKS and not row.opens for row in diff.rows)
    said = ["is new"] if diff.is_new else ["is deleted"] if diff.is_gone else []
    if gains:
        marked = ", ".join(f"{count:,} {danger}" for danger, count in dangers.items())
        said.append(f"gains {len(gains):,}" + (f" ({marked})" if marked else ""))
    if lost := counts.get(ChangeKind.OFF):
        said.append(f"loses {lost:,}")
    if free := counts.get(ChangeKind.FREE):
        said.append(f"{free:,} no longer {'asks' if free == 1 else 'ask'} first")
    if asks_now:
        said.append(f"{asks_now:,} {'asks' if asks_now == 1 else 'ask'} first now")
    if others := sum(1 for _ in _others(diff)):
        said.append(f"{plural(others, 'other change')}")
    return f"{diff.agent_id} {', '.join(said) or 'has other boxes, and the same rights'}"


@frozen
class ReplayLines:
    """The recorded calls that would be decided differently, newest first; the counts are of all of them."""

    lines: AgentLines
    differing: int
    decided: int


def replay_lines(found: Replay) -> ReplayLines:
    """The calls in lines."""
    rows = [
        ChangeRow(
            one.call.agent,
            f"{one.call.called}  {one.call.arguments}{'' if not one.lacks else '  (not all arguments are known)'}",
            str(one.before),
            f"{one.after}: {one.reason}".replace("`", ""),
            OTHER,
            one.before,
            one.after,
        )
        for one in found.calls
    ]
    return ReplayLines(AgentLines(rows, [""] * len(rows), Counter()), found.differing, found.looked_at)


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
