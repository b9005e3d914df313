"""The times of a policy rule as a form: hours, days, the zone of the clock, and what they mean now."""

import re
import time
from collections.abc import Iterable
from datetime import datetime
from difflib import get_close_matches

from PySide6.QtCore import QSignalBlocker, QStringListModel, QTimer, QTimeZone, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QLineEdit, QWidget

from gatewright.workspace.api import DAYS, Times, UnknownZone, minutes_of, zone_of
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.text_field import completer_of

ALWAYS, AT_TIMES = "always", "times"
_DAY_WORDS = dict(
    zip(
        DAYS,
        (mark("Mon"), mark("Tue"), mark("Wed"), mark("Thu"), mark("Fri"), mark("Sat"), mark("Sun")),
        strict=True,
    )
)
_HOURS = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*[-\u2013]\s*(\d{1,2})(?::(\d{2}))?")
_LOOK_MS = 20_000
_WEEK_S = 6 * 86_400


def hours_of(text: str) -> str | None:
    """Typed hours as the policy file has them; None: all day. Raises ValueError with words for the user."""
    if not text.strip():
        return None
    found = _HOURS.fullmatch(text.strip())
    if found is None:
        raise ValueError(tr("write hours such as 08:00-18:00, from 00:00 to 24:00"))
    numbers = [int(one or 0) for one in found.groups()]
    hours = "{:02}:{:02}-{:02}:{:02}".format(*numbers)
    try:
        minutes_of(hours)
    except ValueError:
        if numbers[:2] == numbers[2:]:
            raise ValueError(tr("hours that begin and end at the same minute hold never; empty: all day")) from None
        raise ValueError(tr("write hours such as 08:00-18:00, from 00:00 to 24:00")) from None
    return hours


def now_words(times: Times, now_s: float) -> str:
    """The meaning of the times at a moment, by the clock of their zone."""
    is_on, change_s = times.holds(now_s), times.next_change(now_s)
    if change_s is None:
        return tr("applies always") if is_on else tr("never applies")
    zone = zone_of(times.zone)
    now, then = datetime.fromtimestamp(now_s, zone), datetime.fromtimestamp(change_s, zone)
    when = f"{then:%H:%M}"
    if then.date() != now.date():
        day = tr(_DAY_WORDS[DAYS[then.weekday()]])
        when = f"{day} {when}" if change_s - now_s < _WEEK_S else f"{then:%Y-%m-%d %H:%M}"
    return tr("applies now, until {when}", when=when) if is_on else tr("applies from {when} on, not now", when=when)


class TimesForm(QWidget):
    """`times` is what it says; a zone is completed from those that `offer` gave."""

    changed = Signal()
    zones_wanted = Signal()
    """The names of all zones, which take a moment to find, are wanted by `offer`."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: Times | None = None
        self.part = named(Segmented(tr("When it applies")), "policy.times.part")
        self.part.add_segment(ALWAYS, tr("Always"))
        self.part.add_segment(AT_TIMES, tr("At times"), tooltip=tr("Only within these hours, on these days"))
        self.hours = named(QLineEdit(), "policy.times.hours", spoken=tr("Hours"))
        self.hours.setPlaceholderText(tr("all day; such as 08:00-18:00"))
        self.hours.setMaxLength(20)
        self.days = {day: named(QCheckBox(tr(words)), f"policy.times.{day}") for day, words in _DAY_WORDS.items()}
        self.zone = named(QLineEdit(), "policy.times.zone", spoken=tr("Time zone"))
        self.zone.setPlaceholderText(tr("time zone, such as Europe/Berlin"))
        self.zone.setMaxLength(80)
        self.now = named(Label(wraps=True), "policy.times.now", kind="muted")
        self._zones = QStringListModel(self)
        self.zone.setCompleter(completer_of(self.zone, self._zones))
        days = row_of(*self.days.values(), stretch(), space=2)
        self._fields = holding(column_of(row_of(self.hours, stretch(self.zone), space=2), days, self.now, space=1))
        column_of(row_of(self.part, stretch()), self._fields, into=self, space=1)
        self._tick = QTimer(self, interval=_LOOK_MS)
        self._tick.timeout.connect(self._tell_now)
        self.part.current_changed.connect(self._choose)
        for signal in (self.hours.textChanged, self.zone.textChanged, *(box.toggled for box in self.days.values())):
            signal.connect(self._tell)
        self.set_times(None)

    @property
    def times(self) -> Times | None:
        """The times; None: always. Raises ValueError with words for the user."""
        if self.part.current != AT_TIMES:
            return None
        hours, zone = hours_of(self.hours.text()), self.zone.text().strip()
        days = tuple(day for day, box in self.days.items() if box.isChecked())
        if not days:
            raise ValueError(tr("choose a day at least"))
        try:
            zone_of(zone)
        except UnknownZone:
            raise ValueError(self._zone_fault(zone)) from None
        shown_days = self._shown.days if self._shown is not None else None
        found = Times(zone, hours, None if days == DAYS and shown_days != DAYS else days)
        if found == Times(zone) and found != self._shown:
            raise ValueError(tr("name hours, or take days out: else it applies always"))
        return found

    def set_times(self, times: Times | None) -> None:
        """Show these times; None: always."""
        with QSignalBlocker(self):
            self._shown = times
            self.part.set_current(ALWAYS if times is None else AT_TIMES)
            self.hours.setText(times.hours or "" if times is not None else "")
            self.zone.setText(times.zone if times is not None else "")
            for day, box in self.days.items():
                box.setChecked(times is None or times.days is None or day in times.days)
        self._fields.setVisible(times is not None)
        self._tell_now()

    def offer(self, zones: Iterable[str]) -> None:
        """The names by which a zone is completed."""
        self._zones.setStringList(sorted(zones))
        self._tell()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Follow the clock while one can see it."""
        super().showEvent(event)
        self._tick.start()
        self._tell_now()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """Nothing is followed unseen."""
        super().hideEvent(event)
        self._tick.stop()

    def _choose(self, part: str) -> None:
        is_timed = part == AT_TIMES
        self._fields.setVisible(is_timed)
        if is_timed and not self.zone.text():
            self.zone.setText(bytes(QTimeZone.systemTimeZoneId().data()).decode())
        self._tell()

    def _tell(self, _what: object = None) -> None:
        self._tell_now()
        self.changed.emit()

    def _tell_now(self) -> None:
        if self.part.current == AT_TIMES and not self._zones.rowCount():
            self.zones_wanted.emit()
        try:
            times = self.times
        except ValueError:
            self.now.setText("")
            return
        text = "" if times is None else now_words(times, time.time())
        self.now.setText(f"{text[:1].upper()}{text[1:]} ({times.zone})" if times is not None else "")

    def _zone_fault(self, zone: str) -> str:
        if not zone:
            return tr("name the time zone of the clock, such as Europe/Berlin")
        known = {name.casefold(): name for name in self._zones.stringList()}
        near = get_close_matches(zone.casefold(), known, 1, 0.6) or [one for one in known if zone.casefold() in one][:1]
        unknown = tr("no time zone is named {zone}", zone=zone)
        return tr("{what}; do you mean {near}?", what=unknown, near=known[near[0]]) if near else unknown
