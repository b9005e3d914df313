"""Names and texts of strangers on a terminal: no command prints what could move the cursor or reorder a line."""

from __future__ import annotations

import json
import logging
import os
import pty
import subprocess
import sys
import unicodedata
from pathlib import Path
from urllib.parse import quote

import pytest

from gatewright.base.printable import printable
from gatewright.cli.main import main
from gatewright.cli.table import COMMANDS, GROUPS
from tests.support.hostile import hostile_workspace

MAIN = (sys.executable, "-c", "from gatewright.cli.main import script; script()")
EMPTY = "\u3164\u2800\u115f\u1160\u034f\uffa0\u17b4\u17b5\u180b\ufe00\ufe0f\U000e0101\U0001d159"
H = f"x\x1b[2J\x1b]0;PWNED\x07\x9b31m\u202ey\r\u2066\x08\x7f\u2028{EMPTY}\nallow at approval [allowed]"
T = json.dumps(H, ensure_ascii=False).replace("\x7f", "\\u007f")
FILE = "d\x1b[2J\u202e\x9b\u3164.txt"
BROKEN = f"""gatewright = 1
{T} = {T}
[agents.{T}]
tools = [{T}]
{T} = 1
[[sources]]
id = {T}
type = {T}
base_path = {T}
[[policy.rules]]
name = "r"
effect = {T}
operations = [{T}]
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    hostile_workspace(folder, H)
    (folder / "d" / FILE).write_text(H, encoding="utf-8")
    (folder / "d/ask.txt").write_text("x", encoding="utf-8")
    (folder / "d/plain.txt").write_text(H, encoding="utf-8")
    (folder / "broken.toml").write_text(BROKEN, encoding="utf-8")
    return folder


def calls(ws: Path) -> list[tuple[str, ...]]:
    """Every command, with words that are right and with words that are not."""
    policy, tools = str(ws), str(ws / "m.json")
    agent, file = ("--agent", "a"), ("--tool", "file")
    listed = json.dumps({"op": "list", "path": ""})
    good, unknown = json.dumps({"op": "read", "path": FILE}), json.dumps({"op": H, "path": H, H: H})
    words = [
        ("check", policy),
        ("run", policy, "--agent", H, "--", "true"),
        ("check", str(ws / "broken.toml")),
        ("preview", policy, *agent),
        ("preview", tools),
        ("preview", tools, "--tool", "t", "--allow", f"{H},a"),
        ("preview", policy, *agent, "--format", H),
        ("preview", policy, "--agent", H),
        ("rules", policy, "--agent", H),
        *((verb, policy, *agent, *file, "--args", args) for verb in ("decide", "call") for args in (good, unknown)),
        ("decide", policy, *agent, *file, "--args", '{"op": "read", "path": "x"}'),
        ("decide", policy, *agent, *file, "--args", H),
        ("decide", policy, *agent, "--tool", H),
        ("decide", policy, *agent, "--tool", "t", "--args", json.dumps({"op": H})),
        ("call", policy, *agent, "--tool", "t", "--args", json.dumps({"op": H})),
        ("call", policy, *agent, *file, "--args", json.dumps({"op": "append", "path": FILE, "content": H})),
        ("call", policy, *agent, *file, "--args", good, "--approve", H),
        ("operations", tools),
        ("operations", tools, "--tool", H),
        ("operations", tools, "--tool", "t", "--field", H),
        ("filter", tools, "--tool", "t", "--allow", H),
        ("filter", tools, "--tool", "t", "--allow", "a"),
        ("permission", policy, "--source", "d", FILE, H, "a\tb"),
        ("permission", policy, "--source", H, "x"),
        ("export", policy, "--agent", H, "--dialect", "pattern"),
        ("export", policy, "--dialect", H),
        ("export", policy, "--out", str(ws / f"{FILE}/out")),
        ("policy-schema",),
        ("import", H),
        ("selfcheck", policy),
        ("hook", "status", H),
        ("hook", "install", "claude-code", "--policy", policy, "--agent", H),
        ("hook", "install", "codex", "--policy", H),
        ("hook", "uninstall", H),
        ("audit", "verify", policy),
        ("audit", "export", policy),
        ("audit", "verify", H),
        ("state", "status", "--state", f"postgresql:///{quote(H)}"),
        ("state", "init", "--state", f"postgresql://h/x?{quote(H)}", "--member", H),
        ("state", "enroll", H, "--state", H),
        ("approvals", "list", policy),
        ("approvals", "answer", policy, H, "--once"),
        ("approvals", "answer", policy, "q", "--for", H),
        ("approvals", "revoke", policy, H, "--who", H),
        ("catalog", "list", policy),
        ("catalog", "accept", policy, H),
        ("catalog", "accept", policy, "c", H, "--tier", H),
        ("catalog", "import", policy, "--from", H),
        ("block", "create", policy, "n", *agent, "--description", H),
        ("block", "edit", policy, "n", *agent, "--append", H),
        ("block", "set", policy, "n", *agent, "--pin"),
        *(("block", verb, policy, "n", *agent) for verb in ("show", "history")),
        ("block", "list", policy, *agent),
        ("block", "show", policy, H),
        ("context", policy, *agent),
        ("confinement", policy, *agent),
        ("confinement", policy, *agent, "--catalog", H),
        ("inbox", policy, *agent),
        ("inbox", policy, "--agent", H),
        ("memory", "adopt", policy),
        ("audit", "list", policy),
        ("audit", "list", policy, "--agent", H, "--reason", H),
        ("context", policy, "--agent", H),
        ("serve", H, "--agent", H),
        ("serve", policy, "--agent", H),
        ("stop", policy, *agent, "--who", H, "--because", H),
        ("stop", policy, "--agent", H),
        ("go", policy, "--agent", H, "--who", H),
        ("go", policy, *agent, "--who", H),
        ("token", "list", policy),
        ("token", "revoke", policy, H),
        ("init", str(ws / FILE / "new"), "--template", H),
        ("init", str(ws / f"new{FILE}")),
        ("gui", H),
        ("gui", policy, f"--{H}"),
        ("tour", policy, f"--{H}"),
        (H,),
        (f"--{H}",),
        ("check", H),
        ("check", policy, H),
    ]
    read = [("call", policy, *agent, *file, "--args", listed, "--json")]
    return words + read + [(*one, "--json") for one in words if one[0] not in {"gui", "tour", H, f"--{H}"}]


def unseen(text: str) -> list[str]:
    """What a terminal would obey, what reorders a line, and what cannot be seen."""
    kinds = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    return [
        f"U+{ord(c):04X} after {text[max(0, at - 60) : at]!r}"
        for at, c in enumerate(text)
        if c not in "\n\t" and (unicodedata.category(c) in kinds or c in EMPTY)
    ]


def test_no_command_prints_what_a_terminal_would_obey(hostile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tried = calls(hostile)
    assert {words[0] for words in tried} >= COMMANDS.keys() | GROUPS.keys()
    assert main(tried[0]) == 0
    for words in tried:
        exact = words[0] in {"call", "context", "export", "rules"} or words[:2] == ("block", "show")
        if exact and "--json" not in words:  # the text to the letter, but on a terminal
            continue
        main(words)
        ran = capsys.readouterr()
        assert not unseen(ran.out + ran.err), words
        assert "\nallow at approval" not in ran.out + ran.err, words
        assert "Traceback" not in ran.err, words


def test_a_result_is_escaped_on_a_terminal(hostile: Path) -> None:
    read = json.dumps({"op": "read", "path": "plain.txt"})
    for words in (("call", hostile, "--agent", "a", "--tool", "file", "--args", read), ("export", hostile)):
        shown = on_a_terminal(*words)
        assert "\\u202ey" in shown
        assert not unseen(shown)


def test_a_question_on_a_terminal_shows_what_is_asked_escaped(hostile: Path) -> None:
    append = json.dumps({"op": "append", "path": "ask.txt", "content": H})
    words = ("call", hostile, "--agent", "a", "--tool", "file", "--args", append, "--approve", "prompt")
    shown = on_a_terminal(*words)
    assert "allow this once?" in shown
    assert "\\u001b[2J" in shown
    assert not unseen(shown)


def test_a_result_reaches_a_file_to_the_letter(hostile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "one\u202e\u00a0"
    (hostile / "d/plain.txt").write_text(text, encoding="utf-8")
    read = json.dumps({"op": "read", "path": "plain.txt"})
    assert main(["call", str(hostile), "--agent", "a", "--tool", "file", "--args", read]) == 0
    assert text in capsys.readouterr().out


def test_escaped_json_is_the_same_value(hostile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preview", str(hostile), "--agent", "a", "--json"]) == 0
    tool = next(tool for tool in json.loads(capsys.readouterr().out) if tool["name"] == "t")
    assert tool["inputSchema"]["properties"]["op"]["enum"] == [H]
    tag = "\U000e0041\U0001f600"
    assert json.loads(printable(json.dumps(tag, ensure_ascii=False))) == tag


@pytest.mark.parametrize("text", ["caf\u00e9 \u2764\ufe0f \u3042 \U0001f600", "a\u00a0b", "\u0915\u094d\u0937"])
def test_texts_of_people_are_printed_as_they_are(hostile: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main(["permission", str(hostile), "--source", "d", text]) == 0
    assert text in capsys.readouterr().out


@pytest.mark.parametrize("name", EMPTY)
def test_an_id_with_what_cannot_be_seen_is_refused(
    hostile: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (hostile / "policy.toml").write_text(f'gatewright = 1\n[agents.a]\n[agents."a{name}"]\n', encoding="utf-8")
    assert main(["check", str(hostile)]) == 1
    ran = capsys.readouterr()
    assert "characters that cannot be seen" in ran.out + ran.err


def test_what_is_logged_is_escaped(hostile: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = f"import logging; logging.getLogger('gatewright.gate').warning('%s', {H!r})"
    code = f"from gatewright.cli.main import main; main(['check', {str(hostile)!r}]); {said}"
    subprocess.run([sys.executable, "-c", code], check=True)
    shown = capfd.readouterr().err
    assert "PWNED" in shown
    assert not unseen(shown)
    assert logging.lastResort is not None


def on_a_terminal(*words: str | Path) -> str:
    """What stands on a terminal after a command whose input ends at once."""
    try:
        terminal, end = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal is to be had here: {error}")
    with subprocess.Popen([*MAIN, *map(str, words)], stdin=subprocess.DEVNULL, stdout=end, stderr=end) as process:
        os.close(end)
        shown = b""
        while piece := _read(terminal):
            shown += piece
        process.wait()
    os.close(terminal)
    return shown.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody writes any more
        return b""
