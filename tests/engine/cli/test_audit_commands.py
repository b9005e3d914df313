"""``audit verify`` and ``audit export`` as a script sees them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gatewright.cli.main import main
from gatewright.workspace import audit_log

POLICY = """gatewright = 1

[agents.archivist]
tools = ["file"]
sources = ["docs"]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
"""


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "ws/docs").mkdir(parents=True)
    (tmp_path / "ws/docs/a.md").write_text("one\n", encoding="utf-8")
    (tmp_path / "ws/policy.toml").write_text(POLICY, encoding="utf-8")
    call = ["call", str(tmp_path / "ws"), "--agent", "archivist", "--tool", "file", "--args"]
    assert main([*call, '{"op": "read", "path": "a.md"}']) == 0
    assert main([*call, '{"op": "append", "path": "a.md", "content": "x"}']) == 4
    capsys.readouterr()
    return tmp_path / "ws"


def test_export_is_one_line_for_each_row_in_order_with_every_column(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "export", str(folder)]) == 0
    first = capsys.readouterr().out
    assert main(["audit", "export", str(folder), "--json"]) == 0
    rows = [json.loads(line) for line in first.splitlines()]

    assert capsys.readouterr().out == first
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert [row["kind"] for row in rows][-3:] == ["ToolInvoked", "PolicyDecision", "ToolDenied"]
    columns = ["seq", "time", "kind", "call_id", "agent", "session", "tool", "operation", "body", "mac"]
    assert all(list(row) == columns for row in rows)
    assert rows[-2]["body"]["verdict"] == "deny"


def test_export_of_a_spoiled_log_still_tells_every_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(audit_log(folder).path)) as connection:
        connection.execute("UPDATE rows SET body = 'no json' WHERE seq = 2")
        connection.execute("UPDATE rows SET agent = x'00ff', mac = 'none' WHERE seq = 3")
        connection.commit()
    count = len(list(audit_log(folder).rows()))

    assert main(["audit", "export", str(folder)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == count
    assert (rows[1]["body"], rows[2]["agent"]) == ("no json", "b'\\x00\\xff'")
    assert main(["audit", "verify", str(folder), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["sound"] is False


def test_verify_says_so_with_its_exit_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "verify", str(folder)]) == 0
    assert main(["audit", "verify", str(folder / "nowhere")]) == 2
    with closing(sqlite3.connect(audit_log(folder).path)) as connection:
        connection.execute("DELETE FROM rows WHERE seq = 4")
        connection.commit()
    capsys.readouterr()
    assert main(["audit", "verify", str(folder)]) == 1
    assert "row 4 is missing, so row 5 is not proved" in capsys.readouterr().err
