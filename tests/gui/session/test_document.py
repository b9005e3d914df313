import asyncio
import os
import shutil
from pathlib import Path

from gatewright.policy.verdict import Verdict
from gatewright_gui.session.exporting import ExportKind, export_outlook
from gatewright_gui.session.verbs import agents, rights, sources
from gatewright_gui.session.verbs import file as files
from gatewright_gui.session.watch import PolicyWatch
from tests.gui.session.opened import Said, broken, demo, opened_document, until


async def test_an_edit_changes_rights_and_makes_the_document_dirty(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        dirty: list[object] = []
        changes: list[object] = []
        document.dirty_changed.connect(dirty.append)
        document.policy_changed.connect(changes.append)

        assert rights.tick_operations(document, "archivist", "file", ["save"], on=False)

        assert "save" not in document.rights("archivist")["file"].shown
        assert dirty == [True]
        assert getattr(changes[0], "agents", None) == frozenset({"archivist"})
        assert document.undo_stack.undoText() == "turn off save of file for archivist"


async def test_undo_gives_back_the_text_byte_for_byte(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    before = policy.read_bytes()
    async with opened_document(policy) as document:
        rights.tick_operations(document, "archivist", "file", ["save"], on=False)
        agents.remove_agent(document, "newcomer")
        document.undo()
        document.undo()

        assert not document.is_dirty
        assert document.workspace.text().encode() == before
        document.redo()
        assert document.is_dirty


async def test_refused_edit_is_said_and_never_reaches_the_undo_stack(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        said = Said(document)

        assert not agents.rename_agent(document, "archivist", "operator")
        assert not agents.rename_agent(document, "archivist", "two words")

        assert document.undo_stack.count() == 0
        assert said.messages[0].tone == "warning"
        assert "exists already" in said.messages[0].text
        assert "two words" in said.last


async def test_edit_that_changes_nothing_is_not_pushed(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        assert not rights.tick_operations(document, "archivist", "file", ["read"], on=True)
        assert document.undo_stack.count() == 0


async def test_bad_pattern_is_refused(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        said = Said(document)
        rule = document.policy.sources[0].permission_rules[0]

        assert not sources.set_rule(document, document.policy.sources[0], rule, type(rule)("!x", rule.permission))

        assert document.undo_stack.count() == 0
        assert said.messages


async def test_save_touches_only_the_lines_of_the_edit(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    before = policy.read_text("utf-8").splitlines()
    async with opened_document(policy) as document:
        saved: list[object] = []
        document.saved.connect(saved.append)
        rights.tick_operations(document, "archivist", "file", ["save"], on=False)

        assert await files.save(document)

        after = policy.read_text("utf-8").splitlines()
        assert [a for a, b in zip(before, after, strict=True) if a != b] == [
            'rule_type = { AllowedOperations = ["read", "list", "load", "save", "append", "replace", "create"] }'
        ]
        assert saved == [policy]
        assert not document.is_dirty


async def test_save_over_an_outside_change_is_refused_and_the_edit_is_kept(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    async with opened_document(policy) as document:
        refused: list[bool] = []
        document.save_refused.connect(lambda: refused.append(True))
        rights.tick_operations(document, "archivist", "file", ["save"], on=False)
        policy.write_text(policy.read_text("utf-8") + "# from outside\n", "utf-8")

        assert not await files.save(document)

        assert refused
        assert document.is_dirty
        assert policy.read_text("utf-8").endswith("# from outside\n")
        assert await files.save(document, overwrite=True)
        assert not document.is_dirty
        assert policy.read_text("utf-8") == document.workspace.saved_text


async def test_policy_with_errors_is_a_failure_until_it_is_mended(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    good = broken(policy)
    async with opened_document(policy) as document:
        assert not document.is_open
        assert document.failure is not None
        assert "ContinuLoop" in document.failure.text
        assert {problem.place.line for problem in document.problems if problem.place} >= {20, 34}
        assert not agents.add_agent(document)

        policy.write_text(good, "utf-8")
        assert await files.reload(document)

        assert document.is_open
        assert document.failure is None
        assert not document.problems


async def test_missing_workspace_is_said_and_what_was_open_stays(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        said = Said(document)

        assert not await files.open_path(document, tmp_path / "nowhere")

        assert document.is_open
        assert said.messages[-1].tone == "error"
        assert "nowhere" in said.last


async def test_a_policy_whose_folder_is_gone_is_written_again(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    text = policy.read_text("utf-8")
    async with opened_document(policy) as document:
        shutil.rmtree(policy.parent)
        assert document.look_for_file()

        assert await document.save()

        assert policy.read_text("utf-8") == text
        assert not document.is_dirty


async def test_reload_with_errors_keeps_the_last_good_policy(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    async with opened_document(policy) as document:
        said = Said(document)
        broken(policy)

        assert not await files.reload(document)

        assert document.is_open
        assert "archivist" in document.policy.agents
        assert any(problem.is_error for problem in document.problems)
        assert document.alarm is not None
        assert "last good policy stays in force" in document.alarm.words
        assert said.messages == []


async def test_reload_drops_edits_and_the_undo_stack(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        agents.remove_agent(document, "newcomer")

        assert await files.reload(document)

        assert "newcomer" in document.policy.agents
        assert not document.undo_stack.canUndo()


async def test_a_file_replaced_from_outside_is_noticed(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    async with opened_document(policy) as document:
        watch = PolicyWatch(document)
        await document.open(policy)
        noticed: list[bool] = []
        document.changed_outside.connect(lambda: noticed.append(True))
        other = policy.with_suffix(".new")
        other.write_text(policy.read_text("utf-8") + "# more\n", "utf-8")
        os.replace(other, policy)  # noqa: PTH105 what editors do

        await until(lambda: bool(noticed))
        assert watch.parent() is document


async def test_own_save_is_no_outside_change(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        noticed: list[bool] = []
        document.changed_outside.connect(lambda: noticed.append(True))
        agents.remove_agent(document, "newcomer")
        await files.save(document)

        document.look_outside()

        assert not noticed


async def test_edits_are_refused_while_the_file_is_written(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        said = Said(document)
        agents.remove_agent(document, "newcomer")
        saving = asyncio.ensure_future(document.save())
        await asyncio.sleep(0)

        assert document.is_busy
        assert agents.add_agent(document) is None
        assert "try again" in said.last
        assert await saving


async def test_outlook_of_an_export_names_paths_that_mean_nothing_on_another_computer(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    server = '\n[[catalogs]]\nid = "s"\ntype = "mcp"\ncommand = "serve"\n'
    server += 'places = { "/opt/data" = "read", "../x" = "write" }\n'
    policy.write_text(policy.read_text("utf-8") + server, "utf-8")
    line = len(policy.read_text("utf-8").splitlines())
    async with opened_document(policy) as document:
        kinds: tuple[ExportKind, ...] = ("policy", "team")
        for kind in kinds:
            notes = export_outlook(document.workspace, tmp_path / kind, kind).notes
            assert notes[-1].endswith(f"mean nothing: `/opt/data` ({line}), `../x` ({line}).")


async def test_free_names_are_found_for_new_agents(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        assert agents.add_agent(document) == "agent"
        assert agents.add_agent(document) == "agent-2"
        assert agents.duplicate_agent(document, "archivist") == "archivist-copy"
        copied = document.rights("archivist-copy")["file"].shown
        assert copied == document.rights("archivist")["file"].shown
        assert document.rights("agent")["file"].operations[0].verdict is Verdict.DENY


async def test_policy_rules_and_capabilities_survive_an_edit_byte_by_byte(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    before = policy.read_text("utf-8")
    async with opened_document(policy) as document:
        assert document.policy.rules
        assert document.policy.agents["researcher"].capabilities
        rights.tick_operations(document, "archivist", "file", ["create"], on=False)
        assert await files.save(document)
        changed = [
            (a, b) for a, b in zip(before.splitlines(), policy.read_text("utf-8").splitlines(), strict=True) if a != b
        ]
        assert [old for old, _ in changed] == [
            'rule_type = { AllowedOperations = ["read", "list", "load", "save", "append", "replace", "create"] }'
        ]
