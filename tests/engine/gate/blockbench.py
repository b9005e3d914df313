"""A workspace with blocks of memory and files on a real disk, and calls through its whole gate."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Approval, ApprovalRequest, Outcome, Session
from gatewright.memory import BlockService
from tests.support.bench import OpenBench

POLICY = """gatewright = 1

[agents.ann]
tools = ["file", "block", "block_edit"]
capabilities = ["AdvancedEdit"]

[agents.bob]
tools = ["block", "block_edit"]
sources = []

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
"""


@dataclass
class BlockBench(OpenBench):
    """An open workspace with blocks. ``meanwhile`` runs before an answer."""

    meanwhile: Callable[[], object] | None = None
    fields: dict[str, str] = field(default_factory=dict[str, str])
    session: Session = field(default_factory=Session)

    @property
    def docs(self) -> Path:
        return self.folder / "docs"

    def own(self, agent: str = "ann") -> BlockService:
        return self.workspace.blocks(agent)

    async def call(self, tool: str, op: str = "", *, agent: str = "ann", **given: JsonValue) -> Outcome:
        arguments = {self.fields.get(tool, "op"): op, **given} if op else given
        return await self.workspace.call(agent, tool, arguments, session=self.session, approver=self.answer)

    async def done(self, tool: str, op: str = "", *, agent: str = "ann", **given: JsonValue) -> Any:
        """Return the result of a call that must succeed."""
        outcome = await self.call(tool, op, agent=agent, **given)
        assert outcome.status == "allowed", (outcome.code, outcome.output, outcome.decision.reason)
        result = json.loads(outcome.output)
        assert result["success"] is True
        return result.get("data")

    async def label(self, path: str) -> str:
        """The label of a file, whose text is then in its block."""
        return str((await self.done("file", "load", path=path))["label"])

    def reload(self, text: str) -> None:
        (self.folder / "policy.toml").write_text(text, encoding="utf-8")
        assert not [problem for problem in self.workspace.reload() if problem.is_error]

    async def answer(self, request: ApprovalRequest) -> Approval:
        if self.meanwhile is not None:
            self.meanwhile()
        return await super().answer(request)


def opened(folder: Path, text: str = POLICY) -> BlockBench:
    """The workspace ``folder / "ws"``, made."""
    return BlockBench.at(folder, text, "docs")
