"""Which arguments look like paths: in the tools of real servers, as a person judged them, and in single shapes."""

import json
from pathlib import Path
from typing import Any

import pytest

from gatewright.schema import discover_paths

REVIEWED = Path(__file__).parent / "data" / "reviewed_paths.json"
"""Every argument that looks like a path among the tools of the corpus, with what a person says of it."""
ON_THIS_MACHINE = ("on this machine", "a source file of a report")


def tools(corpora: Path) -> dict[str, dict[str, Any]]:
    rows = json.loads((corpora / "mcp_tools.json").read_text(encoding="utf-8"))
    return {row["id"]: row["tool"] for row in rows}


def found_in(tool: dict[str, Any]) -> dict[str, tuple[str | None, str]]:
    found = discover_paths(tool["inputSchema"], tool=tool["name"], description=tool.get("description") or "")
    return {one.argument: (one.use(), one.confidence) for one in found}


def test_what_looks_like_a_path_in_real_tools_is_what_was_reviewed(corpora: Path) -> None:
    reviewed = [(row["id"], row["argument"], row["use"], row["confidence"]) for row in json.loads(REVIEWED.read_text())]
    found = [
        (tool_id, name, *said) for tool_id, tool in tools(corpora).items() for name, said in found_in(tool).items()
    ]
    assert sorted(map(str, found)) == sorted(map(str, reviewed))


def test_what_counts_as_a_path_by_itself_is_one_on_this_machine() -> None:
    """Of 214 that count one is doubtful; of the paths on this machine two are told and do not count."""
    rows = json.loads(REVIEWED.read_text(encoding="utf-8"))
    sure = [row for row in rows if row["confidence"] == "high"]
    assert len(sure) == 214
    assert all(row["judgement"].startswith(ON_THIS_MACHINE) for row in sure)
    missed = [row["id"] for row in rows if row["confidence"] != "high" and "on this machine" in row["judgement"]]
    assert missed == ["mcp-ssh-manager::ssh_sync"] * 2


def test_every_path_of_the_official_file_server_is_found_with_what_is_done_there(corpora: Path) -> None:
    prefix = "@modelcontextprotocol/server-filesystem::"
    found = {name.removeprefix(prefix): found_in(tool) for name, tool in tools(corpora).items() if prefix in name}
    writing = {"write_file", "edit_file", "create_directory"}
    assert found.pop("list_allowed_directories") == {}
    assert found.pop("move_file") == {"source": ("delete", "high"), "destination": ("write", "high")}
    assert found.pop("read_multiple_files") == {"paths": ("read", "high")}
    assert found == {
        name: {"path": ("write" if name in writing else "read", "high")}
        for name in writing
        | {"read_file", "read_text_file", "read_media_file", "list_directory", "list_directory_with_sizes"}
        | {"search_files", "directory_tree", "get_file_info"}
    }


@pytest.mark.parametrize(
    ("name", "schema", "use", "confidence"),
    [
        ("read_file", {"type": "string"}, "read", "high"),
        ("readFile", {"type": ["string", "null"]}, "read", "high"),
        ("fs.unlink", {"type": "string"}, "delete", "high"),
        ("handle", {"type": "string"}, None, "high"),
        ("handle", {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}, None, "high"),
        ("handle", {"type": "string", "description": "The JSON path of the value"}, None, "low"),
        ("handle", {"type": "string", "default": "$.a"}, None, "low"),
        ("take_picture", {"type": "string", "description": "Where to save the picture"}, None, "high"),
        ("view_page", {"type": "string", "description": "Path to save the page to"}, "write", "high"),
        ("get_github_file", {"type": "string"}, "read", "low"),
        ("get_github_file", {"type": "string", "description": "Absolute path to the clone"}, "read", "high"),
    ],
)
def test_name_and_words_say_what_is_done_at_a_path(name: str, schema: object, use: str | None, confidence: str) -> None:
    tool = {"name": name.replace(".", "_"), "inputSchema": {"type": "object", "properties": {"path": schema}}}
    assert found_in(tool) == {"path": (use, confidence)}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer"},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "object", "properties": {"id": {"type": "string"}}},
        {"type": "array", "items": {"type": "number"}},
    ],
)
def test_what_holds_no_text_of_its_own_is_no_path(schema: object) -> None:
    assert found_in({"name": "x", "inputSchema": {"type": "object", "properties": {"path": schema}}}) == {}


def test_paths_are_found_in_lists_maps_branches_and_references() -> None:
    edit = {"type": "object", "properties": {"file_path": {"type": "string"}, "old_text": {"type": "string"}}}
    schema = {
        "type": "object",
        "$defs": {"edit": edit},
        "properties": {
            "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}},
            "by_name": {"type": "object", "additionalProperties": {"$ref": "#/$defs/edit"}},
            "where": {"oneOf": [{"type": "object", "properties": {"directory": {"type": "string"}}}, {"type": "null"}]},
            "any": {"type": "string", "format": "file-path"},
            "url": {"type": "string", "description": "the path of a file"},
        },
    }
    found = found_in({"name": "edit_many", "inputSchema": schema})
    assert list(found) == ["edits[].file_path", "by_name{}.file_path", "where.directory", "any"]
    assert set(found.values()) == {("write", "high")}


def test_an_operation_says_more_than_its_tool() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    (found,) = discover_paths(schema, tool="manage_files")
    assert [found.use(operation) for operation in ("", "read", "write_text", "remove", "rename")] == [
        None,
        "read",
        "write",
        "delete",
        "delete",
    ]


def test_the_name_of_a_catalog_before_a_tools_name_says_less_than_the_tool() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    found = [discover_paths(schema, tool=name)[0].use() for name in ("delete.read_file", "files.read", "copy.x")]
    assert found == ["read", "read", "write"]


def test_a_schema_that_holds_itself_ends() -> None:
    node = {"type": "object", "properties": {"path": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}}
    schema = {"type": "object", "$defs": {"node": node}, "properties": {"first": {"$ref": "#/$defs/node"}}}
    assert "first.path" in found_in({"name": "walk", "inputSchema": schema})
