"""The Overview: what it tells of agents, risks, calls and what waits, and where a click leads. By a real workspace."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from PySide6.QtCore import QModelIndex, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QPushButton

from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.workspace import Workspace
from gatewright_gui.pages.overview import OverviewPage
from gatewright_gui.pages.overview.picture import PAD, RightsCanvas
from gatewright_gui.pages.overview.picture_layout import LEAST_COVER, MOST_SCALE, MOST_SOLID, drawing_of
from gatewright_gui.session.rights_picture import AGENT, MOST_AGENTS, MOST_TOOLS, SOURCE, TOOL, rights_together
from gatewright_gui.session.verbs.rights import ask_first
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import demo, opened_window, settled, until
from tests.support.largeworkspace import large_opener, write_large

Said = Qt.ItemDataRole.AccessibleTextRole
UNKNOWN = '\n[agents.scribe]\ntools = ["file"]\nsources = []\n'
ONE_AGENT = 'gatewright = 1\n\n[agents.helper]\ntools = ["block"]\n'


def page_of(window: MainWindow) -> OverviewPage:
    page = window.shelf.page("overview")
    assert isinstance(page, OverviewPage)
    return page


async def shown(window: MainWindow) -> OverviewPage:
    window.show_page("overview")
    await settled(window)
    return page_of(window)


@pytest_asyncio.fixture
async def page(tmp_path: Path) -> AsyncIterator[OverviewPage]:
    """Of the demo, with an agent that has a problem, after two calls of which one was denied."""
    policy = demo(tmp_path)
    policy.write_text(policy.read_text("utf-8") + UNKNOWN, "utf-8")
    with Workspace.open(policy) as workspace:
        await workspace.call("archivist", "file", {"op": "read", "path": "README.md"})
        await workspace.call("archivist", "file", {"op": "append", "path": "README.md", "content": "x"})
    async with opened_window(policy, tmp_path) as window:
        yield await shown(window)


def window_of(page: OverviewPage) -> MainWindow:
    window = page.window()
    assert isinstance(window, MainWindow)
    return window


def click(view: QAbstractItemView, index: QModelIndex) -> None:
    at = view.visualRect(index).center()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)


def told(page: OverviewPage) -> list[str]:
    return [str(page.cards.index(row, 0).data(Said)) for row in range(page.cards.rowCount())]


async def test_each_card_tells_what_the_engine_says_of_its_agent_and_its_calls_of_today(page: OverviewPage) -> None:
    workspace = window_of(page).document.workspace
    for agent_id, said in zip(workspace.policy.agents, told(page), strict=True):
        rows = [row for right in workspace.rights(agent_id).values() for row in right.operations]
        on = [row for row in rows if row.ticked and not row.is_hidden]
        asking = sum(row.verdict is Verdict.ASK for row in on)
        privileged = sum(row.tier is SafetyTier.PRIVILEGED for row in on)
        assert said.startswith(f"{agent_id}: {len(on)} of {len(rows)} on")
        assert (f"{asking} ask first" in said) == (asking > 0)
        assert (f"{privileged} privileged" in said) == (privileged > 0)

    assert told(page)[0].endswith("; 2 calls today, 1 denied")
    assert told(page)[1].endswith("; no calls today")
    assert page.notices.calls.text() == "2 calls today, 1 denied"

    path = window_of(page).document.workspace.policy_path
    with Workspace.open(path) as workspace:
        await workspace.call("researcher", "file", {"op": "list"})
    page.calls.look()
    await until(lambda: told(page)[1].endswith("; 1 call today"))


async def test_everything_leads_to_where_it_is_changed(page: OverviewPage) -> None:
    window = window_of(page)
    click(page.view, page.cards.index(1, 0))
    assert (window.shelf.current_key, window.selection.agent_id) == ("agents", "researcher")

    window.show_page("overview")
    assert page.view.hasFocus()
    QTest.keyClick(page.view, Qt.Key.Key_Down)
    QTest.keyClick(page.view, Qt.Key.Key_Return)
    assert (window.shelf.current_key, window.selection.agent_id) == ("agents", "operator")

    # an operation that asks no more is a risk
    window.show_page("overview")
    before = page.risks.rowCount()
    ask_first(window.document, "operator", "table_edit", "drop_row", on=False)
    await settled(window)

    rows = [page.risks.index(row, 0) for row in range(page.risks.rowCount())]
    assert len(rows) == before + 1
    (risk,) = (index for index in rows if index.data() == "table_edit.drop_row")
    assert str(risk.data(Said)).startswith("table_edit.drop_row, privileged, ")
    click(page.risk_view, risk)
    await settled(window)
    chosen = window.selection
    assert (chosen.agent_id, chosen.tool, chosen.operation) == ("operator", "table_edit", "drop_row")

    # what waits is a line
    window.show_page("overview")
    await settled(window)
    lines = {line.objectName(): line.text() for line in page.findChildren(QPushButton) if line.isVisible()}
    assert lines == {
        "overview.warnings": "1 warning",
        "overview.unsaved": "Unsaved changes",
        "overview.calls": "2 calls today, 1 denied",
    }

    for line, key in (
        (page.notices.unsaved, "toml"),
        (page.notices.warnings, "problems"),
        (page.notices.calls, "audit"),
    ):
        window.show_page("overview")
        QTest.mouseClick(line, Qt.MouseButton.LeftButton)
        assert window.shelf.current_key == key


async def test_picture_has_the_rights_that_the_engine_says_and_a_choice_lights_what_it_concerns(
    page: OverviewPage,
) -> None:
    canvas, workspace = page.rights.canvas, window_of(page).document.workspace
    picture = canvas.picture
    numbers = {(node.column, node.name): number for number, node in enumerate(picture.nodes)}
    wanted = {
        (agent_id, name): (
            sum(row.ticked and row.verdict is Verdict.ALLOW for row in right.operations),
            sum(row.ticked and row.verdict is Verdict.ASK for row in right.operations),
        )
        for agent_id in workspace.policy.agents
        for name, right in workspace.rights(agent_id).items()
        if (TOOL, name) in numbers
    }
    drawn = {
        (picture.nodes[flow.agent].name, picture.nodes[flow.tool].name): (flow.allow, flow.ask)
        for flow in picture.flows
        if flow.source is None and picture.nodes[flow.tool].name
    }
    assert drawn == {place: count for place, count in wanted.items() if count != (0, 0)}
    assert any(ask for _, ask in drawn.values())

    # by mouse: an agent, then a band; the list has the same rows
    press(canvas, box_of(canvas, numbers[AGENT, "researcher"]))
    assert {row[0] for row in listed(page)} == {"researcher"}
    assert numbers[AGENT, "operator"] not in canvas.drawing.lit
    assert numbers[SOURCE, "archive"] in canvas.drawing.lit
    QTest.mouseClick(page.rights.all_button, Qt.MouseButton.LeftButton)
    band = next(
        one for one in canvas.drawing.bands if one.part == (numbers[AGENT, "archivist"], numbers[TOOL, "tracker"])
    )
    press(canvas, band.begin.center() + QPointF(2, 0))
    assert canvas.accessibleDescription() == "archivist may use tracker: 3 operations (3 ask first)"
    assert listed(page) == [("archivist", "tracker", "", "0", "3")]
    press(canvas, band.begin.center() + QPointF(2, 0))
    assert len(canvas.drawing.lit) == len(picture.nodes)

    # by keys
    canvas.setFocus()
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Space):
        QTest.keyClick(canvas, key)
    assert canvas.accessibleDescription().startswith("archivist: ")
    assert {row[0] for row in listed(page)} == {"archivist"}
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Escape):
        QTest.keyClick(canvas, key)
    assert canvas.accessibleDescription().startswith("archive: ")
    assert len(listed(page)) == len(picture.flows)


def box_of(canvas: RightsCanvas, number: int) -> QPointF:
    return next(box.rect.center() for box in canvas.drawing.boxes if box.number == number)


def press(canvas: RightsCanvas, at: QPointF) -> None:
    place = (at + QPointF(PAD, PAD)).toPoint()
    QTest.mouseMove(canvas, place)
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)


def listed(page: OverviewPage) -> list[tuple[str, ...]]:
    model = page.rights.model
    return [
        tuple(str(model.index(row, column).data()) for column in range(model.columnCount()))
        for row in range(model.rowCount())
    ]


def test_what_there_is_no_room_for_stands_together_and_nothing_is_lost(tmp_path: Path) -> None:
    with large_opener(40).open(write_large(tmp_path / "large", 20, 40)) as workspace:
        risks, picture = rights_together(workspace)
        rights = [workspace.rights(agent_id) for agent_id in workspace.policy.agents]
    on = sum(row.ticked and not row.is_hidden for held in rights for right in held.values() for row in right.operations)

    for column, most, every in ((AGENT, MOST_AGENTS, 20), (TOOL, MOST_TOOLS + 1, 40)):
        nodes = [node for node in picture.nodes if node.column == column]
        assert len(nodes) == most
        assert sum(node.members for node in nodes) == every
        assert sum(node.size for node in nodes) == on
        assert nodes[-1].title == f"and {every - most + 1} more"
        harm = Counter(
            name for risk in risks for name in (risk.agents if column == AGENT else [risk.tool] * len(risk.agents))
        )
        ranks = [(harm[node.name], node.size) for node in nodes[:-1]]
        assert ranks == sorted(ranks, reverse=True)
        assert all(
            harm[node.name] >= harm[name] for node in nodes[:-1] for name in harm.keys() - {n.name for n in nodes}
        )
    assert sum(flow.allow + flow.ask for flow in picture.flows) == on


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
        risks, picture = rights_together(workspace)
    harmful = {name for risk in risks for name in risk.agents}
    assert harmful == {f"a{at:02}" for at in range(count - dangerous, count)}

    shown = [node for node in picture.nodes if node.column == AGENT]

    assert {node.name for node in shown[:dangerous]} == harmful
    assert shown[-1].title == f"and {count - MOST_AGENTS + 1} more"


async def test_few_operations_make_no_wall_of_colour(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(ONE_AGENT, "utf-8")
    async with opened_window(policy, tmp_path) as window:
        page = await shown(window)
        window.resize(1280, 1000)
        await settled(window)
        boxes = page.rights.canvas.drawing.boxes
        assert {box.node.name for box in boxes} == {"helper", "block"}
        assert all(box.rect.height() <= MOST_SCALE * (box.node.size + 2) for box in boxes)


def test_of_many_bands_each_covers_less_until_a_choice_leaves_few(tmp_path: Path) -> None:
    policy, opener = write_large(tmp_path / "large", 18, 40), large_opener(40)
    with opener.open(policy) as workspace:
        picture = rights_together(workspace)[1]
    covers: list[float] = []
    for chosen in ((), *((number,) for number in range(len(picture.nodes)))):
        bands = [one for one in drawing_of(picture, 840, 660, chosen).bands if one.lit_allow + one.lit_ask]
        [cover] = {one.cover for one in bands}
        assert cover == (1 if len(bands) <= MOST_SOLID else max(LEAST_COVER, MOST_SOLID / len(bands)))
        covers.append(cover)
    assert covers[0] < 1
    assert set(covers[1:]) == {1}


async def test_workspace_without_agents_says_what_to_do(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("gatewright = 1\n", "utf-8")
    async with opened_window(policy, tmp_path) as window:
        page = await shown(window)
        assert page.empty.isVisible()
        QTest.mouseClick(page.empty.action_button, Qt.MouseButton.LeftButton)
        assert window.shelf.current_key == "agents"
