"""Calls of `block` and `block_edit` through the whole gate, on real SQLite and real files."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks import CompositeSchema, Field, FieldType, ListSchema, LogSchema, MapSchema, Section, TextSchema
from gatewright.blocks.schema import Append, Overwrite
from gatewright.gate import Approval, ApprovalRequest, AuditLog, Remember, StageTrace
from gatewright.memory import BlockType
from gatewright.policy.verdict import Action, Permission, SafetyTier, Verdict
from gatewright.tools import LabelParameter, Normalization, ResultType, Tool, ToolExecutionContext, operation
from gatewright.workspace import Workspace
from tests.engine.gate.blockbench import POLICY, BlockBench, opened

NO_BLOCK = "Tool execution failed: no block has that label"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[BlockBench]:
    made = opened(tmp_path)
    yield made
    made.workspace.close()


def make(bench: BlockBench, content: JsonValue = "one\ntwo\n", label: str = "notes", **more: Any) -> None:
    bench.own().create(label, author="operator", content=content, **more)


# what each operation does


async def test_info_tells_everything_about_a_block_but_what_it_holds(bench: BlockBench) -> None:
    make(bench, description="what I know", char_limit=100, pinned=True)

    data = await bench.done("block", "info", label="notes")

    assert data == {
        "label": "notes",
        "description": "what I know",
        "type": "working",
        "schema": {"type": "text"},
        "permission": "read_write",
        "pinned": True,
        "chars": 8,
        "items": 0,
        "char_limit": 100,
        "can_undo": False,
        "can_redo": False,
    }


async def test_load_gives_what_a_block_holds(bench: BlockBench) -> None:
    make(bench)

    assert (await bench.done("block", "load", label="notes"))["content"] == "one\ntwo\n"


@pytest.mark.parametrize("by", ["label", "path and source", "label and source"])
async def test_load_of_a_file_takes_its_text_from_disk(bench: BlockBench, by: str) -> None:
    (bench.docs / "a.md").write_text("disk\n")
    label = await bench.label("a.md")
    (bench.docs / "a.md").write_text("newer\n")
    given = {"label": "a.md" if by == "path and source" else label}
    given |= {} if by == "label" else {"source_id": "docs"}

    data = await bench.done("block", "load", **given)

    assert data["label"] == label
    assert bench.own().value(label) == "newer\n"


async def test_load_of_a_file_asks_before_edits_are_thrown_away(bench: BlockBench) -> None:
    (bench.docs / "a.md").write_text("disk\n")
    label = await bench.label("a.md")
    await bench.done("block_edit", "append", label=label, content="mine\n")
    bench.approves = False

    assert (await bench.call("block", "load", label=label)).status == "denied"
    assert bench.own().value(label) == "disk\nmine\n"
    assert [request.reasons for request in bench.asked] == [
        ("edits that were not written to disk would be thrown away",)
    ]


async def test_load_of_a_file_throws_edits_away_when_somebody_agreed(bench: BlockBench) -> None:
    (bench.docs / "a.md").write_text("disk\n")
    label = await bench.label("a.md")
    await bench.done("block_edit", "append", label=label, content="mine\n")

    await bench.done("block", "load", label=label)
    assert (bench.own().value(label), len(bench.asked)) == ("disk\n", 1)


@pytest.mark.parametrize(
    ("tool", "op", "given", "code"),
    [
        ("block_edit", "append", {"content": "x"}, "archived"),
        ("block_edit", "undo", {}, "archived"),
        ("block", "pin", {}, "archived"),
        ("block", "archive", {}, "wrong-type"),
        ("block_edit", "replace", {"label": "open", "old": "nine", "new": "9"}, "no-match"),
        ("block_edit", "set_field", {"label": "open", "field": "f", "value": 1}, "wrong-schema"),
        ("block_edit", "redo", {"label": "open"}, "nothing-to-redo"),
    ],
)
async def test_nobody_is_asked_about_a_block_that_cannot_be_changed_so(
    bench: BlockBench, tool: str, op: str, given: dict[str, Any], code: str
) -> None:
    bench.own().create("put away", author="agent:ann", content="one", permission=Permission.PARTNER)
    bench.own().create("open", author="agent:ann", content="one", permission=Permission.PARTNER)
    bench.own().note("put away", "archive", author="agent:ann", granted=Action.OVERWRITE, approved=True)

    outcome = await bench.call(tool, op, **{"label": "put away", **given})
    assert (outcome.status, outcome.code, outcome.decision.stage) == ("denied", code, "approval")
    assert bench.asked == []


async def test_load_from_a_source_that_is_not_the_agents_is_denied(bench: BlockBench) -> None:
    (bench.docs / "a.md").write_text("disk\n")

    for agent, given in (
        ("ann", {"label": "a.md", "source_id": "other"}),
        ("bob", {"label": "a.md", "source_id": "docs"}),
    ):
        outcome = await bench.call("block", "load", agent=agent, **given)
        assert (outcome.status, outcome.decision.stage) == ("denied", "arguments")


async def test_pin_and_unpin_are_kept(bench: BlockBench) -> None:
    make(bench)

    assert (await bench.done("block", "pin", label="notes"))["pinned"] is True
    assert bench.own().get("notes").pinned
    assert (await bench.done("block", "pin", label="notes"))["changed"] is False
    assert (await bench.done("block", "unpin", label="notes"))["pinned"] is False
    assert not bench.own().get("notes").pinned


async def test_archive_puts_a_working_block_away_and_makes_no_entry(bench: BlockBench) -> None:
    make(bench, pinned=True)

    assert (await bench.done("block", "archive", label="notes"))["type"] == "archival"
    assert [(record.label, record.type) for record in bench.own().list()] == [("notes", BlockType.ARCHIVAL)]


@pytest.mark.parametrize(
    ("kind", "code"),
    [(BlockType.CORE, "core-block"), (BlockType.LOG, "wrong-type"), (BlockType.ARCHIVAL, "wrong-type")],
)
async def test_archive_of_any_other_block_is_refused(bench: BlockBench, kind: BlockType, code: str) -> None:
    make(bench, type=kind)

    outcome = await bench.call("block", "archive", label="notes")

    assert (outcome.status, outcome.code) == ("failed", code)
    assert bench.own().get("notes").type is kind


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"old": "o", "new": "0"}, "0ne two one"),
        ({"old": "o", "new": "0", "mode": "first"}, "0ne two one"),
        ({"old": "o", "new": "0", "mode": "all"}, "0ne tw0 0ne"),
        ({"old": "o", "new": "0", "mode": "nth", "nth": 3}, "one two 0ne"),
        ({"old": r"(\w)n(\w)", "new": r"\2-\1", "mode": "regex"}, "e-o two one"),
        ({"old": r"o\w*", "new": "X", "mode": "regex", "nth": 2}, "one twX one"),
        ({"old": "one ", "new": ""}, "two one"),
    ],
)
async def test_replace_in_each_mode(bench: BlockBench, given: dict[str, Any], text: str) -> None:
    make(bench, "one two one")

    await bench.done("block_edit", "replace", label="notes", **given)

    assert bench.own().value("notes") == text


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"old": "absent", "new": "x"}, "no-match"),
        ({"old": "o", "new": "x", "mode": "nth"}, "bad-arguments"),
        ({"old": "o", "new": "x", "mode": "nth", "nth": 9}, "nth-match"),
        ({"old": "o", "new": "x", "mode": "all", "nth": 1}, "bad-arguments"),
        ({"old": "(", "new": "x", "mode": "regex"}, "bad-pattern"),
        ({"old": "o", "new": "x", "section": "s"}, "no-section"),
    ],
)
async def test_replace_that_cannot_be_done_changes_nothing(bench: BlockBench, given: dict[str, Any], code: str) -> None:
    make(bench)

    outcome = await bench.call("block_edit", "replace", label="notes", **given)

    assert (outcome.status, outcome.code) == ("failed", code)
    assert bench.own().value("notes") == "one\ntwo\n"


@pytest.mark.parametrize(
    "given", [{"mode": "2: o"}, {"mode": "nth", "nth": 0}, {"nth": "2"}, {"mode": "nth", "nth": 1.5}]
)
async def test_replace_with_arguments_of_another_shape_is_denied(bench: BlockBench, given: dict[str, Any]) -> None:
    make(bench)

    outcome = await bench.call("block_edit", "replace", label="notes", old="o", new="x", **given)

    assert (outcome.status, outcome.decision.stage) == ("denied", "schema")


async def test_append_to_text_list_and_log(bench: BlockBench) -> None:
    make(bench)
    make(bench, ["a"], "list", schema=ListSchema())
    make(bench, [], "log", schema=LogSchema(), type=BlockType.LOG)

    for label, content in (("notes", "no line end"), ("list", "b"), ("log", "it began")):
        await bench.done("block_edit", "append", label=label, content=content)

    assert bench.own().value("notes") == "one\ntwo\nno line end"
    assert bench.own().value("list") == ["a", "b"]
    log: Any = bench.own().value("log")
    assert [entry["message"] for entry in log] == ["it began"]


async def test_patch_needs_the_capability(bench: BlockBench) -> None:
    bench.workspace.blocks("bob").create("notes", author="operator", content="one\n")
    make(bench, "one\n")
    patch = "@@ -1 +1 @@\n-one\n+two\n"

    await bench.done("block_edit", "patch", label="notes", patch=patch)
    outcome = await bench.call("block_edit", "patch", agent="bob", label="notes", patch=patch)

    assert bench.own().value("notes") == "two\n"
    assert (outcome.status, outcome.decision.stage, outcome.code) == ("denied", "operation", "capability-not-granted")
    assert "patch" not in str(bench.workspace.view("bob").tools("mcp"))


async def test_patch_whose_lines_are_not_there_changes_nothing(bench: BlockBench) -> None:
    make(bench)

    outcome = await bench.call("block_edit", "patch", label="notes", patch="@@ -1,2 +1,2 @@\n three\n-two\n+2\n")

    assert (outcome.status, outcome.code) == ("failed", "patch-mismatch")
    assert bench.own().value("notes") == "one\ntwo\n"


SECTIONS = CompositeSchema(
    (
        Section("facts", MapSchema((Field("age", FieldType.NUMBER), Field("born", FieldType.TEXT, read_only=True)))),
        Section("text", TextSchema()),
        Section("law", TextSchema(), read_only=True),
    )
)


async def test_set_field_in_a_section_and_of_a_whole_section(bench: BlockBench) -> None:
    make(bench, {"facts": {"age": 3, "born": "then"}, "text": "a", "law": "b"}, schema=SECTIONS)

    await bench.done("block_edit", "set_field", label="notes", section="facts", field="age", value=4)
    await bench.done("block_edit", "set_field", label="notes", field="text", value="new")

    assert bench.own().value("notes") == {"facts": {"age": 4, "born": "then"}, "text": "new", "law": "b"}
    await bench.done("block_edit", "set_field", label="notes", section="facts", field="age", value=None)
    assert bench.own().value("notes") == {"facts": {"born": "then"}, "text": "new", "law": "b"}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"section": "facts", "field": "born", "value": "now"}, "read-only"),
        ({"field": "law", "value": "mine"}, "read-only"),
        ({"section": "facts", "field": "age", "value": "old"}, "wrong-type"),
        ({"section": "facts", "field": "name", "value": "x"}, "no-field"),
        ({"section": "none", "field": "age", "value": 1}, "no-section"),
    ],
)
async def test_set_field_that_is_not_allowed_changes_nothing(
    bench: BlockBench, given: dict[str, Any], code: str
) -> None:
    content: JsonValue = {"facts": {"age": 3, "born": "then"}, "text": "a", "law": "b"}
    make(bench, content, schema=SECTIONS)

    outcome = await bench.call("block_edit", "set_field", label="notes", **given)

    assert (outcome.status, outcome.code) == ("failed", code)
    assert bench.own().value("notes") == content


async def test_append_to_a_read_only_section_is_refused(bench: BlockBench) -> None:
    make(bench, {"facts": {}, "text": "a", "law": "b"}, schema=SECTIONS)

    outcome = await bench.call("block_edit", "append", label="notes", section="law", content="c")

    assert (outcome.status, outcome.code) == ("failed", "read-only")


async def test_undo_and_redo_concern_the_agents_own_edits(bench: BlockBench) -> None:
    make(bench)
    await bench.done("block_edit", "append", label="notes", content="mine\n")
    bench.own().edit("notes", Append("theirs\n"), author="agent:bob", granted=Action.DELETE)

    await bench.done("block_edit", "undo", label="notes")
    assert bench.own().value("notes") == "one\ntwo\ntheirs\n"
    await bench.done("block_edit", "redo", label="notes")
    assert sorted(str(bench.own().value("notes")).split()) == ["mine", "one", "theirs", "two"]
    outcome = await bench.call("block_edit", "redo", label="notes")
    assert (outcome.status, outcome.code) == ("failed", "nothing-to-redo")


async def test_limit_of_a_block_holds_for_every_edit(bench: BlockBench) -> None:
    make(bench, "12345", char_limit=8)

    for op, given in (("append", {"content": "6789"}), ("replace", {"old": "1", "new": "abcde"})):
        outcome = await bench.call("block_edit", op, label="notes", **given)
        assert (outcome.status, outcome.code) == ("failed", "too-large")
    assert bench.own().value("notes") == "12345"


# files through the tools for blocks


async def test_edit_of_a_file_stands_in_its_block_until_it_is_saved(bench: BlockBench) -> None:
    (bench.docs / "a.md").write_bytes(b"one\r\ntwo\r\n")
    label = await bench.label("a.md")

    await bench.done("block_edit", "append", label=label, content="three\n")
    await bench.done("block_edit", "replace", label=label, old="one\ntwo", new="1\n2")
    assert (bench.docs / "a.md").read_bytes() == b"one\r\ntwo\r\n"
    assert (await bench.done("file", "read", path="a.md"))["content"] == "1\r\n2\r\nthree\r\n"
    await bench.done("file", "save", label=label)
    assert (bench.docs / "a.md").read_bytes() == b"1\r\n2\r\nthree\r\n"


async def test_undo_of_a_file_goes_on_after_it_was_saved_and_edited_by_the_other_tool(bench: BlockBench) -> None:
    (bench.docs / "a.md").write_text("one\n")
    label = await bench.label("a.md")
    await bench.done("block_edit", "append", label=label, content="two\n")
    await bench.done("file", "append", path="a.md", content="three\n")
    await bench.done("file", "save", path="a.md")

    await bench.done("block_edit", "undo", label=label)

    assert (await bench.done("file", "read", path="a.md"))["content"] == "one\nthree\n"


async def test_edit_of_a_file_without_a_block_says_what_to_do(bench: BlockBench) -> None:
    (bench.docs / "a.md").write_text("one\n")
    label = await bench.label("a.md")
    await bench.done("file", "create", path="b.md", content="x")
    source = bench.workspace.sources.get("docs")
    assert source is not None
    assert source.forget("a.md")

    for tool, op, given in (("block_edit", "append", {"content": "x"}), ("block", "pin", {})):
        outcome = await bench.call(tool, op, label=label, **given)
        assert (outcome.status, outcome.code) == ("failed", "no-block")
    assert label not in [record.label for record in bench.own().list()]


async def test_edit_that_the_file_could_not_hold_is_refused_whole(tmp_path: Path) -> None:
    bench = opened(
        tmp_path,
        POLICY.replace('default_permission = "read_write"', 'default_permission = "read_write"\nmax_file_bytes = 12'),
    )
    (bench.docs / "a.md").write_text("one\n")
    label = await bench.label("a.md")
    outcome = await bench.call("block_edit", "append", label=label, content="much too long\n")

    assert (outcome.status, outcome.code) == ("failed", "too-large")
    assert bench.own().value(label) == "one\n"
    await bench.done("block_edit", "append", label=label, content="two\n")
    assert bench.own().value(label) == "one\ntwo\n"
    bench.workspace.close()


# who reaches which block


async def test_agents_have_blocks_of_their_own_under_one_label(bench: BlockBench) -> None:
    make(bench, "ann's")
    bench.workspace.blocks("bob").create("notes", author="operator", content="bob's")

    await bench.done("block_edit", "append", label="notes", content="!")

    assert bench.own("bob").value("notes") == "bob's"
    assert (await bench.done("block", "load", agent="bob", label="notes"))["content"] == "bob's"


async def test_shared_block_is_reached_by_every_agent(bench: BlockBench) -> None:
    bench.workspace.blocks().create("team", author="operator", content="")

    for agent in ("ann", "bob"):
        await bench.done("block_edit", "append", agent=agent, label="team", content=f"{agent}\n")

    assert bench.workspace.blocks().value("team") == "ann\nbob\n"


async def test_what_a_source_keeps_beside_a_block_is_no_block_of_anybodys(bench: BlockBench) -> None:
    (bench.docs / "a.md").write_text("one\n")
    label = await bench.label("a.md")
    await bench.done("file", "append", path="a.md", content="two\n")

    assert [record.label for record in bench.own().list()] == [label]


async def test_block_that_is_not_there_and_one_of_level_none_get_the_same_words(bench: BlockBench) -> None:
    make(bench, label="hidden", permission=Permission.READ_WRITE)
    bench.own().settings("hidden", author="operator", permission=Permission.NONE)
    bench.workspace.blocks("bob").create("bobs", author="operator", content="x")

    for tool, op, given in (
        ("block", "info", {}),
        ("block", "load", {}),
        ("block", "pin", {}),
        ("block_edit", "append", {"content": "x"}),
        ("block_edit", "replace", {"old": "a", "new": "b", "mode": "nth"}),
        ("block_edit", "undo", {}),
    ):
        outcomes = [await bench.call(tool, op, label=label, **given) for label in ("hidden", "absent", "bobs")]
        assert {(outcome.status, outcome.output) for outcome in outcomes} == {("denied", NO_BLOCK)}
        assert [outcome.code for outcome in outcomes] == ["level-none", "unknown-block", "unknown-block"]


@pytest.mark.parametrize("label", ["", " notes", "a\nb", "a\x00b", "x" * 513, "a\u202eb", "\u0085"])
async def test_label_that_no_block_can_have_is_denied(bench: BlockBench, label: str) -> None:
    outcome = await bench.call("block", "info", label=label)

    assert (outcome.status, outcome.decision.stage) == ("denied", "arguments")
    assert not label.strip() or label not in outcome.output


@pytest.mark.parametrize(
    "label", ["file:", "file:00000000:a.md", "file:../../x", "disk:0:file:x", "FILE:x", "file:0:../policy.toml"]
)
async def test_label_that_only_looks_like_one_of_a_file_reaches_nothing(bench: BlockBench, label: str) -> None:
    (bench.docs / "a.md").write_text("one\n")
    await bench.label("a.md")

    for agent in ("ann", "bob"):
        outcome = await bench.call("block_edit", "append", agent=agent, label=label, content="x")
        assert outcome.status == "denied"


async def test_text_that_a_file_was_last_in_step_with_is_no_block(bench: BlockBench) -> None:
    (bench.docs / "a.md").write_text("one\n")
    await bench.label("a.md")
    with bench.workspace.blocks()._shelf.store.reading() as connection:  # pyright: ignore[reportPrivateUsage]
        assert connection is not None
        kept = [row[0] for row in connection.execute("SELECT label FROM block WHERE label NOT LIKE 'file:%'")]

    assert kept
    for label in kept:
        assert (await bench.call("block_edit", "append", label=label, content="x")).code in {
            "level-none",
            "unknown-block",
        }


async def test_deciding_makes_no_store(tmp_path: Path) -> None:
    bench = opened(tmp_path)
    before = sorted(tmp_path.rglob("*"))

    decision = bench.workspace.decide("ann", "block_edit", {"op": "append", "label": "notes", "content": "x"})

    assert decision.verdict is Verdict.DENY
    assert sorted(tmp_path.rglob("*")) == before
    bench.workspace.close()


# the other layers


async def test_policy_rule_sees_the_label_as_it_is(bench: BlockBench) -> None:
    rule = """
