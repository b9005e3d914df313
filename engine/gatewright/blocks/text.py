"""A text block: one Loro document with one text, so that edits have a history and can merge.

Loro raises most of its errors as plain BaseException; every call to it goes through ``guarded``, which turns them into
errors of our tree. Positions and lengths count characters (Unicode code points).
"""

from __future__ import annotations

import loro

from gatewright.base.errors import WeMustFix, WorkspaceError
from gatewright.blocks.guard import guarded

_BODY = "body"
_UPDATE_TIMEOUT_MS = 250


class TextBlock:
    """A text that is edited in memory and kept as a snapshot. Not safe for use from two threads at once."""

    def __init__(self, document: loro.LoroDoc) -> None:
        self._document = document
        self._text = document.get_text(_BODY)

    @classmethod
    def from_text(cls, text: str) -> TextBlock:
        """A new block that holds ``text``."""
        with guarded(WeMustFix("a new block cannot be made")):
            block = cls(loro.LoroDoc())
            block._insert(0, text)
            return block

    @classmethod
    def from_snapshot(cls, snapshot: bytes) -> TextBlock:
        """The block of ``snapshot()``. Raises WorkspaceError for bytes that are none."""
        with guarded(WorkspaceError("the stored block is damaged and cannot be opened")):
            document = loro.LoroDoc()
            document.import_(snapshot)
            return cls(document)

    @property
    def text(self) -> str:
        """The whole text."""
        with guarded(WeMustFix("a block's text cannot be had")):
            return self._text.to_string()

    @property
    def length(self) -> int:
        """The number of characters."""
        with guarded(WeMustFix("a block's length cannot be had")):
            return self._text.len_unicode

    def append(self, content: str) -> None:
        """Add ``content`` at the end."""
        with guarded(WeMustFix("a block refuses text at its end")):
            self._insert(self._text.len_unicode, content)

    def replace_once(self, old: str, new: str) -> int:
        """Put ``new`` in the place of ``old`` if it stands there exactly once; answers how often it stands there.

        Overlapping places count: ``aa`` stands twice in ``aaa``. An empty ``old`` stands nowhere.
        """
        text = self.text
        count = count_overlapping(text, old)
        if count == 1:
            with guarded(WeMustFix("a block refuses an edit inside it")):
                self._text.splice(text.index(old), len(old), new)
                self._document.commit()
        return count

    def set_text(self, text: str) -> None:
        """Make the whole text ``text``, as a small difference where one is found in time, else all at once."""
        with guarded(WeMustFix("a block refuses a new text")):
            try:
                self._text.update(text, timeout_ms=_UPDATE_TIMEOUT_MS)
            except ValueError:
                self._text.delete(0, self._text.len_unicode)
                self._text.insert(0, text)
            self._document.commit()

    def snapshot(self) -> bytes:
        """The document with its history, for ``from_snapshot``."""
        with guarded(WeMustFix("a block cannot be written out")):
            self._document.commit()
            return bytes(self._document.export(loro.ExportMode.Snapshot()))

    def _insert(self, position: int, content: str) -> None:
        if content:
            self._text.insert(position, content)
        self._document.commit()


def count_overlapping(text: str, part: str) -> int:
    """How often ``part`` stands in ``text``, overlapping places included, counted up to 1,000."""
    count, at = 0, text.find(part) if part else -1
    while at >= 0 and count < 1000:
        count += 1
        at = text.find(part, at + 1)
    return count
