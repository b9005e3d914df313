"""An OpenAPI document (3.0 or 3.1, JSON or YAML), read within bounds; each of its schemas becomes self-contained.

It follows references inside the document only. A faulty part becomes a `Fault` with its JSON pointer; only an
unreadable document raises an error.

A recursive schema, or one that is too large for a model, stays open inside: the server checks the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any, cast
from urllib.parse import unquote

from pydantic import BaseModel, ValidationError

from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import is_text
from gatewright.schema.walk import Schema, as_list, as_object

MAX_BYTES = 64 * 1024 * 1024
MAX_VALUES = 4_000_000
MAX_DEPTH = 100
MAX_HOPS = 20
_SAID = 200
_CORE_TAGS = (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?[0-9]{1,40}$", list("-+0123456789")),
    ("float", r"^[-+]?(?:\.[0-9]{1,40}|[0-9]{1,40}\.[0-9]{0,40})(?:[eE][-+]?[0-9]{1,3})?$", list("-+0123456789.")),
)
"""Values of YAML 1.2 that are not texts: no dates, no `on` and `no`."""


@frozen
class Fault:
    """A fault of a part of a document, with its place (RFC 6901)."""

    pointer: str
    message: str


class Faulty(Exception):
    """A part of the document is unusable."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.fault = Fault(pointer, message)


class Document:
    """A parsed document. ``minor``: 0 or 1, of version 3."""

    def __init__(self, root: Schema, minor: int) -> None:
        self.root, self.minor = root, minor
        self._models = import_module(f"openapi_pydantic.v3.v3_{minor}")
        self._checked: dict[tuple[str, str], Fault | None] = {}

    @property
    def title(self) -> str:
        """The document's own name."""
        title = (as_object(self.root.get("info")) or {}).get("title")
        return title if isinstance(title, str) else ""

    def resolve(self, value: object, pointer: str) -> tuple[Schema, str]:
        """Return the object at a place, or the target of its `$ref`, with its place. Raises Faulty."""
        for _ in range(MAX_HOPS):
            table = as_object(value)
            if table is None:
                raise Faulty(pointer, "an object should stand here")
            reference = table.get("$ref")
            if reference is None:
                return table, pointer
            if not isinstance(reference, str) or not reference.startswith("#/"):
                raise Faulty(f"{pointer}/$ref", "only references inside the document are followed")
            value = self._at(reference, f"{pointer}/$ref")
            pointer = unquote(reference[1:])
        raise Faulty(pointer, "its references lead to each other, or through too many others")

    def check(self, value: object, pointer: str, kind: str) -> None:
        """Raise Faulty unless the value is such an object of the specification (`Operation`, `Schema`, ...)."""
        key = (pointer, kind)
        if key not in self._checked:
            self._checked[key] = self._fault(value, pointer, kind)
        if (fault := self._checked[key]) is not None:
            raise Faulty(fault.pointer, fault.message)

    def _at(self, reference: str, place: str) -> object:
        value: object = self.root
        for step in reference[2:].split("/"):
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            table, rows = as_object(value), as_list(value)
            if table is not None and name in table:
                value = table[name]
            elif rows is not None and name.isdecimal() and len(name) < 8 and int(name) < len(rows):
                value = rows[int(name)]
            else:
                raise Faulty(place, f"nothing stands at `{reference[:_SAID]}`")
        return value

    def _fault(self, value: object, pointer: str, kind: str) -> Fault | None:
        model = cast("type[BaseModel]", getattr(self._models, kind))
        try:
            model.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            return Fault(_pointer(pointer, value, first["loc"]), str(first["msg"])[:_SAID])
        except RecursionError:
            return Fault(pointer, "it is nested too deeply")
        return None


