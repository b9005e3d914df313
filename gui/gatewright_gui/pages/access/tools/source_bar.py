"""The sources of an agent in one line; the next step where its model sees nothing yet."""

from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import Literal

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from gatewright.workspace.api import Agent, Policy, SourceType, ToolRight, frozen
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import Gap, named, row_of, stretch
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.menu import add_action
from gatewright_gui.qt.plaintext import button_text, line_text
from gatewright_gui.qt.widget.label import ElidedLabel, IconLabel, Label

NOTHING_TICKED = mark("Nothing is ticked yet. Tick what this agent may do.")
NOTHING_AT_ALL = mark("Choose a source, then tick what this agent may do.")
NO_SOURCE = mark("No source is attached: what needs one stays off.")


@frozen
class Advice:
    """One line for the operator."""

    tone: Literal["info", "warning"]
    text: str


def advice_for(policy: Policy, agent: Agent, rights: Iterable[ToolRight]) -> Advice | None:
    """The next step for an agent of a policy with these rights; None when there is none to name."""
    ticked = (right for right in rights if right.shown or right.ticked)
    first = next(ticked, None)
    stranded = bool(policy.file_sources) and not policy.sources_of(agent)
    if first is None:
        return Advice("info", NOTHING_AT_ALL if stranded else NOTHING_TICKED)
    if stranded and any(right.facts.needs_source for right in chain((first,), ticked)):
        return Advice("warning", NO_SOURCE)
    return None


def sources_words(policy: Policy, agent: Agent) -> str:
    """The agent's sources in a few words."""
    attached = policy.sources_of(agent)
    if not attached:
        return tr("none")
    if len(attached) == 1:
        only = attached[0].source_id
        return tr("every source ({source})", source=only) if agent.sources is None else only
    if agent.sources is None:
        return tr("every source")
    return tr("{count:,} of {every:,}", count=len(attached), every=len(policy.file_sources))


_WIDEST = 200
"""Pixels for the words on the button."""


class SourceBar(QWidget):
    """Always there, so that the rows below never jump under the mouse."""

    source_asked = Signal(object, bool)
    """A source is to be attached, or to be taken away: str, on. None: every one, those added later too; off: only
    those that are there now.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._policy, self._agent = Policy(), Agent("")
        self.menu = QMenu(self)
        self.menu.aboutToShow.connect(self._fill)
        self.button = named(QToolButton(), "agents.sources")
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.button.setMenu(self.menu)
        self._icon = IconLabel("info", "accent", size=current_look().tokens.small_icon_size)
        self._words = named(ElidedLabel(), "agents.hint")
        parts = (named(Label(tr("Sources")), kind="muted"), self.button, Gap(2), self._icon, stretch(self._words))
        row_of(*parts, into=self, space=1, margins=(2, 0, 2, 1))
        self.show_agent(self._policy, None, None)

    def show_agent(self, policy: Policy, agent: Agent | None, advice: Advice | None) -> None:
        """Name the sources of an agent and give one piece of advice."""
        self._policy, self._agent = policy, agent or Agent("")
        words = sources_words(policy, self._agent) if agent else ""
        cut = line_text(self.fontMetrics(), words, _WIDEST, Qt.TextElideMode.ElideMiddle)
        self.button.setText(f"{button_text(cut)} ")
        self.button.setAccessibleName(tr("Sources of the agent: {sources}", sources=words))
        self.button.setToolTip(tr("Which folders the agent's tools work on; their levels are on the Files page"))
        warns = advice is not None and advice.tone == "warning"
        tie_icon(self.button, "folder-tree", "ask" if warns else "muted")
        self._icon.set_icon("triangle-alert" if warns else "info", "ask" if warns else "accent")
        self._icon.setVisible(advice is not None)
        self._words.set_text(tr(advice.text) if advice is not None else "")

    def _fill(self) -> None:
        self.menu.clear()
        held = (*self._policy.sources_of(self._agent), *self._policy.streams_of(self._agent))
        for source in self._policy.sources:
            path = source.base_path
            if source.kind is SourceType.FOLDER_CHANGES:
                path = tr("{path} (changes)", path=path)
            elif source.kind is SourceType.HOST:
                path = tr("of a program")
            text, is_on = f"{source.source_id}\t{path}".replace("&", "&&"), source in held
            add_action(self.menu, text, partial(self.source_asked.emit, source.source_id, not is_on), ticked=is_on)
        if not self._policy.sources:
            add_action(self.menu, tr("The policy has no source: add one in Access, Files"), None)
            return
        self.menu.addSeparator()
        has_every = self._agent.sources is None
        ask = partial(self.source_asked.emit, None, not has_every)
        add_action(self.menu, tr("Every source, later ones too"), ask, ticked=has_every)
