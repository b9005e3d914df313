"""Real tools in every provider's spelling: nothing it refuses, and calls that mean the same on the way back."""

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gatewright.schema import FORMATS, ToolListing, check_schema, discover_operations, filter_operations
from gatewright.schema.walk import walk
from tests.engine.schema.provider_calls import calls_for, disagreements
from tests.engine.schema.provider_rules import refusals

EVERY_SHAPE = 2


@cache
def listings(corpora: Path) -> list[ToolListing]:
    """Every tool of the corpora that can be checked at all."""
    rows = json.loads((corpora / "mcp_tools.json").read_text("utf-8"))
    tools = [(row["tool"]["name"], row["tool"].get("description") or "", row["tool"]["inputSchema"]) for row in rows]
    shapes = json.loads((corpora / "library_schema_shapes.json").read_text("utf-8"))
    tools += [(f"shape {index}", row["model"], row["schema"]) for index, row in enumerate(shapes)]
    return [ToolListing(*tool) for tool in tools if not check_schema(tool[2])]


def by_shape(known: list[ToolListing]) -> list[ToolListing]:
    """A few of each shape: the keywords and types that a schema uses."""
    taken: dict[frozenset[Any], list[ToolListing]] = {}
    for listing in known:
        shape = frozenset((keyword, str(node.get("type"))) for _, node in walk(listing.schema) for keyword in node)
        taken.setdefault(shape, []).append(listing)
    return [listing for same in taken.values() for listing in same[:EVERY_SHAPE]]


@cache
def filtered(corpora: Path) -> list[ToolListing]:
    """Tools with several operations, as an agent sees them that has one of them, or all but one."""
    made: list[ToolListing] = []
    for listing in listings(corpora):
        found = discover_operations(listing.schema)
        names = found.names if found is not None else ()
        for allowed in (names[:1], names[1:]) if len(names) > 1 else ():
            schema = filter_operations(listing.schema, allowed)
            if schema is not None:
                made.append(ToolListing(listing.name, listing.description, schema))
    return made


@pytest.mark.parametrize("name", FORMATS)
def test_every_tool_is_sent_as_the_provider_takes_it_or_a_lint_says_it_is_refused(corpora: Path, name: str) -> None:
    form, wrong, told = FORMATS[name], list[str](), 0
    for listing in listings(corpora):
        if any(lint.level == "refused" for lint in form.lints(listing)):
            told += 1
        elif found := refusals(name, form.render(listing)):
            wrong.append(f"{listing.name}: {found[0]}")
    assert wrong == []
    assert told <= 3


@pytest.mark.parametrize("name", FORMATS)
def test_calls_to_real_tools_mean_the_same_in_the_providers_schema_and_back(corpora: Path, name: str) -> None:
    known = by_shape(listings(corpora))
    assert len(known) > 150
    found: list[str] = []
    for index, listing in enumerate(known):
        rng = random.Random(index)
        found += disagreements(FORMATS[name], listing, calls_for(listing.schema, rng, 4), rng)
    assert found == []


@pytest.mark.parametrize("name", FORMATS)
def test_calls_to_tools_with_hidden_operations_mean_the_same_and_nothing_is_refused(corpora: Path, name: str) -> None:
    found: list[str] = []
    for index, listing in enumerate(filtered(corpora)):
        rng = random.Random(index)
        found += disagreements(FORMATS[name], listing, calls_for(listing.schema, rng, 3), rng)
        if not any(lint.level == "refused" for lint in FORMATS[name].lints(listing)):
            found += refusals(name, FORMATS[name].render(listing))
    assert found == []


@pytest.mark.parametrize("name", FORMATS)
def test_the_shown_schema_is_not_touched(corpora: Path, name: str) -> None:
    for listing in by_shape(listings(corpora)):
        before = json.dumps(listing.schema)
        FORMATS[name].render(listing)
        assert json.dumps(listing.schema) == before


def test_most_closed_tools_go_out_in_strict_mode(corpora: Path) -> None:
    known = listings(corpora)
    strict = [listing for listing in known if FORMATS["openai"].render(listing)["function"].get("strict")]
    assert len(strict) > 400
    for listing in known:
        codes = {lint.code for lint in FORMATS["openai"].lints(listing)}
        assert ("not-strict" in codes) == (listing not in strict)
