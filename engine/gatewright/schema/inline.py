"""Makes schemas that stand alone: inlines each `$ref`, and writes those of pydantic models in a plain form.

Recursive definitions stay under `$defs`, since no finite schema can hold them; a reference that leaves the document is
refused.
"""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import unquote

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import JsonSchemaMode

from gatewright.base.errors import SchemaError
from gatewright.schema.walk import Schema, as_list, as_object, children, definition, map_children, pointer_text, walk

MAX_NODES = 50_000
MAX_DEPTH = 64
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}
)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def inline_references(schema: Schema) -> Schema:
    """Replace every `$ref` by its target; return the same object if ``schema`` has none.

    Raises SchemaError with the pointer for a remote or unresolvable reference, and for one that grows without bound.
    """
    if not any(keyword in node for _, node in walk(schema) for keyword in _REFERENCES):
        return schema
    return _Inliner(schema).result()


def check_expansion(schema: Schema) -> None:
    """Raise SchemaError for references that would expand to more than `MAX_NODES` schemas, since a check may visit all.

    Takes time linear in the schema.
    """
    if any("$ref" in node for _, node in walk(schema)) and _Size(schema).of(schema) > MAX_NODES:
        raise SchemaError(f"references expand to more than {MAX_NODES:,} schemas")


class _Size:
    """The number of schemas once every reference is replaced; a recursive reference counts once."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._known: dict[int, int] = {}

    def of(self, schema: Schema) -> int:
        """Count the schemas of one schema."""
        stack = [schema]
        while stack:
            current = stack[-1]
            inner = self._inner(current)
            if id(current) not in self._known:
                self._known[id(current)] = 1
                stack += [child for child in inner if id(child) not in self._known]
                continue
            stack.pop()
            self._known[id(current)] = min(MAX_NODES, sum(self._known[id(child)] for child in inner)) + 1
        return self._known[id(schema)]

    def _inner(self, schema: Schema) -> list[Schema]:
        inner = [child for step, child in children(schema) if step[0] not in ("$defs", "definitions")]
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            target = as_object(at_pointer(self._root, unquote(reference[1:])))
            inner += [target] if target is not None else []
        return inner


class _Inliner:
    """One inlining of one document."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.ignores_siblings = "draft-07" in str(root.get("$schema", "")) or "draft-06" in str(root.get("$schema", ""))
        self.targets: dict[str, Any] = {}
        self.anchors = {str(node["$anchor"]): node for _, node in walk(root) if isinstance(node.get("$anchor"), str)}
        self.recursive: dict[str, str] = {}
        self.nodes = 0
        self._check_places()
        edges = {reference: _references_in(target) for reference, target in self.targets.items()}
        for reference in self.targets:
            if _reaches(edges, reference):  # the references from its target lead back to it
                wanted = reference.rsplit("/", 1)[-1].strip("#") or "root"
                self.recursive[reference] = _fresh(unquote(wanted), set(self.recursive.values()))

    def result(self) -> Schema:
        body = {key: value for key, value in self.root.items() if key not in ("$defs", "definitions")}
        inlined = self._expand(self._open_root(body), 0)
        defs = {name: self._expand(self.targets[ref], 0) for ref, name in self.recursive.items() if ref != "#"}
        return {**inlined, "$defs": defs} if defs else inlined

    def _open_root(self, body: Schema) -> Schema:
        """Replace a root that is nothing but a recursive reference by its target, so that its content is visible."""
        reference = body.get("$ref")
        target = as_object(self.targets.get(reference)) if isinstance(reference, str) else None
        if reference == "#" or reference not in self.recursive or target is None:
            return body
        siblings = {key: value for key, value in body.items() if key != "$ref"}
        return {**target, **siblings}

    def _check_places(self) -> None:
        """Resolve each reference once, and report the places of those that cannot be resolved."""
        for pointer, node in walk(self.root):
            for keyword in _REFERENCES[1:]:
                if keyword in node:
                    raise SchemaError(f"`{keyword}` at `{pointer_text(pointer)}` is not supported")
            if pointer and isinstance(node.get("$id"), str) and any("$ref" in inner for _, inner in walk(node)):
                raise SchemaError(f"`$id` with references inside at `{pointer_text(pointer)}` is not supported")
            reference = node.get("$ref")
            if isinstance(reference, str):
                self.targets[reference] = self._resolve(reference, pointer_text((*pointer, "$ref")))

    def _resolve(self, reference: str, place: str) -> Any:
        own_id = self.root.get("$id")
        local = reference.removeprefix(own_id) if isinstance(own_id, str) and own_id else reference
        if not local.startswith("#"):
            raise SchemaError(
                f"the reference `{reference}` at `{place}` leaves the document; remote schemas are never fetched"
            )
        fragment = unquote(local[1:])
        if fragment and not fragment.startswith("/"):
            if fragment not in self.anchors:
                raise SchemaError(f"the reference `{reference}` at `{place}` names no anchor of this schema")
            return self.anchors[fragment]
        found = at_pointer(self.root, fragment)
        if as_object(found) is None and not isinstance(found, bool):
            raise SchemaError(f"the reference `{reference}` at `{place}` leads to no schema")
        return found

    def _expand(self, node: Any, depth: int) -> Any:
        schema = as_object(node)
        if schema is None:
            return node
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            raise SchemaError(f"references expand to more than {MAX_NODES:,} schemas or {MAX_DEPTH} levels")
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            expanded = map_children(schema, lambda child: self._expand(child, depth + 1))
            tag = as_object(expanded.get("discriminator"))
            # `discriminator` points at definitions: only the name of the tag stays
            if tag is not None and "mapping" in tag:
                expanded = {**expanded, "discriminator": {key: tag[key] for key in tag if key != "mapping"}}
            return expanded
        return self._expand_reference(schema, reference, depth)

    def _expand_reference(self, schema: Schema, reference: str, depth: int) -> Any:
        siblings = {key: value for key, value in schema.items() if key not in ("$ref", "$defs", "definitions")}
        if self.ignores_siblings:
            siblings = {key: value for key, value in siblings.items() if key in _ANNOTATIONS or depth == 0}
        siblings = map_children(siblings, lambda child: self._expand(child, depth + 1))
        if reference in self.recursive:
            target = "#" if reference == "#" else definition(self.recursive[reference])
            return {**siblings, "$ref": target}
        resolved = self._expand(self.targets[reference], depth + 1)
        inner = as_object(resolved)
        if inner is None:
            return resolved if not siblings else {"allOf": [resolved], **siblings}
        inner = {key: value for key, value in inner.items() if key not in ("$anchor", "$id", "$defs", "definitions")}
        if all(key in _ANNOTATIONS or key not in inner for key in siblings):
            return {**inner, **siblings}
        return {**siblings, "allOf": [inner, *(as_list(siblings.get("allOf")) or [])]}


