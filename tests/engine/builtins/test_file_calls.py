"""The `file` tool through the whole gate of an open workspace, on real files: allowed, asked, denied, hidden."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.gate import Outcome, Status
from gatewright.memory.block_store import BlockStore
from gatewright.policy.verdict import Verdict
from tests.support.bench import OpenBench, code_of, data_of

OPERATIONS = (
    "append",
    "create",
    "delete",
    "diff",
    "insert",
    "list",
    "load",
    "patch",
    "read",
    "reload",
    "replace",
    "save",
    "status",
)
READING = {"diff", "list", "load", "read", "reload", "status"}
PATCH = "@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n"
GIVEN: dict[str, dict[str, Any]] = {
    "append": {"content": "x\n"},
    "insert": {"line": 1, "content": "x\n"},
    "replace": {"old": "one", "new": "1"},
    "patch": {"patch": PATCH},
    "create": {"content": "x\n"},
}

POLICY = """gatewright = 1

[agents.all]
tools = ["file"]
capabilities = ["AdvancedEdit"]

[agents.plain]
tools = ["file"]

[agents.few]
tools = ["file"]

[[agents.few.tool_rules]]
tool_name = "file"
rule_type = { AllowedOperations = ["read", "list"] }

[agents.notes]
tools = ["file"]

