"""The levels explained: what each lets an agent do, in a window that goes away by itself."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QAbstractItemView, QDialog, QHeaderView, QPushButton, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import Action, Permission, verdict_for
from gatewright_gui.pages.access.files.level import LEVELS, draw_chip, draw_ground, rect_of
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import aligned, column_of, named
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget import TableView
from gatewright_gui.qt.widget.chip import VERDICT_ICONS, VERDICT_WORDS
from gatewright_gui.qt.widget.item_view import Delegate
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.verdict import permission_words

_WIDTH = 880
_ASK = mark(
    "Ask first: the call waits until a person answers it; of a call that you make in Try that is you."
    " Changes ask and ask to change do the same: partner and human are two names for one level in policy files."
)
_WHERE = mark(
    "Levels hold in the folders of sources: for the file and block tools, and for any other tool where an argument is a"
    " path into such a folder. What a program does beside its arguments no level sees. In roots that lie in no source"
    " there are no levels: FsRead and FsWrite of the agents decide there."
)
_APPEND = mark(
    "Append is also making a new file, and saving one that only grew. Delete is deleting. Whatever else changes a file"
    " is an overwrite."
)
_ORDER = mark("The first rule that matches a path gives its level; what no rule matches gets the default.")
_ACTIONS = tuple(Action)
_MEANING = len(_ACTIONS) + 1


class _LevelTable(RowModel[Permission]):
    """A row for each level, the strictest first: what it says to each action, and what that means."""

    headers = (mark("Level"), mark("Read"), mark("Append"), mark("Overwrite"), mark("Delete"), mark("What it allows"))

    def text(self, row: Permission, column: int, /) -> str:
        if column == 0:
            return permission_words(row)
        return LEVELS[row].meaning if column == _MEANING else tr(verdict_for(row, _ACTIONS[column - 1]).words)

    def tip(self, row: Permission, column: int, /) -> str:
        return self.text(row, column) if column else LEVELS[row].tip

    def spoken(self, row: Permission, column: int, /) -> str:
        return f"{permission_words(row)}, {tr(self.headers[column])}: {self.text(row, column)}"


class _Cells(Delegate):
    """Chips for levels and verdicts: a word and an icon, never colour alone."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """A chip, or words."""
        if index.column() == _MEANING:
            super().paint(painter, option, index)
            return
        draw_ground(painter, option)
        if index.column() == 0:
            look = LEVELS[index.data(ROW)]
            draw_chip(painter, rect_of(option), str(index.data()), look.icon, look.role)
        else:
            name = verdict_for(index.data(ROW), _ACTIONS[index.column() - 1]).value
            draw_chip(painter, rect_of(option), tr(VERDICT_WORDS[name]), VERDICT_ICONS[name], name)


class LevelHelp(QDialog):
    """Escape, Return, or a click elsewhere closes it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        named(self, "files.levelhelp", spoken=tr("What the levels mean"))
        self.setWindowTitle(tr("What the levels mean"))
        table = self.table = named(TableView(tr("What each level lets an agent do")), "files.levelhelp.table")
        table.setModel(_LevelTable(table, LEVELS))
        table.setItemDelegate(_Cells(table))
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        header = table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        table.setColumnWidth(0, 112)
        for column in range(1, _MEANING):
            table.setColumnWidth(column, max(84, header.sectionSizeHint(column)))
        table.setFixedHeight(header.sizeHint().height() + len(LEVELS) * current_look().tokens.row_height + 4)
        close = named(QPushButton(tr("Close")), "files.levelhelp.close")
        close.setDefault(True)
        close.clicked.connect(self.accept)
        notes = [named(Label(tr(words), wraps=True), kind="muted") for words in (_ASK, _APPEND, _ORDER, _WHERE)]
        self._column = column_of(
            named(Label(tr("What the levels mean")), kind="heading"),
            self.table,
            *notes,
            aligned(close, Qt.AlignmentFlag.AlignRight),
            into=self,
            space=2,
            margins=(4, 3),
        )
        self.resize(_WIDTH, self.sizeHint().height())

    def show_at(self, under: QWidget) -> None:
        """Below a control, and inside its window."""
        window = under.window()
        self.setFixedWidth(min(_WIDTH, window.width() - 16))
        self.setFixedHeight(self._column.totalHeightForWidth(self.width()))
        at = under.mapToGlobal(QPoint(under.width() - self.width(), under.height() + 2))
        corner = window.mapToGlobal(QPoint(8, 8))
        end = window.mapToGlobal(QPoint(window.width() - self.width() - 8, window.height() - self.height() - 8))
        at.setX(max(corner.x(), min(at.x(), end.x())))
        at.setY(max(corner.y(), min(at.y(), end.y())))
        self.move(at)
        self.show()
        self.table.setFocus(Qt.FocusReason.PopupFocusReason)
