"""What an open workspace has read and what was edited since: enough to have the same one in another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gatewright.policy.document import Policy
    from gatewright.workspace.program import LateTools


@dataclass(frozen=True, slots=True)
class WorkspaceImage:
    """``text``: what the policy file held when it was read or saved, ``saved`` the policy that it says, ``policy`` the
    one as edited now. ``manifests``: what the catalogs' files held when they were read, by the path in the policy.

    ``folders``: where the state and the keys are. ``late``: what of the program's tools came and went since the start.
    """

    policy_path: Path
    folders: tuple[Path, Path]
    text: str
    saved: Policy
    policy: Policy
    manifests: Mapping[str, bytes]
    late: LateTools

    def is_read_alike(self, other: WorkspaceImage) -> bool:
        """Whether both were read from the same files with the same contents, whatever was edited or saved since."""
        return all(
            getattr(self, name) == getattr(other, name) for name in ("policy_path", "folders", "manifests", "late")
        )
