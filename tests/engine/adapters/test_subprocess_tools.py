"""Tools that are a process for each call, asked through the gate: what they are given, may reach and leave behind."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.adapters.server_process import Command, ServerProcess, is_alive
from gatewright.gate import Approval, Outcome
from gatewright.workspace import Workspace
from tests.engine.adapters.toolcatalog import opened, write_manifest, write_policy
from tests.support.patience import until

WORKER = """
import json, os, sys
said = json.load(sys.stdin)
def answer(value):
    print(json.dumps(value), flush=True)
exec(said["arguments"]["code"])
"""
BOUNDS: Mapping[str, Mapping[str, Any]] = {
    "work": {},
    "short": {"bounds": {"timeout_s": 1.5}},
    "small": {"bounds": {"memory_bytes": 300_000_000, "cpu_s": 1}},
    "flow": {"result_type": "stream"},
    "raw": {"result_type": "binary"},
}


def definition(name: str, conduct: Mapping[str, Any], token: str = "x", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": "Does some work.",
        "inputSchema": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
        "annotations": {"readOnlyHint": True},
        "run": {"args": [token]},
        "_meta": {"gatewright": dict(conduct)},
        **more,
    }


class Desk:
    """A workspace whose agent may call the tools of `BOUNDS`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = f"call-{uuid4().hex}"
        """A word of its commands, by which each process is found that came of a call."""
        self._held: list[Workspace] = []
        write_manifest(folder, [definition(name, conduct, self.token) for name, conduct in BOUNDS.items()])

    def alive(self) -> list[str]:
        """The processes of the system that came of a call."""
        found: list[str] = []
        for one in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                words = one.read_bytes().decode("utf-8", "replace")
                found += [words] if self.token in words else []
        return found

    def open(
        self,
        *,
        keys: str = "",
        more: str = "",
        trust: bool = True,
        program: str = sys.executable,
        places: str = "{ './tool.py' = 'read' }",
    ) -> Workspace:
        command = f"command = {json.dumps(program)}\nargs = ['tool.py']\nplaces = {places}\n"
        write_policy(self.folder, "subprocess", [*BOUNDS], keys=command + keys, more=more)
        self._held.append(opened(self.folder, trust=trust))
        self._held[-1].accept_tools("calc", None, needs_capabilities=False)
        return self._held[-1]

    def close(self) -> None:
        for one in self._held:
            one.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "tool.py").write_text(WORKER, "utf-8")
    made = Desk(folder)
    yield made
    made.close()


async def run(workspace: Workspace, code: str, tool: str = "work", **more: Any) -> Outcome:
    return await workspace.call("a", tool, {"code": code}, **more)


def told(outcome: Outcome) -> str:
    """What the trace says of the execution."""
    return next(one.reason for one in outcome.decision.trace if one.stage == "execute")


async def test_process_gets_the_call_and_its_answer_is_the_result(desk: Desk) -> None:
    outcome = await run(desk.open(), "answer({**said, 'argv': sys.argv[1:]})")
    assert outcome.status == "allowed", told(outcome)
    said = json.loads(outcome.output)
    assert (said["tool"], list(said["arguments"]), said["argv"]) == ("work", ["code"], [desk.token])
    assert "confined by bubblewrap" in told(outcome)
    assert "no network" in told(outcome)


async def test_process_is_ended_though_whoever_ends_it_is_cancelled() -> None:
    stubborn = Command("/bin/sh", ("-c", "trap '' TERM; while :; do sleep 1; done"), {"PATH": os.environ["PATH"]})
    process = ServerProcess(stubborn, bytearray(), 0.3)
    await process.__aenter__()
    ending = asyncio.ensure_future(process.__aexit__(None, None, None))
    await asyncio.sleep(0.05)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert not is_alive(process.pid)


async def test_shim_of_a_version_manager_is_told_with_what_to_name_instead(desk: Desk) -> None:
    shim = desk.folder.parent / "shims/python3"
    shim.parent.mkdir()
    shim.write_text('#!/usr/bin/env bash\n# asdf-plugin: x 1.2\nexec /opt/asdf/bin/asdf exec "python3" "$@"\n')
    shim.chmod(0o755)
    outcome = await run(desk.open(program=str(shim)), "answer(1)")
    assert outcome.status == "failed"
    assert "is a shim of asdf" in told(outcome)
    assert "name that program with its path" in outcome.detail


