"""`watch = true` of a source in an open workspace: read, written, started on demand, following edits and reloads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gatewright.policy.edit import Edit, SourceChange
from gatewright.sources.held import FileState
from gatewright.sources.watch import Noticed
from gatewright.workspace import Workspace

WAIT_S = 3_600.0
POLICY = """gatewright = 1

[agents.a]
tools = ["file"]

[[sources]]
id = "docs"
type = "file"
base_path = "docs" # here
default_permission = "read_write"
watch = true

[[sources]]
id = "still"
type = "file"
base_path = "still"
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    folder = tmp_path / "ws"
    for name in ("docs", "still"):
        (folder / name).mkdir(parents=True)
    (folder / "policy.toml").write_text(POLICY)
    opened = Workspace.open(folder, keys=tmp_path / "keys")
    yield opened
    opened.close()


def watchers() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("watch "))


def thread_of(source_id: str) -> threading.Thread:
    """What ends a moment after its source is not watched any more."""
    return next(thread for thread in threading.enumerate() if thread.name == f"watch {source_id}")


def watch_edit(workspace: Workspace, source_id: str, *, watch: bool) -> Edit:
    source = workspace.policy.source(source_id)
    assert source is not None
    return Edit("watch", (SourceChange(source, replace(source, watch=watch)),))


def until(told: queue.Queue[Noticed], source_id: str, path: str) -> tuple[FileState, bool]:
    while True:
        noticed = told.get()
        for change in noticed.changes:
            if (noticed.source_id, change.relative) == (source_id, path):
                return change.state, change.merged


async def test_outside_change_of_a_loaded_file_is_taken_into_its_block(workspace: Workspace) -> None:
    path = workspace.folder / "docs/a.md"
    path.write_text("one\n")
    await workspace.call("a", "file", {"op": "load", "path": "a.md"})
    told: queue.Queue[Noticed] = queue.Queue()
    watching = workspace.watch_sources(told.put, debounce_ms=60)
    assert watching.wait(WAIT_S)

    path.write_text("two\n")

    assert until(told, "docs", "a.md") == (FileState.DISK_MODIFIED, True)
    read = await workspace.call("a", "file", {"op": "read", "path": "a.md"})
    assert '"content":"two\\n"' in read.output
    assert '"origin":"block"' in read.output


async def test_outside_change_is_merged_with_the_edits_of_an_agent_where_they_do_not_meet(workspace: Workspace) -> None:
    path = workspace.folder / "docs/a.md"
    path.write_text("one\ntwo\nthree\n")
    await workspace.call("a", "file", {"op": "append", "path": "a.md", "content": "of the agent\n"})
    told: queue.Queue[Noticed] = queue.Queue()
    assert workspace.watch_sources(told.put, debounce_ms=60).wait(WAIT_S)

    new = path.with_name("new.md")
    new.write_text("of the outside\none\ntwo\nthree\n")
    new.replace(path)

    assert until(told, "docs", "a.md") == (FileState.CONFLICT, True)
    read = await workspace.call("a", "file", {"op": "read", "path": "a.md"})
    assert '"content":"of the outside\\none\\ntwo\\nthree\\nof the agent\\n"' in read.output
    await workspace.call("a", "file", {"op": "save", "path": "a.md"})
    assert path.read_text() == "of the outside\none\ntwo\nthree\nof the agent\n"


async def test_outside_change_of_the_lines_that_an_agent_changed_is_told_and_both_texts_stay(
    workspace: Workspace,
) -> None:
    path = workspace.folder / "docs/a.md"
    path.write_text("one\ntwo\n")
    await workspace.call("a", "file", {"op": "replace", "path": "a.md", "old": "two", "new": "of the agent"})
    told: queue.Queue[Noticed] = queue.Queue()
    assert workspace.watch_sources(told.put, debounce_ms=60).wait(WAIT_S)

    path.write_text("one\nof the outside\n")

    assert until(told, "docs", "a.md") == (FileState.CONFLICT, False)
    read = await workspace.call("a", "file", {"op": "read", "path": "a.md"})
    assert '"content":"one\\nof the agent\\n"' in read.output
    refused = await workspace.call("a", "file", {"op": "save", "path": "a.md"})
    assert "file modified externally" in refused.output
    assert path.read_text() == "one\nof the outside\n"


def test_opening_alone_starts_nothing_and_close_ends_what_was_started(workspace: Workspace) -> None:
    assert watchers() == []
    watching = workspace.watch_sources(lambda _: None)
    assert (watching.ids, watchers()) == (("docs",), ["watch docs"])

    workspace.close()

    assert (watching.ids, watchers()) == ((), [])
    watching.follow()
    assert watchers() == []


def test_edits_reloads_and_a_second_watch_are_followed(workspace: Workspace) -> None:
    workspace.watch_sources(lambda _: None)
    second = workspace.watch_sources(lambda _: None)
    workspace.apply(watch_edit(workspace, "still", watch=True))
    assert (second.ids, watchers()) == (("docs", "still"), ["watch docs", "watch still"])
    docs, still = (thread_of(name) for name in second.ids)
    workspace.apply(watch_edit(workspace, "docs", watch=False))
    docs.join(WAIT_S)
    assert (second.ids, watchers()) == (("still",), ["watch still"])

    workspace.reload()
    still.join(WAIT_S)

    assert (second.ids, watchers()) == (("docs",), ["watch docs"])


def test_listener_may_change_the_policy_itself(workspace: Workspace) -> None:
    done = threading.Event()

    def stop_watching(_: Noticed) -> None:
        workspace.apply(watch_edit(workspace, "docs", watch=False))
        done.set()

    assert workspace.watch_sources(stop_watching, debounce_ms=60).wait(WAIT_S)
    (workspace.folder / "docs/new.md").write_text("x")

    assert done.wait(WAIT_S)
    assert workspace.policy.source("docs") == replace(workspace.policy.sources[0], watch=False)


def test_watch_is_written_in_its_own_line_and_read_again(workspace: Workspace, tmp_path: Path) -> None:
    workspace.apply(watch_edit(workspace, "still", watch=True))
    workspace.apply(watch_edit(workspace, "docs", watch=False))
    workspace.save()

    text = (workspace.folder / "policy.toml").read_text()
    assert 'base_path = "docs" # here\ndefault_permission = "read_write"\nwatch = false\n' in text
    assert 'base_path = "still"\nwatch = true\n' in text
    with closing(Workspace.open(workspace.folder, keys=tmp_path / "keys2")) as again:
        assert {source.source_id: source.watch for source in again.policy.sources} == {"docs": False, "still": True}
