"""Work on large results, done beside the event loop.

A result of some tens of kilobytes is dealt with faster than a thread can be started.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from gatewright.base.thread import in_own_thread, unbroken

P = ParamSpec("P")
T = TypeVar("T")

LARGE = 64 * 1024
_VALUE = 32


def is_large(value: object) -> bool:
    """Whether working through ``value`` would hold up the event loop noticeably; it stops looking when it knows."""
    if isinstance(value, str | bytes):
        return len(value) >= LARGE
    left, stack = LARGE, [value]
    while stack and left > 0:
        one = stack.pop()
        left -= _VALUE
        if isinstance(one, str | bytes):
            left -= len(one)
        elif isinstance(one, dict):
            left -= _VALUE * len(cast("dict[str, object]", one))
            if left > 0:
                stack += cast("dict[str, object]", one).values()
        elif isinstance(one, list):
            left -= len(cast("list[object]", one))
            if left > 0:
                stack += cast("list[object]", one)
    return left <= 0


async def apart(value: object, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """``function(*args)``: here for a small ``value``, in a thread of its own for a large one."""
    if not is_large(value):
        return function(*args, **kwargs)
    return await unbroken(in_own_thread(function, *args, **kwargs))
