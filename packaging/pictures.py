"""Makes the pictures of the documentation: `python packaging/pictures.py TOUR`, after `gatewright tour --out TOUR`.

Each becomes a PNG of its 256 most frequent colours in docs/pictures, which is a third of the size and looks the same.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QImage

SCENES = ("agent", "why", "difference", "rule", "denied", "asked")
PLACE = Path(__file__).parent.parent / "docs" / "pictures"


def main(tour: Path) -> None:
    """Write one picture for each scene."""
    for scene in SCENES:
        found = next(tour.glob(f"*-{scene}-light.png"))
        whole = QImage(str(found)).convertToFormat(QImage.Format.Format_RGB32)
        most = [color for color, _ in Counter(memoryview(whole.constBits()).cast("I")).most_common(256)]
        image = whole.convertToFormat(QImage.Format.Format_Indexed8, most, Qt.ImageConversionFlag.ThresholdDither)
        if not image.save(str(PLACE / f"{scene}.png"), "PNG", 0):  # type: ignore[call-overload]
            sys.exit(f"cannot write the picture of `{scene}`")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
