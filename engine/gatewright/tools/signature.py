"""Reads the signature and docstring of an async function as parameters, when the tool is declared."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import field
from functools import lru_cache
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Any,
    NoReturn,
    ParamSpec,
    TypeVar,
    TypeVarTuple,
    cast,
    get_args,
    get_type_hints,
)

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from gatewright.base.errors import RegistrationError, SchemaError, near_hint
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.schema import schema_of
from gatewright.schema.walk import Schema, linear_part, objects
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.parameter import Parameter, marks_in
from gatewright.tools.result import awaitable, yields

_SECTION = re.compile(
    r"(args|arguments|parameters|returns?|yields?|raises?|examples?|notes?|attributes|todo|warnings?|see also)\s*:",
    re.IGNORECASE,
)
_ARGUMENTS = frozenset({"args", "arguments", "parameters"})
_ENTRY = re.compile(r"\*{0,2}([A-Za-z_]\w*)\s*(?:\([^)]*\))?\s*:\s*(.*)")


@frozen
class Docstring:
    """The parts of a docstring:

    ``description`` is all text before the first section, ``parameters`` has a sentence by name.
    """

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict[str, str], hash=False)


def parse_docstring(text: str | None) -> Docstring:
    """Split ``text`` into its parts; spaces join the lines of a paragraph."""
    lines = inspect.cleandoc(text or "").split("\n")
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        found = _SECTION.fullmatch(line.rstrip())
        if found:
            sections.append((found[1].lower(), []))
        else:
            sections[-1][1].append(line)
    entries = [entry for name, body in sections if name in _ARGUMENTS for entry in _entries(body)]
    parts = re.split(r"\n{2,}", "\n".join(line.strip() for line in sections[0][1]))
    return Docstring("\n\n".join(" ".join(part.split()) for part in parts if part.strip()), dict(entries))


def _entries(lines: list[str]) -> list[tuple[str, str]]:
    """Return each ``name (type): sentence`` together with the indented lines below it."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    shallow = min(indents, default=0)
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        entry = _ENTRY.fullmatch(line.strip())
        if entry and len(line) - len(line.lstrip()) == shallow:
            found.append((entry[1], [entry[2]]))
        elif found:
            found[-1][1].append(line)
    return [(name, " ".join(" ".join(body).split())) for name, body in found]


Function = Callable[..., Awaitable[object] | AsyncIterator[object]]
Made = dict[int, tuple[Any, tuple[TypeAdapter[Any], Schema]]]
"""The adapter of each annotation, by the annotation's identity; the entry keeps the annotation alive."""
_PLAIN = frozenset({str, int, float, bool})
_NOTHING = frozenset({"type", "title", "description"})


@frozen
class Binding:
    """A function with its parameters; ``returns`` is the annotation of its result, or ``Signature.empty``."""

    function: Callable[..., Awaitable[object]]
    docstring: Docstring
    parameters: tuple[Parameter, ...]
    adapters: Mapping[str, TypeAdapter[Any]] = field(hash=False)
    context_name: str | None
    returns: Any = field(hash=False)


def return_annotation(function: Function, where: str) -> Any:
    """Return the annotation of the result of ``function``, or ``Signature.empty``. Raises RegistrationError."""
    returns = inspect.signature(function).return_annotation
    return returns if returns is inspect.Signature.empty else _resolve(function, returns, f"{where}: `return`")


def return_schema(returns: Any) -> Schema | None:
    """Return the result schema that a return annotation promises; None if it names only a type.

    Patterns that cannot run in linear time are left out.
    """
    if returns is inspect.Signature.empty or returns is bytes or _is_bare(returns):
        return None
    try:
        schema = linear_part(schema_of(returns, "serialization"))
    except SchemaError:
        return None
    said = {key for key, value in schema.items() if value not in (True, {}) and key not in _NOTHING}
    return schema if said else None


def _is_bare(returns: Any) -> bool:
    """Tell whether an annotation names no more than a type of JSON, as most do: pydantic need not be asked."""
    if isinstance(returns, type):
        return returns in _PLAIN
    return isinstance(returns, UnionType) and returns == _any_json()


@lru_cache
def _any_json() -> Any:
    """Return `JsonValue` as it stands in a signature, with its own name resolved."""

    def give() -> JsonValue: ...

    return get_type_hints(give)["return"]


