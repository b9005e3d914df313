"""The stop of all agents, or of one, as the command, a program and other processes see it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.base.errors import WorkspaceError
from gatewright.cli.main import main
from gatewright.gate import AuditRow, Gate, ProvenCall, Stop, StopSwitch
from gatewright.gate.stop import FILE_NAME
from gatewright.policy.verdict import Verdict
from gatewright.tools import ToolRegistry
from gatewright.tools.pin import Pin, accept, write_pin
from gatewright.workspace import Status, Workspace
from tests.engine.workspace.stopped_process import Beat
from tests.support.checkout import ROOT
from tests.support.patience import pause_until, until

GOOD = str(ROOT / "tests" / "support" / "good_server.py")
POLICY = """gatewright = 1

[agents.clerk]
tools = ["beat", "shell_exec", "add"]
capabilities = ["Exec"]
approvals = { beat = "allow", shell_exec = "allow", add = "allow" }

[agents.guest]
tools = ["beat"]
approvals = { beat = "allow" }

[workspace]
roots = { shared = "shared" }
shell = { backend = "session", allow = ["echo"], confine = "none" }
"""
SERVER = f"""
[[catalogs]]
id = "far"
type = "mcp"
confine = "none"
command = {json.dumps(sys.executable)}
args = {json.dumps([GOOD, "stdio"])}
"""
ONCE = {"op": "once"}
Open = Callable[[], Workspace]


@pytest.fixture(scope="module")
def pin(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the good server lists, asked through a workspace."""
    folder = tmp_path_factory.mktemp("asked")
    (folder / "policy.toml").write_text(f"gatewright = 1\n{SERVER}")
    with Workspace.open(folder, keys=folder / "keys", trust=True) as workspace:
        return write_pin(accept(Pin(asyncio.run(workspace.servers.list("far"))), None))


@pytest.fixture
def folder(tmp_path: Path, pin: bytes) -> Path:
    folder = tmp_path / "ws"
    (folder / "catalogs").mkdir(parents=True)
    (folder / "shared").mkdir()
    (folder / "policy.toml").write_text(POLICY + SERVER)
    (folder / "catalogs" / "far.json").write_bytes(pin)
    return folder


@pytest.fixture
def opened(folder: Path) -> Iterator[Open]:
    held: list[Workspace] = []

    def make() -> Workspace:
        held.append(Workspace.open(folder, tools=[Beat(folder)]))
        return held[-1]

    yield make
    for workspace in held:
        workspace.close()


def rows(workspace: Workspace, *kinds: str) -> list[AuditRow]:
    return [row for row in workspace.audit.rows() if row.kind in kinds]


def code(workspace: Workspace, agent: str = "clerk") -> str:
    return workspace.decide(agent, "beat", ONCE).code


def run(*words: str | Path) -> int:
    return main([str(word) for word in words])


async def test_a_stop_denies_every_call_everywhere_until_it_is_lifted(opened: Open, folder: Path) -> None:
    here, there = opened(), opened()
    assert (await here.call("clerk", "beat", ONCE)).status is Status.ALLOWED
    stop = there.stops.pull("ann", "it pays twice")
    decision = here.decide("clerk", "no-such-tool", "not even JSON {}")
    assert decision.stage == "parse"
    decision = here.decide("clerk", "beat", ONCE)
    assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "lookup", "stopped")
    assert "ann stopped all agents at" in decision.reason
    assert "it pays twice" in decision.reason
    outcome = await here.call("guest", "beat", ONCE)
    assert (outcome.status, outcome.code) == (Status.DENIED, "stopped")
    assert not any(word in outcome.output for word in ("ann", "twice", "beat", "guest", "clerk"))
    assert here.stops.look() == there.stops.look()
    assert [one.stop_id for one in here.stops.lift("bob")] == [stop.stop_id]
    assert (await there.call("clerk", "beat", ONCE)).status is Status.ALLOWED
    pulled, lifted = rows(here, "StopPulled", "StopLifted")
    assert json.loads(pulled.body) | {"since": ""} == {
        "stop": stop.stop_id,
        "all": True,
        "who": "ann",
        "why": "it pays twice",
        "since": "",
    }
    assert json.loads(lifted.body)["who"] == "bob"
    assert here.audit.verify().is_sound
    assert not (folder / ".gatewright" / FILE_NAME).exists()


def test_the_stop_of_one_agent_leaves_the_others_alone(opened: Open) -> None:
    workspace = opened()
    workspace.stops.pull("ann", agent_id="guest")
    assert (code(workspace), code(workspace, "guest")) == ("allowed", "stopped")
    workspace.stops.pull("ann")
    assert code(workspace) == "stopped"
    assert [one.agent_id for one in workspace.stops.lift("ann")] == [""]
    assert (code(workspace), code(workspace, "guest")) == ("allowed", "stopped")
    assert workspace.stops.lift("ann", "clerk") == ()
    assert [one.agent_id for one in workspace.stops.lift("ann", "guest")] == ["guest"]
    assert code(workspace, "guest") == "allowed"


