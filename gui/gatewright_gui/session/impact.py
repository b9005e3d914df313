"""What an edit, or saving, changes of what agents can do, as sentences whose numbers `comparison` counts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields

from gatewright.workspace.api import (
    Agent,
    AgentDiff,
    Capability,
    Effect,
    Policy,
    ToolRight,
    ToolRule,
    Verdict,
    frozen,
    policy_diff,
)
from gatewright_gui.qt.language import counted, forms, mark, tr
from gatewright_gui.session.effects import DANGEROUS

_BREAK = "\ue000"
"""Stands before and after the verb of a sentence until it is taken apart."""
_WAYS = 2
"""Most operations that a sentence names."""
LimitWords = Callable[[ToolRule], str]
HARM = Effect.DELETE, Effect.RUN, Effect.SEND, Effect.CHANGE, Effect.READ
"""The worst effect first."""


@frozen
class Gain:
    """The kind of a change of what an agent can do. ``more``: it can do more. ``asks``: after asking; where it can do
    less, that it must ask now. ``again``: what it could do before with another operation.
    """

    effect: Effect
    more: bool
    asks: bool
    again: bool = False

    @property
    def rank(self) -> tuple[bool, int, bool, bool]:
        """A sort key, the worst first."""
        return not self.more, HARM.index(self.effect), self.asks, self.again


@frozen
class ImpactLine:
    """One sentence about what agents can do now: all of them the same.

    ``files``, ``blocks``: the number of those that it is about; ``counts``: False where calls name no file.
    ``ways``: the operations; ``is_uneven``: not each of them changes for every file. ``limited``: some of their calls
    are denied or ask. ``elsewhere``: files in no source are not counted; ``partial``: nor are all of the others.
    ``text``: the whole sentence, for what is told as it is written; then ``gain`` is None.
    """

    agents: tuple[str, ...]
    gain: Gain | None = None
    files: int = 0
    blocks: int = 0
    counts: bool = True
    ways: tuple[str, ...] = ()
    limited: bool = False
    elsewhere: bool = False
    partial: bool = False
    is_uneven: bool = False
    text: str = ""
    opens: bool = True

    @property
    def rank(self) -> tuple[bool, tuple[bool, int, bool, bool], int]:
        """A sort key, the worst first: effects that are gained, what may open something, all others."""
        rank = self.gain.rank if self.gain is not None else (not self.opens, len(HARM), False, False)
        return rank[0], rank, -(self.files + self.blocks)

    @property
    def is_dangerous(self) -> bool:
        """True if somebody can delete, send or run more than before."""
        return self.gain is not None and self.gain.more and self.gain.effect in DANGEROUS

    @property
    def parts(self) -> tuple[str, str, str]:
        """The sentence: up to its verb, the verb, and the rest."""
        before, verb, after = (*self._marked.split(_BREAK, 2), "", "")[:3]
        return before, verb, after

    @property
    def sentence(self) -> str:
        """`archivist can now delete 3 files without asking (file.delete)`."""
        return self._marked.replace(_BREAK, "")

    @property
    def _marked(self) -> str:
        who, gain = _names(self.agents), self.gain
        if gain is None:
            return self.text.format(who=who) if self.agents else self.text
        what = f"{_BREAK}{tr(_VERBS[gain.effect])}{_BREAK}{self._objects}"
        ways = counted(len(self.ways), *_WAY_WORDS[gain.more, gain.asks])
        ways = tr("up to {ways}", ways=ways) if self.is_uneven else ways
        said = [tr((_AGAIN if gain.again else _CHANGES)[gain.more, gain.asks], who=who, what=what, ways=ways)]
        if self.counts and not (self.files or self.blocks):
            said.append(tr("no such file is there yet"))
        if self.limited and gain.more:
            said.append(tr("within limits"))
        return f"{', '.join(said)} ({_ways_words(self.ways)})"

    @property
    def _objects(self) -> str:
        effect = Effect.CHANGE if self.gain is None else self.gain.effect
        parts = [counted(self.files, "file", "files")] if self.files else []
        parts += [counted(self.blocks, "block", "blocks")] if self.blocks else []
        told = tr(" and ").join(parts) or tr("files")
        told = tr("at least {count}", count=told) if self.partial and parts else told
        told = tr("{files} and others in no source", files=told) if self.elsewhere else told
        return " " + tr(_OBJECTS[effect][self.counts], files=told)


_VERBS = {
    Effect.DELETE: mark("delete"),
    Effect.RUN: mark("run"),
    Effect.SEND: mark("send"),
    Effect.CHANGE: mark("change"),
    Effect.READ: mark("read"),
}
_OBJECTS = {
    Effect.DELETE: (mark("data"), mark("{files}")),
    Effect.RUN: (mark("programs"), mark("programs that name {files}")),
    Effect.SEND: (mark("to other hosts"), mark("{files} to other hosts")),
    Effect.CHANGE: (mark("data"), mark("{files}")),
    Effect.READ: (mark("data"), mark("{files}")),
}
"""The object of each verb, where calls name no file that could be counted, and where they do."""
_CHANGES = {
    (True, False): mark("{who} can now {what} without asking"),
    (True, True): mark("{who} can now {what} after asking"),
    (False, True): mark("{who} must now ask first to {what}"),
    (False, False): mark("{who} can no longer {what}"),
}
_AGAIN = {
    (True, False): mark("{who} can {what} in {ways} without asking"),
    (True, True): mark("{who} can {what} in {ways} after asking"),
    (False, True): mark("{who} must now ask first to {what} in {ways}"),
    (False, False): mark("{who} can still {what}, in {ways}"),
}
"""What could be done before in another way too."""
_WAY_WORDS = {
    (True, False): forms("more way", "more ways"),
    (True, True): forms("more way", "more ways"),
    (False, True): forms("way", "ways"),
    (False, False): forms("fewer way", "fewer ways"),
}


def _names(agents: Sequence[str]) -> str:
    if len(agents) < 3:
        return tr(" and ").join(agents)
    return tr("{agent} and {others}", agent=agents[0], others=counted(len(agents) - 1, "other", "others"))


def _ways_words(ways: Sequence[str]) -> str:
    if len(ways) <= _WAYS:
        return ", ".join(ways)
    return tr("{operation} and {count:,} more", operation=ways[0], count=len(ways) - 1)


@frozen
class Impact:
    """The difference that an edit makes to what agents can do, the worst first.

    ``idle``: boxes that are ticked now and have no effect yet. ``cut``: lines that are left out.
    """

    lines: tuple[ImpactLine, ...]
    idle: int = 0
    cut: int = 0

    @property
    def opens(self) -> bool:
        """True if somebody may do more somewhere, or if that cannot be told."""
        return any(line.gain.more if line.gain is not None else line.opens for line in self.lines)

    @property
    def idle_words(self) -> str:
        """`1 tick has no effect yet.`; empty without one."""
        return counted(self.idle, *_IDLE) if self.idle else ""

    @property
    def nothing(self) -> str:
        """The sentence where no line is."""
        return " ".join(filter(None, (tr("No one's access changes."), self.idle_words)))


_IDLE = forms("tick has no effect yet.", "ticks have no effect yet.")


@frozen
class ModelImpact:
    """Operations that models see more and fewer than before, and the difference in tokens, of all agents together."""

    more: int
    fewer: int
    tokens: int
    exact: bool
    models: int

    @property
    def words(self) -> str:
        """`the model sees 1 more operation (+31 tokens)`; empty without a difference."""
        if not self.models:
            return ""
        said = [counted(self.more, "more operation", "more operations")] if self.more else []
        said += [counted(self.fewer, "operation fewer", "operations fewer")] if self.fewer else []
        sign = "+" if self.tokens >= 0 else "-"
        tokens = tr("{sign}{count:,} tokens", sign=sign, count=abs(self.tokens))
        tokens = tokens if self.exact else tr("about {tokens}", tokens=tokens)
        if not said:
            return tr("the model sees other texts ({tokens})", tokens=tokens)
        what = tr(" and ").join(said)
        text = tr("the model sees {what} ({tokens})") if self.models == 1 else tr("the models see {what} ({tokens})")
        return text.format(what=what, tokens=tokens)


@frozen
class CallLine:
    """A recorded call that would be decided differently."""

    agent: str
    call: str
    before: Verdict
    after: Verdict
    reason: str


@frozen
class CallImpact:
    """The newest recorded calls, decided by both policies; the lines are the newest of those that differ."""

    lines: tuple[CallLine, ...]
    differing: int
    decided: int

    @property
    def words(self) -> str:
        """`2 of 400 recorded calls change`; empty without a recorded call."""
        if not self.decided:
            return ""
        one, many = (
            tr("{count:,} of {every:,} recorded calls changes"),
            tr("{count:,} of {every:,} recorded calls change"),
        )
        return (one if self.differing == 1 else many).format(count=self.differing, every=self.decided)


def agent_pairs(old: Policy, new: Policy) -> Iterator[tuple[Agent | None, Agent | None]]:
    """Agents before and after, also under another name; None where one is not there."""
    known, left = {agent.identity: agent for agent in old.agents.values()}, dict(old.agents)
    for agent in new.agents.values():
        before = old.agents.get(agent.agent_id) or known.get(agent.identity)
        if before is not None:
            left.pop(before.agent_id, None)
        yield before, agent
    yield from ((agent, None) for agent in left.values())


# what is told as it is written


_TOLD = frozenset(
    {"agent_id", "description", "tools", "approvals", "tool_rules", "sources", "capabilities", "mode"}
    | {"observe_until_s", "sub_agents", "delegate", "identity"}
)
"""Fields of an agent that other lines tell of, or that decide nothing."""


def policy_lines(old: Policy, new: Policy, limit_words: LimitWords) -> Iterator[tuple[ImpactLine, tuple[str, ...]]]:
    """Limits, sources, grants and what is outside of the agents, each with the agents that it is about."""
    diff = policy_diff(old, new, _no_rights, _no_rights)
    for agent in diff.agents:
        if not (agent.is_new or agent.is_gone):
            yield from ((line, (agent.agent_id,)) for line in _agent_written(agent, limit_words))
    for was, now in agent_pairs(old, new):
        if was is not None and now is not None:
            for row in fields(Agent):
                if row.name not in _TOLD and getattr(was, row.name) != getattr(now, row.name):
                    yield ImpactLine((), text=tr("{who}: {what} changed", who="{who}", what=row.name)), (now.agent_id,)
    for part in diff.parts:
        sides = f": {part.before} \N{RIGHTWARDS ARROW} {part.after}" if part.before else f": {part.after}"
        yield ImpactLine((), text=f"{part.what}{sides}", opens=part.opens), ()


def _no_rights(_agent_id: str) -> Mapping[str, ToolRight]:
    return {}


def _agent_written(diff: AgentDiff, limit_words: LimitWords) -> Iterator[ImpactLine]:
    def line(text: str, *, opens: bool, **values: object) -> ImpactLine:
        escaped = {name: str(value).replace("{", "{{").replace("}", "}}") for name, value in values.items()}
        return ImpactLine((), text=tr(text, who="{who}", **escaped), opens=opens)

    if diff.sources is not None:
        was, now = map(sources_words, diff.sources)
        opens = diff.sources[0] is not None and not set(diff.sources[1] or ()) <= set(diff.sources[0])
        opens = opens or diff.sources[1] is None
        yield line(mark("{who}: sources are now {now} (before: {was})"), opens=opens, was=was, now=now)
    if diff.capabilities is not None:
        was, now = map(capabilities_words, diff.capabilities)
        opens = not set(diff.capabilities[1]) <= set(diff.capabilities[0])
        yield line(mark("{who}: granted are now {now} (before: {was})"), opens=opens, was=was, now=now)
    for rule in diff.limits_gone:
        yield line(mark("{who}, {tool}: no longer {limit}"), opens=True, tool=rule.tool_name, limit=limit_words(rule))
    for rule in diff.limits_come:
        yield line(mark("{who}, {tool}: now {limit}"), opens=False, tool=rule.tool_name, limit=limit_words(rule))


def sources_words(sources: Sequence[str] | None) -> str:
    """Name the sources of an agent."""
    return tr("every source") if sources is None else ", ".join(sources) or tr("none")


def capabilities_words(capabilities: Sequence[Capability]) -> str:
    """Name what an agent is granted, with what each reaches: a wider list of the same kind is a change too."""
    reaches = [
        (type(one).__name__, one.text or (tr("nothing") if one.scope is not None else "")) for one in capabilities
    ]
    return ", ".join(f"{name} ({reach})" if reach else name for name, reach in reaches) or tr("none")
