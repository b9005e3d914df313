"""Notes that agents write for their user and find again by words and meaning.

Every user has a file (`memory:{user_id}`), named by a digest of the id, so no query, count or ranking can reach another
user's notes. An acknowledged note survives the end of the process and of the machine; deleting a note removes it from
every file, with its index and vector.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gatewright.base.amount import Clock
from gatewright.base.errors import ForeignStore, ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import aio
from gatewright.memory.entrytable import MAX_CHARS, query_words, snippet, space_words, why_no_index
from gatewright.policy.document import MemoryWeights
from gatewright.record.database import Connection, Database, copy_database
from gatewright.record.folder import HomeSeal, PrivateFolder
from gatewright.record.process import fork_safe_lock

if TYPE_CHECKING:
    from gatewright.memory.embedding import Embedder, VectorIndex

FOLDER = "notes"
MAX_NOTES = 100_000
"""Limit of notes per user."""
_RANK_OFFSET = 60
"""The offset of reciprocal rank fusion (Cormack and others, 2009), which flattens the first places."""
_CANDIDATES = 40
_COMMON = 2_000
"""The share of notes above which a word is too common for ranking."""
_ROOM_CHARS = 12_000
"""The most characters of all texts in one answer; beyond that, a text shrinks to the part around a word."""
_EMBEDDED_AT_ONCE = 1_000
_NO_VECTOR = "SELECT number, content FROM note WHERE vector IS NULL ORDER BY number DESC"
_OPEN_STORES = 32
_BUSY_S = 5.0
_VERSION = 1
SUFFIX = ".sqlite"
_INDEX = "note_words"
_INDEX_SQL = f"CREATE VIRTUAL TABLE {_INDEX} USING fts5(words, content='', tokenize='porter unicode61')"
VIRTUAL = {_INDEX: _INDEX_SQL}
"""The full-text index of a store."""
_TABLES = (
    """
