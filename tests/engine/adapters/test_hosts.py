"""What coding agents tell their hooks and are answered: one contract over all of them, and recorded exchanges."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.adapters.hosts import (
    HOST_IDS,
    NO_GATE,
    EventKind,
    Hook,
    Host,
    HostAnswer,
    HostEvent,
    Reply,
    is_denial,
    load_host,
)
from gatewright.adapters.hosts.entry import shell_line
from gatewright.policy.verdict import Verdict

FOLDER = Path(__file__).parents[2] / "golden" / "hosts"
EXCHANGES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.json"))
HOSTS = [load_host(host_id) for host_id in HOST_IDS]


def read(name: str) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return held


def host_of(name: str) -> Host:
    return load_host(name.partition("/")[0])


def said(reply: Reply) -> dict[str, Any]:
    return {"stdout": json.loads(reply.stdout) if reply.stdout else None, "exit_code": reply.exit_code}


def lets_run(reply: Reply) -> bool:
    """True if every word that a host may read for its answer says allow."""
    value: dict[str, Any] = json.loads(reply.stdout) if reply.stdout else {}
    spelt: dict[str, Any] = value.get("hookSpecificOutput", value)
    word = spelt.get("permissionDecision", value.get("permission", value.get("decision", "allow")))
    assert is_denial(reply) == (reply.exit_code == 2 or word == "deny")
    return reply.exit_code == 0 and word == "allow"


@pytest.mark.parametrize("name", EXCHANGES)
def test_a_recorded_exchange_is_read_and_answered_as_recorded(name: str) -> None:
    exchange, host = read(name), host_of(name)
    if "fault" in exchange:
        with pytest.raises(ValueError, match=exchange["fault"]):
            host.read(exchange["message"])
        return
    event = host.read(exchange["message"])
    if "event" in exchange:
        wanted = {**exchange["event"]}
        assert event == HostEvent(EventKind(wanted.pop("kind")), **wanted)
    answer: dict[str, Any] = exchange["answer"]
    reply = host.reply(event, HostAnswer(Verdict(answer["verdict"]), answer.get("reason", ""), answer.get("arguments")))
    assert said(reply) == exchange["reply"]


@pytest.mark.parametrize("host", HOSTS, ids=HOST_IDS)
def test_every_host_has_recorded_the_four_answers_and_a_report(host: Host) -> None:
    names = {Path(name).stem for name in EXCHANGES if host_of(name) is host}
    assert names >= {"allow", "allow-changed", "deny", "ask"}
    assert any(read(name)["run"] for name in EXCHANGES if host_of(name) is host) == host.enforcement.is_tried


BEFORE = [name for name in EXCHANGES if "fault" not in read(name)]


@pytest.mark.parametrize("name", BEFORE)
def test_a_message_without_something_that_a_decision_needs_is_refused_or_says_the_same(name: str) -> None:
    message, host = read(name)["message"], host_of(name)
    whole = host.read(message)
    if whole.kind is not EventKind.BEFORE:
        return
    needed = 0
    for key in message:
        for damaged in (
            {**message, key: None},
            {**message, key: 7},
            {one: v for one, v in message.items() if one != key},
        ):
            try:
                event = host.read(damaged)
            except ValueError:
                needed += 1
            else:
                is_same = (event.tool, event.arguments, event.conversation) == (
                    whole.tool,
                    whole.arguments,
                    whole.conversation,
                )
                assert is_same or event.kind is not EventKind.BEFORE
    assert needed >= 3 * 3


@pytest.mark.parametrize("host", HOSTS, ids=HOST_IDS)
@given(data=st.data())
def test_no_answer_but_allow_ever_lets_a_call_run(host: Host, data: st.DataObject) -> None:
    """And an allowed one runs with other arguments only where the host takes them."""
    name = data.draw(st.sampled_from([one for one in BEFORE if host_of(one) is host]))
    event = host.read(read(name)["message"])
    event = replace(event, tool=data.draw(st.sampled_from([*host.shells, "Unknown", event.tool or "Other"])))
    if event.kind is not EventKind.BEFORE:
        return
    verdict = data.draw(st.sampled_from(Verdict))
    reason = data.draw(st.text(max_size=5))
    changed = data.draw(st.none() | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2))
    reply = host.reply(event, HostAnswer(verdict, reason, changed))
    other = changed is not None and changed != dict(event.arguments)
    if verdict is not Verdict.ALLOW or (other and event.tool not in host.enforcement.changes):
        assert not lets_run(reply)
    elif lets_run(reply) and other:
        assert json.dumps(changed) in reply.stdout
    else:
        assert not other or not lets_run(reply)


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
@pytest.mark.parametrize(
    "program",
    ["import sys; sys.exit(2)", "import sys; sys.exit(1)", "import os; os.kill(os.getpid(), 9)", "import nothing"],
)
def test_a_client_that_fails_in_any_way_ends_with_a_denial(program: str) -> None:
    """The hosts that start it in a shell see exit code 2, or the denial as JSON."""
    for fallback in ("", '{"permissionDecision": "deny"}'):
        line = shell_line(Hook((sys.executable, "-c", program)), fallback)
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
        assert not lets_run(Reply(done.stdout, done.stderr, done.returncode))
        assert done.returncode == (0 if fallback else 2)
    line = shell_line(Hook(("/nowhere/python", "-c", program)))
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert NO_GATE in done.stderr


def test_a_client_that_answers_keeps_its_answer() -> None:
    for fallback in ("", '{"permissionDecision": "deny"}'):
        line = shell_line(Hook((sys.executable, "-c", "print('{}')")), fallback)
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr, done.returncode) == ("{}\n", "", 0)


def test_the_documentation_says_what_each_host_enforces() -> None:
    page = (Path(__file__).parents[3] / "docs" / "coding_agents.md").read_text()
    for host in HOSTS:
        held = host.enforcement
        row = (
            host.title,
            "asks its person" if held.asks else "is a denial that says how to approve",
            "runs" if host.shells.keys() <= held.changes else "runs with your rights",
            "blocks the call" if held.fails_closed else "lets the call run",
            "yes" if held.needs_trust else "no",
            "has rights of its own where the policy says so"
            if host.starters
            else "counts as its caller unless it tells its kind",
            "with the program" if held.is_tried else "not yet: by its documentation",
        )
        assert f"| {' | '.join(row)} |" in page
    shown = page.partition("**What the model sees.** ")[2].partition("\n- ")[0]
    assert [host.title for host in HOSTS if host.title in shown] == [host.title for host in HOSTS if host.narrows]
