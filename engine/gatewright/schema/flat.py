"""Shapes that offer operations at the root of a schema, and rules for the names of operation fields and operations.

The families: one property whose values are the operations; a tagged union, whose object variants a property with
constant values separates; variants that their only key separates (`{"move": {...}}` or `{"copy": {...}}`), as serde
writes enums. A name alone decides little, since names mislead: a strong name needs a closed list of texts, a weak one
needs verbs too.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex
from gatewright.schema.operation import KEYED, Choice, Confidence, Operation, OperationSet, choice_of, restrict
from gatewright.schema.walk import (
    UNIONS,
    Find,
    Schema,
    as_list,
    as_object,
    in_place,
    names_required,
    objects,
    properties_of,
)


@frozen
class Candidate:
    """A reading of a schema; among several the highest ``score`` wins."""

    found: OperationSet
    score: int


@frozen
class Shape:
    """A family of shapes at the root; ``names`` are its values of `OperationSet.shape`.

    ``find(schema, field)`` reads an inlined schema; if ``field`` is None, it goes by name and place.
    """

    names: frozenset[str]
    find: Callable[[Schema, str | None], tuple[Candidate, ...]]


_STRONG = frozenset(
    {"op", "operation", "action", "command", "cmd", "verb", "subcommand", "operation_name", "operation_type"}
    | {"action_type", "action_name", "command_name", "command_type", "sub_command", "op_type", "op_name"}
)
_WEAK = frozenset({"mode", "method", "task", "request", "request_type"})
_TAGS = frozenset({"type", "kind", "tag", "t"})
_HTTP = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_FILTERING = late_regex(
    r"\b(filter(s|ed|ing)?|narrow|restrict|only (return|show|list|include)"
    r"|sort(s|ed|ing)?|order by|(output|display) format)\b",
    re.IGNORECASE,
)
_SETTINGS = frozenset(
    {"all", "any", "none", "both", "other", "true", "false", "yes", "no", "auto", "default", "asc", "desc"}
    | {"ascending", "descending", "json", "csv", "xml", "yaml", "html", "markdown", "md", "text", "table", "plain"}
    | {"hour", "day", "week", "month", "year", "today", "low", "medium", "high", "pending", "active", "inactive"}
    | {"done", "completed", "closed", "overdue", "public", "private", "newest", "oldest", "name", "date"}
)
_VERBS = frozenset(
    re.findall(
        r"\w+",
        """
    abort accept activate add allow analyze append apply approve archive assign attach authorize backup ban
    block build cancel check choose clean cleanup clear clone close commit compare configure connect continue convert
    copy create deactivate decline delete deny deploy describe detach detect diff disable disconnect download
    draft drop duplicate edit enable exec execute explore export fetch fill find flag forward generate get
    grant hide import info insert install invite invoke kill launch link list load lock log login logout mark
    merge mkdir modify mount move open overwrite patch pause peek pin ping pop post prepend preview prune
    publish pull purge push put query read rebase reconnect redo refresh register reject release reload remove
    rename reorganize replace reply reset resolve restart restore resume retrieve retry revert revoke rewrite rollback
    rotate run save scale scan schedule search select send set share show skip split start stash stat status stop
    submit subscribe suggest suspend switch sync tag terminate test touch transition unapprove unarchive unban
    unblock undo unflag ungroup uninstall unlink unlock unmerge unmount unpin unread unregister unshare
    unsubscribe update upgrade upload upsert validate verify view watch write
    """,
    )
)


def snake(name: str) -> str:
    """Write ``actionType`` and ``action-type`` as ``action_type``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()


def is_verb(value: str) -> bool:
    """Tell whether an operation's name begins with a verb."""
    return snake(value).split("_")[0].split(".")[0].split(":")[0] in _VERBS


def property_confidence(
    name: str, values: tuple[str, ...], description: str, *, has_parts: bool = False
) -> Confidence | None:
    """Rate a flat property with these values as the operation field; None if it does not look like one.

    ``has_parts``: each value has an object of the same name beside the property.
    """
    plain = snake(name)
    verbs = sum(map(is_verb, values))
    if has_parts and plain in _TAGS and verbs * 2 > len(values) > 1:
        return "high"
    if plain in _STRONG:
        settings = sum(snake(value) in _SETTINGS for value in values)
        says_less = _FILTERING.search(description) or (settings and not verbs)
        return "low" if says_less and verbs * 2 <= len(values) else "high" if verbs else "medium"
    if plain not in _WEAK:
        return None
    if set(values) & _HTTP:
        return "low"
    if verbs * 2 > len(values) and len(values) > 1:
        return "high"
    return "low" if verbs else None


