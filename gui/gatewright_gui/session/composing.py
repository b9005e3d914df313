"""Compositions for people: what a step gets from where, in words, and what each step comes to for an agent."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast

from gatewright.workspace.api import (
    BadReference,
    CompositionStep,
    JsonValue,
    Reference,
    RightWord,
    StepForecast,
    ToolFacts,
    ToolRight,
    Verdict,
    Workspace,
    frozen,
    reference_of,
    references_in,
    step_operations,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.session.argument import Argument, arguments_of, value_of
from gatewright_gui.session.verdict import right_words, verdict_words

From = Literal["none", "value", "input", "step"]
"""Where an argument comes from: from nowhere, a value that is typed, the input, the result of a step."""
_DEPTH = 3
_EXAMPLES: Mapping[str, JsonValue] = {
    "string": "example", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {},
}  # fmt: skip


@frozen
class Given:
    """An argument of a step: ``step`` counts from 0, ``text`` is a path below input or result, or what is typed."""

    source: From
    text: str = ""
    step: int = 0


@frozen
class StepPicture:
    """The arguments that a step's tool takes, the fields of its result, and what it comes to for the agent."""

    arguments: Mapping[str, Argument]
    fields: tuple[str, ...]
    rights: tuple[RightWord, ...] = ()
    verdict: Verdict | None = None
    reason: str = ""
    is_known: bool = False
    is_skipped: bool = False

    @property
    def words(self) -> str:
        """The words for the agent: the verdict where it is known, else what the operations come to."""
        if self.is_skipped:
            return tr("skipped")
        if self.is_known and self.verdict is not None:
            return verdict_words(self.verdict)
        return tr(" or ").join(map(right_words, self.rights))


@frozen
class Picture:
    """A composition for an agent: its steps, its tier, what its own call comes to, and an input to try it with."""

    identity: int
    steps: tuple[StepPicture, ...]
    tier: str
    right: RightWord | None
    example: Mapping[str, JsonValue]


def picture_of(workspace: Workspace, place: int, agent_id: str | None) -> Picture | None:
    """Look at the composition at that place among those of the policy; for the worker process."""
    if place >= len(workspace.policy.compositions):
        return None
    row = workspace.policy.compositions[place]
    example = example_input(row.input)
    facts = {one.name: one for one in workspace.catalog}
    rights: Mapping[str, ToolRight] = {}
    told: dict[int, StepForecast] = {}
    if agent_id is not None and agent_id in workspace.policy.agents:
        rights = workspace.rights(agent_id)
        told = {one.step: one for one in workspace.gate.steps(agent_id, row.name, example)}
    steps: list[StepPicture] = []
    for number, step in enumerate(row.steps):
        called = facts.get(step.tool)
        names = {one.name for one in step_operations(called, step)} if called is not None else set[str]()
        schema = workspace.result_schema(step.tool, names - {""})
        came = StepPicture(_takes(workspace, called, step), tuple(dict.fromkeys(_paths(schema or {}))))
        steps.append(_forecast(_by_right(came, rights.get(step.tool), names), told.get(number)) if rights else came)
    own, right = facts.get(row.name), rights.get(row.name)
    word = right.operations[0].word if right is not None and right.operations else None
    return Picture(row.identity, tuple(steps), str(own.tier) if own is not None else "", word, example)


def _by_right(step: StepPicture, right: ToolRight | None, names: Collection[str]) -> StepPicture:
    """With what the agent may do with the operations that the step may call: the mildest, and all words."""
    mine = [one for one in right.operations if one.operation in names] if right is not None else []
    verdicts = {one.verdict for one in mine}
    verdict = next((one for one in (Verdict.ALLOW, Verdict.ASK) if one in verdicts), Verdict.DENY)
    words = tuple(dict.fromkeys(one.word for one in mine)) or (RightWord.OFF,)
    reason = next((one.reasons[0].text for one in mine if one.reasons), "")
    return replace(step, rights=words, verdict=verdict, reason=reason)


def _forecast(step: StepPicture, forecast: StepForecast | None) -> StepPicture:
    """With what the gate would say to the step of an example, as far as that is known."""
    if forecast is None:
        return step
    if forecast.applies is False:
        return replace(step, verdict=None, is_skipped=True, reason=forecast.reason)
    if forecast.verdict is None:
        return replace(step, reason=forecast.reason)
    return replace(step, verdict=forecast.verdict, is_known=True, reason=forecast.reason)


