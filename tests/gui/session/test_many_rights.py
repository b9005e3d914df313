"""Wishes for more tools than are edited at once: worked out beside the window, in the order in which they were said."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewright.policy.verdict import Verdict
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs import agents
from gatewright_gui.session.verbs.rights import TOOLS_AT_ONCE, ManyRights, Target
from tests.gui.session.opened import Said, until
from tests.support.largeworkspace import large_opener, tool_names, write_large
from tests.support.manyoperations import EIGHT

TOOLS = TOOLS_AT_ONCE + 10
AGENT = "agent_0000"
EVERYTHING = tuple(Target(name, EIGHT) for name in tool_names(TOOLS))


class Desk:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.deriver = Deriver(document)
        self.tasks = TaskOwner(self._failed)
        self.many = ManyRights(document, self.deriver, self.tasks)
        self.said = Said(document)

    def _failed(self, name: str, error: BaseException) -> None:
        raise AssertionError(name) from error

    async def rest(self) -> None:
        await until(lambda: not self.tasks.names)

    def verdicts(self) -> set[Verdict]:
        rights = self.document.rights(AGENT)
        return {row.verdict for target in EVERYTHING for row in rights[target.tool].operations}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    document = Document(large_opener(TOOLS))
    await document.open(write_large(tmp_path / "large", 2, TOOLS))
    desk = Desk(document)
    yield desk
    await desk.tasks.close()
    desk.deriver.close()
    document.close()


async def test_wishes_for_many_tools_come_one_after_the_other_as_they_were_said(desk: Desk) -> None:
    desk.many.edit(AGENT, EVERYTHING, "allow")
    desk.many.edit(AGENT, EVERYTHING, "deny")
    desk.many.edit(AGENT, EVERYTHING[:1], "ask")  # few, and behind the others all the same
    assert desk.document.undo_stack.count() == 0
    await desk.rest()

    stack = desk.document.undo_stack
    assert [stack.text(at) for at in range(stack.count())] == [
        f"turn on without asking {TOOLS * 8} operations of {TOOLS} tools for {AGENT}",
        f"turn off {TOOLS * 8} operations of {TOOLS} tools for {AGENT}",
        f"ask first for 8 operations of {EVERYTHING[0].tool} for {AGENT}",
    ]
    assert desk.verdicts() == {Verdict.ASK, Verdict.DENY}
    desk.document.undo()
    desk.document.undo()
    assert desk.verdicts() == {Verdict.ALLOW}


async def test_edit_that_comes_between_is_kept_and_the_wish_made_on_top_of_it(desk: Desk) -> None:
    desk.many.edit(AGENT, EVERYTHING, "on")
    agents.describe_agent(desk.document, AGENT, "between")
    await desk.rest()

    assert desk.document.policy.agents[AGENT].description == "between"
    assert desk.verdicts() == {Verdict.ALLOW}


async def test_few_tools_are_edited_at_once(desk: Desk) -> None:
    desk.many.edit(AGENT, EVERYTHING[:TOOLS_AT_ONCE], "ask")

    assert desk.document.undo_stack.count() == 1
    assert not desk.tasks.names


async def test_wish_for_an_agent_that_is_gone_is_refused_aloud(desk: Desk) -> None:
    desk.many.edit("nobody", EVERYTHING, "allow")
    await desk.rest()

    assert desk.said.last == "no agent `nobody`"
    assert desk.document.undo_stack.count() == 0
