"""Streams of the changes below a folder: a real folder, a real workspace, and the tool ``source`` through the gate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import PolicyInvalid, WorkspaceError
from gatewright.gate import Outcome, Status
from gatewright.policy.sourceedit import change_source, set_default_level
from gatewright.policy.verdict import Permission
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.stream import MAX_WAITING, ChangeKind, FolderStream, StreamBatch, StreamState, Subscription
from tests.support.bench import OpenBench, data_of

POLICY = """gatewright = 1

[agents.a]
tools = ["source", "file"]

[agents.b]
tools = ["source"]
sources = ["docs"]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"

[[sources.permission_rules]]
pattern = "hidden/**"
permission = "none"

[[sources]]
id = "inbox"  # a stream
type = "folder_changes"
base_path = "inbox"

[[sources.permission_rules]]
pattern = "secret*"
permission = "none"
"""
LONG_S = 3_600.0
"""Longer than a test may sleep."""


class Bench(OpenBench):
    """An open workspace with a source of files and a stream."""

    @property
    def stream(self) -> FolderStream:
        stream = self.workspace.streams.get("inbox")
        assert isinstance(stream, FolderStream)
        return stream

    def subscribed(self) -> Subscription:
        """One that hears of everything from now on."""
        made = self.stream.subscribe()
        assert self.stream.wait(LONG_S)
        made.pull()
        return made

    async def call(self, op: str, agent: str = "a", **arguments: Any) -> Outcome:
        return await self.workspace.call(agent, "source", {"op": op, **arguments})

    async def data(self, op: str, agent: str = "a", **arguments: Any) -> Any:
        return data_of(await self.call(op, agent, **arguments))


def opened(folder: Path, policy: str = POLICY) -> Bench:
    return Bench.at(folder, policy, "docs/hidden", "inbox")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = opened(tmp_path)
    yield made
    made.workspace.close()


def pulled(subscription: Subscription, *paths: str) -> dict[str, ChangeKind]:
    """Everything until these paths were told."""
    found: dict[str, ChangeKind] = {}
    while not found.keys() >= set(paths):
        found |= dict(subscription.pull(timeout_s=LONG_S).changes)
    return found


def test_changes_are_pulled_by_whoever_subscribed(bench: Bench) -> None:
    with bench.subscribed() as one, bench.subscribed() as other:
        (bench.folder / "inbox" / "a.txt").write_text("new")
        assert pulled(one, "a.txt")["a.txt"] is ChangeKind.ADDED
        assert pulled(other, "a.txt")["a.txt"] is ChangeKind.ADDED
        (bench.folder / "inbox" / "a.txt").unlink()
        assert pulled(one, "a.txt")["a.txt"] is ChangeKind.DELETED
    assert bench.stream.state is StreamState.STOPPED


def test_what_happens_before_the_folder_is_watched_is_told_as_more(bench: Bench) -> None:
    with bench.stream.subscribe() as one:
        (bench.folder / "inbox" / "at once.txt").write_text("new")
        assert one.pull(timeout_s=LONG_S).more
        (bench.folder / "inbox" / "later.txt").write_text("new")
        pulled(one, "later.txt")
        with bench.stream.subscribe() as other:
            assert other.pull() == StreamBatch()


def test_nothing_is_told_of_what_has_level_none(bench: Bench) -> None:
    with bench.subscribed() as one:
        (bench.folder / "inbox" / "secret.txt").write_text("x")
        (bench.folder / "inbox" / "open.txt").write_text("x")
        assert pulled(one, "open.txt").keys() == {"open.txt"}


def test_level_none_of_a_source_of_files_over_the_same_folder_holds(tmp_path: Path) -> None:
    bench = opened(tmp_path, POLICY.replace('base_path = "inbox"', 'base_path = "docs"'))
    with bench.subscribed() as one:
        (bench.folder / "docs" / "hidden" / "x.txt").write_text("x")
        (bench.folder / "docs" / "y.txt").write_text("x")
        assert pulled(one, "y.txt").keys() == {"y.txt"}
    bench.workspace.close()


def test_paused_stream_tells_nothing_and_says_afterwards_that_there_may_have_been_more(bench: Bench) -> None:
    with bench.subscribed() as one:
        bench.stream.pause()
        (bench.folder / "inbox" / "meanwhile.txt").write_text("x")
        assert one.pull(timeout_s=0.7) == StreamBatch()
        bench.stream.resume()
        assert one.pull(timeout_s=LONG_S).more
        (bench.folder / "inbox" / "after.txt").write_text("x")
        pulled(one, "after.txt")


def test_slow_reader_costs_no_more_than_a_bounded_queue() -> None:
    one = Subscription(lambda _: None)
    one.put([(str(number), ChangeKind.ADDED) for number in range(MAX_WAITING + 10)])
    one.put([("0", ChangeKind.CHANGED), ("1", ChangeKind.DELETED), ("1", ChangeKind.ADDED)])

    first = one.pull(limit=10)
    assert len(first.changes) == 10
    assert not first.more
    rest = one.pull(limit=MAX_WAITING)
    told = dict((*first.changes, *rest.changes))
    assert rest.more
    assert len(told) == MAX_WAITING
    assert (told["0"], told["1"]) == (ChangeKind.ADDED, ChangeKind.CHANGED)
    assert one.pull() == StreamBatch()


def test_what_waits_is_the_newest_of_each_path_the_oldest_first_and_bounded() -> None:
    added, changed, deleted = ChangeKind.ADDED, ChangeKind.CHANGED, ChangeKind.DELETED
    one = Subscription(lambda _: None)
    one.put([("a", added), ("b", deleted), ("c", added), ("d", changed), ("e", deleted)])
    one.put([("a", changed), ("b", added), ("c", deleted), ("d", changed)], problem="gone")
    one.put((), more=True)
    assert one.pull(limit=2) == StreamBatch((("e", deleted), ("a", added)))
    one.put((), problem=None)
    assert one.pull() == StreamBatch((("b", changed), ("c", deleted), ("d", changed)), more=True, problem="gone")
    assert one.pull() == StreamBatch()
    one.put([(str(number), added) for number in range(MAX_WAITING)])
    one.put([("0", deleted)])
    assert len(one.pull().changes) == 100
    rest = one.pull(limit=MAX_WAITING)
    assert (len(rest.changes), rest.changes[-1], rest.more, MAX_WAITING) == (900, ("0", deleted), False, 1_000)
    one.put([(str(number), added) for number in range(MAX_WAITING + 1)])
    assert one.pull(limit=MAX_WAITING).more
    one.put((), problem="over")
    assert one.pull(timeout_s=LONG_S).problem == "over"


def test_stream_of_a_folder_that_is_not_trusted_is_refused_and_nobody_has_any_row(bench: Bench) -> None:
    refused = FolderStream(bench.stream.source, BaseFolder(str(bench.folder), "not trusted"), bench.workspace.sources)
    with pytest.raises(WorkspaceError, match=r"^not trusted$"):
        refused.subscribe()
    assert not refused.wait(0.0)
    assert bench.workspace.streams.rows(agent_id="nobody") == []


async def test_agent_lists_its_sources_and_streams_alone(bench: Bench) -> None:
    assert await bench.data("list") == [
        {"source_id": "docs", "type": "file"},
        {"source_id": "inbox", "type": "folder_changes"},
    ]
    assert await bench.data("status") == [
        {"source_id": "docs", "type": "file", "state": "idle"},
        {"source_id": "inbox", "type": "folder_changes", "state": "stopped", "subscribers": 0},
    ]
    assert await bench.data("list", "b") == [{"source_id": "docs", "type": "file"}]
    for op in ("status", "pause", "resume"):
        outcome = await bench.call(op, "b", source_id="inbox")
        assert (outcome.status, outcome.code) == (Status.FAILED, "no-source")
        assert outcome.output == "Tool execution failed: there is no source of that id"


async def test_agent_pauses_a_stream_and_a_source_of_files_only_says_what_it_does(bench: Bench) -> None:
    with bench.subscribed():
        assert (await bench.data("status", source_id="inbox"))["state"] == "running"
        assert (await bench.data("pause", source_id="inbox"))["state"] == "paused"
        assert bench.stream.state is StreamState.PAUSED
        assert (await bench.data("resume", source_id="inbox"))["state"] == "running"
    for op in ("pause", "resume"):
        assert await bench.data(op, source_id="docs") == {"source_id": "docs", "type": "file", "state": "idle"}


async def test_stream_is_no_source_of_files(bench: Bench) -> None:
    (bench.folder / "inbox" / "a.txt").write_text("x")
    outcome = await bench.workspace.call("a", "file", {"op": "read", "path": "a.txt", "source": "inbox"})
    assert outcome.status is Status.DENIED
    assert bench.workspace.selfcheck().differences == ()


def test_agent_with_a_stream_alone_has_no_tool_for_files(tmp_path: Path) -> None:
    bench = opened(
        tmp_path,
        POLICY.replace('sources = ["docs"]', 'sources = ["inbox"]').replace(
            'tools = ["source"]', 'tools = ["source", "file"]'
        ),
    )
    assert [tool["name"] for tool in bench.workspace.view("b").tools("mcp")] == ["source"]
    assert bench.workspace.selfcheck().differences == ()
    bench.workspace.close()


def test_stream_that_the_policy_drops_ends_and_its_reader_is_told(bench: Bench) -> None:
    with bench.subscribed() as one:
        text = (bench.folder / "policy.toml").read_text()
        (bench.folder / "policy.toml").write_text(text[: text.rindex("[[sources]]\n")])
        bench.workspace.reload()
        assert one.pull(timeout_s=LONG_S).problem == "the stream is not attached any more"
        assert bench.workspace.streams.get("inbox") is None


@pytest.mark.parametrize(
    "key", ["watch = true", "max_file_bytes = 5", "follow_symlinks = false", "required_tools = []"]
)
def test_stream_has_no_key_that_is_about_texts(tmp_path: Path, key: str) -> None:
    with pytest.raises(PolicyInvalid) as caught:
        opened(tmp_path, POLICY.replace('type = "folder_changes"', f'type = "folder_changes"\n{key}'))
    (problem,) = caught.value.problems
    assert problem.code == "bad-value"
    assert "has no `" in problem.message


def test_other_edits_leave_the_text_of_a_stream_alone(bench: Bench) -> None:
    policy = bench.workspace.policy
    docs, inbox = policy.sources
    bench.workspace.apply(change_source(policy, "docs", replace(docs, source_id="papers")))
    bench.workspace.apply(set_default_level(bench.workspace.policy, "inbox", Permission.APPEND))
    bench.workspace.apply(set_default_level(bench.workspace.policy, "inbox", inbox.default_permission))
    bench.workspace.save()
    assert (bench.folder / "policy.toml").read_text() == POLICY.replace('"docs"', '"papers"').replace(
        'base_path = "papers"', 'base_path = "docs"'
    )