def _takes(workspace: Workspace, facts: ToolFacts | None, step: CompositionStep) -> Mapping[str, Argument]:
    """The arguments of the operations that the step may call, those that they need first."""
    found = arguments_of(workspace, step.tool)
    if facts is None:
        return found
    rows = step_operations(facts, step)
    named = dict.fromkeys(name for row in rows for name in (*row.required, *row.parameters))
    selecting = () if facts.selection is None else tuple(facts.selection.fields)
    kept = [*selecting, *named] if named else [*selecting, *found]
    return {name: found[name] for name in dict.fromkeys(kept) if name in found}


def _paths(schema: Mapping[str, object], depth: int = 1) -> Iterator[str]:
    """The fields that a schema names, and those in them, also of its alternatives."""
    properties = schema.get("properties")
    for name, said in cast("dict[str, object]", properties).items() if isinstance(properties, dict) else ():
        if not name or "." in name or " " in name:
            continue
        yield name
        if isinstance(said, dict) and depth < _DEPTH:
            yield from (f"{name}.{path}" for path in _paths(cast("dict[str, object]", said), depth + 1))
    for union in ("allOf", "anyOf", "oneOf"):
        branches = schema.get(union)
        for branch in cast("list[object]", branches) if isinstance(branches, list) else []:
            if isinstance(branch, dict):
                yield from _paths(cast("dict[str, object]", branch), depth)


def example_input(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """An input to begin with: of each argument its default, its first value, or one of its type."""
    properties = schema.get("properties")
    found: dict[str, JsonValue] = {}
    for name, said in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(said, dict):
            continue
        values = said.get("enum")
        if "default" in said:
            found[name] = said["default"]
        elif isinstance(values, list) and values:
            found[name] = values[0]
        else:
            found[name] = _EXAMPLES.get(str(said.get("type")), "example")
    return found


def origin_of(value: JsonValue, argument: Argument) -> Given:
    """Say where an argument of a step comes from, as the form shows it."""
    if isinstance(value, str):
        try:
            reference = reference_of(value)
        except BadReference:
            return Given("value", value)
        if reference is not None:
            source: From = "input" if reference.step is None else "step"
            return Given(source, ".".join(reference.path), reference.step or 0)
        plain = value[1:] if value.startswith("$$") else value
        return Given("value", plain if argument.kind in {"text", "any"} else json.dumps(plain, ensure_ascii=False))
    return Given("value", json.dumps(value, ensure_ascii=False))


def value_given(given: Given, argument: Argument) -> JsonValue:
    """Read the form: what stands in the step. Raises ValueError where what was typed is no such value."""
    path = tuple(part for part in given.text.strip().split(".") if part)
    if given.source == "input":
        return str(Reference(None, path))
    if given.source == "step":
        return str(Reference(given.step, path))
    value = value_of(argument, given.text)
    if isinstance(value, str) and value.startswith("$") and (value[1:2] in {"$", "_"} or value[1:2].isalpha()):
        return f"${value}"
    return value


def value_words(value: JsonValue) -> str:
    """Say in words what an argument is: a value, or where it comes from."""
    try:
        reference = reference_of(value) if isinstance(value, str) else None
    except BadReference:
        reference = None
    if reference is None:
        if isinstance(value, str):
            return json.dumps(value[1:] if value.startswith("$$") else value, ensure_ascii=False)
        return json.dumps(value, ensure_ascii=False)
    path = ".".join(reference.path)
    if reference.step is None:
        return f"input.{path}" if path else tr("the whole input")
    result = tr("result of step {number}", number=reference.step + 1)
    return f"{result}, {path}" if path else result


def flow_of(step: CompositionStep) -> tuple[tuple[str, bool], ...]:
    """Say what a step gets, in pieces; True: one that names where a value comes from."""
    pieces: list[tuple[str, bool]] = []
    for name, value in step.arguments.items():
        is_carried = bool(_references(value))
        pieces.append((f"{name} {'←' if is_carried else '='} ", False))
        pieces.append((value_words(value), is_carried))
        pieces.append((",  ", False))
    return tuple(pieces[:-1]) or ((tr("nothing"), False),)


def _references(value: JsonValue) -> Sequence[Reference]:
    try:
        return references_in(value)
    except BadReference:
        return ()
