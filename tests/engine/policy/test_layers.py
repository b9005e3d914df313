"""What each layer says to an operation whatever its arguments are, with the place that says it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatewright.base.errors import Problem, Severity, Subject
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins import file_tool
from gatewright.policy.capability import Capability, CapabilityKind, FsRead, NetRead, NetWrite
from gatewright.policy.document import (
    Agent,
    Catalog,
    CatalogType,
    Defaults,
    PermissionRule,
    Policy,
    Source,
    ToolSettings,
)
from gatewright.policy.layer import Layers
from gatewright.policy.reach import place_rights
from gatewright.policy.right import Layer, OperationFacts, OperationRight, PathArgument, Reason, ToolFacts
from gatewright.policy.rule import (
    AllowedOperations,
    ArgumentConstraints,
    ExclusiveGroups,
    MaxCalls,
    PolicyRule,
    RequiresConsent,
    RequiresPrecedingTools,
    ToolRule,
)
from gatewright.policy.rulematch import (
    all_with_settings,
    policy_rule_misfits,
    setting_misfit,
    unknown_tools,
    with_settings,
)
from gatewright.policy.verdict import Action, PathUse, Permission, SafetyTier, Verdict
from tests.support.rights import rights_by_layers

NET = frozenset({CapabilityKind.NET_READ})
FS = frozenset({CapabilityKind.FS_READ})
FETCH = ToolFacts(
    "fetch",
    1,
    (
        OperationFacts("get", SafetyTier.READ_ONLY, capabilities=NET, judged=NET),
        OperationFacts("search", SafetyTier.READ_ONLY, capabilities=NET),
        OperationFacts("help", SafetyTier.READ_ONLY),
    ),
    SafetyTier.READ_ONLY,
)
FILE = ToolFacts(
    "file",
    1,
    (
        OperationFacts("read", SafetyTier.READ_ONLY, (Action.READ,)),
        OperationFacts("append", SafetyTier.SIDE_EFFECTING, (Action.APPEND,)),
        OperationFacts("delete", SafetyTier.SIDE_EFFECTING, (Action.DELETE,)),
    ),
    SafetyTier.SIDE_EFFECTING,
    needs_source=True,
)

CLOCK = ToolFacts("clock", 1, (OperationFacts("", SafetyTier.READ_ONLY),), SafetyTier.READ_ONLY)
DOCS = Source("docs", "docs", Permission.ADMIN)


def policy_of(agent: Agent | None = None, *rules: PolicyRule, **more: object) -> Policy:
    held = agent or Agent("a")
    return replace(Policy(agents={held.agent_id: held}, sources=(DOCS,), rules=rules), **more)  # pyright: ignore[reportArgumentType]


def row(policy: Policy, facts: ToolFacts, operation: str) -> OperationRight:
    right = rights_by_layers(policy, "a", (facts,))[facts.name]
    return next(one for one in right.operations if one.operation == operation)


def shown(policy: Policy, facts: ToolFacts) -> set[str]:
    return set(rights_by_layers(policy, "a", (facts,))[facts.name].shown)


def first(right: OperationRight) -> Reason:
    return right.reasons[0]


def granted(*capabilities: Capability) -> Policy:
    return policy_of(Agent("a", capabilities=capabilities))


def test_operation_whose_kind_is_not_granted_is_off_and_its_box_stays_ticked() -> None:
    right = row(policy_of(), FETCH, "get")

    assert (right.ticked, right.verdict) == (True, Verdict.DENY)
    assert (first(right).layer, first(right).code) == (Layer.CAPABILITY, "capability-not-granted")
    assert first(right).address == ("agents", "a")
    assert "NetRead" in first(right).text


def test_address_of_a_missing_grant_is_the_list_where_one_is_written() -> None:
    right = row(granted(FsRead(("docs",))), FETCH, "get")

    assert first(right).address == ("agents", "a", "capabilities")


def test_operation_without_needs_asks_for_no_grant() -> None:
    assert shown(policy_of(), FETCH) == {"help"}


def test_grant_that_reaches_nothing_grants_nothing() -> None:
    assert shown(granted(NetRead(())), FETCH) == {"help"}


def test_limited_grant_hides_what_names_nothing_to_judge_it_by() -> None:
    limited = granted(NetRead(("*.example.org",)), NetWrite(("*",)))

    assert shown(limited, FETCH) == {"get", "help"}
    assert first(row(limited, FETCH, "search")).code == "capability-unjudgeable"
    assert shown(granted(NetRead(("*",))), FETCH) == {"get", "search", "help"}


def test_unconditional_deny_rule_hides_with_its_name_and_place() -> None:
    rule = PolicyRule("no deletes", Verdict.DENY, tools=("file",), operations=("delete",), message="ask dana")
    right = row(policy_of(None, PolicyRule("other", Verdict.ALLOW), rule), FILE, "delete")

    assert (first(right).code, first(right).rule_id) == ("policy-deny", "no deletes")
    assert first(right).address == ("policy", "rules", 1)
    assert first(right).text.endswith("ask dana")
    assert right.is_overruled


@pytest.mark.parametrize("when", [None, True, {}])
def test_condition_that_always_holds_is_none(when: bool | dict[str, JsonValue] | None) -> None:
    assert shown(policy_of(None, PolicyRule("r", Verdict.DENY, when=when)), CLOCK) == set()


@pytest.mark.parametrize(
    "rule",
    [
        PolicyRule("other agent", Verdict.DENY, agents=("b",)),
        PolicyRule("other tool", Verdict.DENY, tools=("file",)),
        PolicyRule("other major", Verdict.DENY, tools=("clock@2",)),
        PolicyRule("other operation", Verdict.DENY, operations=("read",)),
        PolicyRule("some arguments", Verdict.DENY, when={"required": ["x"]}),
        PolicyRule("never", Verdict.DENY, when=False),
    ],
)
def test_deny_rule_that_is_not_for_every_call_hides_nothing(rule: PolicyRule) -> None:
    assert shown(policy_of(None, rule), CLOCK) == {""}


def test_default_deny_hides_what_no_rule_could_allow() -> None:
    rules = (
        PolicyRule("reads", Verdict.ALLOW, tools=("file",), operations=("read",), when={"required": ["path"]}),
        PolicyRule("appends", Verdict.ASK, tools=("file",), operations=("append",)),
        PolicyRule("never", Verdict.ALLOW, tools=("file",), operations=("delete",), when=False),
    )
    policy = policy_of(None, *rules, default=Verdict.DENY)

    assert shown(policy, FILE) == {"read", "append"}
    assert first(row(policy, FILE, "delete")).code == "policy-default"
    assert first(row(policy, FILE, "delete")).address == ("policy", "default")


def test_unconditional_ask_rule_and_default_ask_make_every_call_ask() -> None:
    asking = row(policy_of(None, PolicyRule("r", Verdict.ASK)), CLOCK, "")
    by_default = row(policy_of(default=Verdict.ASK), CLOCK, "")
    allowed = row(policy_of(None, PolicyRule("r", Verdict.ALLOW), default=Verdict.ASK), CLOCK, "")

    assert (asking.verdict, first(asking).layer) == (Verdict.ASK, Layer.POLICY)
    assert (by_default.verdict, first(by_default).code) == (Verdict.ASK, "policy-default")
    assert allowed.verdict is Verdict.ALLOW


def limited(source_id: str, permission: Permission, *operations: str) -> Source:
    rules = (ToolRule("file", AllowedOperations(frozenset(operations)), rule_id="needs"),) if operations else ()
    return Source(source_id, source_id, permission, required_tools=rules)


def test_shown_is_what_one_of_the_sources_opens() -> None:
    both = policy_of(sources=(limited("x", Permission.ADMIN, "read"), limited("y", Permission.ADMIN, "append")))

    assert shown(both, FILE) == {"read", "append"}
    reason = first(row(both, FILE, "delete"))
    assert (reason.layer, reason.code, reason.rule_id) == (Layer.SOURCE, "source-operation-not-allowed", "needs")
    assert reason.address == ("sources", "x", "required_tools", 0)


def test_operation_that_does_nothing_to_files_is_shown_whatever_the_levels_are() -> None:
    facts = replace(FILE, operations=(OperationFacts("help", SafetyTier.READ_ONLY),))

    assert shown(policy_of(sources=(limited("x", Permission.NONE),)), facts) == {"help"}


def test_source_without_a_limit_opens_every_operation() -> None:
    policy = policy_of(sources=(limited("x", Permission.ADMIN, "read"), limited("y", Permission.ADMIN)))

    assert shown(policy, FILE) == {"read", "append", "delete"}


def test_operation_that_one_source_limits_and_the_other_does_not_permit_is_hidden() -> None:
    policy = policy_of(sources=(limited("x", Permission.ADMIN, "read"), limited("y", Permission.READ_ONLY)))

    assert shown(policy, FILE) == {"read"}
    assert first(row(policy, FILE, "delete")).code == "no-level-permits"


def test_sources_limit_only_the_agents_that_have_them() -> None:
    agent = Agent("a", sources=("y",))
    policy = policy_of(agent, sources=(limited("x", Permission.ADMIN, "read"), limited("y", Permission.ADMIN)))

    assert shown(policy, FILE) == {"read", "append", "delete"}


def test_tools_own_limit_hides_without_an_address_and_leaves_the_box() -> None:
    facts = replace(FILE, tool_rules=(ToolRule("file", AllowedOperations(frozenset({"read"}))),))
    right = row(policy_of(), facts, "append")

    assert (right.ticked, right.verdict) == (True, Verdict.DENY)
    assert (first(right).layer, first(right).address) == (Layer.RULE, None)


def test_limits_that_leave_nothing_hide_the_tool() -> None:
    facts = replace(FILE, tool_rules=(ToolRule("file", AllowedOperations(frozenset({"read"}))),))
    agent = Agent("a", tool_rules=(ToolRule("file", AllowedOperations(frozenset({"append"}))),))

    assert rights_by_layers(policy_of(agent), "a", (facts,))["file"].is_hidden


def test_consent_that_the_tool_itself_requires_is_a_reason() -> None:
    facts = replace(CLOCK, tool_rules=(ToolRule("clock", RequiresConsent("time")),))
    right = row(policy_of(), facts, "")

    assert (right.verdict, first(right).code, first(right).address) == (Verdict.ASK, "requires-consent", None)
    assert first(right).text == "a person must allow `clock` (consent group: time)"


def test_constraint_on_what_names_the_operation_hides_those_that_no_call_under_it_can_name() -> None:
    read_alone = ArgumentConstraints({"op": {"const": "read"}})
    for conditions, hidden in (((), {"append", "save"}), (("operation:append",), {"append"})):
        agent = Agent("a", tool_rules=(ToolRule("file", read_alone, conditions),))
        assert {"read", "append", "save"} - shown(policy_of(agent), file_tool().facts()) == hidden


DENIES, ASKS = frozenset({Verdict.DENY}), frozenset({Verdict.ASK})
DRAFTS_ASK = replace(DOCS, permission_rules=(PermissionRule("drafts/", Permission.PARTNER),))
DRAFTS_ONLY = ArgumentConstraints({"path": {"pattern": "^drafts/"}})
DRAFTS_ONLY_WHEN: dict[str, JsonValue] = {"properties": {"path": {"pattern": "^drafts/"}}}


def depending(policy: Policy, facts: ToolFacts, operation: str) -> tuple[frozenset[Verdict], frozenset[Verdict]]:
    right = row(policy, facts, operation)
    assert right.verdict is not Verdict.DENY
    return right.by_path, right.by_value


def test_operation_that_asks_at_some_levels_says_so_and_the_ones_that_never_ask_do_not() -> None:
    policy = policy_of(sources=(DRAFTS_ASK,))

    assert row(policy, FILE, "append").asks_for_some
    assert depending(policy, FILE, "append") == (ASKS, frozenset[Verdict]())
    assert depending(policy, FILE, "read") == (frozenset(), frozenset[Verdict]())
    assert not row(policy, FILE, "read").asks_for_some


def test_operation_that_a_level_of_one_source_denies_goes_by_the_path() -> None:
    closed = Source("vault", "vault", Permission.NONE)

    assert depending(policy_of(sources=(DOCS, closed)), FILE, "read") == (DENIES, frozenset[Verdict]())
    assert depending(policy_of(sources=(DRAFTS_ASK, closed)), FILE, "append") == (ASKS | DENIES, frozenset[Verdict]())
    assert depending(policy_of(), FILE, "append") == (frozenset(), frozenset[Verdict]())


def test_operation_limited_to_a_folder_whose_level_asks_is_no_plain_allow() -> None:
    agent = Agent("a", tool_rules=(ToolRule("file", DRAFTS_ONLY, ("operation:append",)),))
    policy = policy_of(agent, sources=(DRAFTS_ASK,))

    assert depending(policy, FILE, "append") == (ASKS, DENIES)
    assert row(policy, FILE, "append").asks_for_some
    assert depending(policy, FILE, "read") == (frozenset(), frozenset[Verdict]())


SOME = frozenset({"path"})
AT_PATHS = replace(FILE, operations=tuple(replace(op, places=SOME) for op in FILE.operations))


def at(policy: Policy, operation: str, level: Permission, *met: bool, source: Source = DOCS) -> Verdict:
    """What calls of an operation come to at a file with that level whose path meets those conditions."""
    tool = rights_by_layers(policy, "a", (AT_PATHS,))["file"]
    return place_rights(policy, "a", tool)[operation].verdict(source, level, met)


def test_constraint_and_condition_on_nothing_but_the_path_go_by_the_path() -> None:
    agent = Agent("a", tool_rules=(ToolRule("file", DRAFTS_ONLY, ("operation:append",)),))
    scripts = PolicyRule("scripts", Verdict.ASK, operations=("delete",), when=DRAFTS_ONLY_WHEN)

    assert depending(policy_of(agent, scripts), AT_PATHS, "append") == (DENIES, frozenset[Verdict]())
    assert depending(policy_of(agent, scripts), AT_PATHS, "delete") == (ASKS, frozenset[Verdict]())
    given = replace(scripts, when={**DRAFTS_ONLY_WHEN, "required": ["path"]})
    assert depending(policy_of(agent, given), AT_PATHS, "delete") == (ASKS, frozenset[Verdict]())
    others: list[dict[str, JsonValue]] = [
        {**DRAFTS_ONLY_WHEN, "maxProperties": 1},
        {**DRAFTS_ONLY_WHEN, "required": ["path", "text"]},
        {"required": ["path"]},
        {"required": ["path"], "properties": {}},
        {"properties": {"path": {"pattern": "x"}, "text": {"pattern": "y"}}},
    ]
    for when in others:
        assert depending(policy_of(agent, replace(scripts, when=when)), AT_PATHS, "delete") == (frozenset(), ASKS)


def test_file_is_judged_by_its_level_the_constraints_on_its_path_and_the_policy_rules() -> None:
    agent = Agent("a", tool_rules=(ToolRule("file", DRAFTS_ONLY, ("operation:append",)),))
    asks = PolicyRule("asks", Verdict.ASK, operations=("delete",), when=DRAFTS_ONLY_WHEN)
    policy = policy_of(agent, asks)

    tool = rights_by_layers(policy, "a", (AT_PATHS,))["file"]
    found = {name: one.conditions for name, one in place_rights(policy, "a", tool).items()}
    assert found == {"append": (DRAFTS_ONLY_WHEN,), "delete": (DRAFTS_ONLY_WHEN,)}
    assert [at(policy, "append", Permission.APPEND, met) for met in (True, False)] == [Verdict.ALLOW, Verdict.DENY]
    assert at(policy, "append", Permission.HUMAN, True) is Verdict.ASK
    assert at(policy, "append", Permission.READ_ONLY, True) is Verdict.DENY
    assert [at(policy, "delete", Permission.ADMIN, met) for met in (True, False)] == [Verdict.ASK, Verdict.ALLOW]


def test_default_of_the_policy_holds_at_files_that_no_rule_is_about() -> None:
    allow = PolicyRule("drafts", Verdict.ALLOW, operations=("read",), when=DRAFTS_ONLY_WHEN)
    policy = policy_of(Agent("a"), allow, default=Verdict.DENY)

    assert [at(policy, "read", Permission.ADMIN, met) for met in (True, False)] == [Verdict.ALLOW, Verdict.DENY]


def test_rules_of_a_source_hold_at_its_files_alone() -> None:
    only = ToolRule("file", AllowedOperations(frozenset({"read", "append"})))
    own = (ToolRule("file", RequiresConsent(), ("operation:read",)), ToolRule("file", DRAFTS_ONLY), only)
    docs, notes = replace(DOCS, required_tools=own), replace(DOCS, source_id="notes")
    policy = policy_of(sources=(docs, notes))

    assert at(policy, "read", Permission.ADMIN, True, source=docs) is Verdict.ASK
    assert at(policy, "append", Permission.ADMIN, False, source=docs) is Verdict.DENY
    assert at(policy, "append", Permission.ADMIN, True, source=docs) is Verdict.ALLOW
    assert at(policy, "delete", Permission.ADMIN, True, source=docs) is Verdict.DENY
    assert at(policy, "delete", Permission.ADMIN, True, source=notes) is Verdict.ALLOW
    assert at(policy, "append", Permission.ADMIN, False, source=notes) is Verdict.ALLOW


def test_operation_that_may_do_two_things_where_one_asks_goes_by_what_the_call_does() -> None:
    change = OperationFacts("change", SafetyTier.SIDE_EFFECTING, (Action.OVERWRITE, Action.DELETE))
    facts = replace(FILE, operations=(change,))
    policy = policy_of(sources=(replace(DOCS, default_permission=Permission.READ_WRITE),))

    assert depending(policy, facts, "change") == (frozenset(), ASKS)


def test_rules_of_a_source_make_what_goes_to_it_ask_or_be_denied() -> None:
    consent = replace(DOCS, required_tools=(ToolRule("file", RequiresConsent(), ("operation:read",)),))
    limited = replace(DOCS, required_tools=(ToolRule("file", AllowedOperations(frozenset({"read"}))),))
    notes = replace(DOCS, source_id="notes")

    assert depending(policy_of(sources=(consent, notes)), FILE, "read") == (ASKS, frozenset[Verdict]())
    assert depending(policy_of(sources=(consent, notes)), FILE, "append") == (frozenset(), frozenset[Verdict]())
    assert depending(policy_of(sources=(limited, notes)), FILE, "append") == (DENIES, frozenset[Verdict]())


def test_conditions_of_policy_rules_and_their_default_go_by_the_value() -> None:
    deny = PolicyRule("late", Verdict.DENY, tools=("clock",), when={"required": ["x"]})
    allow = replace(deny, effect=Verdict.ALLOW)

    assert depending(policy_of(None, deny), CLOCK, "") == (frozenset(), DENIES)
    assert depending(policy_of(None, allow, default=Verdict.ASK), CLOCK, "") == (frozenset(), ASKS)
    assert depending(policy_of(None, allow), CLOCK, "") == (frozenset(), frozenset[Verdict]())


def test_grants_that_leave_something_out_deny_some_calls() -> None:
    reading = replace(CLOCK, operations=(OperationFacts("", SafetyTier.READ_ONLY, capabilities=FS, judged=FS),))

    assert depending(granted(NetRead(("*.example.org",))), FETCH, "get") == (frozenset(), DENIES)
    assert depending(granted(NetRead(("*",))), FETCH, "get") == (frozenset(), frozenset[Verdict]())
    assert depending(granted(FsRead(("notes",))), reading, "") == (DENIES, frozenset[Verdict]())


@pytest.mark.parametrize(
    ("tier", "path", "outcomes"),
    [
        (SafetyTier.READ_ONLY, PathArgument("p", None, "high"), frozenset[Verdict]()),
        (SafetyTier.SIDE_EFFECTING, PathArgument("p", None, "high"), DENIES),
        (SafetyTier.SIDE_EFFECTING, PathArgument("p", PathUse.READ, "declared"), frozenset[Verdict]()),
        (SafetyTier.READ_ONLY, PathArgument("p", PathUse.WRITE, "high"), DENIES),
        (SafetyTier.SIDE_EFFECTING, PathArgument("p", PathUse.NONE, "declared"), frozenset[Verdict]()),
        (SafetyTier.SIDE_EFFECTING, PathArgument("p", None, "medium"), frozenset[Verdict]()),
    ],
)
def test_argument_that_is_a_path_goes_by_what_is_done_there_and_by_the_tier_where_nothing_says(
    tier: SafetyTier, path: PathArgument, outcomes: frozenset[Verdict]
) -> None:
    facts = replace(CLOCK, operations=(OperationFacts("", tier, paths=(path,)),))
    policy = policy_of(sources=(Source("docs", "docs", Permission.READ_ONLY),))

    assert row(policy, facts, "").by_path == outcomes


def test_argument_counts_as_a_path_where_the_policy_says_so_or_discovery_is_sure() -> None:
    read, write, delete, none = PathUse
    every = [PathArgument("p", use, sure) for use in (None, *PathUse) for sure in ("declared", "high", "medium", "low")]

    assert [(one.use, one.confidence) for one in every if one.counts] == [
        (use, sure) for use in (None, read, write, delete) for sure in ("declared", "high")
    ]
    facts = OperationFacts("", SafetyTier.READ_ONLY, judged=NET, paths=(PathArgument("p", none, "high"),))
    assert (facts.path_actions, facts.judgeable) == (frozenset(), NET)
    facts = replace(facts, paths=(PathArgument("p", delete, "high"), PathArgument("q", None, "low")))
    assert facts.path_actions == {Action.DELETE}
    assert facts.judgeable == NET | FS | {CapabilityKind.FS_WRITE}


def test_operation_that_asks_by_what_is_said_in_the_call_asks_for_some() -> None:
    policy = policy_of(None, PolicyRule("zones", Verdict.ASK, when={"required": ["zone"]}))
    right = row(policy, replace(CLOCK, operations=(replace(CLOCK.operations[0], parameters=("zone",)),)), "")

    assert (right.verdict, right.by_path, right.by_value) == (Verdict.ALLOW, frozenset(), ASKS)
    assert right.asks_for_some


def test_operation_that_asks_for_every_call_says_only_what_is_stricter() -> None:
    agent = Agent("a", approvals={"file": Verdict.ASK})
    right = row(policy_of(agent, sources=(DRAFTS_ASK, Source("vault", "vault", Permission.NONE))), FILE, "append")

    assert (right.verdict, right.by_path, right.asks_for_some) == (Verdict.ASK, DENIES, False)


def test_settings_of_a_tool_change_its_tiers_and_with_them_what_asks() -> None:
    settings = ToolSettings(
        safety_tier=SafetyTier.PRIVILEGED, operation_tiers={"read": SafetyTier.READ_ONLY}, description="Ours."
    )
    policy = policy_of(tools={"file": settings})
    right = rights_by_layers(policy, "a", (FILE,))["file"]

    assert {one.operation: one.verdict for one in right.operations} == {
        "read": Verdict.ALLOW,
        "append": Verdict.ASK,
        "delete": Verdict.ASK,
    }
    assert (right.facts.tier, right.facts.description) == (SafetyTier.PRIVILEGED, "Ours.")
    assert with_settings(policy, right.facts) == right.facts
    other = rights_by_layers(policy_of(), "a", (FILE,))["file"]
    assert (right == rights_by_layers(policy, "a", (FILE,))["file"], right == other) == (True, False)
    assert (len(right.ticked), right.is_hidden) == (3, False)


def test_settings_of_one_major_come_before_those_of_the_name() -> None:
    tools = {"clock": ToolSettings(description="any"), "clock@1": ToolSettings(description="one")}

    assert with_settings(policy_of(tools=tools), CLOCK).description == "one"


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        (FILE, ToolRule("file", AllowedOperations(frozenset({"read", "burn"})))),
        (FILE, ToolRule("file", MaxCalls(3), ("operation:burn",))),
        (CLOCK, ToolRule("clock", AllowedOperations(frozenset({"tick"})))),
        (CLOCK, ToolRule("clock", MaxCalls(3), ("operation:tick",))),
        (FILE, ToolRule("*", AllowedOperations(frozenset({"read"})))),
    ],
)
def test_rule_on_operations_that_the_tool_has_not_closes_the_tool(facts: ToolFacts, rule: ToolRule) -> None:
    right = rights_by_layers(policy_of(Agent("a", tool_rules=(rule,))), "a", (facts,))[facts.name]

    assert right.is_hidden
    assert (right.reasons[0].code, right.reasons[0].address) == (
        "rule-unknown-operation",
        ("agents", "a", "tool_rules", 0),
    )


def test_rule_of_a_source_on_operations_that_the_tool_has_not_closes_it_and_is_named() -> None:
    rule = ToolRule("file", MaxCalls(3), ("operation:burn",))
    right = row(policy_of(sources=(replace(DOCS, required_tools=(rule,)),)), FILE, "read")

    assert (right.verdict, first(right).address) == (Verdict.DENY, ("sources", "docs", "required_tools", 0))


def test_rule_on_every_tool_leaves_tools_without_that_operation_alone() -> None:
    agent = Agent("a", tool_rules=(ToolRule("*", MaxCalls(3), ("operation:read",)),))

    assert shown(policy_of(agent), CLOCK) == {""}


def test_tier_for_an_operation_that_the_tool_has_not_closes_the_tool() -> None:
    settings = ToolSettings(operation_tiers={"burn": SafetyTier.READ_ONLY})
    right = rights_by_layers(policy_of(tools={"file": settings}), "a", (FILE,))["file"]

    assert right.reasons[0].address == ("tools", "file", "operation_tiers")


def test_policy_rule_misfits_when_none_of_its_tools_has_the_operation() -> None:
    burning = PolicyRule("r", Verdict.DENY, tools=("file", "clock"), operations=("burn",))
    deleting = replace(burning, operations=("delete",))
    absent = replace(burning, tools=("file", "later"))

    found = policy_rule_misfits(policy_of(None, deleting, burning), (FILE, CLOCK))

    text = "policy rule `r` names `burn`, which none of its tools has, so they are closed"
    reason = Reason(Layer.POLICY, Verdict.DENY, "rule-unknown-operation", text, ("policy", "rules", 1), "r")
    assert found == {"file": reason, "clock": reason}
    assert policy_rule_misfits(policy_of(None, replace(burning, operations=None)), (FILE, CLOCK)) == {}
    assert not policy_rule_misfits(policy_of(None, deleting), (FILE, CLOCK))
    assert not policy_rule_misfits(policy_of(None, absent), (FILE, CLOCK))
    whole = replace(burning, tools=(f"catalog:{FILE.origin}",))
    assert policy_rule_misfits(policy_of(None, deleting, whole), (FILE, CLOCK)) == found


def test_catalog_that_is_named_must_be_one_of_the_policy() -> None:
    denying = PolicyRule("r", Verdict.DENY, tools=("catalog:git", "catalog:gti"))
    agent = Agent("a", approvals={"catalog:git": Verdict.ASK, "catalog:gti": Verdict.ASK})
    policy = replace(policy_of(agent, denying), catalogs=(Catalog("git", CatalogType.MCP, command="server"),))

    places = [one.subject and one.subject.address for one in unknown_tools(policy, None, (FILE,), ())]
    assert places == [("agents", "a", "approvals", "catalog:gti"), ("policy", "rules", 0)]


NEITHER = "no tool or operation"


def test_every_place_that_limits_a_tool_which_is_not_there_is_found() -> None:
    rules = (
        ToolRule("clok", MaxCalls(3)),
        ToolRule("file.read", MaxCalls(3)),
        ToolRule("*", MaxCalls(3), ("operation:gone",)),
        ToolRule("file@1", RequiresPrecedingTools(), ("file.read", "file.raed", "clock", "later.on")),
        ToolRule("*", ExclusiveGroups((("clock", "fetch.get", "fetch.git"),))),
    )
    approvals = {"file.read": Verdict.ASK, "file.burn": Verdict.ASK, "privileged": Verdict.ASK, "file@2": Verdict.ASK}
    policy = policy_of(
        Agent("a", tool_rules=rules, approvals=approvals),
        PolicyRule("r", Verdict.DENY, tools=("file", "file.read", "later")),
        sources=(replace(DOCS, required_tools=(ToolRule("clocks", MaxCalls(3)),)),),
        tools={"clock": ToolSettings(), "clock.tick": ToolSettings()},
        defaults=Defaults(approvals={"read_only": Verdict.ALLOW, "fetch": Verdict.ASK, "fetch.gte": Verdict.ASK}),
    )
    rows = unknown_tools(policy, None, (FILE, CLOCK, FETCH), {"later"})

    said = [
        (("agents", "a", "tool_rules", 0), "no tool", "clok", "clock"),
        (("agents", "a", "tool_rules", 1), "no tool", "file.read", "file"),
        (("agents", "a", "tool_rules", 3), NEITHER, "file.raed", "file.read"),
        (("agents", "a", "tool_rules", 4), NEITHER, "fetch.git", "fetch.get"),
        (("agents", "a", "approvals", "file.burn"), NEITHER, "file.burn", None),
        (("agents", "a", "approvals", "file@2"), NEITHER, "file@2", "file"),
        (("sources", "docs", "required_tools", 0), "no tool", "clocks", "clock"),
        (("policy", "rules", 0), "no tool", "file.read", "file"),
        (("tools", "clock.tick"), "no tool", "clock.tick", "clock"),
        (("defaults", "approvals", "fetch.gte"), NEITHER, "fetch.gte", "fetch.get"),
    ]
    assert list(rows) == [
        Problem(Severity.ERROR, "unknown-tool", f"{what} is named `{name}`", near_miss=near, subject=Subject(address))
        for address, what, name, near in said
    ]
    assert unknown_tools(policy, policy, (FILE, CLOCK, FETCH), {"later"}) == ()
    other = replace(policy, agents={"a": Agent("a", tool_rules=rules[:1])}, tools={"x": ToolSettings()})
    assert [row.message for row in unknown_tools(other, policy, (FILE, CLOCK, FETCH), ())] == [
        "no tool is named `clok`",
        "no tool is named `x`",
    ]


def test_settings_that_name_what_the_tool_has_not_close_it() -> None:
    texts = replace(CLOCK, texts=frozenset({"zone"}))
    for settings, text, key in (
        (ToolSettings(paths={"zone": PathUse.READ}), None, ""),
        (
            ToolSettings(paths={"zone": PathUse.READ, "place": PathUse.READ, "at": PathUse.READ}),
            "`paths` names `place`, `at`, which `clock` does not take, so the tool is closed",
            "paths",
        ),
        (
            ToolSettings(operation_tiers={"tick": SafetyTier.PRIVILEGED, "a": SafetyTier.PRIVILEGED}),
            "a rule names `a`, `tick`, which `clock` does not have, so the tool is closed",
            "operation_tiers",
        ),
        (ToolSettings(timeout_s=3.0), None, ""),
    ):
        for name in ("clock", "clock@1"):
            reason = setting_misfit(policy_of(tools={name: settings}), texts)
            address = ("tools", name, key)
            assert reason == (
                Reason(Layer.RULE, Verdict.DENY, "rule-unknown-operation", text, address) if text else None
            )
    assert setting_misfit(policy_of(tools={"clock": ToolSettings(paths={"x": PathUse.READ})}), CLOCK) is None


def test_settings_change_the_facts_of_their_tools_and_leave_the_others() -> None:
    policy = policy_of(tools={"clock@1": ToolSettings(safety_tier=SafetyTier.PRIVILEGED)})
    clock, fetch = all_with_settings(policy, (CLOCK, FETCH))

    assert (clock.tier, clock.operations[0].tier) == (SafetyTier.PRIVILEGED, SafetyTier.PRIVILEGED)
    assert fetch is FETCH
    one = policy_of(tools={"file": ToolSettings(operation_tiers={"read": SafetyTier.PRIVILEGED})})
    assert {row.name: row.tier for row in with_settings(one, FILE).operations}["read"] is SafetyTier.PRIVILEGED
    assert with_settings(policy_of(tools={"file": ToolSettings(timeout_s=3.0)}), FILE) is FILE
    assert all_with_settings(policy_of(), (catalog := (CLOCK, FETCH))) is catalog


def test_tool_that_is_closed_from_outside_says_so() -> None:
    reason = Reason(Layer.RULE, Verdict.DENY, "closed", "it is closed")
    policy = policy_of()

    for right in (
        Layers(policy, policy.agents["a"]).right(CLOCK, reason),
        Layers(policy, policy.agents["a"], closed=lambda facts: reason if facts is CLOCK else None).right(CLOCK),
    ):
        assert (right.listed, right.shown, right.reasons, right.operations[0].reasons) == (
            True,
            frozenset(),
            (reason,),
            (reason,),
        )


def test_reasons_that_deny_come_first_and_all_are_told() -> None:
    agent = Agent("a", tools=(), tool_rules=(ToolRule("fetch", RequiresConsent()),))
    right = row(policy_of(agent, PolicyRule("r", Verdict.DENY)), FETCH, "get")

    assert [reason.layer for reason in right.reasons] == [Layer.TOOLS, Layer.CAPABILITY, Layer.POLICY, Layer.RULE]
    assert right.reasons[-1].verdict is Verdict.ASK
