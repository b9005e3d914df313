"""The commands as a script sees them: output, JSON, exit codes."""

from __future__ import annotations

import io
import json
import re
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft7Validator

from gatewright.cli.main import COMPLETION
from gatewright.policy.verdict import pick_tools
from gatewright.workspace import Workspace, example_names
from tests.engine.cli.conftest import Ran, Runner

SEED = """\
name = "limited-agent"

[[tool_rules]]
tool_name = "file"
rule_type = { AllowedOperations = ["read", "append"] }
priority = 0

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
"""
LOOPED = SEED.replace(
    "[[tool_rules]]\n", '[[tool_rules]]\ntool_name = "file"\nrule_type = "ContinueLoop"\n\n[[tool_rules]]\n', 1
)
HIDDEN = ("delete", "load", "save", "list", "replace", "create")


@pytest.fixture
def demo(tmp_path: Path, run: Runner) -> Path:
    assert run("init", tmp_path / "demo", "--template", "demo").status == 0
    return tmp_path / "demo"


@pytest.fixture(params=[SEED, LOOPED], ids=["seed", "after-a-continue-loop"])
def seed_policy(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    path = tmp_path / "agent.toml"
    path.write_text(request.param, encoding="utf-8")
    return path


def test_the_seeds_file_shows_only_its_two_operations_and_names_no_other(seed_policy: Path, run: Runner) -> None:
    shown = run("preview", seed_policy, "--agent", "limited-agent", "--format", "mcp", "--json")
    assert shown.status == 0
    tool = next(tool for tool in shown.json if tool["name"] == "file")
    assert tool["inputSchema"]["properties"]["op"]["enum"] == ["append", "read"]
    rules = run("rules", seed_policy, "--agent", "limited-agent")
    for name in HIDDEN:
        named = re.compile(rf"(?<![a-z]){name}(?![a-z])")  # a result may say that a text is unsaved
        assert not named.search(json.dumps(tool).casefold())
        assert not named.search(rules.out.casefold())


def test_the_seeds_file_denies_a_hidden_operation_with_the_line_of_its_rule(seed_policy: Path, run: Runner) -> None:
    arguments = '{"op": "delete", "path": "a.md"}'
    decided = run("decide", seed_policy, "--agent", "limited-agent", "--tool", "file", "--args", arguments, "--json")
    assert decided.status == 4
    answer = decided.json
    assert (answer["verdict"], answer["stage"], answer["code"]) == ("deny", "operation", "operation-not-allowed")
    lines = seed_policy.read_text(encoding="utf-8").splitlines()
    kind = next(at for at, text in enumerate(lines) if "AllowedOperations" in text)
    assert answer["rule"]["line"] == max(at for at in range(kind) if lines[at] == "[[tool_rules]]") + 1
    assert answer["rule"]["file"] == str(seed_policy)
    assert answer["model_message"].startswith("Tool execution failed:")
    assert "delete" not in answer["model_message"]


def test_a_hidden_and_an_unknown_operation_get_the_same_words(seed_policy: Path, run: Runner) -> None:
    words = [
        run(
            "decide",
            seed_policy,
            "--agent",
            "limited-agent",
            "--tool",
            "file",
            "--args",
            json.dumps({"op": op}),
            "--json",
        )
        for op in ("delete", "frobnicate", " read", "READ")
    ]
    assert {ran.status for ran in words} == {4}
    assert len({ran.json["model_message"] for ran in words}) == 1


def test_a_call_that_does_not_fit_is_answered_with_examples_of_what_the_agent_may(
    seed_policy: Path, run: Runner
) -> None:
    words = ("decide", seed_policy, "--agent", "limited-agent", "--tool", "file")
    offered = run(*words).err.splitlines()
    assert [json.loads(line.split("'")[1])["op"] for line in offered] == ["read", "append"]
    assert run(*words, "--args", '{"op": "append", "path": "a.md"}').err.splitlines() == offered[1:]
    (seed_policy.parent / "docs" / "notes").mkdir()
    (seed_policy.parent / "docs" / "notes" / "today.md").write_text("tea\n", encoding="utf-8")
    assert run(*words, "--args", offered[0].split("'")[1]).status == 0


@pytest.mark.parametrize("format_name", ["mcp", "openai", "openai-responses", "anthropic", "gemini", "genai"])
def test_preview_prints_a_list_of_tools_in_each_format(demo: Path, run: Runner, format_name: str) -> None:
    shown = run("preview", demo, "--agent", "archivist", "--format", format_name)
    assert shown.status == 0
    agents = tomllib.loads((demo / "policy.toml").read_text(encoding="utf-8"))["agents"]
    assert len(shown.json) == len(agents["archivist"]["tools"])
    file = next(tool for tool in shown.json if '"file"' in json.dumps(tool))
    assert "delete" not in json.dumps(file)


def test_preview_tells_tokens_and_lints_beside_the_list(demo: Path, run: Runner) -> None:
    shown = run("preview", demo, "--agent", "archivist", "--format", "gemini")
    assert "file: about" in shown.err
    assert "tokens in all (o200k_base)" in shown.err
    assert "looser: " in shown.err


def test_preview_calls_only_estimates_estimates(demo: Path, run: Runner) -> None:
    shown = run("preview", demo, "--agent", "archivist", "--format", "openai")
    assert "about" not in shown.err.split(" tokens in all", maxsplit=1)[0]


def test_preview_as_json_prints_the_list_and_nothing_beside_it(demo: Path, run: Runner) -> None:
    shown = run("preview", demo, "--agent", "archivist", "--format", "gemini", "--json")
    assert shown.json
    assert shown.err == ""


def test_an_agent_with_nothing_ticked_sees_nothing(demo: Path, run: Runner) -> None:
    shown = run("preview", demo, "--agent", "newcomer")
    assert (shown.status, shown.json) == (0, [])


def test_the_demo_is_fine_and_its_self_check_finds_no_difference(demo: Path, run: Runner) -> None:
    checked = run("check", demo, "--json")
    assert checked.status == 0
    assert checked.json["problems"] == []
    result = run("selfcheck", demo, "--json")
    assert result.status == 0
    assert result.json["differences"] == []
    with closing(Workspace.open(demo)) as workspace:
        operations = sum(len(facts.operations) for facts in pick_tools(workspace.catalog, None).values())
    assert operations >= 9
    assert result.json["checked"] == 4 * operations


def test_every_built_in_tool_is_shown_to_some_agent_of_the_demo(demo: Path, run: Runner) -> None:
    with closing(Workspace.open(demo)) as workspace:
        wanted = {facts.name for facts in workspace.catalog if facts.origin == "built-in" and not facts.outmoded}
        shown = {
            listing.name for agent_id in workspace.policy.agents for listing in workspace.view(agent_id).listings()
        }
    assert len(wanted) >= 22
    assert wanted <= shown


def test_the_demo_comes_with_blocks_an_archive_and_notes_that_its_agents_find(demo: Path, run: Runner) -> None:
    def found(tool: str, **arguments: object) -> Any:
        ran = run("call", demo, "--agent", "operator", "--tool", tool, "--args", json.dumps(arguments), "--json")
        assert ran.status == 0, ran.out
        return json.loads(ran.json["output"])["data"]

    [best, *_] = found("recall", op="search", query="kingfisher weir")["hits"]
    assert best["content"].startswith("Kingfisher at the lower weir")
    assert best["score"] > 0
    hits = found("search", query="kingfisher lowest", domain="all")["hits"]
    assert {hit["kind"] for hit in hits} == {"entry", "archived block", "message"}
    assert "depot in Husum" in found("memory_search", query="batteries")[0]["text"]
    context = run("context", demo, "--agent", "operator").out
    assert "### station" in context
    assert "### plan" in context
    assert "### persona" not in context


def test_the_demo_keeps_a_memory_that_is_there_already(
    tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWRIGHT_STATE", str(tmp_path / "state"))
    for name in ("one", "two"):
        assert run("init", tmp_path / name, "--template", "demo").status == 0
    found = run("block", "list", tmp_path / "two", "--json").json
    assert sorted(row["label"] for row in found) == ["gauges", "logbook", "season-2025", "station"]


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "stage"),
    [
        ("web_fetch", {"url": "https://levels.example.org/today"}, 0, "approval"),
        ("web_fetch", {"url": "https://example.net/"}, 4, "capability"),
        ("web_fetch", {"url": "http://127.0.0.1/"}, 4, "arguments"),
        ("web_search", {"query": "kingfisher"}, 0, "approval"),
        ("shell_exec", {"command": "cat todo.md | wc -l"}, 3, "approval"),
        ("shell_exec", {"command": "cat todo.md && rm todo.md"}, 4, "arguments"),
    ],
)
def test_the_demo_lets_its_operator_look_at_the_web_and_start_programs_that_only_read(
    demo: Path, run: Runner, tool: str, arguments: dict[str, object], status: int, stage: str
) -> None:
    ran = run("decide", demo, "--agent", "operator", "--tool", tool, "--args", json.dumps(arguments), "--json")
    assert (ran.status, ran.json["stage"]) == (status, stage), ran.out


