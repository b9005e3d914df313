"""The values given to foreign servers, above all credentials, removed from everything that they say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.scrub import MARKER

LEAST_SECRET = 8
"""Shortest value to remove: shorter ones occur in too many texts by chance."""


class Secrets:
    """The values that one server got in all its lives. It may repeat them plainly, in JSON or in a URL.

    ``least``: the characters of the shortest value to remove.
    """

    def __init__(self, values: Iterable[str] = (), *, least: int = LEAST_SECRET) -> None:
        self._least = least
        self._values: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Add values, and the part of each behind a word such as `Bearer`."""
        found = {part for value in values for part in (value.strip(), value.strip().rpartition(" ")[2])}
        for part in found:
            if len(part) >= self._least:
                in_json = (json.dumps(part, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
                self._values |= {part, quote(part), quote(part, ""), *in_json}
        longest_first = sorted(self._values, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def out_of(self, text: str) -> str:
        """Return ``text`` without the values."""
        return text if self._pattern is None else self._pattern.sub(MARKER, text)

    def out_of_value(self, value: JsonValue) -> JsonValue:
        """Return a value without them in any of its texts and numbers."""
        if isinstance(value, str):
            return self.out_of(value)
        if isinstance(value, list):
            return [self.out_of_value(item) for item in value]
        if isinstance(value, dict):
            return {self.out_of(key): self.out_of_value(item) for key, item in value.items()}
        return MARKER if str(value) in self._values else value