[[agents.notes.tool_rules]]
tool_name = "file"
rule_type = { ArgumentConstraints = { path = { pattern = "^mine/" } } }

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
permission_rules = [
  { pattern = "hidden/", permission = "none" },
  { pattern = "fixed/**", permission = "read_only" },
  { pattern = "log/**", permission = "append" },
  { pattern = "asked/**", permission = "human" },
  { pattern = "mine/keep/**", permission = "read_only" },
  { pattern = "mine/check/**", permission = "read_write" },
  { pattern = "mine/", permission = "admin" },
]
"""


class Bench(OpenBench):
    """An open workspace with a source of files."""

    @property
    def docs(self) -> Path:
        return self.folder / "docs"

    def write(self, name: str, text: str = "one\ntwo\n") -> Path:
        path = self.docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    async def call(self, op: str, agent: str = "all", **given: Any) -> Outcome:
        return await self.workspace.call(agent, "file", {"op": op, **given}, approver=self.answer)

    async def data(self, op: str, **given: Any) -> Any:
        return data_of(await self.call(op, **given))

    async def code(self, op: str, **given: Any) -> str:
        return code_of(await self.call(op, **given))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench.at(tmp_path, POLICY, "docs")
    yield made
    made.workspace.close()


def shown(bench: Bench, agent: str) -> list[str]:
    (tool,) = bench.workspace.view(agent).tools("mcp")
    schema: Any = tool["inputSchema"]
    return sorted(schema["properties"]["op"]["enum"])


def place(op: str, folder: str = "") -> str:
    return f"{folder}{'new' if op == 'create' else 'a'}.md"


async def prepared(bench: Bench, op: str, folder: str = "") -> dict[str, Any]:
    """What the operation needs: a file, and a block where it works on one that is there."""
    path = place(op, folder)
    if op != "create":
        bench.write(path)
    if op in {"save", "diff", "reload"}:
        await bench.workspace.sources.load(located(bench, path))
    return {"path": folder or "." if op == "list" else path, **GIVEN.get(op, {})}


def located(bench: Bench, path: str) -> Any:
    return bench.workspace.sources.locate(path, source_id="docs", allowed=("docs",))


def test_preview_lists_every_operation_and_without_the_capability_all_but_the_hunks(bench: Bench) -> None:
    assert shown(bench, "all") == list(OPERATIONS)
    assert shown(bench, "plain") == [name for name in OPERATIONS if name != "patch"]
    assert shown(bench, "few") == ["list", "read"]
    checked = bench.workspace.selfcheck(("all", "plain", "few"))
    assert (checked.differences, checked.no_witness) == ((), ())


@pytest.mark.parametrize("op", OPERATIONS)
async def test_every_operation_runs_where_the_level_lets_it(bench: Bench, op: str) -> None:
    given = await prepared(bench, op)

    outcome = await bench.call(op, **given)

    assert outcome.status is Status.ALLOWED, (outcome.code, outcome.output)
    assert json.loads(outcome.data or b"")["success"] is True
    assert len(bench.asked) == (op == "delete")


@pytest.mark.parametrize("op", OPERATIONS)
async def test_every_operation_that_is_hidden_is_denied_without_a_word_of_it(bench: Bench, op: str) -> None:
    given = await prepared(bench, op)

    outcome = await bench.call(op, "few", **given)

    if op in {"read", "list"}:
        assert outcome.status is Status.ALLOWED
        return
    assert (outcome.status, outcome.decision.stage) == (Status.DENIED, "operation")
    assert f"`{op}`" not in outcome.output
    assert outcome.decision.rule is not None


@pytest.mark.parametrize("op", OPERATIONS)
async def test_every_operation_on_a_read_only_place_only_reads(bench: Bench, op: str) -> None:
    given = await prepared(bench, op, "fixed/")

    outcome = await bench.call(op, **given)

    if op in READING:
        assert outcome.status is Status.ALLOWED, outcome.output
    else:
        assert (outcome.status, outcome.decision.stage) == (Status.DENIED, "permission")
        assert (bench.docs / "fixed/a.md").exists() == (op != "create")


@pytest.mark.parametrize("op", OPERATIONS)
async def test_every_operation_on_a_place_without_level_fares_as_if_it_were_not_there(bench: Bench, op: str) -> None:
    bench.write("hidden/a.md", "secret\n")

    outcome = await bench.call(op, **{"path": place(op, "hidden/"), **GIVEN.get(op, {})})

    assert (outcome.status, outcome.code) == (Status.DENIED, "level-none")
    assert "secret" not in outcome.output


@pytest.mark.parametrize("op", sorted(set(OPERATIONS) - READING))
async def test_every_writing_operation_asks_where_the_level_asks_and_a_refusal_changes_nothing(
    bench: Bench, op: str
) -> None:
    given = await prepared(bench, op, "asked/")
    bench.approves = False

    outcome = await bench.call(op, **given)

    assert outcome.status is Status.DENIED
    assert len(bench.asked) == 1
    assert (bench.docs / "asked/a.md").exists() == (op != "create")
    loaded = await bench.data("status", path=".")
    assert all(row["state"] == "synced" for row in loaded["files"])


@pytest.mark.parametrize(
    ("op", "status"),
    [("append", Status.ALLOWED), ("insert", Status.DENIED), ("replace", Status.DENIED), ("patch", Status.DENIED)],
)
async def test_place_that_only_grows_takes_additions_alone(bench: Bench, op: str, status: Status) -> None:
    given = await prepared(bench, op, "log/")

    assert (await bench.call(op, **given)).status is status


async def test_lines_and_hunks_go_to_the_block_and_reach_the_disk_by_save(bench: Bench) -> None:
    path = bench.write("a.md")

    await bench.data("insert", path="a.md", line=2, content="between")
    await bench.data("insert", path="a.md", line=4, content="last")
    await bench.data("patch", path="a.md", patch="@@ -1,2 +1,2 @@\n-one\n+ONE\n between\n")

    assert path.read_text() == "one\ntwo\n"
    state = await bench.data("status", path="a.md")
    assert (state["state"], state["unsaved"]) == ("block_modified", True)
    told = await bench.data("diff", path="a.md")
    assert "-one\n+ONE\n+between\n two\n+last" in told["diff"]
    await bench.data("save", path="a.md")
    assert path.read_text() == "ONE\nbetween\ntwo\nlast"
    assert (await bench.data("diff", path="a.md"))["diff"] == ""
    assert bench.asked == []


@pytest.mark.parametrize(
    ("op", "given", "code"),
    [
        ("insert", {"line": 9, "content": "x"}, "no-line"),
        ("insert", {"line": 0, "content": "x"}, "schema-mismatch"),
        ("patch", {"patch": "@@ -1 +1 @@\n-other\n+x\n"}, "patch-mismatch"),
        ("patch", {"patch": "no hunks at all"}, "bad-patch"),
        ("diff", {}, "no-block"),
        ("reload", {}, "no-block"),
    ],
)
async def test_edit_that_does_not_fit_fails_and_leaves_no_block(
    bench: Bench, op: str, given: dict[str, Any], code: str
) -> None:
    bench.write("a.md")

    assert await bench.code(op, path="a.md", **given) == code
    assert (await bench.data("status", path="."))["files"] == []


@pytest.mark.parametrize("op", ["load", "reload"])
async def test_taking_the_disk_asks_only_where_edits_would_be_lost(bench: Bench, op: str) -> None:
    bench.write("a.md")
    await bench.data("load", path="a.md")
    await bench.data(op, path="a.md")
    assert bench.asked == []
    await bench.data("append", path="a.md", content="mine\n")
    bench.approves = False

    assert (await bench.call(op, path="a.md")).status is Status.DENIED
    assert (await bench.data("read", path="a.md"))["content"] == "one\ntwo\nmine\n"
    bench.approves = True
    await bench.data(op, path="a.md")

    assert len(bench.asked) == 2
    assert (await bench.data("read", path="a.md"))["content"] == "one\ntwo\n"


@pytest.mark.parametrize(
    ("op", "given"),
    [
        ("load", {}),
        ("reload", {}),
        ("save", {}),
        ("append", {"content": "x\n"}),
        ("replace", {"old": "one", "new": "1"}),
        ("insert", {"line": 1, "content": "x\n"}),
        ("patch", {"patch": PATCH}),
    ],
)
async def test_what_came_after_the_answer_is_not_covered_by_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, op: str, given: dict[str, Any]
) -> None:
    bench.write("asked/a.md")
    source = bench.workspace.sources.get("docs")
    assert source is not None
    source.append("asked/a.md", "shown\n")
    exclusive = BlockStore.exclusive

    def edited_meanwhile(store: BlockStore) -> AbstractContextManager[None]:
        monkeypatch.setattr(BlockStore, "exclusive", exclusive)
        source.append("asked/a.md", "unseen\n")
        return exclusive(store)

    monkeypatch.setattr(BlockStore, "exclusive", edited_meanwhile)
    assert await bench.code(op, path="asked/a.md", **given) == "approval-stale"
    assert len(bench.asked) == 1
    assert source.read("asked/a.md").content == "one\ntwo\nshown\nunseen\n"
    assert (bench.docs / "asked" / "a.md").read_text() == "one\ntwo\n"

    await bench.data(op, path="asked/a.md", **given)
    assert ("unseen" in (bench.asked[1].diff or "")) == (op != "insert")


@pytest.mark.parametrize(
    ("op", "given", "code"),
    [
        ("append", {"path": "asked/none.md", "content": "x"}, "not-found"),
        ("replace", {"path": "asked/none.md", "old": "one", "new": "1"}, "not-found"),
        ("replace", {"old": "nine", "new": "9"}, "no-match"),
        ("replace", {"old": "o", "new": "0"}, "many-matches"),
        ("insert", {"line": 9, "content": "x"}, "no-line"),
        ("patch", {"patch": "@@ -1 +1 @@\n-other\n+x\n"}, "patch-mismatch"),
        ("append", {"content": "x" * 2_000_000}, "too-large"),
        ("create", {"content": "x"}, "exists"),
        ("create", {"path": "asked/none.md", "content": "x" * 2_000_000}, "too-large"),
        ("delete", {"path": "asked/none.md"}, "not-found"),
        ("save", {}, "no-block"),
    ],
)
async def test_nobody_is_asked_about_what_cannot_be_done(
    bench: Bench, op: str, given: dict[str, Any], code: str
) -> None:
    bench.write("asked/a.md")
    given = {"path": "asked/a.md", **given}
    decision = bench.workspace.decide("all", "file", {"op": op, **given})

    assert (decision.verdict, decision.stage, decision.code) == ("deny", "approval", code)
    assert await bench.code(op, **given) == code
    assert bench.asked == []
    assert bench.workspace.gate.change("all", "file", {"op": op, **given}) is None


async def test_nobody_is_asked_to_write_over_what_was_changed_on_disk(bench: Bench) -> None:
    path = bench.write("asked/a.md")
    source = bench.workspace.sources.get("docs")
    assert source is not None
    source.append("asked/a.md", "x\n")
    path.write_text("other\n")

    outcome = await bench.call("save", path="asked/a.md")
    assert (outcome.code, "use file load to refresh" in outcome.output, bench.asked) == ("conflict", True, [])


@pytest.mark.parametrize("level", ["", "asked/"])
async def test_file_deleted_on_disk_under_edits_is_written_again_when_somebody_agrees(bench: Bench, level: str) -> None:
    name = f"{level}a.md"
    path = bench.write(name)
    source = bench.workspace.sources.get("docs")
    assert source is not None
    source.append(name, "mine\n")
    path.unlink()

    assert (await bench.data("status", path=name))["state"] == "disk_deleted"
    for op in ("load", "reload"):
        outcome = await bench.call(op, path=name)
        assert (outcome.code, "only its block is left" in outcome.output) == ("not-found", True)
    assert bench.asked == []
    bench.approves = False
    assert (await bench.call("save", path=name)).status is Status.DENIED
    assert not path.exists()
    bench.approves = True
    await bench.data("save", path=name)

    assert path.read_text() == "one\ntwo\nmine\n"
    assert "deleted on disk" in bench.asked[0].reasons[-1]
    assert "+mine" in (bench.asked[0].diff or "")
    assert (await bench.data("status", path=name))["state"] == "synced"


async def test_file_deleted_while_nobody_was_asked_about_that_is_not_written_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bench.write("a.md")
    await bench.data("append", path="a.md", content="mine\n")
    exclusive = BlockStore.exclusive

    def deleted_meanwhile(store: BlockStore) -> AbstractContextManager[None]:
        path.unlink()
        return exclusive(store)

    monkeypatch.setattr(BlockStore, "exclusive", deleted_meanwhile)
    assert await bench.code("save", path="a.md") == "not-granted"
    assert (path.exists(), bench.asked) == (False, [])


async def test_whoever_is_asked_about_lines_and_hunks_sees_the_change(bench: Bench) -> None:
    bench.write("asked/a.md")

    await bench.data("insert", path="asked/a.md", line=1, content="zero\n")
    await bench.data("patch", path="asked/a.md", patch="@@ -1,2 +1,2 @@\n zero\n-one\n+ONE\n")

    assert [("+zero" in (r.diff or ""), "-one\n+ONE" in (r.diff or "")) for r in bench.asked] == [
        (True, False),
        (False, True),
    ]


async def test_list_finds_below_by_pattern_up_to_a_limit_and_never_what_has_no_level(bench: Bench) -> None:
    for name in ("a.md", "b.txt", "sub/c.md", "sub/deep/d.md", "hidden/e.md"):
        bench.write(name)

    def names(data: Any) -> list[str]:
        return [row.get("path") or row.get("name") or row["kind"] for row in data["entries"]]

    assert names(await bench.data("list")) == ["sub", "a.md", "b.txt"]
    assert names(await bench.data("list", recursive=True, pattern="*.md")) == ["a.md", "sub/c.md", "sub/deep/d.md"]
    assert names(await bench.data("list", pattern="*.md")) == ["a.md"]
    assert names(await bench.data("list", path="sub", recursive=True)) == ["sub/c.md", "sub/deep", "sub/deep/d.md"]
    assert names(await bench.data("list", recursive=True, limit=2)) == ["a.md", "b.txt", "more"]
    assert names(await bench.data("list", limit=1)) == ["sub", "more"]
    assert names(await bench.data("list", path="sub", recursive=True, pattern="/deep/**")) == ["sub/deep/d.md"]
    assert await bench.code("list", recursive=True, pattern="!a") == "bad-pattern"


async def test_folder_goes_only_when_asked_for_as_a_whole_and_never_the_base(bench: Bench) -> None:
    bench.write("sub/a.md")
    bench.write("sub/deep/b.md")

    assert await bench.code("delete", path="sub") == "is-a-folder"
    assert await bench.code("delete", path=".", recursive=True) == "is-a-folder"
    gone = await bench.data("delete", path="sub", recursive=True)

    assert (gone["files"], gone["folders"]) == (2, 2)
    assert not (bench.docs / "sub").exists()
    assert "-sub/deep/b.md" in (bench.asked[-1].diff or "")


async def test_folder_with_a_file_that_may_not_go_is_denied_and_stays_whole(bench: Bench) -> None:
    bench.write("mine/a.md")
    bench.write("mine/keep/b.md")

    decision = bench.workspace.decide("all", "file", {"op": "delete", "path": "mine", "recursive": True})
    assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "permission", "not-permitted")
    assert await bench.code("delete", path="mine", recursive=True) == "not-permitted"
    assert (bench.docs / "mine/a.md").exists()
    assert bench.asked == []


async def test_folder_with_files_that_ask_goes_when_somebody_agreed(bench: Bench) -> None:
    bench.write("mine/a.md")
    bench.write("mine/check/b.md")
    bench.approves = False
    assert (await bench.call("delete", path="mine", recursive=True)).status is Status.DENIED
    assert (bench.docs / "mine/check/b.md").exists()
    bench.approves = True

    await bench.data("delete", path="mine", recursive=True)

    assert len(bench.asked) == 2
    assert not (bench.docs / "mine").exists()


async def test_folder_of_which_nothing_asks_goes_at_once(bench: Bench) -> None:
    bench.write("mine/a.md")

    await bench.data("delete", path="mine", recursive=True)

    assert bench.asked == []
    assert not (bench.docs / "mine").exists()


@pytest.mark.parametrize("op", OPERATIONS)
async def test_no_operation_leaves_the_base(bench: Bench, op: str) -> None:
    (bench.workspace.folder / "a.md").write_text("outside\n")

    outcome = await bench.call(op, **{"path": "../a.md", **GIVEN.get(op, {})})

    assert (outcome.status, outcome.decision.stage) == (Status.DENIED, "arguments")
    assert (bench.workspace.folder / "a.md").read_text() == "outside\n"


async def test_operator_brings_a_conflict_into_step_by_a_strategy(bench: Bench) -> None:
    path = bench.write("a.md", "one\ntwo\nthree\nfour\nfive\n")
    await bench.data("replace", path="a.md", old="one", new="ONE")
    path.write_text("one\ntwo\nthree\nfour\nFIVE\n")
    assert await bench.code("save", path="a.md") == "conflict"

    told: Any = await bench.workspace.reconcile("docs", "a.md")
    merged: Any = await bench.workspace.reconcile("docs", "a.md", "merge")

    assert (told["state"], told["outcome"], merged["outcome"]) == ("conflict", "conflict", "merged")
    await bench.data("save", path="a.md")
    assert path.read_text() == "ONE\ntwo\nthree\nfour\nFIVE\n"


@pytest.mark.parametrize(
    ("source", "path", "strategy", "words"),
    [
        ("docs", "a.md", "best", "none of the strategies"),
        ("docs", "a.md", "ours", "no block"),
        ("docs", "../a.md", "ours", "leads above the base"),
        ("other", "a.md", "ours", "other"),
        ("docs", "hidden/a.md", "ours", "not available"),
    ],
)
async def test_operator_is_told_why_nothing_can_be_reconciled(
    bench: Bench, source: str, path: str, strategy: str, words: str
) -> None:
    bench.write("a.md")
    bench.write("hidden/a.md")

    with pytest.raises(WorkspaceError, match=words):
        await bench.workspace.reconcile(source, path, strategy)


async def test_what_a_constraint_says_of_paths_holds_for_a_label_too(bench: Bench) -> None:
    for path in ("a.md", "mine/a.md"):
        bench.write(path)
        await bench.data("append", path=path, content="x\n")
    source = bench.workspace.sources.get("docs")
    assert source is not None
    outcome = await bench.call("save", "notes", label=source.label("a.md"))
    assert (outcome.status, outcome.decision.stage) == (Status.DENIED, "rules")
    assert (bench.docs / "a.md").read_text() == "one\ntwo\n"
    assert (await bench.call("save", "notes", label=source.label("mine/a.md"))).status is Status.ALLOWED


async def test_a_question_says_the_operation_as_the_decision_does(bench: Bench) -> None:
    given = {"op": "create", "path": "asked/new.md", "content": "x\n"}
    decision = bench.workspace.decide("all", "file", given)
    assert "asks before `create`" in decision.reason
    await bench.call(**given)
    assert bench.asked[0].reasons == (decision.reason,)