def test_what_a_model_sees_and_the_self_check_stay_the_same(opened: Open) -> None:
    workspace = opened()
    before, check = workspace.view("clerk").tools, workspace.selfcheck(afresh=True)
    workspace.stops.pull("ann")
    assert workspace.view("clerk").tools == before
    assert workspace.selfcheck(afresh=True) == check


async def test_a_proof_of_a_stopped_call_holds_before_and_after_the_stop(opened: Open) -> None:
    workspace = opened()
    fine = workspace.decide("clerk", "beat", ONCE).proof
    workspace.stops.pull("ann")
    stopped = (await workspace.call("clerk", "beat", ONCE)).decision.proof
    call = ProvenCall("clerk", "beat", ONCE)
    assert workspace.gate.verify(fine, call).holds
    assert workspace.gate.verify(stopped, call).holds
    workspace.stops.lift("ann")
    assert workspace.gate.verify(stopped, call).holds


async def test_a_running_call_ends_within_a_moment(opened: Open) -> None:
    workspace = opened()
    running = asyncio.ensure_future(workspace.call("clerk", "beat", {"op": "ever"}))
    other = asyncio.ensure_future(workspace.call("guest", "beat", {"op": "ever"}))
    await until(lambda: len(workspace.stops.running) == 2)
    opened().stops.pull("ann", "enough", "clerk")
    outcome = await running
    assert (outcome.status, outcome.code) == (Status.ABANDONED, "stopped")
    assert "enough" in outcome.detail
    assert "enough" not in outcome.output
    assert not other.done()
    other.cancel()
    with suppress(asyncio.CancelledError):
        await other
    assert [row.agent for row in rows(workspace, "StopPulled", "ToolAbandoned")] == ["clerk", "clerk", "guest"]


STRANGE: tuple[Callable[[Path], object], ...] = (
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(b"\xff" * 100),
    lambda path: path.write_bytes(b"[" * 100_000),
    lambda path: path.write_text('{"stops": []}'),
    lambda path: path.write_text('{"stops": [{"id": 1}]}'),
    lambda path: path.write_text('{"stops": [{"id": "a", "agent": "x", "who": "y", "why": "z", "since": 1e400}]}'),
    lambda path: path.mkdir(),
    lambda path: path.symlink_to("/nowhere"),
    lambda path: path.symlink_to(path.parent),
    lambda path: (path.with_name("other").write_text("{}"), os.link(path.with_name("other"), path)),
    os.mkfifo,
    lambda path: (path.write_text("{}"), path.chmod(0)),
)


@pytest.mark.parametrize("number", range(len(STRANGE)))
async def test_any_file_of_that_name_stops_whatever_it_is(opened: Open, folder: Path, number: int) -> None:
    workspace = opened()
    assert (await workspace.call("clerk", "beat", ONCE)).status is Status.ALLOWED
    path = folder / ".gatewright" / FILE_NAME
    STRANGE[number](path)
    assert code(workspace) == code(workspace, "guest") == "stopped"
    assert (await workspace.call("clerk", "beat", ONCE)).code == "stopped"
    assert [json.loads(row.body)["all"] for row in rows(workspace, "StopPulled")] == [True]
    (path.rmdir if path.is_dir() and not path.is_symlink() else path.unlink)()
    assert code(workspace) == "stopped"
    assert code(opened()) == "stopped"


@given(text=st.binary(max_size=300) | st.text().map(lambda text: json.dumps({"stops": text}).encode()))
def test_no_text_of_the_file_lets_calls_through(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / FILE_NAME).write_bytes(text)
    assert StopSwitch(folder, folder / "keys").find("anybody") is not None


async def test_who_deletes_or_edits_the_file_lifts_nothing(opened: Open, folder: Path) -> None:
    workspace, path = opened(), folder / ".gatewright" / FILE_NAME
    await workspace.call("clerk", "beat", ONCE)
    workspace.stops.pull("ann", agent_id="clerk")
    for change in (path.unlink, lambda: path.write_text("{}"), lambda: path.write_text(path.read_text())):
        change()
        assert code(workspace) == code(opened()) == "stopped"
    workspace.stops.lift("ann")
    assert code(workspace) == code(opened()) == "stopped"
    workspace.stops.lift("ann", "clerk")
    assert code(workspace) == code(opened()) == "allowed"


