"""Which source the Files page shows, the rows of its folder, and the level of any path in it."""

import os
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject

from gatewright.workspace.api import Permission, PermissionRules, Source
from gatewright_gui.pages.access.files.folder_tree import Below, FolderTreeModel
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.document import Document
from gatewright_gui.session.files import PathLevel, SourceFolder, inside

_NO_LEVELS = mark("No rules here hold in {roots}: there the access decides that Rules grants an agent.")


class ShownSource:
    """One source at a time, or none. `tree_model` holds the rows of its folder as far as they were read."""

    def __init__(self, folder: SourceFolder, parent: QObject) -> None:
        self.folder = folder
        self.source_id: str | None = None
        self.tree_model = FolderTreeModel(self.level, parent)

    @property
    def source(self) -> Source | None:
        """The source as edited now; None where there is none."""
        return self.folder.source(self.source_id)

    def level(self, path: str) -> PathLevel:
        """The level that the rules give a path; the disk is not looked at. Raises LookupError without a source."""
        source = self.source
        if source is None:
            raise LookupError("a level was asked for without a source")
        return self.folder.level(source, path)

    def show_tried(self, rules: PermissionRules | None, below: Below | None) -> None:
        """Colour the folder by other rules than the source has; None: by its own."""
        if rules is None:
            self.tree_model.show_tried(None, None)
            return

        def level(path: str) -> PathLevel:
            now = self.level(path)
            found = rules.explain(path or "./")
            stays = now.is_closed or now.overlapped
            return now if stays else PathLevel(path, found.permission, found.index, found.pattern)

        self.tree_model.show_tried(level, below)

    def seen_level(self, path: str) -> PathLevel | None:
        """With what is known of the path on the disk, where its row was read; None without a source."""
        if self.source is None:
            return None
        return self.tree_model.level_at(self.tree_model.index_of(path)) or self.level(path)

    def level_to_tell(self, path: str) -> PathLevel | None:
        """Of a folder the level that a new file in it gets: what it has itself only counts for listing it."""
        seen = self.seen_level(path)
        if seen is None or seen.is_closed or not path.endswith("/"):
            return seen
        new = self.level(inside(path))
        return seen if new.is_closed else replace(new, path=path)

    def may_give(self, path: str) -> Permission | None:
        """The level of a file, or of what is in a folder; None where no rule of this source can give it one."""
        seen = self.seen_level(path) or self.level(path)
        level = self.level(inside(path))
        return None if seen.is_closed or level.is_closed or level.overlapped else level.permission


def root_line(document: Document) -> tuple[str, str]:
    """One line on the roots of the policy, and their real folders, a line for each; both empty where there is none."""
    policy, path = document.policy, document.path
    folder = path.parent if path is not None else Path()
    bases = {source.source_id: _real(folder, source.base_path) for source in policy.file_sources}
    plain: list[str] = []
    levelled: list[str] = []
    whole: list[str] = []
    for name, written in policy.roots.folders.items():
        real = _real(folder, written)
        holder = next((one for one, base in bases.items() if real.is_relative_to(base)), None)
        shown = name if Path(written).name == name else f"{name} ({written})"
        if holder is None:
            plain.append(shown)
        else:
            levelled.append(tr("{root} lies in source {source}: its levels hold there too.", root=shown, source=holder))
        whole.append(f"{name}: {real}")
    said = [_plain(plain)] if plain else []
    return " ".join([*said, *levelled]), "\n".join(whole)


def _plain(names: list[str]) -> str:
    *most, last = names
    named = tr("{names} and {last}", names=", ".join(most), last=last) if most else last
    return tr(_NO_LEVELS, roots=named)


def _real(folder: Path, written: str) -> Path:
    return Path(os.path.realpath(folder / written))
