"""A window without a screen in which the mouse unticks an operation, and that stays to be killed: `POLICY HOME`.

It prints a line once the edit is in the journal.
"""

import asyncio
import os
import sys
from pathlib import Path

from PySide6.QtWidgets import QApplication

from gatewright_gui.qt import loop
from gatewright_gui.session.opening import folder_of_unsaved
from tests.gui.session.opened import agents_page, click, opened_window, until


async def stay(policy: Path, home: Path) -> None:
    async with opened_window(policy, home) as window:
        page = agents_page(window)
        await until(lambda: page.tools.model.rowCount() > 0)
        click(window, "file", "append")
        await until(lambda: window.document.is_dirty)
        await until(lambda: any(folder_of_unsaved().glob("*.json")))
        print("edited", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    loop.run(QApplication([]), lambda: stay(*map(Path, sys.argv[1:])))
