"""The left part of the Console: who calls which tool with which arguments, as a form or as JSON.

It does not send the call.
"""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QGridLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget

from gatewright.base.errors import JsonRefused
from gatewright.policy.document import Agent
from gatewright_gui.models.callform import MAX_FIELDS, FieldFault, form_fields, parsed, to_text
from gatewright_gui.pages.console.form import CallForm
from gatewright_gui.pages.console.largetext import MAX_LAID_OUT
from gatewright_gui.pages.console.rawjson import RawJson
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget import EmptyState, MessageBar, SectionHeader, Segmented
from gatewright_gui.session.calls import CallRequest, ShownTool


class RequestPanel(QWidget):
    """Form and JSON show the same arguments: what one holds is put into the other when that is shown."""

    agent_chosen = Signal(object)
    """Agent id: str."""
    tool_chosen = Signal(object)
    """Tool name: str."""
    tool_shown = Signal()
    """Another tool is named, chosen or typed."""

    def __init__(self, tasks: TaskOwner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tools: dict[str, ShownTool] = {}
        self._is_refusing = False
        self._wanted: tuple[str | None, str | None] = (None, None)
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
        self.message = MessageBar()
        self.form = CallForm()
        self.raw = RawJson(tasks)
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

    def _to_json(self) -> None:
        if not self.raw.editor.is_aside or self._form_has_values():
            self.raw.set_text(to_text(self.form.values_as_far()) if self._shown_tool() else self.raw.text)
        name = self.tool_name
        self.tool.setEditable(True)
        line = self.tool.lineEdit()
        if line is not None:
            line.setPlaceholderText("tool name")
        self.tool.setEditText(name)

    def _form_has_values(self) -> bool:
        return bool(self.form.values_as_far())

    def _to_form(self) -> bool:
        """Put the JSON into the form; False when it cannot be, which is said."""
        text = self.raw.text
        try:
            if len(text) > MAX_LAID_OUT:
                raise JsonRefused("too-large", "the arguments are too large for a form")
            values = parsed(text)
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
        return True

    def _shown_tool(self) -> ShownTool | None:
        return self._tools.get(self.tool_name)

    def _show_form(self) -> None:
        tool = self._shown_tool()
        if self.mode.current == "json":
            self._stack.setCurrentWidget(self.raw)
            return
        self.form.set_tool(tool, self._wanted[1] if tool is not None and tool.name == self._wanted[0] else None)
        if tool is None:
            self.none.set_state("wrench", "No tool to call", "This agent sees no tool. JSON lets you try any name.")
        elif len(form_fields(tool.schema)) > MAX_FIELDS:
            self.none.set_state("wrench", "Too many arguments", f"More than {MAX_FIELDS}: fill them in as JSON.")
        elif not form_fields(tool.schema):
            self.none.set_state("wrench", "No arguments", "The tool takes none, or they are only told as JSON Schema.")
        has_form = tool is not None and 0 < len(form_fields(tool.schema)) <= MAX_FIELDS
        self._stack.setCurrentWidget(self.form if has_form else self.none)

    def _agent_activated(self, _row: int) -> None:
        self.agent_chosen.emit(self.agent_id)

    def _tell_tool(self, _text: str) -> None:
        self.tool_shown.emit()

    def _tool_activated(self, _row: int) -> None:
        self._show_form()
        self.tool_chosen.emit(self.tool_name)

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        header = SectionHeader("Call")
        header.add_control(self.mode)
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
