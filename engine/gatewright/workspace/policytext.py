"""The text of one policy file: the saved text, the text that a save would write now, and models' views by the saved
policy.

Any thread may call any method; text, policy and readings always belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright import blocks, policyfile
from gatewright.base.errors import (
    Address,
    EditRefused,
    NotSupported,
    Place,
    PolicyInvalid,
    Problem,
    WeMustFix,
    WorkspaceError,
)
from gatewright.compile.snapshot import Snapshot
from gatewright.gate import Gate
from gatewright.gate.decision import Places as FindPlace
from gatewright.policy.document import Policy, Written
from gatewright.policy.right import ToolFacts
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
from gatewright.workspace.program import LateTools

if TYPE_CHECKING:
    from gatewright.compile.view import AgentView
    from gatewright.policy.edit import Edit


class PolicyText:
    """``saved`` is the file's content as read or saved here, ``saved_policy`` the policy in it.

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
        """Check the same text against other tools. Raises PolicyInvalid if it names an unknown one."""
        loaded = parse_policy(self.saved, file=str(self._path), known=known)
        if loaded.policy is None:
            raise PolicyInvalid(loaded.problems)
        return PolicyText(self._path, loaded, self.saved_policy, known)

    def of(self, policy: Policy) -> str:
        """Write ``policy`` as a save would: the least change of `base_of`, whatever edits came in between.

        Raises NotSupported for what the file's dialect cannot express.
        """
        return self._patch(policy)[1]

    def read(self, policy: Policy) -> LoadedPolicy:
        """Read the text of ``policy`` from end to end; takes time, so not for the GUI thread."""
        return self._read(self._patch(policy, lambda text: self._read(text).policy)[1])

    def _patch(self, policy: Policy, read: Callable[[str], Policy | None] | None = None) -> tuple[Policy, str, Places]:
        with self._lock:
            if not self._is_same(policy, self._now[0]):
                base = self.base_of(policy)
                text = policyfile.patch_text(base.text, base.policy, policy, read)
                self._now = policy, text, Places(text, str(self._path), policy.dialect)
            return self._now

    def base_of(self, policy: Policy) -> Written:
        """Return the base text of ``policy``: typed text, or an older one that undo returned to, else the saved one.

        Once the policy is saved, its own base no longer counts.
        """
        written, own = policy.written, self.saved_policy.written
        is_saved = written is not None and own is not None and written.identity == own.identity
        if written is None or is_saved or written.text == self.saved:
            return Written(self.saved, self.saved_policy)
        return written

    def is_saved(self, policy: Policy) -> bool:
        """Tell whether the file has the text that a save of ``policy`` would write; the comparison is made once and
        remembered.
        """
        asked, compared = (policy, self.saved_policy, self.saved), self._compared
        if not all(one is other for one, other in zip(asked, compared[:3], strict=True)):
            self._compared = compared = (*asked, self._is_same(policy, self.saved_policy))
        return compared[3]

    def _is_same(self, policy: Policy, other: Policy) -> bool:
        return policy.is_same(other) and self.base_of(policy).text == self.base_of(other).text

    def places(self, policy: Policy) -> FindPlace:
        """Return a function from an address in ``policy`` to its place in the text, looked up at each call."""

        def place(address: Address) -> Place | None:
            return self._patch(policy)[2].place(address)

        return place

    @property
    def as_saved(self) -> tuple[str, Policy]:
        """Return ``saved`` and ``saved_policy`` as a pair."""
        with self._lock:
            return self.saved, self.saved_policy

    def nameable(self, policy: Policy, facts: tuple[ToolFacts, ...]) -> KnownTools:
        """Return these tools as those that the text of ``policy`` may name; an unreadable catalog may have more."""
        return replace(self._known, facts=facts, is_complete=self._known.has_all_of(policy.catalogs))

    def keep_saved(self, policy: Policy, text: str) -> bool:
        """Take ``policy`` for saved as ``text``, as another process reports; return False if its text here differs."""
        try:
            if self.of(policy) != text:
                return False
        except (NotSupported, WeMustFix):
            return False
        self._keep(policy, text)
        return True

    def save(self, policy: Policy, *, overwrite: bool = False) -> None:
        """Write the difference into the file atomically. Raises WorkspaceError, and then changes nothing.

        A file that changed outside is refused, unless ``overwrite``: then the text in that file is edited if it still
        loads, else replaced by the text here.
        """
        with self._saving:
            if overwrite and self.is_changed_outside():
                on_disk = self._on_disk()
                text = (None if on_disk is None else self._rebase(on_disk, policy)) or self.of(policy)
                overwrite_policy_text(self._path, text, seen=on_disk)
                self._keep(policy, text)
            elif not self.is_saved(policy):
                text = self.of(policy)
                write_policy_text(self._path, text, expected=self.saved)
                self._keep(policy, text)

    def write_again(self, policy: Policy) -> None:
        """Write the whole text of a deleted file, into a new folder if that is gone too.

        Raises WorkspaceError, also if the file exists again.
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
        """Return the file's present content, None if unreadable, and the text that saving over it would write."""
        on_disk = self._on_disk()
        if on_disk is None or on_disk == self.saved:
            return on_disk, self.of(policy)
        return on_disk, self._rebase(on_disk, policy) or self.of(policy)

    def edit_between(self, name: str, before: str, after: str) -> Edit:
        """Return the edit that turns one text into the other. Raises PolicyInvalid and EditRefused."""
        from gatewright.policy.edit import edit_between

        return edit_between(name, self._policy_in(before), self._policy_in(after))

    def edit_of_typed(self, policy: Policy, name: str, over: str, text: str) -> tuple[Edit, str]:
        """Turn text typed over another text into an edit of ``policy``; return the edit and the resulting text.

        The result is as typed, except where ``policy`` differs from ``over``. Raises PolicyInvalid, and EditRefused if
        both changed the same.
        """
        from gatewright.policy.edit import apply, edit_between

        said, is_now = self._policy_in(text), over == self.of(policy)
        edit = edit_between(name, policy if is_now else self._policy_in(over), said)
        try:
            return edit, text if is_now else policyfile.patch_text(text, said, apply(policy, edit))
        except (NotSupported, WeMustFix) as error:
            raise EditRefused(str(error)) from None

    def problems_of(self, text: str, beside: Callable[[LoadedPolicy], Iterable[Problem]]) -> tuple[Problem, ...]:
        """Find the problems of another text for the file; ``beside`` yields those outside of the text."""
        loaded = self._read(text)
        return (*loaded.problems, *beside(loaded))

    def _policy_in(self, text: str) -> Policy:
        """Parse the policy of a text. Raises PolicyInvalid."""
        loaded = self._read(text)
        if loaded.policy is None:
            raise PolicyInvalid(loaded.problems)
        return loaded.policy

    def merge_edit(self, policy: Policy) -> tuple[Edit, str | None]:
        """Return the difference between the saved policy and ``policy`` as an edit of the file's present content.

        If somebody typed text, also return both texts merged, None if their lines conflict.

        Raises EditRefused if both changed the same, WorkspaceError if the file is unreadable or has errors.
        """
        from gatewright.policy.edit import apply, edit_between

        edit = edit_between("merge the unsaved changes", self.saved_policy, policy)
        theirs = self._read(read_policy_text(self._path))
        if theirs.policy is None:
            raise WorkspaceError("the file has errors now")
        after = apply(theirs.policy, edit)
        if self.base_of(policy).text == self.saved:
            return edit, None
        text = blocks.merge_texts(self.saved, self.of(policy), theirs.text).text
        said = None if text is None else self._read(text).policy
        return edit, text if said is not None and said.is_same(after) else None

    def is_changed_outside(self) -> bool:
        """Tell whether the file on disk differs from the text as read or saved here."""
        return self._on_disk() != self.saved

    def _keep(self, policy: Policy, text: str) -> None:
        with self._lock:
            self.saved, self.saved_policy = text, policy
            self._now = policy, text, Places(text, str(self._path), policy.dialect)

    def _rebase(self, on_disk: str, policy: Policy) -> str | None:
        """Edit the text on disk so that it says ``policy``; None if that text cannot be edited."""
        loaded = self._read(on_disk)
        if loaded.policy is None or self.base_of(policy).text != self.saved:  # a typed text stays as it is
            return None
        try:
            return policyfile.patch_text(on_disk, loaded.policy, policy)
        except (NotSupported, WeMustFix):
            return None

    def _read(self, text: str) -> LoadedPolicy:
        """Read a text, and remember the last reading."""
        loaded = self._last_read
        if loaded.text != text:
            self._last_read = loaded = parse_policy(text, file=str(self._path), known=self._known)
        return loaded

    def _on_disk(self) -> str | None:
        try:
            return read_policy_text(self._path)
        except WorkspaceError:
            return None


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
        """Tell whether both come from the same files with the same content, whatever edits or saves followed."""
        return all(
            getattr(self, name) == getattr(other, name) for name in ("policy_path", "folders", "manifests", "late")
        )


