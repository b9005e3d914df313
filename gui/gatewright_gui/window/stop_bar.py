"""The red bar over every page while agents are stopped: who stopped which, since when, and the way on."""

from datetime import datetime

from PySide6.QtCore import Signal

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.widget.message_bar import MessageBar
from gatewright_gui.session.calls import visible
from gatewright_gui.session.stops import Stop


class StopBar(MessageBar):
    """Says the stop of all agents, else the oldest of one; it stays as long as the stop does."""

    go_requested = Signal(str)
    """The agent whose stop is to end; empty: that of all."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("window.stop")
        self.action_button.setObjectName("window.stop.go")
        self.close_button.hide()
        self._agent_id = ""
        self.action_requested.connect(lambda: self.go_requested.emit(self._agent_id))

    def set_stops(self, stops: "tuple[Stop, ...]") -> None:
        """Show these stops; hide without any."""
        if not stops:
            self.hide()
            return
        first = next((one for one in stops if not one.agent_id), stops[0])
        self._agent_id = first.agent_id
        since = datetime.fromtimestamp(first.wall_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        by = tr("STOPPED by {who} since {time}", who=visible(first.who), time=since)
        whom = tr("agent {agent} makes no call", agent=visible(first.agent_id)) if first.agent_id else ""
        more = tr("and {count:,} more", count=len(stops) - 1) if len(stops) > 1 else ""
        said = (f"{by}: {whom or tr('no agent makes a call')}", visible(first.why), more)
        self.show_message("error", ". ".join(part for part in said if part), action=tr("Go"))

    def dismiss(self) -> None:
        """Stay: only the end of the stop takes it away."""
