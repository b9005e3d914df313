"""The way from a tool's path to a place on disk, links resolved: the root that it lies in, or the refusal.

Roots are the bases of the running sources, the workspace's folder and the prefixes granted to the agent. The resolved
path holds no link at the time of asking; the tool checks later changes on the descriptor that it opens. A refusal has
the same words for the model whatever stands there, so that it reveals nothing that the model may not see.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gatewright.arguments.path import PathRefused, parse_model_path
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.policy.target import FileTarget, Refusal
from gatewright.sources.descriptor import look_from_top, unusable
from gatewright.sources.filesource import FileSource
from gatewright.sources.protection import ProtectedSet, is_below

HINT = "that path is not available to you; choose another one"


@frozen
class DiskPaths:
    """The roots of one call. ``folder`` None: the call has none. ``prefixes`` are absolute, with links resolved."""

    sources: Iterable[FileSource]
    protected: ProtectedSet
    folder: str | None
    prefixes: Sequence[str] = ()

    def find(self, text: str, *, parameter: str, writes: bool) -> FileTarget | Refusal:
        """Find the file or folder that ``text`` names, existing or not. Never raises."""
        parsed = parse_model_path(text)
        if isinstance(parsed, PathRefused):
            return Refusal(parsed.code, parsed.reason, parsed.hint)
        if not parsed.absolute and self.folder is None:
            return Refusal(
                "no-folder", f"`{parsed}` is relative, and there is no folder that it could start from", HINT
            )
        ground = self.protected.ground
        written = "/".join(("" if parsed.absolute else self.folder or "", *parsed.parts)) or "/"
        try:
            absolute = ground.real(written)
            absolute.encode()
        except (OSError, ValueError) as error:
            return Refusal("unresolvable", f"`{parsed}` cannot be resolved: {type(error).__name__}", HINT)
        refused = self._unusable(absolute)
        if refused is not None:
            return refused
        root = self._root(absolute)
        if root is None:
            return Refusal("outside-roots", f"`{parsed}` is `{absolute}`, outside of everything granted", HINT)
        source_id, base = root
        relative = absolute[len(base.rstrip("/")) + 1 :] or "."
        place = ground.reach(written) if ground.origin else None
        return FileTarget(parameter, relative, absolute, writes, source_id, stands=place)

    def _unusable(self, absolute: str) -> Refusal | None:
        try:
            standing = look_from_top(self.protected.ground.place(absolute))
        except ToolFailure as failure:
            if self.protected.covers(absolute):
                return refusal_of_protected(absolute)
            return Refusal(failure.code, f"`{absolute}`: {failure}", HINT)
        if self.protected.covers(absolute, standing.identities):
            return refusal_of_protected(absolute)
        if standing.status is None:
            return None
        if standing.is_folder:
            return refusal_of_protected(absolute, "holds what is") if self.protected.is_in(absolute) else None
        failure = unusable(standing.status)
        return None if failure is None else Refusal(failure.code, f"`{absolute}`: {failure}", HINT)

    def _root(self, absolute: str) -> tuple[str | None, str] | None:
        """Return the root that holds a path: the innermost source, else the folder, else the innermost prefix."""
        held = [(source.source_id, source.base) for source in self.sources if is_below(absolute, source.base)]
        if held:
            return max(held, key=lambda root: len(root[1]))
        folder = self.protected.ground.real(self.folder) if self.folder is not None else None
        if folder is not None and is_below(absolute, folder):
            return None, folder
        prefix = max((prefix for prefix in self.prefixes if is_below(absolute, prefix)), key=len, default=None)
        return None if prefix is None else (None, prefix)


def refusal_of_protected(absolute: str, how: str = "is") -> Refusal:
    """Return the refusal of a path that no tool reaches."""
    return Refusal(
        "protected",
        f"`{absolute}` {how} protected, or in the folder of a moved source: no tool reaches it",
        HINT,
    )
