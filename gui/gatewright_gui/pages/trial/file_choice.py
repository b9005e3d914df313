"""The files that a call may name: listed beside the window, offered to the form, chosen in a dialog."""

import asyncio
from collections.abc import Callable, Iterator
from typing import cast

from PySide6.QtCore import QModelIndex, QObject, QSortFilterProxyModel, Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QDialog, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.page import PageContext
from gatewright_gui.pages.trial.form import FormPane
from gatewright_gui.pages.trial.json_value import Path
from gatewright_gui.qt.dialog import run_dialog
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import ElidedLabel, EmptyState, SearchField, TreeView
from gatewright_gui.qt.widget.button import text_button
from gatewright_gui.session.call_paths import FileChoice, FileChoices, file_choices
from gatewright_gui.session.calls import ShownTool

SIZE = (560, 460)
_CHOICE = Qt.ItemDataRole.UserRole
_PATH = _CHOICE + 1


class BrowseDialog(QDialog):
    """After it was accepted `choice` holds what was chosen: a file, or with `takes_folders` a folder as well."""

    def __init__(
        self, parent: QWidget | None, choices: FileChoices, chosen: str, *, takes_folders: bool = False
    ) -> None:
        super().__init__(parent)
        self._takes_folders = takes_folders
        named(self, "console.browse", spoken=tr("Choose a file")).setWindowTitle(tr("Choose a file"))
        self.choice: FileChoice | None = None
        self._model = _tree_of(choices)
        self._shown = QSortFilterProxyModel(self)
        self._shown.setSourceModel(self._model)
        self._shown.setRecursiveFilteringEnabled(True)
        self._shown.setFilterRole(_PATH)
        self._shown.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.search = named(SearchField(tr("Filter the files that the agent may see")), "console.browse.search")
        self.view = named(TreeView(tr("Files that the agent may see")), "console.browse.files")
        self.view.setModel(self._shown)
        self.view.setHeaderHidden(True)
        self.choose_button = text_button(tr("Choose"), "console.browse.choose", self._choose, kind="primary")
        self.choose_button.setDefault(True)
        self.cancel_button = text_button(tr("Cancel"), "console.browse.cancel", self.reject)
        self._lay_out(choices)
        self.search.search_changed.connect(self._filter)
        self.search.results_requested.connect(self.view.setFocus)
        self.search.leave_requested.connect(self.reject)
        self.view.doubleClicked.connect(self._choose_at)
        self.view.selectionModel().currentChanged.connect(self._tell)
        match = Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchRecursive
        found = self._model.match(self._model.index(0, 0), _PATH, chosen, 1, match)
        index = self._shown.mapFromSource(found[0]) if found and chosen else self._shown.index(0, 0)
        self.view.setCurrentIndex(index)
        self.view.scrollTo(index)
        self._tell()
        self.search.setFocus()

    def _lay_out(self, choices: FileChoices) -> None:
        self.resize(*SIZE)
        none = EmptyState("folder", tr("No files"), tr("The agent may see no file that this tool could name"))
        none.setHidden(bool(choices.rows))
        self.view.setHidden(not choices.rows)
        more = ElidedLabel(tr("the first {count:,}; type any other path", count=len(choices.rows)), role="muted")
        more.setVisible(choices.is_cut)
        foot = row_of(stretch(), self.choose_button, self.cancel_button, space=2)
        column_of(self.search, stretch(self.view), stretch(none), more, foot, into=self, space=2, margins=4)

    def _filter(self, text: object) -> None:
        self._shown.setFilterFixedString(str(text))
        if text:
            self.view.expandAll()
            found = self._first(str(text).casefold())
            self.view.setCurrentIndex(found)
            self.view.scrollTo(found)
        self._tell()

    def _first(self, text: str) -> QModelIndex:
        """The first that can be chosen whose name holds the text, else whose path does."""
        found = QModelIndex()
        for index in self._indexes(QModelIndex()):
            choice = self._choice_at(index)
            if choice is not None and text in choice.path.rpartition("/")[2].casefold():
                return index
            if choice is not None and text in choice.path.casefold() and not found.isValid():
                found = index
        return found

    def _indexes(self, parent: QModelIndex) -> Iterator[QModelIndex]:
        for row in range(self._shown.rowCount(parent)):
            index = self._shown.index(row, 0, parent)
            yield index
            yield from self._indexes(index)

    def _tell(self) -> None:
        self.choose_button.setEnabled(self._choice_at(self.view.currentIndex()) is not None)

    def _choice_at(self, index: QModelIndex) -> FileChoice | None:
        found = self._shown.data(index, _CHOICE)
        can = isinstance(found, FileChoice) and (self._takes_folders or not found.is_folder)
        return found if can else None

    def _choose(self) -> None:
        self._choose_at(self.view.currentIndex())

    def _choose_at(self, index: QModelIndex) -> None:
        self.choice = self._choice_at(index)
        if self.choice is not None:
            self.accept()


