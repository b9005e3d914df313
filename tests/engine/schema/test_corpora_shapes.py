"""Every shape of real servers and libraries: found, filtered to subsets, and only the allowed calls pass."""

import copy
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from gatewright.schema import (
    FilterResult,
    OperationSet,
    Schema,
    SchemaChecker,
    check_schema,
    discover_operations,
    filter_operations,
    filter_with_lints,
    inline_references,
    survey,
)
from gatewright.schema.operation import EACH, Steps
from tests.engine.schema.test_corpora import NOT_NAMES, bearers, names_in, subsets, texts
from tests.engine.schema.witness import Unmade, merge, witness

Json = dict[str, Any]
SHAPES = (
    "property-enum",
    "property-enum(single-op)",
    "free-string",
    "nested-enum+$defs",
    "nested-array-union-const",
    "library",
)
OFF_BY_DEFAULT = {"mcp-grafana::grafana_api_request"}
"""An HTTP method is an operation in this one tool, and a parameter in four others that look alike."""
NO_TOOL = ("untagged_enum", "unit_variants")
"""Models of the libraries in which no field and no key tells the variants apart."""


@dataclass(frozen=True, slots=True)
class Row:
    """A schema with the operations that somebody else says it has."""

    name: str
    shape: str
    schema: Schema
    description: str
    field: str
    operations: tuple[str, ...]
    default: str | None

    @property
    def is_free(self) -> bool:
        return self.shape == "free-string"

    @property
    def said(self) -> Json:
        """What the operator has to say before the operations are known."""
        return {"field": self.field, "operations": self.operations} if self.is_free else {}

    def found(self) -> OperationSet:
        found = discover_operations(self.schema, **self.said)
        assert found is not None, self.name
        return found


def read(corpora: Path, name: str) -> Any:
    return json.loads((corpora / name).read_text(encoding="utf-8"))


@dataclass(slots=True)
class Filtered:
    """Rows filtered to each of their subsets, once for all tests."""

    rows: list[Row]
    done: dict[tuple[str, frozenset[str]], FilterResult]

    def __call__(self, row: Row, allowed: frozenset[str]) -> FilterResult:
        key = (row.name, allowed)
        if key not in self.done:
            self.done[key] = filter_with_lints(row.schema, allowed, **row.said)
        return self.done[key]


@pytest.fixture(scope="module")
def filtered(rows: list[Row]) -> Filtered:
    return Filtered(rows, {})


@pytest.fixture(scope="module")
def rows(corpora: Path) -> list[Row]:
    tools = {row["id"]: row["tool"] for row in read(corpora, "mcp_tools.json")}
    found: list[Row] = []
    for row in read(corpora, "multi_op_annotations.json"):
        if row["operations"] is None:
            continue
        tool = tools[row["id"]]
        words = (row["operation_field"], tuple(row["operations"]), row["default"])
        found.append(Row(row["id"], row["shape"], tool["inputSchema"], tool.get("description") or "", *words))
    for row in read(corpora, "library_schema_shapes.json"):
        reading = discover_operations(row["schema"])
        if reading is not None:
            words = (reading.field, reading.names, reading.default)
            found.append(Row(f"{row['source']} {row['model']}", "library", row["schema"], "", *words))
    return found


def test_every_shape_that_was_annotated_is_looked_at(rows: list[Row], corpora: Path) -> None:
    known = {row["shape"] for row in read(corpora, "multi_op_annotations.json")}
    assert {shape for shape in known if not shape.startswith("open-command")} <= set(SHAPES)
    assert len([row for row in rows if row.shape != "library"]) >= 103


def test_field_operations_and_default_are_found_as_annotated(rows: list[Row]) -> None:
    wrong: list[str] = []
    for row in rows:
        found = row.found()
        leaf = row.field.rsplit(".", 1)[-1]
        seen = (found.places[0][-1] if not found.is_keyed else found.field, sorted(found.names), found.default)
        if seen != (leaf, sorted(row.operations), row.default):
            wrong.append(f"{row.name}: {seen}")
    assert wrong == []
    low = {row.name for row in rows if row.shape != "library" and row.found().confidence == "low"}
    assert low == OFF_BY_DEFAULT


