"""Every error and warning with its place; a click goes there. Of a policy that failed to open: what to do about it.

The place is where one sees what a problem is about: a tool of an agent, a level of a source. Its line is one click too.
"""

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtWidgets import QPushButton, QWidget

from gatewright.workspace.api import Edit, Problem
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.problems.problem_table import ABOUT, MESSAGE, PLACE, ProblemModel, ProblemRow, ProblemView
from gatewright_gui.qt.dialog import Choice, ask
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stack_of, stretch
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.menu import popup_menu
from gatewright_gui.qt.plaintext import label_text, tip_text
from gatewright_gui.qt.prose import ProseLabel, plain
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.message_bar import FootBars, MessageBar
from gatewright_gui.qt.widget.search_field import SearchField
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.session.causes import mends_of, mends_of_all
from gatewright_gui.session.places import place_of_problem
from gatewright_gui.session.ruleplace import RulePlace
from gatewright_gui.session.verbs import file as verbs

MOST_MENDS = 3
_NAMED = 8
"""So many of the mends of a heading are told."""
_SEARCH = 220
MEND = mark("Fix in the file")
_TRUST_TIP = mark("See exactly what would be started or connected to, and trust it")
_PLACES_TIP = mark("See which folders the server would get, drawn as it sees them, and accept them")


