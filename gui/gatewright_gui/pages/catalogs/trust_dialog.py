"""Trust is asked for once: exactly what would be started or reached, before anything is."""

from PySide6.QtWidgets import QDialog, QPushButton, QWidget

from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.plaintext import title_text
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.icon_label import IconLabel
from gatewright_gui.qt.widget.label import Label


class TrustDialog(QDialog):
    """Accepted: the server may be started from now on. `words` says what it is, a line each."""

    def __init__(self, parent: QWidget | None, catalog_id: str, words: str, *, is_started: bool) -> None:
        super().__init__(parent)
        title = f"Trust {catalog_id}?"
        named(self, "trust", spoken=title)
        self.setAccessibleDescription(words)
        self.setWindowTitle(title_text(title))
        what = (
            "This command runs with your rights; no policy limits what it does by itself."
            if is_started
            else "Calls go to this address, with what agents put into them."
        )
        told = Label(f"{what} Another command, folder, variable or address is asked about again.")
        told.setWordWrap(True)
        self.code = named(CodeView("What is trusted"), "trust.definition")
        self.code.set_wrapping(True)
        self.code.set_plain(words)
        self.cancel_button = named(QPushButton("Cancel"), "trust.cancel")
        self.accept_button = named(QPushButton("Trust and start"), "trust.accept", kind="primary")
        column_of(
            row_of(IconLabel("shield-alert", "ask", size=24), stretch(told), space=3),
            stretch(self.code),
            row_of(stretch(), self.cancel_button, self.accept_button, space=2),
            into=self,
            space=3,
            margins=4,
        )
        self.cancel_button.setDefault(True)
        self.cancel_button.clicked.connect(self.reject)
        self.accept_button.clicked.connect(self.accept)
        self.resize(640, 340)
        self.cancel_button.setFocus()
