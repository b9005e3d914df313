"""What an edit recompiles, the flat answers, digests, and rules that do not fit a tool that comes later."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.base.errors import PolicyInvalid
from gatewright.base.jsonvalue import JsonValue
from gatewright.compile import agent as agentsnapshot
from gatewright.compile import snapshot as compiled_snapshot
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.plan import ToolPlan
from gatewright.compile.rule_test import Conditions
from gatewright.compile.snapshot import Snapshot, touched_tools
from gatewright.gate import Gate, selfcheck
from gatewright.policy.capability import NetRead
from gatewright.policy.document import (
    Agent,
    Catalog,
    CatalogType,
    Defaults,
    PermissionRule,
    Policy,
    Roots,
    ShellSettings,
    Source,
    ToolSettings,
)
from gatewright.policy.document import (
    Web as WebSettings,
)
from gatewright.policy.layer import Layers
from gatewright.policy.rule import (
    AllowedOperations,
    ArgumentConstraints,
    ExclusiveGroups,
    MaxCalls,
    PolicyRule,
    RequiresConsent,
    RequiresFollowingTools,
    ToolRule,
)
from gatewright.policy.verdict import Endpoints, PathUse, Permission, SafetyTier, Verdict
from gatewright.tools.declaration import Normalization, ResultType, SideEffect
from gatewright.tools.registry import ToolRegistry, operation
from gatewright.tools.tool import Tool
from tests.support.rights import rights_by_layers

READER, WRITER = "reader", "writer"
DOCS = Source("docs", "docs", Permission.ADMIN)


class Made(Tool, abstract=True):
    result_type = ResultType.OBJECT
    normalization = Normalization.JSON
    safety_tier = SafetyTier.SIDE_EFFECTING


class Notes(Made):
    """Keeps notes."""

    name = "notes"

    @operation(tier=SafetyTier.READ_ONLY)
    async def read(self, topic: str, limit: int = 10) -> JsonValue:
        """Read what was kept."""
        return {"topic": topic, "limit": limit}

    @operation
    async def write(self, topic: str, text: str = "") -> JsonValue:
        """Keep a text."""
        return {"topic": topic, "text": text}


class Files(Made):
    """Works with files."""

    name = "files"
    needs_source = True

    @operation
    async def load(self, name: str) -> JsonValue:
        """Load it."""
        return {"name": name}


class Web(Made):
    """Looks things up."""

    name = "web"
    side_effects = frozenset({SideEffect.NET_READ})

    @operation
    async def look(self, word: str) -> JsonValue:
        """Look it up."""
        return {"word": word}


class Clock(Made):
    """Tells the time."""

    name = "clock"

    @operation(tier=SafetyTier.READ_ONLY)
    async def now(self) -> JsonValue:
        """Tell it."""
        return {}


BASE = Policy(
    agents={READER: Agent(READER), WRITER: Agent(WRITER, capabilities=(NetRead(("*",)),))},
    sources=(DOCS,),
    rules=(PolicyRule("calm", Verdict.ASK, tools=("clock",), when={"required": ["x"]}),),
)


@dataclass
class Counted:
    rights: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    plans: list[str] = field(default_factory=list[str])


@contextmanager
def counting() -> Generator[Counted]:
    """Which rights (agent, tool) and plans are compiled meanwhile."""
    counted, patch = Counted(), pytest.MonkeyPatch()
    right, compile_tool = Layers.right, agentsnapshot.compile_tool

    def counted_right(self: Layers, facts: Any, shut: Any = None) -> Any:
        counted.rights.append((self.agent.agent_id, facts.name))
        return right(self, facts, shut)

    def counted_plan(layers: Layers, tool: Tool, *rest: Any) -> ToolPlan:
        counted.plans.append(tool.name)
        return compile_tool(layers, tool, *rest)

    patch.setattr(Layers, "right", counted_right)
    patch.setattr(agentsnapshot, "compile_tool", counted_plan)
    try:
        yield counted
    finally:
        patch.undo()


TAKES_NEW = replace(BASE, defaults=Defaults(new_tools="allow"))


def gate_of(policy: Policy = BASE, *tools: Tool) -> Gate:
    registry = ToolRegistry()
    for tool in tools or (Notes(), Files(), Web(), Clock()):
        registry.register(tool)
    return Gate(policy, registry, absent=dict.fromkeys(("notes", "files", "web", "clock"), "it may come"))


def compiled(gate: Gate) -> dict[str, dict[str, ToolPlan]]:
    """Every plan of every agent."""
    return plans_of(gate.snapshot())


def compiled_anew(gate: Gate) -> dict[str, dict[str, ToolPlan]]:
    """The same as if there had been no policy before."""
    now = gate.snapshot()
    return plans_of(Snapshot(now.policy, now.registry, now.shapes))


def plans_of(snapshot: Snapshot) -> dict[str, dict[str, ToolPlan]]:
    agents = [agent for agent_id in snapshot.policy.agents if (agent := snapshot.agent(agent_id)) is not None]
    return {agent.agent.agent_id: {plan.tool.name: plan for plan in agent.plans()} for agent in agents}


def agent_of(gate: Gate, agent_id: str) -> AgentSnapshot:
    agent = gate.snapshot().agent(agent_id)
    assert agent is not None
    return agent


def of(policy: Policy, agent_id: str, **changes: Any) -> Policy:
    return policy.with_agent(replace(policy.agents[agent_id], **changes))


ONLY_READ = (ToolRule("notes", AllowedOperations(frozenset({"read"}))),)
NOTES, CLOCK, FILES, WEB = "notes", "clock", "files", "web"
EDITS: dict[str, tuple[Policy, set[tuple[str, str]]]] = {
    "one tool rule": (of(BASE, READER, tool_rules=ONLY_READ), {(READER, NOTES)}),
    "a limit": (of(BASE, READER, tool_rules=(ToolRule("clock", MaxCalls(1)),)), {(READER, CLOCK)}),
    "an approvals key": (of(BASE, READER, approvals={"notes.write": Verdict.ASK}), {(READER, NOTES)}),
    "a description": (of(BASE, READER, description="Reads."), set()),
    "a grant": (of(BASE, READER, capabilities=(NetRead(("*",)),)), {(READER, WEB)}),
    "how far a grant reaches": (of(BASE, WRITER, capabilities=(NetRead(("a.org",)),)), {(WRITER, WEB)}),
    "one policy rule": (
        replace(BASE, rules=(replace(BASE.rules[0], effect=Verdict.DENY),)),
        {(READER, CLOCK), (WRITER, CLOCK)},
    ),
    "a policy rule for one agent": (
        replace(BASE, rules=(*BASE.rules, PolicyRule("r", Verdict.DENY, agents=(WRITER,), tools=("notes@1",)))),
        {(WRITER, NOTES)},
    ),
    "settings of one tool": (
        replace(BASE, tools={"notes": ToolSettings(timeout_s=3.0)}),
        {(READER, NOTES), (WRITER, NOTES)},
    ),
    "a level of the source": (
        replace(BASE, sources=(replace(DOCS, default_permission=Permission.NONE),)),
        {(a, n) for a in (READER, WRITER) for n in (NOTES, FILES, WEB)},  # a text may be a path
    ),
    "a pattern of the source": (
        replace(BASE, sources=(replace(DOCS, permission_rules=(PermissionRule("x/**", Permission.ADMIN),)),)),
        set(),
    ),
    "an agent": (
        replace(BASE, agents={**BASE.agents, "new": Agent("new", tools=())}),
        {("new", n) for n in (NOTES, CLOCK, FILES, WEB)},
    ),
    "the defaults": (
        replace(BASE, defaults=Defaults(timeout_s=2.0)),
        {(a, n) for a in (READER, WRITER) for n in (NOTES, CLOCK, FILES, WEB)},
    ),
}


ALL = {NOTES, CLOCK, FILES, WEB}
CALLS, FIRST = ToolRule("notes@1", MaxCalls(1)), ToolRule("web", MaxCalls(2))
LISTING = of(BASE, READER, tools=("notes", "files"), approvals={"notes.write": Verdict.ASK})
LIMITED = of(BASE, READER, tool_rules=(FIRST, CALLS))
ATTACHED = of(replace(BASE, sources=(DOCS, replace(DOCS, source_id="more"))), READER, sources=("docs",))
PLACED = replace(BASE, tools={"notes": ToolSettings(paths={"topic": PathUse.READ})})
ASKED = PolicyRule("asked", Verdict.ASK, tools=("web", "files@1"))
OF_ONE: dict[str, tuple[Policy, Policy, set[str]]] = {
    "a key for a tier": (BASE, of(BASE, READER, approvals={"read_only": Verdict.ASK}), ALL),
    "another verdict of a key": (LISTING, of(LISTING, READER, approvals={"notes.write": Verdict.DENY}), {NOTES}),
    "a key that goes": (LISTING, of(LISTING, READER, approvals={}), {NOTES}),
    "a list where there was none": (BASE, LISTING, ALL),
    "a list that goes": (LISTING, of(LISTING, READER, tools=None), ALL),
    "a tool that is listed": (LISTING, of(LISTING, READER, tools=("notes", "files", "web@1")), {WEB}),
    "a list in another order": (LISTING, of(LISTING, READER, tools=("files", "notes")), set()),
    "a rule for every tool": (LIMITED, of(LIMITED, READER, tool_rules=(FIRST, CALLS, ToolRule("*", MaxCalls(3)))), ALL),
    "a rule that another one is put behind": (LIMITED, of(LIMITED, READER, tool_rules=(FIRST, CALLS, FIRST)), {WEB}),
    "the rule before another": (LIMITED, of(LIMITED, READER, tool_rules=(CALLS,)), {NOTES, WEB}),
    "the rule behind another": (LIMITED, of(LIMITED, READER, tool_rules=(FIRST,)), {NOTES}),
    "a rule among others": (
        LIMITED,
        of(LIMITED, READER, tool_rules=(FIRST, ToolRule("clock", MaxCalls(1)))),
        {NOTES, CLOCK},
    ),
    "sources by name": (BASE, of(BASE, READER, sources=("docs",)), {FILES}),
    "another source": (ATTACHED, of(ATTACHED, READER, sources=("more",)), {FILES}),
    "no source": (ATTACHED, of(ATTACHED, READER, sources=()), {FILES}),
}
OF_ALL: dict[str, tuple[Policy, Policy, set[str]]] = {
    "the same in other words": (BASE, replace(BASE, sources=(replace(DOCS),), rules=(replace(BASE.rules[0]),)), set()),
    "the name of the policy": (BASE, replace(BASE, name="other"), set()),
    "the default of the policy": (BASE, replace(BASE, default=Verdict.ASK), ALL),
    "a root": (BASE, replace(BASE, roots=Roots(shared="s")), ALL),
    "the web": (BASE, replace(BASE, web=WebSettings(allow_private=True)), ALL),
    "the shell": (BASE, replace(BASE, shell=ShellSettings(allow=("ls",))), ALL),
    "endpoints": (BASE, replace(BASE, endpoints=Endpoints(user=True)), ALL),
    "a catalog": (BASE, replace(BASE, catalogs=(Catalog("c", CatalogType.HOST),)), ALL),
    "settings of a major": (BASE, replace(BASE, tools={"web@1": ToolSettings(scrub=False)}), {WEB}),
    "a rule for every call": (BASE, replace(BASE, rules=(*BASE.rules, replace(ASKED, tools=None))), ALL),
    "a policy rule before another": (BASE, replace(BASE, rules=(ASKED, *BASE.rules)), {CLOCK, WEB, FILES}),
    "a rule for somebody else": (BASE, replace(BASE, rules=(*BASE.rules, replace(ASKED, agents=("x",)))), set()),
    "what a source requires": (BASE, replace(BASE, sources=(replace(DOCS, required_tools=(CALLS,)),)), {NOTES, FILES}),
    "what a source requires of all": (
        BASE,
        replace(BASE, sources=(replace(DOCS, required_tools=(ToolRule("*", RequiresConsent()),)),)),
        ALL,
    ),
    "a level where an argument is a path": (
        PLACED,
        replace(PLACED, sources=(replace(DOCS, default_permission=Permission.NONE),)),
        {NOTES, FILES, WEB},
    ),
}
BETWEEN = {
    **{name: (BASE, policy, wanted) for name, (policy, wanted) in EDITS.items()},
    **{name: (old, new, {(READER, one) for one in tools}) for name, (old, new, tools) in OF_ONE.items()},
    **{
        name: (old, new, {(agent, one) for agent in (READER, WRITER) for one in tools})
        for name, (old, new, tools) in OF_ALL.items()
    },
}
ADDED = EDITS["an agent"][0]


@pytest.mark.parametrize("name", BETWEEN)
def test_edit_recompiles_only_the_tools_that_it_can_concern(name: str) -> None:
    old, policy, wanted = BETWEEN[name]
    gate = gate_of(old)
    compiled(gate)
    with counting() as counted:
        gate.reload(policy)
        after = compiled(gate)

    assert set(counted.rights) == wanted
    assert sorted(counted.plans) == sorted(name for _, name in wanted)
    assert after == compiled_anew(gate)  # nothing stale is left


@pytest.mark.parametrize(
    ("policy", "compared"), [(ADDED, set[str]()), (replace(ADDED, name="other"), {READER, WRITER})]
)
def test_agents_that_an_edit_leaves_alone_keep_their_flat_answers(
    policy: Policy, compared: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, asked = gate_of(), set[str]()
    for agent_id in (READER, WRITER):
        gate.check(agent_id, "notes", "read")
    before = dict(gate.snapshot().rows)

    def noting(old: Policy, new: Policy, was: Agent, now: Agent, facts: Any) -> frozenset[str] | None:
        asked.add(now.agent_id)
        return touched_tools(old, new, was, now, facts)

    monkeypatch.setattr(compiled_snapshot, "touched_tools", noting)
    gate.reload(policy)
    after = gate.snapshot().rows

    assert asked == compared  # the policy is not compared for each of the agents where only another one differs
    assert all(after[agent_id] is before[agent_id] for agent_id in (READER, WRITER))


def test_second_edit_of_an_agent_that_was_never_looked_at_carries_the_first() -> None:
    gate = gate_of()
    compiled(gate)
    gate.reload(of(BASE, READER, tool_rules=ONLY_READ))
    with counting() as counted:
        gate.reload(of(gate.policy, READER, approvals={"clock": Verdict.DENY}))
        after = compiled(gate)

    assert set(counted.rights) == {(READER, NOTES), (READER, CLOCK)}
    assert after == compiled_anew(gate)


def test_carried_plan_learns_which_tools_are_hidden_now() -> None:
    gate = gate_of()
    before = compiled(gate)[READER]
    gate.reload(of(BASE, READER, approvals={"clock": Verdict.DENY}))
    after = compiled(gate)[READER]

    assert "clock" in after["notes"].hidden_tools
    assert "clock" not in before["notes"].hidden_tools
    assert after["notes"].operations is before["notes"].operations


def test_tool_that_comes_leaves_the_plans_of_the_others() -> None:
    gate = gate_of(BASE, Notes(), Files())
    compiled(gate)
    with counting() as counted:
        gate.snapshot().registry.register(Clock())
        after = compiled(gate)

    assert set(counted.rights) == {(READER, CLOCK), (WRITER, CLOCK)}
    assert list(after[READER]) == ["clock", "files", "notes"]


def test_agents_kept_over_many_edits_of_others_keep_no_old_ones() -> None:
    gate = gate_of()
    compiled(gate)
    kept = agent_of(gate, WRITER)
    for number in range(3):
        gate.reload(of(gate.policy, READER, description=str(number)))
        compiled(gate)

    assert agent_of(gate, WRITER) is kept
    assert not [value for value in vars(kept).values() if isinstance(value, (AgentSnapshot, Snapshot))]


RICH = replace(
    BASE,
    agents={
        **BASE.agents,
        READER: Agent(READER, tool_rules=(*ONLY_READ, ToolRule("clock", RequiresConsent()))),
        "none": Agent("none", tools=()),
        "strict": Agent("strict", approvals={"privileged": Verdict.DENY, "notes.write": Verdict.DENY}),
    },
    rules=(
        PolicyRule("no writing", Verdict.DENY, agents=(WRITER,), operations=("write",)),
        PolicyRule("ask for files", Verdict.ASK, tools=("files",)),
        PolicyRule("short", Verdict.DENY, tools=("clock",), when={"required": ["topic"]}),
    ),
)


@pytest.mark.parametrize("policy", [BASE, RICH, replace(RICH, default=Verdict.DENY), replace(RICH, sources=())])
def test_flat_answer_is_the_right_and_what_the_stages_say(policy: Policy) -> None:
    gate = gate_of(policy)
    facts = gate.snapshot().facts
    for agent_id in policy.agents:
        rights = rights_by_layers(policy, agent_id, facts)
        for name, right in rights.items():
            for row in right.operations:
                proof = gate.check(agent_id, name, row.operation)
                decision = gate.decide(agent_id, name, {"op": row.operation})
                barred = decision.stage in {"lookup", "operation"}
                assert (proof.agent_id, proof.tool, proof.operation) == (agent_id, name, row.operation)
                assert proof.verdict is row.verdict
                assert proof.is_open is not barred
                assert proof.is_open or proof.code == decision.code
                assert (proof.finding is None) == (row.verdict is Verdict.ALLOW)
    assert selfcheck(gate).differences == ()


@pytest.mark.parametrize(
    ("agent", "tool", "operation_name", "code"),
    [
        ("nobody", "notes", "read", "unknown-agent"),
        (READER, "nothing", "read", "unknown-tool"),
        (READER, "notes", "burn", "operation-unknown"),
        (READER, "notes", "", "operation-unknown"),
        (READER, "notes", "write", "operation-not-allowed"),
        (READER, "web", "look", "capability-not-granted"),
    ],
)
def test_flat_denial_says_which_layer_and_where(agent: str, tool: str, operation_name: str, code: str) -> None:
    proof = gate_of(RICH).check(agent, tool, operation_name)

    assert (proof.verdict, proof.code) == (Verdict.DENY, code)
    assert proof.finding is not None
    assert proof.to_json()["reason"] == proof.finding.reason


def test_flat_answer_follows_edits_and_tools() -> None:
    gate = gate_of(TAKES_NEW, Notes())
    before = gate.check(READER, "notes", "write")
    gate.reload(of(TAKES_NEW, READER, tool_rules=ONLY_READ))
    withdraw = gate.snapshot().registry.register(Clock())

    assert (before.is_open, gate.check(READER, "notes", "write").is_open) == (True, False)
    assert gate.check(READER, "clock", "now").is_open
    withdraw()
    assert not gate.check(READER, "clock", "now").is_open


def test_proof_names_policy_and_tool_and_is_the_same_for_the_same_answer() -> None:
    gate = gate_of()
    proof, again = gate.check(READER, "notes", "read"), gate.check(READER, "notes", "read")
    gate.reload(of(BASE, READER, description="other"))

    assert proof.proof_id == again.proof_id
    assert proof.tool_digest == Notes().digest
    assert proof.proof_id != gate.check(READER, "notes", "read").proof_id
    assert proof.to_json()["policy_digest"] != gate.snapshot().policy_digest


def test_answers_of_agents_with_the_same_rights_share_their_cells() -> None:
    gate = gate_of(replace(BASE, agents={name: Agent(name) for name in ("one", "two")}))
    gate.check("one", "notes", "read")
    gate.check("two", "notes", "read")
    rows = gate.snapshot().rows

    assert rows["one"]["notes"] is rows["two"]["notes"]


def test_policy_digest_is_of_what_the_policy_says() -> None:
    first, same = gate_of(), gate_of(replace(BASE, agents={name: BASE.agents[name] for name in (WRITER, READER)}))
    digests = {gate_of(policy).snapshot().policy_digest for policy, _ in EDITS.values()}

    assert first.snapshot().policy_digest == same.snapshot().policy_digest
    assert len({*digests, first.snapshot().policy_digest}) == len(EDITS) + 1


def test_digest_after_an_edit_is_that_of_a_fresh_snapshot() -> None:
    gate = gate_of()
    assert gate.snapshot().policy_digest
    gate.reload(RICH)

    assert gate.snapshot().policy_digest == gate_of(RICH).snapshot().policy_digest


def test_tool_that_comes_without_the_operations_of_a_rule_is_closed_and_named() -> None:
    rule = ToolRule("clock", AllowedOperations(frozenset({"now", "set"})))
    gate = gate_of(of(TAKES_NEW, READER, tool_rules=(rule,)), Notes())
    assert gate.problems() == ()
    gate.snapshot().registry.register(Clock())
    decision = gate.decide(READER, "clock", {"op": "now"})
    (problem,) = gate.problems()

    assert (decision.stage, decision.code) == ("lookup", "rule-unknown-operation")
    assert problem.address == ("agents", READER, "tool_rules", 0)
    assert "`set`" in problem.text
    assert gate.check(WRITER, "clock", "now").is_open
    assert selfcheck(gate).differences == ()


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        (of(BASE, READER, tool_rules=(ToolRule("note", MaxCalls(1)),)), "note"),
        (of(BASE, READER, tool_rules=(ToolRule("notes@7", MaxCalls(1)),)), "notes@7"),
        (of(BASE, READER, tool_rules=(ToolRule("notes", RequiresFollowingTools(), ("note",)),)), "note"),
        (of(BASE, READER, tool_rules=(ToolRule("notes", RequiresFollowingTools(), ("notes.raed",)),)), "notes.raed"),
        (of(BASE, READER, tool_rules=(ToolRule("notes", ExclusiveGroups((("notes", "clcok"),))),)), "clcok"),
        (of(BASE, READER, approvals={"notes.wirte": Verdict.ASK}), "notes.wirte"),
        (replace(BASE, defaults=Defaults(approvals={"note": Verdict.ASK})), "note"),
        (replace(BASE, rules=(PolicyRule("r", Verdict.DENY, tools=("note",)),)), "note"),
        (replace(BASE, tools={"note": ToolSettings(safety_tier=SafetyTier.PRIVILEGED)}), "note"),
        (replace(BASE, sources=(Source("d", "d", required_tools=(ToolRule("note", MaxCalls(1)),)),)), "note"),
    ],
)
def test_policy_made_in_code_that_limits_a_tool_which_is_not_there_is_refused(policy: Policy, name: str) -> None:
    registry = ToolRegistry()
    for tool in (Notes(), Clock()):
        registry.register(tool)
    good = Gate(Policy(agents=BASE.agents), registry, absent={"files": "", "web": ""})

    with pytest.raises(PolicyInvalid, match=f"named `{name}`.*did you mean"):
        Gate(policy, registry, absent={"files": "", "web": ""})
    with pytest.raises(PolicyInvalid, match=f"named `{name}`"):
        good.reload(policy)
    assert good.policy == Policy(agents=BASE.agents)


def test_policy_rule_that_no_tool_fits_closes_the_tools_that_it_names_when_all_are_there() -> None:
    rule = PolicyRule("r", Verdict.DENY, tools=("notes", "clock"), operations=("burn",))
    gate = gate_of(replace(BASE, rules=(rule,)), Notes())
    before = gate.check(READER, "notes", "read").is_open
    gate.snapshot().registry.register(Clock())

    assert before
    assert gate.check(READER, "notes", "read").code == "rule-unknown-operation"
    assert [problem.rule_id for problem in gate.problems()] == ["r"]


@pytest.mark.parametrize("broken", [{"pattern": "(?=x)"}, {"type": 3}, {"$ref": "https://example.org/x"}])
def test_condition_that_cannot_be_checked_closes_the_tool(broken: dict[str, Any]) -> None:
    rules = (PolicyRule("odd", Verdict.DENY, tools=("notes",), when={"properties": {"topic": broken}}),)
    constraint = ToolRule("clock", ArgumentConstraints({"zone": broken}))
    gate = gate_of(of(replace(BASE, rules=rules), READER, tool_rules=(constraint,)))

    assert gate.check(READER, "notes", "read").code == "condition-unusable"
    assert gate.check(READER, "clock", "now").code == "constraint-unusable"
    assert {problem.code for problem in gate.problems()} == {"condition-unusable", "constraint-unusable"}
    assert {row["name"] for row in gate.view(READER).tools("mcp")} == {"files"}
    assert selfcheck(gate).differences == ()


def test_plan_holds_what_the_stages_need() -> None:
    source = replace(DOCS, required_tools=(ToolRule("files", AllowedOperations(frozenset({"save"})), rule_id="s"),))
    constraint = ToolRule("notes", ArgumentConstraints({"limit": {"maximum": 5}}), ("operation:read",))
    policy = replace(
        of(RICH, WRITER, tool_rules=(constraint,), capabilities=(NetRead(("*",)),)),
        sources=(source, Source("free", "free", Permission.ADMIN)),
        tools={"notes": ToolSettings(scrub=False, timeout_s=2.5)},
    )

    class Saving(Files):
        name = "files"

        @operation
        async def save(self, name: str) -> JsonValue:
            """Save it."""
            return {"name": name}

    plans = compiled(gate_of(policy, Notes(), Saving(), Web(), Clock()))[WRITER]
    notes, clock, files = plans["notes"], plans["clock"], plans["files"]

    assert (notes.scrub, notes.timeout_s, notes.tool_digest) == (False, 2.5, Notes().digest)
    (bound,) = notes.operations["read"].constraints
    assert [name for name, _ in bound.fields] == ["limit"]
    assert [checker.is_valid(9) for _, checker in bound.fields] == [False]
    assert [(one.rule.name, one.address) for one in clock.operations["now"].policy_rules] == [
        ("short", ("policy", "rules", 2))
    ]
    assert clock.operations["now"].policy_rules[0].matches({"topic": "x"})
    assert not clock.operations["now"].policy_rules[0].matches({})
    assert files.operations["load"].source_denials["docs"].rule_id == "s"
    assert files.operations["save"].source_denials == {}
    assert {one.rule.name for one in files.operations["load"].policy_rules} == {"ask for files"}
    assert plans["web"].operations["look"].capabilities == {"NetRead"}


def test_rules_that_may_match_stand_in_the_order_in_which_they_decide() -> None:
    effects = (Verdict.ALLOW, Verdict.ASK, Verdict.DENY, Verdict.ASK)
    rules = tuple(PolicyRule(f"r{i}", effect, when={"required": ["x"]}) for i, effect in enumerate(effects))
    plan = compiled(gate_of(replace(BASE, rules=rules)))[READER]["clock"]

    assert [one.rule.name for one in plan.operations["now"].policy_rules] == ["r2", "r1", "r3", "r0"]


def test_equal_conditions_are_compiled_once() -> None:
    conditions = Conditions()

    assert conditions.checker({"a": 1, "type": "object"}) is conditions.checker({"type": "object", "a": 1})
    assert not conditions.checker(False).is_valid(1)
    assert conditions.checker(True).is_valid(1)


def test_description_of_the_policy_is_shown_and_hides_what_is_hidden() -> None:
    settings = {"notes": ToolSettings(description="Our notes. Use `write` to keep one.")}
    gate = gate_of(replace(of(BASE, READER, tool_rules=ONLY_READ), tools=settings))
    descriptions = {
        agent: next(t["description"] for t in gate.view(agent).tools("mcp") if t["name"] == "notes")
        for agent in (READER, WRITER)
    }

    assert descriptions == {READER: "Our notes.", WRITER: "Our notes. Use `write` to keep one."}


def test_selfcheck_makes_calls_that_satisfy_constraints_and_reports_those_that_it_cannot() -> None:
    easy = ToolRule("notes", ArgumentConstraints({"topic": {"enum": ["milk"]}}))
    hard = ToolRule("web", ArgumentConstraints({"word": {"type": "string", "pattern": "^zebra-[0-9]{17}$"}}))
    denied = PolicyRule("never load", Verdict.DENY, tools=("files",), when={"required": ["name"]})
    agent = Agent(READER, tool_rules=(easy, hard), capabilities=(NetRead(("*",)),))
    result = selfcheck(gate_of(replace(BASE, agents={READER: agent}, rules=(denied,))))

    assert result.differences == ()
    assert {(row.tool, row.operation) for row in result.no_witness} == {("web", "look"), ("files", "load")}


TOOL_NAMES: tuple[str, ...] = (NOTES, CLOCK, FILES, WEB)
TOOL_RULES = (
    *ONLY_READ,
    ToolRule("clock", RequiresConsent()),
    ToolRule("*", MaxCalls(2)),
    ToolRule("files@1", AllowedOperations(frozenset({"load"}))),
    ToolRule("notes", ArgumentConstraints({"limit": {"maximum": 5}})),
    ToolRule("clock", AllowedOperations(frozenset({"burn"}))),
)
POLICY_RULES = (
    PolicyRule("a", Verdict.DENY, agents=(READER,), tools=("clock",)),
    PolicyRule("b", Verdict.ASK, tools=("notes", "web")),
    PolicyRule("c", Verdict.DENY, operations=("write",), when={"required": ["text"]}),
    PolicyRule("d", Verdict.ALLOW, tools=("files",), operations=("load",)),
    PolicyRule("e", Verdict.DENY, agents=(WRITER,), operations=("look",)),
    PolicyRule("f", Verdict.DENY, tools=("notes",), operations=("burn",)),
)
SOURCES = (
    DOCS,
    replace(DOCS, default_permission=Permission.NONE),
    replace(DOCS, required_tools=(ToolRule("files", AllowedOperations(frozenset[str]())),)),
    Source("free", "free", Permission.PARTNER, required_tools=(ToolRule("*", RequiresConsent()),)),
)
APPROVALS = st.dictionaries(
    st.sampled_from(["notes", "notes.write", "clock.now", "read_only", "side_effecting"]),
    st.sampled_from(Verdict),
    max_size=2,
)
CAPABILITIES = st.sampled_from([(), (NetRead(()),), (NetRead(("*",)),), (NetRead(("a.org",)),)])
AGENTS = st.builds(
    Agent,
    st.just(""),
    tools=st.none() | st.lists(st.sampled_from([*TOOL_NAMES, "notes@1"]), max_size=3, unique=True).map(tuple),
    sources=st.none() | st.lists(st.sampled_from(["docs", "free"]), unique=True).map(tuple),
    approvals=APPROVALS,
    tool_rules=st.lists(st.sampled_from(TOOL_RULES), max_size=3).map(tuple),
    capabilities=CAPABILITIES,
)
SETTINGS = st.sampled_from(
    [
        ToolSettings(timeout_s=1.0),
        ToolSettings(safety_tier=SafetyTier.PRIVILEGED),
        ToolSettings(description="Ours."),
        ToolSettings(operations=("read",)),
    ]
)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    agents = {name: replace(draw(AGENTS), agent_id=name) for name in (READER, WRITER) if draw(st.integers(0, 5))}
    sources = {source.source_id: source for source in draw(st.lists(st.sampled_from(SOURCES), max_size=3))}
    return Policy(
        agents=agents,
        sources=tuple(sources.values()),
        tools=draw(st.dictionaries(st.sampled_from(TOOL_NAMES), SETTINGS, max_size=1)),
        default=draw(st.sampled_from(Verdict)),
        rules=draw(st.lists(st.sampled_from(POLICY_RULES), max_size=3, unique_by=lambda rule: rule.name).map(tuple)),
    )


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(policies(), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_whatever_is_edited_nothing_stale_is_carried_over(edits: list[Policy], chance: Random) -> None:
    gate = gate_of(edits[0])
    for policy in edits[1:]:
        for agent_id in gate.policy.agents:
            if chance.random() < 0.7:
                gate.check(agent_id, "notes", "read")
            if chance.random() < 0.7:
                list(agent_of(gate, agent_id).plans())
        mixed = policy if chance.random() < 0.3 else _partly(gate.policy, policy, chance)
        gate.reload(mixed)
        anew = compiled_anew(gate)
        assert compiled(gate) == anew
        for agent_id, plans in anew.items():
            assert agent_of(gate, agent_id).sources == mixed.sources_of(mixed.agents[agent_id])
            for name, plan in plans.items():
                for row in plan.right.operations:
                    assert gate.check(agent_id, name, row.operation).verdict is row.verdict
    assert selfcheck(gate).differences == ()


def _partly(old: Policy, new: Policy, chance: Random) -> Policy:
    """The old policy with one part of the new one, as an edit makes it."""
    part = chance.choice(["agents", "sources", "tools", "default", "rules"])
    return replace(old, **{part: getattr(new, part)})
