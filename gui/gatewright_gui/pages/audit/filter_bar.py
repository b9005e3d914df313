"""Which calls of the log are shown: agent, tool, verdict, client, time, words of the reason."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QPushButton, QWidget

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.plaintext import button_text, label_text
from gatewright_gui.qt.widget.search_field import SearchField
from gatewright_gui.session.audit import AuditChoices, AuditFilter

Span = tuple[float | None, float | None]
VERDICTS = ((mark("Any verdict"), ""), (mark("Allow"), "allow"), (mark("Ask first"), "ask"), (mark("Deny"), "deny"))
TIMES = (
    (mark("Any time"), ""),
    (mark("Today"), "today"),
    (mark("Yesterday"), "yesterday"),
    (mark("Last 7 days"), "7"),
    (mark("Last 30 days"), "30"),
)


class FilterBar(QWidget):
    """Emits `changed` with each letter and each choice."""

    changed = Signal()
    leave_requested = Signal()
    """The keys are to go to the calls."""

    def __init__(self) -> None:
        super().__init__()
        self._span: tuple[float, float] | None = None
        self.search = named(SearchField(tr("Words in the reason")), "audit.search")
        self.search.search_changed.connect(self._tell)
        self.search.results_requested.connect(self.leave_requested)
        self.search.leave_requested.connect(self.leave_requested)
        self.agent = self._combo("audit.agent", tr("Agent"), ((mark("Any agent"), ""),))
        self.tool = self._combo("audit.tool", tr("Tool or operation"), ((mark("Any tool"), ""),))
        self.verdict = self._combo("audit.verdict", tr("Verdict"), VERDICTS)
        self.client = self._combo("audit.client", tr("Client"), ((mark("Any client"), ""),))
        self.client.hide()
        self.when = self._combo("audit.when", tr("Time"), TIMES)
        self.span_button = named(QPushButton(), "audit.span", tip=tr("Show the calls of all times again"))
        tie_icon(self.span_button, "x", "muted")
        self.span_button.clicked.connect(lambda: self.set_span(None))
        self.span_button.hide()
        self._within = self._noted = ""
        self.within_button = named(QPushButton(), "audit.within", tip=tr("Show the other calls again"))
        tie_icon(self.within_button, "x", "muted")
        self.within_button.clicked.connect(lambda: self.set_within("", ""))
        self.within_button.hide()
        self.clear_button = named(QPushButton(tr("Show all")), "audit.clear", spoken=tr("Show all calls"), kind="link")
        self.clear_button.clicked.connect(self.clear)
        self.clear_button.hide()
        combos = self.verdict, self.agent, self.tool, self.client, self.when
        parts = *combos, self.span_button, self.within_button, self.clear_button
        row_of(stretch(self.search), *parts, into=self, space=1, margins=(2, 1, 2, 1))

    @property
    def period(self) -> Span:
        """From when to when, as the field of times says; in seconds since 1970."""
        return _period(str(self.when.currentData()))

    @property
    def span(self) -> tuple[float, float] | None:
        """What was chosen on the timeline."""
        return self._span

    @property
    def filter(self) -> AuditFilter:
        """What is to be shown."""
        agent, tool, verdict, client = (
            str(combo.currentData()) for combo in (self.agent, self.tool, self.verdict, self.client)
        )
        words = tuple(self.search.text().split())
        return AuditFilter(agent, tool, verdict, client, words, *(self._span or self.period), self._within, self._noted)

    def set_choices(self, choices: AuditChoices) -> None:
        """Offer what the log names; what is chosen stays."""
        for combo, names in ((self.agent, choices.agents), (self.tool, choices.tools), (self.client, choices.clients)):
            _offer(combo, names)
        self.client.setVisible(self.client.count() > 1)

    def set_span(self, span: tuple[float, float] | None) -> None:
        """Show the calls of this span only; None: of the whole period."""
        if span == self._span:
            return
        self._span = span
        self.span_button.setVisible(span is not None)
        if span is not None:
            self.span_button.setText(span_words(span))
            self.span_button.setAccessibleName(tr("Only {span}; show all times again", span=span_words(span)))
        self._tell()

    def set_within(self, call_id: str, called: str) -> None:
        """Show a call with its steps only, whatever else is chosen; an empty id: the others again."""
        if call_id:
            self.blockSignals(True)
            self.clear()
            self.blockSignals(False)
        self._within, self._noted = call_id, ""
        self.within_button.setVisible(bool(call_id))
        if call_id:
            words = tr("{call} and those under it", call=label_text(called, 40, keep=""))
            self.within_button.setText(button_text(words))
            self.within_button.setAccessibleName(tr("Only {calls}; show the other calls again", calls=words))
        self._tell()

    def set_noted(self, key: str, words: str) -> None:
        """Show only the calls that observe mode let through for one cause (`NotedCount.key`)."""
        self.blockSignals(True)
        self.clear()
        self.blockSignals(False)
        self._noted = key
        self.within_button.show()
        self.within_button.setText(button_text(label_text(words, 40, keep="")))
        self.within_button.setAccessibleName(tr("Only {calls}; show the other calls again", calls=words))
        self._tell()

    def show_only(
        self, *, agent: str = "", tool: str = "", verdict: str = "", when: str = "", client: str = ""
    ) -> None:
        """Choose exactly this."""
        self.blockSignals(True)
        self.search.clear()
        self.set_span(None)
        self._within = self._noted = ""
        self.within_button.hide()
        for combo, value in (
            (self.agent, agent),
            (self.tool, tool),
            (self.verdict, verdict),
            (self.client, client),
            (self.when, when),
        ):
            if value and combo.findData(value) < 0:
                combo.addItem(label_text(value, 100, keep=""), value)
            combo.setCurrentIndex(max(combo.findData(value), 0))
        self.client.setVisible(self.client.count() > 1)
        self.blockSignals(False)
        self._tell()

    def clear(self) -> None:
        """Show all calls."""
        self.show_only()

    def _combo(self, name: str, spoken: str, rows: Sequence[tuple[str, str]]) -> QComboBox:
        combo = named(QComboBox(), name, spoken=spoken)
        combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        combo.setMinimumContentsLength(6)
        for words, value in rows:
            combo.addItem(tr(words), value)
        combo.currentIndexChanged.connect(self._tell)
        return combo

    def _tell(self, _what: object = None) -> None:
        self.clear_button.setVisible(self.filter != AuditFilter())
        self.changed.emit()


def span_words(span: tuple[float, float]) -> str:
    """From when to when."""
    begin, end = (datetime.fromtimestamp(moment).astimezone() for moment in span)
    clock = "%H:%M:%S" if begin.second or end.second else "%H:%M"
    if begin.date() == (end - timedelta(seconds=1)).date():
        return f"{begin:%Y-%m-%d} {begin.strftime(clock)} - {end.strftime(clock)}"
    return f"{begin:%Y-%m-%d} {begin.strftime(clock)} - {end:%Y-%m-%d} {end.strftime(clock)}"


def _period(key: str) -> Span:
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    match key:
        case "":
            return None, None
        case "today":
            return today.timestamp(), None
        case "yesterday":
            return (today - timedelta(days=1)).timestamp(), today.timestamp()
        case days:
            return (today - timedelta(days=int(days) - 1)).timestamp(), None


def _offer(combo: QComboBox, names: Sequence[str]) -> None:
    there = [combo.itemData(at) for at in range(1, combo.count())]
    if there == list(names):
        return
    chosen = combo.currentData()
    combo.blockSignals(True)
    while combo.count() > 1:
        combo.removeItem(1)
    for name in sorted({*names, str(chosen or "")} - {""}):
        combo.addItem(label_text(name, 100, keep=""), name)
    combo.setCurrentIndex(max(combo.findData(chosen), 0))
    combo.blockSignals(False)
