"""Pictures of every widget in both themes: `python -m tests.gui.foundation.gallery --out DIR`."""

import argparse
import sys
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QFormLayout,
    QGridLayout,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMainWindow,
    QMenu,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from gatewright_gui.qt.dialog import Choice, QuestionDialog
from gatewright_gui.qt.look import CheckState
from gatewright_gui.qt.widget import (
    Chip,
    CodeView,
    ElidedLabel,
    EmptyState,
    IconButton,
    IconRail,
    MessageBar,
    NumberField,
    ProgressStrip,
    SearchField,
    SectionHeader,
    Segmented,
    Splitter,
    TableView,
    Toast,
    TreeView,
    VerdictBadge,
)
from gatewright_gui.qt.widget.message_bar import Tone
from gatewright_gui.theme.theme import Theme, ThemeName
from gatewright_resources import icon_names

JSON_TEXT = """{
  "name": "file",
  "description": "Read and write files",
  "parameters": {
    "type": "object",
    "properties": {
      "operation": { "enum": ["append", "load"] },
      "max_bytes": { "type": "integer", "default": 65536 },
      "dry_run": { "type": "boolean", "default": false }
    },
    "required": ["operation"]
  }
}"""
TOML_TEXT = """# what the archivist may do
[[agents]]
name = "archivist"
tools = ["file", "block"]

[[tool_rules]]
rule_type = "allowed_operations"
tool = "file"
operations = ["read", "append"]
max_calls = 5
note = \"\"\"
goes on
over lines\"\"\"
"""
DIFF_TEXT = """--- shown without limits
+++ shown to archivist
@@ -4,3 +4,3 @@
   "operation": {
-    "enum": ["append", "delete", "load"]
+    "enum": ["append", "load"]
   }
"""
MARKDOWN_TEXT = """# Usage rules
- Call `file` at most **5** times
- Ask before `append`
```
{"operation": "load"}
```
"""


def _line(*parts: QWidget) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(8)
    for part in parts:
        row.addWidget(part)
    row.addStretch(1)
    return row


def _buttons() -> QGroupBox:
    box = QGroupBox("Buttons")
    grid = QGridLayout(box)
    for row, enabled in enumerate((True, False)):
        for column, kind in enumerate(("normal", "primary", "danger", "link")):
            button = QPushButton(f"{kind.capitalize()}" + ("" if enabled else ", off"))
            button.setProperty("kind", kind)
            button.setEnabled(enabled)
            grid.addWidget(button, row, column)
    focused = QPushButton("Focused")
    focused.setObjectName("wants-focus")
    grid.addWidget(focused, 0, 4)
    tools = _line(IconButton("undo", "Undo"), IconButton("redo", "Redo"), IconButton("trash", "Delete", role="deny"))
    checked = IconButton("eye", "Show")
    checked.setCheckable(True)
    checked.setChecked(True)
    off = IconButton("save", "Save")
    off.setEnabled(False)
    tools.insertWidget(3, checked)
    tools.insertWidget(4, off)
    grid.addLayout(tools, 2, 0, 1, 3)
    segments = Segmented("View")
    for key, icon in (("Tree", "list"), ("Matrix", "layers"), ("Raw", "braces")):
        segments.add_segment(key.lower(), key, icon=icon)
    segments.set_segment_enabled("raw", False)
    grid.addWidget(segments, 2, 3, 1, 2)
    return box


def _boxes() -> QGroupBox:
    box = QGroupBox("Boxes")
    grid = QGridLayout(box)
    states = (
        ("On", Qt.CheckState.Checked),
        ("Mixed", Qt.CheckState.PartiallyChecked),
        ("Off", Qt.CheckState.Unchecked),
    )
    for column, (word, state) in enumerate(states):
        for row, enabled in enumerate((True, False)):
            check = QCheckBox(word if enabled else f"{word}, disabled")
            check.setTristate(True)
            check.setCheckState(state)
            check.setEnabled(enabled)
            grid.addWidget(check, row, column)
    for column, word in enumerate(("Chosen", "Not chosen")):
        radio = QRadioButton(word)
        radio.setChecked(column == 0)
        grid.addWidget(radio, 2, column)
    return box