class ProblemsPage(Page):
    """A table; Reload at the right where no bar of the window offers it."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("problems")
        self._context = context
        self.model = ProblemModel(self)
        self.header = SectionHeader(tr("Problems"))
        self.reload = named(QPushButton(tr("Reload")), "problems.reload", tip=tr("Read the policy file again (Ctrl+R)"))
        tie_icon(self.reload, "refresh-cw")
        self.search = named(SearchField(tr("Filter problems")), "problems.search")
        self.bar = named(MessageBar(), "problems.bar")
        self.go_button = named(QPushButton(tr("Go there")), "problems.go")
        self.line_button = named(
            QPushButton(tr("Show in TOML")),
            "problems.line",
            tip=tr("Show its line of the policy file (Ctrl+Enter in the list)"),
        )
        self.trust_button = named(
            QPushButton(tr("Trust...")),
            "problems.trust",
            tip=tr(_TRUST_TIP),
        )
        self.mend_buttons = tuple(named(QPushButton(), f"problems.mend.{at}") for at in range(MOST_MENDS))
        """What would mend the current problem: each button says what it does."""
        self._mends: tuple[Edit, ...] = ()
        self.mend_all_button = named(QPushButton(), "problems.mend.all")
        """What would mend all problems below the current heading that can be mended, as one edit."""
        self._together: tuple[Edit, ...] = ()
        self.view = self._make_view()
        self.whole = named(ProseLabel(), "problems.whole")
        """The current problem's sentence, however long it is."""
        self.empty = EmptyState("shield-check", tr("No problems"), tr("The policy has no errors and no warnings."))
        self._lay_out()
        self.go_button.clicked.connect(self._go)
        self.line_button.clicked.connect(self._show_line)
        self.trust_button.clicked.connect(self._ask_trust)
        for at, button in enumerate(self.mend_buttons):
            button.clicked.connect(lambda _=False, at=at: self._mend(at))
        self.mend_all_button.clicked.connect(self._mend_all)
        self.view.selectionModel().currentChanged.connect(self._tell_whole)
        self.model.modelReset.connect(self._tell_whole)
        document = context.document
        document.problems_changed.connect(self._refresh)
        document.closed.connect(self._refresh)
        document.opened.connect(self._refresh)
        self.reload.clicked.connect(context.navigator.reload_requested)
        self.bar.action_requested.connect(self._act)
        self._refresh()

    def _make_view(self) -> ProblemView:
        view = named(ProblemView(tr("Problems"), self.model), "problems.list")
        view.clicked.connect(self._clicked)
        view.activated.connect(self._go)
        view.line_requested.connect(self._show_line)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._open_menu)
        return view

    def _tell_whole(self, _now: object = None, _before: object = None) -> None:
        index, problem = self.view.currentIndex().siblingAtColumn(MESSAGE), self.view.problem
        self.whole.setText(str(index.data() or ""))
        self.whole.setVisible(problem is not None)
        heading = self.view.heading
        self._foot.setVisible(problem is not None or heading is not None)
        self.line_button.setVisible(problem is not None)
        self.go_button.setVisible(bool(self._about))
        self.go_button.setToolTip(tr("Show {place} (Enter in the list)", place=self._about))
        self.line_button.setEnabled(problem is not None and problem.place is not None)
        self.trust_button.setVisible(
            problem is not None and bool(verbs.endpoint_of(problem) or verbs.server_of(self._context.document, problem))
        )
        is_placeless = problem is not None and problem.code == verbs.PLACES_NOT_ACCEPTED
        self.trust_button.setText(tr("Places...") if is_placeless else tr("Trust..."))
        self.trust_button.setToolTip(tr(_PLACES_TIP if is_placeless else _TRUST_TIP))
        self._show_mends(())
        self._show_together((), 0)
        if not self._context.document.is_open or is_placeless:
            return
        if problem is not None:
            self._context.tasks.start(self._find_mends(problem), "problems.mends", replace=True)
        elif heading is not None:
            self._context.tasks.start(self._find_together(heading), "problems.mends", replace=True)

    async def _find_mends(self, problem: Problem) -> None:
        edits = await self._context.deriver.derive(mends_of, problem)
        if edits is not None and self.view.problem == problem:
            self._show_mends(edits)

    async def _find_together(self, heading: ProblemRow) -> None:
        problems = self._mendable(heading)
        edits = await self._context.deriver.derive(mends_of_all, problems)
        if edits is not None and (now := self.view.heading) is not None and self._mendable(now) == problems:
            self._show_together(edits, len(problems))

    def _mendable(self, heading: ProblemRow) -> Sequence[Problem]:
        """The problems below a heading, but for places: these are accepted where they are drawn."""
        return [one for one in self.model.below(heading) if one.code != verbs.PLACES_NOT_ACCEPTED]

    def _show_together(self, edits: tuple[Edit, ...], of: int) -> None:
        """The button for all, and above it what it would do."""
        self._together = edits
        self.mend_all_button.setVisible(bool(edits))
        if not edits:
            return
        every = tr("Mend all {count:,}", count=of)
        self.mend_all_button.setText(
            every if len(edits) == of else tr("Mend {count:,} of {of:,}", count=len(edits), of=of)
        )
        self.mend_all_button.setToolTip(tr("One edit; undo takes it back"))
        more = [tr("and {count} more", count=f"{len(edits) - _NAMED:,}")] if len(edits) > _NAMED else []
        self.whole.setText("\n".join([*(edit.name for edit in edits[:_NAMED]), *more]))
        self.whole.setVisible(True)

    def _mend_all(self) -> None:
        edits = self._together
        self._show_together((), 0)
        verbs.mend_all(self._context.document, edits)

    def _show_mends(self, edits: tuple[Edit, ...]) -> None:
        self._mends = edits
        for at, button in enumerate(self.mend_buttons):
            button.setVisible(at < len(edits))
            if at < len(edits):
                words = plain(edits[at].name)
                button.setText(label_text(f"{words[:1].upper()}{words[1:]}", 60))
                button.setToolTip(tip_text(tr("{edit}; undo takes it back", edit=words)))

    def _mend(self, at: int) -> None:
        edit, self._mends = self._mends[at], ()
        self._show_mends(())
        verbs.mend(self._context.document, edit)

    def _lay_out(self) -> None:
        self.search.setMinimumWidth(_SEARCH)
        self.search.search_changed.connect(self._search)
        self.search.results_requested.connect(self.view.setFocus)
        self.search.leave_requested.connect(self.view.setFocus)
        self.header.add_control(self.search)
        self.header.add_control(self.reload)
        tie_icon(self.go_button, "arrow-right")
        tie_icon(self.line_button, "file-code")
        tie_icon(self.trust_button, "lock-open")
        self.whole.setMargin(current_look().tokens.space_2)
        self._stack = stack_of(self.view, self.empty)
        buttons = row_of(
            self.mend_all_button,
            *self.mend_buttons,
            stretch(),
            self.trust_button,
            self.go_button,
            self.line_button,
            space=2,
            margins=(2, 0, 2, 2),
        )
        self._foot = holding(column_of(self.whole, buttons))
        column_of(self.header, stretch(self._stack), self._foot, into=self)
        FootBars(self._stack, self.bar, views=(self.view,))

    def focus_search(self) -> None:
        """Into the filter over the table."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def _search(self, text: object) -> None:
        held = self.view.problem
        self.model.search(text)
        self._choose(held, 0)

    def _choose(self, held: Problem | None, at: int) -> None:
        """Where no row is the current one: the problem that was, else what stands in its place."""
        if self.model.rowCount() and not self.view.currentIndex().isValid():
            row, last = self.model.find(held), self.model.rowCount() - 1
            self.view.setCurrentIndex(self.model.index(min(max(at, 0), last) if row < 0 else row, MESSAGE))

    def _refresh(self, _why: object = None) -> None:
        document = self._context.document
        at, held = self.view.currentIndex().row(), self.view.problem
        self.model.set_problems(document.problems, self._place_of)
        self.view.setColumnHidden(ABOUT, not any(row.about for row in self.model.rows))
        errors, warnings = self.model.counts
        words = [counted(errors, "error", "errors")] if errors else []
        words += [counted(warnings, "warning", "warnings")] if warnings else []
        self.header.set_note(", ".join(words))
        self._stack.setCurrentWidget(self.view if errors or warnings else self.empty)
        if not errors and not warnings:
            self.empty.set_state("shield-check", tr("No problems"), self._checked_words())
        self._choose(held, at)
        self._tell_whole()
        self.reload.setVisible(document.failure is not None or self.model.rowCount() == 0)
        if document.alarm is not None:
            text = tr("The file on the disk has errors: the last good policy stays in force until they are mended.")
            self.bar.show_message("error", text, action=tr(MEND))
        elif document.failure is None:
            self.bar.hide()
        elif document.failure.needs_only_trust:
            text = tr(
                "This policy reaches outside its folder. Read the lines below; trust it if that is what you want."
            )
            self.bar.show_message("warning", text, action=tr("Trust and open"))
        else:
            text = tr("This policy has errors: no agent may call anything until they are mended.")
            self.bar.show_message("error", text, action=tr(MEND))
        self.bar.close_button.hide()

    def _checked_words(self) -> str:
        """What was looked at where nothing is wrong."""
        document = self._context.document
        policy = document.policy
        limits = sum(len(agent.tool_rules) for agent in policy.agents.values())
        levels = sum(len(source.permission_rules) for source in policy.sources)
        parts = (
            counted(len(policy.agents), "agent", "agents"),
            tr(
                "{rules} on {tools}",
                rules=counted(limits, "rule", "rules"),
                tools=counted(len({facts.name for facts in document.catalog}), "tool", "tools"),
            ),
            tr(
                "{levels} of {sources}",
                levels=counted(levels, "level", "levels"),
                sources=counted(len(policy.sources), "source", "sources"),
            ),
            counted(len(policy.rules), "policy rule", "policy rules"),
        )
        return tr("No error and no warning in {parts}.", parts=", ".join(parts))

    def main_view(self) -> QWidget:
        """The table; without a problem the way to look again."""
        return self.view if self._stack.currentWidget() is self.view else self.reload

    def _place_of(self, problem: Problem) -> RulePlace | None:
        return place_of_problem(self._context.document, problem)

    def _clicked(self, index: QModelIndex) -> None:
        if index.column() == PLACE and self.view.heading is None:
            self._show_line()
        else:
            self._go()

    def _go(self, _index: object = None) -> None:
        """Where the current problem is looked at, as the policy is now; a heading is opened or folded."""
        if (heading := self.view.heading) is not None:
            self.model.turn(heading)
            self.view.setCurrentIndex(self.model.index(self.model.find(heading.kind), MESSAGE))
            return
        problem = self.view.problem
        place = self._place_of(problem) if problem is not None else None
        if place is not None:
            self._context.navigator.go_to_rule(place)

    def _show_line(self, _checked: bool = False) -> None:
        problem = self.view.problem
        if problem is not None and problem.place is not None:
            self._context.navigator.go_to_line(problem.place.line)

    def _open_menu(self, at: QPoint) -> None:
        if not self.view.indexAt(at).isValid():
            return
        menu = popup_menu(self)
        for button, text, keys, run in (
            (self.go_button, tr("Show {place}", place=self._about), tr("Enter"), self._go),
            (self.line_button, tr("Show in TOML"), tr("Ctrl+Enter"), self._show_line),
        ):
            if not button.isHidden():
                action = menu.addAction(f"{text}\t{keys}")
                action.setEnabled(button.isEnabled())
                action.triggered.connect(run)
        menu.popup(self.view.viewport().mapToGlobal(at))

    @property
    def _about(self) -> str:
        return str(self.view.currentIndex().siblingAtColumn(ABOUT).data() or "")

    def _ask_trust(self) -> None:
        problem = self.view.problem
        if problem is not None and (catalog_id := verbs.server_of(self._context.document, problem)):
            self._context.navigator.ask_for_trust(catalog_id)
        elif problem is not None:
            self._context.tasks.start(self._trust_endpoint(problem), "problems.trust", replace=True)

    async def _trust_endpoint(self, problem: Problem) -> None:
        """Ask for trust in exactly what would be connected to, and remember it."""
        document, target = self._context.document, verbs.endpoint_of(problem)
        definition = document.policy.endpoints.definition(target)
        text = f"{tr('Messages of agents go there from then on:')}\n{definition}"
        choices = (Choice("keep", tr("Not now")), Choice("trust", tr("Trust"), "primary"))
        title = tr("Trust the endpoint {target}?", target=target)
        if await ask(self, title, text, choices, icon="shield-alert", role="ask") == "trust":
            verbs.trust_endpoint(document, problem, definition)

    async def _mend_text(self, line: int) -> None:
        await self._context.draft.mend_alarm()
        self._context.navigator.go_to_line(line)

    def _act(self) -> None:
        """The button of the bar: trust what needs only that, else go to the first error."""
        failure, alarm = self._context.document.failure, self._context.document.alarm
        broken = alarm or failure
        if broken is not None and (failure is None or not failure.needs_only_trust):
            line = next((row.place.line for row in broken.problems if row.is_error and row.place), 1)
            self._context.tasks.start(self._mend_text(line), "problems.text", replace=True)
            return
        self._context.tasks.start(verbs.reload(self._context.document, trust=True), "reload")
