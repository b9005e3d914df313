"""The eight packages of the card, blocked one at a time: an operator misses each of them at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gatewright.workspace import create_workspace
from tests.support.checkout import ROOT

BLOCKED = """
import sys
from importlib.machinery import PathFinder
class Find:
    whole = PathFinder.find_spec
    def __call__(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"no module named {{name!r}}", name=name)
        return self.whole(name, path, target)
PathFinder.find_spec = Find()
"""
OPEN = """
import asyncio
from gatewright.workspace import Workspace
workspace = Workspace.open({folder!r})
def call(tool, **arguments):
    outcome = asyncio.run(workspace.call("archivist", tool, arguments))
    assert outcome.status == "allowed", outcome.detail
"""
OPENS = OPEN + "workspace.close()"
ADDED = """
from gatewright.policy.agentedit import add_agent
workspace.apply(add_agent(workspace.policy, "night"))
workspace.save()
assert "[agents.night]" in workspace.text()
workspace.close()
"""
REASON = """
rule = '\\n[[policy.rules]]\\nname = "x"\\neffect = "deny"\\n'
rule += 'when = {{ properties = {{ op = {{ type = "txt" }} }} }}\\n'
assert any("not a valid schema" in str(one) for one in workspace.problems_of(workspace.text() + rule))
workspace.close()
"""
TRIED = {
    "pydantic": OPENS,
    "pathspec": OPEN + 'call("file", op="read", path="README.md")\nworkspace.close()',
    "loro": OPEN + 'call("file", op="load", path="drafts/report.md")\nworkspace.close()',
    "tomlkit": OPEN + ADDED,
    "jsonschema": OPEN + REASON,
}
"""What an operator does: opens a workspace, has a file loaded, adds an agent, reads why a condition is none."""
GUI = "from gatewright.cli.main import main\nsys.exit(main(['gui', {folder!r}]))"
TESTS = "import pytest\nsys.exit(pytest.main(['-p', 'no:cacheprovider', 'tests/gui/session/test_jsonplace.py']))"
QT = {
    "PySide6": GUI,
    "qasync": GUI,
    "pytestqt": TESTS,
}
"""The window, and the tests that it is delivered with."""


@pytest.fixture
def demo(tmp_path: Path) -> str:
    return str(create_workspace(tmp_path / "demo", "demo").parent)


def run(package: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run some code in a process that cannot import a package."""
    words = [sys.executable, "-c", BLOCKED.format(package=package) + code]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize("package", TRIED)
def test_package_of_the_engine_is_missed(package: str, demo: str) -> None:
    code = TRIED[package].format(folder=demo)
    done = run(package, code)
    assert done.returncode == 1
    assert package in done.stderr
    exec(compile(code, package, "exec"), {})


@pytest.mark.parametrize("package", QT)
def test_package_of_the_window_is_missed(package: str, demo: str) -> None:
    done = run(package, QT[package].format(folder=demo))
    assert done.returncode != 0
    assert package.lower() in (done.stdout + done.stderr).lower()
