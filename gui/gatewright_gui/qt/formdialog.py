"""The dialog that is filled in and accepted, or cancelled."""

from PySide6.QtWidgets import QDialog, QPushButton, QVBoxLayout, QWidget

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import Part, column_of, named, row_of, stretch
from gatewright_gui.qt.plaintext import title_text
from gatewright_gui.qt.widget.label import Label


class FormDialog(QDialog):
    """Its heading, what is wrong, and the two buttons; a subclass lays out its fields among them."""

    def __init__(self, parent: QWidget | None, name: str, title: str, accept_text: str) -> None:
        super().__init__(parent)
        named(self, name, spoken=title).setWindowTitle(title_text(title))
        self.heading = named(Label(title), kind="heading")
        self.fault = named(Label(wraps=True), f"{name}.fault", kind="error")
        self.fault.hide()
        self.accept_button = named(QPushButton(accept_text), f"{name}.accept", spoken=accept_text, kind="primary")
        self.cancel_button = named(QPushButton(tr("Cancel")), f"{name}.cancel", spoken=tr("Cancel"))
        self.accept_button.setDefault(True)
        self.cancel_button.setAutoDefault(False)
        self.accept_button.clicked.connect(self.accept)
        self.cancel_button.clicked.connect(self.reject)

    def fill(self, *parts: Part, space: int = 2) -> QVBoxLayout:
        """The parts from top to bottom, and below them the buttons."""
        buttons = row_of(stretch(), self.cancel_button, self.accept_button, space=2)
        return column_of(*parts, buttons, into=self, space=space, margins=4)

    def say(self, fault: str) -> None:
        """What is wrong; nothing where it is empty."""
        self.fault.setText(fault.replace("`", ""))
        self.fault.setVisible(bool(fault))
