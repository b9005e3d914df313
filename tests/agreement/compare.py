"""Whether the schema that a model is shown and the gate say the same of a call, as it stands and through each format.

The reference implementation of JSON Schema reads the shown schema; nothing of the engine's own checking is used for it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import jsonschema
from jsonschema import validators

from gatewright.gate import Gate
from gatewright.gate.pipeline import run_stage
from gatewright.gate.stages.read import LOOKUP, OPERATION
from gatewright.gate.stages.rules import SCHEMA
from gatewright.schema import FORMATS, Schema, SchemaChecker
from gatewright.schema.formats import CallReader
from tests.agreement.calls import Caller, Json
from tests.agreement.world import Cell, Stranger
from tests.engine.schema.provider_calls import Maker, sent_schema

_VALIDATORS = cast("Any", validators)
STAGES = (LOOKUP, OPERATION, SCHEMA)


def passes(gate: Gate, tool: str, arguments: Json, agent_id: str = "a") -> bool:
    """True if the stages lookup, operation and schema let the call pass."""
    state = gate.state(agent_id, tool, arguments)
    state.arguments = arguments
    return not any(run_stage(stage, state).findings for stage in STAGES)


def reference(schema: Schema) -> Any:
    """The reference implementation for ``schema``; formats are notes to it, as to the engine.

    A `$` at the end of a pattern matches at the very end, as ECMA-262 has it, and not before a last line break.
    """
    kind = _VALIDATORS.validator_for(schema, default=jsonschema.Draft202012Validator)
    return _VALIDATORS.extend(kind, {"pattern": _pattern})(schema)


def _pattern(validator: Any, pattern: str, instance: object, _schema: object) -> Iterator[jsonschema.ValidationError]:
    strict = re.sub(r"(?<!\\)\$(?=$|\|)", r"\\Z", pattern)
    if validator.is_type(instance, "string") and not re.search(strict, cast("str", instance)):
        yield jsonschema.ValidationError("does not match")


@dataclass(slots=True)
class Tally:
    """The numbers of compared and of valid calls, and the disagreements."""

    calls: int = 0
    valid: int = 0
    through_formats: int = 0
    valid_in_a_format: int = 0
    cells: int = 0
    disagreements: list[str] = field(default_factory=list[str])


def compared(strangers: Iterable[tuple[Stranger, int]], calls_each: int, tally: Tally | None = None) -> Tally:
    """Compare over the given limits (by number) of tools, ``calls_each`` for each."""
    tally = tally or Tally()
    for stranger, number in strangers:
        if not stranger.cells[number].is_hidden:
            _compare(stranger.cells[number], calls_each, tally)
    return tally


def _compare(cell: Cell, count: int, tally: Tally) -> None:
    rng = random.Random(cell.name)
    judge = _Judge(cell)
    caller = Caller(cell.tool.input_schema(), cell.listing.schema, cell.found, rng)
    routes = [_Route(cell, form, rng) for form in FORMATS]
    tally.cells += 1
    for call in caller.calls(count):
        judge.known.clear()
        shown, gate = judge.of(call)
        tally.calls += 1
        tally.valid += shown
        if shown != gate:
            tally.disagreements.append(f"{cell.name}: shown {shown}, gate {gate}: {call}")
        for route in routes:
            for problem in route.problems(call, judge, tally, valid=shown):
                tally.disagreements.append(f"{cell.name} {route.form}: {problem}")


class _Judge:
    """Answers what the schema and the gate say of a call; formats bring the same call back again and again."""

    def __init__(self, cell: Cell) -> None:
        self._cell, self._oracle = cell, reference(cell.listing.schema)
        self.known: dict[str, tuple[bool, bool]] = {}

    def of(self, call: Any) -> tuple[bool, bool]:
        """Return whether the listed schema takes the call, and whether the gate passes it."""
        spelled = repr(call)  # `1`, `True` and `1.0` are different values
        if spelled not in self.known:
            cell = self._cell
            passed = isinstance(call, dict) and passes(cell.gate, cell.tool.name, cast("Json", call), cell.agent_id)
            self.known[spelled] = self._oracle.is_valid(call), passed
        return self.known[spelled]


class _Route:
    """One tool through one provider's format and back."""

    def __init__(self, cell: Cell, form: str, rng: random.Random) -> None:
        self.form = form
        self._cell = cell
        self._view = cell.gate.view(cell.agent_id)
        self._reader: CallReader = cell.reader(form)
        body = cell.rendered(form)
        lints = FORMATS[form].lints(cell.listing)
        looser = {lint.code for lint in lints if lint.level == "looser"}
        self._is_narrower = any(lint.level == "narrower" for lint in lints)
        self._is_looser = bool(looser - {"other-keys"})
        self._sent: SchemaChecker = sent_schema(form, body)
        self._takes = sent_schema(form, body, closed=True) if looser == {"other-keys"} else self._sent
        self._maker = Maker(cell.listing.schema, rng)

    def problems(self, call: Json, judge: _Judge, tally: Tally, *, valid: bool) -> list[str]:
        """Return the faults of ``call``, and of a similar call that the provider's model might have made."""
        name, spelled = self._reader.spell(self._cell.tool.name, call)
        found: list[str] = []
        if valid and not self._is_narrower and not self._sent.is_valid(spelled):
            found.append(f"the provider refuses {call} sent as {spelled}")
        for sent in (spelled, self._maker.spoiled(spelled)):
            restored = self._view.restore(self.form, name, sent)
            if restored[0] != self._cell.tool.name:
                found.append(f"comes back as {restored[0]}")
                continue
            back = restored[1]
            tally.through_formats += 1
            shown, gate = judge.of(back)
            if shown != gate:
                found.append(f"shown {shown}, gate {gate}: {sent} that comes back as {back}")
            if sent is spelled and valid and not gate:
                found.append(f"a valid call does not survive: {call} sent as {sent} comes back as {back}")
            if not self._is_looser and self._takes.is_valid(sent):
                tally.valid_in_a_format += 1
                if not gate:
                    found.append(f"takes {sent} that comes back as {back}")
        return found
