"""What is said of a file with a block, and the ways to bring the two into step. It reconciles nothing itself."""

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from gatewright_gui.models.filestate import look_of, sentence_of
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import title_text
from gatewright_gui.qt.widget import CodeView, SectionHeader
from gatewright_gui.qt.widget.icon_label import IconLabel
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.filestate import FileStanding, Reconciled

_WAYS = (
    ("ours", "Keep block", "The block stays as it is; writing it would then replace what is on disk"),
    ("theirs", "Take disk", "The block takes what is on disk; its edits are gone"),
    ("merge", "Merge", "The block gets both changes; where they meet nothing is done"),
    ("ask", "Show both", "What the block and the disk each changed since they were in step"),
)


class ReconcileBar(QWidget):
    """Hidden for a file without a block."""

    asked = Signal(object)
    """A strategy: str."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tokens = current_look().tokens
        self.setObjectName("files.block")
        self._icon = IconLabel("layers", "muted", size=14)
        self._words = Label()
        self._words.setWordWrap(True)
        self.buttons = {strategy: self._button(strategy, word, tip) for strategy, word, tip in _WAYS}
        said = QHBoxLayout()
        said.setSpacing(tokens.space_2)
        said.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        said.addWidget(self._words, 1)
        ways = QHBoxLayout()
        ways.setSpacing(tokens.space_2)
        for button in self.buttons.values():
            ways.addWidget(button)
        ways.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.space_1)
        column.addLayout(said)
        column.addLayout(ways)
        self.hide()

    def show_standing(self, standing: FileStanding | None) -> None:
        """Say how file and block stand to each other; the ways on only where the disk changed."""
        self.setVisible(standing is not None)
        if standing is None:
            return
        look = look_of(standing.state)
        self._icon.set_icon(look.icon, look.role)
        self._words.setText(f"{look.word}: {sentence_of(standing)}")
        self.setAccessibleName(self._words.text())
        for button in self.buttons.values():
            button.setVisible(standing.needs_reconciling and standing.problem is None)

    def _button(self, strategy: str, word: str, tip: str) -> QPushButton:
        button = QPushButton(word)
        button.setObjectName(f"files.{strategy}")
        button.setAccessibleName(word)
        button.setToolTip(tip)
        button.setAutoDefault(False)
        button.clicked.connect(partial(self._ask, strategy))
        return button

    def _ask(self, strategy: str, _checked: bool = False) -> None:
        self.asked.emit(strategy)


class BothDialog(QDialog):
    """What each side changed, side by side."""

    def __init__(self, parent: QWidget | None, told: Reconciled) -> None:
        super().__init__(parent)
        tokens = current_look().tokens
        self.setObjectName("files.both")
        self.setWindowTitle(title_text(f"Block and disk: {told.path}"))
        self.resize(900, 460)
        sides = QHBoxLayout()
        sides.setSpacing(tokens.space_2)
        for title, name, text in (
            ("The block changed", "files.blockdiff", told.block_diff),
            ("The disk changed", "files.diskdiff", told.disk_diff),
        ):
            view = CodeView(title)
            view.setObjectName(name)
            view.set_diff(text) if text else view.set_plain("not known: the text that both began with is not kept")
            side = QVBoxLayout()
            side.setSpacing(0)
            side.addWidget(SectionHeader(title))
            side.addWidget(view, 1)
            sides.addLayout(side)
        why = Label(told.why)
        why.setWordWrap(True)
        why.setProperty("kind", "muted")
        close = QPushButton("Close")
        close.setObjectName("files.closeboth")
        close.setDefault(True)
        close.clicked.connect(self.accept)
        foot = QHBoxLayout()
        foot.addWidget(why, 1)
        foot.addWidget(close)
        column = QVBoxLayout(self)
        column.addLayout(sides, 1)
        column.addLayout(foot)
