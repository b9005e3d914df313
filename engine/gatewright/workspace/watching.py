"""Watching the folders of sources, which starts only when somebody asks.

Of sources that say ``watch = true`` what changed outside is taken into blocks where that loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakSet

from gatewright.base.errors import WorkspaceError
from gatewright.sources.watch import Noticed, SourceWatching

if TYPE_CHECKING:
    from gatewright.policy.document import Policy
    from gatewright.sources.manager import SourceManager
    from gatewright.sources.watch import FolderNews, FolderWatch


class SourceWatches:
    """All watches of one workspace: one at most of its sources, and any number of single folders."""

    def __init__(self, sources: SourceManager, policy: Callable[[], Policy]) -> None:
        self._sources, self._policy = sources, policy
        self._watching: SourceWatching | None = None
        self._folders: WeakSet[FolderWatch] = WeakSet()

    def watch(self, notify: Callable[[Noticed], None], debounce_ms: int) -> SourceWatching:
        """Watch the sources that say so; a second watch takes the place of the first."""
        before = self._watching
        self._watching = SourceWatching(self._sources, self._wanted, notify, debounce_ms=debounce_ms)
        if before is not None:
            before.close()
        self._watching.follow()
        return self._watching

    def _wanted(self) -> list[str]:
        return [source.source_id for source in self._policy().sources if source.watch]

    def watch_folder(self, source_id: str, notify: Callable[[FolderNews], None]) -> FolderWatch:
        """Watch the folder of a source. Raises WorkspaceError where that is not attached."""
        from gatewright.sources.watch import FolderWatch

        source = self._sources.get(source_id)
        if source is None:
            raise WorkspaceError(f"source `{source_id}` is not attached")
        made = FolderWatch(source.folder, notify)
        self._folders.add(made)
        return made

    def follow(self) -> None:
        """Watch what the policy in force says."""
        if self._watching is not None:
            self._watching.follow()

    def close(self) -> None:
        """Stop all of them."""
        for folder_watch in self._folders:
            folder_watch.stop()
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.close()
