"""Takes hidden operations out of an inlined schema, wherever their field stands.

Each place loses the hidden operations. A guard at the root refuses calls that would still reach them, unless the schema
refuses these already. In doubt the guard is added: a second refusal does no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gatewright.base.frozen import frozen
from gatewright.schema.flat import (
    close,
    is_other_type,
    key_of,
    variants_by_tag,
    with_allowed_variants,
    with_required,
    with_restricted_field,
)
from gatewright.schema.nested import without_hidden_repeats
from gatewright.schema.operation import (
    EACH,
    EACH_MEMBER,
    MISSING,
    OperationSet,
    Steps,
    choice_of,
    holds_batch,
    is_other,
    restrict,
    values_at,
)
from gatewright.schema.walk import (
    UNIONS,
    Find,
    Schema,
    as_list,
    as_object,
    finder,
    in_place,
    items_of,
    names_required,
    objects,
    properties_of,
    target_of,
)

_Check = Callable[[object, Steps, tuple[int, ...]], bool]
_GUARD_ELEMENTS = {EACH: "items", EACH_MEMBER: "additionalProperties"}
_ANY_BUT_NULL = ["array", "boolean", "number", "object", "string"]


@frozen
class Binding:
    """The ``allowed`` operations in order; if ``optional``, a call without the field means one of them."""

    allowed: tuple[str, ...]
    optional: bool
    find: Find

    def holds(self, schema: Schema, steps: Steps) -> bool:
        """Tell whether everything valid for ``schema`` calls only allowed operations at ``steps``."""
        return self._values(schema, steps, ()) and self._present(schema, steps, ())

    def guard(self, steps: Steps) -> Schema:
        """Return a schema that accepts exactly the arguments with allowed operations at ``steps``."""
        if not steps:
            values = [*self.allowed, *([None] if self.optional else [])]
            return {"enum": values}
        step, rest = steps[0], steps[1:]
        if step in _GUARD_ELEMENTS:
            kind: Schema = {} if not rest else {"type": "array" if rest[0] == EACH else "object"}
            return {_GUARD_ELEMENTS[step]: {**kind, **self.guard(rest)}}
        inner = self.guard(rest)
        if rest and not holds_batch(rest):
            inner = {"type": _ANY_BUT_NULL, **inner}
        elif rest == (EACH,):
            inner = {"type": ["array", "null"], **inner}
        needed = not (holds_batch(rest) or (self.optional and not rest))
        return {"properties": {step: inner}, **({"required": [step]} if needed else {})}

    def _values(self, schema: object, steps: Steps, seen: tuple[int, ...]) -> bool:
        """Tell whether the schema accepts only allowed texts at ``steps``."""
        node = as_object(schema)
        if node is None:
            return schema is False
        if id(node) in seen:
            return True
        seen = (*seen, id(node))
        if not steps:
            choice = choice_of(node)
            if choice is None or choice.others:
                return False
            return {*choice.names} <= {*self.allowed} and (self.optional or not choice.nullable)
        if steps == (EACH,) and not _excludes(node, "string"):
            return False  # a single name instead of a list
        if _excludes(node, "array" if steps[0] == EACH else "object"):
            return True
        return self._own_values(node, steps, seen) or self._by_branches(node, steps, seen, self._values)

    def _own_values(self, node: Schema, steps: Steps, seen: tuple[int, ...]) -> bool:
        step, rest = steps[0], steps[1:]
        if step in _GUARD_ELEMENTS:
            return self._items(node, _GUARD_ELEMENTS[step], rest, seen)
        if step in properties_of(node):
            return self._values(properties_of(node)[step], rest, seen)
        return node.get("additionalProperties") is False and not node.get("patternProperties")

    def _items(self, node: Schema, keyword: str, rest: Steps, seen: tuple[int, ...]) -> bool:
        """Tell whether one schema binds every element; if elements have schemas of their own, the guard is needed."""
        if as_object(node.get(keyword)) is None or {"prefixItems", "properties", "patternProperties"} & node.keys():
            return False
        kind = "array" if rest[:1] == (EACH,) else "object" if rest else "string"
        return _is_only(node[keyword], kind) and self._values(node[keyword], rest, seen)

    def _present(self, schema: object, steps: Steps, seen: tuple[int, ...]) -> bool:
        """Tell whether the schema requires the field wherever a call must not omit it."""
        node = as_object(schema)
        if node is None:
            return schema is False
        if not steps or id(node) in seen or (self.optional and len(steps) == 1 and steps[0] != EACH):
            return True
        seen = (*seen, id(node))
        if _excludes(node, "array" if steps[0] == EACH else "object"):
            return True
        return self._own_present(node, steps, seen) or self._by_branches(node, steps, seen, self._present)

    def _own_present(self, node: Schema, steps: Steps, seen: tuple[int, ...]) -> bool:
        step, rest = steps[0], steps[1:]
        if step in _GUARD_ELEMENTS:
            held = items_of(node) if step == EACH else [node.get(_GUARD_ELEMENTS[step])]
            return bool(held) and all(self._present(item, rest, seen) for item in held)
        own = properties_of(node).get(step)
        if own is None:
            return False
        there = step in names_required(node) and (not rest or _excludes(as_object(own) or {}, "null"))
        return (there or holds_batch(rest)) and self._present(own, rest, seen)

    def _by_branches(self, node: Schema, steps: Steps, seen: tuple[int, ...], check: _Check) -> bool:
        target = target_of(node, self.find)
        if target is not None and check(target, steps, seen):
            return True
        if any(check(branch, steps, seen) for branch in objects(node.get("allOf"))):
            return True
        unions = [as_list(node.get(keyword)) for keyword in UNIONS]
        return any(union and all(check(branch, steps, seen) for branch in union) for union in unions)


def _excludes(node: Schema, kind: str) -> bool:
    """Tell whether the schema itself accepts no value of this type."""
    types = node.get("type")
    if types is not None:
        return kind != types and kind not in (as_list(types) or [])
    values = as_list(node.get("enum")) or ([node["const"]] if "const" in node else None)
    if values is not None:
        return not any(_is_kind(value, kind) for value in values)
    for keyword in UNIONS:
        branches = as_list(node.get(keyword))
        if branches and all(_excludes(branch, kind) for item in branches if (branch := as_object(item)) is not None):
            return all(as_object(item) is not None for item in branches)
    return any(_excludes(branch, kind) for branch in objects(node.get("allOf")))


def _is_only(item: object, kind: str) -> bool:
    others = [name for name in ("array", "boolean", "number", "object", "string", "null") if name != kind]
    return (node := as_object(item)) is not None and all(_excludes(node, other) for other in others)


def _is_kind(value: object, kind: str) -> bool:
    kinds = {"object": dict, "array": list, "null": type(None), "string": str, "boolean": bool}
    return isinstance(value, kinds[kind]) if kind in kinds else True


def without_hidden_branches(schema: Schema, field: str, hidden: frozenset[str]) -> Schema:
    """Copy ``schema`` without the `if`/`then` and union branches that only hidden operations can reach."""
    result = _without_dead_condition(schema, field, hidden)
    for keyword in ("allOf", "anyOf", "oneOf"):
        branches = as_list(result.get(keyword))
        if branches is None:
            continue
        if keyword != "allOf":
            branches = [branch for branch in branches if not _names_none(branch, field)]
        kept = [pruned for branch in branches if (pruned := _prune(branch, field, hidden)) not in (None, {})]
        result = {**result, keyword: kept}
        if not kept and keyword == "allOf":
            del result[keyword]
    return result


def _names_none(branch: Any, field: str) -> bool:
    """Tell whether a branch accepts values that are no texts; these are hidden together with any operation."""
    schema = as_object(branch)
    return schema is not None and is_other(properties_of(schema).get(field))


def _prune(branch: Any, field: str, hidden: frozenset[str]) -> Any:
    schema = as_object(branch)
    if schema is None:
        return branch
    names = _names(schema, field)
    if names and names <= hidden:
        return None
    return without_hidden_branches(_trim(schema, field, hidden), field, hidden)


def _without_dead_condition(schema: Schema, field: str, hidden: frozenset[str]) -> Schema:
    condition = as_object(schema.get("if"))
    if condition is None:
        return dict(schema)
    names = _names(condition, field)
    if not names <= hidden or not names:
        return {**schema, "if": _trim(condition, field, hidden)}
    rest = {key: value for key, value in schema.items() if key not in ("if", "then", "else")}
    otherwise = as_object(schema.get("else"))
    if otherwise is None:
        return rest
    return {**rest, "allOf": [*(as_list(rest.get("allOf")) or []), without_hidden_branches(otherwise, field, hidden)]}


def _names(schema: Schema, field: str) -> frozenset[str]:
    choice = choice_of(properties_of(schema).get(field))
    return frozenset(choice.names) if choice else frozenset()


def _trim(schema: Schema, field: str, hidden: frozenset[str]) -> Schema:
    names = _names(schema, field)
    if not names & hidden:
        return schema
    own = restrict(properties_of(schema)[field], names - hidden, keep_null=False)
    return {**schema, "properties": {**properties_of(schema), field: own}}


_ELEMENTS = {EACH: ("items", "prefixItems", "additionalItems"), EACH_MEMBER: ("additionalProperties",)}


def reduce(schema: Schema, found: OperationSet, allowed: frozenset[str]) -> Schema:
    """Reduce ``schema`` to the ``allowed`` operations."""
    if found.is_keyed:
        return _reduce_by_key(schema, allowed)
    run = _Run(schema, found, allowed)
    result = schema
    for steps in found.places:
        result = run.at(result, steps)
    result = run.with_definitions(result)
    if found.repeats is not None:
        result = without_hidden_repeats(result, found, allowed)
    result = result if _is_sealed(result) else close(result, finder(result))
    result = result if "type" in result else {"type": "object", **result}
    names = tuple(name for name in found.names if name in allowed)
    binding = Binding(names, found.default in allowed, finder(result))
    for steps in [steps for steps in found.places if not binding.holds(result, steps)]:
        result = _with_guard(result, binding.guard(steps))
    return result


def _is_sealed(schema: Schema) -> bool:
    """Tell whether each variant of a union says itself which parameters it accepts."""
    unions = [as_list(schema.get(keyword)) for keyword in UNIONS]
    return any(
        branches
        and all({"additionalProperties", "unevaluatedProperties"} & (as_object(b) or {}).keys() for b in branches)
        for branches in unions
    )


def _reduce_by_key(schema: Schema, allowed: frozenset[str]) -> Schema:
    result: Schema = {"type": "object", **schema}
    for keyword in UNIONS:
        branches = objects(schema.get(keyword))
        kept = [b for b in branches if not is_other_type(b) and key_of(b) in allowed]
        if branches and len(kept) == 1:
            del result[keyword]
            result = {**result, **{key: value for key, value in kept[0].items() if key not in result}}
        elif branches:
            result[keyword] = kept
    return result


def _with_guard(schema: Schema, guard: Schema) -> Schema:
    """Add the guard as keywords of the root if they mean the same there, else as a schema beside it."""
    own = properties_of(schema)
    if all(name in own and own[name] == {} for name in guard["properties"]) or not any(
        name in own for name in guard["properties"]
    ):
        required = list(dict.fromkeys([*names_required(schema), *guard.get("required", [])]))
        result = {**schema, "properties": {**own, **guard["properties"]}}
        return {**result, "required": required} if required else result
    return {**schema, "allOf": [*(as_list(schema.get("allOf")) or []), guard]}


class _Run:
    """One reduction of a schema, which changes each recursive definition once."""

    def __init__(self, root: Schema, found: OperationSet, allowed: frozenset[str]) -> None:
        self.found, self.allowed = found, allowed
        self.hidden = frozenset(found.names) - allowed
        self.find = finder(root)
        self.keeps_default = found.default in allowed
        self.definitions: dict[str, Schema] = {}
        self.entered: set[tuple[str, Steps]] = set()

    def with_definitions(self, schema: Schema) -> Schema:
        """Add the changed definitions to ``schema``."""
        if not self.definitions:
            return schema
        return {**schema, "$defs": {**(as_object(schema.get("$defs")) or {}), **self.definitions}}

    def at(self, node: Schema, steps: Steps, *, seal: bool = True) -> Schema:
        """Remove the hidden operations at ``steps`` below ``node``; if ``seal``, the object there may refuse unnamed
        parameters.
        """
        if len(steps) == 1 and not holds_batch(steps):
            return self._reduce_holder(node, steps[0], seal=seal)
        node = self._without_hidden_default(self._through_reference(node, steps, seal=seal), steps)
        if steps[0] in _ELEMENTS:
            node = self._elements(node, _ELEMENTS[steps[0]], steps[1:])
        elif steps[0] in properties_of(node):
            node = self._parameter(node, steps[0], steps[1:])
        return self._branches(node, steps)

    def _branches(self, node: Schema, steps: Steps) -> Schema:
        result = dict(node)
        for keyword in ("allOf", *UNIONS):
            if (branches := as_list(node.get(keyword))) is not None:
                alone = keyword != "allOf" and _is_alone(node, keyword)
                result[keyword] = [
                    self.at(b, steps, seal=alone) if (b := as_object(item)) else item for item in branches
                ]
        for keyword in ("then", "else"):
            if (branch := as_object(node.get(keyword))) is not None:
                result[keyword] = self.at(branch, steps, seal=False)
        return result

    def _through_reference(self, node: Schema, steps: Steps, *, seal: bool) -> Schema:
        reference = node.get("$ref")
        if not isinstance(reference, str) or reference == "#" or (reference, steps) in self.entered:
            return node
        self.entered.add((reference, steps))
        name = reference.removeprefix("#/$defs/").replace("%25", "%").replace("~1", "/").replace("~0", "~")
        target = self.definitions.get(name) or self.find(reference)
        if target is not None:
            change_item = self.at(target, steps, seal=seal)
            self.definitions[name] = change_item
        return node

    def _elements(self, node: Schema, keywords: tuple[str, ...], rest: Steps) -> Schema:
        def change_item(item: object) -> object:
            own = as_object(item)
            if own is None:
                return item
            return self.at(own, rest) if rest else self._leaf(own)

        result = dict(node)
        for keyword in keywords:
            value = node.get(keyword)
            array = as_list(value)
            if keyword in node:
                result[keyword] = change_item(value) if array is None else [change_item(item) for item in array]
        return result

    def _leaf(self, own: Schema) -> Schema:
        held = with_restricted_field({"properties": {"": own}}, replace(self.found, field=""), self.allowed)
        return properties_of(held)[""]

    def _parameter(self, node: Schema, name: str, rest: Steps) -> Schema:
        own = as_object(properties_of(node)[name])
        if own is None:
            return node
        change_item = self.at(own, rest)
        if holds_batch(rest):
            return {**node, "properties": {**properties_of(node), name: change_item}}
        result = {**node, "properties": {**properties_of(node), name: without_null(change_item)}}
        return {**result, "required": with_required(node, name)}

    def _without_hidden_default(self, node: Schema, steps: Steps) -> Schema:
        """Drop a container's own default and examples if they call a hidden operation."""
        result = dict(node)
        if "default" in node and self._calls_hidden(node["default"], steps):
            del result["default"]
        samples = as_list(node.get("examples"))
        if samples is not None:
            result["examples"] = [sample for sample in samples if not self._calls_hidden(sample, steps)]
            if not result["examples"]:
                del result["examples"]
        return result

    def _calls_hidden(self, sample: object, steps: Steps) -> bool:
        values = list(values_at(sample, steps))
        if sample is None:
            return not self.keeps_default and not holds_batch(steps)
        return any(not (value in self.allowed or (value is MISSING and self.keeps_default)) for value in values)

    def _reduce_holder(self, node: Schema, field: str, *, seal: bool) -> Schema:
        """Reduce the object that holds the field, or one of its branches."""
        node = self._without_hidden_default(self._through_reference(node, (field,), seal=seal), (field,))
        local = replace(self.found, field=field, paths=())
        if field in properties_of(node) and choice_of(properties_of(node)[field]):
            node = without_hidden_branches(node, field, self.hidden)
            if not any(variants_by_tag(node, keyword, field) for keyword in UNIONS):
                node = with_restricted_field(node, local, self.allowed)
                return close(node, self.find) if seal else node
        if any(variants_by_tag(node, keyword, field) for keyword in UNIONS):
            return with_allowed_variants(node, local, self.allowed, seal=seal)
        result = without_hidden_branches(node, field, self.hidden)
        for keyword in ("allOf", *UNIONS):
            branches = as_list(result.get(keyword))
            if branches is not None:
                alone = seal and keyword != "allOf" and _is_alone(node, keyword)
                result = {**result, keyword: [self._branch(branch, field, seal=alone) for branch in branches]}
        return result

    def _branch(self, branch: object, field: str, *, seal: bool) -> object:
        node = as_object(branch)
        if node is None or not any(field in properties_of(inner) for inner in in_place(node, self.find)):
            return branch
        return self._reduce_holder(node, field, seal=seal)


def _is_alone(node: Schema, keyword: str) -> bool:
    """Tell whether only the branches under ``keyword`` name parameters of the object."""
    others = {"properties", "patternProperties", "$ref", "allOf", "if", *UNIONS} - {keyword}
    return not others & node.keys()


def without_null(schema: Schema) -> Schema:
    """Remove null from a parameter's schema; a union with one branch left becomes that branch."""
    result = {key: value for key, value in schema.items() if key != "nullable" and not (key == "default" and not value)}
    types = as_list(schema.get("type"))
    if types is not None and "null" in types:
        rest = [name for name in types if name != "null"]
        result["type"] = rest[0] if len(rest) == 1 else rest
    for keyword in UNIONS:
        branches = as_list(schema.get(keyword))
        kept = [branch for branch in branches or [] if branch != {"type": "null"}]
        if branches is not None and len(kept) < len(branches):
            only = as_object(kept[0]) if len(kept) == 1 else None
            rest_of = {key: value for key, value in result.items() if key != keyword}
            if only is not None and not any(key in only and key not in ("title", "description") for key in rest_of):
                result = {**only, **rest_of}
            else:
                result = {**rest_of, keyword: kept}
    return result