def _fields() -> QGroupBox:
    box = QGroupBox("Fields")
    form = QFormLayout(box)
    form.setSpacing(8)
    search = SearchField("Filter tools")
    search.setText("file")
    wrong = QLineEdit("docs/**[")
    wrong.setProperty("kind", "error")
    combo = QComboBox()
    combo.addItems(["OpenAI", "Anthropic", "MCP"])
    spin = NumberField("Max calls", 0, 100, unit="calls")
    spin.setValue(5)
    off = QLineEdit("cannot be changed")
    off.setEnabled(False)
    form.addRow("Search", search)
    form.addRow("Glob", wrong)
    form.addRow("Format", combo)
    form.addRow("Max calls", spin)
    form.addRow("Disabled", off)
    path = ElidedLabel("workspaces/workspaces/archive/2026/notes/drafts/first-light.md", path=True, mono=True)
    path.setFixedWidth(260)
    form.addRow("Path", path)
    return box


def _badges() -> QGroupBox:
    box = QGroupBox("Verdicts and levels")
    column = QVBoxLayout(box)
    off = VerdictBadge("allow")
    off.setEnabled(False)
    column.addLayout(_line(VerdictBadge("allow"), VerdictBadge("ask"), VerdictBadge("deny"), off))
    column.addLayout(
        _line(
            Chip("none", icon="eye-off", role="none"),
            Chip("read_only", icon="eye", role="read_only"),
            Chip("partner", icon="users", role="partner"),
            Chip("human", icon="hand", role="human"),
        )
    )
    column.addLayout(
        _line(
            Chip("append", icon="plus", role="append"),
            Chip("read_write", icon="pencil", role="read_write"),
            Chip("admin", icon="key-round", role="admin"),
            Chip("off: NetRead not granted", icon="circle-slash", role="neutral"),
        )
    )
    return box


def _tree(theme: Theme) -> TreeView:
    model = QStandardItemModel()
    model.setHorizontalHeaderLabels(["Tool and operation", "Verdict", "Tokens"])
    for name, state in (("file", Qt.CheckState.PartiallyChecked), ("block", Qt.CheckState.Checked)):
        tool = QStandardItem(theme.icon("wrench", "muted"), name)
        tool.setCheckable(True)
        tool.setCheckState(state)
        model.appendRow([tool, QStandardItem("allow"), _number("312")])
        for operation in ("load", "append", "delete"):
            item = QStandardItem(operation)
            item.setCheckable(True)
            item.setCheckState(Qt.CheckState.Unchecked if operation == "delete" else Qt.CheckState.Checked)
            item.setEnabled(not (name == "block" and operation == "delete"))
            tool.appendRow([item, QStandardItem("deny" if operation == "delete" else "allow"), _number("41")])
    blocked = QStandardItem(theme.check_icon(CheckState.BLOCKED), "web_fetch   off: NetRead not granted")
    blocked.setForeground(QColor(theme.palette.neutral.fg))
    model.appendRow([blocked, QStandardItem("deny"), _number("0")])
    tree = TreeView("Tools")
    tree.setModel(model)
    model.setParent(tree)
    tree.expandAll()
    tree.setColumnWidth(0, 260)
    tree.setCurrentIndex(model.index(1, 0))
    return tree


def _number(text: str) -> QStandardItem:
    item = QStandardItem(text)
    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return item


