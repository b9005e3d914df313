"""Confinement in the window: how it is held, and the one dialog that takes it away."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gatewright_gui.pages.servers.room_pane import ConfineBand, UnconfineDialog
from gatewright_gui.window.main_window import MainWindow
from tests.gui.servers.test_page import dialog_of, page_of, press
from tests.gui.session.opened import Said, opened_window, settled

POLICY = """\
gatewright = 1

[agents.desk]
sources = []

[workspace]
shell = { backend = "host", allow = ["ls"] }

[[catalogs]]
id = "files"
type = "mcp"
command = "server-files"
args = ["./notes"]
places = { "./notes" = "read" }

[[catalogs]]
id = "hub"
type = "mcp"
url = "https://hub.example.com/mcp"

[[catalogs]]
id = "new"
type = "mcp"
command = "server-new"
"""


@pytest.fixture
async def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[MainWindow]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    policy = tmp_path / "desk" / "policy.toml"
    (policy.parent / "notes").mkdir(parents=True)
    policy.write_text(POLICY, encoding="utf-8")
    async with opened_window(policy, tmp_path) as made:
        yield made


async def band_of(window: MainWindow, catalog_id: str | None) -> ConfineBand:
    window.show_page("settings" if catalog_id is None else "servers")
    await settled(window)
    if catalog_id is None:
        bands = window.shelf.page("settings").findChildren(ConfineBand)
    else:
        page = page_of(window)
        page.choose("catalog", catalog_id)
        QTest.mouseClick(page.detail.part.button("sees"), Qt.MouseButton.LeftButton)
        bands = page.findChildren(ConfineBand)
    (band,) = bands
    await settled(window)
    return band


def is_free(window: MainWindow, catalog_id: str | None) -> bool:
    policy = window.document.policy
    catalog = policy.catalog(catalog_id) if catalog_id is not None else None
    return str(policy.shell.confine if catalog is None else catalog.confine) == "none"


@pytest.mark.parametrize("catalog_id", ["files", "new", None])
async def test_confinement_is_taken_away_only_by_a_tick_and_comes_back(
    window: MainWindow, catalog_id: str | None
) -> None:
    band, said = await band_of(window, catalog_id), Said(window.document)
    name = band.objectName()
    before = band.words.text()
    for refuse in (Qt.Key.Key_Escape, Qt.Key.Key_Return):  # Return is Cancel, which has the keys at first
        press(band, f"{name}.free")
        dialog = await dialog_of(window, UnconfineDialog)
        assert not dialog.accept_button.isEnabled()
        assert dialog.focusWidget() is dialog.cancel_button
        QTest.keyClick(dialog, refuse)
        await settled(window)
        assert not is_free(window, catalog_id)
    assert not window.document.is_dirty

    press(band, f"{name}.free")
    dialog = await dialog_of(window, UnconfineDialog)
    for given_away in ("home folder", "keys", "other projects", "every host"):
        assert given_away in dialog.accessibleDescription()
    QTest.keyClick(dialog.box, Qt.Key.Key_Space)
    press(dialog, "unconfine.accept")
    await settled(window)
    assert is_free(window, catalog_id)
    assert band.words.text().startswith("Not confined")
    assert "may do all that you may" in said.last
    assert said.messages[-1].can_undo

    window.document.undo()
    assert not is_free(window, catalog_id)
    window.document.redo()
    press(band, f"{name}.again")
    assert not is_free(window, catalog_id)
    assert band.words.text() == before


async def test_what_is_no_process_here_has_nothing_to_confine(window: MainWindow) -> None:
    band = await band_of(window, "hub")
    assert band.words.text().startswith("It runs elsewhere: calls go to https://hub.example.com/mcp")
    assert band.free_button.isHidden()
    assert band.confine_button.isHidden()


async def test_question_that_is_open_ends_with_its_workspace(window: MainWindow, tmp_path: Path) -> None:
    band = await band_of(window, "files")
    press(band, "servers.sees.confine.free")
    dialog = await dialog_of(window, UnconfineDialog)
    dialog.box.setChecked(True)
    other = tmp_path / "other" / "policy.toml"
    other.parent.mkdir()
    other.write_text(POLICY, encoding="utf-8")
    assert await window.document.open(other)
    await asyncio.sleep(0)
    await settled(window)
    assert not any(isinstance(one, UnconfineDialog) and one.isVisible() for one in QApplication.topLevelWidgets())
    assert not is_free(window, "files")
