"""Schema, usage rules, difference and tokens of what the chosen agent's model sees. It does not work them out.

While an answer is under way the former text stays, so that nothing jumps; when it takes long and was of another agent,
tool or format, it goes: no text stands under a name that is not its own.
"""

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from gatewright_gui.models.tokens import rule_words, total_words
from gatewright_gui.pages.page import PageContext
from gatewright_gui.pages.preview.lint_pane import LintPane
from gatewright_gui.pages.preview.provider_strip import ProviderStrip
from gatewright_gui.pages.preview.token_table import TokenTable
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.icon_label import IconLabel
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.qt.widget.splitter import Splitter
from gatewright_gui.session.lints import PROVIDER_WORDS, LintRow, ProviderState
from gatewright_gui.session.preview import Counts, Preview, preview, provider_formats, reception
from gatewright_gui.session.tokens import TokenReport, token_report

FORMAT_WORDS = {**PROVIDER_WORDS, "openai": "OpenAI (chat)", "openai-responses": "OpenAI (responses)"}
PARTS = (
    ("schema", "Schema", "The tools as the model is given them"),
    ("rules", "Rules", "The usage rules: the text on the tools for the system prompt"),
    ("difference", "Difference", "What this agent's limits take away and change"),
    ("tokens", "Tokens", "What every tool costs, and what the limits save"),
)
SCOPES = (("tool", "This tool", "Only the tool of the current row"), ("agent", "All tools", "Every tool of the agent"))

NO_AGENT = "Choose an agent at the left, or add one."
COUNTING = "counting the tokens…"
PATIENCE_MS = 200
"""How long a text of something else may stay while an answer is under way."""


