"""*Only in this folder*: read from the file and written back as it reads, enforced, and told to the model up front."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from gatewright.gate import selfcheck
from gatewright.policy.rule import ArgumentConstraints
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.policyfile.readrule import plain_kind
from gatewright.tools import FileParameter, Normalization, ResultType, SideEffect, tool
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, World

KIND: dict[str, Any] = {
    "safety_tier": SafetyTier.READ_ONLY,
    "result_type": ResultType.STRING,
    "normalization": Normalization.JSON,
}
PATHS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where."},
        "files": {"type": "array", "items": {"type": "string"}},
        "size": {"type": "integer"},
    },
    "required": ["path"],
}


def rule(tool: str, said: str, conditions: str = "") -> str:
    head = f'[[agents.archivist.tool_rules]]\ntool_name = "{tool}"\n'
    return f"{head}rule_type = {{ ArgumentConstraints = {said} }}\n{conditions}\n"


@pytest.fixture
def limited(make_world: MakeWorld) -> World:
    """A stranger's tool and our own, both only in one folder, in which links lead out and back in."""
    policy = POLICY.replace('"vault"]', '"vault", "copy"]').replace(
        "[[sources]]",
        rule("copy", '{ path = { in_folder = "notes" }, files = { items = { in_folder = "notes/" } } }')
        + rule("file", '{ path = { in_folder = "drafts/" } }', 'conditions = ["operation:append"]')
        + "[[sources]]",
        1,
    )
    world = make_world(policy, DefinedTool(ToolDefinition("copy", "Copies.", PATHS), origin="stranger"))
    for name in ("notes", "notes/deep", "other", "docs/drafts", "docs/other"):
        (world.folder / name).mkdir()
    (world.folder / "other" / "a.md").write_text("a")
    (world.folder / "notes" / "out").symlink_to("../other")
    (world.folder / "notes" / "in").symlink_to("deep")
    (world.folder / "notes" / "out.md").symlink_to("../other/a.md")
    (world.docs / "drafts" / "out").symlink_to("../other")
    return world


@tool(side_effects=frozenset({SideEffect.FS_READ}), **KIND)
async def pack(source: Annotated[str, FileParameter()], beside: str) -> str:
    """Pack.

    Args:
        source: What, as its author marked it.
        beside: A path too, which nobody marked.
    """
    return source + beside


def test_a_marked_path_of_a_tool_leaves_its_unmarked_one_to_be_looked_at(make_world: MakeWorld) -> None:
    agent = 'tools = ["pack"]\ncapabilities = [{ FsRead = { prefixes = ["."] } }]\n'
    kind = '{ source = { in_folder = "notes" }, beside = { in_folder = "notes" } }'
    made = make_world("gatewright = 1\n\n[agents.archivist]\n" + agent + rule("pack", kind), pack)
    (made.folder / "notes").mkdir()
    (made.folder / "notes" / "out").symlink_to("../docs")
    assert made.decide("pack", {"source": "notes/a", "beside": "notes/a"}).verdict is Verdict.ALLOW
    assert made.decide("pack", {"source": "notes/a", "beside": "notes/out/a"}).code == "argument-constraint"


@tool(side_effects=frozenset({SideEffect.FS_READ}), **KIND)
async def unpack(source: Annotated[str, FileParameter()] = "other/a") -> str:
    """Unpack.

    Args:
        source: What.
    """
    return source


def test_a_default_outside_of_the_folder_counts_as_given_and_the_shown_schema_asks_for_the_path(
    make_world: MakeWorld,
) -> None:
    agent = 'tools = ["unpack"]\ncapabilities = [{ FsRead = { prefixes = ["."] } }]\n'
    for folder, asks in (("notes", True), ("other", False)):
        kind = f'{{ source = {{ in_folder = "{folder}" }} }}'
        made = make_world("gatewright = 1\n\n[agents.archivist]\n" + agent + rule("unpack", kind), unpack)
        (shown,) = made.gate.view("archivist").listings()
        assert ("source" in shown.schema.get("required", ())) == asks
        assert (made.decide("unpack", {}).verdict is Verdict.DENY) == asks
        assert made.decide("unpack", {"source": f"{folder}/b"}).verdict is Verdict.ALLOW


FOLDER_FORMS: list[tuple[str, Any]] = [
    ('{ path = { anyOf = [{ in_folder = "notes/" }, { type = "null" }] } }', {}),
    ('{ path = { allOf = [{ in_folder = "notes/" }, { maxLength = 40 }] } }', {}),
    ('{ path = { type = ["string", "null"], in_folder = "notes/" } }', {}),
    ('{ at = { properties = { path = { in_folder = "notes/" } } } }', {"at": True}),
    ('{ at = { properties = { path = { items = { in_folder = "notes/" } } } } }', {"at": True, "list": True}),
]


