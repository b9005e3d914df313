"""One agent compiled: its rights, and the plans and shapes of its tools, immutable to readers; also the digest of a
policy.

After an edit an agent keeps, tool by tool, those parts of its earlier snapshot (``base``) that the edit cannot affect.
The digest covers all that the policy says, agent by agent, and ignores the layout of its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from gatewright.base.errors import GatewrightError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import digest
from gatewright.base.late import once
from gatewright.compile.operation import UNUSABLE, Key, Offer
from gatewright.compile.plan import (
    Observation,
    ShapeCache,
    ToolPlan,
    ToolShape,
    compile_tool,
    has_conditions,
    shape_of,
    unusable,
)
from gatewright.compile.rule_test import BoundRule
from gatewright.policy.document import Agent, Policy, SourceType
from gatewright.policy.layer import Layers
from gatewright.policy.right import Layer, Reason, ToolFacts, ToolRight
from gatewright.policy.rulematch import UNKNOWN, address_of, policy_rule_misfits
from gatewright.policy.verdict import Mode, Verdict, pick_tools
from gatewright.tools.tool import Tool

if TYPE_CHECKING:
    from gatewright.compile.rulebook import AgentRules, WideRule


def policy_digest(policy: Policy, held: AgentDigests) -> str:
    """SHA-256 of all that the policy says, 64 hexadecimal digits; ``held`` caches the digests of agents."""
    agents = {agent_id: held.of(agent) for agent_id, agent in policy.agents.items()}
    return digest({**_table(replace(policy, agents={})), "agents": agents})


class AgentDigests:
    """Caches the digest of each agent while the agent stays the same value, since most edits change one of many."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Agent, str]] = {}

    def of(self, agent: Agent) -> str:
        """The digest of all that the policy says about the agent."""
        found = self._held.get(agent.agent_id)
        if found is None or found[0] is not agent:
            found = self._held[agent.agent_id] = (agent, digest(_table(agent)))
        return found[1]


def _table(value: object) -> dict[str, Any]:
    """A dataclass as a table, with its class as ``kind``."""
    kind = type(value)
    table: dict[str, Any] = {"kind": kind.__name__}
    for name in _names(kind):
        table[name] = _value(getattr(value, name))
    return table


@lru_cache(maxsize=256)
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.compare)


def _value(value: object) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, tuple):
        return [_value(item) for item in cast("tuple[object, ...]", value)]
    if isinstance(value, frozenset):
        return _in_order(cast("frozenset[object]", value))
    if isinstance(value, Mapping):
        return {str(key): _value(item) for key, item in cast("Mapping[object, object]", value).items()}
    return [_value(item) for item in cast("list[object]", value)] if isinstance(value, list) else _table(value)


@lru_cache(maxsize=4096)
def _in_order(names: frozenset[object]) -> list[str]:
    """The names in order.

    The list is cached, since thousands of rules share few sets of names, and must stay unchanged.
    """
    return sorted(str(name) for name in names)


TOOLS_AT_A_TIME = 16
"""The number of tools to compute rights for without a pause."""
_NO_TOOLS: frozenset[str] = frozenset()
_T = TypeVar("_T")
Chosen = Mapping[str, "ToolFacts"]
_Asked = tuple[tuple[str, ...], bool]
"""The majors that an agent lists, and True if it is barred from some tools."""
_NONE_HELD: frozenset[tuple[str, int]] = frozenset()


@frozen
class _Kept(Generic[_T]):
    """An attribute of an earlier snapshot, by tool name; the entries of ``stale`` tools no longer hold."""

    of: Mapping[str, _T]
    stale: frozenset[str]
    chosen: Chosen

    def without(self, touched: frozenset[str]) -> _Kept[_T]:
        """The same attribute with more stale tools."""
        return _Kept(self.of, self.stale | touched, self.chosen)

    def without_stale(self) -> dict[str, _T]:
        """The entries that still hold."""
        return {name: one for name, one in self.of.items() if name not in self.stale}

    def renew(self, make: Callable[[str], _T]) -> dict[str, _T]:
        """All entries in order, the stale ones computed again."""
        fresh = {name: make(name) for name in self.chosen.keys() & self.stale}
        return {**self.of, **fresh}


