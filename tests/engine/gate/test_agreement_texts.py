"""Real tools as a model is sent them: no text names what is hidden, and no text is left in pieces."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.agreement.world import Cell, strangers
from tests.engine.schema.test_corpora import NOT_NAMES, bearers, names_in, texts

PARTS = 3
RAGGED = re.compile(r",\s*[,.;)]|\(\s*\)|\(\s*[,;]|[,;]\s*$|\b(?:and|or)\s*[.,;)]|:\s*\.")


@pytest.fixture(scope="module", params=range(PARTS))
def cells(corpora: Path, request: pytest.FixtureRequest) -> list[Cell]:
    """Every single operation, all but one, and some at random, of every tool with operations."""
    part: int = request.param
    known = [stranger for stranger in list(strangers(corpora))[part::PARTS] if stranger.tool.has_operations]
    found = [cell for stranger in known for cell in stranger.cells]
    return [cell for cell in found if len(cell.limit.shown) < len(cell.tool.operations) and not cell.is_hidden]


def test_nothing_that_a_model_is_sent_names_a_hidden_operation(cells: list[Cell]) -> None:
    leaks: list[str] = []
    for cell in cells:
        assert cell.found is not None
        hidden = frozenset(cell.found.names) - cell.limit.shown
        body: dict[str, Any] = cell.rendered("mcp")
        schema, description = body["inputSchema"], body.get("description", "")
        borne = bearers(schema, cell.limit.shown, cell.found.places[0][-1])
        usage = cell.gate.view(cell.agent_id).usage_rules
        for place, text in [*texts(schema), ("description", description), ("usage", usage)]:
            if not place.startswith(NOT_NAMES) and (named := names_in(text, hidden, borne)):
                leaks.append(f"{cell.name} {place}: {named}")
    assert leaks == []


def test_every_text_that_a_model_is_sent_is_whole(cells: list[Cell]) -> None:
    """A description is empty only where each of its author's sentences names something hidden: none is made up."""
    ragged: list[str] = []
    empty = 0
    spared: list[str] = []
    for cell in cells:
        tool = cell.tool
        originals = {text for _, text in texts(tool.input_schema())} | {tool.description}
        body: dict[str, Any] = cell.rendered("mcp")
        for place, text in [*texts(body["inputSchema"]), ("description", body.get("description", ""))]:
            if not place.endswith("description") or text in originals:
                continue
            marks = [match.group() for match in RAGGED.finditer(text)]
            if any(not any(mark in original for original in originals) for mark in marks):
                ragged.append(f"{cell.name} {place}: {text[-160:]}")
            if not re.search(r"\w", text):
                empty += 1
                if text or place != "description" or (spared := sentences_without_hidden(cell, body)):
                    ragged.append(f"{cell.name} {place}: {text!r} is left, not {spared}")
    assert ragged == []
    assert empty < len(cells) / 20


def sentences_without_hidden(cell: Cell, body: dict[str, Any]) -> list[str]:
    """The sentences of the tool's own description that could have stayed."""
    assert cell.found is not None
    hidden = frozenset(cell.found.names) - cell.limit.shown
    borne = bearers(body["inputSchema"], cell.limit.shown, cell.found.places[0][-1])
    sentences = re.split(r"(?<=[.!?])\s+|\n\s*\n|: ", cell.tool.description)
    return [one for one in sentences if re.search(r"\w", one) and not names_in(one, hidden, borne)]