def _tree_of(choices: FileChoices) -> QStandardItemModel:
    """Places, folders and files; with one place its name is left out."""
    model = QStandardItemModel()
    places = sorted({row.place for row in choices.rows})
    has_roots = all(row.path.split("/", 1)[0] == row.place for row in choices.rows)
    nodes: dict[tuple[str, str], QStandardItem] = {}
    if len(places) > 1 and not has_roots:
        for place in places:
            nodes[(place, "")] = _item(place, "layers", None)
            model.appendRow(nodes[(place, "")])
    for row in sorted(choices.rows, key=lambda row: (row.place, not row.is_folder, row.path)):
        folder, _, name = row.path.rpartition("/")
        item = _item(name, "folder" if row.is_folder else "file", row)
        if row.is_folder:
            nodes[(row.place, row.path)] = item
        _folder_item(model, nodes, row.place, folder).appendRow(item)
    return model


def _folder_item(
    model: QStandardItemModel, nodes: dict[tuple[str, str], QStandardItem], place: str, folder: str
) -> QStandardItem:
    found = nodes.get((place, folder))
    if found is not None:
        return found
    if not folder:
        return model.invisibleRootItem()
    made = nodes[(place, folder)] = _item(folder.rpartition("/")[2], "folder", None)
    _folder_item(model, nodes, place, folder.rpartition("/")[0]).appendRow(made)
    return made


def _item(text: str, icon: str, choice: FileChoice | None) -> QStandardItem:
    item = QStandardItem(current_look().icon(icon, "accent" if icon == "folder" else "muted"), text)
    item.setEditable(False)
    item.setData(choice, _CHOICE)
    item.setData(choice.path if choice is not None else "", _PATH)
    return item


class FilePick(QObject):
    """Follows the wishes of a form; `called` tells who calls which tool. Files are listed once for each policy."""

    def __init__(
        self, context: PageContext, form: FormPane, called: Callable[[], tuple[str | None, ShownTool | None]]
    ) -> None:
        super().__init__(form)
        self._context, self._form, self._called = context, form, called
        self._files = FileChoices()
        self._listing: asyncio.Task[None] | None = None
        self._listed: tuple[str, str] | None = None
        form.files_wanted.connect(self._list)
        form.browse_requested.connect(self._browse)

    async def examples(self) -> dict[str, str]:
        """By what an argument names - `path` or `label` - something that the chosen operation could be tried with."""
        self._list()
        await self._await_listing()
        _, tool = self._called()
        operation = self._form.operation
        shapes = tool.operations if tool is not None else ()
        changes = not all(shape.is_read_only for shape in shapes if operation is None or shape.name == operation)
        return {"path": self._files.example(operation or "", changes=changes), "label": self._files.label}

    def forget(self) -> None:
        """The policy may be another: list anew when files are wanted."""
        self._listed = None

    def _list(self) -> None:
        agent_id, tool = self._called()
        if agent_id is None or tool is None or self._listed == (agent_id, tool.files):
            return
        self._listed = agent_id, tool.files
        self._listing = self._context.tasks.start(self._read(agent_id, tool), "console.files", replace=True)

    async def _read(self, agent_id: str, tool: ShownTool) -> None:
        files, deriver = tool.files, self._context.deriver
        try:
            found = await deriver.derive(file_choices, agent_id, files)
        except GatewrightError:
            found = FileChoices()
        if found is not None and isValid(self) and self._listed == (agent_id, files):
            self._files = found
            self._form.files.setStringList(list(dict.fromkeys(row.path for row in found.rows)))

    def _browse(self, path: object) -> None:
        self._list()
        self._context.tasks.start(self._choose(cast("Path", path)), "console.browse", replace=True)

    async def _choose(self, path: Path) -> None:
        await self._await_listing()
        chosen = self._form.form.value(path)
        begun = chosen if isinstance(chosen, str) else ""
        dialog = BrowseDialog(cast("QWidget", self._form), self._files, begun, takes_folders=self._takes_folders(path))
        if await run_dialog(dialog) and dialog.choice is not None:
            several = len({row.place for row in self._files.rows}) > 1
            is_asked = "source" in self._form.form.fields(()) and several
            self._form.put_file(path, dialog.choice.path, dialog.choice.place if is_asked else None)

    async def _await_listing(self) -> None:
        while self._listing is not None and not self._listing.done():
            await asyncio.wait([self._listing])

    def _takes_folders(self, path: Path) -> bool:
        """A path that must be named is that of a file, but for operations that reach what is below a folder."""
        form = self._form.form
        shape = form.shape_of_operation()
        return not form.is_needed(str(path[0])) or (shape is not None and "recursive" in shape.takes)
