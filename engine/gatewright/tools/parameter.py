"""One parameter of a tool; its markers (path, address, table, ...), and the marked values in arguments.

It has more than 450 lines because the declaration of markers and the search for them follow the same rules. A marker
stands on a text, on a list of texts, or on a field inside a pydantic model; ``marks`` holds the places. Every marked
text is checked: a marker that the check could miss is an error at declaration.
"""

from __future__ import annotations

import collections
import collections.abc
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, RootModel
from pydantic.fields import FieldInfo

from gatewright.arguments.url import DEFAULT_PORTS, WEB_SCHEMES
from gatewright.base.errors import RegistrationError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.document import ROOT_NAMES
from gatewright.policy.verdict import Action
from gatewright.schema.operation import EACH, EACH_MEMBER, steps_of
from gatewright.schema.walk import Schema


class Role(StrEnum):
    """The meaning that a parameter's text has for the gate."""

    PLAIN = "plain"
    PATH = "path"
    LABEL = "label"
    SOURCE = "source"
    URL = "url"
    HOST = "host"
    FILE = "file"
    TABLE = "table"
    VARIABLE = "variable"
    COMMAND = "command"


Effect = Literal["read", "write"]


@frozen
class PathParameter:
    """Marks a path inside a source: ``Annotated[str, PathParameter()]``; ``makes``: calls make a new file there."""

    makes: bool = False


@frozen
class LabelParameter:
    """Marks the label of a block: ``Annotated[str, LabelParameter()]``; ``makes``: calls create the block."""

    makes: bool = False


@frozen
class SourceParameter:
    """Marks the id of a source: ``Annotated[str, SourceParameter()]``."""


@frozen
class UrlParameter:
    """Marks a URL, which the tool receives in canonical form; ``effect`` tells whether the tool sends data there.

    Raises RegistrationError for a scheme whose URLs have no host that the gate could judge.
    """

    schemes: tuple[str, ...] = WEB_SCHEMES
    effect: Effect = "read"

    def __post_init__(self) -> None:
        object.__setattr__(self, "schemes", tuple(self.schemes))
        _check_effect(self.effect)
        if not self.schemes:
            raise RegistrationError("a URL parameter accepts at least one scheme")
        for scheme in self.schemes:
            if scheme not in DEFAULT_PORTS:
                known = ", ".join(f"`{name}`" for name in DEFAULT_PORTS)
                raise RegistrationError(f"a URL parameter cannot accept the scheme `{scheme}`; it may be {known}")


@frozen
class HostParameter:
    """Marks a host, perhaps with ``:port``; ``effect`` tells whether the tool sends data there."""

    effect: Effect = "read"

    def __post_init__(self) -> None:
        _check_effect(self.effect)


@frozen
class FileParameter:
    """Marks a path on disk, absolute or relative to the workspace's folder; the tool receives the absolute path.

    Below a source's base the level of that source applies as well. ``roots``: the path begins with the name of one of
    these roots of ``[workspace]`` and must lie inside (without a name: inside the first).
    """

    writes: bool = False
    roots: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.roots:
            if name not in ROOT_NAMES:
                known = ", ".join(f"`{known}`" for known in ROOT_NAMES)
                raise RegistrationError(f"there is no root `{name}`; a path may be in {known}")


@frozen
class TableParameter:
    """Marks the name of a database table."""

    writes: bool = False


@frozen
class VariableParameter:
    """Marks the name of an environment variable."""


@frozen
class CommandParameter:
    """Marks a shell command; the tool receives its canonical form. ``[workspace]`` names the programs that it may
    start.

    ``in_folder``: it starts where the calling program works and redirects to wherever levels permit, not in the roots.
    ``folder``: the argument that names another folder where it starts.
    """

    in_folder: bool = False
    folder: str = ""


Marker = (
    PathParameter
    | LabelParameter
    | SourceParameter
    | UrlParameter
    | HostParameter
    | FileParameter
    | TableParameter
    | VariableParameter
    | CommandParameter
)
MARKERS: tuple[type, ...] = get_args(Marker)
_ROLES: dict[type, Role] = {
    PathParameter: Role.PATH,
    LabelParameter: Role.LABEL,
    SourceParameter: Role.SOURCE,
    UrlParameter: Role.URL,
    HostParameter: Role.HOST,
    FileParameter: Role.FILE,
    TableParameter: Role.TABLE,
    VariableParameter: Role.VARIABLE,
    CommandParameter: Role.COMMAND,
}
_OF_ROLE: dict[Role, type[Marker]] = {
    Role.PATH: PathParameter,
    Role.LABEL: LabelParameter,
    Role.SOURCE: SourceParameter,
    Role.URL: UrlParameter,
    Role.HOST: HostParameter,
    Role.FILE: FileParameter,
    Role.TABLE: TableParameter,
    Role.VARIABLE: VariableParameter,
    Role.COMMAND: CommandParameter,
}


