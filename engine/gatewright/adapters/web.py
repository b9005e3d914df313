"""The web for the tools of one policy: pages along their redirects, search engines, requests of HTTP catalogs.

`tools.http_request` shapes the request, and the web port decides where it may go, resolves and dials.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast
from urllib.parse import quote, unquote_plus, urljoin

from gatewright.arguments.url import UrlRefused, UrlTarget, parse_url
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import aio
from gatewright.policy.document import Catalog, SearchEngine, SearchProvider, Web
from gatewright.tools.context import ToolExecutionContext, WebPage, WebRequest
from gatewright.tools.declaration import ResourceBounds, ResultType
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.http_request import RequestTemplates, base_address, read_requests

if TYPE_CHECKING:
    from gatewright.adapters.web_request import Answer, CheckedNetwork


MAX_REDIRECTS = 5
SEARCH_S = 8.0
"""The seconds for one engine, before the search asks the next."""
_ACCEPT = "application/json, text/*;q=0.9, */*;q=0.8"
_SEE_OTHER = 303
_KEEP_METHOD = frozenset({307, 308})
_REDIRECTS = frozenset({301, 302, _SEE_OTHER}) | _KEEP_METHOD
_USUAL = {
    SearchEngine.DUCKDUCKGO: "https://html.duckduckgo.com/html/",
    SearchEngine.GOOGLE: "https://www.googleapis.com/customsearch/v1",
}


class WebClient:
    """Fetches and searches under ``[workspace] web``.

    ``network`` makes the connecting network from the flag for private addresses.
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
        """True if arguments may name private networks and this machine."""
        return self._web.allow_private

    @property
    def engines(self) -> tuple[UrlTarget, ...]:
        """The addresses of the search engines, in order."""
        return tuple(address_of(one) for one in self._web.search)

    async def fetch(
        self,
        url: str,
        *,
        headers: Sequence[tuple[str, str]] = (),
        follow: Callable[[str], str],
        raw: bool = False,
        bounds: ResourceBounds,
    ) -> WebPage:
        """Fetch the page behind ``url``; ``headers`` go to its own origin only. Raises ToolFailure."""
        from gatewright.adapters.web_page import is_read, page_of
        from gatewright.adapters.web_request import get

        target, network = self._target(url), self._network(self.allow_private)
        for _ in range(most := _most_requests(bounds)):
            answer = await get(target, headers, network, wants=is_read)
            location = _location(target, answer)
            if not location:
                return await aio.to_thread(page_of, target.text, answer, raw=raw)
            onward = self._target(follow(location))
            if _origin(onward) != _origin(target):
                headers = ()
            target = onward
        raise _too_far(most)

    async def send(
        self,
        request: WebRequest,
        *,
        headers_env: Mapping[str, str],
        query_env: Mapping[str, str],
        follow: Callable[[UrlTarget], None],
        bounds: ResourceBounds,
    ) -> JsonValue | bytes:
        """Send a request, follow its redirects and return the answer. Raises ToolFailure."""
        from gatewright.adapters.web_page import value_of
        from gatewright.adapters.web_request import request as ask
        from gatewright.gate.scrub import Secrets

        secret, fields = _values_of(headers_env, self._variables), _values_of(query_env, self._variables)
        secrets, network = Secrets(value for _, value in (*secret, *fields)), self._network(self.allow_private)
        own, origin, left = _own_headers(request, secret), _origin(request.url), bounds.network_bytes
        request = replace(request, url=self._add_keys(request.url, fields))
        for _ in range(most := _most_requests(bounds)):
            headers = own if request.body is None else (*own, ("Content-Type", request.content_type))
            if left is not None:
                left -= _size(request, headers)
                if left <= 0:
                    text = f"the call would send and receive more than {bounds.network_bytes:,} bytes; send less"
                    raise ToolFailure(text, code="too-large")
            answer = await ask(request.method, request.url, headers, network, body=request.body, most=left)
            location = _location(request.url, answer)
            if not location:
                return await aio.to_thread(value_of, answer, secrets, raw=request.raw)
            left = None if left is None else left - len(answer.body)
            location = _without(location, fields)
            if secrets.out_of(location) != location:
                raise ToolFailure("the server redirects to an address with a key in it", code="bad-answer")
            onward = self._onward(request, answer.status, location)
            follow(onward.url)
            if _origin(onward.url) != origin:
                own, fields = (), ()
            request = replace(onward, url=self._add_keys(onward.url, fields))
        raise _too_far(most)

    def _add_keys(self, url: UrlTarget, fields: Sequence[tuple[str, str]]) -> UrlTarget:
        """Add the keys to the address's query; they replace fields with their names."""
        if not fields:
            return url
        text = _without(url.text.partition("#")[0], fields)
        keys = "&".join(f"{quote(name, '')}={quote(value, '')}" for name, value in fields)
        return replace(self._target(f"{text}{'&' if '?' in text else '?'}{keys}"), writes=url.writes)

    def _onward(self, request: WebRequest, status: int, location: str) -> WebRequest:
        """Return the request after a redirect; 301 to 303 turn it into a read (RFC 9110, 15.4)."""
        reads = request.method == "HEAD" or not request.url.writes
        if reads or status in _KEEP_METHOD or (status != _SEE_OTHER and request.method != "POST"):
            return replace(request, url=replace(self._target(location), writes=request.url.writes))
        return replace(request, method="GET", url=self._target(location), body=None, content_type="")

    async def search(self, query: str, *, count: int, freshness: str | None, bounds: ResourceBounds) -> JsonValue:
        """Return the results of the first engine with any, and the engines that failed before. Raises ToolFailure."""
        from gatewright.adapters.web_page import ask

        failed: list[JsonValue] = []
        for one in self._web.search[: bounds.max_requests]:
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
    """Return an engine's address. Raises ToolFailure for an unusable one."""
    target = parse_url(provider.url or _USUAL.get(provider.engine, ""), allow_private=True)
    if isinstance(target, UrlRefused):
        raise ToolFailure(f"the address of {provider.engine} cannot be used", code=target.code, detail=target.reason)
    return target


