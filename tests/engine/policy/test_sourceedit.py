"""Edits of sources and of the order of their rules."""

from dataclasses import replace

import pytest

from gatewright.base.errors import EditRefused
from gatewright.policy import sourceedit
from gatewright.policy.document import Agent, Catalog, CatalogType, PermissionRule, PlaceUse, Policy, Source
from gatewright.policy.edit import apply, inverse
from gatewright.policy.verdict import Permission

RULES = tuple(PermissionRule(pattern, Permission.APPEND) for pattern in ("a", "b", "c", "d", "e"))
POLICY = Policy(
    agents={
        "all": Agent("all"),
        "some": Agent("some", sources=("one", "two")),
        "other": Agent("other", sources=("three",)),
    },
    sources=(Source("one", "1", permission_rules=RULES), Source("two", "2"), Source("three", "3")),
)


def patterns(policy: Policy) -> str:
    source = policy.source("one")
    assert source is not None
    return "".join(rule.pattern for rule in source.permission_rules)


@pytest.mark.parametrize(
    ("indexes", "to", "wanted"),
    [((0,), 2, "bcade"), ((1, 3), 0, "bdace"), ((0, 4), 3, "bcdae"), ((2, 1), 99, "adebc"), ((4,), -5, "eabcd")],
)
def test_moved_rules_stand_together_in_the_order_they_had(indexes: tuple[int, ...], to: int, wanted: str) -> None:
    edit = sourceedit.move_rules(POLICY, "one", indexes, to)
    after = apply(POLICY, edit)
    assert patterns(after) == wanted
    assert apply(after, inverse(edit)) == POLICY


def test_move_to_where_the_rules_are_is_no_edit() -> None:
    assert sourceedit.move_rules(POLICY, "one", (1, 2), 1).is_empty


def test_several_rules_are_removed_by_one_edit_that_says_how_many() -> None:
    edit = sourceedit.remove_rules(POLICY, "one", (0, 2, 2))
    assert edit.name == "remove 2 rules of `one`"
    assert patterns(apply(POLICY, edit)) == "bde"
    with pytest.raises(EditRefused, match="no rule 9"):
        sourceedit.remove_rules(POLICY, "one", (0, 8))


def test_removed_source_leaves_the_lists_of_agents_and_comes_back_where_it_stood() -> None:
    edit = sourceedit.remove_source(POLICY, "one")
    assert edit.name == "remove source `one` and take it from 1 agent"
    after = apply(POLICY, edit)
    assert [source.source_id for source in after.sources] == ["two", "three"]
    assert after.agents["some"].sources == ("two",)
    assert after.agents["all"].sources is None
    assert apply(after, inverse(edit)) == POLICY


def test_renamed_source_is_followed_by_the_lists_of_agents() -> None:
    source = POLICY.sources[1]
    edit = sourceedit.change_source(POLICY, "two", replace(source, source_id="deux"))
    after = apply(POLICY, edit)
    assert [one.source_id for one in after.sources] == ["one", "deux", "three"]
    assert after.agents["some"].sources == ("one", "deux")
    assert apply(after, inverse(edit)) == POLICY


def test_places_of_servers_follow_a_renamed_source_and_lose_one_that_goes() -> None:
    server = Catalog("s", CatalogType.MCP, command="c", places={"two": PlaceUse.WRITE, "./x": PlaceUse.READ})
    policy = replace(POLICY, catalogs=(replace(server, catalog_id="bare", places=None), server))

    renamed = sourceedit.change_source(policy, "two", replace(POLICY.sources[1], source_id="deux"))
    assert apply(policy, renamed).catalogs[1].places == {"deux": PlaceUse.WRITE, "./x": PlaceUse.READ}
    removed = sourceedit.remove_source(policy, "two")
    assert removed.name == "remove source `two` and take it from 1 agent and 1 server"
    assert apply(policy, removed).catalogs[1].places == {"./x": PlaceUse.READ}
    for edit in (renamed, removed):
        assert apply(policy, edit).catalogs[0].places is None
        assert apply(apply(policy, edit), inverse(edit)) == policy


