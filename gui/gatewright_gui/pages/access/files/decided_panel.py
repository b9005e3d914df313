"""What is said of one path, chosen or typed: its level, what decided it, what it means for operations and agents."""

from collections.abc import Iterable, Mapping
from functools import partial

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import (
    Action,
    Agent,
    GatewrightError,
    OperationFacts,
    Permission,
    Policy,
    Source,
    ToolFacts,
    Verdict,
    all_with_settings,
    frozen,
    names_tool,
    pick_tools,
    sources_reached,
)
from gatewright_gui.pages.access.files.blocks import Blocks, ReconcileBar
from gatewright_gui.pages.access.files.folder_panel import FolderPanel
from gatewright_gui.pages.access.files.level import ACTION_WORDS, mark_of
from gatewright_gui.pages.access.files.path_field import PathField
from gatewright_gui.pages.access.files.rules_panel import RulesPanel
from gatewright_gui.pages.access.files.shown_source import ShownSource
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.widget import Chip, ElidedLabel, SectionHeader, VerdictBadge
from gatewright_gui.qt.widget.flow_layout import FlowLayout
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.document import Document
from gatewright_gui.session.file_state import FileStanding, Standings
from gatewright_gui.session.files import PathLevel, inside, pattern_of
from gatewright_gui.session.verbs import sources
from gatewright_gui.session.verdict import permission_words

TOOL = "file"


@frozen
class PathMeaning:
    """`operations`: by verdict, in the tool's order. `agents`: those that have the source; `of`: how many there are.

    `others`: the others that may come at it by paths on disk.
    """

    operations: Mapping[Verdict, tuple[str, ...]]
    agents: tuple[str, ...]
    of: int
    others: tuple[str, ...] = ()

    @property
    def all_operations(self) -> str:
        """Every operation, a line for each verdict."""
        named = {tr(verdict.words): names for verdict, names in self.operations.items() if names}
        return "\n".join(f"{word}: {', '.join(names)}" for word, names in named.items())

    @property
    def agents_line(self) -> str:
        """The agents that reach the source, in a line."""
        if not self.of:
            return tr("there is no agent yet")
        found = ", ".join(self.others)
        others = tr("by paths on disk it may be reached by {names}", names=found) if found else ""
        return "; ".join(filter(None, (self._having, others)))

    @property
    def _having(self) -> str:
        if not self.agents:
            return tr("no agent has this source")
        count, names = len(self.agents), ", ".join(self.agents)
        if count == 1:
            return tr("{count:,} of {total:,} agents has this source: {names}", count=count, total=self.of, names=names)
        return tr("{count:,} of {total:,} agents have this source: {names}", count=count, total=self.of, names=names)


def meaning_of(document: Document, source: Source, level: PathLevel) -> PathMeaning:
    """The meaning of the level of a path in a source now."""
    facts = next((facts for facts in document.workspace.gate.snapshot().facts if facts.name == TOOL), None)
    policy = document.policy
    groups: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
    for operation in facts.operations if facts is not None else ():
        for verdict, words in _verdict_words(operation, level):
            groups[verdict].append(words)
    operations = {verdict: tuple(words) for verdict, words in groups.items()}
    having = _agents(policy, source)
    others = tuple(
        agent.agent_id
        for agent in policy.agents.values()
        if agent.agent_id not in having and _reaches_by_path(policy, agent, document.catalog, source)
    )
    return PathMeaning(operations, having, len(policy.agents), others)


def _reaches_by_path(policy: Policy, agent: Agent, catalog: Iterable[ToolFacts], source: Source) -> bool:
    """Tell whether the agent lists a tool with arguments that are paths on disk, which may lead into the source."""
    return any(
        source in sources_reached(policy, agent, facts, op)
        for facts in all_with_settings(policy, tuple(pick_tools(catalog, agent.tools).values()))
        if not facts.needs_source and _lists(agent, facts)
        for op in facts.operations
        if not op.labels
    )


def _lists(agent: Agent, facts: ToolFacts) -> bool:
    return agent.tools is None or any(names_tool(name, facts) for name in agent.tools)


def _agents(policy: Policy, source: Source) -> tuple[str, ...]:
    return tuple(agent.agent_id for agent in policy.agents.values() if source in policy.sources_of(agent))


def _verdict_words(operation: OperationFacts, level: PathLevel) -> Iterable[tuple[Verdict, str]]:
    """The verdicts of the level on an operation; two, where it depends on what the operation turns out to do."""
    verdicts = {level.verdict(action): action for action in reversed(operation.actions)}
    if len(verdicts) < 2:
        yield next(iter(verdicts), level.verdict(Action.READ)), operation.name
        return
    for verdict, action in verdicts.items():
        yield verdict, f"{operation.name} ({action})"


_NOTHING = mark("Choose a file or folder above, or type a path.")
_BY_LEVEL = mark("By the level of this path alone: an agent also needs the operation on, and nothing else against it.")
_BY_SOURCE = mark(
    "Without this source an agent reaches its files by tools that name paths on disk, as their levels allow."
)


