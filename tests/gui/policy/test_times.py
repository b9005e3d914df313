"""The times of a policy rule: typed into the form of the page Policy, said in words, refused where they are wrong."""

import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QCompleter, QLabel

from gatewright.policy.rule import DAYS, Times, minutes_of
from gatewright_gui.pages.access.rules import RulesPage
from gatewright_gui.pages.access.rules.rules_pane import RulesPane
from gatewright_gui.pages.access.rules.times_form import TimesForm, hours_of, now_words
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import opened_window, settled, until

POLICY = """\
gatewright = 1

[agents.clerk]
tools = ["recall"]
sources = []

# kept
[[policy.rules]]
name = "nights"
effect = "deny"
tools = ["recall"]
"""
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia")
LEFT = Qt.MouseButton.LeftButton

minute = st.integers(0, 24 * 60 - 1)
hours = (
    st.tuples(minute, minute)
    .filter(lambda pair: pair[0] != pair[1])
    .map(lambda pair: "-".join(f"{one // 60:02}:{one % 60:02}" for one in pair))
)
days = st.sets(st.sampled_from(DAYS), min_size=1).map(lambda found: tuple(day for day in DAYS if day in found))
any_times = st.builds(Times, st.sampled_from(ZONES), st.none() | hours, st.none() | days)


@pytest.fixture
async def window(tmp_path: Path) -> AsyncIterator[MainWindow]:
    policy = tmp_path / "desk" / "policy.toml"
    policy.parent.mkdir()
    policy.write_text(POLICY, "utf-8")
    async with opened_window(policy, tmp_path) as made:
        made.selection.show_everyone(on=True)
        made.show_page("rules")
        await settled(made)
        yield made


def rules_of(window: MainWindow) -> RulesPane:
    page = window.shelf.page("rules")
    assert isinstance(page, RulesPage)
    return page.rules


def fault_of(pane: RulesPane) -> str:
    label = pane.form.findChild(QLabel, "policy.times.said")
    assert label is not None
    return label.text() if label.isVisible() else ""


async def test_times_are_typed_with_completion_of_the_zone_and_said_as_they_are_now(window: MainWindow) -> None:
    pane, document = rules_of(window), window.document
    form, before = pane.form.times, document.workspace.text()
    assert form.part.current == "always"
    QTest.mouseClick(form.part.button("times"), LEFT)
    assert form.zone.text()  # the one of this computer
    await until(lambda: "hours, or take days out" in fault_of(pane))
    QTest.keyClicks(form.hours, "8 - 18")
    for day in ("sat", "sun"):
        QTest.keyClick(form.days[day], Qt.Key.Key_Space)
    form.zone.selectAll()
    QTest.keyClicks(form.zone, "berl")
    completer = form.zone.completer()
    assert isinstance(completer, QCompleter)
    await until(lambda: "Europe/Berlin" in [_text(completer, row) for row in range(completer.completionCount())])
    await until(lambda: fault_of(pane) == "no time zone is named berl; do you mean Europe/Berlin?")
    assert not pane.form.apply_button.isEnabled()
    form.zone.selectAll()
    QTest.keyClicks(form.zone, "Europe/Berlin")
    await until(pane.form.apply_button.isEnabled)
    wanted = Times("Europe/Berlin", "08:00-18:00", DAYS[:5])
    assert form.now.text().casefold() == f"{now_words(wanted, time.time())} (Europe/Berlin)".casefold()
    for field, spoken in ((form.hours, "Hours"), (form.zone, "Time zone"), (form.part, "When it applies")):
        assert field.accessibleName() == spoken
    QTest.mouseClick(pane.form.apply_button, LEFT)
    await settled(window)
    (rule,) = document.policy.rules
    assert rule.times == wanted
    text = document.workspace.text()
    assert 'zone = "Europe/Berlin"' in text
    assert "# kept" in text

    QTest.mouseClick(form.part.button("always"), LEFT)
    await until(pane.form.apply_button.isEnabled)
    QTest.mouseClick(pane.form.apply_button, LEFT)
    await settled(window)
    assert document.workspace.text() == before
    window.undo()
    await settled(window)
    assert form.times == wanted
    window.undo()
    await settled(window)
    assert (form.part.current, document.workspace.text()) == ("always", before)


