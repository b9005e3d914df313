"""Labels: plain, with an icon, shortened where there is no room, sentences of the engine, the line above a part."""

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QWidget

from gatewright_gui.qt.layout import keep_room
from gatewright_gui.qt.look import Role, current_look, role_colour
from gatewright_gui.qt.plaintext import LEFT, LONGEST_LINE, label_text, line_text, tip_text
from gatewright_gui.qt.prose import paint_prose, plain
from gatewright_gui.qt.widget.button import WordButton
from gatewright_gui.qt.widget.tight_row import TightRow


class Label(QLabel):
    """Qt's own guesses whether a text is HTML, and then loads what that names."""

    def __init__(
        self, text: str = "", parent: QWidget | None = None, *, wraps: bool = False, buddy: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wraps)
        if buddy is not None:
            self.setBuddy(buddy)
        if text:
            self.setText(text)

    def setText(self, text: str) -> None:  # noqa: N802
        """Show `text`, without what cannot be seen and not endlessly long."""
        super().setText(label_text(text))


class IconLabel(QWidget):
    """An icon of a fixed size, sharp at every scale."""

    def __init__(self, name: str, role: Role = "text", *, size: int = 16, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._role: Role = role
        self.setFixedSize(QSize(size, size))
        current_look().changed.connect(self.update)

    def set_icon(self, name: str, role: Role) -> None:
        """Show another icon."""
        self._name, self._role = name, role
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Draw the icon of the theme that is on."""
        del event
        painter = QPainter(self)
        mode = QIcon.Mode.Normal if self.isEnabled() else QIcon.Mode.Disabled
        current_look().icon(self._name, self._role).paint(painter, self.rect(), mode=mode)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802
        """Redraw when switched on or off."""
        super().changeEvent(event)
        self.update()


class ElidedLabel(QWidget):
    """Takes the width it wants when there is room, and any smaller one otherwise."""

    def __init__(
        self,
        text: str = "",
        *,
        path: bool = False,
        mono: bool = False,
        role: Role = "text",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._text = self._detail = ""
        self._mode = Qt.TextElideMode.ElideMiddle if path else Qt.TextElideMode.ElideRight
        self._role: Role = role
        if mono:
            self.setFont(current_look().mono_font)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        current_look().changed.connect(self.update)
        self.set_text(text)

    @property
    def text(self) -> str:
        """The whole text."""
        return self._text

    @property
    def shown_text(self) -> str:
        """The text that fits; nothing where even that would be cut, as Qt does with a single letter."""
        metrics = self.fontMetrics()
        cut = line_text(metrics, self._text, self.width(), self._mode)
        return cut if metrics.horizontalAdvance(cut) <= self.width() else ""

    def set_text(self, text: str, detail: str = "") -> None:
        """Show another text; line breaks become spaces. ``detail`` stands in the tooltip in its place."""
        self._text, self._detail = label_text(" ".join(text.splitlines()), LONGEST_LINE), tip_text(detail)
        self.setAccessibleName(self._text)
        self.updateGeometry()
        self._refresh()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Room for the whole text."""
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self._text) + 1, metrics.height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Room for a few letters."""
        metrics = self.fontMetrics()
        return QSize(min(metrics.averageCharWidth() * 6, self.sizeHint().width()), metrics.height())

    def resizeEvent(self, event: object) -> None:  # noqa: N802
        """The tooltip holds the whole text only where it is cut."""
        del event
        self._refresh()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Draw what fits."""
        del event
        painter = QPainter(self)
        colour: QColor = role_colour(self._role if self.isEnabled() else "disabled")
        painter.setPen(colour)
        flags = LEFT
        painter.drawText(self.rect(), flags, self.shown_text)

    def _refresh(self) -> None:
        self.setToolTip(self._detail or (self._text if self.shown_text != self._text else ""))
        self.update()


class ProseLine(ElidedLabel):
    """One line, cut at its end. Its name for assistive technology has no backticks."""

    def set_text(self, text: str, detail: str = "") -> None:
        """Show another sentence."""
        super().set_text(text, detail)
        self.setAccessibleName(plain(self.text))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Draw what fits."""
        del event
        painter = QPainter(self)
        painter.setPen(role_colour("muted" if self.isEnabled() else "disabled"))
        paint_prose(painter, self.rect(), self.text)


class SectionHeader(TightRow):
    """Give it controls with `add_control`; they line up at the right. The note gives way to them, then their words do.

    `flush`: without space at the left, for a dialog, which has margins of its own.
    """

    def __init__(
        self,
        title: str,
        note: str = "",
        parent: QWidget | None = None,
        *,
        note_is_path: bool = False,
        flush: bool = False,
    ) -> None:
        super().__init__(parent)
        tokens = current_look().tokens
        self._title = Label()
        self._title.setProperty("kind", "heading")
        self._note = ElidedLabel(path=note_is_path, role="muted")
        self._note.setMinimumWidth(1)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0 if flush else tokens.space_2, tokens.space_1, tokens.space_1, tokens.space_1)
        self._row.setSpacing(tokens.space_2)
        self._row.addWidget(self._title)
        self._row.addWidget(self._note)
        self._row.addStretch(1)
        self.setMinimumHeight(tokens.control_height + tokens.space_2)
        self.set_title(title)
        self.set_note(note)

    @property
    def title(self) -> str:
        """The name of the part."""
        return self._title.text()

    def set_title(self, title: str) -> None:
        """Name the part."""
        self._title.setText(title)
        self.setAccessibleName(title)

    def set_note(self, note: str) -> None:
        """Say a count or a state, such as `41 of 57 on`."""
        self._note.set_text(note)
        self._note.setVisible(bool(note))

    def add_control(self, control: QWidget, *, keeps_room: bool = False) -> None:
        """Put a control at the right, after those that are there; `keeps_room`: also while it is hidden."""
        self._row.addWidget(keep_room(control) if keeps_room else control)
        if isinstance(control, WordButton):
            self.give_way(*self._parts, control.set_brief)
