"""A disposable copy: what happens in it stays in it; it reports, stops when asked, and leaves nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.agentedit import add_agent
from gatewright.policy.verdict import Verdict
from gatewright.sources.basefolder import base_folder
from gatewright.sources.held import Strategy
from gatewright.workspace import (
    Approval,
    ApprovalRequest,
    CopyCancelled,
    Decision,
    Status,
    Workspace,
    create_workspace,
    example_names,
    remove_dead_copies,
    sandbox,
)
from gatewright.workspace.sandbox import FolderCopy

POLICY = """\
gatewright = 1

[agents.archivist]
tools = ["file"]
sources = ["docs", "drafts"]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "admin"

[[sources]]
id = "drafts"
type = "file"
base_path = "docs/drafts"
default_permission = "admin"
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    docs = tmp_path / "ws/docs"
    (docs / "drafts").mkdir(parents=True)
    (docs / "a.md").write_text("one\n", encoding="utf-8")
    (docs / "drafts/b.md").write_text("two\n", encoding="utf-8")
    (docs / "link.md").symlink_to("a.md")
    os.mkfifo(docs / "pipe")
    (tmp_path / "ws/policy.toml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "ws/lib").mkdir()
    (tmp_path / "ws/lib/shared.txt").write_text("shared\n", encoding="utf-8")
    return Workspace.open(tmp_path / "ws", state=docs / "state", keys=docs / "keys")


def left_in_temporary(workspace: Workspace) -> list[str]:
    return sorted(path.name for path in (workspace.folder.parent / "temporary").iterdir())


def state(workspace: Workspace, path: str) -> object:
    source = workspace.sources.get("docs")
    assert source is not None
    return source.status(path)["state"]


async def test_what_is_done_in_the_copy_stays_in_it(workspace: Workspace) -> None:
    sandbox = workspace.sandbox()
    for arguments in ({"op": "delete", "path": "a.md"}, {"op": "create", "path": "new.md", "content": "x"}):
        outcome = await sandbox.workspace.call("archivist", "file", arguments)
        assert outcome.status is Status.ALLOWED
    assert (sandbox.folder / "docs/new.md").exists()
    assert not (workspace.folder / "docs/new.md").exists()
    assert (workspace.folder / "docs/a.md").read_text(encoding="utf-8") == "one\n"
    assert not (workspace.folder / "docs/state").exists()
    sandbox.close()
    assert left_in_temporary(workspace) == []


def test_the_copy_has_files_links_and_folders_and_no_pipes_state_or_keys(workspace: Workspace) -> None:
    for name in ("state", "keys"):
        (workspace.folder / "docs" / name).mkdir()
        (workspace.folder / "docs" / name / "secret").write_text("x", encoding="utf-8")
    sandbox = workspace.sandbox()
    found = {str(path.relative_to(sandbox.folder)) for path in sandbox.folder.rglob("*")}
    assert found == {"policy.toml", "docs", "docs/a.md", "docs/link.md", "docs/drafts", "docs/drafts/b.md"}
    assert (sandbox.folder / "docs/link.md").is_symlink()
    sandbox.close()


def test_progress_counts_each_file_once_although_bases_overlap(workspace: Workspace) -> None:
    told: list[tuple[int, int]] = []
    workspace.sandbox(progress=lambda files, size: told.append((files, size))).close()
    assert told == [(1, 4), (2, 8)]


def test_a_cancelled_copy_leaves_nothing(workspace: Workspace) -> None:
    told: list[int] = []
    with pytest.raises(CopyCancelled):
        workspace.sandbox(cancelled=lambda: bool(told), progress=lambda files, _: told.append(files))
    assert told == [1]
    assert left_in_temporary(workspace) == []


def test_a_workspace_that_is_too_large_is_refused_and_leaves_nothing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "MAX_COPY_FILES", 1)
    with pytest.raises(WorkspaceError, match="too large"):
        workspace.sandbox()
    assert left_in_temporary(workspace) == []


COPY_AND_WAIT = """
import sys, tempfile
from pathlib import Path
from gatewright.workspace import Workspace

tempfile.tempdir = sys.argv[2]
workspace = Workspace.open(Path(sys.argv[1]), state=Path(sys.argv[3]), keys=Path(sys.argv[3]) / "keys")
made = workspace.sandbox()
print(made.folder, flush=True)
sys.stdin.read()
made.close()
"""


def test_the_copy_of_a_process_that_was_killed_is_removed_and_that_of_a_living_one_stays(workspace: Workspace) -> None:
    state = workspace.folder / "state"
    command = [sys.executable, "-c", COPY_AND_WAIT, str(workspace.folder), tempfile.gettempdir(), str(state)]
    living, killed = (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    )
    try:
        assert living.stdout is not None
        assert killed.stdout is not None
        stays, goes = Path(living.stdout.readline().strip()), Path(killed.stdout.readline().strip())
        killed.kill()
        killed.communicate()
        assert goes.is_dir()

        remove_dead_copies(state)

        assert not goes.parent.exists()
        assert (stays / "docs/a.md").exists()
    finally:
        living.communicate()
    assert not stays.parent.exists()