def first_message(error: ValidationError) -> str:
    """Describe the first fault as a clause, without repeating the input."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"]))
    text = first["msg"][:1].lower() + first["msg"][1:]
    return f"{text} at `{place}`" if place else text


def bind(function: Function, where: str, *, is_method: bool, made: Made | None = None) -> Binding:
    """Read the signature of ``function``; ``where`` names it in errors.

    ``made``: the adapters of earlier annotations, since the methods of one tool share most of theirs. Raises
    RegistrationError, with the parameter's name, for a function that is not async or is generic, and for a parameter
    that has no annotation or no JSON Schema, is ``self`` outside a class, or cannot be given by name.
    """
    if not (inspect.iscoroutinefunction(function) or yields(function)):
        raise RegistrationError(f"{where} is not an `async def` function")
    if getattr(function, "__type_params__", ()):
        raise RegistrationError(f"{where} is generic, and a tool's types must be known")
    rows = [*inspect.signature(function).parameters.values()]
    if is_method and (not rows or rows[0].kind not in (rows[0].POSITIONAL_ONLY, rows[0].POSITIONAL_OR_KEYWORD)):
        raise RegistrationError(f"{where} takes no `self`")
    rows = rows[1:] if is_method else rows
    hints = {row.name: _hint(function, row, where) for row in rows}
    contexts = [name for name, hint in hints.items() if hint is ToolExecutionContext]
    if len(contexts) > 1:
        raise RegistrationError(f"{where}: parameter `{contexts[1]}` is a second execution context")
    docstring = parse_docstring(function.__doc__)
    unknown = next((name for name in docstring.parameters if name not in hints), None)
    if unknown is not None:
        near = near_hint(unknown, hints)
        raise RegistrationError(f"{where}: the docstring describes `{unknown}`, which is no parameter{near}")
    own = [row for row in rows if row.name not in contexts]
    made = {} if made is None else made
    typed = {row.name: _adapter_of(hints[row.name], f"{where}: parameter `{row.name}`", made) for row in own}
    return Binding(
        awaitable(function),
        docstring,
        tuple(_parameter(row, hints[row.name], *typed[row.name], docstring, where) for row in own),
        {name: adapter for name, (adapter, _) in typed.items()},
        contexts[0] if contexts else None,
        return_annotation(function, where),
    )


def _hint(function: Function, row: inspect.Parameter, where: str) -> Any:
    """Return the annotation of a parameter. Raises RegistrationError if no call could give it by name."""
    what = f"{where}: parameter `{row.name}`"
    if row.name in ("self", "cls"):
        raise RegistrationError(f"{what} belongs to a class; use `@operation` on methods")
    if row.kind in (row.VAR_POSITIONAL, row.VAR_KEYWORD):
        stars = "*" if row.kind is row.VAR_POSITIONAL else "**"
        raise RegistrationError(f"{where}: parameter `{stars}{row.name}` has no fixed name")
    if row.kind is row.POSITIONAL_ONLY:
        raise RegistrationError(f"{what} cannot be given by name")
    if row.name.startswith("_"):
        raise RegistrationError(f"{what} begins with an underscore")
    if row.annotation is row.empty:
        raise RegistrationError(f"{what} has no annotation")
    hint = _resolve(function, row.annotation, what)
    if _is_generic(hint):
        raise RegistrationError(f"{what} is generic, and a tool's types must be known")
    return hint


def _resolve(function: Function, annotation: object, what: str) -> Any:
    """Resolve quotes and postponed evaluation in an annotation of ``function``. Raises RegistrationError."""
    holder = SimpleNamespace(__annotations__={"it": annotation})
    names = cast("dict[str, Any]", getattr(inspect.unwrap(function), "__globals__", {}))
    try:
        return get_type_hints(cast("Any", holder), globalns=names, include_extras=True)["it"]
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise RegistrationError(f"{what} has an annotation that cannot be resolved: {error}") from None


def _is_generic(hint: object) -> bool:
    if isinstance(hint, TypeVar | ParamSpec | TypeVarTuple):
        return True
    if getattr(hint, "__pydantic_generic_metadata__", {}).get("parameters"):
        return True
    return any(_is_generic(argument) for argument in get_args(hint))


def _adapter_of(hint: Any, what: str, made: Made) -> tuple[TypeAdapter[Any], Schema]:
    """Return the adapter that checks and converts values of ``hint``, and the JSON Schema of ``hint``."""
    if id(hint) not in made:
        try:
            made[id(hint)] = (hint, _plain_typed(hint) if _is_plain(hint) else _make_adapter(hint))
        except (PydanticUserError, SchemaError):
            return _refuse(hint, what)
    return made[id(hint)][1]


def _is_plain(hint: Any) -> bool:
    """Tell whether a hint is `str`, `int | None` or the like, which can share one adapter."""
    if not isinstance(hint, UnionType):
        return isinstance(hint, type) and hint in _PLAIN
    first, *rest = get_args(hint)
    return rest == [NoneType] and isinstance(first, type) and first in _PLAIN


def _make_adapter(hint: Any) -> tuple[TypeAdapter[Any], Schema]:
    adapter = TypeAdapter[Any](hint)
    return adapter, schema_of(adapter)


_plain_typed = lru_cache(maxsize=64)(_make_adapter)


def _refuse(hint: Any, what: str) -> NoReturn:
    try:
        schema_of(hint)
    except SchemaError as error:
        raise RegistrationError(f"{what}: {error}") from None
    raise RegistrationError(f"{what} has no JSON Schema")


def _parameter(
    row: inspect.Parameter, hint: Any, adapter: TypeAdapter[Any], schema: Schema, docstring: Docstring, where: str
) -> Parameter:
    what = f"{where}: parameter `{row.name}`"
    optional, default = row.default is not row.empty, None
    if optional and row.default is None:  # an omitted parameter means the same, so null is dropped
        branches = objects(schema.get("anyOf"))
        kept = [branch for branch in branches if branch != {"type": "null"}]
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        if kept and len(kept) < len(branches):
            schema = {**kept[0], **rest} if len(kept) == 1 else {**rest, "anyOf": kept}
    elif optional:
        try:
            default = adapter.dump_python(adapter.validate_python(row.default), mode="json")
        except (ValidationError, PydanticUserError):
            raise RegistrationError(f"{what} has a default that its own type refuses") from None
    return Parameter(
        row.name,
        {key: value for key, value in schema.items() if key not in ("description", "$defs")},
        not optional,
        description=schema.get("description") or docstring.parameters.get(row.name, ""),
        default=default,
        has_default=optional,
        definitions=schema.get("$defs", {}),
        marks=marks_in(hint, what),
    )
