"""Lines of indented JSON text: where a part stands in it. It does not write the text."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

SCHEMA_KEYS = (("inputSchema",), ("input_schema",), ("parameters",), ("function", "parameters"), ("schema",))
"""Where providers put the schema in the JSON of a tool."""


def line_of(value: object, steps: Sequence[str]) -> int:
    """The line (from 1) at which the part at `steps` begins in `json.dumps(value, indent=2)`; of the nearest part
    around it where there is none such.
    """
    line = 1
    for step in steps:
        parts = _parts(value)
        if step not in parts:
            break
        for key, part in parts.items():
            if key == step:
                line, value = line + 1, part
                break
            line += _height(part)
    return line


def steps_of(pointer: str) -> tuple[str, ...]:
    """The steps of a JSON pointer."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def schema_steps(tool: Mapping[str, Any]) -> tuple[str, ...]:
    """The way to the schema in a tool's JSON; empty where it has none."""
    return next((steps for steps in SCHEMA_KEYS if _has(tool, steps)), ())


def _has(value: object, steps: Sequence[str]) -> bool:
    for step in steps:
        parts = _parts(value)
        if step not in parts:
            return False
        value = parts[step]
    return True


def _parts(value: object) -> dict[str, object]:
    if isinstance(value, Mapping):
        return {str(key): part for key, part in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return {str(index): part for index, part in enumerate(cast("Sequence[object]", value))}
    return {}


def _height(value: object) -> int:
    parts = _parts(value)
    return 2 + sum(map(_height, parts.values())) if parts else 1
