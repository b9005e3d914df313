"""Streams of changes, below folders or from a program; subscribers pull them, and no writer waits.

A stream runs while somebody subscribes to it and nobody has paused it. A subscription keeps the newest change of each
path, up to a limit; after that it only reports that more happened.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol

from gatewright.arguments.path import ModelPath, parse_model_path
from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import Policy, Source
from gatewright.policy.glob import PermissionRules
from gatewright.policy.target import Located
from gatewright.policy.verdict import Permission
from gatewright.record.process import fork_safe_lock
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.manager import SourceManager
from gatewright.sources.watch import FolderNews, FolderWatch

MAX_WAITING = 1_000
"""The most paths whose changes one subscription keeps."""


class StreamState(StrEnum):
    """The state of a stream: without subscribers, running, or paused."""

    STOPPED = "stopped"
    RUNNING = "running"
    PAUSED = "paused"


class ChangeKind(StrEnum):
    """The change of a path since the last report."""

    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"


@frozen
class StreamBatch:
    """Changes by path, from the base of the stream, the oldest first.

    ``more``: other changes happened, whose paths are unknown, so look at the folder. ``problem``: the reason why no
    more changes come.
    """

    changes: tuple[tuple[str, ChangeKind], ...] = ()
    more: bool = False
    problem: str | None = None


class Subscription:
    """The changes that wait for one subscriber. End it with ``close``, or by leaving a ``with`` block."""

    def __init__(self, end: Callable[[Subscription], None]) -> None:
        self._end = end
        self._news = threading.Condition()
        self._waiting: dict[str, ChangeKind] = {}
        self._more = False
        self._problem: str | None = None

    def pull(self, *, limit: int = 100, timeout_s: float = 0.0) -> StreamBatch:
        """Return at most ``limit`` changes, after a wait of at most ``timeout_s`` for some. Blocks: call it in a
        thread.

        The batch with the last waiting change tells whether more happened.
        """
        with self._news:
            self._news.wait_for(lambda: bool(self._waiting or self._more or self._problem), timeout_s)
            taken = {path: self._waiting.pop(path) for path in list(self._waiting)[:limit]}
            if self._waiting:
                return StreamBatch(tuple(taken.items()))
            batch = StreamBatch(tuple(taken.items()), self._more, self._problem)
            self._more, self._problem = False, None
            return batch

    def put(self, changes: Sequence[tuple[str, ChangeKind]], *, more: bool = False, problem: str | None = None) -> None:
        """Add changes to the waiting ones; never blocks."""
        with self._news:
            for path, change in changes:
                before = self._waiting.pop(path, None)
                if before is None and len(self._waiting) >= MAX_WAITING:
                    self._more = True
                elif (before, change) == (ChangeKind.DELETED, ChangeKind.ADDED):
                    self._waiting[path] = ChangeKind.CHANGED
                elif (before, change) == (ChangeKind.ADDED, ChangeKind.CHANGED):
                    self._waiting[path] = ChangeKind.ADDED
                else:
                    self._waiting[path] = change
            self._more = self._more or more
            self._problem = problem or self._problem
            self._news.notify_all()

    def close(self) -> None:
        """Stop listening."""
        self._end(self)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Stream:
    """The changes of one source; any thread may call the methods.

    ``_begin`` and ``_end`` start and stop the source's reports; they run under the lock, and do not wait.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._rules = PermissionRules(source.permission_rules, source.default_permission)
        self._lock = fork_safe_lock()
        self._subscribed: list[Subscription] = []
        self._is_on = False
        self._paused = False

    @property
    def state(self) -> StreamState:
        """The current state."""
        if self._paused:
            return StreamState.PAUSED
        return StreamState.RUNNING if self._is_on else StreamState.STOPPED

    def follow(self, source: Source) -> None:
        """Report changes by the levels of ``source`` from now on."""
        with self._lock:
            self.source = source
            self._rules = PermissionRules(source.permission_rules, source.default_permission)

    def subscribe(self) -> Subscription:
        """Listen to the changes from now on."""
        with self._lock:
            made = Subscription(self._unsubscribe)
            self._subscribed.append(made)
            self._run_or_not()
            return made

    def pause(self) -> None:
        """Report nothing until ``resume``."""
        with self._lock:
            self._paused = True
            self._run_or_not()

    def resume(self) -> None:
        """Go on; once the stream runs, subscribers learn that changes may have happened meanwhile."""
        with self._lock:
            self._paused = False
            self._run_or_not()

    def close(self, problem: str | None = None) -> None:
        """Stop; subscribers get the ``problem``."""
        with self._lock:
            ended, self._subscribed = self._subscribed, []
            self._run_or_not()
        for one in ended if problem else ():
            one.put((), problem=problem)

    def row(self) -> dict[str, JsonValue]:
        """Return id, type, state and number of subscribers."""
        return {
            "source_id": self.source.source_id,
            "type": str(self.source.kind),
            "state": str(self.state),
            "subscribers": len(self._subscribed),
        }

    def _unsubscribe(self, one: Subscription) -> None:
        with self._lock:
            self._subscribed = [other for other in self._subscribed if other is not one]
            self._run_or_not()

    def _run_or_not(self) -> None:
        wanted = bool(self._subscribed) and not self._paused
        if wanted is not self._is_on:
            self._is_on = wanted
            (self._begin if wanted else self._end)()

    def _put(
        self, changes: Sequence[tuple[str, ChangeKind]], *, more: bool = False, problem: str | None = None
    ) -> None:
        with self._lock:
            hearing = tuple(self._subscribed)
        for one in hearing:
            one.put(changes, more=more, problem=problem)

    def _begin(self) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError


