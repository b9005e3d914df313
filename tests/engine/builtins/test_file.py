"""The `file` tool over a source of real files. What sources do with them in all is their own tests' business."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.builtins import file_tool
from gatewright.memory.block_store import BlockStore
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.rule import ContinueLoop
from gatewright.policy.verdict import Action, Permission, SafetyTier
from gatewright.tools.context import Ports, ToolExecutionContext
from gatewright.tools.parameter import Role
from tests.engine.sources.bench import Bench, make_bench, source_of

TOOL = file_tool()
FILES = {"notes/a.md": "one\n", "notes/b.md": "two\n", "secret.md": "hush\n"}
PATCH = "@@ -1 +1 @@\n-one\n+ONE\n"


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Bench]:
    """A source ``docs`` with three files, one of them of level none."""
    with BlockStore(tmp_path / "blocks.sqlite") as blocks:
        made = make_bench(tmp_path / "docs", blocks)
        for name, text in FILES.items():
            made.write(name, text)
        made.start(source_of(rules=(("secret.md", Permission.NONE),)), made.folder)
        yield made


def context(files: Bench | None, granted: Action | None = None) -> ToolExecutionContext:
    ports = Ports(files.manager if files is not None else None)
    return ToolExecutionContext("archivist", "s-1", source_ids=("docs",), granted=granted, ports=ports)


async def run(files: Bench | None, operation: str, granted: Action | None = None, **arguments: Any) -> Any:
    return cast("Any", await TOOL.execute(operation, {"op": operation, **arguments}, context(files, granted)))


def label_of(files: Bench, path: str) -> str:
    return files.manager.label_of(files.at(path))


def disk(files: Bench) -> dict[str, str]:
    return {str(one.relative_to(files.folder)): one.read_text() for one in files.folder.rglob("*.md")}


async def test_read_gives_the_disk_until_there_is_a_block(files: Bench) -> None:
    before = await run(files, "read", path="notes/a.md")
    await run(files, "append", path="notes/a.md", content="more\n")
    after = await run(files, "read", path="notes/a.md")

    assert before["success"] is True
    assert before["data"] == {
        "path": "notes/a.md",
        "source": "docs",
        "content": "one\n",
        "origin": "disk",
        "unsaved": False,
    }
    assert (after["data"]["content"], after["data"]["origin"], after["data"]["unsaved"]) == (
        "one\nmore\n",
        "block",
        True,
    )


async def test_list_without_path_shows_the_base_and_leaves_out_level_none(files: Bench) -> None:
    result = await run(files, "list")

    assert [entry["name"] for entry in result["data"]["entries"]] == ["notes"]
    assert result["data"]["path"] == "."
    assert result["message"] == "1 entry in `.`"


async def test_list_of_a_folder_shows_what_is_in_it(files: Bench) -> None:
    result = await run(files, "list", path="notes")

    assert [entry["name"] for entry in result["data"]["entries"]] == ["a.md", "b.md"]


async def test_edits_reach_the_disk_by_save_alone(files: Bench) -> None:
    await run(files, "replace", path="notes/a.md", old="one", new="1")
    assert disk(files)["notes/a.md"] == "one\n"

    await run(files, "save", Action.OVERWRITE, path="notes/a.md")
    assert disk(files)["notes/a.md"] == "1\n"


async def test_save_takes_the_label_in_place_of_the_path(files: Bench) -> None:
    await run(files, "append", path="notes/a.md", content="x")

    result = await run(files, "save", Action.APPEND, label=label_of(files, "notes/a.md"))

    assert disk(files)["notes/a.md"] == "one\nx"
    assert result["data"] == {"label": label_of(files, "notes/a.md"), "lines": 2, "size": 5, "unsaved": False}


async def test_save_never_does_more_than_was_granted(files: Bench) -> None:
    await run(files, "replace", path="notes/a.md", old="one", new="1")

    with pytest.raises(ToolFailure, match="only more text at its end was granted"):
        await run(files, "save", Action.APPEND, path="notes/a.md")
    with pytest.raises(ToolFailure, match="not granted"):
        await run(files, "save", None, path="notes/a.md")
    assert disk(files)["notes/a.md"] == "one\n"


async def test_create_makes_an_empty_file_when_no_content_is_given(files: Bench) -> None:
    await run(files, "create", path="new.md")

    assert disk(files)["new.md"] == ""


async def test_create_does_not_overwrite(files: Bench) -> None:
    with pytest.raises(ToolFailure, match="never overwritten"):
        await run(files, "create", path="notes/a.md", content="other")
    assert disk(files)["notes/a.md"] == "one\n"


async def test_delete_removes_the_file_when_somebody_agreed_to_the_call(files: Bench) -> None:
    arguments = {"op": "delete", "path": "notes/a.md"}

    with pytest.raises(ToolFailure):
        await TOOL.execute("delete", arguments, context(files))
    assert "notes/a.md" in disk(files)
    await TOOL.execute("delete", arguments, replace(context(files), approved=True))

    assert "notes/a.md" not in disk(files)


async def test_load_takes_the_disk_into_the_block(files: Bench) -> None:
    await run(files, "append", path="notes/a.md", content="unsaved")
    agreed = replace(context(files), agreed=True, approved=True)

    with pytest.raises(ToolFailure, match="would be lost"):
        await run(files, "load", path="notes/a.md")
    result = cast("Any", await TOOL.execute("load", {"op": "load", "path": "notes/a.md"}, agreed))

    assert (await run(files, "status", path="notes/a.md"))["data"]["state"] == "synced"
    assert result["data"]["lines"] == 1


@pytest.mark.parametrize("operation", ["read", "load", "delete", "list"])
async def test_path_outside_the_base_is_refused_with_the_safe_hint(files: Bench, operation: str) -> None:
    with pytest.raises(ToolFailure, match=r"^give a path inside the source, relative to its top folder$") as refused:
        await run(files, operation, path="../etc/passwd")

    assert refused.value.code == "outside-base"


async def test_source_of_another_agent_is_refused(files: Bench) -> None:
    files.start(source_of("private"), files.folder / "notes")

    with pytest.raises(ToolFailure, match="there is no such source"):
        await run(files, "read", path="a.md", source="private")


async def test_label_of_another_source_than_the_one_named_is_refused(files: Bench) -> None:
    files.start(source_of("more"), files.folder / "notes")
    both = replace(context(files, Action.APPEND), source_ids=("docs", "more"))

    with pytest.raises(ToolFailure, match="the label belongs to another source"):
        await TOOL.execute("save", {"op": "save", "label": label_of(files, "secret.md"), "source": "more"}, both)


async def test_call_without_any_source_says_so() -> None:
    with pytest.raises(ToolFailure, match="no file source is attached"):
        await run(None, "read", path="a.md")


async def test_empty_old_text_is_refused_by_the_tool_as_by_its_schema(files: Bench) -> None:
    with pytest.raises(ToolFailure, match="`old`: string should have at least 1 character"):
        await run(files, "replace", path="notes/a.md", old="", new="x")


@pytest.mark.parametrize(
    ("operation", "arguments", "action"),
    [
        ("read", {"path": "notes/a.md"}, Action.READ),
        ("list", {}, Action.READ),
        ("load", {"path": "notes/a.md"}, Action.READ),
        ("append", {"path": "notes/a.md", "content": "x"}, Action.APPEND),
        ("create", {"path": "c.md"}, Action.APPEND),
        ("replace", {"path": "notes/a.md", "old": "one", "new": "1"}, Action.OVERWRITE),
        ("delete", {"path": "notes/a.md"}, Action.DELETE),
        ("insert", {"path": "notes/a.md", "line": 1, "content": "x\n"}, Action.OVERWRITE),
        ("patch", {"path": "notes/a.md", "patch": PATCH}, Action.OVERWRITE),
        ("status", {}, Action.READ),
        ("diff", {"path": "notes/a.md"}, Action.READ),
        ("reload", {"path": "notes/a.md"}, Action.READ),
    ],
)
def test_each_operation_is_assessed_as_its_action(
    files: Bench, operation: str, arguments: dict[str, Any], action: Action
) -> None:
    assert TOOL.assess(operation, arguments, context(files)).action is action


async def test_save_is_an_append_only_while_it_extends_the_file(files: Bench) -> None:
    await run(files, "append", path="notes/a.md", content="more\n")
    extending = TOOL.assess("save", {"path": "notes/a.md"}, context(files))
    await run(files, "replace", path="notes/a.md", old="one", new="1")
    changing = TOOL.assess("save", {"label": label_of(files, "notes/a.md")}, context(files))

    assert (extending.action, changing.action) == (Action.APPEND, Action.OVERWRITE)
    assert "+more" in (extending.diff or "")
    assert "-one" in (changing.diff or "")


@pytest.mark.parametrize("operation", ["load", "reload"])
async def test_taking_the_disk_asks_before_unsaved_edits_are_lost(files: Bench, operation: str) -> None:
    before = TOOL.assess(operation, {"path": "notes/a.md"}, context(files))
    await run(files, "append", path="notes/a.md", content="x")
    after = TOOL.assess(operation, {"path": "notes/a.md"}, context(files))

    assert (before.ask, after.ask) == (None, "edits that were not written to disk would be thrown away")


def test_what_is_known_of_every_call_of_an_operation_is_what_each_call_is_assessed_as(files: Bench) -> None:
    known = {spec.name: found for spec in TOOL.operations if (found := TOOL.assessment_of(spec.name)) is not None}

    assert known.keys() == {spec.name for spec in TOOL.operations} - set(TOOL.assessed or ())
    assert {"read", "list", "status", "diff"} <= known.keys()
    for operation, assessment in known.items():
        for path in ("notes/a.md", "notes", "no/such.md", "../secret.md"):
            assert TOOL.assess(operation, {"op": operation, "path": path}, context(files)) == assessment


def test_assessment_shows_the_text_that_would_be_written(files: Bench) -> None:
    created = TOOL.assess("create", {"path": "c.md", "content": "fresh"}, context(files))
    appended = TOOL.assess("append", {"path": "notes/a.md", "content": "x\ny"}, context(files))
    replaced = TOOL.assess("replace", {"path": "notes/a.md", "old": "one", "new": "1\n2"}, context(files))

    assert "+fresh" in (created.change() or "")
    assert (appended.change() or "").endswith(" one\n+x\n+y\n\\ No newline at end of file\n")
    assert "-one\n+1\n+2" in (replaced.change() or "")


def test_assessment_of_lines_and_hunks_shows_the_whole_change_or_says_why_there_is_none(files: Bench) -> None:
    def change(operation: str, **arguments: Any) -> str:
        return TOOL.assess(operation, {"path": "notes/a.md", **arguments}, context(files)).change() or ""

    assert change("insert", line=1, content="zero").endswith("+zero\n one\n")
    with pytest.raises(ToolFailure, match="no line 9"):
        change("insert", line=9, content="zero")
    assert "-one\n+ONE" in change("patch", patch=PATCH)
    with pytest.raises(ToolFailure):
        change("patch", patch="@@ -1 +1 @@\n-other\n+ONE\n")


async def test_assessment_changes_nothing(files: Bench) -> None:
    for operation, arguments in {"append": {"content": "x"}, "delete": {}, "create": {"content": "x"}}.items():
        TOOL.assess(operation, {"path": "notes/a.md", **arguments}, context(files))

    assert disk(files) == FILES
    assert (await run(files, "status"))["data"]["files"] == []


def test_facts_carry_tiers_actions_and_the_need_of_a_source() -> None:
    facts = TOOL.facts()
    read_only = {row.name for row in facts.operations if row.tier is SafetyTier.READ_ONLY}

    assert read_only == {"read", "list", "status", "diff"}
    assert {row.name: set(row.capabilities) for row in facts.operations if row.capabilities} == {
        "patch": {CapabilityKind.ADVANCED_EDIT}
    }
    assert {row.tier for row in facts.operations if row.name not in read_only} == {SafetyTier.SIDE_EFFECTING}
    assert next(row.actions for row in facts.operations if row.name == "save") == (Action.APPEND, Action.OVERWRITE)
    assert facts.needs_source
    assert (facts.name, facts.major, facts.tier) == ("file", 1, SafetyTier.SIDE_EFFECTING)
    assert [type(rule.rule_type) for rule in TOOL.tool_rules] == [ContinueLoop]


def test_roles_tell_the_gate_what_is_a_path_a_label_a_source() -> None:
    roles = {parameter.name: parameter.role for parameter in TOOL.parameters("save")}

    assert roles == {"path": Role.PATH, "label": Role.LABEL, "source": Role.SOURCE}


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ({"path": "a"}, []),
        ({"label": "file:0:a"}, []),
        ({}, ["`save` needs `path` or `label`"]),
        ({"path": "a", "label": "b"}, ["`save` takes `path` or `label`, only one of them"]),
        ({"path": "a", "content": "b"}, ["`save` does not take this argument"]),
    ],
)
def test_save_takes_exactly_one_of_path_and_label(arguments: dict[str, str], messages: list[str]) -> None:
    issues = TOOL.missing_arguments("save", {"op": "save", **arguments})

    assert [issue.message for issue in issues] == messages


def test_missing_argument_is_named_with_its_pointer() -> None:
    issues = TOOL.missing_arguments("append", {"op": "append", "path": "a"})

    assert [(issue.pointer, issue.message) for issue in issues] == [("/content", "`append` needs `content`")]
