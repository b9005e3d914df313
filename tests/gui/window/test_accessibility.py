"""What assistive technology is told, asked through the accessibility interface that it uses."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractScrollArea, QAbstractSpinBox, QApplication, QComboBox, QTreeView, QWidget

from gatewright.policy.verdict import pick_tools
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.pages import all_rows
from tests.gui.session.opened import settled

Role, Text = QAccessible.Role, QAccessible.Text
NO_ROLE = {Role.NoRole, Role.Client}


def interface(of: QObject) -> QAccessibleInterface:
    found = QAccessible.queryAccessibleInterface(of)
    assert found is not None
    return found


def operable(window: MainWindow) -> list[QAccessibleInterface]:
    """Every widget that is seen and takes the keys by Tab or a click, through the interface; cells belong to models."""
    seen = [one for one in window.findChildren(QWidget) if one.isVisible() and one.isEnabled()]
    return [interface(one) for one in seen if one.focusPolicy() != Qt.FocusPolicy.NoFocus and not _is_inside(one)]


def _is_inside(widget: QWidget) -> bool:
    """Whether it is only the inner part of a control: the field of a combo box, the ground of a view."""
    parent = widget.parentWidget()
    return widget.focusProxy() is not None or isinstance(parent, QAbstractScrollArea | QComboBox | QAbstractSpinBox)


def said(one: QAccessibleInterface) -> str:
    of = one.object()
    where = f"{type(of).__name__} `{of.objectName()}`"
    return f"{where}, {one.role().name}, {one.text(Text.Name)!r}"


async def shown(window: MainWindow, key: str) -> QWidget:
    window.selection.choose_agent("operator")
    window.show_page(key)
    await settled(window)
    return window.shelf.page(key)


@pytest.mark.parametrize("key", [row.key for row in all_rows()])
async def test_everything_that_takes_the_keys_has_a_name_and_a_role(window: MainWindow, key: str) -> None:
    await shown(window, key)
    found = operable(window)
    assert len(found) > 10

    unnamed = [said(one) for one in found if one.role() in NO_ROLE or not one.text(Text.Name).strip()]
    assert unnamed == []

    window.activateWindow()
    window.shelf.page(key).focus_main()
    await settled(window)
    reached = tabbed(window)
    passed = [one for one in operable(window) if takes_tab(one) and one.object() not in reached]
    assert [said(one) for one in passed] == []


def takes_tab(one: QAccessibleInterface) -> bool:
    """Whether Tab is how one gets there; among buttons that belong together it gets to one, arrows to the others."""
    widget = one.object()
    assert isinstance(widget, QWidget)
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)


def tabbed(window: MainWindow) -> set[QObject]:
    """Where Tab gets to, once around."""
    reached: set[QObject] = set()
    at = QApplication.focusWidget()
    while at is not None and at not in reached:
        reached.add(at)
        QTest.keyClick(at, Qt.Key.Key_Tab)
        assert QApplication.focusWidget() is not at, f"Tab does not leave `{at.objectName()}`"
        at = QApplication.focusWidget()
    assert window.isActiveWindow()
    return reached


async def test_cells_tell_their_state_in_words(window: MainWindow) -> None:
    page = await shown(window, "tools")
    tree = page.findChild(QTreeView, "agents.tree")
    assert tree is not None
    group = tree.model().index(0, 0)
    told = [row.data(Qt.ItemDataRole.AccessibleTextRole) for row in (group, tree.model().index(0, 0, group))]

    tools = pick_tools(window.document.catalog, None).values()
    ours = sum(len(facts.operations) for facts in tools if facts.origin == "built-in")
    assert told[0].startswith("Built-in tools, ")
    assert told[0].endswith((f" of {ours}, on", f" of {ours}, mixed"))
    assert told[1] == "block, on"


CONTROLS = frozenset(
    {Role.Button, Role.ButtonMenu, Role.ButtonDropDown, Role.CheckBox, Role.RadioButton, Role.ComboBox, Role.SpinBox}
    | {Role.EditableText, Role.List, Role.Table, Role.Tree, Role.PageTab, Role.Link, Role.MenuItem, Role.Slider}
)


def tree_of(one: QAccessibleInterface) -> Iterator[QAccessibleInterface]:
    """All that assistive technology finds from here down; rows and cells belong to models."""
    yield one
    if one.role() not in {Role.List, Role.Table, Role.Tree}:
        for at in range(one.childCount()):
            yield from tree_of(one.child(at))


@pytest.mark.parametrize("key", [row.key for row in all_rows()])
async def test_no_control_in_the_accessibility_tree_is_without_a_name(window: MainWindow, key: str) -> None:
    await shown(window, key)
    controls = [
        said(one)
        for one in tree_of(interface(window))
        if one.role() in CONTROLS and isinstance(widget := one.object(), QWidget) and widget.isVisible()
    ]
    assert len(controls) > 10
    assert [words for words in controls if words.endswith(("''", "' '"))] == []
