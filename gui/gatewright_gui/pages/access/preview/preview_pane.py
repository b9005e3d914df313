"""Schema, usage rules, differences and tokens of what the chosen agent's model sees.

While an answer is under way the former text stays, so that nothing jumps; no text stays long under a name that is not
its own.
"""

from collections.abc import Sequence
from functools import partial
from typing import cast

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QStackedWidget, QWidget

from gatewright_gui.pages.access.preview.answers import Answers, Wanted
from gatewright_gui.pages.access.preview.choices import (
    BASES,
    COPY_KEYS,
    COPY_NAMES,
    COUNTING,
    FORMAT_WORDS,
    FORMS,
    NO_AGENT,
    NOTHING_CHANGED,
    PARTS,
    SCOPES,
    FormatChoice,
    MenuChoice,
    counts_text,
    host_texts,
    menu_button,
    sentence,
)
from gatewright_gui.pages.access.preview.lint_pane import LintPane
from gatewright_gui.pages.access.preview.token_table import TokenTable, as_table, context_words, rule_words, total_words
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import Role, current_look, tie_icon
from gatewright_gui.qt.menu import add_action
from gatewright_gui.qt.widget.button import CopyButton, Segmented
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.flow_layout import FlowLayout
from gatewright_gui.qt.widget.label import ElidedLabel, IconLabel, Label
from gatewright_gui.qt.widget.splitter import Splitter
from gatewright_gui.session.preview import Base, LintRow, Preview
from gatewright_gui.session.watch import MemoryWatch