async def test_a_stop_needs_no_key_and_its_end_does(
    opened: Open, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace, path = opened(), folder / ".gatewright" / FILE_NAME
    await workspace.call("clerk", "beat", ONCE)
    with monkeypatch.context() as stranger:
        stranger.setenv("GATEWRIGHT_KEYS", str(tmp_path / "none"))
        assert run("stop", folder, "--because", "smoke", "--who", "eve") == 0
        assert run("go", folder) == 2
        assert "only with the key" in capsys.readouterr().err
        assert path.exists()
    assert rows(workspace, "StopPulled") == []
    assert code(workspace) == "stopped"
    assert (await workspace.call("clerk", "beat", ONCE)).code == "stopped"
    (row,) = rows(workspace, "StopPulled")
    assert (json.loads(row.body)["who"], json.loads(row.body)["why"]) == ("eve", "smoke")
    path.unlink()
    assert code(opened()) == "stopped"
    assert run("go", folder, "--json") == 0
    assert [one["who"] for one in json.loads(capsys.readouterr().out)["ended"]] == ["eve"]
    assert code(workspace) == "allowed"
    assert run("go", folder) == 2
    assert "not stopped" in capsys.readouterr().err


def test_a_workspace_without_a_log_is_stopped_and_lifted_alike(
    opened: Open, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("stop", folder) == 0
    with monkeypatch.context() as stranger:
        stranger.setenv("GATEWRIGHT_KEYS", str(tmp_path / "none"))
        assert run("go", folder) == 2
    assert code(opened()) == "stopped"
    assert run("go", folder) == 0
    workspace = opened()
    assert code(workspace) == "allowed"
    assert [row.kind for row in rows(workspace, "StopPulled", "StopLifted")] == ["StopPulled", "StopLifted"]


def test_a_policy_with_errors_can_be_stopped_and_an_agent_is_spelled_right(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "policy.toml").write_text("gatewright = 1\n[agents.clerk]\n")
    assert run("stop", folder, "--agent", "clark") == 2
    assert "`clerk`" in capsys.readouterr().err
    (folder / "policy.toml").write_text("gatewright = [")
    assert run("stop", folder, "--agent", "clark") == 0
    assert run("go", folder, "--agent", "clark") == 0


def test_a_gate_without_a_folder_is_stopped_by_itself(opened: Open) -> None:
    gate = Gate(opened().policy, ToolRegistry(), absent=dict.fromkeys(("beat", "shell_exec", "add"), "elsewhere"))
    gate.stops.pull("ann")
    assert gate.decide("clerk", "beat", ONCE).code == "stopped"
    gate.stops.lift("ann")
    assert gate.decide("clerk", "beat", ONCE).code == "not-available"


def test_a_folder_that_cannot_be_written_refuses_a_stop(folder: Path) -> None:
    (folder / ".gatewright").write_text("in the way")
    with pytest.raises(WorkspaceError, match="cannot be changed"):
        StopSwitch(folder / ".gatewright", folder / "keys").pull("ann")


def children(pid: int) -> list[str]:
    found: list[str] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, fields = stat.read_text().rpartition(")")
            if int(fields.split()[1]) == pid and fields.split()[0] != "Z":
                found.append(name)
    return found


def test_under_load_in_four_processes_no_call_begins_after_a_second(folder: Path) -> None:
    words = [sys.executable, "-m", "tests.engine.workspace.stopped_process", str(folder)]
    started = [
        subprocess.Popen([*words, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for count in (13, 13, 12, 12)
    ]
    try:
        said: list[dict[str, Any]] = [json.loads(one.stdout.readline()) for one in started if one.stdout]
        assert all(one == {"shell": "allowed", "server": "allowed"} for one in said)
        began = [folder / f"{one.pid}.began" for one in started]
        pause_until(lambda: all(path.exists() and len(path.read_text().splitlines()) > 20 for path in began))
        assert all(len(children(one.pid)) >= 2 for one in started)
        pulled = time.time()
        assert run("stop", folder) == 0
        ends: list[dict[str, Any]] = [json.loads(one.stdout.readline()) for one in started if one.stdout]
        assert {code for end in ends for code in end["codes"]} == {"stopped"}
        assert sum(len(end["codes"]) for end in ends) == 50
        last = max(float(path.read_text().splitlines()[-1]) for path in began)
        assert last - pulled < 1.0
        pause_until(lambda: not any(children(one.pid) for one in started), "the servers and shells to end")
    finally:
        for one in started:
            one.communicate("\n", timeout=60)


def test_a_stop_is_told_in_one_line() -> None:
    stop = Stop("stop-1", "clerk", "ann", "smoke", 0.0)
    assert str(stop) == "ann stopped agent `clerk` at 1970-01-01T00:00:00.000Z: smoke"
