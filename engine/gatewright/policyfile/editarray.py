"""Elements deleted from and inserted into a list that is one value, ``[ ... ]``.

Where every element has its lines for itself, the comment lines above it go and move with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from gatewright.base.errors import WeMustFix
from gatewright.policyfile.pairing import Pairing, Step
from gatewright.policyfile.render import literal
from gatewright.policyfile.scan import Item
from gatewright.policyfile.splice import Part, Splices


class ArrayEdit:
    """One list. ``headings``: a comment line is of all elements below it, up to the next one, and goes with the last.

    Else it is of the one element below it.
    """

    def __init__(self, splices: Splices, item: Item, *, headings: bool) -> None:
        self._splices, self._item, self._headings = splices, item, headings
        self._by_line = all(map(self._has_own_lines, item.elements))

    def apply(
        self, pairing: Pairing, count: int, after: Sequence[object], inside: Mapping[int, Sequence[Part]]
    ) -> None:
        """Delete, insert and move elements of a list of ``count``; those that stay in their place are not looked at.

        ``inside``: what changes in elements that move, by their old places.
        """
        plan = pairing.steps
        if all(step.what == "keep" for step in plan):
            return
        if len(self._item.elements) != count:
            raise WeMustFix("a list of the policy file is not what was read")
        if not any(step.what == "keep" for step in plan):
            self._write_anew(after)
            return
        grows = any(step.what == "insert" and step.i_end == count for step in plan)
        if self._by_line and not grows and plan[-1].what == "delete" and self._item.elements[-1].comma < 0:
            last = self._item.elements[plan[-1].i - 1]  # another one becomes the last, and has no comma either
            self._splices.replace(last.comma, last.comma + 1, "")
        moved = pairing.moved
        going = {i for step in plan if step.what == "delete" for i in range(step.i, step.i_end)}
        gone = going.difference(moved.values())
        for step in plan:
            if step.what == "delete":
                self._delete(step, gone)
            elif step.what == "insert":
                places = range(step.j, step.j_end)
                words = [
                    self._source(moved[j], inside.get(moved[j], ())) if j in moved else literal(after[j])
                    for j in places
                ]
                self._insert(step, words, [moved.get(j) for j in places])

    def delete_inline(self, step: Step) -> None:
        """Delete elements that stand on one line with others, with the commas between them."""
        elements, splices = self._item.elements, self._splices
        if step.i_end < len(elements):
            splices.replace(first_of(elements[step.i]), first_of(elements[step.i_end]), "")
        elif "#" in splices.text[elements[step.i - 1].end : first_of(elements[step.i])]:
            splices.replace(first_of(elements[step.i]), elements[-1].end, "")
        else:
            splices.replace(elements[step.i - 1].end, elements[-1].end, "")

    def _write_anew(self, after: Sequence[object]) -> None:
        """Other elements altogether; a comment behind the bracket or below the last element is the list's own."""
        elements, splices, (start, end) = self._item.elements, self._splices, (self._item.start, self._item.end)
        if self._by_line and elements:
            first, last = self._comments(0), splices.line_end(_behind(elements[-1]))
            if "#" in splices.text[start:first] or "#" in splices.text[last:end]:
                indent = splices.indent(first_of(elements[0]))
                splices.replace(first, last, "".join(f"{indent}{literal(row)},\n" for row in after))
                return
        splices.replace(start, end, literal(list(after)))

    def _has_own_lines(self, element: Item) -> bool:
        splices = self._splices
        end = _behind(element)
        rest = splices.text[end : splices.line_end(end)].strip()
        alone = not splices.indent(first_of(element)).strip() and (not rest or rest.startswith("#"))
        return alone and "\n" not in splices.text[element.end : end]

    def _delete(self, step: Step, gone: Collection[int]) -> None:
        places = range(step.i, step.i_end)
        if not self._by_line and not all(self._has_own_lines(self._item.elements[i]) for i in places):
            self.delete_inline(step)
            return
        for i in places:
            element = self._item.elements[i]
            start = self._comments(i) if self._loses_comments(i, gone) else self._line(i)
            self._splices.replace(start, self._splices.line_end(max(element.comma, element.end)), "")

    def _loses_comments(self, i: int, gone: Collection[int]) -> bool:
        if not self._headings:
            return True
        if i not in gone:
            return False
        below: Iterable[int] = range(i + 1, len(self._item.elements))
        for other in below:
            if self._comments(other) != self._line(other):
                return True
            if other not in gone:
                return False
        return True

    def _insert(self, step: Step, words: Sequence[str], origins: Sequence[int | None]) -> None:
        elements, splices = self._item.elements, self._splices
        at_end = step.i_end >= len(elements)
        anchor = elements[step.i - 1] if at_end else elements[step.i_end]
        if not self._by_line:
            joined = ", ".join(words)
            offset = anchor.end if at_end else first_of(anchor)
            splices.replace(offset, offset, f", {joined}" if at_end else f"{joined}, ")
            return
        indent = splices.indent(first_of(anchor))
        lines = [self._lines(indent, text, origin) for text, origin in zip(words, origins, strict=True)]
        if not at_end:
            offset = self._before(step)
        else:
            offset = splices.line_end(max(anchor.comma, anchor.end))
            if anchor.comma < 0:
                splices.replace(anchor.end, anchor.end, ",")
                if origins[-1] is None:
                    lines[-1] = f"{indent}{words[-1]}\n"
        splices.replace(offset, offset, "".join(lines))

    def _before(self, step: Step) -> int:
        """Where what comes in the place of others, or else above an element, begins."""
        if self._headings and step.i == step.i_end:
            return self._line(step.i_end)
        return self._comments(step.i_end)

    def _lines(self, indent: str, words: str, origin: int | None) -> str:
        """An element on lines of its own, with what the author wrote above and behind it where it stood."""
        if origin is None:
            return f"{indent}{words},\n"
        element, splices = self._item.elements[origin], self._splices
        end = _behind(element)
        above = "" if self._headings else splices.text[self._comments(origin) : self._line(origin)]
        behind = splices.text[end : splices.line_end(end)].rstrip("\r\n")
        return f"{above}{indent}{words},{behind}\n".replace("\r\n", "\n")

    def _source(self, i: int, inside: Sequence[Part]) -> str:
        element = self._item.elements[i]
        return self._splices.moved_text([(element.start, element.end)], inside)[0]

    def _line(self, i: int) -> int:
        return self._splices.line_start(first_of(self._item.elements[i]))

    def _comments(self, i: int) -> int:
        return self._splices.comments_above(self._line(i))


def first_of(element: Item) -> int:
    """Where an element of a list (or a member of an inline table, with its key) begins."""
    return element.key_start


def _behind(element: Item) -> int:
    return element.comma + 1 if element.comma >= 0 else element.end
