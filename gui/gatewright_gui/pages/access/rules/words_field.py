"""A field for names, separated by commas, each completed while it is typed."""

from collections.abc import Iterable

from PySide6.QtCore import QStringListModel, Qt
from PySide6.QtWidgets import QCompleter, QLineEdit, QWidget

from gatewright_gui.qt.layout import named


class _LastWord(QCompleter):
    """Completes what stands behind the last comma."""

    def splitPath(self, path: str) -> list[str]:  # noqa: N802
        return [path.rpartition(",")[2].strip()]

    def pathFromIndex(self, index: object) -> str:  # noqa: N802
        field = self.widget()
        before = field.text().rpartition(",")[0] if isinstance(field, QLineEdit) else ""
        word = super().pathFromIndex(index)  # pyright: ignore[reportArgumentType]
        return f"{before}, {word}" if before else word


class WordsField(QLineEdit):
    """Empty: nothing is named, and ``nothing`` says what that means."""

    def __init__(self, name: str, spoken: str, nothing: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        named(self, name, spoken=spoken)
        self.setPlaceholderText(nothing)
        self._known = QStringListModel(self)
        completer = _LastWord(self._known, self)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        self.setCompleter(completer)

    def offer(self, words: Iterable[str]) -> None:
        """Offer what can be named."""
        listed = list(dict.fromkeys(words))
        if listed != self._known.stringList():
            self._known.setStringList(listed)

    @property
    def words(self) -> tuple[str, ...] | None:
        """The words that are named, each once; None where nothing is."""
        found = dict.fromkeys(word for part in self.text().split(",") if (word := part.strip()))
        return tuple(found) or None

    def set_words(self, words: Iterable[str] | None) -> None:
        """Name these."""
        self.setText(", ".join(words or ()))
