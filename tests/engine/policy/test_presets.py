"""Presets, copied rights, and what they change: through the rights that every layer leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.base.errors import EditRefused
from gatewright.policy.agentedit import Along, copy_rights, remove_agents, rules_by_name
from gatewright.policy.capability import DbRead, DbWrite
from gatewright.policy.document import Agent, Defaults, Policy
from gatewright.policy.edit import apply, inverse
from gatewright.policy.right import Layer, OperationFacts, OperationRight, ToolFacts, ToolRight
from gatewright.policy.rights import (
    Preset,
    count_excluded,
    preset_edit,
    preset_verdict,
    reset_tools,
    set_many,
    tick_many,
)
from gatewright.policy.rightsdiff import (
    AgentDiff,
    ChangeKind,
    PolicyDiff,
    RightChange,
    RightState,
    agent_diff,
    policy_diff,
)
from gatewright.policy.rule import AllowedOperations, MaxCalls, PolicyRule, RequiresConsent, ToolRule
from gatewright.policy.verdict import Action, SafetyTier, Verdict
from tests.support.rights import rights_by_layers

READ, SIDE, PRIVILEGED = SafetyTier
NOTES = ToolFacts(
    "notes",
    1,
    (OperationFacts("find", READ), OperationFacts("write", SIDE), OperationFacts("burn", PRIVILEGED)),
    PRIVILEGED,
)

STORE = ToolFacts("store", 1, (OperationFacts("peek", READ), OperationFacts("put", SIDE, (Action.DELETE,))), SIDE)
CLOCK = ToolFacts("clock", 1, (OperationFacts("", READ),), READ)
SHELL = ToolFacts("shell", 1, (OperationFacts("", PRIVILEGED),), PRIVILEGED)
CATALOG = (NOTES, STORE, CLOCK, SHELL)
NAMES = tuple(facts.name for facts in CATALOG)
KEYS = (*SafetyTier, *NAMES, *(f"{t.name}.{name}" for t in CATALOG for name in t.operation_names))

verdicts = st.sampled_from(Verdict)
approvals = st.dictionaries(st.sampled_from([str(key) for key in KEYS]), verdicts, max_size=4)


def _limits(facts: ToolFacts) -> st.SearchStrategy[ToolRule]:
    names = st.frozensets(st.sampled_from(facts.operation_names))
    return names.map(lambda chosen: ToolRule(facts.name, AllowedOperations(chosen)))


others = st.sampled_from(
    [ToolRule("notes", MaxCalls(3)), ToolRule("*", MaxCalls(9)), ToolRule("store", MaxCalls(2), ("operation:put",))]
)
rules = st.lists(st.one_of(_limits(NOTES), _limits(STORE), others), max_size=5).map(tuple)
listed = st.one_of(st.none(), st.lists(st.sampled_from(NAMES), unique=True).map(tuple))


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Two agents, whatever their lists, rules and keys."""
    agents = {
        name: Agent(name, tools=draw(listed), sources=(), approvals=draw(approvals), tool_rules=draw(rules))
        for name in ("a", "b")
    }
    unlisted = draw(st.sampled_from([Verdict.ALLOW, Verdict.DENY]))
    return Policy(agents=agents, defaults=Defaults(unlisted_tools=unlisted, approvals=draw(approvals)))


def rights(policy: Policy, agent_id: str = "a") -> dict[str, ToolRight]:
    return rights_by_layers(policy, agent_id, CATALOG)


def difference(before: Policy, after: Policy, agent_id: str) -> AgentDiff:
    return agent_diff(
        before.agents[agent_id], after.agents[agent_id], rights(before, agent_id), rights(after, agent_id)
    )


def seen(policy: Policy, agent_id: str = "a") -> dict[tuple[str, str], tuple[bool, Verdict]]:
    found = rights(policy, agent_id)
    return {
        (name, row.operation): (row.ticked, row.verdict) for name, right in found.items() for row in right.operations
    }


