"""The web as tools ask for it, a Protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from gatewright.arguments.url import UrlTarget
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
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
