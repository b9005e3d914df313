import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.policy.rights import Preset
from gatewright.policy.verdict import pick_tools
from gatewright.tools.pin import Listing, Pin, accept, write_pin
from gatewright.workspace import Workspace
from gatewright_gui.pages.access.tools import right_lines
from gatewright_gui.session.argument import arguments_of
from gatewright_gui.session.call_paths import file_choices
from gatewright_gui.session.calls import callable_tools, restore_call
from gatewright_gui.session.derive import Deriver, WorkerLost
from gatewright_gui.session.document import Document
from gatewright_gui.session.filetext import file_text, lines_of
from gatewright_gui.session.operation_field import full_survey
from gatewright_gui.session.preview import Preview, compare_agent, preview, provider_formats, reception
from gatewright_gui.session.readings import readings
from gatewright_gui.session.right_columns import columns_of, visible_count
from gatewright_gui.session.selfcheck import check_count
from gatewright_gui.session.tokens import token_report
from gatewright_gui.session.verbs import agents, rights
from gatewright_gui.session.verbs.presets import PresetPlan, difference, plan_edit
from gatewright_gui.session.verbs.rights import Target, plan_cells, work_out
from gatewright_gui.session.worker import WorkerFault
from gatewright_gui.session.worker_process import WorkerProcess
from tests.gui.session.opened import demo, opened_document, until
from tests.support.checkout import ROOT
from tests.support.git_tools import LOG
from tests.support.patience import pause_until as wait_until
from tests.support.questions import end_process, fail, leave_file, loaded_modules, wait_for, wait_in_pieces


@pytest.fixture
async def document(tmp_path: Path) -> AsyncIterator[Document]:
    async with opened_document(demo(tmp_path)) as opened:
        yield opened


@pytest.fixture
async def deriver(document: Document) -> AsyncIterator[Deriver]:
    made = Deriver(document)
    yield made
    made.close()


async def under_way(begun: Path) -> None:
    """Until the worker process is at the question that leaves this file."""
    await until(begun.exists)


async def test_answer_to_an_older_policy_is_dropped(document: Document, deriver: Deriver, tmp_path: Path) -> None:
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    answer = asyncio.ensure_future(deriver.derive(wait_for, begun, go_on))
    await under_way(begun)
    agents.remove_agent(document, "newcomer")

    assert await answer is None
    go_on.touch()
    assert "newcomer" not in (await deriver.derive(Workspace.text) or "newcomer")


async def test_question_that_was_cancelled_in_the_queue_is_not_asked(deriver: Deriver, tmp_path: Path) -> None:
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    first = asyncio.ensure_future(deriver.derive(wait_for, begun, go_on))
    await under_way(begun)
    second = asyncio.ensure_future(deriver.derive(leave_file, tmp_path / "second"))
    await asyncio.sleep(0.05)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    await asyncio.sleep(0.2)  # what was said is with the worker, which is busy
    go_on.touch()

    assert await first == "Field notes"
    assert await deriver.derive(leave_file, tmp_path / "third") == "third"
    assert not (tmp_path / "second").exists()


async def test_what_takes_long_holds_up_no_other_question_and_says_how_far_it_is(
    deriver: Deriver, tmp_path: Path
) -> None:
    begun, go_on, told = tmp_path / "begun", tmp_path / "go-on", list[str]()
    long = asyncio.ensure_future(deriver.derive_in_pieces(wait_in_pieces, told.append, begun, go_on))
    await under_way(begun)

    assert await deriver.derive(leave_file, tmp_path / "second") == "second"
    await until(lambda: bool(told))
    assert not long.done()
    go_on.touch()
    assert await long == "Field notes"


async def test_worker_that_is_killed_is_started_again_and_asked_again(deriver: Deriver, tmp_path: Path) -> None:
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    answer = asyncio.ensure_future(deriver.derive(wait_for, begun, go_on))
    await under_way(begun)
    first = deriver.process_id
    os.kill(first, signal.SIGKILL)
    go_on.touch()

    assert await answer == "Field notes"
    assert deriver.process_id not in {0, first}


