"""Where one was in a workspace when it was left, also as a line of text."""

import json
from dataclasses import astuple, dataclass
from typing import cast


@dataclass(frozen=True, slots=True)
class LastPlace:
    """Key of a page, and what was chosen there; empty: nothing."""

    page: str = ""
    agent_id: str = ""
    tool: str = ""
    operation: str = ""


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
    texts = [part for part in parts if isinstance(part, str)]
    if len(parts) != 5 or len(texts) != 5:
        return None
    return texts[0], LastPlace(*texts[1:])
