"""The call as a running tool sees it: an immutable snapshot, and the ports to everything outside."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from gatewright.arguments.url import UrlTarget
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.capability import Capability
from gatewright.policy.verdict import Action
from gatewright.tools.declaration import ResourceBounds

if TYPE_CHECKING:
    from gatewright.memory.agentblocks import AgentBlocks
    from gatewright.memory.notes import NoteBook
    from gatewright.sources.manager import SourceManager
    from gatewright.sources.rootfolder import RootFolders
    from gatewright.sources.stream import Streams


class WebPort(Protocol):
    """The web as tools see it. Methods raise ToolFailure; a cancelled one closes its connections."""

    @property
    def allow_private(self) -> bool:
        """True if calls may reach private networks and this machine."""
        ...

    @property
    def engines(self) -> tuple[UrlTarget, ...]:
        """The addresses of the search engines."""
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
        """Fetch a canonical ``url``; only its own origin gets the ``headers``.

        HTML comes back as Markdown unless ``raw``. ``follow`` returns the canonical form of each redirect, or raises.
        The number of requests stays within ``bounds``.
        """
        ...

    async def search(self, query: str, *, count: int, freshness: str | None, bounds: ResourceBounds) -> JsonValue:
        """Return ``engine``, ``results`` (title, url, snippet), and ``failed``: the engines without results, each with
        the reason.
        """
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
        """Send a request and return the answer: JSON, text or bytes; an answer without a body becomes an object with
        its status.

        The headers of the request, and those in ``headers_env`` and the query fields in ``query_env`` (values from the
        environment variables of these names), go to its own origin only; the answer contains none of their values.
        ``follow`` raises for a redirect that the call may not follow. Requests and network bytes stay within
        ``bounds``. Any answer but a success is a failure.
        """
        ...


@frozen
class WebRequest:
    """A request to send. ``content_type``: the type of the body. ``raw``: return the answer as bytes."""

    method: str
    url: UrlTarget
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = ""
    raw: bool = False


@frozen
class WebPage:
    """An answer of a web server. ``kind`` is html, json, text or binary; a binary one has no ``text``.

    ``size``: the bytes that were read; ``is_cut``: the server sent more. ``headers``: names in lower case.
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
"""Receives the progress of a call: the amount done, the total if known, and a text if the tool has one."""

OnPiece = Callable[[str], None]
"""Receives each piece of a stream as text.

Only secrets within one piece are scrubbed here; the whole result is checked later.
"""


class Again(Protocol):
    """Decides the running call again, for other arguments or for further addresses (``reaching``)."""

    def __call__(
        self, arguments: Mapping[str, JsonValue], reaching: tuple[UrlTarget, ...] = ()
    ) -> Mapping[str, JsonValue]:
        """Return the canonical arguments. Raises ToolFailure if the call would be denied or would ask."""
        ...


@frozen
class StepFailure:
    """The reason why a step ended a composition, for the model and for the operator; ``began``: the step had
    started.
    """

    said: str
    detail: str
    code: str
    began: bool = False


@frozen
class StepDone:
    """The end of one step of a composition: its result, or the failure."""

    result: JsonValue = None
    failure: StepFailure | None = None


RunStep = Callable[[int, str, "Mapping[str, JsonValue] | None"], Awaitable[StepDone]]
"""Calls another tool for the same agent, through all stages; takes the step's number, tool and arguments.

Without arguments it only reports that the step does not apply.
"""


class StopSignal:
    """A request to stop a call; any thread may read it."""

    _stopped = False

    def set(self) -> None:
        """Ask for the stop."""
        self._stopped = True

    def is_set(self) -> bool:
        """Tell whether somebody asked for the stop."""
        return self._stopped


@frozen
class Ports:
    """The services that calls can reach; None for a missing one, whose tools then fail.

    ``folder``: the start of relative paths in arguments and in prefixes of capabilities (the policy's folder); None:
    such paths are refused.
    """

    sources: SourceManager | None = None
    roots: RootFolders | None = None
    blocks: AgentBlocks | None = None
    notes: NoteBook | None = None
    web: WebPort | None = None
    streams: Streams | None = None
    folder: str | None = None

    def real(self, path: str) -> str:
        """Resolve links and ``..`` in an absolute path, and spell it as the disk does. Raises OSError."""
        return os.path.realpath(path) if self.sources is None else self.sources.real(path)


