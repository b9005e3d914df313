"""Reading ``[workspace]``: of it, the roots. It does not look at folders."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from gatewright.base.report import shown
from gatewright.policy.document import ROOT_NAMES, Roots
from gatewright.policyfile.readsource import path_error

if TYPE_CHECKING:
    from gatewright.base.row import Row

NOT_YET = ("shell", "web", "endpoints")


def read_workspace(row: Row | None) -> Roots:
    """The roots; none without the table."""
    if row is None:
        return Roots()
    row.only(("roots", *NOT_YET), "`[workspace]`")
    for key in NOT_YET:
        if key in row.raw:
            message = f"`{key}` of `[workspace]` is not supported yet"
            row.report.error(row.at(key), "not-supported", message, at_value=False)
    roots = row.table("roots")
    return Roots() if roots is None else _roots(roots)


def _roots(row: Row) -> Roots:
    row.only(ROOT_NAMES, "the roots of `[workspace]`")
    folders = {name: folder for name in ROOT_NAMES if (folder := _folder(row, name)) is not None}
    _refuse_overlap(row, folders)
    return Roots(**folders)


def _folder(row: Row, name: str) -> str | None:
    folder = row.text(name)
    if folder is not None and (why := path_error(folder)):
        row.fault(name, "bad-value", f"the folder of root `{name}` {why}")
        return None
    return folder


def _refuse_overlap(row: Row, folders: dict[str, str]) -> None:
    """One root inside another would be a way around what that one is for."""
    held = {name: posixpath.normpath(folder) for name, folder in folders.items()}
    names = list(held)
    for index, name in enumerate(names):
        for other in names[:index]:
            if overlap(held[name], held[other]):
                message = f"the roots `{other}` and `{name}` may not lie in each other: {shown(folders[name])}"
                row.fault(name, "roots-overlap", message)
                break


def overlap(one: str, other: str) -> bool:
    """Whether two normal paths are the same, or one lies below the other."""
    first, second = _parts(one), _parts(other)
    shorter = min(len(first), len(second))
    return first[:shorter] == second[:shorter] and one.startswith("/") == other.startswith("/")


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]
