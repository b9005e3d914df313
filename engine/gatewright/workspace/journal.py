"""Unsaved edits of a policy, stored in the user's data folder so that they outlive a killed process.

One file for each window and policy, named by a `Lifeline`: a journal whose process lives belongs to that process.
Unsaved texts of the memory page share one file for all windows of a policy.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from gatewright.policyfile import write_policy_text
from gatewright.record.folder import PrivateFolder
from gatewright.record.process import Lifeline, is_alive

MOST_BYTES = 64 * 1024 * 1024
"""Limit of a journal's bytes: two texts of a policy, as JSON."""


@dataclass(frozen=True, slots=True)  # pydantic makes these, and cannot read `frozen`
class UnsavedPolicy:
    """A policy's ``text`` with ``steps`` unsaved edits, and the file's text that they started from."""

    grown_from: str
    text: str
    steps: int


@dataclass(frozen=True, slots=True)
class TypedText:
    """A typed, unsaved text, and its base: a text, or the number of a block's last step."""

    text: str
    over: str


MOST_TYPED = 100
"""Limit of a policy's typed texts: the latest stay."""


class Journal:
    """The journal of one window for one policy file. Methods block; any thread may call them, one at a time."""

    def __init__(self, folder: Path, policy_path: Path) -> None:
        self._folder = PrivateFolder(folder)
        self._policy = _name_of(policy_path)
        self._life = Lifeline(folder)
        self._own = ""

    def keep(self, unsaved: UnsavedPolicy) -> None:
        """Write the journal in place of the earlier one. Raises OSError and WorkspaceError."""
        self._folder.make()
        self._own = f"{self._policy}.{self._life.hold(self._policy)}.json"
        self._folder.replace(self._own, _plain().dump_json(unsaved))

    def forget(self) -> None:
        """Remove the journal, since everything is saved. Raises OSError."""
        if self._own:
            self._folder.delete(self._own)
            self._own = ""
        self._life.close()

    def close(self) -> None:
        """Leave the journal to the next process that opens the policy."""
        self._own = ""
        self._life.close()

    def leftovers(self) -> tuple[Mapping[str, UnsavedPolicy], tuple[str, ...]]:
        """Return the journals of ended processes for this policy, by name, the newest first, and sentences about
        ignored ones.
        """
        found: list[tuple[int, str, UnsavedPolicy]] = []
        ignored: list[str] = []
        try:
            names = [name for name in self._folder.names() if name.startswith(self._policy) and name.endswith(".json")]
        except OSError:
            return {}, ()  # an unreadable folder counts as empty; `keep` reports its fault
        for name in names:
            if is_alive(self._folder.path, name.split(".")[1]):
                continue
            try:
                facts = self._folder.look(name)
                if facts is None:
                    continue
                if hasattr(os, "getuid") and facts.st_uid != os.getuid():
                    ignored.append(f"unsaved changes in `{self._folder.path / name}` are ignored: they are not yours")
                    continue
                unsaved = _plain().validate_json(self._folder.read(name, MOST_BYTES), strict=True)
                found.append((facts.st_mtime_ns, name, unsaved))
            except (OSError, ValidationError) as error:
                reason = (error.strerror or "") if isinstance(error, OSError) else "the file is damaged"
                ignored.append(f"unsaved changes in `{self._folder.path / name}` are ignored: {reason}")
        return {name: unsaved for _, name, unsaved in sorted(found, key=lambda row: row[:2], reverse=True)}, tuple(
            ignored
        )

    def remove(self, name: str) -> None:
        """Remove the journal of another process. Raises OSError."""
        self._folder.delete(name)


class TypedTexts:
    """Texts typed on the memory page in the windows of one policy file and not saved, by name. Methods block."""

    def __init__(self, folder: Path, policy_path: Path) -> None:
        self._folder = PrivateFolder(folder)
        self._name = f"typed-{_name_of(policy_path)}.json"

    def read(self) -> dict[str, TypedText]:
        """Return all texts, the latest at the end; nothing if unreadable."""
        try:
            content = self._folder.read(self._name, MOST_BYTES)
            return _text_adapter().validate_json(content, strict=True)
        except (OSError, ValidationError):
            return {}

    def change(self, changes: Mapping[str, TypedText | None]) -> None:
        """Store these, drop those that are None; leave other windows' texts. Raises OSError."""
        self._folder.make()
        with self._folder.exclusive():
            before = self.read()
            rest = {name: typed for name, typed in before.items() if name not in changes}
            now = {**rest, **{name: typed for name, typed in changes.items() if typed is not None}}
            if now:
                self._folder.replace(self._name, _text_adapter().dump_json(dict(list(now.items())[-MOST_TYPED:])))
            elif before:
                self._folder.delete(self._name)


@cache
def _plain() -> TypeAdapter[UnsavedPolicy]:
    return TypeAdapter(UnsavedPolicy)


@cache
def _text_adapter() -> TypeAdapter[dict[str, TypedText]]:
    return TypeAdapter(dict[str, TypedText])


def _name_of(policy_path: Path) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(policy_path))).hexdigest()[:32]


def write_beside(policy_path: Path, text: str) -> Path:
    """Write unsaved text into a new file beside the policy, and return its path. Raises WorkspaceError."""
    number = 1
    target = policy_path.with_name(f"{policy_path.stem}.unsaved.toml")
    while os.path.lexists(target):
        number += 1
        target = policy_path.with_name(f"{policy_path.stem}.unsaved-{number}.toml")
    write_policy_text(target, text, expected=None)
    return target