CONTEXT = PARTS[-1][0]
"""The view that is not of the row; it stands beside the others while it is shown."""


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
        self._answers = Answers(context, self)
        self._wanted_place: LintRow | None = None
        self._marked: tuple[str | None, ...] = ()
        self.part = Segmented(tr("What to show"), is_dense=True)
        self.menu = QMenu(self)
        self.scope = MenuChoice(self.menu, "preview.scope", tr("Of which tools"), SCOPES)
        self.form = MenuChoice(self.menu, "preview.form", tr("Schema as"), FORMS)
        self.base = MenuChoice(self.menu, "preview.base", tr("Difference from"), BASES)
        self.more = menu_button("preview.more", tr("Which tools, and how they are shown"), self.menu)
        tie_icon(self.more, "ellipsis")
        self.about = ElidedLabel(role="muted")
        self.code = CodeView(tr("Preview"))
        self.code.keep_wrapping("preview", context.sizes)
        self.empty = EmptyState("bot", tr("No agent"), tr(NO_AGENT))
        self.table = TokenTable()
        self.copy_tokens = CopyButton(
            tr("Copy the table ({keys})", keys=COPY_KEYS), lambda: as_table(self._answers.report, self.table.order)
        )
        self.lints = LintPane()
        self.counts = ElidedLabel(role="muted")
        self.tokens = ElidedLabel(role="text")
        self.token_rule = ElidedLabel(role="muted")
        self.providers = FormatChoice()
        self.unsent = Label(wraps=True)
        self.whole_hosts = named(Label(wraps=True), "preview.hosts.whole")
        self.narrowing_hosts = named(Label(wraps=True), "preview.hosts.narrowing")
        looks: tuple[tuple[Label, str, Role], ...] = (
            (self.whole_hosts, "triangle-alert", "ask"),
            (self.narrowing_hosts, "circle-check", "allow"),
        )
        self._hosts = [
            (label, holding(row_of(IconLabel(icon, role), stretch(label), space=1, margins=(2, 0, 2, 1))))
            for label, icon, role in looks
        ]
        self._lay_out()
        self._watch = MemoryWatch(
            context.document, context.tasks, lambda: self.part.current == "context" and self.isVisible(), parent=self
        )
        self._connect()
        self.part.keep("preview", context.sizes)
        self.form.keep("preview.form", context.sizes)
        self._ask()

    def _lay_out(self) -> None:
        for key, text, tip in PARTS:
            self.part.add_segment(key, tr(text), tooltip=tr(tip))
        self.part.button(CONTEXT).hide()
        _, text, tip = PARTS[-1]
        self.menu.addSeparator()
        open_context = partial(self.part.set_current, CONTEXT)
        add_action(self.menu, tr(text), open_context, name="preview.context", icon="database", tip=tr(tip))
        self.unsent.setContentsMargins(8, 2, 8, 6)
        self.unsent.setProperty("kind", "heading")
        self.unsent.hide()
        parts: dict[str, QWidget] = {
            "part": self.part,
            "unsent": self.unsent,
            "about": self.about,
            "code": self.code,
            "counts": self.counts,
            "tokens": self.tokens,
            "tokens.rule": self.token_rule,
            "tokens.copy": self.copy_tokens,
            "find": self.code.find_button,
            "fold": self.code.fold_button,
            "unfold": self.code.unfold_button,
            "wrap": self.code.wrap_button,
            "copy": self.code.copy_button,
        }
        for name, control in parts.items():
            control.setObjectName(f"preview.{name}")
        self.empty.setObjectName("preview.empty")
        self.about.setMinimumWidth(1)  # in a narrow pane the buttons go before it; its tooltip has the words
        self.empty.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._stack = QStackedWidget()
        for view in (self.code, self.empty, self.table):
            self._stack.addWidget(view)
        split = Splitter(Qt.Orientation.Vertical, "preview.lints", self._context.sizes)
        split.addWidget(self._stack)
        split.addWidget(self.lints)
        split.setStretchFactor(0, 1)
        split.restore((430, 170))
        self.lints.hide()
        tokens = current_look().tokens
        controls, space = QWidget(), current_look().tokens.space_1
        flow = FlowLayout(controls, spacing=space)
        flow.setContentsMargins(space, space, space, space)
        for control in (self.part, self.providers, self.more):
            flow.addWidget(control)
        bar = row_of(stretch(self.about), margins=(2, 0, 1, 0))
        bar.setSpacing(2)
        self.code.put_buttons_in(bar)
        bar.addWidget(self.copy_tokens)
        coins = IconLabel("coins", "muted", size=tokens.small_icon_size)
        cost = row_of(coins, self.tokens, stretch(), self.token_rule, space=1)
        foot = column_of(bar, holding(column_of(cost, self.counts, space=1, margins=(2, 0, 2, 1))))
        column_of(controls, *(row for _, row in self._hosts), self.unsent, stretch(split), foot, into=self)

    def _connect(self) -> None:
        document, selection = self._context.document, self._context.selection
        for signal in (document.closed, document.opened, document.policy_changed, selection.agent_changed):
            signal.connect(self._ask)
        selection.tool_changed.connect(self._ask_texts)
        self.scope.current_changed.connect(self._ask_texts)
        self.part.current_changed.connect(self._part_changed)
        self.base.current_changed.connect(self._part_changed)
        self.form.current_changed.connect(self._show)
        document.saved.connect(self._ask_comparison)
        self._watch.changed.connect(self._ask_context)
        self._answers.changed.connect(self._show)
        self._answers.received.connect(self.providers.show_reception)
        self._answers.counted.connect(self._take_report)
        self.providers.provider_chosen.connect(self._ask)
        self.lints.place_requested.connect(self._go_to_place)
        self.table.tool_requested.connect(self.tool_requested)

    @property
    def wanted_tool(self) -> str | None:
        """The tool that is asked for; None for all of the agent."""
        return self._context.selection.tool if self.scope.current == "tool" else None

    @property
    def provider(self) -> str:
        """The chosen format."""
        return self.providers.current

    def choose_format(self, provider: str) -> None:
        """Show what another provider is given."""
        self.providers.choose(provider)

    def event(self, event: QEvent) -> bool:
        """The keys of the text work in the whole pane, and Ctrl+Shift+C copies all that is shown."""
        if not isinstance(event, QKeyEvent):
            return super().event(event)
        held = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        if self.code.take_key(event):
            return True
        if event.key() != Qt.Key.Key_C or event.modifiers() != held:
            return super().event(event)
        if event.type() == QEvent.Type.KeyPress:
            (self.copy_tokens if self.copy_tokens.isVisible() else self.code.copy_button).copy()
        event.accept()
        return True

    # asking

    @property
    def _wanted(self) -> Wanted | None:
        agent_id = self._context.selection.agent_id
        is_open = self._context.document.is_open
        return Wanted(agent_id, self.wanted_tool, self.provider) if agent_id is not None and is_open else None

    @property
    def _base(self) -> Base:
        return cast("Base", self.base.current)

    def _ask(self, _why: object = None) -> None:
        self._ask_texts()
        self._answers.ask_count(self._wanted)

    def _ask_texts(self, _why: object = None) -> None:
        self._answers.ask_texts(self._wanted)
        self._ask_comparison()
        self._ask_context()
        self._show_tokens()

    def _ask_comparison(self, _why: object = None) -> None:
        is_looked_at = self.part.current == "difference"
        self._answers.ask_comparison(self._wanted if is_looked_at else None, self._base)

    def _ask_context(self) -> None:
        wanted = self._wanted
        is_looked_at = wanted is not None and self.part.current == "context"
        self._answers.ask_context(wanted.agent_id if wanted is not None and is_looked_at else None)

    def _part_changed(self, _key: object = None) -> None:
        self._ask_comparison()
        self._ask_context()
        self._show()

    def _take_report(self, report: object) -> None:
        self.table.tokens.set_report(self._answers.report)
        self._show_tokens()
        self._show()
        self.tokens_counted.emit(report)

    # showing

    def _show_tokens(self) -> None:
        """The sum of what is shown; the former one stays until the new one is there."""
        report, has_agent = self._answers.report, self._wanted is not None
        row = report.row_of(self.wanted_tool) if report is not None else None
        if report is None or row is None:
            self.tokens.set_text(tr(COUNTING) if has_agent and report is None else "")
            self.token_rule.set_text("")
            return
        saved = tr("hidden: saves {count:,} tokens", count=row.unrestricted)
        self.tokens.set_text(total_words(row, report) if row.is_shown else saved)
        self.token_rule.set_text(tr("exact") if report.exact else tr("estimate"), detail=rule_words(report))
        self.table.choose_tool(self.wanted_tool)

    def _show(self, _part: object = None) -> None:
        shown = None if self._answers.is_late else self._answers.text
        part = self.part.current
        has_lints = shown is not None and part in {"schema", "difference"}
        name = FORMAT_WORDS.get(shown.provider, shown.provider) if shown is not None else ""
        self.lints.show_rows(name, shown.lints if shown is not None and has_lints else ())
        self.counts.set_text(counts_text(shown.counts) if shown is not None else "")
        self._show_bar(part or "", shown)
        if part != "schema":
            self._mark(None, ())
        if shown is None and self._answers.is_late:
            self._say_empty("clock", tr("Preparing the preview..."), "")
            return
        if shown is None:
            self._say_empty("bot", tr("No agent"), tr(NO_AGENT))
            return
        match part:
            case "rules" if shown.usage_rules.strip():
                self._stack.setCurrentWidget(self.code)
                self.code.set_markdown(shown.usage_rules)
                self._tell_lines(shown.usage_rules.count("\n"))
            case "rules":
                nothing = tr("There is nothing to tell the model about this choice.")
                self._say_empty("scroll-text", tr("No usage rules"), nothing)
            case "difference":
                self._show_difference(shown)
            case "tokens" if self._answers.report is None:
                self._say_empty("coins", tr("Counting"), tr("The first count of a session takes a second or two."))
            case "tokens":
                self._stack.setCurrentWidget(self.table)
            case "context":
                self._show_context(shown.agent_id)
            case _:
                self._show_schema(shown)

    def _show_bar(self, part: str, shown: Preview | None) -> None:
        """The buttons that fit the part, whether there is something to copy or not."""
        is_table = part == "tokens"
        self.part.button(CONTEXT).setVisible(part == CONTEXT)
        self.providers.setVisible(self._wanted is not None and part != CONTEXT)
        self.scope.set_usable(part != CONTEXT)
        self.unsent.setText(shown.unsent if shown is not None and part in {"schema", "rules"} else "")
        self.unsent.setVisible(bool(self.unsent.text()))
        texts = host_texts(shown, part) if shown is not None else ("", "")
        for (label, row), text in zip(self._hosts, texts, strict=True):
            label.setText(text)
            row.setVisible(bool(text))
        self.base.set_usable(part == "difference")
        self.form.set_usable(part == "schema")
        self.copy_tokens.setVisible(is_table)
        self.copy_tokens.setEnabled(self._answers.report is not None)
        for button in (self.code.find_button, self.code.wrap_button, self.code.copy_button):
            button.setVisible(not is_table)
            button.setEnabled(shown is not None)
        self.code.show_fold_buttons(part == "schema")
        if part in COPY_NAMES:
            self.code.copy_button.set_name(f"{tr(COPY_NAMES[part])} ({COPY_KEYS})")
        report = self._answers.report if is_table else None
        self.about.set_text(context_words(report.total.tokens) if report is not None else "")

    def _go_to_place(self, row: LintRow) -> None:
        """To the tool and the line that a note speaks of, in the text that stands now or the next one."""
        self._wanted_place = row
        if row.tool:
            self.tool_requested.emit(row.tool)
        self.part.set_current("schema")
        self._show()

    def _show_schema(self, shown: Preview) -> None:
        if not shown.is_empty:
            self._stack.setCurrentWidget(self.code)
            key = "agent" if shown.tool is None else "tool"
            is_readable, is_quiet = self.form.current == "readable", bool(shown.unsent)
            if is_readable:
                self.code.set_readable(shown.readable, is_quiet=is_quiet)
            else:
                self.code.set_json(shown.schema, key=key, whole=shown.whole_schema, is_quiet=is_quiet)
            places = shown.readable_places if is_readable else shown.places
            self._mark(shown.tool, places.get(self._context.selection.operation or "", ()))
            self._tell_lines(len(self.code.editor.lines))
        elif shown.tool is not None:
            text = tr(
                "The model of {agent} does not see {tool}. Tick it to show it.", agent=shown.agent_id, tool=shown.tool
            )
            self._say_empty("eye-off", tr("{tool} is hidden", tool=shown.tool), text)
        else:
            text = tr("{agent} has no tool. Tick a tool in the tree to show it to the model.", agent=shown.agent_id)
            self._say_empty("eye-off", tr("The model sees nothing"), text)
        wanted = self._wanted_place
        if wanted is not None and shown.tool in {None, wanted.tool}:
            self._wanted_place = None
            key = (wanted.tool, wanted.pointer, wanted.code)
            line = next((row.line for row in shown.lints if (row.tool, row.pointer, row.code) == key), None)
            if line is not None:
                self.form.set_current("json")
                self.code.go_to_line(line)

    def _mark(self, tool: str | None, lines: Sequence[int]) -> None:
        """The lines of the chosen operation; they are brought into view when it is another one, in a text of now."""
        if self._answers.is_under_way:
            self.code.mark_lines(dict.fromkeys(lines, "accent"))
            return
        operation = self._context.selection.operation
        marked, self._marked = self._marked, (tool, operation, self.form.current)
        if marked == self._marked:
            self.code.mark_lines(dict.fromkeys(lines, "accent"))
        else:
            self.code.show_marked(lines)

    def _show_difference(self, shown: Preview) -> None:
        found = self._answers.comparison
        if (
            found is None
            or found.base != self._base
            or not Wanted(shown.agent_id, shown.tool, shown.provider).is_of(found)
        ):
            self._say_empty("clock", tr("Preparing the comparison..."), "")
        elif found.obstacle:
            self._say_empty("diff", tr("Nothing to compare with"), sentence(found.obstacle))
        elif found.change.text:
            change, remark = found.change, found.remark
            self._stack.setCurrentWidget(self.code)
            self.code.set_diff(change.text, change.letters)
            said = tr("{added:,} lines came, {removed:,} went", added=change.added, removed=change.removed)
            words = f"{change.words}, {remark}" if remark else change.words
            self.about.set_text(words, detail=f"{said}; {remark}" if remark else said)
        else:
            self._say_empty(
                "diff", tr("No difference"), f"{tr(NOTHING_CHANGED[self._base])} {sentence(found.remark)}".rstrip()
            )

    def _show_context(self, agent_id: str) -> None:
        found = self._answers.context
        if found is None or found.agent_id != agent_id:
            self._say_empty("clock", tr("Reading the memory of the agent..."), "")
        elif found.problem:
            self._say_empty("triangle-alert", tr("The context cannot be read"), sentence(found.problem))
        elif found.text:
            self._stack.setCurrentWidget(self.code)
            self.code.set_markdown(found.text)
            self.about.set_text(found.words)
        else:
            text = tr("{agent} has no core block and no pinned one. The page Memory makes them.", agent=agent_id)
            self._say_empty("database", tr("Nothing in context"), text)

    def _tell_lines(self, count: int) -> None:
        lines = counted(count, "line", "lines")
        is_all = self.scope.current == "agent"
        self.about.set_text(tr("all tools, {lines}", lines=lines) if is_all else lines)

    def _say_empty(self, icon: str, title: str, text: str) -> None:
        for button in (self.code.find_button, self.code.wrap_button, self.code.copy_button, self.copy_tokens):
            button.setEnabled(False)
        self.code.show_fold_buttons(False)
        self.empty.set_state(icon, title, text)
        self._stack.setCurrentWidget(self.empty)
