"""Help in a window of its own: the keys, those of the page first, and how tools of other programs come in.

It stays open beside the window. It binds no key and writes no policy.
"""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QHeaderView,
    QLabel,
    QPushButton,
    QWidget,
)

from gatewright_gui.models.keys import KEYS, KeysModel
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import Gap, Part, aligned, column_of, holding, keep_room, named, row_of, stack_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.button import CopyButton, Segmented
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.text_field import SearchField

SIZE = (720, 560)
_KEYS_WIDE = 232
CATALOG_LINES = '[[catalogs]]\nid = "desk"\ntype = "host"\nmanifest = "desk.json"\n'
"""What brings a manifest into a policy."""
_MANIFEST = mark("""\
A JSON file that lists the tools: [...] or {"tools": [...]}, each as MCP, Anthropic or OpenAI spell it. Put it into \
the folder of the policy file. A program that is built on Gatewright writes one with ToolRegistry.write_manifest.""")
_LINES = mark("Write them with an editor, with a name of your own, then reload (Ctrl+R).")
_RIGHTS = mark("""\
In Access these tools are switched on like all others; an agent without a list of tools has them at once, unless the \
policy says unlisted_tools = "deny". Each counts as privileged until trusted = true stands below the manifest: then \
the tier counts that it names. Where it is unclear which field selects the operations, the row of the tool asks.""")
_CALLS = mark("""\
Gatewright shows such a tool and decides its calls. The program that has the tool runs it; Try never does.""")
_STEPS = (
    (mark("1. The manifest"), _MANIFEST),
    (mark("2. Four lines in the policy file"), _LINES),
    (mark("3. Rights"), _RIGHTS),
    (mark("What is not done here"), _CALLS),
)


class HelpDialog(QDialog):
    """Escape closes it."""

    file_requested = Signal()
    """The policy file is to be shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        named(self, "help", spoken=tr("Help")).setWindowTitle(tr("Help"))
        self.part = named(Segmented(tr("What to explain")), "help.part")
        self.part.add_segment("keys", tr("Keys"))
        self.part.add_segment("import", tr("Tools of other programs"))
        self.search = named(SearchField(tr("Search the keys")), "help.search")
        self.model = KeysModel(self)
        self.view = named(TableView(tr("Keys and what they do")), "help.keys")
        self._nothing = named(Label(tr("No key fits. Ctrl+K finds what has none.")), kind="muted")
        self._import = self._import_part()
        self._stack = stack_of(self.view, self._nothing, self._import)
        self.file_button = named(QPushButton(tr("Show the policy file")), "help.file")
        self.close_button = named(QPushButton(tr("Close")), "help.close")
        self.view.show_model(self.model, {KEYS: _KEYS_WIDE}, wide=KEYS + 1)
        self.view.setWordWrap(True)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.view.verticalHeader().setMinimumSectionSize(current_look().tokens.row_height)
        self._lay_out()
        self.part.current_changed.connect(self._show_part)
        self.search.search_changed.connect(self._search)
        self.search.leave_requested.connect(self.close)
        self.search.results_requested.connect(self.view.setFocus)
        self.file_button.clicked.connect(self.file_requested)
        self.close_button.clicked.connect(self.close)
        self.resize(*SIZE)

    def _lay_out(self) -> None:
        keep_room(self.search)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        for button in (self.file_button, self.close_button):
            button.setAutoDefault(False)
        column_of(
            row_of(self.part, stretch(self.search), space=3),
            stretch(self._stack),
            row_of(self.file_button, stretch(), self.close_button),
            into=self,
            space=3,
            margins=4,
        )

    def _import_part(self) -> QWidget:
        self.lines = named(Label(CATALOG_LINES.strip()), "help.lines")
        self.lines.setFont(current_look().mono_font)
        self.lines.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        copy = CopyButton(tr("Copy the lines"), lambda: CATALOG_LINES)
        lines = row_of(self.lines, aligned(copy, Qt.AlignmentFlag.AlignTop), stretch(), space=1)
        parts: list[Part] = []
        for at, (title, text) in enumerate(_STEPS):
            parts += [named(Label(tr(title)), kind="heading"), _words(tr(text)), *([lines] if at == 1 else []), Gap(3)]
        return holding(column_of(*parts, stretch(), space=1))

    # what is shown

    def show_keys(self, page: str) -> None:
        """The keys, those of a page first."""
        self.model.set_page(page)
        self.search.clear()
        self._search("")
        self._come_up("keys")
        self.search.setFocus(Qt.FocusReason.PopupFocusReason)

    def show_import(self) -> None:
        """Show how a tool of another program gets in."""
        self._come_up("import")
        self.file_button.setFocus(Qt.FocusReason.PopupFocusReason)

    def _come_up(self, part: str) -> None:
        self.part.set_current(part)
        self._show_part()
        self.show()
        self.raise_()
        self.activateWindow()

    def _show_part(self, _part: object = None) -> None:
        is_keys = self.part.current == "keys"
        self.search.setVisible(is_keys)
        self.file_button.setVisible(not is_keys)
        keys = self.view if self.model.rowCount() else self._nothing
        self._stack.setCurrentWidget(keys if is_keys else self._import)

    def _search(self, text: object) -> None:
        self.model.set_search(str(text))
        self.view.clearSpans()
        for row in self.model.title_rows:
            self.view.setSpan(row, KEYS, 1, self.model.columnCount())
        self.view.scrollToTop()
        self._show_part()


def _words(text: str) -> QLabel:
    label = Label(text, wraps=True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
