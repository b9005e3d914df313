"""Scenes of the page Files: the rules of a source, and its folder."""

from PySide6.QtCore import QPersistentModelIndex
from PySide6.QtWidgets import QAbstractItemView, QComboBox, QTreeView

from gatewright.workspace.api import Permission
from gatewright_gui.app.scenes.player import NotHere, Tour, column
from gatewright_gui.pages.access.files import folder_tree, rule_model
from gatewright_gui.session.files import PathLevel
from gatewright_gui.session.verdict import permission_words


def files(tour: Tour) -> None:
    """The rules of a source, and the folder in their colours; a rule gets another level."""
    tour.go_to("files")
    if not tour.document.policy.file_sources:
        raise NotHere("the policy has no source")
    source = tour.document.policy.file_sources[0]
    rules, folder = tour.find("files.rules", QAbstractItemView), tour.find("files.tree", QTreeView)
    levels = [permission_words(rule.permission) for rule in source.permission_rules]
    shown = column(rules.model(), rule_model.LEVEL)
    tour.check(
        "the levels of the rules, then the default", shown, [*levels, permission_words(source.default_permission)]
    )
    for row in range(folder.model().rowCount()):
        if folder.viewport().rect().contains(folder.visualRect(folder.model().index(row, 0))):
            tour.open_branch(folder, folder.model().index(row, 0))
    entries = levels_of(folder)
    plain = [at for _, at in entries if not at.is_closed and not at.overlapped]
    explained = tour.document.workspace.explain_paths(source.source_id, [at.path for at in plain])
    wanted = [row.permission for row in explained]
    tour.check("each entry has the level of the engine", [at.permission for at in plain], wanted)
    tour.show("files", f"{len(levels)} rules of {source.source_id} colour its folder")
    at_hand = [(index, at) for index, at in entries if at.index is not None and at.permission is not Permission.NONE]
    ruled = [(index, at) for index, at in at_hand if index.data(folder_tree.KIND) == "file"]
    if not ruled:
        raise NotHere("no rule decides what is in the folder")
    index, before = ruled[0]
    tour.click_cell(folder, index)
    marks = [row for row, shown in enumerate(column(rules.model(), role=rule_model.SHOWN)) if shown.is_deciding]
    tour.check("the rule that decides is marked", marks, [before.index])
    tour.show("rule", f"{before.path} is {permission_words(before.permission)}, and the rule that says so is marked")
    look = folder.viewport().grab().toImage()
    wanted = Permission.READ_ONLY if before.permission is Permission.HUMAN else Permission.HUMAN
    tour.click_cell(rules, rules.model().index(marks[0], rule_model.LEVEL))
    tour.until(lambda: bool(tour.popups()), "the list of levels")
    levels = tour.find("files.level", QComboBox)
    tour.click_cell(levels.view(), levels.model().index(levels.findData(str(wanted)), 0))
    tour.until(lambda: not tour.popups(), "the list of levels to close")
    explained = tour.document.workspace.explain_paths(source.source_id, [before.path])[0]
    tour.check("the engine gives the new level", explained.permission, wanted)
    tour.check("the folder shows it", index.data(folder_tree.PATH_LEVEL).permission, wanted)
    tour.check("in other colours", folder.viewport().grab().toImage() != look)
    tour.show("level", f"{before.path} is {permission_words(wanted)} in place of {permission_words(before.permission)}")


def levels_of(folder: QTreeView) -> list[tuple[QPersistentModelIndex, PathLevel]]:
    """The entries that are in view, from the top, each with its level."""
    found: list[tuple[QPersistentModelIndex, PathLevel]] = []
    index = folder.model().index(0, 0)
    while index.isValid() and folder.visualRect(index).bottom() < folder.viewport().height():
        level = index.data(folder_tree.PATH_LEVEL)
        if isinstance(level, PathLevel):
            found.append((QPersistentModelIndex(index), level))
        index = folder.indexBelow(index)
    return found
