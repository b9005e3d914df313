"""The Pattern architecture, row by row: older tools, messages, usage rules, MCP both ways, limits, compositions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from gatewright import Status, Tool, ToolRegistry, tool
from gatewright.memory import BlockType
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import Normalization, ResultType
from tests.designs.world import NET, World, agent, opened, rule, source
from tests.engine.builtins.messagebench import PASSWORD, TOKEN, Services, running
from tests.support.checkout import ROOT
from tests.support.gateway import served

READ_ONLY = SafetyTier.READ_ONLY
LIMITS = (
    "{ MaxCalls = 1 }",
    '{ Cooldown = "1h" }',
    '{ RateLimit = { calls = 1, per = "1h" } }',
)
SERVER = str(ROOT / "tests" / "support" / "bad_server.py")


class WordCount(BaseModel):
    count: int


@tool(safety_tier=READ_ONLY, usage_rule="Count before you write.")
async def word_count(text: str) -> WordCount:
    """Count the words in a text."""
    return WordCount(count=len(text.split()))


class Read(BaseModel):
    operation: Literal["read"]
    path: str


class Write(BaseModel):
    operation: Literal["write"]
    path: str
    content: str


class Request(BaseModel):
    request: Annotated[Read | Write, Field(discriminator="operation")]


class Store(Tool):
    """A tagged union of operations."""

    name = "store"
    description = "Keeps texts."
    safety_tier = READ_ONLY
    result_type = ResultType.ANY
    normalization = Normalization.JSON
    input_model = Request
    operation_field = "request.operation"
    texts = frozenset({"request"})

    async def run(self, arguments: BaseModel, context: object) -> Any:
        return arguments.model_dump()


@tool(safety_tier=READ_ONLY, name="meter", version="1.0.0", result_type=ResultType.ANY)
async def old_meter() -> int:
    """Give the number of the first version."""
    return 1


@tool(safety_tier=READ_ONLY, name="meter", version="2.1.0", result_type=ResultType.ANY)
async def new_meter() -> int:
    """Give the number of the second version."""
    return 2


TOOLS = [word_count, Store(), old_meter, new_meter]
COMPOSITION = """
[[compositions]]
name = "twice"
description = "Reads a note and writes it elsewhere."
input = { type = "object", properties = { path = { type = "string" }, to = { type = "string" } }, required = ["path"] }
steps = [
  { tool = "file", arguments = { op = "read", path = "$input.path" } },
  { tool = "file", arguments = { op = "create", path = "$input.to", content = "$steps.0.data.content" }, WHEN },
]
""".replace("WHEN", 'when = { properties = { input = { required = ["to"] } } }')
CATALOG = f"""
[[catalogs]]
id = "far"
type = "mcp"
command = {json.dumps(sys.executable)}
args = [{json.dumps(SERVER)}, "plain"]
confine = "none"
"""


def policy(endpoints: str) -> str:
    every = ["word_count", "store", "meter", "send_message", "file", "search", "recall@2", "twice"]
    limited = "".join(
        agent(f"limited{number}", ["word_count"], rules=rule(f"limited{number}", "word_count", kind))
        for number, kind in enumerate(LIMITS)
    )
    return (
        agent("able", every, f"capabilities = [{NET}]")
        + agent("old", ["context", "recall@1", "meter@1", "search"])
        + agent("reader", [])
        + agent("narrow", ["file", "twice"], rules=rule("narrow", "file", '{ AllowedOperations = ["read"] }'))
        + limited
        + source("docs", "docs")
        + COMPOSITION
        + f"\n[workspace.endpoints]\nuser = {{}}\nagent = {{}}\ngroup = {{ crew = ['reader'] }}\n{endpoints}"
    )


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running() as made:
        yield made


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, services: Services) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("pattern")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BOT", TOKEN)
        patch.setenv("APP", PASSWORD)
        with opened(folder, policy(services.toml), tools=TOOLS) as made:
            (made.folder / "docs/a.md").write_text("one\n")
            yield made


def operations(tool_shown: dict[str, Any], field: str) -> list[str]:
    return list(tool_shown["inputSchema"]["properties"][field]["enum"])


def test_context_has_five_operations(world: World) -> None:
    blocks = world.workspace.blocks("old")
    blocks.create("plan", author="operator", content="tea")
    blocks.create("away", author="operator", content="coffee", type=BlockType.ARCHIVAL)
    for arguments in (
        {"operation": "append", "label": "plan", "value": "!"},
        {"operation": "replace", "label": "plan", "old": "tea", "new": "milk"},
        {"operation": "archive", "label": "plan"},
        {"operation": "load_from_archival", "label": "plan"},
        {"operation": "swap", "archive": "plan", "load": "away"},
    ):
        world.data("context", agent="old", **arguments)
    assert blocks.render("plan") == "milk!"
    assert len(operations(world.shown("old")["context"], "operation")) == 5


def test_recall_of_the_first_version_has_four_operations(world: World) -> None:
    for arguments in (
        {"operation": "insert", "label": "kept", "value": "green"},
        {"operation": "append", "label": "kept", "value": " tea"},
        {"operation": "read", "label": "kept"},
        {"operation": "delete", "label": "kept"},
    ):
        data = world.data("recall", agent="old", **arguments)
        assert arguments["operation"] != "read" or "green tea" in str(data)


@pytest.mark.parametrize("domain", ["archival_memory", "conversations", "all"])
def test_search_in_three_domains_with_filters(world: World, domain: str) -> None:
    if not world.workspace.archive("able").list(limit=1):
        world.data("recall", op="insert", content="low water in the archive")
        talk = world.workspace.conversations("able")
        talk.append("user", "low water, they say", session_id="monday")
        talk.append("assistant", "low water indeed", session_id="monday")
    hits = str(world.data("search", domain=domain, query="low water", filters={"since": "2020-01-01"}))
    assert ("in the archive" in hits, "they say" in hits) == (domain != "conversations", domain != "archival_memory")
    assert "low" not in str(world.data("search", domain=domain, query="low water", filters={"until": "2020-01-01"}))


def test_messages_to_user_agent_and_group(world: World) -> None:
    for target in ({"type": "user"}, {"type": "agent", "id": "reader"}, {"type": "group", "name": "crew"}):
        world.result("send_message", target=target, content=f"to {target['type']}")
    assert [one.content for one in world.workspace.inbox("reader").take()] == ["to agent", "to group"]
    assert [one.content for one in world.workspace.inbox().take()] == ["to user"]


def test_messages_to_discord_and_bluesky(world: World, services: Services) -> None:
    world.result("send_message", target={"type": "discord", "channel_id": "100"}, content="hello")
    world.result("send_message", target={"type": "bluesky", "handle": "dana.example.com"}, content="hello")
    assert (services.messages[0]["content"], len(services.records)) == ("hello", 1)
    assert world.refused("send_message", target={"type": "discord", "channel_id": "999"}, content="x") != ""


def test_exit_loop(world: World) -> None:
    outcome = world.call("send_message", target={"type": "user"}, content="bye")
    assert (outcome.status, outcome.should_continue) == (Status.ALLOWED, False)


def test_tool_usage_rules(world: World) -> None:
    rules = world.workspace.view("able").usage_rules
    assert rules.startswith("## Tool Usage Rules\n")
    assert any(
        line.startswith(("- `word_count`: Count before", "- word_count: Count before")) for line in rules.split("\n")
    ), rules


def test_registry(world: World) -> None:
    registry = ToolRegistry()
    for one in (word_count, Store()):
        registry.register(one)
    assert [one.name for one in registry.tools()] == ["word_count", "store"] or len(registry.tools()) == 2
    assert world.workspace.tool_schema("word_count") is not None


def test_word_count(world: World) -> None:
    assert world.result("word_count", text="one two three") == {"count": 3}


def test_tagged_union_tool(world: World) -> None:
    request = {"operation": "write", "path": "a", "content": "b"}
    assert world.result("store", request=request) == {"request": request}
    assert world.refused("store", request={"operation": "delete", "path": "a"}) != ""


def test_registry_is_safe_for_threads() -> None:
    registry, names = ToolRegistry(), [f"tool_{number}" for number in range(40)]

    async def give() -> str:
        """Give nothing."""
        return ""

    def register(name: str) -> None:
        registry.register(tool(safety_tier=READ_ONLY, name=name)(give))
        assert registry.get(name) is not None

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(register, names))
    assert {one.name for one in registry.tools()} == set(names)


def test_schemas_are_safe_for_mcp(world: World) -> None:
    said = json.dumps([*world.shown("able").values(), *world.shown("old").values()])
    assert "$ref" not in said
    assert "uint" not in said
    assert "int64" not in said


async def test_mcp_client_and_gateway_agree(tmp_path: Path) -> None:
    with opened(tmp_path, CATALOG) as fresh:
        await fresh.workspace.servers.refresh("far")
        fresh.workspace.accept_tools("far", None)
    with opened(tmp_path, agent("client", ["one"], "approvals = { privileged = 'allow' }") + CATALOG) as world:
        outcome = await world.call_async("one", agent="client")
        assert outcome.output == "raw", (outcome.output, outcome.detail)
        shown = world.workspace.view("client").tools("mcp")
    async with served(tmp_path / "ws", tmp_path / "keys", "client") as client:
        listed = [
            one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in (await client.list_tools()).tools
        ]
        result = await client.call_tool("one", {})
    assert listed == shown
    assert "raw" in str(result.content)


@pytest.mark.parametrize("number", range(len(LIMITS)))
def test_rate_limits(world: World, number: int) -> None:
    world.result("word_count", agent=f"limited{number}", text="x")
    assert world.call("word_count", agent=f"limited{number}", text="x").decision.stage == "rules"


def test_versions_side_by_side(world: World) -> None:
    assert (world.result("meter"), world.result("meter", agent="old")) == (2, 1)


def test_conditional_execution(world: World) -> None:
    world.result("twice", path="a.md")
    assert not (world.folder / "docs/b.md").exists()
    world.result("twice", path="a.md", to="b.md")
    assert world.data("file", op="read", path="b.md")["content"] == "one\n"


def test_composition_is_one_tool_and_gives_no_right(world: World) -> None:
    assert world.shown()["twice"]["description"].startswith("Reads a note")
    outcome = world.call("twice", path="a.md", to="c.md")
    assert [one.status for one in outcome.steps] == [Status.ALLOWED] * 2
    assert world.refused("twice", agent="narrow", path="a.md", to="d.md") != ""
    assert not (world.folder / "docs/d.md").exists()
