"""The unions of a schema whose branches are told apart by a tag, read once and remembered. It knows no errors."""

from __future__ import annotations

from dataclasses import dataclass

from gatewright.schema.shapes.choice import choice_of
from gatewright.schema.walk import Schema, as_list, as_object, properties_of

Path = list[str | int]


@dataclass(frozen=True, slots=True)
class Tagged:
    """A union: the property that tells its branches apart, and the values each branch stands for."""

    field: str
    values: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> list[str]:
        """Every value in order."""
        return [name for names in self.values for name in names]

    def chosen(self, given: object) -> int | None:
        """The index of the branch that ``given`` selects."""
        return next((index for index, names in enumerate(self.values) if given in names), None)


class Unions:
    """The tagged unions of one schema, by their place in it."""

    __slots__ = ("_known", "_schema")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._known: dict[tuple[str | int, ...], Tagged | None] = {}

    def at(self, path: Path) -> Tagged | None:
        """The union under ``path`` when a tag tells its branches apart."""
        key = tuple(path)
        if key not in self._known:
            self._known[key] = _tagged(self._branches(path))
        return self._known[key]

    def keys_at(self, path: Path) -> list[str]:
        """The declared keys of the object schema whose keyword stands under ``path``."""
        return list(as_object((as_object(value_at(self._schema, path[:-1])) or {}).get("properties")) or {})

    def _branches(self, path: Path) -> list[Schema]:
        found = [as_object(branch) for branch in as_list(value_at(self._schema, path)) or []]
        return [self._resolved(branch) for branch in found if branch is not None] if None not in found else []

    def _resolved(self, branch: Schema) -> Schema:
        reference = branch.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return branch
        steps = [step.replace("~1", "/").replace("~0", "~") for step in reference.split("/")[1:]]
        return as_object(value_at(self._schema, list(steps))) or branch


def value_at(root: object, path: Path) -> object:
    """What stands under ``path``, or None."""
    current = root
    for step in path:
        table, array = as_object(current), as_list(current)
        if table is not None and isinstance(step, str) and step in table:
            current = table[step]
        elif array is not None and isinstance(step, int) and step < len(array):
            current = array[step]
        else:
            return None
    return current


def _tagged(branches: list[Schema]) -> Tagged | None:
    """By a property that every branch for an object fixes; a branch that takes none is never the one that is meant."""
    objects = [branch for branch in branches if _takes_objects(branch)]
    for field in properties_of(objects[0]) if objects else ():
        choices = [choice_of(properties_of(branch).get(field)) for branch in objects]
        values = [choice.names if choice else () for choice in choices]
        names = [name for part in values for name in part]
        if all(values) and len(set(names)) == len(names):
            rest = iter(values)
            return Tagged(field, tuple(next(rest) if _takes_objects(branch) else () for branch in branches))
    return None


def _takes_objects(branch: Schema) -> bool:
    kind = branch.get("type", "object")
    return kind == "object" or "object" in (as_list(kind) or ())
