"""Limits, notes and asking of rows for every layer, without a view."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from gatewright.base.pattern import compile_linear
from gatewright.policy.capability import CapabilityKind, ClockRead, FsRead, NetRead
from gatewright.policy.document import Agent, OutputCheck, PermissionRule, Policy, Source, ToolSettings
from gatewright.policy.right import Layer, OperationFacts, ToolFacts, ToolRight
from gatewright.policy.rightsdiff import AgentDiff
from gatewright.policy.rule import (
    AllowedOperations,
    ArgumentConstraints,
    ContinueLoop,
    Cooldown,
    ExclusiveGroups,
    ExitLoop,
    MaxCalls,
    Periodic,
    PolicyRule,
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
from gatewright.policy.verdict import Action, Permission, SafetyTier, Verdict
from gatewright_gui.pages.access.tools.constraint import ConstraintForm, form_of, schema_of
from gatewright_gui.pages.access.tools.limits import limits_of
from gatewright_gui.pages.access.tools.notes import Note, notes_of
from gatewright_gui.pages.access.tools.right_lines import rows_of
from gatewright_gui.pages.access.tools.row_state import (
    Asking,
    RowState,
    no_effect_words,
    operation_asking,
    operation_state,
)
from gatewright_gui.pages.access.tools.source_bar import sources_words
from gatewright_gui.pages.access.tools.why import LAYER_WORDS, details_of
from gatewright_gui.pages.access.tools.why_pane import StepModel
from gatewright_gui.session.condition import constraint_words
from tests.gui.models.values import CATALOG, NOTES, POLICY
from tests.support.rights import rights_by_layers

FETCH = ToolFacts(
    "fetch", 1, (OperationFacts("", SafetyTier.READ_ONLY, capabilities=frozenset({CapabilityKind.NET_READ})),),
    SafetyTier.READ_ONLY,
)  # fmt: skip
SHELF = ToolFacts(
    "shelf", 1,
    (
        OperationFacts("peek", SafetyTier.READ_ONLY, (Action.READ,)),
        OperationFacts("burn", SafetyTier.PRIVILEGED, (Action.DELETE,)),
    ),
    SafetyTier.PRIVILEGED, needs_source=True,
)  # fmt: skip
AGENT = Agent("a", tools=("notes", "fetch", "shelf"), sources=("s",))


def right(policy: Policy, tool: str) -> ToolRight:
    return rights_by_layers(policy, "a", (*CATALOG, FETCH, SHELF))[tool]


def ruled(*rules: PolicyRule, agent: Agent = AGENT) -> Policy:
    return replace(POLICY.with_agent(agent), rules=rules)


def test_what_a_capability_turns_off_stays_ticked_and_says_so() -> None:
    found = right(ruled(), "fetch")
    assert operation_state(found.operations[0]) is RowState.OVERRULED
    assert no_effect_words(AGENT, found, None) == "no effect: needs network access"


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


def test_grant_that_a_list_bounds_is_a_note_of_what_needs_it() -> None:
    agent = replace(AGENT, capabilities=(FsRead(("desk",)), ClockRead(), NetRead(("a.example", "*.b.example"))))
    found = notes_of(ruled(agent=agent), agent, right(ruled(agent=agent), "fetch"), None)
    text = "NetRead reaches no further than `a.example`, `*.b.example`"
    assert found == (Note("capability", text, ("agents", "a", "capabilities", 2)),)


def test_levels_of_a_source_are_a_note_where_they_depend_on_the_path() -> None:
    rules = (PermissionRule("x/**", Permission.ADMIN), PermissionRule("sub/**", Permission.READ_WRITE))
    policy = replace(ruled(), sources=(Source("s", ".", permission_rules=rules),))
    text = "in s it depends on the file: `x/**` allow, `sub/**` ask, elsewhere deny"
    note = Note("source", text, ("sources", "s", "default_permission"))
    assert note in notes_of(policy, AGENT, right(policy, "shelf"), "burn")
    assert note not in notes_of(policy, AGENT, right(policy, "shelf"), None)
    assert not any(one.layer == "source" for one in notes_of(policy, AGENT, right(policy, "shelf"), "peek"))


def test_note_on_levels_names_a_few_rules_and_counts_the_rest() -> None:
    rules = tuple(PermissionRule(f"{n}/**", Permission.ADMIN) for n in range(2_000))
    policy = replace(ruled(), sources=(Source("s", ".", permission_rules=rules),))
    found = next(n for n in notes_of(policy, AGENT, right(policy, "shelf"), "burn") if n.layer == "source")
    assert found.text.endswith("`5/**` allow, 1,994 more rules, elsewhere deny")


def test_rules_of_sources_and_settings_of_tools_are_notes_with_their_place() -> None:
    source = Source("s", ".", required_tools=(ToolRule("notes", MaxCalls(3)),))
    settings = ToolSettings(timeout_s=5.0, safety_tier=SafetyTier.PRIVILEGED, scrub=False, output=OutputCheck.OFF)
    policy = replace(ruled(), sources=(source,), tools={"notes": settings})
    found = {note.address: note.text for note in notes_of(policy, AGENT, right(policy, "notes"), "find")}
    assert found["sources", "s", "required_tools", 0] == "for calls that go to s: at most 3 calls in a session"
    assert found["tools", "notes", "safety_tier"] == "its tier is privileged by [tools.notes]"
    assert found["tools", "notes", "timeout"] == "a call ends after 5 s by [tools.notes]"
    assert found["tools", "notes", "scrub"] == "secrets stay in its results by [tools.notes]"
    text = "results may be anything, whatever its schema says, by [tools.notes]"
    assert found["tools", "notes", "output"] == text
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
        (RequiresConsent("desk"), (), "asks first for desk"),
        (ArgumentConstraints({"path": {}, "size": {}}), (), "limits path, size"),
        (ArgumentConstraints({"path": {"in_folder": "a/b"}, "size": {}}), (), "path only in a/b/, limits size"),
        (ArgumentConstraints({"path": {}}, ("path", "size")), (), "limits path, asks for path, size"),
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


def test_details_lead_to_their_line(qapp: object) -> None:
    model = StepModel()
    note = Note("policy", "only if", ("policy", "rules", 0))
    model.set_steps(details_of((note,)))
    model.set_lines({("policy", "rules", 0): 9}, "policy.toml")
    step = model.row_at(0)
    assert step is not None
    assert (step.mark, step.where) == ("note", "line 9")
    assert str(model.index(0, 0).data()) == "policy: only if, line 9"
    assert model.index(0, 0).data(Qt.ItemDataRole.ToolTipRole) == "policy: only if (policy.toml:9)"


def test_rules_of_a_tool_that_is_off_are_said_to_wait() -> None:
    rules = (
        ToolRule("notes", AllowedOperations(frozenset({"burn", "find"}))),
        ToolRule("notes", MaxCalls(3)),
        ToolRule("clock", MaxCalls(3)),
    )
    agent = replace(AGENT, tools=(), tool_rules=rules)
    found = list(notes_of(ruled(agent=agent), agent, right(ruled(agent=agent), "notes"), None))
    assert [(note.text, note.address) for note in found if note.layer == "waits"] == [
        ("tool rule 1 lists find, burn; ticking the tool brings these back", ("agents", "a", "tool_rules", 0)),
        ("tool rule 2 holds again as soon as the tool is ticked", ("agents", "a", "tool_rules", 1)),
    ]
    listed = replace(agent, tools=("notes",))
    found = list(notes_of(ruled(agent=listed), listed, right(ruled(agent=listed), "notes"), None))
    assert not [note for note in found if note.layer == "waits"]


def test_what_holds_calls_back_is_named_before_what_happens_after_them() -> None:
    agent = replace(AGENT, tool_rules=(ToolRule("notes", ContinueLoop()), ToolRule("notes", MaxCalls(3))))
    assert limits_of(agent, NOTES, None) == "max 3, keeps its turn"


def test_sources_of_an_agent_without_a_list_are_called_every_source() -> None:
    one = replace(POLICY, sources=(Source("s", "."),))
    assert sources_words(one, replace(AGENT, sources=None)) == "every source (s)"
    assert sources_words(one, replace(AGENT, sources=("s",))) == "s"


def test_copied_capabilities_are_listed_with_what_they_reach() -> None:
    wide, narrow = (FsRead(("notes", "desk")), ClockRead()), (FsRead(("notes",)),)
    (row,) = rows_of(AgentDiff("a", capabilities=(narrow, wide)))
    assert (row.now, row.then) == ("FsRead (notes)", "FsRead (notes, desk), ClockRead")


@pytest.mark.parametrize("folder", ["notes", "a.b/c d", "/srv/x+y"])
def test_folder_of_a_path_is_said_by_a_pattern_that_lets_nothing_climb_out(folder: str) -> None:
    schema = schema_of(ConstraintForm(below=folder))
    assert form_of(schema) == ConstraintForm(below=folder)
    assert constraint_words(schema) == f"only in {folder}/"
    each = schema_of(ConstraintForm(items_below=folder))
    assert form_of(each) == ConstraintForm(items_below=folder)
    assert (each["items"], constraint_words(each)) == (schema, f"each only in {folder}/")
    pattern = compile_linear(str(schema["pattern"]))
    inside = ("/a", "/.a", "/..a", "/...", "/a b/c.txt")
    outside = ("", "/", "/..", "/../x", "/a/../../etc/passwd", "/./a", "/a//b", "/a\\..\\b", "x/a")
    assert [text for text in inside if pattern.search(folder + text) is None] == []
    assert [text for text in outside if pattern.search(folder + text) is not None] == []
    assert pattern.search(f"other/{folder}/a") is None
