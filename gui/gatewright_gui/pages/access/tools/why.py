"""The reasons for a row in words: one sentence, at most four steps that lead to it, and the details behind them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

from gatewright.workspace.api import (
    Address,
    Agent,
    Layer,
    OperationRight,
    Policy,
    Reason,
    RightWord,
    Source,
    ToolFacts,
    ToolRight,
    Verdict,
    frozen,
    place_rights,
    selector_of,
    sources_reached,
)
from gatewright_gui.pages.access.tools.limits import limits_of
from gatewright_gui.pages.access.tools.notes import OBSERVED, PROBLEM, Note
from gatewright_gui.pages.access.tools.row_state import (
    depending_words,
    facts_of,
    no_effect_words,
    operation_reasons,
    reasons_of,
    verdict_of,
)
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.observed import Noted
from gatewright_gui.session.path_share import Share
from gatewright_gui.session.readings import Reading
from gatewright_gui.session.value_words import value_words
from gatewright_gui.session.verdict import permission_words

MOST_STEPS = 4
MOST_NAMED = 4
"""Patterns in one sentence; more of them are counted instead."""
UNTICKED = frozenset({Layer.TOOLS, Layer.RULE})
LAYER_WORDS = {
    Layer.TOOLS: mark("tick"),
    Layer.RULE: mark("tool rule"),
    Layer.CAPABILITY: mark("capability"),
    Layer.SOURCE: mark("source"),
    Layer.POLICY: mark("policy"),
    Layer.APPROVALS: mark("approval"),
}
Mark = Literal["on", "off", "stop", "ask", "level", "limit", "rest", "note", "observed", "problem"]
DETAILS: frozenset[Mark] = frozenset({"note", "observed", "problem"})
"""The marks of what is no step."""


@frozen
class ShownRow:
    """The current row of the tree with all that is known of it. ``group``: the words of a row that is no tool;
    ``ground``: what its tools work on; ``origin``: the catalog that they come from.
    """

    agent: Agent | None = None
    tool: ToolRight | None = None
    operation: OperationRight | None = None
    share: Share | None = None
    noted: Noted | None = None
    reading: Reading | None = None
    group: str = ""
    ground: str = ""
    origin: str = ""

    @property
    def name(self) -> str:
        """The name of the row, as calls spell it."""
        if self.tool is None:
            return self.group
        name = self.tool.facts.name
        return f"{name}.{self.operation.operation}" if self.operation is not None else name


@frozen
class Step:
    """A step towards the verdict, or a detail. ``link``: the words of its place; empty: its line of the policy file,
    ``line`` once that is known. ``part``: the tab that it leads to, where it has no address.
    """

    mark: Mark
    text: str
    address: Address | None = None
    link: str = ""
    part: str = ""
    line: int | None = None
    file: str = ""

    @property
    def where(self) -> str:
        """The words of the place that the step leads to; empty for none."""
        return self.link or (tr("line {line}", line=self.line) if self.line else "")


# the files of a source, by the rules that count


@frozen
class Places:
    """The verdicts on the files of one source: ``never`` holds first, then ``named``, then ``rest``."""

    source: Source
    never: tuple[str, ...]
    named: tuple[tuple[Verdict, tuple[str, ...]], ...]
    rest: Verdict
    rules: tuple[int, ...]
    """The rules that make a difference, by their index."""

    @property
    def sentence(self) -> str:
        """All of it in one sentence, such as ``Asks first in drafts/, never anywhere else.``"""
        said = [_SAYS[verdict] for verdict, _ in self.named]
        parts = [tr(words, places=_places(names)) for words, (_, names) in zip(said, self.named, strict=True)]
        closed = self._never_within if self.rest is Verdict.DENY else self.never
        never = tr("never {places}", places=_places(closed)) if closed else ""
        if not parts:
            text = tr(_ALL[self.rest])
            return _sentence(tr("{verdict}, but {never}", verdict=text, never=never) if never else text)
        listed = ", ".join((*parts, tr(_ELSE[self.rest])))
        return _sentence("; ".join(filter(None, (never, listed))))

    @property
    def _never_within(self) -> tuple[str, ...]:
        """Those of ``never`` that may lie in a place of ``named``: the rest is closed anyway."""
        open_places = [name for _, names in self.named for name in names]
        return tuple(
            one
            for one in self.never
            if not one.endswith("/")
            or any(not name.endswith("/") or one.startswith(name) or name.startswith(one) for name in open_places)
        )


_SAYS = {
    Verdict.ALLOW: mark("without asking {places}"),
    Verdict.ASK: mark("asks first {places}"),
    Verdict.DENY: mark("never {places}"),
}
_ELSE = {
    Verdict.ALLOW: mark("without asking everywhere else"),
    Verdict.ASK: mark("asks first everywhere else"),
    Verdict.DENY: mark("never anywhere else"),
}
_ALL = {Verdict.ALLOW: mark("without asking"), Verdict.ASK: mark("asks first"), Verdict.DENY: mark("never")}


def places_of(policy: Policy, agent: Agent, tool: ToolRight, row: OperationRight) -> Places | None:
    """The verdicts on files where they hang on the levels of one source alone and few patterns tell them."""
    op = facts_of(tool, row)
    if not row.by_path or row.by_block or row.by_value or row.by_text or op.path_actions or op.disk_actions:
        return None
    sources = sources_reached(policy, agent, tool.facts, op)
    place = place_rights(policy, agent.agent_id, tool).get(row.operation)
    if len(sources) != 1 or place is None or place.conditions:
        return None
    source = sources[0]
    found = [(rule.pattern, place.verdict(source, rule.permission, ())) for rule in source.permission_rules]
    return _few_places(source, found, place.verdict(source, source.default_permission, ()))


def _few_places(source: Source, found: Sequence[tuple[str, Verdict]], rest: Verdict) -> Places | None:
    """The first rule that matches decides: leave out what an earlier rule covers, and what says the same as the rest
    and stands before nothing that differs. None where the order of what is left cannot be told in a sentence.
    """
    kept: list[tuple[int, str, Verdict]] = []
    for index, (pattern, verdict) in enumerate(found):
        if not any(_covers(one, pattern) for _, one, _ in kept):
            kept.append((index, pattern, verdict))
    told: list[tuple[int, str, Verdict]] = []
    for index, pattern, verdict in reversed(kept):
        if verdict is not rest or any(other is not rest and not _apart(pattern, one) for _, one, other in told):
            told.insert(0, (index, pattern, verdict))
    first = next((at for at, (_, _, verdict) in enumerate(told) if verdict is not Verdict.DENY), len(told))
    never, named = told[:first], told[first:]
    if len(told) > MOST_NAMED or not all(
        verdict is other or _apart(pattern, one) or _covers(one, pattern)
        for at, (_, pattern, verdict) in enumerate(named)
        for _, one, other in named[at + 1 :]
    ):
        return None
    groups = tuple(
        (verdict, tuple(_name(one) for _, one, _ in rows)) for verdict, rows in groupby(named, lambda one: one[2])
    )
    return Places(source, tuple(_name(one) for _, one, _ in never), groups, rest, tuple(index for index, _, _ in told))


def _folder(pattern: str) -> str | None:
    """The one path that a pattern is about, with all below it; None where it may be any number of places."""
    path = pattern.removesuffix("/**").removesuffix("/")
    is_bound = pattern.startswith("/") or "/" in path or pattern.endswith("/**")
    return path.removeprefix("/") if is_bound and path.strip("/") and not set(path) & set("*?[]!\\") else None


def _covers(one: str, other: str) -> bool:
    """True if all that the other pattern matches is matched by the first."""
    outer, inner = _folder(one), _folder(other)
    return one == other or (outer is not None and inner is not None and f"{inner}/".startswith(f"{outer}/"))


def _apart(one: str, other: str) -> bool:
    """True if no path matches both."""
    known = _folder(one) is not None and _folder(other) is not None
    return known and not _covers(one, other) and not _covers(other, one)


def _name(pattern: str) -> str:
    folder = _folder(pattern)
    return f"{folder}/" if folder is not None and pattern.endswith(("/", "/**")) else pattern


def _places(names: Sequence[str]) -> str:
    *most, last = names
    listed = tr("{names} and {last}", names=", ".join(most), last=last) if most else last
    if all(name.endswith("/") for name in names):
        return tr("in {places}", places=listed)
    return tr("for {places}", places=listed)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


# the sentence


def sentence_of(row: ShownRow, places: Places | None) -> str:
    """The effect of all layers together on a row; empty where the row is no tool. ``places``: of its one operation."""
    if row.tool is None:
        return ""
    lacks = no_effect_words(row.agent, row.tool, row.operation) if row.agent is not None else ""
    said = f"{lacks[:1].upper()}{lacks[1:]}." if lacks else verdict_sentence(row.tool, row.operation, places)
    return f"{said} {row.noted.sentence}" if row.noted is not None else said


_ON = mark("{count} of its {every} operations are on. Choose one to see why.")
_SOME_ASK = mark("{count} of its {every} operations are on, and {asks} of them ask first. Choose one to see why.")
_ON_AND_ASK = mark("{count} of its {every} operations are on, and every call asks first. Choose one to see why.")


def verdict_sentence(tool: ToolRight, operation: OperationRight | None, places: Places | None = None) -> str:
    """The verdict of all layers on an operation, or on a tool with all of them, and the reason for it."""
    rows = [(facts_of(tool, one), one) for one in ((operation,) if operation is not None else tool.operations)]
    if not _are_alike(tool, [one for _, one in rows]):
        on = [one for _, one in rows if not one.is_hidden]
        asks = sum(one.word is RightWord.ASK for one in on)
        words = _ON_AND_ASK if asks == len(on) else _SOME_ASK if asks else _ON
        return tr(words, count=len(on), every=len(rows), asks=asks)
    verdict = verdict_of(tool, operation)
    reason = next((one.text for one in reasons_of(tool, operation) if one.verdict is verdict), "").replace("`", "")
    if verdict is Verdict.DENY:
        if not any(one.ticked for _, one in rows):
            return tr("Off: not ticked.")
        return tr("No effect: {reason}.", reason=reason) if reason else tr("No effect.")
    if places is not None:
        return places.sentence
    depending = next((text for one in rows if (text := depending_words(*one))), "")
    if verdict is Verdict.ASK and " asks first " in reason:  # the step below says by what
        return tr("Asks first, and it {depends}.", depends=depending) if depending else tr("Asks first.")
    if verdict is Verdict.ASK and reason:
        asks = tr("Asks first: {reason}, and it {depends}.", reason=reason, depends=depending)
        return asks if depending else tr("Asks first: {reason}.", reason=reason)
    if depending:
        return tr("On, but it {depends}.", depends=depending)
    limited = any(one.limits for _, one in rows)
    return tr("On, within its limits.") if limited else tr("On, without asking.")


def _are_alike(tool: ToolRight, rows: Sequence[OperationRight]) -> bool:
    """Tell whether one sentence holds for all of these operations."""
    return len({"" if one.is_hidden else (one.word, value_words(facts_of(tool, one), one).short) for one in rows}) < 2


def only_operation(row: ShownRow) -> OperationRight | None:
    """The operation of the row, or the one that a tool without any stands for."""
    if row.tool is None or row.operation is not None:
        return row.operation
    return row.tool.operations[0] if len(row.tool.operations) == 1 else None


# the steps


def steps_of(row: ShownRow, policy: Policy, places: Places | None) -> tuple[Step, ...]:
    """The steps that lead to the verdict, at most `MOST_STEPS`; layers that say nothing are left out."""
    if row.tool is None or row.agent is None:
        return ()
    tool, rows = row.tool, (row.operation,) if row.operation is not None else row.tool.operations
    ticked = [one for one in rows if one.ticked]
    reasons = tuple(dict.fromkeys((*tool.reasons, *(one for op in ticked or rows for one in operation_reasons(op)))))
    found = [_tick(row.agent, tool.facts, rows, reasons)]
    denied = [one for one in reasons if one.verdict is Verdict.DENY and (ticked or one.layer not in UNTICKED)]
    found += [Step("stop", one.text, one.address) for one in denied]
    only = only_operation(row)
    if only is None and ticked and _are_alike(tool, rows):  # the sentence speaks of all of them at once
        only = ticked[0]
    if only is not None and not only.is_hidden:
        found += _levels(policy, row.agent, tool, only, places)
    asks = [Step("ask", one.text, one.address) for one in reasons if one.verdict is Verdict.ASK]
    rest = found.pop() if found[-1].mark == "rest" else None
    found += asks if ticked else ()
    limits = limits_of(row.agent, tool.facts, row.operation and row.operation.operation, policy.sources_of(row.agent))
    if limits and ticked and not denied:
        found.append(Step("limit", tr("limits: {limits}", limits=limits), link=tr("Limits"), part="limits"))
    if rest is not None:
        found.append(rest)
    elif ticked and len(found) == 1 and not any(depending_words(facts_of(tool, one), one) for one in ticked):
        found.append(Step("rest", tr("nothing else limits it")))
    return _at_most(found)


def _tick(agent: Agent, facts: ToolFacts, rows: Sequence[OperationRight], reasons: Sequence[Reason]) -> Step:
    """The first step: the box and where it is written, which may be a whole catalog in the list of tools."""
    listed: Address = ("agents", agent.agent_id, "tools")
    on, whole = sum(one.ticked for one in rows), selector_of(facts.origin)
    if on and whole in (agent.tools or ()):
        listed = (*listed, (agent.tools or ()).index(whole))
        if on == len(rows):
            return Step("on", tr("ticked by `{catalog}`, all tools of the catalog", catalog=whole), listed)
        words = tr("{count} of {every} operations are ticked, by `{catalog}`", count=on, every=len(rows), catalog=whole)
        return Step("on", words, listed)
    if on == len(rows):
        return Step("on", tr("ticked"), listed)
    if on:
        return Step("on", tr("{count} of {every} operations are ticked", count=on, every=len(rows)), listed)
    closed = next((one for one in reasons if one.layer in UNTICKED and one.verdict is Verdict.DENY), None)
    if closed is None:
        return Step("off", tr("not ticked"), listed)
    return Step("off", tr("not ticked: {reason}", reason=closed.text), closed.address or listed)


def _levels(
    policy: Policy, agent: Agent, tool: ToolRight, row: OperationRight, places: Places | None
) -> Iterator[Step]:
    """The steps of what arguments decide: the levels of files, else blocks and values. The sentence says how."""
    op = facts_of(tool, row)
    if places is not None:
        source = places.source
        where: Address = ("sources", source.source_id)
        if len(places.rules) <= 2:
            for index in places.rules:
                rule, link = source.permission_rules[index], tr("rule {number}", number=index + 1)
                text = tr("`{pattern}` is {level}", pattern=rule.pattern, level=permission_words(rule.permission))
                yield Step("level", text, (*where, "permission_rules", index), link)
        else:
            text = tr(
                "{count} rules of `{source}` decide, file by file", count=len(places.rules), source=source.source_id
            )
            yield Step("level", text, (*where, "permission_rules", places.rules[0]), tr("rules"))
        text = tr("everything else is {level}", level=permission_words(source.default_permission))
        yield Step("rest", text, (*where, "default_permission"), tr("default"))
        return
    reached = sources_reached(policy, agent, tool.facts, op)[:2] if row.by_path else ()
    for source in reached:
        text = tr("the rules of `{source}` decide, file by file", source=source.source_id)
        yield Step("level", text, ("sources", source.source_id, "default_permission"), tr("levels"))
    if row.by_block and not row.by_path:
        yield Step("level", tr("the level of the block decides, block by block"), link=tr("Memory"), part="memory")
    elif not reached and depending_words(op, row):
        yield Step("level", tr("the arguments decide, call by call"))


def _at_most(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The first and the last stay; of those between them what is too many is one step."""
    steps = tuple(dict.fromkeys(steps))
    if len(steps) <= MOST_STEPS:
        return steps
    more = steps[MOST_STEPS - 2 : -1]
    words = tr("{count} more: {reasons}", count=len(more), reasons="; ".join(one.text for one in more))
    return (*steps[: MOST_STEPS - 2], replace(more[0], text=words), steps[-1])


def details_of(notes: Sequence[Note]) -> tuple[Step, ...]:
    """Everything else that holds for a row; what is wrong or only observed comes first."""
    marks: dict[str, Mark] = {PROBLEM: "problem", OBSERVED: "observed"}
    found = [
        Step(marks.get(note.layer, "note"), tr("{layer}: {text}", layer=tr(note.layer), text=note.text), note.address)
        for note in notes
    ]
    return tuple(sorted(found, key=lambda one: one.mark == "note"))
