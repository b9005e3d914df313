"""The way from a model's path to a place in the roots of a workspace (shared, tmp, vault), or the refusal.

A path begins with the name of a root (``shared/a.txt``, also ``/shared/a.txt``), or is an absolute one inside a root;
one without a root begins in ``shared``. ``..`` is resolved in the text and never leaves the root that the path began
in; links are not followed, so text and disk agree. The words for the model are the same whatever stands at a closed
place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gatewright.arguments.path import ModelPath, PathRefused, parse_model_path
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.policy.document import ROOT_NAMES
from gatewright.policy.target import FileTarget, Refusal
from gatewright.sources.basefolder import READ_AGAIN, REPLACED, UNTRUSTED, BaseFolder
from gatewright.sources.descriptor import look, unusable, without_dots
from gatewright.sources.diskpath import HINT, refusal_of_protected
from gatewright.sources.manager import SourceManager
from gatewright.sources.protection import Protection

_ABOVE = "the path leads above its folder; leave out `..`"


@frozen
class RootPlace:
    """A place in a root: ``base`` is the root's folder, ``parts`` the names below it."""

    root: str
    base: BaseFolder
    parts: tuple[str, ...]

    @property
    def absolute(self) -> str:
        """The absolute path."""
        return "/".join((self.base.path.rstrip("/"), *self.parts)) or "/"

    @property
    def shown(self) -> str:
        """The path as conditions and models see it."""
        return "/".join((self.root, *self.parts))

    def below(self, *names: str) -> RootPlace:
        """Return a place inside this one."""
        return RootPlace(self.root, self.base, (*self.parts, *names))


class RootPaths:
    """The folders of the roots, with their protection, and the levels of sources over the same files."""

    def __init__(
        self, folders: Mapping[str, BaseFolder], workspace: str, sources: SourceManager, protection: Protection
    ) -> None:
        self._bases = dict(folders)
        self._workspace = tuple(f"{path.rstrip('/')}/" for path in (workspace, protection.ground.real(workspace)))
        self.sources = sources
        self.protection = protection

    def find(self, path: str, roots: Sequence[str], *, parameter: str, writes: bool) -> FileTarget | Refusal:
        """Find the file or folder that a model names, existing or not."""
        parsed = parse_model_path(path)
        if isinstance(parsed, PathRefused):
            return Refusal(parsed.code, parsed.reason, parsed.hint)
        place = self._place(parsed, roots)
        if isinstance(place, Refusal):
            return place
        refused = self._unusable(place, folder=parsed.folder)
        if refused is not None:
            return refused
        source_id, inside = self.source_of(place.absolute) or (None, None)
        return FileTarget(parameter, place.shown, place.absolute, writes, source_id, place.root, inside)

    def at(self, absolute: str) -> RootPlace:
        """Return the place of a path from ``find``. Raises ToolFailure for any other."""
        found = self._inside(absolute)
        if found is None or any(part in {"", ".", ".."} or "\0" in part for part in found.parts):
            raise ToolFailure("this path is not available", code="not-available")
        return found

    def source_of(self, absolute: str) -> tuple[str, str] | None:
        """Return the innermost source that holds a path, and the path below its base."""
        found: tuple[str, str] | None = None
        for source_id in self.sources.ids:
            source = self.sources.get(source_id)
            inside = source.relative_of(absolute) if source is not None else None
            if inside is not None and (found is None or len(inside) < len(found[1])):
                found = source_id, inside
        return found

    def _place(self, path: ModelPath, roots: Sequence[str]) -> RootPlace | Refusal:
        real = without_dots(path.parts) if path.absolute else None
        found = None if real is None else self._inside("/" + "/".join(real))
        if found is None:
            named = path.parts[0] if path.parts and path.parts[0] in ROOT_NAMES else None
            if path.absolute and ("/" + "/".join(path.parts)).startswith(self._workspace):
                named = None  # a real path, whatever its first folder is called
            if named is None and path.absolute:
                return Refusal("outside-roots", f"`{path}` lies in none of the roots", self._begin(roots))
            root = named or ROOT_NAMES[0]
            if root not in self._bases:
                return Refusal("no-root", f"`{path}`: the policy names no folder for root `{root}`", self._begin(roots))
            parts = without_dots(path.parts[1:] if named else path.parts)
            if parts is None:
                return Refusal("outside-base", f"`{path}` leads above root `{root}`", _ABOVE)
            found = RootPlace(root, self._bases[root], parts)
        if found.root not in roots:
            listed = " and ".join(f"`{root}`" for root in roots)
            reason = f"`{path}` is in root `{found.root}`, and this takes paths in {listed} only"
            return Refusal("outside-roots", reason, self._begin(roots))
        return found

    def _inside(self, absolute: str) -> RootPlace | None:
        for root, base in self._bases.items():
            top = base.path.rstrip("/")
            if absolute == base.path or absolute.startswith(f"{top}/"):
                rest = absolute[len(top) + 1 :]
                return RootPlace(root, base, tuple(rest.split("/")) if rest else ())
        return None

    def _begin(self, roots: Sequence[str]) -> str:
        """Tell the model how to begin a path instead."""
        there = [f"`{root}/`" for root in roots if root in self._bases]
        return f"begin the path with {' or '.join(there)}" if there else HINT

    def _unusable(self, place: RootPlace, *, folder: bool) -> Refusal | None:
        absolute, protected = place.absolute, self.protection.now()
        try:
            standing = look(place.base, place.parts)
        except ToolFailure as failure:
            if protected.covers(absolute):
                return refusal_of_protected(absolute)
            if (told := root_failure(place.root, failure)) is not failure:
                more = f"; {READ_AGAIN}" if failure.code == REPLACED else ""
                return Refusal(told.code, f"{told}: `{place.base.path}`{more}", str(told))
            return Refusal(failure.code, f"`{absolute}`: {failure}", HINT)
        if protected.covers(absolute, standing.identities):
            return refusal_of_protected(absolute)
        if standing.is_folder:
            return None
        if folder:
            return Refusal("not-a-folder", f"`{absolute}` is no folder, and the path ends as one", HINT)
        failure = None if standing.status is None else unusable(standing.status)
        return None if failure is None else Refusal(failure.code, f"`{absolute}`: {failure}", HINT)


def root_failure(root: str, failure: ToolFailure) -> ToolFailure:
    """Put a failure about the folder of a root into the words of roots."""
    told = {
        "source-missing": ("root-missing", f"the folder of root `{root}` is not there"),
        REPLACED: ("root-replaced", f"another folder stands in the place of root `{root}`"),
        UNTRUSTED: (UNTRUSTED, f"root `{root}` leads out of the workspace and is not trusted"),
    }
    code, text = told.get(failure.code, ("", ""))
    return ToolFailure(text, code=code) if code else failure
