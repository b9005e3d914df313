"""The tools that reach out of the workspace: ``shell_exec``, ``web_fetch``, ``web_search`` and ``http_fetch``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Annotated, Literal, cast

from pydantic import Field

from gatewright.arguments.url import UrlTarget
from gatewright.base.amount import plural
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import late_regex
from gatewright.builtins.result import COUNT, FLAG, TEXT, ObjectTool, answer, fields, rows, success, text_of
from gatewright.builtins.root_file import Input, RootTool, count_of
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.document import ROOT_NAMES, SHELL
from gatewright.policy.right import ToolFacts
from gatewright.policy.target import Assessment
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.context import ToolExecutionContext, WebPage, WebPort
from gatewright.tools.declaration import Determinism, ResourceBounds, SideEffect
from gatewright.tools.http_request import HEADER_FORM, header_fault
from gatewright.tools.operation import ArgumentIssue
from gatewright.tools.parameter import CommandParameter, UrlParameter


@frozen
class ShellPort:
    """The executor of commands.

    ``run`` returns ``exit_code``, ``output`` and further facts about a canonical command; ``isolation`` says how far it
    is separated from the system, ``obstacle`` why the required separation is impossible.
    """

    run: Callable[[str, ToolExecutionContext], Awaitable[dict[str, JsonValue]]]
    isolation: Callable[[], str]
    obstacle: Callable[[], str]


class ShellExec(Input):
    """What to execute."""

    command: Annotated[
        str,
        CommandParameter(),
        Field(description="The command, in plain shell: programs with `|`, `&&`, `||`, `;` and redirects to files."),
    ]


class ShellExecTool(RootTool):
    """Executes one command. Without a port commands are only decided."""

    name = "shell_exec"
    description = (
        "Executes a shell command in the folder `shared` and answers its exit code and what it wrote. "
        "Only the programs that are allowed here can be started."
    )
    examples = ({"command": "ls -l"},)
    safety_tier = SafetyTier.PRIVILEGED
    side_effects = frozenset(SideEffect) - {SideEffect.DB_READ, SideEffect.DB_WRITE}
    determinism = Determinism.NON_DETERMINISTIC
    required_capabilities = frozenset({"Exec"})  # the files of redirects are judged each by its own kind
    resource_bounds = ResourceBounds(timeout_s=60.0)
    enforces_bounds = True
    leaves_copy = True
    output_schema = answer(
        fields(
            {"exit_code": {"type": ["integer", "null"]}, "output": TEXT},
            {"left_out_bytes": COUNT, "folder": TEXT, "session": TEXT},
        )
    )
    input_model = ShellExec
    needs = (ROOT_NAMES[:1], (SHELL,))

    def __init__(self, shell: ShellPort | None = None) -> None:
        self._shell = shell
        self.is_executable = shell is not None

    @property
    def obstacle(self) -> str:
        """Return the reason why this system cannot confine commands although the policy requires it."""
        return self._shell.obstacle() if self._shell is not None else ""

    @property
    def caveat(self) -> str:
        """Say how far a command is separated from the system."""
        return self._shell.isolation() if self._shell is not None else ""

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Show the person who is asked the command, and how far it is separated from the system."""
        return Assessment(diff=f"executes: {text_of(arguments, 'command')}\n{self.caveat}\n")

    async def run(self, arguments: ShellExec, context: ToolExecutionContext) -> JsonValue:
        """Execute it."""
        if self._shell is None:
            raise ToolFailure(f"`{self.name}` cannot be executed here", code="not-supported")
        data = await self._shell.run(arguments.command, context)
        return success(f"exit code {data['exit_code']}", dict(data))


MAX_CHARS = 50_000
USUAL_CHARS = 12_000
"""So few characters that a result is not cut again, unless the policy sets a smaller limit."""
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
    outside = True


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
        return success(f"`{page.url[:_SHOWN_URL]}` was fetched", data)


def about(page: WebPage) -> dict[str, JsonValue]:
    """Return the facts of every result about a page; ``is_cut``: the server sent more than the tool read."""
    data: dict[str, JsonValue] = {"url": page.url, "status": page.status, "content_type": page.content_type}
    data |= {"kind": page.kind, "bytes": page.size}
    return {**data, "is_cut": True} if page.is_cut else data


def follower(arguments: Input, context: ToolExecutionContext) -> Callable[[str], str]:
    """Return a function that resolves a redirect if the same call with that address would be allowed too."""
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
        """Return missing arguments, and headers that cannot be sent."""
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
        return success(f"the server answered with status {page.status}", data)


def _fault(line: str) -> str | None:
    found = _HEADER.fullmatch(line)
    if found is None:
        return HEADER_FORM
    return header_fault(found[1])


MAX_RESULTS = 10
MAX_QUERY = 1_000

_RESULT = fields({"index": COUNT, "title": TEXT, "url": TEXT, "display_url": TEXT, "snippet": TEXT})
_FAILED = fields({"engine": TEXT, "why": TEXT})


class WebSearch(Input):
    """What to look for."""

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY, description="The words to look for.")]
    count: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="How many results to give at most.")] = 5
    freshness: Annotated[
        Literal["day", "week", "month", "year"] | None,
        Field(description="Only what is no older than that; without it, anything."),
    ] = None


class WebSearchTool(WebTool):
    """Asks the search engines of the policy, one after the other until one answers."""

    name = "web_search"
    description = "Searches the web and gives titles, addresses and short excerpts, best first."
    determinism = Determinism.NON_DETERMINISTIC
    examples = ({"query": "history of tea", "count": 3},)
    output_schema = answer(fields({"engine": TEXT, "results": rows(_RESULT)}, {"failed": rows(_FAILED)}))
    input_model = WebSearch
    texts = frozenset({"query"})

    def facts(self) -> ToolFacts:
        """Return the facts of every tool; a call is judged by the addresses of the engines."""
        facts = super().facts()
        judged = frozenset({CapabilityKind.NET_READ})
        return replace(facts, operations=tuple(replace(row, judged=judged) for row in facts.operations))

    def web_targets(self, operation: str, web: WebPort | None) -> tuple[UrlTarget, ...]:
        """Return the engines."""
        return () if web is None else web.engines

    async def run(self, arguments: WebSearch, context: ToolExecutionContext) -> JsonValue:
        """Give what the first engine finds that answers."""
        web = context.require_web()
        data = await web.search(
            arguments.query, count=arguments.count, freshness=arguments.freshness, bounds=context.bounds
        )
        count = count_of(data, "results")
        return success(plural(count, "result") if count else "no results", data)
