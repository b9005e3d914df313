"""The folder as one operation of an agent sees it: at each file what the operation comes to, in place of the level."""

from PySide6.QtCore import QObject

from gatewright.workspace.api import Permission, Source, Verdict, place_rights, sources_reached
from gatewright_gui.pages.access.files.folder_panel import FolderPanel
from gatewright_gui.pages.access.files.shown_source import ShownSource
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import tr
from gatewright_gui.session.path_share import FileUse

TASK = "files.use"


class ShownUse(QObject):
    """Says so in a bar over the folder, which ends it."""

    def __init__(self, context: PageContext, shown: ShownSource, folder: FolderPanel) -> None:
        super().__init__(folder)
        self._context, self._shown, self._bar = context, shown, folder.use_bar
        self._wanted: tuple[str, str, str] | None = None
        self._bar.closed.connect(self.end)
        self._bar.action_requested.connect(self.end)

    def show(self, agent_id: str, tool: str, operation: str) -> None:
        """Show this operation of this agent."""
        self._wanted = agent_id, tool, operation
        self.refresh()

    def refresh(self) -> None:
        """By the policy as it is now."""
        if self._wanted is not None:
            self._context.tasks.start(self._work_out(*self._wanted), TASK, replace=True)

    def end(self) -> None:
        """Show levels again."""
        self._wanted = None
        self._context.tasks.cancel(TASK)
        self._bar.dismiss()
        self._shown.tree_model.set_judge(None)

    async def _work_out(self, agent_id: str, tool: str, operation: str) -> None:
        document = self._context.document
        agent = document.policy.agents.get(agent_id)
        if agent is not None:
            await document.work_out_rights(agent_id)
        right = document.rights(agent_id).get(tool) if agent is not None else None
        place = place_rights(document.policy, agent_id, right).get(operation) if right is not None else None
        if agent is None or right is None or place is None:
            self.end()
            return
        use, op = FileUse(place), next(one for one in right.facts.operations if one.name == operation)

        def judge(path: str, level: Permission) -> Verdict:
            source: Source | None = self._shown.source
            if source is None or source not in sources_reached(document.policy, agent, right.facts, op):
                return Verdict.DENY
            return use.verdict(source, path, level)

        self._shown.tree_model.set_judge(judge)
        called = f"{tool}.{operation}" if operation else tool
        text = tr("What `{operation}` of `{agent}` comes to at each file", operation=called, agent=agent_id)
        self._bar.show_message("info", text, action=tr("Show levels"))