def authors_limits(agent: Agent, tool: str) -> int:
    return sum(rule.tool_name == tool and isinstance(rule.rule_type, AllowedOperations) for rule in agent.tool_rules)


@given(policies(), st.sampled_from(Preset))
def test_preset_gives_exactly_what_it_promises(policy: Policy, preset: Preset) -> None:
    after = apply(policy, preset_edit(policy, CATALOG, ["a"], preset))
    for name, right in rights(after).items():
        for row in right.operations:
            said = preset_verdict(preset, row.tier)
            if said is Verdict.DENY:
                assert not row.ticked
                assert row.is_hidden
            elif authors_limits(policy.agents["a"], name) < 2:
                assert row.ticked
                default_denies = _default(policy, right.facts, row.operation, row.tier) is Verdict.DENY
                assert row.verdict is (Verdict.DENY if default_denies else said)


def _default(policy: Policy, facts: ToolFacts, operation: str, tier: SafetyTier) -> Verdict | None:
    table: Mapping[str, Verdict] = policy.defaults.approvals
    for key in (f"{facts.name}.{operation}", facts.name, str(tier)):
        if key in table:
            return table[key]
    return None


@given(policies(), st.sampled_from(Preset))
def test_preset_keeps_every_other_rule_is_taken_back_whole_and_changes_nothing_twice(
    policy: Policy, preset: Preset
) -> None:
    edit = preset_edit(policy, CATALOG, ["a", "b"], preset)
    after = apply(policy, edit)
    assert apply(after, inverse(edit)) == policy
    assert preset_edit(after, CATALOG, ["a", "b"], preset).is_empty
    for name, agent in policy.agents.items():
        kept = [rule for rule in agent.tool_rules if not isinstance(rule.rule_type, AllowedOperations)]
        assert [r for r in after.agents[name].tool_rules if not isinstance(r.rule_type, AllowedOperations)] == kept


def test_preset_is_written_with_as_little_as_it_needs() -> None:
    policy = Policy(agents={"a": Agent("a", tools=(), sources=())})

    everything = apply(policy, preset_edit(policy, CATALOG, ["a"], Preset.EVERYTHING)).agents["a"]
    standard = apply(policy, preset_edit(policy, CATALOG, ["a"], Preset.STANDARD)).agents["a"]
    reading = apply(policy, preset_edit(policy, CATALOG, ["a"], Preset.READ_ONLY)).agents["a"]
    asking = replace(policy, defaults=Defaults(approvals={"notes": Verdict.ASK}))
    lifted = apply(asking, preset_edit(asking, CATALOG, ["a"], Preset.READ_ONLY)).agents["a"]

    assert lifted.approvals == {"notes.find": Verdict.ALLOW}
    assert (everything.tools, everything.tool_rules, everything.approvals) == (NAMES, (), {"privileged": Verdict.ALLOW})
    assert (standard.tools, standard.tool_rules, standard.approvals) == (NAMES, (), {})
    assert (reading.tools, reading.approvals) == (("notes", "store", "clock"), {})
    assert reading.tool_rules == (
        ToolRule("notes", AllowedOperations(frozenset({"find"}))),
        ToolRule("store", AllowedOperations(frozenset({"peek"}))),
    )


def test_preset_for_several_agents_is_one_edit_named_so() -> None:
    policy = Policy(agents={name: Agent(name, tools=(), sources=()) for name in ("a", "b")})
    edit = preset_edit(policy, CATALOG, ["b", "a"], Preset.READ_ONLY)
    assert edit.name == "preset read only for 2 agents"
    assert len(edit.changes) == 2
    with pytest.raises(EditRefused, match="no agent `c`"):
        preset_edit(policy, CATALOG, ["c"], Preset.NOTHING)


