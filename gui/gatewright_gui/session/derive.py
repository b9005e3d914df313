"""What takes time is worked out by a worker process: preview, tokens, TOML text, problems, self-check.

A question is a function of a module and plain values, see `worker`. An answer to an older policy than the present one
is dropped, and the worker does not begin what nobody waits for any more.
"""

import asyncio
import pickle
from collections.abc import Callable, Generator
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import count, islice
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from gatewright.workspace.api import GatewrightError, Workspace, WorkspaceImage
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.document import Document
from gatewright_gui.session.worker import Answer, Ask, Drop, PartBook, Parts, pack
from gatewright_gui.session.worker_process import WorkerProcess

T = TypeVar("T")
P = ParamSpec("P")
AT_A_TIME = 16
"""So many parts of a policy are sent at once; then the window has its turn."""
AT_ONCE_BYTES = 32_768
"""A longer answer is unpacked beside the window."""
LOST = mark(
    "what is shown may be out of date: the process that works it out ended twice; the next edit starts it again"
)


@dataclass(slots=True)
class _Asked:
    answer: "asyncio.Future[Answer | None]"
    """None: nobody waits for it any more, since the policy is another one."""
    progress: Callable[[Any], None] | None


class WorkerLost(GatewrightError):
    """The worker process ended twice over one question."""


class _Ended(Exception):
    """The worker process ended before it answered."""


class Deriver:
    """One worker process for a window, started with the first question; close it with the window."""

    _numbers = count(1)

    def __init__(self, document: Document) -> None:
        self._document = document
        self._held: asyncio.Event | None = None
        self._process: WorkerProcess | None = None
        self._book = PartBook()
        self._sent: WorkspaceImage | None = None
        self._unsent: dict[int, object] = {}
        """Parts that the book counts as sent; whoever was cancelled while sending them leaves them to the next."""
        self._sending = asyncio.Lock()
        self._asked: dict[int, _Asked] = {}
        document.closed.connect(self._forget)
        document.policy_changed.connect(self._forget)

    async def derive(
        self, question: Callable[Concatenate[Workspace, P], T], *arguments: P.args, **named: P.kwargs
    ) -> T | None:
        """Ask of the workspace as it is now; None when it changed meanwhile, or when nothing is open.

        Raises what the question raises, and WorkerLost.
        """
        return cast("T | None", await self._ask((question, arguments, named), None))

    async def derive_in_pieces(
        self,
        question: Callable[Concatenate[Workspace, P], Generator[Any, None, T]],
        progress: Callable[[Any], None],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T | None:
        """The same for what takes long: ``progress`` is told now and then what the generator yields, and other
        questions do not wait for its end.
        """
        return cast("T | None", await self._ask((question, arguments, named), progress))

    async def ask(self, question: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T | None:
        """Ask what is about no open workspace; None when another one, or a failure, was opened meanwhile."""
        return cast("T | None", await self._ask((question, arguments, named), None, is_apart=True))

    @property
    def process_id(self) -> int:
        """Of the worker process; 0 while none runs."""
        return self._process.process_id if self._process is not None else 0

    def hold(self) -> None:
        """Ask nothing until `release`: while a window comes up, all time is for what it shows first."""
        self._held = self._held or asyncio.Event()

    def release(self) -> None:
        """Ask everything that was asked meanwhile and is still wanted."""
        held, self._held = self._held, None
        if held is not None:
            held.set()

    def close(self) -> None:
        """End the worker process; who still waits gets None."""
        self._forget()
        process, self._process = self._process, None
        if process is not None:
            process.close()

    async def _ask(self, question: object, progress: Callable[[Any], None] | None, *, is_apart: bool = False) -> object:
        if not self._document.is_open and not is_apart:
            return None
        snapshot_id = self._document.snapshot_id
        await asyncio.sleep(0)  # several changes of one turn of the loop become one question
        if self._held is not None:
            await self._held.wait()
        for _ in range(2):
            try:
                answer = await self._answer_to(pack(question), snapshot_id, progress, is_apart=is_apart)
            except _Ended:
                continue
            if answer is None:
                return None
            load = partial(pickle.loads, answer.content)  # thousands of values take longer than the window may wait
            found = load() if len(answer.content) <= AT_ONCE_BYTES else await self._document.in_worker(load)
            if snapshot_id != self._document.snapshot_id:
                return None
            if answer.kind == "error":
                raise found
            return found
        raise WorkerLost(tr(LOST))

    async def _answer_to(
        self, question: bytes, snapshot_id: int, progress: Callable[[Any], None] | None, *, is_apart: bool
    ) -> Answer | None:
        async with self._sending:
            process = self._running() if is_apart else await self._up_to_date(snapshot_id)
            if process is None:
                return None
            number, asked = next(self._numbers), _Asked(asyncio.get_running_loop().create_future(), progress)
            self._asked[number] = asked
            process.send(Ask(number, question, is_apart))
        try:
            return await asked.answer
        finally:
            if self._asked.pop(number, None) is not None and self._process is process:
                process.send(Drop(number))

    async def _up_to_date(self, snapshot_id: int) -> WorkerProcess | None:
        """The worker process, which has the workspace as it is now; None when that is another one meanwhile."""
        document = self._document
        if not document.is_open or document.snapshot_id != snapshot_id:
            return None
        process = self._running()
        image, sent = document.workspace.image(), self._sent
        if sent is not None and sent.manifests == image.manifests:
            image = replace(image, manifests=sent.manifests)
        if sent is not None and all(getattr(image, row.name) is getattr(sent, row.name) for row in fields(image)):
            return process
        new, update = self._book.update(pack(document.opener), image)
        self._unsent |= new
        while some := dict(islice(self._unsent.items(), AT_A_TIME)):
            process.send(Parts(some))
            self._unsent = {number: part for number, part in self._unsent.items() if number not in some}
            await asyncio.sleep(0)
            if self._process is not process:
                raise _Ended
        process.send(update)
        self._sent = image
        return process if document.snapshot_id == snapshot_id else None

    def _running(self) -> WorkerProcess:
        process = self._process or self._start()
        if not process.is_running:
            self._process = None
            raise _Ended
        return process

    def _start(self) -> WorkerProcess:
        self._book, self._sent, self._unsent = PartBook(), None, {}
        self._process = process = WorkerProcess()
        process.answered.connect(self._take)
        process.ended.connect(self._end)
        return process

    def _take(self, answer: Answer) -> None:
        asked = self._asked.get(answer.number)
        if asked is None:
            return
        if answer.kind == "progress":
            if asked.progress is not None:
                asked.progress(pickle.loads(answer.content))
            return
        del self._asked[answer.number]
        if not asked.answer.done():
            asked.answer.set_result(answer)

    def _end(self) -> None:
        """The process is gone: what it was asked is asked again by those who wait."""
        self._process = None
        asked, self._asked = self._asked, {}
        for one in asked.values():
            if not one.answer.done():
                one.answer.set_exception(_Ended())

    def _forget(self, _why: object = None) -> None:
        """Whoever waits is told that the policy is another one."""
        asked, self._asked = self._asked, {}
        for number, one in asked.items():
            if not one.answer.done():
                one.answer.set_result(None)
            if self._process is not None:
                self._process.send(Drop(number))
