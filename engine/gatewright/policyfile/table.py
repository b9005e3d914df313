"""Tables of the policy file: a pydantic model describes each; reading, writing and the JSON Schema follow from it.

A field is named like the field of the policy's value; its alias is its key in the file. `Field` holds the words, the
default and the limits. A rule that no field can express, such as one about two keys, is a function beside the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from enum import EnumMeta
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict

from gatewright.base.amount import plain_duration, plain_moment
from gatewright.base.frozen import frozen
from gatewright.base.row import (
    DURATION,
    FLAG,
    JSON_SCHEMA,
    JSON_TABLE,
    MAX_INT,
    MOMENT,
    NAME,
    TEXT,
    Row,
    Shape,
    by_name,
    describe,
    one_of,
    several,
    table,
    whole,
)
from gatewright.policy.observe import MOST_OBSERVE_S
from gatewright.policy.verdict import Mode

Plain = dict[str, object]


class Table(BaseModel):
    """The keys of one table. ``of``: the class of the value that it makes, None if it may make several."""

    model_config = ConfigDict(defer_build=True, arbitrary_types_allowed=True)
    made_of: ClassVar[type[Any] | None]

    def __init_subclass__(cls, *, of: type[Any] | None = None, **config: Any) -> None:
        super().__init_subclass__(**config)
        cls.made_of = of
        if of is not None:
            _TABLES[of] = cls

    @classmethod
    def shape(cls) -> Shape:
        """The JSON Schema of the table."""
        keys = keys_of(cls)
        needed = [key for key, one in keys.items() if one.is_needed]
        return table({key: one.shape for key, one in keys.items()}, *needed)


_TABLES: dict[type, type[Table]] = {}
_LIMITS = ("ge", "le", "min_length", "max_length")


def _same(value: object) -> object:
    return value


@frozen
class Form:
    """The form of a value in the file: its JSON Schema, a reader, and its plain data.

    ``read`` None: the reader of the whole table reads the key, since it needs more than the row. ``table``: the table
    that the value is, or whose rows or entries it holds.
    """

    shape: Callable[[], Shape]
    read: Callable[[Row, str], object] | None = None
    plain: Callable[[Any], object] = _same
    table: type[Table] | None = None


Name = Annotated[str, Form(lambda: NAME, Row.text)]
"""A text that is not blank; the table may restrict it further."""
Id = Annotated[str, Form(lambda: NAME, lambda row, key: row.text(key, filled=True))]
"""A text that is not blank and has no invisible characters."""
Seconds = Annotated[float, Form(lambda: DURATION, Row.duration, plain_duration)]
Moment = Annotated[float, Form(lambda: MOMENT, Row.moment, plain_moment)]
JsonTable = Annotated[Mapping[str, Any], Form(lambda: JSON_TABLE, None, dict)]
When = Annotated[
    Mapping[str, Any] | bool,
    Form(lambda: JSON_SCHEMA, None, lambda when: when if isinstance(when, bool) else dict(when)),
]
"""A JSON Schema as a condition."""


@frozen
class Key:
    """One key of a table. ``name``: the field that it fills; ``usual``: the value if it is absent."""

    name: str
    form: Form
    words: str
    usual: Any
    is_needed: bool

    @property
    def shape(self) -> Shape:
        """Its JSON Schema, with its meaning and its default, unless it is a table."""
        usual: Any = None if isinstance(self.usual, Mapping | None) else self.form.plain(self.usual)
        shape = self.form.shape()
        return describe(shape, self.words, None if usual in ("", {}) else usual) if self.words else shape


@cache
def keys_of(model: type[Table]) -> Mapping[str, Key]:
    """The keys of a table, as the file spells them."""
    found: dict[str, Key] = {}
    for name, field in model.model_fields.items():
        usual = None if field.is_required() else field.get_default(call_default_factory=True)
        form = _form(field.annotation, field.metadata)
        found[field.alias or name] = Key(name, form, field.description or "", usual, field.is_required())
    return found


def read_keys(row: Row, model: type[Table], what: str) -> dict[str, Any]:
    """Return the values of the keys by field; keys that are absent, wrong, or read elsewhere are left out.

    ``what``: the name of the table in findings.
    """
    keys = keys_of(model)
    row.only(keys, what)
    found: dict[str, Any] = {}
    for key, one in keys.items():
        is_there = row.require(key, what) if one.is_needed else key in row.raw
        if is_there and one.form.read is not None and (value := one.form.read(row, key)) is not None:
            found[one.name] = value
    return found


def check_mode(row: Row, found: Mapping[str, Any]) -> None:
    """Report an observed part whose end is missing or too far ahead, and warn of one whose end is past."""
    is_observed, until_s = found.get("mode") is Mode.OBSERVE, found.get("observe_until_s")
    if is_observed and "observe_until" not in row.raw:
        row.fault("mode", "missing-key", '`mode = "observe"` needs `observe_until`, when enforcing begins again')
    elif until_s is not None and not is_observed:
        message = '`observe_until` says nothing without `mode = "observe"`'
        row.report.warning(row.at("observe_until"), "observe-without-effect", message)
    elif until_s is not None and until_s - time.time() > MOST_OBSERVE_S:
        row.fault("observe_until", "bad-value", "nothing is observed for more than 30 days: take an earlier moment")
    elif until_s is not None and until_s <= time.time():
        message = "observing is over, so this is enforced: take `mode` and `observe_until` out"
        row.report.warning(row.at("observe_until"), "observe-over", message)


def plain(
    value: object, model: type[Table] | None = None, *, without: Collection[str] = (), whole: bool = False
) -> Plain:
    """A value of the policy as plain data in the shape of its table, ``without`` some keys.

    Fields with their default are left out; with ``whole``, of these only the empty ones.
    """
    found: Plain = {}
    for key, one in keys_of(model or _TABLES[type(value)]).items():
        if key in without:
            continue
        held = getattr(value, one.name)
        if held is not None and (held != one.usual or (whole and held not in ("", (), {}))):
            found[key] = one.form.plain(held)
    return found


def _form(kind: Any, metadata: list[Any]) -> Form:
    """The form of a type; ``metadata`` holds its limits, or a form of its own."""
    for one in metadata:
        if isinstance(one, Form):
            return one
    limits: dict[str, Any] = {name: getattr(one, name) for one in metadata for name in _LIMITS if hasattr(one, name)}
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        # from a `Field`: its limits
        inner = (part for one in arguments[1:] for part in getattr(one, "metadata", (one,)))
        return _form(arguments[0], [*metadata, *inner])
    if origin in {Union, UnionType}:
        return _form(next(one for one in arguments if one is not NoneType), metadata)
    low: Any = limits.get("ge")
    high: Any = limits.get("le")
    few, many = limits.get("min_length", 0), limits.get("max_length")
    if kind is str:
        return Form(lambda: TEXT, Row.text)
    if kind is bool:
        return Form(lambda: FLAG, Row.flag)
    if kind is int:
        return Form(lambda: whole(low, high), lambda row, key: row.integer(key, low, MAX_INT if high is None else high))
    if kind is float:
        shape: Shape = {"type": "number", "minimum": low, "maximum": high}
        return Form(lambda: shape, lambda row, key: row.number(key, low, high))
    if origin is Literal or isinstance(kind, EnumMeta):
        options: dict[str, Any] = {str(one): one for one in arguments or kind}
        return Form(lambda: one_of(options), lambda row, key: row.choice(key, options), str)
    if origin is tuple:
        entry = _form(arguments[0], [])
        read = Row.words if arguments[0] is str else None  # the reader of the table looks up names one by one
        rows = lambda: several(entry.shape(), few, many)  # noqa: E731
        return Form(rows, read, lambda held: [entry.plain(one) for one in held], entry.table)
    if origin is not None and issubclass(origin, Mapping):
        entry = _form(arguments[1], [])
        least: Shape = {"minProperties": few} if few else {}
        return Form(
            lambda: by_name(entry.shape()) | least,
            None,
            lambda held: {key: entry.plain(one) for key, one in held.items()},
            entry.table,
        )
    model: type[Table] = _TABLES.get(kind) or kind
    return Form(model.shape, None, plain, model)