class Step(Enum):
    """A step without a name into a value: to every item of a list, or to every value of an object."""

    ITEMS = "items"
    VALUES = "values"


@frozen
class Mark:
    """A marker and its place inside the parameter's value; ``at`` empty: the value itself, or its items."""

    at: tuple[str | Step, ...]
    marker: Marker

    @property
    def role(self) -> Role:
        """The meaning of the marked text."""
        return _ROLES[type(self.marker)]


@frozen
class Parameter:
    """A parameter that a model may fill. ``schema`` has no description of its own.

    ``default``: the value if a call leaves it out; it may be null, so ``has_default`` tells whether one exists.
    ``definitions`` are the `$defs` that a recursive ``schema`` refers to. The role is that of the first mark; without
    marks it is plain.
    """

    name: str
    schema: Schema = field(hash=False)
    required: bool
    role: Role = Role.PLAIN
    description: str = ""
    default: JsonValue = field(default=None, hash=False)
    definitions: Schema = field(default_factory=dict[str, object], hash=False)
    marks: tuple[Mark, ...] = ()
    has_default: bool = False

    @property
    def whole_schema(self) -> Schema:
        """Return the schema with the definitions that it refers to."""
        return {**self.schema, "$defs": self.definitions} if self.definitions else self.schema

    def __post_init__(self) -> None:
        if self.default is not None:
            object.__setattr__(self, "has_default", True)
        if self.marks:
            object.__setattr__(self, "role", self.marks[0].role)
        elif self.role is not Role.PLAIN:
            object.__setattr__(self, "marks", (Mark((), _OF_ROLE[self.role]()),))


def unavoidable_kinds(parameters: Iterable[Parameter]) -> frozenset[CapabilityKind]:
    """Return the kinds of capability that every call needs, since a required parameter is marked.

    Paths in sources need no capability.
    """
    found = (kind_needed(mark.marker) for one in parameters if one.required for mark in one.marks if not mark.at)
    return frozenset(kind for kind in found if kind is not None)


def kind_needed(marker: Marker) -> CapabilityKind | None:
    """Return the kind of capability that must cover a text with ``marker``; None if the text needs none."""
    match marker:
        case UrlParameter(effect=effect) | HostParameter(effect=effect):
            return CapabilityKind.NET_WRITE if effect == "write" else CapabilityKind.NET_READ
        case FileParameter(writes=writes):
            return CapabilityKind.FS_WRITE if writes else CapabilityKind.FS_READ
        case TableParameter(writes=writes):
            return CapabilityKind.DB_WRITE if writes else CapabilityKind.DB_READ
        case VariableParameter():
            return CapabilityKind.ENV_READ
        case CommandParameter():
            return CapabilityKind.EXEC
        case PathParameter() | LabelParameter() | SourceParameter():
            return None


def _check_effect(effect: str) -> None:
    if effect not in get_args(Effect):
        raise RegistrationError(f"the effect of a marker is `read` or `write`, not `{effect}`")


Pointer = tuple[str | int, ...]
At = tuple[str | Step, ...]
_STEPS = {EACH: Step.ITEMS, EACH_MEMBER: Step.VALUES}


def at_of(place: str) -> At:
    """Return the way to a place in arguments, such as ``edits[].path``."""
    return tuple(_STEPS.get(step, step) for step in steps_of(place))


class NamedPath(NamedTuple):
    """A path that an argument names in a way of its own (a patch, a pattern), and the action there.

    ``contents``: of a folder, the action is on everything in it.
    """

    pointer: Pointer
    text: str
    action: Action
    contents: bool = True


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
    """Return the marks of a parameter with the annotation ``hint``.

    Raises RegistrationError; ``what`` names it there.
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
        """Return each mark once. Raises RegistrationError for two different marks at one place."""
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
    """Return the type behind a ``NewType`` or a type alias; None for anything else."""
    if isinstance(hint, type):
        return None
    return getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)


def _may_be_text(base: Any) -> bool:
    """Tell whether a value of the type may be a text or a list of texts."""
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
    """Yield every value at ``at`` with its pointer, the items of a list one by one; null is skipped."""
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
    """Replace the texts at these pointers of ``value``."""
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
