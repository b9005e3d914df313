"""Faults of arguments by the schema that the agent is shown, found beside the window, and the line that tells them.

A call with faults can be sent all the same.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from gatewright.workspace.api import (
    ArgumentError,
    JsonRefused,
    JsonValue,
    SchemaChecker,
    SchemaError,
    frozen,
    parse_object,
)
from gatewright_gui.pages.trial.json_places import JsonPlaces, line_and_column, offset_of
from gatewright_gui.pages.trial.json_value import Path, path_of, path_words
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget import IconLabel, ProseLine
from gatewright_gui.session.calls import Missing, ShownTool

MAX_PLACED = 300_000
"""Characters of a text whose parts are looked for; in a longer one a fault has no place."""
_POSITION = re.compile(r"(.*) at line (\d+) column (\d+)")


@frozen
class TextFault:
    """The fault of the letters `start` to `end`; `path` is where it stands in the arguments."""

    start: int
    end: int
    line: int
    column: int
    path: str
    message: str
    is_syntax: bool = False

    def __str__(self) -> str:
        if self.is_syntax:
            return self.message
        place, said = f", `{self.path}`" if self.path else "", self.message[:1].lower() + self.message[1:]
        return f"{tr('line {line}', line=self.line)}:{self.column}{place}: {said}"


@frozen
class PlaceFault:
    """The fault at a place of the arguments."""

    path: Path
    message: str

    def __str__(self) -> str:
        return f"`{path_words(self.path)}`: {self.message}" if self.path else self.message


class ArgumentChecker:
    """One schema, compiled when it is first asked; safe to ask from any thread.

    With `missing`, the arguments of the operation that `selector` names are looked at as the gate does.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        selector: str | None = None,
        missing: Missing | None = None,
        *,
        check_formats: bool = False,
    ) -> None:
        self._schema, self._selector, self._missing = schema, selector, missing
        self._check_formats = check_formats
        self._checker: SchemaChecker | None = None
        self._is_broken = False

    def errors(self, values: Mapping[str, JsonValue]) -> tuple[ArgumentError, ...]:
        """The errors in values; nothing where the schema itself cannot be used."""
        if self._checker is None and not self._is_broken:
            try:
                self._checker = SchemaChecker(dict(self._schema), check_formats=self._check_formats)
            except SchemaError:
                self._is_broken = True
        found = self._checker.errors(dict(values)) if self._checker is not None else ()
        operation = values.get(self._selector) if self._selector is not None else None
        if found or self._missing is None or not isinstance(operation, str):
            return found
        # the schema that is shown may have all operations in one, and cannot say what this one needs
        return tuple(ArgumentError(issue.pointer, issue.message) for issue in self._missing(operation, values))

    def faults(self, values: Mapping[str, JsonValue]) -> tuple[PlaceFault, ...]:
        """The same by places."""
        held = dict(values)
        return tuple(PlaceFault(path_of(held, error.pointer), error.message) for error in self.errors(held))


def checker_of(tool: ShownTool) -> ArgumentChecker:
    """The checker of the arguments of a tool."""
    return ArgumentChecker(tool.schema, tool.operation_field, tool.missing, check_formats=tool.check_formats)


def syntax_faults(text: str) -> tuple[TextFault, ...]:
    """Why a text is not one JSON object, at its place; empty when it is."""
    try:
        parse_object(text)
    except JsonRefused as error:
        return (_syntax_fault(text, error),)
    return ()


def text_faults(text: str, checker: ArgumentChecker | None) -> tuple[TextFault, ...]:
    """The faults of a text, first of its syntax, then by the schema. Takes time for large texts."""
    try:
        values = parse_object(text)
    except JsonRefused as error:
        return (_syntax_fault(text, error),)
    errors = checker.errors(values) if checker is not None else ()
    if not errors:
        return ()
    places = JsonPlaces(text) if len(text) <= MAX_PLACED else None
    return tuple(_fault_at(text, places, values, error) for error in errors)


