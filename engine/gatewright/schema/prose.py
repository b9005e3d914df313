"""Cleans a tool's texts: removes each sentence, row or section that names a hidden operation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex, once
from gatewright.schema.flat import snake
from gatewright.schema.operation import OperationSet
from gatewright.schema.walk import (
    LISTS,
    MAPS,
    SINGLES,
    Schema,
    as_list,
    as_object,
    map_children,
    properties_of,
    walk,
)

_NEVER = late_regex(r"(?!)")
_QUOTES = "`'\"“”‘’"
_JOINT = r"\s*,\s*(?:(?:and/or|and|or)\s+)?|\s*[/|]\s*|\s+(?:and/or|and|or)\s+"
_JOINTS = late_regex(f"({_JOINT})")
_CLAUSE_END = late_regex(r"\s*(?:\.(?!\w)|[,;:)\]—–]|$|(?:operation|action|mode|command)s?\b)")
_PARTICLE = late_regex(r"\s+(?:on|to|from|with|by|in|at|of|into|up|out|off|as|via)\b", re.IGNORECASE)


class Words:
    """The hidden names, and the names that may stay because something allowed bears them.

    A token is compared without regard to case, since prose writes `Delete` and `DELETE` for `delete`; a kept name is
    compared exactly. Letters, digits and underscores belong to a token, so `list` does not occur in `list_items`. A
    name of several words also counts when written apart: `delete all` for `delete_all`.
    """

    def __init__(self, hidden: Iterable[str], kept: Iterable[str], operations: Iterable[str] | None = None) -> None:
        self.kept = frozenset(kept)
        self.hidden = frozenset(name for name in hidden if name.strip())
        self.operations = self.kept if operations is None else frozenset(operations)
        self._strict = frozenset(name.casefold() for name in self.hidden - self.kept)
        spelled_kept = frozenset(map(_words_apart, self.kept))
        self._spelled_hidden = frozenset(map(_words_apart, self.hidden - self.kept)) - spelled_kept - {""}
        self._words_apart = self._spelled_hidden | (spelled_kept - {""})
        self._pieces = {name.casefold() for name in self.hidden} | {name.split()[0] for name in self._spelled_hidden}

    def may_stand_in(self, text: str) -> bool:
        """Tell whether the letters of a hidden name, or of its first word, occur at all, which is rare."""
        folded = text.casefold()
        return any(map(folded.__contains__, self._pieces))

    def hits(self, text: str) -> bool:
        """Tell whether ``text`` contains a hidden name that nothing allowed shares."""
        return any(self.is_strict(match.group()) for match in self._tokens.finditer(text)) or any(
            " ".join(match.group().casefold().split()) in self._spelled_hidden for match in self._phrases.finditer(text)
        )

    def is_strict(self, word: str) -> bool:
        """Tell whether ``word`` itself is a hidden name that nothing allowed shares."""
        return word not in self.kept and word.casefold() in self._strict

    def cut_enumerations(self, text: str) -> str:
        """Cut the hidden names from plain enumerations of operations (`list, get or drop`).

        An enumeration stays as it is if it would not read well without them, or holds only hidden ones.
        """
        return text if self._enumerations is None else self._enumerations.sub(self._shorten, text)

    def _shorten(self, match: re.Match[str]) -> str:
        pieces = _JOINTS.split(match.group())
        items, joints = pieces[::2], pieces[1::2]
        kept = [item for item in items if not self._is_hidden(item.strip(_QUOTES))]
        before, after = match.string[: match.start()][-10:], match.string[match.end() :][:40]
        ends = _CLAUSE_END.match(after) and not re.search(r"\b(?:both|either)\s+$", before, re.IGNORECASE)
        leads = len(kept) > 1 and (kept[-1] == items[-1] or not _PARTICLE.match(after))
        if not kept or len(kept) == len(items) or not (leads or ends):
            return match.group()
        if items[0][0].isupper():
            kept[0] = kept[0][:1].upper() + kept[0][1:]
        word = re.search(r"and/or|and|or", joints[-1])
        if word is None or len(kept) == 1:
            return joints[0].join(kept)
        comma = "," if "," in joints[-1] and len(kept) > 2 else ""
        return f"{', '.join(kept[:-1])}{comma} {word.group()} {kept[-1]}"

    def _is_hidden(self, word: str) -> bool:
        return self.is_strict(word) or word in self.hidden

    @once
    def _tokens(self) -> re.Pattern[str]:
        compound = {name for name in self.kept if not re.fullmatch(r"\w+", name)}
        return _any_of((self.hidden - self.kept) | compound) if self._strict else _NEVER

    @once
    def _phrases(self) -> re.Pattern[str]:
        return _any_of(self._words_apart if self._spelled_hidden else (), blank=r"\s+")

    @once
    def _enumerations(self) -> re.Pattern[str] | None:
        if not self.hidden:
            return None
        names = "|".join(map(re.escape, sorted(self.hidden | self.operations, key=len, reverse=True)))
        item = rf"[{_QUOTES}]?(?:{names})[{_QUOTES}]?(?!\w)"
        return re.compile(rf"(?<![\w/.@-]){item}(?:(?:{_JOINT}){item})+(?![-/@])", re.IGNORECASE)


def _any_of(names: Iterable[str], blank: str = r"\ ") -> re.Pattern[str]:
    listed = [re.escape(name).replace(r"\ ", blank) for name in sorted(names, key=len, reverse=True)]
    return re.compile(rf"(?<!\w)(?:{'|'.join(listed)})(?!\w)", re.IGNORECASE) if listed else _NEVER


def _words_apart(name: str) -> str:
    """Write `deleteAll`, `delete-all` and `delete_all` as `delete all`; empty for a name of one word."""
    parts = snake(name).split("_")
    return " ".join(parts) if len(parts) > 1 and all(map(str.isalnum, parts)) else ""


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
    """A piece of layout:

    ``lead`` is the indent with its marker, ``body`` the text, ``level`` the indent or heading level.
    """

    kind: Literal["heading", "item", "text", "blank", "fence"]
    lead: str
    body: str
    level: int

    def holds(self, other: _Row) -> bool:
        """Tell whether ``other``, further down, belongs to the section, item or introduction that this row begins."""
        if self.kind == "heading":
            return other.kind != "heading" or other.level > self.level
        return other.kind not in ("heading", "blank") and other.level > self.level

    def introduces(self, other: _Row) -> bool:
        """Tell whether this row only announces ``other``, the next row that is not blank."""
        if self.kind == "heading":
            return self.holds(other)
        listed = self.kind == "text" and other.kind in ("item", "fence")
        return self.body.rstrip().endswith(":") and (listed or self.holds(other))


def clean_text(
    text: str, hidden: Iterable[str], kept: Iterable[str] = (), *, operations: Iterable[str] | None = None
) -> str:
    """Remove the passages about ``hidden`` operations from ``text``.

    ``kept``: hidden names that may stay, since a parameter or a legal value shares them; ``operations``: the allowed
    operations among ``kept``, by default all. A plain enumeration of operations loses the hidden ones; otherwise the
    sentence, the remark in brackets, the list row or the section that names one is removed as a whole. Afterwards the
    text contains no hidden name that is not kept. A text that names none comes back unchanged; a text about nothing
    else becomes empty or shrinks to its announcement (`Manage tags` of `Manage tags: list them`).
    """
    return text_cleaner(hidden, kept, operations=operations)(text)


def text_cleaner(
    hidden: Iterable[str], kept: Iterable[str] = (), *, operations: Iterable[str] | None = None
) -> Callable[[str], str]:
    """Return a function that cleans many texts of the same names as `clean_text`."""
    words = _words(frozenset(hidden), frozenset(kept), None if operations is None else frozenset(operations))
    return lambda text: _without_hidden_names(text, words) if words.may_stand_in(text) else text


def _without_hidden_names(text: str, words: Words) -> str:
    shorter = words.cut_enumerations(text)
    if not words.hits(shorter):
        return shorter
    result = "\n".join(row.lead + row.body for row in _clean_rows(_rows(shorter), words))
    result = re.sub(r"\n(?:[ \t]*\n){2,}", "\n\n", result).rstrip()
    if text[:1].strip():
        result = result.lstrip()
    if re.search(r"\w", result) and not words.hits(result):
        return result
    announced = _ANNOUNCED.match(text)
    return announced.group() + "." if announced and not words.hits(announced.group()) else ""


@lru_cache(maxsize=256)
def _words(hidden: frozenset[str], kept: frozenset[str], operations: frozenset[str] | None) -> Words:
    """Build one set of patterns for all texts of a tool."""
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


def _clean_rows(rows: list[_Row], words: Words) -> list[_Row]:
    """Return the rows that stay; a row that introduced only removed rows is removed as well."""
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
    """Return the rest of a row; empty for a row that is removed."""
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
    """Split ``text`` into sentences, each with the white space after it."""
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
    """Return the depth of brackets at each character; all zero if the brackets do not match."""
    depth, result = 0, list[int]()
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return [0] * len(text)
        result.append(depth)
    return result if depth == 0 else [0] * len(text)


_NOT_TEXT = frozenset(
    {"$schema", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "type", "format", "pattern", "required"}
    | {"enum", "const", "default", "contentEncoding", "contentMediaType", "dependentRequired", "discriminator"}
)
_SAMPLES = frozenset({"examples", "example"})


def bearing_names(schema: Schema) -> frozenset[str]:
    """Return the names that a filtered schema itself needs: its parameters, their legal values and the operations."""
    names: set[str] = set()
    for _, node in walk(schema):
        names |= properties_of(node).keys()
        values = [*(as_list(node.get("enum")) or []), node.get("const"), node.get("default")]
        names |= {value for value in values if isinstance(value, str)}
    return frozenset(names)


def clean_wording(schema: Schema, found: OperationSet, hidden: frozenset[str], kept: frozenset[str]) -> Schema:
    """Clean the texts of ``schema``."""
    cleaner = _Cleaner(hidden, kept, frozenset(found.names) - hidden)
    return cleaner.schema(_without_hidden_samples(schema, found, hidden))


class _Cleaner:
    """One cleaning of one schema."""

    def __init__(self, hidden: frozenset[str], kept: frozenset[str], operations: frozenset[str]) -> None:
        self.hidden, self.kept, self.operations = hidden, kept, operations
        self.words = Words(hidden, kept, operations)

    def schema(self, schema: Schema) -> Schema:
        result: Schema = {}
        for keyword, value in map_children(schema, self.schema).items():
            if keyword in _NOT_TEXT or keyword in MAPS or keyword in LISTS or keyword in SINGLES:
                result[keyword] = value
                continue
            if keyword not in _SAMPLES:
                cleaned = self._value(value)
            # such words are data: one that names a hidden operation is removed
            elif (samples := as_list(value)) is not None:
                cleaned = [item for item in samples if not self._mentions(item)]
            else:
                cleaned = None if self._mentions(value) else value
            if cleaned not in (None, "", [], {}) or cleaned == value:
                result[keyword] = cleaned
        return result

    def _value(self, value: Any) -> Any:
        """Clean any value under a keyword that JSON Schema does not define: clean its texts, and drop the empty
        ones.
        """
        if isinstance(value, str):
            return clean_text(value, self.hidden, self.kept, operations=self.operations)
        if (array := as_list(value)) is not None:
            return [cleaned for item in array if (cleaned := self._value(item)) not in ("", {}) or cleaned == item]
        if (table := as_object(value)) is not None:
            kept = {key: item for key, item in table.items() if not self.words.hits(key)}
            return {
                key: cleaned for key, item in kept.items() if (cleaned := self._value(item)) != "" or cleaned == item
            }
        return value

    def _mentions(self, value: Any) -> bool:
        if isinstance(value, str):
            return self.words.hits(value)
        if (array := as_list(value)) is not None:
            return any(map(self._mentions, array))
        table = as_object(value) or {}
        return any(self.words.hits(key) or self._mentions(item) for key, item in table.items())


def _without_hidden_samples(schema: Schema, found: OperationSet, hidden: frozenset[str]) -> Schema:
    """Drop whole-call examples and defaults at the root that call a hidden operation, by name or by omission."""

    def is_hidden(sample: Any) -> bool:
        table = as_object(sample)
        if table is None:
            return False
        called = found.of(table)
        return called is None or any(name in hidden for name in called)

    result = dict(schema)
    for keyword in ("examples", "example", "default"):
        samples = as_list(schema.get(keyword)) if keyword == "examples" else None
        if samples is not None:
            result[keyword] = [sample for sample in samples if not is_hidden(sample)]
        elif keyword in schema and is_hidden(schema[keyword]):
            del result[keyword]
    return (
        result if result.get("examples") != [] else {key: value for key, value in result.items() if key != "examples"}
    )
