"""The line at the foot of the window: self-check, problems, saved or not, live or not. It asks for nothing."""

import time
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QTimer, Signal, SignalInstance
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton

from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import Role, current_look
from gatewright_gui.qt.widget.label import IconLabel, Label
from gatewright_gui.qt.widget.tight_row import TightRow
from gatewright_gui.session.selfcheck import CheckCount, CheckProgress

TICK_MS = 1000

NOTHING_CHECKED = mark("self-check: nothing open")
_UNKNOWN = "…"
MAX_TOLD = 10
"""Differences in the tooltip; the dialog has all."""


class StatusBar(TightRow):
    """Each part is an icon with words; where room is short, with fewer, and a tooltip that has them all."""

    problems_requested = Signal()
    waiting_requested = Signal()
    question_requested = Signal()
    """The question that a call of the console waits with is to be shown."""
    live_requested = Signal()
    """What says whether runs are real was clicked."""
    selfcheck_requested = Signal()
    """What the self-check found is to be shown."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        tokens = current_look().tokens
        self._clock = clock
        self._saved_at: float | None = None
        self._state = ""
        self._words: dict[QPushButton | QLabel, tuple[str, str]] = {}
        """What each part says, and what it says when it is brief."""
        self._check_icon = IconLabel("shield", "muted", size=14)
        self._counted, self._counted_brief = tr(NOTHING_CHECKED), _UNKNOWN
        self.check = _link("status.selfcheck", self.selfcheck_requested)
        self._problem_icon = IconLabel("circle-check", "allow", size=14)
        self.problems = _link("status.problems", self.problems_requested)
        self._waiting_icon = IconLabel("hand", "ask", size=14)
        self.waiting = _link("status.waiting", self.waiting_requested)
        self._question_icon = IconLabel("hand", "ask", size=14)
        self.question = _link("status.question", self.question_requested)
        self.question.setAccessibleName(tr("a call in Try waits for your answer"))
        self.question.setToolTip(tr("A call in Try waits for your answer; click to go there"))
        self._say(self.question, tr("a call asks you"), tr("asks you"))
        self._saved_icon = IconLabel("check", "muted", size=14)
        self.saved = _label("status.saved")
        self._live_icon = IconLabel("circle", "muted", size=14)
        self.live = _link("status.live", self.live_requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_2, 0, tokens.space_2, 0)
        row.setSpacing(tokens.space_1)
        for icon, words in (
            (self._check_icon, self.check),
            (self._problem_icon, self.problems),
            (self._saved_icon, self.saved),
            (self._live_icon, self.live),
            (self._waiting_icon, self.waiting),
            (self._question_icon, self.question),
        ):
            row.addWidget(icon)
            row.addWidget(words)
            row.addSpacing(tokens.space_4)
        row.addStretch(1)
        self.setFixedHeight(tokens.control_height + tokens.space_1)  # as a bar that comes over it
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self._tell_saved)
        self._tick.start()
        self.set_selfcheck(None)
        self.set_waiting(0)
        self.set_question(is_open=False)
        self.set_live(live=False)
        parts = (self.saved, self.check, self.problems, self.live, self.question, self.waiting)
        self.give_way(*(partial(self._set_brief, part) for part in parts))

    def _say(self, part: QPushButton | QLabel, words: str, brief: str) -> None:
        self._words[part] = (words, brief)
        part.setText(words)
        self.refit()

    def _set_brief(self, part: QPushButton | QLabel, is_brief: bool) -> None:
        words, brief = self._words.get(part, ("", ""))
        part.setText(brief if is_brief else words)

    def set_selfcheck(self, found: CheckCount | None) -> None:
        """Show how many of how many agree; None: not known."""
        if found is None:
            self._check_icon.set_icon("shield", "muted")
            self._tell_check(tr(NOTHING_CHECKED), _UNKNOWN, tr("Nothing is open that could be checked"))
            return
        good = found.checked - len(found.differences)
        fine = not found.differences
        role: Role = "allow" if fine else "deny"
        self._check_icon.set_icon("shield-check" if fine else "shield-x", role)
        told = tr("What is ticked, shown and callable agrees for every agent, tool and operation.")
        why = told if fine else "\n".join(str(note) for note in found.differences[:MAX_TOLD])
        self._tell_check(
            tr("self-check {good:,} of {checked:,}", good=good, checked=found.checked),
            f"{good:,}/{found.checked:,}",
            f"{why}\n{tr('Click to see what was checked')}",
        )

    def set_checking(self) -> None:
        """The count belongs to an older policy; another one is under way."""
        self._check_icon.set_icon("shield", "muted")
        if self._counted == tr(NOTHING_CHECKED):
            self._tell_check(tr("self-check under way"), _UNKNOWN, "")

    def set_check_progress(self, progress: CheckProgress | None) -> None:
        """Show how far the self-check is; None: none is under way."""
        if progress is None:
            self._say(self.check, self._counted, self._counted_brief)
        else:
            self._check_icon.set_icon("clock", "muted")
            brief = f"{progress.done:,}/{progress.of:,}" if progress.of else _UNKNOWN
            self._say(self.check, progress_words(progress), brief)

    def _tell_check(self, words: str, brief: str, tip: str) -> None:
        self._counted, self._counted_brief = words, brief
        self._say(self.check, words, brief)
        self.check.setAccessibleName(words)
        self.check.setToolTip("\n".join(filter(None, (words, tip))))

    def set_problems(self, errors: int, warnings: int, *, is_known: bool = True) -> None:
        """Show how many there are; not known while nothing is open."""
        for part in (self._problem_icon, self.problems):
            part.setVisible(is_known)
        if errors:
            self._problem_icon.set_icon("circle-alert", "deny")
        elif warnings:
            self._problem_icon.set_icon("triangle-alert", "ask")
        else:
            self._problem_icon.set_icon("circle-check", "allow")
        parts = [counted(errors, "error", "errors")] if errors else []
        parts += [counted(warnings, "warning", "warnings")] if warnings or not errors else []
        words = ", ".join(parts) if errors or warnings else tr("no problems")
        self._say(self.problems, words, f"{errors + warnings:,}")
        self.problems.setAccessibleName(words)
        self.problems.setToolTip(words)

    def set_waiting(self, count: int) -> None:
        """Show how many calls of other processes wait for an answer."""
        for part in (self._waiting_icon, self.waiting):
            part.setVisible(count > 0)
        words = counted(count, "call waits for you", "calls wait for you")
        self._say(self.waiting, words, f"{count:,}")
        self.waiting.setAccessibleName(words)
        self.waiting.setToolTip(tr("Another process asks before it makes a call; click to answer"))

    def set_question(self, is_open: bool) -> None:
        """Show whether a call of the console waits for an answer."""
        for part in (self._question_icon, self.question):
            part.setVisible(is_open)
        self.refit()

    def set_live(self, live: bool) -> None:
        """Show whether runs of the console change the real workspace."""
        self._live_icon.set_icon("triangle-alert" if live else "circle", "deny" if live else "muted")
        words = tr("LIVE MODE: runs are real") if live else tr("live mode off")
        self._say(self.live, words, tr("LIVE") if live else tr("not live"))
        self.live.setAccessibleName(words)
        self.live.setToolTip(
            tr("Runs in Try change real files and blocks; click to go there")
            if live
            else tr("Runs in Try happen in a copy; click to go there")
        )
        self.live.setProperty("kind", "link-alarm" if live else "link")
        self.live.style().unpolish(self.live)
        self.live.style().polish(self.live)

    def set_unsaved(self) -> None:
        """There is something to save."""
        self._state = tr("unsaved changes")
        self._saved_icon.set_icon("circle-dot", "ask")
        self._tell_saved()

    def set_clean(self) -> None:
        """Nothing to save."""
        self._state = ""
        self._saved_icon.set_icon("check", "allow")
        self._tell_saved()

    def set_gone(self) -> None:
        """There is no policy file any more."""
        self._state = tr("the policy file is gone")
        self._saved_icon.set_icon("triangle-alert", "deny")
        self._tell_saved()

    def set_closed(self) -> None:
        """Nothing open that could be saved."""
        self._state = tr("not open")
        self._saved_icon.set_icon("circle-slash", "muted")
        self._tell_saved()

    def set_saved_at(self, moment: float | None) -> None:
        """When the file was last saved here, in seconds of the epoch; None: not since it was read."""
        self._saved_at = moment
        self._tell_saved()

    def _tell_saved(self) -> None:
        when = "" if self._saved_at is None else tr("saved {ago}", ago=ago(self._clock() - self._saved_at))
        text = self._state or when or tr("saved")
        if (text, "") != self._words.get(self.saved):
            self._say(self.saved, text, "")
        self._saved_icon.setToolTip(text)
        self.saved.setToolTip(f"{when[:1].upper()}{when[1:]}" if self._state else "")


def progress_words(progress: CheckProgress) -> str:
    """The progress of a self-check, in words."""
    return (
        tr("self-check: {done:,} of {count:,} agents", done=progress.done, count=progress.of)
        if progress.of
        else tr("self-check: waiting")
    )


def ago(seconds: float) -> str:
    """Words for how long ago, in the largest unit that fits."""
    if seconds < 5:
        return tr("just now")
    if seconds < 60:
        return tr("{count} s ago", count=int(seconds))
    if seconds < 3600:
        return tr("{count} min ago", count=int(seconds // 60))
    if seconds < 86_400:
        return tr("{count} h ago", count=int(seconds // 3600))
    return tr("{count} d ago", count=int(seconds // 86_400))


def _link(name: str, clicked: SignalInstance) -> QPushButton:
    button = named(QPushButton(), name, kind="link")
    button.clicked.connect(clicked)
    return button


def _label(name: str) -> QLabel:
    label = Label()
    label.setObjectName(name)
    label.setProperty("kind", "muted")
    return label
