"""Which source a model's path or a label means, and where in it. It reads metadata only and knows no operation.

``..`` is resolved in the text: since no symlink is followed, text and disk agree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gatewright.arguments.path import ModelPath, PathRefused, parse_model_path
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.policy.target import Located, Refusal
from gatewright.sources.basefolder import READ_AGAIN, REPLACED
from gatewright.sources.descriptor import Standing, look_along, unusable, without_dots
from gatewright.sources.filesource import BASE, FileSource

if TYPE_CHECKING:
    from gatewright.sources.known import KnownPlaces

_SHOWN = 200
_LABEL = re.compile(r"file:[0-9a-f]{8}:(.+)", re.DOTALL)
_OUTSIDE_HINT = "give a path inside the source, relative to its top folder"
_NO_SOURCE_HINT = "there is no such source"
_NO_LABEL_HINT = "there is no such block label"


@frozen
class Route:
    """The running sources and what is known of their places."""

    places: KnownPlaces

    def of_path(self, path: str, source_id: str | None, allowed: Sequence[str]) -> Located | Refusal:
        """Where a model's path leads."""
        parsed = parse_model_path(path)
        if isinstance(parsed, PathRefused):
            return Refusal(parsed.code, parsed.reason, parsed.hint)
        sources = self._sources(source_id, allowed)
        if isinstance(sources, Refusal):
            return sources
        relative = _relative(parsed)
        if parsed.absolute:
            absolute = "/" if relative == BASE else f"/{relative}"
            found = [(one, inside) for one in sources if (inside := one.relative_of(absolute)) is not None]
            if relative is None or not found:
                return Refusal("outside-base", f"`{parsed}` lies outside the agent's sources", _OUTSIDE_HINT)
            source, relative = max(found, key=lambda one: len(one[0].base))
        elif relative is None:
            return Refusal("outside-base", f"`{parsed}` leads above the base", _OUTSIDE_HINT)
        else:
            counting = sources if len(sources) > 1 else ()
            source = next((one for one in counting if self._counts(one, relative)), sources[0])
        return self._usable(source, relative, folder=parsed.folder)

    def of_label(self, label: str, allowed: Sequence[str]) -> Located | Refusal:
        """Where a block's label leads."""
        sources = self._sources(None, allowed)
        if isinstance(sources, Refusal):
            return sources
        relative = relative_in(label)
        source = next((s for s in sources if relative is not None and s.label(relative) == label), None)
        if source is not None and relative is not None:
            return self._usable(source, relative, folder=False)
        return Refusal(
            "unknown-label", f"no file of the agent's sources has the label `{label[:_SHOWN]}`", _NO_LABEL_HINT
        )

    def _sources(self, source_id: str | None, allowed: Sequence[str]) -> list[FileSource] | Refusal:
        running = self.places.running
        sources = [running[name] for name in allowed if name in running and (source_id is None or source_id == name)]
        if sources:
            return sources
        if source_id is None:
            return Refusal("no-source", "no source of the agent is attached", "no source is attached")
        why = "is not one of the agent's sources" if source_id not in allowed else "is not attached"
        return Refusal("unknown-source", f"source `{source_id}` {why}", _NO_SOURCE_HINT)

    def _counts(self, source: FileSource, relative: str) -> bool:
        """Whether something stands there; a closed place never counts, or this would tell what is in it."""
        if self.places.known(source, relative).is_closed:
            return False
        try:
            return source.look(relative).exists
        except ToolFailure as failure:
            # what may not be looked at may be there: the call stays with this source and is told so
            return failure.code not in {"source-missing", "not-a-folder"}

    def _usable(self, source: FileSource, relative: str, *, folder: bool) -> Located | Refusal:
        """The place with its level, unless it cannot be used. Of one with level none nothing is told but that."""
        known = self.places.known(source, relative)
        if known.is_closed:
            return Located(source.source_id, relative, known.file.absolute)
        try:
            standing = look_along(known.steps, source.folder)
            failure = _failure(standing, folder=folder)
        except ToolFailure as met:
            failure = met
        else:
            if failure is None:
                return known.place(standing, self.places.protection.now())
        more = f"; {READ_AGAIN}" if failure.code == REPLACED else ""
        return Refusal(failure.code, f"`{relative}` in source `{source.source_id}`: {failure}{more}", str(failure))


def relative_in(label: str) -> str | None:
    """The canonical relative path that a label ends with, or None."""
    found = _LABEL.fullmatch(label)
    parsed = parse_model_path(found[1]) if found is not None else None
    if found is None or not isinstance(parsed, ModelPath):
        return None
    relative = _relative(parsed)
    return relative if relative == found[1] and relative != BASE else None


def _relative(path: ModelPath) -> str | None:
    parts = without_dots(path.parts)
    return None if parts is None else "/".join(parts) or BASE


def _failure(standing: Standing, *, folder: bool) -> ToolFailure | None:
    """Why what stands there cannot be used, or None."""
    if standing.status is None:
        return ToolFailure("there is no such folder", code="not-found") if folder else None
    if standing.is_folder:
        return None
    if folder:
        return ToolFailure("this is a file, not a folder", code="not-a-folder")
    return unusable(standing.status)
