"""``gatewright approvals`` as an operator and a script see it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewright.cli.main import main
from gatewright.gate import Approval, ApprovalRequest, ApprovalStore, AuditLog, Remember
from gatewright.gate.approval import Ask, IdRecord
from gatewright.gate.approvalstore import FILE_NAME
from tests.engine.cli.conftest import Ran, Runner


@pytest.fixture
def approvals(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: Path) -> Runner:
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(tmp_path / "keys"))

    def ran(word: str, *words: str) -> Ran:
        return run("approvals", word, policy, *words)

    return ran


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text("gatewright = 1\n", "utf-8")
    return path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ApprovalStore]:
    made = ApprovalStore(tmp_path / ".gatewright", tmp_path / "keys")
    yield made
    made.close()


def question(number: int = 1, **more: Any) -> ApprovalRequest:
    given: dict[str, Any] = {
        "agent_id": "archivist",
        "tool": "file",
        "operation": "append",
        "arguments": {"path": "a.md", "content": "x"},
        "reasons": ("`a.md` of `docs` is set to changes ask",),
        "diff": "--- a\n+++ b\n+two",
        "scope": "notes",
        "digest": f"d{number}",
        "request_id": f"ask-{number}",
        "session_id": "session-1",
        "user_id": "ann",
        "safety_tier": "side_effecting",
        "asks": (Ask("k1", "notes"),),
    }
    return ApprovalRequest(**(given | more))


def test_nothing_waits_and_nothing_is_written(approvals: Runner, tmp_path: Path) -> None:
    listed = approvals("list", "--json")

    assert (listed.status, listed.json) == (0, {"pending": [], "standing": []})
    assert approvals("list").out == "no call waits for an answer, and no answer stands\n"
    assert [path.name for path in tmp_path.iterdir()] == ["policy.toml"]


def test_list_shows_all_an_operator_must_see(approvals: Runner, store: ApprovalStore) -> None:
    store.post(question(), 10)
    store.post(question(2, digest="d1"), 10)
    shown = approvals("list")

    assert shown.status == 0
    for part in (
        "ask-1",
        "archivist for ann",
        "file append",
        "side_effecting",
        "changes ask",
        "notes",
        "a.md",
        "| +two",
    ):
        assert part in shown.out
    assert "2 identical calls" in shown.out
    assert "ask-2" not in shown.out


def test_list_escapes_what_could_hide_the_question(approvals: Runner, store: ApprovalStore) -> None:
    store.post(question(arguments={"content": "\x1b[2J\u202e"}, diff="+\x1b[2J\r+harmless"), 10)
    shown = approvals("list")

    assert "\x1b" not in shown.out
    assert "\u202e" not in shown.out
    assert "\r" not in shown.out


def test_json_names_every_field_of_a_question(approvals: Runner, store: ApprovalStore) -> None:
    store.post(question(), 10)
    row = approvals("list", "--json").json["pending"][0]

    assert (row["id"], row["agent"], row["user"], row["session"]) == ("ask-1", "archivist", "ann", "session-1")
    assert (row["tool"], row["operation"], row["arguments"]) == ("file", "append", {"path": "a.md", "content": "x"})
    assert (row["scope"], row["waiting"], row["diff"]) == ("notes", 1, "--- a\n+++ b\n+two")


@pytest.mark.parametrize(
    ("options", "kind", "approved", "seconds"),
    [
        (("--once",), "once", True, None),
        (("--for", "10m"), "duration", True, 600.0),
        (("--for", "90"), "duration", True, 90.0),
        (("--scope",), "scope", True, None),
        (("--deny",), "once", False, None),
        (("--deny", "--for", "1h"), "duration", False, 3600.0),
    ],
)
def test_answer_reaches_the_waiting_call(
    approvals: Runner, store: ApprovalStore, options: tuple[str, ...], kind: str, approved: bool, seconds: float | None
) -> None:
    store.post(question(), 10)
    ran = approvals("answer", "ask-1", *options, "--who", "dana", "--json")

    assert ran.status == 0
    assert (ran.json["id"], ran.json["approved"], ran.json["who"]) == ("ask-1", approved, "dana")
    assert (ran.json["remember"], ran.json["seconds"]) == (kind, seconds)
    answer = store.answers()["ask-1"]
    assert (answer.approved, answer.who, str(answer.remember), answer.seconds) == (approved, "dana", kind, seconds)
    assert approvals("list", "--json").json["pending"] == []


def test_refusal_carries_its_reason(approvals: Runner, store: ApprovalStore) -> None:
    store.post(question(), 10)
    assert approvals("answer", "ask-1", "--deny", "--because", "use drafts/").status == 0

    assert store.answers()["ask-1"].reason == "use drafts/"


def test_question_lists_process_client_and_what_ids_stand_for(approvals: Runner, store: ApprovalStore) -> None:
    record = IdRecord("ticket_id", 4711, {"id": 4711, "title": "a\u202eb"}, "tickets.list", 5.0)
    store.post(replace(question(), client="desk app", process_id=42, records=(record,)), 10)

    listed = approvals("list").out

    assert "  process 42, for desk app\n" in listed
    assert 'ticket_id 4711 stands for {"id": 4711, "title": "a\\u202eb"}, by tickets.list' in listed


def test_standing_answers_are_listed_and_revoked_and_the_revocation_recorded(
    approvals: Runner, store: ApprovalStore, tmp_path: Path
) -> None:
    store.post(question(), 10)
    approvals("answer", "ask-1", "--scope", "--who", "dana")
    grant_id = approvals("list", "--json").json["standing"][0]["id"]
    line = approvals("list").out
    revoked = approvals("revoke", grant_id, "--who", "eve")

    assert all(part in line for part in (grant_id, "allowed by dana", "scope notes", "session-1"))
    assert (revoked.status, revoked.out) == (0, f"{grant_id} revoked\n")
    assert approvals("list", "--json").json["standing"] == []
    rows = [row for row in AuditLog(tmp_path / ".gatewright", tmp_path / "keys").rows() if row.kind == "GrantRevoked"]
    assert json.loads(rows[0].body)["who"] == "eve"
    assert (rows[0].agent, rows[0].tool, rows[0].operation) == ("archivist", "file", "append")


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--once", "--scope"),
        ("--once", "--for", "1m"),
        ("--deny", "--once"),
        ("--deny", "--scope"),
        ("--for", "soon"),
        ("--for", "0"),
        ("--for", "5000d"),
        ("--for", "800d"),
        ("--once", "--because", "no"),
    ],
)
def test_answer_that_is_none_is_a_usage_problem(
    approvals: Runner, store: ApprovalStore, options: tuple[str, ...]
) -> None:
    store.post(question(), 10)
    ran = approvals("answer", "ask-1", *options)

    assert ran.status == 2
    assert ran.err.startswith("gatewright: ")
    assert store.answers() == {}


def test_unknown_ids_are_usage_problems_with_what_there_is(approvals: Runner, store: ApprovalStore) -> None:
    assert approvals("answer", "ask-9", "--once").status == 2
    store.post(question(), 10)
    ran = approvals("answer", "ask-7", "--once")

    assert ran.status == 2
    assert "ask-1" in ran.err
    assert approvals("revoke", "grant-1").status == 2


def test_answered_question_is_not_answered_again(approvals: Runner, store: ApprovalStore) -> None:
    store.post(question(), 10)
    approvals("answer", "ask-1", "--deny")

    assert approvals("answer", "ask-1", "--once").status == 2
    assert not store.answers()["ask-1"].approved


def test_forged_row_is_told_and_does_not_count(approvals: Runner, store: ApprovalStore, tmp_path: Path) -> None:
    grant = store.remember(question(), Approval(True, "dana", Remember.DURATION, 600.0))
    connection = sqlite3.connect(tmp_path / ".gatewright" / FILE_NAME)
    connection.execute("UPDATE sealed SET until_s = until_s + 1")
    connection.commit()
    connection.close()
    ran = approvals("list", "--json")

    assert ran.json["standing"] == []
    assert grant.grant_id in ran.err
    assert "does not count" in ran.err


def test_missing_policy_and_unwritable_state_are_said_plainly(
    approvals: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: Path
) -> None:
    assert main(["approvals", "list", str(tmp_path / "nowhere")]) == 2
    assert "does not exist" in capsys.readouterr().err
    (tmp_path / "state").write_text("a file", "utf-8")
    status = main(["approvals", "list", str(policy), "--state", str(tmp_path / "state")])

    assert status == 0
    assert main(["approvals", "answer", str(policy), "ask-1", "--once", "--state", str(tmp_path / "state")]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_commands_need_no_valid_policy(approvals: Runner, policy: Path, store: ApprovalStore) -> None:
    policy.write_text("gatewright = 1\nnonsense = true\n", "utf-8")
    store.post(question(), 10)

    assert len(approvals("list", "--json").json["pending"]) == 1


SUSPENDED = ("--call-id", "c1", "--conversation", "chat", "--on-ask", "suspend")


def test_a_composition_that_waits_with_a_step_is_listed_answered_and_resumed_by_commands(
    run: Runner, approvals: Runner, tmp_path: Path, policy: Path
) -> None:
    rights = '[agents.a]\ntools = ["file", "look"]\napprovals = { file = "ask" }\n'
    source = '[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "docs"\n'
    step = '{ tool = "file", arguments = { op = "read", path = "note.md" } }'
    policy.write_text(f'gatewright = 1\n{rights}{source}[[compositions]]\nname = "look"\nsteps = [{step}]\n', "utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "note.md").write_text("hello\n", "utf-8")

    asked = run("call", policy, "--agent", "a", "--tool", "look", *SUSPENDED, "--json")
    assert (asked.status, asked.json["status"], asked.json["verdict"]) == (3, "waiting", "allow")
    question_id = asked.json["question"]["id"]
    listed = approvals("list").out
    assert f"pending {question_id}  a: file read [read_only], suspended for" in listed
    assert "call c1:0 (a step of look) of the conversation chat" in listed
    assert f"waits as {question_id}" in run("call", policy, "--resume", question_id).out
    assert approvals("answer", question_id, "--once").status == 0
    done = run("call", policy, "--resume", question_id, "--json")
    assert (done.status, json.loads(done.json["output"])["data"]["content"]) == (0, "hello\n")


def test_a_suspended_call_is_listed_answered_and_resumed_by_commands(
    run: Runner, approvals: Runner, tmp_path: Path, policy: Path
) -> None:
    rights = '[agents.a]\ntools = ["file"]\napprovals = { file = "ask" }\n'
    source = '[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "docs"\n'
    policy.write_text(f"gatewright = 1\n{rights}{source}", "utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "note.md").write_text("hello\n", "utf-8")
    read = ("call", policy, "--agent", "a", "--tool", "file", "--args", '{"op": "read", "path": "note.md"}', *SUSPENDED)

    asked = run(*read, "--json")
    assert (asked.status, asked.json["status"]) == (3, "waiting")
    question_id = asked.json["question"]["id"]
    assert f"waits as {question_id}" in run(*read).out
    listed = approvals("list")
    assert f"pending {question_id}  a: file read [read_only], suspended for" in listed.out
    assert "call c1 of the conversation chat" in listed.out
    waits = run("call", policy, "--resume", question_id, "--json")
    assert (waits.status, waits.json["status"]) == (3, "waiting")

    assert approvals("answer", question_id, "--once").status == 0
    assert approvals("list").out == "no call waits for an answer, and no answer stands\n"
    done = run("call", policy, "--resume", question_id, "--json")
    assert (done.status, "hello" in done.json["output"]) == (0, True)
    again = run(*read, "--json")
    assert (again.status, again.json["replayed"], again.json["output"]) == (0, True, done.json["output"])
    assert run("call", policy, "--resume", question_id).status == 2

    other = (*read[:7], '{"op": "list"}', *SUSPENDED)
    assert (run(*other).status, run(*other, "--json").json["code"]) == (4, "call-id-reused")


def test_a_question_gone_stale_is_listed_with_the_reason(approvals: Runner, store: ApprovalStore) -> None:
    asked = question(call_key="c1", call_id="claim-1", asked_wall_s=1.0, expires_wall_s=4e9)
    assert store.suspend(asked)
    assert store.suspend(
        question(2, call_key="c1", call_id="claim-1", expires_wall_s=4e9), "ask-1", "the policy has changed"
    )
    assert "stale ask-1  archivist: file append, the policy has changed\n" in approvals("list").out
    assert [(one["id"], one["why"]) for one in approvals("list", "--json").json["stale"]] == [
        ("ask-1", "the policy has changed")
    ]


@pytest.mark.parametrize("words", [(), ("--agent", "a"), ("--resume", "ask-1", "--tool", "file")])
def test_a_call_is_named_by_its_question_or_by_agent_and_tool(
    run: Runner, policy: Path, words: tuple[str, ...]
) -> None:
    assert run("call", policy, *words).status == 2
