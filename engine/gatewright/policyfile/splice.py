"""Replacements of stretches of one text, collected first and done at once. It does not know TOML.

Offsets are those of the original text, so that one edit never has to reckon with another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.errors import WeMustFix

if TYPE_CHECKING:
    from gatewright.policyfile.scan import Span


class Splices:
    """The text, the replacements so far, and questions about its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        first = text.find("\n")
        self.newline = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
        self._parts: list[tuple[int, int, str]] = []

    def replace(self, start: int, end: int, text: str) -> None:
        """Put ``text`` in the place of a stretch; at an empty stretch it is inserted, in the order of the calls."""
        self._parts.append((start, end, text.replace("\n", self.newline)))

    @property
    def span(self) -> Span | None:
        """From the first place that changes to the last one; None where nothing does."""
        if not self._parts:
            return None
        return min(start for start, _, _ in self._parts), max(end for _, end, _ in self._parts)

    def result(self, within: Span | None = None) -> str:
        """The text (or the stretch ``within``, which holds all of them) with every replacement done.

        Overlapping removals count once.
        """
        pieces: list[str] = []
        at, last = within or (0, len(self.text))
        only_removed = True
        for start, end, text in sorted(self._parts, key=lambda part: part[:2]):
            if start < at and only_removed and start < end <= at:
                continue  # a change of something that goes altogether
            if start < at and (not only_removed or (text and end > start)):
                raise WeMustFix("two changes of the policy file touch the same place")
            if start > at:
                pieces.append(self.text[at:start])
            pieces.append(text)
            only_removed = not text or (only_removed and end <= at) if end > start or start < at else True
            at = max(at, end)
        return "".join([*pieces, self.text[at:last]])

    def line_start(self, offset: int) -> int:
        """Where the line of ``offset`` begins."""
        return self.text.rfind("\n", 0, offset) + 1

    def line_end(self, offset: int) -> int:
        """Behind the line break of the line of ``offset``, or the end of the text."""
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end + 1

    def indent(self, offset: int) -> str:
        """The white space before ``offset`` on its line."""
        return self.text[self.line_start(offset) : offset]

    def comments_above(self, line: int) -> int:
        """Where the comment lines directly above the line that begins at ``line`` begin."""
        while line > 0 and self.text[(above := self.line_start(line - 1)) : line].lstrip().startswith("#"):
            line = above
        return line

    def insert_lines(self, offset: int, lines: str) -> None:
        """Insert whole lines at the beginning of a line, or behind a last line that has no line break."""
        if offset and self.text[offset - 1] != "\n":
            self.replace(offset, offset, f"\n{lines.removesuffix(chr(10))}")
        else:
            self.replace(offset, offset, lines)

    def remove_block(self, start: int, end: int) -> None:
        """Remove whole lines and, where that would leave two gaps, the blank lines above (at the top: below)."""
        above = start
        while above > 0 and not self.text[(line := self.line_start(above - 1)) : above].strip():
            above = line
        below = end
        while below < len(self.text) and not self.text[below : (line := self.line_end(below))].strip():
            below = line
        if above == 0:
            self.replace(0, below, "")
        elif below > end or below == len(self.text):
            self.replace(above, end, "")
        else:
            self.replace(start, end, "")