def _most_requests(bounds: ResourceBounds) -> int:
    return min(MAX_REDIRECTS + 1, bounds.max_requests or MAX_REDIRECTS + 1)


def _too_far(most: int) -> ToolFailure:
    return ToolFailure(f"the address redirects more than {most - 1} times", code="too-many-redirects")


def _location(target: UrlTarget, answer: Answer) -> str:
    """Return the full address of a redirect; empty without one. Raises ToolFailure."""
    location = answer.header("location").strip() if answer.status in _REDIRECTS else ""
    try:
        return urljoin(target.text, location) if location else ""
    except ValueError:
        raise ToolFailure("the server redirects to something that is no address", code="bad-answer") from None


def _size(request: WebRequest, headers: Sequence[tuple[str, str]]) -> int:
    sent = sum(len(name) + len(value) for name, value in headers)
    return len(request.url.text) + sent + len(request.body or b"")


def _values_of(named: Mapping[str, str], variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return each header or query field with the value of its variable.

    Raises ToolFailure if one is not set or cannot be sent.
    """
    found: list[tuple[str, str]] = []
    for name, variable in named.items():
        value = variables.get(variable, "").strip()
        if not value or not value.isascii() or not value.isprintable():
            how = "is not set" if not value else "holds what no header can"
            detail = f"the environment variable `{variable}`, with the value of `{name}`, {how}"
            raise ToolFailure("this tool is not set up here; go on without it", code="not-set-up", detail=detail)
        found.append((name, value))
    return tuple(found)


def _own_headers(request: WebRequest, secret: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the headers with secrets, for the catalog's server only; a secret replaces a header, cookies are
    joined.
    """
    named = {name.lower() for name, _ in secret}
    kept = [row for row in request.headers if row[0].lower() not in named]
    if not any(name.lower() == "accept" for name, _ in (*kept, *secret)):
        kept.append(("Accept", _ACCEPT))
    cookies = [value for name, value in request.headers if name.lower() == "cookie"]
    both = [(name, "; ".join([value, *cookies]) if name.lower() == "cookie" else value) for name, value in secret]
    return (*(row for row in kept if request.body is None or row[0].lower() != "content-type"), *both)


def _without(url: str, fields: Sequence[tuple[str, str]]) -> str:
    """Remove the query fields with these names from an address."""
    head, mark, query = url.partition("?")
    named = {name for name, _ in fields}
    if not mark or not named:
        return url
    query, hash_, rest = query.partition("#")
    kept = "&".join(one for one in query.split("&") if unquote_plus(one.partition("=")[0]) not in named)
    return f"{head}{'?' if kept else ''}{kept}{hash_}{rest}"


def _origin(target: UrlTarget) -> tuple[str, str, int]:
    return target.scheme, target.host, target.port


_SHOWN_URL = 500


class HttpAdapter:
    """Makes the requests of HTTP tools."""

    def check(self, definition: ToolDefinition, /) -> None:
        """Raise RegistrationError for a definition without valid requests."""
        _requests_of(definition)

    async def run(
        self,
        catalog: Catalog,
        definition: ToolDefinition,
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
        /,
    ) -> JsonValue | bytes:
        """Send a call's request and return the answer. Raises ToolFailure."""
        web, templates = context.require_web(), _requests_of(definition).of(context.operation)
        if len(templates) != 1:
            detail = f"the definition of `{definition.name}` has no request for `{context.operation}`"
            raise ToolFailure("this operation cannot be executed here", code="not-supported", detail=detail)
        base = base_address(catalog.url or "")
        request = templates[0].fill(base, arguments, allow_private=web.allow_private)
        return await web.send(
            replace(request, raw=definition.conduct.result_type is ResultType.BINARY),
            headers_env=catalog.headers_env,
            query_env=catalog.query_env,
            follow=_follower(arguments, context),
            bounds=context.bounds,
        )

    def close(self) -> None:
        """Do nothing: no connection outlives its call."""


@lru_cache(maxsize=512)
def _requests_of(definition: ToolDefinition) -> RequestTemplates:
    return read_requests(definition.run)


def _follower(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Callable[[UrlTarget], None]:
    """Return a check that refuses a redirect to any address that the call itself could not use."""

    def follow(target: UrlTarget) -> None:
        text = f"the server redirects to `{target.text[:_SHOWN_URL]}`, where this call may not go"
        if context.again is None:
            raise ToolFailure(text, code="redirected")
        try:
            context.again(arguments, (target,))
        except ToolFailure as error:
            raise ToolFailure(text, code=error.code, detail=f"{text}: {error.detail}") from None

    return follow
