"""One word of a shell command: the texts that it may become, and its canonical spelling.

In a word, a control character stands for a sign that the shell would act on, and half of a surrogate pair for an
expansion. A command can contain neither, so one text carries both the known and the unknown parts. A word gets quotes
only if it needs them; braces are expanded here, and an expansion stays if it starts nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from gatewright.arguments.shell_program import names
from gatewright.base.errors import Address
from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex

if TYPE_CHECKING:
    from tree_sitter import Node


MAX_FORMS = 64
"""The most texts that one word may become, over all values of its variables."""
MOST_SHOWN = 80
"""The most characters of a command in a reason."""
MAX_FORM_CHARS = 128 * 1024
"""The most characters of all forms in one command, and of what its braces expand to."""
_MAX_WORDS = 1_000
"""The most words that one word with braces may become."""
_MAX_NESTED = 20
WRITE_PLAINLY = "write the command in plain shell: simple commands with `|`, `&&`, `||` and `;`, and quoted words"
_SIGNS = "*?[]!^{},~"
MARKS = {sign: chr(0x0E + at) for at, sign in enumerate(_SIGNS)}
SPLIT = "\x18"
"""The mark for blanks in a variable's value, which end a word."""
WITHOUT_MARKS = {ord(mark): sign for sign, mark in MARKS.items()}
OPEN, _COMMA, _CLOSE, HOME = (MARKS[sign] for sign in "{,}~")
GLOB_SIGNS = "".join(MARKS[sign] for sign in "*?[]!^")
GLOB = late_regex(f"[{re.escape(GLOB_SIGNS)}]")
MARKED = late_regex(f"([{re.escape(''.join(MARKS.values()))}\ud800-\udfff])")
_BRACE = late_regex(f"[{OPEN}{_COMMA}{_CLOSE}]")
TO_GLOBS = {ord(sign): MARKS[sign] for sign in "*?[]"}
FIRST_HOLE, MAX_HOLES = 0xD800, 0x800

_RANGE = late_regex(r"(?:(-?[0-9]{1,3})\.\.(-?[0-9]{1,3})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?[0-9]{1,3}))?")


@frozen
class CommandRefused:
    """The reason for refusing a command: ``reason`` for the operator, ``hint`` for the model, which echoes nothing.

    ``at``: the place in the policy that refuses it.
    """

    code: str
    reason: str
    hint: str
    at: Address | None = None


class Refusal(Exception):
    """Stops the reader; ``refused`` goes back to the caller."""

    def __init__(self, code: str, reason: str, hint: str, at: Address | None = None) -> None:
        super().__init__(reason)
        self.refused = CommandRefused(f"shell-{code}", reason, hint, at)

    @classmethod
    def of(cls, refused: CommandRefused) -> Refusal:
        """Wrap a refusal that another reader returned."""
        made = cls(refused.code, refused.reason, refused.hint)
        made.refused = refused
        return made


def spread(text: str, left: int) -> list[str]:
    """Expand the braces of a text."""
    closing: dict[int, int] = {}
    commas: dict[int, list[int]] = {}
    opened: list[int] = []
    for found in _BRACE.finditer(text):
        at = found.start()
        if found[0] == OPEN:
            opened.append(at)
            commas[at] = []
        elif opened and found[0] == _CLOSE:
            if len(opened) > _MAX_NESTED:
                raise Refusal("too-deep", "braces in braces, too deep", WRITE_PLAINLY)
            closing[opened.pop()] = at
        elif opened:
            commas[opened[-1]].append(at)

    def between(start: int, stop: int) -> list[str]:
        found, at = [""], start
        for opening in starts[bisect_left(starts, start) : bisect_left(starts, stop)]:
            if opening < at:
                continue
            end, before = closing[opening], text[at:opening]
            inner = alternatives(opening, end)
            if len(found) * len(inner) > _MAX_WORDS or len(found) * sum(map(len, inner)) > left:
                raise Refusal("too-many-words", "braces that stand for too many words", "use shorter commands")
            found = [f"{one}{before}{more}" for one in found for more in inner]
            at = end + 1
        return [one + text[at:stop] for one in found]

    def alternatives(opening: int, end: int) -> list[str]:
        if cuts := commas[opening]:
            edges = zip((opening, *cuts), (*cuts, end), strict=True)
            return [one for start, stop in edges for one in between(start + 1, stop)]
        if found := _RANGE.fullmatch(text, opening + 1, end):
            return _sequence(found)
        return [f"{{{one}}}" for one in between(opening + 1, end)]

    starts = sorted(closing)
    return between(0, len(text))


