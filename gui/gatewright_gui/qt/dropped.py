"""What is dropped onto the window from a file manager."""

from pathlib import Path

from PySide6.QtGui import QDropEvent


def dropped_path(event: QDropEvent) -> Path | None:
    """The file or folder of this machine that is dropped; None where it is none, or several."""
    urls = event.mimeData().urls()
    return Path(urls[0].toLocalFile()) if len(urls) == 1 and urls[0].isLocalFile() else None
