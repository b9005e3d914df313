"""Edits of the rows of a list in a text: the pairing of rows across edits, and the replaced stretches of text.

A row carries its identity through edits; without one, its content or its name identifies it. A row that takes the place
of a removed one is a new row, so an author's comment on the old row never stays above it. In a list that is one value,
``[ ... ]``, with every element on its own lines, the comment lines above an element are removed and move together with
it. Offsets are those of the original text, so edits do not affect each other; all are made at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any, Generic, Literal, TypeVar

from gatewright.base.errors import BOM, WeMustFix
from gatewright.base.frozen import frozen
from gatewright.policy.capability import Capability, kind_of
from gatewright.policy.composition import Composition, CompositionStep
from gatewright.policy.document import Agent, Catalog, PermissionRule, Source
from gatewright.policy.rule import Identified, PolicyRule, ToolRule
from gatewright.policy.verdict import split_name
from gatewright.policyfile.render import literal
from gatewright.policyfile.scan import Item, Span

T = TypeVar("T")
MAX_GUESSES = 1_000
"""The most pairs of rows in a list to compare for likeness."""


@frozen
class Naming(Generic[T]):
    """The names that identify a row; equal names match, the surest first.

    ``guessed``: rows may match without an equal name.
    """

    names: tuple[Callable[[T], Hashable], ...]
    guessed: bool = False


@frozen
class Step:
    """``keep``: old ``i`` is new ``j`` (perhaps changed). ``delete``: old ``i`` up to ``i_end`` are removed.

    ``insert``: new ``j`` up to ``j_end`` come before old ``i_end``, after the surviving old ``i - 1``.
    """

    what: Literal["keep", "delete", "insert"]
    i: int
    i_end: int
    j: int
    j_end: int


@frozen
class Pairing:
    """``origins``: for the rows in both lists, the old place by the new one. ``steps`` lead from one list to the other.

    ``moved``: the same places for rows that one step deletes and another inserts.
    """

    origins: Mapping[int, int]
    steps: tuple[Step, ...]
    moved: Mapping[int, int]


def pairing(before: Sequence[T], after: Sequence[T], naming: Naming[T], *, related: bool = True) -> Pairing:
    """Pair the rows of two lists. ``related``: ``after`` is an edit of ``before``, so nothing is guessed."""
    origins: dict[int, int] = {}
    for name_of in naming.names:
        taken = set(origins.values())
        waiting: dict[Hashable, list[int]] = {}
        for i in reversed(range(len(before))):
            if i not in taken:
                waiting.setdefault(name_of(before[i]), []).append(i)
        for j, row in enumerate(after):
            if j not in origins and waiting.get(name := name_of(row)):
                origins[j] = waiting[name].pop()
    if naming.guessed and not related:
        _pair_alike(before, after, origins)
    kept = _in_order(origins)
    steps = tuple(_steps(len(before), len(after), kept))
    return Pairing(origins, steps, {j: i for j, i in origins.items() if j not in kept})


def _pair_alike(before: Sequence[T], after: Sequence[T], origins: dict[int, int]) -> None:
    """Pair the rows left between the same neighbours, the most alike first."""
    taken = set(origins.values())
    found: list[tuple[float, int, int]] = []
    kept = [(-1, -1), *sorted(_in_order(origins).items()), (len(after), len(before))]
    for (j, i), (j_end, i_end) in pairwise(kept):
        old = [at for at in range(i + 1, i_end) if at not in taken]
        new = [at for at in range(j + 1, j_end) if at not in origins]
        if len(old) * len(new) + len(found) <= MAX_GUESSES:
            found += [(_likeness(before[one], after[other]), one, other) for one in old for other in new]
    for likeness, i, j in sorted(found, key=lambda guess: (-guess[0], guess[1:])):
        if likeness >= 0.5 and j not in origins and i not in taken:
            origins[j] = i
            taken.add(i)


def _likeness(one: object, other: object) -> float:
    """The share of the filled fields that are equal; two empty rows are alike."""
    if not is_dataclass(one) or not is_dataclass(other):
        return 0.0
    named: list[str] = [field.name for field in fields(one) if field.compare]
    pairs: list[tuple[Any, Any]] = [(getattr(one, name), getattr(other, name)) for name in named]
    said = [left == right for left, right in pairs if left or right]
    return sum(said) / len(said) if said else 1.0


def _in_order(origins: Mapping[int, int]) -> dict[int, int]:
    """The largest set of pairs whose rows have the same order in both lists."""
    ends: list[int] = []
    last: list[int] = []
    before: dict[int, int | None] = {}
    for j in sorted(origins):
        at = bisect_left(ends, origins[j])
        before[j] = last[at - 1] if at else None
        ends[at : at + 1] = [origins[j]]
        last[at : at + 1] = [j]
    kept: dict[int, int] = {}
    j = last[-1] if last else None
    while j is not None:
        kept[j] = origins[j]
        j = before[j]
    return kept


def _steps(old: int, new: int, kept: Mapping[int, int]) -> Iterator[Step]:
    i = j = 0
    for j_kept, i_kept in [*sorted(kept.items()), (new, old)]:
        if i < i_kept:
            yield Step("delete", i, i_kept, j, j)
        if j < j_kept:
            yield Step("insert", i, i_kept, j, j_kept)
        if j_kept < new:
            yield Step("keep", i_kept, i_kept + 1, j_kept, j_kept + 1)
        i, j = i_kept + 1, j_kept + 1


def _itself(row: Hashable) -> Hashable:
    return row


def _same_and_equal(row: ToolRule | PermissionRule | Source | PolicyRule) -> Hashable:
    return row.identity, row


def _identity(row: Identified) -> Hashable:
    return row.identity


def _tool_and_kind(rule: ToolRule) -> tuple[str, str]:
    return split_name(rule.tool_name)[0], rule.kind


WORDS: Naming[str] = Naming((_itself,))
AGENTS: Naming[Agent] = Naming((_identity, lambda agent: agent.agent_id), guessed=True)
TOOL_RULES: Naming[ToolRule] = Naming(
    (
        _same_and_equal,
        _identity,
        _itself,
        lambda rule: (*_tool_and_kind(rule), rule.conditions),
        _tool_and_kind,
    )
)
LEVELS: Naming[PermissionRule] = Naming((_same_and_equal, _identity, _itself, lambda rule: rule.pattern), guessed=True)
SOURCES: Naming[Source] = Naming((_identity, lambda source: source.source_id), guessed=True)
CATALOGS: Naming[Catalog] = Naming((_identity, lambda catalog: catalog.catalog_id), guessed=True)
POLICY_RULES: Naming[PolicyRule] = Naming((_identity, lambda rule: rule.name), guessed=True)
COMPOSITIONS: Naming[Composition] = Naming((_identity, lambda composition: composition.name), guessed=True)
COMPOSITION_STEPS: Naming[CompositionStep] = Naming((_identity, _itself), guessed=True)
CAPABILITIES: Naming[Capability] = Naming((_itself, kind_of))


Part = tuple[int, int, str]
"""A stretch of the text and its replacement."""


class Splices:
    """The text, the replacements so far, and helpers for its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._first = len(BOM) if text.startswith(BOM) else 0
        first = text.find("\n")
        self.newline = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
        self._parts: list[Part] = []

    def replace(self, start: int, end: int, text: str) -> None:
        """Replace a stretch with ``text``; several insertions at one place keep the order of the calls."""
        self._parts.append((start, end, text.replace("\n", self.newline)))

    @contextmanager
    def apart(self) -> Generator[list[Part]]:
        """Collect the replacements of the body for text that goes elsewhere, instead of applying them."""
        here, self._parts = self._parts, []
        try:
            yield self._parts
        finally:
            self._parts = here

    def text_elsewhere(self, spans: Sequence[Span], parts: Sequence[Part]) -> list[str]:
        """The text of some stretches with their collected replacements, with plain line breaks."""
        within: list[list[Part]] = [[] for _ in spans]
        for part in parts:
            at = next((n for n, (start, end) in enumerate(spans) if start <= part[0] and part[1] <= end), None)
            if at is None:
                raise WeMustFix("a change of the policy file reaches beyond the part that moves")
            within[at].append(part)
        return [self._join(own, span).replace("\r\n", "\n") for own, span in zip(within, spans, strict=True)]

    def result(self) -> str:
        """The text with every replacement applied; overlapping removals count once."""
        return self._join(self._parts, (0, len(self.text)))

    def _join(self, parts: Sequence[Part], within: Span) -> str:
        pieces: list[str] = []
        at, last = within
        only_removed = True
        for start, end, text in sorted(parts, key=lambda part: part[:2]):
            if start < at and only_removed and start < end <= at:
                continue  # a change inside a stretch that is removed as a whole
            if start < at and (not only_removed or (text and end > start)):
                raise WeMustFix("two changes of the policy file touch the same place")
            if start > at:
                pieces.append(self.text[at:start])
            pieces.append(text)
            only_removed = not text or (only_removed and end <= at) if end > start or start < at else True
            at = max(at, end)
        return "".join([*pieces, self.text[at:last]])

    def line_start(self, offset: int) -> int:
        """The start of the line of ``offset``."""
        return max(self.text.rfind("\n", 0, offset) + 1, self._first)

    def line_end(self, offset: int) -> int:
        """The end of the line of ``offset``, behind its line break."""
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end + 1

    def indent(self, offset: int) -> str:
        """The white space before ``offset`` on its line."""
        return self.text[self.line_start(offset) : offset]

    def comments_above(self, line: int) -> int:
        """The start of the comment lines directly above the line that begins at ``line``."""
        while line > self._first and self.text[(above := self.line_start(line - 1)) : line].lstrip().startswith("#"):
            line = above
        return line

    def insert_lines(self, offset: int, lines: str) -> None:
        """Insert whole lines at the beginning of a line, or behind a last line that lacks a line break."""
        if offset > self._first and self.text[offset - 1] != "\n":
            self.replace(offset, offset, f"\n{lines.removesuffix(chr(10))}")
        else:
            self.replace(offset, offset, lines)

    def remove_block(self, start: int, end: int) -> None:
        """Remove whole lines; if that would leave two gaps, also the blank lines above (at the top: below)."""
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