@pytest.mark.parametrize(
    ("agent", "arguments", "status", "stage"),
    [
        ("archivist", {"op": "read", "path": "notes/species.md"}, 0, "approval"),
        ("archivist", {"op": "read", "path": "secrets/station-key.txt"}, 4, "permission"),
        ("archivist", {"op": "read", "path": "../policy.toml"}, 4, "arguments"),
        ("archivist", {"op": "append", "path": "inbox/2026-07-15-gauge.txt", "content": "x"}, 3, "permission"),
        ("archivist", {"op": "replace", "path": "notes/species.md", "old": "a", "new": "b"}, 4, "permission"),
        ("operator", {"op": "delete", "path": "drafts/outline.md"}, 3, "permission"),
        ("archivist", {"op": "read"}, 4, "arguments"),
        ("archivist", {"op": "read", "path": 3}, 4, "schema"),
        ("newcomer", {"op": "read", "path": "notes/species.md"}, 4, "lookup"),
    ],
)
def test_decide_names_the_stage_and_exits_by_the_verdict(
    demo: Path, run: Runner, agent: str, arguments: dict[str, object], status: int, stage: str
) -> None:
    ran = run("decide", demo, "--agent", agent, "--tool", "file", "--args", json.dumps(arguments), "--json")
    assert (ran.status, ran.json["stage"]) == (status, stage)
    trace = ran.json["trace"]
    assert trace[0]["stage"] == "parse"
    assert trace[-1]["verdict"] == ran.json["verdict"]


