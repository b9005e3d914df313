"""A window without a screen that has asked its worker process something and stays: `POLICY FILE`; it is to be killed.

The file gets the id of the worker process.
"""

import asyncio
import os
import sys
from pathlib import Path

from PySide6.QtWidgets import QApplication

from gatewright.workspace import Workspace
from gatewright_gui.qt import loop
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document


async def stay(policy: Path, told: Path) -> None:
    document = Document()
    await document.open(policy)
    deriver = Deriver(document)
    await deriver.derive(Workspace.text)
    whole = told.with_suffix(".part")
    whole.write_text(str(deriver.process_id), "utf-8")
    whole.replace(told)
    await asyncio.Event().wait()


if __name__ == "__main__":
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    loop.run(QApplication([]), lambda: stay(Path(sys.argv[1]), Path(sys.argv[2])))
