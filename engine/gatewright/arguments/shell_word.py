"""One word of a shell command, written anew so that it is what was judged, and nothing else.

Quotes go and come again where they are needed; an expansion stays where it can start nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from gatewright.arguments.path import MAX_NAME_BYTES
from gatewright.arguments.shell_program import names
from gatewright.base.frozen import frozen
from gatewright.base.regex import late_regex

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_BRACES = 2
WRITE_PLAINLY = "write the command in plain shell: simple commands with `|`, `&&`, `||` and `;`, and quoted words"
_BARE = late_regex(r"[A-Za-z0-9_@%+:,./=-]+")
_VARIABLE = late_regex(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_EXPANSION = late_regex(
    r"\$\{(?:#?[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]|[A-Za-z_][A-Za-z0-9_]*(?::?[-+?]|##?|%%?)[A-Za-z0-9_ @+:,./=*?-]*)\}"
)
_ARITHMETIC = late_regex(r"\$\(\(([0-9\s+*/%()<>=!&|^~?:-]*)\)\)")
_ANSI_C = late_regex(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL)
_RANGE = late_regex(r"\{[0-9A-Za-z]{1,3}\.\.[0-9A-Za-z]{1,3}(?:\.\.[0-9]{1,3})?\}")
_VERBATIM = {"ansi_c_string": _ANSI_C, "brace_expression": _RANGE}
IN_QUOTES = late_regex(r'\\([\\"$`])|\\\n')
IN_DOCUMENT = late_regex(r"\\([\\$`])|\\\n")
_SIGN = late_regex(r"[=@:,;]")
"""Behind these a program may take the rest of an argument, or what stands between two of them, for a name."""
_MAX_SIGNS = 16
_LEFT = late_regex(r"`|\$[({A-Za-z0-9_@*#?!$'\"-]")
_TABS = late_regex(r"^\t+", re.MULTILINE)
KEYWORDS = names("if then elif else fi while until do done for in case esac select function time coproc")
TOKENS = names("if then elif else fi while until do done for in case esac ( ) { } ! && || | |& & ;; ;& ;;&")
SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})


@frozen
class CommandRefused:
    """Why a command is refused. ``reason`` is the operator's; ``hint`` is safe to show the model and echoes nothing."""

    code: str
    reason: str
    hint: str


