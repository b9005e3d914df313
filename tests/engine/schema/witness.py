"""Arguments that fit a schema, made from the schema alone; simple on purpose."""

from typing import Any, cast

Json = dict[str, Any]
MAX_DEPTH = 12
_BY_FORMAT = {
    "uri": "https://example.org/a",
    "url": "https://example.org/a",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "date": "2024-01-02",
    "date-time": "2024-01-02T03:04:05Z",
    "email": "a@example.org",
}


class Unmade(Exception):
    """No value was found; the schema may still have one."""


def witness(schema: object, root: Json | None = None, depth: int = 0) -> Any:
    """A value for ``schema``. Raises Unmade."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        if schema is True:
            return "text"
        raise Unmade
    node = cast("Json", schema)
    root = root or node
    if "$ref" in node:
        node = _followed(node, root)
    node = _flat(node, root)
    for keyword in ("oneOf", "anyOf"):
        if keyword in node:
            return _branch(node, keyword, root, depth)
    return _plain(node, root, depth)


def _followed(node: Json, root: Json) -> Json:
    target: Any = root
    for step in node["$ref"].split("/")[1:]:
        target = target[step.replace("%25", "%").replace("~1", "/").replace("~0", "~").replace("%20", " ")]
    return {**target, **{key: value for key, value in node.items() if key != "$ref"}}


def _flat(node: Json, root: Json) -> Json:
    merged = {key: value for key, value in node.items() if key != "allOf"}
    for branch in node.get("allOf", []):
        merged = merge(merged, _followed(branch, root) if "$ref" in branch else branch)
    return merged


def merge(first: Any, second: Any) -> Json:
    """Combine two schemas as far as a witness needs it; a boolean schema asks for nothing."""
    one, other = (cast("Json", schema) if isinstance(schema, dict) else dict[str, Any]() for schema in (first, second))
    result = {**one, **other}
    if "properties" in one or "properties" in other:
        own, added = one.get("properties", {}), other.get("properties", {})
        result["properties"] = {name: merge(own.get(name, {}), added.get(name, {})) for name in {**own, **added}}
    if "required" in one or "required" in other:
        result["required"] = list(dict.fromkeys([*one.get("required", []), *other.get("required", [])]))
    if "enum" in one and "enum" in other:
        result["enum"] = [value for value in one["enum"] if value in other["enum"]]
    if isinstance(one.get("items"), dict) and isinstance(other.get("items"), dict):
        result["items"] = merge(one["items"], other["items"])
    return result


def _branch(node: Json, keyword: str, root: Json, depth: int) -> Any:
    rest = {key: value for key, value in node.items() if key != keyword}
    branches = sorted(node[keyword], key=_plainness)
    for branch in branches:
        table = cast("Json", branch) if isinstance(branch, dict) else dict[str, Any]()
        own = _followed(table, root) if "$ref" in table else table
        try:
            return witness(merge(rest, own), root, depth + 1)
        except Unmade:
            continue
    raise Unmade


def _plainness(branch: object) -> int:
    """Containers first, null last: a witness should say as much as it can."""
    kind = cast("Json", branch).get("type") if isinstance(branch, dict) else None
    return 2 if kind == "null" else 0 if kind in ("array", "object", None) else 1


def _plain(node: Json, root: Json, depth: int) -> Any:
    if "const" in node:
        return node["const"]
    if "enum" in node:
        if not node["enum"]:
            raise Unmade
        return node["enum"][0]
    kinds: Any = node.get("type", "object" if "properties" in node else "array" if "items" in node else "string")
    kind = cast("str", kinds[0] if isinstance(kinds, list) else kinds)
    if kind == "object":
        names = node.get("required", [])
        return {name: witness(node.get("properties", {}).get(name, True), root, depth + 1) for name in names}
    if kind == "array":
        size = max(node.get("minItems", 0), 1 if depth < MAX_DEPTH // 2 else 0)
        return [witness(node.get("items", True), root, depth + 1) for _ in range(size)]
    return _scalar(node, kind)


def _scalar(node: Json, kind: str) -> Any:
    if kind in ("integer", "number"):
        low = node.get("minimum", node.get("exclusiveMinimum", -1) + 1)
        return max(low, 0) if node.get("maximum", 1) >= 0 else node["maximum"]
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    if "format" in node:
        return _BY_FORMAT.get(node["format"], "text")
    text = "a" * max(node.get("minLength", 1), 1)
    return text if "pattern" not in node else "2024-01-02"
