"""A dialog over the files that a call may name, and no others. It does not look at the disk."""

from collections.abc import Iterator

from PySide6.QtCore import QModelIndex, QSortFilterProxyModel, Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import ElidedLabel, EmptyState, SearchField, TreeView
from gatewright_gui.session.callpaths import FileChoice, FileChoices

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
        self.setObjectName("console.browse")
        self.setWindowTitle("Choose a file")
        self.setAccessibleName("Choose a file")
        self.choice: FileChoice | None = None
        self._model = _tree_of(choices)
        self._shown = QSortFilterProxyModel(self)
        self._shown.setSourceModel(self._model)
        self._shown.setRecursiveFilteringEnabled(True)
        self._shown.setFilterRole(_PATH)
        self._shown.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.search = SearchField("Filter the files that the agent may see")
        self.search.setObjectName("console.browse.search")
        self.view = TreeView("Files that the agent may see")
        self.view.setObjectName("console.browse.files")
        self.view.setModel(self._shown)
        self.view.setHeaderHidden(True)
        self.choose_button = QPushButton("Choose")
        self.choose_button.setObjectName("console.browse.choose")
        self.choose_button.setProperty("kind", "primary")
        self.choose_button.setDefault(True)
        self.cancel_button = QPushButton("Cancel")
        self._lay_out(choices)
        self._connect()
        self._begin_at(chosen)

    def _lay_out(self, choices: FileChoices) -> None:
        tokens = current_look().tokens
        self.resize(*SIZE)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_4, tokens.space_4, tokens.space_4, tokens.space_4)
        column.setSpacing(tokens.space_2)
        column.addWidget(self.search)
        column.addWidget(self.view, 1)
        if not choices.rows:
            self.view.hide()
            column.addWidget(EmptyState("folder", "No files", "The agent may see no file that this tool could name"), 1)
        if choices.is_cut:
            column.addWidget(ElidedLabel(f"the first {len(choices.rows):,}; type any other path", role="muted"))
        row = QHBoxLayout()
        row.setSpacing(tokens.space_2)
        row.addStretch(1)
        row.addWidget(self.choose_button)
        row.addWidget(self.cancel_button)
        column.addLayout(row)

    def _connect(self) -> None:
        self.search.search_changed.connect(self._filter)
        self.search.results_requested.connect(self.view.setFocus)
        self.search.leave_requested.connect(self.reject)
        self.view.doubleClicked.connect(self._choose_at)
        self.view.selectionModel().currentChanged.connect(self._tell)
        self.choose_button.clicked.connect(self._choose)
        self.cancel_button.clicked.connect(self.reject)

    def _begin_at(self, chosen: str) -> None:
        found = self._model.match(
            self._model.index(0, 0),
            _PATH,
            chosen,
            1,
            Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchRecursive,
        )
        index = self._shown.mapFromSource(found[0]) if found and chosen else self._shown.index(0, 0)
        self.view.setCurrentIndex(index)
        self.view.scrollTo(index)
        self._tell()
        self.search.setFocus()

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
        _held(model, nodes, row.place, row.path.rpartition("/")[0]).appendRow(_item_of(nodes, row))
    return model


def _held(
    model: QStandardItemModel, nodes: dict[tuple[str, str], QStandardItem], place: str, folder: str
) -> QStandardItem:
    found = nodes.get((place, folder))
    if found is not None:
        return found
    if not folder:
        return model.invisibleRootItem()
    made = nodes[(place, folder)] = _item(folder.rpartition("/")[2], "folder", None)
    _held(model, nodes, place, folder.rpartition("/")[0]).appendRow(made)
    return made


def _item_of(nodes: dict[tuple[str, str], QStandardItem], row: FileChoice) -> QStandardItem:
    item = _item(row.path.rpartition("/")[2], "folder" if row.is_folder else "file", row)
    if row.is_folder:
        nodes[(row.place, row.path)] = item
    return item


def _item(text: str, icon: str, choice: FileChoice | None) -> QStandardItem:
    item = QStandardItem(current_look().icon(icon, "accent" if icon == "folder" else "muted"), text)
    item.setEditable(False)
    item.setData(choice, _CHOICE)
    item.setData(choice.path if choice is not None else "", _PATH)
    if choice is None:
        item.setSelectable(True)
    return item
