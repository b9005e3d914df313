"""The policy file: its text as it would be saved now, its problems, its settings, and how it is published."""

from collections.abc import Sequence

from gatewright_gui.pages.page import PageContext, PageRow, TabbedPage
from gatewright_gui.pages.policy_file.text_page import TextPage
from gatewright_gui.qt.language import tr

__all__ = ["PolicyFilePage", "TextPage"]


class PolicyFilePage(TabbedPage):
    """Its tabs say how many problems there are, and whether something typed is not applied."""

    def __init__(self, context: PageContext, rows: Sequence[PageRow]) -> None:
        super().__init__(context, "policy_file", rows)
        document = context.document
        for moved in (document.problems_changed, document.opened, document.closed, context.draft.changed):
            moved.connect(self._tell)
        self._tell()

    def _tell(self, _what: object = None) -> None:
        count = len(self.context.document.problems)
        self.set_note("problems", f"{count:,}" if count else "")
        self.set_note("text", tr("not applied") if self.context.draft.is_pending else "")
