"""The gate in the real programs: what the calls of their models did, asked of the disk once the program has ended.

Twenty calls for each condition, commands and files in turn. The programs run in their freest mode, so that nothing but
the gate stands between the model and the disk.
"""

import json
import os
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gatewright.adapters.hosts import CLIENT_FILE
from tests.outside.bad_gate import BODIES, serving_badly
from tests.outside.house import CALLS, House
from tests.outside.models import Call, Turn

HOSTS = ("claude-code", "codex", "gemini-cli", "opencode", "copilot")
CLOSED = ("claude-code", "codex", "gemini-cli", "opencode", "copilot")
"""Hosts whose hook blocks a call for which there is no answer, by itself or by our entry."""


ANSWERED = 4
"""So many of the calls that ask are answered with yes."""
_HAPPENED = ("allow", "ToolInvoked", "ToolCompleted")


def _one_by_one(calls: Sequence[Call]) -> list[Turn]:
    return [[call] for call in calls]


def _made(house: House) -> dict[str, str]:
    return {f"mark-{number}": "done\n" for number in range(CALLS)}


def _asked(house: House, calls: Sequence[Call]) -> list[Turn]:
    """Return turns none of which ends the program: Claude Code ends with a call that asks and stands alone."""
    return [calls] if house.agent.host == "claude-code" else _one_by_one(calls)


def _hasten(file: Path, timeout_s: int = 1) -> None:
    """Let the client in a host's file wait for half of the time, in place of a minute."""
    text = re.sub(r'(--timeout"?,?\s+"?)120', rf"\g<1>{timeout_s}", file.read_text())
    assert text != file.read_text()
    file.write_text(text)


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_allowed_happens_once_and_is_in_the_log_once(host: str, house: House) -> None:
    house.install("allowed")

    ended, model = house.run(_one_by_one(house.calls()))

    assert len(model.seen.results) == CALLS, ended
    assert house.marks() == _made(house), (ended, model.seen.results)
    rows = house.rows()
    assert [(row.verdict, row.kinds[0], row.kinds[-1]) for row in rows] == [_HAPPENED] * CALLS, rows


@pytest.mark.parametrize("host", ["claude-code"])
def test_a_gate_in_the_settings_of_a_project_that_are_not_shared_holds(host: str, house: House) -> None:
    file = house.install("denied", "--project", str(house.room.project))

    ended, model = house.run(_one_by_one(house.calls()))

    assert file.relative_to(house.room.project) == Path(".claude/settings.local.json")
    assert (len(model.seen.results), house.marks()) == (CALLS, {}), ended


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_denied_does_not_happen_and_the_log_says_why(host: str, house: House) -> None:
    house.install("denied")

    ended, model = house.run(_one_by_one(house.calls()))

    assert len(model.seen.results) == CALLS, ended
    assert house.marks() == {}, (ended, model.seen.results)
    assert [row.verdict for row in house.rows()] == ["deny"] * CALLS


@pytest.mark.parametrize("host", HOSTS)
def test_what_asks_does_not_happen_until_a_person_answers_and_then_once(host: str, house: House) -> None:
    house.install("asked")
    calls = house.calls()

    ended, model = house.run(_asked(house, calls))

    assert len(model.seen.results) == CALLS, ended
    assert house.marks() == {}, (ended, model.seen.results)
    waiting = house.waiting()
    assert len(waiting) == CALLS, waiting

    for one in waiting[:ANSWERED]:
        house.gatewright("approvals", "answer", str(house.policy), one["id"], "--once")
    ended, model = house.run([*_asked(house, calls), *_asked(house, calls)], goes_on=True)

    assert len(model.seen.results) == 2 * CALLS, ended
    assert len(house.marks()) == ANSWERED, (ended, model.seen.results)
    assert set(house.marks().values()) == {"done\n"}
    assert [row.kinds[-1] for row in house.rows() if row.verdict == "allow"] == ["ToolCompleted"] * ANSWERED


@pytest.mark.parametrize("host", ["claude-code"])
def test_a_program_ends_with_a_call_that_asks_and_makes_it_once_when_it_goes_on(host: str, house: House) -> None:
    house.install("asked")
    calls = house.calls(3)
    silent = replace(house.agent, arguments=tuple(word for word in house.agent.arguments if word != "go"))

    for number, answer in enumerate(("--once", "", "--once", "--deny")):
        ended, _ = house.run(_one_by_one(calls), goes_on=number > 0, agent=silent if number else None)
        said = json.loads(ended.stdout)
        assert said["stop_reason"] == "tool_deferred", ended
        assert said["deferred_tool_use"]["id"] == f"call_{(0, 1, 1, 2)[number]:04}"  # no further without an answer
        (waiting,) = house.waiting()
        if answer:
            house.gatewright("approvals", "answer", str(house.policy), waiting["id"], answer)
    ended, model = house.run(_one_by_one(calls), goes_on=True, agent=silent)

    happened = {"mark-0": "done\n", "mark-1": "done\n"}
    assert house.marks() == happened, (ended, model.seen.results)
    assert len(model.seen.results) == len(calls), ended
    house.run(_one_by_one(calls), goes_on=True)
    assert house.marks() == happened
    verdicts = [(row.verdict, row.kinds[-1]) for row in house.rows()]
    assert verdicts == [("allow", "ToolCompleted")] * 2 + [("deny", "ToolDenied")]