class FolderStream(Stream):
    """The changes below the folder of one source."""

    def __init__(self, source: Source, folder: BaseFolder, manager: SourceManager) -> None:
        super().__init__(source)
        self.folder = folder
        self._manager = manager
        self._watch: FolderWatch | None = None

    def subscribe(self) -> Subscription:
        """Listen from now on; changes before the watch begins are reported a moment later as ``more``.

        Raises WorkspaceError for a folder that nobody may watch.
        """
        if self.folder.refused:
            raise WorkspaceError(self.folder.refused)
        return super().subscribe()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the folder is watched; return False after the timeout."""
        watch = self._watch
        return watch is not None and watch.wait(timeout_s)

    def _begin(self) -> None:
        self._watch = FolderWatch(self.folder, self._take, tells_gap=True)

    def _end(self) -> None:
        if self._watch is not None:
            self._watch.stop()
        self._watch = None

    def _take(self, news: FolderNews) -> None:
        kinds = ((news.came, ChangeKind.ADDED), (news.changed, ChangeKind.CHANGED), (news.went, ChangeKind.DELETED))
        told = [(path, kind) for paths, kind in kinds for path in sorted(paths) if not self._is_hidden(path)]
        self._put(told, more=news.more, problem=news.problem)

    def _is_hidden(self, path: str) -> bool:
        """Tell whether a path is protected or of level none, here or in a file source over the same folder."""
        place = self.folder.path.rstrip("/") + "/" + path
        if self._rules.level(path) is Permission.NONE or self._manager.protects_by_name(place):
            return True
        over = ((one, self._manager.get(one)) for one in self._manager.ids)
        found = ((name, source.relative_of(place)) for name, source in over if source is not None)
        return any(
            self._manager.level(Located(name, relative, place)).permission is Permission.NONE
            for name, relative in found
            if relative is not None
        )


Tell = Callable[[str, ChangeKind], None]
"""Reports one change of a program's stream, by key. Raises ValueError for a wrong key or change."""


class StreamCode(Protocol):
    """The part of a stream that a program writes."""

    def start(self, tell: Tell) -> None:
        """Begin to report changes, from any thread."""
        ...

    def stop(self) -> None:
        """Stop reporting."""
        ...


class OwnStream(Stream):
    """A stream of the program; one thread starts and stops its code in turn, and nobody waits for it."""

    def __init__(self, source: Source, code: StreamCode) -> None:
        super().__init__(source)
        self.code = code
        self._is_started = self._is_at_work = self._ran_before = False
        self._problem = ""

    def row(self) -> dict[str, JsonValue]:
        """Return the row of every stream, with the problem of the last start or stop."""
        return {**super().row(), **({"problem": self._problem} if self._problem else {})}

    def _begin(self) -> None:
        self._work_on()

    def _end(self) -> None:
        self._work_on()

    def _work_on(self) -> None:
        if not self._is_at_work:
            self._is_at_work = True
            threading.Thread(target=self._work, name="gatewright-stream", daemon=True).start()

    def _work(self) -> None:
        """Start and stop the code until it is in the wanted state."""
        while True:
            with self._lock:
                if self._is_started is self._is_on:
                    self._is_at_work = False
                    return
                starts = self._is_started = self._is_on
                resumes, self._ran_before = self._ran_before, True
            problem = None
            try:
                if starts:
                    self.code.start(self._tell)
                else:
                    self.code.stop()
            except Exception as error:  # noqa: BLE001 the code is the program's
                problem = f"the source failed: {type(error).__name__}"
            self._problem = problem or ""
            self._put((), more=starts and resumes, problem=problem)

    def _tell(self, key: str, change: ChangeKind) -> None:
        parsed = parse_model_path(key) if type(key) is str else None
        is_plain = isinstance(parsed, ModelPath) and not parsed.absolute and "/".join(parsed.parts) == key
        if not is_plain or not key or ".." in key.split("/"):
            raise ValueError("a key is a text such as `open/42`")
        kind = ChangeKind(change)
        if self._is_on and self._rules.level(key) is not Permission.NONE:
            self._put([(key, kind)])


