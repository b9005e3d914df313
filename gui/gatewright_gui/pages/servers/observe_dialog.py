"""The question until when the tools of a catalog are only observed, with what that passes and for whom."""

import time
from datetime import datetime

from PySide6.QtWidgets import QLineEdit, QWidget

from gatewright.workspace.api import MOST_OBSERVE_S, Catalog, is_observed
from gatewright_gui.qt.dialog import CheckedDialog
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs.operations import lists_tool

SIZE = (560, 320)
FORM = "%Y-%m-%d %H:%M"
DAYS = {"1": 1, "7": 7, "30": 30}
_DAY_S = 86_400.0
_MINUTE_S = 60.0
ABOUT = mark(
    "Until then its calls run although rules, levels or approvals would deny them or ask first; the log notes each. "
    "Closed places, confinement, the policy's own protection and the stop hold all the same."
)


def moment_words(wall_s: float) -> str:
    """A moment, to the minute, by the clock of this computer."""
    return time.strftime(FORM, time.localtime(wall_s))


def read_moment(text: str, now_s: float) -> tuple[float, str]:
    """The moment that the text names, and what is wrong with it; empty where it can be observed until then."""
    try:
        found_s = datetime.strptime(text.strip(), FORM).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0, tr("say the end as {form}", form=moment_words(now_s + 7 * _DAY_S))
    if found_s <= now_s:
        return 0.0, tr("this moment is over: take a later one")
    if found_s > now_s + MOST_OBSERVE_S:
        last = moment_words(now_s + MOST_OBSERVE_S)
        return 0.0, tr("nothing is observed for more than 30 days: take {last} or earlier", last=last)
    return found_s, ""


def mode_words(catalog: Catalog, now_s: float) -> str:
    """The end of observing a catalog; empty for one that is enforced."""
    if not is_observed(catalog, now_s) or catalog.observe_until_s is None:
        return ""
    return tr("only observed until {until}", until=moment_words(catalog.observe_until_s))


def holders_of(document: Document, catalog_id: str) -> tuple[str, ...]:
    """The agents that may have tools of a catalog."""
    tools = [facts for facts in document.catalog if facts.origin == catalog_id]
    agents = document.policy.agents.values()
    return tuple(one.agent_id for one in agents if any(lists_tool(one.tools, facts) for facts in tools))


class ObserveDialog(CheckedDialog):
    """After it was accepted `until_s` holds the end, in seconds since 1970."""

    def __init__(self, parent: QWidget | None, document: Document, catalog_id: str) -> None:
        super().__init__(parent, "observe", tr("Only observe {catalog}", catalog=catalog_id), tr("Observe"))
        self.until_s = 0.0
        self.span = named(Segmented(tr("For how long")), "observe.span")
        for key, days in DAYS.items():
            self.span.add_segment(key, counted(days, "day", "days"))
        self.until = named(QLineEdit(), "observe.until", spoken=tr("Until"))
        self.until.setMaxLength(40)
        agents = holders_of(document, catalog_id)
        named_agents = tr("Agents that may have its tools: {agents}.", agents=", ".join(agents))
        whom = named_agents if agents else tr("No agent has a tool of it.")
        self.lay_out(
            self.heading,
            named(Label(tr(ABOUT), wraps=True), "observe.about", kind="muted"),
            named(Label(whom, wraps=True), "observe.agents"),
            Label(tr("&Until"), buddy=self.until),
            row_of(stretch(self.until), self.span, space=2),
            self.fault,
            stretch(),
        )
        self.span.current_changed.connect(self._take_span)
        self.until.textChanged.connect(self._check)
        self.span.set_current("7")
        self.until.setFocus()
        self.until.selectAll()
        self.resize(*SIZE)

    def accept(self) -> None:
        """Close, unless the moment cannot be taken any more."""
        self._check()
        if self.accept_button.isEnabled():
            super().accept()

    def _take_span(self, key: str) -> None:
        until_s = time.time() + DAYS[key] * _DAY_S
        self.until.setText(moment_words(until_s - until_s % _MINUTE_S))

    def _check(self, _text: str = "") -> None:
        self.until_s, fault = read_moment(self.until.text(), time.time())
        self.say(fault)
        self.accept_button.setEnabled(not fault)
