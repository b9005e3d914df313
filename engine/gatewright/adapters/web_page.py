"""The answer of a web server, as text that a model can read: HTML as Markdown, other texts in their encoding.

Of a request of a tool it is the value that the server means: JSON, a text, or bytes.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from turbohtml import parse
from turbohtml.detect import detect

from gatewright.base.errors import ToolFailure
from gatewright.base.printable import printable
from gatewright.tools.context import WebPage

if TYPE_CHECKING:
    from turbohtml import Document

    from gatewright.adapters.secret import Secrets
    from gatewright.adapters.web_request import Answer
    from gatewright.base.jsonvalue import JsonValue

MAX_HTML_BYTES = 2 * 1024 * 1024
"""Of a page: what it takes to read one holds up everything else in this process."""
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
    """Whether a body of that type may be text."""
    return kind_of(content_type) != "binary"


def kind_of(content_type: str) -> str:
    """html, json, text or binary by the type that the server names; nothing where that does not tell."""
    mime = _mime(content_type)
    if mime in _UNSAID:
        return ""
    if mime in _HTML:
        return "html"
    if mime == "application/json" or mime.endswith("+json"):
        return "json"
    return "text" if _TEXT.fullmatch(mime) else "binary"


def page_of(url: str, answer: Answer, *, raw: bool) -> WebPage:
    """The page; ``raw``: HTML as it was sent."""
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
        text = decoded(answer.body, charset)
    return WebPage(url, answer.status, _mime(content_type), kind, text, size, is_cut, title, answer.headers)


def value_of(answer: Answer, secrets: Secrets, *, raw: bool = False) -> JsonValue | bytes:
    """The body as a program wants it, without ``secrets``: JSON, text or bytes (``raw``: always); else the status.

    Raises ToolFailure for an answer that is no success or not whole.
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
                lines = decoded(answer.body, "utf-8").split("\n")
                return secrets.out_of_value([json.loads(line) for line in lines if line.strip()])
            return secrets.out_of_value(json.loads(page.text))
        except (ValueError, RecursionError):
            raise ToolFailure(
                "the server says that it sends JSON, and sends something else", code="bad-answer"
            ) from None
    return secrets.out_of(page.text)


def document_of(body: bytes, charset: str) -> Document:
    """The parsed page: a byte order mark says its encoding, else ``charset``, the page, or its look."""
    try:
        return parse(body, encoding=charset or None, detect_encoding=True, positions=False)
    except LookupError:
        return parse(body, detect_encoding=True, positions=False)


def _make_links_whole(document: Document, url: str) -> None:
    try:
        base = document.base_url(url)
    except ValueError:  # the page names a base that is no address
        base = url

    def whole(link: str) -> str:
        try:
            return urljoin(base, link)
        except ValueError:
            return link

    document.rewrite_links(whole)


def decoded(body: bytes, charset: str) -> str:
    """The text in the encoding that its byte order mark, ``charset`` or its look says."""
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
