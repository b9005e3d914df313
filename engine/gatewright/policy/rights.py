"""The app's boxes of one agent, and the edits that tick them one by one or by a preset.

It has more than 450 lines because reading, ticking and explaining a box follow the same rules.

The values are arranged by tool, so that each of a thousand tools costs one small step. The file stays readable: the app
edits one AllowedOperations rule per tool, the only one or the one with the app's id, and leaves an author's several
rules alone.

To turn an operation off, the app removes it from its rule for the tool. To turn a tool off, it removes the tool from
``tools``; the tool's rules stay, and a new tick restores what they list. If ``catalog:ID`` gives the tool, the other
tools of that catalog take its place by name; later ones then stay off. Turning everything on again keeps the list;
*reset* removes the app's rule and the tool's ``approvals`` keys; *ask first* is an ``approvals`` key. A preset leaves
all other rules alone: exclusions by an author and denials by ``[defaults]`` stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from gatewright.base.errors import EditRefused
from gatewright.policy.agentedit import agent_of
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Edit
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import ANY_TOOL, AllowedOperations, ToolRule
from gatewright.policy.rulematch import with_settings
from gatewright.policy.verdict import (
    TIER_DEFAULTS,
    SafetyTier,
    Verdict,
    deciding_keys,
    names_tool,
    pick_tools,
    selector_of,
    split_name,
)

APP_RULE_PREFIX = "app:"
TIERS = tuple(str(tier) for tier in SafetyTier)


class Boxes:
    """The agent's own list, rules and ``approvals``; ``agent`` is the agent with all changes so far.

    Tick each tool at most once, since ``tick`` ignores the rules that an earlier tick added.
    """

    def __init__(self, policy: Policy, agent: Agent, catalog: Iterable[ToolFacts]) -> None:
        self._policy, self._agent = policy, agent
        self._catalog = tuple(catalog)
        self._facts = pick_tools(self._catalog, agent.tools)
        self._listed: dict[str, list[str]] | None = None if agent.tools is None else _by_name(agent.tools)
        self._rules: dict[int, ToolRule] = dict(enumerate(agent.tool_rules))
        self._new_rules: list[ToolRule] = []
        self._limits: dict[str, list[int]] = {}
        for index, rule in enumerate(agent.tool_rules):
            if isinstance(rule.rule_type, AllowedOperations):
                self._limits.setdefault(split_name(rule.tool_name)[0], []).append(index)
        self._approvals = dict(agent.approvals)

    @property
    def agent(self) -> Agent:
        """The agent with all changes; the same object if nothing differs."""
        tools = None if self._listed is None else tuple(name for held in self._listed.values() for name in held)
        before = self._agent.tools
        if tools is not None and before is not None and sorted(tools) == sorted(before):
            tools = before  # only other majors of a tool moved
        rules = (*self._rules.values(), *self._new_rules)
        after = replace(self._agent, tools=tools, tool_rules=rules, approvals=self._approvals)
        return self._agent if after == self._agent else after

    @property
    def tools(self) -> tuple[ToolFacts, ...]:
        """The tools that the agent could have, with the policy's own settings for them."""
        return tuple(with_settings(self._policy, facts) for facts in self._facts.values())

    def facts(self, tool: str) -> ToolFacts:
        """The facts of one of ``tools``. Raises EditRefused for an unknown name."""
        found = self._facts.get(tool)
        if found is None:
            raise EditRefused(f"no tool `{tool}`")
        return with_settings(self._policy, found)

    # boxes

    def ticks(self, facts: ToolFacts) -> frozenset[str]:
        """The operations with a tick."""
        return self._rest_after(self._limits_on(facts), facts) if self._is_listed(facts) else frozenset()

    def could(self, facts: ToolFacts) -> frozenset[str]:
        """The operations that can get a tick: no rule of an author excludes them."""
        app_rule = self.app_rule(facts)
        return self._rest_after([index for index in self._limits_on(facts) if index != app_rule], facts)

    def waiting(self, facts: ToolFacts) -> frozenset[str]:
        """The operations to turn on together with the tool: those that its rules still list, else all."""
        every = frozenset(operation.name for operation in facts.operations)
        return every if self._is_listed(facts) else self._rest_after(self._limits_on(facts), facts) or every

    def app_rule(self, facts: ToolFacts) -> int | None:
        """The index of the AllowedOperations rule that the app edits; None if it would add one."""
        found = [i for i in self._limits_on(facts) if not self._rules[i].conditions]
        found = [i for i in found if self._rules[i].tool_name != ANY_TOOL]
        if len(found) == 1:
            return found[0]
        return next((i for i in found if (self._rules[i].rule_id or "").startswith(APP_RULE_PREFIX)), None)

    def tick(self, facts: ToolFacts, wanted: frozenset[str]) -> None:
        """Turn exactly these operations on. Raises EditRefused if an author's rule forbids one."""
        if wanted:
            self._refuse_if_limited(facts, wanted)
        self.tick_what_can_be(facts, wanted)

    def tick_what_can_be(self, facts: ToolFacts, wanted: frozenset[str]) -> frozenset[str]:
        """Turn on those operations that an author's rules permit, and return the others."""
        can = wanted & self.could(facts)
        if not can:
            self._take_off(facts)
        elif can != self.ticks(facts):
            if not self._is_listed(facts):
                self._explicit_list().setdefault(facts.name, []).append(facts.name)
            self._keep(facts, can)
        return wanted - can

    def forget(self, facts: ToolFacts) -> None:
        """Remove the app's rule and the ``approvals`` keys of the tool."""
        index = self.app_rule(facts)
        if index is not None:
            del self._rules[index]
            self._limits[facts.name].remove(index)
        for key in (facts.name, *(f"{facts.name}.{name}" for name in facts.operation_names)):
            self._approvals.pop(key, None)

    # approvals

    def approval(self, facts: ToolFacts, operation: OperationFacts) -> Verdict:
        """The verdict of the most specific ``approvals`` key, else of the tier."""
        return self._approval(facts, operation.name, operation.tier)

    def own_approval(self, facts: ToolFacts, operation: OperationFacts) -> str | None:
        """The agent's own key that decides the operation; None if something else decides."""
        own, everyone = self._approvals, self._policy.defaults.approvals
        for key in deciding_keys(facts, operation.name, operation.tier):
            if key in own:
                return key
            if key in everyone:
                return None
        return None

    def ask(self, facts: ToolFacts, operation: str, *, on: bool) -> None:
        """Set or clear *ask first* for an operation (``""``: for the tool), with as few keys as possible.

        A denial by ``[defaults]`` stays: if one key for the tool would lift it, the other operations get keys of their
        own.
        """
        held, denied = dict(self._approvals), [op for op in facts.operations if self._stays_denied(facts, op)]
        key = f"{facts.name}.{operation}" if operation else facts.name
        self._approvals.pop(key, None)
        tier = next((op.tier for op in facts.operations if op.name == operation), facts.tier)
        if on:
            self._approvals[key] = Verdict.ASK
        elif self._approval(facts, operation, tier) is Verdict.ASK:
            self._approvals[key] = Verdict.ALLOW
        if not all(self._stays_denied(facts, op) for op in denied):
            self._approvals = held
            for op in () if operation else facts.operations:
                if op.name and op not in denied:
                    self.ask(facts, op.name, on=on)

    def set_approvals(self, approvals: Mapping[str, Verdict]) -> None:
        """Replace all keys."""
        self._approvals = dict(approvals)

    def _stays_denied(self, facts: ToolFacts, operation: OperationFacts) -> bool:
        """Tell whether ``[defaults]`` deny the operation even without the agent's own denials."""
        everyone = self._policy.defaults.approvals
        for key in deciding_keys(facts, operation.name, operation.tier):
            if self._approvals.get(key, Verdict.DENY) is not Verdict.DENY:
                return False
            if key in everyone:
                return everyone[key] is Verdict.DENY
        return False

    def _approval(self, facts: ToolFacts, operation: str, tier: SafetyTier) -> Verdict:
        own, everyone = self._approvals, self._policy.defaults.approvals
        for key in deciding_keys(facts, operation, tier):
            if key in own:
                return own[key]
            if key in everyone:
                return everyone[key]
        return TIER_DEFAULTS[tier]

    # the list of tools

    def _is_listed(self, facts: ToolFacts) -> bool:
        if self._listed is None:
            return self._policy.defaults.unlisted_tools is Verdict.ALLOW and not facts.outmoded
        if selector_of(facts.origin) in self._listed:
            return True
        return any(names_tool(name, facts) for name in self._listed.get(facts.name, ()))

    def _explicit_list(self) -> dict[str, list[str]]:
        """The list of tools in writing; an agent without a list may have had every tool."""
        if self._listed is None:
            held = self._policy.defaults.unlisted_tools is Verdict.ALLOW
            chosen = pick_tools(self._catalog, None).values() if held else ()
            self._listed = _by_name(facts.name for facts in chosen if not facts.outmoded)
        return self._listed

    def _spell_out(self, catalog_id: str) -> None:
        """Write the tools of a catalog by their names in place of ``catalog:ID``, so that one of them can go."""
        listed, selector = self._explicit_list(), selector_of(catalog_id)
        if selector in listed:
            names = [facts.name for facts in self._facts.values() if facts.origin == catalog_id]
            rows = (names if name == selector else [name] for name in listed)
            self._listed = {name: listed.get(name, [name]) for row in rows for name in row}

    def _take_off(self, facts: ToolFacts) -> None:
        self._spell_out(facts.origin)
        listed = self._explicit_list()
        rest = [name for name in listed.pop(facts.name, ()) if not names_tool(name, facts)]
        if rest:
            listed[facts.name] = rest

    # the app's rules

    def _limits_on(self, facts: ToolFacts) -> list[int]:
        """The AllowedOperations rules for the tool, in file order."""
        named = self._limits.get(facts.name, ())
        found = [i for i in named if names_tool(self._rules[i].tool_name, facts)]
        return sorted((*found, *self._limits.get(ANY_TOOL, ())))

    def _rest_after(self, limits: Iterable[int], facts: ToolFacts) -> frozenset[str]:
        left = frozenset(operation.name for operation in facts.operations)
        for index in limits:
            left &= self._operations_of(index)
        return left

    def _operations_of(self, index: int) -> frozenset[str]:
        kind = self._rules[index].rule_type
        assert isinstance(kind, AllowedOperations)
        return kind.operations

    def _keep(self, facts: ToolFacts, wanted: frozenset[str]) -> None:
        if not facts.has_operations:
            return
        index = self.app_rule(facts)
        if index is not None:
            self._rules[index] = replace(self._rules[index], rule_type=AllowedOperations(wanted))
        elif wanted != self.could(facts):
            limited = bool(self._limits_on(facts))
            name = f"{APP_RULE_PREFIX}{facts.name}" if limited else None
            self._new_rules.append(ToolRule(facts.name, AllowedOperations(wanted), rule_id=name))

    def _refuse_if_limited(self, facts: ToolFacts, wanted: frozenset[str]) -> None:
        app_rule = self.app_rule(facts)
        for index in self._limits_on(facts):
            if index != app_rule and (missing := wanted - self._operations_of(index)):
                named = ", ".join(f"`{name}`" for name in sorted(missing))
                where = f"tool rule {index + 1} of `{self._agent.agent_id}`"
                raise EditRefused(f"{named} of `{facts.name}` is turned off by {where}")


