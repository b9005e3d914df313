"""The disposable copy of the open workspace: made when it is first needed, kept in step with the policy as edited.

It blocks, and is used from one thread only.
"""

import time
from collections.abc import Callable

from gatewright.workspace.api import (
    Copied,
    GatewrightError,
    Policy,
    Sandbox,
    Workspace,
    edit_between,
    remove_dead_copies,
)
from gatewright_gui.qt.language import counted, tr

TELL_S = 0.15
"""How often it is told how far the copying is."""


class DisposableCopy:
    """At most one copy; `told` hears what is being done, `""` when it is done."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told = told
        self._sandbox: Sandbox[Workspace] | None = None
        self._origin: Workspace | None = None

    @property
    def exists(self) -> bool:
        """Tell whether there is a copy."""
        return self._sandbox is not None

    @property
    def copied(self) -> Copied | None:
        """The outcome of the copying."""
        return self._sandbox.copied if self._sandbox is not None else None

    def of(self, origin: Workspace) -> Workspace | None:
        """The workspace of the copy as it is, if there is one of `origin`."""
        return self._sandbox.workspace if self._sandbox is not None and self._origin is origin else None

    def in_step(self, origin: Workspace, policy: Policy, cancelled: Callable[[], bool] = lambda: False) -> Workspace:
        """The workspace of the copy, under `policy`; `cancelled` is asked while it is made.

        Raises WorkspaceError when it cannot be made, CopyCancelled; then there is none.
        """
        if self._origin is not origin:
            self.throw_away()
        if self._sandbox is None or not _follows(self._sandbox.workspace, policy):
            self._make(origin, cancelled)
        if self._sandbox is None:
            raise LookupError("the copy was made and is not there")
        return self._sandbox.workspace

    def follow(self, policy: Policy) -> None:
        """Give the copy what was edited, where that can be done without making it anew."""
        if self._sandbox is not None:
            _follows(self._sandbox.workspace, policy)

    def throw_away(self) -> None:
        """Remove the copy; the next one is fresh."""
        sandbox, self._sandbox, self._origin = self._sandbox, None, None
        if sandbox is not None:
            sandbox.close()

    def _make(self, origin: Workspace, cancelled: Callable[[], bool]) -> None:
        self.throw_away()
        self._told(tr("copying the workspace"))
        told_at = time.monotonic()

        def progress(files: int, size: int) -> None:
            nonlocal told_at
            if time.monotonic() - told_at >= TELL_S:
                told_at = time.monotonic()
                done = counted(files, "file", "files") + f", {size / 1_000_000:,.1f} MB"
                self._told(tr("copying the workspace: {done}", done=done))

        try:
            self._sandbox, self._origin = origin.sandbox(cancelled=cancelled, progress=progress), origin
        finally:
            self._told("")


def remove_dead(workspace: Workspace) -> None:
    """Remove the copies of processes that were killed."""
    remove_dead_copies(workspace.state_folder)


def _follows(copy: Workspace, policy: Policy) -> bool:
    """Give the copy what was edited since; False when it has to be made anew."""
    before = copy.policy
    bases = [{source.source_id: source.base_path for source in one.folder_sources} for one in (before, policy)]
    if bases[0] != bases[1] or before.roots != policy.roots or before.catalogs != policy.catalogs:
        return False
    try:
        edit = edit_between("follow the policy", before, policy)
        if not edit.is_empty:
            copy.apply(edit)
    except GatewrightError:
        return False
    return copy.policy == policy
