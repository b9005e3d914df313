"""JSON that somebody else wrote, read strictly, with the place of what is wrong."""

from __future__ import annotations

import json
import math
from typing import Any

from gatewright.base.errors import JsonRefused, WorkspaceError

_SHOWN = 80


def parse_json(content: bytes, what: str) -> object:
    """The one JSON value in ``content``; ``what`` names it in messages. Raises WorkspaceError, nothing else.

    Refused beside bad JSON: the same key twice in an object, numbers that are none, nesting that nobody can walk.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WorkspaceError(f"{what} is not UTF-8 at byte {error.start}") from None
    try:
        return json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        said = error.msg.removesuffix(" at")
        raise WorkspaceError(f"{what} is not JSON: {said} at {where}") from None
    except JsonRefused as error:
        raise WorkspaceError(f"{what} is not usable JSON: {error}") from None
    except RecursionError:
        raise WorkspaceError(f"{what} is nested too deeply") from None
    except ValueError:
        raise WorkspaceError(f"{what} is not usable JSON: an integer has too many digits") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise JsonRefused("duplicate-key", f"an object has the key `{key[:_SHOWN]}` twice")
        table[key] = value
    return table


def _constant(name: str) -> float:
    raise JsonRefused("not-finite", f"{name} is no JSON number")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise JsonRefused("not-finite", f"the number `{text[:_SHOWN]}` is too large")
    return number
