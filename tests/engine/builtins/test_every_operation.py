"""Every operation of every built-in tool through a whole workspace: carried out where allowed, refused where not."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gatewright.blocks import Field, FieldType, MapSchema
from gatewright.gate import Outcome, Status
from gatewright.memory import BlockType
from gatewright.policy.verdict import Verdict
from gatewright.workspace import Workspace
from tests.engine.builtins.messagebench import PASSWORD, TOKEN, running
from tests.engine.builtins.webbench import answer, started
from tests.support.bench import OpenBench

Arguments = dict[str, Any]
Call = tuple[str, Arguments]
FOUND = {"results": [{"title": "A page", "url": "https://example.org/", "content": "about tea"}]}


@dataclass(frozen=True)
class Row:
    """One operation: what calls it, what was called before, and what its result has to hold.

    ``operation`` "": the tool has none. ``{id}`` in an argument: the id of the note that was kept before.
    """

    tool: str
    operation: str
    arguments: Arguments
    holds: str = ""
    before: Sequence[Call] = field(default_factory=tuple)
    asks: bool = False

    @property
    def name(self) -> str:
        return self.tool.partition("@")[0]

    @property
    def label(self) -> str:
        return f"{self.tool}.{self.operation}" if self.operation else self.tool


def block(operation: str, arguments: Arguments | None = None, holds: str = "", **more: Any) -> Row:
    return Row("block", operation, {"op": operation, "label": "notes", **(arguments or {})}, holds, **more)


def edit(operation: str, arguments: Arguments, holds: str = "", **more: Any) -> Row:
    return Row("block_edit", operation, {"op": operation, "label": "notes", **arguments}, holds, **more)


def file(operation: str, arguments: Arguments | None = None, holds: str = "", **more: Any) -> Row:
    return Row("file", operation, {"op": operation, "path": "a.md", **(arguments or {})}, holds, **more)


def old(tool: str, operation: str, arguments: Arguments, holds: str = "", **more: Any) -> Row:
    return Row(tool, operation, {"operation": operation, **arguments}, holds, **more)


def message(kind: str, holds: str, **target: str) -> Row:
    return Row("send_message", kind, {"target": {"type": kind, **target}, "content": "Hello"}, holds)


LOADED: Call = ("file", {"op": "load", "path": "a.md"})
EDITED: Call = ("file", {"op": "append", "path": "a.md", "content": "three\n"})
CHANGED: Call = ("block_edit", {"op": "append", "label": "notes", "content": " more"})
KEPT: Call = ("recall", {"operation": "insert", "label": "kept", "value": "green tea"})
NOTE: Call = ("memory_save", {"content": "tea with lemon"})
ROWS = (
    block("load", {}, "one"),
    block("pin", {}, '"pinned":true'),
    block("unpin", {}, '"pinned":false', before=[("block", {"op": "pin", "label": "notes"})]),
    block("archive", {}, '"type":"archival"'),
    block("info", {}, '"label":"notes"'),
    edit("append", {"content": " more"}, '"chars":8'),
    edit("replace", {"old": "one", "new": "two"}, '"changed":true'),
    edit("patch", {"patch": "@@ -1 +1 @@\n-one\n+two\n"}, '"changed":true'),
    Row("block_edit", "set_field", {"op": "set_field", "label": "person", "field": "name", "value": "Ann"}, "person"),
    edit("undo", {}, '"can_redo":true', before=[CHANGED]),
    edit("redo", {}, '"chars":8', before=[CHANGED, ("block_edit", {"op": "undo", "label": "notes"})]),
    Row("recall@2", "insert", {"op": "insert", "content": "green tea"}, '"id":"mem'),
    Row(
        "recall@2",
        "search",
        {"op": "search", "query": "tea"},
        "green tea",
        before=[("recall", {"op": "insert", "content": "green tea"})],
    ),
    Row("source", "pause", {"op": "pause", "source_id": "incoming"}, '"state":"paused"'),
    Row("source", "resume", {"op": "resume", "source_id": "incoming"}, '"state":"stopped"'),
    Row("source", "status", {"op": "status"}, '"incoming"'),
    Row("source", "list", {"op": "list"}, '"docs"'),
    file("read", {}, "two"),
    file("load", {}, "a.md"),
    file("save", {}, "a.md", before=[LOADED, EDITED]),
    file("create", {"path": "new.md", "content": "new"}, "new.md"),
    file("delete", {}, "a.md"),
    file("append", {"content": "three\n"}, "a.md"),
    file("insert", {"line": 1, "content": "zero"}, "a.md"),
    file("replace", {"old": "two", "new": "2"}, "a.md"),
    file("patch", {"patch": "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"}, "a.md"),
    file("list", {"path": "."}, '"a.md"'),
    file("status", {}, "block_modified", before=[LOADED, EDITED]),
    file("diff", {}, "+three", before=[LOADED, EDITED]),
    file("reload", {}, "a.md", before=[LOADED]),
    old("context", "append", {"label": "notes", "value": " more"}, '"chars":8'),
    old("context", "replace", {"label": "notes", "old": "one", "new": "two"}, '"changed":true'),
    old("context", "archive", {"label": "notes"}, '"archival"'),
    old("context", "load_from_archival", {"label": "away"}, '"working"'),
    old("context", "swap", {"archive": "notes", "load": "away"}, '"loaded":"away"'),
    old("recall@1", "insert", {"label": "kept", "value": "green tea"}, '"kept"'),
    old("recall@1", "append", {"label": "kept", "value": "!"}, '"kept"', before=[KEPT]),
    old("recall@1", "read", {"label": "kept"}, "green tea", before=[KEPT]),
    old("recall@1", "delete", {"label": "kept"}, '"kept"', before=[KEPT], asks=True),
    Row(
        "search",
        "",
        {"domain": "all", "query": "tea"},
        "green tea",
        before=[("recall", {"op": "insert", "content": "green tea"})],
    ),
    message("user", "to the user"),
    message("agent", "to agent `reader`", id="reader"),
    message("group", "to group `crew`", name="crew"),
    message("discord", '"message_id":"9000"', channel_id="100"),
    message("bluesky", "at://did:plc:bot/", handle="dana.example.com"),
    Row("file_read", "", {"path": "shared/a.txt"}, "first line"),
    Row("read_file", "", {"path": "shared/a.txt"}, "first line"),
    Row("file_search", "", {"query": "line"}, "a.txt:1:"),
    Row("file_list", "", {}, "a.txt"),
    Row("file_write", "", {"path": "tmp/b.txt", "content": "b"}, "b.txt"),
    Row("file_edit", "", {"path": "shared/a.txt", "old_text": "first", "new_text": "1st"}, "a.txt"),
    Row("file_delete", "", {"path": "shared/a.txt"}, "a.txt"),
    Row("vault_copyto", "", {"source_path": "vault/key", "destination_path": "tmp/key"}, "tmp/key"),
    Row("web_fetch", "", {"url": "{web}/page"}, "# Tea"),
    Row("http_fetch", "", {"url": "{web}/page"}, "<h1>Tea</h1>"),
    Row("web_search", "", {"query": "tea"}, "https://example.org/"),
    Row("shell_exec", "", {"command": "echo done"}, "done", asks=True),
    Row("memory_search", "", {"query": "lemon"}, "tea with lemon", before=[NOTE]),
    Row("memory_save", "", {"content": "tea with lemon"}, '"note_id":"note-'),
    Row("memory_update", "", {"note_id": "{id}", "content": "coffee"}, '"note_id":"note-', before=[NOTE]),
    Row("memory_delete", "", {"note_id": "{id}"}, "note", before=[NOTE]),
)
READ_ONLY = frozenset(
    [
        "block.info",
        "recall@2.search",
        "source.status",
        "source.list",
        "file.read",
        "file.list",
        "file.status",
        "file.diff",
        "search",
        "file_read",
        "read_file",
        "file_search",
        "file_list",
        "memory_search",
    ]
)
EVERY = tuple(dict.fromkeys(row.tool for row in ROWS))
NEW, BEFORE = [name for name in EVERY if name != "recall@1"], ["recall@1", "context"]
NET = '{ NetRead = { allowlist = ["*"] } }, { NetWrite = { allowlist = ["*"] } }'
FILES = '{ FsRead = { prefixes = ["/"] } }, { FsWrite = { prefixes = ["/"] } }'


def policy(web: str, endpoints: str) -> str:
    """Who may do everything, and for every operation somebody who may do all but that one."""
    able = f'user_id = "ann"\ncapabilities = ["Exec", "AdvancedEdit", {NET}, {FILES}]\n'
    named = {"able": NEW, "old": BEFORE}
    agents = [f"[agents.{name}]\ntools = {json.dumps(tools)}\n{able}" for name, tools in named.items()]
    for number, row in enumerate(ROWS):
        others = [one.operation for one in ROWS if one.tool == row.tool and one is not row]
        listed = [row.tool] if row.operation else [name for name in NEW if name != row.tool]
        agents.append(f"[agents.less{number}]\ntools = {json.dumps(listed)}\n{able}")
        if row.operation:
            rule = f"rule_type = {{ AllowedOperations = {json.dumps(others)} }}"
            agents.append(f'[[agents.less{number}.tool_rules]]\ntool_name = "{row.name}"\n{rule}\n')
    return f"""gatewright = 1
{"".join(agents)}
[agents.reader]
tools = []

