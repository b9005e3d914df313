"""The bars over every page: a call that waits, a stop, what is only observed, what others wrote, what was unsaved."""

import time
from datetime import datetime

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QPushButton

from gatewright.workspace.api import Observed, observed_parts
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.plaintext import label_text
from gatewright_gui.qt.widget.message_bar import MessageBar
from gatewright_gui.session.calls import visible
from gatewright_gui.session.document import Document
from gatewright_gui.session.filetext import Offer
from gatewright_gui.session.navigator import Navigator
from gatewright_gui.session.observed import part_words
from gatewright_gui.session.question import PendingApproval, Reply
from gatewright_gui.session.stops import Stop
from gatewright_gui.session.unsaved import UnsavedEdits
from gatewright_gui.session.verbs.policy import set_observed

TICK_MS = 1000
CALM_MS = 400
"""So long a call that took the place of another one is not denied: the click was meant for the one before."""


class AskingBar(MessageBar):
    """Says the question that is over first; closed, it stays away until another one comes."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("window.asking")
        self.action_button.setObjectName("window.asking.show")
        self.more_button.setObjectName("window.asking.deny")
        self._questions: tuple[PendingApproval, ...] = ()
        self._first: PendingApproval | None = None
        """The question that is said."""
        self._seen: set[str] = set()
        self._is_away = False
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self._tell)
        self._calm = QTimer(self, singleShot=True, interval=CALM_MS)
        self.more_requested.connect(self._deny)
        self.closed.connect(self._keep_seen)

    def set_questions(self, questions: "tuple[PendingApproval, ...]") -> None:
        """Say what waits now."""
        self._questions = questions
        self._seen &= {one.request_id for one in questions}
        self._tell()

    def set_away(self, *, is_away: bool) -> None:
        """Stay away while the page that is open shows the questions itself."""
        self._is_away = is_away
        if is_away:
            self._keep_seen()
        self._tell()

    def _keep_seen(self) -> None:
        self._seen = {one.request_id for one in self._questions}

    def _tell(self) -> None:
        if self._is_away or all(one.request_id in self._seen for one in self._questions):
            self._tick.stop()
            self._first = None
            self.hide()
            return
        if not self._tick.isActive():
            self._tick.start()
        first = min(self._questions, key=lambda one: one.expires_wall_s or float("inf"))
        if self._first is not None and self._first.request_id != first.request_id:
            self._calm.start()
        self._first = first
        more = len(self._questions) - 1
        others = f", {tr('and')} {counted(more, 'more waits', 'more wait')}" if more else ""
        asks = tr("{agent} asks to call {call}", agent=first.whose, call=first.called)
        asks = ": ".join(filter(None, (asks, first.touches.replace("`", "'"))))
        see = tr("See the change") if first.diff is not None else tr("See the call")
        self.show_message("warning", f"{asks}, {first.wait_words(time.time())}{others}", action=see, more=tr("Deny"))

    def _deny(self) -> None:
        if self._first is not None and not self._calm.isActive():
            self._first.answer(Reply(approved=False))


class StopBar(MessageBar):
    """Says the stop of all agents, else the oldest of one; it stays as long as the stop does."""

    go_requested = Signal(str)
    """The agent whose stop is to end; empty: that of all."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("window.stop")
        self.action_button.setObjectName("window.stop.go")
        self.close_button.hide()
        self._agent_id = ""
        self.action_requested.connect(lambda: self.go_requested.emit(self._agent_id))

    def set_stops(self, stops: "tuple[Stop, ...]") -> None:
        """Show these stops; hide without any."""
        if not stops:
            self.hide()
            return
        first = next((one for one in stops if not one.agent_id), stops[0])
        self._agent_id = first.agent_id
        since = datetime.fromtimestamp(first.wall_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        by = tr("STOPPED by {who} since {time}", who=visible(first.who), time=since)
        whom = tr("agent {agent} makes no call", agent=visible(first.agent_id)) if first.agent_id else ""
        more = tr("and {count:,} more", count=len(stops) - 1) if len(stops) > 1 else ""
        said = (f"{by}: {whom or tr('no agent makes a call')}", visible(first.why), more)
        self.show_message("error", ". ".join(part for part in said if part), action=tr("Go"))

    def dismiss(self) -> None:
        """Stay: only the end of the stop takes it away."""


_LOOK_MS = 30_000


class ObserveBar(MessageBar):
    """Stays while anything is observed; *Enforce* ends that in one edit."""

    compare_requested = Signal()

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.setObjectName("window.observe")
        self.action_button.setObjectName("window.observe.enforce")
        self.more_button.setObjectName("window.observe.compare")
        self.close_button.hide()
        self._document = document
        self._observed: tuple[Observed, ...] = ()
        self._tick = QTimer(self, interval=_LOOK_MS)
        self._tick.timeout.connect(self._tell)
        self.action_requested.connect(lambda: set_observed(document, self._observed, None))
        self.more_requested.connect(self.compare_requested)
        for signal in (document.opened, document.closed, document.policy_changed):
            signal.connect(self._tell)
        self._tell()

    def _tell(self, _what: object = None) -> None:
        policy = self._document.policy if self._document.is_open else None
        self._observed = () if policy is None else observed_parts(policy, time.time())
        if not self._observed:
            self._tick.stop()
            self.hide()
            return
        self._tick.start()
        until = time.strftime("%Y-%m-%d %H:%M", time.localtime(min(one.until_s for one in self._observed)))
        named_parts = ", ".join(label_text(part_words(one), 60, keep="") for one in self._observed[:3])
        more = len(self._observed) - 3
        what = f"{named_parts}, {counted(more, 'more', 'more')}" if more > 0 else named_parts
        text = tr("Observed until {until}, not enforced: {what}", until=until, what=what)
        self.show_message("warning", text, action=tr("Enforce"), more=tr("Compare..."))

    def dismiss(self) -> None:
        """It stays: only enforcing ends it."""


class OutsideBar(MessageBar):
    """Says what the document knows; what the buttons wish for is told by signals."""

    reload_requested = Signal()
    save_over_requested = Signal()
    write_requested = Signal()
    """The file is to be written again where it is gone."""
    save_as_requested = Signal()
    difference_requested = Signal()
    merge_requested = Signal()
    """The file is to be read and the unsaved changes made again on top of it."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self._document = document
        self.setObjectName("window.outside")
        self.close_button.set_icon("x", tr("Keep what is open here"))
        self.action_requested.connect(self._act)
        self.other_requested.connect(self._act_otherwise)
        self.more_requested.connect(self.difference_requested)
        self.merge_button = named(
            QPushButton(tr("Merge")),
            "window.outside.merge",
            tip=tr("Read the file and make the unsaved changes again on top; only where both changed different things"),
        )
        self.merge_button.clicked.connect(self.merge_requested)
        self.add_button(self.merge_button)

    def tell_changed(self) -> None:
        """Somebody else wrote the file; what the bar says already is that and more."""
        if not self.isVisible():
            self._tell(self._changed)

    def tell_refused(self) -> None:
        """Nothing was saved for that reason."""
        self._tell(f"{tr('Not saved.')} {self._changed}")

    def tell_gone(self) -> None:
        """There is no file any more, or it is back."""
        if not self._document.is_gone:
            self.dismiss()
            return
        text = tr(
            "The policy file is gone from the disk. The policy that is open here stays in force; "
            "write it again to keep it."
        )
        self.show_message("warning", text, action=tr("Write it again"), other=tr("Save as..."))
        self.merge_button.hide()

    def _tell(self, text: str) -> None:
        is_dirty = self._document.is_dirty
        if is_dirty:
            text += " " + tr(
                "Merge both, take theirs (the unsaved changes here are gone), or keep mine (theirs are gone)."
            )
        action, other = (tr("Take theirs"), tr("Keep mine")) if is_dirty else (tr("Reload"), None)
        self.show_message("warning", text, action=action, other=other, more=tr("Show what changed"))
        self.merge_button.setVisible(is_dirty)

    @property
    def _changed(self) -> str:
        if len(self._document.files) > 1:
            return tr("The policy file, or a manifest that it names, was changed outside this window.")
        return tr("The policy file was changed outside this window.")

    def _act(self) -> None:
        (self.write_requested if self._document.is_gone else self.reload_requested).emit()

    def _act_otherwise(self) -> None:
        (self.save_as_requested if self._document.is_gone else self.save_over_requested).emit()


class UnsavedBar(MessageBar):
    """Closed, it comes again when the workspace is opened the next time."""

    def __init__(self, unsaved: UnsavedEdits, navigator: Navigator) -> None:
        super().__init__()
        self.setObjectName("window.unsaved")
        self.close_button.set_icon("x", tr("Ask again when the workspace is opened the next time"))
        self._unsaved, self._navigator = unsaved, navigator
        self._offer: Offer | None = None
        unsaved.offered.connect(self._tell)
        self.action_requested.connect(self._act)
        self.other_requested.connect(unsaved.throw_away)
        self.more_requested.connect(self._show_difference)

    def _tell(self, offer: Offer | None) -> None:
        self._offer = offer
        if offer is None:
            self.dismiss()
            return
        text = tr("The app ended before these changes were saved.")
        if offer.edit is None:
            text += " " + tr("They do not fit the policy file as it is now.")
        elif offer.is_outdated:
            text += " " + tr("The policy file was changed since, in other places.")
        action = (
            tr("Bring back {what}", what=offer.what)
            if offer.edit is not None
            else tr("Save {what} as a file", what=offer.what)
        )
        self.show_message("warning", text, action=action, other=tr("Throw away"), more=tr("Show difference"))

    def _act(self) -> None:
        if self._offer is not None:
            (self._unsaved.save_beside if self._offer.edit is None else self._unsaved.bring_back)()

    def _show_difference(self) -> None:
        if self._offer is not None:
            self._navigator.go_to_difference(self._offer.difference)