def tag_score(name: str) -> int:
    """Rate the name of a union's tag: 3 an operation word, 2 a weak one, 1 a tag, 0 anything else."""
    plain = snake(name)
    if plain in _STRONG:
        return 3
    return 2 if plain in _WEAK else 1 if plain in _TAGS else 0


def list_confidence(name: str, values: tuple[str, ...], description: str) -> Confidence | None:
    """Rate a list of values, such as ``actions``, in the same way, but never as sure: lists often hold data."""
    plain = snake(name)
    if plain not in _STRONG and plain.removesuffix("s") not in _STRONG:
        return None
    doing = len(values) > 1 and sum(map(is_verb, values)) * 2 > len(values)
    return "low" if _FILTERING.search(description) or not doing else "medium"


_HOLDERS = frozenset(
    {"action", "actions", "command", "commands", "op", "operation", "operations", "ops", "request", "requests"}
    | {"select", "step", "steps", "edit", "edits", "change", "changes", "update", "updates", "mutation", "mutations"}
)


def field_confidence(
    name: str, values: tuple[str, ...], description: str, *, holder: str, is_tag: bool, is_row: bool = False
) -> Confidence | None:
    """Rate a field inside ``holder`` in the same way.

    ``is_tag``: the field separates the variants of a union. ``is_row``: it stands in a list inside a list, where data
    often have fields of such names.
    """
    plain, verbs = snake(name), sum(map(is_verb, values))
    if len(values) < 2:
        return None
    doing = verbs * 2 > len(values) or (is_tag and verbs * 2 == len(values))
    if is_tag and not holder and not (doing and plain in _STRONG):
        return "low"
    if plain in _STRONG:
        says_less = _FILTERING.search(description) or not doing or is_row or any(map(_is_placeholder, values))
        return "low" if says_less else "high"
    if not doing or set(values) & _HTTP or plain not in _WEAK | _TAGS:
        return None
    return "medium" if is_tag or snake(holder) in _HOLDERS else "low"


def _is_placeholder(value: str) -> bool:
    """Tell whether a value stands for values of a later version, which no call uses."""
    return snake(value).startswith("unknown")


def is_operation_name(name: str) -> bool:
    """Tell whether a field's name alone suggests operations."""
    return snake(name) in _STRONG


_SCORES: dict[Confidence, int] = {"declared": 100, "high": 50, "medium": 30, "low": 10}
_SHAPE_NAMES = {
    "enum": "property-enum",
    "const": "property-const",
    "oneOf": "property-union",
    "anyOf": "property-union",
    "pattern": "property-pattern",
}


def _find_property(schema: Schema, field: str | None) -> tuple[Candidate, ...]:
    candidates: list[Candidate] = []
    for name, value in properties_of(schema).items():
        choice = choice_of(value)
        if choice is not None and field in (None, name):
            confidence = "declared" if field else _confidence(schema, name, choice)
            if confidence is not None:
                candidates.append(_property_candidate(schema, name, choice, confidence))
    return tuple(candidates)


def _confidence(schema: Schema, name: str, choice: Choice) -> Confidence | None:
    own = properties_of(schema)
    said = own[name].get("description")
    has_parts = all("properties" in (as_object(own.get(value)) or {}) for value in choice.names)
    return property_confidence(name, choice.names, said if isinstance(said, str) else "", has_parts=has_parts)


def _property_candidate(schema: Schema, name: str, choice: Choice, confidence: Confidence) -> Candidate:
    required = names_required(schema)
    default = properties_of(schema)[name].get("default")
    found = OperationSet(
        field=name,
        operations=tuple(_property_operation(schema, name, operation) for operation in choice.names),
        shape=_SHAPE_NAMES[choice.keyword],
        confidence=confidence,
        default=default if name not in required and isinstance(default, str) and default in choice.names else None,
        field_required=name in required,
    )
    return Candidate(found, _SCORES[confidence] + (5 if name in required else 0))


def _property_operation(schema: Schema, field: str, name: str) -> Operation:
    required = names_required(schema)
    names = [parameter for parameter in properties_of(schema) if parameter != field]
    return Operation(
        name,
        tuple(parameter for parameter in names if parameter in required),
        tuple(parameter for parameter in names if parameter not in required),
    )


