"""What of a source's folder is shown while one filters: files by level, by deciding rule, by a part of their path.

The answer is listings as the disk would give them, without what does not fit, and the way from one fit to the next.
Finding what fits takes long and belongs in a thread.
"""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import field

from gatewright.workspace.api import Permission, PermissionRule, frozen
from gatewright_gui.session.courtesy import Stop
from gatewright_gui.session.file_index import DEFAULT, PROTECTED, Decided, StoppedError, level_word
from gatewright_gui.session.files import Entries, FolderListing, Row

_CHUNK = 512


@frozen
class TreeFilter:
    """The files to be shown. `levels`: words of levels, none for all; `rule`: the deciding row, `DEFAULT` too."""

    levels: frozenset[str] = frozenset()
    text: str = ""
    rule: int | None = None

    @property
    def is_on(self) -> bool:
        """Tell whether anything may be left out."""
        return bool(self.levels) or bool(self.text) or self.rule is not None


NO_FILTER = TreeFilter()
Key = tuple[str, str]


@frozen
class _Folder:
    """The entries that fit right in one folder, in the order of the tree. `keys`: what its files are sorted by."""

    names: tuple[str, ...]
    keys: tuple[Key, ...]
    protected: frozenset[str]
    folders: tuple[str, ...]


@frozen
class Fitting:
    """The files that fit, with the folders that hold them. `of`: how many files there are."""

    count: int
    of: int
    folders: Mapping[str, _Folder] = field(default_factory=dict[str, _Folder])
    order: tuple[str, ...] = ()
    place: Mapping[str, int] = field(default_factory=dict[str, int])

    def listing(self, relative: str) -> FolderListing:
        """The entries of a folder that fit, `""` for the base."""
        prefix = f"{relative}/" if relative else ""
        folder = self.folders.get(prefix)
        if folder is None:
            return FolderListing(Entries(()))
        rows: list[Row] = [(_display_name(name), prefix + name, True, False, None) for name in folder.folders]
        rows += [(_display_name(name), prefix + name, False, name in folder.protected, None) for name in folder.names]
        return FolderListing(Entries(tuple(rows)))

    def beside(self, path: str | None, step: int) -> str | None:
        """The next fit in the order of the tree, or the one before; at the end the first again. None where none is."""
        if not self.count:
            return None
        if not path:
            return self._first(0 if step > 0 else len(self.order) - 1, step)
        head, _, name = path.rstrip("/").rpartition("/")
        prefix = path if path.endswith("/") else f"{head}/" if head else ""
        at = self.place.get(prefix)
        if path.endswith("/") or at is None:
            inside = [at for at, one in enumerate(self.order) if one.startswith(prefix)]
            if step > 0 and inside:
                return self._first(inside[0], step)  # what is in a folder comes after its own row
            return self._first(inside[0] - 1 if inside else 0, step)
        folder = self.folders[prefix]
        row = (bisect_right if step > 0 else bisect_left)(folder.keys, _key(name)) + (0 if step > 0 else -1)
        if 0 <= row < len(folder.names):
            return prefix + folder.names[row]
        return self._first(at + step, step)

    def _first(self, at: int, step: int) -> str | None:
        prefix = self.order[at % len(self.order)]
        names = self.folders[prefix].names
        return prefix + names[0 if step > 0 else -1]


def fitting(
    decided: Decided, wanted: TreeFilter, rules: Sequence[PermissionRule], default: Permission, stop: Stop
) -> Fitting:
    """The files that fit by the levels that rules and default have now. Raises StoppedError."""
    codes = {code for code in decided.counts if _fits(code, wanted, rules, default)}
    text = wanted.text.casefold()
    folders: dict[str, tuple[list[str], frozenset[str], set[str]]] = {}
    count = 0
    for folder, own in zip(decided.index.folders, decided.codes, strict=True):
        names = _names(folder.prefix, folder.names, own, codes, text, stop)
        if names:
            count += len(names)
            closed = {name for name, code in zip(folder.names, own, strict=True) if code == PROTECTED}
            folders.setdefault(folder.prefix, ([], frozenset(), set()))
            folders[folder.prefix] = (names, frozenset(closed), folders[folder.prefix][2])
            _make_way(folders, folder.prefix)
    made = {prefix: _folder(*parts) for prefix, parts in folders.items()}
    order = tuple(_in_order(made))
    return Fitting(count, decided.index.files, made, order, {prefix: at for at, prefix in enumerate(order)})


def _fits(code: int, wanted: TreeFilter, rules: Sequence[PermissionRule], default: Permission) -> bool:
    if wanted.rule is not None and code != wanted.rule:
        return False
    return not wanted.levels or level_word(code, rules, default) in wanted.levels


def _names(
    prefix: str, names: tuple[str, ...], own: Sequence[int], codes: set[int], text: str, stop: Stop
) -> list[str]:
    if stop():
        raise StoppedError
    found = [name for name, code in zip(names, own, strict=True) if code in codes]
    if not text:
        return found
    fits: list[str] = []
    for start in range(0, len(found), _CHUNK):
        if stop():
            raise StoppedError
        fits += [name for name in found[start : start + _CHUNK] if text in (prefix + name).casefold()]
    return fits


def _make_way(folders: dict[str, tuple[list[str], frozenset[str], set[str]]], prefix: str) -> None:
    """The folders above one that holds a fit stay."""
    while prefix:
        head, _, name = prefix[:-1].rpartition("/")
        above = f"{head}/" if head else ""
        names = folders.setdefault(above, ([], frozenset(), set()))[2]
        if name in names:
            return
        names.add(name)
        prefix = above


def _folder(names: list[str], closed: frozenset[str], folders: set[str]) -> _Folder:
    ordered = sorted(names, key=_key)
    keys = tuple(_key(name) for name in ordered)
    return _Folder(tuple(ordered), keys, closed, tuple(sorted(folders, key=_key)))


def _in_order(folders: Mapping[str, _Folder]) -> list[str]:
    """Prefixes of the folders that hold fits themselves, as the tree shows them: what is in folders comes first."""
    found: list[str] = []
    waiting: list[tuple[str, bool]] = [("", False)] if "" in folders else []
    while waiting:
        prefix, entered = waiting.pop()
        if entered:
            if folders[prefix].names:
                found.append(prefix)
            continue
        waiting.append((prefix, True))
        waiting += [(f"{prefix}{name}/", False) for name in reversed(folders[prefix].folders)]
    return found


def _key(name: str) -> Key:
    return name.casefold(), name


def _display_name(name: str) -> str:
    """A name as it is listed; bytes that are no text are replaced."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "replace")


__all__ = ["DEFAULT", "NO_FILTER", "Fitting", "TreeFilter", "fitting"]
