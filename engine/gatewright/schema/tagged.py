"""Unions whose branches are told apart by a tag: a property that each of them fixes."""

from __future__ import annotations

from gatewright.base.frozen import frozen
from gatewright.schema.shapes.choice import choice_of
from gatewright.schema.walk import Schema, as_list, properties_of


@frozen
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


def tagged_union(branches: list[Schema]) -> Tagged | None:
    """By a property that every branch for an object fixes; a branch that takes none is never the one that is meant."""
    objects = [branch for branch in branches if _takes_objects(branch)]
    for field in properties_of(objects[0]) if objects else ():
        choices = [choice_of(properties_of(branch).get(field)) for branch in objects]
        values = [choice.names if choice and not choice.others else () for choice in choices]
        names = [name for part in values for name in part]
        if all(values) and len(set(names)) == len(names):
            rest = iter(values)
            return Tagged(field, tuple(next(rest) if _takes_objects(branch) else () for branch in branches))
    return None


def _takes_objects(branch: Schema) -> bool:
    kind = branch.get("type", "object")
    return kind == "object" or "object" in (as_list(kind) or ())
