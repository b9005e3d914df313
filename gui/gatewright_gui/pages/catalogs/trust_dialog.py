"""Trust is asked for once: exactly what would be started or reached, before anything is, for one server or several."""

from collections.abc import Mapping

from PySide6.QtWidgets import QWidget

from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.icon_label import IconLabel
from gatewright_gui.qt.widget.label import Label

RUNS_ONE = mark("This command runs with your rights; no policy limits what it does by itself.")
RUNS_MANY = mark("Commands run with your rights; no policy limits what they do by themselves.")
GOES_ONE = mark("Calls go to this address, with what agents put into them.")
GOES_MANY = mark("Calls go to addresses, with what agents put into them.")


class TrustDialog(FormDialog):
    """Accepted: the servers may be started from now on. `servers`: their ids, with words for what each is, a line each.

    `commands`, `addresses`: whether there are servers of that kind.
    """

    def __init__(
        self, parent: QWidget | None, servers: Mapping[str, str], *, commands: bool = True, addresses: bool = False
    ) -> None:
        is_one = len(servers) == 1
        who = next(iter(servers)) if is_one else counted(len(servers), "server", "servers")
        start = tr("Trust and start") if is_one else tr("Trust and start all")
        super().__init__(parent, "trust", tr("Trust {servers}?", servers=who), start, tr("Not now"))
        words = next(iter(servers.values())) if is_one else "\n\n".join(map(_paragraph, servers, servers.values()))
        self.setAccessibleDescription(words)
        runs = tr(RUNS_ONE if is_one else RUNS_MANY)
        goes = tr(GOES_ONE if is_one else GOES_MANY)
        again = tr("Another command, folder, variable or address is asked about again.")
        told = Label(" ".join((*(runs,) * commands, *(goes,) * addresses, again)), wraps=True)
        self.code = named(CodeView(tr("What is trusted")), "trust.definition")
        self.code.set_wrapping(True)
        self.code.set_plain(words)
        head = row_of(IconLabel("shield-alert", "ask", size=24), stretch(told), space=3)
        self.lay_out(head, stretch(self.code), space=3)
        self.cancel_button.setDefault(True)
        self.resize(760, 340 if is_one else 580)
        self.cancel_button.setFocus()


def _paragraph(catalog_id: str, words: str) -> str:
    return "\n".join((catalog_id, *(f"  {line}" for line in words.splitlines())))
