"""Makes frozen values with slots, like ``dataclass(frozen=True, slots=True)`` in a fraction of the time.

A dataclass compiles six functions together with its class; a process defines hundreds of such classes at its start and
uses a few. This module compiles a function at its first use: the constructor with the first value, equality and hash
with the first comparison. The constructor fills a value while it belongs to an open class with the same slots, and then
gives it its own class: setting each field past a frozen ``__setattr__`` takes three times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    _Fields = Mapping[str, Field[Any]]

_T = TypeVar("_T")
_FIELDS = "__value_fields__"
_STANDARD_FIELDS = "__dataclass_fields__"
_IS_COMPILED = "__value_is_compiled__"
_OF_EACH_CLASS = frozenset({"__dict__", "__weakref__"})


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[_T]) -> type[_T]:
    """Turn an annotated class into one of frozen values that compare, hash and print by their fields.

    Defaults, ``field``, ``__post_init__`` and inheritance from other values work as in a dataclass, and so do
    ``dataclasses.replace``, ``fields`` and pickling. The class keeps its own methods. Subclasses have to be frozen too.
    """
    own = {
        name: _field(vars(cls).get(name, MISSING))
        for name, kind in cls.__annotations__.items()
        if "ClassVar" not in str(kind)
    }
    inherited: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited |= vars(base).get(_FIELDS, {})
    fields = inherited | own
    body = _methods(fields)
    body |= {name: one for name, one in vars(cls).items() if name not in own and name not in _OF_EACH_CLASS}
    body["__slots__"] = tuple(name for name in own if name not in inherited)
    body["__match_args__"] = tuple(name for name, one in fields.items() if one.init and one.kw_only is not True)
    body[_FIELDS] = fields
    body[_STANDARD_FIELDS] = _StandardFields()
    body["__signature__"] = _Signature()
    body[_IS_COMPILED] = False

    def equals_first(one: object, other: object) -> Any:
        made.__eq__ = equals = _equals(fields)
        return equals(one, other)

    def hash_first(one: object) -> int:
        made.__hash__ = hash_of = _hash_of(fields)
        return hash_of(one)

    body["__eq__"], body["__hash__"] = body.get("__eq__") or equals_first, body.get("__hash__") or hash_first

    def make_first(kind: Any, /, *args: Any, **named: Any) -> Any:
        _compile(made)
        return made.__new__(kind, *args, **named)

    made: Any = type(cls)(cls.__name__, cls.__bases__, body)
    made.__new__ = staticmethod(make_first)
    return cast("type[_T]", made)


def _field(written: Any) -> Field[Any]:
    return cast("Field[Any]", written) if isinstance(written, Field) else field(default=written)


def _methods(fields: _Fields) -> dict[str, Any]:
    printed = [name for name, one in fields.items() if one.repr]

    def text_of(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in printed)})"

    def reduce(self: Any) -> tuple[Any, ...]:
        return _restore, (self.__class__, tuple(getattr(self, name) for name in fields))

    return {"__repr__": text_of, "__reduce__": reduce, "__setattr__": _refuse_set, "__delattr__": _refuse_delete}


def _refuse_set(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _restore(kind: Any, values: tuple[object, ...]) -> object:
    """Rebuild a pickled or copied value field by field, without ``__post_init__``."""
    if not vars(kind)[_IS_COMPILED]:
        _compile(kind)
    made = object.__new__(kind)
    for name, one in zip(getattr(kind, _FIELDS), values, strict=True):
        object.__setattr__(made, name, one)
    return made


def _compile(made: Any) -> None:
    """Compile the constructor and install it."""
    fields: _Fields = getattr(made, _FIELDS)
    written = cast("Mapping[str, Any]", made.__dict__)
    body = {name: written[name] for name in ("__slots__", "__orig_bases__") if name in written}
    open_class: Any = type(made)(made.__name__, made.__bases__, body | {"__setattr__": object.__setattr__})
    names: dict[str, Any] = {"_new": object.__new__, "_open": open_class, "_missing": MISSING}
    in_order, by_name, steps = list[str](), list[str](), list[str]()
    for name, one in fields.items():
        names[f"_default_{name}"], names[f"_make_{name}"] = one.default, one.default_factory
        has_factory = one.default_factory is not MISSING
        has_default = has_factory or one.default is not MISSING
        if one.init:
            (by_name if one.kw_only is True else in_order).append(f"{name}=_default_{name}" if has_default else name)
            given = f"_make_{name}() if {name} is _missing else {name}" if has_factory else name
        else:
            given = f"_make_{name}()" if has_factory else f"_default_{name}"
        steps += [f"_self.{name} = {given}"] if one.init or has_default else []
    steps += ["_self.__class__ = _kind", *(["_self.__post_init__()"] if hasattr(made, "__post_init__") else [])]
    taken = ", ".join(["_kind", *in_order, *(["*"] if by_name else []), *by_name])
    exec(_MAKING.format(taken=taken, steps="\n    ".join(steps)), names)
    names["make"].__qualname__ = f"{made.__qualname__}.__new__"
    made.__new__ = staticmethod(names["make"])
    setattr(made, _IS_COMPILED, True)


def _equals(fields: _Fields) -> Callable[[object, object], Any]:
    compared = [name for name, one in fields.items() if one.compare]
    both = f"{_tuple_source('self', compared)} == {_tuple_source('other', compared)}"
    same = f"self is other or {both} if other.__class__ is self.__class__ else NotImplemented"
    return eval(f"lambda self, other: {same}")


def _hash_of(fields: _Fields) -> Callable[[object], int]:
    hashed = [name for name, one in fields.items() if (one.compare if one.hash is None else one.hash)]
    return eval(f"lambda self: hash({_tuple_source('self', hashed)})")


def _tuple_source(whose: str, names: list[str]) -> str:
    return f"({''.join(f'{whose}.{name}, ' for name in names)})"


_MAKING = """
def make({taken}):
    _self = _new(_open)
    {steps}
    return _self
"""


class _StandardFields:
    """The fields in the form of `dataclasses`, made when one of its functions asks."""

    def __get__(self, instance: object | None, owner: type[Any]) -> dict[str, Field[Any]]:
        made = next(base for base in owner.__mro__ if vars(base).get(_STANDARD_FIELDS) is self)
        fields: _Fields = getattr(made, _FIELDS)
        kinds = {name: kind for base in reversed(made.__mro__[:-1]) for name, kind in base.__annotations__.items()}
        annotations = {name: kinds[name] for name in fields}
        # without words it would make up some
        body = {"__doc__": made.__name__, "__annotations__": annotations, **fields}
        twin = dataclass(init=False, repr=False, eq=False)(type(made.__name__, (), body))
        standard: dict[str, Field[Any]] = getattr(twin, _STANDARD_FIELDS)
        setattr(made, _STANDARD_FIELDS, standard)
        return standard


class _Signature:
    """The signature for `inspect`, available before the first value."""

    def __get__(self, instance: object | None, owner: Any) -> Signature:
        if not owner.__dict__[_IS_COMPILED]:
            _compile(owner)
        whole = signature(owner.__new__)
        return whole.replace(parameters=list(whole.parameters.values())[1:])
