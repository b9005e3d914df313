"""The button that gives a ticked operation the grant that it lacks: at once where its reach is known, else by form."""

from collections.abc import Callable

from PySide6.QtWidgets import QPushButton

from gatewright.workspace.api import CapabilityKind, OperationRight, ToolRight
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.plaintext import button_text, line_text, tip_text
from gatewright_gui.session.verbs import capabilities

_WIDTH, _PAD = 170, 24


class GrantButton(QPushButton):
    """Hidden where nothing that is ticked lacks a grant; ``ask`` opens the form of a kind. One width for every text."""

    def __init__(self, context: PageContext, ask: Callable[[CapabilityKind], None]) -> None:
        super().__init__()
        self._document, self._ask = context.document, ask
        self._agent_id = ""
        self._kind: CapabilityKind | None = None
        named(self, "agents.grant", spoken=tr("Grant what lacks"), kind="primary")
        self.setFixedWidth(_WIDTH)
        self.clicked.connect(self._grant)
        self.hide()

    def show_row(self, agent_id: str, right: ToolRight | None, operation: OperationRight | None) -> None:
        """Offer what the row lacks; without an operation, what the ticked ones of the tool lack."""
        self._agent_id, self._kind = agent_id, None
        if right is not None:
            rows = [operation] if operation is not None else list(right.operations)
            self._kind = capabilities.lacking_kind(self._document, agent_id, right, rows)
        self.setVisible(self._kind is not None)
        if self._kind is not None:
            scope = capabilities.ready_scope(self._document, self._kind)
            words = tr("Grant {kind}", kind=self._kind)
            if scope is None:
                words = tr("Grant {kind}...", kind=self._kind)
            elif scope:
                words = tr("Grant {kind} in {folders}", kind=self._kind, folders=scope)
            self.setText(button_text(line_text(self.fontMetrics(), words, _WIDTH - _PAD)))
            self.setToolTip(tip_text(words))
            self.setAccessibleName(words)

    def _grant(self, _checked: bool = False) -> None:
        kind = self._kind
        if kind is None:
            return
        scope = capabilities.ready_scope(self._document, kind)
        if scope is None:
            self._ask(kind)
        else:
            capabilities.grant(self._document, self._agent_id, kind, scope)
