"""An export for a team: it starts, says who may do what, and any change of it is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewright.cli.main import main
from gatewright.workspace import create_workspace
from tests.engine.cli.conftest import Runner


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("team")
    policy = create_workspace(place / "demo", "demo")
    assert main(["export", str(policy), "--team", "--out", str(place / "out")]) == 0
    return place / "out"


def copy(exported: Path, to: Path) -> Path:
    for path in sorted(exported.rglob("*")):
        goal = to / path.relative_to(exported)
        if path.is_dir():
            goal.mkdir(parents=True, exist_ok=True)
        else:
            goal.parent.mkdir(parents=True, exist_ok=True)
            goal.write_bytes(path.read_bytes())
    return to


def test_the_starter_of_an_export_makes_a_gated_call_and_the_export_stays_whole(
    exported: Path, tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(tmp_path / "keys"))  # a state folder is the user's by the keys
    folder = copy(exported, tmp_path / "here")
    (folder / "workspace" / "notes").mkdir()
    (folder / "workspace" / "notes" / "a.md").write_text("heron", encoding="utf-8")

    words = [sys.executable, "start.py", "archivist", "file", '{"op": "read", "path": "notes/a.md"}']
    printed = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert printed.splitlines()[0].endswith("tools for the model")
    assert "allowed" in printed
    assert "heron" in printed
    assert len((folder / "start.py").read_text("utf-8").split("\n\n\n")[1].splitlines()) <= 15

    verified = run("export", "--verify", folder, "--json")
    assert verified.status == 0
    assert verified.json["problems"] == []
    assert verified.json["files"] >= 5


def test_the_readme_of_an_export_says_who_may_do_what_and_which_version_it_needs(exported: Path, run: Runner) -> None:
    readme = (exported / "README.md").read_text("utf-8")
    assert f'"gatewright>={run("--version").out.strip()}"' in readme
    part = readme.partition("### archivist")[2].partition("###")[0]
    (row,) = (line for line in part.splitlines() if line.startswith("| file |"))
    shown = run("preview", exported, "--agent", "archivist").json
    (tool,) = (tool for tool in shown if tool["name"] == "file")
    columns = row.strip("|").split("|")[1:]
    assert sorted(name.strip() for name in ",".join(columns).split(",") if name.strip()) == sorted(
        tool["inputSchema"]["properties"]["op"]["enum"]
    )
    assert "No tools." in readme.partition("### newcomer")[2]


def _change(folder: Path) -> None:
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text("utf-8").replace('"deny"', '"allow"', 1), encoding="utf-8")


def _link(folder: Path) -> None:
    (folder / "start.py").rename(folder.parent / "start.py")
    (folder / "start.py").symlink_to(folder.parent / "start.py")


def _lose(folder: Path) -> None:
    (folder / "station-tools.json").unlink()


def _add(folder: Path) -> None:
    (folder / "gatewright.py").write_text("x", encoding="utf-8")


def _add_folder(folder: Path) -> None:
    (folder / "catalogs").symlink_to(folder.parent)


def _add_state(folder: Path, name: str) -> None:
    path = folder / ".gatewright" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"something")


@pytest.mark.parametrize(
    "path", ["/opt/x", "../beside", "C:/Users/me", "~/notes", "./link", "a/../../b", "inside", "./in/it"]
)
@pytest.mark.parametrize("where", ["place", "cwd", "argument", "option", "root", "source"])
def test_paths_that_mean_nothing_on_another_computer_are_told_with_their_lines(
    tmp_path: Path, run: Runner, path: str, where: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "link").symlink_to(tmp_path)
    place = path if path[0] in "/.C" else f"./{path}"
    rows = {
        "place": f'places = {{ "{place}" = "read" }}',
        "cwd": f'places = {{}}\ncwd = "{path}"',
        "argument": f'places = {{}}\nargs = ["--quiet", "{path}"]',
        "option": f'places = {{}}\nargs = ["--root={path}"]',
    }
    server = f'[[catalogs]]\nid = "s"\ntype = "mcp"\ncommand = "serve"\n{rows.get(where, "places = {}")}\n'
    more = {
        "root": f'[workspace]\nroots = {{ shared = "{path}" }}\n',
        "source": f'[[sources]]\nid = "f"\ntype = "file"\nbase_path = "{path}"\n',
    }
    text = f"gatewright = 1\n[agents.a]\n{more.get(where, '')}{server}"
    (work / "policy.toml").write_text(text, encoding="utf-8")
    told = run("export", work, "--team", "--out", tmp_path / "out", "--trust").err
    if (where, path) == ("cwd", "~/notes"):
        assert "stands for no folder" in told  # no policy at all
        return
    is_bound = path not in {"inside", "./in/it"} and (where, path) != ("place", "~/notes")
    assert ("is valid on this computer only" in told) == is_bound
    if is_bound:
        line = next(number for number, row in enumerate(text.splitlines(), 1) if path in row)
        assert f"policy.toml:{line}:" in told
        assert f"{path}`" in told


def test_state_of_an_export_that_is_used_here_is_no_difference(exported: Path, tmp_path: Path, run: Runner) -> None:
    folder = copy(exported, tmp_path / "here")
    assert run("call", folder, "--agent", "archivist", "--tool", "file", "--args", '{"op": "list"}').status in {0, 4, 5}
    assert folder.joinpath(".gatewright", "audit.sqlite3").exists()
    assert run("export", "--verify", folder).status == 0
    assert run("export", "--verify", copy(folder, tmp_path / "there")).status == 1


TAMPERED: list[tuple[Callable[[Path], object], str]] = [
    (_change, "`policy.toml` was changed"),
    (_lose, "`station-tools.json` is missing"),
    (_link, "`start.py` is no plain file"),
    (_add, "`gatewright.py` was added"),
    (_add_folder, "`catalogs` was added"),
    (lambda folder: folder.joinpath("empty").mkdir(), "`empty/` was added"),
    (lambda folder: folder.joinpath("a", "b", "c").mkdir(parents=True), "`a/b/c/` was added"),
    (lambda folder: _add_state(folder, "memory.sqlite"), "`.gatewright` was added"),
    (lambda folder: _add_state(folder, "sessions/s-x.session"), "`.gatewright` was added"),
    (lambda folder: folder.joinpath(".gatewright").mkdir(), "`.gatewright` was added"),
    (lambda folder: folder.joinpath(".gatewright").write_bytes(b""), "`.gatewright` was added"),
    (lambda folder: folder.joinpath(".gatewright").symlink_to(folder.parent), "`.gatewright` was added"),
]


@pytest.mark.parametrize(("tamper", "said"), TAMPERED)
def test_any_change_of_an_export_is_found(
    exported: Path, tmp_path: Path, run: Runner, tamper: Callable[[Path], object], said: str
) -> None:
    folder = copy(exported, tmp_path / "here")
    tamper(folder)
    found = run("export", "--verify", folder)
    assert found.status == 1
    assert said in found.out.splitlines()
    assert "1 difference;" in found.out


def test_a_manifest_that_names_places_outside_or_is_none_is_refused(
    exported: Path, tmp_path: Path, run: Runner
) -> None:
    folder = copy(exported, tmp_path / "here")
    said = json.loads((folder / "export.json").read_text("utf-8"))
    said["files"]["../export.json"] = "0"
    (folder / "export.json").write_text(json.dumps(said), encoding="utf-8")
    assert "`../export.json` names a place outside the export" in run("export", "--verify", folder).out
    (folder / "export.json").write_text("{}", encoding="utf-8")
    assert run("export", "--verify", folder).status == 2
    assert run("export", "--verify", tmp_path).status == 2
    assert run("export", exported, "--team").status == 2
    assert run("export", exported, "--team", "--out", exported).status == 2


def test_an_export_that_names_pipes_or_a_huge_file_is_checked_in_time_and_little_memory(
    exported: Path, tmp_path: Path, run: Runner
) -> None:
    folder = copy(exported, tmp_path / "here")
    (folder / "start.py").unlink()
    os.mkfifo(folder / "start.py")
    os.truncate(folder / "README.md", 1 << 27)
    tracemalloc.start()
    try:
        found = run("export", "--verify", folder, "--json")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.json["problems"] == ["`README.md` was changed", "`start.py` is no plain file"]
    assert peak < 1 << 26

    (folder / "export.json").unlink()
    os.mkfifo(folder / "export.json")
    assert run("export", "--verify", folder).status != 0
