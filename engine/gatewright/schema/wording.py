"""The texts inside a schema: descriptions, titles, examples."""

from __future__ import annotations

from typing import Any

from gatewright.schema.operation import OperationSet
from gatewright.schema.prose import clean_text
from gatewright.schema.walk import (
    LISTS,
    MAPS,
    SINGLES,
    Schema,
    as_list,
    as_object,
    map_children,
    properties_of,
    walk,
)
from gatewright.schema.words import Words

_NOT_TEXT = frozenset(
    {"$schema", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "type", "format", "pattern", "required"}
    | {"enum", "const", "default", "contentEncoding", "contentMediaType", "dependentRequired", "discriminator"}
)
_SAMPLES = frozenset({"examples", "example"})


def bearing_names(schema: Schema) -> frozenset[str]:
    """What a filtered schema itself needs: names of its parameters and their legal values, operations included."""
    names: set[str] = set()
    for _, node in walk(schema):
        names |= properties_of(node).keys()
        values = [*(as_list(node.get("enum")) or []), node.get("const"), node.get("default")]
        names |= {value for value in values if isinstance(value, str)}
    return frozenset(names)


def clean_wording(schema: Schema, found: OperationSet, hidden: frozenset[str], kept: frozenset[str]) -> Schema:
    """``schema`` with cleaned texts."""
    cleaner = _Cleaner(hidden, kept, frozenset(found.names) - hidden)
    return cleaner.schema(_without_hidden_samples(schema, found, hidden))


class _Cleaner:
    """One run over one schema."""

    def __init__(self, hidden: frozenset[str], kept: frozenset[str], operations: frozenset[str]) -> None:
        self.hidden, self.kept, self.operations = hidden, kept, operations
        self.words = Words(hidden, kept, operations)

    def schema(self, schema: Schema) -> Schema:
        result: Schema = {}
        for keyword, value in map_children(schema, self.schema).items():
            if keyword in _NOT_TEXT or keyword in MAPS or keyword in LISTS or keyword in SINGLES:
                result[keyword] = value
                continue
            if keyword not in _SAMPLES:
                cleaned = self._value(value)
            elif (samples := as_list(value)) is not None:  # they are data: one that names a hidden operation goes whole
                cleaned = [item for item in samples if not self._mentions(item)]
            else:
                cleaned = None if self._mentions(value) else value
            if cleaned not in (None, "", [], {}) or cleaned == value:
                result[keyword] = cleaned
        return result

    def _value(self, value: Any) -> Any:
        """Any value under a keyword that is not a schema keyword: texts are cleaned, what is left empty goes."""
        if isinstance(value, str):
            return clean_text(value, self.hidden, self.kept, operations=self.operations)
        if (array := as_list(value)) is not None:
            return [cleaned for item in array if (cleaned := self._value(item)) not in ("", {}) or cleaned == item]
        if (table := as_object(value)) is not None:
            kept = {key: item for key, item in table.items() if not self.words.hits(key)}
            return {
                key: cleaned for key, item in kept.items() if (cleaned := self._value(item)) != "" or cleaned == item
            }
        return value

    def _mentions(self, value: Any) -> bool:
        if isinstance(value, str):
            return self.words.hits(value)
        if (array := as_list(value)) is not None:
            return any(map(self._mentions, array))
        table = as_object(value) or {}
        return any(self.words.hits(key) or self._mentions(item) for key, item in table.items())


def _without_hidden_samples(schema: Schema, found: OperationSet, hidden: frozenset[str]) -> Schema:
    """Whole-call examples and defaults at the root that call a hidden operation, by name or by leaving it out, go."""

    def is_hidden(sample: Any) -> bool:
        table = as_object(sample)
        if table is None:
            return False
        called = found.of(table)
        return called is None or any(name in hidden for name in called)

    result = dict(schema)
    for keyword in ("examples", "example", "default"):
        samples = as_list(schema.get(keyword)) if keyword == "examples" else None
        if samples is not None:
            result[keyword] = [sample for sample in samples if not is_hidden(sample)]
        elif keyword in schema and is_hidden(schema[keyword]):
            del result[keyword]
    return (
        result if result.get("examples") != [] else {key: value for key, value in result.items() if key != "examples"}
    )
