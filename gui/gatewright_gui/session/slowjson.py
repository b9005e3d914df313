"""JSON read in plain Python: slower, but it lets other threads have their turn. It does not know what the text is.

The fast reader of the standard library keeps the interpreter to itself until it has read everything, so that a window
stands still however deep in a thread it is called.
"""

import json
from json import decoder, scanner
from typing import Any


class _SlowDecoder(json.JSONDecoder):
    """As the standard one, with the parts of it that are written in Python."""

    def __init__(self) -> None:
        super().__init__()
        parts: Any = self
        parts.parse_object, parts.parse_array = decoder.JSONObject, decoder.JSONArray  # type: ignore[attr-defined]
        parts.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]


def slow_value(text: str) -> Any:
    """The value of a JSON text. Raises ValueError where it is none, or nested too deeply."""
    try:
        return _SlowDecoder().decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
