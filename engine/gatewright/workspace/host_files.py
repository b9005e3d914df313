"""The files in which coding agents look for hooks: puts our entry there, and takes it out again.

A record in the key folder keeps each file as it was, so that taking the entry out restores it to the byte, and the
hooks that we left there, so that a change behind our back shows. More than 450 lines, since what is put in must be what
is taken out.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from gatewright.adapters.hook_socket import (
    KEY_FILE,
    HookPlace,
    can_use_systemd,
    end_gate,
    remove_units,
    unit_files,
    write_units,
)
from gatewright.adapters.hosts import CLIENT_FILE, HOST_IDS, TIMEOUT_S, Around, Hook, Host, HostScope, load_host
from gatewright.base.errors import GatewrightError, WorkspaceError, near_hint, printable
from gatewright.base.file import write_atomically
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import digest
from gatewright.gate import key_folder, state_folder
from gatewright.gate.scrub import scrub_text
from gatewright.record.folder import (
    DURABLE_VARIABLE,
    KEYS_VARIABLE,
    STATE_VARIABLE,
    PrivateFolder,
    config_folder,
    have_key,
)
from gatewright.workspace.client_file import MAX_BYTES, content_of
from gatewright.workspace.trust import HOSTS

AGENT_SOURCE = "project"
"""The source of the files of a project."""
AGENT_FOLDER = ".gatewright-policy"
"""The folder of a project's policy for coding agents."""


@frozen
class HostFile:
    """A file in which a host looks for hooks, existing or not."""

    host_id: str
    scope: HostScope
    path: Path


@dataclass(frozen=True, slots=True)  # pydantic makes these, and does not understand `frozen`
class HostRecord:
    """Our memory of one file. ``before``: its text without our entry, None if we made the file; ``folders``: those that
    we made for it; ``digest``: of its text as we left it; ``hooks``: the digest of what it said of hooks then;
    ``places``: all files in which the host looks for hooks.
    """

    host_id: str
    scope: HostScope
    path: str
    policy: str
    agent_id: str
    command: tuple[str, ...]
    before: str | None
    folders: tuple[str, ...]
    digest: str
    hooks: str
    places: tuple[str, ...]
    installed_s: float


@frozen
class HostEdit:
    """An edit of a host's file, still unwritten. ``after``: None removes the file; ``record``: None forgets it.

    ``difference``: to show, without anything like a secret.
    """

    file: HostFile
    before: bytes | None
    after: bytes | None
    record: HostRecord | None
    difference: str

    @property
    def changes(self) -> bool:
        """True if the file would not stay as it is."""
        return self.before != self.after


def host_around(project: Path | None = None) -> Around:
    """Return the surroundings of this user, and of a project's folder."""
    return Around(Path.home(), os.environ, None if project is None else Path(os.path.realpath(project)))


def host_of(host_id: str) -> Host:
    """Return the host with that id. Raises WorkspaceError, which names the known ones."""
    if host_id not in HOST_IDS:
        raise WorkspaceError(f"no coding agent `{host_id}`{near_hint(host_id, HOST_IDS, listed=True)}")
    return load_host(host_id)


def project_of(folder: Path) -> Path:
    """Return the folder where coding agents work under the policy in ``folder``: the project, if it lies in one."""
    return folder.parent if folder.name == AGENT_FOLDER else folder


def work_folder(host_id: str, policy: Path, source: Path | None = None, *, keys: Path | None = None) -> Path:
    """Return the folder where a host works under a policy: the one project whose hook names the policy.

    Otherwise the project in which the policy lies, else its ``source`` of a project, else its own folder. The host's
    message names the true one.
    """
    named, found = os.path.realpath(policy), set[Path]()
    with suppress(WorkspaceError):
        for record in records(keys):
            is_ours = record.host_id == host_id and os.path.realpath(record.policy) == named
            if is_ours and record.scope is HostScope.PROJECT:  # a user's own file may stand as in a project
                found |= {one for one in [_project(load_host(host_id), Path(record.path))] if one is not None}
    if len(found) == 1:
        return found.pop()
    around = project_of(policy.parent)
    return source if source is not None and around == policy.parent else around


def host_file(host_id: str, scope: HostScope, where: Around) -> HostFile:
    """Return the file of a host that takes our entry: another one of the project that has it from an earlier install,
    else the usual one. Raises WorkspaceError if it has none of that scope.
    """
    host = host_of(host_id)
    path = _entry_file(host, scope, where)
    if path is None:
        raise WorkspaceError(f"{host.title} has no file of hooks for that: {scope}")
    return HostFile(host_id, scope, path)


