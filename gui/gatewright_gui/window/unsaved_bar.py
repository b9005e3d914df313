"""The bar that offers unsaved edits which a killed process left."""

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.widget.message_bar import MessageBar
from gatewright_gui.session.filetext import Offer
from gatewright_gui.session.navigator import Navigator
from gatewright_gui.session.unsaved import UnsavedEdits


class UnsavedBar(MessageBar):
    """Closed, it comes again when the workspace is opened the next time."""

    def __init__(self, unsaved: UnsavedEdits, navigator: Navigator) -> None:
        super().__init__()
        self.setObjectName("window.unsaved")
        self.close_button.set_icon("x", tr("Ask again when the workspace is opened the next time"))
        self._unsaved, self._navigator = unsaved, navigator
        self._offer: Offer | None = None
        unsaved.offered.connect(self._tell)
        self.action_requested.connect(self._act)
        self.other_requested.connect(unsaved.throw_away)
        self.more_requested.connect(self._show_difference)

    def _tell(self, offer: Offer | None) -> None:
        self._offer = offer
        if offer is None:
            self.dismiss()
            return
        text = tr("The app ended before these changes were saved.")
        if offer.edit is None:
            text += " " + tr("They do not fit the policy file as it is now.")
        elif offer.is_outdated:
            text += " " + tr("The policy file was changed since, in other places.")
        action = (
            tr("Bring back {what}", what=offer.what)
            if offer.edit is not None
            else tr("Save {what} as a file", what=offer.what)
        )
        self.show_message("warning", text, action=action, other=tr("Throw away"), more=tr("Show difference"))

    def _act(self) -> None:
        if self._offer is not None:
            (self._unsaved.save_beside if self._offer.edit is None else self._unsaved.bring_back)()

    def _show_difference(self) -> None:
        if self._offer is not None:
            self._navigator.go_to_difference(self._offer.difference)
