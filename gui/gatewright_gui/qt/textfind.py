"""Where words are in a text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

MAX_HITS = 1000


@dataclass(frozen=True, slots=True)
class Hit:
    """Letters `start` to `end` (code points) of a line (from 0)."""

    line: int
    start: int
    end: int


def find(lines: Sequence[str], wanted: str) -> tuple[Hit, ...]:
    """The places of some words, in capitals or not; the first MAX_HITS, in order."""
    if not wanted:
        return ()
    text = "\n".join(lines)
    hits: list[Hit] = []
    line = begins = 0
    for match in islice(re.finditer(re.escape(wanted), text, re.IGNORECASE), MAX_HITS):
        line += text.count("\n", begins, match.start())
        begins = text.rfind("\n", 0, match.start()) + 1
        hits.append(Hit(line, match.start() - begins, match.end() - begins))
    return tuple(hits)
