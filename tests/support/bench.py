"""An open workspace with an operator who remembers what he was asked, and the ends that calls through its gate have."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from gatewright.gate import Approval, ApprovalRequest, Outcome, Status
from gatewright.workspace import Workspace


@dataclass
class OpenBench:
    """``asked``: the questions to the operator, who approves every one while ``approves``."""

    workspace: Workspace
    asked: list[ApprovalRequest] = field(default_factory=list[ApprovalRequest])
    approves: bool = True

    @classmethod
    def at(cls, folder: Path, policy: str, *folders: str) -> Self:
        """Open the workspace of `make`, with its keys beside it; whoever opens it closes ``workspace``."""
        return cls(Workspace.open(make(folder, policy, *folders), keys=folder / "keys"))

    @property
    def folder(self) -> Path:
        """The folder of the policy."""
        return self.workspace.folder

    async def answer(self, request: ApprovalRequest) -> Approval:
        """Return the operator's answer to a question."""
        self.asked.append(request)
        return Approval(self.approves, "dana")


def make(folder: Path, policy: str, *folders: str) -> Path:
    """Write the policy of the workspace ``folder / "ws"`` and make these folders in it; return its folder."""
    made = folder / "ws"
    for name in ("", *folders):
        (made / name).mkdir(parents=True, exist_ok=True)
    (made / "policy.toml").write_text(policy, "utf-8")
    return made


def data_of(outcome: Outcome) -> Any:
    """The data of a built-in tool's call that must succeed; None without any."""
    assert outcome.status is Status.ALLOWED, (outcome.code, outcome.output, outcome.decision.reason)
    result = json.loads(outcome.data or b"")
    assert result["success"] is True
    return result.get("data")


def code_of(outcome: Outcome) -> str:
    """The code of a call that must not succeed."""
    assert outcome.status in {Status.DENIED, Status.FAILED}, outcome.output
    assert (outcome.output or "").startswith("Tool execution failed:")
    return outcome.code
