"""The audit commands: what was called is proved, and tampering is found."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from gatewright.cli.main import main

DENIED = '{"op": "delete", "path": "README.md"}'


@pytest.fixture
def called(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    demo = tmp_path / "demo"
    main(["init", str(demo), "--template", "demo"])
    main(["call", str(demo), "--agent", "archivist", "--tool", "file", "--args", '{"op": "list"}'])
    main(["call", str(demo), "--agent", "archivist", "--tool", "file", "--args", DENIED])
    capsys.readouterr()
    return demo


def test_a_log_that_nobody_touched_is_proved(called: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "verify", str(called), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["sound"]
    assert report["rows"] >= 5


def test_export_prints_every_row_as_one_line_of_json(called: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "export", str(called)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    kinds = [row["kind"] for row in rows]
    assert kinds.index("ToolInvoked") < kinds.index("PolicyDecision") < kinds.index("ToolCompleted")
    assert kinds[-1] == "ToolDenied"
    assert rows[-3]["body"]["arguments"] == json.loads(DENIED)


def test_an_edited_row_is_found(called: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = next((called / ".gatewright").glob("audit*"))
    with sqlite3.connect(log) as connection:
        connection.execute("UPDATE rows SET tool = 'block' WHERE seq = 3")
    connection.close()
    assert main(["audit", "verify", str(called)]) == 1
    assert "3" in capsys.readouterr().err


def test_a_removed_log_is_found_while_its_anchor_stands(called: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (called / ".gatewright").glob("audit*"):
        path.unlink()
    assert main(["audit", "verify", str(called)]) == 1
    assert "gone" in capsys.readouterr().err


def test_a_workspace_without_calls_has_nothing_to_prove(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init", str(tmp_path / "new"), "--template", "demo"])
    assert main(["audit", "verify", str(tmp_path / "new")]) == 0
    assert main(["audit", "export", str(tmp_path / "new")]) == 0
    assert "0 rows" in capsys.readouterr().out
