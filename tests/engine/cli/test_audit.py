"""The audit commands: what was called is proved, and tampering is found."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from pathlib import Path

import pytest

from gatewright.base.amount import plain_moment
from gatewright.cli.main import main
from gatewright.gate import AuditEntry, RowKind
from gatewright.workspace import audit_log
from tests.support.logged_calls import call_rows

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


def test_calls_that_were_killed_are_told_the_first_few_with_agent_and_tool(
    called: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "verify", str(called)]) == 0
    assert "without an end" not in capsys.readouterr().out
    log = audit_log(called)
    for number in range(7):
        log.append([AuditEntry(RowKind.TOOL_INVOKED, f"call-{number}", "archivist", "", "file")])
    log.close()

    assert main(["audit", "verify", str(called)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert main(["audit", "verify", str(called), "--json"]) == 0
    unended = json.loads(capsys.readouterr().out)["unended"]

    assert told[1] == "7 calls without an end (under way or killed):"
    assert [line.split()[1:] for line in told[2:7]] == [["archivist", "file", f"call-{n}"] for n in range(5)]
    assert told[7:] == ["  and 2 more"]
    assert [call["call_id"] for call in unended] == [f"call-{number}" for number in range(7)]
    assert unended[0] == {"call_id": "call-0", "agent": "archivist", "tool": "file", "time": told[2].split()[0]}


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
    assert "is missing" in capsys.readouterr().err


def test_a_workspace_without_calls_has_nothing_to_prove(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init", str(tmp_path / "new"), "--template", "demo"])
    assert main(["audit", "verify", str(tmp_path / "new")]) == 0
    assert main(["audit", "export", str(tmp_path / "new")]) == 0
    assert "0 rows" in capsys.readouterr().out


def verified(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """The exit code of ``audit verify`` and what it objects to."""
    capsys.readouterr()
    return main(["audit", "verify", str(folder), *options]), capsys.readouterr().err


def call(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code of a call and all that it prints."""
    code = main(["call", str(folder), "--agent", "archivist", "--tool", "file", "--args", '{"op": "list"}'])
    said = capsys.readouterr()
    return code, said.out + said.err