def hook_command(host_id: str, policy: Path, agent_id: str, keys: Path | None = None) -> Hook:
    """Return the command that a host starts before each call: the client alone, without this package."""
    client = Path(__file__).parents[1] / "adapters" / CLIENT_FILE
    told = ["--policy", str(policy), "--agent", agent_id, "--timeout", str(TIMEOUT_S)]
    told += ["--key", str(key_folder(keys) / KEY_FILE)]
    if os.environ.get(STATE_VARIABLE):
        told += ["--state", str(state_folder(policy))]
    return Hook((sys.executable, "-I", "-S", str(client), host_id, *told))


def records(keys: Path | None = None) -> tuple[HostRecord, ...]:
    """List our entries in files of hosts, as we left them. Raises WorkspaceError if the folder cannot be read."""
    folder = _folder(keys)
    with _faults(folder.path):
        found = (_read_record(folder, name) for name in folder.names() if name.endswith(".json"))
        return tuple(record for record in found if record is not None)


def install_edit(file: HostFile, policy: Path, agent_id: str, *, keys: Path | None = None) -> HostEdit:
    """Return the edit that puts our entry into a host's file: exactly once, whatever stands there. Writes nothing.

    Raises WorkspaceError for a file that is broken, read-only, a link, or somebody else's, and on Windows.
    """
    if sys.platform == "win32":
        raise WorkspaceError("gates before coding agents are not supported on Windows yet")
    host = load_host(file.host_id)
    before, text = read_host_file(file)
    hook = hook_command(file.host_id, policy, agent_id, keys)
    known = _record_of(file.path, keys)
    with _at(file.path):
        after = host.entry.put(text, hook)
        origin: str | None = text
        if known is not None and _digest(text) == known.digest:
            origin = known.before
        elif before is None:
            origin = None
        elif known is not None or after == text:
            origin = host.entry.drop(text, (known.before if known is not None else None) or "")
            origin = None if known is not None and known.before is None and origin == _empty(host) else origin
        hooks = digest(host.entry.hooks(after))
    folders = known.folders if known is not None else tuple(map(str, _missing(file.path.parent)))
    record = HostRecord(
        file.host_id,
        file.scope,
        str(file.path),
        str(policy),
        agent_id,
        hook.command,
        origin,
        folders,
        _digest(after),
        hooks,
        _places(host, file),
        time.time(),
    )
    return HostEdit(file, before, after.encode(), record, _difference(text, after))


def uninstall_edit(file: HostFile, *, keys: Path | None = None) -> HostEdit:
    """Return the edit that takes our entry out: the file is then as it was before; if somebody has changed it since,
    only our entry goes. Raises WorkspaceError.
    """
    host = load_host(file.host_id)
    before, text = read_host_file(file)
    known = _record_of(file.path, keys)
    after: str | None = text
    if before is None:
        after = None
    elif known is not None and _digest(text) == known.digest:
        after = known.before
    else:
        with _at(file.path):
            after = host.entry.drop(text, (known.before if known is not None else None) or "")
        if not after.strip() or (known is not None and known.before is None and after == _empty(host)):
            after = None
    content = None if after is None else after.encode()
    return HostEdit(file, before, content, None, _difference(text, after or ""))


def write_host_file(edit: HostEdit, *, keys: Path | None = None) -> None:
    """Write the file, whole or not at all, with our record of it.

    The gate of a policy that no file names any more ends. Raises WorkspaceError, and changes nothing, if the file has
    changed meanwhile or cannot be written.
    """
    path, folder = edit.file.path, _folder(keys)
    name = _record_name(path)
    with _faults(path):
        folder.make()
        with folder.exclusive():
            if read_host_file(edit.file)[0] != edit.before:
                raise WorkspaceError(f"`{path}` was not written: another program changed it meanwhile")
            known = _record_of(path, keys)
            if edit.record is not None:
                have_key(PrivateFolder(key_folder(keys)), KEY_FILE)
                folder.replace(name, _adapter().dump_json(edit.record))
            try:
                _replace(path, edit)
            except OSError:
                _restore(folder, name, known)
                raise
            if edit.record is None:
                folder.delete(name)
                for made in known.folders if known is not None else ():
                    with suppress(OSError):  # somebody else uses it by now
                        Path(made).rmdir()
    if known is not None and (edit.record is None or edit.record.policy != known.policy):
        _release(Path(known.policy), keys)


