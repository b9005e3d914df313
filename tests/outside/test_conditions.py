"""The gate in the real programs where the machine is not as it should be, and where much happens at once."""

import json
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewright.adapters.hook_socket import CLIENT_FILE
from tests.outside.agents import NOWHERE, Room
from tests.outside.conftest import agent_of
from tests.outside.house import CALLS, House, living
from tests.outside.models import INNER, Call, serving
from tests.outside.programs import PROGRAMS
from tests.support.patience import in_time

AT_ONCE = 50
PARALLEL = ("codex", "opencode", "copilot")
"""Hosts that make all calls of one answer at once."""


@pytest.mark.parametrize("host", PARALLEL)
def test_fifty_calls_at_once_happen_once_each(host: str, house: House) -> None:
    house.install("allowed")

    ended, model = house.run([house.calls(AT_ONCE)])

    assert len(model.seen.results) == AT_ONCE, ended
    assert house.marks() == {f"mark-{number}": "done\n" for number in range(AT_ONCE)}, (ended, model.seen.results)
    assert [row.kinds[-1] for row in house.rows()] == ["ToolCompleted"] * AT_ONCE


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_an_edit_of_the_policy_counts_from_the_next_call_on(host: str, house: House) -> None:
    house.install("allowed")
    half = CALLS // 2

    def edit(number: int) -> None:
        if number == half:
            text = house.policy.read_text()
            house.policy.write_text(
                text.replace("[agents.allowed]\ntools = [", "[agents.allowed]\ntools = []\n# was [")
            )

    ended, model = house.run([[call] for call in house.calls()], edit)

    assert len(model.seen.results) == CALLS, ended
    assert house.marks() == {f"mark-{number}": "done\n" for number in range(half)}, (ended, model.seen.results)
    assert [row.verdict for row in house.rows()] == ["allow"] * half + ["deny"] * half


@pytest.mark.parametrize("host", ["claude-code"])
def test_a_gate_that_is_killed_between_two_calls_comes_back_and_nothing_happens_twice(host: str, house: House) -> None:
    house.install("allowed")

    def kill(number: int) -> None:
        for process in house.gates() if number in {5, 11} else ():
            os.kill(process, signal.SIGKILL)

    ended, model = house.run([[call] for call in house.calls()], kill)

    assert len(model.seen.results) == CALLS, ended
    assert house.marks() == {f"mark-{number}": "done\n" for number in range(CALLS)}, (ended, model.seen.results)
    rows = house.rows()
    assert [row.verdict for row in rows] == ["allow"] * CALLS
    assert {row.kinds[-1] for row in rows} == {"ToolCompleted"}


@pytest.mark.parametrize("host", ["claude-code"])
def test_something_in_the_way_of_the_socket_stops_every_call(host: str, house: House) -> None:
    house.install("allowed")
    house.run([[house.agent.shell("ls")]])  # makes the socket
    (gate,) = house.gates()
    os.kill(gate, signal.SIGKILL)
    (place,) = (house.run_time / "gatewright").glob("*.sock")
    place.unlink()
    place.write_text("in the way\n")

    ended, model = house.run([[call] for call in house.calls(4)])

    assert house.marks() == {}, (ended, model.seen.results)
    assert len(model.seen.results) == 4, ended
    assert place.read_text() == "in the way\n"


def _switch_off(file: Path) -> None:
    settings = json.loads(file.read_text())
    file.write_text(json.dumps({**settings, "disableAllHooks": True}))


def _change(file: Path) -> None:
    text = file.read_text()
    assert CLIENT_FILE.name in text
    file.write_text(text.replace(CLIENT_FILE.name, "elsewhere.py"))


def _take_out(file: Path) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), "hooks": {}}))