def test_every_library_schema_is_read_or_honestly_not(corpora: Path) -> None:
    for row in read(corpora, "library_schema_shapes.json"):
        found = discover_operations(row["schema"])
        if row["operation_field"] == "operation":
            assert found is not None
            assert found.places[0][-1] == "operation"
            assert found.confidence == "high", row["model"]
        else:
            assert (found is None) == row["model"].startswith(NO_TOOL), row["model"]


def chosen(row: Row, found: OperationSet) -> list[frozenset[str]]:
    """Every single one, all but one, and a few at random, the same in every run."""
    dice = random.Random(row.name)
    some = [frozenset(dice.sample(found.names, dice.randrange(1, len(found.names)))) for _ in found.names[3:6]]
    return list(dict.fromkeys([*subsets(found.names), *some]))


def demand(steps: Steps) -> Json:
    """A schema that asks for everything on the way, so that a witness holds the operation."""
    if not steps:
        return {}
    if steps[0] == EACH:
        return {"items": demand(steps[1:])}
    return {"properties": {steps[0]: demand(steps[1:])}, "required": [steps[0]]}


def calls_of(row: Row, found: OperationSet, whole: SchemaChecker) -> Iterator[tuple[str, Json]]:
    """One valid call of each operation."""
    for name in found.names:
        single = filter_operations(row.schema, [name], **row.said) or row.schema
        wanted = {} if found.is_keyed else demand(found.places[0])
        try:
            call = cast("Json", witness(merge(inline_references(single), wanted)))
        except Unmade:
            continue
        if whole.is_valid(call) and found.of(call) == (name,):
            yield name, call


LEFT_OUT = object()


def with_value(call: Json, steps: Steps, value: object) -> Json:
    """The call with another value at the place of its operation."""
    result = copy.deepcopy(call)

    def put(node: Any, rest: Steps) -> None:
        if rest[0] == EACH:
            for index, item in enumerate(cast("list[Any]", node) if isinstance(node, list) else []):
                if rest[1:]:
                    put(item, rest[1:])
                else:
                    node[index] = value
        elif isinstance(node, dict):
            if rest[1:]:
                put(cast("Json", node).get(rest[0]), rest[1:])
            elif value is LEFT_OUT:
                cast("Json", node).pop(rest[0], None)
            else:
                node[rest[0]] = value

    put(result, steps)
    return result


def joined(one: Any, other: Any, steps: Steps) -> Any:
    """Two calls as one batch: the elements of both."""
    if isinstance(one, list) and isinstance(other, list):
        return [*cast("list[Any]", one), *cast("list[Any]", other)]
    if isinstance(one, dict) and isinstance(other, dict) and steps:
        table, second = cast("Json", one), cast("Json", other)
        return {**table, steps[0]: joined(table.get(steps[0]), second.get(steps[0]), steps[1:])}
    return cast("Any", one)


def variations(name: str, call: Json, found: OperationSet, others: list[Json]) -> Iterator[Json]:
    """The call itself and what a model might send in its place."""
    yield call
    if found.is_keyed:
        yield {name.swapcase(): call[name]}
        yield {**call, **(others[0] if others else {})}
        return
    for steps in found.places:
        for value in (name.swapcase(), f" {name} ", LEFT_OUT, None, 7, [name], {"value": name}, ""):
            yield with_value(call, steps, value)
        if EACH in steps:
            yield from (joined(call, other, steps) for other in others)


@pytest.mark.parametrize("shape", SHAPES)
def test_each_subset_takes_exactly_the_calls_of_allowed_operations(filtered: Filtered, shape: str) -> None:
    made, wrong = 0, list[str]()
    for row in (row for row in filtered.rows if row.shape == shape):
        found = row.found()
        every = filter_operations(row.schema, found.names, **row.said)
        whole = SchemaChecker(every or {})
        assert row.is_free or every is row.schema
        known = dict(calls_of(row, found, whole))
        made += len(known)
        before = copy.deepcopy(row.schema)
        for allowed in chosen(row, found):
            shown = filtered(row, allowed).schema
            assert shown is not None
            assert row.schema == before
            assert check_schema(shown) == (), row.name
            checker = SchemaChecker(shown)
            for name, call in known.items():
                others = [other for key, other in known.items() if key not in allowed]
                for sent in variations(name, call, found, others[:1]):
                    called = found.of(sent)
                    may = called is not None and set(called) <= allowed
                    if checker.is_valid(sent) != (may and whole.is_valid(sent)):
                        wrong.append(f"{row.name} {sorted(allowed)}: {sent}")
    assert wrong == []
    assert made > 0 or shape.endswith("(single-op)")


