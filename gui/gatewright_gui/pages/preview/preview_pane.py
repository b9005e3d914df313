"""Schema, usage rules and difference of what the chosen agent's model sees. It does not work them out.

While an answer is under way the former text stays, so that nothing jumps.
"""

from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget

from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.icon_label import IconLabel
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.session.preview import Counts, Preview, preview, provider_formats

FORMAT_WORDS = {"mcp": "MCP", "openai": "OpenAI", "anthropic": "Anthropic"}
PARTS = (
    ("schema", "Schema", "The tools as the model is given them"),
    ("rules", "Usage rules", "The text on the tools for the system prompt"),
    ("difference", "Difference", "What this agent's limits take away and change"),
)
SCOPES = (("tool", "This tool", "Only the tool of the current row"), ("agent", "All tools", "Every tool of the agent"))

NO_AGENT = "Choose an agent at the left, or add one."


class PreviewPane(QWidget):
    """Follows the selection and the policy."""

    def __init__(self, context: PageContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("preview")
        self._context = context
        self._shown: Preview | None = None
        self.part = Segmented("What to show")
        self.scope = Segmented("Of which tools")
        self.format = QComboBox()
        self.code = CodeView("Preview")
        self.code.keep_wrapping("preview", context.sizes, default=True)
        self.empty = EmptyState("bot", "No agent", NO_AGENT)
        self.counts = ElidedLabel(role="muted")
        self.note_icon = IconLabel("info", "ask", size=14)
        self.notes = ElidedLabel(role="text")
        self._lay_out()
        self._connect()
        self._ask()

    def _lay_out(self) -> None:
        for key, text, tip in PARTS:
            self.part.add_segment(key, text, tooltip=tip)
        for key, text, tip in SCOPES:
            self.scope.add_segment(key, text, tooltip=tip)
        for name in provider_formats():
            self.format.addItem(FORMAT_WORDS.get(name, name), name)
        self.format.setAccessibleName("Provider format")
        self.format.setToolTip("The shape in which a provider takes tools")
        for name, control in (("part", self.part), ("scope", self.scope), ("format", self.format), ("code", self.code)):
            control.setObjectName(f"preview.{name}")
        self.counts.setObjectName("preview.counts")
        self.notes.setObjectName("preview.notes")
        self.empty.setObjectName("preview.empty")
        self._stack = QStackedWidget()
        self._stack.addWidget(self.code)
        self._stack.addWidget(self.empty)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(self._controls())
        column.addWidget(self._stack, 1)
        column.addLayout(self._foot())

    def _controls(self) -> QVBoxLayout:
        tokens = current_look().tokens
        first, second, both = QHBoxLayout(), QHBoxLayout(), QVBoxLayout()
        first.addWidget(self.part)
        first.addStretch(1)
        second.addWidget(self.scope)
        second.addStretch(1)
        second.addWidget(QLabel("Format"))
        second.addWidget(self.format)
        second.setSpacing(tokens.space_2)
        both.setContentsMargins(tokens.space_2, tokens.space_1, tokens.space_2, tokens.space_1)
        both.setSpacing(tokens.space_1)
        both.addLayout(first)
        both.addLayout(second)
        return both

    def _foot(self) -> QVBoxLayout:
        tokens = current_look().tokens
        foot = QVBoxLayout()
        foot.setContentsMargins(tokens.space_2, tokens.space_1, tokens.space_2, tokens.space_1)
        foot.setSpacing(tokens.space_1)
        foot.addWidget(self.counts)
        self._note_row = QWidget()
        row = QHBoxLayout(self._note_row)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(tokens.space_1)
        row.addWidget(self.note_icon)
        row.addWidget(self.notes, 1)
        self._note_row.hide()
        foot.addWidget(self._note_row)
        return foot

    def _connect(self) -> None:
        document, selection = self._context.document, self._context.selection
        for signal in (document.opened, document.policy_changed, selection.agent_changed, selection.tool_changed):
            signal.connect(self._ask)
        self.scope.current_changed.connect(self._ask)
        self.format.currentIndexChanged.connect(self._ask)
        self.part.current_changed.connect(self._show)

    @property
    def wanted_tool(self) -> str | None:
        """The tool that is asked for; None for all of the agent."""
        return self._context.selection.tool if self.scope.current == "tool" else None

    def _ask(self, _why: object = None) -> None:
        agent_id = self._context.selection.agent_id
        if agent_id is None or not self._context.document.is_open:
            self._context.tasks.cancel("preview")
            self._shown = None
            self._show()
            return
        question = self._refresh(agent_id, self.wanted_tool, str(self.format.currentData()))
        self._context.tasks.start(question, "preview", replace=True)

    async def _refresh(self, agent_id: str, tool: str | None, provider: str) -> None:
        answer = await self._context.deriver.derive(lambda workspace: preview(workspace, agent_id, tool, provider))
        if answer is not None:
            self._shown = answer
            self._show()

    def _show(self, _part: object = None) -> None:
        shown = self._shown
        if shown is None:
            self._say_empty("bot", "No agent", NO_AGENT)
            self.counts.set_text("")
            return
        self.counts.set_text(_counts_text(shown.counts))
        self._note_row.setVisible(bool(shown.notes))
        self.notes.set_text("; ".join(shown.notes))
        match self.part.current:
            case "rules":
                self._show_rules(shown)
            case "difference":
                self._show_difference(shown)
            case _:
                self._show_schema(shown)

    def _show_schema(self, shown: Preview) -> None:
        if not shown.is_empty:
            self._stack.setCurrentWidget(self.code)
            self.code.set_json(shown.schema)
        elif shown.turned_off:
            text = f"It is ticked, and another layer turns it off: {shown.turned_off.replace('`', '')}."
            self._say_empty("layers", f"{shown.tool} is turned off", text)
        elif shown.tool is not None:
            text = f"The model of {shown.agent_id} does not see {shown.tool}. Tick one of its operations to show it."
            self._say_empty("eye-off", f"{shown.tool} is hidden", text)
        else:
            text = f"{shown.agent_id} has no tool. Tick a tool in the tree to show it to the model."
            self._say_empty("eye-off", "The model sees nothing", text)

    def _show_rules(self, shown: Preview) -> None:
        if shown.usage_rules.strip():
            self._stack.setCurrentWidget(self.code)
            self.code.set_markdown(shown.usage_rules)
        else:
            self._say_empty("scroll-text", "No usage rules", "There is nothing to tell the model about this choice.")

    def _show_difference(self, shown: Preview) -> None:
        if shown.difference:
            self._stack.setCurrentWidget(self.code)
            self.code.set_diff(shown.difference)
        else:
            self._say_empty("diff", "No difference", "Nothing is taken away: the model sees all of it.")

    def _say_empty(self, icon: str, title: str, text: str) -> None:
        self.empty.set_state(icon, title, text)
        self._stack.setCurrentWidget(self.empty)


def _counts_text(counts: Counts) -> str:
    tools = f"{counts.shown_tools:,} of {counts.all_tools:,} tools"
    return f"The model sees {tools}, {counts.shown_operations:,} of {counts.all_operations:,} operations"
