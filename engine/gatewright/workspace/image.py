"""The state of an open workspace as read and edited: enough to rebuild it in another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gatewright.policy.document import Policy
from gatewright.workspace.program import LateTools


@dataclass(frozen=True, slots=True)
class WorkspaceImage:
    """``text``: the policy file's content when read or saved, ``saved`` the policy in it, ``policy`` the present edited
    one. ``manifests``: the content of the catalogs' files when read, by the path in the policy.

    ``folders``: the folders of the state and the keys. ``late``: the program's tools that came and went since the
    start.
    """

    policy_path: Path
    folders: tuple[Path, Path]
    text: str
    saved: Policy
    policy: Policy
    manifests: Mapping[str, bytes]
    late: LateTools

    def is_read_alike(self, other: WorkspaceImage) -> bool:
        """Tell whether both were read from the same files with the same content, whatever edits or saves came since."""
        return all(
            getattr(self, name) == getattr(other, name) for name in ("policy_path", "folders", "manifests", "late")
        )
