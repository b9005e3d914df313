"""Moving the recursive definitions of one schema into another document, so that its references still lead there."""

from __future__ import annotations

from gatewright.schema.walk import Schema, as_object, map_children, walk


def rehomed(home: Schema, guest: Schema) -> tuple[Schema, Schema]:
    """``home`` with the definitions that ``guest`` (inlined) still refers to, and ``guest`` referring to them there."""
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
    moved |= {f"#/$defs/{_escaped(name)}": value for name, value in (as_object(guest.get("$defs")) or {}).items()}
    names: dict[str, str] = {}
    for reference in moved:
        name = _fresh(reference.rsplit("/", 1)[-1].strip("#") or "constraint", {*taken, *names.values()})
        names[reference] = name

    def turned(node: Schema) -> Schema:
        result = map_children(node, turned)
        reference = node.get("$ref")
        return {**result, "$ref": f"#/$defs/{names[reference]}"} if reference in names else result

    definitions = {names[reference]: turned(value) for reference, value in moved.items()}
    held = as_object(home.get("$defs")) or {}
    return {**home, "$defs": {**held, **definitions}}, turned(body)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1").replace("%", "%25")


def _fresh(wanted: str, taken: set[str]) -> str:
    plain = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in wanted)
    name, number = plain, 2
    while name in taken:
        name, number = f"{plain}{number}", number + 1
    return name
