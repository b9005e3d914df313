"""Copies of JSON values, so that what was checked and what is handed out are never one object. It checks nothing."""

from __future__ import annotations

from typing import Any

_PLAIN = frozenset({str, int, float, bool, type(None)})
_OBJECT: Any = dict
_ARRAY: Any = list


def copied(value: Any) -> Any:
    """The value with objects and arrays of its own; the depth is the caller's to bound.

    Subclasses become what they derive from, without asking them: nobody's own methods run in the gate.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, dict):
        return {
            key if type(key) is str else _plain(key): item if type(item) in _PLAIN else copied(item)
            for key, item in _OBJECT.items(value)
        }
    if isinstance(value, list):
        return [item if type(item) in _PLAIN else copied(item) for item in _ARRAY.__iter__(value)]
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__float__(value)
    return int.__int__(value) if isinstance(value, int) and not isinstance(value, bool) else value
