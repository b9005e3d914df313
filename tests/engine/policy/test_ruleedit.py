"""Edits of an agent's rules, capabilities and approvals: what they merge into, and what they leave alone."""

import pytest

from gatewright.base.errors import EditRefused
from gatewright.base.report import Report
from gatewright.builtins import file_tool
from gatewright.policy.approvaledit import approval_keys, remove_approval, rename_approval, set_approval
from gatewright.policy.capabilityedit import Granted, change_capability, grant, needs, revoke
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import Edit, apply, inverse
from gatewright.policy.kinds.capability import CapabilityKind, Exec, NetRead
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import (
    ANY_TOOL,
    AllowedOperations,
    ArgumentConstraints,
    ContinueLoop,
    Cooldown,
    ExclusiveGroups,
    ExitLoop,
    MaxCalls,
    Periodic,
    RateLimit,
    RequiresConsent,
    ToolRule,
)
from gatewright.policy.rulecheck import mismatch
from gatewright.policy.ruleedit import (
    RulePosition,
    bind_rule,
    change_constraint,
    change_rule,
    free_fields,
    remove_constraint,
    remove_rule,
    set_constraint,
    set_limit,
    taken_fields,
)
from gatewright.policy.tier import SafetyTier
from gatewright.policy.verdict import Verdict

SIDE = SafetyTier.SIDE_EFFECTING


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (ToolRule("*", AllowedOperations(frozenset({"up"}))), "an AllowedOperations rule must name one tool"),
        (ToolRule("clock", AllowedOperations(frozenset({"up"}))), "`clock` has no operations that a rule could allow"),
        (
            ToolRule("counter", AllowedOperations(frozenset({"sideways"}))),
            "a rule names `sideways`, which `counter` does not have",
        ),
        (
            ToolRule("counter", AllowedOperations(frozenset({"up"})), conditions=("operation:sideways",)),
            "a rule names `sideways`, which `counter` does not have",
        ),
        (
            ToolRule("counter", MaxCalls(1), conditions=("operation:sideways",)),
            "a rule names `sideways`, which `counter` does not have",
        ),
        (ToolRule("counter", AllowedOperations(frozenset({"up"})), conditions=("operation:up",)), None),
        (ToolRule("counter", MaxCalls(1)), None),
        (ToolRule("*", MaxCalls(1)), None),
    ],
)
def test_rule_that_does_not_fit_its_tool_says_why(rule: ToolRule, why: str | None) -> None:
    clock = ToolFacts("clock", 1, (OperationFacts("", SIDE),), SIDE)
    counter = ToolFacts("counter", 1, (OperationFacts("up", SIDE), OperationFacts("down", SIDE)), SIDE)
    assert mismatch(clock if rule.tool_name == "clock" else counter, rule) == why


def test_field_of_the_operation_can_be_asked_for_and_what_is_not_taken_is_not() -> None:
    facts = file_tool().facts()
    rule = ToolRule("file", ArgumentConstraints({}, ("op", "path", "nothing")))
    asked = {row.name: facts.asked_by(rule, row) for row in facts.operations}
    assert (asked["read"], asked["list"]) == (("op", "path"), ("op",))
    bound = ToolRule("file", ArgumentConstraints({}, ("op",)), conditions=("operation:read",))
    assert {row.name for row in facts.operations if facts.asked_by(bound, row)} == {"read"}
    assert facts.asked_by(ToolRule("file", MaxCalls(1)), facts.operations[0]) == ()


def test_argument_named_required_has_a_rule_of_its_own() -> None:
    report = Report()
    ArgumentConstraints({"required": {"const": 1}}, ("a",)).check((), report)
    assert [(one.code, one.message) for one in report.findings] == [
        ("bad-value", "what an argument named `required` may be stands in a rule of its own")
    ]


