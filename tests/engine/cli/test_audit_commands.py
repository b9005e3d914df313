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
    with closing(sqlite3.connect(folder / ".gatewright" / "audit.sqlite3")) as connection:
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
    with closing(sqlite3.connect(folder / ".gatewright" / "audit.sqlite3")) as connection:
        connection.execute("DELETE FROM rows WHERE seq = 4")
        connection.commit()
    capsys.readouterr()
    assert main(["audit", "verify", str(folder)]) == 1
    assert "row 4 is missing, so row 5 is not proved" in capsys.readouterr().err


def test_list_tells_the_calls_that_fit_newest_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "list", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert main(["audit", "list", str(folder), "--verdict", "deny", "--tool", "file", "--json"]) == 0
    denied = json.loads(capsys.readouterr().out)

    assert "  deny   archivist  file  a.md  content=x  op=append" in lines[0]
    assert "  allow  archivist  file.read" in lines[1]
    assert "LogOpened" in lines[-1]
    assert [(call["agent"], call["tool"], call["verdict"], call["ended"]) for call in denied] == [
        ("archivist", "file", "deny", "ToolDenied")
    ]
    assert main(["audit", "list", str(folder), "--agent", "nobody"]) == 0
    assert main(["audit", "list", str(folder), "--since", "2999-01-01"]) == 0
    assert not capsys.readouterr().out
    assert main(["audit", "list", str(folder), "--most", "1"]) == 0
    told = capsys.readouterr()
    assert (len(told.out.splitlines()), told.err) == (1, f"{len(lines) - 1} more (--most)\n")
    assert main(["audit", "list", str(folder), "--until", "soon"]) == 2
    assert "`--until` takes a day or a moment" in capsys.readouterr().err


def test_export_of_a_filter_is_every_row_of_the_calls_that_fit(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "export", str(folder), "--verdict", "deny", "--since", "2000-01-01"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [row["kind"] for row in rows] == ["ToolInvoked", "PolicyDecision", "ToolDenied"]
    assert rows[0]["body"]["arguments"]["op"] == "append"
