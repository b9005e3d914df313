"""The left part of the Console: who calls which tool with which arguments, as a form or as JSON.

Over 450 lines: every way to fill a call in, and to change what is called, ends in a short method here.
"""

import contextlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import cast

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QGridLayout,
    QLineEdit,
    QWidget,
)
from shiboken6 import isValid

from gatewright.workspace.api import Agent, GatewrightError, JsonRefused, JsonValue, Lineage, parse_object
from gatewright_gui.pages.page import PageContext
from gatewright_gui.pages.trial.call_example import carry_form
from gatewright_gui.pages.trial.call_form import CallForm, FieldFault
from gatewright_gui.pages.trial.file_choice import FilePick
from gatewright_gui.pages.trial.form import FormPane
from gatewright_gui.pages.trial.json_edit import RawJson
from gatewright_gui.pages.trial.json_value import to_text
from gatewright_gui.pages.trial.pasted_call import PastedCall, call_from_text
from gatewright_gui.pages.trial.schema_shape import as_map
from gatewright_gui.pages.trial.tool_choice import ToolChoice, ToolNote
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stack_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget import ElidedLabel, EmptyState, MessageBar, SectionHeader, Segmented
from gatewright_gui.qt.widget.button import text_button
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.message_bar import FootBars
from gatewright_gui.qt.widget.text_field import MAX_LAID_OUT
from gatewright_gui.session.calls import CallRequest, ShownTool, restore_call, visible
from gatewright_gui.session.readings import COMPOSITION


