"""A window whose program brings a tool, and takes it back, while it is open."""

import threading
from collections.abc import Callable
from pathlib import Path

from gatewright.policy.verdict import SafetyTier
from gatewright.tools import ResultType, tool
from gatewright_gui.session.document import Document
from tests.gui.session.opened import demo, opened_document, until


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING)
async def tide(station: str) -> str:
    """Give the next high water."""
    return f"2.4 m at {station}"


def names(document: Document) -> set[str]:
    return {facts.name for facts in document.catalog}


async def test_what_is_shown_follows_from_whichever_thread_it_comes(tmp_path: Path) -> None:
    async with opened_document(demo(tmp_path)) as document:
        told: list[bool] = []

        def tell(_: object) -> None:
            told.append("tide" in names(document))

        document.policy_changed.connect(tell)
        undo: list[Callable[[], None]] = []

        def come() -> None:
            undo.append(document.workspace.tools.add(tide))

        def go() -> None:
            undo.pop()()

        for work in (come, go):
            before = len(told)
            thread = threading.Thread(target=work)
            thread.start()
            await until(lambda before=before: len(told) > before)
            thread.join()

        assert told == [True, False]
        assert not document.is_dirty
