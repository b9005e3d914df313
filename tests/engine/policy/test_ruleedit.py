"""Edits of an agent's rules, capabilities and approvals: what they merge into, and what they leave alone."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gatewright.base.errors import EditRefused, Report
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins import file_tool
from gatewright.policy.agentedit import (
    Granted,
    approval_keys,
    change_capability,
    grant,
    needs,
    remove_approval,
    rename_approval,
    revoke,
    scope_example,
    set_approval,
)
from gatewright.policy.capability import CapabilityKind, Exec, NetRead
from gatewright.policy.document import Agent, Policy, Roots, Source
from gatewright.policy.edit import Edit, apply, inverse
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
    RequiresPrecedingTools,
    ToolRule,
)
from gatewright.policy.ruleedit import (
    RulePosition,
    argument_names,
    bind_rule,
    change_constraint,
    change_rule,
    free_fields,
    remove_constraint,
    remove_rule,
    set_constraint,
    set_limit,
)
from gatewright.policy.rulematch import mismatch
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.schema.selector import selector_of

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
    asked = {row.name: facts.mandatory_arguments(rule, row) for row in facts.operations}
    assert (asked["read"], asked["list"]) == (("op", "path"), ("op",))
    bound = ToolRule("file", ArgumentConstraints({}, ("op",)), conditions=("operation:read",))
    assert {row.name for row in facts.operations if facts.mandatory_arguments(bound, row)} == {"read"}
    assert facts.mandatory_arguments(ToolRule("file", MaxCalls(1)), facts.operations[0]) == ()
    said: list[dict[str, JsonValue]] = [{"properties": {"op": {"default": "read"}}}, {"properties": {"op": {}}}, {}]
    selections = [selector_of("op", facts.operation_names, None, schema) for schema in said]
    plain = replace(
        facts, operations=(OperationFacts("read", SIDE, parameters=("path",), defaulted=frozenset({"path"})),)
    )
    asked = [
        replace(plain, selection=one).mandatory_arguments(rule, plain.operations[0]) for one in (None, *selections)
    ]
    assert asked == [(), (), ("op",), ("op",)]
    none = ToolFacts("file", 1, (OperationFacts("", SIDE),), SIDE)
    every = ToolRule(ANY_TOOL, rule.rule_type)
    assert [none.mandatory_arguments(one, none.operations[0]) for one in (rule, every)] == [
        ("op", "path", "nothing"),
        (),
    ]


def test_argument_named_required_has_a_rule_of_its_own() -> None:
    report = Report()
    ArgumentConstraints({"required": {"const": 1}}, ("a",)).check((), report)
    assert [(one.code, one.message) for one in report.findings] == [
        ("bad-value", "an argument named `required` needs a rule of its own for its schema")
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
        lambda: change_rule(moved, standing(0), MaxCalls(1)),
        lambda: remove_rule(moved, standing(0)),
        lambda: bind_rule(moved, CATALOG, standing(0), ("find",)),
    ):
        with pytest.raises(EditRefused, match="is not what it was"):
            edit()


def test_an_edit_follows_its_rule_to_where_it_stands_now() -> None:
    moved = apply(POLICY, remove_rule(POLICY, standing(0)))

    after = apply(moved, remove_rule(moved, standing(1)))

    assert after.agents["a"].tool_rules == RULES[2:]


WIDE = ToolFacts("wide", 1, (OperationFacts("", SIDE, parameters=tuple("abcdefghi")),), SIDE)
ALL_OTHERS = "`a`, `b`, `c`, `d`, `e`, `f`, `g`, `h`"


def refusal(make: Callable[[], Edit]) -> str:
    with pytest.raises(EditRefused) as refused:
        make()
    return str(refused.value)


def test_what_an_edit_of_a_rule_cannot_be_about_is_refused_by_name() -> None:
    every, gone = RulePosition("a", 0, RULES[0]), RulePosition("b", 0, ToolRule("gone", MaxCalls(1)))
    policy = replace(POLICY, agents={**POLICY.agents, "b": Agent("b", tool_rules=(gone.rule,))})
    assert [
        refusal(make)
        for make in (
            lambda: set_limit(policy, CATALOG, "a", "nots", MaxCalls(1)),
            lambda: set_limit(policy, CATALOG, "a", "notes", MaxCalls(1), ("burn", "ash")),
            lambda: bind_rule(policy, CATALOG, standing(1), ()),
            lambda: bind_rule(policy, CATALOG, every, ("write",)),
            lambda: bind_rule(policy, CATALOG, gone, ("write",)),
            lambda: set_constraint(policy, CATALOG, "a", "notes", "page", True, ("find",)),
            lambda: set_constraint(policy, CATALOG, "a", "notes", "", True),
            lambda: set_constraint(policy, CATALOG, "a", "clock", "", True),
            lambda: set_constraint(policy, (WIDE,), "a", "wide", "z", True),
            lambda: set_constraint(policy, CATALOG, "a", "notes", "page", True, ("write",)),
            lambda: bind_rule(policy, CATALOG, standing(2), None, "op"),
            lambda: bind_rule(policy, CATALOG, standing(1), ("write",), "op"),
            lambda: change_constraint(policy, CATALOG, standing(2), "text", "text", True),
            lambda: change_constraint(policy, CATALOG, standing(2), "page", "words", True),
            lambda: remove_constraint(policy, standing(1), "page"),
            lambda: remove_rule(policy, RulePosition("a", 4, ToolRule("notes", MaxCalls(1)))),
            lambda: remove_rule(policy, RulePosition("c", 0, RULES[3])),
        )
    ] == [
        "no tool `nots`",
        "`notes` has no operation `ash`",
        "a rule for no operation would never apply: name one, or bind it to all",
        "no tool `*`",
        "no tool `gone`",
        "`notes.find` takes no `page`; it takes `op`, `words`",
        "`notes` takes no ``; it takes `op`, `words`, `page`, `text`",
        "`clock` takes no ``; it takes nothing",
        f"`wide` takes no `z`; it takes {ALL_OTHERS}",
        "`page` of `notes.write` is constrained already: change that one",
        "the rule does not constrain `op` any more",
        "the rule constrains no arguments",
        "the rule does not constrain `text` any more",
        "`notes.write` takes no `words`; it takes `op`, `page`, `text`",
        "the rule constrains no arguments",
        "tool rule 5 of `a` is not what it was",
        "no agent `c`",
    ]
    two = RulePosition("b", 0, ToolRule("notes", ArgumentConstraints({"page": True, "text": True})))
    policy = Policy(agents={"b": Agent("b", tool_rules=(two.rule,))})
    said = refusal(lambda: change_constraint(policy, CATALOG, two, "page", "text", True))
    assert said == "the rule constrains `text` already"


def test_tool_that_names_no_argument_may_be_constrained_by_any() -> None:
    after = rules_after(set_constraint(POLICY, CATALOG, "a", "clock", "zone", {"const": "UTC"}))
    assert after == (*RULES, ToolRule("clock", ArgumentConstraints({"zone": {"const": "UTC"}})))


def test_rule_about_other_tools_stays_so_when_it_is_bound() -> None:
    rule = ToolRule("notes", RequiresPrecedingTools(), ("clock", "operation:find"), 3, "id", {"k": 1})
    policy = Policy(agents={"a": Agent("a", tool_rules=(rule,))})
    edit = bind_rule(policy, CATALOG, RulePosition("a", 0, rule), ("write",))
    assert apply(policy, edit).agents["a"].tool_rules == (replace(rule, conditions=("clock", "operation:write")),)
    assert edit.name == "order before of `a` is for `notes.write`"


def test_constraints_of_one_rule_are_changed_one_by_one() -> None:
    added = rules_after(set_constraint(POLICY, CATALOG, "a", "notes", "text", {"maxLength": 3}, ("write",)))
    assert added[2].rule_type == ArgumentConstraints({"page": {"maxLength": 9}, "text": {"maxLength": 3}})
    moved = rules_after(change_constraint(POLICY, CATALOG, standing(2), "page", "text", {"const": "x"}))
    assert moved[2].rule_type == ArgumentConstraints({"text": {"const": "x"}})
    assert rules_after(remove_constraint(POLICY, standing(2), "page")) == (*RULES[:2], RULES[3])


def test_arguments_that_a_rule_constrains_already_are_not_free() -> None:
    assert free_fields(POLICY.agents["a"], NOTES, ("write",)) == ("op", "text")
    assert free_fields(POLICY.agents["a"], NOTES) == ("op", "words", "page", "text")


def test_binding_one_argument_leaves_what_the_rule_says_of_others_alone() -> None:
    both = ToolRule("notes", ArgumentConstraints({"op": {"maxLength": 9}, "page": {"maxLength": 3}}), (), 7, "both")
    policy = Policy(agents={"a": Agent("a", tools=("notes",), tool_rules=(both,))})

    changed = apply(policy, change_constraint(policy, CATALOG, RulePosition("a", 0, both), "op", "op", True))
    (rule,) = changed.agents["a"].tool_rules
    assert isinstance(rule.rule_type, ArgumentConstraints)
    assert list(rule.rule_type.fields.items()) == [("op", True), ("page", {"maxLength": 3})]
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
        bind_rule(POLICY, CATALOG, standing(1), ("write", "find")).name,
        bind_rule(POLICY, CATALOG, standing(2), None).name,
        bind_rule(POLICY, CATALOG, standing(2), None, "page").name,
        set_constraint(POLICY, CATALOG, "a", "notes", "text", {"maxLength": 3}, ("write",)).name,
        set_constraint(POLICY, CATALOG, "a", "notes", "text", None, required=True).name,
        change_constraint(POLICY, CATALOG, standing(2), "page", "text", None, required=True).name,
        remove_constraint(POLICY, standing(2), "page").name,
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
        "limit of calls of `a` is for `notes.find`, `notes.write`",
        "constraint of `a` is for all operations of `notes`",
        "constraint of `page` of `a` is for all operations of `notes`",
        "constrain `text` of `notes.write` for `a`",
        "require `text` of `notes` for `a`",
        "require `text` of `notes.write` for `a`",
        "remove the constraint of `page` of `notes.write` for `a`",
        "go on after `notes`",
        "pause 2 s between calls of `notes`",
        "change the groups of `notes`",
        "remind of `notes` every 1 min",
        "consent for `notes` (scope money)",
        "consent for `notes`",
    ]


def test_arguments_are_those_of_the_operations() -> None:
    assert argument_names(NOTES) == ("op", "words", "page", "text")
    assert argument_names(NOTES, ("write",)) == ("op", "page", "text")


def test_what_needs_a_capability_is_named_whole_or_by_operation() -> None:
    assert needs(CATALOG) == {CapabilityKind.ADVANCED_EDIT: ("notes.write",), CapabilityKind.CLOCK_READ: ("clock",)}


def test_a_grant_is_joined_changed_and_revoked() -> None:
    once = apply(POLICY, first := grant(POLICY, "a", NetRead(("x.org",))))
    twice = apply(once, second := grant(once, "a", NetRead(("y.org", "x.org"))))
    assert twice.agents["a"].capabilities == (NetRead(("x.org", "y.org")),)
    held = apply(twice, grant(twice, "a", Exec()))
    changed = apply(held, third := change_capability(held, Granted("a", 1, Exec()), Exec(2.0)))
    assert changed.agents["a"].capabilities == (NetRead(("x.org", "y.org")), Exec(2.0))
    last = revoke(changed, Granted("a", 0, NetRead(("x.org", "y.org"))))
    assert apply(changed, last).agents["a"].capabilities == (Exec(2.0),)
    assert [one.name for one in (first, second, third, last)] == [
        "grant `NetRead` to `a`",
        "widen `NetRead` of `a`",
        "change `Exec` of `a`",
        "revoke `NetRead` of `a`",
    ]
    assert refusal(lambda: grant(twice, "a", NetRead(("y.org",)))) == "`a` is granted that `NetRead` already"
    assert refusal(lambda: grant(held, "a", Exec(1.0))) == "`Exec` is granted already: change what stands there"
    assert refusal(lambda: revoke(changed, Granted("a", 1, Exec()))) == "capability 2 of `a` is not what it was"


def test_example_of_folders_is_what_the_policy_names() -> None:
    kinds = (CapabilityKind.FS_READ, CapabilityKind.FS_WRITE, CapabilityKind.DB_READ, CapabilityKind.CLOCK_READ)
    docs = (Source("d", "docs"), Source("e", "docs"), Source("n", "more"))
    roots = Roots("files", "tmp", "vault")
    policies = (None, Policy(), Policy(sources=docs), Policy(sources=docs, roots=roots))
    assert [[scope_example(kind, policy) for kind in kinds] for policy in policies] == [
        ["notes, drafts/2024", "notes, drafts/2024", "notes, tags", ""],
        ["notes, drafts/2024", "notes, drafts/2024", "notes, tags", ""],
        ["docs, more", "docs, more", "notes, tags", ""],
        ["files, tmp", "files, tmp", "notes, tags", ""],
    ]


@pytest.mark.parametrize(
    ("count", "key", "near"),
    [(3000, "tool_1234x", "tool_1234"), (197, "zool_0003", "tool_0003"), (198, "zool_0003", "tool_0103")],
)
def test_a_near_miss_is_found_among_many_keys(count: int, key: str, near: str) -> None:
    many = tuple(ToolFacts(f"tool_{number:04}", 1, (OperationFacts("", SIDE),), SIDE) for number in range(count))
    with pytest.raises(EditRefused, match=rf"did you mean `{near}`\?"):
        set_approval(POLICY, many, "a", key, Verdict.ASK)


def test_approvals_keys_name_a_tier_a_tool_or_an_operation() -> None:
    tiers = ("read_only", "side_effecting", "privileged")
    assert approval_keys(Policy(), CATALOG) == (*tiers, "notes", "notes.find", "notes.write", "clock")
    twice = apply(POLICY, added := set_approval(POLICY, CATALOG, "a", "clock", Verdict.DENY))
    renamed = rename_approval(twice, CATALOG, "a", "notes.write", "notes")
    removed = remove_approval(twice, "a", "notes.write")
    changed = set_approval(replace(POLICY), (), "a", "notes.write", Verdict.ALLOW)
    after = [
        apply(one, edit).agents["a"].approvals for one, edit in ((twice, renamed), (twice, removed), (POLICY, changed))
    ]
    assert [list(one.items()) for one in after] == [
        [("notes", Verdict.ASK), ("clock", Verdict.DENY)],
        [("clock", Verdict.DENY)],
        [("notes.write", Verdict.ALLOW)],
    ]
    assert [one.name for one in (added, renamed, removed, changed)] == [
        "turn off `clock` for `a` by approvals",
        "approvals key `notes` instead of `notes.write` for `a`",
        "remove the approvals key `notes.write` of `a`",
        "never ask for `notes.write` for `a` by approvals",
    ]
    assert rename_approval(POLICY, CATALOG, "a", "notes.write", "notes.write").is_empty
    unknown = "is neither a tier nor a tool nor `tool.operation`"
    assert [
        refusal(make)
        for make in (
            lambda: set_approval(POLICY, CATALOG, "a", "notes.fnd", Verdict.ASK),
            lambda: set_approval(POLICY, CATALOG, "a", "xyz", Verdict.ASK),
            lambda: rename_approval(POLICY, CATALOG, "a", "notes.write", "xyz"),
            lambda: remove_approval(POLICY, "a", "clock"),
            lambda: rename_approval(POLICY, CATALOG, "a", "clock", "clock"),
            lambda: rename_approval(twice, CATALOG, "a", "notes.write", "clock"),
        )
    ] == [
        f"`notes.fnd` {unknown}; did you mean `notes.find`?",
        f"`xyz` {unknown}",
        f"`xyz` {unknown}",
        "`a` has no approvals key `clock`",
        "`a` has no approvals key `clock`",
        "`a` has an approvals key `clock` already",
    ]


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
