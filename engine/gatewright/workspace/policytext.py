"""The text of one policy file: as it was saved, as it would be saved now, and saving it. It enforces nothing.

Every method may be called from any thread; text, policy and what was read of both always belong together.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gatewright.base.errors import NotSupported, WeMustFix, WorkspaceError
from gatewright.policyfile import (
    overwrite_policy_text,
    parse_policy,
    patch_text,
    read_policy_text,
    write_policy_text,
)

if TYPE_CHECKING:
    from pathlib import Path

    from gatewright.base.problem import Address, Place
    from gatewright.gate.decision import Places
    from gatewright.policy.document import Policy
    from gatewright.policyfile import KnownTools, LoadedPolicy


class PolicyText:
    """``saved`` is what the file held when it was read or saved here, ``saved_policy`` what that text says.

    ``known``: the tools that the text may name.
    """

    def __init__(self, path: Path, loaded: LoadedPolicy, policy: Policy, known: KnownTools) -> None:
        self._path, self._known = path, known
        self._lock, self._saving = threading.Lock(), threading.Lock()
        self.saved, self.saved_policy = loaded.text, policy
        self._now = (policy, loaded)

    def of(self, policy: Policy) -> LoadedPolicy:
        """The text as it would be saved for ``policy``, read again; byte-identical to the file for what it says."""
        with self._lock:
            if self._now[0] is not policy:
                self._now = (policy, self._read(patch_text(self.saved, self.saved_policy, policy)))
            return self._now[1]

    def places(self, policy: Policy) -> Places:
        """Where the parts of ``policy`` stand in its text, looked up when it is asked; for this policy for good."""

        def place(address: Address) -> Place | None:
            return self.of(policy).places.place(address)

        return place

    def save(self, policy: Policy, *, overwrite: bool = False) -> None:
        """Write the difference into the file, atomically. Raises WorkspaceError; then nothing has changed.

        A file that was changed outside is refused, unless ``overwrite``: then its text is edited as far as it still
        loads, else replaced by the text here.
        """
        with self._saving:
            if overwrite and self.changed_outside():
                self._save_over(policy)
            elif policy != self.saved_policy:
                loaded = self.of(policy)
                write_policy_text(self._path, loaded.text, expected=self.saved)
                self._keep(policy, loaded)

    def changed_outside(self) -> bool:
        """Whether the file on disk is no longer what was read or saved here."""
        return self._on_disk() != self.saved

    def _save_over(self, policy: Policy) -> None:
        on_disk = self._on_disk()
        text = (None if on_disk is None else self._rebased(on_disk, policy)) or self.of(policy).text
        overwrite_policy_text(self._path, text, seen=on_disk)
        self._keep(policy, self._read(text))

    def _keep(self, policy: Policy, loaded: LoadedPolicy) -> None:
        with self._lock:
            self.saved, self.saved_policy = loaded.text, policy
            self._now = (policy, loaded)

    def _rebased(self, on_disk: str, policy: Policy) -> str | None:
        """The text on disk edited to say ``policy``; None when it is not good enough to be edited."""
        loaded = self._read(on_disk)
        if loaded.policy is None:
            return None
        try:
            return patch_text(on_disk, loaded.policy, policy)
        except (NotSupported, WeMustFix):
            return None

    def _read(self, text: str) -> LoadedPolicy:
        return parse_policy(text, file=str(self._path), known=self._known)

    def _on_disk(self) -> str | None:
        try:
            return read_policy_text(self._path)
        except WorkspaceError:
            return None
