"""A console page from its showing to its end, and what tests do with one."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.session.calls import CallRecord
from tests.gui.dress import dressed
from tests.gui.files.support import Opened, until


@asynccontextmanager
async def console_page(demo: Opened, agent_id: str | None = None) -> AsyncGenerator[TrialPage]:
    """With the agent chosen, if one is named, and the tool `file`; whatever runs at the end is given up."""
    made = dressed(TrialPage(demo.context))
    made.resize(1228, 720)
    made.show()
    made.page_shown()
    await until(lambda: made.request.tool.is_known)
    if agent_id is None:
        made.request.choose_tool("file")
    else:
        await choose(made, agent_id)
    yield made
    made.cancel()
    await until(lambda: not made.console.is_busy)
    await until(lambda: "console.session" not in demo.context.tasks.names)
    made.console.close()
    made.close()
    made.deleteLater()


async def choose(page: TrialPage, agent_id: str) -> None:
    page.request.choose_agent(agent_id)
    page.request.agent_chosen.emit(agent_id)
    await until(lambda: "console.tools" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]
    page.request.choose_tool("file")


async def settled(page: TrialPage, count: int) -> CallRecord:
    await until(lambda: len(page.console.records) >= count and not page.console.is_busy)
    return page.console.records[-1]


def call(page: TrialPage, **arguments: object) -> None:
    page.request.mode.set_current("json")
    page.request.raw.set_text(json.dumps(arguments))
