"""Where a path that a tool is given leads on disk, links resolved: inside which root, or why nowhere. It opens nothing.

Roots are the bases of the running sources, the workspace's folder and the prefixes granted to the agent. The answer
holds no link at the time of asking; what stands there later is for the tool to check on the descriptor that it opens.
A refusal has the same words for the model whatever stands there, so that it tells nothing of what it may not see.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from gatewright.arguments.path import PathRefused, parse_model_path
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.policy.target import FileTarget, Refusal
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.descriptor import look, unusable

if TYPE_CHECKING:
    from gatewright.sources.filesource import FileSource
    from gatewright.sources.protection import ProtectedSet

_HINT = "that path is not available to you; choose another one"
_TOP = "/"


@frozen
class DiskPaths:
    """The roots of one call. ``folder`` None: there is none. ``prefixes`` are absolute, with links resolved."""

    sources: Iterable[FileSource]
    protected: ProtectedSet
    folder: str | None
    prefixes: Sequence[str] = ()

    def find(self, text: str, *, parameter: str, writes: bool) -> FileTarget | Refusal:
        """The file or folder that ``text`` names; it need not be there. Never raises."""
        parsed = parse_model_path(text)
        if isinstance(parsed, PathRefused):
            return Refusal(parsed.code, parsed.reason, parsed.hint)
        if not parsed.absolute and self.folder is None:
            return Refusal(
                "no-folder", f"`{parsed}` is relative, and there is no folder that it could start from", _HINT
            )
        written = "/".join(("" if parsed.absolute else self.folder or "", *parsed.parts)) or _TOP
        try:
            absolute = os.path.realpath(written)
            absolute.encode()
        except (OSError, ValueError) as error:
            return Refusal("unresolvable", f"`{parsed}` cannot be resolved: {type(error).__name__}", _HINT)
        refused = self._unusable(absolute)
        if refused is not None:
            return refused
        root = self._root(absolute)
        if root is None:
            return Refusal("outside-roots", f"`{parsed}` is `{absolute}`, outside of everything granted", _HINT)
        source_id, base = root
        relative = absolute[len(base.rstrip("/")) + 1 :] or "."
        return FileTarget(parameter, relative, absolute, writes, source_id)

    def _unusable(self, absolute: str) -> Refusal | None:
        try:
            standing = look(_top(), tuple(part for part in absolute.split("/") if part))
        except ToolFailure as failure:
            if self.protected.covers(absolute):
                return _protected(absolute)
            return Refusal(failure.code, f"`{absolute}`: {failure}", _HINT)
        if self.protected.covers(absolute, standing.identities):
            return _protected(absolute)
        if standing.status is None:
            return None
        if standing.is_folder:
            return _protected(absolute, "holds what is") if self._holds_protected(absolute) else None
        failure = unusable(standing.status)
        return None if failure is None else Refusal(failure.code, f"`{absolute}`: {failure}", _HINT)

    def _holds_protected(self, absolute: str) -> bool:
        below = absolute.rstrip("/") + "/"
        return any(prefix.startswith(below) for prefix in self.protected.prefixes)

    def _root(self, absolute: str) -> tuple[str | None, str] | None:
        """The root that holds it: the innermost source, else the folder, else the innermost prefix."""
        held = [(source.source_id, source.base) for source in self.sources if _is_below(source.base, absolute)]
        if held:
            return max(held, key=lambda root: len(root[1]))
        folder = os.path.realpath(self.folder) if self.folder is not None else None
        if folder is not None and _is_below(folder, absolute):
            return None, folder
        prefix = max((prefix for prefix in self.prefixes if _is_below(prefix, absolute)), key=len, default=None)
        return None if prefix is None else (None, prefix)


@cache
def _top() -> BaseFolder:
    return BaseFolder(_TOP)


def _protected(absolute: str, how: str = "is") -> Refusal:
    return Refusal(
        "protected",
        f"`{absolute}` {how} protected, or in the folder of a source that was moved: no tool reaches it",
        _HINT,
    )


def _is_below(base: str, absolute: str) -> bool:
    return absolute == base or absolute.startswith(base.rstrip("/") + "/")
