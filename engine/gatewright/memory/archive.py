"""Texts that are kept for an agent besides blocks: its archive, its conversations, the messages that wait for it.

An agent finds its own texts and those that its workspace shares. Entries never change: their level lets an agent add
some, and nothing else. Only the operator forgets one.

One message to several inboxes is put into all of them or into none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from gatewright.base.clock import iso_utc
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.ids import new_id
from gatewright.base.jsonvalue import JsonValue, canonical_json, is_text
from gatewright.memory import entrytable
from gatewright.memory.entrytable import ANY, Entry, EntryFilter, EntryKind, Hit, Place
from gatewright.policy.verdict import Action, Permission, Verdict, verdict_for

if TYPE_CHECKING:
    from gatewright.memory.block_store import BlockStore
    from gatewright.record.database import Connection


MAX_ENTRY_CHARS = 10_000
MAX_MESSAGE_CHARS = 64 * 1024
MAX_METADATA_BYTES = 4_096
MAX_ENTRIES = 100_000
"""How many entries one archive may have."""
KEPT_MESSAGES = 10_000
"""How many messages of one agent are kept: then the oldest go."""
ROLES = ("user", "assistant", "system", "tool")
LEVEL = Permission.APPEND
"""The level of every archive."""
_MAX_SESSION_ID = 512
_ORDER = tuple(Action)


class Archive:
    """The archive of ``owner`` with the shared one; "": the shared one alone. ``operator``: may forget entries, too.

    Raises ToolFailure for what cannot be done, WorkspaceError for a store that cannot be used. Any thread may call.
    """

    def __init__(self, store: BlockStore, *, owner: str = "", operator: bool = False) -> None:
        self._store = store
        self._owner = owner
        self._operator = operator

    def insert(
        self, content: str, metadata: Mapping[str, JsonValue] | None = None, *, granted: Action | None = Action.APPEND
    ) -> Entry:
        """Keep a text for good.

        Raises ToolFailure: ``not-granted``, ``bad-value``, ``too-large``, ``too-many-items``.
        """
        self._permit(Action.APPEND, granted)
        made = new_entry(self._store, (EntryKind.ARCHIVE, self._owner), content, metadata, MAX_ENTRY_CHARS)
        with self._store.transaction() as connection:
            if entrytable.count(connection, (EntryKind.ARCHIVE, self._owner)) >= MAX_ENTRIES:
                raise ToolFailure(f"the archive is full: it has {MAX_ENTRIES:,} entries", code="too-many-items")
            entrytable.insert_entry(connection, made)
        return made

    def list(self, *, limit: int = 100, wanted: EntryFilter = ANY) -> tuple[Entry, ...]:
        """The newest entries, the newest first."""
        return _newest(self._store, _places((EntryKind.ARCHIVE,), self._owner), wanted, limit)

    def search(
        self,
        query: str,
        *,
        kinds: Sequence[EntryKind] = (EntryKind.ARCHIVE,),
        wanted: EntryFilter = ANY,
        blocks: Collection[str] = (),
        user_id: str | None = None,
        limit: int = 10,
    ) -> tuple[Hit, ...]:
        """What has words of the query, the best first; words in double quotes follow each other, ``word*`` goes on.

        ``blocks``: the ids of the archived blocks that may be found, where ``kinds`` has blocks. ``user_id``: with whom
        the conversations were, where it has these.
        """
        with self._store.reading() as connection:
            if connection is None or not entrytable.is_there(connection):
                return ()
            places = _places(kinds, self._owner, user_id)
            return tuple(entrytable.search(connection, query, places, wanted=wanted, blocks=blocks, limit=limit))

    def forget(self, entry_id: str) -> Entry:
        """Take an entry out, as the operator alone may. Raises ToolFailure: ``not-permitted``, ``unknown-entry``."""
        self._permit(Action.DELETE, Action.DELETE)
        with self._store.transaction() as connection:
            found = entrytable.find_entry(connection, entry_id)
            if found is None or (found.kind, found.owner) not in _places((EntryKind.ARCHIVE,), self._owner):
                raise ToolFailure("there is no entry with that id", code="unknown-entry")
            entrytable.delete_entry(connection, entry_id)
        return found

    def _permit(self, action: Action, granted: Action | None) -> None:
        """The table of levels, and what was granted."""
        level = Permission.ADMIN if self._operator else LEVEL
        if verdict_for(level, action) is not Verdict.ALLOW:
            raise ToolFailure(f"the level `{level}` of an archive does not let you {action}", code="not-permitted")
        if granted is None or _ORDER.index(granted) < _ORDER.index(action):
            raise ToolFailure(f"this would {action}, and that was not granted", code="not-granted")


def said_with(owner: str, user_id: str | None) -> str:
    """Whose the messages are that an agent and a user exchanged: nobody finds those of another user."""
    return f"{owner}\n{user_id}" if user_id else owner


class Conversations:
    """The messages that a program records of an agent's conversations with one user, or with nobody: the newest.

    Raises WorkspaceError for a store that cannot be used, ToolFailure for what is no message. Callable from any thread.
    """

    def __init__(self, store: BlockStore, *, owner: str, user_id: str | None = None) -> None:
        self._store = store
        self._owner = owner
        self._place = EntryKind.CONVERSATION, said_with(owner, user_id)

    def append(
        self, role: str, content: str, *, session_id: str = "", metadata: Mapping[str, JsonValue] | None = None
    ) -> Entry:
        """Record one message of ``role`` (user, assistant, system or tool); the oldest goes where there are too many.

        Raises ToolFailure: ``bad-value``, ``too-large``.
        """
        if role not in ROLES:
            raise ToolFailure(f"a message is of {', '.join(ROLES)}", code="bad-value")
        made = new_entry(self._store, self._place, content, metadata, MAX_MESSAGE_CHARS, role, session_id)
        with self._store.transaction() as connection:
            entrytable.insert_entry(connection, made)
            too_many = max(0, entrytable.count(connection, self._place) - KEPT_MESSAGES)
            for entry_id in entrytable.oldest_ids(connection, self._place, too_many):
                entrytable.delete_entry(connection, entry_id)
        return made

    def list(self, *, limit: int = 100, wanted: EntryFilter = ANY) -> tuple[Entry, ...]:
        """The newest messages, the newest first."""
        return _newest(self._store, (self._place,), wanted, limit)

    def users(self) -> tuple[str, ...]:
        """The users with whom the agent has conversations, sorted."""
        with self._store.reading() as connection:
            if connection is None or not entrytable.is_there(connection):
                return ()
            first = said_with(self._owner, " ")[:-1]
            found = entrytable.owners(connection, EntryKind.CONVERSATION)
        return tuple(sorted(owner.removeprefix(first) for owner in found if owner.startswith(first)))

    def forget(self, entry_id: str) -> bool:
        """Forget one message; whether there was one."""
        with self._store.transaction() as connection:
            found = entrytable.find_entry(connection, entry_id)
            is_ours = found is not None and (found.kind, found.owner) == self._place
            return is_ours and entrytable.delete_entry(connection, entry_id)


def _places(kinds: Sequence[EntryKind], owner: str, user_id: str | None = None) -> tuple[Place, ...]:
    """Where an agent's texts and the shared ones of these kinds are; conversations are shared by nobody."""
    talk = EntryKind.CONVERSATION
    own = [(kind, said_with(owner, user_id) if kind is talk else owner) for kind in kinds]
    return (*own, *((kind, "") for kind in kinds if owner and kind is not talk))


