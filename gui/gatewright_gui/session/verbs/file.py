"""Verbs on the file: save, export, reload, open. They ask nothing; what must be asked is asked before."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from gatewright.workspace.api import (
    Beginning,
    Edit,
    GatewrightError,
    Permission,
    Problem,
    begin_workspace,
    create_workspace,
)
from gatewright_gui.session.document import Document

ENDPOINT_NOT_TRUSTED = "endpoint-not-trusted"


async def save(document: Document, *, overwrite: bool = False) -> bool:
    """Write the policy; `overwrite` also over what somebody else wrote into the file meanwhile."""
    if not await document.save(overwrite=overwrite):
        return False
    document.say("info", "saved")
    return True


async def export(document: Document, folder: Path, dialect: str = "gatewright") -> bool:
    """Write the policy and the folders it names somewhere else, or in another dialect one file per agent."""
    return bool(await document.export(folder, dialect))


async def reload(document: Document, *, trust: bool = False) -> bool:
    """Read the file again."""
    return await document.reload(trust=trust)


def trust_endpoint(document: Document, problem: Problem) -> bool:
    """Remember that the endpoint that a problem is about may connect; the problem is one no more. A failure is said."""
    try:
        document.workspace.trust_endpoint(endpoint_of(problem))
    except GatewrightError as error:
        document.say("error", str(error))
        return False
    document.set_problems([other for other in document.problems if other != problem])
    return True


def mend(document: Document, edit: Edit) -> bool:
    """Mend a problem as it was offered; an edit that came between makes it void, and that is said."""
    return document.push(lambda _policy, _tools: edit)


def endpoint_of(problem: Problem) -> str:
    """The target whose endpoint waits for trust; empty for any other problem."""
    address = problem.subject.address if problem.subject is not None else ()
    return str(address[-1]) if problem.code == ENDPOINT_NOT_TRUSTED and address else ""


async def open_path(document: Document, path: Path, *, trust: bool = False) -> bool:
    """Open another workspace."""
    return await document.open(path, trust=trust)


async def write_demo(document: Document, write: Callable[[], Path]) -> Path | None:
    """Have the demo written where it belongs; its policy, or None after a failure, which is said."""
    try:
        return await asyncio.to_thread(write)
    except (GatewrightError, OSError) as error:
        document.say("error", f"no demo: {error}")
        return None


async def make_workspace(
    document: Document,
    folder: Path,
    agent_id: str,
    level: Permission | None,
    hidden: tuple[str, ...],
    example: str | None = None,
) -> Path | None:
    """A new workspace in a folder, or a copy of an example; its policy, or None after a failure, which is said."""
    try:
        if example is not None:
            return await asyncio.to_thread(create_workspace, folder, example)
        return await asyncio.to_thread(begin_workspace, folder, Beginning(agent_id, level, hidden))
    except (GatewrightError, OSError) as error:
        document.say("error", f"no new workspace: {error}")
        return None
