"""A text block: one Loro document with one text, so that edits have a history and can merge.

Loro raises most of its errors as plain BaseException; every call to it goes through ``guarded``, which turns them into
errors of our tree.
"""

from __future__ import annotations

import loro

from gatewright.base.errors import DamagedBlock, WeMustFix
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
            document = loro.LoroDoc()
            document.get_text(_BODY).insert(0, text)
            document.commit()
            return cls(document)

    @classmethod
    def from_snapshot(cls, snapshot: bytes) -> TextBlock:
        """The block of ``snapshot()``. Raises DamagedBlock for bytes that are none."""
        with guarded(DamagedBlock()):
            document = loro.LoroDoc()
            document.import_(snapshot)
            return cls(document)

    @property
    def text(self) -> str:
        """The whole text."""
        with guarded(WeMustFix("a block's text cannot be had")):
            return self._text.to_string()

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
