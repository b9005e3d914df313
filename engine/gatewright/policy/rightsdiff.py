"""The difference that an edit makes to rights, row by row, between two policies.

It compares boxes after all layers; limits, sources, capabilities and policy rules it compares as written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields, replace
from enum import StrEnum

from gatewright.base.frozen import frozen
from gatewright.policy.capability import Capability
from gatewright.policy.document import Agent, CatalogType, Confine, Delegate, PlaceUse, Policy, Source
from gatewright.policy.right import OperationRight, RightWord, ToolRight
from gatewright.policy.rule import AllowedOperations, ToolRule
from gatewright.policy.verdict import Permission, SafetyTier, Verdict, is_more_open


class RightState(StrEnum):
    """The state of a box after all layers. ``OVERRULED``: ticked, but another layer turns it off."""

    OFF = "off"
    OVERRULED = "off by another layer"
    ASKS = "asks first"
    ON = "on"


class ChangeKind(StrEnum):
    """The kind of a change; ``WRITTEN``: the box differs, but the model sees no difference."""

    ON = "turned on"
    ASKS = "asks first now"
    FREE = "no longer asks"
    OFF = "turned off"
    WRITTEN = "off either way"


@frozen
class RightChange:
    """One operation that changes; an empty ``operation`` means a tool without operations.

    ``danger``: ``privileged``, or ``deletes``, else empty. ``word``: the right after the edit.
    """

    agent_id: str
    tool: str
    operation: str
    before: RightState
    after: RightState
    danger: str = ""
    word: RightWord = field(default=RightWord.OFF, compare=False)

    @property
    def kind(self) -> ChangeKind:
        """The kind of the change."""
        match self.after:
            case RightState.OFF | RightState.OVERRULED:
                return ChangeKind.OFF if self.before in _SEEN else ChangeKind.WRITTEN
            case RightState.ASKS:
                return ChangeKind.ASKS
            case RightState.ON:
                return ChangeKind.FREE if self.before is RightState.ASKS else ChangeKind.ON

    @property
    def opens(self) -> bool:
        """True if the agent can do more: the operation is newly on or newly asks, or no longer asks."""
        return _REACH[self.after] > _REACH[self.before]

    @property
    def risk(self) -> int:
        """A sort key, the riskiest first: dangerous gains, operations that no longer ask, other gains, the rest."""
        if not self.opens:
            return 3
        if self.danger:
            return 0
        return 1 if self.kind is ChangeKind.FREE else 2


@frozen
class AgentDiff:
    """All changes of one agent; None for sources means every source.

    ``agent_id`` is the id after the edit, or before it for a removed agent; ``is_new``, ``is_gone``: the agent was
    added or removed.
    """

    agent_id: str
    rows: tuple[RightChange, ...] = ()
    limits_gone: tuple[ToolRule, ...] = ()
    limits_come: tuple[ToolRule, ...] = ()
    sources: tuple[tuple[str, ...] | None, tuple[str, ...] | None] | None = None
    capabilities: tuple[tuple[Capability, ...], tuple[Capability, ...]] | None = None
    is_new: bool = False
    is_gone: bool = False

    @property
    def is_empty(self) -> bool:
        """True if no difference deserves a row."""
        return self == AgentDiff(self.agent_id)

    def counts(self) -> Mapping[ChangeKind, int]:
        """The number of rows of each kind."""
        return Counter(row.kind for row in self.rows)

    @property
    def opens(self) -> bool:
        """True if the agent may do more somewhere; an unclear change counts as more."""
        if any(row.opens for row in self.rows) or self.limits_gone:
            return True
        if self.sources is not None:
            before, after = self.sources
            if before is not None and (after is None or not set(after) <= set(before)):
                return True
        return self.capabilities is not None and not set(self.capabilities[1]) <= set(self.capabilities[0])


@frozen
class PartChange:
    """A difference outside the agents, in words; ``opens``: it may permit more."""

    what: str
    before: str
    after: str
    opens: bool


@frozen
class PolicyDiff:
    """The differences between two policies in what agents may do, agent by agent and outside the agents."""

    agents: tuple[AgentDiff, ...]
    parts: tuple[PartChange, ...]

    @property
    def is_empty(self) -> bool:
        """True if every agent may do the same."""
        return not (self.agents or self.parts)

    @property
    def opens(self) -> bool:
        """True if somebody may do more somewhere; an unclear change counts as more."""
        return any(one.opens for one in (*self.agents, *self.parts))


_SEEN = {RightState.ON, RightState.ASKS}
_REACH = {RightState.OFF: 0, RightState.OVERRULED: 0, RightState.ASKS: 1, RightState.ON: 2}
NONE = "none"


def policy_diff(
    old: Policy,
    new: Policy,
    was: Callable[[str], Mapping[str, ToolRight]],
    now: Callable[[str], Mapping[str, ToolRight]],
) -> PolicyDiff:
    """Compare two policies; ``was`` and ``now`` return the rights of an agent under each."""
    known = {agent.identity: agent for agent in old.agents.values()}
    in_agents_alone = replace(old, agents=new.agents) == new
    found: list[AgentDiff] = []
    left = dict(old.agents)
    for agent in new.agents.values():
        before = old.agents.get(agent.agent_id) or known.get(agent.identity)
        if before is None:
            rows = tuple(rights_changes(agent.agent_id, {}, now(agent.agent_id)))
            found.append(AgentDiff(agent.agent_id, rows, is_new=True))
            continue
        left.pop(before.agent_id, None)
        if not (in_agents_alone and before == agent):
            found.append(agent_diff(before, agent, was(before.agent_id), now(agent.agent_id)))
    for agent_id in left:
        gone = (row for row in rights_changes(agent_id, {}, was(agent_id)) if row.after in _SEEN)
        found.append(AgentDiff(agent_id, tuple([_reverse(row) for row in gone]), is_gone=True))
    return PolicyDiff(tuple([diff for diff in found if not diff.is_empty]), tuple(_parts(old, new)))


def _reverse(row: RightChange) -> RightChange:
    return replace(row, before=row.after, after=row.before)


def agent_diff(old: Agent, new: Agent, was: Mapping[str, ToolRight], now: Mapping[str, ToolRight]) -> AgentDiff:
    """Compare an agent before and after an edit, given its right on every tool before and after."""
    gone, come = _limits(old, new)
    return AgentDiff(
        new.agent_id,
        tuple(rights_changes(new.agent_id, was, now)),
        gone,
        come,
        None if old.sources == new.sources else (old.sources, new.sources),
        None if old.capabilities == new.capabilities else (old.capabilities, new.capabilities),
    )


def state_of(right: OperationRight) -> RightState:
    """The state of one operation."""
    if right.verdict is Verdict.DENY:
        return RightState.OVERRULED if right.ticked else RightState.OFF
    return RightState.ASKS if right.verdict is Verdict.ASK else RightState.ON


def rights_changes(agent_id: str, was: Mapping[str, ToolRight], now: Mapping[str, ToolRight]) -> Iterator[RightChange]:
    """Every operation of the tools in ``now`` whose tick or verdict differs; if ``was`` lacks one, it was off."""
    for name, right in now.items():
        held = was.get(name)
        if held is right:
            continue
        old = {row.operation: row for row in held.operations} if held is not None else {}
        for row in right.operations:
            one = old.get(row.operation)
            if one is None:
                before, is_same = RightState.OFF, not row.ticked
            else:
                before, is_same = state_of(one), one.ticked == row.ticked and one.verdict is row.verdict
            if not is_same:
                yield RightChange(agent_id, name, row.operation, before, state_of(row), _danger(right, row), row.word)


def _danger(right: ToolRight, row: OperationRight) -> str:
    if row.tier is SafetyTier.PRIVILEGED:
        return "privileged"
    destroys = any(one.name == row.operation and one.destroys for one in right.facts.operations)
    return "deletes" if destroys else ""


def _limits(old: Agent, new: Agent) -> tuple[tuple[ToolRule, ...], tuple[ToolRule, ...]]:
    if old.tool_rules == new.tool_rules:
        return (), ()
    was, now = _other_rules(old), _other_rules(new)
    return tuple(rule for rule in was if rule not in now), tuple(rule for rule in now if rule not in was)


def _other_rules(agent: Agent) -> list[ToolRule]:
    return [rule for rule in agent.tool_rules if not isinstance(rule.rule_type, AllowedOperations)]


# besides the agents


_OTHERS = {
    "default": "[policy] default",
    "roots": "[workspace] roots",
    "web": "[workspace] web",
    "shell": "[workspace] shell",
    "endpoints": "[workspace] endpoints",
    "compositions": "[[compositions]]",
    "memory": "[workspace] memory",
    "questions": "[workspace] questions",
    "closed": "[workspace] closed",
}


def _parts(old: Policy, new: Policy) -> Iterator[PartChange]:
    was, now = ({one.source_id: one for one in policy.sources} for policy in (old, new))
    for name in dict.fromkeys((*was, *now)):
        yield from _source_parts(name, was.get(name), now.get(name))
    rules, others = ({rule.name: rule for rule in policy.rules} for policy in (old, new))
    for name in dict.fromkeys((*rules, *others)):
        before, after = rules.get(name), others.get(name)
        if before != after:
            words = [NONE if one is None else str(one.effect) for one in (before, after)]
            opens = before is not None or (after is not None and after.effect is Verdict.ALLOW)
            yield PartChange(f"policy rule {name}", words[0], _after_words(*words), opens)
    for agent_id, agent in new.agents.items():
        yield from _delegation_parts(old.agents.get(agent_id, Agent(agent_id)), agent)
    for row in fields(old.defaults):
        before, after = getattr(old.defaults, row.name), getattr(new.defaults, row.name)
        if before != after:
            words = [str(one) for one in (before, after)] if isinstance(before, str | int) else ["", "changed"]
            yield PartChange(f"[defaults] {row.name}", words[0], words[1], opens=True)
    for name in dict.fromkeys((*old.tools, *new.tools)):
        if old.tools.get(name) != new.tools.get(name):
            sides = [NONE if policy.tools.get(name) is None else "set" for policy in (old, new)]
            yield PartChange(f"settings of {name}", sides[0], _after_words(*sides), opens=True)
    yield from _confine_part("[workspace] shell", old.shell.confine, new.shell.confine)
    yield from _catalog_parts(old, new)
    old = replace(old, shell=replace(old.shell, confine=new.shell.confine))
    for name, words in _OTHERS.items():
        if getattr(old, name) != getattr(new, name):
            yield PartChange(words, "", "changed", opens=True)


def _catalog_parts(old: Policy, new: Policy) -> Iterator[PartChange]:
    """The changes in a server's places, one row each; all other changes of a catalog in one row."""
    for after in new.catalogs:
        before = old.catalog(after.catalog_id)
        if before is None:
            continue
        name = f"catalog {after.catalog_id}"
        yield from _confine_part(name, before.confine, after.confine)
        was, now = before.places or {}, after.places or {}
        if (before.places is None) != (after.places is None) and not (was or now):
            sides = ["not accepted" if one.places is None else "none" for one in (before, after)]
            yield PartChange(f"{name}: places", *sides, opens=before.places is None)
        for place in dict.fromkeys((*was, *now)):
            one, other = was.get(place), now.get(place)
            if one is not other:
                sides = [NONE if use is None else str(use) for use in (one, other)]
                yield PartChange(f"{name}: place {place}", *sides, opens=_USES.index(other) > _USES.index(one))
    ours = {one.catalog_id: one for one in new.catalogs}
    held = {
        one.catalog_id: replace(one, confine=same.confine, places=same.places) if same is not None else one
        for one, same in ((one, ours.get(one.catalog_id)) for one in old.catalogs)
    }
    for name in dict.fromkeys((*held, *ours)):
        if held.get(name) != ours.get(name):
            what = "removed" if name not in ours else "changed" if name in held else "added"
            if what == "added" and ours[name].kind is CatalogType.MCP:
                yield PartChange(f"server {name}", "", "added; it is used only after you trust it", opens=True)
            else:
                yield PartChange(f"tools of {name}", "", what, opens=name in ours)


