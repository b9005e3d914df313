"""The text of the policy file now and its difference against the disk. It draws nothing."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gatewright.base.problem import Address
from gatewright.workspace import Workspace


@dataclass(frozen=True, slots=True)
class FileText:
    """The policy file as it would be saved; `difference` is a unified diff, empty when nothing changed."""

    text: str
    difference: str


def file_text(workspace: Workspace) -> FileText:
    """The text now and what saving would change."""
    text, saved = workspace.text(), workspace.saved_text
    diff = difflib.unified_diff(saved.splitlines(), text.splitlines(), "on disk", "unsaved", n=3, lineterm="")
    return FileText(text, "" if text == saved else "\n".join(diff) + "\n")


def lines_of(workspace: Workspace, addresses: Iterable[Address]) -> Mapping[Address, int]:
    """The line of the policy file, as it is now, at which each of these stands."""
    found = {address: workspace.place(address) for address in addresses}
    return {address: place.line for address, place in found.items() if place is not None}