@given(policies())
def test_copied_rights_are_the_same_rights(policy: Policy) -> None:
    edit = copy_rights(policy, "a", ["b"], Along(limits=True, sources=True, capabilities=True))
    after = apply(policy, edit)
    assert seen(after, "b") == seen(policy, "a")
    assert apply(after, inverse(edit)) == policy
    assert copy_rights(after, "a", ["b"], Along()).is_empty


@given(policies())
def test_rights_copied_without_limits_leave_the_others_limits_alone(policy: Policy) -> None:
    after = apply(policy, copy_rights(policy, "a", ["b"], Along(limits=False)))
    assert seen(after, "b") == seen(policy, "a")

    def limits(one: Policy) -> list[ToolRule]:
        return [r for r in one.agents["b"].tool_rules if not isinstance(r.rule_type, AllowedOperations)]

    assert limits(after) == limits(policy)


def test_rights_are_not_copied_to_their_owner() -> None:
    policy = Policy(agents={"a": Agent("a")})
    with pytest.raises(EditRefused, match="its own rights already"):
        copy_rights(policy, "a", ["a"], Along())


def test_copy_of_rights_says_to_whom_and_which_rules_by_name_stay_behind() -> None:
    mine = PolicyRule("mine", Verdict.DENY, agents=("a",))
    rules = (PolicyRule("all", Verdict.DENY), mine, PolicyRule("other", Verdict.DENY, agents=("b",)))
    policy = Policy(agents={one: Agent(one, tools=(one,)) for one in "abc"}, rules=rules)

    assert rules_by_name(policy, "a") == (mine,)
    assert copy_rights(policy, "a", ["b", "b"], Along()).name == "copy the rights of `a` to `b`"
    assert copy_rights(policy, "a", ["b", "c"], Along()).name == "copy the rights of `a` to 2 agents"


@given(policies(), st.sampled_from(Preset))
def test_diff_names_every_row_that_differs_and_no_other(policy: Policy, preset: Preset) -> None:
    after = apply(policy, preset_edit(policy, CATALOG, ["a"], preset))
    was, now = seen(policy), seen(after)
    diff = difference(policy, after, "a")
    assert {(row.tool, row.operation) for row in diff.rows} == {key for key in now if now[key] != was[key]}
    assert difference(after, after, "a").is_empty


def test_diff_says_what_becomes_of_an_operation_and_what_else_changes() -> None:
    limit = ToolRule("notes", MaxCalls(3))
    source = Agent(
        "a", tools=("notes", "shell"), sources=None, tool_rules=(limit,), approvals={"notes.find": Verdict.ASK}
    )
    target = Agent("b", tools=("clock", "notes"), sources=())
    policy = Policy(agents={"a": source, "b": target})
    after = apply(policy, copy_rights(policy, "a", ["b"], Along(sources=True)))

    diff = difference(policy, after, "b")

    found = {(row.tool, row.operation): (row.before, row.after, row.kind) for row in diff.rows}
    assert found == {
        ("clock", ""): (RightState.ON, RightState.OFF, ChangeKind.OFF),
        ("notes", "find"): (RightState.ON, RightState.ASKS, ChangeKind.ASKS),
        ("shell", ""): (RightState.OFF, RightState.ASKS, ChangeKind.ASKS),
    }
    assert diff.limits_come == (limit,)
    assert diff.sources == ((), None)
    assert diff.capabilities is None
    assert diff.counts() == {ChangeKind.OFF: 1, ChangeKind.ASKS: 2}
    assert difference(policy, policy, "b") == AgentDiff("b")


@pytest.mark.parametrize(
    ("before", "after", "opens"),
    [
        (None, ("x",), False),
        (("x", "y"), ("y",), False),
        (("x", "y"), ("y", "x"), False),
        (("x",), ("x", "y"), True),
        (("x",), ("y",), True),
        (("x",), None, True),
    ],
)
def test_sources_open_more_where_one_comes(
    before: tuple[str, ...] | None, after: tuple[str, ...] | None, opens: bool
) -> None:
    old = Policy(agents={"a": Agent("a", sources=before)})

    assert difference(old, old.with_agent(Agent("a", sources=after)), "a").opens is opens