def with_restricted_field(schema: Schema, found: OperationSet, allowed: frozenset[str]) -> Schema:
    """Limit the operation property of ``schema`` to the allowed names; it is required unless its default is allowed."""
    keeps_default = found.default in allowed
    own = restrict(properties_of(schema)[found.field], allowed, keep_null=keeps_default)
    result: Schema = {**schema, "properties": {**properties_of(schema), found.field: own}}
    if not keeps_default:
        result["required"] = with_required(schema, found.field)
    return result


def with_required(schema: Schema, field: str) -> list[str]:
    """Return the required names with ``field`` among them."""
    required = list(names_required(schema))
    return required if field in required else [*required, field]


def close(schema: Schema, find: Find | None = None) -> Schema:
    """Add `additionalProperties: false` to ``schema``, unless it has a rule for such keys.

    The keyword sees only properties at its own place, so the root gets the names that branches declare. ``find``
    returns the target of a reference in a branch.
    """
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return schema
    declared = properties_of(schema)
    elsewhere: Schema = {
        name: {} for branch in in_place(schema, find)[1:] for name in properties_of(branch) if name not in declared
    }
    result = {**schema, "additionalProperties": False}
    return {**result, "properties": {**declared, **elsewhere}} if elsewhere else result


PROPERTY_SHAPE = Shape(frozenset(_SHAPE_NAMES.values()), _find_property)


_UNIONS = ("oneOf", "anyOf")
_NAME = "tagged-union"


def variants_by_tag(schema: Schema, keyword: str, tag: str) -> list[tuple[Schema, tuple[str, ...]]] | None:
    """Return each variant under ``keyword`` with its values of ``tag``; None unless every variant has at least one."""
    branches = as_list(schema.get(keyword))
    if not branches:
        return None
    result: list[tuple[Schema, tuple[str, ...]]] = []
    for branch in objects(branches):
        choice = choice_of(properties_of(branch).get(tag))
        if choice is None or choice.nullable or branch.get("type", "object") != "object":
            return None
        result.append((branch, choice.names))
    return result if len(result) == len(branches) else None


def _find_union(schema: Schema, field: str | None) -> tuple[Candidate, ...]:
    candidates: list[Candidate] = []
    for keyword in _UNIONS:
        first = (objects(schema.get(keyword)) or [{}])[0]
        for tag in properties_of(first):
            if field in (None, tag) and (variants := variants_by_tag(schema, keyword, tag)):
                candidate = _union_candidate(schema, tag, variants, declared=field is not None)
                candidates.extend([candidate] if candidate else [])
    return tuple(candidates)


def _union_candidate(
    schema: Schema, tag: str, variants: list[tuple[Schema, tuple[str, ...]]], *, declared: bool
) -> Candidate | None:
    names = tuple(dict.fromkeys(name for _, values in variants for name in values))
    named = (as_object(schema.get("discriminator")) or {}).get("propertyName") == tag
    required = tag in names_required(schema) or all(tag in names_required(variant) for variant, _ in variants)
    distinct = sum(len(values) for _, values in variants) == len(names)
    if not declared and not named and (not distinct or len(names) < 2):
        return None
    sure = named or (required and distinct) or tag_score(tag) == 3
    confidence: Confidence = "declared" if declared else "high" if sure else "low"
    operations = tuple(_union_operation(schema, tag, name, variants) for name in names)
    found = OperationSet(tag, operations, _NAME, confidence, field_required=required)
    return Candidate(found, 60 + 50 * named + 10 * tag_score(tag) + 5 * required + 100 * declared)


def _union_operation(schema: Schema, tag: str, name: str, variants: list[tuple[Schema, tuple[str, ...]]]) -> Operation:
    meant = [variant for variant, values in variants if name in values]
    shared = names_required(schema)
    known = dict.fromkeys([*properties_of(schema), *(key for variant in meant for key in properties_of(variant))])
    known.pop(tag, None)
    required = [key for key in known if key in shared or all(key in names_required(variant) for variant in meant)]
    return Operation(name, tuple(required), tuple(key for key in known if key not in required))


def with_allowed_variants(schema: Schema, found: OperationSet, allowed: frozenset[str], *, seal: bool = True) -> Schema:
    """Keep the variants of allowed operations: each requires its tag and, if ``seal``, is closed."""
    result = dict(schema)
    if choice_of(properties_of(schema).get(found.field)):
        result = with_restricted_field(result, found, allowed)
    for keyword in _UNIONS:
        variants = variants_by_tag(schema, keyword, found.field)
        if variants:
            kept = _variants_of(variants, found.field, allowed)
            result = _with_variants(result, keyword, kept) if seal else {**result, keyword: kept}
    discriminator = as_object(result.get("discriminator"))
    mapping = as_object(discriminator.get("mapping")) if discriminator else None
    if discriminator is not None and mapping is not None:
        rest = {name: target for name, target in mapping.items() if name in allowed}
        result["discriminator"] = {**discriminator, "mapping": rest}
    return result