class RequestPanel(QWidget):
    """Form and JSON show the same arguments: what one holds is put into the other when that is shown.

    `context`: of the page; with a task owner alone no files are offered and pasted calls are taken as they are spelled.
    """

    agent_chosen = Signal(object)
    """Agent id: str."""
    tool_chosen = Signal(object)
    """Tool name: str."""
    tool_shown = Signal()
    """Another tool is named, chosen or typed."""

    def __init__(self, context: PageContext | TaskOwner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context if isinstance(context, PageContext) else None
        self._tasks = context.tasks if isinstance(context, PageContext) else context
        self._is_refusing = False
        self._put = ""
        self._is_touched = False
        self._kept: dict[str, str] = {}
        self._filled: str | None = None
        self.agent = named(QComboBox(), "console.agent", spoken=tr("Agent"))
        self.agent.activated.connect(self._agent_activated)
        self.agent.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.tool = ToolChoice()
        self.tool.activated.connect(self._tool_activated)
        self.tool.named.connect(self._tell_tool)
        self.mode = named(Segmented(tr("Arguments as")), "console.mode")
        self.mode.add_segment("form", tr("Form"), icon="list")
        self.mode.add_segment("json", "JSON", icon="braces", tooltip=tr("Any tool name, any arguments"))
        self.mode.current_changed.connect(self._mode_changed)
        tip = tr("Fill in what the operation needs (Ctrl+Shift+E)")
        self.example_button = text_button(tr("Example"), "console.example", self.fill_example, tip, kind="link")
        tip = tr("Take every argument out but the operation")
        self.clear_button = text_button(tr("Clear"), "console.clear", self.clear, tip, kind="link")
        tip = tr("Put in a provider's whole call (Ctrl+Shift+V)")
        self.paste_button = text_button(tr("Paste call"), "console.paste", self.paste_call, tip, kind="link")
        self.folder = named(QLineEdit(), "console.folder", spoken=tr("The coding agent works in"))
        self.folder.setToolTip(tr("Relative paths of its tools start in this folder, as in the agent itself"))
        self.folder.textEdited.connect(self._touch)
        self._folder_word = named(Label(tr("The coding agent works in")), kind="small")
        self._folder_word.setBuddy(self.folder)
        self.origin = ElidedLabel(role="muted")
        tip = tr("Leave out who started it: the agent calls by its own rights alone")
        self.alone_button = text_button(
            tr("As the agent itself"), "console.alone", self._drop_lineage, tip, kind="link"
        )
        self._put_request: CallRequest | None = None
        self._note = ToolNote()
        self.message = MessageBar()
        self.form = FormPane(self._tasks)
        called = partial(RequestPanel._target, self)
        self._files = FilePick(self._context, self.form, called) if self._context is not None else None
        self.raw = RawJson(self._tasks)
        self.raw.editor.take_paste = self._take_paste
        self.raw.changed.connect(self._json_changed)
        self.form.touched.connect(self._touch)
        self.none = EmptyState("wrench", tr("No tool to call"), tr("Choose an agent and a tool"))
        self._stack = stack_of(self.form, self.raw, self.none)
        self._lay_out()
        self._show_tool()

    # what is chosen

    @property
    def agent_id(self) -> str | None:
        """The chosen agent."""
        return self.agent.currentData()

    @property
    def tool_name(self) -> str:
        """The chosen tool, or the one that was typed."""
        return self.tool.name

    @property
    def lineage(self) -> Lineage | None:
        """The descent of the chosen agent, as long as the call of a sub-agent is filled in."""
        put = self._put_request
        return put.lineage if put is not None and put.agent_id == self.agent_id else None

    @property
    def note(self) -> str:
        """The words on the named tool; empty for one that the agent sees."""
        return self._note.text

    @property
    def has_steps(self) -> bool:
        """True where the tool is a composition."""
        tool = self._current_tool()
        return tool is not None and tool.origin == COMPOSITION

    def why_not_run(self, *, live: bool) -> str:
        """Why calls of the tool are decided here, and not run; empty where they are run."""
        tool = self._current_tool()
        if tool is None or tool.runs == "copy" or (live and tool.runs == "live"):
            return ""
        return (
            tr("It acts outside of the copy, and is called live only")
            if tool.runs == "live"
            else tr("The program that has this tool runs it")
        )

    def set_agents(self, agents: tuple[Agent, ...], chosen: str | None) -> None:
        """Offer these agents; that the chosen one is gone is said."""
        if agents and chosen is not None and chosen not in {agent.agent_id for agent in agents}:
            words = tr("agent `{agent}` is gone; this is `{other}`", agent=chosen, other=agents[0].agent_id)
            self.message.show_message("warning", words)
        self.agent.clear()
        for agent in agents:
            self.agent.addItem(agent.agent_id, agent.agent_id)
            self.agent.setItemData(self.agent.count() - 1, tip_text(agent.description), Qt.ItemDataRole.ToolTipRole)
        self.choose_agent(chosen)

    def choose_agent(self, agent_id: str | None) -> None:
        """Choose an agent; the first one when it is not there."""
        self.agent.setCurrentIndex(max(self.agent.findData(agent_id), 0 if self.agent.count() else -1))
        self._show_origin()

    @property
    def first_field(self) -> QWidget:
        """The field where one begins."""
        if self.mode.current == "json":
            return self.raw.editor
        tool = self._current_tool()
        field = self.form.editor(tool.operation_field) if tool is not None and tool.operation_field else None
        return field or self.tool

    def set_tools(self, tools: tuple[ShownTool, ...], wanted: str | None = None, operation: str | None = None) -> None:
        """Offer these. The tool that is named stays, whatever became of it; a request that nobody touched follows
        `wanted`.
        """
        if self._files is not None:
            self._files.forget()
        is_followed = not self._is_touched and wanted in {tool.name for tool in tools}
        with QSignalBlocker(self.tool):
            self.tool.set_tools(tools, self._context.document.policy.catalogs if tools and self._context else ())
            if is_followed and wanted is not None:
                self.tool.set_name(wanted)
        self._show_tool(operation if is_followed else None)

    def follow(self, name: str | None, operation: str | None = None) -> None:
        """Choose what is chosen elsewhere, as long as nobody touched the request."""
        if not self._is_touched:
            self.choose_tool(name, operation)

    def choose_tool(self, name: str | None, operation: str | None = None) -> None:
        """Choose a tool, and the operation to begin with; a name that no tool has is left alone."""
        if name is None or self.tool.of_name(name) is None:
            return
        with QSignalBlocker(self.tool):
            self.tool.set_name(name)
        self._show_tool(operation)

    def forget(self) -> None:
        """Another workspace: nothing was touched or filled in."""
        self._is_touched = False
        self._filled = None
        self._kept.clear()
        self.folder.clear()
        self._drop_lineage()
        self.message.dismiss()
        with QSignalBlocker(self.tool):
            self.tool.set_tools(())
            self.tool.set_name("")
        self.form.set_tool(None)
        self._put_text("")

    def request(self) -> CallRequest | None:
        """The call to be made; None after a fault, which is shown."""
        self.message.dismiss()
        self._is_touched = True
        agent_id = self.agent_id
        if agent_id is None or not self.tool_name:
            self.message.show_message("warning", tr("choose an agent and a tool first"))
            return None
        folder = self._work_folder()
        if folder and not Path(folder).is_absolute():
            self.message.show_message("error", tr("name the whole path of the folder in which the coding agent works"))
            return None
        if self.mode.current == "json":
            return CallRequest(agent_id, self.tool_name, self.raw.text, folder, self.lineage)
        try:
            return CallRequest(agent_id, self.tool_name, self.form.values(), folder, self.lineage)
        except FieldFault as fault:
            self.message.show_message("error", str(fault))
            return None

    def put(self, request: CallRequest, *, in_form: bool = False) -> None:
        """Show the tool and the arguments of an earlier request: as JSON, or in the form where they fit there."""
        self._keep()
        self._put_request = request
        self._show_origin()
        if request.folder:
            self.folder.setText(request.folder)
            self.folder.setModified(True)
        if in_form:
            self.mode.set_current("form")
            if self.mode.current == "form" and self._put_in_form(request.tool, request.text):
                return
        self.mode.set_current("json")
        self._put_json(request.tool, request.text)

    # ways to fill in

    def fill_example(self) -> None:
        """Fill in what the chosen operation needs: fitting values and files that are there; what is filled in stays."""
        tool = self._current_tool()
        if tool is None:
            self.message.show_message("warning", tr("there is no example: no tool has this name"))
            return
        self._touch()
        if self._files is None or tool.files == "nothing":
            self._put_example(tool, {})
        else:
            self._tasks.start(self._find_example(self._files, tool), "console.example", replace=True)

    async def _find_example(self, files: FilePick, tool: ShownTool) -> None:
        if self.mode.current == "json":
            self._read_operation(tool)
        known = await files.examples()
        if isValid(self) and self._current_tool() == tool:
            self._put_example(tool, known)

    def _put_example(self, tool: ShownTool, known: Mapping[str, str]) -> None:
        if self.mode.current != "json":
            self.form.fill_example(known)
            return
        self._read_operation(tool)
        self.form.fill_example(known)
        self.raw.editor.put_formatted(self.form.text())

    def _read_operation(self, tool: ShownTool) -> None:
        """The operation that the JSON names is the one that counts."""
        self.form.set_tool(tool)
        try:
            self.form.set_values(parse_object(self.raw.text))
        except JsonRefused:
            self.form.set_values({})

    def clear(self) -> None:
        """Nothing is given but the operation."""
        self.message.dismiss()
        if self.mode.current == "json":
            self.raw.editor.put_formatted("{}")
        else:
            self.form.clear()

    def paste_call(self) -> None:
        """Put in the provider's call that the clipboard holds."""
        text = QApplication.clipboard().text()
        if not self._take_paste(text, insist=True):
            words = tr(
                "the clipboard holds no call: it should be JSON with a name and arguments, as a provider writes it"
            )
            self.message.show_message("warning", words)

    def _take_paste(self, text: str, *, insist: bool = False) -> bool:
        """True if a text is a whole call, which is then put in; else it may be arguments that only look like one."""
        tool = self._current_tool()
        names = as_map(tool.schema.get("properties")) if tool is not None and not insist else ()
        call = call_from_text(text, frozenset(names))
        if call is None:
            return False
        if self._context is None or self.agent_id is None:
            self._put_call(call, call.name, call.arguments)
        else:
            self._tasks.start(self._restore(self._context, call, self.agent_id), "console.paste", replace=True)
        return True

    async def _restore(self, context: PageContext, call: PastedCall, agent_id: str) -> None:
        """A provider's spelling is undone, as it is where a model's call comes in."""
        try:
            found = await context.deriver.derive(restore_call, agent_id, call.format, call.name, call.arguments)
        except GatewrightError:
            found = None
        self._put_call(call, *(found or (call.name, call.arguments)))

    def _put_call(self, call: PastedCall, name: str, arguments: object) -> None:
        text = arguments if isinstance(arguments, str) else to_text(cast("Mapping[str, JsonValue]", arguments))
        notes = [tr("put in from {call}", call=tr(call.words))]
        if name != call.name:
            notes.append(tr("`{name}` is `{other}` here", name=call.name, other=name))
        if call.more:
            more = counted(call.more, "more call", "more calls")
            notes.append(tr("{calls} beside it left out", calls=more))
        self._keep()
        if self.mode.current != "form" or not self._put_in_form(name, text):
            self.mode.set_current("json")
            self._put_json(name, _indent(text))
        self.message.show_message("info", "; ".join(notes))

    def _put_in_form(self, name: str, text: str) -> bool:
        try:
            values = parse_object(text)
        except JsonRefused:
            return False
        if self.tool.of_name(name) is None or len(text) > MAX_LAID_OUT:
            return False
        self.choose_tool(name)
        self.form.set_values(values)
        self._touch()
        return True

    def _put_json(self, name: str, text: str) -> None:
        """Name any tool, with these arguments."""
        with QSignalBlocker(self.tool):
            self.tool.set_name(name)
        self._filled = name
        self.raw.set_text(text)
        self._show_tool()

    # what was filled in for each tool is kept as long as the workspace is open

    def _keep(self) -> None:
        """Remember the arguments of the tool that is shown."""
        if self._filled is not None:
            self._kept[self._filled] = self.raw.text if self.mode.current == "json" else self.form.text()

    def _put_text(self, text: str) -> None:
        """Show another text, which nobody typed."""
        self._put = text
        self.raw.set_text(text)

    def _touch(self) -> None:
        self._is_touched = True

    def _json_changed(self) -> None:
        self._is_touched = self._is_touched or self.raw.text != self._put

    # form and JSON

    def _mode_changed(self, mode: object) -> None:
        if self._is_refusing:
            return
        if mode == "json":
            if self._current_tool() is not None and (not self.raw.editor.is_aside or self.form.values_as_far()):
                self._put_text(self.form.text())
            self.tool.set_free(free=True)
        elif not self._to_form():
            self._is_refusing = True
            self.mode.set_current("json")
            self._is_refusing = False
        self._tool_word.setText(tr("Tool, or any name") if self.mode.current == "json" else tr("Tool"))
        self._show_tool()

    def _to_form(self) -> bool:
        """Put the JSON into the form; False when it cannot be, which is said. That of no tool waits for its name."""
        text = self.raw.text
        try:
            if len(text) > MAX_LAID_OUT:
                raise JsonRefused("too-large", tr("the arguments are too large for a form"))
            values = parse_object(text)
        except JsonRefused as error:
            self.message.show_message("error", tr("the form needs one JSON object: {error}", error=error))
            return False
        self.message.dismiss()
        self.tool.set_free(free=False)
        tool = self._current_tool()
        if tool is not None:
            self._filled = tool.name
            self.form.set_tool(tool)
            self.form.set_values(values)
        return True

    def _tell_buttons(self) -> None:
        for button in (self.example_button, self.clear_button):
            button.setEnabled(self._current_tool() is not None)

    def _work_folder(self) -> str:
        """The folder where the coding agent works, of a tool that it runs itself."""
        tool = self._current_tool()
        start = "" if tool is None else tool.work_folder
        given = self.folder.text().strip()
        return str(Path(given).expanduser()) if start and given else start

    def _show_folder(self, tool: ShownTool | None) -> None:
        """Name the folder of a coding agent's own tool; one that somebody typed stays."""
        start = "" if tool is None else tool.work_folder
        for part in (self._folder_word, self.folder):
            part.setVisible(bool(start))
        if start and not (self.folder.isModified() and self.folder.text()):
            self.folder.setText(start)

    def _drop_lineage(self) -> None:
        """The agent calls by itself."""
        self._put_request = None
        self._show_origin()
        self.tool_shown.emit()

    def _show_origin(self) -> None:
        """Say of a sub-agent's call who started it, since what they are denied counts."""
        lineage, policy = self.lineage, self._context.document.policy if self._context is not None else None
        callers = lineage.sub_agent(policy).callers if lineage is not None and policy is not None else ()
        started = ", ".join(visible(one.agent_id) for one in callers)
        self.origin.set_text(tr("Sub-agent, started by {callers}", callers=started) if callers else "")
        for part in (self.origin, self.alone_button):
            part.setVisible(bool(callers))

    def _target(self) -> tuple[str | None, ShownTool | None]:
        return self.agent_id, self._current_tool()

    def _current_tool(self) -> ShownTool | None:
        return self.tool.tool

    def _show_tool(self, operation: str | None = None) -> None:
        """Show the named tool with what was last filled in for it, else with what fits it of what is there.

        With an operation its form begins there.
        """
        tool = self._current_tool()
        self.raw.set_tool(tool)
        if self.mode.current == "json":
            self._show_json(tool, operation)
        else:
            self._show_form(tool, operation)
        self._show_folder(tool)
        self._note.tell_of(self.tool)
        self._tell_buttons()
        self.tool_shown.emit()

    def _show_json(self, tool: ShownTool | None, operation: str | None) -> None:
        name = self.tool_name
        if tool is not None and (self._filled != name or operation is not None):
            self._keep()
            kept = self._kept.get(name) if operation is None else None
            if kept is None:  # what fits of the JSON that is shown goes on to the other tool
                before = CallForm(self.tool.of_name(self._filled or "") or tool)
                with contextlib.suppress(JsonRefused):
                    before.set_values({} if self.raw.editor.is_aside else parse_object(self.raw.text))
                kept = carry_form(tool, before, operation).text()
            self._put_text(kept)
        self._filled = name
        self._stack.setCurrentWidget(self.raw)

    def _show_form(self, tool: ShownTool | None, operation: str | None) -> None:
        is_other = self._filled != (tool.name if tool is not None else None)
        if is_other:
            self._keep()
        self._filled = tool.name if tool is not None else None
        self.form.set_tool(tool, operation)
        if tool is not None and operation is not None:
            self.form.choose_operation(operation)
        elif tool is not None and is_other and (kept := self._kept.get(tool.name)) is not None:
            with contextlib.suppress(JsonRefused):
                self.form.set_values(parse_object(kept))
        if tool is None:
            self._say_none()
        elif not self.form.has_fields:
            words = tr("The tool takes none, or they are only told as JSON Schema.")
            self.none.set_state("wrench", tr("No arguments"), words)
        has_form = tool is not None and self.form.has_fields
        self._stack.setCurrentWidget(self.form if has_form else self.none)

    def _say_none(self) -> None:
        title, words = tr("No tool to call"), tr("Choose a tool.")
        if self.tool_name and self.tool.is_known:
            title, words = tr("No such tool"), tr("JSON lets you send a call of any name, to see what is said.")
        elif self.tool.is_known:
            words = tr("This agent sees none. Choose any, to see why.")
        elif not self.agent_id:
            words = tr("Add an agent in Access, and tick what it may do.")
        document = self._context.document if self._context is not None else None
        if not self.tool.is_known and (self.agent_id or (document is not None and document.agents)):
            self.none.set_unknown()
        else:
            self.none.set_state("wrench", title, words)

    def _agent_activated(self, _row: int) -> None:
        self._show_origin()
        self.agent_chosen.emit(self.agent_id)

    def _tell_tool(self) -> None:
        """Another name is typed; the arguments stay as they are."""
        self.raw.set_tool(self._current_tool())
        self._show_folder(self._current_tool())
        self._note.tell_of(self.tool)
        self._tell_buttons()
        self.tool_shown.emit()

    def _tool_activated(self, _row: int) -> None:
        self._is_touched = True
        self._show_tool()
        self.tool_chosen.emit(self.tool_name)

    # keys and parts

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """F8 in the JSON goes to the fault."""
        is_f8 = isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress and event.key() == Qt.Key.Key_F8
        if is_f8 and watched is self.raw.editor:
            self.raw.go_to_fault()
            return True
        return super().eventFilter(watched, event)

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        header = SectionHeader(tr("Try a call"))
        buttons = (self.example_button, self.clear_button, self.paste_button)
        for control in (*buttons, self.mode):
            header.add_control(control)
        grid = QGridLayout()
        grid.setContentsMargins(tokens.space_2, 0, tokens.space_2, tokens.space_2)
        grid.setHorizontalSpacing(tokens.space_2)
        self._tool_word = Label(tr("Tool"))
        for column, (label, combo) in enumerate(((Label(tr("Agent")), self.agent), (self._tool_word, self.tool))):
            named(label, kind="small").setBuddy(combo)
            grid.addWidget(label, 0, column)
            grid.addWidget(combo, 1, column)
            grid.setColumnStretch(column, 1)
        grid.addWidget(self._folder_word, 2, 0, 1, 2)
        grid.addWidget(self.folder, 3, 0, 1, 2)
        grid.addLayout(row_of(stretch(self.origin), self.alone_button, space=2), 4, 0, 1, 2)
        column_of(header, grid, self._note, stretch(self._stack), into=self)
        FootBars(self, self.message)
        self.raw.editor.installEventFilter(self)
        before: QWidget = self.agent
        for part in (self.tool, self.folder, self.alone_button, *map(self.mode.button, self.mode.keys), *buttons):
            self.setTabOrder(before, part)
            before = part
        for keys, act in (
            ("Ctrl+Shift+E", self.fill_example),
            ("Ctrl+Shift+V", self.paste_call),
            ("Ctrl+Shift+I", partial(RawJson.format, self.raw)),
        ):
            shortcut = QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(act)


def _indent(text: str) -> str:
    try:
        return to_text(parse_object(text))
    except JsonRefused:
        return text
