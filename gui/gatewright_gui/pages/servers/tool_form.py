"""A file of tools that is to become a catalog: what was found in it, and what a person says of the catalog."""

import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QFormLayout, QLineEdit, QPushButton, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import Catalog, CatalogType, WorkspaceError
from gatewright_gui.qt.dialog import choose_open_file
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.table_model import RowModel
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.document import Document
from gatewright_gui.session.toolfiles import ToolFile, id_for

KINDS: Mapping[CatalogType, str] = {
    CatalogType.HTTP: mark("a request over HTTP for each call"),
    CatalogType.SUBPROCESS: mark("a process for each call"),
    CatalogType.WASM: mark("a WASM module"),
    CatalogType.HOST: mark("another program, which loads this policy"),
}
NAME, ABOUT = range(2)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of what was found: a tool with its operations, or a fault with its place."""

    name: str
    about: str


class _FoundModel(RowModel[_Line]):
    """Tools, or faults."""

    headers = (mark("Name"), mark("What"))

    def text(self, row: _Line, column: int) -> str:
        """Cells."""
        return row.name if column == NAME else row.about

    def tip(self, row: _Line, _column: int) -> str:
        """All of it, however long it is."""
        return f"{row.name}: {row.about}"


class ToolForm(QWidget):
    """Shows one file; `catalog` is what was chosen for it."""

    changed = Signal()

    def __init__(self, document: Document, tasks: TaskOwner) -> None:
        super().__init__()
        self._document, self._tasks = document, tasks
        self.found: ToolFile | None = None
        self.title = named(Label(), "tools.title", kind="heading")
        self.summary = named(Label(wraps=True), "tools.summary", kind="muted")
        self.catalog_id = named(QLineEdit(), "tools.id", spoken=tr("Short name of these tools in the policy"))
        self.prefix = named(
            QLineEdit(), "tools.prefix", spoken=tr("Prefix"), tip=tr("Its tools are named PREFIX.NAME in the policy")
        )
        self.prefix.setPlaceholderText(tr("none"))
        self.kind = named(QComboBox(), "tools.kind", spoken=tr("Run by"))
        self.address = named(QComboBox(), "tools.address", spoken=tr("Address that calls go to"))
        self.address.setEditable(True)
        self.command = named(QLineEdit(), "tools.command", spoken=tr("Command"))
        self.command.setPlaceholderText(tr("/usr/bin/python3 tools.py"))
        self.env = named(QLineEdit(), "tools.env", spoken=tr("Variables it gets"), tip=tr("Names, with spaces between"))
        self.env.setPlaceholderText(tr("none"))
        self.module = named(QLineEdit(), "tools.module", spoken=tr("Module"))
        self.module.setPlaceholderText("tools.wasm")
        self.module_button = named(QPushButton(tr("Choose...")), "tools.choose", spoken=tr("Choose the module"))
        self.module_button.setAutoDefault(False)
        tie_icon(self.module_button, "folder-open")
        self._module = holding(row_of(stretch(self.module), self.module_button, space=2))
        self.headers = named(QLineEdit(), "tools.headers", spoken=tr("Headers from variables"))
        self.headers.setToolTip(tr("NAME=VARIABLE, with commas between: the variable holds the whole value"))
        self.headers.setPlaceholderText(tr("Authorization=HUB_TOKEN"))
        self.variables = named(Label(wraps=True), "tools.variables", kind="muted")
        self._form = QFormLayout()
        self._form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        names = row_of(stretch(self.catalog_id, 2), Label(tr("prefix")), stretch(self.prefix), space=2)
        self._form.addRow(tr("Id"), names)
        for words, part in (
            (tr("Run by"), self.kind),
            (tr("Calls go to"), self.address),
            (tr("Command"), self.command),
            (tr("Variables"), self.env),
            (tr("Module"), self._module),
            (tr("Headers"), self.headers),
            ("", self.variables),
        ):
            self._form.addRow(words, part)
        self.part = named(Segmented(tr("What was found")), "tools.part")
        self.part.add_segment("tools", tr("Tools"))
        self.part.add_segment("faults", tr("Left out"))
        self.model = _FoundModel()
        self.view = named(TableView(tr("What was found")), "tools.found")
        self.view.show_model(self.model, {NAME: 200}, wide=ABOUT)
        self.view.horizontalHeader().hide()
        parts = (self.title, self.summary, self._form, row_of(self.part, stretch()), stretch(self.view))
        column_of(*parts, into=self, space=2)
        for edit in (self.catalog_id, self.prefix, self.command, self.env, self.module, self.headers):
            edit.textChanged.connect(self._tell)
        self.address.editTextChanged.connect(self._tell)
        self.kind.currentIndexChanged.connect(self._show_kind)
        self.part.current_changed.connect(self._show_found)
        self.module_button.clicked.connect(lambda: self._tasks.start(self._choose_module(), "tools.module"))

    def show_file(self, found: ToolFile) -> None:
        """Show what a file defines; what a person wrote stays where it fits."""
        self.found = found
        name = tr("OpenAPI document") if found.is_document else tr("Manifest of tools")
        self.title.setText(tr("{kind}: {title}", kind=name, title=found.title) if found.title else name)
        if not self.catalog_id.isModified():
            self.catalog_id.setText(id_for(self._document, found))
        self.kind.blockSignals(True)
        self.kind.clear()
        for kind in found.kinds:
            self.kind.addItem(tr(KINDS[kind]), kind)
        self.kind.blockSignals(False)
        typed = self.address.currentText()
        self.address.clear()
        self.address.addItems(found.servers)
        if not found.servers:
            self.address.setEditText(typed)
        if not self.headers.isModified():
            self.headers.setText(self._default_headers(found))
        self.part.set_current("tools" if found.tools else "faults")
        self._show_kind()
        self._show_found()

    def clear(self) -> None:
        """Show no file; what a person wrote stays."""
        self.found = None
        self.title.setText("")
        self.summary.setText("")
        self.model.set_rows(())

    @property
    def runs(self) -> CatalogType:
        """The kind of catalog that runs its tools."""
        return CatalogType(self.kind.currentData() or CatalogType.HTTP)

    def catalog(self) -> Catalog:
        """The catalog as it was chosen. Raises WorkspaceError with what is missing or wrong."""
        kind, name, prefix = self.runs, self.catalog_id.text().strip(), self.prefix.text().strip() or None
        if not name:
            raise WorkspaceError(tr("it needs an id"))
        made = Catalog(name, kind, prefix=prefix)
        match kind:
            case CatalogType.HTTP:
                return self._of_requests(made)
            case CatalogType.SUBPROCESS:
                return self._of_process(made)
            case CatalogType.WASM:
                module = self.module.text().strip()
                if not module:
                    raise WorkspaceError(tr("which module runs its tools? Choose it"))
                return replace(made, module=module)
            case _:
                return made

    def _of_requests(self, made: Catalog) -> Catalog:
        url = self.address.currentText().strip()
        if not url.startswith(("http://", "https://")):
            raise WorkspaceError(tr("where do calls go? Write an address that begins with https:// or http://"))
        return replace(made, url=url, headers_env=self._header_names())

    def _of_process(self, made: Catalog) -> Catalog:
        try:
            words = shlex.split(self.command.text())
        except ValueError as error:
            raise WorkspaceError(tr("it is no command: {reason}", reason=str(error).lower())) from None
        if not words:
            raise WorkspaceError(tr("which command runs its tools? Write it as in a terminal"))
        return replace(made, command=words[0], args=tuple(words[1:]), env=_words(self.env.text()))

    def _default_headers(self, found: ToolFile) -> str:
        """Those of the catalog that is there, else those that the document asks for."""
        there = self._document.policy.catalog(self.catalog_id.text())
        names = found.variables(self.catalog_id.text()) if there is None else there.headers_env
        return ", ".join(f"{header}={variable}" for header, variable in names.items())

    def _header_names(self) -> dict[str, str]:
        """The headers, each with its variable. Raises WorkspaceError."""
        found: dict[str, str] = {}
        for part in filter(None, map(str.strip, self.headers.text().split(","))):
            header, _, variable = map(str.strip, part.partition("="))
            if not header or not variable:
                told = tr("header {part}: write NAME=VARIABLE, such as Authorization=HUB_TOKEN", part=part)
                raise WorkspaceError(told)
            found[header] = variable
        return found

    def _field_names(self) -> list[str]:
        """The variables of the fields that each query gets."""
        there = self._document.policy.catalog(self.catalog_id.text())
        if there is not None:
            return [*there.query_env.values()]
        return [] if self.found is None else [*self.found.field_variables(self.catalog_id.text()).values()]

    def _tell_variables(self) -> None:
        """Say which variables are set here, and which are not."""
        with suppress(WorkspaceError):
            is_request = self.runs is CatalogType.HTTP
            names = [*self._header_names().values(), *self._field_names()] if is_request else _words(self.env.text())
            missing = [name for name in names if name not in os.environ]
            words = tr("not set here, so calls fail until they are: {names}", names=", ".join(missing))
            self.variables.setText(words if missing else tr("all of them are set here") if names else "")
            self.variables.setVisible(bool(names))

    def _show_kind(self, _index: int = 0) -> None:
        kind, found = self.runs, self.found
        shown = {
            self.kind: self.kind.count() > 1,
            self.address: kind is CatalogType.HTTP,
            self.command: kind is CatalogType.SUBPROCESS,
            self.env: kind is CatalogType.SUBPROCESS,
            self._module: kind is CatalogType.WASM,
            self.headers: kind is CatalogType.HTTP,
        }
        for part, is_there in shown.items():
            self._form.setRowVisible(part, is_there)
        if found is not None:
            self._tell()

    def _show_found(self, _key: object = None) -> None:
        found = self.found
        if found is None:
            return
        if self.part.current == "faults":
            rows = [_Line(fault.message, fault.pointer or "/") for fault in found.faults]
        else:
            rows = [_Line(tool.name, _about(tool.operations, tool.description)) for tool in found.tools]
        self.model.set_rows(rows)

    def _tell(self, _text: object = None) -> None:
        found = self.found
        if found is None:
            return
        operations = counted(found.operations, "operation", "operations")
        told = [tr("{operations} in {tools}.", operations=operations, tools=counted(len(found.tools), "tool", "tools"))]
        if self.runs is CatalogType.HTTP:
            host = _host(self.address.currentText())
            told.append(tr("Calls, with the agents' arguments, go to {host}.", host=host) if host else "")
        if self._document.policy.catalog(self.catalog_id.text().strip()) is not None and found.is_document:
            again = tr("Reads the document of {catalog} again.", catalog=self.catalog_id.text().strip())
            told.insert(0, again)
        if found.left_out:
            told.append(tr("{count} left out.", count=counted(found.left_out, "part is", "parts are")))
        self.summary.setText(" ".join(filter(None, told)))
        self._tell_variables()
        self.changed.emit()

    async def _choose_module(self) -> None:
        folder = self._document.workspace.folder
        chosen = await choose_open_file(self, tr("The module"), folder, tr("WASM modules (*.wasm);;Any file (*)"))
        if chosen is not None and isValid(self):
            self.module.setText(_module_path(chosen, folder))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _about(operations: int, description: str) -> str:
    count = counted(operations, "operation", "operations") if operations else ""
    return "  ".join(filter(None, (count, description.partition("\n")[0])))


def _host(address: str) -> str:
    with suppress(ValueError):
        return urlsplit(address.strip()).hostname or ""
    return ""


def _module_path(chosen: Path, folder: Path) -> str:
    """A file as a policy in a folder writes it: relative where it lies in there."""
    real, top = os.path.realpath(chosen), os.path.realpath(folder)
    return os.path.relpath(real, top).replace(os.sep, "/") if real.startswith(f"{top}{os.sep}") else real
