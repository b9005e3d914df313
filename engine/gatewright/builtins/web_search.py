"""The ``web_search`` tool: what search engines find for a query. It does no I/O itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from gatewright.arguments.url import UrlTarget
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.plural import plural
from gatewright.builtins.result import COUNT, TEXT, answer, done, fields, rows
from gatewright.builtins.rooted import Input, counted
from gatewright.builtins.web_fetch import WebTool
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.policy.right import ToolFacts
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism
from gatewright.tools.port import WebPort

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
        """As of every tool; a call is judged by the addresses of the engines."""
        facts = super().facts()
        judged = frozenset({CapabilityKind.NET_READ})
        return replace(facts, operations=tuple(replace(row, judged=judged) for row in facts.operations))

    def reached(self, operation: str, web: WebPort | None) -> tuple[UrlTarget, ...]:
        """The engines."""
        return () if web is None else web.engines

    async def run(self, arguments: WebSearch, context: ToolExecutionContext) -> JsonValue:
        """Give what the first engine finds that answers."""
        web = context.require_web()
        data = await web.search(
            arguments.query, count=arguments.count, freshness=arguments.freshness, bounds=context.bounds
        )
        count = counted(data, "results")
        return done(plural(count, "result") if count else "no results", data)