def test_a_new_copy_removes_those_of_the_dead(workspace: Workspace) -> None:
    dead = Path(tempfile.mkdtemp(prefix="gatewright-sandbox-"))
    (dead / "secret.txt").write_text("x", encoding="utf-8")
    target = workspace.folder / "docs"
    workspace.state_folder.mkdir(exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix="gatewright-sandbox-", dir=workspace.state_folder))
    (dead.parent / "gatewright-sandbox-link").symlink_to(target)
    workspace.sandbox().close()
    assert left_in_temporary(workspace) == ["gatewright-sandbox-link"]
    assert not beside.exists()
    assert (target / "a.md").exists()


def test_the_copy_has_the_policy_as_edited_now(workspace: Workspace) -> None:
    workspace.apply(add_agent(workspace.policy, "scribe"))
    sandbox = workspace.sandbox()
    assert "scribe" in sandbox.workspace.policy.agents
    assert "scribe" not in (workspace.folder / "policy.toml").read_text(encoding="utf-8")
    sandbox.close()


def test_a_policy_that_is_a_link_is_copied_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    text = 'gatewright = 1\n\n[[sources]]\nid = "all"\ntype = "file"\nbase_path = "."\n'
    (tmp_path / "real.toml").write_text(text, encoding="utf-8")
    (tmp_path / "ws/policy.toml").symlink_to(tmp_path / "real.toml")
    workspace = Workspace.open(tmp_path / "ws", keys=tmp_path / "keys")
    workspace.apply(add_agent(workspace.policy, "new"))
    sandbox = workspace.sandbox()

    assert "new" in sandbox.workspace.policy.agents
    assert (tmp_path / "real.toml").read_text(encoding="utf-8") == text
    sandbox.close()
    workspace.close()


def test_folders_without_end_are_refused_and_leave_nothing(workspace: Workspace) -> None:
    deep = workspace.folder / "docs"
    for _ in range(sandbox.MAX_COPY_DEPTH + 1):
        deep /= "d"
    deep.mkdir(parents=True)
    with pytest.raises(WorkspaceError, match="nested too deeply"):
        workspace.sandbox()
    assert left_in_temporary(workspace) == []


def test_bytes_beyond_the_limit_are_refused_in_words_and_leave_nothing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "MAX_COPY_BYTES", 5)
    with pytest.raises(WorkspaceError, match="too large for a disposable copy: more than 0 MiB"):
        workspace.sandbox()
    assert left_in_temporary(workspace) == []


def test_cloned_files_do_not_count_as_copied_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "MAX_COPY_BYTES", 5)
    (tmp_path / "origin").mkdir()
    (tmp_path / "copy").mkdir()
    (tmp_path / "origin/large.txt").write_bytes(b"0123456789")

    def cloned(source: int, target: int) -> bool:
        os.write(target, os.read(source, 100))
        return True

    done = FolderCopy(tmp_path / "origin", tmp_path / "copy", clone=cloned).copy([base_folder(tmp_path / "origin")])
    assert (done.files, done.bytes, done.cloned) == (1, 0, 1)
    assert (tmp_path / "copy/large.txt").read_bytes() == b"0123456789"


def test_where_nothing_can_be_cloned_it_is_tried_once_and_all_is_copied(tmp_path: Path) -> None:
    (tmp_path / "origin").mkdir()
    (tmp_path / "copy").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "origin" / name).write_text(name, encoding="utf-8")
    tried: list[int] = []

    def refused(source: int, target: int) -> bool:
        tried.append(source + target)
        return False

    done = FolderCopy(tmp_path / "origin", tmp_path / "copy", clone=refused).copy([base_folder(tmp_path / "origin")])
    assert (done.files, done.bytes, done.cloned, len(tried)) == (3, 3, 0, 1)


def test_cancelling_stops_within_a_large_file(tmp_path: Path) -> None:
    (tmp_path / "origin").mkdir()
    (tmp_path / "copy").mkdir()
    (tmp_path / "origin/large").write_bytes(bytes(4 * 1024 * 1024))
    asked: list[int] = []

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) > 2

    watch = sandbox.CopyWatch(cancelled=cancelled)
    with pytest.raises(CopyCancelled):
        FolderCopy(tmp_path / "origin", tmp_path / "copy", watch=watch, clone=lambda _a, _b: False).copy(
            [base_folder(tmp_path / "origin")]
        )
    assert len(asked) == 3


