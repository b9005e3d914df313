"""Unsaved edits of a policy, kept in the user's data folder so that they outlive a process that is killed.

One file for each window and policy, in the name of a `Lifeline`: a journal whose process lives is nobody else's.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from gatewright.gate.lifeline import Lifeline, is_alive
from gatewright.policyfile import write_policy_text
from gatewright.record import PrivateFolder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MOST_BYTES = 64 * 1024 * 1024
"""Of a journal: two texts of a policy, as JSON."""


@dataclass(frozen=True, slots=True)  # pydantic makes these, and knows no `frozen`
class UnsavedPolicy:
    """A policy's ``text`` with ``steps`` unsaved edits, and the text of the file that they were made on."""

    grown_from: str
    text: str
    steps: int


_PLAIN = TypeAdapter(UnsavedPolicy)


class Journal:
    """The journal of one window for one policy file. Methods block, for any thread, one at a time."""

    def __init__(self, folder: Path, policy_path: Path) -> None:
        self._folder = PrivateFolder(folder)
        self._policy = hashlib.sha256(os.fsencode(os.path.realpath(policy_path))).hexdigest()[:32]
        self._life = Lifeline(folder)
        self._own = ""

    def keep(self, unsaved: UnsavedPolicy) -> None:
        """Write the journal in place of the earlier one. Raises OSError and WorkspaceError."""
        self._folder.make()
        self._own = f"{self._policy}.{self._life.hold(self._policy)}.json"
        self._folder.replace(self._own, _PLAIN.dump_json(unsaved))

    def forget(self) -> None:
        """Remove the journal: there is nothing unsaved any more. Raises OSError."""
        if self._own:
            self._folder.delete(self._own)
            self._own = ""
        self._life.close()

    def close(self) -> None:
        """Leave the journal, if there is one, to whoever opens the policy next."""
        self._own = ""
        self._life.close()

    def left(self) -> tuple[Mapping[str, UnsavedPolicy], tuple[str, ...]]:
        """What processes that ended left of this policy, by the name of the journal, the newest first; and what was
        ignored, in sentences.
        """
        found: list[tuple[int, str, UnsavedPolicy]] = []
        ignored: list[str] = []
        try:
            names = [name for name in self._folder.names() if name.startswith(self._policy) and name.endswith(".json")]
        except OSError:
            return {}, ()  # what cannot be read holds nothing; keeping says why
        for name in names:
            if is_alive(self._folder.path, name.split(".")[1]):
                continue
            try:
                facts = self._folder.look(name)
                if facts is None:
                    continue
                if facts.st_uid != os.getuid():
                    ignored.append(f"unsaved changes in `{self._folder.path / name}` are ignored: they are not yours")
                    continue
                unsaved = _PLAIN.validate_json(self._folder.read(name, MOST_BYTES), strict=True)
                found.append((facts.st_mtime_ns, name, unsaved))
            except (OSError, ValidationError) as error:
                reason = (error.strerror or "") if isinstance(error, OSError) else "the file is damaged"
                ignored.append(f"unsaved changes in `{self._folder.path / name}` are ignored: {reason}")
        return {name: unsaved for _, name, unsaved in sorted(found, key=lambda row: row[:2], reverse=True)}, tuple(
            ignored
        )

    def remove(self, name: str) -> None:
        """Remove what another process left. Raises OSError."""
        self._folder.delete(name)


def write_beside(policy_path: Path, text: str) -> Path:
    """Write unsaved text into a new file beside the policy; where. Raises WorkspaceError."""
    number = 1
    target = policy_path.with_name(f"{policy_path.stem}.unsaved.toml")
    while os.path.lexists(target):
        number += 1
        target = policy_path.with_name(f"{policy_path.stem}.unsaved-{number}.toml")
    write_policy_text(target, text, expected=None)
    return target
