"""What is said of the level of a path: for the operations of the `file` tool, and for which agents."""

import pytest
from PySide6.QtWidgets import QWidget

from gatewright.policy.document import Source
from gatewright.policy.verdict import Action, Permission, Verdict
from gatewright_gui.pages.access.files import FilesPage
from gatewright_gui.pages.access.files.decided_panel import PathMeaning, meaning_of
from gatewright_gui.pages.access.files.level import LEVELS
from gatewright_gui.session.files import PathLevel
from gatewright_gui.session.verbs import agents
from gatewright_gui.session.verdict import permission_words
from tests.gui.files.support import SOURCE, Opened


def source_of(demo: Opened) -> Source:
    found = demo.document.policy.source(SOURCE)
    assert found is not None
    return found


def meaning(demo: Opened, level: Permission) -> PathMeaning:
    return meaning_of(demo.document, source_of(demo), PathLevel("some/path.md", level))


@pytest.mark.parametrize("level", list(Permission))
async def test_each_operation_stands_with_the_verdict_that_the_engine_gives_its_action(
    demo: Opened, level: Permission
) -> None:
    facts = next(facts for facts in demo.document.workspace.gate.snapshot().facts if facts.name == "file")
    said = meaning(demo, level).operations
    path = PathLevel("some/path.md", level)
    for operation in facts.operations:
        verdicts = {path.verdict(action) for action in operation.actions}
        names = {operation.name} if len(verdicts) == 1 else {f"{operation.name} ({one})" for one in operation.actions}
        for verdict in verdicts:
            assert names & set(said[verdict]), (operation.name, verdict)
    assert sum(map(len, said.values())) >= len(facts.operations)


async def test_path_that_is_closed_lets_no_operation_through(demo: Opened) -> None:
    closed = meaning_of(demo.document, source_of(demo), PathLevel("../x", Permission.ADMIN, outside=True))
    assert closed.operations[Verdict.ALLOW] == ()
    assert closed.operations[Verdict.ASK] == ()


async def test_tried_path_says_operations_and_agents_in_the_words_of_the_help(demo: Opened, page: FilesPage) -> None:
    page.decided.field.setText("drafts/new.md")
    shown = page.decided.shown
    assert shown is not None
    assert shown.verdict(Action.DELETE) is Verdict.ASK
    actions = page.decided.findChild(QWidget, "files.actions")
    assert actions is not None
    assert "ask first: delete\n" in actions.toolTip()
    assert page.decided.sentence.startswith("read and write, by rule ")
    having = [one.agent_id for one in demo.document.policy.agents.values() if SOURCE in (one.sources or ())]
    assert page.decided.agents.text.endswith(", ".join(having))
    assert agents.attach_source(demo.document, having[0], SOURCE, on=False)
    assert having[0] not in page.decided.agents.text
    demo.document.undo_stack.undo()
    assert having[0] in page.decided.agents.text


async def test_nothing_is_said_of_agents_while_no_path_is_chosen(page: FilesPage) -> None:
    assert page.decided.agents.isHidden()


def test_each_level_has_words_of_its_own_and_its_key_in_the_tip() -> None:
    words = {level: permission_words(level) for level in Permission}
    assert len(set(words.values())) == len(words)
    for level, look in LEVELS.items():
        assert look.tip.startswith(f"{words[level]}: ")
        assert look.tip.endswith(f"in the policy file: {level}")
