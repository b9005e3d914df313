"""The steps on the Files page: a level is changed and the folder recolours, what decides a path, a path to try."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QComboBox, QLineEdit, QTableView, QTreeView

from gatewright.policy.document import Source
from gatewright.policy.permission import Action, Permission
from gatewright.policy.verdict import Verdict
from gatewright_gui.app.touring.driver import CTRL, CTRL_SHIFT, DriveError
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.models import foldertree, permissionrules
from gatewright_gui.pages.files import FilesPage
from gatewright_gui.session.files import PathLevel

NOT_THERE = "not-there-yet.md"


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the folder whose level a rule decides."""

    relative: str
    index: int


def show_files(scene: Scene) -> None:
    """The page with its rules and its folder."""
    with scene.step("files", "files") as step:
        scene.go_to("files")
        source = source_of(scene)
        if source is None:
            step.not_here("the policy has no source")
            return
        table = scene.driver.find("files.rules", QTableView).model()
        shown = [
            (_cell(table.index(row, permissionrules.PATTERN)), _cell(table.index(row, permissionrules.LEVEL)))
            for row in range(table.rowCount())
        ]
        wanted = [(rule.pattern, str(rule.permission)) for rule in source.permission_rules]
        step.equal("the table holds the rules in their order", shown[:-1], wanted)
        step.equal("its last row is the default", shown[-1][1], str(source.default_permission))
        base = scene.document.workspace.folder / source.base_path
        names = {entry.name for entry in base.iterdir()} if base.is_dir() else set[str]()
        tree = tree_of(scene)
        found = {str(tree.model().index(row, 0).data()).rstrip("/") for row in range(tree.model().rowCount())}
        step.equal("the tree holds what is in the folder", found, names)
        levels = {p.path: str(p.permission) for p in _levels(scene)}
        asked = scene.document.workspace.explain_paths(source.source_id, list(levels))
        step.equal("each has the level of the engine", levels, {row.path: str(row.permission) for row in asked})
        _open_folders(scene)
        hits = [_cell(table.index(row, permissionrules.HITS)) for row in range(table.rowCount())]
        step.check(
            "every row says how many files it decides", all(hit.strip(" +").replace(",", "").isdigit() for hit in hits)
        )


def change_level(scene: Scene) -> None:
    """Give a rule another level in its row; the folder takes other colours; undo and redo."""
    change: _Change | None = None
    with scene.step("change-level", "files") as step:
        source, place = source_of(scene), place_of(scene)
        if source is None or place is None:
            step.not_here("no rule decides what is in the folder")
            return
        before = _source_levels(source)
        old = before[place.index]
        new = Permission.HUMAN if old is not Permission.HUMAN else Permission.READ_ONLY
        colours = _look_of(scene, place)
        _set_level(scene, place.index, new)
        scene.settle()
        after = source_of(scene)
        step.equal(
            f"rule {place.index + 1} gives {new} in the policy",
            _source_levels(after) if after else None,
            [*before[: place.index], new, *before[place.index + 1 :]],
        )
        step.equal(f"`{place.relative}` has the new level", level_at(scene, place), new)
        asked = scene.document.workspace.explain_paths(source.source_id, [place.relative])
        step.equal("the engine says the same", asked[0].permission, new)
        step.check("its row is drawn in another colour", _look_of(scene, place) != colours)
        change = _Change(place, old, new)
    if change is not None:
        _undo_level(scene, change)


@dataclass(frozen=True, slots=True)
class _Change:
    place: Place
    old: Permission
    new: Permission


def _undo_level(scene: Scene, change: _Change) -> None:
    with scene.step("level-undone", "files") as step:
        changed = _look_of(scene, change.place)
        scene.driver.key(Qt.Key.Key_Z, CTRL)
        scene.settle()
        step.equal("undo brings the old level back", level_at(scene, change.place), change.old)
        step.check("and the old colour", _look_of(scene, change.place) != changed)
        scene.driver.key(Qt.Key.Key_Z, CTRL_SHIFT)
        scene.settle()
        step.equal("redo gives the new one again", level_at(scene, change.place), change.new)


def deciding_rule(scene: Scene, name: str = "deciding-rule") -> None:
    """Choose an entry of the folder."""
    with scene.step(name, "files") as step:
        source, place = source_of(scene), place_of(scene)
        if source is None or place is None:
            step.not_here("no rule decides what is in the folder")
            return
        tree = tree_of(scene)
        scene.driver.click_cell(tree, _entry(scene, place))
        scene.settle()
        shown = _decided(scene)
        step.equal("the panel speaks of it", shown.path if shown else None, place.relative)
        asked = scene.document.workspace.explain_paths(source.source_id, [place.relative])[0]
        found = (shown.permission, shown.index) if shown else None
        step.equal("level and deciding rule are the engine's", found, (asked.permission, asked.index))
        table = scene.driver.find("files.rules", QTableView).model()
        marked = [row for row in range(table.rowCount()) if table.index(row, 0).data(permissionrules.DECIDING)]
        step.equal("its rule is marked in the table", marked, [asked.index])


