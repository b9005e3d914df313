"""Answers that take time, computed beside the window: preview, TOML text, self-check. It does not know who shows them.

A question is a function of the workspace that returns values. An answer to an older snapshot than the present one is
dropped; a question whose task was cancelled before the work began is not asked.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gatewright.base.errors import GatewrightError
from gatewright.workspace import Workspace
from gatewright_gui.session.document import Document

T = TypeVar("T")


class Deriver:
    """Two worker threads per window, so that a slow answer holds up no quick one; close it with the window."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-derive")
        self._aside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-aside")

    async def derive(self, question: Callable[[Workspace], T], *, aside: bool = False) -> T | None:
        """Ask the workspace as it is now; None when it changed meanwhile, or when nothing is open.

        Cancelling before the work began takes it out of the queue. `aside`: it may take seconds; others go before it.
        """
        if not self._document.is_open:
            return None
        snapshot_id, workspace = self._document.snapshot_id, self._document.workspace
        worker = self._aside if aside else self._worker
        await asyncio.sleep(0)  # several changes of one turn of the loop become one question
        try:
            answer = await asyncio.get_running_loop().run_in_executor(worker, question, workspace)
        except GatewrightError:
            if snapshot_id == self._document.snapshot_id:
                raise
            return None
        return answer if snapshot_id == self._document.snapshot_id else None

    def close(self) -> None:
        """End the workers; work that was not begun is dropped."""
        self._aside.shutdown(wait=True, cancel_futures=True)
        self._worker.shutdown(wait=True, cancel_futures=True)
