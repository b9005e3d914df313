"""That the guards of the shared fixtures bite: errors nobody awaited fail the test that caused them."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.checkout import ROOT

PROBES = """
import asyncio, os, sys, threading
from pathlib import Path
import pytest

class Loud:
    def __del__(self):
        raise ValueError("lost in a finalizer")

def test_finalizer():
    Loud()

def test_thread():
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()

def test_slot(qtbot):
    from PySide6.QtCore import QTimer
    QTimer.singleShot(0, lambda: 1 / 0)
    qtbot.wait(10)

async def test_task():
    async def fail():
        raise ValueError("nobody awaits me")
    task = asyncio.ensure_future(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del task

def test_hook():
    sys.excepthook = print

async def test_sound_plain_loop(tmp_path):
    assert "QEventLoop" not in str(type(asyncio.get_running_loop()).__mro__)
    assert not list(tmp_path.iterdir())

async def test_sound_qt_loop(qtbot):
    assert "QEventLoop" in str(type(asyncio.get_running_loop()).__mro__)
    await asyncio.wait_for(asyncio.sleep(0), 5)

def test_sound_home():
    assert not list(Path.home().iterdir())
    assert Path(os.environ["GATEWRIGHT_KEYS"]).is_relative_to(Path.home())
    assert "GATEWRIGHT_STATE" not in os.environ
"""
LEFT = """
import logging, os, signal, sys, pytest

@pytest.mark.parametrize("leave", [LEAVE])
def test_leaves(leave):
    leave()
"""
LEAVES = {
    "environment": "lambda: os.environ.update(LEFT='x')",
    "folder": "lambda: os.chdir('/')",
    "umask": "lambda: os.umask(0o007)",
    "paths of modules": "lambda: sys.path.append('/nowhere')",
    "signals": "lambda: signal.signal(signal.SIGHUP, print)",
    "loggers": "lambda: logging.getLogger('asyncio').setLevel(5)",
}


def run_of(folder: Path) -> subprocess.CompletedProcess[str]:
    """The tests of a folder, under the fixtures that all tests have."""
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder)]
    command += ["-p", "tests.conftest", "-p", "no:cacheprovider", "-rA", "--tb=short", str(folder)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "GATEWRIGHT_STATE": "elsewhere"}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


def test_a_module_that_leaves_the_process_otherwise_fails_and_says_what(tmp_path: Path) -> None:
    for number, leave in enumerate(LEAVES.values()):
        (tmp_path / f"test_leaves{number}.py").write_text(LEFT.replace("LEAVE", leave), "utf-8")

    lines = run_of(tmp_path).stdout.splitlines()

    told = [line for line in lines if line.startswith("E ") and "left behind" in line]
    assert len([line for line in lines if line.startswith("ERROR")]) == len(told) == len(LEAVES), lines
    for what, line in zip(LEAVES, told, strict=True):
        assert f"{{'{what}': (" in line, told


def test_unseen_errors_fail_their_test_and_sound_tests_pass(tmp_path: Path) -> None:
    probes = tmp_path / "test_probes.py"
    probes.write_text(PROBES, "utf-8")
    done = run_of(tmp_path)

    failed = {
        word
        for line in done.stdout.splitlines()
        if line.startswith(("FAILED", "ERROR"))
        for word in line.split()
        if "::" in word
    }
    passed = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("PASSED")}
    assert {name.partition("::")[2] for name in failed} == {
        "test_finalizer",
        "test_thread",
        "test_slot",
        "test_task",
        "test_hook",
    }, done.stdout
    assert {"test_sound_plain_loop", "test_sound_qt_loop", "test_sound_home"} <= {
        name.partition("::")[2] for name in passed
    }, done.stdout
