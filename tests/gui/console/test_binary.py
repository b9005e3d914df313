"""Results that are no text in the Console: shown as pictures and as bytes, and saved to files."""

import base64
import json
import random
import struct
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLineEdit

from gatewright.policy.verdict import SafetyTier
from gatewright.tools import Tool, tool
from gatewright.tools.declaration import Normalization, ResultType
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.pages.trial.blob import MAX_PIXELS, MAX_SIDE, WIDTH, BytesModel, picture_of
from gatewright_gui.session.opening import Opener
from gatewright_gui.session.verbs import rights
from tests.gui.console.standing import console_page
from tests.gui.files.support import Opened, opened, until


def image(kind: str, width: int, height: int) -> bytes:
    made = QImage(width, height, QImage.Format.Format_RGB32)
    made.fill(Qt.GlobalColor.darkCyan)
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    assert made.save(buffer, kind)  # pyright: ignore[reportCallIssue, reportArgumentType]
    return bytes(content.data())


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def bomb(width: int, height: int) -> bytes:
    """A PNG of some hundred bytes that says that it has so many pixels."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(5_000))) + chunk(b"IEND", b"")
    )


NOISE = random.Random(5).randbytes(100_003)
RESULTS = {
    "png": image("PNG", 320, 200),
    "jpeg": image("JPEG", 3_000, 1_500),
    "bomb": bomb(60_000, 60_000),
    "wide": bomb(2**31 - 1, 1),
    "cut": image("PNG", 320, 200)[:60],
    "noise": NOISE,
    "zeros": bytes(70),
    "text": "gruß\n".encode(),
}


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.BINARY)
async def blob(kind: str) -> bytes:
    """Give back bytes."""
    return RESULTS[kind]


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.ANY, normalization=Normalization.JSON)
async def answer(kind: str) -> object:
    """Give back what an MCP server would."""
    coded = base64.b64encode(RESULTS[kind]).decode()
    return {"content": [{"type": "text", "text": "a picture"}, {"type": "image", "data": coded, "mimeType": "x"}]}


def binary_tools() -> tuple[Tool, ...]:
    return (blob, answer)


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Opened]:
    async with opened(tmp_path / "demo", Opener(binary_tools)) as made:
        for name in ("blob", "answer"):
            assert rights.tick_tool(made.document, "operator", name, on=True)
        yield made


@pytest.fixture
async def page(demo: Opened) -> AsyncIterator[TrialPage]:
    async with console_page(demo, "operator") as made:
        yield made


async def ran(page: TrialPage, kind: str, tool: str = "blob") -> None:
    page.request.mode.set_current("json")
    page.request.tool.setEditText(tool)
    page.request.raw.set_text(json.dumps({"kind": kind}))
    count = len(page.console.records)
    page.run()
    await until(lambda: len(page.console.records) > count and not page.console.is_busy)
    await until(lambda: page.outcome.result.record is page.console.records[-1])


@pytest.mark.parametrize("tool", ["blob", "answer"])
async def test_an_image_is_shown_as_one_and_as_its_bytes(page: TrialPage, tool: str) -> None:
    await ran(page, "png", tool)
    result = page.outcome.result
    assert page.outcome.result.record is not None
    assert result.picture.isVisible()
    assert result.picture.accessibleName() == "Picture, 320 x 200 pixels"
    size = result.picture.shown_size
    assert size.width() <= result.picture.width()
    assert size.height() <= result.picture.height()
    QTest.mouseClick(result.parts.button("bytes"), Qt.MouseButton.LeftButton)
    assert result.bytes.isVisible()
    assert result.bytes_model.line(0) == ("00000000", RESULTS["png"][:16].hex(" "), ".PNG........IHDR")
    page.request.tool.setEditText("blob")
    await ran(page, "text")
    assert result.text.isVisible()
    assert not result.parts.button("bytes").isVisible()


@pytest.mark.parametrize("kind", ["bomb", "wide", "cut", "noise", "zeros"])
async def test_what_is_no_picture_or_too_large_a_one_is_shown_as_bytes(page: TrialPage, kind: str) -> None:
    await ran(page, kind)
    result = page.outcome.result
    assert result.bytes.isVisible()
    assert not result.parts.button("picture").isEnabled()
    assert result.bytes_model.count() == -(-len(RESULTS[kind]) // WIDTH)


def test_pictures_are_decoded_within_bounds() -> None:
    large = picture_of(RESULTS["jpeg"])
    assert large is not None
    assert large.image is not None
    assert large.image.width() == MAX_SIDE
    rng = random.Random(3)
    for _ in range(40):
        width, height = (rng.choice((1, 7, 5_000, 2**16, 2**30)) for _ in range(2))
        found = picture_of(bomb(width, height))
        assert found is not None
        assert found.image is None or width * height <= MAX_PIXELS
    for length in range(0, len(RESULTS["png"]), 7):
        found = picture_of(RESULTS["png"][:length])
        assert found is None or found.image is None or found.image.width() == 320


def test_lines_of_bytes_hold_all_of_them() -> None:
    model, rng = BytesModel(), random.Random(1)
    for length in (0, 1, 15, 16, 17, 1_000, len(NOISE)):
        data = rng.randbytes(length)
        model.set_data(data)
        rows = [model.line(row) for row in range(model.count())]
        assert bytes.fromhex("".join(row[1] for row in rows)) == data
        assert [int(row[0], 16) for row in rows] == list(range(0, length, WIDTH))
        assert sum(len(row[2]) for row in rows) == length


async def save_to(page: TrialPage, path: Path) -> None:
    QTest.mouseClick(page.outcome.result.save_button, Qt.MouseButton.LeftButton)
    await until(lambda: bool(page.findChildren(QFileDialog)))
    field = page.findChildren(QFileDialog)[0].findChild(QLineEdit, "fileNameEdit")
    assert field is not None
    field.setText(str(path))
    QTest.keyClick(field, Qt.Key.Key_Return)
    await until(lambda: "console.save" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]


async def test_a_result_is_saved_byte_by_byte_or_it_is_said_why_not(
    demo: Opened, page: TrialPage, tmp_path: Path
) -> None:
    for kind in ("noise", "png", "text"):
        await ran(page, kind)
        await save_to(page, tmp_path / f"saved-{kind}")
        assert (tmp_path / f"saved-{kind}").read_bytes() == RESULTS[kind]
    await save_to(page, Path("/proc/saved"))
    assert demo.said[-1].startswith("not saved to /proc/saved: ")
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]
