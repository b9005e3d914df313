"""What the app remembers."""

import json
from pathlib import Path

import pytest

from gatewright_gui.settings import LastPlace, Preferences
from gatewright_gui.settings.preferences import MAX_RECENT, default_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "preferences.ini"


def test_everything_comes_back_at_the_next_start(file: Path) -> None:
    first = Preferences(file)
    first.theme = "dark"
    first.last_workspace = Path("/w/demo, with comma")
    first.window_geometry = b"\x00\x01geometry\xff"
    first.window_state = b"state"
    first.set_splitter_sizes("agents", (200, 400, 600))
    first.set_splitter_sizes("one", (7,))
    first.add_recent_workspace(Path("/w/a"))
    first.add_recent_workspace(Path("/w/b; c"))
    first.save()
    second = Preferences(file)
    assert second.theme == "dark"
    assert second.last_workspace == Path("/w/demo, with comma")
    assert second.window_geometry == b"\x00\x01geometry\xff"
    assert second.window_state == b"state"
    assert second.splitter_sizes("agents") == (200, 400, 600)
    assert second.splitter_sizes("one") == (7,)
    assert second.recent_workspaces == (Path("/w/b; c"), Path("/w/a"))


def test_first_start_has_defaults(file: Path) -> None:
    fresh = Preferences(file)
    assert fresh.theme == "system"
    assert fresh.last_workspace is None
    assert fresh.recent_workspaces == ()
    assert fresh.window_geometry is None
    assert fresh.splitter_sizes("agents") is None


def test_nonsense_in_the_file_counts_as_not_there(file: Path) -> None:
    file.write_text("[window]\ntheme=pink\ngeometry=5\n[splitter]\nagents=1, x, -3\n")
    damaged = Preferences(file)
    assert damaged.theme == "system"
    assert damaged.window_geometry is None
    assert damaged.splitter_sizes("agents") is None


def test_recent_workspaces_are_unique_newest_first_and_few(file: Path) -> None:
    preferences = Preferences(file)
    for number in range(MAX_RECENT + 3):
        preferences.add_recent_workspace(Path(f"/w/{number}"))
    preferences.add_recent_workspace(Path("/w/5"))
    recent = preferences.recent_workspaces
    assert recent[0] == Path("/w/5")
    assert len(recent) == len(set(recent)) == MAX_RECENT
    preferences.forget_recent_workspace(Path("/w/5"))
    assert Path("/w/5") not in preferences.recent_workspaces


def test_last_workspace_can_be_forgotten(file: Path) -> None:
    preferences = Preferences(file)
    preferences.last_workspace = Path("/w/a")
    preferences.last_workspace = None
    preferences.save()
    assert Preferences(file).last_workspace is None


def test_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    preferences = Preferences(blocker / "preferences.ini")
    preferences.theme = "light"
    with pytest.raises(PermissionError, match="cannot write the preferences file"):
        preferences.save()


def test_default_file_is_in_the_config_folder() -> None:
    assert default_file().parts[-2:] == ("gatewright", "preferences.ini")


def test_places_come_back_for_the_newest_workspaces_only(file: Path) -> None:
    kept = Preferences(file)
    for number in range(MAX_RECENT + 2):
        kept.keep_last_place(Path(f'/w/{number}, "x"'), LastPlace("files", f"agent {number}", "file", "read"))
    kept.keep_last_place(Path('/w/5, "x"'), LastPlace("text"))
    kept.save()
    again = Preferences(file)

    assert again.last_place(Path('/w/11, "x"')) == LastPlace("files", "agent 11", "file", "read")
    assert again.last_place(Path('/w/5, "x"')) == LastPlace("text")
    assert again.last_place(Path('/w/1, "x"')) is None


@pytest.mark.parametrize("line", ["", "no json", "[" * 5000, "{}", '["/w/a"]', '["/w/a", "files", "x", "y", 1]'])
def test_place_that_cannot_be_read_counts_as_none(file: Path, line: str) -> None:
    file.write_text("[workspace]\nplaces=" + json.dumps(line) + "\n", "utf-8")

    assert Preferences(file).last_place(Path("/w/a")) is None
