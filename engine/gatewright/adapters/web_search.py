"""The search engines: what each is asked, and how its answer is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

from gatewright.adapters.web_page import decoded, document_of
from gatewright.adapters.web_request import Answer, CheckedNetwork, get
from gatewright.arguments.url import UrlTarget, parse_url
from gatewright.base.errors import ToolFailure
from gatewright.policy.document import SearchEngine, SearchProvider

MAX_TITLE = 300
MAX_SNIPPET = 2_000
_UNREADABLE = "its answer is not what such an engine sends"

Found = list[tuple[str, str, str]]
"""Title, address and snippet, as they came."""


async def ask(
    provider: SearchProvider,
    address: UrlTarget,
    query: str,
    count: int,
    freshness: str | None,
    network: CheckedNetwork,
    variables: Mapping[str, str],
) -> list[dict[str, str | int]]:
    """At most ``count`` results of one engine, best first: index, title, url, display_url, snippet.

    Raises ToolFailure.
    """
    path, parameters = _question(provider, query, count, freshness, variables)
    base = f"{address.text.rstrip('/')}/{path}" if path else address.text
    answer = await get(replace(address, text=f"{base}?{urlencode(parameters)}"), (), network)
    if answer.status != 200:
        raise ToolFailure(f"it answered with status {answer.status}", code="search-failed")
    try:
        found = _results(provider.engine, answer)
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ToolFailure(_UNREADABLE, code="search-failed") from None
    rows: list[dict[str, str | int]] = []
    for title, url, snippet in found:
        target = parse_url(url, allow_private=True)
        if isinstance(target, UrlTarget) and len(rows) < count:
            about = {"title": _line(title, MAX_TITLE), "url": target.text, "display_url": target.host}
            rows.append({"index": len(rows) + 1, **about, "snippet": _line(snippet, MAX_SNIPPET)})
    return rows


def _question(
    provider: SearchProvider, query: str, count: int, freshness: str | None, variables: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """What follows the address of the engine: a last part of the path, and the parameters."""
    match provider.engine:
        case SearchEngine.DUCKDUCKGO:
            return "", {"q": query, **({"df": freshness[0]} if freshness else {})}
        case SearchEngine.SEARXNG:
            return "search", {"q": query, "format": "json", **({"time_range": freshness} if freshness else {})}
        case SearchEngine.GOOGLE:
            named = {"key": provider.api_key_env, "cx": provider.engine_id_env}
            keys = {name: variables.get(variable or "", "") for name, variable in named.items()}
            if "" in keys.values():
                raise ToolFailure("its key is not set up", code="search-failed")
            newer = {"dateRestrict": f"{freshness[0]}1"} if freshness else {}
            return "", {**keys, "q": query, "num": str(count), **newer}


def _results(engine: SearchEngine, answer: Answer) -> Found:
    match engine:
        case SearchEngine.DUCKDUCKGO:
            page = document_of(answer.body, "")
            found: Found = []
            for result in page.select(".result"):
                link, snippet = result.select_one("a.result__a"), result.select_one(".result__snippet")
                if link is not None and "result--ad" not in str(result.attrs.get("class") or ""):
                    url = _behind(str(link.attrs.get("href") or ""))
                    found.append((link.text, url, snippet.text if snippet is not None else ""))
            if not found and page.select_one(".no-results") is None:
                raise ToolFailure(
                    "it wants to know whether a human asks, or has changed its pages", code="search-failed"
                )
            return found
        case SearchEngine.SEARXNG:
            return _rows(_json(answer), "results", ("title", "url", "content"))
        case SearchEngine.GOOGLE:
            data = _json(answer)
            if "searchInformation" not in data and "items" not in data and data.get("kind") != "customsearch#search":
                raise ToolFailure(_UNREADABLE, code="search-failed")
            return _rows({"items": [], **data}, "items", ("title", "link", "snippet"))


def _behind(href: str) -> str:
    """The address that a link of DuckDuckGo leads to in the end."""
    try:
        url = urljoin("https://duckduckgo.com/", href)
        parts = urlsplit(url)
    except ValueError:
        return ""
    if (parts.hostname or "").endswith("duckduckgo.com") and parts.path.startswith("/l/"):
        return next(iter(parse_qs(parts.query).get("uddg", ())), "")
    return "" if parts.path == "/y.js" else url


def _json(answer: Answer) -> dict[str, Any]:
    data = json.loads(decoded(answer.body, "utf-8"))
    if not isinstance(data, dict):
        raise ToolFailure(_UNREADABLE, code="search-failed")
    return cast("dict[str, Any]", data)


def _rows(data: dict[str, Any], key: str, names: tuple[str, str, str]) -> Found:
    rows = data.get(key)
    if not isinstance(rows, list):
        raise ToolFailure(_UNREADABLE, code="search-failed")
    given = [cast("dict[str, object]", row) for row in cast("list[object]", rows) if isinstance(row, dict)]
    title, url, snippet = names
    return [(str(row.get(title) or ""), str(row.get(url) or ""), str(row.get(snippet) or "")) for row in given]


def _line(text: str, longest: int) -> str:
    return " ".join(text[: 4 * longest].split())[:longest]
