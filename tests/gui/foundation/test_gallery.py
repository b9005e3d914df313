"""The pictures of all widgets."""

from pathlib import Path

from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from tests.gui.foundation.gallery import main


def test_gallery_writes_pictures_of_both_themes(tmp_path: Path, qtbot: QtBot) -> None:
    assert main(["--out", str(tmp_path / "new")]) == 0
    light = QImage(str(tmp_path / "new" / "widgets-light.png"))
    dark = QImage(str(tmp_path / "new" / "widgets-dark.png"))
    assert light.width() >= 1280
    assert light.pixelColor(5, 5).lightness() > 200
    assert dark.pixelColor(5, 5).lightness() < 60