def _newest(store: BlockStore, places: Sequence[Place], wanted: EntryFilter, limit: int) -> tuple[Entry, ...]:
    with store.reading() as connection:
        if connection is None or not entrytable.is_there(connection):
            return ()
        return tuple(entrytable.newest(connection, places, wanted, limit))


def new_entry(
    store: BlockStore,
    place: Place,
    content: str,
    metadata: Mapping[str, JsonValue] | None,
    most: int,
    role: str = "",
    session_id: str = "",
) -> Entry:
    """A text to be kept at a place. Raises ToolFailure: ``bad-value``, ``too-large``."""
    said = dict(metadata or {})
    if not content.strip() or not is_text(content) or not is_text(session_id):
        raise ToolFailure("what is kept is a text that is not empty", code="bad-value")
    if len(content) > most or len(session_id) > _MAX_SESSION_ID:
        raise ToolFailure(f"a text of at most {most:,} characters is kept, and this has more", code="too-large")
    if len(canonical_json(said)) > MAX_METADATA_BYTES:
        raise ToolFailure(f"metadata is at most {MAX_METADATA_BYTES:,} bytes of JSON", code="too-large")
    return Entry(new_id("mem"), *place, content, said, store.clock.wall_s(), role, session_id)


MAX_WAITING = 1_000
"""How many messages one inbox holds."""
MAX_INBOX_CHARS = 10_000
_SENDER, _USER, _GROUP, _MORE = "from", "user_id", "group", "metadata"


