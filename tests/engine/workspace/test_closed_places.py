"""Places that `[workspace] closed` names: no tool of any kind touches them, whatever sources, grants and globs say."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wasmtime import wat2wasm

from gatewright.base.errors import PolicyInvalid
from gatewright.cli.main import main
from gatewright.gate import Outcome, Status
from gatewright.workspace import Workspace
from tests.support.adapterworkspace import ECHO_MODULE, definition

PLACES = ("docs/secret", "~/keys", "../beside.txt", "docs/later.txt")
LOOK = """\
import json, os, sys

call = json.load(sys.stdin)
print(json.dumps([os.path.exists(one) for one in call["arguments"]["text"].split()]))
"""
POLICY = """\
gatewright = 1

[workspace]
roots = {{ shared = "docs" }}
shell = {{ backend = "host", allow = ["cat", "echo"], confine = "none" }}
closed = {closed}

[agents.a]
tools = ["file", "file_read", "file_write", "block", "shell_exec", "read_note", "look", "echo"]
capabilities = ["Exec", "WasmExec", {{ FsRead = {{ prefixes = ["/"] }} }}, {{ FsWrite = {{ prefixes = ["/"] }} }}]
approvals = {{ privileged = "allow" }}

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "admin"

[[catalogs]]
id = "strange"
type = "host"
manifest = "strange.json"

[[catalogs]]
id = "words"
type = "subprocess"
manifest = "look.json"
command = {python}
args = ["look.py"]
places = {{ "./look.py" = "read", "./docs" = "write" }}

