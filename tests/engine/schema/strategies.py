"""Generated schemas that offer operations, and calls for them. They know the shapes of this folder's tests only."""

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

NAMES = st.sampled_from(["read", "write", "delete", "list", "add-items", "get_all", "purge", "move"])
PARAMETERS = st.sampled_from(["path", "content", "count", "label"])
VALUES = {"path": "string", "content": "string", "count": "integer", "label": "string"}


@st.composite
def property_enums(draw: st.DrawFn) -> Json:
    """A flat schema with an `operation` in one of its spellings, required, optional or with a default."""
    names = draw(st.lists(NAMES, min_size=2, max_size=6, unique=True))
    own = draw(st.sampled_from(["enum", "oneOf", "anyOf", "nullable"]))
    field: Json = {"description": f"One of {', '.join(names)}."}
    if own == "enum":
        field |= {"type": "string", "enum": names}
    elif own == "nullable":
        field |= {"anyOf": [{"type": "string", "enum": names}, {"type": "null"}]}
    else:
        field[own] = [{"const": name, "description": f"Does {name}."} for name in names]
    required = draw(st.booleans())
    if not required and draw(st.booleans()):
        field["default"] = draw(st.sampled_from(names))
    parameters = draw(st.lists(PARAMETERS, max_size=4, unique=True))
    needed = [name for name in parameters if draw(st.booleans())]
    return {
        "type": "object",
        "properties": {"operation": field, **{name: {"type": VALUES[name]} for name in parameters}},
        "required": [*(["operation"] if required else []), *needed],
    }


@st.composite
def root_unions(draw: st.DrawFn) -> Json:
    """Object variants told apart by `action`, some standing for several values."""
    names = draw(st.lists(NAMES, min_size=2, max_size=6, unique=True))
    variants: list[Json] = []
    while names:
        size = draw(st.integers(1, min(2, len(names))))
        own, names = names[:size], names[size:]
        tag: Json = {"const": own[0]} if size == 1 else {"enum": own}
        parameters = draw(st.lists(PARAMETERS, max_size=3, unique=True))
        variant: Json = {
            "type": "object",
            "properties": {"action": tag, **{name: {"type": VALUES[name]} for name in parameters}},
            "required": ["action", *(name for name in parameters if draw(st.booleans()))],
        }
        if draw(st.booleans()):
            variant["additionalProperties"] = False
        variants.append(variant)
    shared: Json = {"properties": {"label": {"type": "string"}}} if draw(st.booleans()) else {}
    return {"type": "object", draw(st.sampled_from(["oneOf", "anyOf"])): variants, **shared}


@st.composite
def calls(draw: st.DrawFn, field: str) -> Json:
    """Arguments that are often right: a known or nearly known operation, and some parameters."""
    value: Json = {}
    operation = draw(st.one_of(NAMES, st.sampled_from([None, "READ", " read", 7, "nothing"])))
    if draw(st.integers(0, 9)):
        value[field] = operation
    for name in draw(st.lists(PARAMETERS, max_size=4, unique=True)):
        value[name] = draw(st.one_of(st.just("text"), st.integers(0, 3)))
    return value