CREATE TABLE note (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    note_id TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    vector BLOB
)""",
    "CREATE INDEX note_with_vector ON note (number) WHERE vector IS NOT NULL",
    "CREATE INDEX note_without_vector ON note (number) WHERE vector IS NULL",
    "CREATE TABLE note_state (user_id TEXT NOT NULL, generation INTEGER NOT NULL)",
    _INDEX_SQL,
)


@frozen
class NoteHit:
    """A found note or, with ``note_id`` "", a found text of a conversation.

    ``score``: above 0; 1 for a note that is first in every list. ``is_sure``: false for notes that are merely the
    nearest.
    """

    note_id: str
    content: str
    score: float
    is_sure: bool = True


@frozen
class Note:
    """A stored note. Times in s since 1970."""

    note_id: str
    content: str
    created_at: float
    updated_at: float


class NoteStore:
    """The notes of one user, in the file at ``path``, which the first note creates.

    Any thread may call. Raises ToolFailure for an impossible request, WorkspaceError for an unusable file.
    """

    def __init__(self, path: Path, user_id: str, clock: Clock, seal: HomeSeal | None = None) -> None:
        self._user_id = user_id
        self._clock = clock
        self._index: VectorIndex | None = None
        self._database, self._marking = _database(path, seal, self._make), _database(path, seal)

    def close(self) -> None:
        """Close the file until its next use."""
        self._marking.close()
        self._database.close()

    def save(self, *contents: str) -> tuple[str, ...]:
        """Store new notes, all or none, and return their ids. Raises ToolFailure above the limit."""
        now = self._clock.wall_s()
        made = [(f"note-{uuid.uuid4()}", content, now, now, _vector_of(content)) for content in contents]
        with self._database.writing() as connection:
            if _count(connection) + len(made) > MAX_NOTES:
                raise ToolFailure(f"the limit is {MAX_NOTES:,} notes: delete some first", code="too-many-items")
            for row in made:
                _insert(connection, row)
        return tuple(row[0] for row in made)

    def update(self, note_id: str, content: str) -> None:
        """Replace the text of a note, which keeps its id. Raises ToolFailure if absent."""
        now, vector = self._clock.wall_s(), _vector_of(content)
        with self._database.writing() as connection:
            created_at = _remove(connection, note_id)
            _insert(connection, (note_id, content, created_at, now, vector))
            _count_change(connection)
            _wipe(connection)

    def delete(self, note_id: str) -> None:
        """Delete a note. Raises ToolFailure if absent."""
        with self._database.writing() as connection:
            _remove(connection, note_id)
            _count_change(connection)
            _wipe(connection)

    def content(self, note_id: str) -> str:
        """Return the text of a note. Raises ToolFailure if absent."""
        with self._database.reading() as connection:
            found = (
                connection and connection.execute("SELECT content FROM note WHERE note_id = ?", (note_id,)).fetchone()
            )
        return str(_require(found)[0])

    def list(self, *, limit: int = 100) -> tuple[Note, ...]:
        """List the notes by their last change, the newest first."""
        query = (
            "SELECT note_id, content, created_at, updated_at FROM note ORDER BY updated_at DESC, number DESC LIMIT ?"
        )
        with self._database.reading() as connection:
            return tuple(Note(*row) for row in connection.execute(query, (limit,))) if connection else ()

    def mark(self) -> object:
        """Return a value that differs after any visible change of these notes, by anybody."""
        return self._marking.mark()

    def search(
        self, query: str, *, top_k: int, said: Sequence[str] = (), weights: MemoryWeights | None = None
    ) -> list[NoteHit]:
        """Find the notes that fit a query, best first: by words, and by meaning if a model is installed.

        ``said``: other texts that a word search found, best first.
        """
        weights = weights or MemoryWeights()
        found = self._find(query, top_k, weights)
        notes = {hit.content for hit in found}
        weight = 1.0 if _embedder() is None else weights.text
        others = [
            NoteHit("", text, _share(rank, weight))
            for rank, text in enumerate(dict.fromkeys(said))
            if text not in notes and weight
        ]
        if others:
            found = [hit for hit in found if hit.is_sure]
        return sorted([*found, *others], key=lambda hit: -hit.score)[:top_k]

    def _find(self, query: str, top_k: int, weights: MemoryWeights) -> list[NoteHit]:
        embedder = _embedder()
        if embedder is not None:
            self._fill_vectors(embedder)
        with self._database.reading() as connection:
            if connection is None:
                return []
            words, is_sure = _by_words(connection, query), True
            if embedder is None:
                scores = _fuse((words, 1.0))
            else:
                index = self._index = self._index or embedder.index()
                (generation,) = connection.execute("SELECT generation FROM note_state").fetchone()
                index.follow(connection, generation)
                meaning, is_sure = index.nearest(connection, embedder.vector(query[:MAX_CHARS]), _CANDIDATES)
                if words and weights.text:  # mere neighbours must not compete with sure ones
                    meaning, is_sure = (meaning if is_sure else []), True
                scores = _fuse((meaning, weights.vector), (words, weights.text))
            best = sorted(scores, key=lambda number: (-scores[number], -number))[:top_k]
            rows = {number: row for number in best if (row := _row(connection, number)) is not None}
        return [NoteHit(row[0], row[1], round(scores[number], 4), is_sure) for number, row in rows.items()]

    def _fill_vectors(self, embedder: Embedder) -> None:
        """Compute the missing vectors of notes that were written without a model, some of them at each search.

        In a file that refuses writing, only the word search finds such notes.
        """
        with self._database.reading() as connection:
            if connection is None or connection.execute(f"{_NO_VECTOR} LIMIT 1").fetchone() is None:
                return
        with suppress(WorkspaceError), self._database.writing() as connection:
            for number, content in connection.execute(f"{_NO_VECTOR} LIMIT {_EMBEDDED_AT_ONCE}").fetchall():
                row = (embedder.encode(content), number)
                connection.execute("UPDATE note SET vector = ? WHERE number = ?", row)
            _count_change(connection)

    def _make(self, connection: Connection) -> None:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > _VERSION:
            raise WorkspaceError("the notes were written by a newer version of the program")
        if version == _VERSION:
            return
        connection.execute("BEGIN IMMEDIATE")
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute("INSERT INTO note_state VALUES (?, 0)", (self._user_id,))
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")


class NoteBook:
    """The notes of all users, each in a store of its own below ``folder``; no id reaches another user's.

    ``keys``: the key folder; a store refuses a file made with other keys. None: ``folder`` is in no state folder.
    """

    def __init__(self, folder: Path, clock: Clock, *, keys: Path | None = None) -> None:
        self._folder = folder
        self._clock = clock
        self._keys = keys
        self._lock = fork_safe_lock()
        self._stores: OrderedDict[str, NoteStore] = OrderedDict()
        self.weights = MemoryWeights()

    def with_weights(self, weights: MemoryWeights) -> NoteBook:
        """Return the same notes, ranked by other weights."""
        other = copy(self)
        other.weights = weights
        return other

    @staticmethod
    def why_absent() -> str | None:
        """Explain why this machine cannot store notes; None if it can."""
        return why_no_index()

    def of(self, user_id: str) -> NoteStore:
        """Return the store of one user."""
        with self._lock:
            if user_id not in self._stores:
                self._stores[user_id] = self._store(user_id)
            self._stores.move_to_end(user_id)
            idle = self._stores.popitem(last=False)[1] if len(self._stores) > _OPEN_STORES else None
            found = self._stores[user_id]
        if idle is not None:
            idle.close()
        return found

    def users(self) -> tuple[str, ...]:
        """List the users with notes, sorted; an unreadable file is skipped, and one that is not its user's.

        Raises ForeignStore for notes of somebody else's workspace.
        """
        found: list[str] = []
        for name in self._names():
            try:
                user_id = _user_of(_database(self._folder / name, self._seal(name)))
            except ForeignStore:
                raise
            except WorkspaceError:
                continue
            found += [user_id] * (bool(user_id) and _file_name(user_id) == name)
        return tuple(sorted(found))

    def copy_to(
        self, state: Path, keys: Path, spend: Callable[[int], None], stop_if_cancelled: Callable[[], None]
    ) -> None:
        """Copy the notes of all users into another state folder; ``spend`` gets the bytes of each file.

        Raises WorkspaceError.
        """
        folder = PrivateFolder(self._folder)
        for name in self._names():
            facts = folder.look(name)
            if facts is not None:
                spend(facts.st_size)
                copy = HomeSeal(state, keys, f"{FOLDER}/{name}")
                copy_database(_database(self._folder / name, self._seal(name)), copy, stop_if_cancelled)

    def close(self) -> None:
        """Close every file."""
        with self._lock:
            for store in self._stores.values():
                store.close()

    def _names(self) -> list[str]:
        return [name for name in PrivateFolder(self._folder).names() if name.endswith(SUFFIX)]

    def _store(self, user_id: str) -> NoteStore:
        name = _file_name(user_id)
        return NoteStore(self._folder / name, user_id, self._clock, self._seal(name))

    def _seal(self, name: str) -> HomeSeal | None:
        return None if self._keys is None else HomeSeal(self._folder.parent, self._keys, f"{FOLDER}/{name}")

    def content(self, note_id: str, *, user_id: str) -> str:
        """Return the text of a note. Raises ToolFailure if the user has none of that id."""
        return self.of(user_id).content(note_id)

    async def save(self, content: str, *, user_id: str) -> str:
        """Store a new note and return its id."""
        return (await aio.to_thread(self.of(user_id).save, content))[0]

    async def update(self, note_id: str, content: str, *, user_id: str) -> None:
        """Replace the text of a note."""
        await aio.to_thread(self.of(user_id).update, note_id, content)

    async def delete(self, note_id: str, *, user_id: str) -> None:
        """Delete a note."""
        await aio.to_thread(self.of(user_id).delete, note_id)

    async def search(self, query: str, *, user_id: str, top_k: int, said: Sequence[str] = ()) -> JsonValue:
        """Answer ``hits``, best first, each with text, source, score, note_id; ``by_meaning``: a model helped.

        ``sure``: false if these are merely the nearest.

        ``said``: texts of a conversation with words of the query, best first, to rank among the notes.
        """

        def work() -> JsonValue:
            hits: list[JsonValue] = []
            words, room = query_words(query), _ROOM_CHARS
            found = self.of(user_id).search(query, top_k=top_k, said=said, weights=self.weights)
            for hit in found:
                source = "note" if hit.note_id else "conversation"
                text = hit.content if len(hit.content) <= room else snippet(hit.content, words)
                room -= len(text)
                hits.append({"text": text, "source": source, "score": hit.score, "note_id": hit.note_id})
            is_sure = all(hit.is_sure for hit in found)
            return {"hits": hits, "by_meaning": _embedder() is not None, "sure": is_sure}

        return await aio.to_thread(work)


def _database(path: Path, seal: HomeSeal | None, make: Callable[[Connection], object] | None = None) -> Database:
    pragmas = ("synchronous = FULL", "secure_delete = ON")
    return Database(path, what="the notes", busy_s=_BUSY_S, pragmas=pragmas, make=make, virtual=VIRTUAL, home_seal=seal)


def _file_name(user_id: str) -> str:
    return f"{hashlib.sha256(f'memory:{user_id}'.encode()).hexdigest()[:32]}{SUFFIX}"


def _user_of(database: Database) -> str:
    """Return the user of a file's notes; empty without notes."""
    with closing(database), database.reading() as connection:
        if connection is None or not connection.execute("SELECT 1 FROM note LIMIT 1").fetchone():
            return ""
        return str(connection.execute("SELECT user_id FROM note_state").fetchone()[0])


