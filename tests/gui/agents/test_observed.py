"""The marks of what is only observed: in the tree, in Why, in the matrix, and as the preview has it."""

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from gatewright.policy.observe import Observed, ObservedKind, observed_parts
from gatewright.policy.right import OperationRight, ToolRight
from gatewright.policy.rule import Periodic, RequiredBeforeExit, RequiresConsent, ToolRule
from gatewright.policy.verdict import Verdict, strictest
from gatewright_gui.pages.access.tools.matrix_words import long_words
from gatewright_gui.pages.access.tools.tool_tree import NOTED, Column
from gatewright_gui.session.observed import Noted, note_rows, note_tool
from gatewright_gui.session.right_columns import OPERATION_CELLS, column_under, columns_of, layout_of
from gatewright_gui.session.verbs.policy import set_observed
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import agents_page, cell, demo, opened_window, settled

WAYS = {
    "agent": Observed(ObservedKind.AGENT, "operator", 0.0),
    "other agent": Observed(ObservedKind.AGENT, "archivist", 0.0),
    "rule": Observed(ObservedKind.RULE, "only writers load", 0.0),
    "rule with a condition": Observed(ObservedKind.RULE, "no new scripts", 0.0),
    "catalog": Observed(ObservedKind.CATALOG, "station", 0.0),
}
AGENTS = ("operator", "archivist", "researcher")


@pytest.fixture
async def window(tmp_path: Path) -> AsyncIterator[MainWindow]:
    async with opened_window(demo(tmp_path), tmp_path) as made:
        made.selection.choose_agent("operator")
        await settled(made)
        yield made


def observe(window: MainWindow, *parts: Observed) -> None:
    assert set_observed(window.document, parts, float(round(time.time() + 86_400)))


def rows(rights: Mapping[str, ToolRight]) -> dict[tuple[str, str], OperationRight]:
    return {(tool, row.operation): row for tool, right in rights.items() for row in right.operations}


def noted(window: MainWindow, agent_id: str) -> dict[tuple[str, str], Noted]:
    enforced = window.document.rights_if_enforced(agent_id)
    found: dict[tuple[str, str], Noted] = {}
    for tool, right in window.document.rights(agent_id).items():
        for row, one in zip(right.operations, note_rows(right, enforced.get(tool)), strict=False):
            if one is not None:
                found[tool, row.operation] = one
    return found


def is_stricter(one: Verdict, other: Verdict) -> bool:
    return one is not other and strictest(one, other) is one


@pytest.mark.parametrize("way", WAYS)
async def test_every_row_is_marked_exactly_where_enforcing_would_be_stricter(window: MainWindow, way: str) -> None:
    document = window.document
    before = {agent_id: rows(document.rights(agent_id)) for agent_id in AGENTS}
    assert not any(noted(window, agent_id) for agent_id in AGENTS)
    observe(window, WAYS[way])
    marked = 0
    for agent_id in AGENTS:
        now, found = rows(document.rights(agent_id)), noted(window, agent_id)
        for place, was in before[agent_id].items():
            one, row = found.get(place), now[place]
            if is_stricter(was.verdict, row.verdict):
                assert one is not None, place
                assert (one.verdict, one.is_some) == (was.verdict, False)
                assert one.reasons, place
                assert set(one.reasons) <= set(was.reasons)
            else:
                assert was.verdict is row.verdict
                more = (was.depends | was.by_text) - (row.depends | row.by_text)
                limits = set(was.limits) - set(row.limits) - {rule for rule in was.limits if _only_reminds(rule)}
                assert (one is not None) == bool(more or limits), place
                assert one is None or one.is_some
        hidden = {f"{tool}.{name}" if name else tool for (tool, name), one in found.items() if _hides(one)}
        assert {name for name in document.workspace.view(agent_id).observed if "." in name} <= hidden
        marked += len(found)
    assert marked, "nothing was only observed"


def _only_reminds(limit: object) -> bool:
    return isinstance(limit, ToolRule) and isinstance(limit.rule_type, Periodic | RequiredBeforeExit | RequiresConsent)


def _hides(one: Noted) -> bool:
    return one.verdict is Verdict.DENY and not one.is_some


def shown_rows(window: MainWindow) -> Iterator[tuple[str, str | None]]:
    for tool, right in window.document.rights(window.selection.agent_id or "").items():
        yield tool, None
        for name in right.facts.operation_names:
            yield tool, name


@pytest.mark.parametrize("way", WAYS)
async def test_tree_why_and_matrix_say_the_same_of_every_row(window: MainWindow, way: str) -> None:
    document, tools = window.document, agents_page(window).tools
    agent_id = "researcher" if way == "rule" else "archivist" if way == "other agent" else "operator"
    window.selection.choose_agent(agent_id)
    observe(window, WAYS[way])
    await settled(window)
    layout = layout_of(document.catalog, document.policy.catalogs)
    cells = columns_of(document.workspace, [agent_id])[agent_id].cells
    places = {(one.name, name): one.start + at for one in layout.tools for at, name in enumerate(one.operations)}
    found, marked = noted(window, agent_id), 0
    for tool, operation in shown_rows(window):
        index = cell(window, tool, operation, Column.FACT)
        one, right = index.data(NOTED), document.rights(agent_id)[tool]
        names = [operation] if operation is not None else [row.operation for row in right.operations]
        held = [found.get((tool, name)) for name in names]
        assert one == (held[0] if operation is not None else note_tool(held))
        spoken, tip = (index.data(role) for role in (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole))
        if operation is not None:
            in_matrix = OPERATION_CELLS[cells[places[tool, operation]]]
            assert in_matrix.is_observed == (one is not None)
            assert ("only observed" in long_words(in_matrix)) == (one is not None)
        if one is None:
            assert "observed" not in f"{index.data()} {spoken}"
            continue
        marked += 1
        said = "observed in part" if one.is_some else "only observed"
        assert index.data() == spoken == f"{said}: {one.words}"
        assert tip.startswith("Only observed, not enforced: ")
    assert marked

    (place, one), *_ = sorted(found.items(), key=lambda pair: (pair[1].is_some, pair[0]))
    tools.show_row(place[0], place[1] or None)
    await settled(window)
    why = agents_page(window).inspector.why
    assert one.sentence in why.sentence.text()
    told = why.model.rows
    (part,) = observed_parts(document.policy, time.time())
    assert any(step.mark == "observed" and part.name in step.text and "not enforced" in step.text for step in told)
    assert any(step.mark == "observed" and step.line for step in told), told

    window.undo()
    await settled(window)
    assert not any(cell(window, *row).data(NOTED) for row in shown_rows(window))
    assert "observed" not in why.sentence.text()


async def test_cells_that_are_kept_follow_what_is_observed(window: MainWindow) -> None:
    document = window.document
    layout = layout_of(document.catalog, document.policy.catalogs)
    for parts in ((WAYS["agent"],), (WAYS["catalog"], WAYS["rule"]), tuple(WAYS.values())):
        observe(window, *parts)
        for agent_id in AGENTS:
            view = document.workspace.view(agent_id)
            fresh = column_under(layout, document.policy, agent_id, view.rights, enforced=view.enforced_rights)
            assert fresh == columns_of(document.workspace, [agent_id])[agent_id]
        window.undo()
    assert not any(
        OPERATION_CELLS[one].is_observed for one in columns_of(document.workspace, ["operator"])["operator"].cells
    )
