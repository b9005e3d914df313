"""The left part of the Console: who calls which tool with which arguments, as a form or as JSON.

It does not send the call. A little over 400 lines: every way to fill a call in ends in a short method here.
"""

from collections.abc import Mapping
from functools import partial
from typing import cast

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QGridLayout,
    QLabel,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from gatewright.base.errors import JsonRefused
from gatewright.base.jsonvalue import JsonValue, parse_object
from gatewright.policy.document import Agent
from gatewright_gui.models.callform import FieldFault
from gatewright_gui.models.jsontext import to_text
from gatewright_gui.models.pastedcall import PastedCall
from gatewright_gui.pages.console.filepick import FilePick
from gatewright_gui.pages.console.form import FormPane
from gatewright_gui.pages.console.largetext import MAX_LAID_OUT
from gatewright_gui.pages.console.linkbutton import link_button
from gatewright_gui.pages.console.pasting import Pasting
from gatewright_gui.pages.console.rawjson import RawJson
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget import EmptyState, MessageBar, SectionHeader, Segmented
from gatewright_gui.session.calls import CallRequest, ShownTool


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
        self._tools: dict[str, ShownTool] = {}
        self._is_refusing = False
        self._wanted: tuple[str | None, str | None] = (None, None)
        self._kept: dict[str, str] = {}
        self._filled: str | None = None
        self._pasting = Pasting(self._context, self._put_call)
        self.agent = QComboBox()
        self.agent.setObjectName("console.agent")
        self.agent.setAccessibleName("Agent")
        self.agent.activated.connect(self._agent_activated)
        self.tool = QComboBox()
        self.tool.setObjectName("console.tool")
        self.tool.setAccessibleName("Tool")
        self.tool.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.tool.activated.connect(self._tool_activated)
        self.tool.currentTextChanged.connect(self._tell_tool)
        self.mode = Segmented("Arguments as")
        self.mode.setObjectName("console.mode")
        self.mode.add_segment("form", "Form", icon="list")
        self.mode.add_segment("json", "JSON", icon="braces", tooltip="Any tool name, any arguments")
        self.mode.current_changed.connect(self._mode_changed)
        self.example_button = link_button(
            "Example", "console.example", "Fill in what the operation needs (Ctrl+Shift+E)"
        )
        self.example_button.clicked.connect(self.fill_example)
        self.clear_button = link_button("Clear", "console.clear", "Take every argument out but the operation")
        self.clear_button.clicked.connect(self.clear)
        self.paste_button = link_button("Paste call", "console.paste", "Put in a provider's whole call (Ctrl+Shift+V)")
        self.paste_button.clicked.connect(self.paste_call)
        self.message = MessageBar()
        self.form = FormPane(self._tasks)
        called = partial(RequestPanel._called, self)
        self._files = FilePick(self._context, self.form, called) if self._context is not None else None
        self.raw = RawJson(self._tasks)
        self.raw.editor.take_paste = self._take_paste
        self.none = EmptyState("wrench", "No tool to call", "Choose an agent and a tool")
        self._stack = QStackedWidget()
        for part in (self.form, self.raw, self.none):
            self._stack.addWidget(part)
        self._lay_out()
        self._show_form()

    # what is chosen

    @property
    def agent_id(self) -> str | None:
        """The chosen agent."""
        return self.agent.currentData()

    @property
    def tool_name(self) -> str:
        """The chosen tool, or the one that was typed."""
        return self.tool.currentText().strip()

    @property
    def runs_elsewhere(self) -> bool:
        """Whether only the program that has the tool can run it; its calls are decided here."""
        tool = self._shown_tool()
        return tool is not None and not tool.is_executable

    def set_agents(self, agents: tuple[Agent, ...], chosen: str | None) -> None:
        """Offer these agents."""
        self.agent.clear()
        for agent in agents:
            self.agent.addItem(agent.agent_id, agent.agent_id)
            self.agent.setItemData(self.agent.count() - 1, agent.description, Qt.ItemDataRole.ToolTipRole)
        self.choose_agent(chosen)

    def choose_agent(self, agent_id: str | None) -> None:
        """Choose an agent; the first one when it is not there."""
        self.agent.setCurrentIndex(max(self.agent.findData(agent_id), 0 if self.agent.count() else -1))

    @property
    def first_field(self) -> QWidget:
        """Where one begins."""
        if self.mode.current == "json":
            return self.raw.editor
        tool = self._shown_tool()
        field = self.form.editor(tool.operation_field) if tool is not None and tool.operation_field else None
        return field or self.tool

    def set_tools(self, tools: tuple[ShownTool, ...], wanted: str | None = None, operation: str | None = None) -> None:
        """Offer the tools that the agent sees; the chosen one stays chosen where it can, else the wanted one is."""
        typed = self.tool_name if self._tools or self.tool.isEditable() else wanted or ""
        self._wanted = (wanted, operation)
        self._tools = {tool.name: tool for tool in tools}
        if self._files is not None:
            self._files.forget()
        self.tool.clear()
        for tool in tools:
            self.tool.addItem(tool.name, tool.name)
            self.tool.setItemData(self.tool.count() - 1, tool.description, Qt.ItemDataRole.ToolTipRole)
        row = self.tool.findText(typed)
        if row >= 0:
            self.tool.setCurrentIndex(row)
        elif self.tool.isEditable() and typed:
            self.tool.setEditText(typed)
        self._show_form()
        self.tool_shown.emit()

    def choose_tool(self, name: str | None, operation: str | None = None) -> None:
        """Choose a tool that the agent sees; others are left alone. Its form begins with the operation."""
        row = self.tool.findText(name or "")
        self._wanted = (name, operation)
        if row >= 0 and row != self.tool.currentIndex():
            self.tool.setCurrentIndex(row)
            self._show_form()

    def request(self) -> CallRequest | None:
        """What is to be called; None after a fault, which is shown."""
        self.message.dismiss()
        agent_id = self.agent_id
        if agent_id is None or not self.tool_name:
            self.message.show_message("warning", "choose an agent and a tool first")
            return None
        if self.mode.current == "json":
            return CallRequest(agent_id, self.tool_name, self.raw.text)
        try:
            return CallRequest(agent_id, self.tool_name, self.form.values())
        except FieldFault as fault:
            self.message.show_message("error", str(fault))
            return None

    def put(self, request: CallRequest) -> None:
        """Show the tool and the arguments of an earlier request, as JSON."""
        self.mode.set_current("json")
        self.tool.setEditText(request.tool)
        self.raw.set_text(request.text)

    # ways to fill in

    def fill_example(self) -> None:
        """What the chosen operation needs, with values that fit; what is filled in stays."""
        tool = self._shown_tool()
        if tool is None:
            self.message.show_message("warning", "there is no example: the agent does not see this tool")
            return
        if self.mode.current != "json":
            self.form.fill_example()
            return
        try:
            self.form.set_tool(tool)
            self.form.set_values(parse_object(self.raw.text))
        except JsonRefused:
            self.form.set_values({})
        self.form.fill_example()
        self.raw.editor.put_formatted(self.form.text())

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
            self.message.show_message(
                "warning",
                "the clipboard holds no call: it should be JSON with a name and arguments, as a provider writes it",
            )

    def _take_paste(self, text: str, *, insist: bool = False) -> bool:
        """Whether a text is a whole call, which is then put in; else it may be arguments that only look like one."""
        tool = self._shown_tool()
        names = _names(tool.schema) if tool is not None and not insist else ()
        return self._pasting.take(text, self.agent_id, frozenset(names))

    def _put_call(self, call: PastedCall, name: str, arguments: object) -> None:
        text = arguments if isinstance(arguments, str) else to_text(cast("Mapping[str, JsonValue]", arguments))
        notes = [f"put in from {call.words}"]
        if name != call.name:
            notes.append(f"`{call.name}` is `{name}` here")
        if call.more:
            notes.append(f"{call.more} more call{'s' if call.more > 1 else ''} beside it left out")
        self._keep()
        if self.mode.current != "form" or not self._put_in_form(name, text):
            self.mode.set_current("json")
            self.tool.setEditText(name)
            self.raw.set_text(_indented(text))
            if name not in self._tools:
                notes.append("the agent does not see this tool")
        self.message.show_message("info", "; ".join(notes))

    def _put_in_form(self, name: str, text: str) -> bool:
        row = self.tool.findText(name)
        try:
            values = parse_object(text)
        except JsonRefused:
            return False
        if row < 0 or len(text) > MAX_LAID_OUT:
            return False
        self.tool.setCurrentIndex(row)
        self._show_form()
        self.form.set_values(values)
        return True

    # what was filled in for each tool is kept as long as the window

    def _keep(self) -> None:
        """Remember the arguments of the tool that is shown."""
        tool = self._filled
        if tool is not None:
            self._kept[tool] = self.raw.text if self.mode.current == "json" else self.form.text()

    def _recall(self, name: str) -> None:
        """Put in what was last filled in for a tool."""
        text = self._kept.get(name)
        if text is None:
            return
        if self.mode.current == "json":
            self.raw.set_text(text)
            return
        try:
            self.form.set_values(parse_object(text))
        except JsonRefused:
            return

    # form and JSON

    def _mode_changed(self, mode: object) -> None:
        if self._is_refusing:
            return
        if mode == "json":
            self._to_json()
        elif not self._to_form():
            self._is_refusing = True
            self.mode.set_current("json")
            self._is_refusing = False
        self._show_form()
        self.tool_shown.emit()

    def _to_json(self) -> None:
        if not self.raw.editor.is_aside or self.form.values_as_far():
            self.raw.set_text(self.form.text() if self._shown_tool() else self.raw.text)
        name = self.tool_name
        self.tool.setEditable(True)
        line = self.tool.lineEdit()
        if line is not None:
            line.setPlaceholderText("tool name")
        self.tool.setEditText(name)

    def _to_form(self) -> bool:
        """Put the JSON into the form; False when it cannot be, which is said."""
        text = self.raw.text
        try:
            if len(text) > MAX_LAID_OUT:
                raise JsonRefused("too-large", "the arguments are too large for a form")
            values = parse_object(text)
        except JsonRefused as error:
            self.message.show_message("error", f"the form needs one JSON object: {error}")
            return False
        name = self.tool_name
        self.message.dismiss()
        self.tool.setEditable(False)
        row = self.tool.findText(name)
        self.tool.setCurrentIndex(max(row, 0))
        self.form.set_tool(self._shown_tool())
        self.form.set_values(values if row >= 0 else {})
        self._filled = self.tool_name
        return True

    def _called(self) -> tuple[str | None, ShownTool | None]:
        return self.agent_id, self._shown_tool()

    def _shown_tool(self) -> ShownTool | None:
        return self._tools.get(self.tool_name)

    def _show_form(self) -> None:
        tool = self._shown_tool()
        self.raw.set_tool(tool)
        if self.mode.current == "json":
            self._stack.setCurrentWidget(self.raw)
            self._filled = self.tool_name
            return
        is_other = tool is not None and self._filled != tool.name
        if is_other:
            self._keep()
        self.form.set_tool(tool, self._wanted[1] if tool is not None and tool.name == self._wanted[0] else None)
        if tool is not None:
            self._filled = tool.name
            if is_other and not (tool.name == self._wanted[0] and self._wanted[1] is not None):
                self._recall(tool.name)
        if tool is None:
            self.none.set_state("wrench", "No tool to call", "This agent sees no tool. JSON lets you try any name.")
        elif not self.form.has_fields:
            self.none.set_state("wrench", "No arguments", "The tool takes none, or they are only told as JSON Schema.")
        has_form = tool is not None and self.form.has_fields
        self._stack.setCurrentWidget(self.form if has_form else self.none)

    def _agent_activated(self, _row: int) -> None:
        self.agent_chosen.emit(self.agent_id)

    def _tell_tool(self, _text: str) -> None:
        self.raw.set_tool(self._shown_tool())
        self.tool_shown.emit()

    def _tool_activated(self, _row: int) -> None:
        if self.mode.current == "json" and self._filled != self.tool_name:
            self._keep()
            self._recall(self.tool_name)
        self._show_form()
        self.tool_shown.emit()  # a list that was editable before does not always tell that its text is another one
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
        header = SectionHeader("Call")
        buttons = (self.example_button, self.clear_button, self.paste_button)
        for control in (*buttons, self.mode):
            header.add_control(control)
        grid = QGridLayout()
        grid.setContentsMargins(tokens.space_2, 0, tokens.space_2, tokens.space_2)
        grid.setHorizontalSpacing(tokens.space_2)
        for column, (word, combo) in enumerate((("Agent", self.agent), ("Tool", self.tool))):
            label = QLabel(word)
            label.setProperty("kind", "small")
            label.setBuddy(combo)
            grid.addWidget(label, 0, column)
            grid.addWidget(combo, 1, column)
            grid.setColumnStretch(column, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(header)
        column.addLayout(grid)
        column.addWidget(self.message)
        column.addWidget(self._stack, 1)
        self.raw.editor.installEventFilter(self)
        before: QWidget = self.agent
        for part in (self.tool, *map(self.mode.button, self.mode.keys), *buttons):
            self.setTabOrder(before, part)
            before = part
        for keys, act in (
            ("Ctrl+Shift+E", self.fill_example),
            ("Ctrl+Shift+V", self.paste_call),
            ("Ctrl+Shift+I", partial(RawJson.format, self.raw)),
        ):
            shortcut = QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(act)


def _names(schema: Mapping[str, object]) -> tuple[str, ...]:
    properties = schema.get("properties")
    return tuple(cast("Mapping[str, object]", properties)) if isinstance(properties, Mapping) else ()


def _indented(text: str) -> str:
    try:
        return to_text(parse_object(text))
    except JsonRefused:
        return text