class SavedViews:
    """Views of the saved policy over the present tools, cached until either changes.

    They share all parts that later edits leave alone with the policy in force, so a view costs only its differences.
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._policy: Policy | None = None
        self._snapshot: Snapshot | None = None
        self._views: dict[str, AgentView] = {}

    def view(self, gate: Gate, saved: Policy, agent_id: str) -> AgentView | None:
        """Return an agent's view under the saved policy; None if that policy lacks the agent.

        If catalogs or roots have changed since, their former tools are gone and the present ones replace them; see
        `remark`.
        """
        from gatewright.compile.view import AgentView

        now = gate.snapshot()
        with self._lock:
            held = self._snapshot
            if held is None or self._policy is not saved or not held.is_current or _offers(held.policy, now.policy):
                held = (
                    now
                    if now.policy is saved
                    else now.renew(replace(saved, **{part: getattr(now.policy, part) for part in _OFFERS}), None)
                )
                self._policy, self._snapshot, self._views = saved, held, {}
            agent = held.agent(agent_id)
            if agent is None:
                return None
            if agent_id not in self._views:
                self._views[agent_id] = AgentView(agent)
            return self._views[agent_id]

    @staticmethod
    def remark(gate: Gate, saved: Policy) -> str:
        """Explain a limit of comparing a saved view with the present one; empty without any."""
        parts = _offers(saved, gate.snapshot().policy)
        return f"{' and '.join(parts)} changed since the last save: both sides have the tools of now" if parts else ""


_OFFERS = ("catalogs", "roots", "shell")


def _offers(one: Policy, other: Policy) -> list[str]:
    """List the parts of two policies that supply different tools."""
    return [part for part in _OFFERS if getattr(one, part) != getattr(other, part)]