@frozen
class Received:
    """A message that waits. ``sender``: the agent; ``user_id``: whom the sender worked for, "" for nobody.

    ``group``: the group that it was sent to, "" for none. ``sent_at``: s since 1970.
    """

    message_id: str
    sender: str
    content: str
    metadata: Mapping[str, JsonValue]
    sent_at: float
    user_id: str = ""
    group: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """The message as JSON, without what it does not have."""
        more: dict[str, JsonValue] = {_USER: self.user_id, _GROUP: self.group, _MORE: dict(self.metadata)}
        said: dict[str, JsonValue] = {"id": self.message_id, _SENDER: self.sender, "content": self.content}
        return {**said, "sent_at": iso_utc(self.sent_at), **{key: value for key, value in more.items() if value}}


class Inbox:
    """The inbox of ``owner``, an agent's (`owner_of`); "": of the program that runs them.

    Raises WorkspaceError for a store that cannot be used. Any thread may call.
    """

    def __init__(self, store: BlockStore, owner: str = "") -> None:
        self._store, self._owner = store, owner

    def list(self, *, limit: int = 100) -> tuple[Received, ...]:
        """The messages that wait, the oldest first; they go on waiting."""
        with self._store.reading() as connection:
            if connection is None or not entrytable.is_there(connection):
                return ()
            return self._oldest(connection, limit)

    def take(self, *, limit: int = 100) -> tuple[Received, ...]:
        """The messages that wait, the oldest first, which wait no more: no two callers get the same one."""
        if not self.list(limit=1):
            return ()
        with self._store.transaction() as connection:
            taken = self._oldest(connection, limit)
            for one in taken:
                entrytable.delete_entry(connection, one.message_id)
        return taken

    def _oldest(self, connection: Connection, limit: int) -> tuple[Received, ...]:
        ids = entrytable.oldest_ids(connection, (EntryKind.MESSAGE, self._owner), limit)
        found = (entrytable.find_entry(connection, entry_id) for entry_id in ids)
        return tuple(_received(entry) for entry in found if entry is not None)


def deliver(store: BlockStore, owners: Sequence[str], message: Received, *, is_wanted: Callable[[], bool]) -> None:
    """Put a message into the inboxes of ``owners``, all or none; none either where it ``is_wanted`` no more.

    Each gets it under an id of its own. Raises ToolFailure: ``inbox-full``, ``bad-value``, ``too-large``;
    WorkspaceError.
    """
    said: dict[str, JsonValue] = {_SENDER: message.sender, _USER: message.user_id, _GROUP: message.group}
    said[_MORE] = dict(message.metadata)
    places = [(EntryKind.MESSAGE, owner) for owner in owners]
    made = [new_entry(store, place, message.content, said, MAX_INBOX_CHARS) for place in places]
    with store.transaction() as connection:
        for entry in made:
            if entrytable.count(connection, (entry.kind, entry.owner)) >= MAX_WAITING:
                text = "too many messages wait there already; try again when some of them were read"
                raise ToolFailure(text, code="inbox-full")
            entrytable.insert_entry(connection, entry)
        if not is_wanted():
            raise ToolFailure("the call was given up before the message was sent", code="cancelled")


def _received(entry: Entry) -> Received:
    said = entry.metadata
    more = said.get(_MORE)
    sender, user_id, group = (str(said.get(key, "")) for key in (_SENDER, _USER, _GROUP))
    metadata = more if isinstance(more, dict) else {}
    return Received(entry.entry_id, sender, entry.content, metadata, entry.created_at, user_id, group)
