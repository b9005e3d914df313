"""The text of the policy file now and its difference against the disk. It draws nothing."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gatewright.workspace.api import Address, Edit, EditRefused, Problem, UnsavedPolicy, Workspace, frozen
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.session.opening import Opener

BY_OTHERS = mark("on disk now, changed by another program")


MOST_OUTLINED = 2_000
"""More parts nobody looks through; the text can be searched."""


class OutlineRow(NamedTuple):
    """A part of the policy file and its line, counted from 1. `kind`: in the plural, as a heading."""

    kind: str
    name: str
    line: int


@frozen
class FileText:
    """The policy file as it would be saved; `difference` is a unified diff, empty when nothing changed.

    `is_gone`: there is no file that could be read, so there is nothing to compare with. `outline`: the parts of the
    text, kind by kind.
    """

    text: str
    difference: str
    is_gone: bool = False
    outline: tuple[OutlineRow, ...] = ()


def file_text(workspace: Workspace) -> FileText:
    """The text now and what saving would change on disk; where others wrote the file and nothing was edited here, what
    they changed.
    """
    text, saved, outline = workspace.text(), workspace.saved_text, tuple(_outline(workspace))
    on_disk, over = workspace.saving_over()
    if on_disk is None:
        return FileText(text, "", True, outline)
    if on_disk == saved:
        difference = difference_of(saved, text, tr("on disk"), tr("unsaved"))
    elif workspace.is_dirty:
        difference = difference_of(on_disk, over, tr(BY_OTHERS), tr("what saving over it writes"))
    else:
        difference = difference_of(saved, on_disk, tr("as it was read here"), tr(BY_OTHERS))
    return FileText(text, difference, outline=outline)


def _outline(workspace: Workspace) -> Iterator[OutlineRow]:
    policy = workspace.policy
    parts: list[tuple[str, str, Address]] = [
        *((tr("Agents"), name, ("agents", name)) for name in policy.agents),
        *((tr("Tools"), name, ("tools", name)) for name in policy.tools),
        *((tr("Sources"), one.source_id, ("sources", one.source_id)) for one in policy.sources),
        *((tr("Catalogs"), one.catalog_id, ("catalogs", one.catalog_id)) for one in policy.catalogs),
        *((tr("Policy rules"), rule.name, ("policy", "rules", at)) for at, rule in enumerate(policy.rules)),
    ]
    for kind, name, address in parts[:MOST_OUTLINED]:
        place = workspace.place(address)
        if place is not None:
            yield OutlineRow(kind, name, place.line)


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
        """The number of changes, in words."""
        return counted(self.unsaved.steps, "unsaved change", "unsaved changes")


def offer_of(workspace: Workspace, name: str, unsaved: UnsavedPolicy) -> Offer:
    """The offer of what may become of unsaved edits. Raises PolicyInvalid where their text is no policy."""
    saved = workspace.saved_text
    is_outdated = saved != unsaved.grown_from
    edit, text = None, unsaved.text
    try:
        edit = workspace.edit_between(tr("bring back unsaved changes"), unsaved.grown_from, unsaved.text)
        after = workspace.check(edit)
        text = workspace.text_under(after) if is_outdated else text
    except EditRefused:
        edit = None
    difference = difference_of(saved, text, tr("on disk"), tr("unsaved"))
    return Offer(name, unsaved, edit, is_outdated, difference)


MOST_PROBLEMS = 500


def problems_of_text(workspace: Workspace, text: str) -> tuple[Problem, ...]:
    """The problems of another text of the policy file, errors first, in the order of the lines."""
    return _first(workspace.problems_of(text))


def problems_of_file(opener: Opener, path: Path, text: str) -> tuple[Problem, ...]:
    """The same of a policy file that is not open."""
    return _first(opener.problems_of(path, text))


def _first(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    def order(problem: Problem) -> tuple[bool, int, int]:
        place = problem.place
        return (not problem.is_error, place.line, place.column) if place else (not problem.is_error, 0, 0)

    return tuple(sorted(problems, key=order)[:MOST_PROBLEMS])


def edit_from_text(workspace: Workspace, over: str, text: str) -> tuple[Edit, str]:
    """The edit that was typed over a text, and the text that it leaves; see `Workspace.typed_edit`."""
    return workspace.typed_edit(tr("policy as text"), over, text)


def difference_of(before: str, after: str, name: str, other: str) -> str:
    """The unified diff of two texts; empty where they are equal."""
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), name, other, n=3, lineterm="")
    return "" if before == after else "\n".join(diff) + "\n"


def lines_of(workspace: Workspace, addresses: Iterable[Address]) -> Mapping[Address, int]:
    """The line of the policy file, as it is now, at which each of these stands."""
    found = {address: workspace.place(address) for address in addresses}
    return {address: place.line for address, place in found.items() if place is not None}
