"""Calls for a schema, right and nearly right, and providers' schemas read as JSON Schema."""

import random
import string
from typing import Any, cast

from gatewright.schema import Format, Schema, SchemaChecker, ToolListing
from gatewright.schema.walk import as_object

TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
TEXTS = [
    "",
    "a",
    "read",
    "READ",
    " read ",
    "x y",
    "2024-01-02",
    "2024-01-02T03:04:05Z",
    "a@b.example",
    "7",
    "null",
    "{}",
    "é✓",
]


class Maker:
    """Values that often fit a schema; ``rng`` decides everything."""

    def __init__(self, root: Schema, rng: random.Random) -> None:
        self.rng = rng
        self.root = root

    def value(self, schema: Any, depth: int = 0) -> Any:
        if not isinstance(schema, dict):
            return self.anything(depth)
        node = cast("Schema", schema)
        if isinstance(node.get("$ref"), str):
            return self.value(self.target(node["$ref"]), depth + 1)
        if "const" in node:
            return node["const"]
        if node.get("enum"):
            return self.rng.choice(node["enum"])
        for keyword in ("anyOf", "oneOf"):
            if node.get(keyword) and depth < 8:
                chosen = self.value(self.rng.choice(node[keyword]), depth + 1)
                table = as_object(chosen)
                if table is None or not ("properties" in node or node.get("required")):
                    return chosen  # pyright: ignore[reportUnknownVariableType]
                return {**self.object({key: value for key, value in node.items() if key != keyword}, depth), **table}
        if node.get("allOf"):
            parts = [self.value(part, depth + 1) for part in node["allOf"]]
            tables = [cast("Schema", part) for part in parts if isinstance(part, dict)]
            return {key: value for table in tables for key, value in table.items()} if tables else parts[0]
        kind = node.get("type")
        if isinstance(kind, list):
            kind = self.rng.choice(cast("list[str]", kind))
        if kind is None:
            kind = "object" if "properties" in node else self.rng.choice(TYPES)
        return self.of_type(kind, node, depth)

    def target(self, reference: str) -> Any:
        current: Any = self.root
        for step in reference.removeprefix("#").split("/")[1:]:
            current = current.get(step.replace("~1", "/").replace("~0", "~").replace("%25", "%"), {})
        return current

    def of_type(self, kind: str, node: Schema, depth: int) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                return self.rng.random() < 0.5
            case "integer" | "number":
                return self.number(kind, node)
            case "string":
                return self.text(node)
            case "array":
                return self.array(node, depth)
            case _:
                return self.object(node, depth)

    def number(self, kind: str, node: Schema) -> Any:
        low = node.get("minimum", node.get("exclusiveMinimum", -3))
        high = node.get("maximum", node.get("exclusiveMaximum", low + 9))
        chosen = self.rng.choice([low, high, low + 1, high - 1, (low + high) / 2, 0, 1])
        return int(chosen) if kind == "integer" or self.rng.random() < 0.3 else chosen

    def text(self, node: Schema) -> str:
        text = self.rng.choice(TEXTS)
        least = node.get("minLength", 0)
        if len(text) < least and self.rng.random() < 0.9:
            text += "".join(self.rng.choices(string.ascii_letters, k=min(least, 60)))
        most = node.get("maxLength")
        return text[:most] if isinstance(most, int) and self.rng.random() < 0.9 else text

    def array(self, node: Schema, depth: int) -> list[Any]:
        least = min(node.get("minItems", 0), 6)
        count = self.rng.randint(least, least + 2) if depth < 6 else least
        firsts = cast(
            "list[Any]", node.get("prefixItems") or (node["items"] if isinstance(node.get("items"), list) else [])
        )
        rest = node.get("items") if isinstance(node.get("items"), dict) else None
        return [self.value(firsts[i] if i < len(firsts) else rest, depth + 2) for i in range(count)]

    def object(self, node: Schema, depth: int) -> Schema:
        required = node.get("required", [])
        result: Schema = {}
        properties = cast("Schema", node.get("properties") or {})
        for name, inner in properties.items():
            wanted = 0.97 if name in required else 0.35 if depth < 6 else 0.0
            if self.rng.random() < wanted:
                result[name] = self.value(inner, depth + 1)
        extra = node.get("additionalProperties", True)
        if isinstance(extra, dict) and depth < 6:
            result |= {self.rng.choice("pqr"): self.value(extra, depth + 1) for _ in range(self.rng.randint(0, 2))}
        elif extra is True and self.rng.random() < 0.1:
            result[self.rng.choice(["zz", "other", "Op"])] = self.anything(depth)
        return result

    def anything(self, depth: int) -> Any:
        scalars = [None, True, 0, 1, 2.5, -7, *TEXTS]
        if depth > 4 or self.rng.random() < 0.7:
            return self.rng.choice(scalars)
        if self.rng.random() < 0.5:
            return [self.anything(depth + 1) for _ in range(self.rng.randint(0, 2))]
        return {self.rng.choice("abc"): self.anything(depth + 1) for _ in range(self.rng.randint(0, 2))}

    def spoiled(self, value: Any, depth: int = 0) -> Any:
        """``value`` with one thing changed somewhere."""
        if isinstance(value, dict) and value and self.rng.random() < 0.9:
            table = dict(cast("Schema", value))
            name = self.rng.choice(sorted(table))
            match self.rng.randint(0, 3):
                case 0:
                    del table[name]
                case 1:
                    table[self.rng.choice(["zz", name.upper(), "input"])] = self.anything(3)
                case _:
                    table[name] = self.spoiled(table[name], depth + 1)
            return table
        if isinstance(value, list) and value and self.rng.random() < 0.8:
            array = list(cast("list[Any]", value))
            place = self.rng.randrange(len(array))
            array[place] = self.spoiled(array[place], depth + 1)
            return array
        if depth == 0:
            return {"zz": 1} if value == {} else value  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, str) and self.rng.random() < 0.4:
            return self.rng.choice([value.swapcase(), f" {value}", value + "x"])
        return self.anything(3)


