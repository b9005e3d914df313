"""Watches over the folders of sources, which start only on request.

For sources with ``watch = true``, a change outside goes into blocks if that loses nothing.
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
    """All watches of one workspace: at most one over its sources, and any number over single folders."""

    def __init__(self, sources: SourceManager, policy: Callable[[], Policy]) -> None:
        self._sources, self._policy = sources, policy
        self._watching: SourceWatching | None = None
        self._folders: WeakSet[FolderWatch] = WeakSet()

    def watch(self, notify: Callable[[Noticed], None], debounce_ms: int) -> SourceWatching:
        """Watch the sources with ``watch = true``; a second watch replaces the first."""
        before = self._watching
        self._watching = SourceWatching(self._sources, self._watch_ids, notify, debounce_ms=debounce_ms)
        if before is not None:
            before.close()
        self._watching.follow()
        return self._watching

    def _watch_ids(self) -> list[str]:
        return [source.source_id for source in self._policy().sources if source.watch]

    def watch_folder(self, source_id: str, notify: Callable[[FolderNews], None]) -> FolderWatch:
        """Watch the folder of a source. Raises WorkspaceError if it is not attached."""
        from gatewright.sources.watch import FolderWatch

        source = self._sources.get(source_id)
        if source is None:
            raise WorkspaceError(f"source `{source_id}` is not attached")
        made = FolderWatch(source.folder, notify)
        self._folders.add(made)
        return made

    def follow(self) -> None:
        """Watch according to the policy in force."""
        if self._watching is not None:
            self._watching.follow()

    def close(self) -> None:
        """Stop all watches."""
        for folder_watch in self._folders:
            folder_watch.stop()
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.close()