def _by_name(tools: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for written in tools:
        found.setdefault(split_name(written)[0], []).append(written)
    return found


_WORDS = {Verdict.ALLOW: "turn on without asking", Verdict.ASK: "ask first for", Verdict.DENY: "turn off"}


def tick_operations(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_name: str, operations: Iterable[str], *, on: bool
) -> Edit:
    """Turn operations of one tool on or off. Raises EditRefused if an author's rule forbids it."""
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    facts, chosen = boxes.facts(tool_name), frozenset(operations)
    ticked = boxes.ticks(facts)
    boxes.tick(facts, (ticked | chosen) if on else (ticked - chosen))
    named = ", ".join(f"`{name}`" for name in sorted(chosen) if name)
    label = f"turn {'on' if on else 'off'} {named} of `{tool_name}`" if named else _tool_label(tool_name, on=on)
    return _edit(f"{label} for `{agent_id}`", agent, boxes)


def tick_tool(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_name: str, *, on: bool) -> Edit:
    """Turn a whole tool off, or on with the operations that it had before, else with all operations.

    Raises EditRefused if an author's rule forbids it.
    """
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    facts = boxes.facts(tool_name)
    boxes.tick(facts, boxes.waiting(facts) if on else frozenset())
    return _edit(f"{_tool_label(tool_name, on=on)} for `{agent_id}`", agent, boxes)


def ask_first(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_name: str, operation: str, *, on: bool
) -> Edit:
    """Make a tool (``operation`` = ``""``) or one operation ask first, or stop asking, by an ``approvals`` key."""
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    boxes.ask(boxes.facts(tool_name), operation, on=on)
    key = f"{tool_name}.{operation}" if operation else tool_name
    return _edit(f"{'ask first' if on else 'do not ask'} for `{key}` of `{agent_id}`", agent, boxes)


def reset_tools(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_names: Sequence[str]) -> Edit:
    """Remove the app's rules and the ``approvals`` keys of some tools, so that their own defaults apply again."""
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    for name in tool_names:
        boxes.forget(boxes.facts(name))
    named = f"`{tool_names[0]}`" if len(tool_names) == 1 else f"{len(tool_names)} tools"
    return _edit(f"reset {named} for `{agent_id}`", agent, boxes)


def tick_many(
    policy: Policy,
    catalog: Sequence[ToolFacts],
    agent_id: str,
    targets: Mapping[str, Sequence[str]],
    *,
    on: bool,
    as_before: bool = False,
) -> Edit:
    """Turn operations of many tools on or off in one edit; operations that ask still ask afterwards.

    With several tools, operations that an author's rules exclude stay off; with one tool they raise EditRefused.
    ``as_before``: a tool that is off, and named with all its operations, comes back as with ``tick_tool``.
    """
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    _tick(boxes, _as_before(boxes, targets) if on and as_before else targets, on=on)
    return _edit(f"turn {'on' if on else 'off'} {_targets_in_words(targets)} for `{agent_id}`", agent, boxes)


def set_many(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, targets: Mapping[str, Sequence[str]], verdict: Verdict
) -> Edit:
    """Allow, ask first for, or turn off operations of many tools in one edit; see ``tick_many`` for what stays off.

    One ``approvals`` key for a whole tool replaces keys for its operations.
    """
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    _tick(boxes, targets, on=verdict is not Verdict.DENY)
    if verdict is not Verdict.DENY:
        for name, operations in targets.items():
            _ask(boxes, boxes.facts(name), operations, asks=verdict is Verdict.ASK)
    return _edit(f"{_WORDS[verdict]} {_targets_in_words(targets)} for `{agent_id}`", agent, boxes)


def count_excluded(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, targets: Mapping[str, Sequence[str]]
) -> int:
    """Count the operations that cannot be turned on, since an author's rules of the agent exclude them."""
    boxes = Boxes(policy, agent_of(policy, agent_id), catalog)
    return sum(len(frozenset(names) - boxes.could(boxes.facts(tool))) for tool, names in targets.items())


def _as_before(boxes: Boxes, targets: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """The targets, without operations that a tool lacked before somebody turned it off."""
    found: dict[str, Sequence[str]] = {}
    for name, operations in targets.items():
        facts = boxes.facts(name)
        whole = len(operations) == len(facts.operations)
        found[name] = tuple(boxes.waiting(facts).intersection(operations)) if whole else operations
    return found


def _tick(boxes: Boxes, targets: Mapping[str, Sequence[str]], *, on: bool) -> None:
    for name, operations in targets.items():
        facts, chosen = boxes.facts(name), frozenset(operations)
        ticked = boxes.ticks(facts)
        wanted = (ticked | chosen) if on else (ticked - chosen)
        if len(targets) == 1:
            boxes.tick(facts, wanted)
        else:
            boxes.tick_what_can_be(facts, wanted)


def _ask(boxes: Boxes, facts: ToolFacts, operations: Sequence[str], *, asks: bool) -> None:
    rows = {operation.name: operation for operation in facts.operations}
    unknown = [name for name in operations if name not in rows]
    if unknown:
        raise EditRefused(f"`{facts.name}` has no operation `{unknown[0]}`")
    if all(_asks(boxes, facts, rows[name]) == asks for name in operations):
        return
    whole = facts.has_operations and rows.keys() == set(operations)
    for key in ("", *operations) if whole else operations:
        concerned = facts.operations if not key else (rows[key],)
        if not all(_asks(boxes, facts, row) == asks for row in concerned):
            boxes.ask(facts, key, on=asks)


def _asks(boxes: Boxes, facts: ToolFacts, row: OperationFacts) -> bool | None:
    """Tell whether ``approvals`` make the row ask; None if the agent's own key denies it, which a new setting
    replaces.
    """
    verdict = boxes.approval(facts, row)
    if verdict is Verdict.DENY:
        return False if boxes.own_approval(facts, row) is None else None
    return verdict is Verdict.ASK


def _targets_in_words(targets: Mapping[str, Sequence[str]]) -> str:
    count = sum(map(len, targets.values()))
    if len(targets) > 1:
        return f"{count:,} operations of {len(targets):,} tools"
    for tool, operations in targets.items():
        if tuple(operations) == ("",):
            return f"`{tool}`"
        return f"`{operations[0]}` of `{tool}`" if count == 1 else f"{count} operations of `{tool}`"
    return "nothing"


def _tool_label(tool_name: str, *, on: bool) -> str:
    return f"turn {'on' if on else 'off'} `{tool_name}`"


def _edit(name: str, before: Agent, boxes: Boxes) -> Edit:
    return Edit(name, (AgentChange(before, boxes.agent),))


class Preset(StrEnum):
    """The presets of the menu, the widest first."""

    EVERYTHING = "everything"
    STANDARD = "standard"
    READ_ONLY = "read only"
    NOTHING = "nothing"


_WANTED = {
    Preset.EVERYTHING: dict.fromkeys(SafetyTier, Verdict.ALLOW),
    Preset.STANDARD: dict.fromkeys(SafetyTier, Verdict.ALLOW) | {SafetyTier.PRIVILEGED: Verdict.ASK},
    Preset.READ_ONLY: dict.fromkeys(SafetyTier, Verdict.DENY) | {SafetyTier.READ_ONLY: Verdict.ALLOW},
    Preset.NOTHING: dict.fromkeys(SafetyTier, Verdict.DENY),
}


def preset_verdict(preset: Preset, tier: SafetyTier) -> Verdict:
    """The preset's verdict on an operation of that tier, unless another layer is stricter."""
    return _WANTED[preset][tier]


def preset_edit(policy: Policy, catalog: Sequence[ToolFacts], agent_ids: Sequence[str], preset: Preset) -> Edit:
    """Give one or several agents a preset in one edit. Raises EditRefused for an unknown agent."""
    agents = [agent_of(policy, agent_id) for agent_id in dict.fromkeys(agent_ids)]
    changes = tuple(AgentChange(agent, with_preset(policy, catalog, agent, preset)) for agent in agents)
    named = f"`{agents[0].agent_id}`" if len(agents) == 1 else f"{len(agents)} agents"
    return Edit(f"preset {preset} for {named}", tuple(change for change in changes if change.before != change.after))


def with_preset(policy: Policy, catalog: Sequence[ToolFacts], agent: Agent, preset: Preset) -> Agent:
    """The agent with the preset; the same object if nothing differs."""
    boxes = Boxes(policy, agent, catalog)
    tools = boxes.tools
    wanted = _WANTED[preset]
    for facts in tools:
        on = frozenset(row.name for row in facts.operations if wanted[row.tier] is not Verdict.DENY)
        boxes.tick_what_can_be(facts, on)
    if preset is not Preset.NOTHING:
        boxes.set_approvals(dict(_approvals(policy, tools, preset)))
    return boxes.agent


def _approvals(policy: Policy, tools: Sequence[ToolFacts], preset: Preset) -> Iterator[tuple[str, Verdict]]:
    """The agent's keys for the preset: for tiers, and for tools and operations that ``[defaults]`` set."""
    everyone, wanted = policy.defaults.approvals, _WANTED[preset]
    for tier in SafetyTier:
        stands = everyone.get(str(tier), TIER_DEFAULTS[tier])
        if wanted[tier] is not Verdict.DENY and Verdict.DENY is not stands is not wanted[tier]:
            yield str(tier), wanted[tier]
    if any(key not in set(SafetyTier) for key in everyone):
        for facts in tools:
            yield from _tool_keys(policy, facts, preset)


def _tool_keys(policy: Policy, facts: ToolFacts, preset: Preset) -> Iterator[tuple[str, Verdict]]:
    everyone = policy.defaults.approvals
    for row in facts.operations:
        key = f"{facts.name}.{row.name}" if row.name else facts.name
        stands = everyone.get(key, everyone.get(facts.name))
        wanted = preset_verdict(preset, row.tier)
        if wanted is not Verdict.DENY and stands not in {None, Verdict.DENY, wanted}:
            yield key, wanted
