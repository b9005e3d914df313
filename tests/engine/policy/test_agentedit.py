"""Edits of the list of agents take the policy rules that name them along."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gatewright.base.errors import EditRefused
from gatewright.policy.agentedit import (
    add_agent,
    asks_to_read,
    describe_agent,
    drop_sub_agent,
    duplicate_agent,
    list_catalog,
    name_sub_agent,
    remove_agent,
    remove_agents,
    rename_agent,
    set_delegate,
    set_reading,
)
from gatewright.policy.document import (
    Agent,
    Catalog,
    CatalogType,
    Defaults,
    Delegate,
    Dialect,
    Policy,
    Source,
    ToolSettings,
)
from gatewright.policy.edit import (
    AgentChange,
    CatalogChange,
    Change,
    ChangeSet,
    Edit,
    FieldChange,
    SourceChange,
    ToolSettingsChange,
    apply,
    change_set,
    edit_between,
    inverse,
)
from gatewright.policy.rule import PolicyRule
from gatewright.policy.verdict import Verdict

ALONE = PolicyRule("alone", Verdict.DENY, agents=("a",))
BOTH = PolicyRule("both", Verdict.ASK, agents=("b", "a"))
ALL = PolicyRule("all", Verdict.DENY)
POLICY = Policy(agents={"a": Agent("a"), "b": Agent("b")}, rules=(ALONE, BOTH, ALL))


def agents_of(policy: Policy) -> dict[str, tuple[str, ...] | None]:
    return {rule.name: rule.agents for rule in policy.rules}


def test_renaming_renames_the_agent_in_every_policy_rule() -> None:
    edit = rename_agent(POLICY, "a", "c")
    after = apply(POLICY, edit)

    assert agents_of(after) == {"alone": ("c",), "both": ("b", "c"), "all": None}
    assert apply(after, inverse(edit)) == POLICY
    assert change_set(edit).agents == {"a", "c"}
    assert change_set(edit).everything


def test_removing_drops_the_agent_from_rules_and_never_leaves_one_for_nobody_or_all() -> None:
    edit = remove_agent(POLICY, "a")
    after = apply(POLICY, edit)

    assert agents_of(after) == {"both": ("b",), "all": None}
    assert edit.name == "remove agent `a` and the policy rule for it alone"
    assert apply(after, inverse(edit)) == POLICY


def test_removing_an_agent_that_a_rule_names_twice_removes_the_rule() -> None:
    policy = Policy(agents={"a": Agent("a")}, rules=(PolicyRule("r", Verdict.DENY, agents=("a", "a")),))

    assert apply(policy, remove_agent(policy, "a")).rules == ()


def test_a_copy_comes_under_the_rules_of_its_original() -> None:
    after = apply(POLICY, duplicate_agent(POLICY, "a", "c"))

    assert agents_of(after) == {"alone": ("a", "c"), "both": ("b", "a", "c"), "all": None}


def test_the_lists_of_sub_agents_follow_an_agent_that_is_renamed_or_removed() -> None:
    agents = {"a": Agent("a"), "b": Agent("b", sub_agents=("a", "c")), "c": Agent("c", sub_agents=("a",))}
    policy = Policy(agents=agents)

    renamed, removed = rename_agent(policy, "a", "d"), remove_agents(policy, ("a", "c"))

    assert {one.agent_id: one.sub_agents for one in apply(policy, renamed).agents.values()} == {
        "d": (),
        "b": ("d", "c"),
        "c": ("d",),
    }
    assert apply(policy, removed).agents == {"b": Agent("b")}
    for edit in (renamed, removed):
        assert apply(apply(policy, edit), inverse(edit)).is_same(policy)
    assert apply(policy, duplicate_agent(policy, "a", "e")).agents["b"].sub_agents == ("a", "c")


def test_sub_agents_are_named_with_their_rights_and_dropped() -> None:
    policy = POLICY
    for edit, sub_agents, delegate in (
        (name_sub_agent(policy, "a", "b"), ("b",), Delegate.OWN),
        (set_delegate(policy, "a", Delegate.INTERSECT), (), Delegate.INTERSECT),
    ):
        after = apply(policy, edit)
        assert (after.agents["a"].sub_agents, after.agents["a"].delegate) == (sub_agents, delegate)
        assert apply(after, inverse(edit)) == policy
    named = apply(policy, name_sub_agent(policy, "a", "b"))
    assert apply(named, drop_sub_agent(named, "a", "b")).agents == policy.agents
    for wrong, said in (
        (lambda: name_sub_agent(named, "a", "b"), "`b` is among the sub-agents of `a` already"),
        (lambda: name_sub_agent(named, "a", "a"), "an agent is no sub-agent of its own"),
        (lambda: name_sub_agent(named, "a", "aa"), "no agent `aa`"),
        (lambda: drop_sub_agent(named, "b", "a"), "`a` is not among the sub-agents of `b`"),
    ):
        with pytest.raises(EditRefused, match=re.escape(said)):
            wrong()


def test_a_whole_catalog_joins_and_leaves_the_list_beside_what_is_listed_by_name() -> None:
    far = Catalog("far", CatalogType.MCP)
    policy = replace(POLICY, agents={"a": Agent("a", tools=("x", "y")), "b": Agent("b")}, catalogs=(far,))
    edit = list_catalog(policy, "a", "far", on=True)
    listed = apply(policy, edit)
    assert listed.agents["a"].tools == ("x", "y", "catalog:far")
    assert apply(listed, inverse(edit)) == policy
    assert apply(listed, list_catalog(listed, "a", "far", on=False)).agents == policy.agents
    closed = replace(policy, defaults=Defaults(unlisted_tools=Verdict.DENY))
    assert apply(closed, list_catalog(closed, "b", "far", on=True)).agents["b"].tools == ("catalog:far",)
    for given, agent_id, catalog_id, on, said in (
        (listed, "a", "far", True, "`a` has all tools of `far` already"),
        (policy, "a", "far", False, "`catalog:far` is not in the list of tools of `a`"),
        (policy, "a", "near", True, "no catalog `near`"),
        (policy, "b", "far", True, "`b` has no list of tools, so it has every tool already"),
    ):
        with pytest.raises(EditRefused, match=re.escape(said)):
            list_catalog(given, agent_id, catalog_id, on=on)


def test_agent_that_no_rule_names_changes_no_rule() -> None:
    policy = Policy(agents={"a": Agent("a")}, rules=(ALL,))

    assert len(rename_agent(policy, "a", "b").changes) == 1
    assert remove_agent(policy, "a").name == "remove agent `a`"


def test_rules_that_changed_since_refuse_the_edit() -> None:
    edit = Edit("rules", (FieldChange("rules", (ALL,), ()),))

    with pytest.raises(EditRefused, match="`rules` of the policy changed"):
        apply(POLICY, edit)


def test_edits_of_agents_are_named_and_refused_in_words() -> None:
    third = replace(POLICY, agents={**POLICY.agents, "c": Agent("c")}, rules=(ALONE, replace(BOTH, name="x"), ALL))
    edits = [
        add_agent(POLICY, "c", "new"),
        describe_agent(POLICY, "a", "old"),
        duplicate_agent(POLICY, "a", "c"),
        rename_agent(POLICY, "a", "A" * 64),
        remove_agents(third, ["a", "c"]),
        remove_agents(third, ["a", "b", "a"]),
        remove_agent(third, "c"),
    ]
    assert [edit.name for edit in edits] == [
        "add agent `c`",
        "describe `a`",
        "duplicate `a` as `c`",
        f"rename `a` to `{'A' * 64}`",
        "remove 2 agents and the policy rule for them alone",
        "remove 2 agents and the 2 policy rules for them alone",
        "remove agent `c`",
    ]
    assert apply(POLICY, edits[0]).agents["c"] == Agent("c", "new", tools=(), sources=())
    assert apply(POLICY, edits[1]).agents["a"] == Agent("a", "old")
    copy = apply(POLICY, edits[2]).agents
    assert (list(copy), copy["c"].identity == copy["a"].identity) == (["a", "b", "c"], False)
    assert list(apply(POLICY, edits[3]).agents) == ["A" * 64, "b"]
    assert list(apply(third, edits[5]).agents) == ["c"]
    back = apply(apply(third, edits[5]), inverse(edits[5]))
    assert (back, list(back.agents)) == (third, ["a", "b", "c"])
    shape = "letters, digits, `-` and `_`, at most 64"
    for agent_id, said in (
        ("a", "agent `a` exists already"),
        ("", f"`` is no agent id: {shape}"),
        ("_a", f"`_a` is no agent id: {shape}"),
        ("A" * 65, f"`{'A' * 65}` is no agent id: {shape}"),
    ):
        with pytest.raises(EditRefused) as refused:
            add_agent(POLICY, agent_id)
        assert str(refused.value) == said
        with pytest.raises(EditRefused):
            rename_agent(POLICY, "b", agent_id)
        with pytest.raises(EditRefused):
            duplicate_agent(POLICY, "b", agent_id)
    with pytest.raises(EditRefused, match="no agent `z`"):
        describe_agent(POLICY, "z", "")


GIT = Catalog("git", CatalogType.HOST)
DOCS, MORE = Source("docs", "x"), Source("more", "y")
WHOLE = replace(POLICY, sources=(DOCS, MORE), catalogs=(GIT,), tools={"t": ToolSettings(scrub=False)})


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (AgentChange(Agent("a", "other"), Agent("a", "new")), "agent `a`"),
        (AgentChange(None, Agent("a", "new")), "agent `a`"),
        (AgentChange(Agent("z"), None), "agent `z`"),
        (AgentChange(Agent("a"), Agent("b")), "agent `b`"),
        (SourceChange(Source("docs", "z"), None), "source `docs`"),
        (SourceChange(DOCS, MORE), "source `more`"),
        (CatalogChange(replace(GIT, trusted=True), None), "catalog `git`"),
        (CatalogChange(None, GIT), "catalog `git`"),
        (FieldChange("name", "n", None), "`name` of the policy"),
        (ToolSettingsChange("t", None, ToolSettings()), "the settings of `t`"),
        (ToolSettingsChange("u", ToolSettings(), None), "the settings of `u`"),
    ],
)
def test_edit_of_what_has_changed_since_is_refused_by_what_it_is(change: Change, what: str) -> None:
    with pytest.raises(EditRefused) as refused:
        apply(WHOLE, Edit("e", (change,)))
    assert str(refused.value) == f"{what} changed since this edit was made"


def test_what_comes_of_a_row_is_that_row_where_it_stood() -> None:
    own = replace(WHOLE.agents["a"], description="own")
    made = apply(WHOLE, Edit("e", (AgentChange(Agent("a"), Agent("c", "made")),)))
    kept = apply(WHOLE, Edit("e", (AgentChange(Agent("a"), own),)))
    assert ([*made.agents], made.agents["c"].identity) == (["c", "b"], WHOLE.agents["a"].identity)
    assert ([*kept.agents], kept.agents["a"] is own) == (["a", "b"], True)
    first = apply(WHOLE, Edit("e", (SourceChange(None, Source("new", "n"), 0),)))
    assert [one.source_id for one in first.sources] == ["new", "docs", "more"]
    settings = apply(WHOLE, Edit("e", (ToolSettingsChange("t", WHOLE.tools["t"], None),)))
    assert settings.tools == {}


def test_edit_between_two_policies_makes_one_the_other_and_back() -> None:
    other = replace(
        WHOLE,
        name="n",
        agents={"c": Agent("c"), "b": Agent("b", "new"), "a": Agent("a")},
        sources=(Source("z", "z"), MORE),
        catalogs=(),
        tools={"u": ToolSettings(), "t": ToolSettings()},
        rules=(),
    )
    edit = edit_between("all", WHOLE, other)
    assert (edit.name, edit.is_empty, apply(WHOLE, edit).is_same(other)) == ("all", False, True)
    assert apply(other, inverse(edit)).is_same(WHOLE)
    assert edit_between("none", WHOLE, WHOLE) == Edit("none", ())
    assert change_set(edit) == ChangeSet(frozenset("abc"), frozenset({"docs", "z"}), everything=True)
    moved = replace(WHOLE, agents={"a": Agent("a", "new"), "b": Agent("b")})
    assert edit_between("one", WHOLE, moved).changes == (AgentChange(Agent("a"), Agent("a", "new")),)
    assert change_set(edit_between("one", WHOLE, moved)) == ChangeSet(frozenset("a"), frozenset())
    with pytest.raises(EditRefused, match="the policies differ in more than edits change"):
        edit_between("x", WHOLE, replace(WHOLE, dialect=Dialect.PATTERN))


ASK, ALLOW, DENY = Verdict.ASK, Verdict.ALLOW, Verdict.DENY


@pytest.mark.parametrize("usual", [None, ALLOW, ASK, DENY])
def test_reading_asks_for_nobody_after_it_was_turned_off_and_denials_stay(usual: Verdict | None) -> None:
    own = {"a": ASK, "b": ALLOW, "c": DENY, "d": None}

    def keys(verdict: Verdict | None) -> dict[str, Verdict]:
        return {"git_log": ASK} | ({} if verdict is None else {"read_only": verdict})

    agents = {name: Agent(name, approvals=keys(verdict)) for name, verdict in own.items()}
    policy = Policy(agents=agents, defaults=Defaults(approvals=keys(usual)))
    asked = apply(policy, set_reading(policy, asks=True))
    for before in (policy, asked):
        edit = set_reading(before, asks=False)
        after = apply(before, edit)
        assert asks_to_read(after) == ()
        assert after.agents["c"].approvals["read_only"] is DENY
        assert all(agent.approvals["git_log"] is ASK for agent in after.agents.values())
        assert apply(after, inverse(edit)) == before
    assert asks_to_read(asked) == ("a", "d")
    assert apply(policy, set_reading(policy, asks=False)).defaults.approvals["read_only"] is (
        DENY if usual is DENY else ALLOW
    )