def test_links_lead_nowhere_outside_the_copy(workspace: Workspace) -> None:
    docs, outside = workspace.folder / "docs", workspace.folder.parent / "outside.txt"
    outside.write_text("real\n", encoding="utf-8")
    links = {
        "absolute-inside": docs / "a.md",
        "absolute-outside": outside,
        "up-and-out": Path("../../outside.txt"),
        "out-and-in": Path("../../ws/docs/a.md"),
        "drafts/up": Path("../a.md"),
        "system": Path("/etc/passwd"),
        "folder-out": Path("/etc"),
    }
    for name, leads_to in links.items():
        (docs / name).symlink_to(leads_to)
    sandbox = workspace.sandbox()
    copied = sandbox.folder / "docs"
    for name in links:
        assert (copied / name).is_symlink()
        assert (copied / name).resolve().is_relative_to(sandbox.folder.parent), name
    for name in ("absolute-inside", "out-and-in", "drafts/up"):
        (copied / name).write_text("changed\n", encoding="utf-8")
    assert (copied / "a.md").read_text(encoding="utf-8") == "changed\n"
    assert (docs / "a.md").read_text(encoding="utf-8") == "one\n"
    for name in ("absolute-outside", "up-and-out", "system"):
        with pytest.raises(FileNotFoundError):
            (copied / name).write_text("x", encoding="utf-8")
    assert set(sandbox.copied.links_cut) == {
        f"docs/{n}" for n in ("absolute-outside", "up-and-out", "system", "folder-out")
    }
    assert outside.read_text(encoding="utf-8") == "real\n"
    sandbox.close()
    assert left_in_temporary(workspace) == []


async def test_a_link_is_refused_in_the_copy_as_it_is_in_the_workspace(workspace: Workspace) -> None:
    (workspace.folder / "docs/out.md").symlink_to("/etc/passwd")
    sandbox = workspace.sandbox()
    for name in ("out.md", "link.md"):
        call = {"op": "read", "path": name}
        real = workspace.decide("archivist", "file", call)
        tried = sandbox.workspace.decide("archivist", "file", call)
        assert (real.verdict, real.stage, real.code) == (tried.verdict, tried.stage, tried.code)
    sandbox.close()


def test_two_sources_of_one_folder_are_copied_once(tmp_path: Path) -> None:
    (tmp_path / "ws/docs").mkdir(parents=True)
    (tmp_path / "ws/docs/a.md").write_text("one\n", encoding="utf-8")
    twice = POLICY.replace("docs/drafts", "docs")
    (tmp_path / "ws/policy.toml").write_text(twice, encoding="utf-8")
    opened = Workspace.open(tmp_path / "ws", keys=tmp_path / "keys")
    sandbox = opened.sandbox()
    assert sandbox.copied.files == 1
    sandbox.close()


def test_roots_are_in_the_copy(workspace: Workspace) -> None:
    text = POLICY.replace('tools = ["file"]', 'tools = ["file", "file_write", "file_read"]')
    text = text.replace("[agents.archivist]", '[workspace]\nroots = { shared = "lib" }\n\n[agents.archivist]')
    (workspace.folder / "policy.toml").write_text(text, encoding="utf-8")
    opened = Workspace.open(workspace.folder, keys=workspace.folder / "docs/keys")
    sandbox = opened.sandbox()
    assert (sandbox.folder / "lib/shared.txt").read_text(encoding="utf-8") == "shared\n"
    sandbox.close()


async def test_blocks_come_along_with_edits_that_were_not_written(workspace: Workspace) -> None:
    edit = {"op": "append", "path": "a.md", "content": "unsaved\n"}
    assert (await workspace.call("archivist", "file", edit)).status is Status.ALLOWED
    sandbox = workspace.sandbox()
    read = await sandbox.workspace.call("archivist", "file", {"op": "read", "path": "a.md"})
    assert "unsaved" in (read.output or "")
    assert state(sandbox.workspace, "a.md") == "block_modified"
    saved = await sandbox.workspace.call("archivist", "file", {"op": "save", "path": "a.md"})
    assert saved.status is Status.ALLOWED
    assert (sandbox.folder / "docs/a.md").read_text(encoding="utf-8") == "one\nunsaved\n"
    assert (workspace.folder / "docs/a.md").read_text(encoding="utf-8") == "one\n"
    assert state(workspace, "a.md") == "block_modified"
    sandbox.close()


async def test_a_conflict_is_one_in_the_copy_and_merges_there(workspace: Workspace) -> None:
    edit = {"op": "append", "path": "a.md", "content": "mine\n"}
    await workspace.call("archivist", "file", edit)
    (workspace.folder / "docs/a.md").write_text("top\none\n", encoding="utf-8")
    sandbox = workspace.sandbox()
    assert state(sandbox.workspace, "a.md") == "conflict"
    source = sandbox.workspace.sources.get("docs")
    assert source is not None
    assert source.reconcile("a.md", Strategy.MERGE)["outcome"] == "merged"
    assert state(workspace, "a.md") == "conflict"
    sandbox.close()


