"""A console page as the operator has it before him, from its showing to its end."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from gatewright_gui.pages.console import ConsolePage
from tests.gui.console.dress import dressed
from tests.gui.console.test_console_page import choose
from tests.gui.files.support import Opened, until


@asynccontextmanager
async def operator_page(demo: Opened) -> AsyncGenerator[ConsolePage]:
    """With the agent `operator` chosen; whatever runs at the end is given up."""
    made = dressed(ConsolePage(demo.context))
    made.resize(1228, 720)
    made.show()
    made.page_shown()
    await until(lambda: made.request.tool.count() > 0)
    await choose(made, "operator")
    yield made
    made.cancel()
    await until(lambda: not made.console.is_busy)
    await until(lambda: "console.session" not in demo.context.tasks.names)
    made.console.close()
    made.close()
    made.deleteLater()
