"""Three first steps in a bar over the pages, for who began at the welcome: each has its tick once it had its effect.

What is taken back loses its tick, and another workspace begins with none. With all three it offers to connect a client.
"""

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

from gatewright.workspace.api import Verdict
from gatewright_gui.pages.access.tools.page import ToolsPage
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.calls import CallRecord
from gatewright_gui.session.document import ChangeSet
from gatewright_gui.window.shelf import PageShelf

STEPS_KEY, BEGUN, OVER = "window.first-steps", "begun", "over"
"""The preference: empty, or `begun`, where, and the keys of the steps that are done there, or `over`."""
TICK, SCHEMA, TRY = "tick", "schema", "try"
STEPS = (
    (TICK, mark("Tick an operation"), mark("What is ticked, the agent may call")),
    (SCHEMA, mark("See the schema the model gets"), mark("Only what is ticked is in it")),
    (TRY, mark("Try a call"), mark("Decide asks the gate, Run in copy changes nothing of yours")),
)

Right = tuple[str, str, str]
"""An agent, a tool, an operation."""


class FirstSteps(QWidget):
    """Hidden until `begin`; closed, or once everything is done, it does not come again."""

    def __init__(self, context: PageContext, shelf: PageShelf) -> None:
        super().__init__()
        self._context, self._shelf = context, shelf
        self._callable: dict[str, frozenset[Right]] = {}
        self._gained: frozenset[Right] = frozenset()
        self._is_following_calls = False
        named(self, "window.steps", spoken=tr("First steps"), kind="bar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._title = named(Label(tr("First steps")), "window.steps.title", kind="muted")
        self.buttons = {key: self._button(key, text, tip) for key, text, tip in STEPS}
        self.next_button = named(
            QPushButton(tr("Connect a client...")),
            "window.steps.next",
            tip=tr("Choose the client that should use the gateway"),
            kind="primary",
        )
        self.next_button.clicked.connect(partial(_run, context.navigator.ask_for_client))
        self.next_button.hide()
        self.close_button = named(IconButton("x", tr("Do not show these steps again")), "window.steps.close")
        self.close_button.clicked.connect(self._end)
        row_of(
            self._title,
            *self.buttons.values(),
            self.next_button,
            stretch(),
            self.close_button,
            into=self,
            space=3,
            margins=(3, 1, 1, 1),
        )
        context.document.opened.connect(self._start_over)
        context.document.policy_changed.connect(self._look_for_tick)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._look_for_schema)
        self._start_over()

    def _button(self, key: str, text: str, tip: str) -> QPushButton:
        button = named(QPushButton(tr(text)), f"window.steps.{key}", tip=tr(tip), kind="link")
        ways: dict[str, Callable[[], None]] = {TICK: self._go_to_tree, SCHEMA: self._go_to_schema}
        button.clicked.connect(partial(_run, ways.get(key, self._go_to_console)))
        return button

    @property
    def done(self) -> tuple[str, ...]:
        """The keys of the steps that are done."""
        return tuple(self._kept.split()[2:])

    @property
    def _kept(self) -> str:
        return self._context.sizes.choice(STEPS_KEY)

    def begin(self, _way: object = None) -> None:
        """Somebody begins at the welcome."""
        if not self._kept:
            self._context.sizes.set_choice(STEPS_KEY, BEGUN)

    def follow_page(self, key: str) -> None:
        """Another page is shown: from now on the Console is there to be followed."""
        self._keep_room(on=False)
        if key == "try" and not self._is_following_calls and self._kept not in {"", OVER}:
            from gatewright_gui.pages.trial import TrialPage

            page = self._shelf.page(key)
            if isinstance(page, TrialPage):
                self._is_following_calls = True
                page.console.finished.connect(self._look_for_call)

    def _look_for_call(self, record: CallRecord) -> None:
        """A call that was denied is no step done."""
        if record.verdict is not Verdict.DENY and not record.is_cancelled:
            self._tick(TRY)

    def _start_over(self) -> None:
        document, kept = self._context.document, self._kept
        self._gained = frozenset()
        if document.is_open and kept not in {"", OVER} and kept.split()[1:2] != [_mark_of(document.path)]:
            self._context.sizes.set_choice(STEPS_KEY, f"{BEGUN} {_mark_of(document.path)}")
        self._callable = {}
        self._learn_rights()
        self._show_done()
        self.setVisible(document.is_open and self._kept not in {"", OVER})

    def _show_done(self) -> None:
        done = self.done
        for key, text, _ in STEPS:
            is_done = key in done
            tie_icon(self.buttons[key], "circle-check" if is_done else "circle", "allow" if is_done else "muted")
            self.buttons[key].setAccessibleName(f"{tr(text)}, {tr('done') if is_done else tr('to do')}")

    def _tick(self, step: str, _why: object = None) -> None:
        if self.isHidden() or step in self.done or self._kept == OVER:
            return
        self._context.sizes.set_choice(STEPS_KEY, f"{self._kept} {step}")
        self._show_done()
        if len(self.done) == len(STEPS):
            self._title.setText(tr("All three done"))
            self.next_button.show()
            self._context.sizes.set_choice(STEPS_KEY, OVER)

    def _end(self) -> None:
        self._context.sizes.set_choice(STEPS_KEY, OVER)
        self._keep_room(on=True)
        self.hide()

    def _keep_room(self, *, on: bool) -> None:
        """Nothing moves below the mouse that closed it: its room is given away with the page."""
        policy = self.sizePolicy()
        policy.setRetainSizeWhenHidden(on)
        self.setSizePolicy(policy)

    # where each leads, and when it is done

    @property
    def _agents_page(self) -> ToolsPage:
        page = self._shelf.page("tools")
        if not isinstance(page, ToolsPage):
            raise TypeError("the page `tools` is that of the tools")
        return page

    def _go_to_tree(self) -> None:
        self._context.navigator.go_to_page("tools")

    def _look_for_tick(self, changes: ChangeSet) -> None:
        """Done is what an agent may call now and might not before; where that is taken back it is to do again."""
        if self.isHidden():
            return
        before = self._callable
        self._callable = {} if changes.everything else {k: v for k, v in before.items() if k not in changes.agents}
        self._learn_rights()
        for agent_id in changes.agents & before.keys() & self._callable.keys():
            self._gained |= self._callable[agent_id] - before[agent_id]
        if self._gained and self._gained.isdisjoint(frozenset[Right]().union(*self._callable.values())):
            self._gained = frozenset()
            self._take_back(TICK)
        elif self._gained:
            self._tick(TICK)

    def _learn_rights(self) -> None:
        """Note what agents may call, asking or not, of those of whom that is at hand."""
        document = self._context.document
        if not document.is_open or self._kept in {"", OVER}:
            return
        for agent_id in document.policy.agents.keys() - self._callable.keys():
            if document.has_rights(agent_id):
                rights = document.rights(agent_id)
                found = frozenset((agent_id, tool, name) for tool, one in rights.items() for name in one.shown)
                self._callable[agent_id] = found

    def _take_back(self, step: str) -> None:
        if step in self.done and self._kept != OVER:
            self._context.sizes.set_choice(STEPS_KEY, " ".join(one for one in self._kept.split() if one != step))
            self._show_done()

    def _go_to_schema(self) -> None:
        self._context.navigator.go_to_page("tools")
        self._agents_page.show_schema()

    def _look_for_schema(self, _before: object, now: QWidget | None) -> None:
        if self.isVisible() and now is not None:
            self._learn_rights()
            preview = self._agents_page.preview
            if preview.part.current == "schema" and preview.code.isAncestorOf(now):
                self._tick(SCHEMA)

    def _go_to_console(self) -> None:
        chosen = self._context.selection
        if chosen.agent_id is not None and chosen.tool is not None:
            self._context.navigator.go_to_call(chosen.agent_id, chosen.tool, chosen.operation)
        else:
            self._context.navigator.go_to_page("try")


def _mark_of(path: Path | None) -> str:
    """A short name of a policy file, without blanks."""
    return hashlib.sha256(os.fsencode(str(path))).hexdigest()[:12]


def _run(way: Callable[[], None], _checked: bool = False) -> None:
    way()
