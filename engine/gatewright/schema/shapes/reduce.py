"""An inlined schema without the hidden operations, wherever their field stands. Texts are left as they are.

What goes is taken out where it stands; what then still could be called is refused by a guard at the root.
"""

from __future__ import annotations

from dataclasses import replace

from gatewright.schema.fieldpath import EACH, EACH_MEMBER, MISSING, Steps, holds_batch, values_at
from gatewright.schema.operation import OperationSet
from gatewright.schema.shapes.binding import Binding
from gatewright.schema.shapes.branch import without_hidden_branches
from gatewright.schema.shapes.choice import choice_of
from gatewright.schema.shapes.inplace import UNIONS, finder, in_place
from gatewright.schema.shapes.keyed import is_other_type, key_of
from gatewright.schema.shapes.property import closed, with_required, with_restricted_field
from gatewright.schema.shapes.repeat import without_hidden_repeats
from gatewright.schema.shapes.union import tagged_variants, with_allowed_variants
from gatewright.schema.walk import Schema, as_list, as_object, objects, properties_of, required_of

_ELEMENTS = {EACH: ("items", "prefixItems", "additionalItems"), EACH_MEMBER: ("additionalProperties",)}


def reduced(schema: Schema, found: OperationSet, allowed: frozenset[str]) -> Schema:
    """``schema`` with the ``allowed`` operations only."""
    if found.is_keyed:
        return _keyed(schema, allowed)
    run = _Run(schema, found, allowed)
    result = schema
    for steps in found.places:
        result = run.at(result, steps)
    result = run.with_definitions(result)
    if found.repeats is not None:
        result = without_hidden_repeats(result, found, allowed)
    result = result if _is_sealed(result) else closed(result, finder(result))
    result = result if "type" in result else {"type": "object", **result}
    names = tuple(name for name in found.names if name in allowed)
    binding = Binding(names, found.default in allowed, finder(result))
    for steps in [steps for steps in found.places if not binding.holds(result, steps)]:
        result = _with_guard(result, binding.guard(steps))
    return result


def _is_sealed(schema: Schema) -> bool:
    """Whether the variants of a union say themselves which parameters they take."""
    unions = [as_list(schema.get(keyword)) for keyword in UNIONS]
    return any(
        branches
        and all({"additionalProperties", "unevaluatedProperties"} & (as_object(b) or {}).keys() for b in branches)
        for branches in unions
    )


def _keyed(schema: Schema, allowed: frozenset[str]) -> Schema:
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
    """In the root's own words where that says the same, else beside them."""
    own = properties_of(schema)
    if all(name in own and own[name] == {} for name in guard["properties"]) or not any(
        name in own for name in guard["properties"]
    ):
        required = list(dict.fromkeys([*required_of(schema), *guard.get("required", [])]))
        result = {**schema, "properties": {**own, **guard["properties"]}}
        return {**result, "required": required} if required else result
    return {**schema, "allOf": [*(as_list(schema.get("allOf")) or []), guard]}


class _Run:
    """One reduction; recursive definitions on the way are changed once."""

    def __init__(self, root: Schema, found: OperationSet, allowed: frozenset[str]) -> None:
        self.found, self.allowed = found, allowed
        self.hidden = frozenset(found.names) - allowed
        self.find = finder(root)
        self.keeps_default = found.default in allowed
        self.definitions: dict[str, Schema] = {}
        self.entered: set[tuple[str, Steps]] = set()

    def with_definitions(self, schema: Schema) -> Schema:
        """``schema`` with the definitions that were changed."""
        if not self.definitions:
            return schema
        return {**schema, "$defs": {**(as_object(schema.get("$defs")) or {}), **self.definitions}}

    def at(self, node: Schema, steps: Steps, *, seal: bool = True) -> Schema:
        """``node`` without the hidden operations that stand at ``steps`` below it.

        ``seal``: whether the object that holds them may refuse parameters it does not name.
        """
        if len(steps) == 1 and not holds_batch(steps):
            return self._held(node, steps[0], seal=seal)
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
            changed = self.at(target, steps, seal=seal)
            self.definitions[name] = changed
        return node

    def _elements(self, node: Schema, keywords: tuple[str, ...], rest: Steps) -> Schema:
        def changed(item: object) -> object:
            own = as_object(item)
            if own is None:
                return item
            return self.at(own, rest) if rest else self._leaf(own)

        result = dict(node)
        for keyword in keywords:
            value = node.get(keyword)
            array = as_list(value)
            if keyword in node:
                result[keyword] = changed(value) if array is None else [changed(item) for item in array]
        return result

    def _leaf(self, own: Schema) -> Schema:
        held = with_restricted_field({"properties": {"": own}}, replace(self.found, field=""), self.allowed)
        return properties_of(held)[""]

    def _parameter(self, node: Schema, name: str, rest: Steps) -> Schema:
        own = as_object(properties_of(node)[name])
        if own is None:
            return node
        changed = self.at(own, rest)
        if holds_batch(rest):
            return {**node, "properties": {**properties_of(node), name: changed}}
        result = {**node, "properties": {**properties_of(node), name: without_null(changed)}}
        return {**result, "required": with_required(node, name)}

    def _without_hidden_default(self, node: Schema, steps: Steps) -> Schema:
        """A container's own default goes when it calls something hidden; its examples do too."""
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

    def _held(self, node: Schema, field: str, *, seal: bool) -> Schema:
        """The object that holds the field, or a branch that does."""
        node = self._without_hidden_default(self._through_reference(node, (field,), seal=seal), (field,))
        local = replace(self.found, field=field, paths=())
        if field in properties_of(node) and choice_of(properties_of(node)[field]):
            node = without_hidden_branches(node, field, self.hidden)
            if not any(tagged_variants(node, keyword, field) for keyword in UNIONS):
                node = with_restricted_field(node, local, self.allowed)
                return closed(node, self.find) if seal else node
        if any(tagged_variants(node, keyword, field) for keyword in UNIONS):
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
        return self._held(node, field, seal=seal)


def _is_alone(node: Schema, keyword: str) -> bool:
    """Whether the branches under ``keyword`` are all that names parameters of the value."""
    others = {"properties", "patternProperties", "$ref", "allOf", "if", *UNIONS} - {keyword}
    return not others & node.keys()


def without_null(schema: Schema) -> Schema:
    """A parameter's schema that null does not fit; what is left of a union of one is put in its place."""
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
