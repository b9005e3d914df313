"""Notices that the policy file, or a manifest that it names, changed on disk."""

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer

from gatewright_gui.session.document import Document

SETTLE_MS = 150
"""Writers replace files in several steps; the question is asked once they are through."""


class PolicyWatch(QObject):
    """Watches the files of the open document and their folders (a replaced file is no longer the watched one)."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document
        self._watcher = QFileSystemWatcher(self)
        self._settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settle.timeout.connect(self._ask)
        self._watcher.fileChanged.connect(self._settle.start)
        self._watcher.directoryChanged.connect(self._settle.start)
        for signal in (document.closed, document.opened, document.saved, document.policy_changed):
            signal.connect(self._follow)

    def _follow(self, _why: object = None) -> None:
        files = self._document.files  # of each its folder too, where it may come
        wanted = {str(path) for file in files for path in (file, file.parent) if path.exists()}
        watched = {*self._watcher.files(), *self._watcher.directories()}
        if watched - wanted:
            self._watcher.removePaths(sorted(watched - wanted))
        if wanted - watched:
            self._watcher.addPaths(sorted(wanted - watched))

    def _ask(self) -> None:
        self._follow()
        self._document.look_outside()