async def test_process_has_no_variable_that_its_catalog_does_not_name(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALC_KEY", "a value of it")
    monkeypatch.setenv("OTHER_KEY", "another's value")
    for keys in ("", "confine = 'none'\n"):
        outcome = await run(desk.open(keys=f"env = ['CALC_KEY']\n{keys}"), "answer(dict(os.environ))")
        said = json.loads(outcome.output or told(outcome))
        assert said["CALC_KEY"]
        assert not {"OTHER_KEY", "GATEWRIGHT_KEYS", "PYTEST_CURRENT_TEST"} & said.keys()
        assert said.keys() <= {"CALC_KEY", "PATH", "LANG", "LC_CTYPE", "HOME", "TMPDIR", "PWD", "SHLVL", "_", "OLDPWD"}


async def test_variable_that_is_not_set_is_told_to_the_operator_alone(desk: Desk) -> None:
    outcome = await run(desk.open(keys="env = ['CALC_KEY_THAT_NOBODY_SET']\n"), "answer(1)")
    assert outcome.code == "not-run"
    assert "CALC_KEY_THAT_NOBODY_SET" in told(outcome)
    assert "CALC_KEY" not in (outcome.output)


async def test_standard_error_reaches_the_operator_and_not_the_model(desk: Desk) -> None:
    outcome = await run(desk.open(), "sys.stderr.write('where it hurts'); sys.exit(3)")
    assert outcome.status == "failed"
    assert "exit code 3" in told(outcome)
    assert "where it hurts" in told(outcome)
    assert "hurts" not in (outcome.output)


async def test_reason_that_a_process_writes_for_the_model_reaches_it(desk: Desk) -> None:
    outcome = await run(desk.open(), "answer({'error': 'there is no such row'}); sys.exit(1)")
    assert outcome.status == "failed"
    assert "there is no such row" in (outcome.output)


HOSTILE = {
    "nothing": "pass",
    "no JSON": "print('hello')",
    "two values": "answer(1); answer(2)",
    "no UTF-8": "sys.stdout.buffer.write(bytes([34, 255, 254, 34]))",
    "no number": "print('NaN')",
    "deep": "print('[' * 100_000 + ']' * 100_000)",
    "huge number": "print('9' * 100_000)",
    "half a pair": r"print('\"\\ud800\"')",
    "gigabyte": "[sys.stdout.buffer.write(b'x' * 1_000_000) for _ in range(1_000)]",
    "gigabyte of errors": "[sys.stderr.buffer.write(b'x' * 1_000_000) for _ in range(200)]",
    "closed": "os.close(1)",
}


@pytest.mark.parametrize("tool", ["work", "flow"])
@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE)
async def test_answer_that_is_none_ends_in_a_clear_failure(desk: Desk, code: str, tool: str) -> None:
    outcome = await run(desk.open(), code, tool)
    is_empty_stream = tool == "flow" and code in {HOSTILE[name] for name in ("nothing", "two values", "closed")}
    is_empty_stream |= tool == "flow" and code == HOSTILE["gigabyte of errors"]
    assert outcome.status == ("allowed" if is_empty_stream else "failed"), told(outcome)
    assert outcome.code != "tool-crashed"
    assert desk.alive() == []


async def test_lines_of_a_stream_are_seen_as_they_come_and_make_one_result(desk: Desk) -> None:
    pieces: list[str] = []
    outcome = await run(desk.open(), "for n in range(3): answer({'n': n})", "flow", on_piece=pieces.append)
    assert [json.loads(piece)["n"] for piece in pieces] == [0, 1, 2]
    assert json.loads(outcome.output) == [{"n": 0}, {"n": 1}, {"n": 2}]


async def test_endless_stream_ends_at_the_bound_of_a_result(desk: Desk) -> None:
    outcome = await run(desk.open(), "while True: answer('x' * 10_000)", "flow")
    assert outcome.status == "failed", told(outcome)
    assert desk.alive() == []


async def test_bytes_stay_bytes(desk: Desk) -> None:
    outcome = await run(desk.open(), "sys.stdout.buffer.write(bytes(range(256)))", "raw")
    assert outcome.data == bytes(range(256))


