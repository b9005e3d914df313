"""Verbs on the file: save, save as, reload, open. They ask nothing; what must be asked is asked before."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from gatewright.workspace.api import (
    Edit,
    EditRefused,
    GatewrightError,
    Permission,
    Problem,
    Workspace,
    create_workspace,
    write_beside,
    write_policy_text,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.exporting import write_copy
from gatewright_gui.session.message import not_saved

ENDPOINT_NOT_TRUSTED = "endpoint-not-trusted"
PLACES_NOT_ACCEPTED = "places-not-accepted"


async def save(document: Document, *, overwrite: bool = False) -> bool:
    """Write the policy; `overwrite` also over what somebody else wrote into the file meanwhile."""
    if not await document.save(overwrite=overwrite):
        return False
    document.say("info", tr("saved"))
    return True


async def save_as(document: Document, path: Path) -> bool:
    """Write the policy as a new file and open that; what is unsaved goes with it. After a failure all is as it was."""
    try:
        told = await document.in_worker(lambda: write_copy(document.workspace, path))
    except (GatewrightError, OSError) as error:
        document.said.emit(not_saved(error))
        return False
    if not await document.open(path):
        return False
    document.said.emit(told)
    return True


async def write_failed(document: Document, over: str, text: str) -> bool:
    """Write the file of a policy that could not be opened, where it still holds `over`; else that is said."""
    path = document.path
    try:
        if path is not None:
            await document.in_worker(lambda: write_policy_text(path, text, expected=over))
    except GatewrightError as error:
        document.said.emit(not_saved(error))
        return False
    return path is not None


async def reload(document: Document, *, trust: bool = False) -> bool:
    """Read the file again."""
    return await document.reload(trust=trust)


async def merge(document: Document, deriver: Deriver) -> bool:
    """Read what somebody else wrote into the file, and make the unsaved edits again on top of it, as one edit.

    Where both changed the same nothing happens and that is said.
    """
    try:
        merged, text = await deriver.derive(Workspace.merge_edit), await deriver.derive(Workspace.text)
    except EditRefused:
        text = tr("not merged: both changed the same agent, source or rules; take theirs or keep mine")
        document.say("warning", text)
        return False
    except GatewrightError as error:
        document.say("warning", tr("not merged: {reason}", reason=error))
        return False
    if merged is None or text is None or not await document.reload():
        return False
    edit, typed = merged
    workspace = document.workspace
    if not document.push(
        lambda _policy, _tools: edit if typed is None else workspace.with_text(edit, typed)
    ):  # the file was written again in that moment
        path = await asyncio.to_thread(write_beside, document.workspace.policy_path, text)
        document.say("warning", tr("not merged; the unsaved changes are in `{path}`", path=path))
        return False
    document.say("info", tr("merged: the file was read, and the unsaved changes made again"), can_undo=True)
    return True


def trust_endpoint(document: Document, problem: Problem, definition: str) -> bool:
    """Remember that the endpoint that a problem is about may connect; the problem is one no more. A failure is said.

    ``definition``: what somebody agreed to; an endpoint that is another by now is not trusted.
    """
    target = endpoint_of(problem)
    if document.policy.endpoints.definition(target) != definition:
        told = tr("the endpoint `{target}` was changed meanwhile: it was not trusted. Look at it again", target=target)
        document.say("warning", told)
        return False
    try:
        document.workspace.trust_endpoint(target)
    except GatewrightError as error:
        document.say("error", str(error))
        return False
    document.set_problems([other for other in document.problems if other != problem])
    return True


def mend(document: Document, edit: Edit) -> bool:
    """Mend a problem as it was offered; an edit that came between makes it void, and that is said."""
    return document.push(lambda _policy, _tools: edit)


def mend_all(document: Document, edits: Sequence[Edit]) -> bool:
    """Mend several problems by one edit, as it was offered."""
    changes = tuple(change for edit in edits for change in edit.changes)
    name = edits[0].name if len(edits) == 1 else tr("mend {count:,} problems", count=len(edits))
    return document.push(lambda _policy, _tools: Edit(name, changes))


def endpoint_of(problem: Problem) -> str:
    """The target whose endpoint waits for trust; empty for any other problem."""
    address = problem.subject.address if problem.subject is not None else ()
    return str(address[-1]) if problem.code == ENDPOINT_NOT_TRUSTED and address else ""


def server_of(document: Document, problem: Problem) -> str:
    """The catalog that a problem is about, where its server waits for trust or for its places; else empty."""
    match problem.subject.address if problem.subject is not None else ():
        case ("catalogs", str(catalog_id), *_) if document.is_open:
            states = document.workspace.catalog_states()
            found = next((one for one in states if one.catalog.catalog_id == catalog_id), None)
            waits = found is not None and (found.is_trusted is False or found.catalog.waits_for_places)
            return catalog_id if waits else ""
        case _:
            return ""


async def open_path(document: Document, path: Path, *, trust: bool = False) -> bool:
    """Open another workspace."""
    return await document.open(path, trust=trust)


async def write_demo(document: Document, write: Callable[[], Path]) -> Path | None:
    """Have the demo written where it belongs; its policy, or None after a failure, which is said."""
    try:
        return await asyncio.to_thread(write)
    except (GatewrightError, OSError) as error:
        document.say("error", tr("no demo: {reason}", reason=error))
        return None


async def make_workspace(
    document: Document,
    folder: Path,
    agent_id: str,
    level: Permission | None,
    *,
    hides_secrets: bool = True,
    example: str | None = None,
) -> Path | None:
    """A new workspace in a folder, or a copy of an example; its policy, or None after a failure, which is said."""
    from gatewright.workspace.api import Beginning, begin_workspace  # what writes TOML is not for the first painting

    try:
        if example is not None:
            return await asyncio.to_thread(create_workspace, folder, example)
        return await asyncio.to_thread(begin_workspace, folder, Beginning(agent_id, level, hides_secrets))
    except (GatewrightError, OSError) as error:
        document.say("error", tr("no new workspace: {reason}", reason=error))
        return None
