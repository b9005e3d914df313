"""What a field of the form needs of the form around it, and what the form needs of a field. It knows no field."""

from typing import Protocol

from PySide6.QtCore import QStringListModel
from PySide6.QtWidgets import QWidget

from gatewright_gui.models.callform import CallForm
from gatewright_gui.models.jsonpath import Path
from gatewright_gui.models.placeview import View


class FieldHost(Protocol):
    """The form around the fields."""

    @property
    def form(self) -> CallForm:
        """The arguments."""
        ...

    def typed(self, path: Path, text: str) -> None:
        """A text was typed at a place."""
        ...

    def chosen(self, path: Path, value: object) -> None:
        """A value was chosen at a place; `NOTHING` leaves it out."""
        ...

    def reshaped(self, path: Path) -> None:
        """A place has other parts now: items, keys, another branch, another editor."""
        ...

    def is_open(self, path: Path) -> bool:
        """Whether a group is unfolded."""
        ...

    def set_open(self, path: Path, *, is_open: bool) -> None:
        """Remember that a group is unfolded."""
        ...

    def files_for(self, path: Path) -> QStringListModel | None:
        """The files that can be named at a place; None where no file is named."""
        ...

    def want_files(self) -> None:
        """A field that names a file has the keys."""
        ...

    def browse(self, path: Path) -> None:
        """Let a file be chosen for a place."""
        ...

    def offer_more(self, path: Path, near: QWidget) -> None:
        """Open the menu of a place."""
        ...


class Body(QWidget):
    """What fills a place with parts in."""

    def show_view(self, view: View) -> None:
        """Show what the place holds now."""
        raise NotImplementedError

    def tab_parts(self) -> list[QWidget]:
        """What the Tab key goes through, in order."""
        raise NotImplementedError


def field_name(path: Path, *part: str) -> str:
    """The object name of the field of a place, or of a part of it."""
    return ".".join(["console.form", *map(str, path), *part])
