"""How a value that came in a provider's spelling goes back into the shown schema's, and the other way.

A step knows values only; which step stands where is decided when the schema is rewritten.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gatewright.base.errors import JsonRefused, SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import parse_object
from gatewright.schema.check import SchemaChecker
from gatewright.schema.walk import Schema, as_list, as_object


class Step(Protocol):
    """One rewriting: ``back`` from the provider's spelling, ``forth`` into it. Neither raises for a JSON value."""

    def back(self, value: Any) -> Any:
        """A value from the provider, in the shown schema's spelling."""
        ...

    def forth(self, value: Any) -> Any:
        """A value of the shown schema, in the provider's spelling."""
        ...


@frozen
class Keep:
    """Nothing is spelled differently."""

    def back(self, value: Any) -> Any:
        """The same value."""
        return value

    def forth(self, value: Any) -> Any:
        """The same value."""
        return value


KEEP: Step = Keep()


@frozen
class Fields:
    """An object: renamed keys, values with steps of their own, and keys whose null stands for being left out."""

    sent: Mapping[str, str]
    steps: Mapping[str, Step]
    nulls: frozenset[str] = frozenset()

    def back(self, value: Any) -> Any:
        """The object under its own keys, without the nulls; as it came when two keys would become one."""
        table = as_object(value)
        if table is None:
            return value
        own = {given: name for name, given in self.sent.items()}
        result: dict[str, Any] = {}
        for given, item in table.items():
            name = own.get(given, given)
            if name in result:
                return table
            if item is not None or name not in self.nulls:
                result[name] = self.steps.get(name, KEEP).back(item)
        return result

    def forth(self, value: Any) -> Any:
        """The object under the provider's keys, with a null for what is left out."""
        table = as_object(value)
        if table is None:
            return value
        spelled = {self.sent.get(name, name): self.steps.get(name, KEEP).forth(item) for name, item in table.items()}
        return {**spelled, **{self.sent.get(name, name): None for name in sorted(self.nulls) if name not in table}}


@frozen
class Items:
    """An array whose elements share a step."""

    step: Step

    def back(self, value: Any) -> Any:
        """Each element back."""
        array = as_list(value)
        return value if array is None else [self.step.back(item) for item in array]

    def forth(self, value: Any) -> Any:
        """Each element forth."""
        array = as_list(value)
        return value if array is None else [self.step.forth(item) for item in array]


@frozen
class Wrapped:
    """The arguments as the only parameter of an object; arguments that came unwrapped are taken as they are."""

    key: str

    def back(self, value: Any) -> Any:
        """What is under the key."""
        table = as_object(value)
        return table[self.key] if table is not None and set(table) == {self.key} else value

    def forth(self, value: Any) -> Any:
        """The value under the key."""
        return {self.key: value}


@frozen
class Chain:
    """Two rewritings, ``outer`` after ``inner`` on the way back."""

    inner: Step
    outer: Step

    def back(self, value: Any) -> Any:
        """Back through both."""
        return self.outer.back(self.inner.back(value))

    def forth(self, value: Any) -> Any:
        """Forth through both."""
        return self.inner.forth(self.outer.forth(value))


@frozen
class Text:
    """A value that the provider can only take as JSON text; a text that is no JSON stays a text."""

    def back(self, value: Any) -> Any:
        """The value that the text says."""
        if not isinstance(value, str):
            return value
        try:
            table = parse_object(f'{{"":{value}}}')
        except JsonRefused:
            return value
        return table[""] if len(table) == 1 else value

    def forth(self, value: Any) -> Any:
        """The JSON text."""
        return json.dumps(value, ensure_ascii=False)


@frozen
class Labels:
    """Values that the provider takes only as texts: each label stands for one value."""

    values: tuple[tuple[str, Any], ...]

    def back(self, value: Any) -> Any:
        """The value behind a label."""
        return next((own for label, own in self.values if label == value), value)

    def forth(self, value: Any) -> Any:
        """The label of a value."""
        return next((label for label, own in self.values if _same(own, value)), value)


@frozen
class Branch:
    """One alternative: its schema as sent, its schema as shown, and its step."""

    sent: Schema
    own: Schema
    step: Step


class Either:
    """A union: the first alternative that a value fits says how it is spelled."""

    __slots__ = ("_branches", "_checkers")

    def __init__(self, branches: Sequence[Branch]) -> None:
        self._branches = tuple(branches)
        self._checkers: dict[tuple[int, bool], SchemaChecker | None] = {}

    def back(self, value: Any) -> Any:
        """Back by the alternative whose sent schema takes the value."""
        return self._step(value, sent=True).back(value)

    def forth(self, value: Any) -> Any:
        """Forth by the alternative whose shown schema takes the value."""
        return self._step(value, sent=False).forth(value)

    def _step(self, value: Any, *, sent: bool) -> Step:
        for index, branch in enumerate(self._branches):
            checker = self._checker(index, branch, sent=sent)
            if checker is not None and checker.is_valid(value):
                return branch.step
        spelled = [branch.step for branch in self._branches if branch.step is not KEEP]
        return spelled[0] if len(spelled) == 1 else KEEP

    def _checker(self, index: int, branch: Branch, *, sent: bool) -> SchemaChecker | None:
        key = (index, sent)
        if key not in self._checkers:
            try:
                self._checkers[key] = SchemaChecker(branch.sent if sent else branch.own)
            except SchemaError:
                self._checkers[key] = None
        return self._checkers[key]


@frozen
class Named:
    """The step of a definition that refers to itself; ``table`` is complete once the whole schema is rewritten."""

    name: str
    table: Mapping[str, Step]

    def back(self, value: Any) -> Any:
        """Back by the definition."""
        return self.table.get(self.name, KEEP).back(value)

    def forth(self, value: Any) -> Any:
        """Forth by the definition."""
        return self.table.get(self.name, KEEP).forth(value)


def fields(sent: Mapping[str, str], steps: Mapping[str, Step], nulls: frozenset[str] = frozenset()) -> Step:
    """The step of an object; `KEEP` when nothing in it is spelled differently."""
    changed = {name: step for name, step in steps.items() if step is not KEEP}
    renamed = {name: given for name, given in sent.items() if name != given}
    return Fields(renamed, changed, nulls) if changed or renamed or nulls else KEEP


def items(step: Step) -> Step:
    """The step of an array."""
    return KEEP if step is KEEP else Items(step)


def either(branches: Sequence[Branch]) -> Step:
    """The step of a union."""
    if all(branch.step is KEEP for branch in branches):
        return KEEP
    return branches[0].step if len(branches) == 1 else Either(branches)


def chain(inner: Step, outer: Step) -> Step:
    """Both steps as one."""
    return outer if inner is KEEP else inner if outer is KEEP else Chain(inner, outer)


def _same(first: Any, second: Any) -> bool:
    return isinstance(first, bool) == isinstance(second, bool) and first == second