LEFT_BEHIND = {
    "sleeps": "import time; time.sleep(600)",
    "child": "import time; os.fork(); time.sleep(600)",
    "double fork": "import time; os.fork() or os.fork(); time.sleep(600)",
    "setsid": "import time; os.fork() or os.setsid(); time.sleep(600)",
    "ignores": "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(600)",
}


@pytest.mark.parametrize("code", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
async def test_nothing_is_left_of_a_call_whose_time_is_over(desk: Desk, code: str) -> None:
    outcome = await run(desk.open(), code, "short")
    assert outcome.code == "timed-out", told(outcome)
    assert desk.alive() == []


@pytest.mark.parametrize("code", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
async def test_nothing_is_left_of_a_call_that_is_cancelled(desk: Desk, code: str) -> None:
    began = asyncio.Event()

    def see(_: str) -> None:
        began.set()

    call = asyncio.ensure_future(run(desk.open(), f"answer('began'); {code}", "flow", on_piece=see))
    await began.wait()
    assert desk.alive() != []
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert desk.alive() == []


@pytest.mark.parametrize("code", [one for name, one in LEFT_BEHIND.items() if name != "setsid"])
async def test_group_of_a_process_that_nothing_confines_ends_with_its_call(desk: Desk, code: str) -> None:
    workspace = desk.open(keys="confine = 'none'\n")
    outcome = await run(workspace, code, "short")
    assert outcome.code == "timed-out", told(outcome)
    assert "not confined" in told(outcome)
    assert desk.alive() == []


async def test_process_that_leaves_a_child_behind_has_answered(desk: Desk) -> None:
    outcome = await run(desk.open(), "import time\nif os.fork(): answer(1)\nelse: time.sleep(600)")
    assert (outcome.status, outcome.output) == ("allowed", "1"), told(outcome)
    assert desk.alive() == []


@pytest.mark.parametrize("tool", ["work", "flow"])
async def test_what_cannot_be_started_is_said_at_once(desk: Desk, tool: str) -> None:
    outcome = await run(desk.open(keys="confine = 'none'\ncwd = 'gone'\n"), "answer(1)", tool)
    assert outcome.code == "not-run", told(outcome)


BREAKS_OUT = {
    "policy": "answer(os.path.exists('policy.toml'))",
    "home": "answer([one for one in os.listdir(os.path.expanduser('~')) if one])",
    "others' processes": "answer(len([one for one in os.listdir('/proc') if one.isdigit()]) > 5)",
    "variables of others": "found = []\nfor one in filter(str.isdigit, os.listdir('/proc')):\n"
    "  try: found += [1] if 'PYTEST' in open(f'/proc/{one}/environ', errors='replace').read() else []\n"
    "  except OSError: pass\nanswer(found)",
    "write": "answer([name for name in ('/usr/x', '/etc/x') if os.access(os.path.dirname(name), os.W_OK)])",
    "its own place": "answer(os.access('tool.py', os.W_OK) or os.path.exists('../policy.toml'))",
    "descriptors": "answer([n for n in range(3, 1024) if os.path.exists(f'/proc/self/fd/{n}')])",
    "root of another": "answer([one for one in os.listdir('/proc') if one.isdigit()"
    " and os.path.exists(f'/proc/{one}/root/etc/hostname')])",
    "kernel": "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nanswer([name for name, given in {"
    "'unshare': (0x10000000,), 'mount': (b'none', b'/tmp', b'tmpfs', 0, None), 'ptrace': (16, 1, 0, 0),"
    "'setns': (0, 0), 'pivot_root': (b'/', b'/'), 'chroot': (b'/usr',)}.items()"
    " if hasattr(libc, name) and getattr(libc, name)(*given) != -1])",
}


@pytest.mark.parametrize("code", BREAKS_OUT.values(), ids=BREAKS_OUT)
async def test_process_sees_nothing_that_it_was_not_given(desk: Desk, code: str) -> None:
    outcome = await run(desk.open(), code)
    assert outcome.output in {"false", "[]"}, told(outcome)


async def test_process_reaches_no_listener_of_the_computer(desk: Desk) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        code = f"import socket\ntry: socket.create_connection(('127.0.0.1', {port}), 3); answer(True)\n"
        outcome = await run(desk.open(), code + "except OSError: answer(False)")
    assert outcome.output == "false", told(outcome)


async def test_process_reaches_no_socket_of_any_kind(desk: Desk, tmp_path: Path) -> None:
    unix, abstract = str(tmp_path / "s"), f"\0{desk.token}"
    with ExitStack() as held:
        for kind, address in ((socket.AF_UNIX, unix), (socket.AF_UNIX, abstract), (socket.AF_INET, ("127.0.0.1", 0))):
            server = held.enter_context(closing(socket.socket(kind, socket.SOCK_STREAM)))
            server.bind(address)
            server.listen()
        port = server.getsockname()[1]
        code = f"""import socket
reached = []
for kind, address in (('AF_UNIX', {unix!r}), ('AF_UNIX', {abstract!r}), ('AF_INET', ('127.0.0.1', {port}))):
    try:
        socket.socket(getattr(socket, kind)).connect(address)
        reached.append(kind)
    except OSError:
        pass
for kind, sort, protocol in (('AF_INET', 'SOCK_RAW', 1), ('AF_PACKET', 'SOCK_RAW', 3), ('AF_NETLINK', 'SOCK_RAW', 0)):
    try:
        made = socket.socket(getattr(socket, kind), getattr(socket, sort), protocol)
        made.sendto(b'x', ('1.1.1.1', 0) if kind == 'AF_INET' else ('eth0', 3) if kind == 'AF_PACKET' else (1, 0))
        reached.append(kind)
    except OSError:
        pass
answer(reached)"""
        outcome = await run(desk.open(), code)
    assert outcome.output in {"[]", '["AF_NETLINK"]'}, told(outcome)  # of the kernel it may ask about its own network


STEPS = {
    "fork": "os.fork()",
    "leave": "os.fork() or os.setsid()",
    "orphan": "if os.fork() == 0:\n  if os.fork(): os._exit(0)",
    "ignore": "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 13, 15)]",
    "close": "os.closerange(3, 1024)",
    "group": "os.getpid() == os.getpgid(0) or os.setpgid(0, 0)",
}


@pytest.fixture
def workspace(desk: Desk) -> Workspace:
    return desk.open()


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4))
def test_nothing_is_left_of_any_tree_of_processes(desk: Desk, workspace: Workspace, steps: list[str]) -> None:
    async def cancelled() -> None:
        began = asyncio.Event()

        def see(_: str) -> None:
            began.set()

        code = "\n".join((*(STEPS[one] for one in steps), "answer('here')", "import time", "time.sleep(600)"))
        call = asyncio.ensure_future(run(workspace, code, "flow", on_piece=see))
        await asyncio.wait({call, asyncio.ensure_future(began.wait())}, return_when=asyncio.FIRST_COMPLETED)
        assert not call.done(), call.result().detail
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancelled())
    assert desk.alive() == []


