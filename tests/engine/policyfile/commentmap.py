"""Finds the owners of the comments of a policy file by their places. Each begins with a number: `# c7 ...`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatewright.base.errors import RawPath
from gatewright.policyfile.scan import Item, Kind, scan

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMENT = re.compile(r"#\s*c\d+\b")
_ROWS: tuple[tuple[object, ...], ...] = (
    ("agents", str, "tool_rules", int),
    ("agents", str, "capabilities", int),
    ("agents", str),
    ("sources", int, "permission_rules", int),
    ("sources", int, "required_tools", int),
    ("sources", int),
    ("policy", "rules", int),
    ("tools", str),
    ("tool_rules", int),
)


@dataclass(frozen=True)
class Owner:
    """A row of the policy and what in it: keys, and the text of an element of a list. Both empty: the file."""

    row: RawPath
    part: tuple[str, ...]


@dataclass(frozen=True)
class _Anchor:
    start: int
    end: int
    owner: Owner


def comments_of(text: str) -> dict[str, Owner]:
    """Return the owner of each comment: what ends before it on its line, else what begins directly below it."""
    anchors = list(_anchors(text))
    found: dict[str, Owner] = {}
    for match in _COMMENT.finditer(text):
        name = match.group().replace(" ", "")
        assert name not in found, f"{name} stands there twice"
        found[name] = _owner(text, match.start(), anchors)
    return found


def parts_of(text: str) -> frozenset[Owner]:
    """Return everything to which a comment could belong."""
    return frozenset(anchor.owner for anchor in _anchors(text))


def _owner(text: str, offset: int, anchors: list[_Anchor]) -> Owner:
    line = text.rfind("\n", 0, offset) + 1
    if text[line:offset].strip("\ufeff \t"):
        before = [anchor for anchor in anchors if line < anchor.end <= offset]
        return max(before, key=lambda anchor: (anchor.end, anchor.start)).owner
    below = offset
    while text[below:].lstrip(" \t").startswith("#"):
        below = text.find("\n", below) + 1 or len(text)
    after = [anchor for anchor in anchors if anchor.start >= below]
    first = min(after, key=lambda anchor: (anchor.start, -anchor.end), default=None)
    around = max((anchor for anchor in anchors if anchor.start < offset < anchor.end), key=_start, default=None)
    if around is not None and (first is None or first.start > around.end):
        return around.owner
    if first is None or text[below : first.start].strip(" \t"):
        return Owner((), ())
    return first.owner


def _start(anchor: _Anchor) -> int:
    return anchor.start


def _anchors(text: str) -> Iterator[_Anchor]:
    tree = scan(text)
    for section in tree.sections:
        if section.segments:
            yield _Anchor(section.start, section.header_end, _owned(section.path))
        for statement in section.statements:
            path = (*section.path, *statement.keys)
            yield _Anchor(statement.start, statement.item.end, _owned(path))
            yield from _within(text, statement.item, path)


def _within(text: str, item: Item, path: RawPath) -> Iterator[_Anchor]:
    if item.kind is Kind.ARRAY:
        for index, element in enumerate(item.elements):
            here = (*path, index) if element.kind is not Kind.SCALAR else (*path, text[element.start : element.end])
            yield _Anchor(element.start, element.end, _owned(here))
            yield from _within(text, element, here)
    elif item.kind is Kind.INLINE:
        for name, member in item.members.items():
            yield _Anchor(member.key_start, member.end, _owned((*path, name)))
            yield from _within(text, member, (*path, name))


def _owned(path: RawPath) -> Owner:
    for shape in _ROWS:
        head = path[: len(shape)]
        if len(head) == len(shape) and all(
            isinstance(part, want) if isinstance(want, type) else part == want
            for part, want in zip(head, shape, strict=True)
        ):
            return Owner(head, tuple(map(str, path[len(shape) :])))
    return Owner((), tuple(map(str, path)))
