"""``gatewright run``: a program in a room of an agent, on the streams or the terminal of whoever runs it."""

from __future__ import annotations

import asyncio
import gzip
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gatewright.adapters.confine import Confiner
from gatewright.base.errors import GatewrightError
from gatewright.cli.main import main
from gatewright.workspace import Workspace
from tests.support.patience import pause_until

needs_rooms = pytest.mark.skipif(bool(Confiner.why_not()), reason=f"no process can be confined: {Confiner.why_not()}")
POLICY = """gatewright = 1

[agents.a]
capabilities = [{ FsWrite = { prefixes = ["out"] } }]

[[sources]]
id = "notes"
type = "file"
base_path = "notes"
default_permission = "read_write"
permission_rules = [{ pattern = "*.key", permission = "none" }]

[[sources]]
id = "out"
type = "file"
base_path = "out"
default_permission = "read_write"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    for name in ("notes", "out"):
        (folder / name).mkdir(parents=True)
    (folder / "policy.toml").write_text(POLICY)
    (folder / "notes" / "a.txt").write_text("some words\n")
    (folder / "notes" / "own.key").write_text("the key\n")
    return folder


def words(*more: str, policy: str = ".") -> list[str]:
    program = "from gatewright.cli.main import script; script()"
    return [sys.executable, "-c", program, "run", policy, "--agent", "a", *more]


def ran(folder: Path, *more: str, given: str = "", start: Path | None = None) -> tuple[int, str, str]:
    environment = {**os.environ, "GATEWRIGHT_KEYS": str(folder.parent / "keys")}
    done = subprocess.run(
        words(*more, policy=str(folder)),
        cwd=start or folder,
        input=given,
        text=True,
        capture_output=True,
        env=environment,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@needs_rooms
def test_a_program_sees_its_places_alone_and_its_exit_code_is_passed_on(folder: Path) -> None:
    script = "cat notes/a.txt notes/own.key policy.toml ~/.profile; echo mine > out/b; echo no > notes/b; exit 7"
    status, out, err = ran(folder, "--place", "notes=read", "--", "sh", "-c", script)
    assert (status, out) == (7, "some words\n")
    assert (folder / "out" / "b").read_text() == "mine\n"
    assert not (folder / "notes" / "b").exists()
    told = err.splitlines()[0]
    assert f"read {folder}/notes" in told
    assert f"write and delete {folder}/out" in told
    assert "no network" in told


@needs_rooms
def test_what_a_program_changed_in_a_copy_is_written_back_and_told(folder: Path) -> None:
    notes, out = folder / "notes", folder / "out"
    (out / "gone").write_text("stays\n")
    script = "cd notes; echo more >> a.txt; echo new > n.txt; rm ../out/gone; echo no > own.key; cat a.txt; exit 7"
    places = ("--place", "notes=snapshot", "--place", "out=snapshot")
    status, said, err = ran(folder, *places, "--", "sh", "-c", script)
    assert (status, said) == (7, "some words\nmore\n")
    assert ((notes / "a.txt").read_text(), (notes / "n.txt").read_text()) == ("some words\nmore\n", "new\n")
    assert ((out / "gone").read_text(), (notes / "own.key").read_text()) == ("stays\n", "the key\n")
    first, *told = err.splitlines()
    assert f"write and delete in a copy: {notes}" in first
    assert f"gatewright: written over {notes}/a.txt" in told
    assert f"gatewright: written {notes}/n.txt" in told
    assert f"gatewright: kept back what was deleted: {out}/gone: its level asks, and nobody is there" in told
    lies = told[-1].removeprefix("gatewright: what was kept back lies in ")
    assert Path(lies, str(notes)[1:], "own.key").read_text() == "no\n"


@needs_rooms
def test_stop_of_its_agent_kills_a_program_and_lets_no_other_begin(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(folder.parent / "keys"))
    script = "echo begun > out/begun; sleep 4322.5"
    with subprocess.Popen(
        words("--", "sh", "-c", script), cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as program:
        pause_until((folder / "out" / "begun").exists)
        assert main(["stop", str(folder), "--agent", "b", "--because", "another"]) == 2
        assert main(["stop", str(folder), "--because", "it deletes too much"]) == 0
        _, err = program.communicate()
    assert program.returncode == 128 + signal.SIGKILL
    assert "it deletes too much; the program was killed" in err
    assert main(["run", str(folder), "--agent", "a", "--", "touch", "out/b"]) == 4
    assert "it deletes too much" in capsys.readouterr().err
    assert not (folder / "out" / "b").exists()
    assert main(["go", str(folder)]) == 0
    assert ran(folder, "--", "touch", "out/b")[0] == 0


@needs_rooms
def test_a_program_ended_by_a_signal_keeps_what_it_changed(folder: Path) -> None:
    environment = {**os.environ, "GATEWRIGHT_KEYS": str(folder.parent / "keys")}
    script = "echo new > notes/n.txt; echo begun > out/begun; sleep 4322.5"
    with subprocess.Popen(
        words("--place", "notes=snapshot", "--", "sh", "-c", script), cwd=folder, env=environment
    ) as process:
        pause_until((folder / "out" / "begun").exists)
        process.send_signal(signal.SIGTERM)
    assert (folder / "notes" / "n.txt").read_text() == "new\n"


@needs_rooms
def test_streams_pass_through(folder: Path) -> None:
    assert ran(folder, "--", "tr", "a-z", "A-Z", given="some words")[:2] == (0, "SOME WORDS")


KEY = "the_key_that_nobody_may_read"
TOOLS = Path(sys.executable).parent
PROJECT = {
    "pkg/work.py": "import os\nimport pkg.closed\n\nnumber: int = 'words'\n",
    "pkg/closed.py": f"import os\n\nnumber = {KEY}\n",
    "page/index.md": "# A page that all may read\n",
    "page/closed.md": f"# {KEY}\n",
    "mkdocs.yml": "site_name: Site\ntheme: readthedocs\ndocs_dir: page\nsite_dir: ../out/site\n",
    "sum.mjs": "import fs from 'fs'\nconsole.log(1 + 2, fs.readdirSync('page').length)\n",
    "read.mjs": "import fs from 'fs'\nconsole.log(fs.readFileSync('page/closed.md', 'utf8'))\n",
    "package.json": '{ "name": "site", "version": "1.0.0", "files": ["page", "pkg"] }\n',
}
REAL_WORK = (
    ((str(TOOLS / "ruff"), "check", "--no-cache", "pkg"), "`os` imported but unused", ("pkg/closed.py",)),
    ((str(TOOLS / "basedpyright"), "pkg/work.py"), "is not assignable to declared type", ("pkg/closed.py",)),
    ((str(TOOLS / "properdocs"), "build", "--strict"), "A page that all may read", ("-f", "page/closed.md")),
    (("git", "grep", "--no-index", "-e", "that", "-e", KEY), "A page that all may read", ("--", "page/closed.md")),
    (("node", "sum.mjs"), "3 1", None),
    (("npm", "pack", "--offline", "--pack-destination", "../out"), "site-1.0.0.tgz", None),
)
"""The words that run a program, what that gives, and more words that would have it read what is closed."""


@needs_rooms
@pytest.mark.parametrize(("line", "wanted", "more"), REAL_WORK, ids=[Path(one[0][0]).name for one in REAL_WORK])
def test_a_program_from_a_registry_does_its_work_and_reads_no_closed_file(
    folder: Path, line: tuple[str, ...], wanted: str, more: tuple[str, ...] | None
) -> None:
    if shutil.which(line[0]) is None:
        pytest.skip(f"`{line[0]}` is not installed")
    rules = 'permission_rules = [{ pattern = "closed.*", permission = "none" }, '
    (folder / "policy.toml").write_text(POLICY.replace("permission_rules = [", rules))
    for name, text in PROJECT.items():
        (folder / "notes" / name).parent.mkdir(exist_ok=True)
        (folder / "notes" / name).write_text(text)

    def done(*words: str) -> bytes:
        _, said, err = ran(folder, "--place", "notes=read", "--", *words, start=folder / "notes")
        return made(said, err)

    def made(said: str, err: str) -> bytes:
        files = [one for one in (folder / "out").rglob("*") if one.is_file()]
        held = [gzip.decompress(one.read_bytes()) if one.suffix == ".tgz" else one.read_bytes() for one in files]
        return b"".join((said.encode(), err.encode(), *held))

    result = done(*line)
    assert wanted.encode() in result, result
    assert KEY.encode() not in result
    trying = (*line, *more) if more is not None else ("node", "read.mjs")
    assert KEY.encode() not in done(*trying)

    said = list[bytes]()
    for given in (line, trying):  # what they would read without a room
        plain = subprocess.run(given, cwd=folder / "notes", text=True, capture_output=True, check=False)
        said.append(made(plain.stdout, plain.stderr))
    assert KEY.encode() in b"".join(said)


@needs_rooms
def test_a_terminal_passes_through_and_a_program_has_one_of_its_own(folder: Path) -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, "GATEWRIGHT_KEYS": str(folder.parent / "keys")}
    script = "test -t 0 && test -t 1 && echo ready; read line; echo got $line; exit 3"
    process = subprocess.Popen(
        words("--", "bash", "-c", script),
        cwd=folder,
        stdin=slave,
        stdout=slave,
        env=environment,
        start_new_session=True,
    )
    os.close(slave)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(master, 4096)
    os.write(master, b"hello\r")
    while b"got hello" not in seen:
        seen += os.read(master, 4096)
    assert process.wait() == 3
    os.close(master)


@needs_rooms
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_a_program_outlives_it(folder: Path, number: signal.Signals) -> None:
    environment = {**os.environ, "GATEWRIGHT_KEYS": str(folder.parent / "keys")}
    script = "echo begun > out/begun; sleep 4321.5"
    with subprocess.Popen(words("--", "sh", "-c", script), cwd=folder, env=environment) as process:
        pause_until((folder / "out" / "begun").exists)
        process.send_signal(number)
        process.wait()
    pause_until(lambda: not any(b"4321.5" in _command_of(one) for one in Path("/proc").glob("[0-9]*")))


def _command_of(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_where_nothing_can_be_confined_nothing_is_started(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gatewright.adapters.confine.why_no_room", lambda: "bubblewrap is missing: install it")
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(folder.parent / "keys"))
    monkeypatch.chdir(folder)
    assert main(["run", ".", "--agent", "a", "--", "touch", "out/b"]) == 4
    assert "bubblewrap is missing: install it" in capsys.readouterr().err
    assert not (folder / "out" / "b").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--agent", "b", "--", "true"), "`b`"),
        (("--agent", "a", "--place", "nowhere=read", "--", "true"), "nowhere"),
    ],
)
def test_what_is_not_there_is_told(
    folder: Path, more: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(folder), *more]) == 2
    assert said in capsys.readouterr().err


SHIM = """\
#!/usr/bin/env bash
set -e
program="${{0##*/}}"
export {upper}_ROOT="/home/me/.{manager}"
exec "/home/me/.{manager}/libexec/{manager}" exec "$program" "$@"
"""


def put_shim(folder: Path, manager: str, name: str) -> Path:
    shim = folder / "shims" / name
    shim.parent.mkdir()
    if manager in {"mise", "volta"}:
        own = shim.parent.parent / {"mise": "mise", "volta": "volta-shim"}[manager]
        shutil.copy("/bin/true", own)
        shim.symlink_to(own)
    elif manager == "asdf":
        shim.write_text(f'#!/usr/bin/env bash\n# asdf-plugin: x 1.2\nexec /opt/asdf/bin/asdf exec "{name}" "$@"\n')
    else:
        shim.write_text(SHIM.format(manager=manager, upper=manager.upper()))
    shim.chmod(0o755)
    return shim


@pytest.mark.parametrize("is_path", [True, False])
@pytest.mark.parametrize("manager", ["pyenv", "rbenv", "nodenv", "goenv", "asdf", "mise", "volta"])
def test_a_shim_of_a_version_manager_is_told_with_what_to_name_instead(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    manager: str,
    is_path: bool,
) -> None:
    shim = put_shim(tmp_path, manager, "python3")
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(tmp_path / "keys"))
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    command = str(shim) if is_path else "python3"
    assert main(["run", str(folder), "--agent", "a", "--", command, "-V"]) != 0
    said = capsys.readouterr().err
    assert f"`{command}` is a shim of {manager}" in said
    assert f"`{manager} which python3` prints it" in said

    server = f'[[catalogs]]\nid = "s"\ntype = "mcp"\ncommand = "{command}"\nplaces = {{}}\n'
    (folder / "policy.toml").write_text(f"{POLICY}\n{server}")
    told = pytest.raises(GatewrightError, match=f"is a shim of {manager}.*with its path")
    with Workspace.open(folder, keys=tmp_path / "keys", trust=True) as workspace, told:
        asyncio.run(workspace.servers.start("s"))


@needs_rooms
def test_a_script_that_hands_over_to_a_program_of_the_system_is_no_shim(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "env-exec"
    script.write_text('#!/bin/sh\n# pyenv exec\nexec env true "$@"\n')
    script.chmod(0o755)
    code, _, said = ran(folder, "--", str(script))
    assert code == 0, said
