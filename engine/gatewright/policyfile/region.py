"""Which stretch of a policy file holds the tables of one agent and nothing else. It reads no values.

A stretch begins behind the last statement before the first of its headers and ends at the next header, so blank lines
and comments between two agents belong to both. An agent that also stands elsewhere, in dotted keys or inside an inline
table, has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from gatewright.base.report import RawPath
from gatewright.policyfile.scan import Section, Span, key_of, scan

AGENTS = "agents"
_HEADER = re.compile(
    r"^[ \t]*\[\[?[ \t]*([A-Za-z0-9_-]+)(?:[ \t]*\.[ \t]*([A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'))?",
    re.MULTILINE,
)
_BRACKET = re.compile(r"^[ \t]*\[", re.MULTILINE)
_ON_TOP = re.compile(rf"^[ \t]*[\"']?{AGENTS}[\"']?[ \t]*[.=]", re.MULTILINE)

Mark = tuple[int, int, "str | None"]
"""A header: where its stretch would begin, where its own line begins, and the agent that it is of."""


def regions_of(text: str, top_keys: Iterable[str]) -> dict[str, Span]:
    """The stretch of each agent that has one, in a text that is valid TOML and has no tables but ``top_keys``."""
    marks = _plain_marks(text, frozenset(top_keys))
    elsewhere: frozenset[str] = frozenset()
    if marks is None:
        sections = scan(text).sections
        marks, elsewhere = list[Mark](), frozenset(_dotted(sections))
        for before, section in pairwise(sections):
            end = text.find("\n", before.end)
            is_top = not before.segments and not before.statements
            behind = before.start if is_top else len(text) if end < 0 else end + 1
            marks.append((behind, text.rfind("\n", 0, section.start) + 1, agent_at(section.path)))
    found: dict[str, Span] = {}
    torn: set[str] = set(elsewhere)
    held: str | None = None
    for (start, _, agent_id), (_, line, _) in pairwise([*marks, (len(text), len(text), None)]):
        if agent_id is not None and agent_id != held and agent_id in found:
            torn.add(agent_id)
        if agent_id is not None:
            found[agent_id] = (found[agent_id][0] if agent_id in found else start, line)
        held = agent_id
    return {agent_id: span for agent_id, span in found.items() if agent_id not in torn}


def _plain_marks(text: str, top_keys: frozenset[str]) -> list[Mark] | None:
    """The headers, where lines alone tell them: no text goes over lines, and no list holds what looks like a header.

    A bare word that is the name of a table is no value, so behind a bracket at the start of a line it is a header.
    """
    if '"""' in text or "'''" in text:
        return None
    found: list[Mark] = []
    for bracket in _BRACKET.finditer(text):
        header = _HEADER.match(text, bracket.start())
        if header is None or header[1] not in top_keys or (header[1] == AGENTS and header[2] is None):
            return None
        agent_id = key_of(header[2]) if header[1] == AGENTS else None
        above = bracket.start()
        while above > 0:  # the blank lines and comments directly above belong to it too
            line = text.rfind("\n", 0, above - 1) + 1
            stripped = text[line:above].lstrip(" \t\r\n\ufeff")
            if stripped and stripped[0] != "#":
                break
            above = line
        found.append((above, bracket.start(), agent_id))
    return None if not found or _ON_TOP.search(text, 0, found[0][1]) else found


def agent_at(path: RawPath) -> str | None:
    """The agent that the part of the policy at a path is of."""
    match path:
        case (str(first), str(agent_id), *_) if first == AGENTS:
            return agent_id
        case _:
            return None


def _dotted(sections: Sequence[Section]) -> Iterator[str]:
    """The agents that stand in statements of tables above them."""
    for section in sections:
        if section.path in {(), (AGENTS,)}:
            for statement in section.statements:
                path = (*section.path, *statement.keys)
                if path[0] == AGENTS and len(path) > 1:
                    yield str(path[1])
