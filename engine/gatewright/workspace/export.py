"""The parts of an export: texts by file name, and the folders that the policy names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PureWindowsPath

from gatewright.base.errors import NotSupported, WorkspaceError
from gatewright.base.file import write_atomically
from gatewright.base.frozen import frozen
from gatewright.base.problem import Address, Place
from gatewright.policy.document import Policy
from gatewright.policyfile import carries, render_pattern, write_policy_text
from gatewright.workspace.location import POLICY_NAME, is_inside, place_file, resolve_base


@frozen
class BoundPath:
    """A path of a policy that is valid on this computer only; ``place``: its position in the file."""

    path: str
    what: str
    place: Place | None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}`{self.path}`, {self.what}, is valid on this computer only"


def bound_paths(policy: Policy, folder: Path, place: Callable[[Address], Place | None]) -> tuple[BoundPath, ...]:
    """List the paths of a policy in ``folder`` that are absolute or lead out of it, in the order of the policy."""
    return tuple(
        BoundPath(path, what, place(address))
        for path, what, address in _paths(policy)
        if _is_absolute(path) or not is_inside(resolve_base(path, folder), folder)
    )


def _paths(policy: Policy) -> Iterator[tuple[str, str, Address]]:
    """Yield each text that may be a path, with its owner and address."""
    for name, path in policy.roots.folders.items():
        yield path, f"the root `{name}`", ("workspace", "roots", name)
    for source in policy.sources:
        yield source.base_path, f"the folder of source `{source.source_id}`", ("sources", source.source_id, "base_path")
    for catalog in policy.catalogs:
        whose, address = f"of catalog `{catalog.catalog_id}`", ("catalogs", catalog.catalog_id)
        if catalog.command is not None and "/" in catalog.command.replace("\\", "/"):
            yield catalog.command, f"the command {whose}", (*address, "command")
        for number, word in enumerate(catalog.args):
            value = word.partition("=")[2] if word.startswith("-") else word
            if _is_absolute(value) or value.startswith("./") or ".." in value.replace("\\", "/").split("/"):
                yield value, f"an argument {whose}", (*address, "args", number)
        if catalog.cwd is not None:
            yield catalog.cwd, f"the `cwd` {whose}", (*address, "cwd")
        for path in catalog.place_folders:
            yield path, f"a place {whose}", (*address, "places", path)


def _is_absolute(path: str) -> bool:
    return Path(path).is_absolute() or PureWindowsPath(path).is_absolute() or path.startswith("~")


def export_texts(policy: Policy, text: str, dialect: str, agent_id: str | None) -> dict[str, str]:
    """Return texts by file name: the policy unchanged, or one Pattern file for each agent with a tool."""
    if dialect == "gatewright":
        return {POLICY_NAME: text}
    if dialect != "pattern":
        raise NotSupported(f"no dialect `{dialect}` (known are gatewright, pattern)")
    left_out = not_exported(policy, dialect)
    carried = [agent_id] if agent_id else [one for one in policy.agents if one not in left_out]
    return {f"{one}.toml": render_pattern(policy, one) for one in carried}


def not_exported(policy: Policy, dialect: str) -> tuple[str, ...]:
    """List the agents without their own file in the dialect, since they have no tool; our dialect has all."""
    if dialect != "pattern":
        return ()
    return tuple(one for one, agent in policy.agents.items() if not carries(policy, agent))


def write_export(
    folder: Path, texts: Mapping[str, str], workspace: Path, bases: Iterable[str], manifests: Mapping[str, bytes]
) -> tuple[Path, ...]:
    """Write the texts, and the manifests and relative folders that they name, so that the export loads from there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written: list[Path] = []
        for name, text in texts.items():
            write_atomically(folder / name, text.encode("utf-8"))
            written.append(folder / name)
        if folder.resolve() != workspace.resolve():
            written += [place_file(folder, name, content) for name, content in manifests.items()]
            for base in bases:
                target = (folder / base).resolve()
                if not Path(base).is_absolute() and target.is_relative_to(folder.resolve()):
                    target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"cannot export to `{folder}`: {error.strerror or error}") from None
    return tuple(written)


def write_copy(
    path: Path, text: str, workspace: Path, bases: Iterable[str], manifests: Mapping[str, bytes]
) -> tuple[Path, ...]:
    """Write the text as a new policy file with the extras of `write_export`, without replacing anything.

    Raises WorkspaceError, before any write, if something is in the way.
    """
    if os.path.lexists(path):
        raise WorkspaceError(f"`{path}` was not saved: a file of that name exists already")
    folder = path.parent
    lacking: dict[str, bytes] = {}
    if folder.resolve() != workspace.resolve():
        lacking = {name: content for name, content in manifests.items() if not os.path.lexists(folder / name)}
        for name in manifests.keys() - lacking.keys():
            if not _holds(folder / name, manifests[name]):
                raise WorkspaceError(f"`{path}` was not saved: another `{name}` is in that folder already")
    beside = write_export(folder, {}, workspace, bases, lacking)
    write_policy_text(path, text, expected=None)
    return (path, *beside)


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.is_file() and path.read_bytes() == content
    except OSError:
        return False
