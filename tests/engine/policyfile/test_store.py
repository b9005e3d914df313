"""The file on disk: what cannot be read or written, and that a killed writer leaves the old text or the new."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.policyfile import digest_of, read_policy_text, write_policy_text

OLD = "gatewright = 1\n# " + "old " * 20_000 + "\n"
NEW = "gatewright = 1\n# " + "new " * 30_000 + "\n"

# forks a writer, tells its number, and the next one when that is killed; a writer tells of each save
WRITERS = """
import os, sys
from pathlib import Path
from gatewright.policyfile.reader import write_policy_text
path, old, new = Path(sys.argv[1]), Path(sys.argv[2]).read_text(), Path(sys.argv[3]).read_text()
for _ in range(int(sys.argv[4])):
    child = os.fork()
    if not child:
        while True:
            held = path.read_text()
            write_policy_text(path, new if held == old else old, expected=held)
            os.write(1, b".\\n")
    os.write(1, f"writer {child}\\n".encode())
    os.waitpid(child, 0)
"""


def test_what_is_read_is_what_was_written_with_its_line_endings(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    text = "\ufeffgatewright = 1\r\nname = 'ü'\r\n"

    write_policy_text(path, text, expected=None)

    assert read_policy_text(path) == text
    assert len(digest_of(text)) == 64
    assert digest_of(text) != digest_of(text.replace("\r", ""))


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"a = 1\nb = '\xe9'\n")
    os.mkfifo(tmp_path / "pipe.toml")

    for name, reason in {
        "gone.toml": "there is no such file",
        "gone/policy.toml": "there is no such file",
        ".": "is a folder",
        "latin.toml": r"not UTF-8 text \(line 2\)",
        "pipe.toml": "no ordinary file",
        "latin.toml/x": "not a directory",
    }.items():
        with pytest.raises(WorkspaceError, match=reason):
            read_policy_text(tmp_path / name)


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "huge.toml"
    with path.open("wb") as stream:
        stream.truncate(3 * 1024**3)

    with pytest.raises(WorkspaceError, match="larger than 8 MiB"):
        read_policy_text(path)


def test_a_save_never_lands_on_content_that_nobody_has_seen(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("theirs")

    for expected, reason in {"ours": "another program changed it", None: "is there already"}.items():
        with pytest.raises(WorkspaceError, match=reason):
            write_policy_text(path, "new", expected=expected)
    assert path.read_text() == "theirs"
    path.unlink()
    with pytest.raises(WorkspaceError, match="gone"):
        write_policy_text(path, "new", expected="theirs")
    assert not path.exists()


def test_a_folder_that_is_not_there_or_half_a_character_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="was not saved: there is no such file or folder"):
        write_policy_text(tmp_path / "gone" / "policy.toml", "x", expected=None)
    with pytest.raises(WorkspaceError, match="not UTF-8"):
        write_policy_text(tmp_path / "policy.toml", "\ud800", expected=None)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_file_or_folder_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("old")
    path.chmod(0o400)
    with pytest.raises(WorkspaceError, match="read-only"):
        write_policy_text(path, "new", expected="old")
    path.chmod(0o600)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(WorkspaceError, match="permission denied"):
            write_policy_text(path, "new", expected="old")
    finally:
        tmp_path.chmod(0o700)
    assert path.read_text() == "old"


def test_a_writer_killed_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path, old, new = tmp_path / "policy.toml", tmp_path / "old", tmp_path / "new"
    for file, text in {path: OLD, old: OLD, new: NEW}.items():
        file.write_text(text)
    chance = random.Random(7)
    rounds, seen = 100, set[str]()
    command = [sys.executable, "-c", WRITERS, str(path), str(old), str(new), str(rounds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(rounds):
            line = process.stdout.readline()
            while not line.startswith("writer"):
                assert line, "the writers ended early"
                line = process.stdout.readline()
            for _ in range(chance.randint(0, 6)):
                process.stdout.readline()
            os.kill(int(line.split()[1]), signal.SIGKILL)
            held = read_policy_text(path)
            assert held in {OLD, NEW}
            seen.add(held)
        process.communicate()
    assert process.returncode == 0
    assert seen == {OLD, NEW}
