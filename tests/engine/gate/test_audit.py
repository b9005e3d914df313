"""The log: what is written when, and that nobody without the key changes it unseen."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import (
    AuditEntry,
    AuditLog,
    AuditReport,
    AuditUnavailable,
    RowKind,
    Status,
    is_durable,
    key_folder,
    state_folder,
)
from gatewright.gate.scrub import cut_to_size
from gatewright.policy.verdict import SafetyTier
from gatewright.record.sealedtable import AnchorFile
from gatewright.tools.declaration import Normalization, ResultType, SideEffect
from gatewright.tools.registry import tool
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, Operator, World
from tests.support.clock import ManualClock

Tamper = Callable[[sqlite3.Connection], object]


def log_of(folder: Path) -> AuditLog:
    return AuditLog(folder / "state", folder / "keys")


def filled(folder: Path, rows: int = 5) -> AuditLog:
    log = log_of(folder)
    for number in range(rows):
        log.append([AuditEntry(RowKind.TOOL_INVOKED, f"call-{number}", "a", "s", "file", "read", {"n": number})])
    return log


def tampered(folder: Path, change: Tamper, rows: int = 5) -> AuditReport:
    log = filled(folder, rows)
    log.close()
    with closing(sqlite3.connect(log.path)) as connection:
        change(connection)
        connection.commit()
    return log_of(folder).verify()


def plain(folder: Path, *told: object) -> tuple[str, ...]:
    """What is told, with the id of a log and the folder of the test by short names."""
    return tuple(re.sub(r"log-[0-9a-f]{16}", "LOG", str(one)).replace(str(folder), "@") for one in told)


def test_untouched_log_is_sound(tmp_path: Path) -> None:
    log = filled(tmp_path)
    report = log.verify()
    log.close()

    assert (report.rows, report.problems) == (6, ())
    fds = Path("/proc/self/fd")
    assert not fds.exists() or not [one for one in fds.iterdir() if str(tmp_path) in os.path.realpath(one)]


def test_row_of_somebody_who_died_before_moving_the_anchor_is_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, other = filled(tmp_path, 1), log_of(tmp_path)
    other.append([AuditEntry(RowKind.TOOL_INVOKED, "call-1")])

    def dies(*_: object) -> None:
        raise OSError(errno.EIO, "gone")

    monkeypatch.setattr(AnchorFile, "write", dies)
    with pytest.raises(AuditUnavailable, match="gone"):
        log.append([AuditEntry(RowKind.TOOL_INVOKED, "call-2")])
    monkeypatch.undo()
    other.append([AuditEntry(RowKind.TOOL_INVOKED, "call-3")])
    report = other.verify()
    for one in (log, other):
        one.close()

    assert (report.rows, report.problems) == (5, ())
    assert [row.call_id for row in other.rows()] == ["", "call-0", "call-1", "call-2", "call-3"]


def test_call_that_was_begun_and_never_ended_is_told_and_is_no_problem(tmp_path: Path) -> None:
    log = filled(tmp_path, 7)
    for number, end in enumerate(tuple(RowKind)[-5:]):
        log.append([AuditEntry(RowKind.POLICY_DECISION, f"call-{number + 1}"), AuditEntry(end, f"call-{number + 1}")])
    report = log.verify()
    log.close()

    assert report.is_sound
    assert [(row.call_id, row.agent, row.tool) for row in report.unended] == [
        ("call-0", "a", "file"),
        ("call-6", "a", "file"),
    ]


CHANGED = "row {} was changed, moved or added"


@pytest.mark.parametrize(
    ("statement", "rows", "proved_to", "problems"),
    [
        ("UPDATE rows SET body = replace(body, '2', '3') WHERE seq = 4", 5, 3, [CHANGED.format(4)]),
        ("UPDATE rows SET time = '2020' WHERE seq = 2", 5, 1, [CHANGED.format(2)]),
        ("UPDATE rows SET agent = 'b' WHERE seq = 6", 5, 5, [CHANGED.format(6)]),
        ("UPDATE rows SET agent = x'00ff' WHERE seq = 3", 5, 2, ["row 3 is unreadable"]),
        ("UPDATE rows SET mac = 'x' WHERE seq = 3", 4, 2, [CHANGED.format(3), CHANGED.format(4)]),
        ("UPDATE rows SET mac = x'00' WHERE seq = 3", 4, 2, [CHANGED.format(3)]),
        ("DELETE FROM rows WHERE seq = 3", 4, 2, ["row 3 is missing, so row 4 is not proved"]),
        ("DELETE FROM rows WHERE seq IN (3, 4)", 3, 2, ["rows 3 to 4 are missing, so row 5 is not proved"]),
        ("DELETE FROM rows WHERE seq = 1", 0, 0, ["the first row names no log"]),
        ("DELETE FROM rows WHERE seq > 3", 3, 3, ["the log ends after row 3, but its anchor is at row 6"]),
        ("DELETE FROM rows", 0, 0, ["the log `LOG` with 6 rows is missing"]),
        (
            "UPDATE rows SET body = replace(body, 'log-', 'log+') WHERE seq = 1",
            0,
            0,
            ["the key of the log `LOG` is not in `@/keys`"],
        ),
        (
            "INSERT INTO rows SELECT 7, time, kind, call_id, agent, '', tool, operation, body, mac FROM rows LIMIT 1",
            6,
            6,
            [CHANGED.format(7)],
        ),
    ],
)
def test_change_without_the_key_is_found(
    tmp_path: Path, statement: str, rows: int, proved_to: int, problems: list[str]
) -> None:
    report = tampered(tmp_path, lambda connection: connection.execute(statement))

    said = plain(tmp_path, *(problem.replace("log+", "log-") for problem in report.problems))
    assert (report.rows, report.proved_to, said) == (rows, proved_to, tuple(problems))


@pytest.mark.parametrize("rows", [50, 51])
def test_no_more_than_fifty_problems_are_told_and_how_many_more_there_are(tmp_path: Path, rows: int) -> None:
    report = tampered(tmp_path, lambda connection: connection.execute("UPDATE rows SET agent = '' WHERE seq > 1"), rows)
    told = [CHANGED.format(seq) for seq in range(2, 52)]

    assert report.problems == (*told, *(["and 1 more problems"] * (rows - 50)))


def test_report_and_rows_say_themselves_as_json(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "state", tmp_path / "keys", clock=ManualClock(1_790_000_000.0))
    log.append([AuditEntry(RowKind.TOOL_INVOKED, "call-1", "a", "s", "file", "read", {"n": "é"})] * 600)
    (row,) = log.rows(after=600)
    reached = list(log.verify_in_pieces())
    report = log.verify()
    log.close()
    time = "2026-09-21T14:13:20.000Z"

    assert row.to_json() == {
        "seq": 601, "time": time, "kind": "ToolInvoked", "call_id": "call-1", "agent": "a", "session": "s",
        "tool": "file", "operation": "read", "body": {"n": "é"}, "mac": row.mac,
    }  # fmt: skip
    assert '"body": {"n": "é"}' in row.to_line()
    spoiled = replace(row, body="[]", agent=b"\x00", session=None)  # pyright: ignore[reportArgumentType]
    assert [spoiled.to_json()[name] for name in ("body", "agent", "session")] == ["[]", "b'\\x00'", None]
    assert reached == [1, 251, 501]
    unended: list[JsonValue] = [{"call_id": "call-1", "agent": "a", "tool": "file", "time": time}]
    assert report.to_json() == {"rows": 601, "sound": True, "problems": [], "unended": unended}


def test_swapped_rows_are_found(tmp_path: Path) -> None:
    def swap(connection: sqlite3.Connection) -> None:
        for old, new in ((2, 99), (3, 2), (99, 3)):
            connection.execute("UPDATE rows SET seq = ? WHERE seq = ?", (new, old))

    assert tampered(tmp_path, swap).problems == tuple(CHANGED.format(seq) for seq in (2, 3, 4))


def test_removed_log_is_found_and_one_in_its_place(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    shutil.rmtree(log.path.parent)
    assert plain(tmp_path, *log_of(tmp_path).verify().problems) == ("the log `LOG` with 6 rows is missing",)

    again = filled(tmp_path, 1)
    problems = again.verify().problems
    again.close()

    assert plain(tmp_path, *problems) == ("another log, `LOG` with 6 rows, lay here before",)


def test_log_that_was_moved_goes_on_once_somebody_says_so_and_a_copy_or_a_changed_one_never_does(
    tmp_path: Path,
) -> None:
    log = filled(tmp_path, 2)
    log.close()
    shutil.copytree(log.path.parent, tmp_path / "other" / "state")
    other = AuditLog(tmp_path / "other" / "state", tmp_path / "keys")
    AuditLog(tmp_path / "none", tmp_path / "keys").accept_move("dana")

    def refusals() -> set[str]:
        told = set[str]()
        for act in (other.check, lambda: other.append([AuditEntry(RowKind.TOOL_INVOKED)])):
            with pytest.raises(AuditUnavailable) as caught:
                act()
            told |= {*plain(tmp_path, caught.value, *other.verify().problems)}
        return told

    copied = "this is a copy of the audit log in `@/state`; move it away to begin a new one here"
    assert refusals() == {copied}
    with pytest.raises(AuditUnavailable) as caught:
        other.accept_move("dana")
    assert plain(tmp_path, caught.value) == (copied,)

    log.path.write_bytes(b"no database at all" * 100)
    kept = "the audit log was kept in `@/state` until now; if the workspace was moved here, `gatewright audit verify "
    assert refusals() == {f"{kept}--moved` continues it; if not, move it away to begin a new one"}
    changing = "UPDATE rows SET agent = '{}' WHERE seq = 2"
    with closing(sqlite3.connect(other.path)) as connection:
        connection.execute(changing.format("b"))
        connection.commit()
        with pytest.raises(AuditUnavailable) as caught:
            other.accept_move("dana")
        connection.execute(changing.format("a"))
        connection.commit()
    unsound = "the audit log `@/other/state/audit.sqlite3` failed verification: row 2 was changed, moved or added"
    assert plain(tmp_path, caught.value) == (unsound,)

    for _ in range(2):
        other.accept_move("dana")
    other.append([AuditEntry(RowKind.TOOL_INVOKED)])
    report, rows = other.verify(), list(other.rows(after=3))
    other.close()

    assert (report.rows, report.problems, [row.kind for row in rows]) == (5, (), ["LogMoved", "ToolInvoked"])
    body = '{"from":"@/state","log":"LOG","to":"@/other/state","who":"dana"}'
    assert plain(tmp_path, rows[0].body) == (body,)


def test_digests_and_the_key_of_proofs_are_those_of_the_log(tmp_path: Path) -> None:
    assert (log_of(tmp_path).proof_key(), log_of(tmp_path).proof_key("log-0123456789abcdef")) == (None, None)
    log, again = filled(tmp_path, 1), log_of(tmp_path)
    digests = [one.digest({"a": 1}) for one in (log, again)]
    keys = [one.proof_key() for one in (log, again, log_of(tmp_path))]
    other = filled(tmp_path / "other", 1)

    assert digests == [digests[0]] * 2
    assert keys == [keys[0]] * 3
    assert keys[0] is not None
    assert keys[0][0] in next(log.rows()).body
    assert log.proof_key(keys[0][0]) == keys[0]
    assert other.proof_key() not in (None, keys[0])
    assert {other.digest({"a": 1}), log.digest({"a": 2})}.isdisjoint(digests)
    for one in (log, again, other):
        one.close()


def test_old_copy_of_the_log_is_found(tmp_path: Path) -> None:
    log = filled(tmp_path, 2)
    log.close()
    shutil.copytree(log.path.parent, tmp_path / "copy")
    log.append([AuditEntry(RowKind.TOOL_DENIED)])
    log.close()
    shutil.rmtree(log.path.parent)
    shutil.move(tmp_path / "copy", log.path.parent)

    assert log_of(tmp_path).verify().problems == ("the log ends after row 3, but its anchor is at row 4",)


def test_two_processes_continue_one_chain(tmp_path: Path) -> None:
    one, other = filled(tmp_path, 1), log_of(tmp_path)
    for log in (other, one, other):
        log.append([AuditEntry(RowKind.TOOL_INVOKED)])
    report = one.verify()
    one.close()
    other.close()

    assert (report.rows, report.problems) == (5, ())


def test_log_without_its_key_is_a_clear_error(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    shutil.rmtree(tmp_path / "keys")
    again = log_of(tmp_path)

    missing = "its key is not in `@/keys`; put the key back, or move the log away to begin a new one"
    for act in (again.check, lambda: again.append([AuditEntry(RowKind.TOOL_INVOKED)]), lambda: again.digest(1)):
        with pytest.raises(AuditUnavailable) as caught:
            act()
        assert plain(tmp_path, caught.value) == (f"the audit log `@/state/audit.sqlite3` exists but {missing}",)
    assert plain(tmp_path, *again.verify().problems) == ("the key of the log `LOG` is not in `@/keys`",)
    assert again.proof_key() is None


def test_key_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    filled(tmp_path).close()
    modes = {path.suffix: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "keys").iterdir()}

    assert modes == {".key": 0o600, ".anchor": 0o600}


def test_asking_an_absent_log_makes_nothing(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.check()

    assert (list(log.rows()), log.verify().problems) == ([], ())
    assert not list(tmp_path.iterdir())


async def test_rows_stand_before_execution(world: World) -> None:
    seen: list[list[str]] = []

    original = type(world.counter).execute

    async def spied(self: object, *given: object) -> object:
        seen.append(world.row_kinds())
        return await original(world.counter, *given)  # pyright: ignore[reportArgumentType]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.counter), "execute", spied)
        await world.call("counter", {"op": "up"})

    assert seen == [["ToolInvoked", "PolicyDecision"]]
    assert world.row_kinds() == ["ToolInvoked", "PolicyDecision", "ToolCompleted"]


async def test_arguments_are_kept_without_their_secrets(world: World) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    await world.call("echo", {"text": f"use {token} there"})
    await world.call("echo", {"text": "trout"})
    await world.call("echo", {"text": "trout"})
    assert world.audit is not None
    bodies = [json.loads(row.body) for row in world.audit.rows() if row.kind == "ToolInvoked"]
    world.audit.close()

    assert all(token.encode() not in path.read_bytes() for path in world.audit.path.parent.iterdir())
    assert bodies[0]["scrubbed"] == 1
    assert bodies[1]["arguments"] == {"text": "trout"}
    assert set(bodies[1]) == {"arguments", "digest"}
    assert bodies[0]["digest"] != bodies[1]["digest"] == bodies[2]["digest"]


async def test_large_arguments_are_cut_and_the_row_says_what_is_missing(world: World) -> None:
    deep: object = "x"
    for _ in range(20):
        deep = {"a": [deep]}
    await world.call("echo", {"text": "y" * 100_000})
    await world.call("echo", {"many": list(range(10_000)), "deep": deep})
    await world.call("echo", {f"key{number}": "z" * 1000 for number in range(500)})
    await world.call("echo", {"k" * 5000: 1})
    assert world.audit is not None
    rows = [row for row in world.audit.rows() if row.kind == "ToolInvoked"]
    cuts = [json.loads(row.body)["cut"] for row in rows[:3]]

    assert cuts[0] == ["/text: 98,000 of 100,000 characters left out"]
    assert cuts[1] == ["/many: 9,936 of 10,000 items left out", "/deep/a/0/a/0/a/0/a: deeper values left out"]
    assert cuts[2] == ["/key15: 70 of 1,000 characters left out", "/: 484 of 500 fields left out"]
    assert all(len(row.body) < 25_000 for row in rows)


def test_arguments_are_cut_exactly_where_they_are_too_long_or_too_deep() -> None:
    def nested(depth: int, *, listed: bool = False) -> Any:
        value: Any = "x"
        for _ in range(depth):
            value = [value] if listed else {"a": value}
        return {"a": value}

    deeper = "deeper values left out"
    many = {str(number): number for number in range(65)}
    long = {"b" * 90: {"c" * 90: {"d" * 90: {"e" * 90: {"f" * 90: "x" * 2001}}}}}
    rows = {str(number): [0] * 64 for number in range(40)}
    bounds: list[tuple[Any, Any, list[str]]] = [
        ({"t": "x" * 2000, "e": {"f": []}, "n": None}, None, []),
        ({"t": "x" * 2001}, {"t": "x" * 2000}, ["/t: 1 of 2,001 characters left out"]),
        ({"\ud800": "\ud800" * 2}, {"?": "??"}, []),
        ({"\ud800" * 101: "\ud800" * 2000}, {"?" * 100: "?" * 2000}, []),
        ({"k" * 100: 1}, None, []),
        ({"k" * 101: 1}, {"k" * 100: 1}, []),
        ({"l": [0] * 64}, None, []),
        ({"l": [0] * 65}, {"l": [0] * 64}, ["/l: 1 of 65 items left out"]),
        ({"d": many}, {"d": dict(list(many.items())[:64])}, ["/d: 1 of 65 fields left out"]),
        (nested(7), None, []),
        (nested(8), {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": None}}}}}}}}, [f"{'/a' * 8}: {deeper}"]),
        (nested(7, listed=True), None, []),
        (nested(8, listed=True), {"a": [[[[[[[None]]]]]]]}, [f"/a{'/0' * 7}: {deeper}"]),
        (
            {"a": ["x" * 2000] * 7, "b": ["y" * 2000] * 2, "c": 1},
            {"a": ["x" * 2000] * 7, "b": ["y" * 1998]},
            ["/b/0: 2 of 2,000 characters left out", "/b: 1 of 2 items left out", "/: 1 of 3 fields left out"],
        ),
        (
            rows,
            {**{str(number): [0] * 64 for number in range(31)}, "31": [0] * 10},
            ["/31: 54 of 64 items left out", "/: 8 of 40 fields left out"],
        ),
        (
            {"a": long},
            {"a": {"b" * 90: {"c" * 90: {"d" * 90: {"e" * 90: {"f" * 90: "x" * 2000}}}}}},
            ["/" + "/".join(["a", *(letter * 90 for letter in "bcde"), "f" * 33])],
        ),
    ]  # fmt: skip
    for arguments, kept, notes in bounds:
        assert cut_to_size(arguments) == (arguments if kept is None else kept, notes)
    deep: dict[str, Any] = {str(number): [[[[[[[[0]]]]]]]] for number in range(65)}
    assert len(cut_to_size(deep)[1]) == 64


async def test_capabilities_that_were_checked_are_recorded_before_the_decision(make_world: MakeWorld) -> None:
    @tool(
        side_effects=[SideEffect.NET_READ],
        safety_tier=SafetyTier.READ_ONLY,
        result_type=ResultType.STRING,
        normalization=Normalization.JSON,
    )
    async def fetch(text: str) -> str:
        """Fetch something.

        Args:
            text: What.
        """
        return text

    granted = POLICY.replace('"vault"]', '"vault", "fetch"]\ncapabilities = [{ NetRead = { allowlist = ["*"] } }]')
    world = make_world(granted, fetch)
    await world.call("fetch", {"text": "a"})
    assert world.audit is not None
    check = next(row for row in world.audit.rows() if row.kind == "CapabilityCheck")

    assert world.row_kinds() == ["ToolInvoked", "CapabilityCheck", "PolicyDecision", "ToolCompleted"]
    assert json.loads(check.body) == {
        "kinds": ["NetRead"],
        "checks": [{"kind": "NetRead", "target": "", "allowed": True}],
        "allowed": True,
    }


@pytest.mark.parametrize("how", ["folder is a file", "log is not a database", "key folder is a file"])
async def test_call_that_cannot_be_recorded_is_not_made(world: World, how: str) -> None:
    if how == "folder is a file":
        (world.folder / "state").write_text("", "utf-8")
    elif how == "log is not a database":
        (world.folder / "state").mkdir()
        (world.folder / "state" / "audit.sqlite3").write_bytes(b"no database at all" * 100)
    else:
        (world.folder / "keys").write_text("", "utf-8")
    outcome = await world.call("counter", {"op": "up"})
    asked = await world.call("vault", {}, approver=(operator := Operator()))
    early = await world.call("teleport", {})

    assert (outcome.status, outcome.decision.stage, outcome.code) == (Status.DENIED, "execute", "audit-unavailable")
    assert world.counter.value == 0
    assert (asked.status, asked.code, operator.requests) == (Status.DENIED, "audit-unavailable", [])
    assert (early.status, early.code) == (Status.DENIED, "unknown-tool")
    assert str(world.folder) not in outcome.output


async def test_slot_is_given_back_when_the_call_cannot_be_recorded(world: World) -> None:
    from gatewright.gate import Session

    (world.folder / "state").write_text("", "utf-8")
    session = Session()
    await world.call("counter", {"op": "up"}, session=session)

    assert session.calls("counter") == 0


async def test_log_replaced_while_open_denies_the_call(world: World) -> None:
    await world.call("counter", {"op": "up"})
    assert world.audit is not None
    shutil.rmtree(world.audit.path.parent)
    outcome = await world.call("counter", {"op": "up"})

    assert outcome.code == "audit-unavailable"
    assert world.counter.value == 1


async def test_hostile_names_do_not_break_the_log(world: World) -> None:
    outcome = await world.call("\ud800\x00" * 500, {"\ud800": 1})

    assert outcome.status is Status.DENIED
    assert world.row_kinds() == ["ToolInvoked", "PolicyDecision", "ToolDenied"]
    assert world.audit is not None
    assert world.audit.verify().is_sound


async def test_gate_without_a_log_records_nothing(make_world: MakeWorld) -> None:
    world = make_world(audited=False)

    assert (await world.call("counter", {"op": "up"})).status is Status.ALLOWED
    assert not (world.folder / "state").exists()


def test_state_lies_beside_the_policy_unless_told_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tmp_path / "policy.toml"

    assert state_folder(policy) == tmp_path / ".gatewright"
    monkeypatch.setenv("GATEWRIGHT_STATE", str(tmp_path / "elsewhere"))
    assert state_folder(policy) == tmp_path / "elsewhere"
    assert state_folder(policy, tmp_path / "explicit") == tmp_path / "explicit"


def test_keys_lie_in_the_users_data_folder_unless_told_otherwise(
    tmp_path: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert key_folder() == user_home / "keys"
    monkeypatch.delenv("GATEWRIGHT_KEYS")
    assert key_folder() == user_home / ".local" / "share" / "gatewright" / "keys"
    assert key_folder(tmp_path) == tmp_path


def test_rows_outlast_a_loss_of_power_where_somebody_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [is_durable(), is_durable(True), is_durable(False)] == [False, True, False]
    for said, durable in {"1": True, " On": True, "TRUE": True, "yes": True, "0": False, "2": False}.items():
        monkeypatch.setenv("GATEWRIGHT_DURABLE", said)
        assert [is_durable(), is_durable(True), is_durable(False)] == [durable, True, False]


def test_row_that_cannot_be_written_leaves_the_log_open_to_others(tmp_path: Path) -> None:
    log, other = log_of(tmp_path), log_of(tmp_path)
    log.append([AuditEntry(RowKind.TOOL_INVOKED, "call-1")])
    with pytest.raises(TypeError):
        log.append([AuditEntry(RowKind.TOOL_INVOKED, "call-2", body={"n": object()})])  # pyright: ignore[reportArgumentType]
    other.append([AuditEntry(RowKind.TOOL_INVOKED, "call-3")])

    assert [row.call_id for row in other.rows()] == ["", "call-1", "call-3"]
    log.close()
    other.close()


def test_log_that_is_a_link_to_another_file_is_not_written(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "foreign.sqlite")) as connection:
        connection.execute("CREATE TABLE cookies (value TEXT)")
    before = (tmp_path / "foreign.sqlite").read_bytes()
    (tmp_path / "state").mkdir()
    (tmp_path / "state/audit.sqlite3").symlink_to(tmp_path / "foreign.sqlite")

    with pytest.raises(AuditUnavailable, match="symbolic link"):
        log_of(tmp_path).append([AuditEntry(RowKind.TOOL_INVOKED)])
    assert (tmp_path / "foreign.sqlite").read_bytes() == before


def test_a_log_that_cannot_be_read_is_never_an_empty_one(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    with closing(sqlite3.connect(log.path)) as connection:
        connection.execute("DELETE FROM rows WHERE seq = 1")
        connection.commit()
    with pytest.raises(AuditUnavailable, match=r"cannot be written: its first row names no log$"):
        log.append([AuditEntry(RowKind.TOOL_INVOKED)])
    log.path.write_bytes(b"no database at all" * 100)
    with pytest.raises(AuditUnavailable, match="cannot be read"):
        list(log_of(tmp_path).rows())
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "state").write_text("a file where the folder should be", "utf-8")
    with pytest.raises(AuditUnavailable, match=r"^the audit log `.*audit\.sqlite3` cannot be opened: "):
        log_of(tmp_path).check()


def test_nobody_else_may_look_into_the_folder_of_the_log(tmp_path: Path) -> None:
    filled(tmp_path).close()
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