async def test_fork_bomb_ends_at_the_bound_of_processes_and_with_the_call(desk: Desk) -> None:
    code = (
        "import time\nmade = 0\ntry:\n  while made < 2000:\n    if os.fork() == 0: time.sleep(600)\n    made += 1\n"
        "except OSError: pass\nanswer(made)"
    )
    outcome = await run(desk.open(), code)
    most = 600 if os.getuid() else 2000  # the kernel bounds no processes of the first user
    assert int(outcome.output) <= most, told(outcome)
    assert desk.alive() == []


async def test_open_files_end_at_their_bound(desk: Desk) -> None:
    code = "held = []\ntry:\n  while True: held.append(open('/dev/null'))\nexcept OSError: pass\nlen_ = len(held)\n"
    for keys in ("", "confine = 'none'\n"):
        outcome = await run(desk.open(keys=keys), code + "held.clear(); answer(len_)")
        assert int(outcome.output) <= 1024, told(outcome)


@pytest.mark.parametrize("keys", ["", "confine = 'none'\n"], ids=["confined", "free"])
@pytest.mark.parametrize("code", ["bytearray(1_000_000_000); answer(1)", "while True: pass"], ids=["memory", "time"])
async def test_memory_and_processor_time_end_at_the_bounds_of_the_definition(desk: Desk, code: str, keys: str) -> None:
    outcome = await run(desk.open(keys=keys), code, "small")
    assert outcome.status == "failed"
    assert "300,000,000 bytes" in told(outcome)
    assert "1 s of a processor" in told(outcome)