READING, WRITING = DbRead(("x",)), DbWrite(("x",))
FEW = ToolRule("notes", MaxCalls(3))


@pytest.mark.parametrize(
    ("before", "after", "opens"),
    [
        ({"capabilities": (READING,)}, {}, False),
        ({"capabilities": (READING, WRITING)}, {"capabilities": (WRITING, READING)}, False),
        ({"capabilities": (READING,)}, {"capabilities": (WRITING,)}, True),
        ({"tool_rules": (FEW,)}, {}, True),
        ({}, {"tool_rules": (FEW,)}, False),
        ({"tools": ()}, {"tools": ("clock",)}, True),
    ],
)
def test_agent_may_do_more_where_a_grant_or_a_tool_comes_or_a_limit_goes(
    before: dict[str, Any], after: dict[str, Any], opens: bool
) -> None:
    old, new = (Policy(agents={"a": Agent("a", **one)}) for one in (before, after))
    diff = policy_diff(old, new, lambda name: rights(old, name), lambda name: rights(new, name))
    assert diff == PolicyDiff((difference(old, new, "a"),), ())
    assert (diff.opens, diff.is_empty, diff.agents[0].is_empty) == (opens, False, False)


def test_agent_is_the_same_by_its_id_or_by_where_it_comes_from() -> None:
    old = Policy(agents={name: Agent(name, tools=("clock",)) for name in "abc"})
    new = Policy(agents={"a": Agent("a", tools=("clock",)), "x": replace(old.agents["b"], agent_id="x")})
    diff = policy_diff(old, new, lambda name: rights(old, name), lambda name: rights(new, name))
    gone = RightChange("c", "clock", "", RightState.ON, RightState.OFF)
    assert diff == PolicyDiff((AgentDiff("c", (gone,), is_gone=True),), ())
    back = policy_diff(new, old, lambda name: rights(new, name), lambda name: rights(old, name))
    come = RightChange("c", "clock", "", RightState.OFF, RightState.ON)
    assert back == PolicyDiff((AgentDiff("c", (come,), is_new=True),), ())
    asking = replace(old, defaults=Defaults(approvals={"clock": Verdict.ASK}))
    asks = policy_diff(old, asking, lambda name: rights(old, name), lambda name: rights(asking, name))
    assert [(one.agent_id, [str(row.after) for row in one.rows]) for one in asks.agents] == [
        (name, ["asks first"]) for name in "abc"
    ]
    assert [*map(str, RightState)] == ["off", "off by another layer", "asks first", "on"]


def test_operation_is_dangerous_by_its_tier_or_by_what_it_deletes() -> None:
    nothing = Policy(agents={"a": Agent("a", tools=())})
    rows = difference(nothing, nothing.with_agent(Agent("a", tools=NAMES)), "a").rows

    assert {(row.tool, row.operation): row.danger for row in rows if row.danger} == {
        ("notes", "burn"): "privileged",
        ("store", "put"): "deletes",
        ("shell", ""): "privileged",
    }


def test_diff_tells_a_box_that_another_layer_keeps_off() -> None:
    policy = Policy(
        agents={"a": Agent("a", tools=(), sources=())}, defaults=Defaults(approvals={"store.put": Verdict.DENY})
    )
    after = apply(policy, preset_edit(policy, CATALOG, ["a"], Preset.EVERYTHING))
    row = next(row for row in difference(policy, after, "a").rows if row.operation == "put")
    assert (row.before, row.after, row.kind) == (RightState.OFF, RightState.OVERRULED, ChangeKind.WRITTEN)