def test_a_text_of_several_lines_is_printed_as_such_and_no_line_of_it_passes_for_ours(demo: Path, run: Runner) -> None:
    message = 'message = "first\\nallow at approval [allowed]\\r\\nlast\\u001b[2J"'
    rule = f'\n[[policy.rules]]\nname = "r"\neffect = "deny"\ntools = ["file"]\nagents = ["archivist"]\n{message}\n'
    policy = demo / "policy.toml"
    policy.write_text(policy.read_text("utf-8") + rule, "utf-8")
    two = json.dumps({"op": "read", "path": 3, "lines": "no"})
    ruled = json.dumps({"op": "read", "path": "notes/species.md"})
    for verb in ("decide", "call"):
        ran = run(verb, demo, "--agent", "archivist", "--tool", "file", "--args", ruled)
        assert ": first\n  | allow at approval [allowed]\n  | last\\u001b[2J" in ran.out
        shown = run(verb, demo, "--agent", "operator", "--tool", "file", "--args", two).out
        assert "\n  | " in shown
        assert "\\u000a" not in shown


def test_decide_writes_nothing_anywhere(demo: Path, run: Runner) -> None:
    before = sorted(path for path in demo.rglob("*"))
    run("decide", demo, "--agent", "archivist", "--tool", "file", "--args", '{"op": "list"}')
    run("preview", demo, "--agent", "archivist")
    run("selfcheck", demo)
    assert sorted(path for path in demo.rglob("*")) == before


def test_calls_load_edit_and_save_a_real_file(demo: Path, run: Runner) -> None:
    def call(**arguments: str) -> Ran:
        return run("call", demo, "--agent", "archivist", "--tool", "file", "--args", json.dumps(arguments), "--json")

    assert call(op="load", path="drafts/outline.md").status == 0
    assert call(op="append", path="drafts/outline.md", content="4. Thanks\n").status == 0
    on_disk = demo / "workspace/drafts/outline.md"
    assert "Thanks" not in on_disk.read_text(encoding="utf-8")
    assert call(op="save", path="drafts/outline.md").status == 0
    assert on_disk.read_text(encoding="utf-8").endswith("3. What to measure next\n4. Thanks\n")