async def test_grant_of_the_agent_narrows_what_a_process_may_use_up(desk: Desk) -> None:
    more = 'capabilities = [{ Exec = { cpu_limit = 1, mem_limit = "200 MiB" } }]\n'
    outcome = await run(desk.open(more=more), "bytearray(1_000_000_000); answer(1)")
    assert outcome.status == "failed", told(outcome)
    assert "209,715,200 bytes" in told(outcome)


async def test_what_is_not_trusted_or_has_no_places_is_not_started(desk: Desk) -> None:
    outcome = await run(desk.open(trust=False), "answer(1)")
    assert outcome.code == "not-run"
    assert "not trusted" in told(outcome)
    text = (desk.folder / "policy.toml").read_text("utf-8")
    (desk.folder / "policy.toml").write_text(text.replace("places = { './tool.py' = 'read' }\n", ""), "utf-8")
    with opened(desk.folder) as waiting:
        outcome = await run(waiting, "answer(1)")
    assert outcome.output != "1"
    assert desk.alive() == []


async def test_manifest_that_changes_in_the_meantime_holds_the_tool(desk: Desk) -> None:
    workspace = desk.open()
    assert (await run(workspace, "answer(1)")).output == "1"
    write_manifest(desk.folder, [definition("work", {}, description="Does other work.")])
    assert (await run(workspace, "answer(2)")).code == "held"
    assert {tool for state in workspace.catalog_states() for tool in state.held} == {*BOUNDS}


@pytest.mark.parametrize(
    "more",
    [
        {"run": {"shell": "rm"}},
        {"run": {"args": "x"}},
        {"run": {"args": [3]}},
        {"run": {"args": ["\0"]}},
        {"run": {"args": ["x"] * 1000}},
        {"run": []},
        {"_meta": {"gatewright": {"bounds": {"network_bytes": 10}}}},
        {"_meta": {"gatewright": {"bounds": {"cpu_s": -1}}}},
        {"_meta": {"gatewright": {"bounds": {"cpu_s": True}}}},
        {"_meta": {"gatewright": {"bounds": {"memory_bytes": 1e400}}}},
        {"_meta": {"gatewright": {"bounds": {"timeout_s": 10**400}}}},
        {"_meta": {"gatewright": {"bounds": []}}},
        {"_meta": {"gatewright": {"result_type": "tarball"}}},
        {"_meta": {"gatewright": {"determinism": "Pure", "side_effects": ["teleport"]}}},
    ],
    ids=str,
)
def test_definition_that_nobody_could_execute_is_set_aside(desk: Desk, more: dict[str, Any]) -> None:
    text = json.dumps({"tools": [definition("odd", {}, **more), definition("work", {})]}).replace("Infinity", "1.5")
    (desk.folder / "tools.json").write_text(text, "utf-8")
    write_policy(desk.folder, "subprocess", ["work"], keys="command = 'x'\nplaces = {}\n")
    with opened(desk.folder) as workspace:
        workspace.accept_tools("calc", None)
        assert [tool["name"] for tool in workspace.view("a").tools("mcp")] == ["work"]
        assert workspace.tool_schema("odd") is None


LEVELS = """
[[sources]]
id = "box"
type = "file"
base_path = "box"
default_permission = "read_write"
permission_rules = [
  { pattern = "hidden/**", permission = "none" },
  { pattern = "fixed/**", permission = "read_only" },
  { pattern = "asks/**", permission = "partner" },
]
"""
WRITE_ALL = """
done = {}
for name in ("free", "new", "fixed/a", "asks/a", "hidden/a"):
    try:
        with open(f"box/{name}", "w") as file:
            file.write("after")
        done[name] = open(f"box/{name}").read()
    except OSError:
        done[name] = "refused"
os.symlink("/etc/passwd", "box/link")
"""


