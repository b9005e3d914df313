"""An agent with memory works in three sessions; between them its operator corrects what it keeps, by mouse and keys."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QAbstractItemView, QCheckBox, QLineEdit, QPlainTextEdit, QPushButton

from gatewright.gate import Session
from gatewright.workspace import Workspace
from gatewright_gui.pages.access.memory import MemoryPage
from gatewright_gui.qt.widget.code_view import CodeView
from tests.journeys.hand import Hand, until
from tests.journeys.views import texts

pytestmark = pytest.mark.journey
POLICY = """\
gatewright = 1

[agents.desk]
tools = ["block", "block_edit", "recall", "search"]
sources = []
"""
LABEL = "about dana"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "desk" / "policy.toml"
    path.parent.mkdir()
    path.write_text(POLICY, encoding="utf-8")
    return path


async def session(policy: Path, calls: Sequence[tuple[str, dict[str, Any]]]) -> tuple[str, list[Any]]:
    """What a host does: the agent's context goes into the prompt, and what its model calls passes the gate."""
    with Workspace.open(policy) as host:
        prompt, conversation, answers = host.context("desk").text, Session(), list[Any]()
        for tool, arguments in calls:
            outcome = await host.call("desk", tool, arguments, session=conversation)
            assert outcome.status == "allowed", outcome.output
            answers.append(json.loads(outcome.output))
        return prompt, answers


async def test_third_session_sees_what_the_operator_corrected_between_the_sessions(hand: Hand, policy: Path) -> None:
    # the operator makes a block that stays in context
    await hand.go_to("memory")
    page = hand.window.shelf.page("memory")
    assert isinstance(page, MemoryPage)
    await hand.click(page.blocks.empty.action_button)
    await hand.click(await hand.see("memory_new.label", QLineEdit))
    await hand.type(LABEL)
    await hand.click(hand.find("memory_new.pinned", QCheckBox), QPoint(10, 8))
    await hand.click(hand.find("memory_new.accept", QPushButton))
    blocks = hand.find("memory.blocks", QAbstractItemView).model()
    await until(lambda: texts(blocks) == [LABEL], "the block")

    # the first session notes something, which shows at once
    prompt, _ = await session(
        policy, [("block_edit", {"op": "append", "label": LABEL, "content": "Dana likes tea.\n"})]
    )
    assert LABEL in prompt
    assert "tea" not in prompt
    value = hand.find("memory.value", QPlainTextEdit)
    await until(lambda: value.toPlainText() == "Dana likes tea.\n", "what the agent wrote")

    # the second one sees it and adds something wrong
    prompt, _ = await session(
        policy,
        [
            ("block_edit", {"op": "append", "label": LABEL, "content": "Dana lives in Porto.\n"}),
            ("recall", {"op": "insert", "content": "Dana asked for the tide table."}),
        ],
    )
    assert "Dana likes tea." in prompt
    await until(lambda: "Porto" in value.toPlainText(), "what the agent added")

    # the operator looks who wrote it, and corrects the word
    await hand.click(page.blocks.detail.part.button("history"))
    steps = hand.find("memory.steps", QAbstractItemView).model()
    await until(lambda: texts(steps, 2) == ["desk", "desk", "you"], "the changes")
    await until(lambda: "+Dana lives in Porto." in hand.find("memory.step_code", CodeView).text, "the change")
    await hand.click(page.blocks.detail.part.button("value"))
    await hand.click(value)
    await hand.key("ctrl+End", "Left", "Left")
    await hand.key(*["BackSpace"] * len("Porto"))
    await hand.type("Lisbon")
    assert hand.find("memory.save", QPushButton).isEnabled()
    await hand.key("ctrl+Return")
    workspace = hand.window.document.workspace
    await until(lambda: "Lisbon" in str(workspace.blocks("desk").value(LABEL)), "the correction to be saved")
    await hand.click(page.part.button("archive"))
    archive = hand.find("memory.archive_entries", QAbstractItemView).model()
    await until(lambda: texts(archive) == ["Dana asked for the tide table."], "the entry of the archive")

    # the third session has the correction in its prompt and through its tools
    prompt, (loaded, found) = await session(
        policy,
        [
            ("block", {"op": "load", "label": LABEL}),
            ("search", {"domain": "archival_memory", "query": "tide"}),
        ],
    )
    assert "Dana lives in Lisbon." in prompt
    assert "Porto" not in prompt
    assert loaded["data"]["content"] == "Dana likes tea.\nDana lives in Lisbon.\n"
    assert [hit["content"] for hit in found["data"]["hits"]] == ["Dana asked for the tide table."]
