"""The web for the tools of one policy: pages, step by step along their redirects, and search engines, one by one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast
from urllib.parse import urljoin

from gatewright.arguments.url import UrlRefused, UrlTarget, parse_url
from gatewright.base import aio
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import SearchEngine, SearchProvider, Web

if TYPE_CHECKING:
    from gatewright.adapters.web_request import CheckedNetwork
    from gatewright.tools.port import WebPage

MAX_REDIRECTS = 5
SEARCH_S = 8.0
"""How long one engine may take before the next one is asked."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_USUAL = {
    SearchEngine.DUCKDUCKGO: "https://html.duckduckgo.com/html/",
    SearchEngine.GOOGLE: "https://www.googleapis.com/customsearch/v1",
}


class WebClient:
    """Fetches and searches as ``[workspace] web`` says.

    ``network`` makes what connections are made by, told whether private addresses may be reached.
    """

    def __init__(
        self,
        web: Web,
        *,
        network: Callable[[bool], CheckedNetwork] | None = None,
        variables: Mapping[str, str] = os.environ,
    ) -> None:
        self._web, self._network_of, self._variables = web, network, variables

    @property
    def allow_private(self) -> bool:
        """Whether arguments may name private networks and this machine."""
        return self._web.allow_private

    @property
    def engines(self) -> tuple[UrlTarget, ...]:
        """Where searches are sent, in their order."""
        return tuple(address_of(one) for one in self._web.search)

    async def fetch(
        self, url: str, *, headers: Sequence[tuple[str, str]] = (), follow: Callable[[str], str], raw: bool = False
    ) -> WebPage:
        """What stands at ``url`` in the end; ``headers`` go to its own origin alone. Raises ToolFailure."""
        from gatewright.adapters.web_page import is_read, page_of
        from gatewright.adapters.web_request import get

        target, network = self._target(url), self._network(self.allow_private)
        for _ in range(MAX_REDIRECTS + 1):
            answer = await get(target, headers, network, wants=is_read)
            location = answer.header("location").strip() if answer.status in _REDIRECTS else ""
            if not location:
                return await aio.to_thread(page_of, target.text, answer, raw=raw)
            try:
                onward = self._target(follow(urljoin(target.text, location)))
            except ValueError:
                raise ToolFailure("the server redirects to something that is no address", code="bad-answer") from None
            if _origin(onward) != _origin(target):
                headers = ()
            target = onward
        raise ToolFailure(f"the address redirects more than {MAX_REDIRECTS} times", code="too-many-redirects")

    async def search(self, query: str, *, count: int, freshness: str | None) -> JsonValue:
        """The results of the first engine that gives some, and which ones before it failed. Raises ToolFailure."""
        from gatewright.adapters.web_search import ask

        failed: list[JsonValue] = []
        for one in self._web.search:
            try:
                network = self._network(one.url is not None or self.allow_private)
                async with aio.timeout(SEARCH_S):
                    found = await ask(one, address_of(one), query, count, freshness, network, self._variables)
            except (ToolFailure, TimeoutError) as error:
                why = str(error) if isinstance(error, ToolFailure) else "it did not answer in time"
                failed.append({"engine": str(one.engine), "why": why})
                continue
            results = cast("list[JsonValue]", found)
            more: dict[str, JsonValue] = {"failed": failed} if failed else {}
            return {"engine": str(one.engine), "results": results, **more}
        said = "; ".join(f"{row['engine']}: {row['why']}" for row in failed if isinstance(row, dict))
        raise ToolFailure(f"no search engine gave an answer ({said})", code="search-failed")

    def _network(self, allow_private: bool) -> CheckedNetwork:
        if self._network_of is not None:
            return self._network_of(allow_private)
        from gatewright.adapters.web_request import CheckedNetwork

        return CheckedNetwork(allow_private=allow_private)

    def _target(self, url: str) -> UrlTarget:
        target = parse_url(url, allow_private=self.allow_private)
        if isinstance(target, UrlRefused):
            raise ToolFailure(target.hint, code=target.code, detail=target.reason)
        return target


def address_of(provider: SearchProvider) -> UrlTarget:
    """Where it is asked. Raises ToolFailure for an address that cannot be one."""
    target = parse_url(provider.url or _USUAL.get(provider.engine, ""), allow_private=True)
    if isinstance(target, UrlRefused):
        raise ToolFailure(f"the address of {provider.engine} cannot be used", code=target.code, detail=target.reason)
    return target


def _origin(target: UrlTarget) -> tuple[str, str, int]:
    return target.scheme, target.host, target.port
