"""Edits of catalogs, and what the policy says of their tools."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from gatewright.base.errors import EditRefused
from gatewright.policy import policyedit
from gatewright.policy.document import Agent, Catalog, CatalogType, Confine, Defaults, PlaceUse, Policy, ToolSettings
from gatewright.policy.edit import CatalogChange, Edit, apply, change_set, inverse
from gatewright.policy.rule import MaxCalls, PolicyRule, ToolRule
from gatewright.policy.verdict import Verdict

ROOT = Path(__file__).parents[3]
GIT = Catalog("git", CatalogType.MCP, command="mcp-server-git")
HUB = Catalog("hub", CatalogType.MCP, url="https://hub.example/mcp")
POLICY = Policy(
    defaults=Defaults(approvals={"log": Verdict.ASK, "commit": Verdict.DENY}),
    agents={
        "a": Agent(
            "a",
            tools=("file", "log@1", "commit"),
            tool_rules=(ToolRule("log", MaxCalls(3)), ToolRule("file", MaxCalls(9))),
            approvals={"log.show": Verdict.ASK, "logs": Verdict.ASK, "file": Verdict.ASK},
        ),
        "b": Agent("b"),
    },
    tools={"log": ToolSettings(scrub=False), "file": ToolSettings(scrub=False)},
    rules=(
        PolicyRule("both", Verdict.DENY, tools=("log", "file")),
        PolicyRule("its own", Verdict.DENY, tools=("log@1",)),
        PolicyRule("all", Verdict.ASK),
    ),
    catalogs=(GIT, HUB),
)


def test_a_catalog_is_added_as_the_last_one_and_taken_back() -> None:
    time = Catalog("time", CatalogType.MCP, command="mcp-server-time")
    edit = policyedit.add_catalog(POLICY, time)
    after = apply(POLICY, edit)

    assert edit.name == "add catalog `time`"
    assert after.catalogs == (GIT, HUB, time)
    assert apply(after, inverse(edit)) == POLICY
    assert change_set(edit).everything


def test_several_catalogs_are_added_in_one_step() -> None:
    new = [Catalog(name, CatalogType.HOST) for name in ("x", "y")]
    edit = policyedit.add_catalogs(POLICY, new)

    assert edit.name == "add catalogs `x`, `y`"
    assert apply(POLICY, edit).catalogs == (GIT, HUB, *new)


def test_a_second_catalog_of_a_name_is_refused() -> None:
    with pytest.raises(EditRefused, match="a catalog `git` exists already"):
        policyedit.add_catalog(POLICY, replace(GIT, catalog_id="GIT"))
    with pytest.raises(EditRefused, match="no catalog `gti`"):
        policyedit.remove_catalog(POLICY, "gti")


def test_what_is_said_of_the_tools_of_a_removed_catalog_goes_with_it_and_comes_back() -> None:
    edit = policyedit.remove_catalog(POLICY, "git", ("log", "commit"))
    after = apply(POLICY, edit)

    assert edit.name == "remove catalog `git`"
    agent = after.agents["a"]
    assert after.catalogs == (HUB,)
    assert agent.tools == ("file",)
    assert [rule.tool_name for rule in agent.tool_rules] == ["file"]
    assert agent.approvals == {"logs": Verdict.ASK, "file": Verdict.ASK}
    assert after.defaults.approvals == {}
    assert list(after.tools) == ["file"]
    assert [(rule.name, rule.tools) for rule in after.rules] == [("both", ("file",)), ("all", None)]
    assert after.agents["b"] is POLICY.agents["b"]
    back = apply(after, inverse(edit))
    assert back == POLICY
    assert back.catalogs == (GIT, HUB)


def test_an_edit_refuses_to_land_on_a_catalog_that_moved_on() -> None:
    edit = Edit("change", (CatalogChange(GIT, replace(GIT, args=("-v",))),))
    moved = apply(POLICY, Edit("change", (CatalogChange(GIT, replace(GIT, cwd="x")),)))

    with pytest.raises(EditRefused, match="catalog `git` changed"):
        apply(moved, edit)
    with pytest.raises(EditRefused, match="catalog `git` changed"):
        apply(POLICY, Edit("twice", (CatalogChange(None, GIT),)))


def test_catalog_says_what_runs_it_and_where_its_tools_are_written_down() -> None:
    assert (GIT.file, GIT.runs) == ("catalogs/git.json", "mcp-server-git")
    assert (HUB.file, HUB.runs) == ("catalogs/hub.json", "https://hub.example/mcp")
    host = Catalog("own", CatalogType.HOST, manifest="own.json")
    assert (host.file, host.runs) == ("own.json", "")
    assert replace(GIT, args=("-v", "a b")).runs == "mcp-server-git -v 'a b'"


def test_places_are_given_to_a_server_and_taken_back() -> None:
    edit = policyedit.set_places(POLICY, "git", {"notes": PlaceUse.WRITE, "./x": PlaceUse.READ})
    after = apply(POLICY, edit)

    assert edit.name == "give the server of `git` `notes` to change, `./x` to read"
    assert (POLICY.catalogs[0].waits_for_places, after.catalogs[0].waits_for_places) == (True, False)
    assert after.catalogs[0].places == {"notes": PlaceUse.WRITE, "./x": PlaceUse.READ}
    assert apply(after, inverse(edit)) == POLICY
    assert policyedit.set_places(POLICY, "git", {}).name == "give the server of `git` no place"
    with pytest.raises(EditRefused, match="catalog `hub` has no process of its own"):
        policyedit.set_places(POLICY, "hub", {})


def test_a_person_may_end_the_confinement_of_a_server_and_of_the_shell_and_begin_it_again() -> None:
    free = apply(apply(POLICY, policyedit.unconfine(POLICY, "git")), policyedit.unconfine(POLICY, None))

    assert (free.catalogs[0].confine, free.shell.confine) == (Confine.NONE, Confine.NONE)
    held = apply(free, policyedit.confine(free, None))
    assert apply(held, policyedit.confine(held, "git")) == POLICY
    with pytest.raises(EditRefused, match="has no process of its own to confine"):
        policyedit.unconfine(POLICY, "hub")


def test_nothing_of_ours_but_one_edit_gives_a_confinement_up() -> None:
    """`Confine.NONE` is compared with everywhere, given in `unconfine` alone, and made from a word by the reader."""
    given: list[str] = []
    for folder in ("engine", "gui", "packaging"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text("utf-8")
            if "Confine" not in text and "confine" not in text:
                continue
            tree = ast.parse(text)
            compared = {id(one) for node in ast.walk(tree) if isinstance(node, ast.Compare) for one in ast.walk(node)}
            within = {
                id(one): node.name
                for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef)
                for one in ast.walk(node)
            }
            for node in ast.walk(tree):
                is_none = isinstance(node, ast.Attribute) and ast.unparse(node) == "Confine.NONE"
                is_made = isinstance(node, ast.Call) and ast.unparse(node.func) == "Confine"
                written = isinstance(node, ast.Constant) and str(node.value).startswith('confine = "none"')
                if (is_none or is_made or written) and id(node) not in compared:
                    given.append(f"{path.stem}.{within.get(id(node))}")

    assert given == ["policyedit.unconfine"]
