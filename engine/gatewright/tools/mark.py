"""The markers in an annotation, and the values at their places in arguments.

A marker that the check could miss is an error when the tool is declared: every marked text is checked.
"""

from __future__ import annotations

import collections
import collections.abc
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, RootModel
from pydantic.fields import FieldInfo

from gatewright.base.errors import RegistrationError
from gatewright.base.jsonvalue import JsonValue
from gatewright.tools.parameter import MARKERS, Mark, Marker, SourceParameter, Step, UrlParameter

Pointer = tuple[str | int, ...]
At = tuple[str | Step, ...]

_LISTS = frozenset(
    {
        list,
        set,
        frozenset,
        collections.deque,
        collections.abc.Sequence,
        collections.abc.MutableSequence,
        collections.abc.Set,
        collections.abc.MutableSet,
        collections.abc.Collection,
    }
)
_TABLES = frozenset({dict, collections.abc.Mapping, collections.abc.MutableMapping, collections.OrderedDict})
_NO_TEXT = (int, float, complex, bytes, dict, BaseModel)


def marks_in(hint: Any, what: str) -> tuple[Mark, ...]:
    """Return the marks of a parameter with the annotation ``hint``; ``what`` names it in errors. Raises
    RegistrationError.
    """
    walk = _Walk(what)
    return walk.unique(list(walk.of(hint, ())))


def marks_of_fields(model: type[BaseModel], what: str) -> dict[str, tuple[Mark, ...]]:
    """Return the marks of each field of a model, by its name in JSON. Raises RegistrationError."""
    found: dict[str, tuple[Mark, ...]] = {}
    for name, info in model.model_fields.items():
        walk = _Walk(f"{what}: parameter `{name}`")
        marks = walk.unique([*walk.of_metadata(info.metadata, info.annotation, ()), *walk.of(info.annotation, ())])
        if marks:
            found[_json_name(model, name, info, walk.what)] = marks
            if info.default_factory is not None:
                raise RegistrationError(f"{walk.what} is marked and makes its default by a function")
    return found


