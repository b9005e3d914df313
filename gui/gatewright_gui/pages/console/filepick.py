"""The files that a call may name, listed beside the window and offered to the form. It reads no folder itself."""

import asyncio
from collections.abc import Callable
from typing import cast

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from gatewright.base.errors import GatewrightError
from gatewright_gui.models.jsonpath import Path
from gatewright_gui.pages.console.fields.browse import BrowseDialog
from gatewright_gui.pages.console.form import FormPane
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import shown
from gatewright_gui.session.callpaths import FileChoices, file_choices
from gatewright_gui.session.calls import ShownTool


class FilePick(QObject):
    """Follows the wishes of a form; `called` tells who calls which tool. Files are listed once for each policy."""

    def __init__(
        self, context: PageContext, form: FormPane, called: Callable[[], tuple[str | None, ShownTool | None]]
    ) -> None:
        super().__init__(form)
        self._context, self._form, self._called = context, form, called
        self._files = FileChoices()
        self._listing: asyncio.Task[None] | None = None
        self._listed: tuple[str, str] | None = None
        form.files_wanted.connect(self._list)
        form.browse_requested.connect(self._browse)

    async def examples(self) -> dict[str, str]:
        """By what an argument names - `path` or `label` - something that the chosen operation could be tried with."""
        self._list()
        await self._listed_by_now()
        _, tool = self._called()
        operation = self._form.operation
        shapes = tool.operations if tool is not None else ()
        changes = not all(shape.is_read_only for shape in shapes if operation is None or shape.name == operation)
        return {"path": self._files.example(operation or "", changes=changes), "label": self._files.label}

    def forget(self) -> None:
        """The policy may be another: list anew when files are wanted."""
        self._listed = None

    def _list(self) -> None:
        agent_id, tool = self._called()
        if agent_id is None or tool is None or self._listed == (agent_id, tool.files):
            return
        self._listed = agent_id, tool.files
        self._listing = self._context.tasks.start(self._read(agent_id, tool), "console.files", replace=True)

    async def _read(self, agent_id: str, tool: ShownTool) -> None:
        files, deriver = tool.files, self._context.deriver
        try:
            found = await deriver.derive(lambda workspace: file_choices(workspace, agent_id, files), aside=True)
        except GatewrightError:
            found = FileChoices()
        if found is not None and isValid(self) and self._listed == (agent_id, files):
            self._files = found
            self._form.files.setStringList(list(dict.fromkeys(row.path for row in found.rows)))

    def _browse(self, path: object) -> None:
        self._list()
        self._context.tasks.start(self._choose(cast("Path", path)), "console.browse", replace=True)

    async def _choose(self, path: Path) -> None:
        await self._listed_by_now()
        chosen = self._form.form.value(path)
        begun = chosen if isinstance(chosen, str) else ""
        dialog = BrowseDialog(cast("QWidget", self._form), self._files, begun, takes_folders=self._takes_folders(path))
        if await shown(dialog) and dialog.choice is not None:
            several = len({row.place for row in self._files.rows}) > 1
            is_asked = "source" in self._form.form.fields(()) and several
            self._form.put_file(path, dialog.choice.path, dialog.choice.place if is_asked else None)

    async def _listed_by_now(self) -> None:
        while self._listing is not None and not self._listing.done():
            await asyncio.wait([self._listing])

    def _takes_folders(self, path: Path) -> bool:
        """A path that must be named is that of a file, but for operations that reach what is below a folder."""
        form = self._form.form
        shape = form.shape_of_operation()
        return not form.is_needed(str(path[0])) or (shape is not None and "recursive" in shape.takes)
