"""Reading ``rule_type`` in each of its three spellings. It does not know the rule around it.

Spellings: ``{ MaxCalls = 3 }``, ``"ContinueLoop"`` for a kind without payload, and Pattern's
``{ type = "MaxCalls", value = 3 }``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

from gatewright.base.errors import JsonRefused
from gatewright.base.jsonvalue import JsonValue, checked_object
from gatewright.base.report import shown
from gatewright.base.row import Raw, Row, kind_of, name_error, seconds_of, texts_of, whole_number
from gatewright.policy.rule import (
    AllowedOperations,
    ArgumentConstraints,
    ContinueLoop,
    Cooldown,
    ExclusiveGroups,
    ExitLoop,
    MaxCalls,
    Needed,
    Periodic,
    RateLimit,
    RequiredBeforeExit,
    RequiredBeforeExitIf,
    RequiresConsent,
    RequiresFollowingTools,
    RequiresPrecedingTools,
    RuleKind,
    StartConstraint,
)
from gatewright.policyfile.readschema import check_json_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatewright.base.report import RawPath, Report

KIND_NAMES = tuple(kind.__name__ for kind in get_args(RuleKind))
PLAIN_KINDS: dict[str, RuleKind] = {
    kind.__name__: kind()
    for kind in (
        ContinueLoop,
        ExitLoop,
        StartConstraint,
        RequiresPrecedingTools,
        RequiresFollowingTools,
        RequiredBeforeExit,
        RequiredBeforeExitIf,
        Needed,
    )
}
WITH_CONDITIONS = frozenset({"RequiresPrecedingTools", "RequiresFollowingTools", "RequiredBeforeExitIf"})
"""The kinds whose conditions name other tools, and that say nothing without one."""
_ABSENT = object()
Payload = tuple[str, object, "RawPath"]


def read_kind(value: object, path: RawPath, report: Report) -> RuleKind | None:
    """The kind that ``value`` spells; None after an error."""
    spelt = _spelling(value, path, report)
    if spelt is None:
        return None
    name, payload, payload_path = spelt
    if name not in KIND_NAMES:
        near = report.near(name, KIND_NAMES)
        report.error(path, "unknown-variant", f"no kind of rule is named {shown(name)}", near=near)
        return None
    if name in PLAIN_KINDS:
        return _plain(name, payload, payload_path, report)
    return _PAYLOADS[name](payload, payload_path, report)


def kind_name(value: object) -> str | None:
    """The name of the kind that a ``rule_type`` spells, right or wrong; None when it spells none."""
    if isinstance(value, dict):
        raw = cast("Raw", value)
        value = raw["type"] if "type" in raw else next(iter(raw), None)
    return value if isinstance(value, str) else None


def payload_path(value: object, path: RawPath) -> RawPath:
    """Where the payload of a well-spelt ``rule_type`` stands in the file."""
    if not isinstance(value, dict):
        return path
    raw = cast("Raw", value)
    return (*path, "value") if "type" in raw else (*path, *raw)


def _spelling(value: object, path: RawPath, report: Report) -> Payload | None:
    if isinstance(value, str):
        return value, _ABSENT, path
    if not isinstance(value, dict):
        report.error(path, "wrong-type", f"`rule_type` must be text or a table, not {kind_of(value)}")
        return None
    raw = cast("Raw", value)
    if "type" in raw:
        row = Row(raw, path, report)
        row.only(("type", "value"), "a `rule_type` with `type`")
        name = row.text("type")
        return None if name is None else (name, raw.get("value", _ABSENT), row.at("value") if "value" in raw else path)
    if len(raw) != 1:
        report.error(path, "bad-value", "`rule_type` holds exactly one kind, such as `{ MaxCalls = 3 }`")
        return None
    name, payload = next(iter(raw.items()))
    return name, payload, (*path, name)


def _plain(name: str, payload: object, path: RawPath, report: Report) -> RuleKind | None:
    if payload is _ABSENT:
        return PLAIN_KINDS[name]
    report.error(path, "bad-value", f'`{name}` takes no value: write `rule_type = "{name}"`')
    return None


def _operations(payload: object, path: RawPath, report: Report) -> RuleKind | None:
    names = _names(payload, path, report, "AllowedOperations", '["read", "list"]')
    return None if names is None else AllowedOperations(frozenset(names))


def _groups(payload: object, path: RawPath, report: Report) -> RuleKind | None:
    if not isinstance(payload, list):
        _bad(path, report, "ExclusiveGroups", '[["a", "b"], ["c", "d"]]')
        return None
    groups = [
        _names(group, (*path, index), report, "a group", '["a", "b"]')
        for index, group in enumerate(cast("list[object]", payload))
    ]
    found = [tuple(group) for group in groups if group is not None]
    if not groups:
        report.warning(path, "rule-without-effect", "`ExclusiveGroups` holds no group: the rule has no effect")
    for index, group in enumerate(groups):
        if group is not None and not group:
            report.error((*path, index), "bad-value", "a group names at least two tools")
        elif group is not None and len(group) == 1:
            message = f"a group of one tool excludes nothing: {shown(group[0])} stands alone"
            report.warning((*path, index), "rule-without-effect", message)
    return ExclusiveGroups(tuple(found)) if len(found) == len(groups) else None


def _max_calls(payload: object, path: RawPath, report: Report) -> RuleKind | None:
    if payload is _ABSENT:
        _bad(path, report, "MaxCalls", "3")
        return None
    calls = whole_number(payload, path, report, "`MaxCalls`", 0)
    if calls == 0:
        message = "`MaxCalls = 0` denies every call, yet the model is shown what it limits: turn that off instead"
        report.warning(path, "never-callable", message, at_value=True)
    return None if calls is None else MaxCalls(calls)


def _cooldown(payload: object, path: RawPath, report: Report) -> RuleKind | None:
    seconds = _seconds(payload, path, report, "Cooldown")
    if seconds == 0:
        message = "`Cooldown = 0` holds nothing back: the rule has no effect"
        report.warning(path, "rule-without-effect", message, at_value=True)
    return None if seconds is None else Cooldown(seconds)


def _periodic(payload: object, path: RawPath, report: Report) -> RuleKind | None:
    seconds = _seconds(payload, path, report, "Periodic")
    if seconds == 0:
        report.error(path, "bad-value", "`Periodic` must be longer than nothing")
    return None if seconds is None else Periodic(seconds)


def _rate(payload: object, path: RawPath, report: Report) -> RuleKind | None:
    if not isinstance(payload, dict):
        _bad(path, report, "RateLimit", '{ calls = 10, per = "1m" }')
        return None
    row = Row(cast("Raw", payload), path, report)
    row.only(("calls", "per"), "`RateLimit`")
    if not (row.require("calls", "`RateLimit`") and row.require("per", "`RateLimit`")):
        return None
    calls, per_s = row.integer("calls", 1), row.duration("per")
    if per_s == 0:
        row.fault("per", "bad-value", "`per` must be longer than nothing")
    return None if calls is None or per_s is None else RateLimit(calls, per_s)


def _consent(payload: object, path: RawPath, report: Report) -> RuleKind | None:
    if payload is _ABSENT:
        return RequiresConsent()
    if not isinstance(payload, dict):
        _bad(path, report, "RequiresConsent", '{} or { scope = "writing" }')
        return None
    row = Row(cast("Raw", payload), path, report)
    row.only(("scope",), "`RequiresConsent`")
    return RequiresConsent(row.text("scope", filled=True))


def _constraints(payload: object, path: RawPath, report: Report) -> RuleKind | None:
    if not isinstance(payload, dict):
        _bad(path, report, "ArgumentConstraints", '{ path = { pattern = "^notes/" } }')
        return None
    said = json_table(cast("Raw", payload), path, report)
    if said is None:
        return None
    fields, required = dict(said), list[str]()
    if isinstance(said.get("required"), list):  # a table there is about an argument of that name
        required = _names(fields.pop("required"), (*path, "required"), report, "required", '["path"]') or []
    if wrong := next((key for key, schema in fields.items() if not isinstance(schema, dict | bool)), None):
        report.error((*path, wrong), "bad-value", f"the constraint of {shown(wrong)} must be a JSON Schema")
        return None
    if not fields and not required:
        report.warning(path, "rule-without-effect", "`ArgumentConstraints` names no field: the rule has no effect")
    for name, schema in fields.items():
        check_json_schema(schema, (*path, name), report)
    return ArgumentConstraints(fields, tuple(required))


def json_table(value: object, path: RawPath, report: Report) -> dict[str, JsonValue] | None:
    """A table that is also a JSON object within the limits, or None after an error."""
    try:
        return checked_object(value)
    except JsonRefused as refused:
        report.error(path, "bad-value", f"this table must be what JSON can say: {refused}")
        return None


def _seconds(payload: object, path: RawPath, report: Report, name: str) -> float | None:
    if payload is _ABSENT:
        _bad(path, report, name, '"30s"')
        return None
    return seconds_of(payload, path, report)


def _names(payload: object, path: RawPath, report: Report, what: str, example: str) -> list[str] | None:
    if not isinstance(payload, list):
        _bad(path, report, what, example)
        return None
    values = cast("list[object]", payload)
    seen: set[str] = set()
    for index, word in texts_of(values, path, report, f"`{what}`"):
        if why := name_error(word):
            report.error((*path, index), "bad-value", f"a name {why}")
        elif word in seen:
            report.error((*path, index), "duplicate", f"{shown(word)} stands here twice")
        seen.add(word)
    return [word for word in values if isinstance(word, str)]


def _bad(path: RawPath, report: Report, name: str, example: str) -> None:
    report.error(path, "bad-value", f"`{name}` needs a value, such as `{example}`")


_PAYLOADS: dict[str, Callable[[object, RawPath, Report], RuleKind | None]] = {
    "AllowedOperations": _operations,
    "ExclusiveGroups": _groups,
    "MaxCalls": _max_calls,
    "Cooldown": _cooldown,
    "Periodic": _periodic,
    "RateLimit": _rate,
    "RequiresConsent": _consent,
    "ArgumentConstraints": _constraints,
}