def test_a_state_folder_swapped_for_a_link_is_found(called: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (called / ".gatewright").rename(called.parent / "away")
    (called.parent / "fresh").mkdir()
    (called / ".gatewright").symlink_to("../fresh")

    code, said = verified(called, capsys)
    assert code == 1
    assert "symbolic link" in said
    assert call(called, capsys)[0] == 2
    assert list((called.parent / "fresh").iterdir()) == []
    assert verified(called, capsys)[0] == 1


def test_a_log_that_is_gone_from_a_renamed_workspace_is_found(called: Path, capsys: pytest.CaptureFixture[str]) -> None:
    renamed = called.rename(called.parent / "renamed")
    assert verified(renamed, capsys) == (0, "")
    shutil.rmtree(renamed / ".gatewright")

    code, said = verified(renamed, capsys)
    assert code == 1
    assert f"kept in `{called}/.gatewright` before, is missing" in said
    call(renamed, capsys)
    code, said = verified(renamed, capsys)
    assert code == 1
    assert "lay here before" in said


def test_a_folder_made_in_the_place_of_a_deleted_workspace_is_another(
    called: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(called)
    for number in range(20):  # a file system gives the inode again sooner or later
        other = called.parent / f"other-{number}"
        main(["init", str(other), "--template", "demo"])
        assert verified(other, capsys) == (0, "")


def test_a_copied_log_proves_nothing_and_is_not_written(called: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copied = shutil.copytree(called, called.parent / "copied")

    code, said = verified(copied, capsys)
    assert code == 1
    assert f"a copy of the audit log in `{called}/.gatewright`" in said
    assert verified(copied, capsys, "--moved")[0] != 0
    code, said = call(copied, capsys)
    assert code == 4
    assert "a copy of the audit log" in said
    assert call(called, capsys)[0] == 0
    assert verified(called, capsys) == (0, "")


def test_a_log_that_was_moved_goes_on_once_the_operator_says_so(
    called: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = shutil.copytree(called, called.parent / "elsewhere" / "moved")
    shutil.rmtree(called)

    code, said = verified(moved, capsys)
    assert code == 1
    assert f"kept in `{called}/.gatewright` until now" in said
    assert "gatewright audit verify --moved" in said
    assert call(moved, capsys)[0] == 4

    for _ in range(2):
        assert verified(moved, capsys, "--moved") == (0, "")
    assert main(["memory", "adopt", str(moved)]) == 0  # what is remembered does not move along by itself
    capsys.readouterr()
    assert call(moved, capsys)[0] == 0
    assert verified(moved, capsys) == (0, "")
    main(["audit", "export", str(moved)])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (told,) = [row["body"] for row in rows if row["kind"] == "LogMoved"]
    assert (told["from"], told["to"]) == (f"{called}/.gatewright", f"{moved}/.gatewright")
    assert told["who"]


def test_a_moved_log_that_does_not_hold_is_not_taken_over(called: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moved = shutil.copytree(called, called.parent / "moved")
    shutil.rmtree(called)
    with sqlite3.connect(moved / ".gatewright/audit.sqlite3") as connection:
        connection.execute("DELETE FROM rows WHERE seq = 3")
    connection.close()

    code, said = verified(moved, capsys, "--moved")
    assert code == 2
    assert "row 3 is missing" in said
    assert verified(moved, capsys)[0] == 1


def test_list_names_the_call_of_a_step_and_how_many_steps_a_call_made(
    called: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = audit_log(called)
    for rows in (call_rows(1, tool="copy", operation=""), call_rows(2, within=(1, 0)), call_rows(3, within=(1, 1))):
        log.append(rows)
    log.close()
    name = f"call-{1:016x}"

    assert main(["audit", "list", str(called), "--within", name]) == 0
    later, first, composed = capsys.readouterr().out.splitlines()
    assert f"step 2 of {name}" in later
    assert f"step 1 of {name}" in first
    assert f"{name}: 2 steps" in composed
    assert main(["audit", "list", str(called), "--within", name, "--json"]) == 0
    links = [(call["within"], call["step"], call["steps"]) for call in json.loads(capsys.readouterr().out)]
    assert links == [(name, 1, 0), (name, 0, 0), ("", None, 2)]
    assert main(["audit", "export", str(called), "--within", name]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 9


def observed_workspace(folder: Path) -> Path:
    """A demo whose archivist is observed under a rule against one kind of call, and that has made some."""
    main(["init", str(folder), "--template", "demo"])
    file = folder / "policy.toml"
    until = plain_moment(float(round(time.time())) + 86_400)
    rule = '\n[[policy.rules]]\nname = "no lists"\neffect = "deny"\ntools = ["file"]\noperations = ["list"]\n'
    file.write_text(file.read_text("utf-8") + f'{rule}mode = "observe"\nobserve_until = "{until}"\n', "utf-8")
    return folder


def test_what_observe_mode_let_through_is_compared_with_what_enforcing_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = observed_workspace(tmp_path / "demo")
    listing = ["--agent", "archivist", "--tool", "file", "--args", '{"op": "list"}']
    capsys.readouterr()
    assert main(["decide", str(demo), *listing, "--json"]) == 4
    decided = json.loads(capsys.readouterr().out)
    assert (decided["verdict"], decided["enforced"]) == ("deny", False)
    for _ in range(2):
        assert main(["call", str(demo), *listing]) == 4
        assert "not enforced" in capsys.readouterr().out
    assert main(["call", str(demo), *listing, "--json"]) == 4
    called = json.loads(capsys.readouterr().out)
    assert (called["verdict"], called["enforced"], called["status"]) == ("deny", False, "allowed")
    main(["call", str(demo), "--agent", "archivist", "--tool", "file", "--args", DENIED])
    capsys.readouterr()

    assert main(["audit", "observed", str(demo)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "of 4 calls 3 would have been denied",
        "  3  deny at operation  no lists",
    ]
    assert main(["audit", "observed", str(demo), "--json"]) == 0
    row = {"verdict": "deny", "stage": "operation", "rule": "no lists", "count": 3}
    assert json.loads(capsys.readouterr().out) == {"calls": 4, "denied": 3, "asked": 0, "rows": [row]}
    assert main(["audit", "list", str(demo), "--observed", "--json"]) == 0
    assert [one["operation"] for one in json.loads(capsys.readouterr().out)] == ["list"] * 3
    assert main(["audit", "observed", str(demo), "--agent", "nobody"]) == 0
    assert capsys.readouterr().out == "of 0 calls 0 would have been denied\n"
