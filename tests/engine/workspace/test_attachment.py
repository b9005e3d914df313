"""A source or root stays on the folder that it was opened on, whatever comes to stand at its path."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.gate import Approval, ApprovalRequest, Outcome, Status
from gatewright.policy.edit import AgentChange, Edit
from gatewright.workspace import Workspace
from tests.support.swapping_process import swapping

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders are held by descriptors")

SECRET = "4711-4712"
POLICY = """gatewright = 1

[agents.a]
tools = ["file", "block_edit", "file_read", "file_search", "file_list", "file_write", "file_edit", "file_delete"]
capabilities = [{ FsRead = { prefixes = ["."] } }, { FsWrite = { prefixes = ["."] } }]

[[sources]]
id = "docs"
type = "file"
base_path = "x/base"
default_permission = "admin"

[workspace]
roots = { shared = "x/shared" }
"""
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("file", {"op": op, "path": "a.md"}) for op in ("read", "load", "reload", "status", "diff", "save", "delete")),
    ("file", {"op": "read", "path": "victim.md"}),
    ("file", {"op": "append", "path": "a.md", "content": "x"}),
    ("file", {"op": "replace", "path": "a.md", "old": "in", "new": "x"}),
    ("file", {"op": "insert", "path": "a.md", "line": 1, "content": "x"}),
    ("file", {"op": "create", "path": "new.md", "content": "x"}),
    ("file", {"op": "list"}),
    ("file", {"op": "list", "recursive": True}),
    ("file_read", {"path": "shared/a.md"}),
    ("file_read", {"path": "shared/victim.md"}),
    ("file_search", {"path": "shared", "query": "4711"}),
    ("file_list", {"path": "shared"}),
    ("file_write", {"path": "shared/new.md", "content": "x"}),
    ("file_edit", {"path": "shared/a.md", "old_text": "in", "new_text": "x"}),
    ("file_delete", {"path": "shared/a.md"}),
)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    folder = tmp_path / "ws"
    for name in ("base", "shared"):
        for place, names in ((folder / "x" / name, ["a.md"]), (tmp_path / "outside" / name, ["a.md", "victim.md"])):
            place.mkdir(parents=True)
            for file in names:
                (place / file).write_text("inside" if place.is_relative_to(folder) else SECRET)
    (folder / "policy.toml").write_text(POLICY)
    opened = Workspace.open(folder, keys=tmp_path / "keys")
    yield opened
    opened.close()


def link_above(folder: Path) -> None:
    """A folder above the bases becomes a link to elsewhere."""
    (folder / "x").rename(folder / "old")
    (folder / "x").symlink_to("../outside")


def other_above(folder: Path) -> None:
    """Another folder is put in the place of the one above."""
    (folder / "x").rename(folder / "old")
    (folder.parent / "outside").rename(folder / "x")


def other_bases(folder: Path) -> None:
    """Other folders are put in the places of the bases themselves."""
    for name in ("base", "shared"):
        (folder / "x" / name).rename(folder / "x" / f"{name}.old")
        (folder.parent / "outside" / name).rename(folder / "x" / name)


def links_for_bases(folder: Path) -> None:
    """The bases themselves become links."""
    for name in ("base", "shared"):
        (folder / "x" / name).rename(folder / "x" / f"{name}.old")
        (folder / "x" / name).symlink_to(f"../../outside/{name}")


def made_anew(folder: Path) -> None:
    """The bases are removed and made again, with something else in them."""
    for name in ("base", "shared"):
        base = folder / "x" / name
        (base / "a.md").unlink()
        base.rmdir()
        base.mkdir()
        (base / "a.md").write_text(SECRET)
        (base / "victim.md").write_text(SECRET)


SWAPS = (link_above, other_above, other_bases, links_for_bases, made_anew)


def contents(*tops: Path) -> dict[tuple[int, str], bytes]:
    """What all files hold, by folder and name, wherever the folders were moved to."""
    found: dict[tuple[int, str], bytes] = {}
    for top in tops:
        for here, _, names in os.walk(top):
            for name in names:
                path = Path(here, name)
                if path.suffix == ".md" and not path.is_symlink():
                    found[Path(here).stat().st_ino, name] = path.read_bytes()
    return found


async def call(workspace: Workspace, tool: str, arguments: dict[str, Any]) -> Outcome:
    async def approve(request: ApprovalRequest) -> Approval:
        assert SECRET not in str(request.to_json())
        return Approval(True, "dana")

    return await workspace.call("a", tool, arguments, approver=approve)


@pytest.mark.parametrize("swap", SWAPS, ids=lambda swap: swap.__name__)
async def test_no_call_touches_another_folder_at_the_path_and_each_says_why(
    workspace: Workspace, tmp_path: Path, swap: Any
) -> None:
    swap(workspace.folder)
    before = contents(tmp_path)
    for tool, arguments in CALLS:
        outcome = await call(workspace, tool, arguments)
        assert outcome.status is Status.DENIED, (tool, arguments)
        assert outcome.code in {"source-replaced", "root-replaced"}, (tool, arguments, outcome)
        assert SECRET not in f"{outcome!r} {outcome.data!r}"
        assert "reading the policy again" in outcome.decision.reason
    assert contents(tmp_path) == before


async def test_blocks_of_a_replaced_folder_are_closed_with_it(workspace: Workspace) -> None:
    source = workspace.sources.get("docs")
    assert source is not None
    await call(workspace, "file", {"op": "load", "path": "a.md"})
    label = source.label("a.md")
    other_bases(workspace.folder)
    for tool, arguments in (
        ("file", {"op": "save", "label": label}),
        ("block_edit", {"op": "append", "label": label, "content": "x"}),
    ):
        outcome = await call(workspace, tool, arguments)
        assert (outcome.status, outcome.code) == (Status.DENIED, "source-replaced")


@pytest.mark.parametrize("swap", [link_above, links_for_bases], ids=lambda swap: swap.__name__)
async def test_what_leads_out_and_is_not_trusted_is_detached_by_a_reload_and_calls_say_so(
    workspace: Workspace, tmp_path: Path, swap: Any
) -> None:
    swap(workspace.folder)
    before = contents(tmp_path)
    assert [problem.code for problem in workspace.reload() if problem.is_error] == ["not-trusted", "not-trusted"]
    assert workspace.alarm is not None
    for tool, arguments in CALLS:
        outcome = await call(workspace, tool, arguments)
        assert (outcome.status, outcome.code) == (Status.DENIED, "not-trusted"), (tool, arguments)
    assert contents(tmp_path) == before


async def test_the_very_folder_moved_out_is_detached_by_a_reload_as_well(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.folder / "x").rename(tmp_path / "moved")
    (workspace.folder / "x").symlink_to("../moved")
    assert {problem.code for problem in workspace.reload() if problem.is_error} == {"not-trusted"}
    outcome = await call(workspace, "file", {"op": "read", "path": "a.md"})
    assert (outcome.status, outcome.code) == (Status.DENIED, "not-trusted")


async def test_a_source_that_is_back_where_it_was_works_again(workspace: Workspace) -> None:
    link_above(workspace.folder)
    workspace.reload()
    (workspace.folder / "x").unlink()
    (workspace.folder / "old").rename(workspace.folder / "x")
    assert workspace.reload() == ()
    outcome = await call(workspace, "file", {"op": "read", "path": "a.md"})
    assert outcome.status is Status.ALLOWED


@pytest.mark.parametrize("swap", [other_above, other_bases, made_anew], ids=lambda swap: swap.__name__)
async def test_a_reload_takes_what_stands_inside_the_workspace_now(workspace: Workspace, swap: Any) -> None:
    swap(workspace.folder)
    assert workspace.reload() == ()
    for tool, arguments in (
        ("file", {"op": "read", "path": "victim.md"}),
        ("file_read", {"path": "shared/victim.md"}),
    ):
        outcome = await call(workspace, tool, arguments)
        assert outcome.status is Status.ALLOWED, outcome


@pytest.mark.parametrize("swap", SWAPS, ids=lambda swap: swap.__name__)
async def test_an_edit_leaves_every_source_and_root_where_it_was_opened(workspace: Workspace, swap: Any) -> None:
    swap(workspace.folder)
    agent = workspace.policy.agents["a"]
    workspace.apply(Edit("describe", (AgentChange(agent, replace(agent, description="other")),)))
    for tool, arguments in CALLS:
        outcome = await call(workspace, tool, arguments)
        assert outcome.code in {"source-replaced", "root-replaced"}, (tool, arguments, outcome)


@pytest.mark.parametrize("swap", SWAPS, ids=lambda swap: swap.__name__)
def test_the_copy_for_trying_calls_holds_nothing_of_another_folder(workspace: Workspace, swap: Any) -> None:
    swap(workspace.folder)
    with pytest.raises(WorkspaceError, match="another folder"):
        workspace.sandbox()


@pytest.mark.parametrize("swap", SWAPS, ids=lambda swap: swap.__name__)
def test_the_tree_for_people_lists_nothing_of_another_folder(workspace: Workspace, swap: Any) -> None:
    swap(workspace.folder)
    overlay = workspace.sources.overlay("docs")
    with pytest.raises(WorkspaceError, match="another folder"):
        overlay.scan()


async def test_a_folder_that_was_missing_is_taken_when_it_comes_but_never_through_a_link(
    workspace: Workspace, tmp_path: Path
) -> None:
    (workspace.folder / "x").rename(workspace.folder / "kept")
    second = Workspace.open(workspace.folder, keys=tmp_path / "keys")
    assert (await call(second, "file", {"op": "read", "path": "a.md"})).code == "source-missing"
    (workspace.folder / "x").symlink_to("../outside")
    assert (await call(second, "file", {"op": "read", "path": "victim.md"})).code == "source-replaced"
    (workspace.folder / "x").unlink()
    (workspace.folder / "kept").rename(workspace.folder / "x")
    assert (await call(second, "file", {"op": "read", "path": "a.md"})).status is Status.ALLOWED
    second.close()


async def test_a_file_with_a_second_name_is_refused_in_the_copy_as_it_is_here(
    workspace: Workspace, tmp_path: Path
) -> None:
    os.link(tmp_path / "outside/base/a.md", workspace.folder / "x/base/linked.md")
    os.link(tmp_path / "outside/base/a.md", workspace.folder / "x/shared/linked.md")
    copy = workspace.sandbox()
    for where in (workspace, copy.workspace):
        for tool, path in (("file", "linked.md"), ("file_read", "shared/linked.md")):
            outcome = await call(where, tool, {"path": path} | ({"op": "read"} if tool == "file" else {}))
            assert (outcome.status, outcome.code) == (Status.DENIED, "hard-link"), outcome
    held = [path.read_bytes() for path in copy.folder.rglob("linked.md")]
    assert held == [b"", b""]
    copy.close()


def test_a_copy_made_while_folders_are_swapped_for_links_holds_nothing_from_outside(
    workspace: Workspace, tmp_path: Path
) -> None:
    sub, far = workspace.folder / "x/base/sub", tmp_path / "outside/base"
    for number in range(40):
        (sub / f"d{number}").mkdir(parents=True)
        (sub / f"d{number}/a.md").write_text("inside")
        (far / f"d{number}").mkdir()
        (far / f"d{number}/a.md").write_text(SECRET)
    (workspace.folder / "x/base/twin").symlink_to(far)
    with swapping(sub, workspace.folder / "x/base/twin"):
        for _ in range(30):
            copy = workspace.sandbox()
            held = {path.read_text() for path in copy.folder.rglob("*.md") if not path.is_symlink()}
            copy.close()
            assert held == {"inside"}


OVERLAP = """gatewright = 1

