"""The call as a running tool sees it: an immutable snapshot, and the ports to what lies outside."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from gatewright.arguments.url import UrlTarget
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.memory.agentblocks import AgentBlocks
from gatewright.memory.notes import NoteBook
from gatewright.policy.kinds.capability import Capability
from gatewright.policy.verdict import Action
from gatewright.sources.manager import SourceManager
from gatewright.sources.rootfolder import RootFolders
from gatewright.sources.stream import Streams
from gatewright.tools.declaration import ResourceBounds


class WebPort(Protocol):
    """The web as tools see it. Methods raise ToolFailure; of a cancelled one no connection is left."""

    @property
    def allow_private(self) -> bool:
        """Whether private networks and this machine may be reached."""
        ...

    @property
    def engines(self) -> tuple[UrlTarget, ...]:
        """Where searches are sent."""
        ...

    async def fetch(
        self,
        url: str,
        *,
        headers: Sequence[tuple[str, str]] = (),
        follow: Callable[[str], str],
        raw: bool = False,
        bounds: ResourceBounds,
    ) -> WebPage:
        """What stands at a canonical ``url``, with the ``headers`` sent to its own origin alone.

        HTML comes as Markdown unless ``raw``. ``follow`` gives the canonical form of each address that it redirects
        to, or raises. Of the ``bounds`` it keeps the number of requests.
        """
        ...

    async def search(self, query: str, *, count: int, freshness: str | None, bounds: ResourceBounds) -> JsonValue:
        """``engine``, ``results`` (title, url, snippet), and ``failed``: the engines that gave none, and why."""
        ...

    async def send(
        self,
        request: WebRequest,
        *,
        headers_env: Mapping[str, str],
        query_env: Mapping[str, str],
        follow: Callable[[UrlTarget], None],
        bounds: ResourceBounds,
    ) -> JsonValue | bytes:
        """The answer to a request: JSON, text or bytes; one without a body is an object with its status.

        The headers of the request, those of ``headers_env`` and the fields of the query in ``query_env`` (each from the
        environment variable named there) go to its own origin alone; nothing of what they hold stands in the answer.
        ``follow`` raises where the call may not go on to an address that it is redirected to. Of the ``bounds`` it
        keeps the number of requests and the bytes of the network. An answer that is no success is a failure.
        """
        ...


@frozen
class WebRequest:
    """A request as it is sent. ``content_type``: of the body. ``raw``: of the answer the bytes are wanted."""

    method: str
    url: UrlTarget
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = ""
    raw: bool = False


@frozen
class WebPage:
    """An answer of a web server. ``kind`` is html, json, text or binary; of the latter there is no ``text``.

    ``size`` in bytes as far as it was read; ``is_cut``: there is more. ``headers``: names in lower case.
    """

    url: str
    status: int
    content_type: str
    kind: str
    text: str
    size: int
    is_cut: bool
    title: str = ""
    headers: tuple[tuple[str, str], ...] = ()


_USUAL = ResourceBounds()

Progress = Callable[[float, float | None, str | None], None]
"""Told how far a call is: the amount done, the whole where it is known, and words where there are any."""

OnPiece = Callable[[str], None]
"""Told each piece of a stream as it comes, as text. The whole is checked later: only secrets within one are out."""


class Again(Protocol):
    """Decides the running call again, with other arguments or for other addresses that it comes upon (``reaching``)."""

    def __call__(
        self, arguments: Mapping[str, JsonValue], reaching: tuple[UrlTarget, ...] = ()
    ) -> Mapping[str, JsonValue]:
        """The canonical form of the arguments. Raises ToolFailure where the call would be denied, or asked about."""
        ...


@frozen
class StepFailure:
    """The reason why a step ended a composition, for the model and for the operator; ``began``: it was carried out."""

    said: str
    detail: str
    code: str
    began: bool = False


@frozen
class StepDone:
    """The end of one step of a composition: its result, or why there is none."""

    result: JsonValue = None
    failure: StepFailure | None = None


RunStep = Callable[[int, str, "Mapping[str, JsonValue] | None"], Awaitable[StepDone]]
"""Makes a call of another tool for the same agent, through all stages: its number among the steps, tool, arguments.

