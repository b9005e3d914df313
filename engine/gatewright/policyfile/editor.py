"""Edits a TOML text and leaves every other line alone: members of tables, elements of lists.

Every operation adds replacements, with places in the original text; ``result`` makes them all.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from gatewright.base.errors import RawPath, WeMustFix
from gatewright.policyfile.render import block, key_text, literal, statements
from gatewright.policyfile.scan import Item, Kind, Section, Statement, key_span, scan
from gatewright.policyfile.splice import WORDS, ArrayEdit, Naming, Pairing, Part, Splices, pairing

T = TypeVar("T")

REMOVED = object()
"""Stands for a removed key among the new values of ``set_members``."""
VALUES = frozenset({Kind.SCALAR, Kind.ARRAY, Kind.INLINE})


class Editor:
    """One text and its edits. ``related``: the new values are edits of the old ones, so that identity pairs rows."""

    def __init__(self, text: str, *, related: bool = True) -> None:
        self.tree, self.related = scan(text), related
        self._splices = Splices(text)
        self._sections: dict[RawPath, Section] = {}
        self._below: defaultdict[RawPath, list[Section]] = defaultdict(list)
        self._dotted: defaultdict[RawPath, list[tuple[Section, Statement]]] = defaultdict(list)
        self._made: dict[RawPath, int] = {}
        self._written_anew: dict[RawPath, dict[str, Any]] = {}
        for section in self.tree.sections:
            self._index(section)

    def result(self) -> str:
        """The edited text."""
        self._finish()
        return self._splices.result()

    def _finish(self) -> None:
        for offset in self._made.values():
            self._splices.replace(offset, offset, "\n")
        self._made.clear()
        for path, data in self._written_anew.items():
            if (item := self.find(path)) is not None:
                self.set_value(item, data)
        self._written_anew.clear()

    def find(self, path: RawPath) -> Item | None:
        """The item at a path of the original text."""
        return self.tree.find(path)

    def is_only_dotted(self, path: RawPath) -> bool:
        """Tell whether a table exists only in dotted keys, so that it vanishes with the last of them."""
        return bool(self._dotted[path]) and path not in self._sections and not self._below[path]

    def source_of(self, item: Item) -> str:
        """A value in its original spelling."""
        return self._splices.text[item.start : item.end]

    def set_value(self, item: Item, value: object) -> None:
        """Replace a value."""
        self._splices.replace(item.start, item.end, literal(value))

    def set_members(self, path: RawPath, changes: Mapping[str, object]) -> None:
        """Change, add and remove (``REMOVED``) keys of a table; a missing table is created."""
        if not changes:
            return
        item = self.find(path)
        if item is None:
            data = {key: value for key, value in changes.items() if value is not REMOVED}
            if self._is_inline(path[:-1]):
                self.set_members(path[:-1], {str(path[-1]): dict(data)})
            elif len(path) == 1 and self.tree.sections[0].statements:
                self._insert_blocks(self._end_of(self.tree.sections[0]), [block(path, data)])
            else:
                self.append_blocks(path[:1], [block(path, data)])
        elif (around := self._inline_with_dots(path, item)) is not None:
            self._write_anew(around, path, changes)
        elif item.kind is Kind.INLINE:
            self._set_inline(item, changes)
        else:
            self._set_table(path, item, changes)

    def remove(self, path: RawPath, *, comments: bool = False) -> None:
        """Remove everything that makes up ``path``: sections, statements, a member of an inline table.

        ``comments``: also remove the comments directly above its statements, which are about nothing else.
        """
        if isinstance(path[-1], str) and self._is_inline(path[:-1]):
            self.set_members(path[:-1], {path[-1]: REMOVED})
            return
        for section in self._below[path]:
            self._remove_section(section)
        for _, statement in self._dotted[path]:
            start, end = self._splices.line_start(statement.start), self._splices.line_end(statement.item.end)
            self._splices.replace(self._splices.comments_above(start) if comments else start, end, "")

    def rename(self, path: RawPath, name: str) -> None:
        """Rename the table at ``path`` wherever its key is written."""
        at = len(path) - 1
        item, parent = self.find(path), self.find(path[:-1])
        if item is not None and parent is not None and parent.kind is Kind.INLINE:
            self._splices.replace(*key_span(self._splices.text, item.key_start), key_text(name))
        for section in self._below[path]:
            depth = at - sum(isinstance(part, int) for part in path)
            self._splices.replace(*section.segments[depth], key_text(name))
        for section, statement in self._dotted[path]:
            self._splices.replace(*statement.segments[at - len(section.path)], key_text(name))

    def edit_list(
        self,
        path: RawPath,
        before: Sequence[T],
        after: Sequence[T],
        naming: Naming[T],
        *,
        plain: Callable[[T], object],
        blocks: Callable[[T], Sequence[str]],
        change: Callable[[RawPath, T, T], None],
    ) -> None:
        """Turn a list from ``before`` to ``after``, in its present notation.

        ``blocks`` writes a row as tables, ``plain`` as an inline value; ``change`` edits a row at its path.
        """
        if list(before) == list(after):
            return
        item = self.find(path)
        if item is None and self._is_inline(path[:-1]):
            self.set_members(path[:-1], {str(path[-1]): [plain(row) for row in after]})
        elif item is None:
            self.append_blocks(path[:-1], [text for row in after for text in blocks(row)])
        else:
            paired = pairing(before, after, naming, related=self.related)
            inside: dict[int, Sequence[Part]] = {}
            for j, i in paired.origins.items():
                if before[i] == after[j]:
                    continue
                if j not in paired.moved:
                    change((*path, i), before[i], after[j])
                else:
                    with self._apart() as inside[i]:
                        change((*path, i), before[i], after[j])
            if item.kind is Kind.TABLES:
                self._edit_tables(path, item, after, paired, inside, blocks)
            else:
                array = ArrayEdit(self._splices, item, headings=False)
                array.apply(paired, len(before), [plain(row) for row in after], inside)

    def append_blocks(self, path: RawPath, blocks: Sequence[str]) -> None:
        """Add tables behind the last one of ``path``, or at the end of the text."""
        sections = self._below[path] if path else []
        offset = self._end_of(sections[-1]) if sections else len(self._splices.text)
        self._insert_blocks(offset, blocks)

    def edit_words(
        self, path: RawPath, before: Sequence[str], after: Sequence[str], renamed: Mapping[str, str] | None = None
    ) -> None:
        """Turn a list of texts from ``before`` to ``after``.

        ``renamed``: the new names of the things that the list names, by the old ones.
        """
        item, parent = self.find(path), self.find(path[:-1])
        if item is None or item.kind is not Kind.ARRAY or len(item.elements) != len(before):
            parent = None
        if item is None or parent is None or self._inline_with_dots(path[:-1], parent) is not None:
            self.set_members(path[:-1], {str(path[-1]): list(after)})
            return
        named = [(renamed or {}).get(word, word) for word in before]
        paired = pairing(named, after, WORDS)
        inside: dict[int, Sequence[Part]] = {}
        for j, i in paired.origins.items():
            if before[i] != after[j]:
                if j not in paired.moved:
                    self.set_value(item.elements[i], after[j])
                else:
                    with self._apart() as inside[i]:
                        self.set_value(item.elements[i], after[j])
        ArrayEdit(self._splices, item, headings=True).apply(paired, len(before), after, inside)

    @contextmanager
    def _apart(self) -> Generator[list[Part]]:
        """Collect the edits of the body for a stretch of text that moves, so that they move with it."""
        made, anew = self._made, self._written_anew
        self._made, self._written_anew = {}, {}
        try:
            with self._splices.apart() as parts:
                yield parts
                self._finish()
        finally:
            self._made, self._written_anew = made, anew

    def add_table(
        self, path: RawPath, name: str, data: Mapping[str, object], blocks: Sequence[str], above: str | None
    ) -> None:
        """Add a table to the table at ``path``, above another one of its tables, or as the last.

        The neighbour decides the notation: ``blocks``, or one statement with ``data``.
        """
        parent = self.find(path)
        if parent is not None and parent.kind is Kind.INLINE:
            self.set_members(path, {name: data})
            return
        sections = [] if above is None else self._below[*path, above]
        lines = [] if above is None else self._dotted[*path, above]
        if lines and (not sections or lines[0][1].start < sections[0].start):
            section, first = lines[0]
            depth = len(path) - len(section.path)
            prefix = f"{self._splices.text[first.start : first.segments[depth - 1][1]]}." if depth else ""
            offset = self._splices.comments_above(self._splices.line_start(first.start))
            line = statements({name: data})
            self._splices.replace(offset, offset, f"{self._splices.indent(first.start)}{prefix}{line}")
        elif sections:
            self._insert_above(sections[0], blocks)
        else:
            self.append_blocks(path, blocks)

    def _index(self, section: Section) -> None:
        self._sections[section.path] = section
        if section.segments:
            for length in range(1, len(section.path) + 1):
                self._below[section.path[:length]].append(section)
        for statement in section.statements:
            full = section.path + statement.keys
            for length in range(len(section.path) + 1, len(full) + 1):
                self._dotted[full[:length]].append((section, statement))

    def _end_of(self, section: Section) -> int:
        return self._splices.line_end(section.end)

    def _set_table(self, path: RawPath, item: Item, changes: Mapping[str, object]) -> None:
        added: dict[str, object] = {}
        for key, value in changes.items():
            child = item.members.get(key)
            if child is None:
                if value is not REMOVED:
                    added[key] = value
            elif value is not REMOVED and child.kind in VALUES:
                self.set_value(child, value)
            else:
                self.remove((*path, key))
                if value is not REMOVED:
                    added[key] = value
        if added:
            self._add_statements(path, added)

    def _add_statements(self, path: RawPath, added: Mapping[str, object]) -> None:
        """Write statements below those of the table, in their notation; else below its header, or at the top."""
        splices, section, lines = self._splices, self._sections.get(path), statements(added)
        if section is not None and (section.statements or section.segments):
            indent = splices.indent(section.statements[-1].start if section.statements else section.start)
            self._add_lines(self._end_of(section), lines, indent)
        elif section is not None:
            first = min((one.start for one in self.tree.sections if one.segments), default=None)
            if first is None:
                splices.insert_lines(len(splices.text), lines)
            else:
                offset = max(splices.comments_above(splices.line_start(first)), section.start)
                splices.replace(offset, offset, f"{lines}\n")
        elif self._dotted[path]:
            held, last = self._dotted[path][-1]
            prefix = splices.text[last.start : last.segments[len(path) - len(held.path) - 1][1]]
            dotted = "".join(f"{prefix}.{line}" for line in lines.splitlines(keepends=True))
            self._add_lines(splices.line_end(last.item.end), dotted, splices.indent(last.start))
        else:
            splices.insert_lines(self._make_header(path), lines)

    def _make_header(self, path: RawPath) -> int:
        """Give a table that exists only by its parts' headers a header of its own; return the place for its
        statements.
        """
        if path not in self._made:
            first = min(self._below[path], key=lambda below: below.start)
            offset = self._splices.comments_above(self._splices.line_start(first.start))
            self._splices.insert_lines(offset, block(path, {}))
            self._made[path] = offset
        return self._made[path]

    def _add_lines(self, offset: int, lines: str, indent: str) -> None:
        self._splices.insert_lines(offset, "".join(f"{indent}{line}" for line in lines.splitlines(keepends=True)))

    def _insert_blocks(self, offset: int, blocks: Sequence[str]) -> None:
        """Insert tables at the beginning of a line, with a blank line before each (at the top: after each)."""
        text = self._splices.text
        on_top = not text[:offset].strip("\ufeff \t\r\n")
        for made in blocks:
            self._splices.insert_lines(offset, f"{made}\n" if on_top and text else f"\n{made}")

    def _remove_section(self, section: Section) -> None:
        """Remove a section with the comment lines directly above it, which would otherwise end up above another
        section.
        """
        start = self._splices.comments_above(self._splices.line_start(section.start))
        self._splices.remove_block(start, self._end_of(section))

    def _edit_tables(
        self,
        path: RawPath,
        item: Item,
        after: Sequence[T],
        paired: Pairing,
        inside: Mapping[int, Sequence[Part]],
        blocks: Callable[[T], Sequence[str]],
    ) -> None:
        parent = path[:-1]
        if not after and parent not in self._sections and not self._dotted[parent] and parent not in self._made:
            self._make_header(parent)
        for step in paired.steps:
            if step.what == "delete":
                for i in range(step.i, step.i_end):
                    for section in self._below[*path, i]:
                        self._remove_section(section)
            elif step.what == "insert":
                texts: list[str] = []
                for j in range(step.j, step.j_end):
                    i = paired.moved.get(j)
                    texts += blocks(after[j]) if i is None else [self._element_text((*path, i), inside.get(i, ()))]
                if step.i == 0 and step.i_end < len(item.elements):
                    self._insert_above(self._below[*path, step.i_end][0], texts)
                else:
                    above = self._below[*path, (step.i or len(item.elements)) - 1]
                    self._insert_blocks(max(map(self._end_of, above)), texts)

    def _insert_above(self, section: Section, texts: Sequence[str]) -> None:
        """Insert tables above a header and the comment lines directly above it."""
        offset = self._splices.comments_above(self._splices.line_start(section.start))
        for text in texts:
            self._splices.insert_lines(offset, f"{text}\n")

    def _element_text(self, path: RawPath, inside: Sequence[Part]) -> str:
        """The sections of one element as written, with the comment lines directly above them."""
        splices = self._splices
        starts = [splices.comments_above(splices.line_start(section.start)) for section in self._below[path]]
        spans = [(start, self._end_of(section)) for start, section in zip(starts, self._below[path], strict=True)]
        texts = splices.text_elsewhere(spans, inside)
        return "\n".join(text if text.endswith("\n") else f"{text}\n" for text in texts)

    def _set_inline(self, item: Item, changes: Mapping[str, object]) -> None:
        names = {id(child): name for name, child in item.members.items()}
        gone = [key for key, value in changes.items() if value is REMOVED and key in item.members]
        added = {key: value for key, value in changes.items() if value is not REMOVED and key not in item.members}
        kept = [names[id(element)] for element in item.elements if names[id(element)] not in gone]
        if not kept:
            self.set_value(item, added)
            return
        for key in kept:
            if key in changes:
                self.set_value(item.members[key], changes[key])
        order = [names[id(element)] for element in item.elements]
        for step in pairing(order, kept, WORDS).steps:
            if step.what == "delete":
                ArrayEdit(self._splices, item, headings=True).delete_inline(step)
        if added:
            last = item.members[kept[-1]].end
            self._splices.replace(last, last, f", {literal(added)[2:-2]}")

    def _is_inline(self, path: RawPath) -> bool:
        """Tell whether the table at ``path`` is inline, or consists of dotted keys inside an inline table."""
        item = self.find(path)
        return item is not None and (item.kind is Kind.INLINE or self._inline_with_dots(path, item) is not None)

    def _inline_with_dots(self, path: RawPath, item: Item) -> RawPath | None:
        """The inline table with dotted keys that is, or contains, the table at ``path``; None without one."""
        if item.kind is Kind.INLINE:
            own = {id(child) for child in item.members.values()}
            return path if any(id(element) not in own for element in item.elements) else None
        above = (path[:length] for length in range(len(path) - 1, 0, -1))
        held = [(place, found.kind) for place in above if (found := self.find(place)) is not None]
        return next((place for place, kind in held if kind is Kind.INLINE), None) if item.kind is Kind.TABLE else None

    def _write_anew(self, around: RawPath, path: RawPath, changes: Mapping[str, object]) -> None:
        """Rewrite a whole inline table, with these members in the table at ``path`` inside it."""
        item = self.find(around)
        if item is None:
            raise WeMustFix("an inline table of the policy file has changed since it was read")
        if around not in self._written_anew:
            self._written_anew[around] = tomllib.loads(f"v = {self.source_of(item)}")["v"]
        table: Any = self._written_anew[around]
        for key in path[len(around) :]:
            table = table[key]
        for key, value in changes.items():
            if value is REMOVED:
                table.pop(key, None)
            else:
                table[key] = value
