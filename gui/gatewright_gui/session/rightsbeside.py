"""The rights of an agent worked out beside the window, where a large catalog takes a while. It shows nothing."""

from collections.abc import Mapping

from gatewright.workspace.api import ToolRight, Workspace
from gatewright_gui.session.document import Document
from gatewright_gui.session.switching import often_switched

AT_ONCE = 1_500
"""Rights on more operations than these are worked out beside the window."""


def is_long(document: Document, agent_id: str) -> bool:
    """Whether the rights of an agent as it is now take too long for the window's thread: after a large edit too."""
    if agent_id not in document.policy.agents:
        return False
    lacking, every = document.workspace.view(agent_id).rights_lacking, len(document.catalog)
    return lacking > 0 and lacking * sum(len(facts.operations) for facts in document.catalog) > AT_ONCE * every


def rights_beside(workspace: Workspace, agent_id: str) -> Mapping[str, ToolRight]:
    """As `Workspace.rights`, leaving the window its turn; the engine has them at hand afterwards."""
    with often_switched():
        return workspace.rights(agent_id)


def count_beside(workspace: Workspace, agent_id: str) -> tuple[int, int]:
    """How many operations the model of an agent sees, and how many there are."""
    with often_switched():
        rows = [row for right in workspace.rights(agent_id).values() for row in right.operations]
        return sum(row.ticked and not row.is_hidden for row in rows), len(rows)
