"""A choice of a folder that need not be there yet. It makes none; native dialogs stay as the platform makes them."""

from pathlib import Path

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFileDialog, QLineEdit, QPushButton, QWidget

from gatewright_gui.qt.filedialog import dress
from gatewright_gui.qt.language import tr


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
