"""Where in the arguments of a call an operation stands: `op`, `request.operation`, `steps[].op`, `commands{}.op`.

It knows plain JSON values, no schemas and no names of operations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, cast

from gatewright.schema.walk import as_list, as_object

Steps = tuple[str, ...]
EACH: Final = "[]"
"""The step into every element of an array."""
EACH_MEMBER: Final = "{}"
"""The step into every member of a map, whatever its key."""
ANY_KEY: Final = "a"
"""The key of such a member in a call that somebody makes up."""


class Missing:
    """What `values_at` gives where nothing is: `MISSING` for the field, `ABSENT` for what would hold it."""


class Unreadable:
    """What `values_at` gives where something stands that cannot name an operation."""


MISSING: Final = Missing()
ABSENT: Final = Missing()
UNREADABLE: Final = Unreadable()


def path_text(steps: Steps) -> str:
    """The steps as one dotted text."""
    return ".".join(steps).replace(f".{EACH}", EACH).replace(f".{EACH_MEMBER}", EACH_MEMBER)


def steps_of(text: str) -> Steps:
    """The steps that a dotted text names; a name with dots of its own cannot be written so."""
    return tuple(step for part in text.split(".") for step in re.findall(r"\[\]|\{\}|.+?(?=\[\]|\{\}|$)", part))


def holds_batch(steps: Steps) -> bool:
    """Whether an array or a map comes on the way, so that there may be no operation at all."""
    return EACH in steps or EACH_MEMBER in steps


def values_at(value: object, steps: Steps) -> Iterator[str | Missing | Unreadable]:
    """What the arguments say there: every text, a mark for what is left out or null, one for what is no text.

    Something else where a container is expected is another way to use the tool and says nothing; but an element of a
    batch must be what the batch holds.
    """
    if not steps:
        yield value if isinstance(value, str) else MISSING if value is None else UNREADABLE
        return
    step, rest = steps[0], steps[1:]
    if step == EACH:
        yield from _each(as_list(value) or [], rest)
        return
    table = as_object(value)
    if table is None:
        return
    if step == EACH_MEMBER:
        yield from _each(list(table.values()), rest)
        return
    inner = table.get(step)
    if inner is None and rest:
        yield from () if holds_batch(rest) else (ABSENT,)
        return
    yield from values_at(inner, rest)


def _each(items: list[object], rest: Steps) -> Iterator[str | Missing | Unreadable]:
    wanted = str if not rest else list if rest[0] == EACH else dict
    for item in items:
        fits = isinstance(item, wanted)
        yield from values_at(cast("object", item), rest) if fits else (UNREADABLE,)
