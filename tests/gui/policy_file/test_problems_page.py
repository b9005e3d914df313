"""The Problems page: what a row says that it is about, and where click, keys and menu lead. By a real policy."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QPushButton

from gatewright.base.errors import Place, Problem, Severity, Subject
from gatewright.policy.edit import Edit, FieldChange
from gatewright.policy.verdict import DiscordEndpoint
from gatewright_gui.pages.access.agents import tools_with_problems
from gatewright_gui.pages.access.rules import RulesPage
from gatewright_gui.pages.policy_file import TextPage
from gatewright_gui.pages.policy_file.problems import ABOUT, FIX, MESSAGE, PLACE, ProblemModel, ProblemsPage
from gatewright_gui.pages.servers import ServersPage
from gatewright_gui.pages.servers.server_dialogs import TrustDialog
from gatewright_gui.session.navigator import go_to, places_of
from gatewright_gui.session.place import AgentPlace, place_of_subject
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import agents_page, demo, opened_window, settled, until
from tests.gui.watchdog.watching import Watching

AGENTS = """
[agents.scribe]
tools = ["file"]
sources = []

[[agents.scribe.tool_rules]]
tool_name = "block"
rule_type = { Cooldown = 0 }

[agents.writer]
tools = ["file"]

[[agents.writer.tool_rules]]
tool_name = "file"
rule_type = { AllowedOperations = ["append", "read"] }

