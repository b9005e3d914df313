"""The SQLite table of remembered texts (archive, conversations, archived blocks) and its queries.

All statements run inside the caller's transaction. A score depends only on texts that the same search may find, so that
it reveals nothing about the texts of others.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sqlite3
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from enum import StrEnum
from typing import Any

from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import late_regex

MAX_WORDS = 16
MAX_CHARS = 10_000
"""The most characters of a query's words; the search ignores the rest."""
_SHORTEST_PREFIX = 3
_SNIPPET_CHARS = 160
_SEARCHED_CHARS = 20_000
_UNSPACED = late_regex(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
"""Letters of scripts without spaces between words: each counts as a word."""
_PIECE = late_regex(r'"([^"]*)"|(\S+)')
PROBE = "CREATE VIRTUAL TABLE probe USING fts5(words)"
"""A statement that works if SQLite has full-text search."""


def query_words(query: str) -> tuple[str, ...]:
    """Split a query into quoted phrases, at most `MAX_WORDS` of them.

    Words in double quotes must follow each other, a ``*`` behind a word matches a beginning; other signs mean nothing.
    """
    clean = "".join(" " if unicodedata.category(letter) == "Cc" else letter for letter in query[:MAX_CHARS])
    found: dict[str, None] = {}
    for phrase, piece in _PIECE.findall(clean):
        text = (phrase or piece).replace('"', " ").strip()
        star = "*" if not phrase and text.endswith("*") and len(text) > _SHORTEST_PREFIX else ""
        if any(letter.isalnum() for letter in text):
            found[f'"{space_words(text.rstrip("*"))}"{star}'] = None
    return tuple(found)[:MAX_WORDS]


def snippet(content: str, words: Sequence[str]) -> str:
    """Cut out the part around the first of those words, on one line; dots mark the cuts."""
    folded = _fold(content[:_SEARCHED_CHARS])
    firsts = [_fold(re.findall(r"\w+", word)[0]) for word in words if re.search(r"\w", word)]
    places = [at for first in firsts if (at := folded.find(first)) >= 0]
    start = max(0, min(places, default=0) - _SNIPPET_CHARS // 4)
    piece = " ".join(content[start : start + _SNIPPET_CHARS].split())
    return f"{'…' if start else ''}{piece}{'…' if start + _SNIPPET_CHARS < len(content) else ''}"


def space_words(text: str) -> str:
    """Put spaces around letters that count as words, as the index needs it."""
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text)


def why_no_index() -> str | None:
    """Explain why this Python cannot index full text; None if it can."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(PROBE)
        except sqlite3.OperationalError as error:
            return f"the SQLite of this Python has no full-text search ({error})"
    return None


def _fold(text: str) -> str:
    """Drop case and accents, letter for letter."""
    if text.isascii():
        return text.lower()
    return "".join(unicodedata.normalize("NFD", letter)[0].lower()[0] for letter in text)


HITS_PER_WORD = 1000
"""The most texts to examine for a word, the newest first, so that a frequent word costs no more."""
_SCANNED = 20_000

INDEX = "entry_words"
_INDEX_SQL = (
    f"CREATE VIRTUAL TABLE {INDEX} USING fts5(place, words, content='', tokenize='unicode61 remove_diacritics 2')"
)
VIRTUAL = {INDEX: _INDEX_SQL}
"""The store's only virtual table, with the statement that made it."""
TABLES = (
    """
CREATE TABLE IF NOT EXISTS entry (
    number INTEGER PRIMARY KEY,
    entry_id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    owner TEXT NOT NULL,
    role TEXT NOT NULL,
    session_id TEXT NOT NULL,
    content TEXT NOT NULL,
    metadata TEXT NOT NULL,
    created_at REAL NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS entry_by_place ON entry (kind, owner, created_at)",
    _INDEX_SQL.replace("TABLE", "TABLE IF NOT EXISTS", 1),
)
_COLUMNS = "entry_id, kind, owner, content, metadata, created_at, role, session_id"


class EntryKind(StrEnum):
    """The place of a text: an agent's archive, a conversation, an archived block or an inbox."""

    ARCHIVE = "archive"
    CONVERSATION = "conversation"
    BLOCK = "block"
    MESSAGE = "inbox"


@frozen
class Entry:
    """A stored text. ``owner``: ``agent:ID``, or "" for texts that the workspace shares.

    ``entry_id`` of an archived block is the block's. ``role`` and ``session_id`` belong to messages, else "".
    ``created_at``: s since 1970.
    """

    entry_id: str
    kind: EntryKind
    owner: str
    content: str
    metadata: Mapping[str, JsonValue]
    created_at: float
    role: str = ""
    session_id: str = ""


@frozen
class EntryFilter:
    """A filter of entries: from ``since`` to ``until`` (s since 1970), of that role, of that session."""

    since: float | None = None
    until: float | None = None
    role: str | None = None
    session_id: str | None = None


@frozen
class Hit:
    """A found text; a higher ``score`` is better. ``snippet``: the text around the first matching word."""

    entry: Entry
    score: float
    snippet: str


ANY = EntryFilter()
Place = tuple[EntryKind, str]


def is_there(connection: sqlite3.Connection) -> bool:
    """Tell whether the store has these tables yet."""
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'entry'").fetchone() is not None


def insert_entry(connection: sqlite3.Connection, entry: Entry) -> None:
    """Store a new text."""
    row = (
        entry.entry_id,
        str(entry.kind),
        entry.owner,
        entry.role,
        entry.session_id,
        entry.content,
        json.dumps(entry.metadata, ensure_ascii=False),
        entry.created_at,
    )
    number = connection.execute(f"INSERT INTO entry VALUES (NULL{', ?' * len(row)})", row).lastrowid
    connection.execute(f"INSERT INTO {INDEX} (rowid, place, words) VALUES (?, ?, ?)", (number, *_index_row(entry)))


def delete_entry(connection: sqlite3.Connection, entry_id: str) -> bool:
    """Delete a text and its words; false if absent."""
    row = connection.execute(f"SELECT number, {_COLUMNS} FROM entry WHERE entry_id = ?", (entry_id,)).fetchone()
    if row is None:
        return False
    taken = (row[0], *_index_row(entry_of(row[1:])))
    connection.execute(f"INSERT INTO {INDEX} ({INDEX}, rowid, place, words) VALUES ('delete', ?, ?, ?)", taken)
    connection.execute("DELETE FROM entry WHERE number = ?", row[:1])
    return True


def owners(connection: sqlite3.Connection, kind: EntryKind) -> tuple[str, ...]:
    """List the owners of texts of a kind."""
    return tuple(row[0] for row in connection.execute("SELECT DISTINCT owner FROM entry WHERE kind = ?", (str(kind),)))


def count(connection: sqlite3.Connection, place: Place) -> int:
    """Count the texts at one place."""
    row = connection.execute("SELECT COUNT(*) FROM entry WHERE kind = ? AND owner = ?", place).fetchone()
    return int(row[0])


def find_entry(connection: sqlite3.Connection, entry_id: str) -> Entry | None:
    """Find the text of that id."""
    row = connection.execute(f"SELECT {_COLUMNS} FROM entry WHERE entry_id = ?", (entry_id,)).fetchone()
    return None if row is None else entry_of(row)


def newest(connection: sqlite3.Connection, places: Sequence[Place], wanted: EntryFilter, limit: int) -> list[Entry]:
    """List the newest texts at those places, the newest first."""
    conditions, values = _conditions(places, wanted)
    query = f"SELECT {_COLUMNS} FROM entry WHERE {conditions} ORDER BY created_at DESC, number DESC LIMIT ?"
    return [entry_of(row) for row in connection.execute(query, (*values, limit))]


def oldest_ids(connection: sqlite3.Connection, place: Place, limit: int) -> list[str]:
    """List the ids of the oldest texts at one place."""
    query = "SELECT entry_id FROM entry WHERE kind = ? AND owner = ? ORDER BY created_at, number LIMIT ?"
    return [row[0] for row in connection.execute(query, (*place, limit))]


def search(
    connection: sqlite3.Connection,
    query: str,
    places: Sequence[Place],
    *,
    wanted: EntryFilter = ANY,
    blocks: Collection[str] = (),
    limit: int,
) -> list[Hit]:
    """Find texts with any of the query's words, those with more and rarer words first, then the newest.

    Words in double quotes have to follow each other, a ``*`` behind a word matches a beginning; other signs mean
    nothing. ``blocks``: ids of the archived blocks that the search may find.
    """
    words = query_words(query)
    numbers = _numbers(connection, places, wanted)
    found = {word: _matches(connection, [word], places, wanted, numbers) for word in words}
    together = _matches(connection, words, places, wanted, numbers) if len(words) > 1 else set[int]()
    hidden = _hidden(connection, together.union(*found.values()), blocks)
    total = len(blocks) + sum(count(connection, place) for place in places if place[0] is not EntryKind.BLOCK)
    scores: defaultdict[int, float] = defaultdict(float)
    for having in found.values():
        often = total if len(having) >= HITS_PER_WORD else len(having - hidden)
        weight = math.log(1 + (max(total, often) - often + 0.5) / (often + 0.5))
        for number in (having | together) - hidden:
            scores[number] += weight
    best = sorted(scores, key=lambda number: (-scores[number], -number))[:limit]
    hits: list[Hit] = []
    for number in best:
        row = connection.execute(f"SELECT {_COLUMNS} FROM entry WHERE number = ?", (number,)).fetchone()
        entry = entry_of(row)
        hits.append(Hit(entry, round(scores[number], 3), snippet(entry.content, words)))
    return hits


def entry_of(row: tuple[Any, ...]) -> Entry:
    """Turn a row into a value. Raises WorkspaceError for a row that is not ours."""
    entry_id, kind, owner, content, metadata, *rest = row
    try:
        return Entry(entry_id, EntryKind(kind), owner, content, json.loads(metadata), *rest)
    except ValueError as error:
        raise WorkspaceError(f"the stored entry `{entry_id}` is damaged: {error}") from error


def _index_row(entry: Entry) -> tuple[str, str]:
    return _place_word((entry.kind, entry.owner)), space_words(entry.content)


def _place_word(place: Place) -> str:
    """Return one word that stands for a place, whatever characters the owner's id has."""
    return f"{place[0]}{hashlib.sha256(place[1].encode()).hexdigest()[:24]}"


def _numbers(connection: sqlite3.Connection, places: Sequence[Place], wanted: EntryFilter) -> tuple[int, int]:
    """Return the range of numbers for the wanted time, since numbers grow with time."""
    if wanted.since is None and wanted.until is None:
        return 0, 2**62
    conditions, values = _conditions(places, EntryFilter(wanted.since, wanted.until))
    low, high = connection.execute(f"SELECT MIN(number), MAX(number) FROM entry WHERE {conditions}", values).fetchone()
    return (0, -1) if low is None else (low, high)


def _matches(
    connection: sqlite3.Connection,
    words: Sequence[str],
    places: Sequence[Place],
    wanted: EntryFilter,
    between: tuple[int, int],
) -> set[int]:
    """Find the newest texts with all the words, as numbers."""
    scope = " OR ".join(f'"{_place_word(place)}"' for place in places)
    match = f"place : ({scope}) AND words : ({' AND '.join(words)})"
    conditions, values = _conditions(places, wanted)
    rows = connection.execute(
        f"SELECT number FROM (SELECT rowid FROM {INDEX} WHERE {INDEX} MATCH ? AND rowid BETWEEN ? AND ? "
        "ORDER BY rowid DESC LIMIT ?) AS hit "
        f"CROSS JOIN entry ON number = hit.rowid WHERE {conditions} LIMIT ?",
        (match, *between, HITS_PER_WORD if wanted == ANY else _SCANNED, *values, HITS_PER_WORD),
    )
    return {row[0] for row in rows}


def _conditions(places: Sequence[Place], wanted: EntryFilter) -> tuple[str, tuple[object, ...]]:
    values: list[object] = [part for place in places for part in place]
    conditions = f"({' OR '.join(['(kind = ? AND owner = ?)'] * len(places))})"
    asked = (
        ("created_at >= ?", wanted.since),
        ("created_at <= ?", wanted.until),
        ("role = ?", wanted.role),
        ("session_id = ?", wanted.session_id),
    )
    for condition, value in asked:
        if value is not None:
            conditions += f" AND {condition}"
            values.append(value)
    return conditions, tuple(values)


def _hidden(connection: sqlite3.Connection, numbers: Collection[int], blocks: Collection[str]) -> set[int]:
    """Return those of the texts that are archived blocks outside ``blocks``."""
    query = "SELECT number, entry_id FROM entry WHERE kind = 'block' AND number BETWEEN ? AND ?"
    rows = connection.execute(query, (min(numbers), max(numbers))) if numbers else ()
    return {number for number, entry_id in rows if entry_id not in blocks and number in numbers}
