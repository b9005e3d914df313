"""A workspace of somebody else brings a state folder along: what lies in it is opened as what it is, or not at all."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from gatewright import Session, Workspace, WorkspaceError
from gatewright.policy.verdict import Verdict

POLICY = """
gatewright = 1
[agents.a]
tools = ["file", "block"]
sources = ["d"]
[[agents.a.tool_rules]]
tool_name = "file"
rule_type = { RateLimit = { calls = 5, per = "1m" } }
[[sources]]
id = "d"
type = "file"
base_path = "d"
"""
STORES = ("rates.sqlite", "memory.sqlite", "audit.sqlite3", "approvals.sqlite")
READ, LOAD = '{"op": "read", "path": "x"}', '{"op": "load", "path": "x"}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(tmp_path / "keys"))
    (tmp_path / "home").mkdir()
    with sqlite3.connect(tmp_path / "home/places.sqlite") as places:
        places.execute("CREATE TABLE mine (x)")
    places.close()
    ws = tmp_path / "ws"
    (ws / "d").mkdir(parents=True)
    (ws / "d/x").write_text("x\n")
    (ws / "policy.toml").write_text(POLICY)
    return ws


def everything(folder: Path) -> dict[str, bytes | None]:
    """The files of a folder with their content, and what else lies there."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def to_a_strangers_file(path: Path, home: Path) -> None:
    path.symlink_to(home / "places.sqlite")


def to_nothing(path: Path, home: Path) -> None:
    path.symlink_to(home / "new_file")


def second_name(path: Path, home: Path) -> None:
    path.hardlink_to(home / "places.sqlite")


def pipe(path: Path, _home: Path) -> None:
    os.mkfifo(path)


def device(path: Path, _home: Path) -> None:
    path.symlink_to("/dev/zero")


def subfolder(path: Path, _home: Path) -> None:
    path.mkdir()


WORK = """
import asyncio, sys
from gatewright import Workspace
workspace = Workspace.open(sys.argv[1])
for arguments in sys.argv[2:]:
    print("decide", workspace.gate.decide("a", "file", arguments).verdict.value)
    print("call", asyncio.run(workspace.gate.call("a", "file", arguments)).status)
workspace.broker.pending()
workspace.close()
"""


def used(folder: Path) -> list[str]:
    """What a process of its own gets, which hangs where it would."""
    command = [sys.executable, "-c", WORK, str(folder), READ, LOAD]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("put", [to_a_strangers_file, to_nothing, second_name, pipe, device, subfolder])
@pytest.mark.parametrize("side", ["", "-wal", "-shm"])
def test_nothing_is_written_or_waited_for_through_what_lies_in_the_place_of_a_store(
    folder: Path, side: str, put: object
) -> None:
    assert callable(put)
    if side:
        used(folder)
    (folder / ".gatewright").mkdir(exist_ok=True)
    for store in STORES:
        (folder / f".gatewright/{store}{side}").unlink(missing_ok=True)
        put(folder / f".gatewright/{store}{side}", folder.parent / "home")
    before = everything(folder.parent / "home")

    said = used(folder)

    assert [line for line in said if line.startswith("call")] == ["call denied", "call denied"]
    assert everything(folder.parent / "home") == before


def test_store_that_cannot_be_read_is_told_to_the_operator_in_one_line_and_to_the_model_in_none(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / ".gatewright").mkdir()
    os.mkfifo(folder / ".gatewright/memory.sqlite")
    with Workspace.open(folder) as workspace:
        outcome = asyncio.run(workspace.call("a", "file", READ))

    assert (outcome.status, outcome.code) == ("failed", "tool-crashed")
    assert "memory.sqlite" not in str(outcome.output)
    (told,) = (row for row in caplog.records if row.name == "gatewright.gate.stages.execute")
    assert told.getMessage().startswith("the tool `file` raised: the block store")
    assert (told.exc_info, told.exc_text) == (None, None)


@pytest.mark.parametrize("store", STORES)
def test_journal_that_names_a_file_does_not_cost_that_file(folder: Path, store: str) -> None:
    used(folder)
    path, victim = folder / f".gatewright/{store}", folder.parent / "home/letter"
    if not path.exists():
        with sqlite3.connect(path) as made:
            made.execute("CREATE TABLE t (x)")
        made.close()
    victim.write_text("mine")
    name = str(victim).encode()
    page = 4096
    header = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 0, path.stat().st_size // page, 512, page)
    tail = struct.pack(">I", 1) + name + struct.pack(">II", len(name), sum(name)) + bytes.fromhex("d9d505f920a163d7")
    (folder / f".gatewright/{store}-journal").write_bytes(header.ljust(512, b"\0") + tail)

    used(folder)

    assert victim.read_text() == "mine"


