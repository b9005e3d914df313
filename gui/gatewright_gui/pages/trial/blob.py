"""A result that is no text: as the picture that it is, or as bytes in hexadecimal with their offsets.

Pictures are decoded beside the window, within bounds; of the bytes only the lines that are seen are written out.
"""

from typing import Any

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QObject, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage, QImageReader, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QSizePolicy, QWidget

from gatewright.workspace.api import frozen, media_type
from gatewright_gui.pages.trial.table import table_of
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.table_model import FlatModel, Index
from gatewright_gui.qt.widget import TableView
from gatewright_gui.qt.widget.item_view import Delegate

OFFSET, BYTES, TEXT = range(3)
WIDTH = 16
"""Bytes of a line."""
MAX_PIXELS = 16_000_000
"""Of a picture that is decoded; a small file may say that it has any number."""
MAX_SIDE = 2_048
"""Pixels that are kept of a side: more are not seen in the window."""
_FORMATS = {"image/png": b"png", "image/jpeg": b"jpeg", "image/gif": b"gif", "image/webp": b"webp"}
_ROW = 20


@frozen
class Picture:
    """A picture, or in `fault` why there is none: `image` is None then. `size`: what it has in the file."""

    image: QImage | None
    size: QSize
    fault: str = ""


def picture_of(data: bytes) -> Picture | None:
    """The picture that the bytes are; None where they begin like none. It takes time."""
    kind = _FORMATS.get(media_type(data))
    if kind is None:
        return None
    device = QBuffer()
    device.setData(QByteArray(data))
    device.open(QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(device, kind)  # the format is told, so that no other reader looks at a stranger's bytes
    reader.setDecideFormatFromContent(False)
    size = reader.size()
    if not size.isValid():
        return Picture(None, size, tr("the picture cannot be read"))
    if size.width() * size.height() > MAX_PIXELS:
        words = tr("the picture is too large to be shown: {size} pixels", size=_size_words(size))
        return Picture(None, size, words)
    if max(size.width(), size.height()) > MAX_SIDE:
        reader.setScaledSize(size.scaled(MAX_SIDE, MAX_SIDE, Qt.AspectRatioMode.KeepAspectRatio))
    image = reader.read()
    if image.isNull():
        return Picture(None, size, tr("the picture cannot be read"))
    return Picture(image, size)


def _size_words(size: QSize) -> str:
    return f"{size.width():,} x {size.height():,}"


class PictureView(QWidget):
    """Shows a picture in the room that there is, never larger than it is."""

    def __init__(self) -> None:
        super().__init__()
        self._pixmap = QPixmap()
        named(self, "console.picture", spoken=tr("Picture"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def set_picture(self, picture: Picture) -> None:
        """Show another one."""
        self._pixmap = QPixmap() if picture.image is None else QPixmap.fromImage(picture.image)
        self.setAccessibleName(tr("Picture, {size} pixels", size=_size_words(picture.size)))
        self.update()

    @property
    def shown_size(self) -> QSize:
        """The size in which it is drawn."""
        size = self._pixmap.size()
        return size if size.boundedTo(self.size()) == size else size.scaled(self.size(), _KEEP)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """In the middle, within a line that tells where a picture of the same colour as the page ends."""
        del event
        if self._pixmap.isNull():
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        rect = self.rect()
        rect.setSize(self.shown_size)
        rect.moveCenter(self.rect().center())
        painter.drawPixmap(rect, self._pixmap)
        painter.setPen(QColor(current_look().palette.border))
        painter.drawRect(rect.adjusted(0, 0, -1, -1))


_KEEP = Qt.AspectRatioMode.KeepAspectRatio


class BytesModel(FlatModel):
    """Lines of bytes."""

    headers = (mark("Offset"), mark("Bytes"), mark("Text"))

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._data = b""

    def set_data(self, data: bytes) -> None:
        """Show other bytes."""
        self.beginResetModel()
        self._data = data
        self.endResetModel()

    def count(self) -> int:
        """The number of lines."""
        return -(-len(self._data) // WIDTH)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts."""
        if not index.isValid() or index.row() >= self.count():
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self.line(index.row())[index.column()]
            case Qt.ItemDataRole.AccessibleTextRole:
                return "  ".join(self.line(index.row()))
            case Qt.ItemDataRole.FontRole:
                return current_look().mono_font
            case _:
                return None

    def line(self, row: int) -> tuple[str, str, str]:
        """Offset, bytes and the letters among them."""
        part = self._data[row * WIDTH : (row + 1) * WIDTH]
        letters = "".join(chr(one) if 0x20 <= one < 0x7F else "." for one in part)
        return f"{row * WIDTH:08x}", part.hex(" "), letters


def bytes_view(model: BytesModel) -> TableView:
    """The table of the bytes; its columns are as wide as their letters."""
    view = table_of(model, Delegate, tr("Bytes"), "console.bytes")
    header = view.horizontalHeader()
    header.setStretchLastSection(True)
    view.verticalHeader().setSectionResizeMode(header.ResizeMode.Fixed)
    view.verticalHeader().setMinimumSectionSize(_ROW)
    view.verticalHeader().setDefaultSectionSize(_ROW)
    letter = QFontMetrics(current_look().mono_font).horizontalAdvance("0")
    for column, letters in ((OFFSET, 13), (BYTES, 3 * WIDTH + 2)):
        view.setColumnWidth(column, letters * letter)
    return view


_ENDINGS = {
    **{kind: f".{name.decode()}" for kind, name in _FORMATS.items()},
    "application/pdf": ".pdf",
    "application/zip": ".zip",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "audio/flac": ".flac",
}


def file_ending(data: bytes | None, *, is_json: bool) -> str:
    """The ending of the name of a file with a result."""
    if data is not None:
        return _ENDINGS.get(media_type(data), ".bin")
    return ".json" if is_json else ".txt"
