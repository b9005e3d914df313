"""Which arguments of a stranger's tool are paths on disk, and what is done there: as found, or as the operator says."""

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from gatewright.workspace.api import PathArgument, PathUse, ToolFacts
from gatewright_gui.pages.access.tools.declaration import CONFIDENCE
from gatewright_gui.pages.access.tools.declare_dialog import DeclarationDialog, declaration_list
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.table_model import RowModel
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs import operations as verbs

SIZE = (560, 420)
AS_FOUND = "found"
WORDS = {
    PathUse.READ: mark("read"),
    PathUse.WRITE: mark("written"),
    PathUse.DELETE: mark("deleted"),
    PathUse.NONE: mark("no path"),
}
CHOICES = {
    AS_FOUND: mark("As found"),
    PathUse.READ.value: mark("Read"),
    PathUse.WRITE.value: mark("Write"),
    PathUse.DELETE.value: mark("Delete"),
    PathUse.NONE.value: mark("No path"),
}
KEYS = {
    Qt.Key.Key_F: None,
    Qt.Key.Key_R: PathUse.READ,
    Qt.Key.Key_W: PathUse.WRITE,
    Qt.Key.Key_D: PathUse.DELETE,
    Qt.Key.Key_N: PathUse.NONE,
}
ABOUT = mark(
    "A path that lies in a source takes its level: reading, writing or deleting must be allowed there. "
    "Whole absolute paths in any other argument are judged anyway."
)


class PathListModel(RowModel[str]):
    """The arguments that hold texts, those that look like paths first; `declared` is what would be written."""

    changed = Signal()
    """Another one is declared, or not any more."""

    def __init__(self, facts: ToolFacts, declared: Mapping[str, PathUse], parent: QObject | None = None) -> None:
        found: dict[str, list[PathArgument]] = {}
        for operation in facts.operations:
            for one in operation.paths:
                found.setdefault(one.argument, []).append(one)
        super().__init__(parent, dict.fromkeys((*found, *(facts.texts or ()), *declared)))
        self.declared = dict(declared)
        self._found = found

    def use(self, row: int) -> PathUse | None:
        """The use that is declared of the argument; None: as found."""
        return self.declared.get(self.rows[row])

    def set_use(self, row: int, use: PathUse | None) -> None:
        """Declare it, or leave it as found."""
        argument = self.rows[row]
        if self.use(row) is use:
            return
        if use is None:
            del self.declared[argument]
        else:
            self.declared[argument] = use
        self.dataChanged.emit(self.index(row, 0), self.index(row, 0))
        self.changed.emit()

    def cell(self, row: str, column: int, role: int) -> Any:
        """The argument and what it is, by whom."""
        del column
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole}:
            use = self.declared.get(row)
            said = (
                _discovery_words(self._found.get(row, ())) if use is None else tr("{use}, declared", use=tr(WORDS[use]))
            )
            return f"{row}  ({said})"
        return None


def _discovery_words(paths: Sequence[PathArgument]) -> str:
    """The words of discovery, of several operations together."""
    if not paths:
        return tr("no path, as found")
    uses = dict.fromkeys(tr(WORDS[one.use]) if one.use is not None else tr("as its tier allows") for one in paths)
    what = tr(" or ").join(uses)
    if paths[0].confidence == "high":
        return tr("{uses}, as found", uses=what)
    sure = tr(CONFIDENCE.get(paths[0].confidence, paths[0].confidence))
    return tr("perhaps a path, {uses}: {degree} confidence, not judged as one", uses=what, degree=sure)


class PathsDialog(DeclarationDialog):
    """After it was accepted `declared` holds what was chosen."""

    def __init__(self, parent: QWidget | None, document: Document, facts: ToolFacts) -> None:
        super().__init__(parent, "paths", tr("Paths of {tool}", tool=facts.name), document, facts)
        self._now = dict(verbs.paths_declaration(document.policy, facts.name, facts.major))
        self.model = PathListModel(facts, self._now, self)
        self.view = declaration_list(tr("Arguments"), "paths.arguments")
        self.view.setModel(self.model)
        self.view.installEventFilter(self)
        self.choice = named(Segmented(tr("What is done at the path")), "paths.choice")
        for key, text in CHOICES.items():
            self.choice.add_segment(key, tr(text))
        self.lay_out(
            self.heading_row(),
            named(Label(tr(ABOUT), wraps=True), "paths.about", kind="muted"),
            Label(tr("&Arguments"), buddy=self.view),
            stretch(self.view),
            row_of(self.choice, stretch()),
            self.fault,
        )
        self.view.selectionModel().currentChanged.connect(self._show)
        self.choice.current_changed.connect(self._choose)
        self.model.changed.connect(self._show)
        self.view.setCurrentIndex(self.model.index(0, 0))
        self.view.setFocus()
        self._show()
        self.resize(*SIZE)

    @property
    def declared(self) -> Mapping[str, PathUse]:
        """The declaration that would be written."""
        return self.model.declared

    def refusal(self) -> str:
        """Why what is declared cannot be written."""
        return verbs.paths_refusal(self._document, self._facts.name, self._facts.major, self.declared)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """F, R, W, D and N in the list say what the current argument is."""
        if watched is self.view and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            key = Qt.Key(event.key())
            if key in KEYS and not event.modifiers():
                self._set(KEYS[key])
                return True
        return super().eventFilter(watched, event)

    def _choose(self, chosen: str) -> None:
        self._set(None if chosen == AS_FOUND else PathUse(chosen))

    def _set(self, use: PathUse | None) -> None:
        row = self.view.currentIndex().row()
        if row >= 0:
            self.model.set_use(row, use)

    def _show(self) -> None:
        row = self.view.currentIndex().row()
        self.choice.setEnabled(row >= 0)
        use = self.model.use(row) if row >= 0 else None
        self.choice.set_current(AS_FOUND if use is None else use.value)
        self.allow(is_new=self.declared != self._now)
