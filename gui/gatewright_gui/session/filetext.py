"""The text of the policy file now and its difference against the disk. It draws nothing."""

import difflib
from collections.abc import Iterable, Mapping

from gatewright.workspace.api import Address, Edit, EditRefused, UnsavedPolicy, Workspace, frozen

BY_OTHERS = "on disk now, changed by another program"


@frozen
class FileText:
    """The policy file as it would be saved; `difference` is a unified diff, empty when nothing changed.

    `is_gone`: there is no file that could be read, so there is nothing to compare with.
    """

    text: str
    difference: str
    is_gone: bool = False


def file_text(workspace: Workspace) -> FileText:
    """The text now and what saving would change on disk; where others wrote the file and nothing was edited here, what
    they changed.
    """
    text, saved = workspace.text(), workspace.saved_text
    on_disk, over = workspace.saving_over()
    if on_disk is None:
        return FileText(text, "", is_gone=True)
    if on_disk == saved:
        return FileText(text, _difference(saved, text, "on disk", "unsaved"))
    if workspace.is_dirty:
        return FileText(text, _difference(on_disk, over, BY_OTHERS, "what saving over it writes"))
    return FileText(text, _difference(saved, on_disk, "as it was read here", BY_OTHERS))


@frozen
class Offer:
    """Unsaved edits that a process left: as one edit, None where they do not apply to the policy as it is now.

    ``is_outdated``: the file is not what they were made on any more. ``difference``: what they would change of it.
    """

    name: str
    unsaved: UnsavedPolicy
    edit: Edit | None
    is_outdated: bool
    difference: str

    @property
    def what(self) -> str:
        """How many they are."""
        steps = self.unsaved.steps
        return f"{steps:,} unsaved change{'' if steps == 1 else 's'}"


def offer_of(workspace: Workspace, name: str, unsaved: UnsavedPolicy) -> Offer:
    """What may become of unsaved edits. Raises PolicyInvalid where their text is no policy."""
    saved = workspace.saved_text
    edit, text = None, unsaved.text
    try:
        edit = workspace.edit_between("bring back unsaved changes", unsaved.grown_from, unsaved.text)
        text = workspace.text_under(workspace.check(edit))
    except EditRefused:
        edit = None
    difference = _difference(saved, text, "on disk", "unsaved")
    return Offer(name, unsaved, edit, saved != unsaved.grown_from, difference)


def merge_edit_of(workspace: Workspace) -> Edit:
    """The unsaved edits as one edit of what the file holds now; see `Workspace.merge_edit`."""
    return workspace.merge_edit()


def _difference(before: str, after: str, name: str, other: str) -> str:
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), name, other, n=3, lineterm="")
    return "" if before == after else "\n".join(diff) + "\n"


def lines_of(workspace: Workspace, addresses: Iterable[Address]) -> Mapping[Address, int]:
    """The line of the policy file, as it is now, at which each of these stands."""
    found = {address: workspace.place(address) for address in addresses}
    return {address: place.line for address, place in found.items() if place is not None}