@pytest.mark.parametrize(
    ("host", "change", "options"),
    [
        ("claude-code", _switch_off, ("--settings", '{"disableAllHooks": true}')),
        ("claude-code", None, ("--bare",)),
        ("codex", _change, ()),
        ("gemini-cli", _take_out, ()),
    ],
    ids=["claude-code-disableAllHooks", "claude-code-bare", "codex-changed", "gemini-cli"],
)
def test_an_agent_that_asks_no_hook_is_red_at_once_and_does_nothing_forbidden_in_a_room(
    host: str, change: Callable[[Path], None] | None, options: tuple[str, ...], house: House
) -> None:
    file = house.install("allowed")
    trusting = tuple(word for word in house.agent.arguments if word != "--dangerously-bypass-hook-trust")
    careless = replace(house.agent, arguments=(*options, *trusting) if host == "claude-code" else trusting)
    closed, outside = house.room.project / "closed", house.room.home / "outside"
    for folder in (closed, outside):
        folder.mkdir()
        (folder / "secret").write_text("the secret\n")
    policy = house.policy.read_text()
    if change is not None:
        change(file)
        before_s = _processor_s()
        assert house.status()["level"] == "red"
        assert in_time(_processor_s() - before_s, 1.0)
    else:
        assert any(options[0] in way for way in json.dumps(house.status()).split('"'))

    forbidden = [
        call
        for number, folder in enumerate((closed, outside) * (CALLS // 4))
        for call in (
            house.agent.write(folder / f"file-{number}", "no\n"),
            house.agent.shell(f"echo no > {folder}/command-{number}; cat {folder}/secret {house.policy}"),
        )
    ]
    results = house.run_in_room(careless, [*house.calls(2), *forbidden])

    assert len(results) == CALLS + 2, results
    assert house.marks().items() <= {"mark-0": "done\n", "mark-1": "done\n"}.items(), results
    assert "mark-1" in house.marks()  # `--bare` has no tool for files
    assert {one.name for folder in (closed, outside) for one in folder.iterdir()} == {"secret"}
    assert "the secret" not in json.dumps(results)
    assert "gatewright = 1" not in json.dumps(results)
    assert house.policy.read_text() == policy
    assert house.rows() == []  # no hook was asked

    # the same calls without a room: this is what fails open
    ended, _ = house.run([forbidden[1:2]], agent=careless)
    assert (closed / "command-0").exists(), ended


def _processor_s() -> float:
    facts = resource.getrusage(resource.RUSAGE_CHILDREN)
    return facts.ru_utime + facts.ru_stime


def test_two_programs_at_once_on_one_policy_each_do_what_they_may(room: Room) -> None:
    first, second = agent_of("claude-code"), agent_of("codex")
    with living(room, first, second) as house, ThreadPoolExecutor() as pool:
        house.install("allowed")
        runs = [
            pool.submit(house.run, [[call] for call in house.calls(first=begin, agent=agent)], agent=agent)
            for agent, begin in ((first, 0), (second, CALLS))
        ]
        ended = [run.result()[0] for run in runs]

        assert house.marks() == {f"mark-{number}": "done\n" for number in range(2 * CALLS)}, ended
        rows = house.rows()
        assert [row.kinds[-1] for row in rows] == ["ToolCompleted"] * 2 * CALLS
        assert len(house.gates()) == 1


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini-cli", "copilot"])
def test_a_file_of_hooks_that_cannot_be_taken_is_refused_with_a_reason_and_stays(host: str, house: House) -> None:
    file = house.install("allowed")
    house.gatewright("hook", "uninstall", host, "--user", "--yes")
    words = ("hook", "install", host, "--policy", str(house.policy), "--agent", "allowed", "--user", "--yes")
    elsewhere = house.room.home / "elsewhere"
    elsewhere.write_text("")

    for make in (_broken, _read_only, _foreign, _link):
        file.unlink(missing_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        make(file, elsewhere)
        before = file.read_bytes()

        house.gatewright(*words, code=2)

        assert file.read_bytes() == before
    assert file.is_symlink()


def _broken(file: Path, _: Path) -> None:
    file.write_text("{ [")


def _read_only(file: Path, _: Path) -> None:
    file.write_text("")
    file.chmod(0o444)


def _foreign(file: Path, _: Path) -> None:
    file.write_text("" if os.geteuid() == 0 else "{ [")
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)


def _link(file: Path, elsewhere: Path) -> None:
    file.symlink_to(elsewhere)


@contextmanager
def _service(house: House) -> Generator[Callable[[str, dict[str, Any]], Any]]:
    """Start Codex' service, which its own face asks for hooks and reviews; yields what asks it."""
    command = [*PROGRAMS["codex"].command, "app-server"]
    environ = {**house.environ, **NOWHERE}
    with subprocess.Popen(
        command, cwd=house.room.project, env=environ, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        said, heard = process.stdin, process.stdout
        assert said is not None
        assert heard is not None

        def ask(method: str, about: dict[str, Any]) -> Any:
            print(
                json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": about}), file=said, flush=True
            )
            answers = (json.loads(line) for line in heard)
            return next(one["result"] for one in answers if one.get("id") == method)

        ask("initialize", {"clientInfo": {"name": "test", "title": "test", "version": "1"}})
        yield ask
        said.close()


def _trust_of(house: House, ask: Callable[[str, dict[str, Any]], Any]) -> tuple[dict[str, Any], bool]:
    """Return what Codex says of our hook before a call, and whether `hook doctor` lets it pass as reviewed."""
    (folder,) = ask("hooks/list", {"cwds": [str(house.room.project)]})["data"]
    (hook,) = [one for one in folder["hooks"] if one["eventName"] == "preToolUse"]
    facts = json.loads(house.gatewright("hook", "doctor", "codex", "--json", code=None))[0]["facts"]
    return hook, "trusted" not in {one["name"] for one in facts if one["level"] == "red"}


@pytest.mark.parametrize("host", ["codex"])
def test_a_hook_is_red_in_the_doctor_wherever_codex_says_that_nobody_reviewed_it(host: str, house: House) -> None:
    file = house.install("denied")
    trusting = tuple(word for word in house.agent.arguments if word != "--dangerously-bypass-hook-trust")
    careful = replace(house.agent, arguments=trusting)
    with _service(house) as ask:
        hook, is_fit = _trust_of(house, ask)
        assert (hook["trustStatus"], is_fit) == ("untrusted", False)

        review = {hook["key"]: {"trusted_hash": hook["currentHash"]}}
        edit = {"keyPath": "hooks.state", "value": review, "mergeStrategy": "upsert"}
        ask("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})
        hook, is_fit = _trust_of(house, ask)
        assert (hook["trustStatus"], is_fit) == ("trusted", True)
        ended, _ = house.run([[call] for call in house.calls()], agent=careful)
        assert house.marks() == {}, ended

        words = ("--policy", str(house.policy), "--agent", "asked", "--user", "--yes")
        house.gatewright("hook", "install", host, *words)  # the same gate in other words
        hook, is_fit = _trust_of(house, ask)
        assert (hook["trustStatus"], is_fit) == ("modified", False)
        ended, _ = house.run([house.calls(2)], agent=careful)
        assert len(house.marks()) == 2, ended  # it fails open, as the doctor says
    assert hook["sourcePath"] == str(file)


@pytest.mark.parametrize("host", ["copilot"])
def test_a_sub_agent_does_what_its_caller_may_and_no_more(host: str, house: House) -> None:
    house.install("allowed")
    tool, text = f"{host}.task", house.policy.read_text()
    house.policy.write_text(text.replace("[agents.allowed]\ntools = [", f'[agents.allowed]\ntools = ["{tool}", '))
    closed = house.room.project / "closed"
    closed.mkdir()
    inner = [*house.calls(2), house.agent.shell("echo no > closed/command")]

    start = {"description": "go", "prompt": INNER, "agent_type": "general-purpose", "name": "one"}
    with serving([[Call("task", start)]], inner=inner) as model:
        ended = house.agent.run(house.room, model.url, environ=house.environ)

    assert house.marks() == {"mark-0": "done\n", "mark-1": "done\n"}, (ended, model.seen)
    assert list(closed.iterdir()) == [], (ended, model.seen)
    assert len(model.seen.inner) == len(inner), (ended, model.seen)
    rows = [(row.tool == tool, row.verdict) for row in house.rows()]
    assert rows == [(True, "allow"), (False, "allow"), (False, "allow"), (False, "deny")]
