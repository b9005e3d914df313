"""Schemas of an OpenAPI document as JSON Schemas that stand alone: without references, within bounds.

Where a schema comes back to itself, or is larger than a model could use, its inside is left open: the server checks it.
"""

from __future__ import annotations

from gatewright.adapters.openapi_document import Document, Faulty, step
from gatewright.schema.walk import Schema, as_list, as_object

MAX_NODES = 1_500
"""A bound for the arguments of one operation."""
MAX_DEPTH = 12
MAX_TEXT = 400
MAX_CHOICES = 300
_PLAIN = (
    *("type", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf", "minItems"),
    *("maxItems", "uniqueItems", "minProperties", "maxProperties", "default", "const"),
)
_LISTS = ("anyOf", "oneOf", "allOf")


class Schemas:
    """Converts the schemas of one operation; together they may have `MAX_NODES` schemas."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._left = MAX_NODES
        self._open: list[str] = []

    def of(self, value: object, pointer: str) -> Schema:
        """The schema at a place. Raises Faulty."""
        if isinstance(value, bool):
            return {} if value else {"not": {}}
        given = as_object(value)
        if given is not None and "$ref" not in given:
            return self._converted(given, pointer)
        found, place = self._document.resolved(value, pointer)
        if place in self._open:
            return _outline(found)
        self._document.check(found, place, "Schema")
        self._open.append(place)
        try:
            return self._converted(found, place)
        finally:
            self._open.pop()

    def members(self, value: object, pointer: str) -> tuple[dict[str, Schema], frozenset[str]] | None:
        """The properties of an object that can be given one by one, and those it needs; None: only as a whole."""
        found, place = self._document.resolved(value, pointer)
        self._document.check(found, place, "Schema")
        properties, required = as_object(found.get("properties")), _names(found.get("required"))
        if not properties or found.get("type", "object") != "object" or any(key in found for key in _LISTS):
            return None
        if found.get("additionalProperties", False) is not False and "additionalProperties" in found:
            return None
        kept = {name: one for name, one in properties.items() if not self._is_answer(one, f"{place}/properties")}
        read = {name: self.of(one, f"{place}/properties{step(name)}") for name, one in kept.items()}
        return read, frozenset(required) & read.keys()

    def _is_answer(self, value: object, pointer: str) -> bool:
        """Tell whether a property stands in answers alone."""
        try:
            return self._document.resolved(value, pointer)[0].get("readOnly") is True
        except Faulty:
            return False

    def _converted(self, given: Schema, pointer: str) -> Schema:
        self._left -= 1
        if self._left < 0 or len(self._open) > MAX_DEPTH or pointer.count("/") > 100:
            return _outline(given)
        made: Schema = {key: given[key] for key in _PLAIN if key in given}
        if (choices := as_list(given.get("enum"))) is not None and len(choices) <= MAX_CHOICES:
            made["enum"] = list(choices)
        if text := short(given.get("description")):
            made["description"] = text
        if (properties := as_object(given.get("properties"))) is not None:
            made["properties"] = {
                name: self.of(one, f"{pointer}/properties{step(name)}")
                for name, one in properties.items()
                if not self._is_answer(one, pointer)
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
        return _as_json_schema(made, given)


def short(value: object) -> str:
    """The first paragraph of a text, cut where it is long."""
    text = " ".join(value.strip().partition("\n\n")[0].split()) if isinstance(value, str) else ""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."


def _as_json_schema(made: Schema, given: Schema) -> Schema:
    """Spell as JSON Schema 2020-12 what OpenAPI 3.0 spells otherwise; 3.1 spells it so."""
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
    return made


def _outline(given: Schema) -> Schema:
    """The kind of value alone."""
    kind = given.get("type")
    return {"type": kind} if isinstance(kind, str) else {}


def _names(value: object) -> list[str]:
    return [one for one in as_list(value) or () if isinstance(one, str)]
