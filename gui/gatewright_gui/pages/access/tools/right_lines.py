"""What a plan for rights would change, in lines. The worker process makes them: nothing of Qt is loaded."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from gatewright.workspace.api import (
    AgentDiff,
    ChangeKind,
    RequiresConsent,
    RightChange,
    RightState,
    RightWord,
    ToolRule,
    Verdict,
    frozen,
)
from gatewright_gui.pages.access.tools.limits import PlacedRule, sentence
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.impact import capabilities_words, sources_words
from gatewright_gui.session.verdict import right_words

MOST_ROWS = 20_000
"""More rows nobody reads; the counts are of all of them."""
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
    """Changes of one agent: the lines that there is room for, what each is found by, and how many of each kind."""

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
        yield ChangeRow(name, tr("sources"), sources_words(diff.sources[0]), sources_words(diff.sources[1]), OTHER)
    if diff.capabilities is not None:
        now, then = diff.capabilities
        yield ChangeRow(name, tr("capabilities"), capabilities_words(now), capabilities_words(then), OTHER)
    for rule in diff.limits_gone:
        yield ChangeRow(name, tr("limit of {tool}", tool=rule.tool_name), limit_words(rule), tr("none"), OTHER)
    for rule in diff.limits_come:
        yield ChangeRow(name, tr("limit of {tool}", tool=rule.tool_name), tr("none"), limit_words(rule), OTHER)


def _operation(row: RightChange) -> ChangeRow:
    what = f"{row.tool}.{row.operation}" if row.operation else row.tool
    now, then = tr(STANDING_WORDS[row.before]), tr(STANDING_WORDS[row.after])
    if row.after is RightState.ON and row.word is not RightWord.ALLOW:
        then = tr("{state}: {word}", state=then, word=right_words(row.word))
    return ChangeRow(row.agent_id, what, now, then, str(row.kind), row.before, row.after)


def limit_words(rule: ToolRule) -> str:
    """A limit in a few words."""
    kind = rule.rule_type
    if isinstance(kind, RequiresConsent):
        covers = tr("asks, unless a grant covers the consent group {group}", group=kind.scope)
        asks = covers if kind.scope else tr("asks, unless a grant covers it")
        named = ", ".join(sorted(rule.operations or ()))
        return tr("only {operations}: {sentence}", operations=named, sentence=asks) if named else asks
    return sentence(PlacedRule(rule, None)) or rule.kind
