"""One window goes from workspace to workspace, as *New workspace*, *Open* and a dropped file do.

Nothing of the one that is gone is shown, and an edit changes what is meant in the one that is open, nothing else.
"""

import asyncio
import logging
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

import pytest
from PySide6.QtCore import QAbstractItemModel, QAbstractListModel, QModelIndex, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

from gatewright.policy.document import Policy, Source
from gatewright.policy.rule import MaxCalls
from gatewright.policy.ruleedit import RulePosition
from gatewright.policy.verdict import Permission
from gatewright.workspace.template import Beginning, begin_workspace
from gatewright_gui.pages.access.files import FilesPage
from gatewright_gui.pages.access.files.rule_model import COMMENT, LEVEL
from gatewright_gui.pages.access.files.rule_table import edit_at_once
from gatewright_gui.pages.access.rules import RulesPage
from gatewright_gui.pages.access.tools.page import ToolsPage
from gatewright_gui.pages.policy_file import TextPage
from gatewright_gui.session.verbs import policy, rights, sources
from gatewright_gui.session.verbs.rights import ManyRights, Target
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.new_dialog import NewDialog
from gatewright_gui.window.pages import all_rows
from tests.gui.session.opened import Said, agents_pane, opened_window, settled, until

LEVELS = tuple(Permission)
FIRST = """gatewright = 1
name = "qfirst"

[agents.helper]
description = "qfirst agent"
tools = ["file", "block"]
sources = ["files"]

[[agents.helper.tool_rules]]
tool_name = "file"
rule_type = { MaxCalls = 3 }

[agents.qfirst-only]
tools = ["file"]
sources = ["files"]

[[sources]]
id = "files"
type = "file"
base_path = "qfirst-folder"
permission_rules = [
  { pattern = ".ssh/", permission = "none", comment = "qfirst keys" },
  { pattern = "qfirst*", permission = "none" },
  { pattern = "id_rsa*", permission = "none" },
]

[[policy.rules]]
name = "qfirst rule"
effect = "ask"
agents = ["helper"]
"""
SECOND = """gatewright = 1
name = "qsecond"

[agents.helper]
description = "qsecond agent"
tools = ["file", "recall"]
sources = ["files"]

[[agents.helper.tool_rules]]
tool_name = "file"
rule_type = { MaxCalls = 3 }

[[sources]]
id = "files"
type = "file"
base_path = "qsecond-folder"
permission_rules = [{ pattern = "qsecond*", permission = "none" }, { pattern = "id_rsa*", permission = "none" }]

[[policy.rules]]
name = "qsecond rule"
effect = "deny"
agents = ["helper"]

[[policy.rules]]
name = "qsecond other rule"
effect = "ask"
"""
EMPTY = "gatewright = 1\n"


def _strange() -> str:
    """Names of every script, and more sources and agents than a page shows at once."""
    agents = (
        f'[agents."qthird-{at}"]\ndescription = "qthird \u65e5\u672c {at} <b>&amp;"\ntools = ["file"]\n'
        for at in range(12)
    )
    sources = (
        f"""[[sources]]
type = "file"
id = "qthird \u00df\u0130 {at}"
base_path = "qthird-{at}"
permission_rules = [
  {{ pattern = "qthird-\u00e9\u0301/{at}*", permission = "human", comment = "\U0001f600" }},
  {{ pattern = "**/{at}", permission = "append" }},
]
"""
        for at in range(14)
    )
    head = 'gatewright = 1\nname = "qthird \u0645\u0631\u062d\u0628\u0627 \U0001f600"\n'
    rule = '[[policy.rules]]\nname = "qthird \u0645 rule"\neffect = "ask"\n'
    return "\n".join((head, *agents, *sources, rule))


@dataclass(slots=True)
class Place:
    """A workspace on the disk, and the word that all its names hold."""

    mark: str
    policy: Path
    folders: tuple[str, ...] = ()
    kept: str = field(init=False)

    def __post_init__(self) -> None:
        for name in self.folders:
            folder = self.policy.parent / name
            folder.mkdir(parents=True)
            for file in (f"{self.mark}.txt", f"sub/{self.mark}.md", "id_rsa", ".ssh/x"):
                (folder / file).parent.mkdir(exist_ok=True)
                (folder / file).write_text(self.mark, "utf-8")
        self.kept = self.policy.read_text("utf-8")


