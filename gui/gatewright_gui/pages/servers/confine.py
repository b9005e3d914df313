"""The line that tells whether a server or shell commands are confined, and the one question that takes that away."""

from PySide6.QtWidgets import QCheckBox, QPushButton, QSizePolicy, QWidget

from gatewright_gui.qt.dialog import FormDialog, shown
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import Gap, column_of, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.icon_label import IconLabel
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.confinement import standing_of
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs import catalogs as verbs

GIVEN_AWAY = (
    mark("read every file that you can read: your home folder, keys and passwords, other projects"),
    mark("change and delete every file that you can change, this policy too"),
    mark("connect to every host that this computer reaches, and send there what it read"),
    mark("start any program with your rights"),
)


class UnconfineDialog(FormDialog):
    """Says what is given away; accepted only once its box is ticked. `catalog_id` None: it is about shell commands."""

    def __init__(self, parent: QWidget | None, catalog_id: str | None) -> None:
        is_shell = catalog_id is None
        title = tr("Stop confining shell commands?") if is_shell else tr("Stop confining {server}?", server=catalog_id)
        super().__init__(parent, "unconfine", title, tr("Stop confining"), tr("Keep confined"))
        told = tr("Levels and hosts of the policy no longer hold for what shell commands start. They may:")
        if not is_shell:
            told = tr(
                "Levels, places and hosts of the policy no longer hold for what {server} does. It may:",
                server=catalog_id,
            )
        after = tr("Calls are still read and asked about. What a program does beyond their words, nobody sees.")
        self.setAccessibleDescription("\n".join((told, *map(tr, GIVEN_AWAY), after)))
        rows = [
            row_of(IconLabel("circle-x", "deny"), stretch(Label(tr(one), wraps=True)), space=2) for one in GIVEN_AWAY
        ]
        words = column_of(Label(told, wraps=True), *rows, Gap(1), Label(after, wraps=True), space=2)
        agree = tr("Shell commands may do all that I may") if is_shell else tr("This server may do all that I may")
        self.box = named(QCheckBox(agree), "unconfine.agree")
        self.box.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        head = row_of(column_of(IconLabel("shield-x", "deny", size=24), stretch()), stretch(words), space=3)
        self.lay_out(head, self.box, stretch(), space=3)
        self.accept_button.setProperty("kind", "danger")
        self.accept_button.setAutoDefault(False)
        self.accept_button.setEnabled(False)
        self.cancel_button.setDefault(True)
        self.box.toggled.connect(self.accept_button.setEnabled)
        self.resize(560, self.sizeHint().height())
        self.cancel_button.setFocus()


class ConfineBand(QWidget):
    """Shows how it is held, the way to the question above, the way back. `name` begins the names of what is in it."""

    def __init__(self, document: Document, tasks: TaskOwner, name: str) -> None:
        super().__init__()
        named(self, name)
        self._document, self._tasks, self._name = document, tasks, name
        self._catalog_id: str | None = None
        self._icon = IconLabel("info", "muted")
        self.words = named(Label(wraps=True), f"{name}.words")
        self.free_button = named(
            QPushButton(tr("Stop confining...")), f"{name}.free", tip=tr("See what that gives away, and decide")
        )
        self.confine_button = named(
            QPushButton(tr("Confine again")), f"{name}.again", tip=tr("Have the policy hold for it again")
        )
        tie_icon(self.free_button, "lock-open")
        tie_icon(self.confine_button, "lock")
        row_of(
            self._icon, stretch(self.words), self.free_button, self.confine_button, into=self, space=2, margins=(2, 1)
        )
        self.free_button.clicked.connect(self._ask)
        self.confine_button.clicked.connect(lambda: verbs.confine(self._document, self._catalog_id))

    def show_standing(self, catalog_id: str | None, why_not: str = "") -> None:
        """Tell it of the server of a catalog, or (None) of shell commands, as the policy is edited now.

        `why_not`: why nothing can be confined on this system.
        """
        self._catalog_id = catalog_id
        standing = standing_of(self._document, catalog_id, why_not)
        self._icon.set_icon(standing.icon, standing.tone)
        self.words.setText(standing.words)
        self.setAccessibleName(standing.words)
        self.free_button.setVisible(standing.can_unconfine)
        self.confine_button.setVisible(standing.can_confine)

    def _ask(self) -> None:
        self._tasks.start(self._unconfine(self._catalog_id), f"{self._name}.unconfine", replace=True)

    async def _unconfine(self, catalog_id: str | None) -> None:
        if await shown(UnconfineDialog(self, catalog_id)):
            verbs.unconfine(self._document, catalog_id)
