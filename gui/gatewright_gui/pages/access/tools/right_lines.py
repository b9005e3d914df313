"""What a plan for rights, or saving, would change, in lines. The worker process makes them: nothing of Qt is loaded."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, starmap
from typing import NamedTuple

from gatewright.workspace.api import (
    AgentDiff,
    Capability,
    ChangeKind,
    PolicyDiff,
    RequiresConsent,
    RightChange,
    RightState,
    RightWord,
    ToolRule,
    Verdict,
    frozen,
)
from gatewright_gui.pages.access.tools.limits import PlacedRule, sentence
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.session.review import Replay
from gatewright_gui.session.verdict import right_words

MOST_ROWS = 20_000
"""More rows nobody reads; the counts are of all of them."""
MOST_SAVED_ROWS = 2_000
"""So many lines are told before saving, the riskiest; they come from the worker process at once."""
OTHER = mark("also changed")
KIND_WORDS = {
    ChangeKind.ON: mark("turned on"),
    ChangeKind.ASKS: mark("asks first now"),
    ChangeKind.FREE: mark("no longer asks"),
    ChangeKind.OFF: mark("turned off"),
    ChangeKind.WRITTEN: mark("off either way"),
    OTHER: OTHER,
}
STANDING_WORDS: Mapping[RightState | Verdict, str] = {
    RightState.ON: mark("on"),
    RightState.ASKS: mark("asks first"),
    RightState.OFF: mark("off"),
    RightState.OVERRULED: mark("blocked"),
    Verdict.ALLOW: mark("allow"),
    Verdict.ASK: mark("ask"),
    Verdict.DENY: mark("deny"),
}
DANGER_WORDS = {"privileged": mark("privileged"), "deletes": mark("deletes")}


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
    agents: tuple[str, ...] = ()
    """For which agents the line is the same, where it is for several."""


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
        yield ChangeRow(name, tr("sources"), _sources(diff.sources[0]), _sources(diff.sources[1]), OTHER)
    if diff.capabilities is not None:
        now, then = diff.capabilities
        yield ChangeRow(name, tr("capabilities"), _capabilities(now), _capabilities(then), OTHER)
    for rule in diff.limits_gone:
        yield ChangeRow(name, tr("limit of {tool}", tool=rule.tool_name), _limit(rule), tr("none"), OTHER)
    for rule in diff.limits_come:
        yield ChangeRow(name, tr("limit of {tool}", tool=rule.tool_name), tr("none"), _limit(rule), OTHER)


# what saving would change


@frozen
class SavedChange:
    """What saving would change of what agents may do: a sentence for each agent, and the lines, the riskiest first.

    Agents for which the same changes have one sentence and one line each.

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
    groups = _groups(diff.agents)
    rows = sorted(((row, group) for group in groups for row in group[0].rows), key=lambda pair: pair[0].risk)
    gains = sum(row.opens for row, _ in rows)
    others = [ChangeRow("", one.what, one.before, one.after, OTHER) for one in diff.parts]
    others += [_together(line, group) for group in groups for line in _others(group[0])]
    lines = [*starmap(_risky, rows[:gains]), *others, *starmap(_risky, rows[gains:])][:MOST_SAVED_ROWS]
    counts = Counter([str(row.kind) for agent in diff.agents for row in agent.rows])
    return SavedChange(tuple(map(_group_words, groups)), AgentLines(lines, [""] * len(lines), counts), diff.opens)


def _groups(agents: Sequence[AgentDiff]) -> list[list[AgentDiff]]:
    """Agents for which the same changes, in the order of the first of each."""
    found: dict[object, list[AgentDiff]] = {}
    for agent in agents:
        rows = tuple((row.tool, row.operation, row.before, row.after, row.danger, row.word) for row in agent.rows)
        others = tuple(line._replace(agent_id="") for line in _others(agent))
        found.setdefault((agent.is_new, agent.is_gone, rows, others), []).append(agent)
    return list(found.values())


def _together(line: ChangeRow, group: Sequence[AgentDiff]) -> ChangeRow:
    if len(group) < 2:
        return line
    names = tuple(agent.agent_id for agent in group)
    return line._replace(agent_id=counted(len(names), "agent", "agents"), agents=names)


