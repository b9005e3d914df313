"""The window: puts rail, bars and pages together and does what the actions say. It decides nothing about policies.

Over 450 lines, because every action of the menu is a short method here and each is one line away from its signal.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QProcess, QSize, Qt, Signal
from PySide6.QtGui import QAction, QCloseEvent, QDragEnterEvent, QDropEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QApplication, QDialog, QHBoxLayout, QMainWindow, QMenu, QVBoxLayout, QWidget

from gatewright_gui.models.palette import PaletteEntry
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.filedialog import path_of_drop
from gatewright_gui.qt.language import counted, key_names, mark, tr
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.plaintext import title_text
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.icon_rail import BadgeTone, IconRail
from gatewright_gui.qt.widget.message_bar import FootBars, MessageBar, Toast
from gatewright_gui.session.coding_agents import CodingAgents
from gatewright_gui.session.derive import Deriver, WorkerLost
from gatewright_gui.session.diagnostics import diagnostics
from gatewright_gui.session.document import Document, FileAlarm, Step
from gatewright_gui.session.draft import PolicyDraft
from gatewright_gui.session.exporting import ExportKind
from gatewright_gui.session.message import Message
from gatewright_gui.session.navigator import Navigator, Place, go_to
from gatewright_gui.session.opening import DEMO_CALL, POLICY_NAME
from gatewright_gui.session.question import PendingApproval
from gatewright_gui.session.selection import Selection
from gatewright_gui.session.selfcheck import CheckCount, CheckProgress
from gatewright_gui.session.unsaved import UnsavedEdits
from gatewright_gui.session.upkeep import Upkeep
from gatewright_gui.session.verbs import file as verbs
from gatewright_gui.session.verbs.rights import tick_operations
from gatewright_gui.session.waiting import Waiting
from gatewright_gui.session.watch import PolicyWatch, SourceWatch
from gatewright_gui.settings import TEXT_FACTORS, Preferences
from gatewright_gui.theme import Theme, ThemeChoice
from gatewright_gui.window.action import make_actions, refresh_actions, tip_of
from gatewright_gui.window.bar import AskingBar, ObserveBar, OutsideBar, StopBar, UnsavedBar
from gatewright_gui.window.first_steps import FirstSteps
from gatewright_gui.window.guard import may_leave, may_save_without
from gatewright_gui.window.impact_strip import ImpactStrip
from gatewright_gui.window.live_frame import LiveFrame
from gatewright_gui.window.menu import fill_menu
from gatewright_gui.window.notifier import Notifier
from gatewright_gui.window.pages import FIRST, PAGES
from gatewright_gui.window.shelf import PageShelf
from gatewright_gui.window.status_bar import StatusBar
from gatewright_gui.window.top_bar import TopBar
from gatewright_gui.window.whereabouts import Whereabouts

if TYPE_CHECKING:
    from gatewright_gui.session.stops import Stop
    from gatewright_gui.window.help_dialog import HelpDialog
    from gatewright_gui.window.palette import CommandPalette
    from gatewright_gui.window.preferences_dialog import PreferencesDialog
    from gatewright_gui.window.selfcheck_dialog import SelfCheckDialog

DEFAULT_SIZE = (1280, 800)
_LOW = 600
"""Pixels of height below which a window has no room for the line after an edit."""
POLICY_FILTER = mark("Policy files (*.toml)")
_log = logging.getLogger(__name__)


class MainWindow(QMainWindow):
    """One window, one document. Needs a running event loop; `shut` must be awaited at the end."""

    closed = Signal()
    """The window was closed; what is left is `shut`."""

    def __init__(self, document: Document, theme: Theme, preferences: Preferences, demo: Callable[[], Path]) -> None:
        super().__init__()
        self.document, self.theme, self.preferences = document, theme, preferences
        self._demo = demo
        self._may_close = False
        self._text_size = preferences.text_size
        self._problem_badge: tuple[int, BadgeTone, str, BadgeTone | None] = (0, "ask", "", None)
        self._found: CheckCount | None = None
        self._progress: CheckProgress | None = None
        self.tasks = TaskOwner(self._tell_failure)
        document.closed.connect(self._let_go)  # before anybody else hears of it
        self.deriver = Deriver(document)
        self.selection = Selection(self)
        self.navigator = Navigator(self)
        self.upkeep = Upkeep(document, self.deriver, self.tasks)
        self.unsaved = UnsavedEdits(document, self.deriver, self.tasks)
        self.watch = PolicyWatch(document)
        self.source_watch = SourceWatch(document)
        self.waiting = Waiting(document, self)
        self.draft = PolicyDraft(document, self.deriver, self.tasks)
        self.coding_agents = CodingAgents(document, self.tasks, self._is_seen, self)
        context = self._context = PageContext(
            document,
            self.selection,
            self.navigator,
            self.deriver,
            self.tasks,
            preferences,
            self.waiting,
            self.draft,
            self.coding_agents,
            self.save_reviewed,
        )
        self.actions_by_key = make_actions(self, self)
        self.menu = QMenu(self)
        self.rail = self._make_rail()
        self.top = TopBar(self.actions_by_key, self.menu)
        self.message = MessageBar()
        self.outside = OutsideBar(document)
        self.unsaved_bar = UnsavedBar(self.unsaved, self.navigator)
        self.alarm = MessageBar()
        self.asking = AskingBar()
        self.stop_bar = StopBar()
        self.observe = ObserveBar(document)
        self.notifier = Notifier(self, lambda: preferences.notifies)
        self.shelf = PageShelf(PAGES, FIRST, context)
        self.steps = FirstSteps(context, self.shelf)
        self.whereabouts = Whereabouts(document, self.selection, self.shelf, preferences, self.show_page)
        self.status = StatusBar()
        self.impact = ImpactStrip(document, self.deriver, self.tasks)
        self.setAcceptDrops(True)
        self._lay_out()
        self.toast = Toast(self, self.bars)
        self._connect()
        self._connect_impact()
        document.stops.changed.connect(self._tell_stops)
        for moved in (self.coding_agents.changed, document.closed):
            moved.connect(self._tell_gates)
        self.stop_bar.go_requested.connect(self._go_on)
        self._fill_menu()
        self._follow_document()

    # layout

    def _make_rail(self) -> IconRail:
        rail = IconRail()
        rail.setObjectName("rail")
        for number, row in enumerate(PAGES, 1):
            button = rail.add_page(row.key, row.icon, tr(row.label), at_foot=row.at_foot)
            button.setObjectName(f"rail.{row.key}")
            button.setToolTip(f"{tr(row.label)} (Ctrl+{number})")
            button.clicked.connect(self._focus_page)
            for one in (row, *row.tabs):
                go = self.actions_by_key[f"page.{one.key}"] = QAction(tr(one.label), self)
                go.setObjectName(f"action.page.{one.key}")
                go.setStatusTip(tr(one.words))
                tie_icon(go, row.icon)
                go.triggered.connect(lambda _=False, key=one.key: self.show_page(key))
                self.addAction(go)
            self.actions_by_key[f"page.{row.key}"].setShortcut(QKeySequence(f"Ctrl+{number}"))
        rail.set_current(next(row.key for row in PAGES if FIRST in {row.key, *(one.key for one in row.tabs)}))
        return rail

    def _lay_out(self) -> None:
        self.setObjectName("window")
        self.message.setObjectName("window.message")
        self.alarm.setObjectName("window.alarm")
        right = QVBoxLayout()
        right.setContentsMargins(0, 0, 0, 0)
        right.setSpacing(0)
        right.addWidget(self.top)
        right.addWidget(self.steps)
        right.addWidget(self.shelf, 1)
        right.addWidget(self.impact)
        middle = QHBoxLayout()
        middle.setContentsMargins(0, 0, 0, 0)
        middle.setSpacing(0)
        middle.addWidget(self.rail)
        middle.addLayout(right, 1)
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(middle, 1)
        column.addWidget(self.observe)  # for days, so it covers nothing
        column.addWidget(self.status)
        self.setCentralWidget(body)
        self.bars = FootBars(body, self.message, self.unsaved_bar, self.outside, self.asking, self.alarm, self.stop_bar)
        self.live_frame = LiveFrame(body, self.document.live)
        self.resize(QSize(*DEFAULT_SIZE).boundedTo(self.screen().availableSize()))
        if self.preferences.window_geometry:
            self.restoreGeometry(self.preferences.window_geometry)

    def _connect(self) -> None:
        document = self.document
        document.opened.connect(self._follow_document)
        document.policy_changed.connect(self._policy_changed)
        document.problems_changed.connect(self._problems_changed)
        document.dirty_changed.connect(self._tell_state)
        document.saved.connect(self._show_saved)
        document.said.connect(self.show_message)
        document.changed_outside.connect(self.outside.tell_changed)
        document.save_refused.connect(self.outside.tell_refused)
        document.gone_changed.connect(self._tell_gone)
        document.alarm_changed.connect(self._tell_alarm)
        document.live.changed.connect(self.status.set_live)
        self.draft.changed.connect(self._tell_draft)
        self.status.live_requested.connect(lambda: self.show_page("try"))
        self.alarm.action_requested.connect(lambda: self.show_page("problems"))
        self.waiting.changed.connect(self._tell_waiting)
        self.status.waiting_requested.connect(lambda: self.navigator.go_to_waiting(()))
        self.notifier.clicked.connect(self._answer_message)
        self.observe.compare_requested.connect(lambda: self.tasks.start(self._compare(), "observe", replace=True))
        self.asking.action_requested.connect(lambda: self.navigator.go_to_waiting(()))
        self.navigator.question_told.connect(self.status.set_question)
        self.status.question_requested.connect(self.navigator.go_to_question)
        document.undo_stack.indexChanged.connect(self._refresh_actions)
        self.upkeep.selfcheck_changed.connect(self._keep_found)
        self.upkeep.check_progressed.connect(self._keep_progress)
        self.upkeep.selfcheck_changed.connect(self.status.set_selfcheck)
        self.upkeep.check_progressed.connect(self.status.set_check_progress)
        self.status.selfcheck_requested.connect(self.show_selfcheck)
        chosen = self.selection
        for moved in (chosen.agent_changed, chosen.tool_changed, chosen.everyone_changed, chosen.cell_changed):
            moved.connect(self._tell_trail)
        self.navigator.page_requested.connect(self.show_page)
        self.navigator.line_requested.connect(self._go_to_line)
        self.rail.current_changed.connect(self._show_place)
        self.shelf.current_changed.connect(self._follow_page)
        self.navigator.reload_requested.connect(self.reload)
        self.shelf.problems_requested.connect(lambda: self.show_page("problems"))
        self.shelf.welcome.way_chosen.connect(self._begin)
        self.shelf.welcome.recent_chosen.connect(self.open_path)
        self.shelf.welcome.gate_chosen.connect(self._ask_gate)
        self.status.problems_requested.connect(lambda: self.show_page("problems"))
        self.outside.reload_requested.connect(self.reload)
        self.outside.save_over_requested.connect(self.save_over)
        self.outside.write_requested.connect(self.save)
        self.outside.save_as_requested.connect(self.ask_save_as)
        self.message.action_requested.connect(self.ask_save_as)
        self.outside.difference_requested.connect(self.show_difference)
        self.outside.merge_requested.connect(self.merge)
        self.menu.aboutToShow.connect(self._fill_menu)
        self.preferences.changed.connect(self._follow_text_size)
        self.toast.action_requested.connect(self.undo)

    def _connect_impact(self) -> None:
        self.impact.undo_requested.connect(self.undo)
        self.impact.redo_requested.connect(self.redo)
        self.impact.details_requested.connect(self.show_last_edit)
        self.impact.told.connect(self._make_room_for_impact)

    # what comes into being when it is first needed

    @cached_property
    def selfcheck(self) -> "SelfCheckDialog":
        """All that the self-check found."""
        from gatewright_gui.window.selfcheck_dialog import SelfCheckDialog

        dialog = SelfCheckDialog(self)
        dialog.check_requested.connect(self.upkeep.check_again)
        dialog.stop_requested.connect(self.upkeep.stop_check)
        dialog.tool_requested.connect(self.navigator.go_to_tool)
        dialog.show_found(self._found)
        dialog.show_progress(self._progress)
        self.upkeep.selfcheck_changed.connect(dialog.show_found)
        self.upkeep.check_progressed.connect(dialog.show_progress)
        return dialog

    def _keep_found(self, found: "CheckCount | None") -> None:
        self._found = found

    def _keep_progress(self, progress: "CheckProgress | None") -> None:
        self._progress = progress

    def show_selfcheck(self) -> None:
        """Show what the self-check found."""
        self.selfcheck.show_dialog()

    @cached_property
    def help(self) -> "HelpDialog":
        """The keys, and how tools of other programs come in."""
        from gatewright_gui.window.help_dialog import HelpDialog

        dialog = HelpDialog(self)
        dialog.file_requested.connect(lambda: self.show_page("text"))
        return dialog

    def show_keys(self) -> None:
        """List the keys, those of the page first; without a workspace those that hold everywhere."""
        self.help.show_keys(self.shelf.current_key if self.document.is_open else "")

    def copy_diagnostics(self) -> None:
        """Copy what somebody who reports a fault should send along."""
        QApplication.clipboard().setText(diagnostics(self.document))
        self.toast.show_note(tr("diagnostics copied: versions, counts and the last lines of the log"))

    def show_import(self) -> None:
        """Say how tools of other programs come in."""
        self.help.show_import()

    @cached_property
    def palette_box(self) -> "CommandPalette":
        """The box where one types where to go or what to do."""
        from gatewright_gui.window.palette import CommandPalette

        box = CommandPalette(self, self._palette_rows)
        box.chosen.connect(self._go_or_do)
        return box

    # pages

    def show_page(self, key: object) -> None:
        """Make a page the visible one."""
        if isinstance(key, str) and self.shelf.knows(key):
            self.shelf.show_page(key)
            self._focus_page()

    def _show_place(self, key: str) -> None:
        if key != self.shelf.current_place:
            self.shelf.show_page(key)

    def _follow_page(self, key: str) -> None:
        button = self.rail.button(self.shelf.current_place)
        if not button.isChecked():
            button.setFocus(Qt.FocusReason.OtherFocusReason)  # else Qt moves the keys when the page hides
            button.setChecked(True)
        self.steps.follow_page(key)
        if key == "problems":
            self.upkeep.look_again()
        self.asking.set_away(is_away=key == "activity")
        self._make_room_for_impact()
        self._tell_trail()

    def _focus_page(self, _checked: bool = False) -> None:
        self.shelf.focus_current()

    def search(self) -> None:
        """Go to where the page is searched."""
        if self.shelf.is_usable(self.shelf.current_key):
            self.shelf.page(self.shelf.current_key).focus_search()

    def open_palette(self) -> None:
        """Search everything, or run a command."""
        self.palette_box.open_palette()

    def _palette_rows(self) -> Sequence[PaletteEntry]:
        from gatewright_gui.window.palette import palette_rows

        shown = self.shelf.place(self.shelf.current_key) if self.shelf.is_usable(self.shelf.current_key) else None
        return palette_rows(self.document, self.actions_by_key.values(), shown)

    def _go_or_do(self, target: object) -> None:
        if isinstance(target, QAction):
            target.trigger()
        elif isinstance(target, Place):
            go_to(target, self.navigator, self.selection)

    # the file

    def open_path(self, path: Path) -> None:
        """Open a workspace, after asking about unsaved changes."""
        self.tasks.start(self.open(path), "open", replace=True)

    async def open(self, path: Path) -> bool:
        """Open a workspace, after asking about unsaved changes; whether it is open now."""
        if not await may_leave(self, self.document, self.save_reviewed, self.draft):
            return False
        self.whereabouts.keep()
        self.whereabouts.prepare(path)
        self.shelf.welcome.set_opening(str(path))
        try:
            return self._keep_opened(is_open=await verbs.open_path(self.document, path))
        finally:
            self.shelf.welcome.set_opening("")

    def _keep_opened(self, *, is_open: bool) -> bool:
        """Go to where one was in what was opened, and remember it as the last."""
        if is_open:
            self.whereabouts.come_back()
        if self.document.path is not None and (is_open or self.document.failure is not None):
            self.preferences.add_recent_workspace(self.document.path)
            self.preferences.last_workspace = self.document.path
        return is_open

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Leave the room of the line after an edit to the page where height is short."""
        super().resizeEvent(event)
        self._make_room_for_impact()

    def _make_room_for_impact(self) -> None:
        """Keep the room where something can be edited, and elsewhere once something was."""
        is_wanted = self.impact.says_something or not self.shelf.current_row.is_read
        self.impact.setVisible(is_wanted and self.height() >= _LOW)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802
        """A file may be dropped, except while something else has to be answered."""
        if event.mimeData().hasUrls() and QApplication.activeModalWidget() is None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802
        """A policy file, or the folder of one, is opened; anything else is refused in words."""
        event.acceptProposedAction()
        path = path_of_drop(event)
        if path is not None and (path.is_dir() or path.suffix == ".toml"):
            self.open_path(path)
            return
        what = (
            tr("{name} is no policy file", name=path.name) if path is not None else tr("not one file of this computer")
        )
        self.show_message(
            Message(
                "warning",
                tr("{what}: drop one .toml file, or the folder of a {file}", what=what, file=POLICY_NAME),
            )
        )

    def _begin(self, way: str) -> None:
        """The ways of the welcome are actions, but for the call that the demo stops."""
        self.steps.begin()
        if way in {"stop", "let"}:
            self.tasks.start(self._show_stop() if way == "stop" else self._let_it(), "open", replace=True)
        else:
            self.actions_by_key[way].trigger()

    async def _show_stop(self) -> None:
        """Let the gate decide a call of the demo: its archivist may not delete."""
        await self.show_demo()
        agent_id, tool, operation, path = DEMO_CALL
        if self.document.is_open:
            self.navigator.decide_call(agent_id, tool, operation, {"op": operation, "path": path})

    async def _let_it(self) -> None:
        """Let the agent of the demo do what its gate stops, and show the row; the foot says what changed."""
        await self.show_demo()
        agent_id, tool, operation, _ = DEMO_CALL
        if self.document.is_open and agent_id in self.document.policy.agents:
            self.navigator.go_to_tool(agent_id, tool, operation)
            tick_operations(self.document, agent_id, tool, [operation], on=True)

    def _ask_gate(self, key: tuple[str, str]) -> None:
        self.steps.begin()
        self.tasks.start(self._put_gate(*key), "open", replace=True)

    async def _put_gate(self, kind: str, name: str) -> None:
        """Make the workspace that decides, then show the program that is to get a gate."""
        if await self._ask_new(with_files=kind == "host"):
            self.navigator.go_to_server(kind, name)

    def ask_new(self) -> None:
        """Ask what a new workspace begins with, make it and open it."""
        self.tasks.start(self._ask_new(with_files=True), "open", replace=True)

    async def _ask_new(self, *, with_files: bool) -> bool:
        from gatewright_gui.qt.dialog import run_dialog
        from gatewright_gui.window.new_dialog import NewDialog

        dialog = NewDialog(self, self.tasks, with_files=with_files)
        if not await run_dialog(dialog):
            return False
        reader = dialog.agent_id if dialog.example is None and dialog.files_level is not None else None
        path = await verbs.make_workspace(
            self.document,
            dialog.folder,
            dialog.agent_id,
            dialog.files_level,
            hides_secrets=dialog.hide_secrets.isChecked(),
            example=dialog.example,
        )
        if path is None or not await self.open(path):
            return False
        if reader is not None:
            self.navigator.go_to_tool(reader, "file")  # what its first agent is for
        return True

    def ask_import(self) -> None:
        """Take in the servers of a client; where nothing is open, after asking for a new workspace."""
        self.tasks.start(self._ask_import(), "open", replace=True)

    async def _ask_import(self) -> None:
        if self.document.is_open or await self._ask_new(with_files=False):
            self.navigator.ask_for_servers()

    def ask_client(self) -> None:
        """Put the gateway into the configuration of a client."""
        self.navigator.ask_for_client()

    def ask_open(self) -> None:
        """Let a policy file be chosen and open it."""
        self.tasks.start(self._ask_open(), "open", replace=True)

    async def _ask_open(self) -> None:
        path = await self._choose_policy(tr("Open a policy file"))
        if path is not None:
            await self.open(path)

    async def _choose_policy(self, title: str) -> Path | None:
        from gatewright_gui.qt.dialog import choose_open_file

        start = self.document.path.parent if self.document.path else Path.home()
        return await choose_open_file(self, title, start, tr(POLICY_FILTER))

    def new_window(self) -> None:
        """Let another policy file be chosen and open it in a window, and a process, of its own."""
        self.tasks.start(self._new_window(), "open", replace=True)

    async def _new_window(self) -> None:
        from gatewright_gui.session.clients import gateway_command

        path = await self._choose_policy(tr("Open in a new window"))
        if path is None:
            return
        program, *words = gateway_command()
        if not QProcess.startDetached(program, [*words, "gui", str(path)])[0]:
            self.show_message(Message("error", tr("no new window: {program} cannot be started", program=program)))

    def open_demo(self) -> None:
        """Open the user's copy of the demo."""
        self.tasks.start(self.show_demo(), "open", replace=True)

    async def show_demo(self) -> None:
        """Open the user's copy of the demo; it is written when it is not there yet."""
        path = await verbs.write_demo(self.document, self._demo)
        if path is not None:
            await self.open(path)

    def save(self) -> None:
        """Save the policy, after showing what changes of what agents may do."""
        if "save" not in self.tasks.names:
            self.tasks.start(self.save_reviewed(), "save")

    async def save_reviewed(self) -> bool:
        """The same; whether it is saved now."""
        from gatewright_gui.window.save_review import may_save

        if not await may_save_without(self, self.draft):
            return False
        review = may_save(self, self.document, self.deriver, self.tasks, self.preferences)
        return await review and await verbs.save(self.document)

    def show_last_edit(self) -> None:
        """List all that the last edit changes for the agents."""
        if self.document.last_step is not None:
            self.tasks.start(self._show_last_edit(self.document.last_step), "impact.list", replace=True)

    async def _show_last_edit(self, step: Step) -> None:
        from gatewright_gui.window.save_review import SaveReview

        await SaveReview(self, self.document, self.deriver, self.tasks, self.preferences, step).ask()

    def save_over(self) -> None:
        """Save the policy over what somebody else wrote into the file."""
        self.tasks.start(verbs.save(self.document, overwrite=True), "save")

    def ask_save_as(self) -> None:
        """Let another place be chosen, save there and go on there."""
        if "save" not in self.tasks.names:
            self.tasks.start(self._ask_save_as(), "save")

    async def _ask_save_as(self) -> None:
        from gatewright_gui.qt.dialog import choose_save_file

        here = self.document.workspace.policy_path
        start = here if here.parent.is_dir() else Path.home() / here.name
        path = await choose_save_file(self, tr("Save as a new policy file"), start, tr(POLICY_FILTER), replaces=False)
        if path is None:
            return
        path = path if path.suffix else path.with_suffix(".toml")
        self.whereabouts.keep(path)
        self._keep_opened(is_open=await verbs.save_as(self.document, path))

    def ask_publish(self, kind: ExportKind = "policy") -> None:
        """Show the ways to publish the policy, with one chosen."""
        self.tasks.start(self._ask_publish(kind), "publish", replace=True)

    async def _ask_publish(self, kind: ExportKind) -> None:
        from gatewright_gui.pages.policy_file.publish_dialog import PublishDialog
        from gatewright_gui.qt.dialog import run_dialog

        await run_dialog(PublishDialog(self, self._context, kind))

    def reload(self) -> None:
        """Read the policy file again, after asking about unsaved changes."""
        self.tasks.start(self._reload(), "reload", replace=True)

    async def _reload(self) -> None:
        if self.document.look_for_file():
            self.outside.tell_gone()
            return
        self.outside.dismiss()
        if await may_leave(self, self.document, self.save_reviewed) and await verbs.reload(self.document):
            self.document.say("info", tr("read again from disk"))

    def merge(self) -> None:
        """Read what somebody else wrote into the file, and make the unsaved changes again on top of it."""
        self.tasks.start(self._merge(), "reload", replace=True)

    async def _merge(self) -> None:
        if await verbs.merge(self.document, self.deriver):
            self.outside.dismiss()

    def undo(self) -> None:
        """Take the last edit back, and say which."""
        self._step(tr("undone"), "undo", self.document.undo_stack.undoText(), self.document.undo)

    def redo(self) -> None:
        """Do it again, and say what."""
        self._step(tr("redone"), "redo", self.document.undo_stack.redoText(), self.document.redo)

    def _step(self, word: str, icon: str, what: str, step: Callable[[], None]) -> None:
        before = self.document.undo_stack.index()
        step()
        if self.document.undo_stack.index() != before and self.impact.isHidden():
            self.toast.show_note(f"{word}: {what}", icon=icon)

    # what happened

    def _let_go(self) -> None:
        """The workspace is gone: nothing that was begun in it is finished in the next one."""
        self.tasks.let_go()
        while (popup := QApplication.activePopupWidget()) is not None:
            popup.close()
        for dialog in self.findChildren(QDialog):
            if dialog.isVisible():
                dialog.reject()

    def _follow_document(self) -> None:
        document = self.document
        self.message.dismiss()
        self.outside.dismiss()
        self.toast.hide()
        self.status.set_saved_at(document.saved_at)
        if document.is_open:
            self.status.set_checking()
        else:
            self.selection.choose_tool(None)
            self.shelf.welcome.show_recent(self.preferences.recent_workspaces)
        self.top.set_workspace(document.name, str(document.path or ""))
        self.setWindowTitle(f"{title_text(document.name)}[*] - Gatewright" if document.name else "Gatewright[*]")
        for row in PAGES:
            self.rail.button(row.key).setEnabled(self.shelf.is_usable(row.key))
        is_begun = document.is_open or document.failure is not None
        for part in (self.rail, self.status):  # nothing of it works on the welcome
            part.setVisible(is_begun)
        if document.failure is not None:
            self.show_page("problems")
        self.shelf.show_page(self.shelf.current_key)
        self.shelf.focus_current()
        self._problems_changed()
        self._tell_state()

    def _policy_changed(self, _changes: object) -> None:
        self.message.dismiss()
        self.toast.hide()
        self.status.set_checking()
        self.status.set_saved_at(self.document.saved_at)
        self._tell_trail()

    async def _compare(self) -> None:
        """Show what enforcing would have done; a row leads to its calls in Activity."""
        from gatewright_gui.pages.activity.dialogs import CompareDialog  # not for the first painting
        from gatewright_gui.session.audit import compare

        found = await asyncio.to_thread(compare, self.document.workspace.state_folder)
        dialog = CompareDialog(self, found)
        dialog.calls_requested.connect(self._show_noted)
        dialog.open()

    def _show_noted(self, key: str, words: str) -> None:
        from gatewright_gui.pages.activity import ActivityPage

        self.show_page("activity")
        page = self.shelf.page("activity")
        if isinstance(page, ActivityPage):
            page.filters.set_noted(key, words)

    def _problems_changed(self, _problems: object = None) -> None:
        errors = sum(problem.is_error for problem in self.document.problems)
        warnings = len(self.document.problems) - errors
        is_known = self.document.is_open or self.document.failure is not None
        self.status.set_problems(errors, warnings, is_known=is_known)
        words = [counted(errors, "error", "errors")] if errors else []
        words += [counted(warnings, "warning", "warnings")] if warnings else []
        tone: BadgeTone = "deny" if errors else "ask"
        beside: BadgeTone | None = "ask" if errors and warnings else None
        self._problem_badge = (errors or warnings, tone, ", ".join(words), beside)
        self._tell_draft()

    def _tell_state(self, _dirty: object = None) -> None:
        if not self.document.is_open:
            self.status.set_closed()
        elif self.document.is_gone:
            self.status.set_gone()
        elif self.document.is_dirty:
            self.status.set_unsaved()
        else:
            self.status.set_clean()
        self.setWindowModified(self.document.is_dirty)
        self._refresh_actions()

    def _tell_trail(self, _what: object = None) -> None:
        on_tools = self.shelf.current_key == "tools"
        self.top.set_trail(*(self.selection.trail if on_tools else (tr(self.shelf.current_row.label),)))

    def _show_saved(self, _path: object) -> None:
        self.status.set_saved_at(self.document.saved_at)
        self.status.set_clean()
        self.outside.dismiss()
        self.message.dismiss()

    def _tell_draft(self) -> None:
        """At the place in the rail: the problems, or else that something typed there is not applied."""
        count, tone, words, beside = self._problem_badge
        pending = (1, "ask", tr("typed and not applied"), None)
        self.rail.set_badge(
            "policy_file", *(pending if self.draft.is_pending and not count else (count, tone, words, beside))
        )
        self._refresh_actions()

    def _tell_gone(self, _is_gone: object) -> None:
        self.outside.tell_gone()
        self._tell_state()

    def _refresh_actions(self, _index: object = None) -> None:
        refresh_actions(self.actions_by_key, self.document)
        if self.draft.is_pending and self.document.is_open:
            self.actions_by_key["save"].setEnabled(True)  # it asks whether to apply first

    def _go_to_line(self, _line: object) -> None:
        self.show_page("text")

    def show_difference(self) -> None:
        """Show how the policy file differs from what is open here."""
        self.navigator.go_to_difference()

    def _tell_alarm(self, alarm: FileAlarm | None) -> None:
        """Stays until the file is good again; it cannot be closed."""
        if alarm is None:
            self.alarm.dismiss()
            return
        since = time.strftime("%H:%M", time.localtime(alarm.raised_wall_s))
        self.alarm.show_message(
            "error", tr("{words} (read again at {time}).", words=alarm.words, time=since), action=tr("Show problems")
        )
        self.alarm.close_button.hide()

    def _tell_waiting(self, questions: "tuple[PendingApproval, ...]") -> None:
        """At the foot, at the page's place in the rail, and over every other page."""
        self.status.set_waiting(len(questions))
        self.rail.set_badge("activity", len(questions), "ask")
        self.asking.set_questions(questions)
        self.notifier.tell(questions)

    def _is_seen(self) -> bool:
        return self.isVisible() and not self.isMinimized()

    def _tell_gates(self) -> None:
        """At the place in the rail, on every page: how many gates before coding agents do not hold."""
        names = self.coding_agents.open_ones
        words = tr("the gate before {agents} does not hold", agents=", ".join(names)) if names else ""
        self.rail.set_badge("servers", len(names), "deny", words)

    def _answer_message(self) -> None:
        """The message on the desktop was clicked: the window comes to the front with what waits."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.raise_()
        self.activateWindow()
        self.navigator.go_to_waiting(())

    def show_message(self, message: Message) -> None:
        """Say something: in passing, or in a bar that stays."""
        text = message.text.replace("`", "")
        if message.tone == "info":
            self.toast.show_note(text, action=tr("Undo") if message.can_undo else None)
        else:
            self.message.show_message(message.tone, text, action=tr("Save as...") if message.can_save_as else None)

    def _tell_failure(self, name: str, error: BaseException) -> None:
        if isinstance(error, WorkerLost):
            self.show_message(Message("error", str(error)))
        else:
            self.report_failure(f"{name}: {type(error).__name__}: {error}", error)

    def report_failure(self, what: str, error: BaseException) -> None:
        """A bug of ours: say it, keep where it came from in the log, go on."""
        _log.error("something went wrong in the window", exc_info=error)
        self.show_message(Message("error", tr("something went wrong in {what}", what=what)))

    # menu and theme

    def _fill_menu(self) -> None:
        fill_menu(
            self.menu,
            self.actions_by_key,
            recent=[path for path in self.preferences.recent_workspaces if path != self.document.path],
            open_path=self.open_path,
        )

    def choose_theme(self, choice: ThemeChoice) -> None:
        """Put a theme on and remember it."""
        app = QApplication.instance()
        if isinstance(app, QApplication):
            self.theme.apply(app, choice)
            self.preferences.theme = choice

    def show_preferences(self) -> None:
        """Show how one likes the app; what is chosen there counts at once."""
        self._preferences_dialog.show_dialog()

    @cached_property
    def _preferences_dialog(self) -> "PreferencesDialog":
        from gatewright_gui.window.preferences_dialog import PreferencesDialog

        return PreferencesDialog(self.preferences, self.choose_theme, self)

    def resize_text(self, step: int) -> None:
        """Make texts a step larger or smaller; 0: the normal size."""
        sizes = list(TEXT_FACTORS)
        at = sizes.index(self.preferences.text_size) + step if step else 0
        self.preferences.text_size = sizes[min(max(at, 0), len(sizes) - 1)]

    def _follow_text_size(self) -> None:
        if self._text_size != self.preferences.text_size:
            self._text_size = self.preferences.text_size
            self.theme.set_text_size(TEXT_FACTORS[self._text_size])

    def stop_agents(self) -> None:
        """Stop all agents at once, or let them go on."""
        if any(not one.agent_id for one in self.document.stops.standing):
            self._go_on("")
        else:
            self.tasks.start(self.document.stops.stop(), "stop", stays=True)

    def _go_on(self, agent_id: str) -> None:
        self.tasks.start(self.document.stops.go(agent_id), "go", stays=True)

    def _tell_stops(self, stops: "tuple[Stop, ...]") -> None:
        self.stop_bar.set_stops(stops)
        is_whole = any(not one.agent_id for one in stops)
        action, text = self.actions_by_key["stop"], tr("Let all agents go on") if is_whole else tr("Stop all agents")
        action.setText(text)
        action.setIconText(f" {text}")
        action.setToolTip(tip_of(text, key_names("Ctrl+Shift+.")))
        tie_icon(action, "play" if is_whole else "circle-stop")
        self.top.refit()

    def switch_theme(self) -> None:
        """From light to dark and back."""
        self.choose_theme("light" if self.theme.current == "dark" else "dark")

    # the end

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802
        """Ask about unsaved changes first; the window closes when that is answered."""
        if self._may_close or not (self.document.is_dirty or self.draft.is_pending):
            self.preferences.window_geometry = bytes(self.saveGeometry().data())
            self.whereabouts.keep()
            event.accept()
            self.closed.emit()
            return
        event.ignore()
        self.tasks.start(self._ask_to_close(), "close", replace=True)

    async def _ask_to_close(self) -> None:
        if await may_leave(self, self.document, self.save_reviewed, self.draft):
            self.unsaved.give_up()
            self.close_now()

    def close_now(self) -> None:
        """Close without asking."""
        self._may_close = True
        self.close()

    async def shut(self) -> None:
        """End every task and thread and close the document. The window is of no use afterwards."""
        self.waiting.close()
        self.source_watch.close()
        self.deriver.release()
        await self.unsaved.close()
        self.draft.end()
        self.coding_agents.end()
        await self.tasks.close()
        self.deriver.close()
        self.shelf.end()
        self.document.close()
