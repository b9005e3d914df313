"""Filtering the tools of real servers: nothing hidden can be called, nothing hidden is named."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from gatewright.schema import check_schema

NOT_NAMES = ("/$schema", "/$ref", "/$id")


def rows(corpora: Path, name: str) -> list[dict[str, Any]]:
    return json.loads((corpora / name).read_text(encoding="utf-8"))


def texts(value: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from texts(item, f"{pointer}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            yield from texts(item, f"{pointer}/{index}")


def bearers(schema: Any, allowed: frozenset[str], field: str) -> set[str]:
    """Names that something allowed bears: parameters at any depth, other parameters' legal values, the operations."""
    found = set(allowed)
    stack: list[tuple[str, Any]] = [("", schema)]
    while stack:
        name, node = stack.pop()
        if isinstance(node, list):
            stack.extend((name, item) for item in cast("list[Any]", node))
        elif isinstance(node, dict):
            table = cast("dict[str, Any]", node)
            found |= set(table.get("properties", {}))
            if name != field:
                found |= {value for value in table.get("enum", []) if isinstance(value, str)}
                found |= {value for value in (table.get("const"), table.get("default")) if isinstance(value, str)}
            stack.extend(table.items())
    return found


def names_in(text: str, hidden: frozenset[str], borne: set[str]) -> list[str]:
    """Hidden names that stand in ``text`` as whole tokens, whatever their case."""
    for compound in sorted((name for name in borne if not name.isidentifier()), key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(compound)}(?![\w-])", "", text)
    mentioned = [name for name in hidden - borne if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)]
    exact = {name for name in mentioned if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)}
    return [name for name in mentioned if name in exact or not _is_borne_in_other_case(name, text, borne)]


def _is_borne_in_other_case(name: str, text: str, borne: set[str]) -> bool:
    return all(match.group() in borne for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE))


def subsets(names: tuple[str, ...]) -> list[frozenset[str]]:
    every = [frozenset({name}) for name in names] + [frozenset(names) - {name} for name in names]
    return [kept for kept in dict.fromkeys(every) if kept and kept != frozenset(names)]


def test_every_listed_tool_can_be_checked_or_says_why_not(corpora: Path) -> None:
    refused = {row["id"]: problems[0].message for row in rows(corpora, "mcp_tools.json")
               if (problems := check_schema(row["tool"]["inputSchema"]))}  # fmt: skip
    assert all("linear time" in message for message in refused.values()), refused
    assert len(refused) < 5
