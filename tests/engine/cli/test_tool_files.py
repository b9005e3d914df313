"""``operations``, ``filter`` and ``preview`` of schemas, tool definitions and tool lists, as a script sees them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewright.schema import discover_operations
from tests.engine.cli.conftest import Runner

ACTION = {"type": "string", "enum": ["get", "put", "drop"]}
CLOSED = {"type": "object", "properties": {"action": ACTION, "id": {"type": "string"}}, "required": ["action"]}
FREE = {
    "type": "object",
    "properties": {"operation": {"type": "string", "description": "One of: create, delete, list"}},
    "required": ["operation"],
}
RAW = {"type": "object", "properties": {"command": {"type": "string", "description": "The shell command to run"}}}
SORTED = {"type": "object", "properties": {"sort": {"type": "string", "enum": ["asc", "desc"]}}}
LIST = [
    {"name": "store", "description": "Keeps things: get, put or drop them.", "inputSchema": CLOSED},
    {"name": "notes", "input_schema": FREE},
    {"type": "function", "function": {"name": "run", "description": "Run a shell command.", "parameters": RAW}},
    {"name": "rows", "inputSchema": SORTED},
]


@pytest.fixture
def put(tmp_path: Path) -> Callable[[object], Path]:
    def written(value: object) -> Path:
        path = tmp_path / "tools.json"
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        path.write_bytes(content)
        return path

    return written


Put = Callable[[object], Path]


@pytest.mark.parametrize(
    "value",
    [
        CLOSED,
        {"name": "store", "inputSchema": CLOSED},
        {"name": "store", "input_schema": CLOSED},
        {"type": "function", "name": "store", "parameters": CLOSED},
        {"type": "function", "function": {"name": "store", "parameters": CLOSED}},
    ],
    ids=["schema", "mcp", "anthropic", "responses", "chat"],
)
def test_operations_of_one_schema_or_definition_in_every_spelling(value: object, put: Put, run: Runner) -> None:
    found = run("operations", put(value), "--json")
    assert found.status == 0
    names = {"field", "shape", "confidence", "default", "operations", "suggested"}
    assert found.json.keys() == names
    assert [operation["name"] for operation in found.json["operations"]] == ["get", "put", "drop"]
    discovered = discover_operations(CLOSED)
    assert discovered is not None
    assert found.json == discovered.to_json()


def test_operations_of_a_schema_without_any_is_null(put: Put, run: Runner) -> None:
    assert run("operations", put({"type": "object", "properties": {"text": {"type": "string"}}}), "--json").json is None


def test_field_that_lists_nothing_is_null_and_says_how_to_declare(put: Put, run: Runner) -> None:
    path = put(CLOSED)
    assert run("operations", path, "--field", "id", "--json").json is None
    told = run("operations", path, "--field", "id")
    hint = "where it takes a text, declare them with `--operations a,b`"
    assert (told.status, told.out) == (0, f"tools: `id` lists no operations; {hint}\n")
    command = {"type": "string", "description": "The shell command to run"}
    raw = {"type": "object", "properties": {"command": command, "note": {"type": "string"}}}
    beside = run("operations", put(raw), "--field", "note").out
    assert "`note` lists no operations" in beside
    assert "open-ended" in beside


@pytest.mark.parametrize("words", [("operations",), ("operations", "--json"), ("filter", "--allow", "get")])
def test_field_that_is_not_in_the_schema_is_an_error_with_the_nearest(
    words: tuple[str, ...], put: Put, run: Runner
) -> None:
    item = {"type": "object", "properties": {"verb": {"type": "string"}}}
    path = put({"type": "object", "properties": {"action": ACTION, "steps": {"type": "array", "items": item}}})
    for field, hint in (
        ("nope", ""),
        ("acton", " (did you mean `action`?)"),
        ("verb", " (did you mean `steps[].verb`?)"),
    ):
        ran = run(words[0], path, "--field", field, *words[1:])
        assert (ran.status, ran.out) == (2, "")
        assert ran.err.rstrip().endswith(f"the schema has no field `{field}`{hint}")
    for field in ("steps", "steps[]", "steps[].verb"):
        assert "has no field" not in run(words[0], path, "--field", field, *words[1:]).err


def test_field_is_found_however_deep_a_recursive_schema_holds_it(put: Put, run: Runner) -> None:
    kid = {"$ref": "#/$defs/node"}
    node = {"type": "object", "properties": {"kid": kid, "also": {"type": "array", "items": kid}}}
    path = put({"type": "object", "properties": {"x": kid}, "$defs": {"node": node}})
    for field in ("x.kid", f"x{'.kid' * 12}", "x.also[].kid.also"):
        assert f"`{field}` lists no operations" in run("operations", path, "--field", field).out
    for field in ("kid", ".", "x.kid.nope", "x.kid[].kid", "x.also.kid"):
        assert f"has no field `{field}`" in run("operations", path, "--field", field).err


def test_filter_of_a_free_text_says_how_to_declare_it(put: Put, run: Runner) -> None:
    path = put(FREE)
    for words in ((), ("--field", "operation")):
        ran = run("filter", path, "--allow", "create", *words)
        assert (ran.status, ran.json) == (1, None)
        assert "`operation` is free text: declare its operations with" in ran.err
        assert "`--operations create,delete,list --field operation`" in ran.err
    hinted = run("filter", path, "--allow", "create", "--operations", "create,delete,list", "--field", "operation")
    assert hinted.json["properties"]["operation"]["enum"] == ["create"]


@pytest.mark.parametrize("schema", ["nope", 7, None, [], True])
@pytest.mark.parametrize("words", [("operations",), ("filter", "--allow", "a"), ("preview",)])
def test_tool_whose_schema_is_no_object_is_an_error(
    words: tuple[str, ...], schema: object, put: Put, run: Runner
) -> None:
    ran = run(words[0], put({"name": "x", "inputSchema": schema}), *words[1:])
    assert (ran.status, ran.out) == (2, "")
    assert "is no tool definition" in ran.err
    assert "`inputSchema`" in ran.err if schema is None else "at /inputSchema: the schema of a tool must be" in ran.err


def test_schema_with_fields_called_like_those_of_a_tool_stays_a_schema(put: Put, run: Runner) -> None:
    found = run("operations", put({**CLOSED, "name": "x", "parameters": "nope"}), "--json")
    assert (found.status, found.json["field"]) == (0, "action")


def test_preview_of_a_bare_schema_asks_for_a_tool_definition(put: Put, run: Runner) -> None:
    ran = run("preview", put(CLOSED), "--format", "mcp")
    assert (ran.status, ran.out) == (2, "")
    assert "is a bare schema and has no name: give a tool definition" in ran.err
    assert "--tool" not in ran.err


def test_list_without_tools_says_so(put: Put, run: Runner) -> None:
    empty: list[object] = [[], {"tools": []}]
    for value in empty:
        told = run("operations", put(value))
        assert (told.status, told.out) == (0, "no tools in this list\n")
        assert run("operations", put(value), "--json").json == []


def test_name_that_stands_twice_is_told_in_plain_words(put: Put, run: Runner) -> None:
    tool = {"name": "x", "inputSchema": CLOSED}
    for value, place in (([tool, tool], "/1"), ({"tools": [tool, tool]}, "/tools/1")):
        ran = run("operations", put(value), "--json")
        assert (ran.status, len(ran.json)) == (1, 1)
        assert f"`x` at {place}: the name `x` stands twice; the first one is kept" in ran.err
        assert "version" not in ran.err
    later = {**tool, "_meta": {"gatewright": {"version": "2.0.0"}}}
    assert "major version 2" in run("operations", put([tool, later, later])).err
    broken = run("operations", put([tool, {"name": "x", "inputSchema": 5}])).err
    assert "the schema of a tool must be" in broken
    assert "twice" not in broken


def test_doubtful_operations_are_shown_and_plainly_off(put: Put, run: Runner) -> None:
    path = put({"type": "object", "properties": {"method": {"type": "string", "enum": ["GET", "POST"]}}})
    found = run("operations", path, "--json").json
    assert found["confidence"] == "low"
    assert "off by default" in run("operations", path).out


def test_free_text_is_reported_with_the_names_of_its_description(put: Put, run: Runner) -> None:
    path = put(FREE)
    found = run("operations", path, "--json").json
    assert (found["field"], found["shape"], found["operations"]) == ("operation", "free-string", [])
    assert found["suggested"] == ["create", "delete", "list"]
    told = run("operations", path).out
    assert '[tools.tools]\n    operation_field = "operation"\n    operations = ["create", "delete", "list"]' in told


def test_free_text_is_declared_on_the_command_line(put: Put, run: Runner) -> None:
    path = put(FREE)
    found = run("operations", path, "--operations", "create,delete", "--json").json
    assert [operation["name"] for operation in found["operations"]] == ["create", "delete"]
    assert found["confidence"] == "declared"
    kept = run("filter", path, "--operations", "create,delete", "--allow", "create").json
    assert kept["properties"]["operation"]["enum"] == ["create"]
    assert "delete" not in json.dumps(kept)


def test_open_ended_tool_is_marked_with_the_reason(put: Put, run: Runner) -> None:
    found = run("operations", put(LIST), "--tool", "run", "--json").json
    assert (found["shape"], found["operations"]) == ("open-ended", [])
    assert found["open_ended"][0]["field"] == "command"
    assert "no list of operations can gate it" in run("operations", put(LIST), "--tool", "run").out


def test_operations_of_a_list_are_one_row_for_each_tool(put: Put, run: Runner) -> None:
    for value in (LIST, {"tools": LIST}):
        rows = {row["name"]: row for row in run("operations", put(value), "--json").json}
        assert list(rows) == ["store", "notes", "run", "rows"]
        assert rows["store"]["operations"]["field"] == "action"
        assert rows["notes"]["free"][0]["suggested"] == ["create", "delete", "list"]
        assert rows["run"]["open_ended"][0]["kind"] == "command"
        assert rows["rows"]["operations"] is None


def test_arguments_that_look_like_paths_are_told_with_what_is_done_there(put: Put, run: Runner) -> None:
    text = {"type": "string"}
    move = {"name": "move_file", "inputSchema": {"type": "object", "properties": {"source": text, "target": text}}}
    far = {"name": "get_blob", "inputSchema": {"type": "object", "properties": {"path": text, "bucket": text}}}
    path = put([move, far])
    rows = {row["name"]: row["paths"] for row in run("operations", path, "--json").json}
    assert rows["move_file"] == [
        {"argument": "source", "use": "delete", "confidence": "high"},
        {"argument": "target", "use": "write", "confidence": "high"},
    ]
    assert rows["get_blob"] == [{"argument": "path", "use": "read", "confidence": "low"}]
    said = run("operations", path).out
    assert "move_file: `source` looks like a path, for deleting (confidence high)\n" in said
    assert "get_blob: `path` looks like a path, for reading (confidence low): not judged as one unless" in said


def test_filter_keeps_what_is_allowed_of_one_tool_of_a_list(put: Put, run: Runner) -> None:
    path = put(LIST)
    kept = run("filter", path, "--tool", "store", "--allow", "get,put")
    assert kept.json["properties"]["action"]["enum"] == ["get", "put"]
    assert run("filter", path, "--tool", "store", "--allow", "").json is None
    assert run("filter", path, "--tool", "store", "--allow", "get,put,drop").json == CLOSED
    nothing = run("filter", path, "--tool", "rows", "--allow", "x")
    assert (nothing.status, nothing.json) == (1, None)


def test_filter_tells_lints_on_stderr_unless_json_is_asked_for(put: Put, run: Runner) -> None:
    path = put({**CLOSED, "additionalProperties": True})
    assert "open-properties" in run("filter", path, "--allow", "get").err
    assert run("filter", path, "--allow", "get", "--json").err == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("operations", "--field", "action"), "choose it with `--tool`"),
        (("operations", "--tool", "stor"), "did you mean `store`?"),
        (("filter", "--allow", "get"), "holds 4 tools"),
        (("filter", "--allow", "gett", "--tool", "store"), "did you mean `get`?"),
        (("filter", "--allow", "a", "--tool", "rows", "--operations", "a"), "`rows`"),
        (("preview", "--agent", "a"), "no `--agent`"),
        (("preview", "--format", "nope"), "no format `nope`"),
        (("preview", "--allow", "get"), "holds 4 tools"),
        (("preview", "--tool", "rows", "--allow", "get"), "no operations found"),
        (("preview", "--field", "action"), "go with `--allow`"),
    ],
)
def test_wrong_words_are_usage_problems(words: tuple[str, ...], message: str, put: Put, run: Runner) -> None:
    command, *options = words
    ran = run(command, put(LIST), *options)
    assert ran.status == 2
    assert message in ran.err
    assert ran.out == ""


def test_policy_and_file_do_not_take_each_others_options(tmp_path: Path, run: Runner) -> None:
    run("init", tmp_path / "demo", "--template", "demo")
    assert "needs `--agent`" in run("preview", tmp_path / "demo").err
    mixed = run("preview", tmp_path / "demo", "--agent", "archivist", "--allow", "get")
    assert mixed.status == 2
    assert "`--allow` is for JSON" in mixed.err


@pytest.mark.parametrize("format_name", ["mcp", "openai", "openai-responses", "anthropic", "gemini", "genai"])
def test_preview_prints_the_tools_of_a_file_in_each_format(format_name: str, put: Put, run: Runner) -> None:
    shown = run("preview", put(LIST), "--format", format_name)
    assert shown.status == 0
    assert len(shown.json) == 4
    for name in ("store", "notes", "run", "rows"):
        assert name in shown.out
        assert f"{name}: " in shown.err
    assert "tokens in all" in shown.err
    assert ("an estimate" in shown.err) == (not format_name.startswith("openai"))
    assert run("preview", put(LIST), "--format", format_name, "--json").err == ""


def test_preview_of_one_tool_with_fewer_operations_tells_what_it_saves(put: Put, run: Runner) -> None:
    shown = run("preview", put(LIST), "--tool", "store", "--allow", "get", "--format", "anthropic")
    (tool,) = shown.json
    assert tool["input_schema"]["properties"]["action"]["enum"] == ["get"]
    assert "drop" not in json.dumps(tool)
    assert "% less than unrestricted" in shown.err
    assert " 0% less" not in shown.err
    assert run("preview", put(LIST), "--tool", "store", "--allow", "").json == []


def test_lints_stand_by_their_level(put: Put, run: Runner) -> None:
    told = run("preview", put(LIST), "--format", "gemini").err.splitlines()
    levels = [line.split(":")[0] for line in told if line.split(":")[0] in {"refused", "looser", "narrower", "note"}]
    assert levels == sorted(levels, key=["refused", "looser", "narrower", "note"].index)


def test_json_without_a_telling_name_is_known_by_its_content(tmp_path: Path, run: Runner) -> None:
    (tmp_path / "tools").write_text("\ufeff " + json.dumps(LIST), encoding="utf-8")
    assert len(run("preview", tmp_path / "tools").json) == 4
    (tmp_path / "policy").write_text("[agents.a]\n", encoding="utf-8")
    assert "needs `--agent`" in run("preview", tmp_path / "policy").err


def test_bad_tool_of_a_list_is_set_aside_and_the_rest_is_printed(put: Put, run: Runner) -> None:
    wrong = {"type": "object", "properties": {"x": {"type": "strin"}}}
    path = put([*LIST, {"name": "odd", "inputSchema": wrong}, {"name": "bare"}])
    for command in ("operations", "preview"):
        ran = run(command, path, "--json")
        assert ran.status == 1
        assert len(ran.json) == 4
        assert "set aside `odd` at /4/inputSchema/properties/x/type" in ran.err
        assert "set aside `bare` at /5" in ran.err
    refused = run("operations", path, "--tool", "odd")
    assert refused.status == 2
    assert "/4/inputSchema/properties/x/type" in refused.err


def test_single_tool_that_the_gate_would_not_take_is_looked_at_all_the_same(put: Put, run: Runner) -> None:
    schema = {**CLOSED, "properties": {"action": ACTION, "id": {"type": "strin"}}}
    ran = run("operations", put({"name": "odd", "inputSchema": schema}), "--json")
    assert (ran.status, ran.json["field"]) == (0, "action")
    assert "the gate would not take `odd` at /inputSchema/properties/id/type" in ran.err


def test_a_pattern_that_the_gate_cannot_check_is_told_with_the_reason(put: Put, run: Runner) -> None:
    schema = {**CLOSED, "properties": {"action": ACTION, "id": {"type": "string", "pattern": "(?<=a)b"}}}
    for content in (schema, {"name": "odd", "inputSchema": schema}, [*LIST, {"name": "odd", "inputSchema": schema}]):
        ran = run("operations", put(content), "--json")
        assert ran.status == 0
        assert "neither shows nor checks the pattern of" in ran.err
        assert "/properties/id/pattern: it uses look-around" in ran.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"type":\n "object",}', "at line 2 column"),
        (b"\xff\xfe\x00", "is not UTF-8 at byte 0"),
        (b'{"a": "\x80"}', "is not UTF-8 at byte 7"),
        (b"", "is not JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "nested deeper than 128 levels"),
        (b'{"name": "x", "inputSchema": ' + b'{"not":' * 200 + b"{}" + b"}" * 201, "nested deeper than 128 levels"),
        (b"9" * 10_000, "too many digits"),
        (b'{"maximum": NaN}', "NaN is no JSON number"),
        (b'{"maximum": 1e999}', "`1e999` is too large"),
        (b'{"type": "object", "type": "string"}', "the key `type` twice"),
        (b"7", "holds no JSON object"),
        (b'{"$ref": "#/$defs/gone"}', "gone"),
        (b'{"type": "function", "function": {"description": "x"}}', "is no tool definition"),
        (b'[{"name": "a\\u001b[2J", "inputSchema": {"type": "object"}}, 5]', "set aside"),
    ],
)
def test_bad_input_is_a_message_with_its_place(content: bytes, message: str, put: Put, run: Runner) -> None:
    path = put(content)
    for words in (("operations",), ("filter", "--allow", "a"), ("preview",)):
        ran = run(words[0], path, *words[1:])
        if b"$ref" in content and words[0] == "preview":
            continue
        assert ran.status == (1 if message == "set aside" and words[0] != "filter" else 2)
        assert message in ran.err
        assert "\x1b" not in ran.err + ran.out


def test_file_with_a_byte_order_mark_and_stdin_are_read(put: Put, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(LIST).encode()
    assert run("operations", put(b"\xef\xbb\xbf" + text)).status == 0

    class Stdin:
        buffer = io.BytesIO(text)

    monkeypatch.setattr("sys.stdin", Stdin)
    assert len(run("preview", "-", "--json").json) == 4


def test_control_characters_of_a_stranger_never_reach_the_terminal(put: Put, run: Runner) -> None:
    field = {"type": "string", "description": "One of: create, delete, list"}
    schema = {"type": "object", "properties": {"operation": field}}
    ran = run("operations", put({"name": "x\x1b[2J\u202e", "inputSchema": schema}))
    assert "\x1b" not in ran.out + ran.err
    assert "\u202e" not in ran.out + ran.err


def test_real_tools_are_listed_and_previewed_whole(corpora: Path, tmp_path: Path, run: Runner) -> None:
    rows = json.loads((corpora / "mcp_tools.json").read_text("utf-8"))
    by_name = {row["tool"]["name"]: row["tool"] for row in rows[::7]}
    path = tmp_path / "real.json"
    path.write_text(json.dumps({"tools": list(by_name.values())}), encoding="utf-8")
    listed = run("operations", path, "--json")
    assert listed.status in (0, 1)
    aside = listed.err.count("set aside")
    assert len(listed.json) + aside == len(by_name)
    assert aside < 5
    assert len(run("preview", path, "--format", "openai", "--json").json) + aside == len(by_name)