def try_path(scene: Scene) -> None:
    """Type a path that does not exist."""
    with scene.step("try-path", "files") as step:
        source, place = source_of(scene), place_of(scene)
        if source is None:
            step.not_here("the policy has no source")
            return
        path = place.relative.rpartition("/")[0] + "/" + NOT_THERE if place and "/" in place.relative else NOT_THERE
        scene.driver.replace_text(scene.driver.find("files.try", QLineEdit), path)
        scene.settle()
        there = scene.document.workspace.folder / source.base_path / path
        step.check("there is no such file", not there.exists())
        asked = scene.document.workspace.explain_paths(source.source_id, [path])[0]
        shown = _decided(scene)
        found = (shown.path, shown.permission, shown.index) if shown else None
        step.equal("level and rule are the engine's", found, (path, asked.permission, asked.index))
        step.check(
            "reading is refused only where the level is none",
            shown is not None and (shown.verdict(Action.READ) is Verdict.DENY) == (shown.permission is Permission.NONE),
        )


# what several steps do


def source_of(scene: Scene) -> Source | None:
    """The source that is shown."""
    sources = scene.document.policy.sources
    chosen = scene.driver.find("files.source", QComboBox).currentData()
    return next((source for source in sources if source.source_id == chosen), None)


def _source_levels(source: Source) -> list[Permission]:
    return [rule.permission for rule in source.permission_rules]


def tree_of(scene: Scene) -> QTreeView:
    """The tree of its folder."""
    return scene.driver.find("files.tree", QTreeView)


def _levels(scene: Scene) -> list[PathLevel]:
    """The levels that the tree shows, of what is no special case."""
    model = tree_of(scene).model()
    found = [model.index(row, 0).data(foldertree.PATH_LEVEL) for row in range(model.rowCount())]
    return [f for f in found if isinstance(f, PathLevel) and not f.is_closed and not f.overlapped]


def _open_folders(scene: Scene) -> None:
    """Click the arrows of the folders, as far as they are in view."""
    tree = tree_of(scene)
    for row in range(tree.model().rowCount()):
        index = tree.model().index(row, 0)
        if tree.model().hasChildren(index) and not tree.isExpanded(index) and _is_in_view(tree, index):
            scene.driver.click_branch(tree, index)
            scene.settle()


def _is_in_view(tree: QTreeView, index: QModelIndex) -> bool:
    return tree.viewport().rect().contains(tree.visualRect(index))


def place_of(scene: Scene) -> Place | None:
    """The first file in view that the busiest rule decides; nothing that is hidden."""
    tree = tree_of(scene)
    found: list[Place] = []
    for index in _rows(tree, QModelIndex()):
        level = index.data(foldertree.PATH_LEVEL) if index.data(foldertree.KIND) == "file" else None
        if isinstance(level, PathLevel) and level.index is not None and level.permission is not Permission.NONE:
            found.append(Place(level.path, level.index))
    busy = Counter(place.index for place in found).most_common(1)
    return next((place for place in found if place.index == busy[0][0]), None)


def _rows(tree: QTreeView, parent: QModelIndex) -> Iterator[QModelIndex]:
    """What is in view, from the top."""
    for row in range(tree.model().rowCount(parent)):
        index = tree.model().index(row, 0, parent)
        if _is_in_view(tree, index):
            yield index
        if tree.isExpanded(index):
            yield from _rows(tree, index)


def _entry(scene: Scene, place: Place) -> QModelIndex:
    tree = tree_of(scene)
    for index in _rows(tree, QModelIndex()):
        if index.data(foldertree.RELATIVE) == place.relative:
            return index
    raise DriveError(f"`{place.relative}` is not in view")


def level_at(scene: Scene, place: Place) -> Permission | None:
    """The level that is shown of a place."""
    level = _entry(scene, place).data(foldertree.PATH_LEVEL)
    return level.permission if isinstance(level, PathLevel) else None


def _decided(scene: Scene) -> PathLevel | None:
    page = scene.window.shelf.page("files")
    if not isinstance(page, FilesPage):
        raise DriveError("the Files page is not there")
    return page.decided.shown


def _set_level(scene: Scene, row: int, level: Permission) -> None:
    """Click the level, then the wanted one in the list that opens."""
    table = scene.driver.find("files.rules", QTableView)
    scene.driver.click_cell(table, table.model().index(row, permissionrules.LEVEL))
    scene.driver.until(lambda: bool(scene.driver.popups()), "the list of levels")
    combo = scene.driver.find("files.level", QComboBox)
    at = combo.findData(str(level))
    scene.driver.click_cell(combo.view(), combo.model().index(at, 0))
    scene.driver.until(lambda: not scene.driver.popups(), "the list of levels to close")


def _look_of(scene: Scene, place: Place) -> QImage:
    """How the level of an entry is drawn."""
    tree = tree_of(scene)
    cell = scene.driver.cell(tree, _entry(scene, place).siblingAtColumn(foldertree.LEVEL))
    return tree.viewport().grab(cell).toImage()


def _cell(index: QModelIndex) -> str:
    return str(index.data() or "")
