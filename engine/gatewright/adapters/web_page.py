"""Reads the answers of web servers: HTML as Markdown, other texts, and the results of search engines.

A tool's request gets the value that the server means: JSON, a text, or bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

from turbohtml import parse
from turbohtml.detect import detect

from gatewright.adapters.web_request import Answer, CheckedNetwork, get
from gatewright.arguments.url import UrlTarget, parse_url
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.printable import printable
from gatewright.gate.scrub import Secrets
from gatewright.policy.document import SearchEngine, SearchProvider
from gatewright.tools.context import WebPage

if TYPE_CHECKING:
    from turbohtml import Document


MAX_HTML_BYTES = 2 * 1024 * 1024
"""The most bytes of a page, since reading one holds up this process."""
MAX_TITLE = 300
_SAID = 300
_TOO_LARGE = "result-too-large"
_LOOKED_AT = 4096
_CHARSET = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9_:-]{1,40})""", re.IGNORECASE)
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = re.compile(
    r"text/.*|.*[+/](?:xml|yaml|x-yaml|toml|javascript|x-javascript|ecmascript|x-sh|x-ndjson|graphql|sql)"
    r"|application/x-www-form-urlencoded|message/.*"
)
_LINES = re.compile(r"(?:application|text)/(?:x-)?(?:ndjson|jsonl|jsonlines|json-lines)")
_UNSAID = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/unknown"})
_PAGE = re.compile(rb"\s*(?:<!--.{0,1000}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def is_read(content_type: str) -> bool:
    """Tell whether a body of that type may be text."""
    return kind_of(content_type) != "binary"


def kind_of(content_type: str) -> str:
    """Return html, json, text or binary by the server's type; empty if that does not say."""
    mime = _mime(content_type)
    if mime in _UNSAID:
        return ""
    if mime in _HTML:
        return "html"
    if mime == "application/json" or mime.endswith("+json"):
        return "json"
    return "text" if _TEXT.fullmatch(mime) else "binary"


def page_of(url: str, answer: Answer, *, raw: bool) -> WebPage:
    """Return the page; ``raw``: with its HTML unchanged."""
    content_type = answer.header("content-type")
    kind, begin = kind_of(content_type), answer.body[:_LOOKED_AT]
    is_binary = b"\0" in begin and not begin.startswith(_UTF16)
    if not kind:
        kind = "html" if _PAGE.match(begin) else "binary" if is_binary else "text"
    elif kind in {"text", "json"} and is_binary and "utf-16" not in content_type.lower():
        kind = "binary"
    size, is_cut, title = len(answer.body), answer.is_cut, ""
    charset = found[1] if (found := _CHARSET.search(content_type)) else ""
    if kind == "binary":
        said = answer.header("content-length")
        size, text = (int(said) if said.isdecimal() and len(said) < 16 else size), ""
    elif kind == "html" and not raw:
        is_cut = is_cut or size > MAX_HTML_BYTES
        document = document_of(answer.body[:MAX_HTML_BYTES], charset)
        _make_links_whole(document, url)
        text = document.to_markdown()
        found_title = document.select_one("head > title")
        title = " ".join(found_title.text.split())[:MAX_TITLE] if found_title is not None else ""
    else:
        text = decode(answer.body, charset)
    return WebPage(url, answer.status, _mime(content_type), kind, text, size, is_cut, title, answer.headers)


def value_of(answer: Answer, secrets: Secrets, *, raw: bool = False) -> JsonValue | bytes:
    """Return the body for a program, without ``secrets``: JSON, text or bytes (with ``raw`` always bytes); without a
    body the status.

    Raises ToolFailure for an answer that is unsuccessful or incomplete.
    """
    page = page_of("", answer, raw=True)
    if not 200 <= answer.status < 300:
        text = printable(" ".join(secrets.out_of(page.text).split()))[:_SAID]
        said = f": {text}" if text else ""
        raise ToolFailure(f"the server answered with status {answer.status}{said}", code="http-status")
    if answer.is_cut:
        text = f"the server answered with status {answer.status} and more than {len(answer.body):,} bytes"
        raise ToolFailure(f"{text}; if the call only reads, ask for less, else do not make it again", code=_TOO_LARGE)
    if not answer.body and not raw:
        return {"status": answer.status}
    is_lines = _LINES.fullmatch(page.content_type) is not None
    if raw or (page.kind == "binary" and not is_lines):
        return secrets.out_of(answer.body.decode("latin-1")).encode("latin-1")
    if is_lines or page.kind == "json" or page.content_type == "text/json":
        try:
            if is_lines:
                lines = decode(answer.body, "utf-8").split("\n")
                return secrets.out_of_value([json.loads(line) for line in lines if line.strip()])
            return secrets.out_of_value(json.loads(page.text))
        except (ValueError, RecursionError):
            raise ToolFailure(
                "the server says that it sends JSON, and sends something else", code="bad-answer"
            ) from None
    return secrets.out_of(page.text)


def document_of(body: bytes, charset: str) -> Document:
    """Parse the page; its encoding comes from a byte order mark, else ``charset``, the page, or a guess."""
    try:
        return parse(body, encoding=charset or None, detect_encoding=True, positions=False)
    except LookupError:
        return parse(body, detect_encoding=True, positions=False)


def _make_links_whole(document: Document, url: str) -> None:
    try:
        base = document.base_url(url)
    except ValueError:  # the page's base is not an address
        base = url

    def whole(link: str) -> str:
        try:
            return urljoin(base, link)
        except ValueError:
            return link

    document.rewrite_links(whole)


def decode(body: bytes, charset: str) -> str:
    """Decode a text by its byte order mark, ``charset`` or a guess."""
    found = detect(body)
    for codec in (f"whatwg-{charset.lower()}" if charset and not found.bom else None, found.codec):
        if codec is not None:
            try:
                return body.decode(codec, "replace").removeprefix("\ufeff")
            except LookupError:
                continue
    return body.decode("utf-8", "replace")


def _mime(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()[:100]


MAX_SNIPPET = 2_000
_UNREADABLE = "its answer is not what such an engine sends"

Found = list[tuple[str, str, str]]
"""Title, address and snippet, unchanged."""


async def ask(
    provider: SearchProvider,
    address: UrlTarget,
    query: str,
    count: int,
    freshness: str | None,
    network: CheckedNetwork,
    variables: Mapping[str, str],
) -> list[dict[str, str | int]]:
    """Return at most ``count`` results of one engine, best first: index, title, url, display_url, snippet.

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
    """Return the end of the engine's address: the last part of the path, and the parameters."""
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
    """Return the address to which a link of DuckDuckGo leads."""
    try:
        url = urljoin("https://duckduckgo.com/", href)
        parts = urlsplit(url)
    except ValueError:
        return ""
    if (parts.hostname or "").endswith("duckduckgo.com") and parts.path.startswith("/l/"):
        return next(iter(parse_qs(parts.query).get("uddg", ())), "")
    return "" if parts.path == "/y.js" else url


def _json(answer: Answer) -> dict[str, Any]:
    data = json.loads(decode(answer.body, "utf-8"))
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