PATCHES = frozenset({CapabilityKind.ADVANCED_EDIT})
NOTES = ToolFacts(
    "notes",
    1,
    (
        OperationFacts("find", SIDE, parameters=("op", "words")),
        OperationFacts("write", SIDE, parameters=("op", "page", "text"), capabilities=PATCHES),
    ),
    SIDE,
)
CLOCK = ToolFacts("clock", 1, (OperationFacts("", SIDE, capabilities=frozenset({CapabilityKind.CLOCK_READ})),), SIDE)
CATALOG = (NOTES, CLOCK)
RULES = (
    ToolRule(ANY_TOOL, MaxCalls(100)),
    ToolRule("notes", MaxCalls(40), priority=7, rule_id="calls", metadata={"why": "slow"}),
    ToolRule("notes", ArgumentConstraints({"page": {"maxLength": 9}}), ("operation:write",)),
    ToolRule("notes@1", Cooldown(1.0)),
)
POLICY = Policy(agents={"a": Agent("a", tools=("notes",), tool_rules=RULES, approvals={"notes.write": Verdict.ASK})})


def rules_after(edit: Edit) -> tuple[ToolRule, ...]:
    after = apply(POLICY, edit)
    assert apply(after, inverse(edit)) == POLICY
    return after.agents["a"].tool_rules


def standing(index: int) -> RulePosition:
    return RulePosition("a", index, RULES[index])


def test_a_limit_goes_into_the_rule_of_its_kind_for_the_same_operations() -> None:
    rules = rules_after(set_limit(POLICY, CATALOG, "a", "notes", MaxCalls(5)))

    assert rules == (RULES[0], ToolRule("notes", MaxCalls(5), (), 7, "calls", {"why": "slow"}), *RULES[2:])


def test_a_rule_for_a_major_version_is_the_tools_own_too() -> None:
    assert rules_after(set_limit(POLICY, CATALOG, "a", "notes", Cooldown(2.0)))[3] == ToolRule("notes@1", Cooldown(2.0))


def test_a_limit_for_one_operation_leaves_the_one_for_all_alone() -> None:
    rules = rules_after(set_limit(POLICY, CATALOG, "a", "notes", MaxCalls(5), ("write",)))

    assert rules == (*RULES, ToolRule("notes", MaxCalls(5), ("operation:write",)))


def test_a_rule_for_every_tool_is_never_edited_from_one_tool() -> None:
    rules = rules_after(set_limit(POLICY, CATALOG, "a", "clock", MaxCalls(5)))

    assert rules == (*RULES, ToolRule("clock", MaxCalls(5)))


def test_the_same_value_again_is_an_empty_edit() -> None:
    assert set_limit(POLICY, CATALOG, "a", "notes", MaxCalls(40)).is_empty
    assert bind_rule(POLICY, CATALOG, standing(2), ("write",)).is_empty


def test_an_edit_refuses_once_the_rule_is_not_what_it_was() -> None:
    moved = apply(POLICY, remove_rule(POLICY, standing(0)))

    for edit in (
        lambda: change_rule(moved, standing(1), MaxCalls(1)),
        lambda: remove_rule(moved, standing(3)),
        lambda: bind_rule(moved, CATALOG, standing(1), ("find",)),
    ):
        with pytest.raises(EditRefused, match="is not what it was"):
            edit()


def test_unknown_tools_operations_and_arguments_are_refused_by_name() -> None:
    with pytest.raises(EditRefused, match="no tool `nots`"):
        set_limit(POLICY, CATALOG, "a", "nots", MaxCalls(1))
    with pytest.raises(EditRefused, match="has no operation `burn`"):
        set_limit(POLICY, CATALOG, "a", "notes", MaxCalls(1), ("burn",))
    with pytest.raises(EditRefused, match="a rule for no operation"):
        bind_rule(POLICY, CATALOG, standing(1), ())
    with pytest.raises(EditRefused, match=r"`notes\.find` takes no `page`; it takes `op`, `words`"):
        set_constraint(POLICY, CATALOG, "a", "notes", "page", True, ("find",))


def test_constraints_of_one_rule_are_changed_one_by_one() -> None:
    added = rules_after(set_constraint(POLICY, CATALOG, "a", "notes", "text", {"maxLength": 3}, ("write",)))
    assert added[2].rule_type == ArgumentConstraints({"page": {"maxLength": 9}, "text": {"maxLength": 3}})
    moved = rules_after(change_constraint(POLICY, CATALOG, standing(2), "page", "text", {"const": "x"}))
    assert moved[2].rule_type == ArgumentConstraints({"text": {"const": "x"}})
    assert rules_after(remove_constraint(POLICY, standing(2), "page")) == (*RULES[:2], RULES[3])
    with pytest.raises(EditRefused, match="constrains no arguments"):
        remove_constraint(POLICY, standing(1), "page")
    with pytest.raises(EditRefused, match="the rule does not constrain `text` any more"):
        change_constraint(POLICY, CATALOG, standing(2), "text", "text", {"const": "x"})


