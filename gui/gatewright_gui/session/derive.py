"""Answers that take time, computed beside the window: preview, TOML text, self-check.

A question is a function of the workspace that returns values. An answer to an older snapshot than the present one is
dropped; a question whose task was cancelled before the work began is not asked.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gatewright.workspace.api import GatewrightError, Workspace
from gatewright_gui.session.document import Document
from gatewright_gui.session.switching import often_switched

T = TypeVar("T")
LONGEST_S = 5.0
"""How long what nobody waits for lets others go before it, and then does a piece of its work all the same."""


class Deriver:
    """Four worker threads per window, so that a slow answer holds up no quick one; close it with the window."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-derive")
        self._ahead = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-ahead")
        self._aside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-aside")
        self._last = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-last")
        self._held: asyncio.Event | None = None
        self._asked_aside = 0
        self._is_free = threading.Event()
        self._is_free.set()

    async def derive(
        self, question: Callable[[Workspace], T], *, ahead: bool = False, aside: bool = False, last: bool = False
    ) -> T | None:
        """Ask the workspace as it is now; None when it changed meanwhile, or when nothing is open.

        Cancelling before the work began takes it out of the queue. `aside`: it may take seconds; others go before it.
        `ahead`: one waits for it to go on working; it goes before all others.
        `last`: it may take minutes and nobody waits for it; between its pieces it calls `let_others_go`.
        """
        if not self._document.is_open:
            return None
        snapshot_id, workspace = self._document.snapshot_id, self._document.workspace
        worker = self._last if last else self._aside if aside else self._ahead if ahead else self._worker
        self._count_aside(1 if aside else 0)
        try:
            await asyncio.sleep(0)  # several changes of one turn of the loop become one question
            if self._held is not None:
                await self._held.wait()
            answer = await asyncio.get_running_loop().run_in_executor(worker, _answer, question, workspace)
        except GatewrightError:
            if snapshot_id == self._document.snapshot_id:
                raise
            return None
        finally:
            self._count_aside(-1 if aside else 0)
        return answer if snapshot_id == self._document.snapshot_id else None

    def hold(self) -> None:
        """Begin no work until `release`: while a window comes up, all time is for what it shows first."""
        self._held = self._held or asyncio.Event()

    def release(self) -> None:
        """Work again, on everything that was asked meanwhile and is still wanted."""
        held, self._held = self._held, None
        if held is not None:
            held.set()

    def let_others_go(self) -> None:
        """In the worker of what comes last: wait until nothing is asked aside any more, for a while at most."""
        self._is_free.wait(LONGEST_S)

    def _count_aside(self, step: int) -> None:
        self._asked_aside += step
        if self._asked_aside:
            self._is_free.clear()
        else:
            self._is_free.set()

    def close(self) -> None:
        """End the workers; work that was not begun is dropped."""
        self._last.shutdown(wait=True, cancel_futures=True)
        self._aside.shutdown(wait=True, cancel_futures=True)
        self._worker.shutdown(wait=True, cancel_futures=True)
        self._ahead.shutdown(wait=True, cancel_futures=True)


def _answer(question: Callable[[Workspace], T], workspace: Workspace) -> T:
    """In the worker: the window gets its turn whenever it wants it, however long the answer takes."""
    with often_switched():
        return question(workspace)
