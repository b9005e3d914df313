"""Qt's own file dialog in the clothes of the house. A dialog of the platform stays as the platform makes it."""

from functools import partial

from PySide6.QtCore import QDir, QFileInfo, QSize, QUrl
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QFileIconProvider,
    QLineEdit,
    QListView,
    QToolButton,
    QTreeView,
    QWidget,
)

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import current_look, tie_icon

_BUTTONS = {
    "backButton": ("chevron-left", mark("Back")),
    "forwardButton": ("chevron-right", mark("Forward")),
    "toParentButton": ("arrow-up", mark("Folder above")),
    "newFolderButton": ("folder-plus", mark("New folder")),
    "listModeButton": ("list", mark("Names only")),
    "detailModeButton": ("list-filter", mark("Names with details")),
}
SIZE = (720, 460)


class FileIcons(QFileIconProvider):
    """Our icons for folders and files."""

    def icon(self, kind: QFileIconProvider.IconType | QFileInfo, /) -> QIcon:
        """For a kind of place, or for what is on the disk."""
        is_folder = kind.isDir() if isinstance(kind, QFileInfo) else kind is not QFileIconProvider.IconType.File
        return current_look().icon("folder" if is_folder else "file", "accent" if is_folder else "muted")


def dress(dialog: QFileDialog) -> None:
    """Icons, short list of places, nothing that a choice of folders does not need; and what is typed is chosen."""
    icons = FileIcons()
    dialog.setIconProvider(icons)
    setattr(dialog, "_icons", icons)  # noqa: B010  # Qt does not keep it alive
    here = dialog.directory().absolutePath()
    dialog.setSidebarUrls([QUrl.fromLocalFile(path) for path in dict.fromkeys((here, QDir.homePath()))])
    for name, (icon, words) in _BUTTONS.items():
        button = dialog.findChild(QToolButton, name)
        if button is not None:
            tie_icon(button, icon)
            button.setToolTip(tr(words))
            button.setAccessibleName(tr(words))
    size = current_look().tokens.icon_size
    for rows in dialog.findChildren(QAbstractItemView):
        rows.setIconSize(QSize(size, size))
    tree = dialog.findChild(QTreeView, "treeView")
    if tree is not None:
        tree.header().setStretchLastSection(True)
    if dialog.fileMode() is QFileDialog.FileMode.Directory:
        for name in ("fileTypeLabel", "fileTypeCombo"):
            part = dialog.findChild(QWidget, name)
            if part is not None:
                part.hide()
    dialog.resize(*SIZE)
    field, view = dialog.findChild(QLineEdit, "fileNameEdit"), dialog.findChild(QListView, "listView")
    if field is not None and view is not None:
        field.textChanged.connect(partial(_drop_selection, field, view))  # after Qt's own slot, which selects


def _drop_selection(field: QLineEdit, view: QListView, _typed: str) -> None:
    """Let what is typed be chosen: Qt takes selected rows before it, and keeps folders on the way to it selected."""
    if field.hasFocus():  # otherwise the field says what is selected
        view.selectionModel().clearSelection()