def read_document(content: bytes) -> Document:
    """Read a document. Raises WorkspaceError for anything else, and for one larger than any API needs."""
    if len(content) > MAX_BYTES:
        raise WorkspaceError(f"an OpenAPI document has at most {MAX_BYTES // 1024 // 1024} MiB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise WorkspaceError("the document is not in UTF-8") from None
    root = as_object(_json(text) if text.lstrip()[:1] == "{" else _yaml(text))
    version = root.get("openapi") if root is not None else None
    if root is None or not isinstance(version, str) or version[:4] not in {"3.0.", "3.1."}:
        what = "it is a Swagger 2.0 document" if root and "swagger" in root else "it does not say `openapi: 3.0` or 3.1"
        raise WorkspaceError(f"only OpenAPI 3.0 and 3.1 can be read: {what}")
    return Document(root, int(version[2]))


def step(name: str | int) -> str:
    """Return one step of a JSON pointer."""
    return f"/{str(name).replace('~', '~0').replace('/', '~1')}"


def _pointer(pointer: str, value: object, location: tuple[int | str, ...]) -> str:
    """Return the place of a model's error: the steps that exist in the value, without the names of pydantic models."""
    for name in location:
        table, rows = as_object(value), as_list(value)
        if table is not None and name in table:
            value = table[str(name)]
        elif rows is not None and isinstance(name, int) and name < len(rows):
            value = rows[name]
        else:
            continue
        pointer += step(name)
    return pointer


def _json(text: str) -> object:
    try:
        value: object = json.loads(text)
        return _bound(value)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:_SAID]
        raise WorkspaceError(f"the document is not JSON: {why}") from None


