"""Sources of a program on the page Files: what the window says of them, and what it edits."""

from typing import Annotated

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gatewright import Tool, ToolExecutionContext, operation
from gatewright.policy.document import PermissionRule, Source, SourceType
from gatewright.policy.rule import ToolRule
from gatewright.policy.verdict import Action, Permission, SafetyTier
from gatewright.tools import Normalization, PathParameter, ResultType
from gatewright_gui.pages.access.files import FilesPage
from gatewright_gui.pages.access.files.source_dialog import SourceDialog
from gatewright_gui.session.verbs import sources
from tests.gui.files.support import Opened, until
from tests.gui.files.test_files_gestures import chosen, dialog

LEFT = Qt.MouseButton.LeftButton
MENU = "Source orders of a program"


class OrderTool(Tool):
    """Reads orders."""

    name = "orders"
    safety_tier = SafetyTier.READ_ONLY
    result_type = ResultType.STRING
    normalization = Normalization.JSON
    required_capabilities = frozenset()

    @operation(tier=SafetyTier.READ_ONLY, actions=(Action.READ,))
    async def read(self, context: ToolExecutionContext, key: Annotated[str, PathParameter()]) -> str:
        """Read one.

        Args:
            key: Which.
        """
        return key


class Orders:
    """A source of texts."""

    source_id = "orders"

    def tools(self) -> tuple[Tool, ...]:
        return (OrderTool(),)

    def required_tools(self) -> tuple[ToolRule, ...]:
        return ()

    def load(self, key: str) -> str:
        return key


async def settings(page: FilesPage) -> SourceDialog:
    chosen(page.rules.header.source_menu, MENU, "&Settings...")
    return await dialog(page)


async def test_source_of_a_program_is_added_and_edited_with_its_rules(demo: Opened, page: FilesPage) -> None:
    page.rules.header.add_source_requested.emit()
    asked = await dialog(page)
    asked.kind.setCurrentIndex(asked.kind.findData(str(SourceType.HOST)))
    assert not asked.folder.isVisible()
    assert not asked.watch.isVisible()
    assert asked.limit.isVisible()
    assert "No program added it here" in asked.note.text()
    QTest.keyClicks(asked.name, "orders")
    QTest.keyClicks(asked.rules, "closed/** nothing")
    assert "line 1" in asked.fault.text()
    assert not asked.accept_button.isEnabled()
    asked.rules.setPlainText("closed/** none\nopen a/** read_write\n")
    QTest.mouseClick(asked.accept_button, LEFT)
    await until(lambda: demo.document.policy.source("orders") is not None)
    added = demo.document.policy.source("orders")
    assert added is not None
    assert (added.kind, added.base_path) == (SourceType.HOST, "")
    rules = [(rule.pattern, rule.permission) for rule in added.permission_rules]
    assert rules == [("closed/**", Permission.NONE), ("open a/**", Permission.READ_WRITE)]

    end = demo.document.workspace.sources.add(Orders())
    asked = await settings(page)
    assert asked.note.text() == "A program added it here: it runs, with the tools orders."
    assert asked.rules.toPlainText() == "closed/** none\nopen a/** read_write"
    assert asked.accept_button.toolTip() == "It is so already"
    asked.level.setCurrentIndex(asked.level.findData(str(Permission.NONE)))
    asked.rules.setPlainText("open a/** read_only")
    QTest.mouseClick(asked.accept_button, LEFT)
    await until(lambda: demo.document.policy.source("orders") != added)
    changed = demo.document.policy.source("orders")
    assert changed is not None
    assert changed.default_permission is Permission.NONE
    assert changed.permission_rules == (PermissionRule("open a/**", Permission.READ_ONLY),)
    own = demo.document.workspace.sources.own("orders")
    assert own is not None
    assert own.rules.explain("open a/1").permission is Permission.READ_ONLY

    end()
    asked = await settings(page)
    assert "No program added it here" in asked.note.text()
    QTest.keyClick(asked, Qt.Key.Key_Escape)
    demo.document.undo()
    assert demo.document.policy.source("orders") == added


@pytest.mark.parametrize("kind", [SourceType.HOST, SourceType.FOLDER_CHANGES])
async def test_rules_that_nobody_touched_stay_as_they_are(demo: Opened, page: FilesPage, kind: SourceType) -> None:
    rules = tuple(PermissionRule(f"{level}/**", level) for level in Permission)
    source = Source("orders", "" if kind is SourceType.HOST else "docs", permission_rules=rules, kind=kind)
    assert sources.add_source(demo.document, source)
    page.rules.header.change_source_requested.emit("orders")
    asked = await dialog(page)
    asked.name.setText("renamed")
    QTest.mouseClick(asked.accept_button, LEFT)
    await until(lambda: demo.document.policy.source("renamed") is not None)
    renamed = demo.document.policy.source("renamed")
    assert renamed is not None
    assert renamed.permission_rules == rules
    assert [one.identity for one in renamed.permission_rules] == [one.identity for one in rules]
