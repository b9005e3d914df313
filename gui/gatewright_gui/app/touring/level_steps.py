"""The steps on the rules of the Files page: order, a pattern while it is typed, legend, from rule to file and back."""

from collections.abc import Callable

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QAbstractButton, QLabel, QTableView

from gatewright_gui.app.touring import ways
from gatewright_gui.app.touring.driver import ALT, CTRL, DriveError
from gatewright_gui.app.touring.file_steps import level_at, place_of, source_of, tree_of
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.models import foldertree, permissionrules
from gatewright_gui.session.files import PathLevel

NOWHERE = "nowhere-in-this-folder/**"


def move_rule(scene: Scene) -> None:
    """Alt+Down, as a drag below the next row; one undo takes it back."""
    with scene.step("rule-moved", "files") as step:
        scene.go_to("files")
        source = source_of(scene)
        if source is None or len(source.permission_rules) < 2:
            step.not_here("there are no two rules to change places")
            return
        before, edits = source.permission_rules, scene.document.undo_stack.index()
        table = _table(scene)
        scene.driver.click_cell(table, table.model().index(0, permissionrules.PATTERN))
        scene.driver.key(Qt.Key.Key_Down, ALT)
        scene.driver.until(lambda: scene.document.undo_stack.index() > edits, "the edit")
        scene.settle()
        after = source_of(scene)
        wanted = (before[1], before[0], *before[2:])
        step.equal("the first two changed places", after.permission_rules if after else None, wanted)
        step.equal("the chosen row went along", table.currentIndex().row(), 1)
        ways.undo(scene)
        back = source_of(scene)
        step.equal("one undo takes it back", back.permission_rules if back else None, before)


def type_pattern(scene: Scene, name: str = "rule-typed") -> None:
    """While a pattern is typed, what it would decide is counted; Escape writes nothing."""
    with scene.step(name, "files") as step:
        if not _has_rules(scene):
            step.not_here("there is no rule to change")
            return
        text = scene.document.workspace.text()
        table, trial = _table(scene), scene.driver.find("files.trial", QLabel)
        index = table.model().index(1, permissionrules.PATTERN)
        scene.driver.click_cell(table, index)
        scene.driver.key(Qt.Key.Key_F2)
        said: list[str] = []
        for pattern in (NOWHERE, "**"):
            scene.driver.key(Qt.Key.Key_A, CTRL)
            scene.driver.type(pattern)
            before = said[-1] if said else ""
            scene.driver.until(
                lambda before=before: trial.isVisible() and trial.text() not in {"", before}, "the count"
            )
            said.append(trial.text())
        step.check("another pattern, another count", said[0] != said[1])
        step.equal("nothing is written meanwhile", scene.document.workspace.text(), text)
    scene.driver.key(Qt.Key.Key_Escape)
    scene.settle()


def legend(scene: Scene, name: str = "files-filtered") -> None:
    """A click on a level of the legend shows only what has it."""
    with scene.step(name, "files") as step:
        place = place_of(scene)
        level = level_at(scene, place) if place is not None else None
        if level is None:
            step.not_here("no rule decides what is in the folder")
            return
        chip = scene.driver.find(f"files.legend.{level}", QAbstractButton)
        every = len(_files(scene, lambda _: True))
        scene.driver.click(chip)
        scene.driver.until(lambda: scene.driver.has("files.shown"), "the filter")
        scene.settle()
        others = _files(scene, lambda one: one.permission is not level)
        scene.driver.holds_soon(lambda: not _files(scene, lambda one: one.permission is not level), 3.0)
        others = _files(scene, lambda one: one.permission is not level)
        step.equal(f"what is left has the level {level}", others, [])
        step.check("something is left", bool(_files(scene, lambda _: True)) or every == 0)
    if scene.driver.has("files.showall"):
        scene.driver.click("files.showall")
    scene.settle()


def rule_and_file(scene: Scene, name: str = "rule-files") -> None:
    """Ctrl+Return on a rule: its files. Return on a file: its rule."""
    place, table, tree = place_of(scene), _table(scene), tree_of(scene)
    with scene.step(name, "files") as step:
        if place is None:
            step.not_here("no rule decides what is in the folder")
            return
        scene.driver.click_cell(table, table.model().index(place.index, permissionrules.PATTERN))
        scene.driver.key(Qt.Key.Key_Return, CTRL)
        scene.driver.until(lambda: scene.driver.has("files.shown"), "the files of the rule")
        scene.settle()
        scene.driver.until(lambda: _chosen_level(scene) is not None, "its first file")
        level = _chosen_level(scene)
        step.equal("the chosen file is one that the rule decides", level.index if level else None, place.index)
    if place is None:
        return
    with scene.step(f"{name}-back", "files") as step:
        scene.driver.click("files.showall")
        scene.settle()
        scene.driver.click_cell(table, table.model().index(table.model().rowCount() - 1, permissionrules.PATTERN))
        scene.driver.click_cell(tree, _index_of(scene, place.relative))
        scene.driver.click("files.gotorule")
        step.equal("from the file back to its rule", table.currentIndex().row(), place.index)


def _has_rules(scene: Scene) -> bool:
    if scene.window.shelf.current_key != "files":
        scene.go_to("files")
    source = source_of(scene)
    return source is not None and len(source.permission_rules) > 1


def _table(scene: Scene) -> QTableView:
    return scene.driver.find("files.rules", QTableView)


def _files(scene: Scene, fits: Callable[[PathLevel], bool]) -> list[str]:
    """The files that the tree shows, of those with a level that fits."""
    model, found = tree_of(scene).model(), list[str]()
    todo = [model.index(row, 0) for row in range(model.rowCount())]
    while todo:
        index = todo.pop()
        todo += [model.index(row, 0, index) for row in range(model.rowCount(index))]
        level = index.data(foldertree.PATH_LEVEL)
        if index.data(foldertree.KIND) == "file" and isinstance(level, PathLevel) and fits(level):
            found.append(level.path)
    return sorted(found)


def _chosen_level(scene: Scene) -> PathLevel | None:
    found = tree_of(scene).currentIndex().data(foldertree.PATH_LEVEL)
    return found if isinstance(found, PathLevel) else None


def _index_of(scene: Scene, relative: str) -> QModelIndex:
    model = tree_of(scene).model()
    todo = [model.index(row, 0) for row in range(model.rowCount())]
    while todo:
        index = todo.pop()
        if index.data(foldertree.RELATIVE) == relative:
            return index
        todo += [model.index(row, 0, index) for row in range(model.rowCount(index))]
    raise DriveError(f"`{relative}` is not in the tree")
