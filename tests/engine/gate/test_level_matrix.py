"""Every writing operation of every tool against every level gets what the contract's table says, and nothing else.

Blocks of memory and of files alike, also through the tool that is not made for them. The table is written out here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks import Field, FieldType, MapSchema, TextSchema
from gatewright.blocks.schema import Append, Undo
from gatewright.builtins import builtin_tools, file_tool, root_tools
from gatewright.memory import BlockType
from gatewright.policy.verdict import Action, Permission
from gatewright.tools.tool import Tool
from tests.engine.gate.blockbench import BlockBench, opened

ROWS = """
level      read  append overwrite delete
none       deny  deny   deny      deny
read_only  allow deny   deny      deny
partner    allow ask    ask       ask
human      allow ask    ask       ask
append     allow allow  deny      deny
read_write allow allow  allow     ask
admin      allow allow  allow     allow
"""
_HEAD, *_LINES = (line.split() for line in ROWS.strip().splitlines())
TABLE = {(line[0], action): said for line in _LINES for action, said in zip(_HEAD[1:], line[1:], strict=True)}
PATCH = "@@ -1 +1 @@\n-one\n+ONE\n"
FILE_TEXT = "one\ntwo\n"
EDITED = FILE_TEXT + "mine\n"

POLICY = """gatewright = 1

[workspace]
roots = { shared = "shared", vault = "vault" }

[agents.ann]
tools = [
  "file", "block", "block_edit", "file_write", "file_edit", "file_delete", "vault_copyto",
  "file_read", "file_list", "file_search", "read_file", "context", "recall@1",
]
capabilities = ["AdvancedEdit", { FsRead = { prefixes = ["."] } }, { FsWrite = { prefixes = ["."] } }]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "LEVEL"