class ArrayEdit:
    """One list. ``headings``: a comment line belongs to all elements below it, up to the next comment, and is removed
    with the last of them.

    Otherwise it belongs to the one element below it.
    """

    def __init__(self, splices: Splices, item: Item, *, headings: bool) -> None:
        self._splices, self._item, self._headings = splices, item, headings
        self._by_line = all(map(self._has_own_lines, item.elements))

    def apply(
        self, pairing: Pairing, count: int, after: Sequence[object], inside: Mapping[int, Sequence[Part]]
    ) -> None:
        """Delete, insert and move elements of a list of ``count``; the others stay untouched.

        ``inside``: the changes in moving elements, by their old places.
        """
        plan = pairing.steps
        if all(step.what == "keep" for step in plan):
            return
        if len(self._item.elements) != count:
            raise WeMustFix("a list of the policy file has changed since it was read")
        if not any(step.what == "keep" for step in plan):
            self._write_anew(after)
            return
        grows = any(step.what == "insert" and step.i_end == count for step in plan)
        if self._by_line and not grows and plan[-1].what == "delete" and self._item.elements[-1].comma < 0:
            last = self._item.elements[plan[-1].i - 1]  # another element becomes the last, and has no comma either
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
        """Delete elements that share a line with others, with the commas between them."""
        elements, splices = self._item.elements, self._splices
        if step.i_end < len(elements):
            splices.replace(first_of(elements[step.i]), first_of(elements[step.i_end]), "")
        elif "#" in splices.text[elements[step.i - 1].end : first_of(elements[step.i])]:
            splices.replace(first_of(elements[step.i]), elements[-1].end, "")
        else:
            splices.replace(elements[step.i - 1].end, elements[-1].end, "")

    def _write_anew(self, after: Sequence[object]) -> None:
        """Replace all elements; a comment behind the bracket or below the last element belongs to the list."""
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
        """The place for new elements: that of the old ones, or above an element."""
        if self._headings and step.i == step.i_end:
            return self._line(step.i_end)
        return self._comments(step.i_end)

    def _lines(self, indent: str, words: str, origin: int | None) -> str:
        """An element on its own lines, with the author's comments above and behind it from its old place."""
        if origin is None:
            return f"{indent}{words},\n"
        element, splices = self._item.elements[origin], self._splices
        end = _behind(element)
        above = "" if self._headings else splices.text[self._comments(origin) : self._line(origin)]
        behind = splices.text[end : splices.line_end(end)].rstrip("\r\n")
        return f"{above}{indent}{words},{behind}\n".replace("\r\n", "\n")

    def _source(self, i: int, inside: Sequence[Part]) -> str:
        element = self._item.elements[i]
        return self._splices.text_elsewhere([(element.start, element.end)], inside)[0]

    def _line(self, i: int) -> int:
        return self._splices.line_start(first_of(self._item.elements[i]))

    def _comments(self, i: int) -> int:
        return self._splices.comments_above(self._line(i))


def first_of(element: Item) -> int:
    """The start of an element of a list (for a member of an inline table, of its key)."""
    return element.key_start


def _behind(element: Item) -> int:
    return element.comma + 1 if element.comma >= 0 else element.end