def rehome(home: Schema, guest: Schema) -> tuple[Schema, Schema]:
    """Move the definitions that ``guest`` (inlined) refers to into ``home``, and redirect its references."""
    if not any("$ref" in node for _, node in walk(guest)):
        return home, guest
    taken = {
        name: value
        for keyword in ("$defs", "definitions")
        for name, value in (as_object(home.get(keyword)) or {}).items()
    }
    body = {key: value for key, value in guest.items() if key != "$defs"}
    used = {node.get("$ref") for _, node in walk(guest)}
    moved: dict[str, Schema] = {"#": body} if "#" in used else {}
    moved |= {definition(name): value for name, value in (as_object(guest.get("$defs")) or {}).items()}
    names: dict[str, str] = {}
    for reference in moved:
        wanted = reference.rsplit("/", 1)[-1].strip("#") or "constraint"
        plain = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in wanted)
        names[reference] = _fresh(plain, {*taken, *names.values()})

    def turn(node: Schema) -> Schema:
        result = map_children(node, turn)
        reference = node.get("$ref")
        return {**result, "$ref": f"#/$defs/{names[reference]}"} if reference in names else result

    definitions = {names[reference]: turn(value) for reference, value in moved.items()}
    held = as_object(home.get("$defs")) or {}
    return {**home, "$defs": {**held, **definitions}}, turn(body)


def at_pointer(root: Schema, fragment: str) -> Any:
    """Return the value at an RFC 6901 pointer, or None."""
    current: Any = root
    for raw in fragment.split("/")[1:]:
        step = raw.replace("~1", "/").replace("~0", "~")
        as_map, as_array = as_object(current), as_list(current)
        if as_map is not None and step in as_map:
            current = as_map[step]
        elif as_array is not None and step.isdigit() and len(step) < 6 and int(step) < len(as_array):
            current = as_array[int(step)]
        else:
            return None
    return current


def _references_in(target: Any) -> set[str]:
    """Return the references that expanding ``target`` follows; definitions that it merely carries do not count."""
    found: set[str] = set()
    stack = [as_object(target)]
    while stack:
        node = stack.pop()
        if node is None:
            continue
        if isinstance(node.get("$ref"), str):
            found.add(node["$ref"])
        stack.extend(child for step, child in children(node) if step[0] not in ("$defs", "definitions"))
    return found


def _reaches(edges: dict[str, set[str]], start: str) -> bool:
    seen: set[str] = set()
    stack = list(edges[start])
    while stack:
        current = stack.pop()
        if current == start:
            return True
        if current not in seen:
            seen.add(current)
            stack.extend(edges.get(current, ()))
    return False


def _fresh(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}{number}", number + 1
    return name


_PLATFORM_FORMATS = frozenset(
    {"int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "float", "double"}
)


def schema_of(model_or_type: Any, mode: JsonSchemaMode = "validation") -> Schema:
    """Generate the schema of ``model_or_type`` with references inlined. Raises SchemaError when it has none.

    ``mode``: `validation` for input, `serialization` for output. Titles that pydantic derives from field names are
    dropped, and so are number formats of one platform.
    """
    try:
        raw = cast("Schema", _raw(model_or_type, mode))
    except (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError) as error:
        name = getattr(model_or_type, "__name__", str(model_or_type))
        raise SchemaError(f"`{name}` has no JSON Schema: {str(error).splitlines()[0]}") from None
    return _plain(inline_references(raw))


def _raw(model_or_type: Any, mode: JsonSchemaMode) -> object:
    if isinstance(model_or_type, TypeAdapter):
        adapter = cast("TypeAdapter[Any]", model_or_type)
        return adapter.json_schema(mode=mode)
    if isinstance(model_or_type, type) and issubclass(model_or_type, BaseModel):
        return model_or_type.model_json_schema(mode=mode)
    adapter = TypeAdapter[Any](cast("Any", model_or_type))
    return adapter.json_schema(mode=mode)


def _plain(schema: Schema) -> Schema:
    kept = {
        key: value
        for key, value in schema.items()
        if key != "title" and not (key == "format" and isinstance(value, str) and value in _PLATFORM_FORMATS)
    }
    return map_children(kept, _plain)