@pytest.mark.parametrize(("said", "form"), FOLDER_FORMS)
def test_no_link_leads_out_of_the_folder_wherever_the_constraint_says_it(
    make_world: MakeWorld, said: str, form: dict[str, bool]
) -> None:
    properties: dict[str, Any] = {"path": {}, "at": {"type": "object", "properties": {"path": {}}}}
    policy = POLICY.replace('"vault"]', '"vault", "copy"]').replace(
        "[[sources]]", rule("copy", said) + "[[sources]]", 1
    )
    definition = ToolDefinition("copy", "Copies.", {"type": "object", "properties": properties})
    world = make_world(policy, DefinedTool(definition, origin="stranger"))
    for name in ("notes", "other"):
        (world.folder / name).mkdir()
    (world.folder / "notes" / "out").symlink_to("../other")

    def verdict(path: str) -> Verdict:
        value: Any = [path] if form.get("list") else path
        return world.decide("copy", {"at": {"path": value}} if form.get("at") else {"path": value}).verdict

    assert verdict("notes/a.md") is not Verdict.DENY
    assert verdict("notes/out/a.md") is Verdict.DENY
    assert verdict("other/a.md") is Verdict.DENY


INSIDE = ["notes/a.md", "notes/deep/a.md", "notes/in/a.md", "notes/..a"]
OUTSIDE = [
    "other/a.md", "notes", "notes/", "notes/../other/a.md", "notes/deep/../../other/a.md", "./other/a.md",
    "Notes/a.md", "notes/out/a.md", "notes/out.md", "notes\\..\\other\\a.md", "notes/%2e%2e/other/a.md",
    "/notes/a.md", "~/notes/a.md", "notes//a.md", "other/notes/a.md", "notes/out\0.md",
]  # fmt: skip


@pytest.mark.parametrize("argument", ["path", "files"])
def test_a_strangers_path_stays_in_its_folder_however_it_is_spelt_and_linked(limited: World, argument: str) -> None:
    def verdict(path: str) -> Verdict:
        return limited.decide("copy", {"path": "notes/a.md", argument: path if argument == "path" else [path]}).verdict

    assert [path for path in INSIDE if verdict(path) is Verdict.DENY] == []
    assert [path for path in OUTSIDE if verdict(path) is not Verdict.DENY] == []
    told = limited.decide("copy", {"path": "notes/out/a.md"})
    assert (told.stage, told.code) == ("rules", "argument-constraint")
    assert (told.model_message or "").endswith("/path: only in `notes/`")


def test_our_own_path_stays_in_its_folder_and_may_be_spelt_with_detours(limited: World) -> None:
    def decision(path: str, op: str = "append") -> tuple[Verdict, str]:
        found = limited.decide(
            "file", {"op": op, "path": path, "content": "x"} if op == "append" else {"op": op, "path": path}
        )
        return found.verdict, found.code

    assert decision("drafts/a.md")[0] is not Verdict.DENY
    assert decision("./drafts//b/../a.md")[0] is not Verdict.DENY
    assert decision("drafts/../other/a.md") == (Verdict.DENY, "argument-constraint")
    assert decision("drafts/out/a.md")[0] is Verdict.DENY
    assert decision("other/a.md", "read")[0] is not Verdict.DENY


def test_the_model_is_told_the_folder_before_it_calls(limited: World) -> None:
    shown = {row.name: row.schema for row in limited.gate.view("archivist").listings()}
    copy, file = shown["copy"]["properties"], shown["file"]["properties"]
    assert copy["path"]["description"] == "Where. Only in `notes/`."
    assert copy["files"]["description"] == "Only in `notes/`."
    assert "pattern" in copy["path"]
    assert "description" not in copy["size"]
    assert file["path"]["description"].endswith(" For append only in `drafts/`.")
    lints = limited.gate.view("archivist").lints("mcp").get("file", ())
    assert "constraint-not-shown" not in {lint.code for lint in lints}


def test_the_self_check_tries_the_folder(limited: World) -> None:
    report = selfcheck(limited.gate)
    assert not report.differences
    assert [one.tool for one in report.no_witness if one.tool in {"copy", "file"}] == []


def test_the_folder_is_written_back_as_it_reads(limited: World) -> None:
    rules = limited.gate.policy.agents["archivist"].tool_rules
    assert plain_kind(rules[1].rule_type) == {
        "ArgumentConstraints": {"path": {"in_folder": "notes/"}, "files": {"items": {"in_folder": "notes/"}}}
    }
    assert rules[1].rule_type == ArgumentConstraints(
        {"path": {"in_folder": "notes"}, "files": {"items": {"in_folder": "notes/"}}}
    )