[agents.a]
tools = ["file", "file_read", "file_list", "file_search"]
capabilities = [{ FsRead = { prefixes = ["."] } }]

[[sources]]
id = "outer"
type = "file"
base_path = "x"

[[sources]]
id = "inner"
type = "file"
base_path = "x/mid/inner"
default_permission = "none"

[workspace]
roots = { shared = "x" }
"""


def inner_renamed(mid: Path) -> str:
    (mid / "inner").rename(mid / "other")
    return "mid/other"


def inner_replaced(mid: Path) -> str:
    (mid / "inner").rename(mid / "other")
    (mid / "inner").mkdir()
    return "mid/other"


def inner_in_its_own_place(mid: Path) -> str:
    (mid / "inner").rename(mid / "other")
    (mid / "inner").mkdir()
    (mid / "other").rename(mid / "inner/a")
    return "mid/inner/a"


def above_linked(mid: Path) -> str:
    mid.rename(mid.with_name("old"))
    mid.symlink_to("old")
    return "old/inner"


@pytest.mark.parametrize("move", [inner_renamed, inner_replaced, inner_in_its_own_place, above_linked])
async def test_the_folder_of_an_inner_source_stays_closed_wherever_it_is_moved(tmp_path: Path, move: Any) -> None:
    folder = tmp_path / "ws"
    inner = folder / "x/mid/inner"
    (inner / "sub").mkdir(parents=True)
    (folder / "x/open.md").write_text("open")
    for place in (inner, inner / "sub"):
        (place / "a.md").write_text(SECRET)
    text = OVERLAP
    if move is inner_in_its_own_place:
        rules = "".join(
            f'[[sources.permission_rules]]\npattern = "/{one}"\npermission = "none"\n' for one in ("a.md", "sub/")
        )
        text = OVERLAP.replace('default_permission = "none"\n', 'default_permission = "read_only"\n' + rules)
    (folder / "policy.toml").write_text(text)
    with Workspace.open(folder, keys=tmp_path / "keys") as workspace:
        moved = move(folder / "x/mid")
        for where in (moved, f"{moved}/sub"):
            for tool, arguments in (
                ("file", {"op": "read", "path": f"{where}/a.md", "source": "outer"}),
                ("file", {"op": "list", "path": where, "source": "outer"}),
                ("file_read", {"path": f"shared/{where}/a.md"}),
                ("file_list", {"path": f"shared/{where}"}),
            ):
                outcome = await call(workspace, tool, arguments)
                assert (outcome.status, outcome.code) == (Status.DENIED, "protected"), (tool, arguments, outcome)
                assert "moved" in outcome.decision.reason
        for tool, arguments in (
            ("file", {"op": "list", "path": ".", "source": "outer", "recursive": True}),
            ("file_search", {"path": "shared", "query": "4711"}),
        ):
            outcome = await call(workspace, tool, arguments)
            assert outcome.status is Status.ALLOWED
            assert "a.md" not in outcome.output
            assert SECRET not in outcome.output
        assert (await call(workspace, "file", {"op": "read", "path": "open.md", "source": "outer"})).output

        workspace.reload()
        if move in (inner_renamed, inner_replaced):
            read = await call(workspace, "file", {"op": "read", "path": "mid/other/a.md", "source": "outer"})
            assert read.status is Status.ALLOWED, "a reload attaches what stands at the path now"
