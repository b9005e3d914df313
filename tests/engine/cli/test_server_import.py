"""One server on the command line: added, trusted, asked, pinned, called; what goes wrong, and what is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.engine.cli.conftest import Runner
from tests.support.checkout import ROOT
from tests.support.patience import pause_until as wait_until

POLICY = 'gatewright = 1 # ours\n\n[agents.a]\ntools = []\napprovals = { privileged = "allow" }\n'
GOOD, BAD = (str(ROOT / "tests" / "support" / name) for name in ("good_server.py", "bad_server.py"))


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY, encoding="utf-8")
    return path


def give(policy: Path, *tools: str) -> None:
    policy.write_text(policy.read_text().replace("tools = []", f"tools = {json.dumps(tools)}"))


def test_a_server_is_added_asked_pinned_and_its_tools_are_held(run: Runner, policy: Path) -> None:
    words = ("--id", "raw", "--prefix", "r", "--env", "HOME", "--trust", "--", sys.executable, BAD, "plain")
    status, out, _ = run("catalog", "import", policy, *words)

    assert status == 0
    assert out.splitlines()[:2] == ["raw: raw 0 lists 1 tool", "  new       one  privileged"]
    assert f"1 of them are held until they are accepted: gatewright catalog accept {policy} raw" in out
    assert policy.read_text().startswith(POLICY)
    assert 'prefix = "r"' in policy.read_text()
    assert 'env = ["HOME"]' in policy.read_text()
    assert json.loads((policy.parent / "catalogs" / "raw.json").read_text())["accepted"] == {}
    assert run("decide", policy, "--agent", "a", "--tool", "r.one")[0] == 4


def test_with_accept_the_tools_can_be_given_and_called_at_once(run: Runner, policy: Path) -> None:
    words = ("--id", "good", "--trust", "--accept", "--", sys.executable, GOOD, "stdio")
    status, out, _ = run("catalog", "import", policy, *words)
    assert status == 0
    assert "9 of them were accepted" in out

    give(policy, "add")
    status, out, _ = run("call", policy, "--agent", "a", "--tool", "add", "--args", '{"a": 20, "b": 22}', "--json")
    assert status == 0
    assert json.loads(json.loads(out)["output"]) == {"total": 42}
    assert run("call", policy, "--agent", "a", "--tool", "echo", "--args", '{"text": "x"}')[0] == 4


def test_without_trust_a_server_is_added_and_nothing_is_started(run: Runner, policy: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    status, _, err = run("catalog", "import", policy, "--id", "x", "--", "/usr/bin/touch", made)

    assert status == 1
    assert f"/usr/bin/touch {made}" in err
    assert 'command = "/usr/bin/touch"' in policy.read_text()
    assert not made.exists()
    looking: list[tuple[str | Path, ...]] = [
        ("check", policy),
        ("selfcheck", policy),
        ("preview", policy, "--agent", "a"),
        ("decide", policy, "--agent", "a", "--tool", "one"),
        ("catalog", "list", policy),
    ]
    for command in looking:
        run(*command)
    assert not made.exists()


def test_a_server_that_is_there_is_asked_again_and_what_changed_is_told(run: Runner, policy: Path) -> None:
    run("catalog", "import", policy, "--id", "raw", "--trust", "--accept", "--", sys.executable, BAD, "plain")
    pin = policy.parent / "catalogs" / "raw.json"
    pin.write_text(pin.read_text().replace("The tool one.", "The tool one, once."))
    before = policy.read_text()

    status, out, _ = run("catalog", "import", policy, "--id", "raw", "--json")

    assert status == 0
    assert [row["change"] for row in json.loads(out)["changes"]] == []
    assert json.loads(out)["held"] == []
    assert policy.read_text() == before


@pytest.mark.parametrize(
    ("way", "why"),
    [
        ("exit-at-start", "ended with exit code 3: it last wrote `cannot open the database`"),
        ("exit-at-handshake", "ended with exit code 3: it last wrote `cannot open the database`"),
        ("exit-at-list", "ended with exit code 3: it last wrote `cannot open the database`"),
        ("long-line-at-list", "line of more than 16 MiB"),
        ("endless-pages", "more than 500 pages"),
        ("many-tools", "more than 5,000 tools"),
        ("no-list", "no list"),
        ("other-version", "version `1999-01-01` of the protocol"),
    ],
)
def test_where_the_server_does_not_answer_nothing_is_written(run: Runner, policy: Path, way: str, why: str) -> None:
    status, _, err = run("catalog", "import", policy, "--id", "x", "--trust", "--", sys.executable, BAD, way)

    assert status == 2
    assert why in err
    assert policy.read_text() == POLICY
    assert not (policy.parent / "catalogs").exists()


@pytest.mark.parametrize("damage", ["gone", "<<<<<<< HEAD\n", "link"])
def test_pin_that_is_lost_or_damaged_is_made_anew_with_nothing_accepted(
    run: Runner, policy: Path, damage: str, tmp_path: Path
) -> None:
    run("catalog", "import", policy, "--id", "far", "--trust", "--accept", "--", sys.executable, GOOD, "stdio")
    give(policy, "echo")
    pin = policy.parent / "catalogs" / "far.json"
    if damage in {"gone", "link"}:
        pin.unlink()
    if damage == "link":
        (tmp_path / "elsewhere.json").write_text("[]")
        pin.symlink_to(tmp_path / "elsewhere.json")
    elif damage != "gone":
        pin.write_text(damage)
    status, _, err = run("check", policy)
    assert status == 1
    assert "`gatewright catalog import POLICY --id far" in err

    status, _, err = run("catalog", "import", policy, "--id", "far")

    assert status == 0
    assert "made anew; none of its tools is accepted" in err
    assert run("decide", policy, "--agent", "a", "--tool", "echo")[0] == 4
    assert run("check", policy)[0] == 0
    assert not pin.is_symlink()
    if damage.startswith("<"):
        assert pin.with_name("far.json.damaged").read_text() == damage
    if damage == "link":
        assert (tmp_path / "elsewhere.json").read_text() == "[]"


def test_policy_with_another_fault_is_not_opened_by_asking_a_server(run: Runner, policy: Path) -> None:
    run("catalog", "import", policy, "--id", "far", "--trust", "--accept", "--", sys.executable, GOOD, "stdio")
    give(policy, "no_such")
    before = (policy.parent / "catalogs" / "far.json").read_bytes()
    status, _, err = run("catalog", "import", policy, "--id", "far")
    assert status == 1
    assert "no tool is named `no_such`" in err
    assert (policy.parent / "catalogs" / "far.json").read_bytes() == before


def test_one_bad_tool_is_left_out_with_the_reason(run: Runner, policy: Path) -> None:
    status, out, _ = run("catalog", "import", policy, "--id", "x", "--trust", "--", sys.executable, BAD, "bad-tools")

    assert status == 0
    assert "x: raw 0 lists 2 tools" in out
    assert "left out  bad: its schema cannot be used" in out


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--id", "x"),
        ("--id", "x", "--prefix", "p"),
        ("--id", "x", "--url", "http://127.0.0.1:9/", "--", "command"),
        ("--id", "x", "--header", "A=B", "--", "command"),
        ("--id", "x", "--header", "A", "--url", "http://127.0.0.1:9/"),
        ("--id", "x", "--env", "A", "--url", "http://127.0.0.1:9/"),
        ("--from", "file", "--id", "x"),
        ("--only", "x", "--id", "x", "--", "command"),
    ],
)
def test_words_that_do_not_go_together_are_refused(run: Runner, policy: Path, words: tuple[str, ...]) -> None:
    assert run("catalog", "import", policy, *words)[0] == 2
    assert policy.read_text() == POLICY


def test_another_server_under_an_id_that_is_there_is_refused(run: Runner, policy: Path) -> None:
    run("catalog", "import", policy, "--id", "x", "--", "one")
    before = policy.read_text()

    status, _, err = run("catalog", "import", policy, "--id", "x", "--", "two")

    assert status == 2
    assert "catalog is called `x` already" in err
    assert policy.read_text() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_call_that_is_ended_by_a_signal_leaves_no_process(
    run: Runner, policy: Path, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "kept").mkdir()
    log, place = tmp_path / "kept" / "log", ("--place", f"{tmp_path / 'kept'}=write")
    server = ("--", sys.executable, GOOD, "stdio", log)
    run("catalog", "import", policy, "--id", "x", *place, "--trust", "--accept", *server)
    give(policy, "slow")
    program = "from gatewright.cli.main import script; script()"
    words = [sys.executable, "-c", program, "call", str(policy), "--agent", "a"]
    with subprocess.Popen([*words, "--tool", "slow", "--args", '{"seconds": 60}'], cwd=ROOT / "engine") as call:
        wait_until(lambda: log.exists() and "slow begins" in log.read_text())
        assert servers(log)
        call.send_signal(number)
        call.wait(20)
    wait_until(lambda: not servers(log))


def servers(log: Path) -> list[str]:
    """The servers that run and were told this log."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if str(log).encode() in words and GOOD.encode() in words and int(process.name) != os.getpid():
                found.append(process.name)
    return found
