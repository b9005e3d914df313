"""What built-in tools ask of the web, as a Protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from gatewright.arguments.url import UrlTarget
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue


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
        self, url: str, *, headers: Sequence[tuple[str, str]] = (), follow: Callable[[str], str], raw: bool = False
    ) -> WebPage:
        """What stands at a canonical ``url``, with the ``headers`` sent to its own origin alone.

        HTML comes as Markdown unless ``raw``. ``follow`` gives the canonical form of each address that it redirects
        to, or raises.
        """
        ...

    async def search(self, query: str, *, count: int, freshness: str | None) -> JsonValue:
        """``engine``, ``results`` (title, url, snippet), and ``failed``: the engines that gave none, and why."""
        ...


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
