"""A tool as a person reads it: real line breaks, operations and arguments as rows, and what the model is not sent.

For the worker process. What strangers wrote is indented or behind a mark of ours, so that it passes for nothing else.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from gatewright.workspace.api import OperationFacts, ToolListing, ToolRight
from gatewright_gui.qt.language import tr

SENT, UNSENT = "• ", "− "
"""Before what the model is sent, and what it is not."""
_LONGEST_ROW = 400
_MOST_VALUES = 12
_PARTS = ("properties", "anyOf", "oneOf", "allOf")


def readable_text(listings: "Iterable[ToolListing]", rights: "Mapping[str, ToolRight]") -> str:
    """Several tools below each other."""
    return "\n\n".join("\n".join(_tool(one, rights.get(one.name))) for one in listings) + "\n"


def _tool(listing: "ToolListing", right: "ToolRight | None") -> Iterator[str]:
    yield listing.name
    yield from _indent(listing.description)
    operations = right.facts.operations if right is not None and right.facts.has_operations else ()
    hidden = {row.operation for row in right.operations if row.is_hidden} if right is not None else set[str]()
    is_sent = right is not None and not right.is_hidden
    shown = [one for one in operations if one.name not in hidden or not is_sent]
    if shown:
        yield from ("", tr("Operations"))
        yield from _rows(SENT, ((one.name, one.description) for one in shown))
    arguments = _arguments(listing.schema, frozenset(one.name for one in operations))
    if arguments:
        yield from ("", tr("Arguments"))
        yield from _rows(SENT, arguments.items())
    removed = [one for one in operations if one not in shown]
    if removed:
        yield from ("", tr("Not sent to the model"))
        yield from _rows(UNSENT, ((one.name, one.description) for one in removed))


def _rows(mark: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    held = [(" ".join(name.split()), _line(text)) for name, text in rows]
    wide = min(max((len(name) for name, _ in held), default=0), 20)
    for name, text in held:
        yield f"{mark}{name:<{wide}}  {text}".rstrip()


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_ROW else f"{line[:_LONGEST_ROW]}…"


def _indent(text: str) -> Iterator[str]:
    for line in text.strip().splitlines():
        yield f"  {line.rstrip()}" if line.strip() else ""


def _arguments(schema: object, operations: frozenset[str]) -> dict[str, str]:
    """By name what is said of each: type, whether it is needed, values, description. What chooses one of the operations
    only says so: they are listed with their own words.
    """
    found: dict[str, str] = {}
    if not isinstance(schema, Mapping):
        return found
    node = cast("Mapping[str, Any]", schema)
    needed = node.get("required", ())
    for part in _PARTS:
        held = node.get(part)
        if part == "properties" and isinstance(held, Mapping):
            for name, value in cast("Mapping[str, object]", held).items():
                is_needed = isinstance(needed, list | tuple) and name in needed
                found.setdefault(name, _argument_words(value, operations, is_needed=is_needed))
        elif isinstance(held, list | tuple):
            for branch in cast("Sequence[object]", held):
                found = {**_arguments(branch, operations), **found}
    return found


def _argument_words(value: object, operations: frozenset[str], *, is_needed: bool) -> str:
    node = cast("Mapping[str, Any]", value if isinstance(value, Mapping) else {})
    values = cast("Sequence[object]", node["enum"]) if isinstance(node.get("enum"), list | tuple) else ()
    if len(values) > 1 and all(isinstance(one, str) and one in operations for one in values):
        return ", ".join(filter(None, (tr("needed") if is_needed else "", tr("one of the operations above"))))
    listed = ", ".join(json.dumps(one, ensure_ascii=False, default=str) for one in values[:_MOST_VALUES])
    if len(values) > _MOST_VALUES:
        listed = tr("{values} and {count} more", values=listed, count=f"{len(values) - _MOST_VALUES:,}")
    kind = str(node.get("type", "")) if isinstance(node.get("type"), str) else ""
    words = (kind, tr("needed") if is_needed else "", tr("one of {values}", values=listed) if values else "")
    about = ", ".join(word for word in words if word)
    text = str(node.get("description", "")).strip()
    return f"{about}. {text}" if about and text else about or text


def operation_lines(operations: "Iterable[OperationFacts]", lines: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The lines (from 1) of a tool's text, as JSON or to be read, that are about each of its operations."""
    names = {form: one.name for one in operations for form in (json.dumps(one.name, ensure_ascii=False), one.name)}
    found: dict[str, list[int]] = {}
    for number, line in enumerate(lines, 1):
        words = line.strip().removesuffix(",").removeprefix('"const": ')
        if line.startswith((SENT, UNSENT)):
            words = line[len(SENT) :].partition("  ")[0]
        elif not words.startswith('"'):
            continue
        if words in names:
            found.setdefault(names[words], []).append(number)
    return {name: tuple(places) for name, places in found.items()}
