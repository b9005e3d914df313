"""The worker process: has the same workspace as the window and answers questions about it.

A question is a function of a module; it gets the workspace and plain values, and returns values. One that may take long
is a generator: it yields how far it is after every short piece of its work, and other questions are answered between
two pieces. Nothing here writes, starts or connects, and the process ends when the window's end of its pipe is closed.
"""

import copyreg
import gc
import io
import os
import pickle
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import fields
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from types import MappingProxyType
from typing import Any, BinaryIO, Literal, cast

from gatewright.workspace.api import Agent, GatewrightError, Policy, Workspace, WorkspaceImage, Written, frozen
from gatewright_gui.qt.language import tr

Kind = Literal["answer", "error", "progress"]
Pieces = Generator[object, None, object]
PROGRESS_S = 0.1
"""How often a long answer says how far it is."""
LENGTH_BYTES = 8
"""Every message of the worker begins with its length."""


@frozen
class Parts:
    """Parts of policies that the worker has not got yet, by number."""

    new: Mapping[int, object]


@frozen
class PolicyParts:
    """A policy as numbers of its parts; its agents apart, in their order, and the text that was typed of it."""

    fields: tuple[tuple[str, int], ...]
    agents: tuple[int, ...]
    written: "tuple[int, PolicyParts] | None" = None

    @property
    def numbers(self) -> frozenset[int]:
        """All of them."""
        typed = () if self.written is None else (self.written[0], *self.written[1].numbers)
        return frozenset((*(number for _, number in self.fields), *self.agents, *typed))


@frozen
class Update:
    """The workspace as it is now, its large parts as numbers. ``opener``: opens it, pickled."""

    opener: bytes
    policy_path: Path
    folders: tuple[Path, Path]
    text: int
    manifests: int
    late: int
    saved: PolicyParts
    policy: PolicyParts

    @property
    def numbers(self) -> frozenset[int]:
        """All that the worker has to have, and all that it has to keep."""
        return self.saved.numbers | self.policy.numbers | {self.text, self.manifests, self.late}


@frozen
class Ask:
    """A question: the function with its arguments, pickled. ``is_apart``: it is about no workspace and gets none."""

    number: int
    question: bytes
    is_apart: bool = False


@frozen
class Drop:
    """Nobody waits for the answer any more."""

    number: int


@frozen
class Answer:
    """``content``, pickled: what the question returned, or yielded, or the exception that it raised."""

    number: int
    kind: Kind
    content: bytes


Message = Parts | Update | Ask | Drop


class WorkerFault(GatewrightError):
    """A question raised what it should not have; the trace is a note."""


def pack(value: object) -> bytes:
    """Pickled; a mapping that cannot be changed stays one."""
    packed = io.BytesIO()
    pickler = pickle.Pickler(packed, 5)
    pickler.dispatch_table = {**copyreg.dispatch_table, MappingProxyType: _reduce_mapping}
    pickler.dump(value)
    return packed.getvalue()