@pytest.mark.parametrize("pause_s", [0.0, 0.03, 0.5])
@pytest.mark.parametrize("host", ["claude-code"])
def test_no_call_that_asks_is_made_or_forgotten_where_an_answer_with_others_comes_in_piece_by_piece(
    host: str, house: House, pause_s: float
) -> None:
    house.install("asked")

    ended, model = house.run([house.calls(4), house.calls(1, first=4)], pause_s=pause_s)

    said = json.loads(ended.stdout)
    assert said["stop_reason"] == "tool_deferred", ended
    assert said["deferred_tool_use"]["id"] == "call_0004"  # the only one that stands alone
    assert len(model.seen.results) == 4, ended
    assert house.marks() == {}, (ended, model.seen.results)
    assert len(house.waiting()) == 5


@pytest.mark.parametrize("host", CLOSED)
def test_nothing_happens_while_no_gate_can_be_had(host: str, house: House) -> None:
    file = house.install("allowed")
    _hasten(file)
    folder = house.run_time / "gatewright"
    folder.write_text("a file in the way\n")

    ended, model = house.run(_one_by_one(house.calls()))

    assert house.marks() == {}, (ended, model.seen.results)
    assert len(model.seen.results) == CALLS, ended


@pytest.mark.parametrize("host", CLOSED)
def test_nothing_happens_while_the_gate_gives_no_answer(host: str, house: House) -> None:
    file = house.install("allowed")
    house.run([[house.agent.shell("ls")]])  # starts the gate
    (gate,) = house.gates()
    _hasten(file)
    os.kill(gate, signal.SIGSTOP)
    calls = house.calls()

    # opencode asks about each of its tools before each turn, and waits for each of them
    ended, model = house.run([calls] if host == "opencode" else _one_by_one(calls))

    assert house.marks() == {}, (ended, model.seen.results)
    assert len(model.seen.results) == CALLS, ended
    os.kill(gate, signal.SIGCONT)
    time.sleep(1.0)
    assert house.marks() == {}


@pytest.mark.parametrize("host", CLOSED)
def test_nothing_happens_while_the_gate_answers_nonsense(host: str, house: House) -> None:
    file = house.install("allowed")
    _hasten(file, 40)
    turns = [house.calls(2, first=2 * number) for number in range(len(BODIES))]  # a file and a command for each answer
    with serving_badly(house.place()) as gate:
        ended, model = house.run(turns, gate.begin)

    assert house.marks() == {}, (ended, model.seen.results)
    assert len(model.seen.results) == 2 * len(turns), ended
    assert min(gate.given[turn] for turn in range(len(turns))) >= 2


@pytest.mark.parametrize("host", CLOSED)
def test_nothing_happens_while_the_policy_is_broken(host: str, house: House) -> None:
    house.install("allowed")
    house.policy.write_text(house.policy.read_text() + "\n[agents\n")

    ended, model = house.run(_one_by_one(house.calls()))

    assert house.marks() == {}, (ended, model.seen.results)
    assert len(model.seen.results) == CALLS, ended


@pytest.mark.parametrize("host", HOSTS)
def test_a_model_cannot_change_the_file_of_hooks(host: str, house: House) -> None:
    file = house.install("allowed")
    entries = file.read_text().count(CLIENT_FILE)

    house.run([[house.agent.write(file, "{}\n")], [house.agent.shell(f"echo {{}} > {file}")]])

    assert file.read_text().count(CLIENT_FILE) == entries > 0  # a host may lay out its file anew
    asked = 1 if host == "gemini-cli" else 2  # it refuses to write outside its project before it asks
    assert [row.verdict for row in house.rows()] == ["deny"] * asked


@pytest.mark.parametrize("host", ["opencode"])
def test_the_model_is_offered_no_tool_that_it_may_not_call_where_the_host_can_hide_it(host: str, house: House) -> None:
    house.install("allowed")

    ended, model = house.run([house.calls(2)])

    assert house.marks() == {"mark-0": "done\n", "mark-1": "done\n"}, ended
    named = {name for name, tool in model.seen.tools.items() if "Not available." not in tool["description"]}
    assert named == {"bash", "write"}
    assert model.seen.tools["read"]["parameters"]["properties"] == {}


@pytest.mark.parametrize("host", HOSTS)
def test_a_person_who_took_the_gate_out_of_the_file_is_told_at_once(host: str, house: House) -> None:
    file = house.install("denied")
    file.write_text("{}\n" if file.suffix == ".json" else "")

    began = time.monotonic()
    status = house.status()
    took_s = time.monotonic() - began

    assert status["level"] == "red", status
    assert took_s < 20.0
