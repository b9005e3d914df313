"""The tab Memory: what the chosen agent remembers, or what all share, one part at a time."""

import asyncio
from functools import cached_property

from PySide6.QtWidgets import QStackedWidget, QWidget

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.access.memory.blocks_pane import BlocksPane
from gatewright_gui.pages.access.memory.texts_pane import ArchivePane, ConversationsPane, NotesPane, TextsPane
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.qt.dialog import Choice, ask
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import Gap, column_of, named, row_of, stretch
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.label import ElidedLabel
from gatewright_gui.session.memory import WHO
from gatewright_gui.session.unsaved import Typed
from gatewright_gui.session.watch import MemoryWatch

_NAMED = 6
"""So many foreign files are named in the question about them."""
SHARED = mark("Memory shared by all agents")
PARTS = (
    ("blocks", mark("Blocks"), mark("texts that last from call to call; badges say what the agent may do")),
    ("notes", mark("Notes"), mark("What agents remember of a user that they work for")),
    ("archive", mark("Archive"), mark("texts that are kept for good and found again by their words")),
    ("conversations", mark("Conversations"), mark("what was said and recorded; only to be read")),
)


class MemoryPage(Page):
    """Follows the chosen agent; of everyone it shows what is shared."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("memory")
        self._context = context
        self.part = named(Segmented(tr("What to show of the memory")), "memory.kind")
        for key, words, tip in PARTS:
            self.part.add_segment(key, tr(words), tooltip=tr(tip))
        self.typed = Typed(context.document, context.tasks, self)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.blocks)
        self.blocks.bar.action_requested.connect(self._take_over)
        self._of = named(ElidedLabel(role="muted"), "memory.of")
        top = row_of(self.part, Gap(3), stretch(self._of), space=2, margins=(2, 1))
        column_of(top, stretch(self._stack), into=self)
        self._watch = MemoryWatch(context.document, context.tasks, self.isVisible, parent=self)
        self._watch.changed.connect(self._refresh)
        self.part.current_changed.connect(self._choose_part)
        document = context.document
        document.closed.connect(self._let_go)
        chosen = context.selection
        for signal in (document.opened, document.policy_changed, chosen.agent_changed, chosen.everyone_changed):
            signal.connect(self._follow)
        self._follow()

    def focus_search(self) -> None:
        """To the filter of what is shown."""
        pane = self._pane
        (pane.filter if isinstance(pane, BlocksPane) else pane.search).setFocus()

    def main_view(self) -> QWidget:
        """The list of what is shown."""
        return self._pane.main_view()

    def page_shown(self) -> None:
        """Much may have been remembered meanwhile."""
        self._follow()

    def end(self) -> None:
        """Keep what is typed and not saved for the next window."""
        self.typed.end()

    @property
    def agent_id(self) -> str:
        """Whose memory is shown; "" for what all agents share."""
        chosen = self._context.selection
        is_there = chosen.agent_id is not None and chosen.agent_id in self._context.document.policy.agents
        return chosen.agent_id or "" if is_there and not chosen.is_everyone else ""

    def _let_go(self) -> None:
        """Drop what is shown, and what is half typed there: it is of a workspace that is gone."""
        for key in ("blocks", "notes", "archive", "conversations"):
            pane: QWidget | None = self.__dict__.pop(key, None)
            if pane is not None:
                self._stack.removeWidget(pane)
                pane.hide()
                pane.deleteLater()
        self._choose_part(self.part.current)
        self._follow()

    def _follow(self, _why: object = None) -> None:
        self._tell_part()
        self._refresh()

    def _tell_part(self) -> None:
        """Say whose memory it is and what the part of it holds; notes are of a user, whichever agent kept them."""
        of = tr("Memory of {agent}", agent=self.agent_id) if self.agent_id else tr(SHARED)
        whose = () if self.part.current == "notes" else (of,)
        about = next((tr(words) for key, _, words in PARTS if key == self.part.current), "")
        self._of.set_text(": ".join((*whose, about)))

    def _refresh(self) -> None:
        if self.isVisible():
            self._pane.show_agent(self.agent_id)

    @cached_property
    def blocks(self) -> BlocksPane:
        """The blocks of the agent, or the shared ones; of another workspace in a new pane, as all parts are."""
        made = BlocksPane(self._context, self.typed)
        made.agent_requested.connect(self._context.navigator.go_to_agent)
        return made

    @cached_property
    def notes(self) -> NotesPane:
        """Made when it is first looked at, as the two others."""
        return NotesPane(self._context, self.typed)

    @cached_property
    def archive(self) -> ArchivePane:
        """The archive of the agent and the shared one."""
        return ArchivePane(self._context)

    @cached_property
    def conversations(self) -> ConversationsPane:
        """The pane of what was recorded of the agent's conversations."""
        return ConversationsPane(self._context)

    @property
    def _pane(self) -> BlocksPane | TextsPane:
        match self.part.current:
            case "notes":
                return self.notes
            case "archive":
                return self.archive
            case "conversations":
                return self.conversations
            case _:
                return self.blocks

    def _take_over(self) -> None:
        self._context.tasks.start(self._ask_take_over(), "memory.dialog")

    async def _ask_take_over(self) -> None:
        """Take over the files that the question named, and no others."""
        document, workspace = self._context.document, self._context.document.workspace
        try:
            files = await asyncio.to_thread(workspace.foreign_memory)
            if not files:
                return
            names = [path.relative_to(workspace.state_folder).as_posix() for path in files]
            more = [tr("and {count} more", count=len(names) - _NAMED)] if len(names) > _NAMED else []
            means = tr(
                "Agents read it as their own memory from then on, with whatever its maker wrote for them to do. "
                "Nothing takes that back; the audit log keeps that you did it."
            )
            choices = (Choice("keep", tr("Leave it unused"), "primary"), Choice("take", tr("Take it over"), "danger"))
            title, text = tr("Take over memory that was made elsewhere?"), "\n".join([means, *names[:_NAMED], *more])
            if await ask(self, title, text, choices, icon="triangle-alert", role="ask") == "take":
                await asyncio.to_thread(workspace.adopt_memory, files, who=WHO)
        except GatewrightError as error:
            document.say("error", str(error))

    def _choose_part(self, _key: object = None) -> None:
        pane = self._pane
        if self._stack.indexOf(pane) < 0:
            self._stack.addWidget(pane)
            pane.bar.action_requested.connect(self._take_over)
        self._stack.setCurrentWidget(pane)
        self._tell_part()
        self._refresh()