_NOTHING = Ports()


@frozen
class ToolExecutionContext:
    """One call: its agent, its session, its grants and its ports. ``granted``: the allowed action.

    ``operation``: the operation that the gate decided; empty for a tool without operations. ``bounds``: the smaller of
    those that the tool declares and those that the grants allow. ``capabilities``: all that the agent holds.
    ``deadline_s``: when it must end, by `time.monotonic`; None: never. ``agreed``: the tool itself asked
    (`Assessment.ask`), and somebody agreed. ``approved``: somebody agreed to the call, just now or by a standing
    approval. ``approved_change``: returns the change that this person saw. ``client``: name and version of the calling
    program, in its own words; ``folder``: where it works, the start of relative paths of the tools that it runs itself;
    None: the policy's. ``progress`` receives the tool's reports, in the tool's own loop; ``on_piece`` receives
    the pieces of a stream. ``again``: decides the call anew for another address on its way (a redirect); None: no other
    address is permitted. ``step``: runs the steps of a composition. ``note``: receives words about the process's
    confinement, for the trace.
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
    folder: str | None = None
    progress: Progress | None = field(default=None, compare=False, repr=False)
    on_piece: OnPiece | None = field(default=None, compare=False, repr=False)
    approved_change: Callable[[], str | None] | None = field(default=None, compare=False, repr=False)
    again: Again | None = field(default=None, compare=False, repr=False)
    note: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    step: RunStep | None = field(default=None, compare=False, repr=False)

    @property
    def all_source_ids(self) -> tuple[str, ...]:
        """All sources of files that the agent has, including the program's."""
        return self.source_ids + self.own_source_ids

    @property
    def cancelled(self) -> bool:
        """True if nobody wants the result any more; a tool that works in a thread reads this and stops."""
        return self.stop.is_set()

    def remaining_s(self) -> float | None:
        """Return the seconds until the deadline, never below 0; None without a deadline."""
        return None if self.deadline_s is None else max(0.0, self.deadline_s - time.monotonic())

    def require_sources(self) -> SourceManager:
        """Return the sources, or raise ToolFailure if the workspace has none."""
        if self.ports.sources is None:
            raise ToolFailure("no file source is attached", code="no-source")
        return self.ports.sources

    def require_roots(self) -> RootFolders:
        """Return the roots, or raise ToolFailure if the workspace has none."""
        if self.ports.roots is None:
            raise ToolFailure("there is no folder for files here", code="no-root")
        return self.ports.roots

    def require_blocks(self) -> AgentBlocks:
        """Return the blocks, or raise ToolFailure if the workspace keeps none."""
        if self.ports.blocks is None:
            raise ToolFailure("there are no blocks here", code="no-blocks")
        return self.ports.blocks

    def require_notes(self) -> NoteBook:
        """Return the notes, or raise ToolFailure if the workspace keeps none."""
        if self.ports.notes is None:
            raise ToolFailure("no notes are kept here", code="no-notes")
        return self.ports.notes

    def require_web(self) -> WebPort:
        """Return the web, or raise ToolFailure if it is out of reach."""
        if self.ports.web is None:
            raise ToolFailure("the web cannot be reached from here; go on without it", code="no-web")
        return self.ports.web

    def require_streams(self) -> Streams:
        """Return the sources and streams, or raise ToolFailure if the workspace has none."""
        if self.ports.streams is None:
            raise ToolFailure("there are no sources here", code="no-source")
        return self.ports.streams

    def require_user(self) -> str:
        """Return the id of the user, or raise ToolFailure for a call without one."""
        if not self.user_id:
            text = "this tool works for one user, and this session belongs to none; go on without it"
            raise ToolFailure(text, code="no-user")
        return self.user_id