class PreviewPane(QWidget):
    """Follows the selection and the policy."""

    tool_requested = Signal(object)
    """A tool that is spoken of is to be chosen: str."""
    tokens_counted = Signal(object)
    """TokenReport of the chosen agent; None when what was counted is out of date."""

    def __init__(self, context: PageContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("preview")
        self._context = context
        self._shown: Preview | None = None
        self._report: TokenReport | None = None
        self._wanted_place: LintRow | None = None
        self._received: tuple[str, str | None] | None = None
        self._is_late = False
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE_MS)
        self.part = Segmented("What to show")
        self.scope = Segmented("Of which tools")
        self.format = QComboBox()
        self.code = CodeView("Preview")
        self.code.keep_wrapping("preview", context.sizes, default=True)
        self.empty = EmptyState("bot", "No agent", NO_AGENT)
        self.table = TokenTable()
        self.lints = LintPane()
        self.counts = ElidedLabel(role="muted")
        self.tokens = ElidedLabel(role="text")
        self.token_rule = ElidedLabel(role="muted")
        self.providers = ProviderStrip()
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
        self.providers.choose(str(self.format.currentData()))
        self.format.setAccessibleName("Provider format")
        self.format.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.format.setMinimumContentsLength(8)
        self.format.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.format.setToolTip("The shape in which a provider takes tools")
        for name, control in (("part", self.part), ("scope", self.scope), ("format", self.format), ("code", self.code)):
            control.setObjectName(f"preview.{name}")
        for name, label in (("counts", self.counts), ("tokens", self.tokens), ("tokens.rule", self.token_rule)):
            label.setObjectName(f"preview.{name}")
        self.empty.setObjectName("preview.empty")
        self._stack = QStackedWidget()
        for view in (self.code, self.empty, self.table):
            self._stack.addWidget(view)
        split = Splitter(Qt.Orientation.Vertical, "preview.lints", self._context.sizes)
        split.addWidget(self._stack)
        split.addWidget(self.lints)
        split.setStretchFactor(0, 1)
        split.restore((430, 170))
        self.lints.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(self._controls())
        column.addWidget(split, 1)
        column.addLayout(self._foot())

    def _controls(self) -> QVBoxLayout:
        tokens = current_look().tokens
        first, second, both = QHBoxLayout(), QHBoxLayout(), QVBoxLayout()
        first.addWidget(self.part)
        first.addStretch(1)
        second.addWidget(self.scope)
        second.addStretch(1)
        second.addWidget(QLabel("Format"))
        second.addWidget(self.format, 2)
        second.setSpacing(tokens.space_2)
        both.setContentsMargins(tokens.space_2, tokens.space_1, tokens.space_2, tokens.space_1)
        both.setSpacing(tokens.space_1)
        both.addLayout(first)
        both.addLayout(second)
        return both

    def _foot(self) -> QVBoxLayout:
        tokens = current_look().tokens
        foot, cost = QVBoxLayout(), QHBoxLayout()
        foot.setContentsMargins(tokens.space_2, tokens.space_1, tokens.space_2, tokens.space_1)
        foot.setSpacing(tokens.space_1)
        cost.setSpacing(tokens.space_1)
        cost.addWidget(IconLabel("coins", "muted", size=tokens.small_icon_size))
        cost.addWidget(self.tokens)
        cost.addStretch(1)
        cost.addWidget(self.token_rule)
        foot.addWidget(self.counts)
        foot.addLayout(cost)
        foot.addWidget(self.providers)
        return foot

    def _connect(self) -> None:
        document, selection = self._context.document, self._context.selection
        for signal in (document.opened, document.policy_changed, selection.agent_changed):
            signal.connect(self._ask)
        selection.tool_changed.connect(self._ask_texts)
        self.scope.current_changed.connect(self._ask_texts)
        self.format.currentIndexChanged.connect(self._format_changed)
        self.part.current_changed.connect(self._show)
        self._patience.timeout.connect(self._lose_patience)
        self.providers.provider_chosen.connect(self.choose_format)
        self.lints.place_requested.connect(self._go_to_place)
        self.table.tool_requested.connect(self.tool_requested)

    @property
    def wanted_tool(self) -> str | None:
        """The tool that is asked for; None for all of the agent."""
        return self._context.selection.tool if self.scope.current == "tool" else None

    @property
    def provider(self) -> str:
        """The chosen format."""
        return str(self.format.currentData())

    def choose_format(self, provider: str) -> None:
        """Show what another provider is given."""
        self.format.setCurrentIndex(self.format.findData(provider))

    # asking

    def _format_changed(self, _index: int) -> None:
        self.providers.choose(self.provider)
        self._ask()

    def _ask(self, _why: object = None) -> None:
        self._ask_texts()
        agent_id = self._context.selection.agent_id
        if agent_id is None or not self._context.document.is_open:
            self._context.tasks.cancel("preview.tokens")
            self._take_report(None)
            return
        if self._report is not None and (agent_id, self.provider) != (self._report.agent_id, self._report.provider):
            self._take_report(None)
        self._context.tasks.start(self._count(agent_id, self.provider), "preview.tokens", replace=True)

    def _ask_texts(self, _why: object = None) -> None:
        agent_id = self._context.selection.agent_id
        if agent_id is None or not self._context.document.is_open:
            for name in ("preview", "preview.providers"):
                self._context.tasks.cancel(name)
            self._shown, self._is_late = None, False
            self._patience.stop()
            self._show()
            return
        tool, tasks = self.wanted_tool, self._context.tasks
        self._patience.start()
        tasks.start(self._refresh(agent_id, tool, self.provider), "preview", replace=True)
        tasks.start(self._receive(agent_id, tool), "preview.providers", replace=True)
        self._show_tokens()

    async def _refresh(self, agent_id: str, tool: str | None, provider: str) -> None:
        answer = await self._context.deriver.derive(lambda workspace: preview(workspace, agent_id, tool, provider))
        if answer is not None:
            self._shown, self._is_late = answer, False
            self._show()

    async def _receive(self, agent_id: str, tool: str | None) -> None:
        ask = self._context.deriver.derive(lambda workspace: reception(workspace, agent_id, tool), aside=True)
        answer = await ask
        if answer is not None:
            self._received = (answer.agent_id, answer.tool)
            self.providers.show_states(answer.states)

    def _lose_patience(self) -> None:
        """What stands there is of something else, and the answer is still under way."""
        agent_id, tool, shown = self._context.selection.agent_id, self.wanted_tool, self._shown
        if self._received != (agent_id, tool):
            for name in self.providers.buttons:
                self.providers.show_state(ProviderState(name, None, 0), known=False)
        if shown is None or (shown.agent_id, shown.tool, shown.provider) != (agent_id, tool, self.provider):
            self._is_late = True
            self._show()

    async def _count(self, agent_id: str, provider: str) -> None:
        ask = self._context.deriver.derive(lambda workspace: token_report(workspace, agent_id, provider), aside=True)
        report = await ask
        if report is not None:
            self._take_report(report)

    def _take_report(self, report: TokenReport | None) -> None:
        self._report = report
        self.table.tokens.set_report(report)
        self._show_tokens()
        self._show()
        self.tokens_counted.emit(report)

    # showing

    def _show_tokens(self) -> None:
        """The sum of what is shown; the former one stays until the new one is there."""
        report = self._report
        has_agent = self._context.selection.agent_id is not None and self._context.document.is_open
        row = report.row_of(self.wanted_tool) if report is not None else None
        if report is None or row is None:
            self.tokens.set_text(COUNTING if has_agent and report is None else "")
            self.token_rule.set_text("")
            return
        self.tokens.set_text(total_words(row, report) if row.is_shown else f"hidden: saves {row.unrestricted:,} tokens")
        self.token_rule.set_text("exact" if report.exact else "estimate", detail=rule_words(report))
        self.table.choose_tool(self.wanted_tool)

    def _show(self, _part: object = None) -> None:
        shown = None if self._is_late else self._shown
        part = self.part.current
        has_lints = shown is not None and part in {"schema", "difference"}
        name = FORMAT_WORDS.get(shown.provider, shown.provider) if shown is not None else ""
        self.lints.show_rows(name, shown.lints if shown is not None and has_lints else ())
        self.counts.set_text(_counts_text(shown.counts) if shown is not None else "")
        if shown is None and self._is_late:
            self._say_empty("clock", "Working it out", "The text for this choice is being made.")
            return
        if shown is None:
            self._say_empty("bot", "No agent", NO_AGENT)
            return
        match part:
            case "rules":
                self._show_rules(shown)
            case "difference":
                self._show_difference(shown)
            case "tokens":
                self._show_table()
            case _:
                self._show_schema(shown)
                self._show_place(shown)

    def _show_table(self) -> None:
        if self._report is None:
            self._say_empty("coins", "Counting", "The first count of a session takes a second or two.")
        else:
            self._stack.setCurrentWidget(self.table)

    def _go_to_place(self, row: LintRow) -> None:
        """To the tool and the line that a note speaks of, in the text that stands now or the next one."""
        self._wanted_place = row
        if row.tool:
            self.tool_requested.emit(row.tool)
        self.part.set_current("schema")
        self._show()

    def _show_place(self, shown: Preview) -> None:
        wanted = self._wanted_place
        if wanted is None or (shown.tool is not None and shown.tool != wanted.tool):
            return
        self._wanted_place = None
        key = (wanted.tool, wanted.pointer, wanted.code)
        line = next((row.line for row in shown.lints if (row.tool, row.pointer, row.code) == key), None)
        if line is not None:
            self.code.go_to_line(line)

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