def _risky(row: RightChange, group: Sequence[AgentDiff]) -> ChangeRow:
    line = _together(_operation(row), group)
    return line._replace(what=f"{line.what} ({tr(DANGER_WORDS[row.danger])})") if row.danger else line


def _group_words(group: Sequence[AgentDiff]) -> str:
    """`researcher gains 2`, or `8 agents, each: gains 2`."""
    told = _agent_words(group[0])
    if len(group) == 1:
        return f"{group[0].agent_id} {told}"
    return tr("{agents}, each: {what}", agents=counted(len(group), "agent", "agents"), what=told)


def _agent_words(diff: AgentDiff) -> str:
    """`gains 2 (1 privileged), loses 1; 1 limit changed`."""
    gains = [row for row in diff.rows if row.opens and row.kind is not ChangeKind.FREE]
    dangers = Counter([row.danger for row in gains if row.danger])
    counts, asks_now = diff.counts(), sum(row.kind is ChangeKind.ASKS and not row.opens for row in diff.rows)
    said = [tr("is new")] if diff.is_new else [tr("is deleted")] if diff.is_gone else []
    if gains:
        marked = ", ".join(f"{count:,} {tr(DANGER_WORDS[danger])}" for danger, count in dangers.items())
        said.append(tr("gains {count:,}", count=len(gains)) + (f" ({marked})" if marked else ""))
    if lost := counts.get(ChangeKind.OFF):
        said.append(tr("loses {count:,}", count=lost))
    if free := counts.get(ChangeKind.FREE):
        said.append(counted(free, "no longer asks first", "no longer ask first"))
    if asks_now:
        said.append(counted(asks_now, "asks first now", "ask first now"))
    if others := sum(1 for _ in _others(diff)):
        said.append(counted(others, "other change", "other changes"))
    return ", ".join(said) or tr("may do what it could before: what was ticked has no effect yet")


@frozen
class ReplayLines:
    """The recorded calls that would be decided differently, newest first; the counts are of all of them."""

    lines: AgentLines
    differing: int
    decided: int


def replay_lines(found: Replay) -> ReplayLines:
    """The calls in lines."""
    lacking = "  " + tr("(not all arguments are known)")
    rows = [
        ChangeRow(
            one.call.agent,
            f"{one.call.called}  {one.call.arguments}{lacking if one.lacks else ''}",
            tr(STANDING_WORDS[one.before]),
            f"{tr(STANDING_WORDS[one.after])}: {one.reason}".replace("`", ""),
            OTHER,
            one.before,
            one.after,
        )
        for one in found.calls
    ]
    return ReplayLines(AgentLines(rows, [""] * len(rows), Counter()), found.differing, found.looked_at)


def _operation(row: RightChange) -> ChangeRow:
    what = f"{row.tool}.{row.operation}" if row.operation else row.tool
    now, then = tr(STANDING_WORDS[row.before]), tr(STANDING_WORDS[row.after])
    if row.after is RightState.ON and row.word is not RightWord.ALLOW:
        then = tr("{state}: {word}", state=then, word=right_words(row.word))
    return ChangeRow(row.agent_id, what, now, then, str(row.kind), row.before, row.after)


def _sources(sources: Sequence[str] | None) -> str:
    return tr("every source") if sources is None else ", ".join(sources) or tr("none")


def _capabilities(capabilities: Sequence[Capability]) -> str:
    """With what each reaches: a wider list of the same kind is a change too."""
    reaches = [
        (type(one).__name__, one.text or (tr("nothing") if one.scope is not None else "")) for one in capabilities
    ]
    return ", ".join(f"{name} ({reach})" if reach else name for name, reach in reaches) or tr("none")


def _limit(rule: ToolRule) -> str:
    kind = rule.rule_type
    if isinstance(kind, RequiresConsent):
        covers = tr("asks, unless a grant covers the scope {scope}", scope=kind.scope)
        asks = covers if kind.scope else tr("asks, unless a grant covers it")
        named = ", ".join(sorted(rule.operations or ()))
        return tr("only {operations}: {sentence}", operations=named, sentence=asks) if named else asks
    return sentence(PlacedRule(rule, None)) or rule.kind
