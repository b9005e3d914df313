"""Tools that another program runs, on the command line: checked, previewed and decided, never executed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.cli.conftest import Runner

POLICY = """\
gatewright = 1

[[catalogs]]
id = "desk"
type = "host"
manifest = "desk.json"
trusted = true

[agents.a]
tools = ["ticket"]

[[agents.a.tool_rules]]
tool_name = "ticket"
rule_type = { AllowedOperations = ["open", "close"] }
"""
TICKET = {
    "name": "ticket",
    "description": "Works on tickets.",
    "inputSchema": {
        "type": "object",
        "properties": {"action": {"type": "string", "enum": ["open", "close", "purge"]}},
        "required": ["action"],
    },
    "_meta": {"gatewright": {"safety_tier": "privileged", "operation_tiers": {"open": "read_only"}}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "desk.json").write_text(json.dumps([TICKET]), encoding="utf-8")
    return tmp_path


def test_check_and_preview_know_the_tools_of_a_manifest(folder: Path, run: Runner) -> None:
    assert run("check", folder)[0] == 0
    status, out, _ = run("preview", folder, "--agent", "a", "--json")
    assert status == 0
    assert json.loads(out)[0]["inputSchema"]["properties"]["action"]["enum"] == ["open", "close"]
    assert run("selfcheck", folder)[0] == 0


@pytest.mark.parametrize(("operation", "status"), [("open", 5), ("close", 3), ("purge", 4)])
def test_call_of_a_hosts_tool_is_decided_and_says_who_runs_it(
    operation: str, status: int, folder: Path, run: Runner
) -> None:
    words = ("call", folder, "--agent", "a", "--tool", "ticket", "--args", json.dumps({"action": operation}))
    ended, out, err = run(*words, "--approve", "always")
    assert ended == status
    assert {"open": "allow", "close": "ask", "purge": "deny"}[operation] in out
    assert "`ticket` is run by its own program: the call was decided, not executed" in err
    answer = json.loads(run(*words, "--json")[1])
    assert answer["executed"] is False
    assert not (folder / ".gatewright").exists()


def test_check_tells_a_bad_manifest_at_its_line(folder: Path, run: Runner) -> None:
    (folder / "desk.json").write_text("[1,", encoding="utf-8")
    status, _, err = run("check", folder)
    assert status == 1
    assert "policy.toml:6:" in err
    assert "bad-manifest" in err


def test_note_about_many_tools_is_one_line_with_their_number(tmp_path: Path, run: Runner) -> None:
    open_schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    rows = [{"name": f"t{number}", "inputSchema": open_schema} for number in range(40)]
    (tmp_path / "tools.json").write_text(json.dumps({"tools": rows}), encoding="utf-8")

    status, _, err = run("preview", tmp_path / "tools.json", "--format", "openai")
    assert status == 0
    notes = [line for line in err.splitlines() if line.startswith("note: ")]
    assert len(notes) == 1
    assert "40 times: not in strict mode" in notes[0]
