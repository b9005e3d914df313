"""Limits, notes and asking of rows for every layer, without a view."""

from dataclasses import replace

import pytest

from gatewright.policy.capability import CapabilityKind
from gatewright.policy.document import Agent, Policy, Source, ToolSettings
from gatewright.policy.effective import effective_rights
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.right import Layer, OperationFacts, ToolFacts, ToolRight
from gatewright.policy.rule import (
    ArgumentConstraints,
    Cooldown,
    ExclusiveGroups,
    ExitLoop,
    MaxCalls,
    Periodic,
    RateLimit,
    RequiredBeforeExit,
    RequiredBeforeExitIf,
    RequiresConsent,
    RequiresFollowingTools,
    RequiresPrecedingTools,
    RuleKind,
    StartConstraint,
    ToolRule,
)
from gatewright.policy.tier import SafetyTier
from gatewright.policy.verdict import Verdict
from gatewright_gui.models.limits import limits_of
from gatewright_gui.models.notes import Note, notes_of
from gatewright_gui.models.reasons import LAYER_WORDS, ReasonModel
from gatewright_gui.models.rowstate import Asking, RowState, operation_asking, operation_state
from gatewright_gui.models.tooltree import verdict_words
from tests.gui.models.values import CATALOG, NOTES, POLICY

FETCH = ToolFacts(
    "fetch", 1, (OperationFacts("", SafetyTier.READ_ONLY, capabilities=frozenset({CapabilityKind.NET_READ})),),
    SafetyTier.READ_ONLY,
)  # fmt: skip
AGENT = Agent("a", tools=("notes", "fetch"), sources=("s",))


def right(policy: Policy, tool: str) -> ToolRight:
    return effective_rights(policy, "a", (*CATALOG, FETCH))[tool]


def ruled(*rules: PolicyRule, agent: Agent = AGENT) -> Policy:
    return replace(POLICY.with_agent(agent), rules=rules)


def test_what_a_capability_turns_off_stays_ticked_and_says_so() -> None:
    found = right(ruled(), "fetch")
    assert operation_state(found.operations[0]) is RowState.OVERRULED
    assert verdict_words(found, None) == "off: capability"


def test_what_a_policy_rule_turns_off_stays_ticked_and_says_so() -> None:
    rule = PolicyRule("no burning", Verdict.DENY, tools=("notes",), operations=("burn",))
    found = right(ruled(rule), "notes").operations[2]
    assert operation_state(found) is RowState.OVERRULED
    assert (found.reasons[0].layer, found.reasons[0].address) == (Layer.POLICY, ("policy", "rules", 0))


def test_every_layer_has_a_word() -> None:
    assert set(LAYER_WORDS) == set(Layer)


@pytest.mark.parametrize(
    "agent",
    [
        replace(AGENT, tool_rules=(ToolRule("notes", RequiresConsent()),)),
        replace(AGENT, tool_rules=(ToolRule("notes", RequiresConsent()),), approvals={"notes.find": Verdict.ASK}),
    ],
)
def test_switch_cannot_take_away_what_consent_asks(agent: Agent) -> None:
    assert operation_asking(right(ruled(agent=agent), "notes").operations[0]) is Asking.LOCKED


def test_switch_cannot_take_away_what_a_policy_rule_asks() -> None:
    rule = PolicyRule("ask", Verdict.ASK, tools=("notes",))
    assert operation_asking(right(ruled(rule), "notes").operations[0]) is Asking.LOCKED


def test_rule_with_a_condition_is_a_note_with_its_place() -> None:
    rule = PolicyRule("big ones", Verdict.ASK, operations=("write",), when={"required": ["x"]}, message="look first")
    policy = ruled(rule)
    wanted = Note(
        "policy",
        "policy rule big ones: a call asks first only if its condition fits: look first",
        ("policy", "rules", 0),
    )
    assert wanted in notes_of(policy, AGENT, right(policy, "notes"), "write")
    assert wanted not in notes_of(policy, AGENT, right(policy, "notes"), "find")
    assert wanted in notes_of(policy, AGENT, right(policy, "notes"), None)


def test_rules_of_sources_and_settings_of_tools_are_notes_with_their_place() -> None:
    source = Source("s", ".", required_tools=(ToolRule("notes", MaxCalls(3)),))
    settings = ToolSettings(timeout_s=5.0, safety_tier=SafetyTier.PRIVILEGED, scrub=False)
    policy = replace(ruled(), sources=(source,), tools={"notes": settings})
    found = {note.address: note.text for note in notes_of(policy, AGENT, right(policy, "notes"), "find")}
    assert found["sources", "s", "required_tools", 0] == "for calls that go to s: at most 3 calls in a session"
    assert found["tools", "notes", "safety_tier"] == "its tier is privileged by [tools.notes]"
    assert found["tools", "notes", "timeout"] == "a call ends after 5 s by [tools.notes]"
    assert found["tools", "notes", "scrub"] == "secrets stay in its results by [tools.notes]"
    assert limits_of(AGENT, NOTES, None, policy.sources) == "max 3 at s"


@pytest.mark.parametrize(
    ("kind", "conditions", "words"),
    [
        (MaxCalls(1200), (), "max 1,200"),
        (Cooldown(90), (), "pause 1 min 30 s"),
        (RateLimit(5, 60), (), "5 per 1 min"),
        (Periodic(300), (), "due every 5 min"),
        (StartConstraint(), (), "first"),
        (RequiresPrecedingTools(), ("clock", "disk.peek"), "after clock and disk.peek"),
        (RequiresFollowingTools(), ("clock",), "before clock"),
        (ExclusiveGroups((("notes", "disk"),)), (), "one of notes, disk"),
        (RequiredBeforeExit(), (), "before the end"),
        (RequiredBeforeExitIf(), ("clock",), "before the end, if clock"),
        (RequiresConsent("desk"), (), "consent desk"),
        (ArgumentConstraints({"path": {}, "size": {}}), (), "limits path, size"),
        (ExitLoop(), (), "ends"),
    ],
)
def test_every_kind_of_limit_has_its_words(kind: RuleKind, conditions: tuple[str, ...], words: str) -> None:
    whole = replace(AGENT, tool_rules=(ToolRule("notes", kind, conditions),))
    one = replace(AGENT, tool_rules=(ToolRule("notes", kind, (*conditions, "operation:find")),))
    assert limits_of(whole, NOTES, None) == words
    assert (limits_of(one, NOTES, None), limits_of(one, NOTES, "find"), limits_of(one, NOTES, "burn")) == (
        "",
        words,
        "",
    )


def test_notes_stand_after_the_reasons_and_lead_to_their_line(qapp: object) -> None:
    model = ReasonModel()
    note = Note("policy", "only if", ("policy", "rules", 0))
    model.set_reasons((), (note,))
    model.set_lines({("policy", "rules", 0): 9}, "policy.toml")
    why = model.why_at(0)
    assert why is not None
    assert (why.verdict, why.layer, why.where) == (None, "policy", "policy.toml:9")
    assert str(model.index(0).data()) == "note, policy: only if, line 9"