@dataclass(frozen=True)
class Ground:
    """The material to compile agents from; it holds no compiled agent, since each would keep its predecessor alive.

    ``held``: the tools that arrived after the policy, from which agents without a list of tools are barred.
    """

    policy: Policy
    offer: Offer
    shapes: ShapeCache = field(hash=False)
    held: frozenset[Key] = frozenset()
    choices: dict[_Asked, Chosen] = field(default_factory=dict["_Asked", Chosen], hash=False)

    @property
    def facts(self) -> tuple[ToolFacts, ...]:
        """The facts of every tool for the policy, as the policy declares the tool."""
        return self.offer.facts

    @property
    def tools(self) -> Mapping[Key, Tool]:
        """The tools by name and major, as the policy declares them."""
        return self.offer.tools

    def choose(self, agent: Agent) -> Chosen:
        """One major of each tool by bare name; agents that list the same majors share one object.

        A barred major never replaces another one.
        """
        held = self.held if agent.tools is None else _NONE_HELD
        asked = tuple(name for name in agent.tools or () if "@" in name), bool(held)
        found = self.choices.get(asked)
        if found is None:
            chosen = pick_tools((row for row in self.facts if (row.name, row.major) not in held), asked[0])
            if held:
                chosen = pick_tools(self.facts, ()) | chosen
            found = self.choices.setdefault(asked, chosen)
        return found

    def holding(self, agent: Agent, facts: ToolFacts) -> Reason | None:
        """The reason that bars the agent from a tool that arrived after the policy."""
        if agent.tools is not None or (facts.name, facts.major) not in self.held:
            return None
        text = f"`{facts.name}` came in after the policy, and agent `{agent.agent_id}` lists no tools"
        text += ": by `new_tools` it is held until somebody edits the policy or accepts new tools"
        return Reason(Layer.TOOLS, Verdict.DENY, "new-tool-held", text, ("defaults", "new_tools"))

    @once
    def misfits(self) -> Mapping[str, Reason]:
        """By tool name, the policy rule that closes it because it names an operation that none of its tools has."""
        return policy_rule_misfits(self.policy, self.facts)


