"""Descriptions without what speaks of hidden operations: the sentence, row or section that names one goes whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from gatewright.base.frozen import frozen
from gatewright.base.regex import late_regex
from gatewright.schema.words import Words

_HEADING = late_regex(r"\s*(#{1,6})\s+")
_ITEM = late_regex(r"(\s*)([-*•+]|\d{1,3}[.)])\s+")
_FENCE = late_regex(r"\s*(```|~~~)")
_NEW_ROW = late_regex(r"\s*(?:[A-Z#]|[`'\"*]*[\w-]+[`'\"*]*\s*(?:[:=]|\(|—|–|->|→| - ))")
_DEFINED = late_regex(r"[\s\\`'\"*(]*([A-Za-z_][\w-]*)[`'\"*)\\]*\s*(?::|=|\(|—|–|->|→|-\s)")
_REMARK = late_regex(r"\s\([^()]*\)")
_ABBREVIATION = late_regex(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|resp|no|nr|fig)|\b[A-Za-z])\.$", re.IGNORECASE)
_END = late_regex(r"[.!?]+[\"'`)\]*”’]*(?=\s)")
_ANNOUNCED = late_regex(r"[A-Z]\w*(?:,? [\w/-]+)+(?<! are)(?<! is)(?<! by)(?<! to)(?<! for)(?<! with)(?=: )")
_REFERS_BACK = late_regex(
    r"\W*(?:(?:it|they|its|their|otherwise|alternatively|this|these|those)\b"
    r"|(?:get|use|set|find|take|pass|see|without|with|after|before)\s+(?:it|them|this)\b|(?:required|optional)[.!]?\s*$)",
    re.IGNORECASE,
)


@frozen
class _Row:
    """A piece of layout: ``lead`` the indent with marker, ``body`` the text, ``level`` its indent or heading level."""

    kind: Literal["heading", "item", "text", "blank", "fence"]
    lead: str
    body: str
    level: int

    def holds(self, other: _Row) -> bool:
        """Whether ``other``, further down, belongs to the section, item or introduction that this row begins."""
        if self.kind == "heading":
            return other.kind != "heading" or other.level > self.level
        return other.kind not in ("heading", "blank") and other.level > self.level

    def introduces(self, other: _Row) -> bool:
        """Whether this row only announces ``other``, the next one that is not blank."""
        if self.kind == "heading":
            return self.holds(other)
        listed = self.kind == "text" and other.kind in ("item", "fence")
        return self.body.rstrip().endswith(":") and (listed or self.holds(other))


def clean_text(
    text: str, hidden: Iterable[str], kept: Iterable[str] = (), *, operations: Iterable[str] | None = None
) -> str:
    """``text`` without what speaks of ``hidden`` operations.

    ``kept`` are the names that may stay although they are hidden too, since a parameter or a legal value bears them;
    ``operations`` the allowed operations among them, all of them when not given.

    A plain enumeration of operations loses the hidden ones; otherwise the sentence, the remark in brackets, the list
    row or the section that names one goes whole. Afterwards no hidden name that is not kept stands in the text. The
    text comes back as it was when it names none; when it spoke of nothing else, what announces it stays (`Manage
    tags` of `Manage tags: list them`), or nothing.
    """
    return text_cleaner(hidden, kept, operations=operations)(text)


def text_cleaner(
    hidden: Iterable[str], kept: Iterable[str] = (), *, operations: Iterable[str] | None = None
) -> Callable[[str], str]:
    """What `clean_text` does with the same names, for many texts."""
    words = _words(frozenset(hidden), frozenset(kept), None if operations is None else frozenset(operations))
    return lambda text: _without_hidden_names(text, words) if words.may_stand_in(text) else text


def _without_hidden_names(text: str, words: Words) -> str:
    shorter = words.cut_enumerations(text)
    if not words.hits(shorter):
        return shorter
    result = "\n".join(row.lead + row.body for row in _cleaned(_rows(shorter), words))
    result = re.sub(r"\n(?:[ \t]*\n){2,}", "\n\n", result).rstrip()
    if text[:1].strip():
        result = result.lstrip()
    if re.search(r"\w", result) and not words.hits(result):
        return result
    announced = _ANNOUNCED.match(text)
    return announced.group() + "." if announced and not words.hits(announced.group()) else ""


@lru_cache(maxsize=256)
def _words(hidden: frozenset[str], kept: frozenset[str], operations: frozenset[str] | None) -> Words:
    """One set of patterns for all the texts of a tool."""
    return Words(hidden, kept, operations)


def _rows(text: str) -> list[_Row]:
    rows: list[_Row] = []
    lines = text.split("\n")
    while lines:
        line = lines.pop(0)
        previous = rows[-1] if rows else None
        heading, item, indent = _HEADING.match(line), _ITEM.match(line), len(line) - len(line.lstrip())
        if _FENCE.match(line):
            end = next((at for at, other in enumerate(lines) if _FENCE.match(other)), len(lines) - 1)
            rows.append(_Row("fence", "", "\n".join([line, *lines[: end + 1]]), indent))
            del lines[: end + 1]
        elif not line.strip():
            rows.append(_Row("blank", "", line, 0))
        elif heading:
            rows.append(_Row("heading", heading.group(), line[heading.end() :], len(heading.group(1))))
        elif item:
            rows.append(_Row("item", item.group(), line[item.end() :], indent))
        elif previous and _continues(previous, line, indent):
            rows[-1] = replace(previous, body=f"{previous.body}\n{line}")
        else:
            rows.append(_Row("text", line[:indent], line[indent:], indent))
    return rows


def _continues(previous: _Row, line: str, indent: int) -> bool:
    if previous.kind == "item":
        return indent > previous.level
    return (
        previous.kind == "text"
        and not previous.body.rstrip().endswith((".", ":", "!", "?"))
        and not (_NEW_ROW.match(line))
    )


def _cleaned(rows: list[_Row], words: Words) -> list[_Row]:
    """The rows that stay; what introduced only rows that go, goes as well."""
    kept: list[tuple[_Row, _Row | None]] = []
    dropped: _Row | None = None
    for index, row in enumerate(rows):
        if dropped is not None and dropped.holds(row):
            continue
        body = _without_hidden(row, words)
        dropped = None if body or row.kind == "blank" else row
        if dropped is None:
            announced = next((other for other in rows[index + 1 :] if other.kind != "blank"), None)
            kept.append((replace(row, body=body), announced))
    result: list[_Row] = []
    for row, announced in reversed(kept):
        follower = next((other for other in reversed(result) if other.kind != "blank"), None)
        is_empty = announced is not None and row.introduces(announced)
        if is_empty and (follower is None or not row.introduces(follower)):
            rest = "" if row.kind == "heading" else "".join(_sentences(row.body)[:-1]).rstrip()
            result += [replace(row, body=rest)] if rest else []
        else:
            result.append(row)
    return result[::-1]


def _without_hidden(row: _Row, words: Words) -> str:
    """What stays of a row; empty for one that goes whole."""
    if not words.hits(row.body):
        return row.body
    defined = _DEFINED.match(row.body)
    if row.kind in ("fence", "heading") or (defined and words.is_strict(defined.group(1))):
        return ""
    kept, was_dropped = list[str](), False
    body = _REMARK.sub(lambda match: "" if words.hits(match.group()) else match.group(), row.body)
    for sentence in _sentences(body):
        was_dropped = words.hits(sentence) or (was_dropped and _REFERS_BACK.match(sentence) is not None)
        kept += [] if was_dropped else [sentence]
    return "".join(kept).rstrip()


def _sentences(text: str) -> list[str]:
    """The sentences of ``text``, each with the white space after it."""
    depths = _depths(text)
    result, start = list[str](), 0
    for match in _END.finditer(text):
        if depths[match.start()] or _ABBREVIATION.search(text[start : match.start() + 1]):
            continue
        end = match.end() + len(text[match.end() :]) - len(text[match.end() :].lstrip())
        result.append(text[start:end])
        start = end
    return [*result, text[start:]] if start < len(text) else result


def _depths(text: str) -> list[int]:
    """How deep in brackets each character stands; all zero when the brackets do not match."""
    depth, result = 0, list[int]()
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return [0] * len(text)
        result.append(depth)
    return result if depth == 0 else [0] * len(text)
