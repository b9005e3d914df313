"""The page Home: what it says of agents, risks, calls and unused rights, and what its buttons do."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from PySide6.QtCore import QModelIndex, QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QPushButton

from gatewright.policy.right import Effect
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.workspace import Workspace
from gatewright_gui.pages.activity import ActivityPage
from gatewright_gui.pages.home import HomePage
from gatewright_gui.pages.home.picture import PAD, ReachCanvas
from gatewright_gui.pages.home.picture_layout import (
    LEAST_COVER,
    MOST_AGENTS,
    MOST_SCALE,
    MOST_SOLID,
    by_risk,
    by_use,
    drawing_of,
    picture_of,
)
from gatewright_gui.pages.home.rows import RiskDelegate, used_words
from gatewright_gui.pages.home.unused_dialog import UnusedDialog
from gatewright_gui.qt.widget.label import ElidedLabel
from gatewright_gui.session.effects import AgentReach, headline, reaches_of, risks_of
from gatewright_gui.session.verbs.rights import ask_first
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import demo, opened_window, settled, until
from tests.support.largeworkspace import large_opener, write_large

Said = Qt.ItemDataRole.AccessibleTextRole
UNKNOWN = '\n[agents.scribe]\ntools = ["file"]\nsources = []\n'
ONE_AGENT = 'gatewright = 1\n\n[agents.helper]\ntools = ["block"]\n'
APPEND = {"op": "append", "path": "README.md", "content": "x"}


def page_of(window: MainWindow) -> HomePage:
    page = window.shelf.page("home")
    assert isinstance(page, HomePage)
    return page


async def shown(window: MainWindow) -> HomePage:
    window.show_page("home")
    await until(lambda: not window.document.agents or page_of(window).is_whole)
    await settled(window)
    return page_of(window)


@pytest_asyncio.fixture
async def page(tmp_path: Path) -> AsyncIterator[HomePage]:
    """Of the demo, with an agent that has a problem, after two calls of which one was denied."""
    policy = demo(tmp_path)
    policy.write_text(policy.read_text("utf-8") + UNKNOWN, "utf-8")
    with Workspace.open(policy) as workspace:
        await workspace.call("archivist", "file", {"op": "read", "path": "README.md"})
        await workspace.call("archivist", "file", APPEND)
    async with opened_window(policy, tmp_path) as window:
        page = await shown(window)
        await until(lambda: page.unused.rows)
        yield page


def window_of(page: HomePage) -> MainWindow:
    window = page.window()
    assert isinstance(window, MainWindow)
    return window


def all_reaches(workspace: Workspace) -> dict[str, AgentReach]:
    found: dict[str, AgentReach] = {}
    while len(found) < len(workspace.policy.agents):
        found |= reaches_of(workspace, [name for name in workspace.policy.agents if name not in found])
    return {name: found[name] for name in workspace.policy.agents}


def click(view: QAbstractItemView, index: QModelIndex) -> None:
    at = view.visualRect(index).topLeft() + QPoint(20, 10)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)


def press_ask(page: HomePage, row: int) -> None:
    rect = RiskDelegate.button_rect(page.risk_view.visualRect(page.risks.index(row, 0)))
    viewport, none = page.risk_view.viewport(), Qt.KeyboardModifier.NoModifier
    QTest.mouseClick(viewport, Qt.MouseButton.LeftButton, none, rect.center())


# the sentence and the risks


def counted_by_hand(workspace: Workspace) -> tuple[int, int, int]:
    """How many agents can change, delete and run, the last two without asking."""
    change = delete = run = 0
    for agent_id in workspace.policy.agents:
        on = [
            (op, row)
            for right in workspace.rights(agent_id).values()
            for op, row in zip(right.facts.operations, right.operations, strict=True)
            if row.ticked and row.verdict is not Verdict.DENY
        ]
        free = [op for op, row in on if row.verdict is Verdict.ALLOW]
        change += any(op.effect is not Effect.READ for op, _ in on)
        delete += any(op.destroys and not op.commands for op in free)
        run += any(op.commands for op in free)
    return change, delete, run


async def test_sentence_says_what_the_engine_says_and_follows_a_button(page: HomePage) -> None:
    document = window_of(page).document
    assert counted_by_hand(document.workspace) == (3, 1, 0)
    assert page.headline.text() == "3 agents can change things here. 1 can delete without asking."
    names = [page.risks.index(row, 0).data() for row in range(page.risks.rowCount())]
    assert names[:2] == ["file_delete", "memory_delete"]
    assert str(page.risks.index(0, 0).data(Said)).startswith("file_delete deletes in shared, tmp, without asking, for")

    # by mouse, then by key: each is one step
    press_ask(page, 0)
    await settled(window_of(page))
    await until(lambda: page.risks.index(0, 0).data() == "memory_delete")
    assert page.risk_view.currentIndex().row() <= 0
    page.risk_view.setCurrentIndex(page.risks.index(0, 0))
    QTest.keyClick(page.risk_view, Qt.Key.Key_K)
    await until(lambda: page.headline.text().endswith("None can delete or run commands without asking."))
    assert counted_by_hand(document.workspace) == (3, 0, 0)
    assert document.workspace.rights("operator")["memory_delete"].operations[0].verdict is Verdict.ASK
    assert document.undo_stack.count() == 2
    document.undo_stack.undo()
    await until(lambda: "1 can delete" in page.headline.text())


def test_sentence_of_nobody_of_readers_and_of_those_who_ask_no_gate(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('gatewright = 1\n[agents.a]\ntools = []\n[agents.b]\ntools = ["search"]\n')
    with Workspace.open(tmp_path) as workspace:
        reaches = all_reaches(workspace)
    assert headline({}, ()) == ""
    assert headline(reaches, ()) == "No agent can change anything here."
    assert headline(reaches, ("Claude Code", "Codex")).startswith(
        "Nobody decides what Claude Code and Codex may do: they can do all that you can."
    )


async def test_rows_lead_to_where_they_are_changed(page: HomePage) -> None:
    window = window_of(page)
    assert page.risk_view.hasFocus()
    before = page.risks.rowCount()
    ask_first(window.document, "operator", "table_edit", "drop_row", on=False)
    await until(lambda: page.risks.rowCount() == before + 1)
    rows = [page.risks.index(row, 0) for row in range(page.risks.rowCount())]
    (risk,) = (index for index in rows if index.data() == "table_edit.drop_row")
    page.risk_view.scrollTo(risk)
    click(page.risk_view, risk)
    await settled(window)
    chosen = window.selection
    assert (window.shelf.current_key, chosen.agent_id) == ("tools", "operator")
    assert (chosen.tool, chosen.operation) == ("table_edit", "drop_row")

    notices = page.notices
    for line, words, key in ((notices.unsaved, "Unsaved changes", "text"), (notices.warnings, "1 warning", "problems")):
        window.show_page("home")
        assert line.text() == words
        QTest.mouseClick(line, Qt.MouseButton.LeftButton)
        assert window.shelf.current_key == key


async def test_a_call_that_waits_is_denied_here_or_seen_where_all_of_it_is(page: HomePage) -> None:
    window = window_of(page)
    arguments = {"op": "delete", "path": "drafts/report.md"}
    with Workspace.open(window.document.workspace.policy_path) as other:
        call = asyncio.create_task(other.call("operator", "file", arguments, approver=other.broker))
        await until(lambda: page.band.isVisible() or call.done())
        assert page.band.words.text.startswith("operator wants to call file.delete")
        await until(lambda: page.band.left.text().startswith("denied in "))
        QTest.mouseClick(page.band.see_button, Qt.MouseButton.LeftButton)
        assert window.shelf.current_key == "activity"
        window.show_page("home")
        QTest.mouseClick(page.band.deny_button, Qt.MouseButton.LeftButton)
        outcome = await call
    assert outcome.decision.verdict is Verdict.DENY
    assert (window.document.workspace.folder / "workspace/drafts/report.md").exists()
    await until(lambda: not page.band.isVisible())


# the picture


async def test_picture_has_the_rights_that_the_engine_says_and_a_choice_lights_what_it_concerns(page: HomePage) -> None:
    canvas, workspace = page.reach.canvas, window_of(page).document.workspace
    picture = canvas.picture
    numbers = {(node.agents, node.effect): number for number, node in enumerate(picture.nodes)}
    wanted: Counter[tuple[str, Effect, Verdict]] = Counter()
    for agent_id in workspace.policy.agents:
        for right in workspace.rights(agent_id).values():
            for op, row in zip(right.facts.operations, right.operations, strict=True):
                if row.ticked and row.verdict is not Verdict.DENY:
                    wanted[agent_id, op.effect, row.verdict] += 1
    drawn: Counter[tuple[str, Effect, Verdict]] = Counter()
    for flow in picture.flows:
        (agent_id,), effect = picture.nodes[flow.agent].agents, picture.nodes[flow.effect].effect
        assert effect is not None
        drawn[agent_id, effect, Verdict.ALLOW] += flow.count.free
        drawn[agent_id, effect, Verdict.ASK] += flow.count.asks
    assert +drawn == wanted
    assert {effect for _, effect, _ in wanted} == set(Effect)

    # by mouse: an agent, then a band; the list has the same rows
    press(canvas, box_of(canvas, numbers[("researcher",), None]))
    assert {row[0] for row in listed(page)} == {"researcher"}
    assert numbers[("operator",), None] not in canvas.drawing.lit
    assert numbers[(), Effect.SEND] in canvas.drawing.lit
    QTest.mouseClick(page.reach.all_button, Qt.MouseButton.LeftButton)
    part = numbers[("operator",), None], numbers[(), Effect.RUN]
    band = next(one for one in canvas.drawing.bands if one.part == part)
    press(canvas, band.begin.center() + QPointF(2, 0))
    assert canvas.accessibleDescription() == "operator, Runs commands: 1 operation (1 ask first)"
    assert listed(page) == [("operator", "Runs commands", "0", "1")]
    press(canvas, band.begin.center() + QPointF(2, 0))
    assert len(canvas.drawing.lit) == len(picture.nodes)

    # by keys
    canvas.setFocus()
    for key in (*[Qt.Key.Key_Up] * 4, Qt.Key.Key_Space):
        QTest.keyClick(canvas, key)
    assert canvas.accessibleDescription().startswith("operator: ")
    assert {row[0] for row in listed(page)} == {"operator"}
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Escape):
        QTest.keyClick(canvas, key)
    assert canvas.accessibleDescription().startswith(("Reads: ", "Changes: "))
    assert len(listed(page)) == len(picture.flows)


def box_of(canvas: ReachCanvas, number: int) -> QPointF:
    return next(box.rect.center() for box in canvas.drawing.boxes if box.number == number)


def press(canvas: ReachCanvas, at: QPointF) -> None:
    place = (at + QPointF(PAD, PAD)).toPoint()
    QTest.mouseMove(canvas, place)
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)


def listed(page: HomePage) -> list[tuple[str, ...]]:
    model = page.reach.model
    return [
        tuple(str(model.index(row, column).data()) for column in range(model.columnCount()))
        for row in range(model.rowCount())
    ]


def test_agents_without_a_box_of_their_own_stand_together_and_nothing_is_lost(tmp_path: Path) -> None:
    with large_opener(40).open(write_large(tmp_path / "large", 20, 40)) as workspace:
        reaches = all_reaches(workspace)
        rights = [workspace.rights(agent_id) for agent_id in workspace.policy.agents]
    on = sum(row.ticked and not row.is_hidden for held in rights for right in held.values() for row in right.operations)

    ranked = picture_of(reaches, by_risk(reaches, ()))
    every = picture_of(reaches, ())

    for picture, boxes in ((ranked, MOST_AGENTS), (every, 20)):
        agents = [node for node in picture.nodes if node.effect is None]
        assert len(agents) == boxes
        assert sum(len(node.agents) for node in agents) == 20
        assert sum(node.size for node in agents) == sum(node.size for node in picture.nodes if node.effect) == on
        assert sum(flow.count.every for flow in picture.flows) == on
    shown_ones = [node.agents[0] for node in ranked.nodes[: MOST_AGENTS - 1]]
    harms = [reaches[name].harm for name in shown_ones]
    assert harms == sorted(harms, reverse=True)
    assert min(harms) >= max(reach.harm for name, reach in reaches.items() if name not in shown_ones)
    assert ranked.nodes[MOST_AGENTS - 1].title == f"and {20 - MOST_AGENTS + 1} more"
    assert [node.agents[0] for node in every.nodes[:20]] == [*reaches]
    used = {(name, "tool_0001", "read") for name in [*reaches][7:8]}
    assert by_use(reaches, used)[0] == [*reaches][7]


@pytest.mark.parametrize("count", [MOST_AGENTS + 1, 30])
@pytest.mark.parametrize("dangerous", [1, 3])
def test_of_many_agents_those_that_delete_without_asking_stand_alone(
    tmp_path: Path, count: int, dangerous: int
) -> None:
    source = '[[sources]]\nid = "s"\ntype = "file"\nbase_path = "."\ndefault_permission = "admin"\n'
    free, asks = '"file_read"', '"file_delete", "file_read", "block"'
    agents = [f"[agents.a{at:02}]\ntools = [{asks if at >= count - dangerous else free}]\n" for at in range(count)]
    grants = 'capabilities = [{ FsRead = { prefixes = ["tmp"] } }, { FsWrite = { prefixes = ["tmp"] } }]\n'
    (tmp_path / "tmp").mkdir()
    head = 'gatewright = 1\n[workspace]\nroots = { tmp = "tmp" }\n'
    (tmp_path / "policy.toml").write_text(head + grants.join([*agents, ""]) + source, "utf-8")
    with Workspace.open(tmp_path) as workspace:
        reaches, risks = all_reaches(workspace), risks_of(workspace)
    harmful = {f"a{at:02}" for at in range(count - dangerous, count)}
    assert {name for risk in risks if risk.danger.effect is Effect.DELETE for name in risk.agents} == harmful

    picture = picture_of(reaches, by_risk(reaches, ()))

    assert {node.agents[0] for node in picture.nodes[:dangerous]} == harmful
    assert picture.nodes[MOST_AGENTS - 1].title == f"and {count - MOST_AGENTS + 1} more"


async def test_few_operations_make_no_wall_of_colour(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(ONE_AGENT, "utf-8")
    async with opened_window(policy, tmp_path) as window:
        page = await shown(window)
        window.resize(1280, 1000)
        await settled(window)
        boxes = page.reach.canvas.drawing.boxes
        assert {box.node.agents for box in boxes} == {("helper",), ()}
        assert all(box.rect.height() <= MOST_SCALE * (box.node.size + 2) for box in boxes)


def test_of_many_bands_each_covers_less_until_a_choice_leaves_few(tmp_path: Path) -> None:
    policy, opener = write_large(tmp_path / "large", 60, 20), large_opener(20)
    with opener.open(policy) as workspace:
        picture = picture_of(all_reaches(workspace), ())
    covers: list[float] = []
    for chosen in ((), *((number,) for number in range(60))):
        bands = [one for one in drawing_of(picture, 840, 660, chosen).bands if one.is_lit]
        [cover] = {one.cover for one in bands}
        assert cover == (1 if len(bands) <= MOST_SOLID else max(LEAST_COVER, MOST_SOLID / len(bands)))
        covers.append(cover)
    assert covers[0] < 1
    assert set(covers[1:]) == {1}


# calls and what they use


async def test_calls_of_today_follow_the_log_and_a_bar_leads_to_them(page: HomePage) -> None:
    window = window_of(page)
    assert page.calls_header.accessibleName() == "Calls today"
    counts = Counter({"allow": 1, "deny": 1})
    assert page._recent.verdicts == counts  # pyright: ignore[reportPrivateUsage]
    with Workspace.open(window.document.workspace.policy_path) as workspace:
        await workspace.call("researcher", "file", {"op": "list"})
    page.calls.look()
    await until(lambda: sum(one.count for one in page.timeline.timeline.counts) == 3)
    verdicts = Counter({one.verdict: 0 for one in page.timeline.timeline.counts})
    for one in page.timeline.timeline.counts:
        verdicts[one.verdict] += one.count
    minutes = page.timeline.timeline.stretch_s // 60
    said = f"3 calls \u00b7 {verdicts['deny']} denied \u00b7 a bar is {minutes} min"
    assert said in {label.text for label in page.calls_header.findChildren(ElidedLabel)}

    stretch = page.timeline.timeline.counts[0].stretch
    at = page.timeline.rect_of(stretch).center()
    QTest.mouseClick(page.timeline, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)

    assert window.shelf.current_key == "activity"
    audit = window.shelf.page("activity")
    assert isinstance(audit, ActivityPage)
    begin_s = page.timeline.timeline.begin_s + stretch * page.timeline.timeline.stretch_s
    assert audit.filters.span == (begin_s, begin_s + page.timeline.timeline.stretch_s)


async def test_rights_that_no_call_used_are_turned_off_in_one_step(page: HomePage) -> None:
    window = window_of(page)
    workspace = window.document.workspace
    rows = dict(page.unused.rows)
    on = {
        agent_id: sum(row.ticked and not row.is_hidden for right in rights.values() for row in right.operations)
        for agent_id, rights in ((one, workspace.rights(one)) for one in workspace.policy.agents)
    }
    assert {name: one.shown for name, one in rows.items()} == {name: count for name, count in on.items() if count}
    assert {name: one.used for name, one in rows.items() if one.used} == {"archivist": 1}
    assert used_words(rows["archivist"]) == f"1 of {on['archivist']} operations used"
    rest = sum(one.shown - one.used for one in rows.values())
    assert page.review_button.text() == f"Review {rest} unused operations..."

    at = next(row for row, (name, _) in enumerate(page.unused.rows) if name == "archivist")
    click(page.unused_view, page.unused.index(at, 0))
    await until(lambda: window.findChildren(UnusedDialog))
    (dialog,) = window.findChildren(UnusedDialog)
    assert dialog.model.rowCount() == on["archivist"] - 1
    assert not dialog.accept_button.isEnabled()
    dialog.view.setFocus()
    QTest.keyClick(dialog.view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    assert dialog.accept_button.text() == f"Turn off {on['archivist'] - 1} operations"
    QTest.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    await until(lambda: window.document.undo_stack.count() == 1)
    await settled(window)

    left = [
        (name, row.operation)
        for name, right in window.document.workspace.rights("archivist").items()
        for row in right.operations
        if row.ticked and not row.is_hidden
    ]
    assert left == [("file", "read")]
    window.document.undo_stack.undo()
    await until(lambda: dict(page.unused.rows).get("archivist") == rows["archivist"])


async def test_without_a_call_nothing_is_said_to_be_unused(tmp_path: Path) -> None:
    async with opened_window(demo(tmp_path), tmp_path) as window:
        page = await shown(window)
        await until(page.first.isVisible)
        assert not page.calls_row.isVisible()
        assert not page.review_button.isVisible()
        way = page.findChild(QPushButton, "home.first.try")
        assert way is not None
        QTest.mouseClick(way, Qt.MouseButton.LeftButton)
        assert window.shelf.current_key == "try"


async def test_until_it_is_known_the_sentence_says_how_far_it_is(tmp_path: Path) -> None:
    async with opened_window(demo(tmp_path), tmp_path) as window:
        window.show_page("home")
        page = page_of(window)
        assert page.headline.text() == "Working out what they can do: 0 of 4 agents"
        assert page.calls_row.isVisible()
        await until(lambda: page.is_whole)
        assert page.headline.text().startswith("3 agents can change things here.")
        await settled(window)


async def test_workspace_without_agents_says_what_to_do(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("gatewright = 1\n", "utf-8")
    async with opened_window(policy, tmp_path) as window:
        page = await shown(window)
        assert page.empty.isVisible()
        QTest.mouseClick(page.empty.action_button, Qt.MouseButton.LeftButton)
        assert window.shelf.current_key == "tools"


def test_effects_of_the_built_in_tools(tmp_path: Path) -> None:
    with Workspace.open(demo(tmp_path)) as workspace:
        effects = {(facts.name, op.name): op.effect for facts in workspace.catalog for op in facts.operations}
        tiers = {(facts.name, op.name): op.tier for facts in workspace.catalog for op in facts.operations}
    assert effects["file", "read"] is Effect.READ
    assert effects["file", "append"] is Effect.CHANGE
    assert effects["file_delete", ""] is Effect.DELETE
    assert effects["web_fetch", ""] is effects["send_message", "discord"] is Effect.SEND
    assert effects["shell_exec", ""] is Effect.RUN
    assert all(tiers[one] is SafetyTier.READ_ONLY for one, effect in effects.items() if effect is Effect.READ)
