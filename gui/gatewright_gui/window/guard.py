"""What is asked before unsaved changes would be lost. It does not close or open anything."""

from collections.abc import Awaitable, Callable

from PySide6.QtWidgets import QWidget

from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document
from gatewright_gui.session.draft import PolicyDraft


async def may_leave(
    parent: QWidget, document: Document, save: Callable[[], Awaitable[bool]], draft: PolicyDraft | None = None
) -> bool:
    """Tell whether one may go on: nothing to save, saved now by ``save``, or thrown away on purpose.

    With a ``draft`` also that: what is typed and not applied.
    """
    typed = draft is not None and draft.is_pending
    if not document.is_dirty and not typed:
        return True
    from gatewright_gui.qt.dialog import Choice, ask

    parts = [tr("The policy of {workspace} has changes that are not saved.", workspace=document.name)]
    if typed:
        parts = [*(parts if document.is_dirty else ()), tr("What you typed into the policy file is not applied.")]
    text = " ".join([*parts, tr("Discarding cannot be undone.")])
    choices = (
        Choice("save", tr("Apply and save") if typed else tr("Save"), "primary"),
        Choice("discard", tr("Discard"), "danger"),
        Choice("cancel", tr("Cancel")),
    )
    answer = await ask(parent, tr("Save the changes?"), text, choices, icon="save")
    if answer == "save":
        return (draft is None or await draft.apply()) and (not document.is_dirty or await save())
    if answer == "discard" and draft is not None:
        draft.discard()
    return answer == "discard"


async def may_save_without(parent: QWidget, draft: PolicyDraft) -> bool:
    """Tell whether to save although something is typed on the page TOML: it is applied now, or left for later."""
    if not draft.is_pending:
        return True
    from gatewright_gui.qt.dialog import Choice, ask

    text = tr("What you typed into the policy file is not part of the policy until you apply it.")
    choices = (
        Choice("apply", tr("Apply and save"), "primary"),
        Choice("without", tr("Save without it")),
        Choice("cancel", tr("Cancel")),
    )
    answer = await ask(parent, tr("Apply what is typed?"), text, choices, icon="save")
    return answer == "without" or (answer == "apply" and await draft.apply())
