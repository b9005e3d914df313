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
_ANSWERED = ("type", "const")
_LISTS = ("anyOf", "oneOf", "allOf")


class Schemas:
    """Converts the schemas of one operation; together they may have ``nodes`` schemas.

    ``answers``: they describe what a server sends, else what it is sent.
    """

    def __init__(self, document: Document, nodes: int = MAX_NODES, *, answers: bool = False) -> None:
        self._document, self._answers = document, answers
        self._nodes = self._left = nodes
        self._cuts = 0
        self._open: list[str] = []

    @property
    def used(self) -> int:
        """The number of schemas converted so far."""
        return self._nodes - self._left

    def of(self, value: object, pointer: str) -> Schema:
        """The schema at a place. Raises Faulty."""
        if isinstance(value, bool):
            return {} if value else {"not": {}}
        given = as_object(value)
        if given is not None and "$ref" not in given:
            return self._converted(given, pointer)
        found, place = self._document.resolved(value, pointer)
        if place in self._open:
            return self._outline(found)
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
        kept = {name: one for name, one in properties.items() if not self._is_other(one, f"{place}/properties")}
        read = {name: self.of(one, f"{place}/properties{step(name)}") for name, one in kept.items()}
        return read, frozenset(required) & read.keys()

    def _is_other(self, value: object, pointer: str) -> bool:
        """Tell whether a property stands in answers alone; of an answer, in requests alone."""
        try:
            return self._document.resolved(value, pointer)[0].get("writeOnly" if self._answers else "readOnly") is True
        except Faulty:
            return False

    def _outline(self, given: Schema) -> Schema:
        """The kind of value alone."""
        self._cuts += 1
        kind = given.get("type")
        rows = as_list(kind)
        if isinstance(kind, str) and given.get("nullable") is True:
            return {"type": [kind, "null"]}
        return {"type": kind} if isinstance(kind, str) or (rows and all(isinstance(row, str) for row in rows)) else {}

    def _converted(self, given: Schema, pointer: str) -> Schema:
        self._left -= 1
        if self._left < 0 or len(self._open) > MAX_DEPTH or pointer.count("/") > 100:
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
        if self._cuts > before:  # of what is left open nobody can say that only one fits, or none
            made.pop("not", None)
        if "oneOf" in made and (self._answers or self._cuts > before):
            alike = made.pop("oneOf")
            made |= {"allOf": [*made.get("allOf", ()), {"anyOf": alike}]} if "anyOf" in made else {"anyOf": alike}
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
    elif given.get("nullable") is True and any(key in made for key in (*_LISTS, "enum")):
        return {"anyOf": [made, {"type": "null"}]}
    return made


def _names(value: object) -> list[str]:
    return [one for one in as_list(value) or () if isinstance(one, str)]
