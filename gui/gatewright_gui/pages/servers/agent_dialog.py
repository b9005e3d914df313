"""The gate goes before the calls of a coding agent: the change of its file is shown first, and written on a click."""

from PySide6.QtWidgets import QComboBox, QWidget

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import FormDialog, shown
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.coding_agents import (
    HostEdit,
    HostScope,
    HostStatus,
    add_agent_for,
    edit_to_install,
    new_agent_of,
    write_gate,
)
from gatewright_gui.session.document import Document

SCOPES = {
    HostScope.USER: mark("in all that you do with it"),
    HostScope.PROJECT: mark("in the folder of this workspace"),
    HostScope.MANAGED: mark("for everybody on this machine"),
}


class CodingAgentDialog(FormDialog):
    """After it was accepted `change` is to be written, and before it the agent, where it `makes_agent`."""

    def __init__(self, parent: QWidget | None, document: Document, status: HostStatus, agent_id: str | None) -> None:
        title = tr("Put a gate before {agent}", agent=status.title)
        super().__init__(parent, "hook", title, tr("Write file"))
        self._document, self._status = document, status
        self.change: HostEdit | None = None
        self.scope = named(QComboBox(), "hook.scope", spoken=tr("Where it asks"))
        for scope, words in SCOPES.items():
            self.scope.addItem(tr(words), str(scope))
        if status.file is not None:
            self.scope.setCurrentIndex(self.scope.findData(str(status.file.scope)))
        self.agent = named(QComboBox(), "hook.agent", spoken=tr("Agent of the policy whose rights it gets"))
        self.makes_agent = document.policy.catalog(status.host_id) is None
        """Nothing of the policy is about this coding agent so far: it gets an agent of its own, and its tools."""
        if self.makes_agent:
            new = new_agent_of(status.host_id)
            self.agent.addItem(tr("{agent}, a new one", agent=new), new)
        for agent in () if self.makes_agent else document.agents:
            self.agent.addItem(agent.agent_id, agent.agent_id)
        for wanted in (status.agent_id, agent_id):
            if wanted and self.agent.findData(wanted) >= 0:
                self.agent.setCurrentIndex(self.agent.findData(wanted))
                break
        self.place = named(Label(), "hook.place", kind="muted")
        self.difference = named(CodeView(tr("What would change")), "hook.difference")
        self.note = named(Label(wraps=True), "hook.note", kind="muted")
        self.lay_out(
            row_of(Label(tr("It asks")), stretch(self.scope, 2), Label(tr("as agent")), stretch(self.agent), space=2),
            self.place,
            stretch(self.difference),
            self.note,
        )
        self.scope.currentIndexChanged.connect(self._show)
        self.agent.currentIndexChanged.connect(self._show)
        self.resize(760, 520)
        self._show()

    @property
    def agent_id(self) -> str:
        """The chosen agent."""
        return str(self.agent.currentData() or "")

    def _show(self, _what: object = None) -> None:
        self.change = None
        fault = "" if self.agent.count() else tr("It needs an agent of the policy: add one on the page Agents.")
        if not fault:
            try:
                scope = HostScope(self.scope.currentData())
                self.change = edit_to_install(self._document, self._status.host_id, scope, self.agent_id)
            except GatewrightError as error:
                fault = str(error).replace("`", "")
        self.place.setText("" if self.change is None else str(self.change.file.path))
        said = "" if self.change is None else self.change.difference or tr("The file says so already.") + "\n"
        self.difference.set_diff(said)
        told = [tr("The policy is saved first: the gate decides by what is saved.")] if self._document.is_dirty else []
        if self.makes_agent:
            told.append(
                tr("The policy gets an agent that may read and change files here, except secrets; the web asks first.")
            )
        self.note.setText(fault or " ".join(told))
        self.accept_button.setEnabled(self.change is not None and self.change.changes)


async def put_gate(parent: QWidget, context: PageContext, status: HostStatus) -> HostEdit | None:
    """Ask how a coding agent is to ask the gate and write that into its file; return what was written."""
    document = context.document
    dialog = CodingAgentDialog(parent, document, status, context.selection.agent_id)
    if not await shown(dialog) or dialog.change is None:
        return None
    if document.is_dirty and not await context.save():
        return None
    if dialog.makes_agent and not await add_agent_for(document, status.host_id):
        return None
    return dialog.change if write_gate(document, dialog.change) else None
