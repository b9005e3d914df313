"""What the model is shown, the self-check, and what an edit recompiles."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from gatewright.base.errors import NotSupported, SchemaError, WorkspaceError
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.operation import OperationPlan
from gatewright.compile.plan import ToolPlan
from gatewright.compile.snapshot import Snapshot
from gatewright.compile.view import AgentView
from gatewright.gate import Gate, selfcheck
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import ChangeSet
from gatewright.policy.verdict import SafetyTier, Verdict, pick_tools
from gatewright.schema import FORMATS, Format, ToolListing, formats
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.registry import ToolRegistry, operation
from gatewright.tools.tool import Tool
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, GateTool, World

TWO = POLICY + '\n[agents.reader]\ntools = ["file"]\nsources = ["docs"]\n'


def snapshot_of(world: World, agent: str) -> AgentSnapshot:
    found = world.gate.snapshot().agent(agent)
    assert found is not None
    return found


def plan_of(world: World, agent: str, tool: str) -> ToolPlan:
    plan = snapshot_of(world, agent).plan(tool)
    assert plan is not None
    return plan


def test_view_shows_only_what_is_ticked_and_names_no_other(world: World) -> None:
    shown = world.gate.view("archivist").tools("mcp")
    text = json.dumps([row for row in shown if row["name"] == "file"])

    assert [row["name"] for row in shown] == ["block", "counter", "echo", "file", "vault"]
    assert next(row for row in shown if row["name"] == "file")["inputSchema"]["properties"]["op"]["enum"] == [
        "append",
        "load",
        "read",
        "save",
    ]
    for hidden in ("delete", "create", "replace", "list"):
        assert hidden not in text


def test_tool_whose_listing_cannot_be_made_is_closed_and_the_others_stay_open(make_world: MakeWorld) -> None:
    class Mute(Tool):
        name = "mute"
        description = "Says nothing."
        safety_tier = SafetyTier.READ_ONLY
        result_type = ResultType.STRING
        normalization = Normalization.JSON

        @operation
        async def give(self) -> str:
            """Give it."""
            return "x"

        def description_for(self, shown: frozenset[str], text: str | None = None) -> str:
            raise SchemaError("there are no words")

    world = make_world(POLICY.replace('"vault"]', '"vault", "mute"]'), Mute())
    decision = world.decide("mute", {"op": "give"})

    assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "lookup", "schema-unusable")
    assert decision.reason == "`mute` has no usable schema: there are no words"
    assert decision.model_message == world.decide("no-such-tool", {}).model_message
    assert [row["name"] for row in world.gate.view("archivist").tools("mcp")] == [
        "block",
        "counter",
        "echo",
        "file",
        "vault",
    ]
    assert world.decide("echo", {"text": "x"}).verdict is Verdict.ALLOW


def test_what_a_caller_does_to_the_shown_tools_changes_no_other_view_and_no_check(world: World) -> None:
    shown = world.gate.view("archivist").tools("anthropic")
    shown[0]["cache_control"] = {"type": "ephemeral"}
    shown.append({"name": "mine"})
    for tool in shown[:-1]:
        tool["input_schema"].clear()
    plain = world.gate.view("archivist").tools("mcp")

    assert [row["name"] for row in world.gate.view("archivist").tools("anthropic")] == [row["name"] for row in plain]
    assert "cache_control" not in world.gate.view("archivist").tools("anthropic")[0]
    assert all(row["inputSchema"]["additionalProperties"] is False for row in plain)
    assert world.decide("file", {"op": "read", "path": 3}).stage == "schema"


def test_view_is_rendered_once_and_again_after_an_edit(world: World) -> None:
    first = world.gate.view("archivist")

    assert world.gate.view("archivist") is first
    assert first.tools("openai")[0]["function"] is first.tools("openai")[0]["function"]
    world.reload(POLICY.replace('"append", ', ""))
    assert "append" not in json.dumps(world.gate.view("archivist").tools("openai"))
    assert "append" in json.dumps(first.tools("openai"))


def test_usage_rules_name_shown_operations_only(world: World) -> None:
    text = world.gate.view("archivist").usage_rules

    assert text.startswith("## Tool Usage Rules")
    assert "`save`" in text
    assert "delete" not in text


def test_unrestricted_listings_hold_every_tool_whole(world: World) -> None:
    rows = {row.name: row for row in world.gate.view("archivist").full_listings()}

    assert "fail" in rows
    assert "delete" in rows["file"].schema["properties"]["op"]["enum"]


def test_view_of_an_unknown_agent_is_an_error(world: World) -> None:
    with pytest.raises(WorkspaceError, match="no agent `nobody`"):
        world.gate.view("nobody")


def test_selfcheck_finds_no_difference_and_counts_agents_tools_and_operations(make_world: MakeWorld) -> None:
    world = make_world(TWO)
    result = selfcheck(world.gate)
    tools = pick_tools([tool.facts() for tool in world.registry.tools()], None).values()
    per_agent = sum(max(1, len(tool.operations)) for tool in tools)

    assert result.checked == 2 * per_agent
    assert result.differences == ()
    assert result.no_witness == ()
    assert result.to_json()["differences"] == []


def test_selfcheck_finds_an_operation_that_the_gate_lets_through_unlisted(world: World) -> None:
    plan = plan_of(world, "archivist", "file")
    smuggled: dict[str, OperationPlan] = {**plan.operations, "delete": plan.operations["read"]}
    object.__setattr__(plan, "operations", smuggled)
    found = selfcheck(world.gate).differences

    assert [(row.tool, row.operation, row.what) for row in found] == [
        ("file", "delete", "not listed, not valid, passed")
    ]


def test_selfcheck_finds_a_listed_operation_that_the_gate_denies(world: World) -> None:
    plan = plan_of(world, "archivist", "file")
    object.__setattr__(plan, "operations", {k: v for k, v in plan.operations.items() if k != "read"})
    found = selfcheck(world.gate).differences

    assert ("file", "read", "listed, valid, not passed") in [(row.tool, row.operation, row.what) for row in found]


def test_agents_that_see_the_same_share_one_compiled_schema(make_world: MakeWorld) -> None:
    other = POLICY.replace("[agents.archivist]", "[agents.twin]").replace("agents.archivist.", "agents.twin.")
    world = make_world(POLICY + other[other.index("[agents.twin]") : other.index("[[sources]]")])
    first, second = (plan_of(world, agent, "file").shape for agent in ("archivist", "twin"))

    assert first is second


def test_edit_recompiles_only_the_agents_that_it_touches(make_world: MakeWorld) -> None:
    world = make_world(TWO)
    archivist, reader = snapshot_of(world, "archivist"), snapshot_of(world, "reader")
    world.reload(TWO.replace('"append", ', ""))

    assert snapshot_of(world, "archivist") is not archivist
    assert snapshot_of(world, "reader") is reader
    world.reload(TWO.replace('permission = "none"', 'permission = "read_only"'))
    assert snapshot_of(world, "reader") is not reader


def test_change_set_that_forgets_an_agent_leaves_nothing_stale(make_world: MakeWorld) -> None:
    world = make_world(TWO)
    snapshot_of(world, "archivist")
    policy = world.gate.policy
    agent: Agent = policy.agents["archivist"]
    world.gate.reload(policy.with_agent(Agent(agent.agent_id, tools=())), ChangeSet(frozenset(), frozenset()))

    assert world.decide("echo", {"text": "x"}).code == "tool-not-listed"


def test_tool_that_comes_and_goes_is_seen_at_the_next_call(make_world: MakeWorld) -> None:
    world = make_world(POLICY)
    world.gate.reload(world.gate.policy.with_agent(Agent("free", tools=("wait",))))
    before = world.decide("wait", {"op": "politely"}, agent="free")
    withdraw = world.registry.register(GateTool())
    during = world.decide("wait", {"op": "politely"}, agent="free")
    withdraw()
    after = world.decide("wait", {"op": "politely"}, agent="free")

    assert (before.code, during.verdict, after.code) == ("unknown-tool", Verdict.ALLOW, "unknown-tool")


def test_last_source_to_stop_takes_the_file_tool_along(world: World) -> None:
    world.sources.follow([])()

    assert world.decide("file", {"op": "read", "path": "x"}).code == "unknown-tool"
    assert "file" not in {row["name"] for row in world.gate.view("archivist").tools("mcp")}


def test_callers_during_reloads_see_the_old_policy_or_the_new_one_and_no_mixture(world: World) -> None:
    narrow = POLICY.replace('"append", ', "").replace(', "vault"', "")
    whole = [plans_of(world)]
    world.reload(narrow)
    whole.append(plans_of(world))
    stop = threading.Event()
    seen: list[set[tuple[str, ...]]] = [set() for _ in range(4)]

    def look(number: int) -> None:
        while not stop.is_set():
            seen[number].add(plans_of(world))

    with ThreadPoolExecutor(4) as pool:
        looking = [pool.submit(look, number) for number in range(4)]
        for turn in range(200):
            world.reload(POLICY if turn % 2 else narrow)
        stop.set()
        for one in looking:
            one.result()

    assert set().union(*seen) <= set(whole)
    assert whole[0] != whole[1]


def plans_of(world: World) -> tuple[str, ...]:
    return tuple(
        f"{plan.tool.name}.{operation}"
        for plan in snapshot_of(world, "archivist").plans()
        if plan.closed is None
        for operation in sorted(plan.operations)
    )


def test_policy_swapped_while_tools_change_stays_in_force(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(GateTool):
        """Comes while a policy is put in force."""

        name = "late"

    stricter = replace(world.gate.policy, agents={"other": Agent("other")})
    inside, swapped = threading.Event(), threading.Event()
    renewed = Snapshot.renew

    def slow(
        self: Snapshot, policy: Policy, changed: ChangeSet | None, *, known: frozenset[tuple[str, int]] | None = None
    ) -> Snapshot:
        if threading.current_thread() is reader:
            inside.set()
            swapped.wait(0.2)  # as long as the swap may not come between, it cannot
        return renewed(self, policy, changed, known=known)

    def swap() -> None:
        inside.wait()
        world.gate.reload(stricter)
        swapped.set()

    monkeypatch.setattr(Snapshot, "renew", slow)
    world.registry.register(Late())
    reader, writer = threading.Thread(target=world.gate.snapshot), threading.Thread(target=swap)
    for thread in (writer, reader):
        thread.start()
    for thread in (writer, reader):
        thread.join()

    assert world.gate.snapshot().policy is stricter


def test_view_of_an_agent_that_went_is_not_kept(world: World) -> None:
    world.gate.view("archivist")
    world.gate.reload(replace(world.gate.policy, agents={}))

    assert world.gate._views == {}  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("form", ["mcp", "openai", "openai-responses", "anthropic", "gemini", "genai"])
def test_call_in_a_providers_spelling_comes_back_in_the_tools_own(world: World, form: str) -> None:
    view = world.gate.view("archivist")
    shown = json.dumps(next(row for row in view.tools(form) if '"file"' in json.dumps(row)))
    nulls = {"source": None} if '"null"' in shown else {}
    name, arguments = view.restore(form, "file", json.dumps({"op": "read", "path": "note.md", **nulls}))

    given = json.loads(arguments) if isinstance(arguments, str) else arguments
    assert (name, given) == ("file", {"op": "read", "path": "note.md"})
    assert world.gate.decide("archivist", name, arguments).verdict is Verdict.ALLOW


@pytest.mark.parametrize("sent", ["{", "[]", "null", '{"op": "read", "op": "load"}', '{"op": "\\ud800"}', ""])
def test_what_cannot_be_read_is_restored_as_it_is_and_refused_by_the_gate(world: World, sent: str) -> None:
    name, arguments = world.gate.view("archivist").restore("openai", "file", sent)

    assert world.gate.decide("archivist", name, arguments).verdict is Verdict.DENY


def test_tokens_tell_what_the_limits_save(world: World) -> None:
    count = world.gate.view("archivist").tokens("openai")

    assert set(count.per_tool) == {row["function"]["name"] for row in world.gate.view("archivist").tools("openai")}
    assert 0 < count.total < (count.unrestricted or 0)


def named(*names: str) -> Gate:
    registry = ToolRegistry()
    for name in names:
        registry.register(DefinedTool(ToolDefinition(name, "Does it.", {"type": "object"}), origin="stranger"))
    return Gate(Policy(agents={"a": Agent("a")}), registry)


def test_tool_that_nothing_limits_is_one_listing_with_and_without_the_limits() -> None:
    view = named("a", "b").view("a")

    assert [id(row) for row in view.full_listings()] == [id(row) for row in view.listings()]


def sent_names(view: AgentView, form: str) -> list[str]:
    return [row.get("function", row)["name"] for row in view.tools(form)]


@pytest.mark.parametrize("form", FORMATS)
def test_names_that_a_provider_does_not_take_are_fitted_apart_and_read_back(form: str) -> None:
    (made,) = sent_names(named("a/b").view("a"), form)
    own = ["a/b", "a.b", "a_b", "a/b/", "x" * 128, "x" * 127 + "y", "y/" * 40, made]
    view = named(*own).view("a")
    sent = sent_names(view, form)

    assert len(set(sent)) == len(own)
    assert {view.restore(form, name, {})[0] for name in sent} == set(own)
    assert [view.restore(form, name, {})[0] for name in sent] == [row.name for row in view.listings()]


def test_lints_tell_what_a_provider_cannot_keep() -> None:
    view = named("a/b", "plain").view("a")

    assert [lint.code for lint in view.lints("mcp")["a/b"]] == ["name"]
    assert "plain" not in view.lints("mcp")
    assert view.lints("mcp") is view.lints("mcp")
    with pytest.raises(NotSupported):
        view.lints("morse")


def test_tokens_after_an_edit_are_counted_for_the_tools_that_changed_only(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.gate.view("archivist").tokens("openai")
    counted: list[str] = []
    text_of = formats._text  # pyright: ignore[reportPrivateUsage]

    def text(form: Format, listing: ToolListing, name: str) -> str:
        counted.append(listing.name)
        return text_of(form, listing, name)

    monkeypatch.setattr(formats, "_text", text)
    world.reload(POLICY.replace('"append", ', ""))
    second = world.gate.view("archivist").tokens("openai")

    assert counted == ["file"]
    assert second.unrestricted == first.unrestricted
    assert {name for name in first.per_tool if first.per_tool[name] != second.per_tool[name]} == {"file"}
