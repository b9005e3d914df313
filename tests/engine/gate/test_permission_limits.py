"""A source's own limits bind the calls that go to it, and are denied at the permission stage."""

from __future__ import annotations

import pytest

from gatewright.policy.verdict import Verdict
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import World

TEXT = """gatewright = 1

[agents.archivist]
tools = ["file"]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "admin"

[[sources.required_tools]]
tool_name = "file"
rule_type = { AllowedOperations = ["read", "load"] }
conditions = []

[[sources]]
id = "notes"
type = "file"
base_path = "notes"
default_permission = "admin"
"""


@pytest.fixture
def limited(make_world: MakeWorld) -> World:
    world = make_world(TEXT)
    for name in ("docs", "notes"):
        (world.folder / name).mkdir(exist_ok=True)
        (world.folder / name / f"{name}.md").write_text("fine")
    return world


def test_operation_that_the_routed_source_leaves_out_is_denied_there(limited: World) -> None:
    decision = limited.decide("file", {"op": "create", "path": "new.md", "content": "x", "source": "docs"})
    assert (decision.verdict, decision.stage, decision.code) == (
        Verdict.DENY,
        "permission",
        "source-operation-not-allowed",
    )
    assert decision.rule is not None
    assert decision.rule.line == 12
    assert "docs" not in (decision.model_message or "")


def test_the_other_source_is_not_bound(limited: World) -> None:
    arguments = {"op": "create", "path": "new.md", "content": "x", "source": "notes"}
    assert limited.decide("file", arguments).verdict is Verdict.ALLOW
    assert limited.decide("file", {"op": "read", "path": "docs.md", "source": "docs"}).verdict is Verdict.ALLOW


def test_absolute_path_is_routed_to_its_source(limited: World) -> None:
    path = str(limited.docs / "new.md")
    assert limited.decide("file", {"op": "create", "path": path, "content": "x"}).stage == "permission"
