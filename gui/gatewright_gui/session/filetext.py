"""The text of the policy file now and its difference against the disk. It draws nothing."""

import difflib
from collections.abc import Iterable, Mapping

from gatewright.workspace.api import Address, Workspace, frozen

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


def _difference(before: str, after: str, name: str, other: str) -> str:
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), name, other, n=3, lineterm="")
    return "" if before == after else "\n".join(diff) + "\n"


def lines_of(workspace: Workspace, addresses: Iterable[Address]) -> Mapping[Address, int]:
    """The line of the policy file, as it is now, at which each of these stands."""
    found = {address: workspace.place(address) for address in addresses}
    return {address: place.line for address, place in found.items() if place is not None}