def _sequence(found: re.Match[str]) -> list[str]:
    """Return the numbers or letters of `{1..9}`, `{a..e..2}`."""
    first, last, start, stop, step = found.groups()
    by = abs(int(step or 1)) or 1
    if start:
        low, high = ord(start), ord(stop)
        return [chr(code) for code in (range(low, high + 1, by) if low <= high else range(low, high - 1, -by))]
    low, high = int(first), int(last)
    width = (
        max(len(first), len(last))
        if any(one.lstrip("-")[:1] == "0" and len(one.lstrip("-")) > 1 for one in (first, last))
        else 0
    )
    return [f"{n:0{width}}" for n in (range(low, high + 1, by) if low <= high else range(low, high - 1, -by))]


_BARE = late_regex(r"[A-Za-z0-9_@%+:,./=-]+")
_VARIABLE = late_regex(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_EXPANSION = late_regex(
    r"\$\{(?:(#?)([A-Za-z_][A-Za-z0-9_]*)|[0-9@*#?$!-]|"
    r"([A-Za-z_][A-Za-z0-9_]*)(:?[-+?]|##?|%%?)([A-Za-z0-9_ @+:,./=*?-]*))\}"
)
_COUNTS = frozenset({"?", "#", "$", "!"})
_ARITHMETIC = late_regex(r"\$\(\(([0-9\s+*/%()<>=!&|^~?:-]*)\)\)")
_ANSI_C = late_regex(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPE = late_regex(
    r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([abeEfnrtv\\'\"?])|(.))", re.DOTALL
)
_LETTERS = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))
IN_QUOTES = late_regex(r'\\([\\"$`])|\\\n')
IN_DOCUMENT = late_regex(r"\\([\\$`])|\\\n")
_LEFT = late_regex(r"`|\$[({A-Za-z0-9_@*#?!$'\"-]")
_TABS = late_regex(r"^\t+", re.MULTILINE)
_ACTIVE = late_regex(r"[\\*?\[\]{},~ \t\n]")
_CONTROL = late_regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
KEYWORDS = names("if then elif else fi while until do done for in case esac select function time coproc")
TOKENS = names("if then elif else fi while until do done for in case esac ( ) { } ! && || | |& & ;; ;& ;;&")
SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})


@frozen
class Hole:
    """A part of a word that the shell fills in. ``values``: all that it may be, None if unknown.

    ``counts``: it is a number; ``splits``: it may become several words.
    """

    spelling: str
    values: tuple[str, ...] | None = None
    counts: bool = False
    splits: bool = False


class Word:
    """A word in its canonical spelling. ``literal``: its text, None if only the running command decides it.

    ``head``: its known beginning; ``splits``: it may become several words, only the first of which has this beginning.
    ``forms``: every text that it may become, with marks for signs of patterns; None if unknown. ``counts``: its unknown
    parts are numbers.
    """

    __slots__ = ("counts", "forms", "head", "literal", "splits", "text")

    def __init__(self, marked: str, holes: Sequence[Hole] = (), left: int = MAX_FORM_CHARS) -> None:
        self.counts, self.splits, is_literal = True, False, True
        if MARKED.search(marked) is None:
            self.literal = self.head = marked
            self.forms, self.text = (marked,), _spelling(quote(marked) if marked else "")
            return
        parts: list[str] = []
        forms: list[str] | None = [""]
        plain = head = ""
        for piece in MARKED.split(marked):
            raw, values, at_start = "", (piece,), not parts and not plain
            if piece >= chr(FIRST_HOLE) and FIRST_HOLE <= ord(piece[0]) < FIRST_HOLE + MAX_HOLES:
                hole = holes[ord(piece) - FIRST_HOLE]
                raw, values = hole.spelling, hole.values
                self.splits |= hole.splits
                self.counts &= hole.counts
            elif piece == HOME and (at_start or plain[-1:] in {"=", ":"}):
                raw, values, self.counts = "~", None, False
            elif GLOB.fullmatch(piece):
                raw = piece.translate(WITHOUT_MARKS)
            else:
                values = (piece := piece.translate(WITHOUT_MARKS),)
            if raw:
                parts += (quote(plain), raw) if plain else (raw,)
                plain, is_literal = "", False
            elif piece:
                plain += piece
                head += piece if is_literal else ""
            if forms is not None:
                count = len(forms) * len(values) if values is not None else MAX_FORMS + 1
                is_small = count <= MAX_FORMS and (
                    count == 1 or len(marked) * count + sum(map(len, values or ())) <= left
                )
                forms = [form + value for form in forms for value in values or ()] if is_small else None
        self.text = _spelling("".join((*parts, quote(plain) if plain else "")))
        self.literal, self.head = head if is_literal else None, head
        self.forms = None if forms is None else tuple(dict.fromkeys(one for form in forms for one in form.split(SPLIT)))