def _variants_of(variants: list[tuple[Schema, tuple[str, ...]]], tag: str, allowed: frozenset[str]) -> list[Schema]:
    kept: list[Schema] = []
    for variant, values in variants:
        if allowed.isdisjoint(values):
            continue
        own = restrict(properties_of(variant)[tag], allowed, keep_null=False)
        properties = {**properties_of(variant), tag: own}
        kept.append({**variant, "properties": properties, "required": with_required(variant, tag)})
    return kept


def _with_variants(schema: Schema, keyword: str, variants: list[Schema]) -> Schema:
    """Put the variants into the schema; a single one is merged into the root if nothing clashes."""
    rest = {key: value for key, value in schema.items() if key != keyword}
    if len(variants) == 1 and (merged := _merge(rest, variants[0])) is not None:
        return close(merged)
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return {**rest, keyword: variants}
    # a closed variant has to name the properties that it shares with the root
    shared = properties_of(rest)
    result: list[Schema] = []
    for variant in variants:
        if "additionalProperties" in variant or "unevaluatedProperties" in variant:
            result.append(variant)
        else:
            result.append(close({**variant, "properties": {**shared, **properties_of(variant)}}))
    return {**rest, keyword: result}


def _merge(root: Schema, variant: Schema) -> Schema | None:
    """Merge root and variant into one object; None if that could change the meaning."""
    if any(key in ("additionalProperties", "unevaluatedProperties", "patternProperties") for key in root):
        return None
    if "additionalProperties" in variant and properties_of(root):
        return None
    own, shared = properties_of(variant), properties_of(root)
    if any(own[name] != shared[name] and not choice_of(own[name]) for name in own if name in shared):
        return None
    free = {"properties", "required", "type", "title", "description", "discriminator"}
    if any(key in root and root[key] != variant[key] for key in variant if key not in free):
        return None
    required = list(dict.fromkeys([*names_required(root), *names_required(variant)]))
    result = {key: value for key, value in root.items() if key != "discriminator"}
    result |= {key: value for key, value in variant.items() if key not in root}
    result |= {"type": "object", "properties": {**shared, **own}, "required": required}
    return result


UNION_SHAPE = Shape(frozenset({_NAME}), _find_union)


FIELD = "{}"
"""The name of the operation field where the key itself is the operation."""


def key_of(branch: Schema) -> str | None:
    """Return the only key that a variant takes, if the variant requires it."""
    names = list(properties_of(branch))
    sealed = branch.get("additionalProperties") is False and "patternProperties" not in branch
    return names[0] if sealed and len(names) == 1 and names == list(names_required(branch)) else None


def is_other_type(branch: Schema) -> bool:
    """Tell whether a variant is not for objects, so that no call can mean it."""
    if "type" in branch:
        return branch["type"] != "object"
    return isinstance(branch.get("const"), str) or all(isinstance(value, str) for value in branch.get("enum", [None]))


def candidates_by_key(schema: Schema, field: str | None) -> tuple[Candidate, ...]:
    """Read a root whose variants differ by their only key."""
    if properties_of(schema) or field not in (None, FIELD):
        return ()
    for keyword in UNIONS:
        branches = objects(schema.get(keyword))
        meant = [branch for branch in branches if not is_other_type(branch)]
        keys = [key_of(branch) for branch in meant]
        names = [key for key in keys if key is not None]
        if (
            meant
            and len(names) == len(keys) == len(set(names))
            and len(branches) == len(as_list(schema[keyword]) or [])
        ):
            return (_candidate_by_key(names, meant),)
    return ()


def _candidate_by_key(names: list[str], branches: list[Schema]) -> Candidate:
    operations = tuple(_operation_by_key(name, branch) for name, branch in zip(names, branches, strict=True))
    return Candidate(OperationSet(FIELD, operations, KEYED, "medium" if len(names) > 1 else "low"), 20)


def _operation_by_key(name: str, branch: Schema) -> Operation:
    inner = as_object(properties_of(branch)[name]) or {}
    required = names_required(inner)
    return Operation(name, required, tuple(key for key in properties_of(inner) if key not in required))