async def test_each_copy_begins_with_the_files_and_blocks_of_the_workspace(workspace: Workspace) -> None:
    first = workspace.sandbox()
    await first.workspace.call("archivist", "file", {"op": "append", "path": "a.md", "content": "tried\n"})
    await first.workspace.call("archivist", "file", {"op": "save", "path": "a.md"})
    await first.workspace.call("archivist", "file", {"op": "delete", "path": "drafts/b.md"})
    first.close()
    second = workspace.sandbox()
    assert state(second.workspace, "a.md") == "not_loaded"
    assert (second.folder / "docs/a.md").read_text(encoding="utf-8") == "one\n"
    assert (second.folder / "docs/drafts/b.md").exists()
    second.close()


def test_a_block_store_that_is_none_is_an_error_and_leaves_nothing(workspace: Workspace) -> None:
    workspace.state_folder.mkdir(parents=True)
    (workspace.state_folder / "memory.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(WorkspaceError, match="cannot be read: file is not a database"):
        workspace.sandbox()
    assert left_in_temporary(workspace) == []


@pytest.fixture
def reader() -> Iterator[Path]:
    """A folder of somebody who is not the superuser, as whom the test goes on."""
    folder = Path(tempfile.mkdtemp(prefix="gatewright-test-"))
    change = os.geteuid() == 0
    if change:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if change:
            os.seteuid(0)
        for path in folder.rglob("*"):
            path.chmod(0o700)
        shutil.rmtree(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean something else there")
def test_what_cannot_be_read_is_there_and_as_unreadable(reader: Path) -> None:
    (reader / "origin/closed").mkdir(parents=True)
    (reader / "origin/closed/inside.txt").write_text("x", encoding="utf-8")
    (reader / "origin/secret.txt").write_text("x", encoding="utf-8")
    (reader / "origin/plain.txt").write_text("x", encoding="utf-8")
    (reader / "origin/closed").chmod(0)
    (reader / "origin/secret.txt").chmod(0)
    (reader / "copy").mkdir()
    done = FolderCopy(reader / "origin", reader / "copy").copy([base_folder(reader / "origin")])
    assert set(done.unread) == {"closed", "secret.txt"}
    assert (reader / "copy/plain.txt").read_text(encoding="utf-8") == "x"
    for name in ("closed", "secret.txt"):
        assert (reader / "copy" / name).stat().st_mode & 0o777 == 0
    (reader / "origin/closed").chmod(0o700)


def said(decision: Decision) -> tuple[object, ...]:
    return decision.verdict, decision.stage, decision.code, decision.reason


def calls_of(workspace: Workspace) -> Iterator[tuple[str, str, Mapping[str, JsonValue]]]:
    """Each example of each agent's tools; for a file one that is there, and one that is not."""
    bases = [workspace.folder / str(source.base_path) for source in workspace.policy.file_sources]
    there = [str(next(path for path in base.rglob("*.*") if path.is_file()).relative_to(base)) for base in bases]
    for agent_id in workspace.policy.agents:
        agent = workspace.gate.snapshot().agent(agent_id)
        plans = [agent.plan(tool.name) for tool in workspace.catalog] if agent is not None else []
        for plan in filter(None, plans):
            for given in plan.examples:
                for path in ["not-there.md", *there] if "path" in given else [None]:
                    yield agent_id, plan.tool.name, {**given, "path": path} if path else given


@pytest.mark.parametrize("name", ["demo", *example_names()])
async def test_every_call_of_an_example_workspace_is_decided_alike_beforehand_in_its_copy_and_when_it_is_made(
    name: str, tmp_path: Path
) -> None:
    questions: list[ApprovalRequest] = []

    async def refuse(request: ApprovalRequest) -> Approval:
        questions.append(request)
        return Approval(approved=False)

    with Workspace.open(create_workspace(tmp_path / name, name)) as workspace, closing(workspace.sandbox()) as sandbox:
        copy, calls = sandbox.workspace, list(calls_of(workspace))
        for call in calls:
            assert said(workspace.decide(*call)) == said(copy.decide(*call)), call
        for number, call in enumerate(calls):
            session = copy.session(call[0], f"call-{number}")
            decision = copy.decide(*call, session=session)
            questions.clear()
            outcome = await copy.call(*call, session=session, approver=refuse)
            asked = [question.reasons[0] for question in questions]
            assert asked == ([decision.reason] if decision.verdict is Verdict.ASK else []), call
            assert asked or said(outcome.decision) == said(decision), call
