"""What saving or a rule would change, asked of the worker process, which is to load nothing of Qt.

``tell`` makes of the answer what is small enough to be sent.
"""

from collections.abc import Callable, Generator
from typing import TypeVar

from gatewright.workspace.api import PolicyDiff, Replay, ReplayedCall, Workspace, replay, replay_rule

T = TypeVar("T")
__all__ = ["Replay", "ReplayedCall", "replay_rule", "review_calls", "review_rights"]


def review_rights(workspace: Workspace, tell: Callable[[PolicyDiff], T]) -> T:
    """What saving would change of what agents may do."""
    return tell(workspace.unsaved_rights())


def review_calls(workspace: Workspace, tell: Callable[[Replay], T]) -> Generator[int, None, T]:
    """Which of the newest recorded calls would be decided otherwise than by the file; yields how many are decided."""
    return tell((yield from replay(workspace, workspace.saved_policy, workspace.policy)))