def test_state_folder_that_is_a_link_is_refused_unless_it_was_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / ".gatewright").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorkspaceError, match=r"symbolic link.*--state"):
        Workspace.open(folder)
    assert list((tmp_path / "elsewhere").iterdir()) == []

    (tmp_path / "named").symlink_to(tmp_path / "elsewhere")
    workspace = Workspace.open(folder, state=tmp_path / "named")
    assert asyncio.run(workspace.gate.call("a", "file", READ)).status == "allowed"
    workspace.close()
    assert (tmp_path / "elsewhere/audit.sqlite3").exists()


def test_sessions_folder_that_is_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (folder / ".gatewright").mkdir()
    (folder / ".gatewright/sessions").symlink_to(tmp_path / "home")
    workspace = Workspace.open(folder)
    with pytest.raises(WorkspaceError, match="symbolic link"):
        workspace.sessions.save(Session("one"))
    with pytest.raises(WorkspaceError, match="symbolic link"):
        workspace.sessions.list()
    workspace.close()
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["places.sqlite"]


def test_link_in_the_place_of_a_session_is_neither_read_nor_written(folder: Path, tmp_path: Path) -> None:
    workspace = Workspace.open(folder)
    workspace.sessions.save(Session("one"))
    (path,) = (folder / ".gatewright/sessions").glob("s-one*")
    path.rename(tmp_path / "home/letter")
    before = everything(tmp_path / "home")
    path.symlink_to(tmp_path / "home/letter")

    with pytest.raises(WorkspaceError, match="symbolic link"):
        workspace.sessions.load("one")
    with pytest.raises(WorkspaceError, match="symbolic link"):
        workspace.sessions.save(Session("one"))
    workspace.close()
    assert everything(tmp_path / "home") == before


def test_deciding_leaves_the_state_folder_as_it_was(folder: Path) -> None:
    workspace = Workspace.open(folder)
    assert workspace.gate.decide("a", "file", LOAD).verdict is Verdict.ALLOW
    workspace.close()
    assert not (folder / ".gatewright").exists()

    used(folder)
    before = {name: content for name, content in everything(folder / ".gatewright").items() if content}
    workspace = Workspace.open(folder)
    workspace.gate.decide("a", "file", LOAD)
    workspace.close()
    after = everything(folder / ".gatewright")
    assert {name: after.get(name) for name in before} == before


STARTS = "step_s REAL, count INTEGER, key TEXT"
HOSTILE_TABLES = {
    "a column that is worked out": f"CREATE TABLE starts ({STARTS}, last_s AS (hex(zeroblob(60000000 + step_s))))",
    "a virtual table": "CREATE /* none */ VIRTUAL TABLE starts USING fts5(key, step_s, last_s, count)",
    "an index of an expression": f"CREATE TABLE starts ({STARTS}, last_s REAL); CREATE INDEX i ON starts (abs(count))",
    "a condition": f"CREATE TABLE starts ({STARTS}, last_s REAL, CHECK /**/ (length(hex(zeroblob(100000000))) > 0))",
    "a default that is worked out": f"CREATE TABLE starts ({STARTS}, last_s DEFAULT (hex(zeroblob(100000000))))",
    "a view": "CREATE VIEW starts AS SELECT 'k' AS key, 0 AS step_s, 0 AS last_s, 0 AS count",
}


@pytest.mark.parametrize("script", HOSTILE_TABLES.values(), ids=HOSTILE_TABLES)
def test_a_store_that_holds_more_than_plain_tables_is_not_read(folder: Path, script: str) -> None:
    (folder / ".gatewright").mkdir(mode=0o700)
    with sqlite3.connect(folder / ".gatewright/rates.sqlite") as rates:
        rates.executescript(script)
    rates.close()
    with Workspace.open(folder) as workspace:
        decision = workspace.decide("a", "file", READ)
    assert (decision.verdict, decision.code) == (Verdict.DENY, "rates-unavailable")
    assert "more than plain tables" in decision.reason


def test_a_rate_that_counts_less_than_nothing_denies(folder: Path) -> None:
    with Workspace.open(folder) as workspace:
        assert asyncio.run(workspace.call("a", "file", READ)).status == "allowed"
    with sqlite3.connect(folder / ".gatewright/rates.sqlite") as rates:
        rates.execute("UPDATE starts SET count = -1000000")
    rates.close()
    with Workspace.open(folder) as workspace:
        assert workspace.decide("a", "file", READ).code == "rates-unavailable"
