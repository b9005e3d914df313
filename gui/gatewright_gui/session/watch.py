"""Notices that the policy file changed on disk. It does not know what to do about it."""

from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer

from gatewright_gui.session.document import Document

SETTLE_MS = 150
"""Writers replace files in several steps; the question is asked once they are through."""


class PolicyWatch(QObject):
    """Watches the file and its folder (a replaced file is no longer the watched one) of the open document."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document
        self._watcher = QFileSystemWatcher(self)
        self._settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settle.timeout.connect(self._ask)
        self._watcher.fileChanged.connect(self._settle.start)
        self._watcher.directoryChanged.connect(self._settle.start)
        document.opened.connect(self._follow)
        document.saved.connect(self._follow)

    def _follow(self, _path: object = None) -> None:
        watched = [*self._watcher.files(), *self._watcher.directories()]
        if watched:
            self._watcher.removePaths(watched)
        path = self._document.path
        if path is not None:
            self._watcher.addPaths([str(p) for p in (path, path.parent) if p.exists()])

    def _ask(self) -> None:
        path = self._document.path
        if path is None:
            return
        self._keep(path)
        self._document.look_outside()

    def _keep(self, path: Path) -> None:
        if path.exists() and str(path) not in self._watcher.files():
            self._watcher.addPath(str(path))
