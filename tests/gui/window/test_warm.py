"""What is opened later has been read in beside the window: a page that is shown then imports nothing of ours."""

import subprocess
import sys
from pathlib import Path

OPENS_EVERY_PAGE = """
import asyncio, sys
from pathlib import Path
from PySide6.QtWidgets import QApplication
from gatewright_gui.app.build import build_window
from gatewright_gui.app.warm import warm_up
from gatewright_gui.qt import loop
from gatewright_gui.settings import Preferences
from gatewright_gui.window.pages import all_rows
from tests.gui.session.opened import demo, end, settled

def ours():
    return {name for name in sys.modules if name.startswith("gatewright")}

async def main(folder):
    window = await build_window(demo(folder), preferences=Preferences(folder / "p.ini"), theme="light")
    window.show()
    await settled(window)
    before = ours()
    await warm_up(window.document)
    warm = ours()
    for row in all_rows():
        window.show_page(row.key)
    print(len(warm - before) > 20, *sorted(ours() - warm))
    await settled(window)
    await end(window)

app = QApplication([])
loop.run(app, lambda: main(Path(sys.argv[1])))
"""


def test_page_that_is_opened_after_the_start_has_been_read_in(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", OPENS_EVERY_PAGE, str(tmp_path)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1].split() == ["True"]
