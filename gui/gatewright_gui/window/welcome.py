"""What the window shows while nothing is open: what AI agents can do on this computer, and the ways to begin."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QPushButton, QScrollArea, QSizePolicy, QVBoxLayout, QWidget
from shiboken6 import isValid

from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.button import text_button
from gatewright_gui.qt.widget.chip import Chip
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.label import ElidedLabel, IconLabel, Label
from gatewright_gui.session.opening import DEMO_CALL, StoppedCall, stop_demo_call

if TYPE_CHECKING:
    from gatewright_gui.session.coding_agents import FoundProgram, FoundPrograms

QUESTION = mark("What can your AI agents do on this computer?")
PURPOSE = mark(
    "Gatewright stands between an agent and its tools: you choose what it may do, what asks you first,"
    " what it never sees."
)
NOTHING = mark("No coding agent and no MCP client was found on this computer.")
WAYS: tuple[tuple[str, str, str, str], ...] = (
    ("stop", "shield-x", mark("See it stop a call"), mark("The demo: an agent that may not delete tries")),
    ("new", "folder-plus", mark("New workspace"), mark("Choose a folder; secrets stay hidden; one agent to start")),
    ("open", "folder-open", mark("Open a policy..."), mark("An existing policy.toml")),
    ("import", "plug", mark("Import my MCP tools"), mark("From Claude, VS Code, Cursor, Windsurf, Zed, or a command")),
    ("demo", "package", mark("Explore the demo"), mark("Four agents, a small archive, every built-in tool")),
)
LET = "let"
"""The way that lets the demo's agent do what its gate stops."""
_MARKS = (
    ("lookup", mark("tool")),
    ("operation", mark("operation")),
    ("permission", mark("file level")),
    ("approval", mark("asks a person")),
    ("execute", mark("done")),
)
"""The stages that the picture of a stopped call has, in the gate's order, and their words."""
_IN_FRONT = 3
"""Of the ways, those that are buttons; the others stand as links below."""
_LOOK_AFTER_MS = 100
"""Who opens a workspace at once is shown no programs, so nobody looks for them."""
_TASK = "welcome.look"
_WIDTH = 760
_MOST_RECENT, _MOST_CARDS = 5, 4


