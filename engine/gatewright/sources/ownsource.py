"""Sources that a program brings: keys with levels as paths have them, and texts from the program's own code.

That code may raise, hang, or return anything: it runs in threads of its own, a few for each source, and its faults
become ToolFailures.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from gatewright.arguments.path import PathRefused, parse_model_path
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import is_text
from gatewright.base.thread import in_own_thread
from gatewright.policy.document import Source
from gatewright.policy.glob import PermissionRules
from gatewright.policy.target import LevelDecision, Located, Refusal
from gatewright.policy.verdict import Permission
from gatewright.sources.descriptor import without_dots
from gatewright.sources.filesource import BASE

MOST_AT_WORK = 8
"""The most texts of one source under way at once, those that hang included."""
_OUTSIDE = "give a key of the source, without a `/` at its beginning"


class OwnSource:
    """A running source: the row of the policy, whose rules give keys their levels, and the program's ``load``."""

    def __init__(self, source: Source, load: Callable[[str], object] | None, places: threading.Semaphore) -> None:
        self.source = source
        self.rules = PermissionRules(source.permission_rules, source.default_permission)
        self._load, self._places = load, places

    @property
    def gives_texts(self) -> bool:
        """True if it has texts to load."""
        return self._load is not None

    def locate(self, key: str) -> Located | Refusal:
        """Return the place of a key, with its level, without asking the program."""
        parsed = parse_model_path(key)
        if isinstance(parsed, PathRefused):
            return Refusal(parsed.code, parsed.reason, parsed.hint)
        parts = None if parsed.absolute else without_dots(parsed.parts)
        if parts is None:
            return Refusal("outside-base", f"`{parsed}` is no key of source `{self.source.source_id}`", _OUTSIDE)
        return self.place("/".join(parts) or BASE)

    def place(self, key: str) -> Located:
        """Return the place of a canonical key."""
        why = self.rules.explain("" if key == BASE else key)
        level = LevelDecision(why.permission, why.index, why.pattern)
        return Located(self.source.source_id, key, f"{self.source.source_id}:{key}", level)

    def readable(self, keys: Iterable[str]) -> list[str]:
        """Return the keys that agents may see: canonical ones whose level is not none."""
        found = ((key, self.locate(key)) for key in keys)
        return [
            key
            for key, at in found
            if isinstance(at, Located) and at.level is not None and at.level.permission is not Permission.NONE
        ]

    async def load(self, key: str) -> str:
        """Return the text of a key. Raises ToolFailure."""
        load = self._load
        if load is None:
            raise ToolFailure("this source has no texts", code="no-texts")
        if not self._places.acquire(blocking=False):
            raise ToolFailure("the source has not answered yet what it was asked before", code="busy")

        def work() -> object:
            try:
                return load(key)
            finally:
                self._places.release()

        try:
            text = await in_own_thread(work)
        except ToolFailure:
            raise
        except Exception as error:
            said = f"the source failed: {type(error).__name__}"
            raise ToolFailure(said, code="source-failed") from error
        return self._check(text)

    def _check(self, text: object) -> str:
        if type(text) is not str or not is_text(text):
            raise ToolFailure("the source gave something that is no text", code="bad-result")
        limit = self.source.max_file_bytes
        if len(text) > limit or len(text.encode()) > limit:
            raise ToolFailure(f"the text is larger than the limit of {limit:,} bytes", code="too-large")
        return text