class DecidedPanel(QWidget):
    """Shows a `PathLevel`; says what is typed."""

    tried = Signal(object)
    """The path that is typed now: str; empty for none."""
    rule_asked = Signal()
    """The row that decides what is shown is to be gone to."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: PathLevel | None = None
        self.field = PathField(tr("Such as drafts/new.md; it need not exist"))
        named(self.field, "files.try", spoken=tr("Try a path"))
        self.field.textChanged.connect(self.tried.emit)
        self.hint = named(ElidedLabel(mono=True, role="muted"), "files.hint")
        self.field.hint_changed.connect(self._show_hint)
        self.rule_button = named(QPushButton(), "files.gotorule", kind="link")
        self.rule_button.clicked.connect(self.rule_asked)
        self.body = named(QWidget(), "files.decided")
        self._path = ElidedLabel(path=True, mono=True)
        self._chip = Chip("", parent=self)
        self._sentence = Label(wraps=True)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.files = named(Label(wraps=True), "files.offolder", kind="muted")
        self.agents = named(ElidedLabel(role="muted"), "files.agents")
        self.block = ReconcileBar()
        self._badges = {action: VerdictBadge("deny") for action in Action}
        self._lay_out()
        self.show_level(None)

    @property
    def shown(self) -> PathLevel | None:
        """The level that is shown."""
        return self._shown

    @property
    def sentence(self) -> str:
        """The words for what decides, and for what the level means."""
        return self._sentence.text()

    def show_level(
        self,
        level: PathLevel | None,
        standing: FileStanding | None = None,
        meaning: PathMeaning | None = None,
        of_folder: str = "",
    ) -> None:
        """Say what is known of a path; None: no path is chosen. `standing`: of a file with a block.

        Of a folder the level is that of a new file in it; `of_folder`: what else is to be known.
        """
        self._shown = level
        self.block.show_standing(standing if level is not None else None)
        for part in (self._chip, self._actions):
            part.setVisible(level is not None)
        self.files.setVisible(level is not None and bool(of_folder))
        self._show_meaning(meaning if level is not None else None)
        decides = level is not None and (level.index is not None or level.is_default)
        self.rule_button.setVisible(decides)
        if level is not None and decides:
            words = tr("Go to the default")
            if not level.is_default:
                words = tr("Go to {rule}", rule=level.rule_word)
            self.rule_button.setText(button_text(words))
            self.rule_button.setAccessibleName(words)
        if level is None:
            self._path.set_text("")
            self._sentence.setText(tr(_NOTHING))
            self.body.setAccessibleName(tr(_NOTHING))
            return
        mark = mark_of(level)
        self._path.set_text(level.path or ".")
        self._chip.set_chip(mark.word, mark.icon, mark.role)
        self._sentence.setText(_whole(level).replace("`", ""))
        self.files.setText(of_folder)
        for action, badge in self._badges.items():
            badge.set_verdict(level.verdict(action).value)
            badge.setAccessibleName(f"{tr(ACTION_WORDS[action])} {badge.text}")
        self.body.setAccessibleName(f"{level.path}: {level.sentence}")

    def _show_meaning(self, meaning: PathMeaning | None) -> None:
        agents = meaning.agents_line if meaning is not None else ""
        self._actions.setToolTip(f"{meaning.all_operations}\n\n{tr(_BY_LEVEL)}" if meaning is not None else "")
        self.agents.set_text(agents, f"{agents}\n\n{tr(_BY_SOURCE)}")
        self.agents.setVisible(bool(agents))

    def _show_hint(self, words: str) -> None:
        self.hint.set_text(words)
        self.hint.setVisible(bool(words))

    def _lay_out(self) -> None:
        self._actions = named(QWidget(), "files.actions")
        flow = FlowLayout(self._actions, spacing=current_look().tokens.space_1)
        flow.setContentsMargins(0, 0, 0, 0)
        for action, badge in self._badges.items():
            word = named(Label(tr(ACTION_WORDS[action])), kind="small")
            flow.addWidget(holding(row_of(word, badge, space=1, margins=(0, 0, 2, 0))))
        column_of(
            row_of(self._chip, stretch(self._path), self.rule_button, space=2),
            self._sentence,
            self.files,
            self._actions,
            self.agents,
            self.block,
            stretch(),
            into=self.body,
            space=2,
        )
        self.hint.hide()
        padded = column_of(self.field, self.hint, self.body, space=2, margins=(2, 0, 2, 2))
        column_of(SectionHeader(tr("What decides a path")), padded, into=self)


def _whole(level: PathLevel) -> str:
    """Return the level and what decided it; of a folder for a new file in it."""
    is_folder = level.path.endswith("/") and not level.is_closed
    return tr("a new file in it: {level}", level=level.sentence) if is_folder else level.sentence


class OnePath(QObject):
    """Between the tree, the rules, and the panel that says what decides."""

    def __init__(
        self,
        context: PageContext,
        shown: ShownSource,
        rules: RulesPanel,
        folder: FolderPanel,
        decided: DecidedPanel,
        blocks: Blocks,
    ) -> None:
        super().__init__(decided)
        self._context, self._shown, self._blocks = context, shown, blocks
        self._rules, self._folder, self._decided = rules, folder, decided
        self._path: str | None = None
        self._turn = 0
        self._connect()

    def start_over(self) -> None:
        """Another source."""
        self._turn += 1
        self._path = None
        self._decided.show_level(None)
        self._decided.field.clear()
        self._decided.field.forget_names()

    @property
    def shown(self) -> str | None:
        """The path that is spoken of."""
        return self._path

    def show(self, path: str | None) -> None:
        """Say what decides a path, and mark its rule."""
        self._path = path
        level = self._shown.level_to_tell(path) if path is not None else None
        source = self._shown.source
        meaning = None
        if level is not None and source is not None:
            meaning = meaning_of(self._context.document, source, level)
        of_folder: list[str] = []
        if path is not None and path.endswith("/"):
            own, below = self._shown.seen_level(path), self._shown.tree_model.below(path)
            of_folder += [below.sentence] if below is not None else []
            if own is not None and level is not None and own.permission is not level.permission:
                of_folder.append(
                    tr(
                        "the folder itself is {level} ({rule})",
                        level=permission_words(own.permission),
                        rule=own.rule_word,
                    )
                )
        self._decided.show_level(level, self._standing(path), meaning, "; ".join(of_folder))
        row = level.index if level is not None else None
        if level is not None and level.is_default:
            row = self._rules.model.default_row
        self._rules.show_deciding(row)

    def show_again(self) -> None:
        """Say it anew: levels, files or blocks may be otherwise now."""
        self.show(self._path)

    def show_standings(self, standings: Standings) -> None:
        """Show how files and their blocks stand to each other."""
        self._shown.tree_model.set_standings(standings)
        count, open_conflicts = len(standings.files), standings.open_conflicts
        blocks = counted(count, "block", "blocks")
        told = [tr("more than {blocks}", blocks=blocks) if standings.truncated else blocks] if count else []
        if open_conflicts:
            told.append(counted(open_conflicts, "conflict", "conflicts"))
        self._folder.set_note(", ".join(told))
        self.show_again()

    def _choose(self, path: str) -> None:
        if self._decided.field.text():
            self._decided.field.clear()
        self.show(path)
        at = self._shown.level(inside(path)).index
        self._rules.suggest(pattern_of(path), self._rules.model.default_row if at is None else at)

    def _try(self, text: str) -> None:
        path = text or self._shown.tree_model.path_at(self._folder.tree.currentIndex())
        self._folder.show_choice(path)
        self.show(path)

    def _keep_choice(self) -> None:
        """Rows came and went: what was chosen stays what is spoken of, in the folder or not."""
        current = self._shown.tree_model.path_at(self._folder.tree.currentIndex())
        if self._path is not None and current != self._path:
            self._folder.show_choice(self._path)

    def _go_to_rule(self, path: str | None) -> None:
        """The row that decides a path gets the keys."""
        level = self._shown.level_to_tell(path) if path is not None else None
        if level is None:
            return
        if level.index is None and not level.is_default:
            self._context.document.say("info", f"`{level.path}`: {level.sentence}")
            return
        self._rules.go_to(self._rules.model.default_row if level.index is None else level.index)

    def _give(self, path: str, level: object) -> None:
        source = self._shown.source
        if source is not None and isinstance(level, Permission):
            at = self._shown.level(inside(path)).index
            rule = None if at is None else source.permission_rules[at]
            sources.give_level(self._context.document, source, path, level, rule)

    def _standing(self, path: str | None) -> FileStanding | None:
        found = self._shown.tree_model.standing_of(path) if path else None
        return found if isinstance(found, FileStanding) else None

    def _reconcile(self, strategy: str) -> None:
        source_id = self._shown.source_id
        if source_id is not None and self._path is not None:
            self._blocks.reconcile(source_id, self._path, strategy, partial(self._standing, self._path))

    # names that complete what is typed

    def _name_folder(self, relative: str) -> None:
        source_id, turn = self._shown.source_id, self._turn
        if source_id is None:
            return

        async def name() -> None:
            try:
                listing = await self._shown.folder.read(source_id, relative)
            except GatewrightError:
                names: tuple[str, ...] = ()  # there is no such folder: nothing to complete, and no fault of who types
            else:
                names = tuple(f"{one.name}/" if one.is_folder else one.name for one in listing.entries)
            if isValid(self) and turn == self._turn:
                self._decided.field.set_names(relative, names)

        self._context.tasks.start(name(), "files.complete", replace=True)

    def _connect(self) -> None:
        folder, decided = self._folder, self._decided
        self._shown.tree_model.rearranged.connect(self._keep_choice)
        self._blocks.found.connect(self.show_standings)
        folder.path_chosen.connect(self._choose)
        folder.rule_asked.connect(self._go_to_rule)
        folder.level_asked.connect(self._give)
        decided.block.asked.connect(self._reconcile)
        decided.tried.connect(self._try)
        decided.rule_asked.connect(lambda: self._go_to_rule(self._path))
        decided.field.folder_wanted.connect(self._name_folder)
        decided.field.results_requested.connect(folder.tree.setFocus)
        decided.field.leave_requested.connect(folder.tree.setFocus)
