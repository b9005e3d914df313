"""Where one was in a workspace when it was left, also as a line of text."""

import json
from dataclasses import astuple, dataclass
from typing import cast


@dataclass(frozen=True, slots=True)
class LastPlace:
    """Key of a page, and what was chosen there; empty: nothing. `closed_groups`: origins of tools."""

    page: str = ""
    agent_id: str = ""
    tool: str = ""
    operation: str = ""
    closed_groups: tuple[str, ...] = ()


def line_of(workspace: str, place: LastPlace) -> str:
    """A place of a workspace as text."""
    return json.dumps([workspace, *astuple(place)], ensure_ascii=False)


def read_line(line: str) -> tuple[str, LastPlace] | None:
    """The workspace and the place; None for what `line_of` did not write."""
    try:
        read: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    parts = cast(list[object], read) if isinstance(read, list) else []
    texts, closed = _texts(parts[:5]), _texts(parts[5] if len(parts) == 6 else [])  # older lines have five parts
    if len(texts) != 5 or len(parts) > 6:
        return None
    workspace, page, agent_id, tool, operation = texts
    return workspace, LastPlace(page, agent_id, tool, operation, tuple(closed))


def _texts(read: object) -> list[str]:
    return [part for part in cast(list[object], read) if isinstance(part, str)] if isinstance(read, list) else []
