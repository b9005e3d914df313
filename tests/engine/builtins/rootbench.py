"""A workspace with the three roots on a real disk, and calls through its whole gate."""

from __future__ import annotations

import ctypes
import json
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gatewright.gate import Approval, ApprovalRequest, AuditLog, Decision, Outcome, Status
from gatewright.workspace import Workspace

ROOTS = '[workspace]\nroots = { shared = "shared", tmp = "tmp", vault = "vault" }\n'
EVERYTHING = 'capabilities = [{ FsRead = { prefixes = ["."] } }, { FsWrite = { prefixes = ["."] } }]\n'
TOOLS = (
    "file_read",
    "file_search",
    "file_list",
    "file_write",
    "file_edit",
    "file_delete",
    "vault_copyto",
    "read_file",
)
SECRET = "TOP SECRET"
AT_CWD = -100
RENAME_EXCHANGE = 2


def policy_text(*, roots: str = ROOTS, capabilities: str = EVERYTHING, agent: str = "", more: str = "") -> str:
    """A policy with one agent ``a`` that has every tool on files of roots."""
    return f"gatewright = 1\n\n{roots}\n[agents.a]\ntools = {json.dumps(TOOLS)}\n{capabilities}{agent}\n{more}"


@dataclass(frozen=True)
class RootBench:
    """One open workspace; ``asked``: the questions that its operator was asked, all of which are approved."""

    workspace: Workspace
    asked: list[ApprovalRequest]

    @property
    def folder(self) -> Path:
        """The folder of the policy."""
        return self.workspace.folder

    def write(self, name: str, content: str | bytes) -> Path:
        """Make a file, by its path below the workspace."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def text(self, name: str) -> str:
        """Return the text of a file."""
        return (self.folder / name).read_bytes().decode()

    def decide(self, tool: str, **arguments: Any) -> Decision:
        """Return the decision of the gate."""
        return self.workspace.decide("a", tool, arguments)

    async def call(self, tool: str, **arguments: Any) -> Outcome:
        """One call, approved if it asks."""

        async def approve(request: ApprovalRequest) -> Approval:
            self.asked.append(request)
            return Approval(True, "the night shift")

        return await self.workspace.call("a", tool, arguments, approver=approve)

    async def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the data of a call that must succeed."""
        outcome = await self.call(tool, **arguments)
        assert outcome.status is Status.ALLOWED, outcome.output
        result = json.loads(outcome.data or b"")
        assert result["success"] is True
        return result["data"]

    async def code(self, tool: str, **arguments: Any) -> str:
        """Return the code of a call that must fail."""
        outcome = await self.call(tool, **arguments)
        assert outcome.status in {Status.DENIED, Status.FAILED}, outcome.output
        assert (outcome.output or "").startswith("Tool execution failed:")
        return outcome.code

    def rows(self) -> list[tuple[str, dict[str, Any]]]:
        """Kind and body of every row of the log."""
        log = AuditLog(self.folder / ".gatewright", self.folder.parent / "keys")
        return [(str(row.kind), json.loads(row.body)) for row in log.rows()]


def names(folder: Path) -> list[str]:
    """Return the sorted names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def opened(tmp_path: Path, text: str | None = None) -> RootBench:
    """Write the policy and make the folders; whoever opens it closes ``workspace``."""
    folder = tmp_path / "ws"
    for name in ("shared", "tmp", "vault"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "policy.toml").write_text(text or policy_text(), encoding="utf-8")
    return RootBench(Workspace.open(folder, keys=tmp_path / "keys"), [])


@contextmanager
def swapping(one: Path, other: Path) -> Generator[None]:
    """A thread that keeps exchanging two names, each time in one step, until the end of the block."""
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    names = (AT_CWD, os.fsencode(one), AT_CWD, os.fsencode(other), RENAME_EXCHANGE)
    if exchange is None or exchange(*names) != 0:
        pytest.skip("the file system does not exchange names in one step")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            exchange(*names)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
