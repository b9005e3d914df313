"""Edits of a TOML text that leave every other line alone: members of tables, elements of lists. It knows no policy.

Every operation adds replacements computed on the original text; ``result`` does them all.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

from gatewright.base.errors import WeMustFix
from gatewright.policyfile.alike import WORDS
from gatewright.policyfile.editarray import ArrayEdit
from gatewright.policyfile.listdiff import Likeness, Step, moves, steps
from gatewright.policyfile.literal import key_text, literal
from gatewright.policyfile.render import block, statements
from gatewright.policyfile.scan import Item, Kind, RawPath, Section, Span, Statement, Tree, key_span, scan
from gatewright.policyfile.splice import Splices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")

REMOVED = object()
"""As a new value in ``set_members``: the key goes."""
VALUES = frozenset({Kind.SCALAR, Kind.ARRAY, Kind.INLINE})


class Editor:
    """One text and the edits of it; with ``tree``, which was scanned of a part of the text, of that part."""

    def __init__(self, text: str, tree: Tree | None = None) -> None:
        self.tree = tree or scan(text)
        self._splices = Splices(text)
        self._sections: dict[RawPath, Section] = {}
        self._below: defaultdict[RawPath, list[Section]] = defaultdict(list)
        self._dotted: defaultdict[RawPath, list[tuple[Section, Statement]]] = defaultdict(list)
        self._made: dict[RawPath, int] = {}
        self._written_anew: dict[RawPath, dict[str, Any]] = {}
        for section in self.tree.sections:
            self._index(section)

    @property
    def span(self) -> Span | None:
        """Where the edits begin and end; None where there is none."""
        self._finish()
        return self._splices.span

    def result(self, within: Span | None = None) -> str:
        """The edited text, or a stretch of it that holds every edit."""
        self._finish()
        return self._splices.result(within)

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
        """Whether a table stands in dotted keys alone, so that it goes with the last of them."""
        return bool(self._dotted[path]) and path not in self._sections and not self._below[path]

    def source_of(self, item: Item) -> str:
        """A value as it is written."""
        return self._splices.text[item.start : item.end]

    def set_value(self, item: Item, value: object) -> None:
        """Write another value in the place of one."""
        self._splices.replace(item.start, item.end, literal(value))

    def set_members(self, path: RawPath, changes: Mapping[str, object]) -> None:
        """Change, add and remove (``REMOVED``) keys of a table, which is made when it is not there."""
        if not changes:
            return
        item = self.find(path)
        if item is None:
            self._make_table(path, {key: value for key, value in changes.items() if value is not REMOVED})
        elif (around := self._inline_with_dots(path, item)) is not None:
            self._write_anew(around, path, changes)
        elif item.kind is Kind.INLINE:
            self._set_inline(item, changes)
        else:
            self._set_table(path, item, changes)

    def remove(self, path: RawPath) -> None:
        """Remove whatever stands for ``path``: sections, statements, a member of an inline table."""
        if isinstance(path[-1], str) and self._is_inline(path[:-1]):
            self.set_members(path[:-1], {path[-1]: REMOVED})
            return
        for section in self._below[path]:
            self._remove_section(section)
        for _, statement in self._dotted[path]:
            self._splices.replace(*self._lines_of(statement), "")

    def rename(self, path: RawPath, name: str) -> None:
        """Give the table at ``path`` another key, wherever the key is written."""
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
        alike: Likeness[T],
        *,
        plain: Callable[[T], Mapping[str, object]],
        blocks: Callable[[T], Sequence[str]] | None = None,
        change: Callable[[RawPath, T, T], None],
    ) -> None:
        """Turn a list of tables from ``before`` to ``after``, in the shape in which it is written."""
        if list(before) == list(after):
            return
        item = self.find(path)
        plan = list(steps(before, after, alike))
        for step in plan:
            if step.what == "keep" and before[step.i] != after[step.j]:
                change((*path, step.i), before[step.i], after[step.j])
        if item is not None and item.kind is Kind.TABLES:
            made = blocks or self._plain_blocks(path, plain)
            self._edit_tables(path, item, before, after, plan, moves(before, after, plan, alike), made)
        elif item is not None:
            self.edit_rows(item, before, after, plan, alike, plain)
        elif self._is_inline(path[:-1]):
            self.set_members(path[:-1], {str(path[-1]): [plain(row) for row in after]})
        else:
            made = blocks or self._plain_blocks(path, plain)
            self.append_blocks(path[:-1], [text for row in after for text in made(row)])

    def append_blocks(self, path: RawPath, blocks: Sequence[str]) -> None:
        """Add tables behind the last one of ``path``, or at the end of the text."""
        sections = self._below[path] if path else []
        offset = self._end_of(sections[-1]) if sections else len(self._splices.text)
        self._insert_blocks(offset, blocks)

    def edit_words(self, path: RawPath, before: Sequence[str], after: Sequence[str]) -> None:
        """Turn a list of texts from ``before`` to ``after``."""
        item = self.find(path)
        if item is None or item.kind is not Kind.ARRAY or len(item.elements) != len(before):
            self.set_members(path[:-1], {str(path[-1]): list(after)})
            return
        plan = list(steps(before, after, WORDS))
        ArrayEdit(self._splices, item, headings=True).apply(plan, len(before), after, {})

    def edit_rows(
        self,
        item: Item,
        before: Sequence[T],
        after: Sequence[T],
        plan: Sequence[Step],
        alike: Likeness[T],
        plain: Callable[[T], object],
    ) -> None:
        """Delete and insert elements of an inline list as ``plan`` says; kept ones are left to the caller."""
        moved = moves(before, after, plan, alike)
        unchanged = [j for j, i in moved.items() if before[i] == after[j]]
        array = ArrayEdit(self._splices, item, headings=False)
        array.apply(plan, len(before), [plain(row) for row in after], moved, unchanged)

    def _index(self, section: Section) -> None:
        self._sections[section.path] = section
        if section.segments:
            for length in range(1, len(section.path) + 1):
                self._below[section.path[:length]].append(section)
        for statement in section.statements:
            full = section.path + statement.keys
            for length in range(len(section.path) + 1, len(full) + 1):
                self._dotted[full[:length]].append((section, statement))

    def _lines_of(self, statement: Statement) -> tuple[int, int]:
        return self._splices.line_start(statement.start), self._splices.line_end(statement.item.end)

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
        splices, section = self._splices, self._sections.get(path)
        if section is not None and section.statements:
            indent = splices.indent(section.statements[-1].start)
            self._add_lines(self._end_of(section), statements(added), indent)
        elif section is not None and section.segments:
            self._add_lines(self._end_of(section), statements(added), splices.indent(section.start))
        elif section is not None:
            self._add_on_top(section, added)
        elif self._dotted[path]:
            self._add_dotted(path, added)
        else:
            self._splices.insert_lines(self._make_header(path), statements(added))

    def _make_header(self, path: RawPath) -> int:
        """Give a table that only stands in the headers of its parts a header of its own; where its statements go."""
        if path not in self._made:
            first = min(self._below[path], key=lambda below: below.start)
            offset = self._splices.comments_above(self._splices.line_start(first.start))
            self._splices.insert_lines(offset, block(path, {}))
            self._made[path] = offset
        return self._made[path]

    def _add_lines(self, offset: int, lines: str, indent: str) -> None:
        self._splices.insert_lines(offset, "".join(f"{indent}{line}" for line in lines.splitlines(keepends=True)))

    def _add_on_top(self, root: Section, added: Mapping[str, object]) -> None:
        first = min((section.start for section in self.tree.sections if section.segments), default=None)
        if first is None:
            self._splices.insert_lines(len(self._splices.text), statements(added))
            return
        offset = max(self._splices.comments_above(self._splices.line_start(first)), root.start)
        self._splices.replace(offset, offset, f"{statements(added)}\n")

    def _add_dotted(self, path: RawPath, added: Mapping[str, object]) -> None:
        section, last = self._dotted[path][-1]
        text = self._splices.text
        prefix = text[last.start : last.segments[len(path) - len(section.path) - 1][1]]
        lines = "".join(f"{prefix}.{line}" for line in statements(added).splitlines(keepends=True))
        self._add_lines(self._splices.line_end(last.item.end), lines, self._splices.indent(last.start))

    def _make_table(self, path: RawPath, data: Mapping[str, object]) -> None:
        if self._is_inline(path[:-1]):
            self.set_members(path[:-1], {str(path[-1]): dict(data)})
        elif len(path) == 1 and self.tree.sections[0].statements:
            self._insert_blocks(self._end_of(self.tree.sections[0]), [block(path, data)])
        else:
            self.append_blocks(path[:1], [block(path, data)])

    def _insert_blocks(self, offset: int, blocks: Sequence[str]) -> None:
        """Insert tables at the beginning of a line, each with a blank line before it (at the top: after it)."""
        text = self._splices.text
        on_top = not text[:offset].strip("\ufeff \t\r\n")
        for made in blocks:
            self._splices.insert_lines(offset, f"{made}\n" if on_top and text else f"\n{made}")

    def _plain_blocks(self, path: RawPath, plain: Callable[[T], Mapping[str, object]]) -> Callable[[T], Sequence[str]]:
        return lambda row: [block((*path, 0), plain(row))]

    def _remove_section(self, section: Section) -> None:
        """With the comment lines directly above it: below them would stand what they were not written for."""
        start = self._splices.comments_above(self._splices.line_start(section.start))
        self._splices.remove_block(start, self._end_of(section))

    def _edit_tables(
        self,
        path: RawPath,
        item: Item,
        before: Sequence[T],
        after: Sequence[T],
        plan: Sequence[Step],
        moved: Mapping[int, int],
        blocks: Callable[[T], Sequence[str]],
    ) -> None:
        parent = path[:-1]
        if not after and parent not in self._sections and not self._dotted[parent] and parent not in self._made:
            self._make_header(parent)
        for step in plan:
            if step.what == "delete":
                for i in range(step.i, step.i_end):
                    for section in self._below[*path, i]:
                        self._remove_section(section)
            elif step.what == "insert":
                texts: list[str] = []
                for j in range(step.j, step.j_end):
                    i = moved.get(j)
                    if i is not None and before[i] == after[j]:
                        texts.append(self._element_text((*path, i)))
                    else:
                        above = "" if i is None else self._comments_of(self._below[*path, i][0])
                        texts += _below(above, blocks(after[j]))
                self._insert_tables(path, step, len(item.elements), texts)

    def _insert_tables(self, path: RawPath, step: Step, count: int, texts: Sequence[str]) -> None:
        if step.i > 0 or step.i_end == count:
            above = step.i - 1 if step.i > 0 else count - 1
            offset = max(self._end_of(section) for section in self._below[*path, above])
            self._insert_blocks(offset, texts)
        else:
            first = self._below[*path, step.i_end][0]
            offset = self._splices.comments_above(self._splices.line_start(first.start))
            for text in texts:
                self._splices.insert_lines(offset, f"{text}\n")

    def _element_text(self, path: RawPath) -> str:
        """The sections of one element as they are written, with the comment lines directly above them."""
        found: list[str] = []
        for section in self._below[path]:
            start = self._splices.comments_above(self._splices.line_start(section.start))
            text = self._splices.text[start : self._end_of(section)].replace("\r\n", "\n")
            found.append(text if text.endswith("\n") else f"{text}\n")
        return "\n".join(found)

    def _comments_of(self, section: Section) -> str:
        line = self._splices.line_start(section.start)
        return self._splices.text[self._splices.comments_above(line) : line].replace("\r\n", "\n")

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
        for step in steps(order, kept, WORDS):
            if step.what == "delete":
                ArrayEdit(self._splices, item, headings=True).delete_inline(step)
        if added:
            last = item.members[kept[-1]].end
            self._splices.replace(last, last, f", {literal(added)[2:-2]}")

    def _is_inline(self, path: RawPath) -> bool:
        """Whether the table at ``path`` is an inline one, or stands in dotted keys inside one."""
        item = self.find(path)
        return item is not None and (item.kind is Kind.INLINE or self._inline_with_dots(path, item) is not None)

    def _inline_with_dots(self, path: RawPath, item: Item) -> RawPath | None:
        """The inline table with dotted keys that holds the table at ``path``, or is it; None where there is no such."""
        if item.kind is Kind.INLINE:
            own = {id(child) for child in item.members.values()}
            return path if any(id(element) not in own for element in item.elements) else None
        above = (path[:length] for length in range(len(path) - 1, 0, -1))
        held = [(place, found.kind) for place in above if (found := self.find(place)) is not None]
        return next((place for place, kind in held if kind is Kind.INLINE), None) if item.kind is Kind.TABLE else None

    def _write_anew(self, around: RawPath, path: RawPath, changes: Mapping[str, object]) -> None:
        """Write a whole inline table again, with these members in the table at ``path`` in it."""
        item = self.find(around)
        if item is None:
            raise WeMustFix("an inline table of the policy file is not what was read")
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


def _below(comments: str, blocks: Sequence[str]) -> list[str]:
    first, *others = blocks
    return [f"{comments}{first}", *others]
