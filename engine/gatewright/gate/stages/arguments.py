"""Arguments: what the operation needs is there, and every path, label and source is a real place, made canonical.

Later stages and the tool see canonical values only; the trace shows both. A refusal echoes nothing to the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import message
from gatewright.gate.call import CallState, Stage, StageResult, denied
from gatewright.policy.target import Located, Refusal
from gatewright.tools.parameter import Parameter, Role

if TYPE_CHECKING:
    from gatewright.tools.port import SourcePort

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class _Found:
    parameter: Parameter
    given: str
    place: Located


def _run(state: CallState) -> StageResult:
    operation = state.chosen
    issues = state.plan.tool.missing_arguments(operation.name, state.arguments)
    if issues:
        lines = "\n".join(f"{issue.pointer or '/'}: {issue.message}" for issue in issues)
        return denied(state, "arguments-mismatch", lines, f"the arguments do not fit:\n{lines}")
    if not operation.roles:
        return StageResult(state, note="no path among them")
    return _canonical(state)


def _canonical(state: CallState) -> StageResult:
    given = {p: text for p in state.chosen.roles if (text := _text(state.arguments, p)) is not None}
    if not given:
        return StageResult(state, note="no path given")
    sources, allowed = state.ports.sources, state.agent.source_ids if state.agent else ()
    if sources is None or not allowed:
        return denied(state, "no-source", f"agent `{state.agent_id}` has no file source", message.NO_SOURCE)
    source_id = next((text for p, text in given.items() if p.role is Role.SOURCE), None)
    if source_id is not None and source_id not in allowed:
        names = ", ".join(f"`{name}`" for name in allowed)
        reason = f"agent `{state.agent_id}` has no source `{source_id[:_SHOWN]}`"
        return denied(state, "unknown-source", reason, f"the source must be one of {names}")
    found: list[_Found] = []
    for parameter, text in given.items():
        place = _located(sources, parameter, text, source_id, allowed)
        if isinstance(place, Refusal):
            return denied(state, place.code, place.reason, place.hint)
        if place is not None:
            found.append(_Found(parameter, text, place))
    return _settled(state, sources, found)


def _text(arguments: dict[str, JsonValue], parameter: Parameter) -> str | None:
    value = arguments.get(parameter.name, parameter.default)
    return value if isinstance(value, str) else None


def _located(
    sources: SourcePort, parameter: Parameter, text: str, source_id: str | None, allowed: tuple[str, ...]
) -> Located | Refusal | None:
    if parameter.role is Role.PATH:
        return sources.locate(text, source_id=source_id, allowed=allowed)
    return sources.locate_label(text, allowed=allowed) if parameter.role is Role.LABEL else None


def _settled(state: CallState, sources: SourcePort, found: list[_Found]) -> StageResult:
    """The state with canonical values, the source filled in where the operation takes one, and the places."""
    arguments = dict(state.arguments)
    notes: list[str] = []
    for item in found:
        is_path = item.parameter.role is Role.PATH
        canonical = item.place.relative if is_path else sources.label_of(item.place)
        arguments[item.parameter.name] = canonical
        notes.append(f"`{item.given[:_SHOWN]}` is `{item.place.relative}` of `{item.place.source_id}`")
    places = tuple(dict.fromkeys(item.place for item in found))
    if len({place.source_id for place in places}) == 1:
        arguments |= {p.name: places[0].source_id for p in state.chosen.roles if p.role is Role.SOURCE}
    return StageResult(state.having(arguments=arguments, places=places), note="; ".join(notes) or "a source")


ARGUMENTS = Stage("arguments", _run)
