"""The last questions before an operation acts: the table of levels, and the agreement of a person.

Rules, texts and files may change between a decision and its act; the words here name no level and no operation.
"""

from __future__ import annotations

from gatewright.base.errors import ToolFailure
from gatewright.policy.target import NOT_PERMITTED, Approved, Assessment
from gatewright.policy.verdict import Action, Permission, Verdict, verdict_for


def permit(level: Permission, action: Action, approved: Approved) -> None:
    """Refuse an action that the table does not allow now, whatever the earlier decision was."""
    verdict = verdict_for(level, action)
    if verdict is Verdict.DENY:
        raise ToolFailure("this path may not be changed in this way", code=NOT_PERMITTED)
    if verdict is Verdict.ASK and not approved:
        raise ToolFailure("this is done only when somebody agrees, and nobody was asked", code="not-granted")


def refuse_stale(approved: Approved) -> None:
    """Refuse a call that somebody agreed to before its effect changed."""
    if callable(approved) and not approved():
        raise ToolFailure("this was changed since somebody agreed to it", code="approval-stale")


def permit_loss(now: Assessment, asked: Approved) -> None:
    """Refuse to lose present edits unless somebody agreed to lose exactly these."""
    if now.ask is None:
        return
    if not asked:
        raise ToolFailure("edits came meanwhile that would be lost, and nobody was asked", code="not-granted")
    refuse_stale(asked)
