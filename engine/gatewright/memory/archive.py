"""An agent's stored texts beside its blocks: its archive, its conversations, its waiting messages.

An agent finds its own texts and those that its workspace shares. Entries never change: an agent may add some, and only
the operator deletes one. A message to several inboxes reaches all of them or none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from gatewright.base.amount import iso_utc, new_id
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json, is_text
from gatewright.memory import entrytable
from gatewright.memory.block_store import BlockStore
from gatewright.memory.entrytable import ANY, Entry, EntryFilter, EntryKind, Hit, Place
from gatewright.policy.verdict import Action, Permission, Verdict, verdict_for
from gatewright.record.database import Connection

MAX_ENTRY_CHARS = 10_000
MAX_MESSAGE_CHARS = 64 * 1024
MAX_METADATA_BYTES = 4_096
MAX_ENTRIES = 100_000
"""Limit of entries in one archive."""
KEPT_MESSAGES = 10_000
"""Limit of messages per agent; a new one drops the oldest."""
ROLES = ("user", "assistant", "system", "tool")
LEVEL = Permission.APPEND
"""Level of every archive."""
_MAX_SESSION_ID = 512
_ORDER = tuple(Action)


class Archive:
    """The archive of ``owner`` together with the shared one; "" means only the shared one. ``operator``: may also
    delete entries.

    Raises ToolFailure for an impossible request, WorkspaceError for an unusable store. Any thread may call.
    """

    def __init__(self, store: BlockStore, *, owner: str = "", operator: bool = False) -> None:
        self._store = store
        self._owner = owner
        self._operator = operator

    def insert(
        self, content: str, metadata: Mapping[str, JsonValue] | None = None, *, granted: Action | None = Action.APPEND
    ) -> Entry:
        """Store a text for good.

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
        """List the newest entries, the newest first."""
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
        """Find texts with words of the query, best first; quoted words follow each other, ``word*`` matches a
        beginning.

        ``blocks``: ids of the archived blocks that the search may find, if ``kinds`` has blocks. ``user_id``: the user
        in the conversations, if it has these.
        """
        with self._store.reading() as connection:
            if connection is None or not entrytable.is_there(connection):
                return ()
            places = _places(kinds, self._owner, user_id)
            return tuple(entrytable.search(connection, query, places, wanted=wanted, blocks=blocks, limit=limit))

    def forget(self, entry_id: str) -> Entry:
        """Delete an entry; only the operator may. Raises ToolFailure: ``not-permitted``, ``unknown-entry``."""
        self._permit(Action.DELETE, Action.DELETE)
        with self._store.transaction() as connection:
            found = entrytable.find_entry(connection, entry_id)
            if found is None or (found.kind, found.owner) not in _places((EntryKind.ARCHIVE,), self._owner):
                raise ToolFailure("no entry has that id", code="unknown-entry")
            entrytable.delete_entry(connection, entry_id)
        return found

    def _permit(self, action: Action, granted: Action | None) -> None:
        """Check the table of levels and the granted action."""
        level = Permission.ADMIN if self._operator else LEVEL
        if verdict_for(level, action) is not Verdict.ALLOW:
            raise ToolFailure(f"the level `{level}` of an archive does not let you {action}", code="not-permitted")
        if granted is None or _ORDER.index(granted) < _ORDER.index(action):
            raise ToolFailure(f"this would {action}, which was not granted", code="not-granted")


def talk_owner(owner: str, user_id: str | None) -> str:
    """Return the owner of the messages between an agent and a user, so that a search never finds those of another
    user.
    """
    return f"{owner}\n{user_id}" if user_id else owner


class Conversations:
    """The newest messages of an agent's conversations with one user or without a user, recorded by a program.

    Raises WorkspaceError for an unusable store, ToolFailure for an invalid message. Any thread may call.
    """

    def __init__(self, store: BlockStore, *, owner: str, user_id: str | None = None) -> None:
        self._store = store
        self._owner = owner
        self._place = EntryKind.CONVERSATION, talk_owner(owner, user_id)

    def append(
        self, role: str, content: str, *, session_id: str = "", metadata: Mapping[str, JsonValue] | None = None
    ) -> Entry:
        """Record one message of ``role`` (user, assistant, system or tool); above the limit the oldest is dropped.

        Raises ToolFailure: ``bad-value``, ``too-large``.
        """
        if role not in ROLES:
            raise ToolFailure(f"the role of a message is one of {', '.join(ROLES)}", code="bad-value")
        made = new_entry(self._store, self._place, content, metadata, MAX_MESSAGE_CHARS, role, session_id)
        with self._store.transaction() as connection:
            entrytable.insert_entry(connection, made)
            too_many = max(0, entrytable.count(connection, self._place) - KEPT_MESSAGES)
            for entry_id in entrytable.oldest_ids(connection, self._place, too_many):
                entrytable.delete_entry(connection, entry_id)
        return made

    def list(self, *, limit: int = 100, wanted: EntryFilter = ANY) -> tuple[Entry, ...]:
        """List the newest messages, the newest first."""
        return _newest(self._store, (self._place,), wanted, limit)

    def users(self) -> tuple[str, ...]:
        """List the users of the agent's conversations, sorted."""
        with self._store.reading() as connection:
            if connection is None or not entrytable.is_there(connection):
                return ()
            first = talk_owner(self._owner, " ")[:-1]
            found = entrytable.owners(connection, EntryKind.CONVERSATION)
        return tuple(sorted(owner.removeprefix(first) for owner in found if owner.startswith(first)))

    def forget(self, entry_id: str) -> bool:
        """Delete one message; false if no message has that id."""
        with self._store.transaction() as connection:
            found = entrytable.find_entry(connection, entry_id)
            is_ours = found is not None and (found.kind, found.owner) == self._place
            return is_ours and entrytable.delete_entry(connection, entry_id)


