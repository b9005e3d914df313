"""The filters over the tree: a button with a menu of boxes, a chip for each kind that is set, counts that filter.

They show and change `Filters`; they do not know which rows fit.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QAction, QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QMenu, QPushButton, QToolButton, QWidget

from gatewright.workspace.api import SafetyTier
from gatewright_gui.pages.access.tools.tool_fit import NO_FILTERS, Filters, State
from gatewright_gui.pages.access.tools.tool_tree import Tally
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import Role, current_look, role_pair, tie_icon
from gatewright_gui.qt.menu import add_action, add_heading
from gatewright_gui.qt.plaintext import button_text, line_text, tip_text
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.question import TIER_WORDS

STATES: tuple[tuple[State, str, str], ...] = (
    (State.ON, mark("On"), mark("Runs without asking, but for calls whose arguments make them ask")),
    (State.ASKS, mark("Ask first"), mark("A person is asked before each call")),
    (State.SOME_ASK, mark("Asks for some calls"), mark("On, and some of its calls ask first by their arguments")),
    (State.OFF, mark("Off"), mark("The model does not see it")),
    (State.OVERRULED, mark("No effect"), mark("Ticked here, turned off by another layer")),
    (State.MIXED, mark("Mixed tools"), mark("Tools of which the model sees some operations and not others")),
)
KEYS = "Ctrl+Shift+F"
_WIDEST_CHIP = 150


class StayingMenu(QMenu):
    """A menu that stays open while boxes in it are ticked, by mouse or by Space."""

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """A click on a box ticks it."""
        action = self.actionAt(event.position().toPoint())
        if not self._tick(action):
            super().mouseReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Space ticks; Enter ticks and closes."""
        action = self.activeAction()
        if event.key() != Qt.Key.Key_Space or not self._tick(action):
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Tooltips, as the boxes are short of words."""
        self.setToolTipsVisible(True)
        return super().event(event)

    def _tick(self, action: QAction | None) -> bool:
        if action is None or not action.isCheckable() or not action.isEnabled():
            return False
        action.trigger()
        return True


class FilterBar(QWidget):
    """Chips with a cross each, hidden while nothing is set. `button` opens the menu and stands where one searches."""

    filters_changed = Signal(object)
    """Filters."""
    cleared = Signal()
    """No filter and no search either."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._filters = NO_FILTERS
        self._origins: tuple[str, ...] = ()
        self.menu = StayingMenu(self)
        self.menu.aboutToShow.connect(self._fill)
        tip = tr("Filter by state, tier, origin, limits, problems ({keys})", keys=KEYS)
        self.button = named(QToolButton(), "agents.filter", spoken=tr("Filter tools and operations"), tip=tip)
        self.button.setText(tr("Filter") + " ")
        self.button.setShortcut(KEYS)
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.button.setMenu(self.menu)
        tie_icon(self.button, "funnel", "muted")
        self._chips = row_of(space=1)
        self.shown = named(Label(), "agents.shown", kind="muted")
        self.clear_button = named(QPushButton(tr("Show all")), "agents.filter.clear", kind="link")
        self.clear_button.clicked.connect(self.cleared)
        row_of(self.shown, self._chips, self.clear_button, into=self, space=2, margins=(2, 0, 1, 1))
        self.hide()

    @property
    def filters(self) -> Filters:
        """The filters that are set."""
        return self._filters

    def set_origins(self, origins: Iterable[str]) -> None:
        """Set the origins of the tools that there are."""
        self._origins = tuple(dict.fromkeys(origins))

    def set_filters(self, filters: Filters) -> None:
        """Set others; says so when they differ."""
        if filters != self._filters:
            self._filters = filters
            tie_icon(self.button, "funnel", "muted" if filters == NO_FILTERS else "accent")
            while (item := self._chips.takeAt(0)) is not None:
                if (widget := item.widget()) is not None:
                    widget.hide()
                    widget.deleteLater()
            states = (tr(text) for state, text, _ in STATES if state in filters.states)
            words = {
                "states": ", ".join(f"{name[:1].lower()}{name[1:]}" for name in states),
                "tiers": ", ".join(tr(TIER_WORDS[tier]) for tier in SafetyTier if tier in filters.tiers),
                "origins": ", ".join(sorted(filters.origins)),
                "has_limits": tr("has limits") if filters.has_limits else "",
                "has_problem": tr("has a problem") if filters.has_problem else "",
            }
            for part, said in words.items():
                if said:
                    self._chips.addWidget(self._chip(part, said))
            self.filters_changed.emit(filters)

    def show_count(self, shown: int, every: int, *, is_filtering: bool) -> None:
        """Show how much fits; the bar is there while anything may be left out."""
        self.shown.setText(tr("{count:,} shown", count=shown))
        self.shown.setToolTip(tr("{count:,} of {every:,} operations fit", count=shown, every=every))
        self.setVisible(is_filtering)

    # menu

    def _fill(self) -> None:
        menu, filters = self.menu, self._filters
        menu.clear()
        add_heading(menu, tr("State"))
        for state, text, tip in STATES:
            self._add(tr(text), state in filters.states, "states", state, tr(tip))
        add_heading(menu, tr("Tier"))
        for tier in SafetyTier:
            text = tr(TIER_WORDS[tier])
            self._add(f"{text[:1].upper()}{text[1:]}", tier in filters.tiers, "tiers", tier)
        add_heading(menu, tr("Origin"))
        for origin in self._origins:
            self._add(button_text(origin), origin in filters.origins, "origins", origin)
        add_heading(menu, tr("Also"))
        tip = tr("Rules that limit how often, when, with what")
        self._add(tr("Has limits"), filters.has_limits, "has_limits", tip=tip)
        tip = tr("Problems of the policy that name the tool")
        self._add(tr("Has a problem"), filters.has_problem, "has_problem", tip=tip)

    def _add(self, text: str, ticked: bool, part: str, value: object = None, tip: str = "") -> None:
        add_action(self.menu, text, partial(self._flip, part, value), ticked=ticked, tip=tip)

    def _flip(self, part: str, value: object) -> None:
        """Turn a part of the filters on or off, or one value of it."""
        held = getattr(self._filters, part)
        self.set_filters(replace(self._filters, **{part: not held if value is None else held ^ {value}}))

    # chips

    def _chip(self, part: str, words: str) -> QToolButton:
        """One for each part of the filters that is set."""
        spoken = tr("Filter: {words}; press to take it away", words=words)
        chip = named(QToolButton(), f"agents.filter.{part.removeprefix('has_')}", spoken=spoken)
        chip.setCheckable(True)
        chip.setChecked(True)
        chip.setText(button_text(line_text(chip.fontMetrics(), words, _WIDEST_CHIP)))
        chip.setToolTip(tip_text(tr("Only what is: {words}. Click to take this filter away", words=words)))
        chip.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        chip.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        tie_icon(chip, "x", "accent")
        chip.clicked.connect(partial(self._drop, part))
        return chip

    def _drop(self, part: str, _on: bool = False) -> None:
        self.button.setFocus(Qt.FocusReason.OtherFocusReason)
        self.set_filters(replace(self._filters, **{part: getattr(NO_FILTERS, part)}))