def sent_schema(form: str, body: Schema, *, closed: bool = False) -> SchemaChecker:
    """The schema in a provider's JSON, read the way the provider's documentation says.

    ``closed``: for a provider that cannot forbid undeclared keys, as if it did.
    """
    match form:
        case "mcp":
            return SchemaChecker(body["inputSchema"])
        case "openai":
            return SchemaChecker(body["function"]["parameters"])
        case "openai-responses":
            return SchemaChecker(body["parameters"])
        case "anthropic":
            return SchemaChecker(body["input_schema"])
        case "gemini":
            return SchemaChecker(
                from_openapi(body.get("parameters", {"type": "OBJECT", "properties": {}}), closed=closed)
            )
        case _:
            return SchemaChecker(body["schema"])


def from_openapi(schema: Schema, *, closed: bool = False) -> Schema:
    """A schema of OpenAPI 3.0 as JSON Schema."""
    result: Schema = {"additionalProperties": False} if closed and schema.get("type") == "OBJECT" else {}
    for keyword, value in schema.items():
        match keyword:
            case "type":
                kind = str(value).lower()
                result["type"] = [kind, "null"] if schema.get("nullable") else kind
            case "enum":
                result["enum"] = [*value, None] if schema.get("nullable") else value
            case "properties":
                result["properties"] = {name: from_openapi(inner, closed=closed) for name, inner in value.items()}
            case "items":
                result["items"] = from_openapi(value, closed=closed)
            case "anyOf":
                result["anyOf"] = [from_openapi(inner, closed=closed) for inner in value]
            case "nullable" | "format":
                pass
            case _:
                result[keyword] = value
    return result


def disagreements(form: Format, listing: ToolListing, calls: list[Schema], rng: random.Random) -> list[str]:
    """Where a provider's schema, with the way back, and the shown schema do not say the same of a call."""
    body, shown = form.render(listing), SchemaChecker(listing.schema)
    sent, closed = sent_schema(form.name, body), sent_schema(form.name, body, closed=True)
    lints = form.lints(listing)
    looser = {lint.code for lint in lints if lint.level == "looser"}
    takes = closed if looser == {"other-keys"} else sent
    is_narrower = any(lint.level == "narrower" for lint in lints)
    reader, maker, found = form.reader([listing]), Maker(listing.schema, rng), list[str]()
    for call in calls:
        name, spelled = reader.spell(listing.name, call)
        own, back = shown.is_valid(call), reader.restore(name, spelled)
        if own and not is_narrower and not sent.is_valid(spelled):
            found.append(f"{form.name} {listing.name}: refuses {call} sent as {spelled}")
        if own and back[0] != listing.name:
            found.append(f"{form.name} {listing.name}: comes back as {back[0]}")
        if own and back[1] != call and not (shown.is_valid(back[1]) and reader.spell(*back)[1] == spelled):
            found.append(f"{form.name} {listing.name}: {call} comes back as {back[1]}")
        for other in (spelled, maker.spoiled(spelled), maker.spoiled(spelled)):
            if not looser - {"other-keys"} and takes.is_valid(other):
                restored = reader.restore(name, other)[1]
                if not shown.is_valid(restored):
                    found.append(f"{form.name} {listing.name}: takes {other} that comes back as {restored}")
    return found


def calls_for(schema: Schema, rng: random.Random, count: int) -> list[Schema]:
    """``count`` calls that often fit, and about as many with one thing wrong."""
    maker, made = Maker(schema, rng), list[Schema]()
    for _ in range(count):
        value = maker.value(schema)
        table = cast("Schema", value) if isinstance(value, dict) else {}
        made += [table, maker.spoiled(table)]
    return made