def _places(kinds: Sequence[EntryKind], owner: str, user_id: str | None = None) -> tuple[Place, ...]:
    """List the places of an agent's texts and of shared texts of these kinds; nobody shares conversations."""
    talk = EntryKind.CONVERSATION
    own = [(kind, talk_owner(owner, user_id) if kind is talk else owner) for kind in kinds]
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
    """Make an entry for a place. Raises ToolFailure: ``bad-value``, ``too-large``."""
    said = dict(metadata or {})
    if not content.strip() or not is_text(content) or not is_text(session_id):
        raise ToolFailure("only a text that is not empty can be stored", code="bad-value")
    if len(content) > most or len(session_id) > _MAX_SESSION_ID:
        raise ToolFailure(f"a stored text has at most {most:,} characters, and this has more", code="too-large")
    if len(canonical_json(said)) > MAX_METADATA_BYTES:
        raise ToolFailure(f"metadata is at most {MAX_METADATA_BYTES:,} bytes of JSON", code="too-large")
    return Entry(new_id("mem"), *place, content, said, store.clock.wall_s(), role, session_id)


MAX_WAITING = 1_000
"""Limit of messages in one inbox."""
MAX_INBOX_CHARS = 10_000
_SENDER, _USER, _GROUP, _MORE = "from", "user_id", "group", "metadata"


@frozen
class Received:
    """A waiting message. ``sender``: the agent; ``user_id``: the user whom the sender served, "" for nobody.

    ``group``: the addressed group, "" for none. ``sent_at``: s since 1970.
    """

    message_id: str
    sender: str
    content: str
    metadata: Mapping[str, JsonValue]
    sent_at: float
    user_id: str = ""
    group: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """The message as JSON without empty keys."""
        more: dict[str, JsonValue] = {_USER: self.user_id, _GROUP: self.group, _MORE: dict(self.metadata)}
        said: dict[str, JsonValue] = {"id": self.message_id, _SENDER: self.sender, "content": self.content}
        return {**said, "sent_at": iso_utc(self.sent_at), **{key: value for key, value in more.items() if value}}


class Inbox:
    """The inbox of ``owner``, an agent's (`owner_of`); "" means that of the program that runs the agents.

    Raises WorkspaceError for an unusable store. Any thread may call.
    """

    def __init__(self, store: BlockStore, owner: str = "") -> None:
        self._store, self._owner = store, owner

    def list(self, *, limit: int = 100) -> tuple[Received, ...]:
        """List the waiting messages, the oldest first; they stay."""
        with self._store.reading() as connection:
            if connection is None or not entrytable.is_there(connection):
                return ()
            return self._oldest(connection, limit)

    def take(self, *, limit: int = 100) -> tuple[Received, ...]:
        """Take out the waiting messages, the oldest first; no two callers get the same one."""
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
        return tuple(_message_of(entry) for entry in found if entry is not None)


def deliver(store: BlockStore, owners: Sequence[str], message: Received, *, is_wanted: Callable[[], bool]) -> None:
    """Put a message into the inboxes of ``owners``, all or none; into none if ``is_wanted`` is false by then.

    Each copy gets its own id. Raises ToolFailure: ``inbox-full``, ``bad-value``, ``too-large``; WorkspaceError.
    """
    said: dict[str, JsonValue] = {_SENDER: message.sender, _USER: message.user_id, _GROUP: message.group}
    said[_MORE] = dict(message.metadata)
    places = [(EntryKind.MESSAGE, owner) for owner in owners]
    made = [new_entry(store, place, message.content, said, MAX_INBOX_CHARS) for place in places]
    with store.transaction() as connection:
        for entry in made:
            if entrytable.count(connection, (entry.kind, entry.owner)) >= MAX_WAITING:
                text = "too many messages wait there; try again after some were read"
                raise ToolFailure(text, code="inbox-full")
            entrytable.insert_entry(connection, entry)
        if not is_wanted():
            raise ToolFailure("the call ended before it sent the message", code="cancelled")


def _message_of(entry: Entry) -> Received:
    said = entry.metadata
    more = said.get(_MORE)
    sender, user_id, group = (str(said.get(key, "")) for key in (_SENDER, _USER, _GROUP))
    metadata = more if isinstance(more, dict) else {}
    return Received(entry.entry_id, sender, entry.content, metadata, entry.created_at, user_id, group)