class TallyChip(QToolButton):
    """A count on a soft ground; chosen, it has a frame, and only what it counts is shown."""

    def __init__(self, name: str, role: Role, tip: str) -> None:
        super().__init__()
        self._role: Role = role
        named(self, name, tip=tip)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        current_look().changed.connect(self.update)

    def say(self, text: str) -> None:
        """Show another count."""
        if text != self.text():
            self.setText(text)
            self.setAccessibleName(text)
            self.updateGeometry()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Room for the words and the ground around them."""
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self.text()) + 20, metrics.height() + 6)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """A count is never cut."""
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the ground, the frame of what is chosen or has the keys, and the words."""
        del event
        palette = current_look().palette
        pair = role_pair(palette, self._role)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        is_framed = self.isChecked() or self.underMouse()
        painter.setPen(QColor(palette.focus) if self.hasFocus() else QColor(pair.fg if is_framed else pair.soft))
        painter.setBrush(QColor(pair.soft))
        half = (self.height() - 1) / 2
        painter.drawRoundedRect(self.rect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5), half, half)
        font = self.font()
        font.setUnderline(self.isChecked())
        painter.setFont(font)
        painter.setPen(QColor(pair.fg))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.text())


class TallyBar(QWidget):
    """The counts of an agent: *Can do 19*, *Asks before 3*, *Cannot 46*, and the ticks that have no effect."""

    fix_requested = Signal()
    """The ticks without effect were asked for: they are shown, and the first one is to be the current row."""

    def __init__(self, filters: FilterBar, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._filters = filters
        chips: tuple[tuple[State, str, Role, str], ...] = (
            (State.ON, "can", "allow", tr("Operations that are on. Click: only these")),
            (State.ASKS, "asks", "ask", tr("Operations that ask a person before each call. Click: only these")),
            (State.OFF, "cannot", "neutral", tr("Operations that the model does not see. Click: only these")),
            (State.OVERRULED, "idle", "ask", tr("Ticked, and another layer says off. Click: only these")),
        )  # fmt: skip
        self.chips = {state: TallyChip(f"agents.tally.{name}", role, tip) for state, name, role, tip in chips}
        for state, chip in self.chips.items():
            chip.clicked.connect(partial(self._choose, state))
        filters.filters_changed.connect(self._show_chosen)
        row_of(*self.chips.values(), stretch(), into=self, space=2, margins=(2, 1, 1, 0))

    def show_tally(self, tally: Tally) -> None:
        """Show the counts of an agent."""
        self.chips[State.ON].say(tr("Can do {count:,}", count=tally.can))
        self.chips[State.ASKS].say(tr("Asks before {count:,}", count=tally.asks))
        self.chips[State.OFF].say(tr("Cannot {count:,}", count=tally.cannot))
        idle = counted(tally.idle, "tick has no effect", "ticks have no effect")
        self.chips[State.OVERRULED].say(tr("{ticks} · Fix", ticks=idle))
        self.chips[State.OVERRULED].setVisible(tally.idle > 0 or self.chips[State.OVERRULED].isChecked())

    def _choose(self, state: State, on: bool) -> None:
        self._filters.set_filters(replace(self._filters.filters, states=frozenset({state} if on else ())))
        if on and state is State.OVERRULED:
            self.fix_requested.emit()

    def _show_chosen(self, filters: Filters) -> None:
        for state, chip in self.chips.items():
            chip.setChecked(filters.states == frozenset({state}))
