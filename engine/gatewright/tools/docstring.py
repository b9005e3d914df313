"""A docstring in Google's style taken apart: its beginning and the sentences under ``Args:``."""

from __future__ import annotations

import inspect
import re
from dataclasses import field

from gatewright.base.frozen import frozen

_SECTION = re.compile(
    r"(args|arguments|parameters|returns?|yields?|raises?|examples?|notes?|attributes|todo|warnings?|see also)\s*:",
    re.IGNORECASE,
)
_ARGUMENTS = frozenset({"args", "arguments", "parameters"})
_ENTRY = re.compile(r"\*{0,2}([A-Za-z_]\w*)\s*(?:\([^)]*\))?\s*:\s*(.*)")


@frozen
class Docstring:
    """``description`` is all before the first section, as paragraphs; ``parameters`` are sentences by name."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict[str, str], hash=False)


def parse_docstring(text: str | None) -> Docstring:
    """The parts of ``text``; lines of a paragraph are joined by spaces."""
    lines = inspect.cleandoc(text or "").split("\n")
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        found = _SECTION.fullmatch(line.rstrip())
        if found:
            sections.append((found[1].lower(), []))
        else:
            sections[-1][1].append(line)
    entries = [entry for name, body in sections if name in _ARGUMENTS for entry in _entries(body)]
    parts = re.split(r"\n{2,}", "\n".join(line.strip() for line in sections[0][1]))
    return Docstring("\n\n".join(" ".join(part.split()) for part in parts if part.strip()), dict(entries))


def _entries(lines: list[str]) -> list[tuple[str, str]]:
    """Each ``name (type): sentence`` with the deeper lines below it."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    shallow = min(indents, default=0)
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        entry = _ENTRY.fullmatch(line.strip())
        if entry and len(line) - len(line.lstrip()) == shallow:
            found.append((entry[1], [entry[2]]))
        elif found:
            found[-1][1].append(line)
    return [(name, " ".join(" ".join(body).split())) for name, body in found]
