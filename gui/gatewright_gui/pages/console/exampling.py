"""Fills an example call in, as a form or as JSON: what the operation needs, with files that are there.

It chooses no tool and sends nothing.
"""

from collections.abc import Callable, Mapping

from shiboken6 import isValid

from gatewright.base.errors import JsonRefused
from gatewright.base.jsonvalue import parse_object
from gatewright_gui.pages.console.file_choice import FilePick
from gatewright_gui.pages.console.form import FormPane
from gatewright_gui.pages.console.json_edit import RawJson
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.calls import ShownTool


class Exampling:
    """`raw_of` gives the JSON where that is what is filled in, else None; `called` the tool that is named now."""

    def __init__(
        self,
        tasks: TaskOwner,
        form: FormPane,
        files: FilePick | None,
        raw_of: Callable[[], RawJson | None],
        called: Callable[[], ShownTool | None],
    ) -> None:
        self._tasks, self._form, self._files = tasks, form, files
        self._raw_of, self._called = raw_of, called

    def fill(self, tool: ShownTool) -> None:
        """At once, or as soon as the files are listed."""
        if self._files is None or tool.files == "nothing":
            self._put(tool, {})
        else:
            self._tasks.start(self._find(self._files, tool), "console.example", replace=True)

    async def _find(self, files: FilePick, tool: ShownTool) -> None:
        if self._raw_of() is not None:
            self._read_json(tool)
        known = await files.examples()
        if isValid(self._form) and self._called() == tool:
            self._put(tool, known)

    def _put(self, tool: ShownTool, known: Mapping[str, str]) -> None:
        raw = self._raw_of()
        if raw is not None:
            self._read_json(tool)
        self._form.fill_example(known)
        if raw is not None:
            raw.editor.put_formatted(self._form.text())

    def _read_json(self, tool: ShownTool) -> None:
        """The operation that the JSON names is the one that counts."""
        raw = self._raw_of()
        self._form.set_tool(tool)
        try:
            self._form.set_values(parse_object(raw.text) if raw is not None else {})
        except JsonRefused:
            self._form.set_values({})
