"""The scope of a capability as one line: names between commas, or limits such as ``cpu 2 s, memory 64 MiB``.

A name with a comma stands in double quotes. Whatever cannot be read raises EditRefused, which says where.
"""

from __future__ import annotations

import re

from gatewright.base.errors import EditRefused
from gatewright.base.size import format_size, parse_size

_ITEM = re.compile(r'\s*(?:"([^"]*)"|([^,"]*))\s*(?:,|$)')


def listed_words(text: str) -> tuple[str, ...]:
    """The items between commas; an empty text has none."""
    found: list[str] = []
    at = 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            raise EditRefused(f"column {at + 1}: names are separated by commas, one with a comma stands in quotes")
        found.append(item[1] if item[1] is not None else item[2].strip())
        at = item.end()
    return tuple(word for word in found if word)


def listed_limits(text: str, names: tuple[str, ...]) -> dict[str, str]:
    """Value by name; each at most once."""
    found: dict[str, str] = {}
    for part in listed_words(text):
        name, _, value = part.partition(" ")
        if name not in names or not value.strip():
            raise EditRefused(f"`{part}`: say {' or '.join(f'`{one}`' for one in names)} and a value")
        if name in found:
            raise EditRefused(f"`{name}` stands here twice")
        found[name] = value.strip()
    return found


def memory_limit(limits: dict[str, str]) -> int | None:
    """The bytes after `memory`, if it is there."""
    text = limits.get("memory")
    try:
        return None if text is None else parse_size(int(text) if text.isdecimal() else text)
    except ValueError as error:
        raise EditRefused(str(error)) from None


def memory_text(size: int | None) -> str:
    """A limit of memory as it can be typed again; empty for none."""
    return "" if size is None else f"memory {format_size(size)}"