[[catalogs]]
id = "module"
type = "wasm"
manifest = "echo.json"
module = "echo.wasm"
places = {{ "./docs" = "read" }}
"""
NOTE = {
    "name": "read_note",
    "description": "Reads a note.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


class Desk:
    """A workspace in which everything is granted but what is closed."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder / "ws", home
        for name in ("ws/docs/secret/a.txt", "ws/docs/open.txt", "beside.txt"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("seen\n", "utf-8")
        (home / "keys").mkdir(exist_ok=True)
        (home / "keys/id.txt").write_text("seen\n", "utf-8")
        for name, row in {
            "strange": NOTE,
            "look": definition("look", "see"),
            "echo": definition("echo", "say"),
        }.items():
            (self.folder / f"{name}.json").write_text(json.dumps([row]), "utf-8")
        (self.folder / "look.py").write_text(LOOK, "utf-8")
        (self.folder / "echo.wasm").write_bytes(wat2wasm(ECHO_MODULE))
        self.write(PLACES)

    def write(self, closed: tuple[str, ...]) -> None:
        text = POLICY.format(closed=json.dumps(closed), python=json.dumps(sys.executable))
        (self.folder / "policy.toml").write_text(text, "utf-8")

    def open(self) -> Workspace:
        workspace = Workspace.open(self.folder, keys=self.folder.parent / "own-keys", trust=True)
        for catalog in ("words", "module"):
            workspace.accept_tools(catalog, None, needs_capabilities=False)
        return workspace


@pytest.fixture
def desk(tmp_path: Path, user_home: Path) -> Desk:
    return Desk(tmp_path, user_home)


@pytest.fixture
def workspace(desk: Desk) -> Iterator[Workspace]:
    with desk.open() as made:
        yield made


def call(workspace: Workspace, tool: str, **arguments: Any) -> Outcome:
    return asyncio.run(workspace.call("a", tool, arguments))


def calls(folder: Path, home: Path) -> list[tuple[str, dict[str, Any]]]:
    """Ways to a closed place, one for each kind of tool and place."""
    outside = [str(home / "keys/id.txt"), str(folder.parent / "beside.txt")]
    return [
        ("file", {"op": "read", "path": "secret/a.txt"}),
        ("file", {"op": "load", "path": "secret/a.txt"}),
        ("file", {"op": "create", "path": "later.txt", "content": "x"}),
        ("file", {"op": "delete", "path": "secret/a.txt"}),
        ("block", {"op": "load", "label": "secret/a.txt", "source_id": "docs"}),
        ("file_read", {"path": "shared/secret/a.txt"}),
        ("file_write", {"path": "shared/later.txt", "content": "x"}),
        ("shell_exec", {"command": "cat secret/a.txt"}),
        ("shell_exec", {"command": "echo x > later.txt"}),
        *(("shell_exec", {"command": f"cat {one}"}) for one in outside),
        ("read_note", {"path": str(folder / "docs/secret/a.txt")}),
        *(("read_note", {"path": one}) for one in outside),
    ]


def test_no_tool_touches_a_closed_place_and_the_others_stay_open(desk: Desk, workspace: Workspace) -> None:
    for tool, arguments in calls(desk.folder, desk.home):
        outcome = call(workspace, tool, **arguments)
        assert outcome.status is not Status.ALLOWED, (tool, arguments)
        assert "seen" not in outcome.output
        assert tool != "read_note" or outcome.status is Status.DENIED
    assert not (desk.folder / "docs/later.txt").exists()
    assert (desk.folder / "docs/secret/a.txt").exists()
    for tool, arguments in (
        ("file", {"op": "read", "path": "open.txt"}),
        ("file_read", {"path": "shared/open.txt"}),
        ("shell_exec", {"command": "cat open.txt"}),
    ):
        assert "seen" in call(workspace, tool, **arguments).output
    assert "secret" not in call(workspace, "file", op="list", path=".", recursive=True).output
    assert workspace.selfcheck().differences == ()


def test_without_the_key_the_same_calls_are_allowed(desk: Desk) -> None:
    desk.write(())
    with desk.open() as workspace:
        found = [call(workspace, tool, **arguments) for tool, arguments in calls(desk.folder, desk.home)]
    assert sum(one.status is not Status.DENIED for one in found) >= len(found) - 1, [one.code for one in found]


def test_process_does_not_see_it_and_a_module_does_not_get_its_folder(desk: Desk, workspace: Workspace) -> None:
    docs = desk.folder / "docs"
    names = f"{docs}/open.txt {docs}/secret/a.txt {desk.home}/keys/id.txt"
    outcome = call(workspace, "look", op="see", text=names)
    assert outcome.output == "[true,false,false]", outcome.detail
    outcome = call(workspace, "echo", op="say", text="x")
    assert outcome.code == "not-run"


def test_disposable_copy_closes_the_same_places(desk: Desk, workspace: Workspace) -> None:
    sandbox = workspace.sandbox()
    try:
        outcome = call(sandbox.workspace, "file", op="read", path="secret/a.txt")
        assert (outcome.status, "seen" in outcome.output) == (Status.DENIED, False)
        assert "seen" in call(sandbox.workspace, "file", op="read", path="open.txt").output
    finally:
        sandbox.close()


def test_edit_closes_at_once_and_changes_its_own_line(desk: Desk, workspace: Workspace) -> None:
    text = workspace.text()
    after = text.replace('closed = ["docs/secret"', 'closed = ["docs/open.txt", "docs/secret"')
    workspace.apply(workspace.edit_between("close", text, after))
    assert call(workspace, "file", op="read", path="open.txt").status is Status.DENIED
    assert workspace.text() == after
    assert "[workspace] closed" in str(workspace.unsaved_rights())
    workspace.apply(workspace.edit_between("open", after, text))
    assert workspace.text() == text
    assert "seen" in call(workspace, "file", op="read", path="open.txt").output
    assert "seen" not in call(workspace, "file", op="read", path="secret/a.txt").output


@pytest.mark.parametrize(
    ("closed", "words"),
    [
        ('["~other/keys"]', "only `~/...` is read"),
        ('["a", "a"]', "stands here twice"),
        ('[" "]', "may not be blank"),
        ("[3]", "must be"),
        ('"a"', "must be"),
    ],
)
def test_what_is_no_place_is_told(tmp_path: Path, closed: str, words: str) -> None:
    (tmp_path / "policy.toml").write_text(f"gatewright = 1\n[workspace]\nclosed = {closed}\n", "utf-8")
    with pytest.raises(PolicyInvalid, match=words):
        Workspace.open(tmp_path, keys=tmp_path.parent / "own-keys")


def test_command_line_says_that_it_is_closed(desk: Desk, workspace: Workspace, capsys: Any) -> None:
    workspace.close()
    main(["permission", str(desk.folder), "--source", "docs", "secret/a.txt", "open.txt", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["permission"] for row in rows] == ["none", "admin"]
