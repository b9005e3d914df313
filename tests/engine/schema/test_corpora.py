"""Filtering the tools of real servers: nothing hidden can be called, nothing hidden is named."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from jsonschema.validators import validator_for

from gatewright.schema import SchemaChecker, check_schema, discover_operations, filter_with_lints

NOT_NAMES = ("/$schema", "/$ref", "/$id")


def rows(corpora: Path, name: str) -> list[dict[str, Any]]:
    return json.loads((corpora / name).read_text(encoding="utf-8"))


def property_enum_tools(corpora: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    tools = {row["id"]: row["tool"] for row in rows(corpora, "mcp_tools.json")}
    marked = [row for row in rows(corpora, "multi_op_annotations.json") if row["shape"].startswith("property-enum")]
    return [(row, tools[row["id"]]) for row in marked]


def texts(value: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from texts(item, f"{pointer}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            yield from texts(item, f"{pointer}/{index}")


def bearers(schema: Any, allowed: frozenset[str], field: str) -> set[str]:
    """Names that something allowed bears: parameters at any depth, other parameters' legal values, the operations."""
    found = set(allowed)
    stack: list[tuple[str, Any]] = [("", schema)]
    while stack:
        name, node = stack.pop()
        if isinstance(node, list):
            stack.extend((name, item) for item in cast("list[Any]", node))
        elif isinstance(node, dict):
            table = cast("dict[str, Any]", node)
            found |= set(table.get("properties", {}))
            if name != field:
                found |= {value for value in table.get("enum", []) if isinstance(value, str)}
                found |= {value for value in (table.get("const"), table.get("default")) if isinstance(value, str)}
            stack.extend(table.items())
    return found


def names_in(text: str, hidden: frozenset[str], borne: set[str]) -> list[str]:
    """Hidden names that stand in ``text`` as whole tokens, whatever their case."""
    for compound in sorted((name for name in borne if not name.isidentifier()), key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(compound)}(?![\w-])", "", text)
    mentioned = [name for name in hidden - borne if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)]
    exact = {name for name in mentioned if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)}
    return [name for name in mentioned if name in exact or not _is_borne_in_other_case(name, text, borne)]


def _is_borne_in_other_case(name: str, text: str, borne: set[str]) -> bool:
    return all(match.group() in borne for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE))


def subsets(names: tuple[str, ...]) -> list[frozenset[str]]:
    every = [frozenset({name}) for name in names] + [frozenset(names) - {name} for name in names]
    return [kept for kept in dict.fromkeys(every) if kept and kept != frozenset(names)]


def test_discovery_agrees_with_every_annotation_of_this_shape(corpora: Path) -> None:
    marked = property_enum_tools(corpora)
    assert len(marked) >= 60
    wrong: list[str] = []
    for row, tool in marked:
        found = discover_operations(tool["inputSchema"])
        seen = found and (found.field, sorted(found.names), found.default)
        if seen != (row["operation_field"], sorted(row["operations"]), row["default"]):
            wrong.append(f"{row['id']}: {seen}")
    assert wrong == []


def test_a_tool_nobody_annotated_is_never_taken_for_one_with_several_operations(corpora: Path) -> None:
    marked = {row["id"] for row in rows(corpora, "multi_op_annotations.json")}
    taken: list[str] = []
    for row in rows(corpora, "mcp_tools.json"):
        found = None if row["id"] in marked else discover_operations(row["tool"]["inputSchema"])
        if found and found.confidence != "low" and len(found.names) > 1:
            taken.append(f"{row['id']}.{found.field}")
    assert taken == []


def test_each_subset_refuses_the_other_operations_in_a_valid_schema(corpora: Path) -> None:
    for row, tool in property_enum_tools(corpora):
        schema, field = tool["inputSchema"], row["operation_field"]
        before = copy.deepcopy(schema)
        for allowed in subsets(tuple(row["operations"])):
            shown = filter_with_lints(schema, allowed, field=field).schema
            assert shown is not None
            assert schema == before
            assert check_schema(shown) == (), row["id"]
            validator_for(shown).check_schema(shown)
            operations = SchemaChecker(
                {**shown, "required": [field], "properties": {field: shown["properties"][field]}}
            )
            for name in row["operations"]:
                assert operations.is_valid({field: name}) == (name in allowed), (row["id"], name)
                assert not operations.is_valid({field: f" {name} "})
                assert not operations.is_valid({field: name.swapcase()})
            whole = SchemaChecker(shown)
            if row["default"] not in allowed:
                assert not whole.is_valid({}), row["id"]
            for name in set(row["operations"]) - allowed:
                assert any(error.pointer == f"/{field}" for error in whole.errors({field: name})), row["id"]


def test_no_subset_names_a_hidden_operation_in_any_text(corpora: Path) -> None:
    leaks: list[str] = []
    for row, tool in property_enum_tools(corpora):
        for allowed in subsets(tuple(row["operations"])):
            result = filter_with_lints(tool["inputSchema"], allowed, field=row["operation_field"])
            hidden = frozenset(row["operations"]) - allowed
            borne = bearers(result.schema, allowed, row["operation_field"])
            outside = [("description of the tool", result.clean(tool.get("description", "")))]
            for place, text in [*texts(result.schema), *outside]:
                if not place.startswith(NOT_NAMES):
                    leaks += [
                        f"{row['id']} {sorted(allowed)} {place}: {name}" for name in names_in(text, hidden, borne)
                    ]
    assert leaks == []


def test_cleaned_texts_have_no_loose_ends(corpora: Path) -> None:
    loose = re.compile(
        r",\s*[,.;)]|\(\s*\)|\(\s*[,;]|\s[,.;](?=\s|$)|[,;:—]\s*$|\b(?:and|or|for|to)\s*[.,;)]|/\s*[.,)]"
    )
    ragged: list[str] = []
    for row, tool in property_enum_tools(corpora):
        originals = {text for _, text in texts(tool)}
        for allowed in subsets(tuple(row["operations"])):
            result = filter_with_lints(tool["inputSchema"], allowed, field=row["operation_field"])
            for _, text in [*texts(result.schema), ("", result.clean(tool.get("description", "")))]:
                if (
                    text not in originals
                    and (found := loose.search(text))
                    and not any(found.group() in old for old in originals)
                ):
                    ragged.append(f"{row['id']}: {text[-200:]}")
    assert ragged == []


def test_shapes_of_common_libraries_filter_to_each_operation(corpora: Path) -> None:
    for row in rows(corpora, "library_schema_shapes.json"):
        found = discover_operations(row["schema"])
        for name in found.names if found else ():
            result = filter_with_lints(row["schema"], [name])
            assert result.schema is not None
            assert check_schema(result.schema) == ()
            others = frozenset(found.names if found else ()) - {name}
            for place, text in texts(result.schema):
                assert not names_in(text, others, {name}), (row["model"], place)


def test_every_listed_tool_can_be_checked_or_says_why_not(corpora: Path) -> None:
    refused = {row["id"]: problems[0].message for row in rows(corpora, "mcp_tools.json")
               if (problems := check_schema(row["tool"]["inputSchema"]))}  # fmt: skip
    assert all("linear time" in message for message in refused.values()), refused
    assert len(refused) < 5