async def test_worker_that_ends_twice_over_a_question_is_a_problem_and_answers_the_next(deriver: Deriver) -> None:
    with pytest.raises(WorkerLost, match="ended twice"):
        await deriver.derive(end_process, 3)

    assert await deriver.derive(Workspace.text)


async def test_what_a_question_raises_comes_back_and_a_bug_with_its_trace(deriver: Deriver) -> None:
    with pytest.raises(WorkspaceError, match="stranger"):
        await deriver.derive(preview, "stranger", None, "mcp")
    with pytest.raises(WorkerFault, match="ZeroDivisionError: how odd") as told:
        await deriver.derive(fail, "how odd")
    assert "questions.py" in told.value.__notes__[0]


async def test_worker_answers_everything_that_pages_ask_without_loading_qt(
    document: Document, deriver: Deriver
) -> None:
    agent_id = "operator"
    plan = PresetPlan(Preset.NOTHING, (agent_id,))
    file_box = [Target("file", ("save", "delete"))]
    answers = [
        await deriver.derive(preview, agent_id, None, "openai"),
        await deriver.derive(compare_agent, agent_id, None, "mcp", "saved"),
        await deriver.derive(token_report, agent_id, "mcp"),
        await deriver.derive(reception, agent_id, None),
        await deriver.derive(callable_tools, agent_id),
        await deriver.derive(restore_call, agent_id, "openai", "file", "{}"),
        await deriver.derive(file_choices, agent_id, "sources"),
        await deriver.derive(columns_of, [agent_id]),
        await deriver.derive(visible_count, agent_id),
        await deriver.derive(difference, plan, agent_id, partial(right_lines.lines_of, room=10)),
        await deriver.derive(plan_edit, plan),
        await deriver.derive(work_out, agent_id, file_box, "deny"),
        await deriver.derive(plan_cells, {agent_id: file_box}, "deny"),
        await deriver.derive(readings),
        await deriver.derive(arguments_of, "file"),
        await deriver.derive(full_survey, "file"),
    ]
    assert None not in answers
    assert answers == [
        preview(document.workspace, agent_id, None, "openai"),
        compare_agent(document.workspace, agent_id, None, "mcp", "saved"),
        token_report(document.workspace, agent_id, "mcp"),
        reception(document.workspace, agent_id, None),
        callable_tools(document.workspace, agent_id),
        restore_call(document.workspace, agent_id, "openai", "file", "{}"),
        file_choices(document.workspace, agent_id, "sources"),
        columns_of(document.workspace, [agent_id]),
        visible_count(document.workspace, agent_id),
        difference(document.workspace, plan, agent_id, partial(right_lines.lines_of, room=10)),
        plan_edit(document.workspace, plan),
        work_out(document.workspace, agent_id, file_box, "deny"),
        plan_cells(document.workspace, {agent_id: file_box}, "deny"),
        readings(document.workspace),
        arguments_of(document.workspace, "file"),
        full_survey(document.workspace, "file"),
    ]
    modules = await deriver.derive(loaded_modules)
    assert modules is not None
    assert not {name for name in modules if name.split(".")[0] in {"PySide6", "shiboken6", "qasync"}}


