"""The messages that wait for an agent, or for the program that runs the agents, until they are taken.

One message to several inboxes is put into all of them or into none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from gatewright.base.clock import iso_utc
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.memory import entrytable
from gatewright.memory.archive import new_entry
from gatewright.memory.entrytable import Entry, EntryKind

if TYPE_CHECKING:
    from gatewright.memory.block_store import BlockStore
    from gatewright.record.database import Connection

MAX_WAITING = 1_000
"""How many messages one inbox holds."""
MAX_MESSAGE_CHARS = 10_000
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
    made = [new_entry(store, place, message.content, said, MAX_MESSAGE_CHARS) for place in places]
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