def _yaml(text: str) -> object:
    """Parse with PyYAML's safe loader, after counting its events, so that nothing deep or repeated is built."""
    yaml: Any = import_module("yaml")
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("Loader", (base,), {"yaml_implicit_resolvers": {}})
    re = import_module("re")
    for name, pattern, first in _CORE_TAGS:
        loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(pattern), first)
    try:
        depth = 0
        for count, event in enumerate(yaml.parse(text, Loader=base)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or count > MAX_VALUES:
                raise WorkspaceError("the document is nested too deeply, or has too many values")
        return _bound(yaml.load(text, Loader=loader))
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        why = " ".join(str(error).split())[:_SAID]
        raise WorkspaceError(f"the document is not YAML: {why}") from None


def _bound(root: object) -> object:
    """Return the value with texts as keys, like JSON; the target of an alias counts at each of its places.

    Raises WorkspaceError for a value that is too large.
    """
    count = 0
    stack: list[Iterator[object]] = [iter((root,))]
    while stack:
        if len(stack) > MAX_DEPTH or count > MAX_VALUES:
            raise WorkspaceError("the document is nested too deeply, or has too many values")
        value = next(stack[-1], stack)
        if value is stack:
            stack.pop()
            continue
        count += 1
        if isinstance(value, dict):
            table = cast("dict[object, object]", value)
            for key in [key for key in table if not isinstance(key, str)]:
                table[json.dumps(key) if isinstance(key, bool | int | float) else str(key)] = table.pop(key)
            stack.append(iter(list(table.values())))
            if not all(map(is_text, cast("list[str]", list(table)))):
                raise WorkspaceError("the document holds half of a surrogate pair")
        elif isinstance(value, list):
            stack.append(iter(cast("list[object]", value)))
        elif isinstance(value, str) and not is_text(value):
            raise WorkspaceError("the document holds half of a surrogate pair")
        elif value is not None and not isinstance(value, bool | int | float | str):
            raise WorkspaceError(f"the document holds a {type(value).__name__}, which is no JSON value")
    return root


MAX_NODES = 1_500
"""Limit of schemas for the arguments of one operation."""
MAX_SCHEMA_DEPTH = 12
MAX_TEXT = 400
MAX_CHOICES = 300
_PLAIN = (
    *("type", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf", "minItems"),
    *("maxItems", "uniqueItems", "minProperties", "maxProperties", "default", "const"),
)
_ANSWERED = ("type", "const")
_LISTS = ("anyOf", "oneOf", "allOf")


class Schemas:
    """Converts the schemas of one operation, at most ``nodes`` together.

    ``answers``: they describe answers of the server, else requests.
    """

    def __init__(self, document: Document, nodes: int = MAX_NODES, *, answers: bool = False) -> None:
        self._document, self._answers = document, answers
        self._nodes = self._left = nodes
        self._cuts = 0
        self._open: list[str] = []

    @property
    def used(self) -> int:
        """The number of converted schemas."""
        return self._nodes - self._left

    def of(self, value: object, pointer: str) -> Schema:
        """Convert the schema at a place. Raises Faulty."""
        if isinstance(value, bool):
            return {} if value else {"not": {}}
        given = as_object(value)
        if given is not None and "$ref" not in given:
            return self._convert(given, pointer)
        found, place = self._document.resolve(value, pointer)
        if place in self._open:
            return self._outline(found)
        self._document.check(found, place, "Schema")
        self._open.append(place)
        try:
            return self._convert(found, place)
        finally:
            self._open.pop()

    def members(self, value: object, pointer: str) -> tuple[dict[str, Schema], frozenset[str]] | None:
        """Return an object's properties and the required ones, if each can be an argument; None if only the whole
        can.
        """
        found, place = self._document.resolve(value, pointer)
        self._document.check(found, place, "Schema")
        properties, required = as_object(found.get("properties")), _names(found.get("required"))
        if not properties or found.get("type", "object") != "object" or any(key in found for key in _LISTS):
            return None
        if found.get("additionalProperties", False) is not False and "additionalProperties" in found:
            return None
        kept = {name: one for name, one in properties.items() if not self._is_other(one, f"{place}/properties")}
        read = {name: self.of(one, f"{place}/properties{step(name)}") for name, one in kept.items()}
        return read, frozenset(required) & read.keys()

    def _is_other(self, value: object, pointer: str) -> bool:
        """Tell whether a property belongs only to answers or, in a conversion of answers, only to requests."""
        try:
            return self._document.resolve(value, pointer)[0].get("writeOnly" if self._answers else "readOnly") is True
        except Faulty:
            return False

    def _outline(self, given: Schema) -> Schema:
        """Return the schema with the type of the value alone."""
        self._cuts += 1
        kind = given.get("type")
        rows = as_list(kind)
        if isinstance(kind, str) and given.get("nullable") is True:
            return {"type": [kind, "null"]}
        return {"type": kind} if isinstance(kind, str) or (rows and all(isinstance(row, str) for row in rows)) else {}

    def _convert(self, given: Schema, pointer: str) -> Schema:
        self._left -= 1
        if self._left < 0 or len(self._open) > MAX_SCHEMA_DEPTH or pointer.count("/") > 100:
            return self._outline(given)
        before = self._cuts
        made: Schema = {key: given[key] for key in (_ANSWERED if self._answers else _PLAIN) if key in given}
        if (choices := as_list(given.get("enum"))) is not None and len(choices) <= MAX_CHOICES:
            made["enum"] = list(choices)
        if (text := short(given.get("description"))) and not self._answers:
            made["description"] = text
        if (properties := as_object(given.get("properties"))) is not None:
            made["properties"] = {
                name: self.of(one, f"{pointer}/properties{step(name)}")
                for name, one in properties.items()
                if not self._is_other(one, pointer)
            }
            wanted = [name for name in _names(given.get("required")) if name in made["properties"]]
        else:
            wanted = _names(given.get("required"))
        if wanted:
            made["required"] = list(dict.fromkeys(wanted))
        for key in ("items", "additionalProperties", "not"):
            if key in given:
                made[key] = self.of(given[key], f"{pointer}/{key}")
        if isinstance(given.get("additionalProperties"), bool):
            made["additionalProperties"] = given["additionalProperties"]
        for key in _LISTS:
            if rows := as_list(given.get(key)):
                made[key] = [self.of(one, f"{pointer}/{key}/{index}") for index, one in enumerate(rows)]
        if self._cuts > before:  # an open part may fit several, so neither `oneOf` nor `not` can judge it
            made.pop("not", None)
        if "oneOf" in made and (self._answers or self._cuts > before):
            alike = made.pop("oneOf")
            made |= {"allOf": [*made.get("allOf", ()), {"anyOf": alike}]} if "anyOf" in made else {"anyOf": alike}
        return _as_json_schema(made, given)


def short(value: object) -> str:
    """Return the first paragraph of a text, cut if long."""
    text = " ".join(value.strip().partition("\n\n")[0].split()) if isinstance(value, str) else ""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."


def _as_json_schema(made: Schema, given: Schema) -> Schema:
    """Turn the spelling of OpenAPI 3.0 into JSON Schema 2020-12; 3.1 uses it already."""
    for limit, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        said = given.get(limit)
        if said is True and bound in made:
            made[limit] = made.pop(bound)
        elif isinstance(said, int | float) and not isinstance(said, bool):
            made[limit] = said
    if given.get("nullable") is True and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
        if "enum" in made and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
    elif given.get("nullable") is True and any(key in made for key in (*_LISTS, "enum")):
        return {"anyOf": [made, {"type": "null"}]}
    return made


def _names(value: object) -> list[str]:
    return [one for one in as_list(value) or () if isinstance(one, str)]
