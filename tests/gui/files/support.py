"""An open demo workspace with everything a page needs, and waiting for what pages show; it knows no page."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import format_exception

from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.verdict import Permission
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.coding_agents import CodingAgents
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.draft import PolicyDraft
from gatewright_gui.session.message import Message
from gatewright_gui.session.navigator import Navigator
from gatewright_gui.session.opening import Opener
from gatewright_gui.session.selection import Selection
from gatewright_gui.session.verbs import sources
from gatewright_gui.session.waiting import Waiting
from gatewright_gui.settings import Preferences
from tests.support.demo import copy_demo
from tests.support.patience import until

__all__ = ["SOURCE", "Opened", "opened", "until"]

SOURCE = "archive"


@dataclass(slots=True)
class Opened:
    """The context of a page, what was said, and what failed in tasks."""

    context: PageContext
    folder: Path
    said: list[str] = field(default_factory=list[str])
    failures: list[BaseException] = field(default_factory=list[BaseException])
    lines: list[int] = field(default_factory=list[int])

    @property
    def document(self) -> Document:
        return self.context.document


def source_of(document: Document, source_id: str = SOURCE) -> Source:
    """A source of the open policy, as it is now."""
    source = document.policy.source(source_id)
    assert source is not None
    return source


def rule_at(document: Document, row: int) -> PermissionRule:
    """A rule of the demo's source, as it is now."""
    return source_of(document).permission_rules[row]


def set_level(document: Document, row: int, level: Permission) -> bool:
    """Give a rule of the demo's source another level."""
    return sources.set_level(document, source_of(document), rule_at(document, row), level)


def add_rule(document: Document, pattern: str, level: Permission) -> bool:
    """A last rule for the demo's source."""
    return sources.add_rule(document, source_of(document), PermissionRule(pattern, level))


@asynccontextmanager
async def opened(folder: Path, opener: Opener | None = None) -> AsyncGenerator[Opened]:
    """A demo workspace, open; what pages started is ended with it."""
    failures: list[BaseException] = []
    tasks = TaskOwner(lambda _name, error: failures.append(error))
    document = Document(opener)
    waiting = Waiting(document)
    deriver = Deriver(document)
    draft = PolicyDraft(document, deriver, tasks)
    preferences = Preferences(folder / "preferences.ini")
    agents = CodingAgents(document, tasks, bool)  # nobody looks
    context = PageContext(
        document, Selection(), Navigator(), deriver, tasks, preferences, waiting, draft, agents, document.save
    )
    made = Opened(context, folder, failures=failures)

    def keep_said(message: Message) -> None:
        made.said.append(message.text)

    document.said.connect(keep_said)
    context.navigator.line_requested.connect(made.lines.append)
    assert await document.open(copy_demo(folder))
    try:
        yield made
    finally:
        waiting.close()
        await tasks.close()
        context.deriver.close()
        document.close()
    assert not failures, "\n".join("".join(format_exception(failure)) for failure in failures)
