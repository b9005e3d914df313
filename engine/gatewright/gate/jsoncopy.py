"""Copies of JSON values, so that what was checked and what is handed out are never one object. It checks nothing."""

from __future__ import annotations

from typing import Any, cast


def copied(value: Any) -> Any:
    """The value with objects and arrays of its own; the depth is the caller's to bound."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [copied(item) for item in cast("list[Any]", value)]
    return value
