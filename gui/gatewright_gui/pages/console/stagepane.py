"""The stages of a call as a table, and below it the chosen one in full. It runs none."""

from PySide6.QtCore import QModelIndex, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QMenu, QSizePolicy, QVBoxLayout, QWidget

from gatewright_gui.models import stages
from gatewright_gui.models.stages import StageModel
from gatewright_gui.pages.console.delegate import StageDelegate
from gatewright_gui.pages.console.rulemenu import add_rule_ways
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.qt.prose import ProseLabel, plain
from gatewright_gui.qt.widget import IconButton, SectionHeader, TableView

TICK_MS = 100
_ROW = 20
"""Height of a stage, so that all of them are seen at once."""
_FEWEST = 6
"""Stages that are seen however little room there is."""
_MAX_LINES = 4
_WIDE_FROM = 620
_WIDE, _NARROW = (98, 130, 78, 86), (92, 104, 66, 62)
"""Stage, verdict, rule, time."""


class StagePane(QWidget):
    """Enter goes to the rule of the chosen stage; a reason that is too long for its row is told below the table."""

    rule_requested = Signal(object)
    """RuleLink: it is to be shown where it is edited."""
    line_requested = Signal(object)
    """RuleLink: it is to be shown in the file."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = StageModel(self)
        self.view = self._make_view()
        self.detail = ProseLabel()
        self.detail.setObjectName("console.stagedetail")
        self.detail.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        self.detail.setMaximumHeight(_MAX_LINES * self.detail.fontMetrics().lineSpacing() + 4)
        self.copy_button = IconButton("copy", "Copy what the stage found")
        self.copy_button.setObjectName("console.copystage")
        self.copy_button.clicked.connect(self.copy_stage)
        self._lay_out()
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self.model.tick)
        self.model.dataChanged.connect(self._tell)
        self._tell()

    def count_time(self, *, on: bool) -> None:
        """Whether a call is under way, so that the stage at work tells how long it takes."""
        if on:
            self._tick.start()
        else:
            self._tick.stop()

    def copy_stage(self) -> None:
        """Put what the chosen stage found on the clipboard."""
        row = self._row()
        if row >= 0:
            QGuiApplication.clipboard().setText(self.model.text_at(row))

    def forget_choice(self) -> None:
        """Choose no stage."""
        self.view.selectionModel().clear()
        self._tell()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Where there is little room the reason has most of it."""
        super().resizeEvent(event)
        widths = _WIDE if self.width() >= _WIDE_FROM else _NARROW
        for column, width in zip((stages.STAGE, stages.VERDICT, stages.RULE, stages.TIME), widths, strict=True):
            if self.view.columnWidth(column) != width:
                self.view.setColumnWidth(column, width)

    # the chosen stage

    def _row(self) -> int:
        """The stage that was chosen; the one that only has the keys is not."""
        rows = self.view.selectionModel().selectedRows()
        return rows[0].row() if rows else -1

    def _tell(self, *_what: object) -> None:
        row = self._row()
        reason = self.model.reason_at(row) if row >= 0 else ""
        told = f"{stages.STAGE_NAMES[row]}: {reason}" if reason else ""
        if told != self.detail.text():
            self.detail.setText(told)
            self.detail.setToolTip(tip_text(plain(reason)))
        if self._below.isHidden() == bool(reason):
            self._below.setVisible(bool(reason))
            self._limit()

    def _limit(self) -> None:
        """No higher than all stages, and what is told of the chosen one."""
        below = self.detail.maximumHeight() + 8 if not self._below.isHidden() else 0
        head = max(self._head.sizeHint().height(), self._head.minimumHeight())
        self.setMaximumHeight(head + self.view.maximumHeight() + below)

    def _clicked(self, index: QModelIndex) -> None:
        if index.column() == stages.RULE:
            self._go_to_rule(index)

    def _go_to_rule(self, index: QModelIndex) -> None:
        rule = self.model.rule_at(index.row())
        if rule is not None:
            self.rule_requested.emit(rule)

    def _open_menu(self, at: QPoint) -> None:
        index = self.view.indexAt(at)
        if not index.isValid():
            return
        self.view.setCurrentIndex(index)
        rule = self.model.rule_at(index.row())
        menu = QMenu(self)
        menu.setObjectName("console.stagemenu")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        add_rule_ways(menu, rule, self.rule_requested.emit, self.line_requested.emit)
        menu.addAction("Copy what the stage found").triggered.connect(self.copy_stage)
        menu.popup(self.view.viewport().mapToGlobal(at))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Escape closes what is told of the chosen stage."""
        if event.key() == Qt.Key.Key_Escape and self._below.isVisible():
            self.forget_choice()
        else:
            super().keyPressEvent(event)

    # the parts

    def _make_view(self) -> TableView:
        view = TableView("Stages")
        view.setObjectName("console.stages")
        view.setModel(self.model)
        view.setItemDelegate(StageDelegate(view))
        view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        view.setTabKeyNavigation(False)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._open_menu)
        header = view.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(stages.REASON, header.ResizeMode.Stretch)
        view.verticalHeader().setMinimumSectionSize(_ROW)
        view.verticalHeader().setDefaultSectionSize(_ROW)
        view.clicked.connect(self._clicked)
        view.activated.connect(self._go_to_rule)
        view.selectionModel().selectionChanged.connect(self._tell)
        rows = self.model.rowCount() * view.verticalHeader().defaultSectionSize()
        view.setMaximumHeight(rows + header.sizeHint().height() + 4)
        view.setMinimumHeight(_FEWEST * _ROW + header.sizeHint().height())
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        return view

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        self._below = QWidget()
        below = QHBoxLayout(self._below)
        below.setContentsMargins(tokens.space_2, tokens.space_1, tokens.space_1, 0)
        below.addWidget(self.detail, 1)
        below.addWidget(self.copy_button, 0, Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self._head = SectionHeader("Stages")
        column.addWidget(self._head)
        column.addWidget(self.view, 1)
        column.addWidget(self._below)
        self._limit()