async def test_worker_ends_when_it_is_closed(document: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewright_gui.session.derive.WorkerProcess", WorkerProcess)
    deriver = Deriver(document)
    assert await deriver.derive(Workspace.text)
    process_id = deriver.process_id
    assert Path(f"/proc/{process_id}").exists()

    deriver.close()
    assert not Path(f"/proc/{process_id}").exists()


async def test_self_contained_program_is_its_own_worker(
    document: Document, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "gatewright"  # as the bundle has it, the modules from here
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/packaging/program.py" "$@"\n', "utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr("gatewright_gui.session.derive.WorkerProcess", WorkerProcess)
    deriver = Deriver(document)

    assert await deriver.derive(Workspace.text) == document.workspace.text()
    deriver.close()


def test_window_that_is_killed_leaves_no_worker_behind(tmp_path: Path) -> None:
    policy, told = demo(tmp_path), tmp_path / "worker"
    window = subprocess.Popen([sys.executable, "-m", "tests.support.killed_window", str(policy), str(told)])
    try:
        wait_until(told.exists)
        worker = Path("/proc", told.read_text("utf-8"))
        assert worker.exists()
    finally:
        window.kill()
        window.wait()

    wait_until(lambda: not worker.exists())


async def test_worker_has_the_policy_of_the_window_whatever_is_done_to_it(
    tmp_path: Path,
) -> None:
    policy = demo(tmp_path / "Gärten und 線")
    async with opened_document(policy) as document:
        deriver = Deriver(document)

        async def is_alike() -> None:
            workspace = document.workspace
            assert await deriver.derive(Workspace.text) == workspace.text()
            assert await deriver.derive(Workspace.current_problems) == workspace.current_problems()
            assert await deriver.derive(file_text) == file_text(workspace)
            for agent in document.agents:
                mine = preview(workspace, agent.agent_id, None, "mcp")
                assert await deriver.derive(preview, agent.agent_id, None, "mcp") == mine
                base = "saved"
                told = compare_agent(workspace, agent.agent_id, None, "mcp", base)
                assert await deriver.derive(compare_agent, agent.agent_id, None, "mcp", base) == told

        await is_alike()
        assert agents.remove_agent(document, "newcomer")
        await is_alike()
        assert rights.tick_tool(document, "operator", "file", on=False)
        await is_alike()
        document.undo()
        await is_alike()
        assert await document.save()
        await is_alike()
        assert agents.rename_agent(document, "operator", "warden")
        await is_alike()
        os.kill(deriver.process_id, signal.SIGKILL)
        await is_alike()
        policy.write_text(policy.read_text("utf-8").replace("[agents.archivist]", "[agents.keeper]"), "utf-8")
        await is_alike()  # not taken over yet
        assert await document.reload()
        await is_alike()
        policy.unlink()
        await is_alike()
        deriver.close()


async def asked(deriver: Deriver, agent_id: str, tool: str | None, provider: str = "mcp") -> Preview:
    answer = await deriver.derive(preview, agent_id, tool, provider)
    assert answer is not None
    return answer


async def changed_lines(deriver: Deriver, agent_id: str, tool: str | None, provider: str = "mcp") -> str:
    answer = await deriver.derive(compare_agent, agent_id, tool, provider, "unrestricted")
    assert answer is not None
    return answer.change.text


async def test_preview_names_only_what_is_ticked(document: Document, deriver: Deriver) -> None:
    seen = await asked(deriver, "researcher", "file")

    assert '"read"' in seen.schema.text
    assert "delete" not in seen.schema.text
    assert "delete" not in seen.usage_rules
    gone = [line for line in (await changed_lines(deriver, "researcher", "file")).splitlines() if line.startswith("-")]
    assert any("delete" in line for line in gone)
    catalog = pick_tools(document.catalog, None).values()
    assert (seen.counts.shown_tools, seen.counts.all_tools) == (6, len(catalog))
    operations = sum(len(row.operations) for row in catalog)
    whole = sum(len(row.operations) for row in catalog if row.name in {"block", "search"}) + 3
    assert (seen.counts.shown_operations, seen.counts.all_operations) == (2 + whole, operations)


@pytest.mark.parametrize("provider", provider_formats())
async def test_every_format_differs_by_its_own_shape(document: Document, deriver: Deriver, provider: str) -> None:
    key = {"mcp": "inputSchema", "anthropic": "input_schema", "genai": "schema"}.get(provider, "parameters")

    seen = await asked(deriver, "researcher", None, provider)
    gone = await changed_lines(deriver, "newcomer", None, provider)

    assert key in seen.schema.text
    assert f'"{key}"' in gone


async def test_unlimited_tool_has_no_difference(document: Document, deriver: Deriver) -> None:
    assert await changed_lines(deriver, "operator", "file_list") == ""


async def test_what_rules_add_is_told_though_the_schema_is_whole(document: Document, deriver: Deriver) -> None:
    lines = (await changed_lines(deriver, "operator", "file")).splitlines()

    assert [line for line in lines if line.startswith("@@")] == ["@@ -1,2 +1,2 @@ usage rules"]
    came = next(line for line in lines if line.startswith("+-"))
    assert "At most 40 calls per session." in came


async def test_tool_that_is_not_sent_is_shown_with_what_keeps_it_back(document: Document, deriver: Deriver) -> None:
    blocked = await asked(deriver, "newcomer", "file")
    assert "no file source" in blocked.unsent

    rights.tick_tool(document, "operator", "file_list", on=False)

    hidden = await asked(deriver, "operator", "file_list")
    assert hidden.unsent == "Hidden from the model: not ticked. If it were on:"


async def test_file_text_shows_what_saving_would_change(document: Document, deriver: Deriver) -> None:
    before = await deriver.derive(file_text)
    assert before is not None
    assert before.difference == ""
    rights.tick_operations(document, "researcher", "file", ["list"], on=False)

    after = await deriver.derive(file_text)

    assert after is not None
    changed = [line for line in after.difference.splitlines() if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    assert changed == [
        '-rule_type = { AllowedOperations = ["read", "list", "load"] }',
        '+rule_type = { AllowedOperations = ["read", "load"] }',
    ]


async def test_lines_follow_the_edited_text(document: Document, deriver: Deriver) -> None:
    address = ("agents", "newcomer", "tools")
    before = await deriver.derive(lines_of, [address])
    rights.ask_first(document, "archivist", "file", "read", on=True)
    after = await deriver.derive(lines_of, [address])

    text = document.workspace.text().splitlines()
    assert before is not None
    assert after is not None
    assert text[after[address] - 1].startswith("tools = []")
    assert after[address] > before[address]


async def test_self_check_of_the_demo_agrees_everywhere(document: Document, deriver: Deriver) -> None:
    found = await deriver.derive_in_pieces(check_count, lambda _progress: None)

    assert found is not None
    operations = sum(len(row.operations) for row in pick_tools(document.catalog, None).values())
    assert found.checked == len(document.policy.agents) * operations
    assert found.differences == ()


async def test_difference_names_the_tool_of_each_hunk_and_the_lines_of_a_long_text(
    document: Document, deriver: Deriver
) -> None:
    rights.tick_operations(document, "operator", "file", ["delete"], on=False)
    rights.tick_tool(document, "operator", "block", on=False)

    lines = (await changed_lines(deriver, "operator", None)).splitlines()

    heads = [line for line in lines if line.startswith("@@")]
    listed = {*(document.policy.agents["operator"].tools or ()), "usage rules"}
    told = {head.rpartition("@@ ")[2] for head in heads}
    assert {name for name in told if name.partition(",")[0] in listed | {"block"}} == {
        "file",
        "block, not shown at all",
        "send_message",
        "usage rules",
    }
    ends = [next(i for i, line in enumerate(lines) if line.endswith(f"@@ {name}")) for name in ("file", "usage rules")]
    in_file = lines[slice(*ends)]
    gone = [line for line in in_file if line.startswith("-") and "delete (" in line]
    assert len(gone) == 1
    assert "append (" not in gone[0]
    assert gone[0].endswith("\\n")


async def test_preview_of_all_tools_tells_what_their_server_says_and_that_of_one_does_not(tmp_path: Path) -> None:
    folder = tmp_path / "git"
    (folder / "catalogs").mkdir(parents=True)
    (folder / "policy.toml").write_text(
        'gatewright = 1\n[agents.a]\ntools = ["git_log"]\n'
        '[[catalogs]]\nid = "git"\ntype = "mcp"\ncommand = "mcp-server-git"\nconfine = "none"\n',
        encoding="utf-8",
    )
    pin = accept(Pin(Listing.of([LOG], instructions="Look at the log first.")), None, instructions=True)
    (folder / "catalogs" / "git.json").write_bytes(write_pin(pin))
    async with opened_document(folder) as document:
        deriver = Deriver(document)
        try:
            whole = await deriver.derive(preview, "a", None, "mcp")
            one = await deriver.derive(preview, "a", "git_log", "mcp")
        finally:
            deriver.close()
    assert whole is not None
    assert one is not None
    assert whole.usage_rules.endswith("## Instructions of the server `git`\n\n> Look at the log first.\n")
    assert "Look at the log" not in one.usage_rules