class Welcome(QWidget):
    """Looks for programs beside the window while it is seen; the keys begin at the first gate, or a new workspace."""

    way_chosen = Signal(object)
    """Key of a way: str."""
    recent_chosen = Signal(object)
    """A policy to open, of a gate or one that was open before: Path."""
    gate_chosen = Signal(object)
    """A gate is wanted before a program: tuple[str, str], the key of its row in Servers."""

    def __init__(self, tasks: TaskOwner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        named(self, "window.welcome", spoken=tr("Welcome"))
        self._tasks = tasks
        self._found: FoundPrograms | None = None
        self._shows_all = False
        self.cards: list[ProgramCard] = []
        self._source = named(Label(tr("Reading configuration files...")), "welcome.source", kind="muted")
        self._unknown = named(EmptyState("bot", "", ""), "welcome.unknown")
        self._unknown.setMinimumHeight(120)
        self._unknown.set_unknown()
        self.nothing = named(Label(tr(NOTHING), wraps=True), "welcome.nothing")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.nothing.hide()
        self._rows = column_of(space=2)
        self.more_button = named(QPushButton(), "welcome.more", kind="link")
        self.more_button.clicked.connect(self._show_all)
        self.more_button.hide()
        self.buttons = {
            key: self._button(*way, is_link=at >= _IN_FRONT) for at, way in enumerate(WAYS) for key in way[:1]
        }
        self.stopped = StoppedCard(partial(self._choose, LET))
        self._recent_title = named(Label(tr("Open again")), kind="heading")
        self._recent = QVBoxLayout()
        self._recent.setSpacing(0)
        self._body = self._laid_out()
        self._focus: QWidget | None = None
        self._opening = named(Label(), "welcome.opening", kind="muted")
        self._opening.hide()
        area = QScrollArea()
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        middle = row_of(stretch(), stretch(self._body, 8), stretch())
        area.setWidget(holding(column_of(stretch(), middle, stretch(factor=2), margins=4)))
        column_of(stretch(area), row_of(stretch(), self._opening, stretch(), margins=1), into=self)
        self._delay = QTimer(self, singleShot=True, interval=_LOOK_AFTER_MS)
        self._delay.timeout.connect(self.look)
        self.show_recent(())

    def _laid_out(self) -> QWidget:
        title = named(Label(tr(QUESTION), wraps=True), kind="title")
        purpose, otherwise = named(Label(tr(PURPOSE), wraps=True), kind="muted"), named(Label(tr("or")), kind="muted")
        for label in (title, self._source, purpose, otherwise):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        ways = [self.buttons[way[0]] for way in WAYS]
        body = holding(
            column_of(
                title,
                purpose,
                self._source,
                self._unknown,
                self.nothing,
                self._rows,
                row_of(stretch(), self.more_button, stretch()),
                otherwise,
                row_of(stretch(), *ways[:_IN_FRONT], stretch(), space=2),
                row_of(stretch(), *ways[_IN_FRONT:], stretch(), space=2),
                self.stopped,
                self._recent_title,
                self._recent,
                space=3,
            )
        )
        body.setMaximumWidth(_WIDTH + 2 * current_look().tokens.space_4)
        body.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        return body

    def _button(self, key: str, icon: str, title: str, about: str, *, is_link: bool) -> QPushButton:
        kind = "link" if is_link else ""
        button = named(QPushButton(tr(title)), f"welcome.{key}", spoken=tr(title), tip=tr(about), kind=kind)
        button.setAccessibleDescription(tr(about))
        button.setMinimumHeight(32)
        tie_icon(button, icon, "accent" if is_link else "text")
        button.clicked.connect(partial(self._choose, key))
        return button

    def _choose(self, key: str, _checked: bool = False) -> None:
        self.way_chosen.emit(key)

    # what is on this computer

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Programs may have come and gone since it was seen last."""
        super().showEvent(event)
        self._delay.start()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """Nobody wants to know."""
        super().hideEvent(event)
        self._delay.stop()

    def look(self) -> None:
        """Look for programs now, unless that is under way or a workspace is being opened."""
        if self.isVisible() and self._body.isEnabled() and _TASK not in self._tasks.names:
            self._tasks.start(self._look(), _TASK, stays=True)

    async def _look(self) -> None:
        found = await asyncio.to_thread(_look_for_programs)
        if isValid(self) and found != self._found:
            is_first, self._found = self._found is None, found
            self._show_found()
            gate = next((card.button for card in self.cards if card.program.policy is None), None)
            if is_first and gate is not None and self.buttons["new"].hasFocus():
                gate.setFocus(Qt.FocusReason.OtherFocusReason)
        if isValid(self) and self.isVisible() and self.stopped.isHidden():
            call = await asyncio.to_thread(stop_demo_call)
            if isValid(self) and call is not None:
                self.stopped.show_call(call)

    def _show_all(self) -> None:
        self._shows_all = True
        self._show_found()
        self.cards[_MOST_CARDS].button.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_found(self) -> None:
        """Show the programs as cards, the worst first, and in the order of the keys."""
        if self._found is None:
            return
        programs, files = self._found.programs, self._found.files
        read = counted(files, "configuration file", "configuration files")
        words = tr("Found by reading {files}. Nothing was started or sent.", files=read)
        if programs and not files:
            words = tr("Found by their programs and folders. Nothing was started or sent.")
        elif not programs:
            words = tr("Looked for programs and their configuration files. Nothing was started or sent.")
        self._source.setText(words)
        self._unknown.hide()
        self.nothing.setVisible(not programs)
        for card in self.cards:
            self._rows.removeWidget(card)
            card.deleteLater()
        ungated = next((one for one in programs if one.policy is None), None)
        shown = programs if self._shows_all else programs[:_MOST_CARDS]
        self.cards = [ProgramCard(one, self._act_on, is_first=one is ungated) for one in shown]
        for card in self.cards:
            self._rows.addWidget(card)
        left = len(programs) - len(shown)
        self.more_button.setText(tr("Show {count} more", count=left))
        self.more_button.setVisible(left > 0)
        ways = self.buttons.values()
        order = [*(card.button for card in self.cards), self.more_button, *ways, self.stopped.button]
        for before, after in pairwise(order):
            QWidget.setTabOrder(before, after)

    def _act_on(self, program: "FoundProgram") -> None:
        if program.policy is not None:
            self.recent_chosen.emit(program.policy)
        else:
            self.gate_chosen.emit(program.key)

    # what is opened

    def set_opening(self, name: str) -> None:
        """A workspace is being opened: say which, and offer nothing else meanwhile; "": none is."""
        self._opening.setText(tr("Opening {name}...", name=button_text(name)) if name else "")
        self._opening.setVisible(bool(name))
        held = [one for one in self._body.findChildren(QPushButton) if one.hasFocus()]
        self._focus = next(iter(held), self._focus or self.buttons["new"]) if name else self._focus
        self._body.setEnabled(not name)
        if not name and self._focus is not None:
            if isValid(self._focus) and self.isVisibleTo(self.window()):
                self._focus.setFocus(Qt.FocusReason.OtherFocusReason)
            self._focus = None
        if not name and self.isVisible():
            self._delay.start()

    def show_recent(self, paths: Sequence[Path]) -> None:
        """Offer what was open before, the latest first."""
        while (item := self._recent.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        self._recent_title.setVisible(bool(paths))
        for path in paths[:_MOST_RECENT]:
            button = named(QPushButton(button_text(str(path))), kind="link")
            button.clicked.connect(partial(self._choose_recent, path))
            self._recent.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)

    def _choose_recent(self, path: Path, _checked: bool = False) -> None:
        self.recent_chosen.emit(path)


class ProgramCard(QFrame):
    """A program on this computer: its name, its servers, what it can do, and the way to a gate before it."""

    def __init__(self, program: "FoundProgram", act: "Callable[[FoundProgram], None]", *, is_first: bool) -> None:
        super().__init__()
        self.program = program
        self.does = ElidedLabel(program.does, role=program.role)
        told = ", ".join(filter(None, (program.name, program.does, program.servers, program.note)))
        named(self, f"welcome.card.{program.key[0]}", spoken=told, kind="card")
        kind = "primary" if is_first else ""
        words = tr("Put a gate here") if program.policy is None else tr("Open its policy")
        spoken = tr("Put a gate before {program}", program=program.name)
        if program.policy is not None:
            spoken = tr("Open the policy of {program}", program=program.name)
        self.button = named(QPushButton(words), "welcome.gate", spoken=spoken, kind=kind)
        self.button.setMinimumHeight(32)
        self.button.setAutoDefault(False)
        self.button.clicked.connect(lambda _=False: act(program))
        name = holding(column_of(named(Label(program.name), kind="heading"), *_small(program.servers), space=1))
        name.setFixedWidth(max(_NAME_WIDTH, name.sizeHint().width()))
        does = column_of(self.does, *(ElidedLabel(one, role="muted") for one in [program.note] if one), space=1)
        row_of(
            name,
            IconLabel(program.icon, program.role),
            stretch(does),
            self.button,
            into=self,
            space=3,
            margins=(3, 2),
        )


class StoppedCard(QFrame):
    """A call that the demo's gate stopped, at its stage, and the way to let it; hidden until it was decided."""

    def __init__(self, let: Callable[[], None]) -> None:
        super().__init__()
        self._marks = {stage: Chip(tr(words), icon="circle", role="muted") for stage, words in _MARKS}
        agent_id, tool, operation, path = DEMO_CALL
        call = ElidedLabel(f"{agent_id} \u2192 {tool}.{operation} {path}", mono=True)
        words = tr("Stopped: {agent} may not {operation}", agent=agent_id, operation=operation)
        self.title = named(Label(words), "welcome.stopped.title", kind="heading")
        self.about = named(Label(_knowledge(False), wraps=True), "welcome.stopped.about", kind="muted")
        tip = tr("Open the demo, and let {agent} {operation}; Undo takes it back", agent=agent_id, operation=operation)
        self.button = text_button(tr("Let it, and look"), "welcome.let", let, tip)
        self.button.setMinimumHeight(32)
        named(self, "welcome.stopped", spoken=words, kind="card")
        told = column_of(row_of(IconLabel("shield-x", "deny"), stretch(self.title), space=2), self.about, space=1)
        column_of(
            row_of(named(Label(tr("In the demo:")), kind="muted"), stretch(call), space=2),
            row_of(*self._marks.values(), stretch(), space=2),
            row_of(stretch(told), self.button, space=3),
            into=self,
            space=2,
            margins=(3, 3),
        )
        room = self.sizePolicy()
        room.setRetainSizeWhenHidden(True)  # nothing moves when it comes
        self.setSizePolicy(room)
        self.hide()

    def show_call(self, call: StoppedCall) -> None:
        """Show at which stage the call was stopped, and what its model knew."""
        is_over = False
        for stage, words in _MARKS:
            is_stop = not is_over and stage not in call.stages
            icon, role = ("circle-x", "deny") if is_stop else ("circle-check", "allow")
            self._marks[stage].set_chip(tr(words), *(("circle", "muted") if is_over else (icon, role)))
            is_over = is_over or is_stop
        self.about.setText(_knowledge(call.is_shown))
        self.show()


def _knowledge(is_shown: bool) -> str:
    """Say whether the model knows the operation that is stopped."""
    operation = DEMO_CALL[2]
    if is_shown:
        return tr("The model knows {operation}. If it calls it, the gate refuses.", operation=operation)
    return tr(
        "The model is not told that {operation} exists. If it calls it anyway, the gate refuses.", operation=operation
    )


_NAME_WIDTH = 124


def _small(text: str) -> list[Label]:
    return [named(Label(text), kind="small")] if text else []


def _look_for_programs() -> "FoundPrograms":
    """Look for programs, beside the window; what knows them is loaded with the first look."""
    module = import_module("gatewright_gui.session.coding_agents")
    return cast("Callable[[], FoundPrograms]", module.look_for_programs)()