def _reduce_mapping(mapping: MappingProxyType[Any, Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return _mapping, (dict(mapping),)


def _mapping(content: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(content)


class PartBook:
    """Gives every part of a workspace a number that nothing else ever has; the same one for the very same part."""

    _numbers = count(1)

    def __init__(self) -> None:
        self._held: dict[int, tuple[int, object]] = {}

    def update(self, opener: bytes, image: WorkspaceImage) -> tuple[dict[int, object], Update]:
        """The parts that the worker needs for `image` and has not got, and how it is put together."""
        new: dict[int, object] = {}
        before, self._held = self._held, {}

        def number(part: object) -> int:
            found = self._held.get(id(part)) or before.get(id(part))
            if found is None:
                found = (next(self._numbers), part)
                new[found[0]] = part
            self._held[id(part)] = found
            return found[0]

        def parts(policy: Policy) -> PolicyParts:
            names = [row.name for row in fields(policy) if row.name not in {"agents", "written"}]
            named, written = tuple((name, number(getattr(policy, name))) for name in names), policy.written
            typed = None if written is None else (number(written.text), parts(written.policy))
            return PolicyParts(named, tuple(map(number, policy.agents.values())), typed)

        text, manifests, late = number(image.text), number(image.manifests), number(image.late)
        saved, policy = parts(image.saved), parts(image.policy)
        return new, Update(opener, image.policy_path, image.folders, text, manifests, late, saved, policy)


class Worker:
    """The work of the worker process, one message after the other."""

    def __init__(self, sink: BinaryIO, dropped: set[int]) -> None:
        self._sink, self._dropped = sink, dropped
        self._parts: dict[int, Any] = {}
        self._policies: dict[PolicyParts, Policy] = {}
        self._opener = b""
        self._image: WorkspaceImage | None = None
        self._workspace: Workspace | None = None
        self._long: deque[tuple[int, Pieces]] = deque()
        self._told_at = 0.0

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing is to be done until a message comes."""
        return not self._long

    def take(self, message: Message) -> None:
        """Do what a message asks for."""
        match message:
            case Parts(new):
                self._parts.update(new)
            case Update():
                self._update(message)
            case Ask(number, question, is_apart):
                self._answer(number, question, is_apart=is_apart)
            case Drop(number):
                self._dropped.add(number)

    def work_on(self) -> None:
        """Do the next piece of what takes long."""
        number, pieces = self._long[0]
        if number in self._dropped:
            self._long.popleft()
            pieces.close()
            return
        try:
            progress = next(pieces)
        except StopIteration as end:
            self._long.popleft()
            self._tell(number, "answer", end.value)
        except Exception as error:  # noqa: BLE001 whatever it is, who asked is to hear of it
            self._long.popleft()
            self._tell(number, "error", _error_to_tell(error))
        else:
            if time.monotonic() > self._told_at + PROGRESS_S:
                self._told_at = time.monotonic()
                self._tell(number, "progress", progress)

    def _answer(self, number: int, content: bytes, *, is_apart: bool) -> None:
        if number in self._dropped:
            self._dropped.discard(number)
            return
        try:
            question, arguments, named = pickle.loads(content)
            if self._workspace is None and not is_apart:
                raise WorkerFault(tr("no workspace is open"))
            found = question(*(() if is_apart else (self._workspace,)), *arguments, **named)
            if isinstance(found, Generator):
                self._long.append((number, cast("Pieces", found)))
                self._told_at = time.monotonic()
            else:
                self._tell(number, "answer", found)
        except Exception as error:  # noqa: BLE001 whatever it is, who asked is to hear of it
            self._tell(number, "error", _error_to_tell(error))

    def _update(self, update: Update) -> None:
        self._parts = {number: self._parts[number] for number in update.numbers}
        self._policies = {held: self._policy(held) for held in (update.saved, update.policy)}
        text, manifests, late = (self._parts[one] for one in (update.text, update.manifests, update.late))
        saved, policy = self._policies[update.saved], self._policies[update.policy]
        image = WorkspaceImage(update.policy_path, update.folders, text, saved, policy, manifests, late)
        held, self._image = self._image, image
        same = update.opener == self._opener and held is not None and held.is_read_alike(image)
        if self._workspace is not None and same and self._workspace.follow(image):
            return
        if self._workspace is not None:
            self._workspace.close()
        self._opener, self._workspace = update.opener, pickle.loads(update.opener).open_image(image)
        gc.collect()
        gc.freeze()  # what lasts is not looked through again with every collection

    def _policy(self, held: PolicyParts) -> Policy:
        """The very same policy for the same parts."""
        found = self._policies.get(held)
        if found is None:
            agents: list[Agent] = [self._parts[number] for number in held.agents]
            others = {name: self._parts[number] for name, number in held.fields}
            typed = held.written and Written(self._parts[held.written[0]], self._policy(held.written[1]))
            found = Policy(agents={agent.agent_id: agent for agent in agents}, written=typed, **others)
        return found

    def _tell(self, number: int, kind: Kind, content: object) -> None:
        if number in self._dropped:
            self._dropped.discard(number)
            return
        frame = pack(Answer(number, kind, pack(content)))
        self._sink.write(len(frame).to_bytes(LENGTH_BYTES, "big") + frame)
        self._sink.flush()


def _error_to_tell(error: Exception) -> Exception:
    """The exception, where it is one of those that the window knows; else its trace."""
    try:
        if isinstance(error, GatewrightError) and str(pickle.loads(pack(error))) == str(error):
            return error
    except Exception:  # noqa: BLE001 it cannot be handed over, whyever
        pass
    fault = WorkerFault(f"{type(error).__name__}: {error}")
    fault.add_note("".join(traceback.format_exception(error)))
    return fault


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Take messages and answer until the source ends."""
    inbox: SimpleQueue[Message] = SimpleQueue()
    dropped: set[int] = set()
    threading.Thread(target=_receive, args=(source, inbox, dropped), daemon=True).start()
    worker = Worker(sink, dropped)
    while True:
        try:
            worker.take(inbox.get(block=worker.is_idle))
        except Empty:
            worker.work_on()


def _receive(source: BinaryIO, inbox: "SimpleQueue[Message]", dropped: set[int]) -> None:
    """In a thread of its own, so that a question that nobody waits for is known before its turn comes."""
    try:
        while True:
            message: Message = pickle.load(source)
            if isinstance(message, Drop):
                dropped.add(message.number)
            else:
                inbox.put(message)
    except EOFError:
        os._exit(0)
    except BaseException:  # noqa: BLE001 without messages the process is of no use
        traceback.print_exc()
        os._exit(1)


def main() -> None:
    """The worker process: the first thing that it is sent is where the window finds modules."""
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what anything prints is no answer
    source = sys.stdin.buffer
    sys.path[:] = pickle.load(source)
    try:
        serve(source, sink)
    except BrokenPipeError:
        os._exit(0)
    except BaseException:  # noqa: BLE001 the thread that receives would keep the process from ending in order
        traceback.print_exc()
        os._exit(1)
