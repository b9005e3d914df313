"""Watching the sources that say ``watch = true``, as the policy says it now. It starts only when somebody asks.

What changed outside is taken into blocks where that loses nothing; whoever asked is told, in a thread of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.record import fork_safe_lock
from gatewright.sources import SourceWatcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatewright.policy.document import Policy
    from gatewright.sources import Noticed, SourceManager


class SourceWatching:
    """A watch over the sources of one workspace. ``policy`` answers the one in force. End it with ``close``."""

    def __init__(
        self, sources: SourceManager, policy: Callable[[], Policy], notify: Callable[[Noticed], None], debounce_ms: int
    ) -> None:
        self._policy = policy
        self._watcher = SourceWatcher(sources, notify, debounce_ms=debounce_ms)
        self._following = fork_safe_lock()
        self._closed = False

    @property
    def ids(self) -> tuple[str, ...]:
        """The sources that are watched now."""
        return self._watcher.ids

    def follow(self) -> None:
        """Watch what the policy in force says, at the bases that its sources have."""
        with self._following:
            if not self._closed:
                self._watcher.follow(source.source_id for source in self._policy().sources if source.watch)

    def wait(self, timeout_s: float) -> bool:
        """Wait until every folder that is there is being watched; whether that came to be in time."""
        return self._watcher.wait(timeout_s)

    def close(self) -> None:
        """Stop; afterwards nothing is told any more."""
        with self._following:
            self._closed = True
            self._watcher.close()
