"""What OpenAI (without strict mode), Anthropic and genai share: JSON Schema with a plain object at the root."""

from __future__ import annotations

from typing import Any

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.schema.draft import NEW_ONLY, is_draft_7
from gatewright.schema.formats.format import ProviderLint
from gatewright.schema.formats.name import NameRule
from gatewright.schema.formats.plain import OBJECT_LISTS, OBJECT_MAPS, OBJECTS, Plain, plain_form
from gatewright.schema.formats.step import KEEP, Step, Wrapped
from gatewright.schema.walk import Schema, as_list, as_object, map_children, properties_of, walk

NAMES = NameRule(r"[a-zA-Z0-9_-]+", "[^a-zA-Z0-9_-]", 64, "1 to 64 letters, digits, `_` and `-`")
_PLAIN_ONLY = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "definitions", "dependencies", "additionalItems"})


@frozen
class Loose:
    """A schema with nothing refused at its root, the step that undoes the rewriting, and what it is made from."""

    schema: Schema
    step: Step
    lints: tuple[ProviderLint, ...]
    shown: Schema
    made_from: tuple[Plain, Schema] | None = None

    def parts(self) -> tuple[Plain, Schema] | None:
        """The plain form, and its root as sent: wrapped where it is refused. None when there is no plain form."""
        if self.made_from is not None or any(lint.level == "refused" for lint in self.lints):
            return self.made_from
        plain = plain_form(self.shown)
        return plain, plain.schema

    def shown_at(self, pointer: str) -> str:
        """A pointer into the root as sent, as one into the shown schema."""
        return pointer.removeprefix(f"/properties/{self.step.key}") if isinstance(self.step, Wrapped) else pointer


def loose_form(shown: Schema, provider: str) -> Loose:
    """``shown`` as providers without a subset of their own take it."""
    if _is_taken_as_it_is(shown):
        return Loose(_with_root(shown), KEEP, (), shown)
    try:
        plain = plain_form(shown)
    except SchemaError as error:
        lint = ProviderLint("reference", provider, "", str(error), "mend the references of the schema", "refused")
        return Loose(shown, KEEP, (lint,), shown)
    root, step = wrapped(plain.schema)
    lints: list[ProviderLint] = []
    if step is not KEEP:
        key = next(iter(root["properties"]))
        keyword = refused_at(plain.schema)[0]
        reason = f"{provider} refuses `{keyword}` at the root, so the arguments are sent as the parameter `{key}`"
        lints.append(ProviderLint("root-wrapped", provider, f"/{keyword}", reason, "calls come back unwrapped"))
    schema = {**root, "$defs": plain.definitions} if plain.definitions else root
    return Loose(_with_root(schema), step, tuple(lints), shown, (plain, root))


def _is_taken_as_it_is(shown: Schema) -> bool:
    """Whether no provider minds anything in ``shown``, so that it is sent unchanged."""
    if shown.get("type") != "object" or refused_at(shown):
        return False
    idle = NEW_ONLY if is_draft_7(shown) else frozenset[str]()
    for _, node in walk(shown):
        if not idle.isdisjoint(node):
            return False
        if not _PLAIN_ONLY.isdisjoint(node) or ("enum" in node and ("oneOf" in node or "anyOf" in node)):
            return False
        if _holds_boolean(node) or isinstance(node.get("items"), list) or _lacks_items(node):
            return False
    return True


def _holds_boolean(node: Schema) -> bool:
    """Tell whether `true` or `false` stands for a schema where providers take only objects."""
    held = [node[keyword] for keyword in OBJECTS & node.keys()]
    for keyword in OBJECT_MAPS & node.keys():
        held += (as_object(node[keyword]) or {}).values()
    for keyword in OBJECT_LISTS & node.keys():
        held += as_list(node[keyword]) or []
    return any(isinstance(one, bool) for one in held)


def _with_root(schema: Schema) -> Schema:
    result = _with_items(schema)
    return result if "properties" in result else {**result, "properties": {}}


def _with_items(value: Any) -> Any:
    """Every schema that an array may fit says what its elements are, if only that they may be anything."""
    table = as_object(value)
    if table is None:
        return value
    if not any(_lacks_items(node) for _, node in walk(table)):
        return table
    current = map_children(table, _with_items)
    return {**current, "items": {}} if _lacks_items(current) else current


def _lacks_items(node: Schema) -> bool:
    return "items" not in node and "array" in (as_list(node.get("type")) or [node.get("type")])


REFUSED_AT_ROOT = ("oneOf", "anyOf", "allOf", "not", "enum", "const", "$ref")
_KEYS = ("input", "arguments", "call", "input_object")


def refused_at(root: Schema) -> tuple[str, ...]:
    """The keywords of ``root`` that function calling does not take there."""
    return tuple(keyword for keyword in REFUSED_AT_ROOT if keyword in root)


def wrapped(root: Schema) -> tuple[Schema, Step]:
    """``root`` as a parameter of an object without other parameters, and the step that undoes it."""
    if not refused_at(root):
        return root, KEEP
    known = {name for _, node in walk(root) for name in properties_of(node)}
    key = next((key for key in _KEYS if key not in known), "_".join(_KEYS))
    whole: Schema = {"type": "object", "properties": {key: root}, "required": [key], "additionalProperties": False}
    return whole, Wrapped(key)