def test_a_constraint_that_stands_is_never_replaced_by_a_new_one() -> None:
    with pytest.raises(EditRefused, match=r"`page` of `notes\.write` is constrained already"):
        set_constraint(POLICY, CATALOG, "a", "notes", "page", {"maxLength": 99}, ("write",))
    assert free_fields(POLICY.agents["a"], NOTES, ("write",)) == ("op", "text")
    assert free_fields(POLICY.agents["a"], NOTES) == ("op", "words", "page", "text")


def test_binding_one_argument_leaves_what_the_rule_says_of_others_alone() -> None:
    both = ToolRule("notes", ArgumentConstraints({"op": {"maxLength": 9}, "page": {"maxLength": 3}}), (), 7, "both")
    policy = Policy(agents={"a": Agent("a", tools=("notes",), tool_rules=(both,))})

    after = apply(policy, bind_rule(policy, CATALOG, RulePosition("a", 0, both), ("write",), "page"))

    assert after.agents["a"].tool_rules == (
        ToolRule("notes", ArgumentConstraints({"op": {"maxLength": 9}}), (), 7, "both"),
        ToolRule("notes", ArgumentConstraints({"page": {"maxLength": 3}}), ("operation:write",), 7),
    )
    with pytest.raises(EditRefused, match=r"`notes\.find` takes no `page`"):
        bind_rule(policy, CATALOG, RulePosition("a", 0, both), ("find",), "page")


def test_what_must_be_given_is_set_moved_bound_and_removed_with_its_argument() -> None:
    asked = rules_after(set_constraint(POLICY, CATALOG, "a", "notes", "text", None, ("write",), required=True))
    assert asked[2].rule_type == ArgumentConstraints({"page": {"maxLength": 9}}, ("text",))
    policy = Policy(agents={"a": Agent("a", tools=("notes",), tool_rules=asked)})
    place = RulePosition("a", 2, asked[2])
    assert free_fields(policy.agents["a"], NOTES, ("write",)) == ("op",)

    def after(edit: Edit) -> list[ArgumentConstraints]:
        rules = apply(policy, edit).agents["a"].tool_rules
        return [rule.rule_type for rule in rules if isinstance(rule.rule_type, ArgumentConstraints)]

    assert after(remove_constraint(policy, place, "text")) == [ArgumentConstraints({"page": {"maxLength": 9}})]
    assert after(change_constraint(policy, CATALOG, place, "text", "op", {"const": "write"}, required=True)) == [
        ArgumentConstraints({"page": {"maxLength": 9}, "op": {"const": "write"}}, ("op",))
    ]
    assert after(bind_rule(policy, CATALOG, place, None, "text")) == [
        ArgumentConstraints({"page": {"maxLength": 9}}),
        ArgumentConstraints({}, ("text",)),
    ]
    assert after(bind_rule(policy, CATALOG, place, None, "page")) == [
        ArgumentConstraints({}, ("text",)),
        ArgumentConstraints({"page": {"maxLength": 9}}),
    ]


def test_names_read_well_in_the_undo_menu() -> None:
    names = [
        set_limit(POLICY, CATALOG, "a", "notes", ExitLoop(), ("write",)).name,
        set_limit(POLICY, CATALOG, "a", "notes", RateLimit(1, 90.0)).name,
        remove_rule(POLICY, standing(1)).name,
        *(
            change_rule(POLICY, standing(1), kind).name.removesuffix(" for `a`")
            for kind in (
                ContinueLoop(),
                Cooldown(2.0),
                ExclusiveGroups((("x",), ("y",))),
                Periodic(60.0),
                RequiresConsent("money"),
                RequiresConsent(),
            )
        ),
    ]

    assert names == [
        "end the loop after `notes.write` for `a`",
        "limit `notes` to 1 call per 1 min 30 s for `a`",
        "remove the limit of calls of `notes` for `a`",
        "go on after `notes`",
        "pause 2 s between calls of `notes`",
        "change the groups of `notes`",
        "remind of `notes` every 1 min",
        "consent for `notes` (scope money)",
        "consent for `notes`",
    ]