def _release(policy: Path, keys: Path | None) -> None:
    """End the gate of a policy, and remove its units, unless a file still names it. Raises WorkspaceError."""
    place = HookPlace.of(policy, key_folder(keys))
    if all(HookPlace.of(Path(one.policy), place.keys) != place for one in records(keys)):
        remove_units(place, _units())
        end_gate(policy, place.keys)


def require_systemd() -> None:
    """Raise WorkspaceError if systemd cannot start the gate of a policy for this user."""
    if not can_use_systemd():
        said = "leave out `--systemd`, then the first hook starts the gate"
        raise WorkspaceError(f"systemd does not answer here (`systemctl --user`): {said}")


def start_by_systemd(policy: Path, *, keys: Path | None = None) -> Path:
    """Have systemd start the gate of a policy, and return the file that says so. Raises WorkspaceError."""
    place = HookPlace.of(policy, key_folder(keys))
    given = {name: os.environ[name] for name in (STATE_VARIABLE, DURABLE_VARIABLE) if os.environ.get(name)}
    end_gate(policy, place.keys)
    write_units(place, policy, _units(), {KEYS_VARIABLE: str(place.keys), **given})
    return unit_files(place, _units())[0]


def unit_of(policy: Path, *, keys: Path | None = None) -> Path | None:
    """Return the file by which systemd starts the gate of a policy; None if there is none."""
    file = unit_files(HookPlace.of(policy, key_folder(keys)), _units())[0]
    return file if file.is_file() else None


def _units() -> Path:
    return config_folder().parent / "systemd" / "user"


def files_of(host: Host, where: Around) -> tuple[HostFile, ...]:
    """List its files, the most particular one last."""
    scopes = (HostScope.MANAGED, HostScope.USER, HostScope.PROJECT)
    found = ((scope, _entry_file(host, scope, where)) for scope in scopes)
    return tuple(HostFile(host.host_id, scope, path) for scope, path in found if path is not None)


def _entry_file(host: Host, scope: HostScope, where: Around) -> Path | None:
    usual = host.file(scope, where)
    if scope is not HostScope.PROJECT or usual is None or where.project is None or has_entry(host, usual):
        return usual
    others = (one for one in host.other_files(where) if one.is_relative_to(where.project))
    return next((one for one in others if has_entry(host, one)), usual)


def project_files(host_ids: Iterable[str], project: Path) -> tuple[Path, ...]:
    """List the files in which hosts look for hooks of one project, existing or not."""
    where = Around(Path.home(), project=project)
    hosts = [load_host(one) for one in sorted(host_ids) if one in HOST_IDS]
    found = (path for host in hosts for path in (host.file(HostScope.PROJECT, where), *host.other_files(where)))
    return tuple(path for path in found if path is not None and path.is_relative_to(project))


def has_entry(host: Host, path: Path) -> bool:
    """Tell whether a file holds an entry of ours; one that cannot be read holds none."""
    try:
        text = content_of(path).decode("utf-8")
        return bool(text) and host.entry.drop(text, text) != text
    except (GatewrightError, UnicodeDecodeError):
        return False


def _empty(host: Host) -> str:
    """Return what our entry leaves of a file that we made."""
    hook = Hook((sys.executable, "-I", "-S", CLIENT_FILE, host.host_id))
    return host.entry.drop(host.entry.put("", hook), "")


def _places(host: Host, file: HostFile) -> tuple[str, ...]:
    """List every file in which the host looks for hooks there.

    Of a project only those in a folder of their own that exists: to keep a missing one from being made, its folder is
    closed to changes where commands run confined.
    """
    project = _project(host, file.path) if file.scope is HostScope.PROJECT else None
    where = host_around(project)
    files = (file.path, *(host.file(scope, where) for scope in HostScope), *host.other_files(where))
    paths = (path for path in files if path is not None)
    top = where.project or project

    def is_kept(path: Path) -> bool:
        is_near = path.parent == file.path.parent or (path.parent.is_dir() and path.parent != top)
        return top is None or not path.is_relative_to(top) or path.exists() or is_near

    return tuple(dict.fromkeys(str(path) for path in paths if is_kept(path)))


def _project(host: Host, path: Path) -> Path | None:
    """Return the project whose file of hooks this is, if it is one."""
    arounds = map(host_around, path.parents)
    found = (one for one in arounds if path in (host.file(HostScope.PROJECT, one), *host.other_files(one)))
    return next((one.project for one in found), None)


