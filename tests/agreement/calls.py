"""Makes calls that a model might send to a tool: right ones, nearly right ones, and nonsense."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any, cast

from gatewright.schema import OperationSet, Schema
from gatewright.schema.operation import EACH, EACH_MEMBER, Steps
from gatewright.schema.walk import as_list, as_object
from tests.engine.schema.provider_calls import Maker

Json = dict[str, Any]
LEFT_OUT = object()


class Caller:
    """Calls to one tool as one agent sees it: ``whole`` is what the tool takes, ``shown`` what the agent sees."""

    def __init__(self, whole: Schema, shown: Schema, found: OperationSet | None, rng: random.Random) -> None:
        self._rng = rng
        self._found = found
        self._shown = Maker(shown, rng)
        self._whole = Maker(whole, rng)
        self._hidden = found is not None and whole is not shown

    def calls(self, count: int) -> Iterator[Json]:
        """Yield ``count`` calls."""
        for _ in range(count):
            yield self._call()

    def _call(self) -> Json:
        kind = self._rng.random()
        if kind < 0.03:
            return self._nonsense()
        maker = self._whole if self._hidden and self._rng.random() < 0.35 else self._shown
        call = _object(maker.value(maker.root))
        if kind < 0.4:
            return call
        if kind < 0.65 and self._found is not None:
            return self._renamed(call, self._found)
        if kind < 0.72 and self._found is not None and not self._found.is_flat:
            return self._joined(call, _object(self._whole.value(self._whole.root)), self._found)
        return self._broken(call, maker)

    def _nonsense(self) -> Json:
        names = ["op", "operation", "action", "", "é", *(self._found.names if self._found else ())]
        return {self._rng.choice(names): self._shown.anything(1) for _ in range(self._rng.randrange(3))}

    def _renamed(self, call: Json, found: OperationSet) -> Json:
        """Replace the operation by another one, another spelling, or something that is no operation."""
        name = self._rng.choice(found.names)
        if found.is_keyed:
            return self._rng.choice([{name.swapcase(): call}, {name: next(iter(call.values()), 1)}, {**call, name: 1}])
        values: list[object] = [name, name, name.swapcase(), name.title(), f" {name}", f"{name} ", f"{name}\n", ""]
        values += [LEFT_OUT, LEFT_OUT, None, 7, True, [name], {"value": name}, name[:-1], f"{name}\u200b"]
        return with_value(call, self._rng.choice(found.places), self._rng.choice(values))

    def _joined(self, call: Json, other: Json, found: OperationSet) -> Json:
        return cast("Json", joined(call, other, self._rng.choice(found.places)))

    def _broken(self, call: Json, maker: Maker) -> Json:
        spoiled = _object(maker.spoiled(call))
        match self._rng.randrange(6):
            case 0 if call:
                return {**call, self._rng.choice(sorted(call)): None}
            case 1:
                return {**call, self._rng.choice(["extra", "Op", "__proto__", "$ref", ""]): maker.anything(2)}
            case 2:
                return _object(maker.spoiled(spoiled))
            case _:
                return spoiled


def _object(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def with_value(call: Json, steps: Steps, value: object) -> Json:
    """The call with another value at the place of its operation."""
    result = copy.deepcopy(call)
    _put(result, steps, value)
    return result


def _put(node: object, steps: Steps, value: object) -> None:
    array, table = as_list(node), as_object(node)
    if steps == (EACH,) and array is not None and value is LEFT_OUT:
        array.clear()
    elif steps[0] == EACH and array is not None:
        for index, item in enumerate(array):
            if steps[1:]:
                _put(item, steps[1:], value)
            else:
                array[index] = value
    elif steps[0] == EACH_MEMBER:
        for item in (table or {}).values():
            _put(item, steps[1:], value)
    elif table is not None and steps[0] != EACH:
        if steps[1:]:
            _put(table.get(steps[0]), steps[1:], value)
        elif value is LEFT_OUT:
            table.pop(steps[0], None)
        else:
            table[steps[0]] = value


def joined(one: object, other: object, steps: Steps) -> object:
    """Two calls as one batch: the elements of both."""
    first, second = as_list(one), as_list(other)
    if first is not None and second is not None:
        return [*first, *second]
    table, rest = as_object(one), as_object(other)
    if table is None or rest is None or not steps:
        return one
    if steps[0] == EACH_MEMBER:
        return {**{f"other {key}": held for key, held in rest.items()}, **table}
    return {**table, steps[0]: joined(table.get(steps[0]), rest.get(steps[0]), steps[1:])}
