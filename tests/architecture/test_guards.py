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


def test_unseen_errors_fail_their_test_and_sound_tests_pass(tmp_path: Path) -> None:
    probes = tmp_path / "test_probes.py"
    probes.write_text(PROBES, "utf-8")
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    command += ["-p", "tests.conftest", "-p", "no:cacheprovider", "-rA", "--tb=short", str(probes)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "GATEWRIGHT_STATE": "elsewhere"}

    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)

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
