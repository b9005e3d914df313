"""What the letters of a line are: small tokenisers for JSON, TOML, Markdown and unified diffs."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind = Literal[
    "key",
    "string",
    "number",
    "keyword",
    "punctuation",
    "comment",
    "heading",
    "code",
    "added",
    "removed",
    "hunk",
    "gone",
]
Language = Literal["plain", "json", "toml", "markdown", "diff", "quiet", "readable"]


@dataclass(frozen=True, slots=True)
class Span:
    """Letters `start` to `start + length` (code points) of a line are a `kind`."""

    start: int
    length: int
    kind: Kind


Tokenised: TypeAlias = tuple[list[Span], int]
Tokeniser: TypeAlias = Callable[[str, int], Tokenised]

NORMAL = 0
IN_BASIC, IN_LITERAL = 1, 2  # inside a TOML string of three quotes
IN_FENCE = 1  # inside a Markdown code fence

_QUOTED = r'"(?:[^"\\]|\\.)*"?'
_NUMBER = r"[-+]?(?:0x[0-9A-Fa-f_]+|0o[0-7_]+|0b[01_]+|\d[\d_]*(?:\.[\d_]+)?(?:[eE][-+]?\d+)?)"
_JSON = re.compile(
    rf"(?P<string>{_QUOTED})|(?P<comment>… [\d,]+ lines?)|(?P<number>{_NUMBER})"
    r"|(?P<keyword>\b(?:true|false|null)\b)|(?P<punctuation>[{}\[\]:,])"
)
_JSON_KEY = re.compile(r"\s*:")
_TOML_HEAD = re.compile(r"\s*(\[\[?)([^\]#]*)(\]?\]?)")
_TOML_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_TOML = re.compile(
    rf"""(?P<comment>\#.*)|(?P<open>\"\"\"|''')|(?P<string>{_QUOTED}|'[^']*'?)"""
    r"""|(?P<date>\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[-+]\d\d:\d\d)?)?)"""
    rf"""|(?P<keyword>\b(?:true|false|inf|nan)\b)|(?P<inline>[A-Za-z0-9_-]+(?=\s*=))|(?P<number>{_NUMBER})"""
    r"""|(?P<punctuation>[\[\]{},=])"""
)
_MARK = re.compile(r"(?P<code>`[^`]+`)|(?P<keyword>\*\*[^*]+\*\*)")
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")


def plain(line: str, state: int) -> Tokenised:
    """No spans."""
    del line
    return [], state


def quiet_line(line: str, state: int) -> Tokenised:
    """All of it stands back."""
    return [Span(0, len(line), "comment")], state


def json_line(line: str, state: int) -> Tokenised:
    """Strings before a colon are keys; what is said of folded lines is a comment."""
    spans: list[Span] = []
    for match in _JSON.finditer(line):
        kind = _kind(match)
        if kind == "string" and _JSON_KEY.match(line, match.end()):
            kind = "key"
        spans.append(Span(match.start(), len(match.group()), kind))
    return spans, state


def toml_line(line: str, state: int) -> Tokenised:
    """Table heads, keys, values; strings of three quotes go on over lines."""
    start = 0
    spans: list[Span] = []
    if state != NORMAL:
        start, state = _toml_string_rest(line, 0, state, spans)
        if state != NORMAL:
            return spans, state
    else:
        start = _toml_start(line, spans)
    return _toml_values(line, start, spans)


def toml_state(lines: Iterable[str]) -> int:
    """In which string of three quotes the line behind these begins; quick, since most lines have none."""
    state = NORMAL
    for line in lines:
        if state != NORMAL or '"""' in line or "'''" in line:
            state = toml_line(line, state)[1]
    return state


def _toml_start(line: str, spans: list[Span]) -> int:
    head = _TOML_HEAD.match(line)
    if head:
        spans.append(Span(head.start(1), head.end() - head.start(1), "heading"))
        return head.end()
    key = _TOML_KEY.match(line)
    if key:
        spans.append(Span(key.start(1), len(key.group(1)), "key"))
        return key.end(1)
    return 0


def _toml_values(line: str, start: int, spans: list[Span]) -> Tokenised:
    while match := _TOML.search(line, start):
        start = match.end()
        if match.lastgroup == "open":
            state = IN_BASIC if match.group() == '"""' else IN_LITERAL
            start, state = _toml_string_rest(line, match.start(), state, spans, skip=3)
            if state != NORMAL:
                return spans, state
            continue
        spans.append(Span(match.start(), len(match.group()), _kind(match)))
    return spans, NORMAL


def _toml_string_rest(line: str, start: int, state: int, spans: list[Span], skip: int = 0) -> tuple[int, int]:
    fence = '"""' if state == IN_BASIC else "'''"
    end = line.find(fence, start + skip)
    stop = len(line) if end < 0 else end + 3
    spans.append(Span(start, stop - start, "string"))
    return stop, state if end < 0 else NORMAL


def markdown_line(line: str, state: int) -> Tokenised:
    """Headings, bullets, code, bold; fences go on over lines."""
    if line.lstrip().startswith("```"):
        return [Span(0, len(line), "code")], NORMAL if state == IN_FENCE else IN_FENCE
    if state == IN_FENCE:
        return [Span(0, len(line), "code")], state
    if line.startswith("#"):
        return [Span(0, len(line), "heading")], state
    spans: list[Span] = []
    if bullet := _BULLET.match(line):
        spans.append(Span(0, bullet.end(), "punctuation"))
    spans.extend(Span(match.start(), len(match.group()), _kind(match)) for match in _MARK.finditer(line))
    return spans, state


def readable_line(line: str, state: int) -> Tokenised:
    """Headings stand at the edge, rows behind a bullet, what is gone behind a minus; all else is indented."""
    if line.startswith("− "):
        return [Span(2, len(line) - 2, "gone")], state
    if line.startswith("• "):
        return [Span(0, len(line[2:].partition("  ")[0]) + 2, "key")], state
    return ([Span(0, len(line), "heading")] if line and not line[0].isspace() else []), state


def diff_line(line: str, state: int) -> Tokenised:
    """Whole lines by their first letters."""
    kinds: tuple[tuple[str, Kind], ...] = (
        ("+++", "heading"),
        ("---", "heading"),
        ("@@", "hunk"),
        ("+", "added"),
        ("-", "removed"),
    )
    for prefix, kind in kinds:
        if line.startswith(prefix):
            return [Span(0, len(line), kind)], state
    return [], state


_KINDS: dict[str, Kind] = {
    "string": "string",
    "number": "number",
    "date": "number",
    "keyword": "keyword",
    "punctuation": "punctuation",
    "comment": "comment",
    "inline": "key",
    "code": "code",
}


def _kind(match: re.Match[str]) -> Kind:
    return _KINDS[match.lastgroup or "punctuation"]


TOKENISERS: dict[Language, Tokeniser] = {
    "plain": plain,
    "json": json_line,
    "toml": toml_line,
    "markdown": markdown_line,
    "diff": diff_line,
    "quiet": quiet_line,
    "readable": readable_line,
}


def spans_of(text: str, language: Language) -> Iterator[tuple[int, Span]]:
    """Line number from 0 and span, for a whole text."""
    state = NORMAL
    for number, line in enumerate(text.split("\n")):
        spans, state = TOKENISERS[language](line, state)
        for span in spans:
            yield number, span