def _table() -> TableView:
    model = QStandardItemModel()
    model.setHorizontalHeaderLabels(["Pattern", "Level", "Hits"])
    for row in range(40):
        model.appendRow([QStandardItem(f"docs/part-{row}/**"), QStandardItem("read_only"), _number(str(row * 37))])
    table = TableView("Rules")
    table.setModel(model)
    model.setParent(table)
    table.setColumnWidth(0, 120)
    table.setColumnWidth(1, 80)
    table.setCurrentIndex(model.index(2, 0))
    return table


def _code_views() -> list[tuple[str, CodeView]]:
    made: list[tuple[str, CodeView]] = []
    for title, setter, text in (
        ("Schema", CodeView.set_json, JSON_TEXT),
        ("Rules", CodeView.set_markdown, MARKDOWN_TEXT),
        ("Diff", CodeView.set_diff, DIFF_TEXT),
        ("TOML", CodeView.set_toml, TOML_TEXT),
    ):
        view = CodeView(title)
        setter(view, text)
        made.append((title, view))
    return made


def _code() -> QTabWidget:
    tabs = QTabWidget()
    for title, view in _code_views():
        tabs.addTab(view, title)
    return tabs


def _reading(theme: Theme) -> QWidget:
    """A tree that has the focus beside code of every language, one with its find bar open, one with a marked line."""
    page = QWidget()
    grid = QGridLayout(page)
    tree = _tree(theme)
    tree.setObjectName("wants-focus")
    grid.addWidget(tree, 0, 0, 2, 1)
    views = [view for _, view in _code_views()]
    for number, view in enumerate(views):
        grid.addWidget(view, number // 2, 1 + number % 2)
    views[0].open_find()
    views[0].find_bar.field.setText("type")
    views[3].mark_lines({8: "accent"})
    page.resize(1280, 560)
    return page


def _messages() -> QWidget:
    holder = QWidget()
    column = QVBoxLayout(holder)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(4)
    messages: tuple[tuple[Tone, str, str | None], ...] = (
        ("info", "The policy changed on disk", "Reload"),
        ("warning", "2 rules can never apply", "Show"),
        ("error", "line 14, column 3: unknown operation `reed`, did you mean `read`?", None),
    )
    for tone, text, action in messages:
        bar = MessageBar()
        bar.show_message(tone, text, action=action)
        column.addWidget(bar)
    strip = ProgressStrip()
    strip.start("Colouring 200,000 files", at_once=True)
    strip.set_progress(0.4)
    column.addWidget(strip)
    progress = QProgressBar()
    progress.setValue(60)
    column.addWidget(progress)
    return holder


def _rail() -> IconRail:
    rail = IconRail()
    pages = (
        ("agents", "bot", "Agents"), ("files", "folder-tree", "Files"), ("console", "terminal", "Console"),
        ("approvals", "hand", "Approvals"), ("audit", "scroll-text", "Audit"),
        ("problems", "triangle-alert", "Problems"),
    )  # fmt: skip
    for key, icon, label in pages:
        rail.add_page(key, icon, label)
    rail.set_badge("approvals", 3, "ask")
    rail.set_badge("problems", 12, "deny")
    rail.button("audit").setEnabled(False)
    return rail


def _left(theme: Theme) -> QWidget:
    left = QWidget()
    column = QVBoxLayout(left)
    column.setContentsMargins(12, 4, 8, 8)
    header = SectionHeader("Tools and operations", "41 of 57 on")
    header.add_control(SearchField("Filter"))
    header.add_control(IconButton("rotate-ccw", "Reset"))
    for part in (_buttons(), _boxes(), header, _tree(theme)):
        column.addWidget(part)
    return left


def _right() -> QWidget:
    right = QWidget()
    column = QVBoxLayout(right)
    column.setContentsMargins(8, 4, 12, 8)
    top = QHBoxLayout()
    top.addWidget(_fields(), 1)
    side = QVBoxLayout()
    side.addWidget(_badges())
    side.addWidget(EmptyState("folder-open", "No rules yet", "Add a rule to say who may write here", action="Add rule"))
    top.addLayout(side)
    column.addLayout(top)
    column.addWidget(_messages())
    bottom = Splitter(Qt.Orientation.Horizontal, "gallery-bottom")
    bottom.addWidget(_code())
    bottom.addWidget(_table())
    bottom.restore((420, 300))
    column.addWidget(bottom, 1)
    return right


def gallery_window(theme: Theme) -> QMainWindow:
    """A window with one of everything."""
    window = QMainWindow()
    window.setWindowTitle("Gatewright gallery")
    window.menuBar().addMenu("Policy")
    window.menuBar().addMenu("View")
    centre = QWidget()
    row = QHBoxLayout(centre)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(0)
    row.addWidget(_rail())
    split = Splitter(Qt.Orientation.Horizontal, "gallery")
    split.addWidget(_left(theme))
    split.addWidget(_right())
    split.restore((560, 720))
    row.addWidget(split, 1)
    window.setCentralWidget(centre)
    window.statusBar().addWidget(QLabel("self-check 1,184 of 1,184"))
    window.statusBar().addWidget(QLabel("saved 12 s ago"))
    window.resize(1440, 960)
    return window


def icon_sheet(theme: Theme) -> QWidget:
    """Every bundled icon with its name."""
    sheet = QWidget()
    grid = QGridLayout(sheet)
    for number, name in enumerate(icon_names()):
        label = QLabel(name)
        label.setProperty("kind", "small")
        picture = QLabel()
        picture.setPixmap(theme.icon(name).pixmap(24, 24))
        grid.addWidget(picture, number // 8, number % 8 * 2)
        grid.addWidget(label, number // 8, number % 8 * 2 + 1)
    return sheet


def _menu(theme: Theme) -> QMenu:
    menu = QMenu()
    menu.addAction(theme.icon("undo"), "Undo untick `delete`").setShortcut("Ctrl+Z")
    menu.addAction(theme.icon("redo"), "Redo").setEnabled(False)
    menu.addSeparator()
    for word, on in (("Line numbers", True), ("Wrap lines", False)):
        action = menu.addAction(word)
        action.setCheckable(True)
        action.setChecked(on)
    menu.addMenu("Recent workspaces").addAction("demo")
    return menu


def _question() -> QuestionDialog:
    choices = (Choice("discard", "Discard", "danger"), Choice("cancel", "Cancel"), Choice("save", "Save", "primary"))
    text = "The policy has 3 changes that are not on disk. Closing without saving loses them."
    return QuestionDialog(None, "Save changes to `policy.toml`?", text, choices, "triangle-alert", "ask")


def _grab(app: QApplication, widget: QWidget, file: Path) -> None:
    widget.show()
    widget.activateWindow()
    app.processEvents()
    focused = widget.findChild(QWidget, "wants-focus")
    if isinstance(focused, QWidget):
        focused.setFocus(Qt.FocusReason.TabFocusReason)
    app.processEvents()
    if not widget.grab().save(str(file)):
        raise OSError(f"cannot write the picture `{file}`")
    widget.close()


def paint_theme(app: QApplication, theme: Theme, name: ThemeName, out: Path) -> None:
    """Write the pictures of one theme."""
    theme.apply(app, name)
    window = gallery_window(theme)
    toast = Toast(window)
    toast.show_note("Exported `policy.toml`", icon="circle-check", role="allow", action="Open folder")
    for widget, part in (
        (window, "widgets"),
        (_reading(theme), "reading"),
        (_menu(theme), "menu"),
        (_question(), "dialog"),
        (icon_sheet(theme), "icons"),
    ):
        _grab(app, widget, out / f"{part}-{name}.png")


def main(arguments: list[str] | None = None) -> int:
    """Write all pictures into a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the pictures; made when missing")
    out: Path = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    existing = QApplication.instance()
    app = existing if isinstance(existing, QApplication) else QApplication([])
    theme = Theme()
    for name in ("light", "dark"):
        paint_theme(app, theme, name, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
