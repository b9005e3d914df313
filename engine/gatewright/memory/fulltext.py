"""What a person or a model looks for, as a query of a full-text index (SQLite's FTS5) in which nothing is syntax, and
the stretch of a text that has it.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Sequence
from contextlib import closing

from gatewright.base.late import late_regex

MAX_WORDS = 16
MAX_CHARS = 10_000
"""Of a query: what stands behind them is not looked for."""
_SHORTEST_PREFIX = 3
_SNIPPET_CHARS = 160
_SEARCHED_CHARS = 20_000
_UNSPACED = late_regex(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
"""Letters of scripts that put no spaces between words: each is a word of its own."""
_PIECE = late_regex(r'"([^"]*)"|(\S+)')
PROBE = "CREATE VIRTUAL TABLE probe USING fts5(words)"
"""Works where there is full-text search."""


def query_words(query: str) -> tuple[str, ...]:
    """The words of a query as quoted phrases, at most `MAX_WORDS` of them.

    Words in double quotes have to follow each other, one with ``*`` behind it may go on; nothing else means anything.
    """
    clean = "".join(" " if unicodedata.category(letter) == "Cc" else letter for letter in query[:MAX_CHARS])
    found: dict[str, None] = {}
    for phrase, piece in _PIECE.findall(clean):
        text = (phrase or piece).replace('"', " ").strip()
        star = "*" if not phrase and text.endswith("*") and len(text) > _SHORTEST_PREFIX else ""
        if any(letter.isalnum() for letter in text):
            found[f'"{spaced(text.rstrip("*"))}"{star}'] = None
    return tuple(found)[:MAX_WORDS]


def snippet(content: str, words: Sequence[str]) -> str:
    """The stretch of a text around the first of those words, on one line; dots where something is left out."""
    folded = _folded(content[:_SEARCHED_CHARS])
    firsts = [_folded(re.findall(r"\w+", word)[0]) for word in words if re.search(r"\w", word)]
    places = [at for first in firsts if (at := folded.find(first)) >= 0]
    start = max(0, min(places, default=0) - _SNIPPET_CHARS // 4)
    piece = " ".join(content[start : start + _SNIPPET_CHARS].split())
    return f"{'…' if start else ''}{piece}{'…' if start + _SNIPPET_CHARS < len(content) else ''}"


def spaced(text: str) -> str:
    """The text as an index takes it in: with spaces around letters that are words of their own."""
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text)


def why_no_index() -> str | None:
    """Why this Python can make no full-text index; None: it can."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(PROBE)
        except sqlite3.OperationalError as error:
            return f"the SQLite of this Python has no full-text search ({error})"
    return None


def _folded(text: str) -> str:
    """The text without case and accents, letter for letter."""
    if text.isascii():
        return text.lower()
    return "".join(unicodedata.normalize("NFD", letter)[0].lower()[0] for letter in text)