@pytest.fixture
def boxed(desk: Desk) -> Workspace:
    """A workspace whose processes get a private copy of the source `box`."""
    for name in ("free", "fixed/a", "asks/a", "hidden/a"):
        path = desk.folder / "box" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("before", "utf-8")
    return desk.open(keys=LEVELS, more='sources = ["box"]\n', places="{ './tool.py' = 'read', box = 'snapshot' }")


def files(workspace: Workspace) -> dict[str, str]:
    """All that lies in the source now."""
    box = workspace.folder / "box"
    return {str(one.relative_to(box)): one.read_text("utf-8") for one in box.rglob("*") if not one.is_dir()}


def returned(workspace: Workspace) -> list[dict[str, Any]]:
    return [json.loads(row.body) for row in workspace.audit.rows() if row.kind == "CopyReturned"]


UNTOUCHED = {"fixed/a": "before", "hidden/a": "before"}


async def test_what_a_process_changes_in_its_copy_comes_back_by_the_levels(desk: Desk, boxed: Workspace) -> None:
    outcome = await run(boxed, f"{WRITE_ALL}answer(done)")
    assert json.loads(outcome.output) == {
        "free": "after",
        "new": "after",
        "asks/a": "after",
        "fixed/a": "refused",
        "hidden/a": "refused",
    }
    assert "write and delete in a copy" in told(outcome)
    assert files(boxed) == {**UNTOUCHED, "free": "after", "new": "after", "asks/a": "before"}
    (row,) = returned(boxed)
    assert [Path(one["path"]).name for one in row["written"]] == ["free", "new"]
    kept = {Path(one["path"]).name: one["why"] for one in row["kept_back"]}
    assert kept["a"] == "its level asks, and nobody is there"
    assert "link" in kept
    assert Path(row["folder"]).is_relative_to(boxed.state_folder)
    outcome = await run(boxed, "answer([open('box/free').read(), open('box/asks/a').read()])")
    assert json.loads(outcome.output) == ["after", "before"]  # the next call has a copy of its own
    assert desk.alive() == []


async def test_what_asks_waits_for_the_operator_and_not_the_call(boxed: Workspace) -> None:
    leave = boxed.broker.subscribe(lambda _: None)
    outcome = await run(boxed, f"{WRITE_ALL}answer(1)")
    assert (outcome.status, files(boxed)["asks/a"]) == ("allowed", "before")
    await until(boxed.broker.pending)
    (question,) = boxed.broker.pending()
    assert (question.agent_id, question.tool, question.operation) == ("a", "calc", "overwrite")
    boxed.broker.answer(question.request_id, Approval(True, "dana"))
    await until(lambda: files(boxed)["asks/a"] == "after")
    leave()


@pytest.mark.parametrize("ending", ["time", "cancelled", "failed"])
async def test_copy_of_a_call_that_does_not_end_well_leaves_nothing_behind(
    desk: Desk, boxed: Workspace, ending: str
) -> None:
    rooms = boxed.state_folder / "rooms"
    stays = "sys.exit(3)" if ending == "failed" else "import time; time.sleep(60)"
    call = asyncio.create_task(run(boxed, f"{WRITE_ALL}{stays}", "short"))
    if ending == "cancelled":
        await until(desk.alive)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
    else:
        assert (await call).status == ("failed" if ending == "failed" else "timed_out")
    await until(lambda: not desk.alive())
    assert {name: files(boxed)[name] for name in UNTOUCHED} == UNTOUCHED
    assert files(boxed)["asks/a"] == "before"
    assert [one for one in rooms.rglob("*") if one.name in {"free", "new", "box"}] == []
    assert (await run(boxed, "answer(open('box/fixed/a').read())")).output == "before"


async def test_copies_of_calls_at_once_do_not_write_over_each_other(boxed: Workspace) -> None:
    code = (
        "import time; open('box/free', 'a').write('NAME'); open('box/NAME', 'w').write('x'); time.sleep(1); answer(1)"
    )
    outcomes = await asyncio.gather(*(run(boxed, code.replace("NAME", name)) for name in ("one", "two")))
    assert [one.status for one in outcomes] == ["allowed", "allowed"]
    found = files(boxed)
    assert found["one"] == found["two"] == "x"
    assert found["free"] in {"beforeone", "beforetwo"}
    kept = [one for row in returned(boxed) for one in row["kept_back"]]
    assert [Path(one["path"]).name for one in kept] == ["free"]
