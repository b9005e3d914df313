"""A small part of a large value, so that finding its errors stays cheap. It knows no schema."""

from __future__ import annotations

from gatewright.schema.walk import as_list, as_object

MAX_NODES = 2_000
MAX_ITEMS = 50


def is_large(value: object) -> bool:
    """Whether ``value`` holds more than `MAX_NODES` values."""
    stack, seen = [value], 0
    while stack:
        current = stack.pop()
        table, array = as_object(current), as_list(current)
        inner = list(table.values()) if table is not None else array or []
        seen += len(inner)
        if seen > MAX_NODES:
            return True
        stack.extend(inner)
    return False


def sampled(value: object) -> object:
    """``value`` with the first items of each long list and object only, at most `MAX_NODES` values in all."""
    return _part(value, [MAX_NODES])


def _part(value: object, budget: list[int]) -> object:
    table, array = as_object(value), as_list(value)
    if table is not None:
        result: dict[str, object] = {}
        for key, item in table.items():
            if budget[0] <= 0:
                break
            budget[0] -= 1
            result[key] = _part(item, budget)
        return result
    if array is not None:
        items: list[object] = []
        for item in array[:MAX_ITEMS]:
            if budget[0] <= 0:
                break
            budget[0] -= 1
            items.append(_part(item, budget))
        return items
    return value
