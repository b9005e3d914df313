"""The ``web_fetch`` tool: a page of the web as text that can be read. It does no I/O itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.result import COUNT, FLAG, TEXT, ObjectTool, answer, done, fields
from gatewright.builtins.rooted import Input
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, ResourceBounds, SideEffect
from gatewright.tools.parameter import UrlParameter
from gatewright.tools.port import WebPage

MAX_CHARS = 50_000
USUAL_CHARS = 12_000
"""Little enough that a result is not cut again where the policy says nothing of its length."""
_PREVIEW = 300
_SHOWN_URL = 500
Url = Annotated[str, UrlParameter(), Field(description="The address, `https://...` or `http://...`.")]

PAGE = {"url": TEXT, "status": COUNT, "content_type": TEXT, "kind": TEXT, "bytes": COUNT}
CONTENT = {"content": TEXT, "characters": COUNT, "is_cut": FLAG}


class WebTool(ObjectTool, abstract=True):
    """A tool that reaches the web."""

    examples = ({"url": "https://example.org/"},)
    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.NET_READ})
    determinism = Determinism.MAYBE
    resource_bounds = ResourceBounds(timeout_s=30.0, max_requests=6)
    enforces_bounds = True
    leaves_copy = True


class WebFetch(Input):
    """What to fetch."""

    url: Url
    start: Annotated[int, Field(ge=0, description="Which character of the text to begin with, to read on.")] = 0
    max_chars: Annotated[int, Field(ge=1, le=MAX_CHARS, description="How many characters to give at most.")] = (
        USUAL_CHARS
    )


class WebFetchTool(WebTool):
    """Reads one page."""

    name = "web_fetch"
    description = (
        "Fetches a page of the web and gives its text: HTML as Markdown, other texts as they are, of anything else "
        "what it is. A long text is given in parts: `next_start` is where to read on."
    )
    output_schema = answer(fields(PAGE, {**CONTENT, "title": TEXT, "next_start": COUNT}))
    input_model = WebFetch

    async def run(self, arguments: WebFetch, context: ToolExecutionContext) -> JsonValue:
        """Give its text."""
        page = await context.require_web().fetch(
            arguments.url, follow=follower(arguments, context), bounds=context.bounds
        )
        if not 200 <= page.status < 300:
            said = f": {page.text[:_PREVIEW]}" if page.text else ""
            raise ToolFailure(f"the server answered with status {page.status}{said}", code="http-status")
        end = arguments.start + arguments.max_chars
        data: dict[str, JsonValue] = {**about(page), **({"title": page.title} if page.title else {})}
        if page.kind != "binary":
            data |= {"content": page.text[arguments.start : end], "characters": len(page.text)}
            data |= {"next_start": end} if end < len(page.text) else {}
        return done(f"`{page.url[:_SHOWN_URL]}` was fetched", data)


def about(page: WebPage) -> dict[str, JsonValue]:
    """What every result says of a page; ``is_cut``: the server sent more than is read."""
    data: dict[str, JsonValue] = {"url": page.url, "status": page.status, "content_type": page.content_type}
    data |= {"kind": page.kind, "bytes": page.size}
    return {**data, "is_cut": True} if page.is_cut else data


def follower(arguments: Input, context: ToolExecutionContext) -> Callable[[str], str]:
    """Says of a redirect where it leads, if the same call with that address would be carried out, too."""
    given: dict[str, JsonValue] = arguments.model_dump(mode="json", exclude_unset=True)

    def follow(url: str) -> str:
        text = f"the address redirects to `{url[:_SHOWN_URL]}`, which needs a call of its own"
        if context.again is None:
            raise ToolFailure(text, code="redirected")
        try:
            return str(context.again({**given, "url": url})["url"])
        except ToolFailure as error:
            raise ToolFailure(text, code=error.code, detail=f"{text}: {error.detail}") from None

    return follow