Without arguments the step does not apply, which is only told.
"""


class StopSignal:
    """Whether a call was asked to stop; it may be looked at from any thread."""

    _stopped = False

    def set(self) -> None:
        """Ask for the stop."""
        self._stopped = True

    def is_set(self) -> bool:
        """Whether the stop was asked for."""
        return self._stopped


@frozen
class Ports:
    """What calls can reach; None: it is not there, and tools that need it fail.

    ``folder``: where relative paths of arguments and prefixes of capabilities begin (the policy's folder); None: there
    is none, so no such path is accepted.
    """

    sources: SourceManager | None = None
    roots: RootFolders | None = None
    blocks: AgentBlocks | None = None
    notes: NoteBook | None = None
    web: WebPort | None = None
    streams: Streams | None = None
    folder: str | None = None

    def real(self, path: str) -> str:
        """An absolute path without links and ``..``, as the files that are there are called. Raises OSError."""
        return os.path.realpath(path) if self.sources is None else self.sources.real(path)


_NOTHING = Ports()


@frozen
class ToolExecutionContext:
    """One call: who calls, in which session, what was granted, and what it can reach. ``granted``: the action allowed.

    ``operation``: what was decided, empty for a tool without operations.

    ``bounds``: what the call may use, the smaller of what the tool declares and what is granted. ``capabilities``: all
    that the agent holds. ``deadline_s``: when its time is over, by `time.monotonic`; None: no end. ``agreed``: the tool
    itself asked before (`Assessment.ask`), and somebody agreed. ``approved_change``: where somebody
    was asked and agreed, what gives the change that was shown. ``approved``: somebody agreed to the call, just now or
    by a standing approval. ``client``: name and version of the program that sent the call, as it says itself.
    ``progress``: told by the tool how far it is, in the loop that it runs in; ``on_piece``: the pieces of a stream.
    ``again``: for a tool that comes upon another place on its way (a redirect); None: it may go nowhere else.
    ``step``: for a composition, which is made of calls of other tools.
    ``note``: told by the tool what held for whatever ran, for the trace.
    """

    agent_id: str
    session_id: str
    operation: str = ""
    call_id: str = ""
    user_id: str | None = None
    source_ids: tuple[str, ...] = ()
    own_source_ids: tuple[str, ...] = ()
    granted: Action | None = None
    ports: Ports = _NOTHING
    bounds: ResourceBounds = _USUAL
    capabilities: tuple[Capability, ...] = ()
    deadline_s: float | None = None
    stop: StopSignal = field(default_factory=StopSignal, compare=False, repr=False)
    agreed: bool = False
    approved: bool = False
    client: str = ""
    progress: Progress | None = field(default=None, compare=False, repr=False)
    on_piece: OnPiece | None = field(default=None, compare=False, repr=False)
    approved_change: Callable[[], str | None] | None = field(default=None, compare=False, repr=False)
    again: Again | None = field(default=None, compare=False, repr=False)
    note: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    step: RunStep | None = field(default=None, compare=False, repr=False)

    @property
    def all_source_ids(self) -> tuple[str, ...]:
        """The sources of files of the agent, and those that the program brings."""
        return self.source_ids + self.own_source_ids

    @property
    def cancelled(self) -> bool:
        """Whether the result is not wanted any more; a tool that works in a thread looks here and stops."""
        return self.stop.is_set()

    def remaining_s(self) -> float | None:
        """Seconds until the deadline, never below 0; None when there is none."""
        return None if self.deadline_s is None else max(0.0, self.deadline_s - time.monotonic())

    def require_sources(self) -> SourceManager:
        """The sources, or a ToolFailure when the workspace has none."""
        if self.ports.sources is None:
            raise ToolFailure("no file source is attached", code="no-source")
        return self.ports.sources

    def require_roots(self) -> RootFolders:
        """The roots, or a ToolFailure when the workspace has none."""
        if self.ports.roots is None:
            raise ToolFailure("there is no folder for files here", code="no-root")
        return self.ports.roots

    def require_blocks(self) -> AgentBlocks:
        """The blocks, or a ToolFailure when the workspace keeps none."""
        if self.ports.blocks is None:
            raise ToolFailure("there are no blocks here", code="no-blocks")
        return self.ports.blocks

    def require_notes(self) -> NoteBook:
        """The notes, or a ToolFailure when none are kept."""
        if self.ports.notes is None:
            raise ToolFailure("no notes are kept here", code="no-notes")
        return self.ports.notes

    def require_web(self) -> WebPort:
        """The web, or a ToolFailure where it cannot be reached from here."""
        if self.ports.web is None:
            raise ToolFailure("the web cannot be reached from here; go on without it", code="no-web")
        return self.ports.web

    def require_streams(self) -> Streams:
        """The sources and streams, or a ToolFailure when the workspace has none."""
        if self.ports.streams is None:
            raise ToolFailure("there are no sources here", code="no-source")
        return self.ports.streams

    def require_user(self) -> str:
        """The id of the user, or a ToolFailure when the call is made for nobody."""
        if not self.user_id:
            text = "this tool works for one user, and this session belongs to none; go on without it"
            raise ToolFailure(text, code="no-user")
        return self.user_id