def test_a_call_that_asks_waits_for_an_answer_that_nobody_gives(demo: Path, run: Runner) -> None:
    target = demo / "workspace/drafts/outline.md"
    words = (
        "call",
        demo,
        "--agent",
        "operator",
        "--tool",
        "file",
        "--args",
        '{"op": "delete", "path": "drafts/outline.md"}',
    )
    assert run(*words, "--approve", "never").status == 3
    assert target.exists()
    assert run(*words, "--approve", "always").status == 0
    assert not target.exists()


@pytest.mark.parametrize(("typed", "status"), [("y\n", 0), ("n\n", 4), ("\n", 4), ("", 3)])
def test_a_prompt_is_answered_refused_or_left_open(
    demo: Path, run: Runner, monkeypatch: pytest.MonkeyPatch, typed: str, status: int
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    arguments = '{"op": "delete", "path": "drafts/outline.md"}'
    words = ("call", demo, "--agent", "operator", "--tool", "file", "--args", arguments, "--approve", "prompt")
    assert run(*words).status == status
    assert (demo / "workspace/drafts/outline.md").exists() == (status != 0)


def test_calls_of_a_named_session_count_together_and_deciding_uses_none_up(tmp_path: Path, run: Runner) -> None:
    (tmp_path / "docs").mkdir()
    source = '[[sources]]\nid = "d"\ntype = "file"\nbase_path = "docs"\n'
    limit = '[[agents.a.tool_rules]]\ntool_name = "file"\nrule_type = { MaxCalls = 1 }\n'
    (tmp_path / "policy.toml").write_text(f'gatewright = 1\n[agents.a]\ntools = ["file"]\n{limit}{source}')
    words = (tmp_path, "--agent", "a", "--tool", "file", "--args", '{"op": "list"}', "--json")

    for name in ("one", "two"):
        assert [run("decide", *words, "--session", name).status for _ in range(2)] == [0, 0]
        assert [run("call", *words, "--session", name).status for _ in range(2)] == [0, 4]
        assert run("decide", *words, "--session", name).json["code"] == "max-calls"
    assert [run("call", *words).status for _ in range(2)] == [0, 0]

    refused = run("call", *words, "--session", "../one")
    assert (refused.status, refused.err.count("is not a valid id of a saved session")) == (2, 1)


def test_what_is_to_be_approved_cannot_move_the_cursor(
    tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    source = '[[sources]]\nid = "d"\ntype = "file"\nbase_path = "docs"\ndefault_permission = "admin"\n'
    agent = '[agents.a]\ntools = ["file"]\napprovals = { "file.create" = "ask" }\n'
    (tmp_path / "policy.toml").write_text(f"gatewright = 1\n{agent}{source}", encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    content = "harmless\n\x1b[2J\u202eend\n"
    arguments = json.dumps({"op": "create", "path": "a.md", "content": content})
    ran = run("call", tmp_path, "--agent", "a", "--tool", "file", "--args", arguments, "--approve", "prompt")

    assert ran.status == 4
    assert "+\\u001b[2J\\u202eend" in ran.err
    assert "\x1b" not in ran.err
    assert "\u202e" not in ran.err


def test_every_problem_of_a_broken_policy_is_printed_with_its_line(tmp_path: Path, run: Runner) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('gatewright = 1\n[agents.a]\ntols = []\ntools = ["fil"]\n', encoding="utf-8")
    ran = run("check", path, "--json")
    assert ran.status == 1
    found = {(problem["code"], problem["line"], problem["near_miss"]) for problem in ran.json["problems"]}
    assert found == {("unknown-key", 3, "tools"), ("unknown-tool", 4, "file")}
    assert run("preview", path, "--agent", "a").status == 1


def test_permission_reads_paths_from_arguments_and_prints_the_deciding_rule(demo: Path, run: Runner) -> None:
    paths = ("notes/species.md", "secrets/", "README.md", "../out.txt", "drafts/final/report-2025.md")
    ran = run("permission", demo, "--source", "archive", *paths, "--json")
    assert ran.status == 0
    assert ran.json == [
        {
            "path": "notes/species.md",
            "permission": "append",
            "outside": False,
            "rule": {"index": 3, "pattern": "notes/**"},
        },
        {"path": "secrets/", "permission": "none", "outside": False, "rule": {"index": 0, "pattern": "secrets/"}},
        {"path": "README.md", "permission": "read_only", "outside": False, "rule": None},
        {"path": "../out.txt", "permission": "none", "outside": True, "rule": None},
        {
            "path": "drafts/final/report-2025.md",
            "permission": "read_only",
            "outside": False,
            "rule": {"index": 1, "pattern": "drafts/final/**"},
        },
    ]


@pytest.mark.parametrize("name", example_names())
def test_an_example_is_whole_and_what_it_shows_is_what_can_be_called(name: str, tmp_path: Path, run: Runner) -> None:
    assert name in run("init", "--help").out
    policy = Path(run("init", tmp_path / name, "--example", name, "--json").json["policy"])
    schema = json.loads((policy.parent / "policy.schema.json").read_text("utf-8"))
    Draft7Validator(schema).validate(tomllib.loads(policy.read_text("utf-8")))
    assert "0 warnings" in run("check", policy).out
    assert run("selfcheck", policy, "--json").json["differences"] == []
    again = run("init", tmp_path / name, "--example", name)
    assert again.status == 2
    assert "exists already" in again.err


def test_there_is_no_example_of_another_name(tmp_path: Path, run: Runner) -> None:
    ran = run("init", tmp_path / "x", "--example", "../demo")
    assert ran.status == 2
    assert all(name in ran.err for name in example_names())
    assert not (tmp_path / "x").exists()


def test_a_new_workspace_names_the_schema_of_its_policy_for_editors(tmp_path: Path, run: Runner) -> None:
    (tmp_path / "policy.schema.json").write_text("{}", encoding="utf-8")
    policy = Path(run("init", tmp_path / "new", "--template", "demo", "--json").json["policy"])
    first, name = policy.read_text("utf-8").splitlines()[0].split(" ")
    schema = json.loads((policy.parent / name).read_text("utf-8"))
    assert first == "#:schema"
    assert schema == run("policy-schema").json
    assert schema["properties"]["agents"]["additionalProperties"]["properties"]["tools"]["description"]
    assert run("check", policy).status == 0
    run("init", tmp_path)
    assert (tmp_path / "policy.schema.json").read_text("utf-8") == "{}"


def test_operations_and_filter_take_any_schema(tmp_path: Path, run: Runner) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(
        json.dumps(
            {
                "type": "object",
                "properties": {"action": {"enum": ["get", "put", "drop"]}, "key": {"type": "string"}},
                "required": ["action", "key"],
            }
        ),
        encoding="utf-8",
    )
    found = run("operations", schema, "--json").json
    assert found["field"] == "action"
    assert [operation["name"] for operation in found["operations"]] == ["get", "put", "drop"]
    kept = run("filter", schema, "--allow", "get").json
    assert kept["properties"]["action"]["enum"] == ["get"]
    assert kept["additionalProperties"] is False
    assert run("filter", schema, "--allow", "").json is None
    assert run("filter", schema, "--allow", "gett").status == 2


def test_export_writes_a_policy_that_loads_where_it_lands(demo: Path, tmp_path: Path, run: Runner) -> None:
    ran = run("export", demo, "--out", tmp_path / "deployed")
    assert ran.status == 0
    assert (tmp_path / "deployed/policy.toml").read_bytes() == (demo / "policy.toml").read_bytes()
    assert run("check", tmp_path / "deployed").status == 0


def test_export_in_patterns_shape_says_that_its_runtime_enforces_no_operations(demo: Path, run: Runner) -> None:
    ran = run("export", demo, "--dialect", "pattern", "--agent", "researcher")
    assert ran.status == 0
    assert ran.out.startswith("#")
    assert "AllowedOperations" in ran.out


def test_export_in_patterns_shape_names_the_agents_that_it_leaves_out(demo: Path, tmp_path: Path, run: Runner) -> None:
    printed = run("export", demo, "--dialect", "pattern")
    written = run("export", demo, "--dialect", "pattern", "--out", tmp_path / "out", "--json")
    own = run("export", demo)

    assert (printed.status, written.status) == (0, 0)
    assert "without a file: `newcomer`" in printed.err
    assert printed.err == written.err
    assert not (tmp_path / "out/newcomer.toml").exists()
    assert own.err == ""


@pytest.mark.parametrize(
    ("words", "offered"), [("gatewright se", ["selfcheck", "serve"]), ("gatewright token ", ["add", "list", "revoke"])]
)
def test_a_shell_is_told_what_may_follow(
    words: str, offered: list[str], run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMPLETION, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))

    assert run().out.split() == offered