class _Walk:
    """One walk through an annotation."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._open: list[type[BaseModel]] = []
        self._again: set[type[BaseModel]] = set()

    def unique(self, marks: list[Mark]) -> tuple[Mark, ...]:
        """Return each mark once. Raises RegistrationError for two different ones at one place."""
        by_place: dict[At, Mark] = {}
        for mark in marks:
            if by_place.setdefault(mark.at, mark) != mark:
                raise RegistrationError(f"{self.what} has two markers at one place")
            if mark.at and isinstance(mark.marker, SourceParameter):
                raise RegistrationError(f"{self.what}: the marker of a source stands on the parameter itself")
        return tuple(by_place.values())

    def of(self, hint: Any, at: At) -> Iterator[Mark]:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            yield from self.of_metadata(arguments[1:], arguments[0], at)
            yield from self.of(arguments[0], at)
        elif origin in (Union, types.UnionType):
            for member in arguments:
                yield from self.of(member, at)
        elif origin in _LISTS or (origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis):
            yield from self.of(arguments[0], (*at, Step.ITEMS))
        elif origin in _TABLES:
            self._refuse_marked(arguments[0], "a key of an object")
            yield from self.of(arguments[1], (*at, Step.VALUES))
        elif isinstance(hint, type) and issubclass(hint, BaseModel):
            yield from self._of_model(hint, at)
        elif (inner := _meaning(hint)) is not None:
            yield from self.of(inner, at)
        else:
            self._refuse_marked(hint, "a type that is not looked into")

    def of_metadata(self, metadata: collections.abc.Iterable[object], base: Any, at: At) -> Iterator[Mark]:
        for item in metadata:
            if isinstance(item, type) and item in MARKERS:
                raise RegistrationError(f"{self.what}: write `{item.__name__}()`, with brackets")
            if type(item) in MARKERS:
                if not _may_be_text(base):
                    raise RegistrationError(f"{self.what}: `{type(item).__name__}` marks something that is no text")
                yield Mark(at, cast("Marker", item))

    def _of_model(self, model: type[BaseModel], at: At) -> Iterator[Mark]:
        if model in self._open:
            self._again.add(model)
            return
        self._open.append(model)
        marks: list[Mark] = []
        for name, info in model.model_fields.items():
            is_root = issubclass(model, RootModel)
            deeper = cast("At", at if is_root else (*at, info.validation_alias or info.alias or name))
            found = [*self.of_metadata(info.metadata, info.annotation, deeper), *self.of(info.annotation, deeper)]
            if found:
                _json_name(model, name, info, self.what)
                if info.default_factory is not None or (not info.is_required() and info.default is not None):
                    text = f"{self.what}: the marked field `{name}` has a default that is never checked"
                    raise RegistrationError(text)
            marks += found
        self._open.pop()
        if marks and model in self._again:
            raise RegistrationError(f"{self.what}: `{model.__name__}` holds itself, and its marked fields have no end")
        yield from marks

    def _refuse_marked(self, hint: Any, where: str) -> None:
        if _holds_marker(hint, set()):
            raise RegistrationError(f"{self.what} has a marker in {where}; mark a text, a list, or a field of a model")


def _json_name(model: type[BaseModel], name: str, info: FieldInfo, what: str) -> str:
    alias = info.validation_alias or info.alias
    config = model.model_config
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    if (alias is not None and not isinstance(alias, str)) or (alias is not None and alias != name and by_name):
        raise RegistrationError(f"{what}: the marked field `{name}` may be given under several names")
    return alias or name


def _meaning(hint: Any) -> Any:
    """Return the type behind a ``NewType`` or a type alias; None for everything else."""
    if isinstance(hint, type):
        return None
    return getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)


def _may_be_text(base: Any) -> bool:
    """Tell whether a value of that type may be a text or a list of texts."""
    origin = get_origin(base)
    if origin in (Union, types.UnionType) or origin in _LISTS or origin is tuple or origin is Annotated:
        return any(_may_be_text(argument) for argument in get_args(base)[: 1 if origin is Annotated else None])
    if origin is Literal:
        return any(isinstance(value, str) for value in get_args(base))
    if origin in _TABLES:
        return False
    meaning = _meaning(base)
    if meaning is not None:
        return _may_be_text(meaning)
    if not isinstance(base, type):
        return base is not Ellipsis and base is not None
    return issubclass(base, str) or not (issubclass(base, _NO_TEXT) or base is type(None))


def _holds_marker(hint: Any, seen: set[int]) -> bool:
    if type(hint) in MARKERS:
        return True
    if id(hint) in seen:
        return False
    seen.add(id(hint))
    inner = list(get_args(hint))
    if isinstance(hint, type) and getattr(hint, "__annotations__", None):
        inner += _field_hints(hint)
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        inner += [info.annotation for info in hint.model_fields.values()]
        inner += [item for info in hint.model_fields.values() for item in info.metadata]
    return any(_holds_marker(argument, seen) for argument in inner)


def _field_hints(hint: Any) -> list[Any]:
    """Return the annotations of a class's fields; if they cannot be resolved, the markers that they mention."""
    try:
        return list(get_type_hints(hint, include_extras=True).values())
    except (NameError, TypeError, AttributeError, SyntaxError):
        text = " ".join(map(str, hint.__annotations__.values()))
        return [UrlParameter()] if any(marker.__name__ in text for marker in MARKERS) else []


def values_at(value: JsonValue, at: At, pointer: Pointer = ()) -> Iterator[tuple[Pointer, JsonValue]]:
    """Yield every value at ``at``, with its pointer: the items of a list one by one, null never."""
    if not at:
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from values_at(item, at, (*pointer, index))
        elif value is not None:
            yield pointer, value
        return
    step, rest = at[0], at[1:]
    if step is Step.ITEMS:
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from values_at(item, rest, (*pointer, index))
    elif isinstance(value, dict):
        for name in value if step is Step.VALUES else (step,):
            if name in value:
                yield from values_at(value[name], rest, (*pointer, name))


def replace_texts(value: JsonValue, texts: Mapping[Pointer, str]) -> JsonValue:
    """Put texts at those pointers of ``value``, and leave the rest as it is."""
    if not texts:
        return value
    if () in texts:
        return texts[()]
    inner: dict[str | int, dict[Pointer, str]] = {}
    for pointer, text in texts.items():
        inner.setdefault(pointer[0], {})[pointer[1:]] = text
    if isinstance(value, list):
        return [replace_texts(item, inner.get(index, {})) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return {name: replace_texts(item, inner.get(name, {})) for name, item in value.items()}
    return value
