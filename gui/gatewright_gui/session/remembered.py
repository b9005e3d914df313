"""Notes of users, archives and conversations in the operator's hand: read and changed beside the window, as values.

Every method raises GatewrightError with a sentence where something cannot be read or done.
"""

import asyncio
import json
from collections.abc import Mapping

from gatewright.workspace.api import Entry, EntryKind, JsonValue, ToolFailure, frozen
from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document

MOST = 200
"""So many texts are shown: the newest, or those that fit best."""


@frozen
class TextRow:
    """One text that is kept. ``score``: how well it fits what was searched, None where nothing was.

    ``at_s``: when it was kept or last changed, in s since 1970; None where that is not told. ``about``: who said it, or
    to whom it belongs. ``metadata``: as JSON, empty for none.
    """

    text_id: str
    text: str
    at_s: float | None = None
    score: float | None = None
    snippet: str = ""
    about: str = ""
    metadata: str = ""


class Remembered:
    """Follows the document: what is asked is asked of the workspace that is open now."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def note_mark(self, user_id: str) -> object:
        """A value that is another once a change of a user's notes can be read."""
        return self._document.workspace.notes.of(user_id).mark()

    async def note_users(self) -> tuple[str, ...]:
        """The users who have notes."""
        return await asyncio.to_thread(self._document.workspace.notes.users)

    async def notes(self, user_id: str, query: str) -> tuple[TextRow, ...]:
        """A user's notes, those that were changed last first, or those that fit a query best."""
        store = self._document.workspace.notes.of(user_id)
        if not query:
            kept = await asyncio.to_thread(lambda: store.list(limit=MOST))
            return tuple(TextRow(note.note_id, note.content, note.updated_at) for note in kept)
        weights = self._document.policy.memory
        found = await asyncio.to_thread(lambda: store.search(query, top_k=40, weights=weights))
        return tuple(TextRow(hit.note_id, hit.content, score=hit.score) for hit in found)

    async def add_note(self, user_id: str, text: str) -> None:
        """Keep a new note for a user."""
        store = self._document.workspace.notes.of(user_id)
        await asyncio.to_thread(store.save, text)

    async def update_note(self, user_id: str, before: TextRow, text: str) -> None:
        """Put another text in the place of a note's, unless it is not the one any more that was read."""
        store = self._document.workspace.notes.of(user_id)

        def work() -> None:
            if store.content(before.text_id) != before.text:
                raise ToolFailure(
                    tr("somebody else changed the note meanwhile, nothing was written; save again to put yours there"),
                    code="changed",
                )
            store.update(before.text_id, text)

        await asyncio.to_thread(work)

    async def delete_note(self, user_id: str, note_id: str) -> None:
        """Forget a note."""
        await asyncio.to_thread(self._document.workspace.notes.of(user_id).delete, note_id)

    async def archive(self, agent_id: str, query: str) -> tuple[TextRow, ...]:
        """The entries of an agent's archive and of the shared one, the newest first, or those that fit a query best."""
        archive = self._document.workspace.archive(agent_id)
        if not query:
            return tuple(map(_entry, await asyncio.to_thread(lambda: archive.list(limit=MOST))))
        hits = await asyncio.to_thread(lambda: archive.search(query, limit=MOST))
        return tuple(_entry(hit.entry, hit.score, hit.snippet) for hit in hits)

    async def insert(self, agent_id: str, text: str, metadata: Mapping[str, JsonValue]) -> None:
        """Keep a text in an agent's archive, or with "" in the shared one."""
        archive = self._document.workspace.archive(agent_id)
        await asyncio.to_thread(archive.insert, text, metadata)

    async def forget(self, agent_id: str, entry_id: str) -> None:
        """Take an entry out of the archive."""
        await asyncio.to_thread(self._document.workspace.archive(agent_id).forget, entry_id)

    async def conversation_users(self, agent_id: str) -> tuple[str, ...]:
        """The users with whom an agent has conversations."""
        return await asyncio.to_thread(self._document.workspace.conversations(agent_id).users)

    async def conversation(self, agent_id: str, user_id: str | None, query: str) -> tuple[TextRow, ...]:
        """The messages of an agent with a user, or with nobody; the newest first, or those that fit a query best."""
        workspace = self._document.workspace
        if not query:
            talk = workspace.conversations(agent_id, user_id=user_id)
            return tuple(map(_entry, await asyncio.to_thread(lambda: talk.list(limit=MOST))))
        archive, kinds = workspace.archive(agent_id), (EntryKind.CONVERSATION,)
        hits = await asyncio.to_thread(lambda: archive.search(query, kinds=kinds, user_id=user_id, limit=MOST))
        return tuple(_entry(hit.entry, hit.score, hit.snippet) for hit in hits)


def _entry(entry: Entry, score: float | None = None, snippet: str = "") -> TextRow:
    if entry.kind is EntryKind.CONVERSATION:
        session = tr("session {id}", id=entry.session_id) if entry.session_id else ""
        about = ", ".join(filter(None, (entry.role, session)))
    else:
        about = tr("own") if entry.owner else tr("shared")
    metadata = json.dumps(dict(entry.metadata), ensure_ascii=False) if entry.metadata else ""
    return TextRow(entry.entry_id, entry.content, entry.created_at, score, snippet, about, metadata)