def _embedder() -> Embedder | None:
    """The model of the extra `embeddings`; None if not installed."""
    try:
        from gatewright.memory.embedding import load_embedder
    except ImportError:
        return None
    return load_embedder()


def _vector_of(content: str) -> bytes | None:
    embedder = _embedder()
    return None if embedder is None else embedder.encode(content)


def _by_words(connection: Connection, query: str) -> list[int]:
    """Find notes with any of the words, first those with more and rarer ones.

    If all words are common, find the newest notes with all of them.
    """
    words = query_words(query)
    if not words:
        return []
    count = f"SELECT count(*) FROM (SELECT 1 FROM {_INDEX} WHERE {_INDEX} MATCH ? LIMIT {_COMMON + 1})"
    telling = [word for word in words if connection.execute(count, (word,)).fetchone()[0] <= _COMMON]
    match, order = (" OR ".join(telling), "rank") if telling else (" AND ".join(words), "rowid DESC")
    select = f"SELECT rowid FROM {_INDEX} WHERE {_INDEX} MATCH ? ORDER BY {order} LIMIT ?"
    return [row[0] for row in connection.execute(select, (match, _CANDIDATES))]


def _fuse(*ranked: tuple[Sequence[int], float]) -> dict[int, float]:
    """Score each note: every list adds its weight, reduced by the note's rank in it."""
    scores: dict[int, float] = {}
    for numbers, weight in ranked:
        for rank, number in enumerate(numbers if weight else ()):
            scores[number] = scores.get(number, 0.0) + _share(rank, weight)
    return scores


