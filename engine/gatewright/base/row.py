"""Reads one TOML table: typed fields, findings for what does not fit, and the JSON Schema of its values.

The tables of `policyfile/table.py` and the kinds of rules and capabilities build their schemas with it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TypeAlias, TypeVar, cast

from gatewright.base.amount import MAX_BYTES, parse_duration, parse_moment, parse_size
from gatewright.base.errors import JsonRefused, RawPath, Report, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, check_object
from gatewright.base.printable import is_visible

Raw = dict[str, object]
Option = TypeVar("Option", bound=str)
MAX_INT = 2**63 - 1


@frozen
class Row:
    """A table, its path in the file and the report for its faults. Every getter returns a default on a fault."""

    raw: Raw
    path: RawPath
    report: Report

    def at(self, *more: str | int) -> RawPath:
        """Return the path of a part of the table."""
        return (*self.path, *more)

    def fault(self, key: str | int, code: str, message: str, near: str | None = None) -> None:
        """Report an error at the value of ``key``."""
        self.report.error(self.at(key), code, message, near=near)

    def only(self, keys: Collection[str], what: str) -> None:
        """Report every key that is not among ``keys``."""
        for key in self.raw:
            if key not in keys:
                near = self.report.near(key, keys)
                self.report.error(
                    self.at(key), "unknown-key", f"unknown key {shown(key)} in {what}", near=near, at_value=False
                )

    def require(self, key: str, what: str) -> bool:
        """Tell whether the table has ``key``, and report an error if not."""
        if key in self.raw:
            return True
        self.report.error(self.path, "missing-key", f"{what} needs `{key}`", at_value=False)
        return False

    def text(self, key: str, *, filled: bool = False) -> str | None:
        """Return a text, or None if absent or wrong; ``filled`` refuses blank text and control characters."""
        if key not in self.raw:
            return None
        value = self.raw[key]
        if not isinstance(value, str):
            self.wrong(key, "text", value)
            return None
        if filled and (why := name_error(value)):
            self.fault(key, "bad-value", f"`{key}` {why}")
            return None
        return value

    def integer(self, key: str, low: int | None = None, high: int = MAX_INT) -> int | None:
        """Return a whole number within the limits, or None."""
        if key not in self.raw:
            return None
        return whole_number(self.raw[key], self.at(key), self.report, f"`{key}`", low, high)

    def number(self, key: str, low: float, high: float) -> float | None:
        """Return a number within the limits, or None."""
        value = self.raw.get(key)
        if key not in self.raw:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong(key, "a number", value)
        elif not low <= value <= high:
            self.fault(key, "bad-value", f"`{key}` is a number from {low:g} to {high:g}")
        else:
            return float(value)
        return None

    def duration(self, key: str) -> float | None:
        """Return seconds, or None."""
        return seconds_of(self.raw[key], self.at(key), self.report) if key in self.raw else None

    def moment(self, key: str) -> float | None:
        """Return seconds since 1970, or None."""
        try:
            return parse_moment(self.raw[key]) if key in self.raw else None
        except ValueError as error:
            self.report.error(self.at(key), "bad-value", f"`{key}`: {error}")
            return None

    def size(self, key: str) -> int | None:
        """Return bytes, or None."""
        return size_of(self.raw[key], self.at(key), self.report) if key in self.raw else None

    def flag(self, key: str, *, otherwise: bool = False) -> bool:
        """Return true or false; ``otherwise`` if absent or wrong."""
        value = self.raw.get(key, otherwise)
        if isinstance(value, bool):
            return value
        self.wrong(key, "true or false", value)
        return otherwise

    def choice(self, key: str, options: Mapping[str, Option]) -> Option | None:
        """Return one of the named options, or None."""
        return option(self.raw[key], self.at(key), self.report, f"`{key}`", options) if key in self.raw else None

    def table(self, key: str) -> Row | None:
        """Return the table under ``key``, or None."""
        if key not in self.raw:
            return None
        value = self.raw[key]
        if isinstance(value, dict):
            return Row(cast("Raw", value), self.at(key), self.report)
        self.wrong(key, "a table", value)
        return None

    def items(self, key: str) -> list[object]:
        """Return the list under ``key``, empty if absent or wrong."""
        if key not in self.raw:
            return []
        value = self.raw[key]
        if isinstance(value, list):
            return cast("list[object]", value)
        self.wrong(key, "a list", value)
        return []

    def rows(self, key: str) -> list[Row]:
        """Return the tables of the list under ``key``, and report other elements."""
        found: list[Row] = []
        for index, value in enumerate(self.items(key)):
            if isinstance(value, dict):
                found.append(Row(cast("Raw", value), self.at(key, index), self.report))
            else:
                self.report.error(
                    self.at(key, index), "wrong-type", f"an entry of `{key}` must be a table, not {kind_of(value)}"
                )
        return found

    def texts(self, key: str) -> list[tuple[int, str]]:
        """Return the texts of the list under ``key`` with their indexes, and report other elements."""
        return texts_of(self.items(key), self.at(key), self.report, f"`{key}`")

    def words(self, key: str) -> tuple[str, ...] | None:
        """Return the list of texts under ``key``; None if absent or wrong."""
        value = self.raw.get(key)
        if isinstance(value, list):
            return words_of(cast("list[object]", value), self.at(key), self.report, f"`{key}`")
        if key in self.raw:
            self.wrong(key, "a list", value)
        return None

    def wrong(self, key: str, wanted: str, value: object) -> None:
        """Report a wrong type at ``key``."""
        self.fault(key, "wrong-type", f"`{key}` must be {wanted}, not {kind_of(value)}")


def texts_of(values: list[object], path: RawPath, report: Report, what: str) -> list[tuple[int, str]]:
    """Return the texts among ``values`` with their indexes, and report other elements."""
    found: list[tuple[int, str]] = []
    for index, value in enumerate(values):
        if isinstance(value, str):
            found.append((index, value))
        else:
            report.error((*path, index), "wrong-type", f"an entry of {what} must be text, not {kind_of(value)}")
    return found


def words_of(values: list[object], path: RawPath, report: Report, what: str) -> tuple[str, ...] | None:
    """Return ``values`` if all are texts; None after an error."""
    found = tuple(text for _, text in texts_of(values, path, report, what))
    return found if len(found) == len(values) else None


def whole_number(
    value: object, path: RawPath, report: Report, what: str, low: int | None = None, high: int = MAX_INT
) -> int | None:
    """Return ``value`` if it is a whole number within the limits; else None."""
    if type(value) is not int:
        report.error(path, "wrong-type", f"{what} must be a whole number, not {kind_of(value)}")
        return None
    if low is not None and not low <= value <= high:
        limits = f"{low:,} or more" if high == MAX_INT and value < low else f"{low:,} to {high:,}"
        report.error(path, "bad-value", f"{what} must be {limits}")
        return None
    return value


def seconds_of(value: object, path: RawPath, report: Report) -> float | None:
    """Return the seconds of a duration, or None."""
    try:
        return parse_duration(value)
    except ValueError as error:
        report.error(path, "bad-duration", str(error))
    except OverflowError:
        report.error(path, "bad-duration", "a duration may not be longer than ten years")
    return None


def size_of(value: object, path: RawPath, report: Report) -> int | None:
    """Return the bytes of a size, or None."""
    try:
        return parse_size(value)
    except ValueError as error:
        report.error(path, "bad-value", str(error))
        return None


def option(value: object, path: RawPath, report: Report, what: str, options: Mapping[str, Option]) -> Option | None:
    """Return the option that ``value`` spells, or None."""
    if not isinstance(value, str):
        report.error(path, "wrong-type", f"{what} must be text, not {kind_of(value)}")
        return None
    if value in options:
        return options[value]
    listed = ", ".join(f"`{name}`" for name in options)
    message = f"{what} is {listed}, not {shown(value)}"
    report.error(path, "unknown-variant", message, near=report.near(value, options))
    return None


def json_table(value: object, path: RawPath, report: Report) -> dict[str, JsonValue] | None:
    """Return a table that is a JSON object within the limits, or None after an error."""
    try:
        return check_object(value)
    except JsonRefused as refused:
        report.error(path, "bad-value", f"this table must be valid JSON: {refused}")
        return None


def name_error(word: str) -> str | None:
    """Explain why ``word`` may not be an id or a name; None if it may."""
    if not word.strip():
        return "may not be blank"
    if word != word.strip():
        return "may not begin or end with a space"
    if not is_visible(word):
        return "may not hold characters that cannot be seen"
    return None


def kind_of(value: object) -> str:
    """Name the type of a TOML value in words."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, float):
        return "a number" if math.isfinite(value) else "inf or nan"
    for kind, words in ((str, "text"), (int, "a whole number"), (list, "a list"), (dict, "a table")):
        if isinstance(value, kind):
            return words
    return "a date or time"


