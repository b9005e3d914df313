"""What somebody typed over the text of the policy and has not applied: kept, checked in the worker process, applied."""

import asyncio
import re
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QTimer, Signal

from gatewright.workspace.api import EditRefused, GatewrightError, PolicyInvalid, Problem, TypedText
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.code_rows import common_ends
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.filetext import edit_from_text, problems_of_file, problems_of_text
from gatewright_gui.session.policyfailure import NOT_TRUSTED, text_of
from gatewright_gui.session.unsaved import Typed
from gatewright_gui.session.verbs import file as verbs

NAME = "policy"
SETTLE_MS = 250
"""From a key to the check of the text."""


class PolicyDraft(QObject):
    """The draft of the open policy file, or of one that has errors, with the text that it grew from.

    It outlives the window as what is typed over memory does.
    """

    changed = Signal()
    """It began, ended, or is another one."""
    checked = Signal(object)
    """tuple[Problem, ...] of its text."""

    def __init__(self, document: Document, deriver: Deriver, tasks: TaskOwner) -> None:
        super().__init__(document)
        self._document, self._deriver, self._tasks = document, deriver, tasks
        self._typed = Typed(document, tasks, self)
        self._now: TypedText | None = None
        self._read: Callable[[], str] | None = None
        """Gives what was typed since `_now`."""
        self.problems: tuple[Problem, ...] = ()
        self._settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settle.timeout.connect(self.take)
        self._typed.read.connect(self._restore)
        document.closed.connect(self._forget)
        document.policy_changed.connect(self._check)

    @property
    def is_pending(self) -> bool:
        """Tell whether something is typed and not applied."""
        return self._now is not None

    @property
    def text(self) -> str:
        """The text that is typed, as it was last taken; empty where nothing is."""
        return self._now.text if self._now is not None else ""

    @property
    def over(self) -> str:
        """The text that it grew from."""
        return self._now.over if self._now is not None else ""

    def type(self, over: str, read: Callable[[], str]) -> None:
        """Something is typed over a text; `read` gives all of it, when there is time."""
        self._read = read
        self._settle.start()
        if self._now is None:
            self._now = TypedText(over, over)
            self.changed.emit()

    def take(self) -> None:
        """Take what was typed until now, and check it."""
        self._settle.stop()
        read, self._read = self._read, None
        if read is None or self._now is None:
            return
        text = read()
        if text == self._now.over:
            self.discard()
            return
        self._now = TypedText(text, self._now.over)
        self._typed.put(NAME, self._now)
        self._check()

    def discard(self) -> None:
        """Discard what is typed: it is not wanted, or applied by now."""
        was = self._now
        self._settle.stop()
        self._now, self._read, self.problems = None, None, ()
        if self._typed.of(NAME) is not None:
            self._typed.put(NAME, None)
        if was is not None:
            self.changed.emit()

    def end(self) -> None:
        """The window closes: what was typed last is kept for the next one."""
        self.take()
        self._typed.end()

    async def mend_alarm(self) -> None:
        """Begin with what the file holds that could not be taken over; what is typed already stays."""
        alarm = self._document.alarm
        if alarm is None or self.is_pending:
            return
        text = await asyncio.to_thread(text_of, alarm.path)
        if self._document.alarm is alarm and not self.is_pending:
            self._begin(TypedText(text, self._document.workspace.saved_text))
            self._typed.put(NAME, self._now)

    async def apply(self) -> bool:
        """Make the draft one edit of the policy, or, of a file with errors, what the file holds; whether it is applied.
        Why it is not is said, and the draft stays.
        """
        self.take()
        if self._now is None:
            return True
        return await (self._make_edit(self._now) if self._document.is_open else self._mend_file(self._now))

    async def _make_edit(self, draft: TypedText) -> bool:
        document = self._document
        try:
            answer = None
            while answer is None and document.is_open:
                answer = await self._deriver.derive(edit_from_text, draft.over, draft.text)
        except PolicyInvalid as error:
            self._tell(error.problems)
            return False
        except (EditRefused, GatewrightError) as error:
            text = tr("not applied: {reason}; undo that, or discard what is typed", reason=error)
            document.say("warning", text)
            return False
        if answer is None or draft is not self._now:
            return False
        edit, text = answer
        before = document.policy
        if not document.push(lambda _policy, _tools: document.workspace.with_text(edit, text)):
            return False
        self.discard()
        document.say("info", tr("applied: policy as text"), can_undo=True)
        from gatewright_gui.session.verbs.sources import tell_closed_folders  # not for the first painting

        tell_closed_folders(document, before)
        return True

    async def _mend_file(self, draft: TypedText) -> bool:
        """Write the file that could not be opened, and open it."""
        document, path = self._document, self._document.path
        problems = await self._ask_problems(draft.text)
        if path is None or problems is None or draft is not self._now:
            return False
        if any(problem.is_error and problem.code != NOT_TRUSTED for problem in problems):
            self._tell(problems)
            return False
        if not await verbs.write_failed(document, draft.over, draft.text):
            return False
        self.discard()
        return await document.open(path)

    def _tell(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        self.checked.emit(problems)
        errors = counted(sum(problem.is_error for problem in problems), "error", "errors")
        self._document.say("warning", tr("not applied: the text has {errors} (F8)", errors=errors))

    def _check(self, _why: object = None) -> None:
        if self._now is not None:
            self._tasks.start(self._find_problems(self._now), "draft.check", replace=True)

    async def _find_problems(self, draft: TypedText) -> None:
        problems = await self._ask_problems(draft.text)
        if problems is not None and draft is self._now:
            self.problems = problems
            self.checked.emit(problems)

    async def _ask_problems(self, text: str) -> tuple[Problem, ...] | None:
        document = self._document
        if document.is_open:
            return await self._deriver.derive(problems_of_text, text)
        path = document.path
        return None if path is None else await self._deriver.ask(problems_of_file, document.opener, path, text)

    def _forget(self) -> None:
        """Another file: what was typed over the one before is kept for when that is opened again."""
        if self._now is not None:
            self._settle.stop()
            self._now, self._read, self.problems = None, None, ()
            self.changed.emit()

    def _restore(self) -> None:
        kept = self._typed.of(NAME)
        if kept is not None and self._now is None:
            self._begin(kept)
            self._document.say("info", tr("what you typed into the policy file and did not apply is there again"))

    def _begin(self, draft: TypedText) -> None:
        self._now = draft
        self.changed.emit()
        self._check()


def text_over(over: str, lines: Sequence[str]) -> str:
    """The text of these lines. Of a text with carriage returns those at both ends keep their own; new lines end as most
    of its lines do.
    """
    if "\r" not in over:
        return "\n".join(lines)
    pieces = re.split("(\r\n?|\n)", over)
    old, ends, end = pieces[::2], [*pieces[1::2], ""], "\r\n" if "\r\n" in over else "\n"
    head, tail = common_ends(old, lines)
    if head == len(old) == len(lines):
        return over
    front = "".join(line + (own or end) for line, own in zip(old[:head], ends, strict=False))
    back = "".join(map("".join, zip(old[len(old) - tail :], ends[len(old) - tail :], strict=True)))
    middle = end.join(lines[head : len(lines) - tail])
    return front + middle + (end if tail and head + tail < len(lines) else "") + back