[[policy.rules]]
name = "no secrets"
effect = "deny"
tools = ["file"]
when = { properties = { path = { pattern = "secret" } }, required = ["path"] }
"""
SHADOWED = '\n[[sources.permission_rules]]\npattern = "drafts/**"\npermission = "none"\n'


@asynccontextmanager
async def faulty(tmp_path: Path) -> AsyncGenerator[MainWindow]:
    """A window on a policy with a problem of each kind."""
    policy = demo(tmp_path)
    text = policy.read_text("utf-8")
    at = text.index("\n[[catalogs]]")
    policy.write_text(f"{text[:at]}{SHADOWED}{text[at:]}{AGENTS}", "utf-8")
    async with opened_window(policy, tmp_path) as window:
        window.show_page("problems")
        await settled(window)
        yield window


def page_of(window: MainWindow) -> ProblemsPage:
    page = window.shelf.page("problems")
    assert isinstance(page, ProblemsPage)
    return page


def row_of(page: ProblemsPage, code: str) -> int:
    """The last row with that code."""
    return max(at for at, row in enumerate(page.model.rows) if row.problem.code == code)


def choose(page: ProblemsPage, code: str) -> Problem:
    """Make a row the current one."""
    index = page.model.index(row_of(page, code), MESSAGE)
    page.view.setCurrentIndex(index)
    page.view.setFocus()
    problem = page.problem
    assert problem is not None
    return problem


def button(page: ProblemsPage, name: str) -> QPushButton:
    found = page.findChild(QPushButton, f"problems.{name}")
    assert found is not None
    return found


def mends(page: ProblemsPage) -> list[QPushButton]:
    """The buttons that mend the current problem."""
    return [one for one in (button(page, f"mend.{at}") for at in range(3)) if one.isVisible()]


def click(page: ProblemsPage, code: str, column: int) -> None:
    at = page.view.visualRect(page.model.index(row_of(page, code), column)).center()
    QTest.mouseClick(page.view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)


ROWS = [
    ("no-source", "scribe > file", ("scribe", "file", None), "why"),
    ("rule-without-effect", "scribe > block", ("scribe", "block", None), "limits"),
    ("edits-never-saved", "writer > file > save", ("writer", "file", "save"), "why"),
]


@pytest.mark.parametrize(("code", "about", "row", "part"), ROWS)
async def test_a_click_on_a_problem_shows_the_row_that_it_is_about(
    tmp_path: Path, code: str, about: str, row: tuple[str, str, str | None], part: str
) -> None:
    async with faulty(tmp_path) as window:
        page = page_of(window)
        assert page.model.index(row_of(page, code), ABOUT).data() == about
        assert not page.view.isColumnHidden(ABOUT)

        click(page, code, MESSAGE)
        await settled(window)

        chosen = window.selection
        assert window.shelf.current_key == "tools"
        assert (chosen.agent_id, chosen.tool, chosen.operation) == row
        assert agents_page(window).inspector.part == part


async def test_what_lets_calls_through_or_loses_work_stands_first_and_each_says_what_it_means(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        assert [(row.problem.code, row.means) for row in page_of(window).model.rows] == [
            ("edits-never-saved", "changes are lost"),
            ("deny-may-miss", "some calls get through"),
            ("rule-shadowed", "no effect"),
            ("no-source", "the tool is missing"),
            ("rule-without-effect", "no effect"),
        ]


async def test_without_a_problem_the_keys_are_at_the_filter(tmp_path: Path) -> None:
    async with opened_window(demo(tmp_path), tmp_path) as window:
        window.show_page("problems")
        await settled(window)
        page = page_of(window)
        page.focus_main()
        assert page.search.hasFocus()
        assert page.reload.isVisible()


async def test_enter_shows_the_level_that_decides_nothing(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        page = page_of(window)
        problem = choose(page, "rule-shadowed")
        assert problem.subject is not None
        asked: list[tuple[object, object]] = []

        def note(source: object, index: object) -> None:
            asked.append((source, index))

        window.navigator.level_requested.connect(note)

        QTest.keyClick(page.view, Qt.Key.Key_Return)
        await settled(window)

        assert window.shelf.current_key == "files"
        assert asked == [(problem.subject.address[1], problem.subject.address[3])]


async def test_control_enter_and_a_click_on_the_line_show_the_line(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        page, lines = page_of(window), list[object]()
        window.navigator.line_requested.connect(lines.append)
        problem = choose(page, "no-source")
        assert problem.place is not None

        QTest.keyClick(page.view, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
        await settled(window)
        assert window.shelf.current_key == "text"
        window.show_page("problems")
        click(page, "edits-never-saved", PLACE)
        await settled(window)

        assert window.shelf.current_key == "text"
        assert lines[0] == problem.place.line
        assert len(lines) == 2


async def test_a_policy_rule_is_shown_on_its_own_page(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        page, asked = page_of(window), list[object]()
        window.navigator.policy_rule_requested.connect(asked.append)
        choose(page, "deny-may-miss")
        assert page.model.index(row_of(page, "deny-may-miss"), ABOUT).data() == "policy rule 3"

        QTest.keyClick(page.view, Qt.Key.Key_Return)
        await settled(window)

        assert window.shelf.current_key == "rules"
        assert asked == [2]


async def test_the_menu_of_a_problem_offers_both_ways(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        page = page_of(window)
        choose(page, "no-source")
        at = page.view.visualRect(page.view.currentIndex()).center()
        page.view.customContextMenuRequested.emit(QPoint(at))
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        assert [action.text() for action in menu.actions()] == [
            "Show scribe > file\tEnter",
            "Show in the file\tCtrl+Enter",
        ]
        menu.actions()[1].trigger()
        menu.close()
        await settled(window)
        assert window.shelf.current_key == "text"


async def test_the_palette_leads_to_what_a_problem_is_about(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        place = next(one for one in places_of(window.document) if "but no source" in one.name)
        go_to(place, window.navigator, window.selection)
        await settled(window)
        assert window.shelf.current_key == "tools"
        assert (window.selection.agent_id, window.selection.tool) == ("scribe", "file")


async def test_the_filter_shows_the_tools_that_problems_are_about_and_no_more(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        document = window.document
        rights = document.rights("writer")
        assert set(tools_with_problems(document.problems, "writer", rights)) == {"file"}
        assert set(tools_with_problems(document.problems, "scribe", document.rights("scribe"))) == {"file", "block"}


async def test_the_current_problem_stays_current_when_another_goes(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        page, document = page_of(window), window.document
        held = choose(page, "edits-never-saved")
        before = page.model.rowCount()

        document.set_problems([problem for problem in document.problems if problem.code != "no-source"])
        await until(lambda: page.model.rowCount() == before - 1)
        assert page.problem == held


async def test_problems_of_a_file_that_is_not_in_force_lead_to_their_lines(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        page, document = page_of(window), window.document
        assert document.path is not None
        text = document.path.read_text("utf-8")
        document.path.write_text(text + '\n[agents.scribe2]\ntools = ["fil"]\n', "utf-8")
        await document.reload()
        assert document.alarm is not None
        choose(page, "no-source")
        assert page.model.index(row_of(page, "no-source"), ABOUT).data() == ""
        QTest.keyClick(page.view, Qt.Key.Key_Return)
        await settled(window)
        assert window.shelf.current_key == "text"


async def test_a_file_that_is_not_in_force_is_mended_as_text(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        page, document = page_of(window), window.document
        assert document.path is not None
        text = document.path.read_text("utf-8") + '\n# theirs\n[agents.scribe2]\ntools = ["fil"]\n'
        document.path.write_text(text, "utf-8")
        await document.reload()
        window.show_page("problems")
        QTest.mouseClick(page.bar.action_button, Qt.MouseButton.LeftButton)
        await settled(window)
        toml = window.shelf.page("text")
        assert isinstance(toml, TextPage)
        assert toml.editor.textCursor().selectedText() == 'tools = ["fil"]'
        QTest.keyClicks(toml.editor, 'tools = ["file"]')
        toml.apply_button.click()
        await settled(window)
        assert "scribe2" in document.policy.agents
        window.save_over()
        await settled(window)
        assert document.path.read_text("utf-8") == text.replace('"fil"', '"file"')
        assert document.alarm is None


async def test_where_no_problem_can_be_looked_at_elsewhere_no_column_is_kept_for_it(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('gatewright = 1\n[agents.a]\ntools = ["fil"]\n', "utf-8")
    async with opened_window(policy, tmp_path) as window:
        page = page_of(window)
        assert page.model.rowCount()
        assert page.view.isColumnHidden(ABOUT)


async def test_while_a_file_is_not_in_force_each_problem_is_told_once_and_one_button_reloads(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        page, document = page_of(window), window.document
        assert document.path is not None
        before, own = document.problems, document.path.read_text("utf-8")
        document.path.write_text(f'# a line more\n{own}\n[agents.scribe2]\ntools = ["fil"]\n', "utf-8")
        await document.reload()
        await settled(window)

        told = [(problem.code, problem.message) for problem in document.problems]
        assert len(told) == len(set(told)) > len(before)
        document.path.write_text(f"{document.path.read_text('utf-8')}# and another\n", "utf-8")
        await until(window.outside.isVisible)
        assert window.alarm.isVisible()
        assert page.isVisible()
        assert sum(button.text() == "Reload" and button.isVisible() for button in window.findChildren(QPushButton)) == 1

        document.path.write_text(own, "utf-8")
        assert await document.reload()
        assert document.problems == before


async def test_an_address_of_a_grant_leads_to_its_row_among_what_the_agent_has(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        policy = window.document.policy
        owner = next(agent for agent in policy.agents.values() if agent.capabilities)
        address = ("agents", owner.agent_id, "capabilities", 0)
        place = place_of_subject(policy, Subject((*address, "NetRead"), (owner.agent_id,)))
        assert isinstance(place, AgentPlace)
        assert place == AgentPlace(owner.agent_id, address)
        window.navigator.go_to_rule(place)
        await settled(window)

        page = window.shelf.page("rules")
        assert isinstance(page, RulesPage)
        assert (window.shelf.current_key, window.selection.agent_id) == ("rules", owner.agent_id)
        row = page.agent.model.row_at(page.agent.view.currentIndex().row())
        assert row is not None
        assert row.address == address
        assert window.focusWidget() is page.agent.view


ENDPOINTS = "[workspace.endpoints]\n"
ENDPOINT = 'discord = { token_env = "BOT", channels = ["100"] }\n'


async def test_endpoint_is_trusted_after_a_question_that_shows_what_it_is(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    text = policy.read_text("utf-8")
    assert ENDPOINTS in text
    policy.write_text(text.replace(ENDPOINTS, ENDPOINTS + ENDPOINT), "utf-8")
    async with opened_window(policy, tmp_path) as window:
        window.show_page("problems")
        await settled(window)
        page, document = page_of(window), window.document
        page.view.setCurrentIndex(page.model.index(row_of(page, "endpoint-not-trusted"), MESSAGE))
        assert button(page, "trust").isVisible()
        QTest.mouseClick(button(page, "trust"), Qt.MouseButton.LeftButton)
        await until(lambda: choice("trust") is not None)
        told = [label.text() for label in page.findChildren(QLabel) if "https://discord.com/api/v10" in label.text()]
        assert any("with the token in BOT, for the channels 100" in text for text in told)
        answer = choice("trust")
        assert answer is not None
        QTest.mouseClick(answer, Qt.MouseButton.LeftButton)
        await until(lambda: all(problem.code != "endpoint-not-trusted" for problem in document.problems))
        await settled(window)
        assert not button(page, "trust").isVisible()
        assert not any(one.code == "endpoint-not-trusted" for one in document.workspace.current_problems())


async def test_endpoint_that_was_changed_while_the_question_was_open_is_not_trusted(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    policy.write_text(policy.read_text("utf-8").replace(ENDPOINTS, ENDPOINTS + ENDPOINT), "utf-8")
    async with opened_window(policy, tmp_path) as window:
        window.show_page("problems")
        await settled(window)
        page, document = page_of(window), window.document
        page.view.setCurrentIndex(page.model.index(row_of(page, "endpoint-not-trusted"), MESSAGE))
        QTest.mouseClick(button(page, "trust"), Qt.MouseButton.LeftButton)
        await until(lambda: choice("trust") is not None)
        before = document.policy.endpoints
        after = replace(before, discord=DiscordEndpoint("OTHER_TOKEN"))
        assert document.push(lambda _p, _t: Edit("other", (FieldChange("endpoints", before, after),)))
        answer = choice("trust")
        assert answer is not None
        QTest.mouseClick(answer, Qt.MouseButton.LeftButton)
        await settled(window)
        assert "changed meanwhile" in window.message.text
        assert any(one.code == "endpoint-not-trusted" for one in document.workspace.current_problems())


async def test_button_at_a_server_that_is_not_trusted_leads_to_its_catalog_with_the_question(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    server = '\n[[catalogs]]\nid = "{0}"\ntype = "mcp"\ncommand = "{0}-server"\nconfine = "none"\n'
    policy.write_text(policy.read_text("utf-8") + server.format("near") + server.format("far"), "utf-8")
    async with opened_window(policy, tmp_path) as window:
        window.show_page("problems")
        await settled(window)
        page = page_of(window)
        rows = [
            row for row in range(page.model.rowCount()) if "far-server" in str(page.model.index(row, MESSAGE).data())
        ]
        page.view.setCurrentIndex(page.model.index(rows[0], MESSAGE))
        QTest.mouseClick(button(page, "trust"), Qt.MouseButton.LeftButton)
        await until(lambda: window.findChild(TrustDialog) is not None)
        dialog = window.findChild(TrustDialog)
        assert dialog is not None
        assert window.shelf.current_key == "servers"
        assert "far-server" in dialog.code.text
        assert "near-server" not in dialog.code.text
        dialog.cancel_button.click()
        await settled(window)


def choice(key: str) -> QPushButton | None:
    """A button of the question that is asked now."""
    shown = [one for one in QApplication.allWidgets() if one.objectName() == f"choice-{key}" and one.isVisible()]
    return next((one for one in shown if isinstance(one, QPushButton)), None)


MENDS = {
    "rule-shadowed": ["Remove rule drafts/** of archive", "Move rule drafts/** of archive above rule 3"],
    "rule-without-effect": ["Remove the pause of block for scribe"],
    "no-source": ["Turn off file for scribe", "Attach archive to scribe"],
    "edits-never-saved": ["Turn on save of file for writer"],
}


async def test_buttons_mend_a_problem_by_an_edit_that_undo_takes_back(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        page, document = page_of(window), window.document
        for code, words in MENDS.items():
            problem = choose(page, code)
            await settled(window)
            assert [button.text() for button in mends(page)] == words
            button(page, "mend.0").click()
            await settled(window)
            assert problem not in document.problems
            assert document.undo_stack.undoText().casefold() == words[0].casefold()
            window.undo()
            await settled(window)
            assert problem in document.problems


async def test_a_folder_of_a_source_that_is_gone_is_told_without_an_edit(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    async with opened_window(policy, tmp_path) as window:
        await settled(window)
        assert not any("is missing" in problem.message for problem in window.document.problems)

        (policy.parent / "workspace").rename(policy.parent / "elsewhere")
        window.show_page("problems")
        await settled(window)
        [problem] = [one for one in window.document.problems if "is missing" in one.message]
        (policy.parent / "elsewhere").rename(policy.parent / "workspace")
        window.show_page("tools")
        window.show_page("problems")
        await settled(window)

        assert problem.message == "the folder `workspace` of `archive` is missing"
        assert problem not in window.document.problems


async def test_a_heading_mends_all_below_it_by_one_edit(tmp_path: Path) -> None:
    rule = '\n[[agents.scribe.tool_rules]]\ntool_name = "{0}"\nrule_type = {{ Cooldown = 0 }}\n'
    idle = ("block", "file_read", "block_edit", "file")
    policy = tmp_path / "policy.toml"
    tools = '[agents.scribe]\ntools = ["block", "file_read", "block_edit", "file"]\n'
    policy.write_text("gatewright = 1\n" + tools + "".join(map(rule.format, idle)), "utf-8")
    async with opened_window(policy, tmp_path) as window:
        window.show_page("problems")
        await settled(window)
        page, document = page_of(window), window.document
        before = document.policy
        heading = next(at for at, row in enumerate(page.model.rows) if row.count)
        row = page.model.rows[heading]
        assert row.said == f"In {row.count} places: `Cooldown = 0` delays nothing: the rule has no effect"
        assert row.means == "no effect"
        assert row.fix == "Fix all..."
        page.view.setCurrentIndex(page.model.index(heading, MESSAGE))
        await settled(window)
        assert button(page, "mend.all").text() == f"Fix all {row.count}"
        assert page.whole.text().count("`scribe`") == row.count

        button(page, "mend.all").click()
        await settled(window)
        assert not any(one.code == "rule-without-effect" for one in document.problems)
        window.undo()
        await settled(window)
        assert document.policy == before


async def test_a_fix_in_the_row_of_a_problem_mends_it_and_undo_takes_it_back(tmp_path: Path) -> None:
    async with faulty(tmp_path) as window:
        page, document = page_of(window), window.document
        before = document.policy
        row = page.model.rows[row_of(page, "rule-without-effect")]
        assert (row.fix, len(row.mends)) == ("Fix", 1)

        click(page, "rule-without-effect", FIX)
        await settled(window)
        assert not any(one.code == "rule-without-effect" for one in document.problems)
        assert document.undo_stack.undoText() == row.mends[0].replace("`", "")
        window.undo()
        await settled(window)
        assert document.policy == before


def test_problems_that_say_the_same_are_one_row_with_what_they_share(qapp: QApplication) -> None:
    del qapp
    model = ProblemModel()
    sentence = "agent `{}` has the tool `file` but no source: it will not see the tool"
    problems = [Problem(Severity.WARNING, "no-source", sentence.format(name)) for name in "abcd"]
    problems += [Problem(Severity.WARNING, "no-source", "another sentence")]
    problems += [
        Problem(Severity.WARNING, "undeclared-paths", f"`path`, `to` and {at} more of `t{at}` may name files")
        for at in range(2, 5)
    ]
    problems += [Problem(Severity.ERROR, "unknown-tool", "no tool is named `x`", Place("a.toml", at)) for at in (2, 7)]
    model.set_problems(problems, error_means="no call runs")
    assert [row.words for row in model.rows if not row.is_below] == [
        "In 2 places: no tool is named `x`",
        "3 tools have arguments that may name files: decide what they do with them",
        "4 × agent … has the tool `file` but no source: it will not see the tool",
        "another sentence",
    ]
    assert [row.means for row in model.rows if not row.is_below] == [
        "no call runs",
        "levels may miss a file",
        "the tool is missing",
        "the tool is missing",
    ]
    heading = next(row for row in model.rows if row.problem.code == "no-source" and row.count)
    assert "[no-source]" in model.tip(heading, MESSAGE)
    model.turn(heading)
    assert sum(row.is_below for row in model.rows) == 5


async def test_two_thousand_problems_are_listed_searched_and_opened_without_holding_up_the_window(
    tmp_path: Path, gui_watchdog: Watching
) -> None:
    async with faulty(tmp_path) as window:
        page = page_of(window)
        many = [
            Problem(Severity.WARNING, f"kind-{at % 5}", f"agent `bot{at}` has the tool `file` but no source", None)
            for at in range(2_000)
        ]
        async with gui_watchdog.during("list 2,000 problems"):
            window.document.set_problems(many)
        assert page.model.rowCount() == 5
        async with gui_watchdog.during("open 400 of them"):
            page.model.turn(page.model.rows[0])
        assert page.model.rowCount() == 405
        async with gui_watchdog.during("search them"):
            page.search.setText("bot1999")
        assert [row.words for row in page.model.rows] == ["agent `bot1999` has the tool `file` but no source"]


async def test_a_problem_of_a_server_says_what_agents_lack_and_leads_to_its_row(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    catalog = '\n[[catalogs]]\nid = "hub"\ntype = "mcp"\nurl = "https://hub.example.com/mcp"\n'
    policy.write_text(policy.read_text("utf-8") + catalog, "utf-8")
    async with opened_window(policy, tmp_path) as window:
        window.show_page("problems")
        await settled(window)
        page = page_of(window)
        (row,) = [one for one in page.model.rows if one.about == "hub" and one.problem.code == "missing-path"]
        assert row.means == "its tools are missing"
        assert not any(facts.origin == "hub" for facts in window.document.catalog)
        choose(page, "missing-path")
        QTest.keyClick(page.view, Qt.Key.Key_Return)
        servers = window.shelf.page("servers")
        assert isinstance(servers, ServersPage)
        await until(lambda: servers.current is not None and servers.current.catalog_id == "hub")
