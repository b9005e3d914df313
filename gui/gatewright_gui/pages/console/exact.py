"""Exactly what the model gets of a call, in a window of its own: as it is sent, as a JSON string. It sends nothing."""

import json

from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import CodeView, Segmented
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.calls import MAX_SHOWN, CallRecord, laid_out


class ExactDialog(QDialog):
    """The text letter by letter; Copy takes all of it, however much is shown."""

    def __init__(self, parent: QWidget | None, record: CallRecord) -> None:
        super().__init__(parent)
        self._text = record.model_text or ""
        self.setObjectName("console.exact.dialog")
        self.setWindowTitle("Exactly what the model gets")
        self.setAccessibleName("Exactly what the model gets")
        self.parts = Segmented("Shown as")
        self.parts.setObjectName("console.exact.as")
        self.parts.add_segment("text", "As sent", tooltip="The text, nothing added and nothing indented")
        self.parts.add_segment(
            "json", "JSON string", tooltip="The same text as it stands in a request, every sign to be seen"
        )
        self.parts.current_changed.connect(self._show)
        self.code = CodeView("What the model gets")
        self.code.setObjectName("console.exact.text")
        self.code.set_wrapping(True)
        self.about = Label(self._about(record))
        self.about.setProperty("kind", "muted")
        self.close_button = QPushButton("Close")
        self.close_button.setObjectName("console.exact.close")
        self.close_button.setDefault(True)
        self.close_button.clicked.connect(self.accept)
        self._lay_out()
        self._show()
        self.resize(720, 480)

    def _about(self, record: CallRecord) -> str:
        what = "an error" if record.is_error or record.output is None else "the result"
        size = len(self._text.encode("utf-8", "replace"))
        cut = f", cut from {record.output_bytes:,} bytes" if record.truncated else ""
        return f"{record.called}: {what}, {len(self._text):,} characters, {size:,} bytes{cut}"

    def _show(self, _part: object = None) -> None:
        shown = self._text[:MAX_SHOWN]
        self.code.set_plain(laid_out(shown if self.parts.current == "text" else json.dumps(shown, ensure_ascii=True)))

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        top = QHBoxLayout()
        top.addWidget(self.about, 1)
        top.addWidget(self.parts)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(self.close_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_3, tokens.space_3, tokens.space_3, tokens.space_3)
        column.setSpacing(tokens.space_2)
        column.addLayout(top)
        column.addWidget(self.code, 1)
        column.addLayout(foot)