@given(policies(), st.lists(st.sampled_from(NAMES), unique=True, min_size=2), verdicts)
def test_many_at_once_are_as_one_after_the_other(policy: Policy, tools: list[str], verdict: Verdict) -> None:
    targets = {f.name: tuple(o.name for o in f.operations) for f in CATALOG if f.name in tools}
    after = apply(policy, set_many(policy, CATALOG, "a", targets, verdict))
    for name, right in rights(after).items():
        for row in right.operations if name in targets else ():
            assert row.ticked == (verdict is not Verdict.DENY) or authors_limits(policy.agents["a"], name) > 1
            if row.ticked and verdict is Verdict.ASK:
                assert row.verdict is Verdict.ASK or denied_by_defaults(row)
    untouched = {key: value for key, value in seen(policy).items() if key[0] not in targets}
    assert untouched == {key: value for key, value in seen(after).items() if key[0] not in targets}


def denied_by_defaults(row: OperationRight) -> bool:
    where = {reason.address[0] for reason in row.reasons if reason.code == "approvals-deny" and reason.address}
    return where == {"defaults"}


@pytest.mark.parametrize("verdict", [Verdict.ALLOW, Verdict.ASK])
def test_a_wish_lifts_a_denial_by_the_agents_own_key_but_not_one_by_the_defaults(verdict: Verdict) -> None:
    agent = Agent("a", tools=("notes",), sources=(), approvals={"notes.find": Verdict.DENY})
    policy = Policy(agents={"a": agent}, defaults=Defaults(approvals={"notes.write": Verdict.DENY}))
    after = apply(policy, set_many(policy, CATALOG, "a", {"notes": ("find", "write")}, verdict))
    assert seen(after)["notes", "find"] == (True, verdict)
    assert seen(after)["notes", "write"] == (True, Verdict.DENY)
    assert rights(after)["notes"].operations[1].reasons[0].layer is Layer.APPROVALS


def test_several_rules_of_an_author_keep_out_of_many_what_they_leave_out() -> None:
    limits = (
        ToolRule("notes", AllowedOperations(frozenset({"find", "write"}))),
        ToolRule("notes", AllowedOperations(frozenset({"find", "burn"}))),
    )
    policy = Policy(agents={"a": Agent("a", tools=(), sources=(), tool_rules=limits)})
    targets = {"notes": ("find", "write", "burn"), "clock": ("",)}

    after = apply(policy, tick_many(policy, CATALOG, "a", targets, on=True))

    assert [row.operation for row in rights(after)["notes"].operations if row.ticked] == ["find"]
    assert after.agents["a"].tool_rules == limits
    assert count_excluded(policy, CATALOG, "a", targets) == 2
    with pytest.raises(EditRefused, match="turned off by tool rule 1"):
        tick_many(policy, CATALOG, "a", {"notes": targets["notes"]}, on=True)


def test_reset_leaves_the_keys_of_a_tool_whose_name_begins_alike() -> None:
    dotted = replace(CLOCK, name="notes.extra")
    agent = Agent("a", tools=("notes",), approvals={"notes.extra": Verdict.ASK, "notes.find": Verdict.ASK})
    policy = Policy(agents={"a": agent})
    after = apply(policy, reset_tools(policy, (*CATALOG, dotted), "a", ["notes"]))
    assert after.agents["a"].approvals == {"notes.extra": Verdict.ASK}


def test_several_agents_are_removed_as_one_edit() -> None:
    policy = Policy(agents={name: Agent(name) for name in ("a", "b", "c")})
    edit = remove_agents(policy, ["a", "c"])
    assert edit.name == "remove 2 agents"
    assert list(apply(policy, edit).agents) == ["b"]
    assert apply(apply(policy, edit), inverse(edit)).agents == policy.agents


def test_consent_of_an_author_is_kept_by_a_preset() -> None:
    rule = ToolRule("notes", RequiresConsent())
    policy = Policy(agents={"a": Agent("a", tools=(), sources=(), tool_rules=(rule,))})
    after = apply(policy, preset_edit(policy, CATALOG, ["a"], Preset.EVERYTHING))
    assert after.agents["a"].tool_rules == (rule,)
    assert seen(after)["notes", "find"] == (True, Verdict.ASK)
