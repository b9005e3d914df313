"""The documented refusals of providers: the schemas in `data`, and rules that no schema can express."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import jsonschema_rs

from gatewright.schema import Schema

DATA = Path(__file__).parent / "data"


@cache
def rules(form: str) -> jsonschema_rs.Draft202012Validator:
    """The published rules of one provider as a schema of its tools."""
    return jsonschema_rs.Draft202012Validator(json.loads((DATA / f"{form}.json").read_text("utf-8")))


def refusals(form: str, body: Schema) -> list[str]:
    """Return the reasons why the provider would refuse the tool; empty if it accepts it."""
    found = [f"{error.instance_path}: {error.message[:200]}" for error in rules(form).iter_errors(body)]
    match form:
        case "openai":
            found += _of_strict(body["function"]["parameters"], strict=body["function"].get("strict", False))
        case "openai-responses":
            found += _of_strict(body["parameters"], strict=body["strict"])
        case "anthropic":
            found += _of_schema(body["input_schema"])
        case "gemini":
            found += _of_declared(body.get("parameters", {}))
        case "genai":
            found += _of_schema(body["schema"])
        case _:
            pass
    return found


def _of_schema(schema: Schema) -> Iterator[str]:
    dated = {**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"}
    if not jsonschema_rs.meta.is_valid(dated):
        yield "no schema of 2020-12"


def _of_strict(schema: Schema, *, strict: bool) -> Iterator[str]:
    yield from _of_schema(schema)
    if not strict:
        return
    nodes = list(_nodes(schema, 1))
    for node, _ in nodes:
        if "properties" in node and node["required"] != list(node["properties"]):
            yield "a parameter is not required"
        branches = [branch["properties"] for branch in node.get("anyOf", ()) if branch.get("properties")]
        firsts = [(next(iter(keys)), json.dumps(next(iter(keys.values())).get("enum"))) for keys in branches]
        if len(set(firsts)) < len(firsts):
            yield f"alternatives share their first key: {firsts}"
    if max(level for _, level in nodes) > 10:
        yield "more than 10 levels"
    values = [value for node, _ in nodes for value in node.get("enum", ())]
    names = [name for node, _ in nodes for name in node.get("properties", ())]
    if len(values) > 1_000 or len(names) > 5_000:
        yield "too many values or parameters"
    if sum(len(text) for text in [*values, *names] if isinstance(text, str)) > 120_000:
        yield "too much text"
    for node, _ in nodes:
        texts = [value for value in node.get("enum", ()) if isinstance(value, str)]
        if len(node.get("enum", ())) > 250 and sum(map(len, texts)) > 15_000:
            yield "too much text in one enum"


def _of_declared(schema: Schema) -> Iterator[str]:
    for node, _ in _nodes(schema, 1):
        if "anyOf" in node and len(node) > 1:
            yield f"anyOf is not the only field: {sorted(node)}"
        if not set(node.get("required", ())) <= set(node.get("properties", ())):
            yield "a required parameter is not declared"


def _nodes(schema: Any, level: int) -> Iterator[tuple[Schema, int]]:
    if not isinstance(schema, dict):
        return
    node = cast("Schema", schema)
    yield node, level
    for inner in cast("Schema", node.get("properties") or {}).values():
        yield from _nodes(inner, level + 1)
    for inner in cast("Schema", node.get("$defs") or {}).values():
        yield from _nodes(inner, level)
    yield from _nodes(node.get("items"), level + 1)
    for inner in node.get("anyOf") or ():
        yield from _nodes(inner, level)
