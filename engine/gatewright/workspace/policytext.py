"""The text of one policy file: as it was saved, as it would be saved now, and saving it.

Every method may be called from any thread; text, policy and what was read of both always belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright import policyfile
from gatewright.base.errors import EditRefused, NotSupported, PolicyInvalid, WeMustFix, WorkspaceError
from gatewright.base.problem import Address, Place, Problem
from gatewright.policy.document import Policy, Written
from gatewright.policyfile import (
    KnownTools,
    LoadedPolicy,
    Places,
    overwrite_policy_text,
    parse_policy,
    read_policy_text,
    write_policy_text,
)
from gatewright.record.process import fork_safe_lock

if TYPE_CHECKING:
    from gatewright.gate.decision import Places as FindPlace
    from gatewright.policy.edit import Edit
    from gatewright.policy.right import ToolFacts


class PolicyText:
    """``saved`` is what the file held when it was read or saved here, ``saved_policy`` what that text says.

    ``known``: the tools that the text may name.
    """

    def __init__(self, path: Path, loaded: LoadedPolicy, policy: Policy, known: KnownTools) -> None:
        self._path, self._known = path, known
        self._lock, self._saving = fork_safe_lock(), fork_safe_lock()
        self.saved, self.saved_policy = loaded.text, policy
        self._now = (policy, loaded.text, loaded.places)
        self._last_read = loaded
        self._compared = (policy, policy, loaded.text, True)

    def reread(self, known: KnownTools) -> PolicyText:
        """The same text, held to other tools. Raises PolicyInvalid where it names what is not among them."""
        loaded = parse_policy(self.saved, file=str(self._path), known=known)
        if loaded.policy is None:
            raise PolicyInvalid(loaded.problems)
        return PolicyText(self._path, loaded, self.saved_policy, known)

    def of(self, policy: Policy) -> str:
        """Write ``policy`` as it would be saved: the least change of `base_of`, whatever was edited in between.

        Raises NotSupported for what the file's dialect cannot say.
        """
        return self._written(policy)[1]

    def read(self, policy: Policy) -> LoadedPolicy:
        """Read the text of ``policy`` from end to end; takes time, so not for the GUI thread."""
        return self._read(self._written(policy, lambda text: self._read(text).policy)[1])

    def _written(
        self, policy: Policy, read: Callable[[str], Policy | None] | None = None
    ) -> tuple[Policy, str, Places]:
        with self._lock:
            if not self._is_same(policy, self._now[0]):
                base = self.base_of(policy)
                text = policyfile.patch_text(base.text, base.policy, policy, read)
                self._now = policy, text, Places(text, str(self._path), policy.dialect)
            return self._now

    def base_of(self, policy: Policy) -> Written:
        """The text that the one of ``policy`` is an edit of: what was typed, or an older one that undo went back to,
        else what was saved. What the saved policy itself was an edit of does not count any more.
        """
        written, own = policy.written, self.saved_policy.written
        is_saved = written is not None and own is not None and written.identity == own.identity
        if written is None or is_saved or written.text == self.saved:
            return Written(self.saved, self.saved_policy)
        return written

    def is_saved(self, policy: Policy) -> bool:
        """Whether the file holds what would be saved for ``policy``; looked at once, however often it is asked."""
        asked, compared = (policy, self.saved_policy, self.saved), self._compared
        if not all(one is other for one, other in zip(asked, compared[:3], strict=True)):
            self._compared = compared = (*asked, self._is_same(policy, self.saved_policy))
        return compared[3]

    def _is_same(self, policy: Policy, other: Policy) -> bool:
        return policy.is_same(other) and self.base_of(policy).text == self.base_of(other).text

    def places(self, policy: Policy) -> FindPlace:
        """Where the parts of ``policy`` stand in its text, looked up when it is asked; for this policy for good."""

        def place(address: Address) -> Place | None:
            return self._written(policy)[2].place(address)

        return place

    @property
    def as_saved(self) -> tuple[str, Policy]:
        """``saved`` and ``saved_policy``, which belong together."""
        with self._lock:
            return self.saved, self.saved_policy

    def known(self, policy: Policy, facts: tuple[ToolFacts, ...]) -> KnownTools:
        """These tools as those that the text of ``policy`` may name; others may be of a catalog that cannot be read."""
        return replace(self._known, facts=facts, is_complete=self._known.has_all_of(policy.catalogs))

    def keep_saved(self, policy: Policy, text: str) -> bool:
        """Take ``policy`` for saved as ``text``, as another process says; False where that is not its text here."""
        try:
            if self.of(policy) != text:
                return False
        except (NotSupported, WeMustFix):
            return False
        self._keep(policy, text)
        return True

    def save(self, policy: Policy, *, overwrite: bool = False) -> None:
        """Write the difference into the file, atomically. Raises WorkspaceError; then nothing has changed.

        A file that was changed outside is refused, unless ``overwrite``: then its text is edited as far as it still
        loads, else replaced by the text here.
        """
        with self._saving:
            if overwrite and self.changed_outside():
                on_disk = self._on_disk()
                text = (None if on_disk is None else self._rebased(on_disk, policy)) or self.of(policy)
                overwrite_policy_text(self._path, text, seen=on_disk)
                self._keep(policy, text)
            elif not self.is_saved(policy):
                text = self.of(policy)
                write_policy_text(self._path, text, expected=self.saved)
                self._keep(policy, text)

    def write_again(self, policy: Policy) -> None:
        """Write the whole text where the file is gone, into a new folder where that is gone too.

        Raises WorkspaceError, also where there is a file again.
        """
        with self._saving:
            text = self.of(policy)
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                folder = self._path.parent
                raise WorkspaceError(f"cannot make the folder `{folder}`: {error.strerror or error}") from None
            write_policy_text(self._path, text, expected=None)
            self._keep(policy, text)

    def saving_over(self, policy: Policy) -> tuple[str | None, str]:
        """What the file holds now, None where it cannot be read, and what saving over that would write."""
        on_disk = self._on_disk()
        if on_disk is None or on_disk == self.saved:
            return on_disk, self.of(policy)
        return on_disk, self._rebased(on_disk, policy) or self.of(policy)

    def edit_between(self, name: str, before: str, after: str) -> Edit:
        """The edit that makes one text the other. Raises PolicyInvalid and EditRefused."""
        from gatewright.policy.edit import edit_between

        return edit_between(name, self._said(before), self._said(after))

    def typed(self, policy: Policy, name: str, over: str, text: str) -> tuple[Edit, str]:
        """What was typed over a text, as an edit of ``policy``, and the text that it leaves: as it was typed, but for
        what ``policy`` says otherwise than ``over``. Raises PolicyInvalid, and EditRefused where both changed the same.
        """
        from gatewright.policy.edit import apply, edit_between

        said, is_now = self._said(text), over == self.of(policy)
        edit = edit_between(name, policy if is_now else self._said(over), said)
        try:
            return edit, text if is_now else policyfile.patch_text(text, said, apply(policy, edit))
        except (NotSupported, WeMustFix) as error:
            raise EditRefused(str(error)) from None

    def problems_of(self, text: str, beside: Callable[[LoadedPolicy], Iterable[Problem]]) -> tuple[Problem, ...]:
        """What is wrong with another text of the file; ``beside``: what else there is to say of one."""
        loaded = self._read(text)
        return (*loaded.problems, *beside(loaded))

    def _said(self, text: str) -> Policy:
        """The policy that a text says. Raises PolicyInvalid."""
        loaded = self._read(text)
        if loaded.policy is None:
            raise PolicyInvalid(loaded.problems)
        return loaded.policy

    def merge_edit(self, policy: Policy) -> tuple[Edit, str | None]:
        """What differs between the saved policy and ``policy``, as an edit of what the file holds now; and, where
        something was typed, both texts put together, None where their lines cannot be.

        Raises EditRefused where both changed the same, WorkspaceError where the file cannot be read or has errors.
        """
        from gatewright.policy.edit import apply, edit_between
        from gatewright.sources.merge import merge_texts

        edit = edit_between("merge the unsaved changes", self.saved_policy, policy)
        theirs = self._read(read_policy_text(self._path))
        if theirs.policy is None:
            raise WorkspaceError("the file has errors now")
        after = apply(theirs.policy, edit)
        if self.base_of(policy).text == self.saved:
            return edit, None
        text = merge_texts(self.saved, self.of(policy), theirs.text).text
        said = None if text is None else self._read(text).policy
        return edit, text if said is not None and said.is_same(after) else None

    def changed_outside(self) -> bool:
        """Whether the file on disk is no longer what was read or saved here."""
        return self._on_disk() != self.saved

    def _keep(self, policy: Policy, text: str) -> None:
        with self._lock:
            self.saved, self.saved_policy = text, policy
            self._now = policy, text, Places(text, str(self._path), policy.dialect)

    def _rebased(self, on_disk: str, policy: Policy) -> str | None:
        """The text on disk edited to say ``policy``; None when it is not good enough to be edited."""
        loaded = self._read(on_disk)
        if loaded.policy is None or self.base_of(policy).text != self.saved:  # what was typed is kept as it is
            return None
        try:
            return policyfile.patch_text(on_disk, loaded.policy, policy)
        except (NotSupported, WeMustFix):
            return None

    def _read(self, text: str) -> LoadedPolicy:
        """Read a text; the last one is kept."""
        loaded = self._last_read
        if loaded.text != text:
            self._last_read = loaded = parse_policy(text, file=str(self._path), known=self._known)
        return loaded

    def _on_disk(self) -> str | None:
        try:
            return read_policy_text(self._path)
        except WorkspaceError:
            return None
