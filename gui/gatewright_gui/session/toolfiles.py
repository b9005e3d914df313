"""Files that define tools: read by a process of their own, and added to the policy as catalogs."""

import asyncio
import os
from pathlib import Path

from gatewright.workspace.api import (
    Catalog,
    CatalogType,
    Edit,
    GatewrightError,
    Policy,
    PolicyInvalid,
    ToolFile,
    WorkspaceError,
    catalog_of_file,
    content_of,
    place_manifest,
    policyedit,
    propose_id,
    read_tool_file,
    says_tools,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.policyfailure import first_error

__all__ = ["ToolFile", "ToolFileReader", "add_tools", "defines_tools", "id_for"]

MOST_BYTES = 64 * 1024 * 1024
AT_ONCE_BYTES = 256 * 1024
"""More than this is no configuration of a client: it is not looked at in the window."""


def defines_tools(text: str, path: Path | None) -> bool:
    """Tell whether what was chosen or typed is meant to define tools; a file of which that cannot be told is none."""
    if path is None:
        return len(text) > AT_ONCE_BYTES or says_tools(text)
    try:
        return path.stat().st_size > AT_ONCE_BYTES or says_tools(path.read_text("utf-8"))
    except (OSError, ValueError):
        return path.suffix in {".yaml", ".yml"}


def tools_of(path: Path | None, text: str) -> ToolFile:
    """The tools that a file or a text defines; takes its time. Raises WorkspaceError."""
    return read_tool_file(text.encode("utf-8", "replace") if path is None else content_of(path, MOST_BYTES))


def id_for(document: Document, found: ToolFile) -> str:
    """The id of the catalog that a file becomes: the one that its document was imported as before, else a free one."""
    policy, usual = document.policy, propose_id(found, Policy())
    there = policy.catalog(usual) if found.is_document else None
    is_same = there is not None and there.kind is CatalogType.HTTP and there.manifest == f"{usual}.tools.json"
    return usual if is_same else propose_id(found, policy)


class ToolFileReader:
    """Reads one file after the other, for whoever shows what is in them; end it, then nothing of it runs any more."""

    def __init__(self, document: Document) -> None:
        self._deriver = Deriver(document)
        self._turn = 0

    async def read(self, path: Path | None, text: str) -> ToolFile | None:
        """The tools in it; None where another is read meanwhile, or nobody wants it. Raises GatewrightError."""
        self.end()
        turn = self._turn
        while turn == self._turn:  # an edit of the policy meanwhile makes no other file of it
            found = await self._deriver.ask(tools_of, path, text)
            if found is not None:
                return found
        return None

    def end(self) -> None:
        """Stop reading at once."""
        self._turn += 1
        self._deriver.close()


async def add_tools(document: Document, found: ToolFile, wanted: Catalog, path: Path | None) -> str:
    """Make a catalog of a file of tools, or have one that is there read its document again; the id of the catalog.

    Raises GatewrightError, and then the policy is as it was.
    """
    workspace = document.workspace

    def prepare() -> Edit | None:
        policy = workspace.policy
        catalog = catalog_of_file(policy, found, wanted, workspace.folder, path)
        there = policy.catalog(catalog.catalog_id)
        if there is not None and there != catalog:
            told = tr("catalog `{catalog}` has another address, or other headers: choose another id")
            raise WorkspaceError(told.format(catalog=wanted.catalog_id))
        file = workspace.folder / catalog.manifest
        is_new = not os.path.lexists(file)
        place_manifest(found, catalog, workspace.folder)
        try:
            edit = policyedit.add_catalog(policy, catalog) if there is None else None
            if edit is not None:
                workspace.check(edit)  # what takes time of it is done once
        except GatewrightError:
            if is_new:
                file.unlink(missing_ok=True)
            raise
        return edit

    try:
        edit = await asyncio.to_thread(prepare)
    except PolicyInvalid as error:
        raise WorkspaceError(first_error(error)) from None
    if edit is not None and not document.push(lambda _policy, _tools: edit):
        raise WorkspaceError(tr("the policy was changed meanwhile: try again"))
    return wanted.catalog_id
