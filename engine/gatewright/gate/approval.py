"""What an operator is asked and answers. It does not know how they are reached.

An answer holds for one digest: agent, user, session, tool, operation, canonical arguments and the text to be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gatewright.base.jsonvalue import JsonValue


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """One question. ``reasons``: why it is asked, first the deciding one. ``diff``: the text change, if any."""

    agent_id: str
    tool: str
    operation: str
    arguments: Mapping[str, JsonValue] = field(hash=False)
    reasons: tuple[str, ...]
    diff: str | None
    scope: str | None
    digest: str
    call_id: str = ""
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class Approval:
    """The answer and whose it is."""

    approved: bool
    who: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An approval together with the digest that it was given for."""

    approval: Approval
    digest: str


class Approver(Protocol):
    """Asks somebody who may decide; takes as long as they take."""

    async def __call__(self, request: ApprovalRequest) -> Approval:
        """The answer. Raises NobodyAnswered when there is none; raising anything else counts as a refusal."""
        ...
