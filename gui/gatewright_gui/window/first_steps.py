"""Three first steps in a bar over the pages, for who began at the welcome: each has its tick once it was done.

Then it offers to connect a client.
"""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

from gatewright.workspace.api import Agent
from gatewright_gui.pages.agents.agents_page import AgentsPage
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.document import ChangeSet
from gatewright_gui.window.shelf import PageShelf

STEPS_KEY, BEGUN, OVER = "window.first-steps", "begun", "over"
"""The preference: empty, or `begun` and the keys of the steps that are done, or `over`."""
TICK, SCHEMA, TRY = "tick", "schema", "try"
STEPS = (
    (TICK, mark("Tick an operation"), mark("What is ticked, the agent may call")),
    (SCHEMA, mark("See the schema the model gets"), mark("Only what is ticked is in it")),
    (TRY, mark("Try it in the Console"), mark("Decide asks the gate, Run in copy changes nothing of yours")),
)


class FirstSteps(QWidget):
    """Hidden until `begin`; closed, or once everything is done, it does not come again."""

    def __init__(self, context: PageContext, shelf: PageShelf) -> None:
        super().__init__()
        self._context, self._shelf = context, shelf
        self._agents: dict[str, Agent] = {}
        self._is_following_calls = False
        named(self, "window.steps", spoken=tr("First steps"), kind="bar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._title = named(Label(tr("First steps")), "window.steps.title", kind="muted")
        self.buttons = {key: self._button(key, text, tip) for key, text, tip in STEPS}
        self.next_button = named(
            QPushButton(tr("Connect a client...")),
            "window.steps.next",
            tip=tr("The agent works with the program of yours that gets the gateway into its configuration"),
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
        context.document.opened.connect(self._opened)
        context.document.policy_changed.connect(self._look_for_tick)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._look_for_schema)
        self._opened()

    def _button(self, key: str, text: str, tip: str) -> QPushButton:
        button = named(QPushButton(tr(text)), f"window.steps.{key}", tip=tr(tip), kind="link")
        ways: dict[str, Callable[[], None]] = {TICK: self._go_to_tree, SCHEMA: self._go_to_schema}
        button.clicked.connect(partial(_run, ways.get(key, self._go_to_console)))
        return button

    @property
    def done(self) -> tuple[str, ...]:
        """The keys of the steps that are done."""
        return tuple(self._kept.split()[1:])

    @property
    def _kept(self) -> str:
        return self._context.sizes.choice(STEPS_KEY)

    def begin(self, _way: object = None) -> None:
        """Somebody begins at the welcome."""
        if not self._kept:
            self._context.sizes.set_choice(STEPS_KEY, BEGUN)

    def follow_page(self, key: str) -> None:
        """Another page is shown: from now on the Console is there to be followed."""
        if key == "console" and not self._is_following_calls and self._kept not in {"", OVER}:
            from gatewright_gui.pages.console import ConsolePage

            page = self._shelf.page(key)
            if isinstance(page, ConsolePage):
                self._is_following_calls = True
                page.console.finished.connect(partial(self._tick, TRY))

    def _opened(self) -> None:
        document = self._context.document
        self._agents = dict(document.policy.agents)
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
        self.hide()

    # where each leads, and when it is done

    @property
    def _agents_page(self) -> AgentsPage:
        page = self._shelf.page("agents")
        if not isinstance(page, AgentsPage):
            raise TypeError("the page `agents` is that of the agents")
        return page

    def _go_to_tree(self) -> None:
        self._context.navigator.go_to_page("agents")

    def _look_for_tick(self, changes: ChangeSet) -> None:
        before, self._agents = self._agents, dict(self._context.document.policy.agents)
        if changes.everything or self.isHidden():
            return
        if any(
            (before[name].tools, before[name].tool_rules) != (self._agents[name].tools, self._agents[name].tool_rules)
            for name in changes.agents & before.keys() & self._agents.keys()
        ):
            self._tick(TICK)

    def _go_to_schema(self) -> None:
        self._context.navigator.go_to_page("agents")
        self._agents_page.show_schema()

    def _look_for_schema(self, _before: object, now: QWidget | None) -> None:
        if self.isVisible() and now is not None:
            preview = self._agents_page.preview
            if preview.part.current == "schema" and preview.code.isAncestorOf(now):
                self._tick(SCHEMA)

    def _go_to_console(self) -> None:
        chosen = self._context.selection
        if chosen.agent_id is not None and chosen.tool is not None:
            self._context.navigator.go_to_call(chosen.agent_id, chosen.tool, chosen.operation)
        else:
            self._context.navigator.go_to_page("console")


def _run(way: Callable[[], None], _checked: bool = False) -> None:
    way()