SPACES = "the name of a source has no spaces around it and no control characters"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ONE", "a source `one` exists already"),
        ("", "a source needs a name"),
        (" ", "a source needs a name"),
        (" x", SPACES),
        ("a\nb", SPACES),
        ("a\x1fb", SPACES),
        ("a\x7fb", SPACES),
        ("two ", SPACES),
    ],
)
def test_name_that_cannot_be_is_refused(name: str, said: str) -> None:
    for make in (
        lambda: sourceedit.add_source(POLICY, Source(name, "x")),
        lambda: sourceedit.change_source(POLICY, "two", replace(POLICY.sources[1], source_id=name)),
    ):
        with pytest.raises(EditRefused) as refused:
            make()
        assert str(refused.value) == said
    with pytest.raises(EditRefused, match="no source `four`"):
        sourceedit.set_default_level(POLICY, "four", Permission.NONE)
    with pytest.raises(EditRefused, match="source `two` has no rule 1"):
        sourceedit.set_level(POLICY, "two", 0, Permission.NONE)
    with pytest.raises(EditRefused, match="source `one` has no rule 0"):
        sourceedit.remove_rule(POLICY, "one", -1)


def test_edits_of_levels_change_what_they_are_named_by() -> None:
    rule = PermissionRule("x", Permission.ADMIN, "why")
    edits = [
        sourceedit.set_level(POLICY, "one", 1, Permission.NONE),
        sourceedit.set_rule(POLICY, "one", 4, rule),
        sourceedit.set_default_level(POLICY, "one", Permission.HUMAN),
        sourceedit.add_rule(POLICY, "one", rule),
        sourceedit.add_rule(POLICY, "one", rule, 0),
        sourceedit.remove_rule(POLICY, "one", 2),
        sourceedit.move_rule(POLICY, "one", 3, 0),
        sourceedit.move_rules(POLICY, "one", (3, 4), 0),
        sourceedit.remove_source(POLICY, "three"),
        sourceedit.add_source(POLICY, Source("four", "4")),
    ]
    assert [edit.name for edit in edits] == [
        "set `b` of `one` to none",
        "change rule `e` of `one`",
        "set the default of `one` to human",
        "add rule `x` to `one`",
        "add rule `x` to `one`",
        "remove rule `c` of `one`",
        "move rule `d` of `one`",
        "move 2 rules of `one`",
        "remove source `three` and take it from 1 agent",
        "add source `four`",
    ]
    after = [apply(POLICY, edit) for edit in edits]
    assert [patterns(policy) for policy in after[:8]] == [
        *("abcde", "abcdx", "abcde", "abcdex", "xabcde", "abde", "dabce", "deabc"),
    ]
    one = after[0].sources[0].permission_rules[1]
    assert (one.permission, after[2].sources[0].default_permission) == (Permission.NONE, Permission.HUMAN)
    assert after[1].sources[0].permission_rules[4].identity == RULES[4].identity
    assert after[9].sources == (*POLICY.sources, Source("four", "4"))
    assert after[8].agents["other"].sources == ()
    alone = replace(POLICY, agents={})
    assert sourceedit.remove_source(alone, "three").name == "remove source `three`"


def test_case_of_an_own_name_can_be_changed() -> None:
    edit = sourceedit.change_source(POLICY, "two", replace(POLICY.sources[1], source_id="Two"))
    assert apply(POLICY, edit).source("Two") is not None


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"watch": True}, "follow changes of `two`"),
        ({"max_file_bytes": 2048}, "set the size limit to 2,048 bytes of `two`"),
        ({"source_id": "deux"}, "change the id of `two`"),
        ({"base_path": "x"}, "set the folder to `x` of `two`"),
        ({"default_permission": Permission.ADMIN}, "set the default to admin of `two`"),
        ({"base_path": "x", "watch": True}, "change source `two`"),
        ({}, "change source `two`"),
    ],
)
def test_edit_of_settings_says_what_changes(change: dict[str, object], name: str) -> None:
    after = replace(POLICY.sources[1], **change)  # pyright: ignore[reportArgumentType]
    assert sourceedit.change_source(POLICY, "two", after).name == name
    watching = replace(POLICY, sources=(replace(after, watch=True, source_id="two"),))
    stops = sourceedit.change_source(watching, "two", replace(watching.sources[0], watch=False))
    assert stops.name == "stop following changes of `two`"