class AgentSnapshot:
    """The rights of one agent, under one policy and one set of tools.

    ``base`` is the agent's earlier snapshot, ``touched`` the tools that may differ from it. ``checks`` and ``checked``
    belong to the self-check: its findings on each tool, here or earlier, and on all of them here. ``policy``: the one
    that this was compiled from; a later policy in force says the same about the agent. ``planned``: the tools
    compiled so far, by name; ``confinement``: the gate's words for how they run. ``enforced``: the agent without
    observing, where this one passes what is only noted; None: everything is enforced.
    """

    def __init__(
        self,
        ground: Ground,
        agent: Agent,
        base: AgentSnapshot | None = None,
        touched: frozenset[str] = _NO_TOOLS,
        enforced: AgentSnapshot | None = None,
    ) -> None:
        self.agent = agent
        self.enforced = enforced
        self.policy = ground.policy
        self.capabilities = agent.capabilities
        self.sources = ground.policy.places_of(agent)
        self.source_ids = tuple(one.source_id for one in self.sources if one.kind is SourceType.FILE)
        self.own_source_ids = tuple(one.source_id for one in self.sources if one.kind is SourceType.HOST)
        self.checks: dict[str, object] = {}
        self.checked: object = None
        self.confinement: dict[str, str] = {}
        self.conditions = ground.shapes.conditions
        self._ground = ground
        self.planned: dict[str, ToolPlan] = {}
        self._kept_rights: _Kept[ToolRight] | None = None
        self._kept_shapes: _Kept[ToolShape | None] | None = None
        self._kept_problems: _Kept[tuple[Reason, ...]] | None = None
        self._kept_told: tuple[_Kept[tuple[BoundRule, ...]], tuple[WideRule, ...]] | None = None
        self._old_hidden: frozenset[str] | None = None
        self._old_plans: dict[str, ToolPlan] = {}
        if base is not None:
            self._take(base, touched)

    @once
    def rights(self) -> Mapping[str, ToolRight]:
        """The right on every tool, hidden ones included, by bare name in the order of the registry."""
        for _ in self.rights_in_pieces():
            pass
        found: Mapping[str, ToolRight] = self.__dict__["rights"]
        return found

    def rights_in_pieces(self) -> Iterator[None]:
        """Compute ``rights``, with a pause after every few tools."""
        if "rights" in self.__dict__:
            return
        kept, chosen = self._kept_rights, self._majors
        alike = kept is not None and kept.chosen is chosen
        old = {} if kept is None else kept.of if alike else kept.without_stale()
        lacking = list(chosen.keys() & kept.stale if kept is not None and alike else chosen.keys() - old.keys())
        fresh: dict[str, ToolRight] = {}
        for number, name in enumerate(lacking, 1):
            fresh[name] = self._right(chosen[name], self.layers)
            if number % TOOLS_AT_A_TIME == 0:
                yield
        every = {**old, **fresh}
        self._settle("rights", "_kept_rights", every if alike else {name: every[name] for name in chosen})

    @property
    def rights_lacking(self) -> int:
        """The number of tools whose rights ``rights`` still has to compute."""
        if "rights" in self.__dict__:
            return 0
        kept, chosen = self._kept_rights, self._majors
        return len(chosen) if kept is None or kept.chosen is not chosen else len(chosen.keys() & kept.stale)

    @once
    def hidden_tools(self) -> frozenset[str]:
        """The names of the tools that the model does not see."""
        hidden = frozenset(name for name, right in self.rights.items() if not right.shown)
        old = self._old_hidden
        return old if old is not None and old == hidden else hidden

    @once
    def rules(self) -> AgentRules:
        """The tool rules for the agent's calls."""
        if self.enforced is not None:
            return self.enforced.rules
        from gatewright.compile.rulebook import AgentRules

        return AgentRules(self.agent, self.sources, self.rights)

    def rules_for_model(self, name: str) -> tuple[BoundRule, ...]:
        """The rules that the model reads at the tool; the same object after an edit that affects none of them."""
        found = self._for_model.get(name)
        return found if found is not None else self._for_model.setdefault(name, self.rules.rules_for_model(name))

    def plan(self, name: str) -> ToolPlan | None:
        """The plan of the tool with that bare name, hidden or not; None for an unknown one."""
        return self.planned.get(name) or self._make_plan(name)

    def plans(self) -> Iterator[ToolPlan]:
        """The plans of all tools, including the hidden ones."""
        for name in self.rights:
            plan = self.plan(name)
            if plan is not None:
                yield plan

    def tools(self) -> Iterator[Tool]:
        """All tools, including the hidden ones, as the policy declares them."""
        tools = self._ground.tools
        return (tools[name, right.facts.major] for name, right in self.rights.items())

    def shapes(self) -> Iterator[ToolShape]:
        """The shapes that the model sees, by tool."""
        return (shape for shape in self._shapes.values() if shape is not None)

    @once
    def problems(self) -> Mapping[str, tuple[Reason, ...]]:
        """The parts of the policy that misfit a tool, for each such tool."""
        kept = self._kept_problems
        if kept is None or kept.chosen is not self._majors:
            names, of = iter(self._majors), dict[str, tuple[Reason, ...]]()
        else:
            names, of = iter(self._majors.keys() & kept.stale), dict(kept.of)
        layers = self.__dict__.get("layers") or self._new_layers()
        of.update((name, self._problems_of(name, layers)) for name in names)
        found = {name for name, reasons in of.items() if reasons}
        whole = {name: of[name] for name in self._majors if name in found} if found else {}
        return self._settle("problems", "_kept_problems", whole)

    def rights_unkept(self) -> Mapping[str, ToolRight]:
        """The rights, cached only if somebody asked for them before."""
        if "rights" in self.__dict__ or self._kept_rights is not None:
            return self.rights
        layers = self._new_layers()
        return {name: self._right(facts, layers) for name, facts in self._majors.items()}

    def _take(self, base: AgentSnapshot, touched: frozenset[str]) -> None:
        self._kept_rights = base._keep("rights", base._kept_rights, touched)
        self._kept_shapes = base._keep("_shapes", base._kept_shapes, touched)
        self._kept_problems = base._keep("problems", base._kept_problems, touched)
        if base.__dict__.get("_for_model"):
            self._kept_told = _Kept(base._for_model, touched, base._majors), base._wide
        elif base._kept_told is not None:
            self._kept_told = base._kept_told[0].without(touched), base._kept_told[1]
        self._old_hidden = base.__dict__.get("hidden_tools")
        self._old_plans = {**base._old_plans, **base.planned}
        for name in touched:
            self._old_plans.pop(name, None)
        self.checks = base.checks

    def _keep(self, what: str, kept: _Kept[_T] | None, touched: frozenset[str]) -> _Kept[_T] | None:
        """The entries of an attribute that stay valid: its own, or those kept for it and not used yet."""
        held: Mapping[str, _T] | None = self.__dict__.get(what)
        if held is not None:
            return _Kept(held, touched, self._majors)
        return kept.without(touched) if kept is not None else None

    def _settle(self, name: str, kept: str, found: _T) -> _T:
        """Store the answer of the first of several threads, and release its sources."""
        first: _T = self.__dict__.setdefault(name, found)
        setattr(self, kept, None)
        return first

    @once
    def _majors(self) -> Chosen:
        return self._ground.choose(self.agent)

    @once
    def _shapes(self) -> Mapping[str, ToolShape | None]:
        """By tool, the shape that the model sees; None for a hidden tool."""
        kept = self._kept_shapes
        if kept is not None and kept.chosen is self._majors:
            found = kept.renew(self._shape)
        else:
            found = {name: self._shape(name) for name in self.rights}
        return self._settle("_shapes", "_kept_shapes", found)

    @once
    def _for_model(self) -> dict[str, tuple[BoundRule, ...]]:
        kept, wide = self._kept_told or (None, ())
        fits = kept is not None and kept.chosen is self._majors and wide == self._wide
        return self._settle("_for_model", "_kept_told", kept.without_stale() if kept is not None and fits else {})

    @once
    def _wide(self) -> tuple[WideRule, ...]:
        """The rules that also appear at tools which they do not name: changing one may affect any tool."""
        from gatewright.compile.rulebook import wide_rules

        return wide_rules(self.agent, self.sources, self.rights)

    def _make_plan(self, name: str) -> ToolPlan | None:
        right = self.rights.get(name)
        if right is None:
            return None
        plan = self._old_plans.pop(name, None)
        if plan is None:
            tool = self._ground.tools[name, right.facts.major]
            shape = self.__dict__.get("_shapes", {}).get(name)
            plan = self._observe(name, tool, right, shape)
            if plan is None:
                plan = compile_tool(self.layers, tool, right, self._ground.shapes, self.hidden_tools, shape)
        elif plan.hidden_tools is not self.hidden_tools:
            plan = replace(plan, hidden_tools=self.hidden_tools)
        return self.planned.setdefault(name, plan)

    def _observe(self, name: str, tool: Tool, right: ToolRight, shape: ToolShape | None) -> ToolPlan | None:
        """The plan of a tool of which something is only noted; None: everything is enforced."""
        enforced = self.enforced.plan(name) if self.enforced is not None else None
        if self.enforced is None or enforced is None:
            return None
        true, whole = self.enforced.layers, self.layers.passes(enforced.right.facts)
        noted = [at for at, rule in true.policy_rules(enforced.right.facts) if rule.mode is Mode.OBSERVE]
        if not (whole or noted):
            return None
        observation = Observation(enforced, true, whole, frozenset(address_of(at) for at in noted))
        return compile_tool(self.layers, tool, right, self._ground.shapes, self.hidden_tools, shape, observation)

    def _shape(self, name: str) -> ToolShape | None:
        right, plan = self.rights[name], self.planned.get(name)
        if plan is not None or not right.shown:
            return plan.shape if plan is not None else None
        tool = self._ground.tools[name, right.facts.major]
        try:
            return shape_of(self.layers, tool, right, self._ground.shapes)
        except GatewrightError:
            return None

    def _problems_of(self, name: str, layers: Layers) -> tuple[Reason, ...]:
        facts = self._majors[name]
        if self._ground.tools[name, facts.major].schema_may_fail:
            reasons = self._right(facts, layers).reasons
        else:
            closing = self._ground.offer.unusable.get((name, facts.major)) or layers.closing_reason(facts)
            reasons = (closing,) if closing is not None else ()
        return tuple(reason for reason in reasons if reason.code in _PROBLEMS)

    def _right(self, facts: ToolFacts, layers: Layers) -> ToolRight:
        ground, key = self._ground, (facts.name, facts.major)
        right = layers.right(facts, ground.offer.unusable.get(key) or ground.holding(self.agent, facts))
        tool = ground.tools[key]
        if not right.shown or not tool.schema_may_fail:
            return right
        try:
            shape = shape_of(layers, tool, right, ground.shapes)
            if shape is not None:
                shape.compile()
                return right
            text = f"`{facts.name}` has nothing to show"
        except GatewrightError as error:
            text = f"`{facts.name}` has no usable schema: {error}"
        return layers.right(facts, Reason(Layer.TOOLS, Verdict.DENY, "schema-unusable", text))

    @once
    def layers(self) -> Layers:
        """The policy for the agent, arranged by tool."""
        return self._new_layers()

    def _new_layers(self) -> Layers:
        ground = self._ground

        def close_reason(facts: ToolFacts) -> Reason | None:
            wrong = ground.misfits.get(facts.name)
            if wrong is None and (conditions or facts.tool_rules):
                wrong = unusable(layers, facts, ground.shapes)
            return wrong

        layers = Layers(ground.policy, self.agent, self.sources, close_reason, observes=self.enforced is not None)
        conditions = has_conditions(layers)
        return layers


_PROBLEMS = frozenset({UNKNOWN, "condition-unusable", "constraint-unusable", "schema-unusable", UNUSABLE})
