"""That the tour drives the real window to the end, that what it hands over is whole, and that it can fail."""

import json
import tomllib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from PySide6.QtGui import QImage

from gatewright.workspace import Workspace, create_workspace
from tests.gui.tour.process import ROOT, tour

PAGES = {
    "home",
    "tools",
    "matrix",
    "preview",
    "files",
    "rules",
    "memory",
    "try",
    "activity",
    "text",
    "problems",
    "servers",
}
PROMISED = (
    "the model is shown what is ticked",
    "the gate lets it in",
    "what is off is named",
    "what was called is recorded",
)
BROKEN = """
from gatewright_gui.app import scenes
from gatewright_gui.pages.access.tools.tool_pane import ToolPane
from gatewright_gui.session.verbs import rights
rights.tick_operations = lambda *_, **__: False
def broken(self, *_):
    raise RuntimeError("a slot that is broken")
ToolPane._switch = broken
from gatewright_gui.app.scenes import LIGHT, agents, console, files, policy
scenes.SCENES = (*LIGHT[:3], agents.matrix, files.files, console.console, policy.save)
"""
"""Two ways to break a window, and the scenes that meet them among some that do not."""
ONE_AGENT = """gatewright = 1

[agents.helper]
tools = ["block"]
"""


@dataclass(frozen=True)
class Made:
    """A whole tour of a copy of the demo that is somebody's own; ``before`` and ``after``: every file of it."""

    done: CompletedProcess[str]
    out: Path
    before: dict[Path, bytes]
    after: dict[Path, bytes]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("tour")
    workspace, out = folder / "mine", folder / "out"
    create_workspace(workspace, "demo")
    (workspace / "workspace" / "drafts" / "mine.md").write_text("mine\n")
    before = _contents(workspace)
    return Made(tour(out, workspace, display=False), out, before, _contents(workspace))


def _contents(folder: Path) -> dict[Path, bytes]:
    """Every file, without what SQLite keeps beside a store for its readers: an index, and a log with nothing in it."""
    found = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    return {f: held for f, held in found.items() if f.suffix != ".sqlite-shm" and (held or f.suffix != ".sqlite-wal")}


def _report(out: Path) -> list[dict[str, Any]]:
    found: dict[str, list[dict[str, Any]]] = json.loads((out / "tour.json").read_text("utf-8"))
    assert list(found) == ["steps"]
    return found["steps"]


def _failed(out: Path) -> dict[str, list[str]]:
    return {
        step["name"]: [check["what"] for check in step["checks"] if not check["ok"]]
        for step in _report(out)
        if not all(check["ok"] for check in step["checks"])
    }


def test_tour_of_the_demo_holds_every_check(made: Made) -> None:
    assert _failed(made.out) == {}
    assert made.done.returncode == 0, made.done.stderr
    assert made.done.stderr == ""


def test_report_has_the_promised_shape(made: Made) -> None:
    steps = _report(made.out)

    for step in steps:
        assert list(step) == ["name", "pages", "theme", "picture", "checks"]
        assert set(step["pages"]) <= PAGES
        assert step["theme"] in {"light", "dark"}
        assert len(step["checks"]) >= 2, step["name"]  # the picture alone proves nothing
        assert all(list(check) == ["what", "ok"] and isinstance(check["ok"], bool) for check in step["checks"])
    assert len({step["picture"] for step in steps}) == len(steps)


def test_every_page_is_shown_in_both_themes(made: Made) -> None:
    steps = _report(made.out)

    for theme in ("light", "dark"):
        assert {page for step in steps if step["theme"] == theme for page in step["pages"]} >= PAGES


def test_demo_leaves_no_step_out(made: Made) -> None:
    assert "does not apply" not in made.done.stdout


def test_pictures_are_of_the_window_and_not_blank(made: Made) -> None:
    for step in _report(made.out):
        image = QImage(str(made.out / step["picture"]))
        assert (image.width(), image.height()) == (1280, 800), step["picture"]
        colours = {image.pixel(x, y) for x in range(0, 1280, 7) for y in range(0, 800, 7)}
        assert len(colours) > 15, step["picture"]
        is_dark = image.pixelColor(3, 400).lightness() < 128
        assert is_dark == (step["theme"] == "dark"), step["picture"]


