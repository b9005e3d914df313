"""MCP clients: their files on this machine, with the gateway in them or not, and those that are served now."""

import asyncio
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from shiboken6 import isValid

from gatewright.workspace.api import (
    ClientEdit,
    ClientFile,
    ClientServer,
    ClientSession,
    ClientStatus,
    GatewrightError,
    ServingProcess,
    Workspace,
    client_files,
    client_status,
    gateway_command,
    gateway_edit,
    read_client_file,
    read_typed_servers,
    write_client_file,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.document import Document

__all__ = [
    "ClientEdit",
    "ClientFile",
    "ClientServer",
    "ClientSession",
    "ClientStatus",
    "Clients",
    "ServingProcess",
    "edit_of_client",
    "gateway_command",
    "is_worth_telling",
    "list_client_files",
    "servers_in",
    "write_edit",
]

_TASK = "servers.clients"
_Stamp = tuple[int, int]


class Clients(QObject):
    """Looks when it is told to, beside the window; nothing is started for it."""

    changed = Signal()

    def __init__(self, document: Document, tasks: TaskOwner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document, self._tasks = document, tasks
        self._processes: tuple[ServingProcess, ...] = ()
        self._found: tuple[ClientStatus, ...] | None = None
        self._read: dict[Path, tuple[_Stamp, ClientStatus]] = {}
        document.closed.connect(self._forget)

    @property
    def processes(self) -> tuple[ServingProcess, ...]:
        """The processes that serve the workspace, as they were at the last look, the oldest first."""
        return self._processes

    @property
    def found(self) -> tuple[ClientStatus, ...] | None:
        """The clients on this machine, as they were at the last look; None before the first."""
        return self._found

    def look(self) -> None:
        """Look now, unless that is under way."""
        if self._document.is_open and _TASK not in self._tasks.names:
            self._tasks.start(self._look(self._document.workspace), _TASK)

    def _forget(self) -> None:
        self._processes, self._found = (), None

    async def _look(self, workspace: Workspace) -> None:
        processes: tuple[ServingProcess, ...] = ()
        with suppress(GatewrightError):  # what cannot be read serves nobody that one could show
            processes = await asyncio.to_thread(workspace.serving.list, workspace.policy_path)
        files = list_client_files(self._document) if self._document.is_open else ()
        found = await asyncio.to_thread(self._statuses, files)
        if isValid(self) and (processes, found) != (self._processes, self._found):
            self._processes, self._found = processes, found
            self.changed.emit()

    def _statuses(self, files: tuple[ClientFile, ...]) -> tuple[ClientStatus, ...]:
        """Read the files that are there, and of these only the ones that are not as they were."""
        found: list[ClientStatus] = []
        for file in files:
            with suppress(OSError):
                there = file.path.stat()
                stamp = there.st_mtime_ns, there.st_size
                known = self._read.get(file.path)
                if known is None or known[0] != stamp:
                    known = self._read[file.path] = stamp, client_status(file)
                found.append(known[1])
        return tuple(one for one in found if is_worth_telling(one))


def is_worth_telling(status: ClientStatus) -> bool:
    """Tell whether a client's file says something of servers, or is there for nothing else."""
    return bool(status.servers or status.is_gated or status.fault) or not _is_shared(status.file)


def _is_shared(file: ClientFile) -> bool:
    """Tell whether the file is there without any server too: other settings of the program, or a project's."""
    return file.is_project or file.client.client_id in {"claude-code", "gemini-cli", "codex", "opencode", "amp", "zed"}


def servers_in(text: str, path: Path | None = None) -> tuple[ClientServer, ...]:
    """Read the servers of a client's file, or of typed or pasted text. Raises GatewrightError with what is wrong."""
    return read_client_file(path) if path is not None else read_typed_servers(text)


def list_client_files(document: Document) -> tuple[ClientFile, ...]:
    """List the configuration files of clients, there or not: the user's, and those of the policy's folder."""
    return client_files(document.workspace.folder)


def edit_of_client(document: Document, file: ClientFile, agent_id: str, wait: str = "") -> ClientEdit:
    """Put the gateway for an agent into a client's file; ``wait``: as for `gateway_edit`. Raises GatewrightError."""
    workspace = document.workspace
    return gateway_edit(file, workspace.policy.catalogs, workspace.policy_path, agent_id, wait)


def write_edit(document: Document, change: ClientEdit) -> bool:
    """Write a client's file; say where the backup lies, or what failed."""
    try:
        backup = write_client_file(change)
    except GatewrightError as error:
        document.say("error", str(error))
        return False
    text = tr("wrote {file}. Start {client} again.")
    if backup is not None:
        text = tr("wrote {file}; as it was: {backup}. Start {client} again.")
    file, name = change.file, backup.name if backup is not None else ""
    document.say("info", text.format(file=file.path, client=file.client.name, backup=name))
    return True
