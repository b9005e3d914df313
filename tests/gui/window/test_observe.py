"""Observe mode in the window: switched on, told on every page, compared, and ended in one edit."""

import json
import time
from pathlib import Path

from PySide6.QtWidgets import QPushButton

from gatewright.workspace.api import AuditFilter, Observed, ObservedKind
from gatewright_gui.pages.access.rules.rule_list import RuleList
from gatewright_gui.pages.activity import ActivityPage
from gatewright_gui.pages.activity.dialogs import CompareDialog
from gatewright_gui.session.verbs.policy import OBSERVE_S, set_observed
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.pages import all_rows
from tests.gui.session.opened import agents_page, demo, opened_window, settled
from tests.support.patience import until

RULE = '\n[[policy.rules]]\nname = "no lists"\neffect = "deny"\ntools = ["file"]\noperations = ["list"]\n'


def observe(window: MainWindow, kind: ObservedKind, name: str) -> None:
    until_s = float(round(time.time() + OBSERVE_S))
    assert set_observed(window.document, [Observed(kind, name, until_s)], until_s)


async def test_what_is_observed_is_told_on_every_page_until_it_is_enforced(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    async with opened_window(policy, tmp_path) as window:
        assert window.observe.isHidden()
        before = window.document.policy
        observe(window, ObservedKind.AGENT, "archivist")
        for row in all_rows():
            window.show_page(row.key)
            assert window.observe.isVisible(), row.key
            assert "archivist" in window.observe.text
        window.observe.dismiss()
        assert window.observe.isVisible()

        window.observe.action_button.click()

        assert window.observe.isHidden()
        assert window.document.policy == before
        window.undo()
        assert window.observe.isVisible()
        window.document.undo_stack.setIndex(0)
        assert window.document.policy == before


async def test_the_preview_tells_what_enforcing_would_hide(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    async with opened_window(policy, tmp_path) as window:
        page = agents_page(window)
        window.selection.choose_agent("researcher")
        await settled(window)
        assert page.preview.counts.text.startswith("The model sees ")
        observe(window, ObservedKind.RULE, "only writers load")
        await settled(window)
        assert page.preview.counts.text.startswith("Enforcing would hide file.load. The model sees ")
        window.document.undo_stack.setIndex(0)


async def test_a_rule_is_observed_compared_and_enforced(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    policy.write_text(policy.read_text("utf-8") + RULE, "utf-8")
    async with opened_window(policy, tmp_path) as window:
        window.show_page("rules")
        button = window.shelf.page("rules").findChild(QPushButton, "policy.observe")
        assert isinstance(button, QPushButton)
        rules = window.shelf.page("rules").findChild(RuleList)
        assert isinstance(rules, RuleList)
        rules.choose(len(window.document.policy.rules) - 1)
        button.click()
        assert "no lists" in window.observe.text
        for _ in range(2):
            outcome = await window.document.workspace.call("archivist", "file", json.dumps({"op": "list"}))
            assert (str(outcome.decision.verdict), outcome.decision.enforced) == ("deny", False)

        window.observe.more_button.click()
        await until(lambda: window.findChild(CompareDialog) is not None)
        dialog = window.findChild(CompareDialog)
        assert isinstance(dialog, CompareDialog)
        assert dialog.words.text() == "Of 2 calls 2 would have been denied."
        assert dialog.rows.item(0).text() == "2  denied, check operation: no lists"
        dialog.rows.itemActivated.emit(dialog.rows.item(0))
        await settled(window)

        page = window.shelf.page("activity")
        assert isinstance(page, ActivityPage)
        await until(lambda: len(page.trail.now.numbers) == 2)
        page.filters.within_button.click()
        assert page.filters.filter == AuditFilter()
        window.show_page("rules")
        assert button.text() == "Enforce"
        button.click()
        assert window.observe.isHidden()
        window.document.undo_stack.setIndex(0)
