"""What the app loads until its first window shows the demo. It looks at names of modules and measures no time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gatewright.workspace import write_demo
from tests.support.checkout import ROOT

START = """
import builtins, json, os, sys

def tell():
    print(json.dumps({"loaded": sorted(sys.modules),
                      "hook": builtins.__import__.__name__}), flush=True)
    os._exit(0)

from tests.support.firstpaint import TreeWatch
sys.meta_path.insert(0, TreeWatch(tell))
from gatewright.cli.main import main
sys.exit(main(["gui", sys.argv[1]]))
"""
WARM = """
import os, sys

def look():
    from PySide6.QtCore import QTimer
    from gatewright_gui.app.warm import LATER
    if not set(LATER) <= set(sys.modules):
        QTimer.singleShot(20, look)
        return
    print("warm", flush=True)
    os._exit(0)

from tests.support.firstpaint import TreeWatch
sys.meta_path.insert(0, TreeWatch(look))
from gatewright.cli.main import main
sys.exit(main(["gui", sys.argv[1]]))
"""
LIBRARIES = (
    "anyio",
    "httpcore2",
    "idna",
    "jsonschema",
    "loro",
    "pathspec",
    "tomlkit",
    "toktok",
    "turbohtml",
    "typer",
    "watchfiles",
)
ROOMS = (
    "gatewright.blocks.block",
    "gatewright.blocks.schema",
    "gatewright.cli.table",
    "gatewright.gate.callrun",
    "gatewright.gate.pipeline",
    "gatewright.gate.selfcheck",
    "gatewright.gate.stages",
    "gatewright.memory.blocks",
    "gatewright.policyfile.editor",
    "gatewright.policyfile.patch",
    "gatewright.policyfile.scan",
    "gatewright.schema.formats",
    "gatewright.schema.survey",
    "gatewright.sources.tree",
    "gatewright.workspace.export",
    "gatewright.workspace.refusal",
    "gatewright.workspace.sandbox",
    "gatewright_gui.app.driver",
    "gatewright_gui.app.scenes",
    "gatewright_gui.app.tour",
    "gatewright_gui.models.keys",
    "gatewright_gui.pages.access.tools.matrix",
    "gatewright_gui.pages.access.tools.agent_rules_pane",
    "gatewright_gui.pages.access.tools.constraint_dialog",
    "gatewright_gui.pages.access.tools.declare_dialog",
    "gatewright_gui.pages.access.tools.limits_pane",
    "gatewright_gui.pages.access.tools.matrix_pane",
    "gatewright_gui.pages.access.tools.rights_dialog",
    "gatewright_gui.pages.trial.approval",
    "gatewright_gui.pages.trial.page",
    "gatewright_gui.pages.access.files",
    "gatewright_gui.pages.policy_file.problems",
    "gatewright_gui.pages.policy_file",
    "gatewright_gui.qt.dialog",
    "gatewright_gui.session.console",
    "gatewright_gui.window.help_dialog",
    "gatewright_gui.window.palette",
    "gatewright_gui.window.selfcheck_dialog",
)
SHOWN = ("gatewright.workspace.workspace", "gatewright_gui.pages.access.tools.page", "gatewright_gui.window.shelf")


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str] | str]:
    found: dict[str, list[str] | str] = json.loads(first_start(START, tmp_path_factory.mktemp("home")))
    return found


def first_start(script: str, home: Path) -> str:
    """What the script says when it starts the app on the demo, with nothing else kept."""
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "GATEWRIGHT_KEYS")
    environ = {**os.environ, **{name: str(home / name.casefold()) for name in names}}
    environ |= {"QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    demo = write_demo(home / "demo")
    done = subprocess.run(
        [sys.executable, "-c", script, str(demo)], env=environ, capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", [*LIBRARIES, *ROOMS])
def test_what_the_first_window_does_not_show_is_not_loaded_for_it(
    started: dict[str, list[str] | str], name: str
) -> None:
    found = [one for one in started["loaded"] if one == name or one.startswith(f"{name}.")]

    assert not found


def test_what_the_first_window_shows_is_loaded(started: dict[str, list[str] | str]) -> None:
    assert set(SHOWN) <= set(started["loaded"])


def test_imports_are_not_watched_by_pyside(started: dict[str, list[str] | str]) -> None:
    assert started["hook"] == "__import__"


def test_other_rooms_are_loaded_once_the_window_stands(tmp_path: Path) -> None:
    assert first_start(WARM, tmp_path) == "warm\n"
