"""The Oxydra chapter, row by row: tiers, the decorator, files, web, shell, notes, truncation, streamed calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import pytest

from gatewright import RegistrationError, Status, ToolCall, ToolCallAccumulator, ToolExecutionContext, tool
from gatewright.builtins import builtin_tools, note_tools, root_tools
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import ResultType
from tests.designs.world import FILES, NET, World, agent, opened, served, source

FILE_TOOLS = ("file_read", "file_search", "file_list", "file_write", "file_edit", "file_delete", "vault_copyto")
NOTE_TOOLS = ("memory_search", "memory_save", "memory_update", "memory_delete")
WEB_TOOLS = ("web_fetch", "web_search")
TIMES = {
    **dict.fromkeys(FILE_TOOLS, (10, 20)),
    **dict.fromkeys(NOTE_TOOLS, (10, 15)),
    **dict.fromkeys(WEB_TOOLS, (30, 30)),
    "vault_copyto": (30, 30),
    "shell_exec": (60, 60),
}
"""The shortest and the longest time that each may take."""
READ_ONLY = SafetyTier.READ_ONLY
Kind = TypeVar("Kind")
log: list[str] = []


async def marked(name: str) -> str:
    """Say when it begins and when it ends, and let others run in between."""
    log.append("s")
    for _ in range(8):
        await asyncio.sleep(0)
    log.append("e")
    return name


@tool(safety_tier=READ_ONLY)
async def look(name: str) -> str:
    """Look."""
    return await marked(name)


@tool(safety_tier=SafetyTier.SIDE_EFFECTING)
async def change(name: str) -> str:
    """Change something."""
    return (await marked(name)).upper()


@tool(safety_tier=SafetyTier.PRIVILEGED)
async def launch() -> str:
    """Launch."""
    return "gone"


@tool(safety_tier=READ_ONLY)
async def verbose(size: int, letter: str = "x") -> str:
    """Give a long text.

    Args:
        size: How many letters.
    """
    return letter * size


@tool(safety_tier=READ_ONLY, result_type=ResultType.ANY)
async def every_type(a: str, b: bool, c: int, d: float) -> list[str]:
    """Take one argument of each type."""
    return [type(one).__name__ for one in (a, b, c, d)]


@tool(safety_tier=READ_ONLY, needs_user=True)
async def whoami(context: ToolExecutionContext) -> str:
    """Tell for whom the call is made."""
    before = context.require_user()
    for _ in range(8):
        await asyncio.sleep(0)
    assert context.require_user() == before
    return before


TOOLS = [look, change, launch, verbose, every_type, whoami]
BUILT_IN = [*TIMES]


def policy(web: str, backend: str = "host") -> str:
    asks_nobody = 'approvals = { "shell_exec" = "allow" }'
    return (
        agent(
            "able", [*(one.name for one in TOOLS), *BUILT_IN], f'capabilities = ["Exec", {NET}, {FILES}]', asks_nobody
        )
        + source("docs", "docs")
        + "\n[workspace]\nroots = { shared = 'shared', tmp = 'tmp', vault = 'vault' }\n"
        + f'web = {{ allow_private = true, search = [{{ engine = "searxng", url = "{web}" }}] }}\n'
        + f'shell = {{ backend = "{backend}", allow = ["echo", "cd", "pwd"], deny = ["rm"], confine = "none" }}\n'
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with served([]) as web, opened(tmp_path_factory.mktemp("oxydra"), policy(web), tools=TOOLS, web=web) as made:
        (made.folder / "vault/key").write_bytes(b"\0key")
        yield made


@pytest.fixture(autouse=True)
def text(world: World) -> None:
    world.asked.clear()
    (world.folder / "shared/a.txt").write_text("first line\nsecond line\n")


def many(world: World, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    made = [ToolCall(name, json.dumps(arguments), f"c{number}") for number, (name, arguments) in enumerate(calls)]
    return [one.output for one in asyncio.run(world.workspace.gate.call_many("able", made))]


def test_schema_execute_and_tier(world: World) -> None:
    assert world.shown()["look"]["inputSchema"]["required"] == ["name"]
    assert world.result("look", name="x") == "x"
    tiers = {one.name: str(one.operations[0].tier) for one in world.workspace.catalog if one.name in {"look", "change"}}
    assert tiers == {"look": "read_only", "change": "side_effecting"}


def test_time_outs() -> None:
    every = (*builtin_tools(), *root_tools(), *note_tools())
    found = {one.name: one.resource_bounds.timeout_s for one in every if one.name in TIMES}
    assert found.keys() == TIMES.keys()
    assert {name: found[name] for name, (least, most) in TIMES.items() if not least <= found[name] <= most} == {}


def test_reads_run_together_and_others_in_order(world: World) -> None:
    log.clear()
    calls = [("look", {"name": "a"}), ("look", {"name": "b"}), ("change", {"name": "c"}), ("change", {"name": "d"})]
    assert many(world, *calls) == ["a", "b", "C", "D"]
    assert "".join(log) == "sseesese"


def test_privileged_calls_ask(world: World) -> None:
    assert world.result("launch") == "gone"
    assert [one.tool for one in world.asked] == ["launch"]


def test_decorator_takes_name_words_and_types(world: World) -> None:
    shown = world.shown()["every_type"]
    types = [one["type"] for one in shown["inputSchema"]["properties"].values()]
    assert (shown["description"], types) == (
        "Take one argument of each type.",
        ["string", "boolean", "integer", "number"],
    )
    assert world.result("every_type", a="x", b=True, c=1, d=0.5) == ["str", "bool", "int", "float"]


def not_async(path: str) -> str:
    return path


async def with_self(self: Any, path: str) -> str:
    return path


async def with_many(*paths: str) -> str:
    return ""


async def without_annotation(path) -> str:  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
    return ""


async def without_schema(path: Iterator[object]) -> str:
    return ""


async def generic(path: Kind) -> Kind:
    return path


WRONG: list[Any] = [not_async, with_self, with_many, without_annotation, without_schema, generic]


@pytest.mark.parametrize("function", WRONG, ids=lambda one: one.__name__)
def test_constraint_errors_name_the_parameter(function: Any) -> None:
    with pytest.raises(RegistrationError) as caught:
        tool(safety_tier=READ_ONLY)(function)
    assert function.__name__ in str(caught.value)
    if function is not not_async:
        assert any(f"`{name}`" in str(caught.value) for name in ("self", "paths", "*paths", "path"))


def test_file_read(world: World) -> None:
    assert world.data("file_read", path="shared/a.txt")["content"] == "first line\nsecond line\n"


def test_file_search(world: World) -> None:
    assert "a.txt:2:second line" in str(world.data("file_search", query="second"))


def test_file_list(world: World) -> None:
    assert "a.txt" in str(world.data("file_list"))


def test_file_write(world: World) -> None:
    world.data("file_write", path="tmp/new/b.txt", content="b")
    assert (world.folder / "tmp/new/b.txt").read_text() == "b"


def test_file_edit(world: World) -> None:
    world.data("file_edit", path="shared/a.txt", old_text="first", new_text="1st")
    assert (world.folder / "shared/a.txt").read_text().startswith("1st")
    assert world.refused("file_edit", path="shared/a.txt", old_text="line", new_text="x") == "many-matches"


def test_file_delete(world: World) -> None:
    world.data("file_delete", path="shared/a.txt")
    assert not (world.folder / "shared/a.txt").exists()


def test_vault_copyto(world: World) -> None:
    world.data("vault_copyto", source_path="vault/key", destination_path="tmp/key")
    assert (world.folder / "tmp/key").read_bytes() == b"\0key"
    assert world.refused("file_read", path="vault/key") != ""


def test_web_fetch(world: World) -> None:
    assert world.data("web_fetch", url=f"{world.web}/page")["content"].startswith("# Tea")


def test_web_search(world: World) -> None:
    assert world.data("web_search", query="tea")["results"][0]["url"] == "https://example.org/"


def test_shell_exec_on_the_host(world: World) -> None:
    assert world.data("shell_exec", command="echo done")["output"] == "done\n"
    assert world.refused("shell_exec", command="echo a; rm b") != ""
    assert world.refused("shell_exec", command="echo $(pwd)") != ""


def test_shell_session_keeps_its_folder(tmp_path: Any) -> None:
    with opened(tmp_path, policy("http://127.0.0.1:9", "session"), tools=TOOLS) as world:
        (world.folder / "shared/sub").mkdir()

        async def both() -> str:
            session = world.workspace.session("able", "s")
            await world.call_async("shell_exec", session=session, command="cd sub")
            outcome = await world.call_async("shell_exec", session=session, command="pwd")
            await world.workspace.end_shells("s")
            return json.loads(outcome.data or b"")["data"]["output"]

        assert asyncio.run(both()).rstrip().endswith("/shared/sub")


def test_shell_that_is_disabled(tmp_path: Any) -> None:
    with opened(tmp_path, policy("http://127.0.0.1:9", "disabled"), tools=TOOLS) as world:
        assert world.refused("shell_exec", command="echo done") != ""


# notes of users


def save(world: World, user: str, *texts: str) -> list[str]:
    return [world.data("memory_save", user=user, content=text)["note_id"] for text in texts]


def found(world: World, user: str, query: str, **more: Any) -> list[str]:
    return [one["text"] for one in world.data("memory_search", user=user, query=query, **more)]


def test_memory_search_gives_five_and_twenty_at_most(world: World) -> None:
    save(world, "searcher", *(f"tea number {number}" for number in range(7)))
    assert (len(found(world, "searcher", "tea")), len(found(world, "searcher", "tea", top_k=20))) == (5, 7)
    assert [world.refused("memory_search", user="searcher", query="tea", top_k=one) for one in (0, 21)] == [
        "schema-mismatch"
    ] * 2
    assert world.shown()["memory_search"]["inputSchema"]["properties"]["include_conversation"]["default"] is False


def test_memory_save_gives_a_note_id(world: World) -> None:
    (note_id,) = save(world, "saver", "one")
    assert note_id.startswith("note-")
    assert len(note_id) == len("note-") + 36


def test_memory_update_keeps_the_id(world: World) -> None:
    (note_id,) = save(world, "updater", "tea")
    assert world.data("memory_update", user="updater", note_id=note_id, content="coffee") == {"note_id": note_id}
    assert found(world, "updater", "coffee") == ["coffee"]


def test_memory_delete(world: World) -> None:
    (note_id,) = save(world, "deleter", "tea")
    world.result("memory_delete", user="deleter", note_id=note_id)
    assert found(world, "deleter", "tea") == []


def test_notes_belong_to_a_user_and_nobody_gets_words(world: World) -> None:
    save(world, "ann", "the key is under the mat")
    assert found(world, "bob", "key") == []
    outcome = world.call("memory_search", query="key")
    assert outcome.status is Status.DENIED
    assert "user" in outcome.output


def test_hybrid_retrieval_with_weights_that_the_policy_sets(world: World) -> None:
    save(world, "hybrid", "Invoices are due on Friday", "The dog sleeps in the kitchen", "She plays the violin")
    assert found(world, "hybrid", "payment deadline")[0].startswith("Invoices")
    score = world.data("memory_search", user="hybrid", query="puppy")[0]["score"]
    text = world.workspace.text()
    after = text.replace("[workspace]\n", "[workspace]\nmemory = { vector = 0.4, text = 0.6 }\n")
    world.workspace.apply(world.workspace.edit_between("weights", text, after))
    try:
        assert (score, world.data("memory_search", user="hybrid", query="puppy")[0]["score"]) == (0.7, 0.4)
    finally:
        world.workspace.apply(world.workspace.edit_between("back", after, text))


def test_context_is_a_snapshot_of_each_call(world: World) -> None:
    async def all_of_them() -> Sequence[str]:
        calls = [world.call_async("whoami", user=f"user-{number}") for number in range(20)]
        return [one.output for one in await asyncio.gather(*calls)]

    assert asyncio.run(all_of_them()) == [f"user-{number}" for number in range(20)]


def test_truncation(world: World) -> None:
    assert world.call("verbose", size=16_384).truncated is False
    cut = world.call("verbose", size=142_857)
    assert cut.output.endswith("\n[output truncated — original size: 142,857 bytes]")
    assert world.call("verbose", size=16_385).truncated is True
    assert "\ufffd" not in world.call("verbose", size=9_000, letter="ä").output


def test_self_correction(world: World) -> None:
    outcome = world.call("look", nome="x")
    assert outcome.output.startswith("Tool execution failed: ")
    assert "`name`" in outcome.output
    assert world.result("look", name="x") == "x"


def test_accumulator_of_streamed_calls(world: World) -> None:
    accumulator = ToolCallAccumulator()
    for piece in ({"id": "c1", "name": "look"}, {"arguments": '{"na'}, {"arguments": 'me": "x"}'}):
        accumulator.add(0, **piece)
    (made,) = accumulator.calls()
    assert isinstance(made, ToolCall)
    (outcome,) = asyncio.run(world.workspace.gate.call_many("able", [made]))
    assert outcome.output == "x"