[[policy.rules]]
name = "no diary"
effect = "deny"
tools = ["block_edit"]
when = { properties = { label = { const = "diary" } }, required = ["label"] }
"""
    make(bench)
    make(bench, label="diary")
    bench.reload(POLICY + rule)

    await bench.done("block_edit", "append", label="notes", content="x")
    outcome = await bench.call("block_edit", "append", label="diary", content="x")

    assert (outcome.decision.stage, outcome.decision.rule and outcome.decision.rule.rule_id) == ("policy", "no diary")


async def test_level_of_a_file_follows_a_reloaded_policy_in_both_tools(bench: BlockBench) -> None:
    (bench.docs / "a.md").write_text("one\n")
    label = await bench.label("a.md")
    bench.reload(POLICY.replace('default_permission = "read_write"', 'default_permission = "read_only"'))

    outcome = await bench.call("block_edit", "append", label=label, content="x")
    assert (outcome.decision.stage, outcome.code) == ("permission", "level-denies")
    assert (await bench.done("block", "info", label=label))["permission"] == "read_only"
    bench.reload(POLICY)
    await bench.done("block_edit", "append", label=label, content="x")


async def test_limit_of_a_source_binds_the_tool_for_blocks_where_it_goes_to_that_source(bench: BlockBench) -> None:
    limit = 'required_tools = [{ tool_name = "block_edit", rule_type = { AllowedOperations = ["append"] } }]\n'
    (bench.docs / "a.md").write_text("one\n")
    label = await bench.label("a.md")
    make(bench)
    bench.reload(POLICY + limit)

    outcome = await bench.call("block_edit", "replace", label=label, old="one", new="1")
    assert (outcome.decision.stage, outcome.code) == ("permission", "source-operation-not-allowed")
    await bench.done("block_edit", "append", label=label, content="x")
    await bench.done("block_edit", "replace", label="notes", old="one", new="1")


async def test_audit_names_the_block_and_its_level(bench: BlockBench) -> None:
    make(bench)
    await bench.done("block_edit", "append", label="notes", content="x")
    await bench.call("block_edit", "append", label="absent", content="x")
    log = AuditLog(bench.workspace.state_folder, bench.folder.parent / "keys")

    rows = [json.loads(row.body)["blocks"] for row in log.rows() if row.kind == "PolicyDecision"]

    assert rows == [
        [{"label": "notes", "id": bench.own().get("notes").block_id, "permission": "read_write"}],
        [{"label": "absent", "id": None, "permission": "none"}],
    ]
    log.close()


def test_every_operation_is_listed_and_the_three_views_agree(bench: BlockBench) -> None:
    shown = {
        tool["name"]: tool["inputSchema"]["properties"]["op"]["enum"]
        for tool in bench.workspace.view("ann").tools("mcp")
    }

    assert shown["block"] == ["archive", "info", "load", "pin", "unpin"]
    assert shown["block_edit"] == ["append", "patch", "redo", "replace", "set_field", "undo"]
    assert bench.workspace.selfcheck().differences == ()


# approvals


async def test_what_is_approved_is_shown_as_a_diff_and_is_what_is_written(bench: BlockBench) -> None:
    make(bench)
    bench.own().settings("notes", author="operator", permission=Permission.PARTNER)

    await bench.done("block_edit", "replace", label="notes", old="two", new="2")

    (request,) = bench.asked
    assert "-two\n" in (request.diff or "")
    assert "+2\n" in (request.diff or "")
    assert bench.own().value("notes") == "one\n2\n"


@pytest.mark.parametrize("kind", ["block", "file"])
@pytest.mark.parametrize("op", ["append", "replace", "undo", "patch"])
async def test_approval_does_not_count_for_a_block_that_was_changed_meanwhile(
    tmp_path: Path, kind: str, op: str
) -> None:
    bench = opened(tmp_path)
    (bench.docs / "a.md").write_text("one\ntwo\n")
    make(bench)
    label = await bench.label("a.md") if kind == "file" else "notes"
    bench.own().edit(label, Append("mine\n"), author="agent:ann", granted=Action.DELETE)
    if kind == "block":
        bench.own().settings(label, author="operator", permission=Permission.HUMAN)
    else:
        bench.reload(POLICY.replace('default_permission = "read_write"', 'default_permission = "human"'))
    given: dict[str, dict[str, str]] = {
        "append": {"content": "x\n"},
        "replace": {"old": "one", "new": "1"},
        "patch": {"patch": "@@ -1 +1 @@\n-one\n+1\n"},
    }
    other = Overwrite("one\nelse\nmine\n")
    bench.meanwhile = lambda: bench.own().edit(label, other, author="operator", granted=Action.DELETE)

    outcome = await bench.call("block_edit", op, label=label, **given.get(op, {}))

    assert (outcome.status, outcome.code) == ("denied", "approval-stale")
    assert bench.own().value(label) == "one\nelse\nmine\n"
    bench.workspace.close()


async def test_entry_of_a_log_can_be_approved_though_time_goes_on(bench: BlockBench) -> None:
    make(bench, [], schema=LogSchema(timestamp=True), type=BlockType.LOG)
    bench.own().settings("notes", author="operator", permission=Permission.PARTNER)

    await bench.done("block_edit", "append", label="notes", content="it began")

    assert "(time of writing)" in (bench.asked[0].diff or "")
    entries: Any = bench.own().value("notes")
    assert "1970" not in entries[0]["at"]


async def test_change_between_the_last_decision_and_the_writing_is_not_written_over(bench: BlockBench) -> None:
    make(bench)
    bench.own().settings("notes", author="operator", permission=Permission.PARTNER)

    def other_edit(row: StageTrace) -> None:
        if row.stage == "approval" and bench.asked:
            bench.own().edit("notes", Overwrite("one\nelse\n"), author="operator", granted=Action.DELETE)

    given: dict[str, JsonValue] = {"op": "replace", "label": "notes", "old": "one", "new": "1"}
    outcome = await bench.workspace.call("ann", "block_edit", given, approver=bench.answer, on_stage=other_edit)

    assert (outcome.status, outcome.code) == ("failed", "approval-stale")
    assert bench.own().value("notes") == "one\nelse\n"


@pytest.mark.parametrize(
    ("tool", "op", "given"),
    [
        ("block_edit", "append", {"content": "x"}),
        ("block_edit", "replace", {"old": "one", "new": "1"}),
        ("block_edit", "undo", {}),
        ("block", "pin", {}),
        ("block", "archive", {}),
    ],
)
@pytest.mark.parametrize(("level", "code"), [("human", "not-granted"), ("read_only", "not-permitted")])
async def test_level_that_became_stricter_after_the_decision_is_asked_again_when_the_tool_acts(
    bench: BlockBench, tool: str, op: str, given: dict[str, str], level: str, code: str
) -> None:
    make(bench)
    bench.own().edit("notes", Append("mine\n"), author="agent:ann", granted=Action.DELETE)

    def stricter(row: StageTrace) -> None:
        if row.stage == "approval":
            bench.own().settings("notes", author="operator", permission=Permission(level))

    arguments: dict[str, JsonValue] = {"op": op, "label": "notes", **given}
    outcome = await bench.workspace.call("ann", tool, arguments, approver=bench.answer, on_stage=stricter)

    assert (outcome.status, outcome.code) == ("failed", code)
    assert bench.asked == []
    record = bench.own().get("notes")
    assert (bench.own().value("notes"), record.pinned, record.type) == ("one\ntwo\nmine\n", False, BlockType.WORKING)


async def test_approval_for_a_time_counts_for_the_block_that_asked_and_no_other(bench: BlockBench) -> None:
    make(bench)
    bench.own().settings("notes", author="operator", permission=Permission.PARTNER)

    async def for_a_time(request: ApprovalRequest) -> Approval:
        bench.asked.append(request)
        return Approval(True, "dana", Remember.DURATION, 600)

    async def append(label: str, content: str) -> int:
        given: dict[str, JsonValue] = {"op": "append", "label": label, "content": content}
        outcome = await bench.workspace.call("ann", "block_edit", given, session=bench.session, approver=for_a_time)
        assert outcome.status == "allowed", outcome.output
        return len(bench.asked)

    assert [await append("notes", "x\n"), await append("notes", "y\n")] == [1, 1]
    assert bench.own().value("notes") == "one\ntwo\nx\ny\n"
    make(bench, label="other", permission=Permission.PARTNER)
    assert await append("other", "x\n") == 2
    bench.own().delete("notes", granted=Action.DELETE)
    make(bench, permission=Permission.PARTNER)
    assert await append("notes", "x\n") == 3


@pytest.mark.parametrize("op", ["append", "undo", "pin"])
async def test_call_on_a_damaged_block_that_asks_fails_and_raises_nothing(bench: BlockBench, op: str) -> None:
    make(bench)
    bench.own().settings("notes", author="operator", permission=Permission.PARTNER)
    bench.workspace.close()
    database = sqlite3.connect(bench.workspace.state_folder / "memory.sqlite")
    database.execute("UPDATE block SET snapshot = x'00112233'")
    database.commit()
    database.close()
    again = BlockBench(Workspace.open(bench.folder, keys=bench.folder.parent / "keys"))

    given = {"content": "x"} if op == "append" else {}
    outcome = await again.call("block" if op == "pin" else "block_edit", op, label="notes", **given)

    assert outcome.code == "block-damaged"
    assert outcome.status in {"denied", "failed"}
    assert "damaged" in outcome.output
    again.workspace.close()


async def test_approval_does_not_outlive_the_level(bench: BlockBench) -> None:
    make(bench)
    bench.own().settings("notes", author="operator", permission=Permission.PARTNER)
    bench.meanwhile = lambda: bench.own().settings("notes", author="operator", permission=Permission.READ_ONLY)

    outcome = await bench.call("block_edit", "append", label="notes", content="x")

    assert (outcome.status, outcome.code) == ("denied", "level-denies")
    assert bench.own().value("notes") == "one\ntwo\n"


async def test_pinning_that_asks_shows_what_changes(bench: BlockBench) -> None:
    make(bench)
    bench.own().settings("notes", author="operator", permission=Permission.HUMAN)

    await bench.done("block", "pin", label="notes")
    await bench.done("block", "archive", label="notes")

    assert [request.diff for request in bench.asked] == [
        "-pinned: no\n+pinned: yes\n",
        "-type: working\n+type: archival\n-pinned: yes\n+pinned: no\n",
    ]


async def test_state_outlasts_the_workspace(tmp_path: Path) -> None:
    bench = opened(tmp_path)
    make(bench)
    await bench.done("block_edit", "append", label="notes", content="kept\n")
    await bench.done("block", "pin", label="notes")
    bench.workspace.close()
    again = BlockBench(Workspace.open(bench.folder, keys=tmp_path / "keys"))

    await again.done("block_edit", "undo", label="notes")

    assert again.own().value("notes") == "one\ntwo\n"
    assert again.own().get("notes").pinned
    again.workspace.close()


class Jot(Tool):
    """A tool of a program's own, written as docs/tools.md says."""

    name = "jot"
    description = "Adds lines to blocks."
    safety_tier = SafetyTier.SIDE_EFFECTING
    result_type = ResultType.OBJECT
    normalization = Normalization.JSON

    @operation(actions=(Action.APPEND,))
    async def add(self, context: ToolExecutionContext, label: Annotated[str, LabelParameter()], line: str) -> JsonValue:
        """Add a line."""
        return await context.require_blocks().edit(
            label, Append(line), agent_id=context.agent_id, granted=context.granted, approved=context.approved
        )


async def test_a_tool_of_a_programs_own_edits_a_block_as_far_as_the_call_was_granted(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("gatewright = 1\n\n[agents.ann]\ntools = ['jot']\n", encoding="utf-8")
    with Workspace.open(tmp_path, tools=[Jot()], keys=tmp_path / "keys") as workspace:
        blocks = workspace.blocks("ann")
        for label, level in (("notes", Permission.APPEND), ("fixed", Permission.READ_ONLY)):
            blocks.create(label, author="operator", content="one\n", permission=level)
        calls = [
            await workspace.call("ann", "jot", {"op": "add", "label": label, "line": "two\n"})
            for label in ("notes", "fixed")
        ]

        assert [call.status for call in calls] == ["allowed", "denied"]
        assert [blocks.value(label) for label in ("notes", "fixed")] == ["one\ntwo\n", "one\n"]