def test_exported_policy_loads_and_hides_what_was_unticked(made: Made) -> None:
    opened = Workspace.open(made.out)
    try:
        assert opened.selfcheck().differences == ()
        names = [op.operation for op in opened.rights("operator")["file"].operations if op.is_hidden]
        assert names == ["delete"]
    finally:
        opened.close()


def test_tour_of_a_workspace_leaves_it_as_it_was(made: Made) -> None:
    assert made.done.returncode == 0, made.done.stdout
    assert made.after == made.before
    assert b"mine\n" in made.before.values()


def test_promise_is_checked_at_the_boxes_and_in_the_log(made: Made) -> None:
    checked = [check["what"] for step in _report(made.out) for check in step["checks"]]

    assert all(what in checked for what in PROMISED)


def test_a_line_is_told_for_each_picture(made: Made) -> None:
    lines = made.done.stdout.splitlines()

    assert [line.split()[1:4] for line in lines[:-1]] == [
        [step["theme"], "ok", step["name"]] for step in _report(made.out)
    ]
    assert f"{len(lines) - 1} pictures" in lines[-1]


@pytest.mark.parametrize("text", ["gatewright = 1\n", ONE_AGENT])
def test_tour_of_a_bare_workspace_says_what_does_not_apply_and_takes_the_place_of_the_last(
    tmp_path: Path, text: str
) -> None:
    out = tmp_path / "out"
    for folder in (tmp_path / "mine", out):
        folder.mkdir()
    (tmp_path / "mine" / "policy.toml").write_text(text)
    (out / "77-old-light.png").write_bytes(b"")
    (out / "tour.json").write_text("{}")
    (out / "policy.toml").write_text("old")

    done = tour(out, tmp_path / "mine")

    assert _failed(out) == {}
    assert done.returncode == 0
    assert "does not apply: the policy has no source" in done.stdout
    assert [step["theme"] for step in _report(out)][-1] == "dark"
    assert not (out / "77-old-light.png").exists()
    assert (out / "policy.toml").read_text().startswith("gatewright = 1\n")


def test_broken_window_fails_the_tour_of_the_demo_where_it_is_broken(tmp_path: Path) -> None:
    done = tour(tmp_path / "out", before=BROKEN)

    failed = _failed(tmp_path / "out")
    assert done.returncode == 1
    assert any("box of `delete`" in what for what in failed["untick"])
    assert any("a slot that is broken" in what for what in failed["ask-first"])
    assert any("what is unticked is denied" in what for what in failed["denied"])
    assert not {"open", "agent", "tick", "matrix", "files", "allowed"} & set(failed)
    assert _report(tmp_path / "out")[-1]["name"] == "publish"  # it goes on to the end
    assert set(tomllib.loads((tmp_path / "out" / "policy.toml").read_text("utf-8"))["agents"]) == set(
        tomllib.loads(create_workspace(tmp_path / "demo", "demo").read_text("utf-8"))["agents"]
    )


def test_policy_with_errors_is_told_with_its_places(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("gatewright = 1\n[agents.x]\ntoolz = 3\n")

    done = tour(tmp_path / "out", tmp_path)

    assert done.returncode == 1
    assert "3:1: " in done.stderr
    assert "toolz" in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_workspace_is_told(tmp_path: Path) -> None:
    done = tour(tmp_path / "out", tmp_path / "nowhere")

    assert done.returncode == 2
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr


def test_out_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = tour(tmp_path / "file" / "out")

    assert done.returncode == 2
    assert "cannot write to" in done.stderr
    assert "Traceback" not in done.stderr


def test_out_never_takes_the_place_of_a_policy(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(ONE_AGENT)

    done = tour(tmp_path, tmp_path)

    assert done.returncode == 2
    assert (tmp_path / "policy.toml").read_text() == ONE_AGENT


def test_command_line_finds_the_tour() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    module, name = declared["gatewright.apps"]["tour"].split(":")

    assert callable(getattr(import_module(module), name))
