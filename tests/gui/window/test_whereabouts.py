"""A workspace is opened where it was left. What is gone meanwhile is passed over."""

from pathlib import Path

import pytest

from gatewright_gui.settings import LastPlace, Preferences
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import agents_page, demo, opened_window, settled


def where(window: MainWindow) -> LastPlace:
    chosen = window.selection
    return LastPlace(window.shelf.current_key, chosen.agent_id or "", chosen.tool or "", chosen.operation or "")


PLACE = LastPlace("files", "operator", "file", "delete")


async def leave_at(place: LastPlace, policy: Path, home: Path) -> None:
    async with opened_window(policy, home) as window:
        window.navigator.go_to_tool(place.agent_id, place.tool, place.operation or None)
        window.show_page(place.page)
        await settled(window)
        assert where(window) == place


async def test_window_opens_where_it_was_left(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    await leave_at(PLACE, policy, tmp_path)

    async with opened_window(policy, tmp_path) as window:
        assert where(window) == PLACE
        assert agents_page(window).tools.view.current_row == ("file", "delete")
        assert window.rail.button("access").isChecked()
        assert window.focusWidget() is window.shelf.page("files").main_view()


async def test_parts_that_were_looked_at_are_shown_again(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    async with opened_window(policy, tmp_path) as window:
        agents_page(window).inspector.show_part("limits")
        agents_page(window).preview.part.set_current("tokens")
        await settled(window)

    async with opened_window(policy, tmp_path) as window:
        assert agents_page(window).inspector.part == "limits"
        assert agents_page(window).preview.part.current == "tokens"


async def test_each_workspace_has_its_own_place(tmp_path: Path) -> None:
    first, second = demo(tmp_path / "one"), demo(tmp_path / "two")
    await leave_at(PLACE, first, tmp_path)

    async with opened_window(second, tmp_path) as window:
        fresh = where(window)
        assert (fresh.page, fresh.agent_id) == ("tools", "archivist")
        await window.open(first)
        await settled(window)
        assert where(window) == PLACE
        await window.open(second)
        await settled(window)
        assert where(window) == fresh


@pytest.mark.parametrize(
    "place",
    [
        LastPlace("nowhere", "operator", "file", "delete"),
        LastPlace("tools", "operator", "no_such_tool", "x"),
        LastPlace("tools", "nobody", "file", "no_such"),
        LastPlace(),
    ],
)
async def test_place_that_is_gone_is_passed_over(tmp_path: Path, place: LastPlace) -> None:
    policy = demo(tmp_path)
    preferences = Preferences(tmp_path / "preferences.ini")
    preferences.keep_last_place(policy, place)
    preferences.save()

    async with opened_window(policy, tmp_path) as window:
        found = where(window)

        assert found.page == "tools"
        assert found.agent_id in window.document.policy.agents
        assert found.tool in {facts.name for facts in window.document.catalog}


async def test_policy_with_errors_opens_on_problems_and_the_place_is_not_lost(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    await leave_at(PLACE, policy, tmp_path)
    good = policy.read_text("utf-8")
    policy.write_text(f"{good}\nnonsense = 1\n", "utf-8")

    async with opened_window(policy, tmp_path) as window:
        assert window.shelf.current_key == "problems"
    policy.write_text(good, "utf-8")

    async with opened_window(policy, tmp_path) as window:
        assert where(window) == PLACE