def written(folder: Path, mark: str, text: str, folders: tuple[str, ...] = ()) -> Place:
    folder.mkdir()
    (folder / "policy.toml").write_text(text, "utf-8")
    return Place(mark, folder / "policy.toml", folders)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Place, ...]:
    return (
        written(tmp_path / "one", "qfirst", FIRST, ("qfirst-folder",)),
        written(tmp_path / "two", "qsecond", SECOND, ("qsecond-folder",)),
        written(tmp_path / "three", "qempty", EMPTY),
        written(tmp_path / "four", "qthird", _strange(), tuple(f"qthird-{number}" for number in range(14))),
    )


@pytest.fixture
async def window(places: tuple[Place, ...], tmp_path: Path) -> AsyncIterator[MainWindow]:
    async with opened_window(places[0].policy, tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_raised(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither in a slot, nor in what Qt calls, nor in a task or a thread."""
    raised: list[BaseException] = []

    def keep(_kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        raised.append(error)

    monkeypatch.setattr(sys, "excepthook", keep)
    yield
    assert not raised
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


# what is shown


def _texts(widget: QWidget) -> Iterator[str]:
    """All that a widget and its parts say, where it can be seen."""
    for part in (widget, *widget.findChildren(QWidget)):
        if not part.isVisibleTo(widget):
            continue
        if isinstance(part, QLabel | QLineEdit | QPushButton):
            yield part.text()
        elif isinstance(part, QPlainTextEdit):
            yield part.toPlainText()
        elif isinstance(part, QComboBox):
            yield from (part.itemText(row) for row in range(part.count()))


def _rows(model: QAbstractItemModel, parent: QModelIndex, most: int = 400) -> Iterator[str]:
    """All that a model says, also one that nobody looks at."""
    is_list = isinstance(model, QAbstractListModel)  # whose columns nobody may ask for
    columns = 1 if is_list else model.columnCount(parent)
    for row in range(min(model.rowCount(parent), most)):
        for column in range(columns):
            index = model.index(row, column, parent)
            for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.EditRole):
                yield str(model.data(index, role))
        if not is_list:
            yield from _rows(model, model.index(row, 0, parent))
    yield from (str(model.headerData(at, Qt.Orientation.Horizontal)) for at in range(columns))
    yield from (str(model.headerData(at, Qt.Orientation.Vertical)) for at in range(min(model.rowCount(parent), most)))


def shown_of(window: MainWindow, marks: set[str]) -> list[str]:
    """Where in the window, in pages that are not seen too, one of these words stands."""
    found: list[str] = []
    for key, page in window.shelf.pages.items():
        found += [f"{key}: {text[:80]}" for text in _texts(page) if any(mark in text for mark in marks)]
        for model in page.findChildren(QAbstractItemModel):
            name = f"{key}: {type(model).__name__}"
            found += [f"{name}: {text[:80]}" for text in _rows(model, QModelIndex()) if any(m in text for m in marks)]
    found += [f"window: {text[:80]}" for text in _texts(window.status) if any(mark in text for mark in marks)]
    return found


async def switch(window: MainWindow, places: tuple[Place, ...], to: Place) -> None:
    """Open it in the same window; in that very moment nothing of the others is left, and nothing comes back later."""
    gone = {place.mark for place in places if place is not to}
    seen: list[list[str]] = []

    def look() -> None:
        seen.append(shown_of(window, {place.mark for place in places}))

    window.document.closed.connect(look)
    window.document.opened.connect(lambda: seen.append(shown_of(window, gone)), Qt.ConnectionType.SingleShotConnection)
    try:
        assert await window.open(to.policy)
    finally:
        window.document.closed.disconnect(look)
    await settled(window)
    assert [found for found in seen if found] == []
    assert shown_of(window, gone) == []
    assert window.document.path == to.policy


# edits, each through what the page itself offers


Edited = Callable[[MainWindow, random.Random], "Policy | None"]
"""Makes an edit on the page that is shown; what the policy is to be then, None where there is nothing to edit."""


def _another_level(rng: random.Random, now: Permission) -> Permission:
    return rng.choice([level for level in LEVELS if level is not now])


def _with_source(policy: Policy, source: Source) -> Policy:
    rows = (source if one.source_id == source.source_id else one for one in policy.sources)
    return replace(policy, sources=tuple(rows))


def _files(window: MainWindow, rng: random.Random) -> Policy | None:
    """A level or a comment of a row, or a rule that goes."""
    page, policy = window.shelf.page("files"), window.document.policy
    assert isinstance(page, FilesPage)
    if not policy.file_sources:
        assert page.rules.model.rowCount() == 0
        return None
    source = policy.source(str(page.rules.header.picker.currentData()))
    assert source is not None
    model, rules = page.rules.model, list(source.permission_rules)
    assert [model.index(row, 0).data() for row in range(len(rules))] == [rule.pattern for rule in rules]
    row, what = rng.randrange(len(rules) + 1), rng.choice(("level", "comment", "remove"))
    if row == len(rules):
        level = _another_level(rng, source.default_permission)
        assert model.setData(model.index(row, LEVEL), str(level))
        return _with_source(policy, replace(source, default_permission=level))
    if what == "level":
        rules[row] = replace(rules[row], permission=_another_level(rng, rules[row].permission))
        assert model.setData(model.index(row, LEVEL), str(rules[row].permission))
    elif what == "comment":
        rules[row] = replace(rules[row], comment=f"said {rng.random()}")
        assert model.setData(model.index(row, COMMENT), rules[row].comment)
    else:
        page.rules.table.setCurrentIndex(model.index(row, 0))
        page.rules.table.setFocus()
        QTest.keyClick(page.rules.table, Qt.Key.Key_Delete)
        del rules[row]
    return _with_source(policy, replace(source, permission_rules=tuple(rules)))


def _agents(window: MainWindow, rng: random.Random) -> Policy | None:
    """The description of the agent that is shown, typed and sent with Return."""
    page, policy = window.shelf.page("tools"), window.document.policy
    assert isinstance(page, ToolsPage)
    if not policy.agents:
        assert agents_pane(window).view.model().rowCount() == 0
        return None
    agent = policy.agents[rng.choice(list(policy.agents))]
    window.selection.choose_agent(agent.agent_id)
    assert page.tools.description.text() == agent.description
    text = f"typed {rng.random()}"
    page.tools.description.setFocus()
    page.tools.description.selectAll()
    QTest.keyClicks(page.tools.description, text)
    QTest.keyClick(page.tools.description, Qt.Key.Key_Return)
    return policy.with_agent(replace(agent, description=text))


def _policy(window: MainWindow, rng: random.Random) -> Policy | None:
    """The message of a rule, typed and applied."""
    page, policy = window.shelf.page("rules"), window.document.policy
    assert isinstance(page, RulesPage)
    pane = page.rules
    assert [rule.name for rule in pane.model.rows] == [rule.name for rule in policy.rules]
    if not policy.rules:
        return None
    row, message = rng.randrange(len(policy.rules)), f"told {rng.random()}"
    pane.view.choose(row)
    pane.form.message.setText(message)
    pane.form.apply_requested.emit()
    rules = [replace(rule, message=message) if at == row else rule for at, rule in enumerate(policy.rules)]
    return replace(policy, rules=tuple(rules))


def _toml(window: MainWindow, rng: random.Random) -> Policy | None:
    """The description of the policy, typed into its text and applied."""
    page, policy = window.shelf.page("text"), window.document.policy
    assert isinstance(page, TextPage)
    text = f"toml {rng.random()}"
    lines = [line for line in page.editor.lines if not line.startswith('description = "toml')]
    page.editor.selectAll()
    QTest.keyClick(page.editor, Qt.Key.Key_Delete)
    page.editor.insertPlainText("\n".join([lines[0], f'description = "{text}"', *lines[1:]]))
    QTest.keyClick(page.editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    return replace(policy, description=text)


EDITS: dict[str, Edited] = {"files": _files, "tools": _agents, "rules": _policy, "text": _toml}


@pytest.mark.parametrize("seed", range(6))
async def test_an_edit_after_a_switch_changes_what_is_meant_there_and_nothing_else(
    window: MainWindow, places: tuple[Place, ...], seed: int
) -> None:
    rng = random.Random(seed)
    keys = [row.key for row in all_rows()]
    for _ in range(8):
        window.show_page(rng.choice(keys))
        await settled(window)
        to = rng.choice(places)
        await switch(window, places, to)
        key = rng.choice(keys if rng.random() < 0.3 else list(EDITS))
        window.show_page(key)
        await settled(window)
        assert shown_of(window, {place.mark for place in places if place is not to}) == []
        if key in EDITS:
            steps = window.document.undo_stack.index()
            wanted = EDITS[key](window, rng)
            await settled(window)
            if wanted is not None:
                await until(lambda steps=steps: window.document.undo_stack.index() == steps + 1)
                assert window.document.policy.is_same(wanted)
                if rng.random() < 0.5:
                    window.undo()
                else:
                    assert await window.document.save()
                    to.kept = to.policy.read_text("utf-8")
        while window.document.undo_stack.canUndo() and window.document.is_dirty:
            window.undo()
        if window.document.is_dirty:
            assert await window.document.save()
            to.kept = to.policy.read_text("utf-8")
        for place in places:
            assert place.policy.read_text("utf-8") == place.kept


# what is begun in one workspace


def _half_described(window: MainWindow) -> None:
    page = window.shelf.page("tools")
    assert isinstance(page, ToolsPage)
    page.tools.description.setFocus()
    QTest.keyClicks(page.tools.description, "half typed")


def _half_ruled(window: MainWindow) -> None:
    window.show_page("rules")
    page = window.shelf.page("rules")
    assert isinstance(page, RulesPage)
    page.rules.view.choose(0)
    page.rules.form.message.setText("half typed")


def _half_set(window: MainWindow) -> None:
    window.show_page("files")
    page = window.shelf.page("files")
    assert isinstance(page, FilesPage)
    edit_at_once(page.rules.table, page.rules.model.index(0, LEVEL))


def _menu_open(window: MainWindow) -> None:
    page = window.shelf.page("tools")
    assert isinstance(page, ToolsPage)
    page.tools.view.customContextMenuRequested.emit(page.tools.view.visualRect(page.tools.view.currentIndex()).center())


def _dialog_open(window: MainWindow) -> None:
    window.show_page("files")
    page = window.shelf.page("files")
    assert isinstance(page, FilesPage)
    page.questions.add()


def _cells_worked_out(window: MainWindow) -> None:
    """More cells than are edited at once: the worker process has them when the next workspace comes."""
    targets = [Target(facts.name, facts.operation_names) for facts in window.document.catalog]
    cells = dict.fromkeys(window.document.policy.agents, targets)
    rights.edit_cells(window.document, window.deriver, window.tasks, cells, "off")
    assert rights.CELLS_TASK in window.tasks.names


def _many_worked_out(window: MainWindow) -> None:
    page = window.shelf.page("tools")
    assert isinstance(page, ToolsPage)
    targets = [Target(facts.name, facts.operation_names) for facts in window.document.catalog]
    ManyRights(window.document, window.deriver, window.tasks).edit("helper", targets * rights.TOOLS_AT_ONCE, "off")
    assert rights.MANY_TASK in window.tasks.names


BEGUN = (_half_described, _half_ruled, _half_set, _menu_open, _dialog_open, _cells_worked_out, _many_worked_out)


@pytest.mark.parametrize("begin", BEGUN)
async def test_what_is_begun_in_a_workspace_ends_with_it(
    window: MainWindow, places: tuple[Place, ...], begin: Callable[[MainWindow], None]
) -> None:
    """The next one has an agent and a source of the same names, so that it could be finished there."""
    begin(window)
    await asyncio.sleep(0)
    to = places[1]
    assert await window.document.open(to.policy)
    assert QApplication.activePopupWidget() is None
    await settled(window)

    assert QApplication.activeModalWidget() is None
    for row in all_rows():
        window.show_page(row.key)
        await settled(window)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Tab):
        if not isinstance(at := window.focusWidget() or window, QAbstractButton):  # a button is pressed by Return
            QTest.keyClick(at, key)
    page = window.shelf.page("rules")
    assert isinstance(page, RulesPage)
    page.rules.form.apply_requested.emit()
    await settled(window)

    assert not window.document.undo_stack.count()
    assert window.document.workspace.text() == to.kept
    assert places[0].policy.read_text("utf-8") == places[0].kept


async def test_edit_of_a_row_that_is_gone_is_refused_and_changes_nothing(
    window: MainWindow, places: tuple[Place, ...]
) -> None:
    document = window.document
    source, rule, agent = document.policy.sources[0], document.policy.rules[0], document.policy.agents["helper"]
    level, limit = source.permission_rules[0], RulePosition("helper", 0, agent.tool_rules[0])
    said = Said(document)
    assert await window.open(places[1].policy)
    edits: tuple[tuple[Callable[[], bool], str], ...] = (
        (lambda: sources.set_level(document, source, level, Permission.ADMIN), "source `files`"),
        (lambda: sources.set_default_level(document, source, Permission.ADMIN), "source `files`"),
        (lambda: sources.remove_rules(document, source, [level]), "source `files`"),
        (lambda: sources.move_rules(document, document.policy.sources[0], [level], None), "rule `.ssh/`"),
        (lambda: sources.set_rule(document, document.policy.sources[0], level, level), "rule `.ssh/`"),
        (lambda: sources.remove_source(document, source), "source `files`"),
        (lambda: policy.change_rule(document, rule, replace(rule, message="x")), "policy rule `qfirst rule`"),
        (lambda: policy.remove_rules(document, [rule]), "policy rule `qfirst rule`"),
        (lambda: policy.move_rules(document, [rule], None), "policy rule `qfirst rule`"),
        (lambda: rights.change_rule(document, limit, MaxCalls(9)), "tool rule 1 of `helper`"),
    )
    for edit, what in edits:
        assert not edit()
        assert what in said.last
    assert not document.undo_stack.count()


async def test_new_workspace_after_the_page_files_by_mouse_and_keys(tmp_path: Path) -> None:
    """As somebody did it: a folder opened in the tree, the Console, a new workspace with the same source, Files."""
    folders = tmp_path / "w2", tmp_path / "w5"
    for folder, names in zip(folders, ((".ssh/x", ".env", "id_rsa"), (".env",)), strict=True):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("x", "utf-8")
    first = begin_workspace(folders[0], Beginning("helper", Permission.READ_WRITE, hides_secrets=True))
    async with opened_window(first, tmp_path) as window:
        left = Qt.MouseButton.LeftButton
        window.show_page("files")
        page = window.shelf.page("files")
        assert isinstance(page, FilesPage)
        await until(lambda: page.tree_model.rowCount() > 1)
        page.folder.tree.setCurrentIndex(page.tree_model.index_of(".ssh"))
        QTest.keyClick(page.folder.tree, Qt.Key.Key_Right)
        await settled(window)
        QTest.mouseClick(window.rail.button("try"), left)
        await settled(window)
        window.actions_by_key["new"].trigger()
        await until(lambda: window.findChild(NewDialog, "new") is not None)
        dialog = window.findChild(NewDialog, "new")
        assert dialog is not None
        QTest.keyClicks(dialog.place, str(folders[1]))
        QTest.mouseClick(dialog.accept_button, left)
        await until(lambda: window.document.path == folders[1] / "policy.toml")
        await settled(window)
        window.show_page("files")
        await settled(window)

        rules = window.document.policy.sources[0].permission_rules
        assert [page.rules.model.index(row, 0).data() for row in range(len(rules))] == [one.pattern for one in rules]
        at = next(row for row, rule in enumerate(rules) if rule.pattern == ".env*")
        page.rules.table.setCurrentIndex(page.rules.model.index(at, LEVEL))
        assert page.rules.model.setData(page.rules.model.index(at, LEVEL), "read_only")

        now = window.document.policy.sources[0].permission_rules
        assert [one for one in now if one not in rules] == [replace(rules[at], permission=Permission.READ_ONLY)]
        assert window.message.isHidden()
        window.undo()