def read_host_file(file: HostFile) -> tuple[bytes | None, str]:
    """Read a file of hooks that we may replace; None for a missing one. Raises WorkspaceError."""
    path = file.path
    try:
        facts = path.lstat()
    except FileNotFoundError:
        _require_folder(file)
        return None, ""
    except OSError as error:
        raise WorkspaceError(f"`{path}` cannot be read: {(error.strerror or str(error)).lower()}") from None
    if stat.S_ISLNK(facts.st_mode):
        raise WorkspaceError(f"`{path}` is a link to `{os.path.realpath(path)}`: it was left alone")
    if facts.st_nlink > 1 and stat.S_ISREG(facts.st_mode):
        raise WorkspaceError(f"`{path}` has a second name elsewhere (a hard link): it was left alone")
    if hasattr(os, "geteuid") and facts.st_uid != os.geteuid():
        raise WorkspaceError(f"`{path}` belongs to somebody else: it was left alone")
    _require_folder(file)
    content = content_of(path, MAX_BYTES)
    if not facts.st_mode & stat.S_IWUSR:
        raise WorkspaceError(f"`{path}` is read-only: it was left alone")
    try:
        return content, content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise WorkspaceError(f"`{path}` is not UTF-8 text (line {line})") from None


def _require_folder(file: HostFile) -> None:
    """Refuse a folder that leads elsewhere out of a project, or belongs to somebody else."""
    folder = file.path.parent
    while not folder.exists() and folder != folder.parent:
        if folder.is_symlink():
            raise WorkspaceError(f"`{folder}` is a link to nowhere: `{file.path}` was left alone")
        folder = folder.parent
    if not folder.is_dir():
        raise WorkspaceError(f"`{folder}` is no folder: `{file.path}` was left alone")
    if file.scope is HostScope.PROJECT and folder == file.path.parent and folder.is_symlink():
        raise WorkspaceError(f"`{folder}` is a link to `{os.path.realpath(folder)}`: it was left alone")
    if not os.access(folder, os.W_OK):
        raise WorkspaceError(f"`{folder}` cannot be written to by you: `{file.path}` was left alone")
    if hasattr(os, "geteuid") and folder.stat().st_uid not in {os.geteuid(), 0}:
        raise WorkspaceError(f"`{folder}` belongs to somebody else: `{file.path}` was left alone")


def _missing(folder: Path) -> list[Path]:
    """List the folders to make, the innermost first."""
    return [one for one in (folder, *folder.parents) if not one.exists()]


def _replace(path: Path, edit: HostEdit) -> None:
    if not edit.changes:
        return
    if edit.after is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = (0o644 if edit.file.scope is HostScope.MANAGED else 0o600) if edit.before is None else None
    write_atomically(path, edit.after, mode=mode, follow=False)


def _restore(folder: PrivateFolder, name: str, known: HostRecord | None) -> None:
    if known is None:
        folder.delete(name)
    else:
        folder.replace(name, _adapter().dump_json(known))


def _folder(keys: Path | None) -> PrivateFolder:
    return PrivateFolder(key_folder(keys)).folder(HOSTS)


def _record_name(path: Path) -> str:
    return f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"


def _record_of(path: Path, keys: Path | None) -> HostRecord | None:
    folder = _folder(keys)
    with _faults(folder.path):
        return _read_record(folder, _record_name(path))


@cache
def _adapter() -> TypeAdapter[HostRecord]:
    return TypeAdapter(HostRecord)


def _read_record(folder: PrivateFolder, name: str) -> HostRecord | None:
    try:
        return _adapter().validate_json(folder.read(name, 4 * MAX_BYTES))
    except FileNotFoundError:
        return None
    except ValidationError:
        raise WorkspaceError(f"`{folder.path / name}` is damaged: remove it, then install the hook again") from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _difference(before: str, after: str) -> str:
    """Return a unified difference without anything like a secret."""
    old, new = ([printable(scrub_text(line)[0], keep="\t") for line in text.splitlines()] for text in (before, after))
    return "\n".join(list(difflib.unified_diff(old, new, lineterm="", n=3))[2:])


@contextmanager
def _at(path: Path) -> Generator[None]:
    """Name the file in a fault of its text."""
    try:
        yield
    except WorkspaceError as error:
        raise WorkspaceError(f"`{path}`: {error}") from None


@contextmanager
def _faults(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        place = error.filename or path
        raise WorkspaceError(f"`{place}` cannot be used: {(error.strerror or str(error)).lower()}") from None