def _fault_at(text: str, places: JsonPlaces | None, values: dict[str, JsonValue], error: ArgumentError) -> TextFault:
    path = path_of(values, error.pointer)
    if places is None:
        return TextFault(0, 0, 1, 1, path_words(path), error.message)
    place = places.nearest(path)
    is_held = text[place.start : place.start + 1] in {"{", "["}
    start, end = (place.start, place.start + 1) if is_held else (place.start, place.end)
    if is_held and place.key_start >= 0:
        start, end = place.key_start, place.key_end
    return TextFault(start, end, *line_and_column(text, start), path_words(path), error.message)


def _syntax_fault(text: str, error: JsonRefused) -> TextFault:
    said = str(error)
    found = _POSITION.fullmatch(said)
    if found is not None:
        line, column = int(found[2]), int(found[3])
        start = offset_of(text, line, column)
        return TextFault(start, min(start + 1, len(text)), line, column, "", said, is_syntax=True)
    twice = JsonPlaces(text).twice if error.code == "duplicate-key" and len(text) <= MAX_PLACED else []
    if twice:
        path, start, end = twice[0]
        line, column = line_and_column(text, start)
        words = f"{said}: `{path_words(path)}` at line {line} column {column}"
        return TextFault(start, end, line, column, path_words(path), words, is_syntax=True)
    return TextFault(0, 0, 1, 1, "", said, is_syntax=True)


SETTLE_MS = 150
FITS = mark("every field fits")
Fault = PlaceFault | TextFault
Find = Callable[[ArgumentChecker | None], Callable[[], Sequence[Fault]] | None]


class ArgumentCheck(QObject):
    """Looks for faults beside the window once nothing changes any more; without a task owner never.

    `find` gives, for the checker of the tool, the work that is done in another thread with what there is to check now.
    """

    found = Signal(object)
    """Tuple of the faults there are now."""

    def __init__(self, tasks: TaskOwner | None, task: str, find: Find, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks, self._task, self._find = tasks, task, find
        self.checker: ArgumentChecker | None = None
        self._round = 0
        self._settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settle.timeout.connect(self._look)

    def set_tool(self, tool: ShownTool | None) -> None:
        """Check for another tool; None: of one that the agent does not see."""
        self.checker = checker_of(tool) if tool is not None else None
        self.start()

    def start(self) -> None:
        """Something changed: check it in a moment; what is looked for meanwhile counts no more."""
        self._round += 1
        self._settle.start()

    def _look(self) -> None:
        work = self._find(self.checker)
        if work is None or self._tasks is None:
            return
        with suppress(RuntimeError):  # nobody runs the window
            self._tasks.start(self._take(work, self._round), self._task, replace=True)

    async def _take(self, work: Callable[[], Sequence[Fault]], begun: int) -> None:
        faults = await asyncio.to_thread(work)
        if isValid(self) and begun == self._round:
            self.found.emit(tuple(faults))


class FaultLine(QWidget):
    """The line that tells the first fault of the arguments and how many more there are, or that there is none."""

    def __init__(self, name: str, *buttons: QWidget) -> None:
        super().__init__()
        self._icon = IconLabel("circle-check", "allow", size=14)
        self._words = named(ProseLine(), name)
        row_of(self._icon, stretch(self._words), *buttons, into=self, space=2, margins=(2, 1))
        self.show_faults(())

    @property
    def text(self) -> str:
        """The text that it says."""
        return self._words.text

    def show_faults(self, faults: Sequence[Fault], fine: str = FITS, *, is_begun: bool = True) -> None:
        """Say the first of them; `fine`: what is said where there is none. Nothing is wrong before anybody began."""
        if faults and not is_begun:
            self._icon.set_icon("info", "muted")
            self._words.set_text(tr("nothing is filled in yet"))
            return
        first = faults[0] if faults else None
        role = "deny" if isinstance(first, TextFault) and first.is_syntax else "ask" if faults else "allow"
        self._icon.set_icon("circle-alert" if faults else "circle-check", role)
        words = str(first) if faults else tr(fine)
        self._words.set_text(
            tr("{fault}  (and {count} more)", fault=words, count=len(faults) - 1) if faults[1:] else words
        )
