"""``context`` and ``block``: blocks made and changed from a terminal, and what an agent has of them in its prompt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.engine.cli.conftest import Ran, Runner

POLICY = """gatewright = 1

[agents.ann]
tools = ["block", "block_edit", "recall"]

[agents.bob]
tools = []
sources = []

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "a.md").write_text("on disk", encoding="utf-8")
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    return folder


@pytest.fixture
def block(folder: Path, run: Runner) -> Any:
    """Run one command of the group, on a block of ann's."""

    def ran(command: str, *words: str, agent: str | None = "ann") -> Ran:
        return run("block", command, folder, *words, *(["--agent", agent] if agent else []))

    return ran


def call(run: Runner, folder: Path, **arguments: str) -> Ran:
    return run(
        "call", folder, "--agent", "ann", "--tool", arguments.pop("tool", "block"), "--args", json.dumps(arguments)
    )


def context(run: Runner, folder: Path, agent: str = "ann") -> list[dict[str, Any]]:
    ran = run("context", folder, "--agent", agent, "--json")
    assert (ran.status, ran.json["agent"]) == (0, agent)
    return ran.json["blocks"]


def test_block_is_made_listed_shown_and_deleted(folder: Path, run: Runner, block: Any, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("I am Ann.\n", encoding="utf-8")
    made = block(
        "create",
        "me",
        "--type",
        "core",
        "--content",
        str(tmp_path / "text"),
        "--permission",
        "partner",
        "--limit",
        "2000",
    )
    assert (made.status, made.out) == (0, "me  core, partner, 10 of 2,000 characters\n")
    assert block("create", "law", "--pin", "--description", "for all", agent=None).status == 0

    assert block("list").out.splitlines() == [
        "law  working, read_write, 0 characters, pinned, shared",
        "me  core, partner, 10 of 2,000 characters",
    ]
    assert [row["label"] for row in block("list", "--json", agent=None).json] == ["law"]
    assert block("show", "me").out == "I am Ann.\n\n"
    assert block("show", "me", "--json").json["content"] == "I am Ann.\n"
    assert block("list", agent="bob").out == "law  working, read_write, 0 characters, pinned, shared\n"
    assert block("delete", "me").status == 0
    assert block("list").out == "law  working, read_write, 0 characters, pinned, shared\n"
    assert run("block", "list", folder, "--agent", "anna").status == 2


def test_block_is_edited_by_every_option_and_tells_its_history(block: Any, tmp_path: Path) -> None:
    block("create", "n")
    assert block("edit", "n", "--append", "one two").status == 0
    assert block("edit", "n", "--replace", "two", "three").status == 0
    assert block("show", "n").out == "one three\n"
    assert block("edit", "n", "--undo").status == 0
    assert block("show", "n").out == "one two\n"
    (tmp_path / "all").write_text("anew", encoding="utf-8")
    assert block("edit", "n", "--content", str(tmp_path / "all")).status == 0
    assert block("show", "n").out == "anew\n"

    assert [row["kind"] for row in block("history", "n", "--json").json] == [
        "create",
        "append",
        "replace",
        "undo",
        "overwrite",
    ]
    assert block("history", "n", "--limit", "1").out.split()[0] == "5"
    assert block("edit", "n").status == 2
    assert block("edit", "n", "--append", "x", "--undo").status == 2


def test_fields_are_set_as_json(block: Any) -> None:
    schema = {"type": "map", "fields": [{"name": "age", "type": "number"}]}
    assert block("create", "m", "--schema", json.dumps(schema)).status == 0
    assert block("edit", "m", "--set", "age", "7").status == 0
    assert json.loads(block("show", "m").out) == {"age": 7}
    for wrong in (["age", "{"], ["age", '"old"'], ["name", "1"]):
        assert block("edit", "m", "--set", *wrong).status == 2
    assert block("create", "x", "--schema", '{"type": "none"}').status == 1


def test_settings_change_what_a_block_is(block: Any) -> None:
    block("create", "n")
    ran = block(
        "set", "n", "--type", "log", "--permission", "append", "--limit", "50", "--description", "what", "--pin"
    )
    assert ran.out == "n  log, append, 0 of 50 characters, pinned\n"
    assert block("set", "n", "--unpin", "--limit", "0", "--type", "working").out == "n  working, append, 0 characters\n"
    assert block("set", "n", "--type", "archival").status == 2
    assert block("set", "n", "--limit", "-1").status == 2


def test_archived_block_goes_out_of_context_tells_where_it_is_and_comes_back(
    folder: Path, run: Runner, block: Any
) -> None:
    block("create", "trip", "--pin")
    block("edit", "trip", "--append", "Riga")
    assert [row["label"] for row in context(run, folder)] == ["trip"]

    assert call(run, folder, op="archive", label="trip").status == 0

    assert context(run, folder) == []
    loaded = json.loads(call(run, folder, op="load", label="trip").out)
    assert "put away at 20" in loaded["message"]
    assert (loaded["data"]["content"], loaded["data"]["type"]) == ("Riga", "archival")
    assert loaded["data"]["archived_at"] == block("list", "--json").json[0]["archived_at"]
    assert call(run, folder, tool="block_edit", op="append", label="trip", content="!").status == 5
    assert call(run, folder, op="pin", label="trip").status == 5
    assert block("set", "trip", "--pin").status == 2
    assert block("set", "trip", "--type", "core").status == 2

    assert block("unarchive", "trip").out == "trip  working, read_write, 4 characters\n"

    assert block("unarchive", "trip").status == 2
    assert block("list", "--json").json[0]["archived_at"] is None
    assert call(run, folder, tool="block_edit", op="append", label="trip", content="!").status == 0
    assert json.loads(call(run, folder, tool="recall", op="search", query="riga").out)["data"]["hits"] == []
    assert block("archive", "trip").status == 0
    assert [step["kind"] for step in block("history", "trip", "--json").json][-3:] == ["unarchive", "append", "archive"]


def test_context_has_core_blocks_then_pinned_ones_with_viewport_and_limit(
    folder: Path, run: Runner, block: Any, tmp_path: Path
) -> None:
    (tmp_path / "lines").write_text("1\n2\n3\n4\n", encoding="utf-8")
    seen = json.dumps({"type": "text", "viewport": {"start_line": 2, "lines": 2}})
    block("create", "z core", "--type", "core", "--schema", seen, "--content", str(tmp_path / "lines"), "--limit", "90")
    block("create", "a pinned", "--pin", "--description", "what\nfor")
    block("create", "loose")
    block("create", "b shared", "--pin", agent=None)
    block("create", "hidden", "--type", "core", "--permission", "none")
    block("create", "others", "--type", "core", agent="bob")

    rows = context(run, folder)

    assert [(row["label"], row["type"], row["shared"], row["pinned"]) for row in rows] == [
        ("z core", "core", False, False),
        ("a pinned", "working", False, True),
        ("b shared", "working", True, True),
    ]
    assert "2\n3" in rows[0]["content"]
    assert "4" not in rows[0]["content"].splitlines()
    assert (rows[0]["chars"], rows[0]["char_limit"], rows[1]["char_limit"]) == (8, 90, None)
    text = run("context", folder, "--agent", "ann").out
    assert text.startswith("## Memory\n\n### z core\n\ncore, read_write, 8 of 90 characters\n\n```\n")
    assert "### a pinned\n\nworking, read_write, 0 characters\nwhat for\n" in text
    assert [row["label"] for row in context(run, folder, "bob")] == ["others", "b shared"]
    assert run("context", folder, "--agent", "carl").status == 2


def test_no_content_ends_its_own_fence_in_the_context(folder: Path, run: Runner, block: Any) -> None:
    block("create", "n", "--pin")
    block("edit", "n", "--append", "```\n### fake\n````\n")

    assert "`````\n```\n### fake\n````\n\n`````" in run("context", folder, "--agent", "ann").out


def test_pinned_file_is_in_the_context_of_agents_that_have_its_source(folder: Path, run: Runner, block: Any) -> None:
    loaded = json.loads(call(run, folder, op="load", label="a.md", source_id="docs").out)
    label = loaded["data"]["label"]
    assert call(run, folder, op="pin", label=label).status == 0

    assert [(row["label"], row["content"]) for row in context(run, folder)] == [(label, "on disk")]
    assert context(run, folder, "bob") == []


def test_agent_without_blocks_has_an_empty_context(folder: Path, run: Runner) -> None:
    assert run("context", folder, "--agent", "ann").out == ""
    assert context(run, folder) == []
    assert not (folder / ".gatewright").exists()