@pytest.mark.parametrize("shape", SHAPES)
def test_no_subset_names_a_hidden_operation(filtered: Filtered, shape: str) -> None:
    leaks: list[str] = []
    for row in (row for row in filtered.rows if row.shape == shape):
        found = row.found()
        for allowed in chosen(row, found):
            result = filtered(row, allowed)
            hidden = frozenset(found.names) - allowed
            borne = bearers(result.schema, allowed, found.places[0][-1])
            for place, text in [*texts(result.schema), ("description", result.clean(row.description))]:
                if not place.startswith(NOT_NAMES) and (named := names_in(text, hidden, borne)):
                    leaks.append(f"{row.name} {sorted(allowed)} {place}: {named}")
    assert leaks == []


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_shown_offers_what_is_allowed_and_none_offers_nothing(filtered: Filtered, shape: str) -> None:
    for row in (row for row in filtered.rows if row.shape == shape):
        found = row.found()
        assert filter_operations(row.schema, [], **row.said) is None
        assert filter_operations(row.schema, ["no such operation"], **row.said) is None
        for allowed in chosen(row, found):
            shown = filtered(row, allowed).schema
            again = discover_operations(shown or {}, field=None if found.is_keyed else found.field)
            if len(allowed) > 1:
                assert again is not None, (row.name, allowed)
                assert set(again.names) == allowed, row.name


REVIEWED = Path(__file__).parent / "data" / "reviewed_readings.json"
"""Every reading of a tool that nobody annotated, with what a person says of it."""


def test_what_is_read_into_other_tools_is_what_was_reviewed(corpora: Path) -> None:
    """Of 245 closed lists in 1,249 tools, filters, sort orders, formats, themes and the like are not even suspected."""
    marked = {row["id"] for row in read(corpora, "multi_op_annotations.json")}
    others = [row for row in read(corpora, "mcp_tools.json") if row["id"] not in marked]
    reviewed = [(row["id"], row["field"], row["confidence"]) for row in json.loads(REVIEWED.read_text("utf-8"))]
    found = [
        (row["id"], reading.field, reading.confidence)
        for row in others
        for reading in survey(row["tool"]["inputSchema"], row["tool"].get("description") or "").readings
    ]
    assert len(others) == 1_249
    assert sorted(found) == sorted(reviewed)


def test_no_tool_without_operations_is_gated_by_a_field(corpora: Path) -> None:
    marked = {row["id"] for row in read(corpora, "multi_op_annotations.json")}
    gated = {
        row["id"]: (found.field, found.names)
        for row in read(corpora, "mcp_tools.json")
        if row["id"] not in marked
        and (found := survey(row["tool"]["inputSchema"], row["tool"].get("description") or "").found) is not None
    }
    assert gated == {"@wonderwhy-er/desktop-commander::get_prompts": ("action", ("get_prompt",))}


LOOSE = re.compile(r",\s*[,.;)]|\(\s*\)|\(\s*[,;]|\s[,.;](?=\s|$)|[,;:—]\s*$|\b(?:and|or|for|to)\s*[.,;)]|/\s*[.,)]")


@pytest.mark.parametrize("shape", SHAPES)
def test_cleaned_texts_have_no_loose_ends(filtered: Filtered, shape: str) -> None:
    ragged: list[str] = []
    for row in (row for row in filtered.rows if row.shape == shape):
        originals = {text for _, text in texts(row.schema)} | {row.description}
        bare = {re.sub(r"\s\([^()]*\)", "", text) for text in originals}
        for allowed in chosen(row, row.found()):
            result = filtered(row, allowed)
            for _, text in [*texts(result.schema), ("", result.clean(row.description))]:
                found = None if text in originals else LOOSE.search(text)
                if found and not any(found.group() in old for old in [*originals, *bare]):
                    ragged.append(f"{row.name}: {text[-200:]}")
                if text and text not in originals and text[0].isspace() and not row.description[:1].isspace():
                    ragged.append(f"{row.name}: begins with a space: {text[:80]}")
    assert ragged == []
