"""Replacements of stretches of one text, collected first and done at once.

Offsets are those of the original text, so that one edit never has to reckon with another.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from gatewright.base.errors import WeMustFix
from gatewright.base.report import BOM
from gatewright.policyfile.scan import Span

Part = tuple[int, int, str]
"""A stretch of the text and what comes in its place."""


class Splices:
    """The text, the replacements so far, and questions about its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._first = len(BOM) if text.startswith(BOM) else 0
        first = text.find("\n")
        self.newline = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
        self._parts: list[Part] = []

    def replace(self, start: int, end: int, text: str) -> None:
        """Put ``text`` in the place of a stretch; at an empty stretch it is inserted, in the order of the calls."""
        self._parts.append((start, end, text.replace("\n", self.newline)))

    @property
    def span(self) -> Span | None:
        """From the first place that changes to the last one; None where nothing does."""
        if not self._parts:
            return None
        return min(start for start, _, _ in self._parts), max(end for _, end, _ in self._parts)

    @contextmanager
    def apart(self) -> Generator[list[Part]]:
        """Collect the replacements made meanwhile, for text that goes elsewhere; none of them is done in its place."""
        here, self._parts = self._parts, []
        try:
            yield self._parts
        finally:
            self._parts = here

    def moved_text(self, spans: Sequence[Span], parts: Sequence[Part]) -> list[str]:
        """The text of some stretches with the parts that were collected for them, its line breaks plain."""
        within: list[list[Part]] = [[] for _ in spans]
        for part in parts:
            at = next((n for n, (start, end) in enumerate(spans) if start <= part[0] and part[1] <= end), None)
            if at is None:
                raise WeMustFix("a change of the policy file reaches beyond what moves with it")
            within[at].append(part)
        return [self._joined(own, span).replace("\r\n", "\n") for own, span in zip(within, spans, strict=True)]

    def result(self, within: Span | None = None) -> str:
        """The text (or the stretch ``within``, which holds all of them) with every replacement done.

        Overlapping removals count once.
        """
        return self._joined(self._parts, within or (0, len(self.text)))

    def _joined(self, parts: Sequence[Part], within: Span) -> str:
        pieces: list[str] = []
        at, last = within
        only_removed = True
        for start, end, text in sorted(parts, key=lambda part: part[:2]):
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
        return max(self.text.rfind("\n", 0, offset) + 1, self._first)

    def line_end(self, offset: int) -> int:
        """Behind the line break of the line of ``offset``, or the end of the text."""
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end + 1

    def indent(self, offset: int) -> str:
        """The white space before ``offset`` on its line."""
        return self.text[self.line_start(offset) : offset]

    def comments_above(self, line: int) -> int:
        """Where the comment lines directly above the line that begins at ``line`` begin."""
        while line > self._first and self.text[(above := self.line_start(line - 1)) : line].lstrip().startswith("#"):
            line = above
        return line

    def insert_lines(self, offset: int, lines: str) -> None:
        """Insert whole lines at the beginning of a line, or behind a last line that has no line break."""
        if offset > self._first and self.text[offset - 1] != "\n":
            self.replace(offset, offset, f"\n{lines.removesuffix(chr(10))}")
        else:
            self.replace(offset, offset, lines)

    def remove_block(self, start: int, end: int) -> None:
        """Remove whole lines and, where that would leave two gaps, the blank lines above (at the top: below)."""
        above = start
        while above > self._first and not self.text[(line := self.line_start(above - 1)) : above].strip():
            above = line
        below = end
        while below < len(self.text) and not self.text[below : (line := self.line_end(below))].strip():
            below = line
        if above == self._first:
            self.replace(above, below, "")
        elif below > end or below == len(self.text):
            self.replace(above, end, "")
        else:
            self.replace(start, end, "")
