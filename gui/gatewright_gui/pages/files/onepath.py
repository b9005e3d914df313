"""The path that is spoken of on the Files page: chosen in the folder or typed; its level, its rule, its block.

It decides no level and reads nothing.
"""

from functools import partial

from PySide6.QtCore import QObject
from shiboken6 import isValid

from gatewright.base.errors import GatewrightError
from gatewright.policy.permission import Permission
from gatewright_gui.pages.files.blocks import Blocks
from gatewright_gui.pages.files.decided import DecidedPanel
from gatewright_gui.pages.files.folder import FolderPanel
from gatewright_gui.pages.files.rules import RulesPanel
from gatewright_gui.pages.files.shown import Shown
from gatewright_gui.pages.page import PageContext
from gatewright_gui.session.files import inside, pattern_of
from gatewright_gui.session.filestate import FileStanding, Standings
from gatewright_gui.session.pathmeaning import meaning_of
from gatewright_gui.session.verbs import sources

_COMPLETE = "files.complete"


class OnePath(QObject):
    """Between the tree, the rules, and the panel that says what decides."""

    def __init__(
        self,
        context: PageContext,
        shown: Shown,
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

    def show(self, path: str | None) -> None:
        """Say what decides a path, and mark its rule."""
        self._path = path
        level = self._shown.told_level(path) if path is not None else None
        source = self._shown.source
        meaning = None
        if level is not None and source is not None:
            meaning = meaning_of(self._context.document, source, level)
        of_folder = self._of_folder(path) if path is not None and path.endswith("/") else ""
        self._decided.show_level(level, self._standing(path), meaning, of_folder)
        row = level.index if level is not None else None
        if level is not None and level.is_default:
            row = self._rules.model.default_row
        self._rules.show_deciding(row)

    def _of_folder(self, path: str) -> str:
        """What the files of a folder have, and the folder itself, where that is another level than a new file gets."""
        own, told = self._shown.seen_level(path), self._shown.told_level(path)
        below = self._shown.tree_model.below(path)
        said = [below.sentence] if below is not None else []
        if own is not None and told is not None and own.permission is not told.permission:
            said.append(f"the folder itself is {own.permission} ({own.rule_word})")
        return "; ".join(said)

    def show_again(self) -> None:
        """What is said of it may be otherwise now."""
        self.show(self._path)

    def show_standings(self, standings: Standings) -> None:
        """How files and their blocks stand to each other."""
        self._shown.tree_model.set_standings(standings)
        count, open_conflicts = len(standings.files), standings.open_conflicts
        more = "more than " if standings.truncated else ""
        told = f"{more}{count:,} block{'' if count == 1 else 's'}" if count else ""
        conflicts = f", {open_conflicts:,} conflict{'' if open_conflicts == 1 else 's'}" if open_conflicts else ""
        self._folder.set_note(f"{told}{conflicts}")
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
        level = self._shown.told_level(path) if path is not None else None
        if level is None:
            return
        if level.index is None and not level.is_default:
            self._context.document.say("info", f"`{level.path}`: {level.sentence}")
            return
        self._rules.go_to(self._rules.model.default_row if level.index is None else level.index)

    def _rule_of_shown(self) -> None:
        self._go_to_rule(self._path)

    def _give(self, path: str, level: object) -> None:
        source = self._shown.source
        if source is not None and isinstance(level, Permission):
            at = self._shown.level(inside(path)).index
            sources.give_level(self._context.document, source.source_id, path, level, at)

    def _standing(self, path: str | None) -> FileStanding | None:
        found = self._shown.tree_model.standing_of(path) if path else None
        return found if isinstance(found, FileStanding) else None

    def _reconcile(self, strategy: str) -> None:
        source_id = self._shown.source_id
        if source_id is not None and self._path is not None:
            self._blocks.reconcile(source_id, self._path, strategy, partial(self._standing, self._path))

    # names that complete what is typed

    def _name_folder(self, relative: str) -> None:
        source_id = self._shown.source_id
        if source_id is not None:
            self._context.tasks.start(self._names_of(source_id, relative, self._turn), _COMPLETE, replace=True)

    async def _names_of(self, source_id: str, relative: str, turn: int) -> None:
        try:
            listing = await self._shown.folder.read(source_id, relative)
        except GatewrightError:
            names: tuple[str, ...] = ()  # there is no such folder: nothing to complete, and no fault of who types
        else:
            names = tuple(f"{one.name}/" if one.is_folder else one.name for one in listing.entries)
        if isValid(self) and turn == self._turn:
            self._decided.field.set_names(relative, names)

    def _connect(self) -> None:
        folder, decided = self._folder, self._decided
        self._shown.tree_model.rearranged.connect(self._keep_choice)
        self._blocks.found.connect(self.show_standings)
        folder.path_chosen.connect(self._choose)
        folder.rule_asked.connect(self._go_to_rule)
        folder.level_asked.connect(self._give)
        decided.block.asked.connect(self._reconcile)
        decided.tried.connect(self._try)
        decided.rule_asked.connect(self._rule_of_shown)
        decided.field.folder_wanted.connect(self._name_folder)
        decided.field.results_requested.connect(folder.tree.setFocus)
        decided.field.leave_requested.connect(folder.tree.setFocus)