class Streams:
    """The streams of a workspace, and the rows about them and the file sources for agents."""

    def __init__(self, manager: SourceManager) -> None:
        self._manager = manager
        self._policy: Policy | None = None
        self._running: dict[str, Stream] = {}

    def follow(
        self,
        policy: Policy,
        wanted: Sequence[tuple[Source, BaseFolder]],
        own: Sequence[tuple[Source, StreamCode]] = (),
    ) -> None:
        """Run exactly these streams, on folders and of the program; subscribers of a replaced one learn that it
        ended.
        """
        self._policy, before = policy, self._running
        self._running = {
            **{source.source_id: self._folder_stream(source, folder) for source, folder in wanted},
            **{source.source_id: self._own_stream(source, code) for source, code in own},
        }
        for name, stream in before.items():
            if self._running.get(name) is not stream:
                stream.close("the stream is not attached any more")

    def get(self, source_id: str) -> Stream | None:
        """Return a stream, or None."""
        return self._running.get(source_id)

    def close(self) -> None:
        """Stop all of them."""
        for stream in self._running.values():
            stream.close("the workspace was closed")

    def _folder_stream(self, source: Source, folder: BaseFolder) -> FolderStream:
        stream = self._running.get(source.source_id)
        if not isinstance(stream, FolderStream) or stream.folder is not folder:
            return FolderStream(source, folder, self._manager)
        if stream.source != source:
            stream.follow(source)
        return stream

    def _own_stream(self, source: Source, code: StreamCode) -> OwnStream:
        stream = self._running.get(source.source_id)
        if not isinstance(stream, OwnStream) or stream.code is not code:
            return OwnStream(source, code)
        if stream.source != source:
            stream.follow(source)
        return stream

    # for tools

    def rows(self, *, agent_id: str) -> list[JsonValue]:
        """Return every source and stream of the agent, in the order of the policy: id, type, state."""
        policy = self._policy
        agent = None if policy is None else policy.agents.get(agent_id)
        if policy is None or agent is None:
            return []
        theirs = {*policy.sources_of(agent), *policy.streams_of(agent)}
        found = (self._row(source) for source in policy.sources if source in theirs)
        return [row for row in found if row is not None]

    def pause(self, source_id: str, *, agent_id: str) -> JsonValue:
        """Pause a stream; a file source only returns its state. Raises ToolFailure for an unknown one."""
        return self._act(source_id, agent_id, Stream.pause)

    def resume(self, source_id: str, *, agent_id: str) -> JsonValue:
        """Resume a paused stream; a file source only returns its state. Raises ToolFailure for an unknown one."""
        return self._act(source_id, agent_id, Stream.resume)

    def _act(self, source_id: str, agent_id: str, act: Callable[[Stream], None]) -> JsonValue:
        def row() -> JsonValue:
            found = (one for one in self.rows(agent_id=agent_id) if isinstance(one, dict))
            return next((one for one in found if one["source_id"] == source_id), None)

        if row() is None:
            raise ToolFailure("there is no source of that id", code="no-source")
        stream = self._running.get(source_id)
        if stream is not None:
            act(stream)
        return row()

    def _row(self, source: Source) -> JsonValue:
        stream = self._running.get(source.source_id)
        if stream is not None:
            return stream.row()
        if self._manager.get(source.source_id) is None and self._manager.own(source.source_id) is None:
            return None
        state = "watching" if source.source_id in self._manager.watched else "idle"
        return {"source_id": source.source_id, "type": str(source.kind), "state": state}
