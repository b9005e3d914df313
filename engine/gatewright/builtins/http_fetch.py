"""The ``http_fetch`` tool: what a server answers to a GET request with headers of the caller. It does no I/O itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, cast

from pydantic import Field

from gatewright.base.jsonvalue import JsonValue
from gatewright.base.regex import late_regex
from gatewright.builtins.result import TEXT, answer, done, fields
from gatewright.builtins.rooted import Input
from gatewright.builtins.web_fetch import CONTENT, MAX_CHARS, PAGE, Url, WebTool, about, follower
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.http_request import HEADER_FORM, header_fault
from gatewright.tools.operation import ArgumentIssue

MAX_HEADERS = 32
MAX_HEADER = 4_096
_HEADER = late_regex(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}):[ \t]*([\x20-\x7e\t]*)")
_HIDDEN = frozenset({"set-cookie", "set-cookie2"})
Header = Annotated[str, Field(max_length=MAX_HEADER)]


class HttpFetch(Input):
    """What to send where."""

    url: Url
    headers: Annotated[
        list[Header] | None, Field(max_length=MAX_HEADERS, description="HTTP headers, each as `Name: value`.")
    ] = None


class HttpFetchTool(WebTool):
    """Makes one request."""

    name = "http_fetch"
    description = (
        "Sends a GET request and gives the answer as it comes: its code, headers and body, whatever the code. Headers "
        "are sent to the server of `url` alone, not where it redirects to."
    )
    examples = ({"url": "https://example.org/", "headers": ["Accept: text/html"]},)
    output_schema = answer(fields({**PAGE, "headers": {"type": "object", "additionalProperties": TEXT}}, CONTENT))
    input_model = HttpFetch
    texts = frozenset({"headers"})

    def missing_arguments(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """What is missing, and headers that cannot be sent."""
        found = super().missing_arguments(operation, arguments)
        given = arguments.get("headers")
        lines = cast("list[object]", given) if isinstance(given, list) else []
        wrong = ((index, _fault(line)) for index, line in enumerate(lines) if isinstance(line, str))
        return (*found, *(ArgumentIssue(f"/headers/{index}", why) for index, why in wrong if why))

    async def run(self, arguments: HttpFetch, context: ToolExecutionContext) -> JsonValue:
        """Give the answer, whatever its status."""
        pairs = [_HEADER.fullmatch(line) for line in arguments.headers or ()]
        headers = [(pair[1], pair[2].strip()) for pair in pairs if pair is not None]
        web = context.require_web()
        follow = follower(arguments, context)
        page = await web.fetch(arguments.url, headers=headers, follow=follow, raw=True, bounds=context.bounds)
        sent: dict[str, JsonValue] = {}
        for name, value in page.headers:
            if name not in _HIDDEN:
                sent[name] = f"{sent[name]}, {value}" if name in sent else value
        data: dict[str, JsonValue] = {**about(page), "headers": sent}
        if page.kind != "binary":
            data |= {"content": page.text[:MAX_CHARS], "characters": len(page.text)}
        return done(f"the server answered with status {page.status}", data)


def _fault(line: str) -> str | None:
    found = _HEADER.fullmatch(line)
    if found is None:
        return HEADER_FORM
    return header_fault(found[1])
