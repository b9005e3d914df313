"""A few texts are asked for: what is to be added, put in the place of another, noted down."""

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QWidget

from gatewright.workspace.api import frozen
from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.layout import named, stretch
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.text_field import LargeTextEdit


@frozen
class Asked:
    """One text that is asked for; ``is_needed``: it may not be empty."""

    key: str
    words: str
    lines: int = 5
    is_needed: bool = True


class TextDialog(FormDialog):
    """``fault`` says what is wrong with the texts, by key; empty where nothing is."""

    def __init__(
        self,
        parent: QWidget | None,
        title: str,
        asked: Sequence[Asked],
        accept: str,
        fault: Callable[[dict[str, str]], str] = lambda _: "",
    ) -> None:
        super().__init__(parent, "memory_text", title, accept)
        self._asked, self._fault = asked, fault
        self.editors = {
            one.key: named(LargeTextEdit(one.words, lines=one.lines), f"memory_text.{one.key}") for one in asked
        }
        self.fault = named(Label(wraps=True), "memory_text.fault", kind="error")
        parts = [part for one in asked for part in (Label(one.words), stretch(self.editors[one.key], one.lines))]
        self.lay_out(*parts, foot=(stretch(self.fault),))
        self.resize(520, self.sizeHint().height())
        for editor in self.editors.values():
            editor.edited.connect(self._check)
        self._check()

    @property
    def texts(self) -> dict[str, str]:
        """The texts typed, by key."""
        return {key: editor.text for key, editor in self.editors.items()}

    def _check(self) -> None:
        texts = self.texts
        lacks = any(one.is_needed and not texts[one.key] for one in self._asked)
        fault = "" if lacks else self._fault(texts)
        self.fault.setText(fault)
        self.accept_button.setEnabled(not lacks and not fault)
