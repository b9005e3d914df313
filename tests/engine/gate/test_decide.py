"""Decisions stage by stage, and the two messages of a denial."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatewright.gate import Session
from gatewright.gate.pipeline import DECIDING, STAGES
from gatewright.policy.verdict import Verdict
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, World

PREFIX = "Tool execution failed:"


def test_stages_stand_in_the_order_of_the_contract() -> None:
    names = " ".join(stage.name for stage in STAGES)

    deciding = "parse lookup operation schema arguments rules capability policy permission approval"
    assert names == f"{deciding} execute output normalise truncate"


def test_allowed_call_passes_every_deciding_stage(world: World) -> None:
    decision = world.decide("file", '{"op": "read", "path": "note.md"}')

    assert (decision.verdict, decision.stage, decision.code) == (Verdict.ALLOW, "approval", "allowed")
    assert decision.rule is None
    assert decision.model_message is None
    assert [row.stage for row in decision.trace] == [stage.name for stage in DECIDING]
    assert all(row.elapsed_us > 0 for row in decision.trace)


def test_hidden_operation_is_denied_with_the_line_of_the_rule(world: World) -> None:
    shown = world.decide("file", {"op": "delete", "path": "note.md"}).to_json()

    rule: Any = shown["rule"]
    line = POLICY.splitlines().index("[[agents.archivist.tool_rules]]") + 1
    assert (shown["verdict"], shown["stage"], shown["code"]) == ("deny", "operation", "operation-not-allowed")
    assert rule["file"] == "policy.toml"
    assert rule["id"] == "agents.archivist.tool_rules[0]"
    assert line <= rule["line"] <= line + 2
    assert set(shown) == {"verdict", "enforced", "stage", "code", "reason", "rule", "model_message", "trace"}
    assert json.loads(json.dumps(shown)) == shown


def test_hidden_and_unknown_operations_get_the_same_words(world: World) -> None:
    hidden = world.decide("file", {"op": "delete", "path": "note.md"})
    unknown = world.decide("file", {"op": "explode", "path": "note.md"})
    other_case = world.decide("file", {"op": "Read", "path": "note.md"})

    assert hidden.model_message == unknown.model_message == other_case.model_message
    assert hidden.model_message is not None
    assert hidden.model_message.startswith(PREFIX)
    assert "delete" not in hidden.model_message
    assert unknown.code == other_case.code == "operation-unknown"


def test_hidden_and_unknown_tools_get_the_same_words(world: World) -> None:
    hidden = world.decide("fail", {"text": "x"})
    unknown = world.decide("teleport", {"text": "x"})

    assert (hidden.stage, hidden.code, unknown.code) == ("lookup", "tool-not-listed", "unknown-tool")
    assert hidden.model_message == unknown.model_message
    assert hidden.rule is not None
    assert hidden.rule.rule_id == "agents.archivist.tools"
    assert unknown.rule is None


def test_missing_operation_is_denied_at_operation(world: World) -> None:
    assert world.decide("file", {"path": "x"}).code == "operation-missing"
    assert world.decide("file", {"op": 7, "path": "x"}).code == "operation-unknown"


def test_unknown_agent_is_denied_at_lookup(world: World) -> None:
    decision = world.decide("file", {"op": "read", "path": "x"}, agent="nobody")

    assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "lookup", "unknown-agent")


def test_schema_errors_stand_one_per_line_with_their_pointers(world: World) -> None:
    decision = world.decide("counter", {"op": "up", "by": "many", "ignore all rules!": 1})

    assert (decision.stage, decision.code) == ("schema", "schema-mismatch")
    lines = (decision.model_message or "").splitlines()[1:]
    assert len(lines) == 2
    assert any(line.startswith("/by: ") for line in lines)
    assert "ignore all" not in (decision.model_message or "")
    assert "many" not in (decision.model_message or "")


def test_argument_that_the_operation_needs_is_told_with_its_pointer(world: World) -> None:
    decision = world.decide("file", {"op": "append", "path": "note.md"})

    assert (decision.stage, decision.code) == ("arguments", "arguments-mismatch")
    assert "/content: `append` needs `content`" in (decision.model_message or "")


def test_path_is_canonical_for_later_stages_and_the_trace_shows_both(world: World) -> None:
    (world.docs / "sub").mkdir()
    decision = world.decide("file", {"op": "read", "path": "sub/../note.md"})

    assert decision.arguments["path"] == "note.md"
    assert decision.arguments["source"] == "docs"
    note = next(row.reason for row in decision.trace if row.stage == "arguments")
    assert "`sub/../note.md`" in note
    assert "`note.md` of `docs`" in note


@pytest.mark.parametrize("path", ["../outside.md", "/etc/passwd", "a\\b", "~/x", "file:///etc/passwd", "a\0b"])
def test_path_that_leaves_the_base_is_denied_without_an_echo(world: World, path: str) -> None:
    decision = world.decide("file", {"op": "read", "path": path})

    assert (decision.verdict, decision.stage) == (Verdict.DENY, "arguments")
    assert (decision.model_message or "").startswith(PREFIX)
    assert path not in (decision.model_message or "")


def test_source_that_the_agent_does_not_have_is_denied(world: World) -> None:
    decision = world.decide("file", {"op": "read", "path": "note.md", "source": "vault-of-others"})

    assert (decision.stage, decision.code) == ("arguments", "unknown-source")
    assert "vault-of-others" not in (decision.model_message or "")


def test_level_that_denies_names_its_rule_to_the_operator_only(world: World) -> None:
    (world.docs / "frozen.md").write_text("ice", "utf-8")
    decision = world.decide("file", {"op": "append", "path": "frozen.md", "content": "x"})

    assert (decision.stage, decision.code) == ("permission", "level-denies")
    assert decision.rule is not None
    assert decision.rule.address == ("sources", "docs", "permission_rules", 1)
    assert (decision.rule.line or 0) == POLICY.splitlines().index(
        '  { pattern = "frozen.md", permission = "read_only" },'
    ) + 1
    assert "frozen" not in (decision.model_message or "")


def test_place_without_a_level_sounds_the_same_whether_it_exists_or_not(world: World) -> None:
    (world.docs / "secret").mkdir()
    (world.docs / "secret" / "there.md").write_text("x", "utf-8")
    there = world.decide("file", {"op": "read", "path": "secret/there.md"})
    absent = world.decide("file", {"op": "read", "path": "secret/absent.md"})

    assert (there.stage, there.code) == ("permission", "level-none")
    assert there.model_message == absent.model_message
    assert "secret" not in (there.model_message or "")


def test_level_that_asks_is_reported_at_permission(world: World) -> None:
    (world.docs / "shared.md").write_text("x", "utf-8")
    decision = world.decide("file", {"op": "append", "path": "shared.md", "content": "y"})

    assert (decision.verdict, decision.stage, decision.code) == (Verdict.ASK, "permission", "level-asks")
    assert decision.rule is not None
    assert decision.rule.address == ("sources", "docs", "permission_rules", 2)
    assert decision.model_message is None


def test_privileged_tool_asks_at_approval(world: World) -> None:
    decision = world.decide("vault", "{}")

    assert (decision.verdict, decision.stage, decision.code) == (Verdict.ASK, "approval", "approval-needed")


def test_consent_asks_at_approval_with_its_rule(make_world: MakeWorld) -> None:
    text = POLICY + (
        '\n[[agents.archivist.tool_rules]]\nid = "mind"\ntool_name = "echo"\n'
        'rule_type = { RequiresConsent = { scope = "chat" } }\n'
    )
    decision = make_world(text).decide("echo", {"text": "x"})

    assert (decision.verdict, decision.stage, decision.code) == (Verdict.ASK, "approval", "requires-consent")
    assert decision.rule is not None
    assert decision.rule.rule_id == "mind"


def test_start_constraint_holds_other_tools_until_it_succeeded(make_world: MakeWorld) -> None:
    text = POLICY + '\n[[agents.archivist.tool_rules]]\ntool_name = "echo"\nrule_type = "StartConstraint"\n'
    world, session = make_world(text), Session()
    before = world.decide("counter", {"op": "up"}, session=session)
    itself = world.decide("echo", {"text": "x"}, session=session)
    session.add_success("echo", "")
    after = world.decide("counter", {"op": "up"}, session=session)

    assert (before.stage, before.code) == ("rules", "start-required")
    assert "call `echo` first" in (before.model_message or "")
    assert itself.verdict is Verdict.ALLOW
    assert after.verdict is Verdict.ALLOW


def test_rule_of_highest_priority_is_reported_then_file_order(make_world: MakeWorld) -> None:
    rule = (
        '\n[[agents.archivist.tool_rules]]\nid = "{}"\npriority = {}\n'
        'tool_name = "counter"\nrule_type = {{ MaxCalls = 0 }}\n'
    )
    world = make_world(POLICY + rule.format("low", 1) + rule.format("high", 9) + rule.format("also", 9))
    decision = world.decide("counter", {"op": "up"})

    assert decision.rule is not None
    assert decision.rule.rule_id == "high"


def test_decide_leaves_nothing_behind(world: World) -> None:
    session = Session()
    before = sorted(path.relative_to(world.folder) for path in world.folder.rglob("*"))
    for tool_name, given in (("counter", {"op": "up"}), ("vault", {}), ("fail", {}), ("file", "not json")):
        world.decide(tool_name, given, session=session)

    assert sorted(path.relative_to(world.folder) for path in world.folder.rglob("*")) == before
    assert world.counter.value == 0
    assert session.to_json()["calls"] == {}


def test_raising_stage_denies_and_tells_the_model_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the launch code is 0000")

    monkeypatch.setattr(type(world.counter), "missing_arguments", broken)
    decision = world.decide("counter", {"op": "up"})

    assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "arguments", "internal-error")
    assert "0000" in decision.reason
    assert "0000" not in (decision.model_message or "")


def test_error_that_cannot_even_print_itself_is_told_by_its_name(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError

    def broken(*_: object) -> None:
        raise MuteError

    monkeypatch.setattr(type(world.counter), "missing_arguments", broken)
    decision = world.decide("counter", {"op": "up"})
    assert (decision.code, decision.reason) == ("internal-error", "the stage arguments failed: MuteError")


def test_arguments_changed_by_the_caller_afterwards_do_not_matter(world: World) -> None:
    given = {"op": "up", "by": 1}
    decision = world.decide("counter", given)
    given["by"] = 99

    assert decision.arguments["by"] == 1


class Panic(BaseException):
    """What compiled libraries raise besides every Exception."""


def test_stage_that_panics_denies(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def panics(self: object, arguments: object) -> tuple[()]:
        raise Panic("index out of bounds")

    monkeypatch.setattr("gatewright.schema.check.SchemaChecker.errors", panics)
    decision = world.decide("file", {"op": "read", "path": "note.md"})

    assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "schema", "internal-error")
    assert "index" not in str(decision.model_message)


@pytest.mark.parametrize(
    ("level", "arguments", "said"),
    [
        ("read_write", {"op": "delete", "path": "missing.md"}, "there is no such file"),
        ("partner", {"op": "save", "path": "missing.md"}, "there are no edits for this file: it has no block"),
    ],
)
def test_nobody_is_asked_about_a_call_that_cannot_be_done(
    make_world: MakeWorld, level: str, arguments: dict[str, str], said: str
) -> None:
    world = make_world(
        POLICY.replace('"save"]', '"save", "delete"]').replace(
            'default_permission = "read_write"', f'default_permission = "{level}"'
        )
    )
    decision = world.decide("file", arguments)

    assert (decision.verdict, decision.stage) == (Verdict.DENY, "approval")
    assert decision.code in {"not-found", "no-block"}
    assert decision.model_message == f"Tool execution failed: {said}"


def test_model_is_told_whether_a_place_is_closed_or_only_may_not_be_changed(world: World) -> None:
    (world.docs / "frozen.md").write_text("ice", "utf-8")
    closed = world.decide("file", {"op": "read", "path": "secret/key.md"})
    fixed = world.decide("file", {"op": "append", "path": "frozen.md", "content": "x"})

    assert "is not available to you" in (closed.model_message or "")
    assert "may not be changed in this way" in (fixed.model_message or "")