def _spelling(text: str) -> str:
    return quote_always(text) if not text or text in TOKENS or text in KEYWORDS else text


def quote(text: str) -> str:
    """Quote the text where it needs quotes."""
    return text if _BARE.fullmatch(text) else "'" + text.replace("'", "'\\''") + "'"


class _Draft:
    """A word during reading: its text with marks, and its holes."""

    __slots__ = ("holes", "keeps_blanks", "text")

    def __init__(self, *, keeps_blanks: bool = False) -> None:
        self.text, self.holes, self.keeps_blanks = "", list[Hole](), keeps_blanks

    def add(self, hole: Hole, *, in_quotes: bool) -> None:
        """Add a hole; between quotes, and in an assignment, the shell uses its value as it is."""
        if len(self.holes) == MAX_HOLES:
            raise Refusal("syntax", "a word holds too many expansions", WRITE_PLAINLY)
        if not in_quotes:
            values = hole.values if self.keeps_blanks or hole.values is None else _bare_values(hole.values)
            hole = Hole(hole.spelling, values, hole.counts, splits=True)
        self.text += chr(FIRST_HOLE + len(self.holes))
        self.holes.append(hole)


def _bare_values(values: Iterable[str]) -> tuple[str, ...] | None:
    """Return the values as the shell treats them without quotes: signs of patterns count, blanks end a word."""
    if any("\\" in value or GLOB.search(value) for value in values):
        return None
    return tuple(re.sub(r"[ \t\n]+", SPLIT, value.translate(TO_GLOBS)) for value in values)


class WordReader:
    """Reads the words of one command.

    ``substitute`` writes the commands of a substitution anew, or refuses them; ``values`` returns all that a variable
    may be, or None.
    """

    def __init__(
        self, source: bytes, substitute: Callable[[Node], str], values: Callable[[str], tuple[str, ...] | None]
    ) -> None:
        self._source, self._substitute, self._values, self._left = source, substitute, values, MAX_FORM_CHARS
        self._known: dict[str, Word] = {}
        self._spread: dict[str, list[str]] = {}

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode()

    def words(self, node: Node) -> list[Word]:
        """Return the words that a word with its braces stands for.

        Raises Refusal if one can start something unknown.
        """
        draft = _Draft()
        if node.type == "process_substitution":  # the name of a pipe, which contains nothing else
            return [Word(chr(FIRST_HOLE), (Hole(self._substitute(node), ("",)),))]
        self._piece(node, draft)
        if OPEN not in draft.text:
            return [self._make(draft.text, draft)]
        texts = self._spread.get(draft.text)
        if texts is None or sum(map(len, texts)) > self._left:
            texts = self._spread[draft.text] = spread(draft.text, self._left)
        self._left -= sum(map(len, texts))
        return [self._make(text, draft) for text in texts if text]

    def word(self, node: Node, *, keeps_blanks: bool = False) -> Word:
        """Return one word that the shell does not expand; ``keeps_blanks``: blanks in a value do not split it."""
        draft = _Draft(keeps_blanks=keeps_blanks)
        self._piece(node, draft)
        return self._make(draft.text, draft)

    def document(self, start: int, stop: int, parts: Sequence[Node], *, is_plain: bool, tabs: bool) -> Word:
        """Return the text of a here-document without its last line end, which a here-string adds."""
        draft = _Draft(keeps_blanks=True)
        self._between(draft, start, max(start, stop - 1), parts, None if is_plain else IN_DOCUMENT, tabs=tabs)
        return self._make(draft.text, draft)

    def _make(self, text: str, draft: _Draft) -> Word:
        """Make the word of a text; equal texts without holes share one object."""
        if not draft.holes:
            return self._known.get(text) or self._known.setdefault(text, Word(text))
        word = Word(text, draft.holes, self._left)
        if word.forms is not None:
            self._left -= sum(map(len, word.forms))
        return word

    def _piece(self, node: Node, draft: _Draft) -> None:
        """Add a part of a word."""
        kind, text = node.type, self._text(node)
        if kind in {"word", "number", "extglob_pattern", "brace_expression"} or text in {"$", "==", "=~"}:
            draft.text += _mark(text)
        elif kind == "raw_string":
            draft.text += text[1:-1]
        elif kind == "ansi_c_string" and (found := _ANSI_C.fullmatch(text)):
            draft.text += _decode(found[1])
        elif kind == "string" and text[:1] == text[-1:] == '"' and len(text) > 1:
            parts = [part for part in node.children if part.is_named and part.type != "string_content"]
            self._between(draft, node.start_byte + 1, node.end_byte - 1, parts, IN_QUOTES)
        elif kind == "concatenation":
            for part in node.children:
                self._piece(part, draft)
        else:
            draft.add(self._hole(node), in_quotes=False)

    def _between(
        self,
        draft: _Draft,
        start: int,
        stop: int,
        parts: Sequence[Node],
        escape: re.Pattern[str] | None,
        *,
        tabs: bool = False,
    ) -> None:
        """Add the text between double quotes, or of a here-document."""
        for part in (*parts, None):
            end = part.start_byte if part is not None else stop
            while end < stop and self._source[end : end + 1].isspace():
                end += 1  # in the tree, blanks before an expansion belong to it
            text = self._source[start:end].decode()
            text = _TABS.sub("", text) if tabs else text
            if escape is not None:
                if _LEFT.search(escape.sub("", text)):
                    raise Refusal("expansion", "a substitution in quotes that cannot be read", WRITE_PLAINLY)
                text = escape.sub(lambda found: found[1] or "", text)
            draft.text += text
            if part is not None:
                held, hole = self._text(part).lstrip(), self._hole(part)
                splits = held in {"$@", "${@}"}
                draft.add(Hole(f'"{hole.spelling}"', hole.values, hole.counts, splits), in_quotes=True)
                start = part.end_byte

    def _hole(self, node: Node) -> Hole:
        """Read a substitution or an expansion; refuse one that could start something without judgement."""
        kind, text = node.type, self._text(node).lstrip()
        if kind == "simple_expansion" and (found := _VARIABLE.fullmatch(text)):
            return Hole(f"${{{found[1]}}}", self._values(found[1]), found[1] in _COUNTS)
        if kind == "expansion" and (found := _EXPANSION.fullmatch(text)):
            length, name, changed, sign, other = found.groups()
            if changed:
                return Hole(text, self._alternatives(changed, sign, other))
            counts = bool(length) or text[2:-1] in _COUNTS
            return Hole(text, self._values(name) if name and not length else None, counts)
        if kind == "arithmetic_expansion" and (found := _ARITHMETIC.fullmatch(text)) and _is_balanced(found[1]):
            return Hole(f"$(( {' '.join(found[1].split())} ))", counts=True)
        if kind in SUBSTITUTIONS:
            return Hole(self._substitute(node))
        reason = f"what `{text[:MOST_SHOWN]}` would be is known only when the command runs: {kind.replace('_', ' ')}"
        raise Refusal("expansion", reason, "use plain variables (`$name`), numbers and plain words")

    def _alternatives(self, name: str, sign: str, other: str) -> tuple[str, ...] | None:
        """Return all values of an expansion in which another word may replace the variable."""
        values = self._values(name) if sign[-1] in "-?" else ("",) if sign[-1] == "+" else None
        return values if values is None or sign[-1] == "?" else (*values, other)


