"""Choices of files and folders, and what is dropped from a file manager; a dialog of the platform stays as it is."""

from functools import partial
from pathlib import Path

from PySide6.QtCore import QDir, QFileInfo, QSize, QUrl
from PySide6.QtGui import QDropEvent, QIcon
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFileIconProvider,
    QLineEdit,
    QListView,
    QPushButton,
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


class FolderDialog(QFileDialog):
    """Qt's folder dialog, where the name of a new folder may be typed too, below a folder that is there."""

    def __init__(self, parent: QWidget | None, title: str, start: Path) -> None:
        super().__init__(parent, title, str(start))
        self.setFileMode(QFileDialog.FileMode.Directory)
        self.setLabelText(QFileDialog.DialogLabel.FileName, tr("Folder (created if missing):"))
        self.setOption(QFileDialog.Option.ShowDirsOnly, on=True)
        dress(self)
        field = self.findChild(QLineEdit, "fileNameEdit")
        if field is not None:
            field.textChanged.connect(self._tell_new)  # after Qt's own slot, which switches the button off

    def accept(self) -> None:
        """Qt would say that a new folder is not there."""
        if self._is_new():
            self.fileSelected.emit(self.selectedFiles()[0])
            self.done(QDialog.DialogCode.Accepted.value)
        else:
            super().accept()

    def _tell_new(self, _text: str) -> None:
        box = self.findChild(QDialogButtonBox)
        button = box.button(QDialogButtonBox.StandardButton.Open) if box is not None else None
        if isinstance(button, QPushButton) and self._is_new():
            button.setEnabled(True)

    def _is_new(self) -> bool:
        """True if what is typed is no folder, but could be one: the nearest thing above it that is there is one."""
        chosen = self.selectedFiles()
        path = Path(chosen[0]) if chosen else Path()
        above = next((folder for folder in path.parents if folder.exists()), None)
        return bool(chosen) and not path.exists() and above is not None and above.is_dir()


def path_of_drop(event: QDropEvent) -> Path | None:
    """The file or folder of this machine that is dropped; None where it is none, or several."""
    urls = event.mimeData().urls()
    return Path(urls[0].toLocalFile()) if len(urls) == 1 and urls[0].isLocalFile() else None