def _text(completer: QCompleter, row: int) -> str:
    completer.setCurrentRow(row)
    return completer.currentCompletion()


@pytest.mark.parametrize(
    ("typed", "zone", "off", "why"),
    [
        ("8 till 18", "UTC", (), "write hours such as 08:00-18:00"),
        ("08:00-25:00", "UTC", (), "write hours such as 08:00-18:00"),
        ("24:00-08:00", "UTC", (), "write hours such as 08:00-18:00"),
        ("09:00-9", "UTC", (), "hold never"),
        ("8-18", "", (), "name the time zone"),
        ("8-18", "Middle/Earth", (), "no time zone is named Middle/Earth"),
        ("8-18", "../UTC", (), "no time zone is named ../UTC"),
        ("8-18", "UTC", DAYS, "choose a day"),
        ("", "UTC", (), "else it applies always"),
    ],
)
async def test_times_that_cannot_be_are_refused_at_their_place(
    window: MainWindow, typed: str, zone: str, off: tuple[str, ...], why: str
) -> None:
    pane = rules_of(window)
    form = pane.form.times
    form.part.set_current("times")
    form.hours.setText(typed)
    form.zone.setText(zone)
    for day in off:
        form.days[day].setChecked(False)
    await until(lambda: why in fault_of(pane))
    assert not pane.form.apply_button.isEnabled()
    assert form.now.text() == ""
    await until(pane.form.revert_button.isEnabled)
    QTest.mouseClick(pane.form.revert_button, LEFT)
    await until(lambda: not fault_of(pane))
    assert form.part.current == "always"


@pytest.fixture(scope="module")
def form(qapp: QApplication) -> Iterator[TimesForm]:
    made = TimesForm()
    yield made
    made.deleteLater()
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_times)
def test_every_rule_with_times_stands_in_the_form_as_it_is(form: TimesForm, times: Times) -> None:
    form.set_times(times)
    assert form.times == times


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=20), st.text(max_size=20) | st.sampled_from(ZONES))
def test_whatever_is_typed_is_times_or_refused_in_words(form: TimesForm, typed: str, zone: str) -> None:
    form.set_times(Times("UTC", "08:00-18:00"))
    form.hours.setText(typed)
    form.zone.setText(zone)
    try:
        found = form.times
    except ValueError:
        return
    assert found is not None
    assert ZoneInfo(found.zone)
    assert found.hours is None or minutes_of(found.hours)


@given(st.text("0123456789:- \u2013", max_size=12))
def test_hours_are_read_as_the_file_has_them_or_not_at_all(typed: str) -> None:
    try:
        found = hours_of(typed)
    except ValueError:
        return
    assert found is None or (minutes_of(found) and hours_of(found) == found)


@given(any_times, st.datetimes(datetime(2026, 1, 1), datetime(2028, 1, 1)))  # noqa: DTZ001
def test_words_for_now_agree_with_the_times(times: Times, now: datetime) -> None:
    now_s = now.replace(tzinfo=UTC).timestamp()
    said, change_s = now_words(times, now_s), times.next_change(now_s)
    assert ("now, until" in said or said == "applies always") == times.holds(now_s)
    if change_s is None:
        assert said in {"applies always", "never applies"}
        return
    then = datetime.fromtimestamp(change_s, ZoneInfo(times.zone))
    assert f"{then:%H:%M}" in said
    is_today = then.date() == datetime.fromtimestamp(now_s, ZoneInfo(times.zone)).date()
    assert is_today == (said.replace(" on, not now", "").split()[-2] in {"until", "from"})
    if not is_today and timedelta(seconds=change_s - now_s) < timedelta(days=6):
        assert f"{then:%a}" in said