[workspace]
roots = {{ shared = "shared", tmp = "tmp", vault = "vault" }}
shell = {{ backend = "host", allow = ["echo"], confine = "none" }}
web = {{ allow_private = true, search = [{{ engine = "searxng", url = "{web}" }}] }}

[workspace.endpoints]
user = {{}}
agent = {{}}
group = {{ crew = ["reader"] }}
{endpoints}
[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "admin"

[[sources]]
id = "incoming"
type = "folder_changes"
base_path = "docs"
"""


@dataclass
class Bench(OpenBench):
    """An open workspace with something for every tool to work on."""

    web: str = ""

    async def call(self, agent_id: str, tool: str, arguments: Arguments) -> Outcome:
        return await self.workspace.call(agent_id, tool, arguments, approver=self.answer)


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Bench]:
    monkeypatch.setenv("BOT", TOKEN)
    monkeypatch.setenv("APP", PASSWORD)
    server, site = await started()
    web = f"http://127.0.0.1:{site.port}"
    site.pages["/page"] = answer("<h1>Tea</h1>", content_type="text/html")
    site.pages["/search"] = answer(json.dumps(FOUND), content_type="application/json")
    folder = tmp_path / "ws"
    for name in ("docs", "shared", "tmp", "vault"):
        (folder / name).mkdir(parents=True)
    (folder / "docs/a.md").write_text("one\ntwo\n")
    (folder / "shared/a.txt").write_text("first line\n")
    (folder / "vault/key").write_bytes(b"\0key")
    with running() as services:
        (folder / "policy.toml").write_text(policy(web, services.toml), encoding="utf-8")
        with Workspace.open(folder, keys=tmp_path / "keys", trust=True) as workspace:
            for owner in ("able", "old"):
                blocks = workspace.blocks(owner)
                blocks.create("notes", author="test", content="one")
                blocks.create("away", author="test", content="away", type=BlockType.ARCHIVAL)
                person = MapSchema((Field("name", FieldType.TEXT),))
                blocks.create("person", person, author="test")
            yield Bench(workspace, web=web)
    server.close()
    await server.wait_closed()


def agent_for(row: Row) -> str:
    return "old" if row.tool in BEFORE else "able"


def filled(arguments: Arguments, web: str, note_id: str) -> Arguments:
    return {
        name: value.replace("{web}", web).replace("{id}", note_id) if isinstance(value, str) else value
        for name, value in arguments.items()
    }


def note_of(outcome: Outcome | None) -> str:
    data: dict[str, Any] = json.loads(outcome.data or b"{}") if outcome is not None else {}
    return str(data["data"]["note_id"]) if "note_id" in str(data) else ""


async def test_table_has_every_operation_of_every_built_in_tool_and_each_has_its_tier(bench: Bench) -> None:
    tiers = {
        (facts.name, facts.major, operation.name): str(operation.tier)
        for facts in bench.workspace.catalog
        if facts.origin == "built-in"
        for operation in facts.operations
    }
    assert {(*key_of(row), row.operation) for row in ROWS} == tiers.keys()
    for row in ROWS:
        otherwise = "privileged" if row.tool == "shell_exec" else "side_effecting"
        wanted = "read_only" if row.label in READ_ONLY else otherwise
        assert tiers[*key_of(row), row.operation] == wanted, row.label


@pytest.mark.parametrize("row", ROWS, ids=[row.label for row in ROWS])
async def test_operation_is_carried_out_where_it_is_allowed(bench: Bench, row: Row) -> None:
    agent_id, before = agent_for(row), None
    for tool, arguments in row.before:
        before = await bench.call(agent_id, tool, arguments)
        assert before.status is Status.ALLOWED, (before.output, before.detail)
    outcome = await bench.call(agent_id, row.name, filled(row.arguments, bench.web, note_of(before)))
    assert outcome.status is Status.ALLOWED, (outcome.output, outcome.detail)
    assert row.holds in (outcome.output or "")
    assert [one.tool for one in bench.asked] == ([row.name] if row.asks else [])
    assert json.loads(outcome.data or b"")["success"] is True
    assert next(one.reason for one in outcome.decision.trace if one.stage == "output") == "fits"


async def test_operation_is_shown_to_nobody_and_refused_where_it_is_not_allowed(bench: Bench) -> None:
    for number, row in enumerate(ROWS):
        agent_id = f"less{number}"
        outcome = await bench.call(agent_id, row.name, filled(row.arguments, bench.web, "note-1"))
        assert (outcome.status, outcome.decision.verdict) == (Status.DENIED, Verdict.DENY), row.label
        stage, code = ("operation", "operation-not-allowed") if row.operation else ("lookup", "tool-not-listed")
        assert (outcome.decision.stage, outcome.decision.code) == (stage, code), row.label
        rights = bench.workspace.view(agent_id).rights.values()
        right = next(one for one in rights if (one.facts.name, one.facts.major) == key_of(row))
        assert row.operation not in right.shown, row.label
        assert f"`{row.operation}`" not in (outcome.output or ""), row.label
    assert bench.asked == []


def key_of(row: Row) -> tuple[str, int]:
    return row.name, int(row.tool.partition("@")[2] or 1)
