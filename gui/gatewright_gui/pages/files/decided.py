"""What is said of one path: its level, what decided it, what each action may do; and a field to try any path.

It does not know how a level is decided.
"""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from gatewright.policy.permission import Action
from gatewright_gui.models.level import LEVELS, mark_of
from gatewright_gui.pages.files.flow import FlowLayout
from gatewright_gui.pages.files.pathfield import PathField
from gatewright_gui.pages.files.reconcile import ReconcileBar
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.widget import Chip, ElidedLabel, SectionHeader, VerdictBadge
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.files import PathLevel
from gatewright_gui.session.filestate import FileStanding
from gatewright_gui.session.pathmeaning import PathMeaning

_NOTHING = "Choose a file or folder above, or type a path."
_BY_LEVEL = "By the level of this path alone: an agent also needs the operation on, and nothing else against it."
_BY_SOURCE = "An agent without this source gets to none of its files, whatever the levels say."


class DecidedPanel(QWidget):
    """Shows a `PathLevel`; says what is typed."""

    tried = Signal(object)
    """The path that is typed now: str; empty for none."""
    rule_asked = Signal()
    """The row that decides what is shown is to be gone to."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: PathLevel | None = None
        self.field = PathField("Try a path that need not exist, such as drafts/new.md or drafts/")
        self.field.setObjectName("files.try")
        self.field.setAccessibleName("Try a path")
        self.field.textChanged.connect(self._tell)
        self.hint = ElidedLabel(mono=True, role="muted")
        self.hint.setObjectName("files.hint")
        self.field.hint_changed.connect(self._show_hint)
        self.rule_button = QPushButton()
        self.rule_button.setObjectName("files.gotorule")
        self.rule_button.setProperty("kind", "link")
        self.rule_button.clicked.connect(self.rule_asked)
        self.body = QWidget()
        self.body.setObjectName("files.decided")
        self._path = ElidedLabel(path=True, mono=True)
        self._chip = Chip("", parent=self)
        self._sentence = Label()
        self._sentence.setWordWrap(True)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.files = ElidedLabel(role="muted")
        self.files.setObjectName("files.offolder")
        self.operations = ElidedLabel(role="muted")
        self.operations.setObjectName("files.operations")
        self.agents = ElidedLabel(role="muted")
        self.agents.setObjectName("files.agents")
        self.block = ReconcileBar()
        self._badges = {action: VerdictBadge("deny") for action in Action}
        self._lay_out()
        self.show_level(None)

    @property
    def shown(self) -> PathLevel | None:
        """What is shown."""
        return self._shown

    @property
    def sentence(self) -> str:
        """What decides, and what the level means, in words."""
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
            words = f"Go to {'the default' if level.is_default else level.rule_word}"
            self.rule_button.setText(button_text(words))
            self.rule_button.setAccessibleName(words)
        if level is None:
            self._path.set_text("")
            self._sentence.setText(_NOTHING)
            self.body.setAccessibleName(_NOTHING)
            return
        mark = mark_of(level)
        self._path.set_text(level.path or ".")
        self._chip.set_chip(mark.word, mark.icon, mark.role)
        self._sentence.setText(_whole(level))
        self.files.set_text(of_folder)
        for action, badge in self._badges.items():
            badge.set_verdict(level.verdict(action).value)
            badge.setAccessibleName(f"{action} {badge.text}")
        self.body.setAccessibleName(f"{level.path}: {level.sentence}")

    def _show_meaning(self, meaning: PathMeaning | None) -> None:
        operations, agents = (meaning.operations_line, meaning.agents_line) if meaning is not None else ("", "")
        whole = f"{meaning.all_operations}\n\n{_BY_LEVEL}" if meaning is not None else ""
        self.operations.set_text(operations.replace("`", ""), whole)
        self.agents.set_text(agents, f"{agents}\n\n{_BY_SOURCE}")
        self.operations.setVisible(bool(operations))
        self.agents.setVisible(bool(agents))

    def _tell(self, text: str) -> None:
        self.tried.emit(text)

    def _show_hint(self, words: str) -> None:
        self.hint.set_text(words)
        self.hint.setVisible(bool(words))

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        self._actions = QWidget()
        flow = FlowLayout(self._actions, spacing=tokens.space_1)
        flow.setContentsMargins(0, 0, 0, 0)
        for action, badge in self._badges.items():
            flow.addWidget(_named(str(action), badge))
        first = QHBoxLayout()
        first.setSpacing(tokens.space_2)
        first.addWidget(self._chip)
        first.addWidget(self._path, 1)
        first.addWidget(self.rule_button)
        inside = QVBoxLayout(self.body)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.setSpacing(tokens.space_2)
        inside.addLayout(first)
        inside.addWidget(self._sentence)
        inside.addWidget(self.files)
        inside.addWidget(self._actions)
        inside.addWidget(self.operations)
        inside.addWidget(self.agents)
        inside.addWidget(self.block)
        inside.addStretch(1)
        padded = QVBoxLayout()
        padded.setContentsMargins(tokens.space_2, 0, tokens.space_2, tokens.space_2)
        padded.setSpacing(tokens.space_2)
        padded.addWidget(self.field)
        padded.addWidget(self.hint)
        self.hint.hide()
        padded.addWidget(self.body)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(SectionHeader("What decides"))
        column.addLayout(padded)


def _whole(level: PathLevel) -> str:
    """What decided, and what the level means in the words of its help; of a folder for a new file in it."""
    if level.is_closed:
        return level.sentence
    if level.path.endswith("/"):
        return f"a new file in it: {level.sentence}"
    return f"{level.sentence}: {LEVELS[level.permission].explanation}"


def _named(word: str, badge: VerdictBadge) -> QWidget:
    """A badge behind the word that it is about."""
    holder = QWidget()
    label = Label(word)
    label.setProperty("kind", "small")
    row = QHBoxLayout(holder)
    row.setContentsMargins(0, 0, current_look().tokens.space_2, 0)
    row.setSpacing(current_look().tokens.space_1)
    row.addWidget(label)
    row.addWidget(badge)
    return holder