Shape: TypeAlias = "dict[str, JsonValue]"

TEXT: Shape = {"type": "string"}
NAME: Shape = {"type": "string", "pattern": r"\S"}
FLAG: Shape = {"type": "boolean"}
JSON_TABLE: Shape = {"type": "object"}
JSON_SCHEMA: Shape = {"type": ["object", "boolean"]}
DURATION: Shape = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^\d{1,12}(\.\d{1,9})?\s?(ms|s|m|h|d)$"},
        {
            "type": "object",
            "properties": {
                "secs": {"type": "integer", "minimum": 0},
                "nanos": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
            },
            "additionalProperties": False,
            "minProperties": 1,
        },
    ]
}
MOMENT: Shape = {"type": "string", "format": "date-time"}
SIZE: Shape = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MAX_BYTES},
        {"type": "string", "pattern": r"^\d{1,12}(\.\d{1,6})? ?([Bb]|[KMGkmg][Ii]?[Bb])$"},
    ]
}


def whole(least: int | None = None, most: int | None = None) -> Shape:
    """Return the shape of a whole number within the limits."""
    limits = {"minimum": least, "maximum": most}
    return {"type": "integer", **{key: limit for key, limit in limits.items() if limit is not None}}


def one_of(options: Collection[str]) -> Shape:
    """Return the shape of a choice among texts."""
    return {"enum": [*options]}


def several(entry: Shape, least: int = 0, most: int | None = None) -> Shape:
    """Return the shape of a list of such entries."""
    shape: Shape = {"type": "array", "items": entry}
    if least:
        shape["minItems"] = least
    return shape if most is None else {**shape, "maxItems": most}


def table(keys: Mapping[str, Shape], *required: str) -> Shape:
    """Return the shape of a table with exactly these keys."""
    return {
        "type": "object",
        "properties": {**keys},
        "additionalProperties": False,
        **({"required": [*required]} if required else {}),
    }


def by_name(entry: Shape) -> Shape:
    """Return the shape of a table of such entries under names that the author chooses."""
    return {"type": "object", "additionalProperties": entry}


def describe(shape: Shape, description: str, default: JsonValue = None) -> Shape:
    """Add the description that an editor shows, and the default of the key."""
    return {**shape, "description": description, **({} if default is None else {"default": default})}
