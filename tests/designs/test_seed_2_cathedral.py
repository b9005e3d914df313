"""The CATHEDRAL design, row by row: what a tool declares, its eight steps, results, adapters and the log."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from gatewright import ProvenCall, RegistrationError, Tool, ToolRegistry, operation, tool
from gatewright.base.errors import AlreadyRegistered
from gatewright.builtins import root_tools
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import Determinism, ResourceBounds, ResultType, SideEffect
from tests.designs.world import NET, World, agent, opened, served, source

READ_ONLY = SafetyTier.READ_ONLY
EFFECTS = ("NetRead", "NetWrite", "FsRead", "FsWrite", "DbRead", "DbWrite", "ProcessSpawn")
runs: list[str] = []


class WordCount(BaseModel):
    words: int


class Part(BaseModel):
    text: str
    weights: list[float] = []


@tool(safety_tier=READ_ONLY, version="1.2.3")
async def count_words(text: str, part: Part | None = None, least: int = 0) -> WordCount:
    """Count words."""
    return WordCount(words=len(text.split()))


@tool(safety_tier=READ_ONLY, determinism=Determinism.PURE, result_type=ResultType.ANY)
async def double(number: int) -> int:
    """Double a number."""
    runs.append("double")
    return 2 * number


@tool(safety_tier=READ_ONLY, resource_bounds=ResourceBounds(timeout_s=0.1), result_type=ResultType.ANY)
async def sleep() -> int:
    """Sleep."""
    await asyncio.sleep(60)
    return 1


@tool(safety_tier=READ_ONLY, output_schema={"type": "object", "properties": {"words": {"type": "integer"}}})
async def liar() -> dict[str, Any]:
    """Give another type than it says."""
    return {"words": "three"}


@tool(safety_tier=READ_ONLY, result_type=ResultType.OBJECT)
async def unsorted() -> dict[str, Any]:
    """Give keys out of order."""
    return {"b": 1, "a": "ä"}


@tool(safety_tier=READ_ONLY)
async def pixels() -> bytes:
    """Give bytes."""
    return b"\x89PNG"


@tool(safety_tier=READ_ONLY, normalization=lambda result: str(result).upper().encode())
async def loud() -> str:
    """Give a text that is normalised by a function."""
    return "quiet"


@tool(safety_tier=READ_ONLY)
async def drip() -> AsyncIterator[str]:
    """Give a stream."""
    for piece in ("a", "b"):
        yield piece


@tool(safety_tier=READ_ONLY)
async def listing() -> list[int]:
    """Give a list."""
    return [1]


@tool(safety_tier=READ_ONLY, side_effects={SideEffect.DB_READ}, result_type=ResultType.ANY)
async def rows() -> int:
    """Read a database."""
    return 1


TOOLS = [count_words, double, sleep, liar, unsorted, pixels, loud, drip, listing, rows]
GRANTS = f"{NET}, {{ DbRead = {{ tables = ['*'] }} }}, {{ FsRead = {{ prefixes = ['shared'] }} }}"
RULE = """
[[policy.rules]]
name = "no sevens"
effect = "deny"
tools = ["double"]
when = { properties = { number = { const = 7 } } }
"""
POLICY = (
    agent("able", [*(one.name for one in TOOLS), "file", "http_fetch", "read_file"], f"capabilities = [{GRANTS}]")
    + agent("poor", ["rows", "double"])
    + source("docs", "docs")
    + "\n[workspace]\nroots = { shared = 'shared' }\nweb = { allow_private = true }\n"
    + RULE
)


@pytest.fixture(scope="module")
def asked() -> list[str]:
    """What the server of the pages was asked."""
    return []


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, asked: list[str]) -> Iterator[World]:
    with served(asked) as web, opened(tmp_path_factory.mktemp("cathedral"), POLICY, tools=TOOLS, web=web) as made:
        (made.folder / "docs/a.md").write_text("one\n")
        (made.folder / "shared/a.txt").write_text("first line\n")
        yield made


def facts(world: World, name: str) -> Any:
    return next(one for one in world.workspace.catalog if one.name == name)


def schema(world: World, name: str) -> dict[str, Any]:
    return world.shown()[name]["inputSchema"]


# what a tool declares


def test_name_and_semver(world: World) -> None:
    assert (count_words.version, facts(world, "count_words").major) == ("1.2.3", 1)
    with pytest.raises(RegistrationError, match="version"):
        tool(safety_tier=READ_ONLY, version="one")(count_words.function)


def test_input_types_and_defaults_without_references(world: World) -> None:
    shown = schema(world, "count_words")
    assert shown["required"] == ["text"]
    assert shown["properties"]["least"] == {"type": "integer", "default": 0} | shown["properties"]["least"]
    assert "$ref" not in json.dumps(shown)
    assert world.refused("count_words", text=3) == "schema-mismatch"


def test_capabilities(world: World) -> None:
    assert world.result("rows") == 1
    assert world.refused("rows", agent="poor") == "capability-not-granted"
    assert "rows" not in world.shown("poor")


def test_seven_side_effects_and_none(world: World) -> None:
    assert {str(one) for one in SideEffect} == set(EFFECTS)
    assert world.call("double", number=1).side_effects == frozenset()
    assert world.call("rows").side_effects == {SideEffect.DB_READ}


def test_determinism_and_a_pure_result_that_is_reused(world: World) -> None:
    assert {str(one) for one in Determinism} == {"Pure", "Deterministic", "Maybe", "NonDeterministic"}
    runs.clear()
    session = world.workspace.session("able", "reuse")
    first, second = (world.call("double", session=session, number=21) for _ in range(2))
    assert (first.output, second.output, second.reused, runs) == ("42", "42", True, ["double"])


def test_time_out(world: World) -> None:
    assert world.refused("sleep") == "timed-out"


def test_output_schema(world: World) -> None:
    shown = world.shown()["count_words"]["outputSchema"]
    assert shown["properties"]["words"] == {"type": "integer"}
    assert world.refused("liar") == "output-mismatch"
    builtins = [one for one in world.workspace.catalog if one.name in {"file", "http_fetch", "read_file"}]
    assert builtins
    assert all("outputSchema" in world.shown()[one.name] for one in builtins)


@pytest.mark.parametrize(
    "bound", [{"memory_bytes": 1}, {"cpu_s": 1.0}, {"network_bytes": 1}], ids=lambda one: next(iter(one))
)
def test_bounds_of_memory_cpu_and_network(bound: dict[str, Any]) -> None:
    bounds = ResourceBounds(**bound)
    with pytest.raises(RegistrationError, match="not supported for a tool that runs inside this process"):
        tool(safety_tier=READ_ONLY, resource_bounds=bounds)(count_words.function)
    made = tool(safety_tier=READ_ONLY, resource_bounds=bounds, enforces_bounds=True)(count_words.function)
    assert made.resource_bounds == bounds


def test_max_requests(world: World, asked: list[str]) -> None:
    asked.clear()
    assert world.refused("http_fetch", url=f"{world.web}/ring") != ""
    assert len(asked) == 6


def test_result_types_with_streams(world: World) -> None:
    pieces: list[str] = []
    call = world.workspace.call("able", "drip", {}, on_piece=pieces.append)
    outcome = asyncio.run(call)
    assert (pieces, json.loads(outcome.data or b"")) == (["a", "b"], "ab")
    found = [world.call(name).data for name in ("unsorted", "listing", "loud", "pixels")]
    assert found == [b'{"a":"\xc3\xa4","b":1}', b"[1]", b"QUIET", b"\x89PNG"]


def test_register_already_registered_get_and_list() -> None:
    registry = ToolRegistry()
    withdraw = registry.register(double)
    with pytest.raises(AlreadyRegistered):
        registry.register(double)
    assert registry.get("double") is double
    assert registry.tools() == (double,)
    withdraw()
    assert registry.get("double") is None


# a call


def test_eight_steps_in_order(world: World) -> None:
    stages = [one.stage for one in world.call("count_words", text="a b").decision.trace]
    wanted = ["lookup", "schema", "capability", "policy", "execute", "output", "normalise", "truncate"]
    assert [one for one in stages if one in wanted] == wanted


def test_tool_result_holds_raw_normalised_proof_and_side_effects(world: World) -> None:
    outcome = world.call("unsorted")
    assert outcome.raw == {"b": 1, "a": "ä"}
    assert outcome.data == '{"a":"ä","b":1}'.encode()
    assert outcome.decision.proof is not None
    assert outcome.side_effects == frozenset()


def test_policy_denied_with_a_proof_that_is_verified(world: World) -> None:
    decision = world.call("double", number=7).decision
    gate, proof = world.workspace.gate, decision.proof
    assert (decision.stage, decision.code) == ("policy", "policy-deny")
    assert gate.verify(proof, ProvenCall("able", "double", {"number": 7})).holds
    assert not gate.verify(proof, ProvenCall("able", "double", {"number": 8})).holds


def sha256(data: bytes | None) -> str:
    return hashlib.sha256(data or b"").hexdigest()


def test_normalise_json(world: World) -> None:
    outcome = world.call("unsorted")
    assert outcome.output_hash == sha256('{"a":"ä","b":1}'.encode())


def test_normalise_binary(world: World) -> None:
    assert world.call("pixels").output_hash == sha256(b"\x89PNG")


def test_normalise_custom(world: World) -> None:
    assert world.call("loud").output_hash == sha256(b"QUIET")


def test_no_normalisation_is_an_error() -> None:
    with pytest.raises(RegistrationError, match="normali"):

        class Bare(Tool):  # pyright: ignore[reportUnusedClass]
            name = "bare"
            description = "Says not how its results are normalised."
            result_type = ResultType.OBJECT

            @operation
            async def show(self) -> dict[str, int]:
                """Show it."""
                return {}


def test_http_fetch_with_headers(world: World) -> None:
    data = world.data("http_fetch", url=f"{world.web}/page", headers=["Accept: text/html"])
    assert (data["status"], "<h1>Tea</h1>" in str(data)) == (200, True)


def test_read_file_is_deterministic_within_ten_seconds(world: World) -> None:
    (found,) = [one for one in root_tools() if one.name == "read_file"]
    assert (found.determinism, found.resource_bounds.timeout_s) == (Determinism.DETERMINISTIC, 10.0)
    assert world.data("read_file", path="shared/a.txt")["content"] == "first line\n"


def test_audit_order_and_chain(world: World) -> None:
    outcome = world.call("rows")
    rows = [row for row in world.workspace.audit.rows() if row.call_id == outcome.call_id]
    assert [row.kind for row in rows] == ["ToolInvoked", "CapabilityCheck", "PolicyDecision", "ToolCompleted"]
    assert world.workspace.audit.verify().is_sound


def test_tools_are_registered_while_running(world: World) -> None:
    @tool(safety_tier=READ_ONLY)
    async def wind() -> str:
        """Give the wind."""
        return "west"

    withdraw = world.workspace.tools.add(wind)
    try:
        text = world.workspace.text()
        after = text.replace("[agents.poor]\ntools = [", '[agents.poor]\ntools = ["wind", ')
        world.workspace.apply(world.workspace.edit_between("give", text, after))
        assert world.result("wind", agent="poor") == "west"
    finally:
        withdraw()
    assert "wind" not in world.shown("poor")