[[sources]]
id = "shared"
type = "file"
base_path = "shared"
default_permission = "LEVEL"
"""


@dataclass(frozen=True)
class Case:
    """A call and the action that it is; ``on``: what it names; ``fails``: refused by the tool whatever the level."""

    tool: str
    op: str
    action: str
    on: str
    arguments: dict[str, Any]
    fails: bool = False

    @property
    def name(self) -> str:
        return "-".join((self.tool, self.op, self.on, str(self.arguments.get("mode", "")))).strip("-")


def edits(on: str) -> list[Case]:
    old_new = {"old": "o", "new": "0"}
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("append", "append", {"content": "x\n"}),
        ("replace", "overwrite", old_new),
        ("replace", "overwrite", {**old_new, "mode": "first"}),
        ("replace", "overwrite", {**old_new, "mode": "all"}),
        ("replace", "overwrite", {**old_new, "mode": "nth", "nth": 2}),
        ("replace", "overwrite", {**old_new, "mode": "regex"}),
        ("patch", "overwrite", {"patch": PATCH}),
        ("undo", "overwrite", {}),
        ("redo", "overwrite", {}),
    ]
    return [Case("block_edit", op, action, on, arguments) for op, action, arguments in rows]


CASES = [
    *edits("text block"),
    *edits("file block"),
    Case("block_edit", "set_field", "overwrite", "map block", {"field": "f", "value": "y"}),
    Case("block_edit", "set_field", "overwrite", "file block", {"field": "f", "value": "y"}, fails=True),
    Case("block", "pin", "overwrite", "text block", {}),
    Case("block", "pin", "overwrite", "file block", {}),
    Case("block", "unpin", "overwrite", "text block", {}),
    Case("block", "unpin", "overwrite", "file block", {}),
    Case("block", "archive", "overwrite", "text block", {}),
    Case("block", "archive", "overwrite", "file block", {}, fails=True),
    Case("context", "append", "append", "text block", {"value": "x\n"}),
    Case("context", "replace", "overwrite", "text block", {"old": "o", "new": "0"}),
    Case("context", "archive", "overwrite", "text block", {}),
    Case("context", "archive", "overwrite", "file block", {}, fails=True),
    Case("context", "load_from_archival", "overwrite", "archived block", {}),
    Case("context", "swap", "overwrite", "archived block", {}),
    Case("recall", "append", "append", "archived block", {"value": "x\n"}),
    Case("recall", "delete", "delete", "archived block", {}),
    Case("file", "append", "append", "file", {"content": "x\n"}),
    Case("file", "replace", "overwrite", "file", {"old": "one", "new": "1"}),
    Case("file", "insert", "overwrite", "file", {"line": 1, "content": "x\n"}),
    Case("file", "patch", "overwrite", "file", {"patch": PATCH}),
    Case("file", "save", "append", "file", {}),
    Case("file", "save", "append", "file block", {}),
    Case("file", "save", "overwrite", "changed file", {}),
    Case("file", "create", "append", "new file", {"content": "x\n"}),
    Case("file", "delete", "delete", "file", {}),
    Case("file_write", "", "append", "new root file", {"content": "x\n"}),
    Case("file_write", "", "overwrite", "root file", {"content": "x\n"}),
    Case("file_edit", "", "overwrite", "root file", {"old_text": "one", "new_text": "1"}),
    Case("file_delete", "", "delete", "root file", {}),
    Case("vault_copyto", "", "append", "new root file", {"source_path": "vault/v.txt"}),
    Case("vault_copyto", "", "overwrite", "root file", {"source_path": "vault/v.txt"}),
]
MISUSED = Case("file", "save", "overwrite", "text block", {}, fails=True)
TOOLS: dict[str, Tool] = {tool.name: tool for tool in (*builtin_tools(), *root_tools(), file_tool())}


def is_there(case: Case) -> bool:
    """Whether the operation exists."""
    return not case.op or case.op in {spec.name for spec in TOOLS[case.tool].operations}


class Bench:
    """One workspace under one level, in which every case has something of its own to work on."""

    def __init__(self, folder: Path, level: str) -> None:
        (folder / "ws" / "shared").mkdir(parents=True)
        (folder / "ws" / "vault").mkdir()
        (folder / "ws" / "vault" / "v.txt").write_text("from the vault\n")
        self.bench: BlockBench = opened(folder, POLICY.replace("LEVEL", "read_write"))
        self.bench.fields = {"context": "operation", "recall": "operation"}
        self.labels: dict[str, str] = {}

    async def prepare(self, level: str) -> None:
        for case in (*CASES, MISUSED):
            await self._prepare(case, Permission(level))
        self.bench.reload(POLICY.replace("LEVEL", level))

    async def _prepare(self, case: Case, level: Permission) -> None:
        bench, name = self.bench, self._file(case)
        own = bench.own()
        match case.on:
            case "text block" | "map block":
                schema = TextSchema() if case.on == "text block" else MapSchema((Field("f", FieldType.TEXT),))
                content: JsonValue = FILE_TEXT if case.on == "text block" else {"f": "x"}
                own.create(case.name, schema, author="operator", content=content, pinned=case.op == "unpin")
                if case.on == "text block":
                    self._history(case.name, undone=case.op == "redo")
                own.settings(case.name, author="operator", permission=level)
            case "archived block":
                own.create(case.name, author="operator", content=FILE_TEXT, type=BlockType.ARCHIVAL)
                own.settings(case.name, author="operator", permission=level)
                if case.op == "swap":
                    own.create(f"for {case.name}", author="operator")
                    own.settings(f"for {case.name}", author="operator", permission=level)
            case "file" | "file block" | "changed file":
                (bench.docs / name).write_text(FILE_TEXT)
                label = self.labels[case.name] = await bench.label(name)
                if case.on == "changed file":
                    await bench.done("block_edit", "replace", label=label, old="one", new="ONE")
                else:
                    self._history(label, undone=case.op == "redo")
                if case.op == "unpin":
                    own.note(label, "pin", author="operator", granted=Action.DELETE)
            case "root file":
                (bench.folder / "shared" / name).write_text(FILE_TEXT)
            case _:
                pass

    def _history(self, label: str, *, undone: bool) -> None:
        """Something of the agent's own that can be undone, or done again."""
        own = self.bench.own()
        own.edit(label, Append("mine\n"), author="agent:ann", granted=Action.DELETE)
        if undone:
            own.edit(label, Undo(), author="agent:ann", granted=Action.DELETE)

    def arguments(self, case: Case) -> dict[str, Any]:
        match case.on:
            case "text block" | "map block":
                return {"label": case.name, **case.arguments}
            case "archived block" if case.op == "swap":
                return {"load": case.name, "archive": f"for {case.name}"}
            case "archived block":
                return {"label": case.name, **case.arguments}
            case "file block":
                return {"label": self.labels[case.name], **case.arguments}
            case "file" | "changed file" | "new file":
                return {"path": self._file(case), "source": "docs", **case.arguments}
            case _:
                path = f"shared/{self._file(case)}"
                return {"destination_path" if case.tool == "vault_copyto" else "path": path, **case.arguments}

    def state(self, case: Case) -> object:
        """Everything that the case could change."""
        own = self.bench.own()
        folder = self.bench.folder / ("shared" if "root" in case.on else "docs")
        path = folder / self._file(case)
        on_disk = path.read_bytes() if path.exists() else None
        label = self.labels.get(case.name) or (case.name if own.find(case.name) else None)
        if label is None or own.find(label) is None:
            return on_disk, None
        record = own.get(label)
        return on_disk, own.value(label), record.pinned, record.type

    def _file(self, case: Case) -> str:
        return case.name.replace(" ", "_") + ".md"


