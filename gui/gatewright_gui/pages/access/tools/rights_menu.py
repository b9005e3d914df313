"""The menu of presets and of copied rights, and the dialogs that it opens, one at a time."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMenu, QWidget

from gatewright.workspace.api import Preset
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.menu import add_action

if TYPE_CHECKING:
    from gatewright_gui.pages.access.tools.rights_dialog import RightsDialog

TASK = "agents.rights"


class RightsMenu(QObject):
    """The menu: what is chosen in a dialog is one edit, the one whose lines were shown."""

    def __init__(self, context: PageContext, parent: QWidget) -> None:
        super().__init__(parent)
        self._context, self._parent = context, parent

    def fill(self, menu: QMenu, agent_ids: Sequence[str]) -> None:
        """Rows for presets of these agents, and for copying the rights of a single one."""
        from gatewright_gui.session.verbs.presets import PRESETS

        chosen = tuple(agent_ids)
        for preset, text, says in PRESETS:
            name = f"agents.preset.{preset.name.lower()}"
            add_action(menu, f"{tr(text)}…", partial(self.open_presets, chosen, preset), name=name, tip=tr(says))
        menu.addSeparator()
        copy = partial(self.open_copy, chosen[0]) if len(chosen) == 1 else None
        can = len(self._context.document.agents) > 1
        add_action(menu, tr("&Copy rights to agents…"), copy, name="agents.copy_rights", icon="users", can=can)

    def open_presets(self, agent_ids: Sequence[str], preset: Preset = Preset.STANDARD) -> None:
        """Ask which preset, for these agents at first."""
        from gatewright_gui.pages.access.tools.rights_dialog import PresetDialog

        self._open(PresetDialog(self._parent.window(), self._context, agent_ids, preset))

    def open_copy(self, agent_id: str) -> None:
        """Ask to whom the rights of an agent are to be copied."""
        from gatewright_gui.pages.access.tools.rights_dialog import CopyDialog

        self._open(CopyDialog(self._parent.window(), self._context, agent_id))

    def open_reset(self, agent_id: str, tools: Sequence[str]) -> None:
        """Ask whether tools of an agent are to be as they are by themselves."""
        from gatewright_gui.pages.access.tools.rights_dialog import ResetDialog

        if agent_id in self._context.document.policy.agents and tools:
            self._open(ResetDialog(self._parent.window(), self._context, agent_id, tools))

    def _open(self, dialog: "RightsDialog") -> None:
        self._context.tasks.start(dialog.ask(), TASK, replace=True)
