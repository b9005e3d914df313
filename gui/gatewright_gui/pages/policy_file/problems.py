"""Lists every error and warning with its place and its fix; a click goes there. Says what mends a policy with errors.

The place is where one sees what a problem is about: a tool of an agent, a level of a source. Its line is one click too.
Problems that say the same stand in one row until somebody opens it.

Over 450 lines, because the rows, what their columns say and what mends them are read together.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QPushButton, QWidget

from gatewright.workspace.api import Edit, Problem, frozen
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.qt.dialog import Choice, ask
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.listing import REST, Column, Listing, ListingModel, Verb
from gatewright_gui.qt.look import Role, current_look, tie_icon
from gatewright_gui.qt.prose import ProseLabel, plain
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.label import SectionHeader
from gatewright_gui.qt.widget.message_bar import FootBars, MessageBar
from gatewright_gui.session.causes import causes_of, mends_of, mends_of_all, names_of_mends
from gatewright_gui.session.navigator import place_of_problem
from gatewright_gui.session.place import RulePlace, place_words
from gatewright_gui.session.verbs import file as verbs

MESSAGE, MEANS, ABOUT, PLACE, FIX = range(5)
FEWEST = 3
"""So many problems of one kind have a heading; of one sentence two are enough."""
MOST_OPEN = 8
"""More of them are folded at first."""
MOST_MENDS = 3
_NAMED = 8
"""So many of the mends of a heading are told."""
MOST_FIXED = 200
"""For so many problems it is worked out whether something mends them; for others once they are chosen."""
_NAME = re.compile(r"`[^`]*`(, `[^`]*`)*( and `[^`]*`| and \d+ more)?")
_TITLES = {"undeclared-paths": mark("{count} tools have arguments that may name files: decide what they do with them")}
"""Headings, by code, that say it better than the sentence in common."""
_MEANS = {
    "missing-path": mark("nothing is there"),
    "not-trusted": mark("its tools are missing"),
    "places-not-accepted": mark("its tools are missing"),
    "tools-held": mark("its tools are missing"),
    "source-not-added": mark("its tools are missing"),
    "tool-set-aside": mark("the tool is missing"),
    "no-source": mark("the tool is missing"),
    "no-root": mark("the tool is missing"),
    "tool-not-shown": mark("the tool is missing"),
    "endpoint-not-trusted": mark("cannot send there"),
    "grant-reaches-nothing": mark("denied there"),
    "deny-may-miss": mark("some calls get through"),
    "ask-may-miss": mark("some calls do not ask"),
    "undeclared-paths": mark("levels may miss a file"),
    "arguments-open": mark("any argument passes"),
    "argument-unpinned": mark("other arguments pass"),
    "edits-never-saved": mark("changes are lost"),
    "not-a-folder": mark("nothing is there"),
    "unreadable": mark("nothing can be read"),
    "never-callable": mark("every call is denied"),
    "never-allowed": mark("the command is denied"),
    "step-hidden": mark("the step is denied"),
    "deny-always": mark("all of these are denied"),
    "ask-always": mark("all of these ask"),
    "ask-when-omitted": mark("more calls ask"),
    "pattern-key": mark("no effect"),
    "rule-shadowed": mark("no effect"),
    "rule-without-effect": mark("no effect"),
    "nothing-outside": mark("no effect"),
    "observe-without-effect": mark("no effect"),
}
"""Codes of warnings with what they mean for agents; of others the sentence says it."""
_GRAVE = (
    "deny-may-miss",
    "ask-may-miss",
    "undeclared-paths",
    "arguments-open",
    "argument-unpinned",
    "edits-never-saved",
)
"""Codes of warnings by which calls get through or work is lost; they come before others."""
MEND = mark("Fix in the file")
_TRUST_TIP = mark("See exactly what would be started or connected to, and trust it")
_PLACES_TIP = mark("See which folders the server would get, drawn as it sees them, and accept them")


@frozen
class ProblemRow:
    """A problem, and what it is about, in words; or the heading over `count` of them, of which it is the first."""

    problem: Problem
    about: str
    count: int = 0
    is_open: bool = False
    is_below: bool = False
    said: str = ""
    """The words of a heading."""
    means: str = ""
    """The effect on agents."""
    mends: tuple[str, ...] = ()
    """The names of the edits that mend it, as far as that is known; of a heading, of those below it."""

    @property
    def kind(self) -> tuple[bool, str, str]:
        """The traits that problems below one heading have in common."""
        return self.problem.is_error, self.problem.code, _NAME.sub("…", self.problem.message)

    @property
    def words(self) -> str:
        """The sentence, or how many have it."""
        return self.said if self.count else problem_words(self.problem)

    @property
    def where(self) -> str:
        """The file and its line; none of a heading."""
        place = None if self.count else self.problem.place
        return f"{PurePath(place.file).name}:{place.line}" if place else ""

    @property
    def fix(self) -> str:
        """The word for what a click on its fix does."""
        if not self.mends:
            return ""
        return tr("Fix all...") if self.count else tr("Fix") if len(self.mends) == 1 else tr("Fix...")


def _order(problem: Problem, *, is_cause: bool) -> tuple[bool, bool, bool, str, int, int]:
    """Errors first, then what lets calls through; among them those that explain others; then by line."""
    first, place = (not problem.is_error, problem.code not in _GRAVE, not is_cause), problem.place
    return (*first, place.file, place.line, place.column) if place else (*first, "", 0, 0)


def _means(problem: Problem) -> str:
    """The effect of a warning on agents; empty where the sentence says it."""
    address = problem.subject.address if problem.subject is not None else ()
    is_file_of_catalog = address[:1] == ("catalogs",) and "places" not in address
    code = "tools-held" if problem.code == "missing-path" and is_file_of_catalog else problem.code
    return tr(_MEANS.get(code, ""))


def _means_role(row: ProblemRow) -> Role:
    return "deny" if row.problem.is_error else "ask" if row.problem.code in _GRAVE else "text"


def _in_common(rows: Sequence[ProblemRow]) -> str:
    """The count, and the sentence with the names that are not the same in all of them left out."""
    count, title, sentence = len(rows), _TITLES.get(rows[0].problem.code), rows[0].words
    if all(row.words == sentence for row in rows):
        return tr("In {count:,} places: {problem}", count=count, problem=sentence)
    if title is not None:
        return tr(title).format(count=f"{count:,}")
    named = zip(*([found.group() for found in _NAME.finditer(row.problem.message)] for row in rows), strict=True)
    shared = [names[0] if len(set(names)) == 1 else "…" for names in named]
    return f"{count:,} × {_NAME.sub(lambda _: shared.pop(0), rows[0].problem.message)}"


def problem_words(problem: Problem) -> str:
    """The sentence of a problem, with the name that was meant perhaps."""
    if not problem.near_miss:
        return problem.message
    return tr("{problem} (did you mean `{name}`?)", problem=problem.message, name=problem.near_miss)


def _marks(row: ProblemRow) -> Sequence[tuple[str, Role]]:
    bad: tuple[str, Role] = ("circle-alert", "deny") if row.problem.is_error else ("triangle-alert", "ask")
    if not (row.count or row.is_below):
        return (bad,)
    fold = "chevron-down" if row.is_open else "chevron-right"
    return (fold if row.count else "", "muted"), bad


def _tip(row: ProblemRow) -> str:
    """All of the problem, or what Enter does at a heading."""
    if not row.count:
        return str(row.problem)
    act = tr("Fold (Enter)") if row.is_open else tr("Show all {count:,} (Enter)", count=row.count)
    return f"{act} [{row.problem.code}]"


def _fix_tip(row: ProblemRow) -> str:
    """The words for what the click would do."""
    return "\n".join(map(plain, row.mends[:_NAMED])) or _tip(row)


def _about_tip(row: ProblemRow) -> str:
    return tr("Show {place} (Enter)", place=row.about) if row.about else _tip(row)


def _line_tip(row: ProblemRow) -> str:
    place = None if row.count else row.problem.place
    return _tip(row) if place is None else tr("Show line {number} of the policy file (Ctrl+Enter)", number=place.line)


COLUMNS: tuple[Column[ProblemRow], ...] = (
    Column(mark("Problem"), lambda row: row.words, REST, _marks, tip=_tip, is_prose=True),
    Column(mark("For agents"), lambda row: row.means, 164, role=_means_role),
    Column(mark("About"), lambda row: row.about, 180, role=lambda _: "accent", tip=_about_tip),
    Column(mark("Line"), lambda row: row.where, 106, role=lambda _: "accent", tip=_line_tip),
    Column(mark("Fix"), lambda row: row.fix, 76, role=lambda _: "accent", tip=_fix_tip),
)


class ProblemModel(ListingModel[ProblemRow]):
    """One row per problem that fits the search, errors first; those of one kind can be folded."""

    def __init__(self, columns: Sequence[Column[ProblemRow]] = COLUMNS) -> None:
        super().__init__(columns, lambda row: f"{row.words} {row.about} {row.where} {row.problem.code}")
        self._kinds: dict[tuple[bool, str, str], list[ProblemRow]] = {}
        """Those that fit the search."""
        self._turned: frozenset[tuple[bool, str, str]] = frozenset()
        """Kinds that are not as they are at first: open, or folded."""

    def set_problems(
        self,
        problems: Sequence[Problem],
        place_of: Callable[[Problem], RulePlace | None] = lambda _: None,
        error_means: str = "",
    ) -> None:
        """Show these; `place_of`: where each can be looked at, `error_means`: the effect of an error on agents."""
        causes = causes_of(problems)
        new = sorted(problems, key=lambda problem: _order(problem, is_cause=problem in causes))
        self.show_rows(
            ProblemRow(
                problem,
                place_words(place_of(problem)),
                means=error_means if problem.is_error else _means(problem),
            )
            for problem in new
        )

    def show_mends(self, mends: Mapping[Problem, tuple[str, ...]]) -> None:
        """Offer these fixes, by the names of their edits."""
        self.show_rows(replace(row, mends=mends.get(row.problem, ())) for row in self.every)

    def turn(self, row: ProblemRow) -> None:
        """Open what is below a heading, or fold it."""
        self._turned ^= {row.kind}
        self.show_rows(self.every)

    def below(self, heading: ProblemRow) -> tuple[Problem, ...]:
        """The problems of a heading, folded ones too."""
        return tuple(row.problem for row in self._kinds.get(heading.kind, ()))

    def arrange(self, rows: Sequence[ProblemRow]) -> Iterable[ProblemRow]:
        """Put a heading over those of one kind where there are several."""
        kinds = self._kinds = {}
        for row in rows:
            kinds.setdefault(row.kind, []).append(row)
        for row in rows:
            of_kind = kinds[row.kind]
            is_same = len(of_kind) == 2 and of_kind[0].words == of_kind[1].words
            if len(of_kind) < FEWEST and not is_same:
                yield row
            elif row is of_kind[0]:
                is_open = (len(of_kind) <= MOST_OPEN) != (row.kind in self._turned)
                mends = tuple(one.mends[0] for one in of_kind if one.mends)
                said = _in_common(of_kind)
                yield replace(row, about="", count=len(of_kind), is_open=is_open, said=said, mends=mends)
                yield from (replace(one, is_below=True) for one in of_kind if is_open)

    def spoken(self, row: ProblemRow, column: int) -> str:
        """The words, with how bad it is; the other cells as they stand."""
        if column != MESSAGE:
            return ""
        bad = tr("error") if row.problem.is_error else tr("warning")
        return f"{_count_words(row.count, is_error=row.problem.is_error) or bad}: {row.words}"

    def key(self, row: ProblemRow) -> object:
        """The problem, or the kind of a heading."""
        return row.kind if row.count else row.problem

    @property
    def counts(self) -> tuple[int, int]:
        """Errors and warnings, those too that are folded or do not fit the search."""
        errors = sum(row.problem.is_error for row in self.every)
        return errors, len(self.every) - errors


def _count_words(count: int, *, is_error: bool) -> str:
    if not count:
        return ""
    return counted(count, "error", "errors") if is_error else counted(count, "warning", "warnings")


def _is_placeless(problem: Problem) -> bool:
    return problem.code == verbs.PLACES_NOT_ACCEPTED


class ProblemsPage(Page):
    """A listing; Reload at the right where no bar of the window offers it."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("problems")
        self._context = context
        self.model = ProblemModel()
        self.header = SectionHeader(tr("Problems"))
        self.reload = named(QPushButton(tr("Reload")), "problems.reload", tip=tr("Read the policy file again (Ctrl+R)"))
        tie_icon(self.reload, "refresh-cw")
        self.bar = named(MessageBar(), "problems.bar")
        self.empty = EmptyState("shield-check", tr("No problems"), tr("The policy has no errors and no warnings."))
        self.list = Listing(self.model, "problems.list", tr("Problems"), self.empty, self._offer, chooses=True)
        self.view = self.list.view
        self.search = self.list.search_field("problems.search", tr("Filter problems"))
        self.whole = named(ProseLabel(), "problems.whole")
        """The current problem's sentence, however long it is."""
        self._mends: tuple[Edit, ...] = ()
        """What would mend the current problem, or all below the current heading by one edit."""
        self._lay_out()
        self.list.chosen_changed.connect(self._tell_whole)
        self.view.clicked.connect(self._click)
        document = context.document
        for moved in (document.problems_changed, document.closed, document.opened):
            moved.connect(self._refresh)
        self.reload.clicked.connect(context.navigator.reload_requested)
        self.bar.action_requested.connect(self._act)
        self._refresh()

    @property
    def problem(self) -> Problem | None:
        """The current one; None at a heading."""
        row = self.list.current
        return row.problem if row is not None and not row.count else None

    @property
    def heading(self) -> ProblemRow | None:
        """The current heading; None at a problem."""
        row = self.list.current
        return row if row is not None and row.count else None

    def _offer(self) -> Iterator[Verb]:
        """Offer what can be done about the current problem, or about all below the current heading."""
        document, row, edits = self._context.document, self.list.current, self._mends
        if row is None:
            return
        if row.count:
            yield Verb("", "", self._fold, keys="Enter")
            of = len(self._mendable(row))
            every = tr("Fix all {count:,}", count=of)
            words = every if len(edits) == of else tr("Fix {count:,} of {of:,}", count=len(edits), of=of)
            if edits:
                yield Verb("problems.mend.all", words, self._mend_all, tr("One edit; undo takes it back"))
            return
        problem = row.problem
        for at, edit in enumerate(edits[:MOST_MENDS]):
            words = plain(edit.name)
            tip = tr("{edit}; undo takes it back", edit=words)
            yield Verb(f"problems.mend.{at}", f"{words[:1].upper()}{words[1:]}", partial(self._mend, edit), tip)
        if verbs.endpoint_of(problem) or verbs.server_of(document, problem):
            words, tip = (tr("Places..."), _PLACES_TIP) if _is_placeless(problem) else (tr("Trust..."), _TRUST_TIP)
            yield Verb("problems.trust", words, self._ask_trust, tr(tip))
        if row.about:
            tip = tr("Show {place} (Enter in the list)", place=row.about)
            yield Verb("problems.go", tr("Go there"), self._go, tip, "Enter", tr("Show {place}", place=row.about))
        else:
            yield Verb("", "", self._go, keys="Enter")
        tip, can = tr("Show its line of the policy file (Ctrl+Enter in the list)"), problem.place is not None
        yield Verb("problems.line", tr("Show in the file"), self._show_line, tip, "Ctrl+Enter", can=can)

    def _tell_whole(self) -> None:
        problem, heading, self._mends = self.problem, self.heading, ()
        shown = problem or (heading.problem if heading is not None else None)
        self.whole.setText(problem_words(shown) if shown is not None else "")
        self.whole.setVisible(shown is not None)
        self._foot.setVisible(self.list.current is not None)
        tasks = self._context.tasks
        if not self._context.document.is_open:
            return
        if problem is not None and not _is_placeless(problem):
            tasks.start(self._find_mends(problem), "problems.mends", replace=True)
        elif heading is not None:
            tasks.start(self._find_together(heading), "problems.mends", replace=True)

    def page_shown(self) -> None:
        """Work out what can be mended, once somebody looks."""
        if self._context.document.is_open:
            self._context.tasks.start(self._find_fixes(), "problems.fixes", replace=True)

    async def _find_fixes(self) -> None:
        """Find which of the problems an edit mends; places are accepted where they are drawn."""
        asked = tuple(row.problem for row in self.model.every if not _is_placeless(row.problem))[:MOST_FIXED]
        if all(row.mends for row in self.model.every) or not asked:
            return
        found = await self._context.deriver.derive_in_pieces(names_of_mends, _ignore, asked)
        if found is not None and any(found):
            self.model.show_mends(dict(zip(asked, found, strict=True)))

    async def _find_mends(self, problem: Problem) -> None:
        edits = await self._context.deriver.derive(mends_of, problem)
        if edits is not None and self.problem == problem:
            self._show_mends(edits)

    async def _find_together(self, heading: ProblemRow) -> None:
        problems = self._mendable(heading)
        edits = await self._context.deriver.derive(mends_of_all, problems)
        if edits and (now := self.heading) is not None and self._mendable(now) == problems:
            self._show_mends(edits)
            more = [tr("and {count} more", count=f"{len(edits) - _NAMED:,}")] if len(edits) > _NAMED else []
            self.whole.setText("\n".join([*(edit.name for edit in edits[:_NAMED]), *more]))
            self.whole.setVisible(True)

    def _mendable(self, heading: ProblemRow) -> Sequence[Problem]:
        """The problems below a heading, but for places: these are accepted where they are drawn."""
        return [one for one in self.model.below(heading) if not _is_placeless(one)]

    def _show_mends(self, edits: tuple[Edit, ...]) -> None:
        self._mends = edits
        self.list.tell()

    def _mend_all(self) -> None:
        edits = self._mends
        self._show_mends(())
        verbs.mend_all(self._context.document, edits)

    def _mend(self, edit: Edit) -> None:
        self._show_mends(())
        verbs.mend(self._context.document, edit)

    def _lay_out(self) -> None:
        self.search.setMinimumWidth(220)
        self.header.add_control(self.search)
        self.header.add_control(self.reload)
        self.whole.setMargin(current_look().tokens.space_2)
        button = self.list.button
        buttons = row_of(
            button("problems.mend.all"),
            *(button(f"problems.mend.{at}") for at in range(MOST_MENDS)),
            stretch(),
            button("problems.trust", "lock-open"),
            button("problems.go", "arrow-right"),
            button("problems.line", "file-code"),
            space=2,
            margins=(2, 0, 2, 2),
        )
        self._foot = holding(column_of(self.whole, buttons))
        column_of(self.header, stretch(self.list), self._foot, into=self)
        FootBars(self.list, self.bar, views=(self.view,))

    def focus_search(self) -> None:
        """Go into the filter."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def _refresh(self, _why: object = None) -> None:
        document = self._context.document
        means = tr("no call runs") if document.failure is not None else ""
        if document.alarm is not None:
            means = tr("the last good file holds")
        self.model.set_problems(document.problems, partial(place_of_problem, document), means)
        self.view.setColumnHidden(FIX, not document.is_open)
        if document.is_open and self.isVisible():
            self._context.tasks.start(self._find_fixes(), "problems.fixes", replace=True)
        self.view.setColumnHidden(MEANS, not any(row.means for row in self.model.every))
        self.view.setColumnHidden(ABOUT, not any(row.about for row in self.model.every))
        errors, warnings = self.model.counts
        words = ", ".join(filter(None, (_count_words(errors, is_error=True), _count_words(warnings, is_error=False))))
        self.header.set_note(words)
        self.empty.set_state("shield-check", tr("No problems"), self._scope_words())
        self.list.show_view(bool(words))
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

    def _scope_words(self) -> str:
        """Words for what was looked at where nothing is wrong."""
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
        """The table; without a problem the filter."""
        return self.view if self.list.currentWidget() is self.view else self.search

    def _click(self, index: QModelIndex) -> None:
        heading = self.heading
        if heading is not None and not (index.column() == FIX and heading.mends):
            self._fold()
        elif index.column() == FIX and self.list.current is not None and self.list.current.mends:
            self._context.tasks.start(self._fix(), "problems.mends", replace=True)
        elif index.column() == PLACE:
            self._show_line()
        else:
            self._go()

    async def _fix(self) -> None:
        """Mend the current problem where only one edit does; else go to the buttons that say what they do."""
        if (problem := self.problem) is not None:
            await self._find_mends(problem)
            if problem == self.problem and len(self._mends) == 1:
                self._mend(self._mends[0])
                return
        elif (heading := self.heading) is not None:
            await self._find_together(heading)
        name = "problems.mend.0" if self.problem is not None else "problems.mend.all"
        button = self.findChild(QPushButton, name)
        if button is not None and button.isVisible():
            button.setFocus(Qt.FocusReason.OtherFocusReason)

    def _fold(self) -> None:
        """Open what is below the current heading, or fold it."""
        if (heading := self.heading) is not None:
            self.model.turn(heading)

    def _go(self) -> None:
        """Show where the current problem is looked at, as the policy is now."""
        problem = self.problem
        place = None if problem is None else place_of_problem(self._context.document, problem)
        if place is not None:
            self._context.navigator.go_to_rule(place)

    def _show_line(self) -> None:
        if self.problem is not None and self.problem.place is not None:
            self._context.navigator.go_to_line(self.problem.place.line)

    def _ask_trust(self) -> None:
        problem = self.problem
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


def _ignore(_progress: object) -> None:
    """Nobody looks at how far it is."""