def test_arguments_are_those_of_the_operations() -> None:
    assert taken_fields(NOTES) == ("op", "words", "page", "text")
    assert taken_fields(NOTES, ("write",)) == ("op", "page", "text")


def test_what_needs_a_capability_is_named_whole_or_by_operation() -> None:
    assert needs(CATALOG) == {CapabilityKind.ADVANCED_EDIT: ("notes.write",), CapabilityKind.CLOCK_READ: ("clock",)}


def test_a_grant_is_joined_changed_and_revoked() -> None:
    once = apply(POLICY, grant(POLICY, "a", NetRead(("x.org",))))
    twice = apply(once, grant(once, "a", NetRead(("y.org", "x.org"))))
    assert twice.agents["a"].capabilities == (NetRead(("x.org", "y.org")),)
    with pytest.raises(EditRefused, match="granted that `NetRead` already"):
        grant(twice, "a", NetRead(("y.org",)))
    held = apply(twice, grant(twice, "a", Exec()))
    with pytest.raises(EditRefused, match="`Exec` is granted already"):
        grant(held, "a", Exec(1.0))
    changed = apply(held, change_capability(held, Granted("a", 1, Exec()), Exec(2.0)))
    assert changed.agents["a"].capabilities[1] == Exec(2.0)
    with pytest.raises(EditRefused, match="is not what it was"):
        revoke(changed, Granted("a", 1, Exec()))


@pytest.mark.parametrize(
    ("count", "key", "near"),
    [(3000, "tool_1234x", "tool_1234"), (197, "zool_0003", "tool_0003"), (198, "zool_0003", "tool_0103")],
)
def test_a_near_miss_is_found_among_many_keys(count: int, key: str, near: str) -> None:
    many = tuple(ToolFacts(f"tool_{number:04}", 1, (OperationFacts("", SIDE),), SIDE) for number in range(count))
    with pytest.raises(EditRefused, match=rf"did you mean `{near}`\?"):
        set_approval(POLICY, many, "a", key, Verdict.ASK)


def test_approvals_keys_name_a_tier_a_tool_or_an_operation() -> None:
    assert approval_keys(CATALOG)[3:] == ("notes", "notes.find", "notes.write", "clock")
    with pytest.raises(EditRefused, match=r"did you mean `notes\.find`"):
        set_approval(POLICY, CATALOG, "a", "notes.fnd", Verdict.ASK)
    with pytest.raises(EditRefused, match="has no approvals key `clock`"):
        remove_approval(POLICY, "a", "clock")
    twice = apply(POLICY, set_approval(POLICY, CATALOG, "a", "clock", Verdict.DENY))
    with pytest.raises(EditRefused, match="has an approvals key `clock` already"):
        rename_approval(twice, CATALOG, "a", "notes.write", "clock")
    assert dict(apply(twice, remove_approval(twice, "a", "notes.write")).agents["a"].approvals) == {
        "clock": Verdict.DENY
    }


def test_a_wrong_key_is_told_the_nearest_of_thousands() -> None:
    rows = tuple(OperationFacts(f"op_{n:03}", SIDE) for n in range(40))
    catalog = tuple(ToolFacts(f"tool_{n:03}", 1, rows, SIDE) for n in range(100))

    with pytest.raises(EditRefused, match=r"did you mean `tool_070\.op_\d+`"):
        set_approval(POLICY, catalog, "a", "tool_070.op_01", Verdict.ASK)


def test_a_rule_of_several_majors_is_bound_to_what_the_agents_major_has() -> None:
    newer = ToolFacts("notes", 2, (OperationFacts("burn", SIDE),), SIDE)
    rule = ToolRule("notes", MaxCalls(1))
    policy = Policy(agents={"a": Agent("a", tools=("notes@1",), tool_rules=(rule,))})

    after = apply(policy, bind_rule(policy, (NOTES, newer), RulePosition("a", 0, rule), ("write",)))

    assert after.agents["a"].tool_rules[0].conditions == ("operation:write",)
    with pytest.raises(EditRefused, match="has no operation `burn`"):
        bind_rule(policy, (NOTES, newer), RulePosition("a", 0, rule), ("burn",))