@pytest.fixture(scope="module", params=[line[0] for line in _LINES])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Bench]]:
    level = str(request.param)
    bench = Bench(tmp_path_factory.mktemp(level), level)
    asyncio.run(bench.prepare(level))
    yield level, bench
    bench.bench.workspace.close()


@pytest.mark.parametrize("case", [case for case in CASES if is_there(case)], ids=lambda case: case.name)
async def test_writing_operation_gets_what_the_table_says(world: tuple[str, Bench], case: Case) -> None:
    level, made = world
    bench, said = made.bench, TABLE[level, case.action]
    before = made.state(case)
    bench.asked.clear()
    bench.approves = False
    asks = said == "ask" and not case.fails
    refused = await bench.call(case.tool, case.op, **made.arguments(case)) if asks else None
    if refused is not None:
        assert (refused.status, len(bench.asked)) == ("denied", 1)
        assert made.state(case) == before
    bench.asked.clear()
    bench.approves = True
    outcome = await bench.call(case.tool, case.op, **made.arguments(case))

    assert len(bench.asked) == asks
    if said == "deny":
        assert outcome.status == "denied", outcome.output
        assert outcome.decision.stage in {"permission", "lookup", "operation"}
    elif case.fails:
        assert outcome.status == ("denied" if said == "ask" else "failed")
    else:
        assert outcome.status == "allowed", (outcome.output, outcome.decision.reason)
    assert (made.state(case) != before) == (outcome.status == "allowed")
    if asks and case.on != "new root file":
        assert bench.asked[0].diff is not None


async def test_tool_for_files_reaches_no_block_of_memory(world: tuple[str, Bench]) -> None:
    level, made = world
    before = made.state(MISUSED)
    outcome = await made.bench.call("file", "save", label=MISUSED.name)

    assert outcome.status == "denied"
    assert made.state(MISUSED) == before
    if level == "none":
        assert outcome.output == (await made.bench.call("file", "save", label="never made")).output


def test_matrix_holds_every_operation_that_writes() -> None:
    tried = {(case.tool, case.op) for case in CASES} | {("recall", "insert")}  # an archive is always of level append
    missing = [
        f"{tool.name}.{spec.name}"
        for tool in (*builtin_tools(), file_tool())
        for spec in tool.operations
        if set(spec.actions) - {Action.READ} and (tool.name, spec.name) not in tried
    ]
    tried.add(("shell_exec", ""))  # what its command writes is found out by its own rules, and tested with them
    tried.add(("send_message", ""))  # it writes to recipients, not to places that have a level
    missing += [tool.name for tool in root_tools() if _writes(tool) and (tool.name, "") not in tried]

    assert not missing


def _writes(tool: Tool) -> bool:
    return any(str(effect).endswith("Write") for effect in tool.side_effects)
