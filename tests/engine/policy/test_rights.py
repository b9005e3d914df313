"""How ticks become edits, and what the layers say together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.base.errors import EditRefused
from gatewright.policy import edit as edits
from gatewright.policy.document import Agent, Defaults, PermissionRule, Policy, Source
from gatewright.policy.edit import AgentChange, Edit, apply, inverse
from gatewright.policy.right import OperationFacts, OperationRight, ToolFacts, ToolRight
from gatewright.policy.rights import (
    Boxes,
    ask_first,
    reset_tools,
    set_many,
    tick_many,
    tick_operations,
    tick_tool,
)
from gatewright.policy.rule import AllowedOperations, MaxCalls, RequiresConsent, ToolRule
from gatewright.policy.verdict import Action, Permission, SafetyTier, Verdict
from tests.support.rights import rights_by_layers

OPS = ("read", "append", "save", "delete")
FILE = ToolFacts(
    "file",
    1,
    (
        OperationFacts("read", SafetyTier.READ_ONLY, (Action.READ,)),
        OperationFacts("append", SafetyTier.SIDE_EFFECTING, (Action.APPEND,)),
        OperationFacts("save", SafetyTier.SIDE_EFFECTING, (Action.APPEND, Action.OVERWRITE)),
        OperationFacts("delete", SafetyTier.SIDE_EFFECTING, (Action.DELETE,)),
    ),
    SafetyTier.SIDE_EFFECTING,
    needs_source=True,
)

CLOCK = ToolFacts("clock", 1, (OperationFacts("", SafetyTier.READ_ONLY),), SafetyTier.READ_ONLY)
SHELL = ToolFacts("shell", 1, (OperationFacts("", SafetyTier.PRIVILEGED),), SafetyTier.PRIVILEGED)
CATALOG = (FILE, CLOCK, SHELL)
OPEN_SOURCE = Source("docs", "docs", Permission.ADMIN)


def policy_of(agent: Agent, *sources: Source, defaults: Defaults | None = None) -> Policy:
    return Policy(agents={agent.agent_id: agent}, sources=sources or (OPEN_SOURCE,), defaults=defaults or Defaults())


def rights_of(policy: Policy) -> dict[str, ToolRight]:
    return rights_by_layers(policy, "a", CATALOG)


def right(policy: Policy, operation: str, tool: str = "file") -> OperationRight:
    return next(o for o in rights_of(policy)[tool].operations if o.operation == operation)


def ticked(policy: Policy, tool: str = "file") -> set[str]:
    return {o.operation for o in rights_of(policy)[tool].operations if o.ticked}


def test_unticking_one_operation_writes_one_rule_with_the_others() -> None:
    policy = policy_of(Agent("a", tools=("file",)))
    after = apply(policy, tick_operations(policy, CATALOG, "a", "file", ["delete"], on=False))
    assert after.agents["a"].tool_rules == (ToolRule("file", AllowedOperations(frozenset(OPS[:3]))),)
    assert ticked(after) == {"read", "append", "save"}


def test_ticking_all_again_keeps_the_list() -> None:
    policy = policy_of(Agent("a", tools=("file",)))
    off = apply(policy, tick_operations(policy, CATALOG, "a", "file", ["delete"], on=False))
    on = apply(off, tick_operations(off, CATALOG, "a", "file", ["delete"], on=True))
    assert on.agents["a"].tool_rules == (ToolRule("file", AllowedOperations(frozenset(OPS))),)


def test_a_whole_tool_off_leaves_the_list_of_tools() -> None:
    policy = policy_of(Agent("a", tools=("file", "clock")))
    after = apply(policy, tick_tool(policy, CATALOG, "a", "file", on=False))
    assert after.agents["a"].tools == ("clock",)
    assert rights_of(after)["file"].is_hidden


def test_a_tool_off_for_an_agent_without_a_list_writes_the_others() -> None:
    policy = policy_of(Agent("a"))
    after = apply(policy, tick_tool(policy, CATALOG, "a", "file", on=False))
    assert after.agents["a"].tools == ("clock", "shell")


def test_unticking_the_last_operation_takes_the_tool_off() -> None:
    policy = policy_of(
        Agent("a", tools=("file",), tool_rules=(ToolRule("file", AllowedOperations(frozenset({"read"}))),))
    )
    after = apply(policy, tick_operations(policy, CATALOG, "a", "file", ["read"], on=False))
    assert after.agents["a"].tools == ()


def test_one_operation_of_a_tool_that_is_off_turns_on_only_that_one() -> None:
    policy = policy_of(Agent("a", tools=()))
    after = apply(policy, tick_operations(policy, CATALOG, "a", "file", ["read"], on=True))
    assert ticked(after) == {"read"}


def test_an_authors_second_rule_is_not_merged_and_stands_in_the_way() -> None:
    rules = (
        ToolRule("file", AllowedOperations(frozenset({"read", "append"}))),
        ToolRule("file", AllowedOperations(frozenset({"read", "save"}))),
    )
    policy = policy_of(Agent("a", tools=("file",), tool_rules=rules))
    assert ticked(policy) == {"read"}
    with pytest.raises(EditRefused, match="turned off by tool rule 2"):
        tick_operations(policy, CATALOG, "a", "file", ["append"], on=True)


def test_ask_first_is_an_approvals_key_and_goes_again() -> None:
    policy = policy_of(Agent("a", tools=("file",)))
    edit = ask_first(policy, CATALOG, "a", "file", "delete", on=True)
    assert edit.name == "ask first for `file.delete` of `a`"
    asking = apply(policy, edit)
    assert asking.agents["a"].approvals == {"file.delete": Verdict.ASK}
    assert right(asking, "delete").verdict is Verdict.ASK
    calm = apply(asking, ask_first(asking, CATALOG, "a", "file", "delete", on=False))
    assert calm == policy


def test_not_asking_for_a_privileged_tool_says_allow() -> None:
    policy = policy_of(Agent("a", tools=("shell",)))
    assert right(policy, "", "shell").verdict is Verdict.ASK
    edit = ask_first(policy, CATALOG, "a", "shell", "", on=False)
    assert edit.name == "do not ask for `shell` of `a`"
    after = apply(policy, edit)
    assert after.agents["a"].approvals == {"shell": Verdict.ALLOW}
    assert right(after, "", "shell").verdict is Verdict.ALLOW


def test_reset_removes_the_kept_rule_and_the_keys_of_that_tool_only() -> None:
    rules = (ToolRule("file", AllowedOperations(frozenset({"read"}))), ToolRule("file", MaxCalls(3)))
    agent = Agent("a", tools=("file",), tool_rules=rules, approvals={"file.read": Verdict.ASK, "clock": Verdict.ASK})
    policy = policy_of(agent)
    after = apply(policy, reset_tools(policy, CATALOG, "a", ("file",)))
    assert after.agents["a"].tool_rules == (ToolRule("file", MaxCalls(3)),)
    assert after.agents["a"].approvals == {"clock": Verdict.ASK}


def test_a_rule_list_is_intersected_and_the_first_denial_names_the_higher_priority() -> None:
    rules = (
        ToolRule("file", AllowedOperations(frozenset({"read"})), priority=1),
        ToolRule("file", AllowedOperations(frozenset({"append"})), priority=9),
    )
    policy = policy_of(Agent("a", tools=("file",), tool_rules=rules))
    assert rights_of(policy)["file"].is_hidden
    assert right(policy, "delete").reasons[0].address == ("agents", "a", "tool_rules", 1)


def test_without_a_source_the_file_tool_is_hidden_though_it_is_ticked() -> None:
    policy = policy_of(Agent("a", tools=("file",), sources=()))
    assert right(policy, "read").is_overruled
    assert right(policy, "read").reasons[0].code == "no-source"


@pytest.mark.parametrize(
    ("level", "hidden", "asking"),
    [
        (Permission.READ_ONLY, {"append", "save", "delete"}, set[str]()),
        (Permission.APPEND, {"delete"}, set[str]()),
        (Permission.HUMAN, set[str](), {"append", "save", "delete"}),
        (Permission.READ_WRITE, set[str](), {"delete"}),
        (Permission.NONE, set(OPS), set[str]()),
    ],
)
def test_what_no_level_permits_is_hidden(level: Permission, hidden: set[str], asking: set[str]) -> None:
    policy = policy_of(Agent("a", tools=("file",)), Source("docs", "docs", level))
    operations = rights_of(policy)["file"].operations
    assert {o.operation for o in operations if o.is_hidden} == hidden
    assert {o.operation for o in operations if o.verdict is Verdict.ASK} == asking


def test_one_rule_that_permits_is_enough_to_show_an_operation() -> None:
    source = Source("docs", "docs", Permission.READ_ONLY, (PermissionRule("scratch/**", Permission.ADMIN),))
    policy = policy_of(Agent("a", tools=("file",)), source)
    assert right(policy, "delete").verdict is Verdict.ALLOW


def test_an_approvals_deny_hides_and_the_most_specific_key_wins() -> None:
    approvals = {"side_effecting": Verdict.DENY, "file.append": Verdict.ALLOW}
    policy = policy_of(Agent("a", tools=("file",), approvals=approvals))
    shown = rights_of(policy)["file"].shown
    assert shown == {"read", "append"}


def test_a_specific_key_of_the_defaults_stands_before_a_general_one_of_the_agent() -> None:
    defaults = Defaults(approvals={"file.delete": Verdict.DENY})
    policy = policy_of(Agent("a", tools=("file",), approvals={"file": Verdict.ALLOW}), defaults=defaults)
    assert right(policy, "delete").is_hidden


def test_consent_asks_and_cannot_be_allowed_away() -> None:
    agent = Agent(
        "a", tools=("clock",), tool_rules=(ToolRule("clock", RequiresConsent()),), approvals={"clock": Verdict.ALLOW}
    )
    assert right(policy_of(agent), "", "clock").verdict is Verdict.ASK


def test_unlisted_tools_follow_the_defaults() -> None:
    assert right(policy_of(Agent("a")), "", "clock").verdict is Verdict.ALLOW
    strict = policy_of(Agent("a"), defaults=Defaults(unlisted_tools=Verdict.DENY))
    assert right(strict, "", "clock").reasons[0].code == "unlisted-tool"


def test_name_at_major_picks_that_major_and_a_bare_name_the_highest() -> None:
    second = ToolFacts("recall", 2, (OperationFacts("insert", SafetyTier.READ_ONLY),), SafetyTier.READ_ONLY)
    first = ToolFacts("recall", 1, (OperationFacts("", SafetyTier.READ_ONLY),), SafetyTier.READ_ONLY)
    old = policy_of(Agent("a", tools=("recall@1",)))
    new = policy_of(Agent("a", tools=("recall",)))
    assert rights_by_layers(old, "a", (first, second))["recall"].facts.major == 1
    assert rights_by_layers(new, "a", (second, first))["recall"].facts.major == 2


def test_an_edit_refuses_to_land_on_a_policy_that_moved_on() -> None:
    policy = policy_of(Agent("a", tools=("file",)))
    edit = tick_tool(policy, CATALOG, "a", "file", on=False)
    moved = apply(policy, tick_tool(policy, CATALOG, "a", "clock", on=True))
    with pytest.raises(EditRefused, match="changed since"):
        apply(moved, edit)


ticks = st.lists(
    st.tuples(st.sampled_from(["file", "clock", "shell"]), st.sets(st.sampled_from(OPS), min_size=1), st.booleans()),
    max_size=8,
)


@given(ticks=ticks, start=st.sampled_from([None, (), ("file",), ("clock", "shell")]))
def test_any_run_of_ticks_does_what_it_says_and_undoes_exactly(
    ticks: list[tuple[str, set[str], bool]], start: tuple[str, ...] | None
) -> None:
    policy = policy_of(Agent("a", tools=start))
    for tool, operations, on in ticks:
        chosen = operations if tool == "file" else {""}
        before = ticked(policy, tool)
        edit = tick_operations(policy, CATALOG, "a", tool, chosen, on=on)
        after = apply(policy, edit)
        assert ticked(after, tool) == (before | chosen if on else before - chosen)
        assert apply(after, inverse(edit)) == policy
        assert edits.change_set(edit).agents == {"a"}
        policy = after


def test_consent_for_one_operation_makes_no_other_one_ask() -> None:
    rule = ToolRule("clock", RequiresConsent(), ("operation:set",))
    clock = ToolFacts(
        "clock",
        1,
        (OperationFacts("read", SafetyTier.READ_ONLY), OperationFacts("set", SafetyTier.READ_ONLY)),
        SafetyTier.READ_ONLY,
    )
    right = rights_by_layers(policy_of(Agent("a", tool_rules=(rule,))), "a", (clock,))["clock"]

    assert {row.operation: row.verdict for row in right.operations} == {"read": Verdict.ALLOW, "set": Verdict.ASK}


def test_ticking_a_tool_again_brings_back_what_it_had() -> None:
    rules = (ToolRule("file", AllowedOperations(frozenset({"read", "append"}))), ToolRule("file", MaxCalls(3)))
    policy = policy_of(Agent("a", tools=("file", "clock"), tool_rules=rules))
    off = apply(policy, tick_tool(policy, CATALOG, "a", "file", on=False))
    assert off.agents["a"].tool_rules == rules
    again = apply(off, tick_tool(off, CATALOG, "a", "file", on=True))
    assert ticked(again) == {"read", "append"}
    assert again.agents["a"].tool_rules == rules
    whole = apply(again, tick_operations(again, CATALOG, "a", "file", OPS, on=True))
    assert ticked(whole) == set(OPS)


def test_ticking_many_as_before_brings_each_tool_back_and_turning_all_on_turns_all_on() -> None:
    rule = ToolRule("file", AllowedOperations(frozenset({"read"})))
    policy = policy_of(Agent("a", tools=(), tool_rules=(rule,)))
    targets = {"file": OPS, "clock": ("",)}
    before = apply(policy, tick_many(policy, CATALOG, "a", targets, on=True, as_before=True))
    assert (ticked(before), ticked(before, "clock")) == ({"read"}, {""})
    every = apply(policy, tick_many(policy, CATALOG, "a", targets, on=True))
    assert ticked(every) == set(OPS)
    some = apply(policy, tick_many(policy, CATALOG, "a", {"file": ("append",)}, on=True, as_before=True))
    assert ticked(some) == {"append"}


def test_a_rule_on_every_tool_is_never_the_one_that_ticks_rewrite() -> None:
    rule = ToolRule("*", AllowedOperations(frozenset({"read", "save"})))
    policy = policy_of(Agent("a", tools=("file",), tool_rules=(rule,)))
    with pytest.raises(EditRefused):
        tick_operations(policy, CATALOG, "a", "file", ["delete"], on=True)
    after = apply(policy, tick_operations(policy, CATALOG, "a", "file", ["save"], on=False))
    assert after.agents["a"].tool_rules[0] == rule
    assert ticked(after) == {"read"}


def test_allowing_lifts_the_agents_own_denial_and_leaves_that_of_the_defaults() -> None:
    own = policy_of(Agent("a", tools=("file",), approvals={"file.read": Verdict.DENY}))
    lifted = apply(own, set_many(own, CATALOG, "a", {"file": ("read",)}, Verdict.ALLOW))
    assert not right(lifted, "read").is_hidden
    everyone = policy_of(Agent("a", tools=("file",)), defaults=Defaults(approvals={"file.read": Verdict.DENY}))
    left = apply(everyone, set_many(everyone, CATALOG, "a", {"file": ("read",)}, Verdict.ALLOW))
    assert left.agents["a"].approvals == {}
    assert right(left, "read").is_hidden


@pytest.mark.parametrize("everyone", ["file.read", "read_only"])
@pytest.mark.parametrize("verdict", [Verdict.ALLOW, Verdict.ASK])
@pytest.mark.parametrize("own", [{}, {"file.read": Verdict.DENY}, {"file.save": Verdict.ASK}])
@pytest.mark.parametrize("operations", [("read",), OPS])
def test_no_wish_for_one_agent_opens_what_the_defaults_deny(
    everyone: str, verdict: Verdict, own: dict[str, Verdict], operations: tuple[str, ...]
) -> None:
    defaults = Defaults(approvals={everyone: Verdict.DENY, "side_effecting": Verdict.ASK})
    policy = policy_of(Agent("a", tools=("file",), approvals=own), defaults=defaults)
    wished = apply(policy, set_many(policy, CATALOG, "a", {"file": operations}, verdict))
    assert right(wished, "read").is_hidden
    toggled = apply(
        policy, ask_first(policy, CATALOG, "a", "file", "" if operations == OPS else "read", on=verdict is Verdict.ASK)
    )
    assert right(toggled, "read").is_hidden
    if operations == OPS:
        assert right(wished, "save").verdict is verdict


def test_an_agents_own_key_that_lifts_a_denial_of_the_defaults_goes_on_doing_so() -> None:
    defaults = Defaults(approvals={"read_only": Verdict.DENY})
    policy = policy_of(Agent("a", tools=("file",), approvals={"file": Verdict.ALLOW}), defaults=defaults)
    assert not right(policy, "read").is_hidden
    asking = apply(policy, set_many(policy, CATALOG, "a", {"file": ("read",)}, Verdict.ASK))
    assert right(asking, "read").verdict is Verdict.ASK


def limit(
    *operations: str, tool: str = "file", conditions: tuple[str, ...] = (), rule_id: str | None = None
) -> ToolRule:
    return ToolRule(tool, AllowedOperations(frozenset(operations)), conditions, rule_id=rule_id)


@pytest.mark.parametrize(
    ("tools", "rules", "ticks", "tools_after", "rules_after"),
    [
        (None, (), {"file": OPS[:2]}, None, (limit("read", "append"),)),
        (("file",), (limit(*OPS),), {"file": ("read",)}, ("file",), (limit("read"),)),
        ((), (), {"file": OPS}, ("file",), ()),
        ((), (limit("read"),), {"file": OPS}, ("file",), (limit(*OPS),)),
        (("file",), (), {"file": ()}, (), ()),
        (("file@1", "clock"), (), {"file": ()}, ("clock",), ()),
        (("file@2", "clock"), (), {"file": ("read",)}, ("file@2", "file", "clock"), (limit("read"),)),
        (("file@2", "file"), (), {"file": ()}, ("file@2",), ()),
        ((), (), {"clock": ("",)}, ("clock",), ()),
        (
            ("file",),
            (limit(*OPS[:3]), limit(*OPS[1:])),
            {"file": ("save",)},
            ("file",),
            (limit(*OPS[:3]), limit(*OPS[1:]), limit("save", rule_id="app:file")),
        ),
        (
            ("file",),
            (limit(*OPS[:3]), limit(*OPS, rule_id="app:file")),
            {"file": ("save",)},
            ("file",),
            (limit(*OPS[:3]), limit("save", rule_id="app:file")),
        ),
        (
            ("file",),
            (limit(*OPS, conditions=("operation:read",)),),
            {"file": ("save",)},
            ("file",),
            (limit(*OPS, conditions=("operation:read",)), limit("save", rule_id="app:file")),
        ),
        (
            ("file",),
            (limit(*OPS, tool="file@2"), limit(*OPS, tool="file@1")),
            {"file": ("save",)},
            ("file",),
            (limit(*OPS, tool="file@2"), limit("save", tool="file@1")),
        ),
    ],
)
def test_what_is_ticked_is_written_with_as_little_as_it_needs(
    tools: tuple[str, ...] | None,
    rules: tuple[ToolRule, ...],
    ticks: dict[str, tuple[str, ...]],
    tools_after: tuple[str, ...] | None,
    rules_after: tuple[ToolRule, ...],
) -> None:
    policy = policy_of(Agent("a", tools=tools, tool_rules=rules))
    boxes = Boxes(policy, policy.agents["a"], CATALOG)
    for name, wanted in ticks.items():
        boxes.tick(boxes.facts(name), frozenset(wanted))
    after = apply(policy, Edit("tick", (AgentChange(policy.agents["a"], boxes.agent),)))

    assert (boxes.agent.tools, boxes.agent.tool_rules) == (tools_after, rules_after)
    assert {name: ticked(after, name) for name in ticks} == {name: set(wanted) for name, wanted in ticks.items()}


def test_ticking_a_tool_whose_rule_lists_nothing_turns_all_of_it_on() -> None:
    policy = policy_of(Agent("a", tools=(), tool_rules=(limit(),)))
    after = apply(policy, tick_tool(policy, CATALOG, "a", "file", on=True)).agents["a"]
    assert (after.tools, after.tool_rules) == (("file",), (limit(*OPS),))


def test_agent_whose_boxes_stay_is_the_very_one_it_was() -> None:
    agent = Agent("a", tools=("file@2", "clock", "file@1"), approvals={"file": Verdict.ASK})
    boxes = Boxes(policy_of(agent), agent, CATALOG)
    boxes.tick(boxes.facts("file"), frozenset(OPS))

    assert boxes.agent is agent


def test_tool_that_is_outmoded_is_off_without_a_list_and_left_out_of_the_one_that_is_written() -> None:
    old = ToolFacts("old", 1, (OperationFacts("", SafetyTier.READ_ONLY),), SafetyTier.READ_ONLY, outmoded=True)
    agent = Agent("a")
    for unlisted, listed in ((Verdict.ALLOW, ("clock", "shell", "old")), (Verdict.DENY, ("old",))):
        policy = policy_of(agent, defaults=Defaults(unlisted_tools=unlisted))
        boxes = Boxes(policy, agent, (CLOCK, SHELL, old))
        assert [bool(boxes.ticks(one)) for one in boxes.tools] == [unlisted is Verdict.ALLOW] * 2 + [False]
        boxes.tick(old, frozenset({""}))
        assert boxes.agent.tools == listed


@pytest.mark.parametrize(
    ("own", "everyone", "operation", "on", "written"),
    [
        ({}, {}, "read", True, {"file.read": Verdict.ASK}),
        ({}, {}, "", True, {"file": Verdict.ASK}),
        ({"file.read": Verdict.ASK}, {}, "read", False, {}),
        (
            {"file.read": Verdict.ASK, "file": Verdict.ASK},
            {},
            "read",
            False,
            {"file": Verdict.ASK, "file.read": Verdict.ALLOW},
        ),
        ({"side_effecting": Verdict.ASK}, {}, "read", False, {"side_effecting": Verdict.ASK}),
        ({"side_effecting": Verdict.ASK}, {}, "", False, {"side_effecting": Verdict.ASK, "file": Verdict.ALLOW}),
        ({}, {"file": Verdict.ASK}, "save", False, {"file.save": Verdict.ALLOW}),
        ({}, {"file.save": Verdict.ALLOW, "file": Verdict.ASK}, "save", False, {}),
        ({"file": Verdict.DENY}, {}, "save", False, {"file": Verdict.DENY}),
    ],
)
def test_asking_is_written_where_it_has_to_be(
    own: dict[str, Verdict], everyone: dict[str, Verdict], operation: str, on: bool, written: dict[str, Verdict]
) -> None:
    policy = policy_of(Agent("a", approvals=own), defaults=Defaults(approvals=everyone))
    assert apply(policy, ask_first(policy, CATALOG, "a", "file", operation, on=on)).agents["a"].approvals == written


def test_edits_of_boxes_are_named_by_what_they_are_about() -> None:
    policy = policy_of(Agent("a"))
    many = {"file": OPS, "clock": ("",)}
    names = [
        tick_operations(policy, CATALOG, "a", "file", ("save", "read"), on=False).name,
        tick_operations(policy, CATALOG, "a", "clock", ("",), on=True).name,
        tick_tool(policy, CATALOG, "a", "file", on=True).name,
        tick_many(policy, CATALOG, "a", {"file": ("read",)}, on=True).name,
        tick_many(policy, CATALOG, "a", {"clock": ("",)}, on=False).name,
        tick_many(policy, CATALOG, "a", {}, on=False).name,
        *(set_many(policy, CATALOG, "a", many, verdict).name for verdict in Verdict),
        set_many(policy, CATALOG, "a", {"file": OPS[:3]}, Verdict.ASK).name,
        reset_tools(policy, CATALOG, "a", ("file",)).name,
        reset_tools(policy, CATALOG, "a", ("file", "clock")).name,
    ]
    assert names == [
        "turn off `read`, `save` of `file` for `a`",
        "turn on `clock` for `a`",
        "turn on `file` for `a`",
        "turn on `read` of `file` for `a`",
        "turn off `clock` for `a`",
        "turn off nothing for `a`",
        "turn on without asking 5 operations of 2 tools for `a`",
        "ask first for 5 operations of 2 tools for `a`",
        "turn off 5 operations of 2 tools for `a`",
        "ask first for 3 operations of `file` for `a`",
        "reset `file` for `a`",
        "reset 2 tools for `a`",
    ]
    with pytest.raises(EditRefused, match="`file` has no operation `burn`"):
        set_many(policy, CATALOG, "a", {"file": ("burn",)}, Verdict.ASK)
    with pytest.raises(EditRefused, match="no tool `fiel`"):
        tick_tool(policy, CATALOG, "a", "fiel", on=True)


@pytest.mark.parametrize(
    ("own", "everyone", "operations", "verdict", "written"),
    [
        ({}, {}, OPS, Verdict.ASK, {"file": Verdict.ASK}),
        ({}, {}, OPS[:2], Verdict.ASK, {"file.read": Verdict.ASK, "file.append": Verdict.ASK}),
        ({"file": Verdict.ASK}, {}, OPS, Verdict.ALLOW, {}),
        ({"file.read": Verdict.ASK}, {}, OPS, Verdict.ALLOW, {}),
        ({"file.read": Verdict.DENY}, {}, OPS, Verdict.ASK, {"file.read": Verdict.ASK, "file": Verdict.ASK}),
        ({}, {"read_only": Verdict.DENY}, ("read",), Verdict.ALLOW, {}),
        ({"file": Verdict.ALLOW}, {"file.read": Verdict.DENY}, OPS, Verdict.ALLOW, {"file": Verdict.ALLOW}),
        ({"file": Verdict.ASK}, {}, ("read",), Verdict.DENY, {"file": Verdict.ASK}),
    ],
)
def test_one_key_for_a_tool_makes_those_of_its_operations_needless(
    own: dict[str, Verdict],
    everyone: dict[str, Verdict],
    operations: tuple[str, ...],
    verdict: Verdict,
    written: dict[str, Verdict],
) -> None:
    policy = policy_of(Agent("a", approvals=own), defaults=Defaults(approvals=everyone))
    edit = set_many(policy, CATALOG, "a", {"file": operations}, verdict)
    assert apply(policy, edit).agents["a"].approvals == written