def _share(rank: int, weight: float) -> float:
    return round(weight * (_RANK_OFFSET + 1) / (_RANK_OFFSET + 1 + rank), 4)


def _row(connection: Connection, number: int) -> tuple[str, str] | None:
    return connection.execute("SELECT note_id, content FROM note WHERE number = ?", (number,)).fetchone()


def _count(connection: Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM note").fetchone()[0])


def _insert(connection: Connection, row: tuple[str, str, float, float, bytes | None]) -> None:
    """Insert a note: id, text, times of creation and change (s since 1970), vector."""
    number = connection.execute("INSERT INTO note VALUES (NULL, ?, ?, ?, ?, ?)", row).lastrowid
    connection.execute(f"INSERT INTO {_INDEX} (rowid, words) VALUES (?, ?)", (number, space_words(row[1])))


def _remove(connection: Connection, note_id: str) -> float:
    """Remove a note from table and index, and return its time of creation."""
    query = "SELECT number, content, created_at FROM note WHERE note_id = ?"
    number, content, created_at = _require(connection.execute(query, (note_id,)).fetchone())
    words = (number, space_words(content))
    connection.execute(f"INSERT INTO {_INDEX} ({_INDEX}, rowid, words) VALUES ('delete', ?, ?)", words)
    connection.execute("DELETE FROM note WHERE number = ?", (number,))
    return float(created_at)


def _count_change(connection: Connection) -> None:
    """Count a change other than an addition, so that holders of vectors read them all again."""
    connection.execute("UPDATE note_state SET generation = generation + 1")


def _wipe(connection: Connection) -> None:
    """Commit, and remove all traces of deleted notes from the index and the file's log."""
    connection.execute(f"INSERT INTO {_INDEX} ({_INDEX}) VALUES ('optimize')")
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _require(row: tuple[Any, ...] | None) -> tuple[Any, ...]:
    if row is None:
        raise ToolFailure("no note has that id", code="not-found")
    return row