_NOT_NAMED = "no more than its caller"
_DELEGATED = {Delegate.OWN: "its own rights", Delegate.INTERSECT: "its own rights, within those of its caller"}


def _delegation_parts(old: Agent, new: Agent) -> Iterator[PartChange]:
    for name in dict.fromkeys((*old.sub_agents, *new.sub_agents)):
        before, after = (_DELEGATED[one.delegate] if name in one.sub_agents else _NOT_NAMED for one in (old, new))
        if before != after:
            opens = name in new.sub_agents and new.delegate is Delegate.OWN
            yield PartChange(f"sub-agent {name} of {new.agent_id}", before, after, opens)


_USES = (None, PlaceUse.READ, PlaceUse.SNAPSHOT, PlaceUse.WRITE)


def _confine_part(what: str, before: Confine, after: Confine) -> Iterator[PartChange]:
    if before is not after:
        yield PartChange(f"{what}: confine", str(before), str(after), opens=after is Confine.NONE)


def _source_parts(name: str, old: Source | None, new: Source | None) -> Iterator[PartChange]:
    if old is None or new is None:
        yield PartChange(f"source {name}", *((NONE, "new") if old is None else ("there", NONE)), opens=old is None)
        return
    was, now = ({rule.pattern: rule.permission for rule in reversed(one.permission_rules)} for one in (old, new))
    for pattern in dict.fromkeys((*was, *now)):
        yield from _level_part(f"{name}: {pattern}", was.get(pattern), now.get(pattern))
    yield from _level_part(f"{name}: every other path", old.default_permission, new.default_permission)
    order, other = (
        [rule.pattern for rule in one.permission_rules if rule.pattern in was.keys() & now] for one in (old, new)
    )
    if order != other:
        yield PartChange(f"{name}: order of the rules", "", "changed", opens=True)
    for row in ("base_path", "max_file_bytes", "required_tools", "kind"):
        before, after = getattr(old, row), getattr(new, row)
        if before != after:
            words = ("", "changed") if isinstance(before, tuple) else (str(before), str(after))
            yield PartChange(f"{name}: {row}", *words, opens=True)


def _level_part(what: str, before: Permission | None, after: Permission | None) -> Iterator[PartChange]:
    if before is after:
        return
    if after is None:
        opens = True  # rules below decide now
    elif before is None:
        opens = after is not Permission.NONE
    else:
        opens = is_more_open(after, before)
    was, now = ("no rule" if level is None else str(level) for level in (before, after))
    yield PartChange(what, was, now, opens)


def _after_words(before: str, after: str) -> str:
    """The state after a change; *changed* if the words before and after are equal."""
    return "changed" if before == after else after
