"""What is asked once more when something is done: the table of levels, and what somebody agreed to. It touches no disk.

Between a decision and its act rules, texts and files may change; the words here name no level and no operation.
"""

from __future__ import annotations

from gatewright.base.errors import ToolFailure
from gatewright.policy.target import NOT_PERMITTED, Approved, Assessment
from gatewright.policy.verdict import Action, Permission, Verdict, verdict_for


def permit(level: Permission, action: Action, approved: Approved) -> None:
    """What the table says of the action now, whatever was decided before; the words name no level and no operation."""
    verdict = verdict_for(level, action)
    if verdict is Verdict.DENY:
        raise ToolFailure("this path may not be changed in this way", code=NOT_PERMITTED)
    if verdict is Verdict.ASK and not approved:
        raise ToolFailure("this is done only when somebody agrees, and nobody was asked", code="not-granted")


def refuse_stale(approved: Approved) -> None:
    """What somebody agreed to was shown to them; what came since they have not seen."""
    if callable(approved) and not approved():
        raise ToolFailure("this was changed since somebody agreed to it", code="approval-stale")


def permit_loss(now: Assessment, asked: Approved) -> None:
    """Edits that are there now go only when somebody agreed to that, and to these."""
    if now.ask is None:
        return
    if not asked:
        raise ToolFailure("edits came meanwhile that would be lost, and nobody was asked", code="not-granted")
    refuse_stale(asked)