def quote_always(text: str) -> str:
    """Put the text in quotes in any case."""
    return "'" + text.replace("'", "'\\''") + "'"


def _is_balanced(text: str) -> bool:
    depth = 0
    for sign in text:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth < 0:
            return False
    return depth == 0


def _decode(text: str) -> str:
    """Decode the text between `$'` and `'`."""

    def one(found: re.Match[str]) -> str:
        octal, byte, short, long, letter, _ = found.groups()
        if octal or byte:
            code = int(octal, 8) if octal else int(byte, 16)
            return chr(code) if code < 0x80 else "\0"
        if short or long:
            code = int(short or long, 16)
            return chr(code) if code <= 0x10FFFF else "\0"
        if letter:
            return _LETTERS.get(letter, letter)
        return "\0" if found[6] == "c" else found[0]

    plain = _ESCAPE.sub(one, text)
    if _CONTROL.search(plain):
        reason = "the command holds a control character, or one that is not UTF-8, written as an escape"
        raise Refusal("control", reason, "leave control characters out of the command")
    return plain


def _mark(text: str) -> str:
    """Read a text without quotes: escaped characters stand for themselves, marks for signs that the shell acts on."""
    if _ACTIVE.search(text) is None:
        return text
    out: list[str] = []
    escaped = in_class = False
    for char in text:
        if escaped:
            escaped = False
            if char != "\n":
                out.append(char)
        elif char == "\\":
            escaped = True
        elif char in " \t\n":
            raise Refusal("syntax", "a word with a blank in it cannot be read as shell", WRITE_PLAINLY)
        else:
            out.append(char if char in "!^" and not in_class else MARKS.get(char, char))
        in_class = char == "[" and not escaped
    if escaped:
        raise Refusal("syntax", "a word ends in a backslash", WRITE_PLAINLY)
    return "".join(out)
