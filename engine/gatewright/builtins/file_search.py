"""The ``file_search`` tool: the lines below a folder that hold a text or match a pattern.

Patterns run in linear time; one that cannot is denied as an argument. Linear can still be slow, so a pattern gets at
most the part of a line that it can match between two looks at the clock, and the result reports the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from gatewright.base.amount import plural
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.pattern import LinearPattern, compile_linear
from gatewright.builtins.result import COUNT, TEXT, answer, fields, rows, success
from gatewright.builtins.root_file import READ, Input, ReadingTool, count_of, until_stopped
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResourceBounds
from gatewright.tools.operation import ArgumentIssue

MAX_HITS = 200
MAX_QUERY = 1_000
MAX_MATCHED = 8_000
"""The most characters of a line that a pattern is matched with."""
_NO_PATTERN = "the query is no regular expression that runs in linear time (RE2: no look-around, no back-references)"

_SKIPPED = fields({}, {"binary": COUNT, "large": COUNT, "unreadable": COUNT, "long_lines": COUNT})


class FileSearch(Input):
    """What to look for."""

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY, description="The text to look for, within a line.")]
    path: Annotated[str, READ, Field(description="The folder or file to look in, such as `shared/drafts`.")] = "shared"
    regex: Annotated[bool, Field(description="Take the query as a regular expression (RE2).")] = False
    ignore_case: Annotated[bool, Field(description="Take upper and lower case for the same.")] = False
    max_hits: Annotated[int, Field(ge=1, le=MAX_HITS, description="How many hits to give at most.")] = MAX_HITS


class FileSearchTool(ReadingTool):
    """Searches a folder."""

    name = "file_search"
    description = (
        "Searches the text files below a folder and gives the hits as `path:line:text`. Files that are no text are "
        "passed over and counted. Paths begin with `shared/` or `tmp/`; one without begins in `shared`."
    )
    resource_bounds = ResourceBounds(timeout_s=20.0)
    examples = ({"query": "tea", "path": "shared", "ignore_case": True},)
    output_schema = answer(
        fields({"path": TEXT, "hits": rows(TEXT), "files": COUNT}, {"skipped": _SKIPPED, "stopped": TEXT})
    )
    input_model = FileSearch
    texts = frozenset({"query"})

    def missing_arguments(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """Return missing arguments, and a query that should be a pattern but is not."""
        found = super().missing_arguments(operation, arguments)
        query = arguments.get("query")
        if arguments.get("regex") is not True or not isinstance(query, str) or len(query) > MAX_QUERY:
            return found
        try:
            compile_linear(query)
        except ValueError:
            return (*found, ArgumentIssue("/query", _NO_PATTERN))
        return found

    async def run(self, arguments: FileSearch, context: ToolExecutionContext) -> JsonValue:
        """Give the hits."""
        roots, find = context.require_roots(), finder(arguments)
        data = await roots.search(arguments.path, find, hits=arguments.max_hits, stopped=until_stopped(context))
        if isinstance(find, _Matching) and find.long and isinstance(data, dict):
            skipped = data.get("skipped")
            told: JsonValue = {**(skipped if isinstance(skipped, dict) else {}), "long_lines": find.long}
            data = {**data, "skipped": told}
        count = count_of(data, "hits")
        what = plural(count, "hit") if count else "no hits"
        return success(f"{what} in `{roots.display_path(arguments.path)}`", data)


@dataclass(slots=True)
class _Matching:
    """Returns the place where a line matches a pattern, or None. ``long``: the number of lines searched only at the
    start.
    """

    pattern: LinearPattern
    long: int = 0

    def __call__(self, line: str) -> int | None:
        found = next(iter(self.pattern.finditer(line[:MAX_MATCHED])), None)
        if len(line) <= MAX_MATCHED:
            return None if found is None else found.span()[0]
        touches_end = found is not None and found.span()[1] == MAX_MATCHED
        if found is not None and not touches_end:
            return found.span()[0]
        self.long += 1
        return None


def finder(wanted: FileSearch) -> Callable[[str], int | None]:
    """Return a search for the query in a line: it returns the position or None. Raises ToolFailure for a bad
    pattern.
    """
    if wanted.regex:
        try:
            pattern = compile_linear(f"(?i){wanted.query}" if wanted.ignore_case else wanted.query)
        except ValueError:
            raise ToolFailure(_NO_PATTERN, code="bad-pattern") from None
        return _Matching(pattern)
    if wanted.ignore_case:
        folded = wanted.query.casefold()
        return lambda line: _position(line.casefold().find(folded))
    return lambda line: _position(line.find(wanted.query))


def _position(at: int) -> int | None:
    return None if at < 0 else at
