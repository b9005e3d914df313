"""A workspace with the three roots on a real disk, and calls through its whole gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gatewright.gate import AuditLog, Decision, Outcome
from tests.support.bench import OpenBench, code_of, data_of

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


def policy_text(*, roots: str = ROOTS, capabilities: str = EVERYTHING, agent: str = "", more: str = "") -> str:
    """A policy with one agent ``a`` that has every tool on files of roots."""
    return f"gatewright = 1\n\n{roots}\n[agents.a]\ntools = {json.dumps(TOOLS)}\n{capabilities}{agent}\n{more}"


class RootBench(OpenBench):
    """An open workspace with the three roots."""

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
        return await self.workspace.call("a", tool, arguments, approver=self.answer)

    async def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the data of a call that must succeed."""
        return data_of(await self.call(tool, **arguments))

    async def code(self, tool: str, **arguments: Any) -> str:
        """Return the code of a call that must fail."""
        return code_of(await self.call(tool, **arguments))

    def rows(self) -> list[tuple[str, dict[str, Any]]]:
        """Kind and body of every row of the log."""
        log = AuditLog(self.folder / ".gatewright", self.folder.parent / "keys")
        return [(str(row.kind), json.loads(row.body)) for row in log.rows()]


def names(folder: Path) -> list[str]:
    """Return the sorted names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def opened(tmp_path: Path, text: str | None = None) -> RootBench:
    """Write the policy and make the folders; whoever opens it closes ``workspace``."""
    return RootBench.at(tmp_path, text or policy_text(), "shared", "tmp", "vault")
