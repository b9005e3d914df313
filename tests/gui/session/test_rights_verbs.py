from pathlib import Path

from gatewright.builtins.file import FileTool
from gatewright.policy.verdict import Verdict, pick_tools
from gatewright_gui.session.verbs import presets, rights
from gatewright_gui.session.verbs.rights import Target
from tests.gui.session.opened import Said, demo, opened_document

FILE = tuple(spec.name for spec in FileTool().operations)


async def test_allowing_many_is_one_edit_and_one_undo(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        targets = (Target("file", ("read", "list")), Target("block", ("info",)))

        assert rights.edit_tools(document, "newcomer", targets, "allow")

        shown = document.rights("newcomer")
        assert {op.operation for op in shown["file"].operations if op.ticked} == {"read", "list"}
        assert document.undo_stack.count() == 1
        assert document.undo_stack.undoText() == "turn on without asking 3 operations of 2 tools for newcomer"
        document.undo()
        assert not document.is_dirty


async def test_asking_for_a_whole_tool_is_one_key(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        rights.edit_tools(document, "archivist", (Target("file", FILE),), "ask")

        agent = document.policy.agents["archivist"]
        assert dict(agent.approvals) == {"file": Verdict.ASK}
        verdicts = {op.operation: op.verdict for op in document.rights("archivist")["file"].operations}
        assert verdicts.pop("patch") is Verdict.DENY  # no AdvancedEdit
        assert set(verdicts.values()) == {Verdict.ASK}


async def test_allow_after_ask_asks_no_more(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        rights.edit_tools(document, "archivist", (Target("file", FILE),), "ask")
        rights.edit_tools(document, "archivist", (Target("file", ("load", "read")),), "allow")

        rows = {op.operation: op.verdict for op in document.rights("archivist")["file"].operations}
        assert rows["load"] is rows["read"] is Verdict.ALLOW
        assert rows["save"] is Verdict.ASK


async def test_deny_turns_operations_off(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        rights.edit_tools(document, "operator", (Target("file", ("delete",)),), "deny")

        assert "delete" not in document.rights("operator")["file"].shown
        assert document.undo_stack.undoText() == "turn off delete of file for operator"


async def test_turning_one_tool_off_keeps_the_others_of_an_agent_that_listed_none(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    text = policy.read_text("utf-8").replace('unlisted_tools = "deny"', 'unlisted_tools = "allow"')
    policy.write_text(text.replace("tools = []\nsources = []", 'sources = ["archive"]'), "utf-8")
    async with opened_document(policy) as document:
        assert document.policy.agents["newcomer"].tools is None

        rights.edit_tools(document, "newcomer", (Target("file", FILE),), "off")

        chosen = pick_tools(document.catalog, None)
        others = tuple(name for name, row in chosen.items() if name != "file" and not row.outmoded)
        assert others != tuple(chosen)
        assert document.policy.agents["newcomer"].tools == others
        block = next(row for row in document.catalog if row.name == "block")
        assert document.rights("newcomer")["block"].shown == set(block.operation_names)


async def test_reset_of_many_tools_is_one_edit(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        rights.ask_first(document, "researcher", "block", "info", on=True)
        planned = presets.plan_edit(document.workspace, presets.ResetPlan(("block", "file"), ("researcher",)))

        assert presets.make(document, planned.edit)

        assert document.undo_stack.undoText() == "reset 2 tools for researcher"
        right = document.rights("researcher")
        assert len(right["file"].ticked) == len(FILE)
        assert right["block"].operations[0].verdict is Verdict.ALLOW


async def test_all_on_says_what_came_on_and_what_of_it_can_do_most(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        said = Said(document)
        sql = next(row for row in document.catalog if row.name == "run_sql")
        targets = (Target("block", ("info",)), Target("run_sql", tuple(op.name for op in sql.operations)))

        rights.edit_tools(document, "researcher", targets, "off")
        rights.edit_tools(document, "researcher", targets, "on")

        assert said.last == "turned on 2 operations of `researcher`, 1 privileged, 1 asking first"
        assert document.undo_stack.undoText().startswith("turn on")


async def test_a_switch_that_another_layer_holds_says_so(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        said = Said(document)
        rights.tick_operations(document, "archivist", "file", ["delete"], on=True)

        rights.ask_first(document, "archivist", "file", "delete", on=False)

        assert "still asks first" in said.last


async def test_a_tool_that_is_ticked_again_is_as_it_was_and_says_that_some_of_it_is_off(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        said = Said(document)
        rights.edit_tools(document, "operator", (Target("file", ("delete",)),), "deny")
        before = document.rights("operator")["file"].operations
        rights.tick_tool(document, "operator", "file", on=False)
        assert said.messages == []

        rights.tick_tool(document, "operator", "file", on=True)

        rows = document.rights("operator")["file"].operations
        assert [row.ticked for row in rows] == [row.ticked for row in before]
        count = sum(row.ticked for row in rows)
        assert f"the {count} of its {len(FILE)} operations that the policy lists for `operator`" in said.last


async def test_a_tool_that_comes_on_whole_is_not_commented(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        said = Said(document)
        rights.tick_tool(document, "newcomer", "block", on=True)
        assert said.messages == []


async def test_what_the_defaults_deny_no_wish_opens_and_each_says_so(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    text = policy.read_text("utf-8")
    policy.write_text(text.replace("[defaults]", '[defaults]\napprovals = { "file.list" = "deny" }', 1), "utf-8")
    async with opened_document(policy) as document:
        said = Said(document)
        denied = "1 operation stays denied: `file.list` is denied by the approvals key `file.list`"

        rights.ask_first(document, "archivist", "file", "list", on=True)
        assert said.last.startswith(denied)
        for wanted in ("allow", "ask"):
            rights.edit_tools(document, "archivist", (Target("file", ("list",)),), wanted)
            assert said.last.startswith(denied)

        assert len(said.messages) == 3
        assert not document.is_dirty
        rights.edit_tools(document, "archivist", (Target("file", ("list", "load")),), "ask")
        assert denied in said.last
        rows = {op.operation: op.verdict for op in document.rights("archivist")["file"].operations}
        assert (rows["list"], rows["load"]) == (Verdict.DENY, Verdict.ASK)


async def test_what_a_key_of_the_agent_denies_is_no_news_of_the_defaults(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    text = policy.read_text("utf-8")
    own = '[agents.archivist]\napprovals = { "file.list" = "deny" }'
    policy.write_text(text.replace("[agents.archivist]", own, 1), "utf-8")
    async with opened_document(policy) as document:
        said = Said(document)

        assert rights.ask_first(document, "archivist", "file", "", on=True)

        rows = {op.operation: op.verdict for op in document.rights("archivist")["file"].operations}
        assert (rows["list"], rows["load"]) == (Verdict.DENY, Verdict.ASK)
        assert said.messages == []


async def test_asking_first_is_refused_for_an_agent_that_is_not_there(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        said = Said(document)
        assert not rights.ask_first(document, "nobody", "file", "", on=True)
        assert [message.text for message in said.messages] == ["no agent `nobody`"]