class Refusal(Exception):
    """Raised inside the reader; what it says is returned to the caller."""

    def __init__(self, code: str, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.said = CommandRefused(f"shell-{code}", reason, hint)

    @classmethod
    def of(cls, said: CommandRefused) -> Refusal:
        """To raise what somebody else said."""
        made = cls(said.code, said.reason, said.hint)
        made.said = said
        return made


class Word:
    """A word in its canonical spelling. ``literal``: its text, None where it is known only when the command runs.

    ``head``: what is known of its beginning; ``splits``: it may become several words of which only the first begins so.
    """

    __slots__ = ("_parts", "_plain", "head", "literal", "splits")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._plain = ""
        self.literal: str | None = ""
        self.head = ""
        self.splits = False

    def take(self, text: str) -> None:
        """Add text that stands for itself."""
        self._plain += text
        if self.literal is not None:
            self.head = self.literal = self.literal + text

    def take_raw(self, text: str, *, splits: bool = False) -> None:
        """Add what the shell is to expand."""
        if self._plain:
            self._parts.append(quoted(self._plain))
        self._plain, self.literal = "", None
        self._parts.append(text)
        self.splits |= splits

    @property
    def text(self) -> str:
        """The spelling."""
        text = "".join((*self._parts, quoted(self._plain) if self._plain else "")) or "''"
        return strictly_quoted(text) if text in TOKENS or text in KEYWORDS else text

    @property
    def places(self) -> list[str]:
        """What it may name on disk, as a whole or behind an option or a sign: `-fname`, `if=name`, `x=@name`.

        Of a word that is known only in part, the folders that these begin in.
        """
        text = self.literal if self.literal is not None else self.head[: self.head.rfind("/") + 1]
        found = [text, *_SIGN.split(text), *(text[sign.end() :] for sign in islice(_SIGN.finditer(text), _MAX_SIGNS))]
        if text.startswith("-") and not text.startswith("--"):
            end = len(text.partition("/")[0])
            found += (text[at:] for at in range(max(2, end - MAX_NAME_BYTES), end + 1))
        if self.literal is None:
            return [one.rstrip("/") or one[:1] or "." for one in found]
        return [one for one in found if one]


def quoted(text: str) -> str:
    """The text in quotes, where it needs them."""
    return text if _BARE.fullmatch(text) else "'" + text.replace("'", "'\\''") + "'"


class WordReader:
    """Reads the words of one command. ``substitute`` writes the commands of a substitution anew, or refuses them."""

    def __init__(self, source: bytes, substitute: Callable[[Node], str]) -> None:
        self._source, self._substitute = source, substitute

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode()

    def read(self, node: Node) -> Word:
        """A word, canonical. Raises Refusal for what is known only when the command runs."""
        word = Word()
        self._piece(node, word)
        return word

    def _piece(self, node: Node, word: Word) -> None:
        """Add a part of a word."""
        kind, text = node.type, self._text(node)
        if kind in {"word", "number", "extglob_pattern"} or text in {"$", "==", "=~", "{}"}:
            _take_unquoted(text, word)
        elif kind == "raw_string":
            word.take(text[1:-1])
        elif kind == "string" and text[:1] == text[-1:] == '"' and len(text) > 1:
            parts = [part for part in node.children if part.is_named and part.type != "string_content"]
            self.between(word, node.start_byte + 1, node.end_byte - 1, parts, IN_QUOTES)
        elif kind == "concatenation":
            for part in node.children:
                self._piece(part, word)
        elif kind in _VERBATIM and _VERBATIM[kind].fullmatch(text):
            word.take_raw(text)
        else:
            word.take_raw(self._expanded(node), splits=True)

    def between(
        self,
        word: Word,
        start: int,
        stop: int,
        parts: Sequence[Node],
        escape: re.Pattern[str] | None,
        *,
        tabs: bool = False,
    ) -> None:
        """Add what stands in double quotes, or in a here-document (whose last line end the here-string brings)."""
        if escape is not IN_QUOTES:
            stop = max(start, stop - 1)
        for part in (*parts, None):
            end = part.start_byte if part is not None else stop
            while end < stop and self._source[end : end + 1].isspace():
                end += 1  # blanks before an expansion count as part of it in the tree
            text = self._source[start:end].decode()
            text = _TABS.sub("", text) if tabs else text
            if escape is not None:
                if _LEFT.search(escape.sub("", text)):
                    raise Refusal("expansion", "a substitution in quotes that cannot be read", WRITE_PLAINLY)
                text = escape.sub(lambda found: found[1] or "", text)
            word.take(text)
            if part is not None:
                held = self._text(part).lstrip()
                word.take_raw(f'"{self._expanded(part)}"', splits=held in {"$@", "${@}"})
                start = part.end_byte

    def _expanded(self, node: Node) -> str:
        """A substitution or an expansion, where it can start nothing that is not judged."""
        kind, text = node.type, self._text(node).lstrip()
        if kind == "simple_expansion" and (found := _VARIABLE.fullmatch(text)):
            return f"${{{found[1]}}}"
        if kind == "expansion" and _EXPANSION.fullmatch(text):
            return text
        if kind == "arithmetic_expansion" and (found := _ARITHMETIC.fullmatch(text)) and _is_balanced(found[1]):
            return f"$(( {' '.join(found[1].split())} ))"
        if kind in SUBSTITUTIONS:
            return self._substitute(node)
        reason = f"what this would be is known only when the command runs: {kind.replace('_', ' ')}"
        raise Refusal("expansion", reason, "use plain variables (`$name`), numbers and plain words")


def strictly_quoted(text: str) -> str:
    """The text in quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


def _is_balanced(text: str) -> bool:
    depth = 0
    for sign in text:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth < 0:
            return False
    return depth == 0


def _take_unquoted(text: str, word: Word) -> None:
    """Add a text without quotes: escaped characters stand for themselves, patterns and braces stay what they are."""
    if text == "{}":
        word.take(text)
        return
    escaped = in_class = False
    braces = 0
    for at, char in enumerate(text):
        if escaped:
            escaped = False
            if char != "\n":
                word.take(char)
        elif char == "\\":
            escaped = True
        elif char in "*?[]" or (in_class and char in "!^"):
            word.take_raw(char)
        elif char in "{}":
            braces += char == "{"
            word.take_raw(char)
        elif char in " \t\n":
            raise Refusal("syntax", "a word with a blank in it cannot be read as shell", WRITE_PLAINLY)
        elif char == "~" and (at == 0 or text[at - 1] in "=:"):
            word.take_raw(char)
        else:
            word.take(char)
        in_class = char == "[" and not escaped
    if escaped or braces > _MAX_BRACES:
        raise Refusal("syntax", "a word ends in a backslash, or holds too many braces", WRITE_PLAINLY)
