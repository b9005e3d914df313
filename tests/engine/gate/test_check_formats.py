"""What `format` in a tool's schema means for calls: a note, unless the policy asks for known kinds to be checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.plan import ToolShape
from gatewright.gate import Gate, selfcheck
from gatewright.policy.document import Agent, Defaults, Policy
from gatewright.policy.rule import ArgumentConstraints, ToolRule
from gatewright.policy.verdict import Verdict
from gatewright.schema import FORMATS
from gatewright.schema.check import SchemaChecker
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.registry import ToolRegistry

DRAFTS = (
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
KINDS: dict[str, tuple[str, str, str]] = {
    "date-time": ("2026-05-01T12:00:00Z", "2026-05-01 12:00", "a date and time with its zone"),
    "date": ("2024-02-29", "2023-02-29", "a date such as"),
    "email": ("ann@example.org", "ann at example.org", "an e-mail address"),
    "uri": ("https://example.org/a", "books/7", "a whole URI"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123e4567", "a UUID"),
    "ipv4": ("192.0.2.1", "192.0.2.256", "an IPv4 address"),
    "ipv6": ("2001:db8::1", "192.0.2.1", "an IPv6 address"),
}
"""By kind: a text that is one, one that is none, and what is told."""


def gate_of(schema: dict[str, Any], *rules: ToolRule, checks: bool = True) -> Gate:
    registry = ToolRegistry()
    registry.register(DefinedTool(ToolDefinition("remote", "Does things.", schema), origin="stranger"))
    return Gate(Policy(agents={"a": Agent("a", tool_rules=rules)}, defaults=Defaults(check_formats=checks)), registry)


def field(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"at": {"type": "string", "format": kind, **more}}, "required": ["at"]}


def denied(gate: Gate, arguments: dict[str, JsonValue]) -> str:
    """Stage and code of a denial; empty where the call is not denied."""
    decision = gate.decide("a", "remote", arguments)
    return f"{decision.stage} {decision.code}" if decision.verdict is Verdict.DENY else ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draft", DRAFTS)
def test_a_text_that_is_not_of_its_format_is_denied_with_what_it_must_be_in_every_draft(draft: str, kind: str) -> None:
    right, wrong, words = KINDS[kind]
    gate = gate_of({"$schema": draft, **field(kind)})

    assert denied(gate, {"at": right}) == ""
    assert denied(gate, {"at": wrong}) == "schema schema-mismatch"
    told = gate.decide("a", "remote", {"at": wrong}).model_message or ""
    assert f"/at: must be {words}" in told
    assert wrong not in told
    assert selfcheck(gate).differences == ()
    assert selfcheck(gate).no_witness == ()


@pytest.mark.parametrize("kind", KINDS)
def test_formats_are_notes_unless_the_policy_asks_for_them(kind: str) -> None:
    assert denied(gate_of(field(kind), checks=False), {"at": KINDS[kind][1]}) == ""
    assert Defaults().check_formats is False


@pytest.mark.parametrize("kind", ["hostname", "time", "regex", "uri-reference", "duration", "colour"])
def test_other_formats_stay_notes(kind: str) -> None:
    assert denied(gate_of(field(kind)), {"at": "(not one"}) == ""


def test_an_edit_of_the_switch_holds_for_the_next_call() -> None:
    gate = gate_of(field("email"), checks=False)
    gate.reload(replace(gate.policy, defaults=Defaults(check_formats=True)))

    assert denied(gate, {"at": "nobody"}) == "schema schema-mismatch"


def test_formats_deep_in_lists_and_alternatives_are_checked() -> None:
    mail: dict[str, Any] = {"type": "string", "format": "email"}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "to": {"type": "array", "items": {"$ref": "#/$defs/mail"}},
            "by": {"anyOf": [{"type": "null"}, mail, {"type": "string", "format": "uuid"}]},
        },
        "$defs": {"mail": mail},
    }
    gate = gate_of(schema)

    assert denied(gate, {"to": ["a@b.example"], "by": KINDS["uuid"][0]}) == ""
    assert denied(gate, {"to": ["a@b.example"], "by": None}) == ""
    assert denied(gate, {"by": "nobody"}) == "schema schema-mismatch"
    assert "/to/1: must be an e-mail address" in gate.decide("a", "remote", {"to": ["a@b.example", "nobody"]}).reason


def test_formats_hold_beside_a_constraint_and_the_tools_own_fault_is_told_first() -> None:
    rule = ToolRule("remote", ArgumentConstraints({"at": {"pattern": "@example.org$"}}))
    gate = gate_of(field("email"), rule)

    assert denied(gate, {"at": "ann@example.org"}) == ""
    assert denied(gate, {"at": "ann@example.com"}) == "schema argument-constraint"
    assert denied(gate, {"at": "an n@example.org"}) == "schema schema-mismatch"
    assert selfcheck(gate).differences == ()


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_every_preview_says_where_the_gate_checks_a_format_and_nothing_where_it_does_not(form: str) -> None:
    def said(gate: Gate) -> list[tuple[str, str, str]]:
        lints = gate.view("a").lints(form).get("remote", ())
        return [(lint.level, lint.pointer, lint.advice) for lint in lints if lint.code == "format"]

    assert said(gate_of(field("date"))) == [("looser", "/properties/at/format", "the gate checks it")]
    assert said(gate_of(field("hostname"))) == []
    assert said(gate_of(field("date"), checks=False)) == []


def test_the_self_check_finds_a_gate_that_does_not_check_the_formats_it_should(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToolShape, "checker", property(lambda shape: SchemaChecker(shape.listing.schema)))

    assert [row.what for row in selfcheck(gate_of(field("date"))).differences] == [
        "a call whose `at` breaks its format `date` passes"
    ]
