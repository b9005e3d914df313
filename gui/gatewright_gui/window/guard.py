"""What is asked before unsaved changes would be lost. It does not close or open anything."""

from collections.abc import Awaitable, Callable

from PySide6.QtWidgets import QWidget

from gatewright_gui.session.document import Document


async def may_leave(parent: QWidget, document: Document, save: Callable[[], Awaitable[bool]]) -> bool:
    """Whether one may go on: nothing to save, saved now by ``save``, or thrown away on purpose."""
    if not document.is_dirty:
        return True
    from gatewright_gui.qt.dialog import Choice, ask

    text = f"The policy of {document.name} has changes that are not saved. Discarding them cannot be undone."
    choices = (
        Choice("save", "Save", "primary"),
        Choice("discard", "Discard", "danger"),
        Choice("cancel", "Cancel"),
    )
    answer = await ask(parent, "Save the changes?", text, choices, icon="save")
    if answer == "save":
        return await save()
    return answer == "discard"
