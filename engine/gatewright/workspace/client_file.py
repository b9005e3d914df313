"""Configuration files of MCP clients on disk: reads their servers, and puts the gateway in place of servers.

The rest of the file stays, even comments. The variables of those servers move from their entries to the gateway's
entry; the gateway passes each server the variables that its catalog names. The visible difference shows no value.
More than 450 lines, because finding, reading and editing such a file share its few facts.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import cast
from urllib.parse import urlsplit

from gatewright.adapters.client_config import (
    CLIENTS,
    Client,
    ClientServer,
    Surroundings,
    catalog_id,
    client_named,
    read_servers,
    servers_key,
    variables_of,
)
from gatewright.adapters.client_notation import Notation, plain_entry
from gatewright.base.amount import parse_duration
from gatewright.base.errors import WeMustFix, WorkspaceError
from gatewright.base.file import write_atomically
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.printable import printable
from gatewright.gate.approval import ApprovalLimits
from gatewright.gate.scrub import scrub_text
from gatewright.policy.document import Catalog, PlaceUse, Policy
from gatewright.policy.edit import Edit
from gatewright.policy.policyedit import add_catalogs

ENTRY_ID = "gatewright"
_HIDDEN = "..."
_WAIT = "--wait"
_SECRET = ("env", "environment", "headers", "http_headers")


@frozen
class GatewayEdit:
    """A client's file with the gateway in it: the whole ``text``, and a ``difference`` without values to show.

    ``replaced``: the servers that the gateway replaces; ``direct``: the servers that the client still reaches directly,
    with the reason; ``handed``: the variables that the gateway gets from the file; ``entry``: the gateway's command,
    without these.
    """

    text: str
    entry: Mapping[str, JsonValue]
    difference: str
    replaced: tuple[str, ...]
    direct: Mapping[str, str]
    handed: tuple[str, ...]


def put_gateway(
    text: str, client: Client, catalogs: Sequence[Catalog], command: Sequence[str], around: Surroundings
) -> GatewayEdit:
    """Edit a client's file so that it starts ``command`` instead of the servers in ``catalogs``.

    A ``--wait`` in the gateway's old entry stays unless the command has one. An empty ``text`` stands for a missing
    file. Raises WorkspaceError if it is not JSON.
    """
    notation = client.notation
    before = text if text.strip("\ufeff \t\r\n") else notation.empty
    keys = servers_key(before) or (client.key,)
    entries = _object(notation.value(before), keys)
    served, direct = _split(before, entries, catalogs, around)
    env = _variables(entries, served, direct)
    own = [name for name, entry in entries.items() if _is_gateway(entry)]
    before_us = entries[own[0]] if own else None
    wait = () if _WAIT in command else _wait_of(before_us)
    kept = _object(plain_entry(before_us), ("env",))
    entry = client.entry([*command, *wait], {**kept, **env})
    after = before
    for name in (*own, *served):
        while name in notation.names(after, keys):
            after = notation.drop(after, keys, name)
    after = notation.put(after, keys, ENTRY_ID, entry)
    _check(notation, before, after, keys, {*own, *served}, entry)
    bare = {key: value for key, value in entry.items() if key != client.env_key}
    shown = _difference(notation, text and before, after, keys)
    return GatewayEdit(after, bare, shown, tuple(served), direct, tuple(env))


def _split(
    text: str, entries: Mapping[str, JsonValue], catalogs: Sequence[Catalog], around: Surroundings
) -> tuple[dict[str, Catalog], dict[str, str]]:
    """Split the servers into those with a catalog in the policy and the others, with the reason."""
    served: dict[str, Catalog] = {}
    direct: dict[str, str] = {}
    for server in read_servers(text, around) if entries else ():
        if _is_gateway(entries[server.server_id]):
            continue
        found = next((one for one in catalogs if server.catalog and _stands_for(one, server.catalog)), None)
        if found is not None:
            served[server.server_id] = found
        else:
            direct[server.server_id] = server.refusal or "the policy has no such catalog"
    return served, direct


def _stands_for(one: Catalog, other: Catalog) -> bool:
    return one.catalog_id.casefold() == other.catalog_id.casefold() or is_same_server(one, other)


def is_same_server(one: Catalog, other: Catalog) -> bool:
    """Tell whether two catalogs start or reach the same server, whatever their ids."""
    if one.command is None:
        return one.url is not None and one.url == other.url
    return (one.command, one.args) == (other.command, other.args)


def _variables(
    entries: Mapping[str, JsonValue], served: dict[str, Catalog], direct: dict[str, str]
) -> dict[str, JsonValue]:
    """Collect the servers' variables; if two servers differ on a value, the second one stays direct."""
    env: dict[str, JsonValue] = {}
    givers: dict[str, str] = {}
    for name, catalog in list(served.items()):
        given = variables_of(entries[name], catalog)
        clash = next((variable for variable in given if env.get(variable, given[variable]) != given[variable]), None)
        if clash is not None:
            del served[name]
            direct[name] = f"`{clash}` has another value for `{givers[clash]}`: the gateway has one environment"
            continue
        env |= given
        givers |= dict.fromkeys(given, name)
    return env


def _is_gateway(entry: JsonValue) -> bool:
    texts = _words(entry)
    ours = any(PurePath(word.replace("\\", "/")).stem == "gatewright" or "gatewright.cli" in word for word in texts)
    return ours and "serve" in texts


def _words(entry: JsonValue) -> tuple[str, ...]:
    """The command of an entry with its arguments."""
    entry = plain_entry(entry)
    if not isinstance(entry, dict):
        return ()
    command, args = entry.get("command"), entry.get("args")
    words = [command, *(args if isinstance(args, list) else ())]
    return tuple(word for word in words if isinstance(word, str))


def _wait_of(entry: JsonValue) -> tuple[str, ...]:
    entry = plain_entry(entry)
    args = entry.get("args") if isinstance(entry, dict) else None
    if not isinstance(args, list) or _WAIT not in args:
        return ()
    at = args.index(_WAIT)
    return tuple(str(word) for word in args[at : at + 2])


def _check(notation: Notation, before: str, after: str, keys: Sequence[str], gone: set[str], entry: JsonValue) -> None:
    """Verify that the edit did exactly this, whatever the text looks like."""
    wanted = notation.value(before)
    inner = cast("dict[str, JsonValue]", wanted)
    for key in keys:
        inner = cast("dict[str, JsonValue]", inner.setdefault(key, {}))
    for name in gone:
        del inner[name]
    inner[ENTRY_ID] = entry
    if notation.value(after) != wanted:
        raise WeMustFix("the edit of the client's file would change something else")


def _object(value: JsonValue, keys: Sequence[str]) -> dict[str, JsonValue]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _difference(notation: Notation, before: str, after: str, keys: Sequence[str]) -> str:
    """Return a unified difference that hides values of variables and headers, and anything else like a secret."""
    old, new = (_without_values(notation, text, keys).splitlines() for text in (before, after))
    return "\n".join(list(difflib.unified_diff(old, new, lineterm="", n=3))[2:])


def _without_values(notation: Notation, text: str, keys: Sequence[str]) -> str:
    for start, end in sorted(notation.values(text, keys, _SECRET), reverse=True):
        text = f'{text[:start]}"{_HIDDEN}"{text[end:]}'
    return "\n".join(printable(scrub_text(line)[0], keep="\t") for line in text.splitlines())


MAX_BYTES = 16 * 1024 * 1024
BACKUP = ".before-gatewright"
_RUNNERS = frozenset({"bun", "bunx", "deno", "docker", "node", "npx", "pipx", "pnpm", "python", "python3", "uv", "uvx"})
_STEPS_OF_RUNNERS = frozenset({"dlx", "exec", "run", "tool", "x"})
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@frozen
class ClientFile:
    """The configuration file of a client: the user's own, or that of a project."""

    client: Client
    path: Path
    is_project: bool = False


@frozen
class ServerImport:
    """Servers of a client as an edit of the policy. ``ids``: their catalogs; ``reasons``: for omitted servers.

    ``there``: the existing catalogs of servers that were omitted because they have one.
    """

    edit: Edit | None
    ids: Mapping[str, str]
    reasons: Mapping[str, str]
    there: Mapping[str, str]


@frozen
class ClientEdit:
    """A client's file with the gateway in it, still unwritten; ``before``: its content, required at writing."""

    file: ClientFile
    before: bytes | None
    edit: GatewayEdit


@frozen
class ClientStatus:
    """The servers of a client by its file, and whether the gateway is one of them.

    ``servers``: those that it reaches directly; ``policy`` and ``agent_id``: of the gateway in its file, None and empty
    without one. ``fault``: why the file cannot be read.
    """

    file: ClientFile
    servers: tuple[str, ...] = ()
    policy: Path | None = None
    agent_id: str = ""
    fault: str = ""

    @property
    def is_gated(self) -> bool:
        """True if the gateway is one of its servers."""
        return self.policy is not None


def client_status(file: ClientFile) -> ClientStatus:
    """Tell what a client reaches, by its file alone; nothing is started."""
    try:
        text = _text(file.path, content_of(file.path))
        keys = servers_key(text) or (file.client.key,)
        entries = _object(file.client.notation.value(text or file.client.notation.empty), keys)
    except WorkspaceError as error:
        return ClientStatus(file, fault=str(error))
    servers = tuple(name for name, entry in entries.items() if not _is_gateway(entry))
    ours = next((_words(entry) for entry in entries.values() if _is_gateway(entry)), ())
    if not ours:
        return ClientStatus(file, servers)
    _, *words = ours[ours.index("serve") :]
    agent_id = words[words.index("--agent") + 1] if "--agent" in words[:-1] else ""
    return ClientStatus(file, servers, Path(words[0]) if words else Path(), agent_id)


def client_files(folder: Path) -> tuple[ClientFile, ...]:
    """List the clients' configuration files, existing or not: the user's own, and those of the project ``folder``."""
    found: list[ClientFile] = []
    for client in CLIENTS:
        found.append(ClientFile(client, client.user_file(sys.platform, Path.home(), os.environ)))
        if client.project_file is not None:
            found.append(ClientFile(client, folder / client.project_file, is_project=True))
    return tuple(found)


def client_file(client_id: str, path: Path | None = None) -> ClientFile:
    """Return a client's file: the one at ``path``, else the user's own. Raises WorkspaceError for an unknown client."""
    client = client_named(client_id)
    if path is None:
        return ClientFile(client, client.user_file(sys.platform, Path.home(), os.environ))
    return ClientFile(client, path, is_project=_project(path) is not None)


def read_client_file(path: Path) -> tuple[ClientServer, ...]:
    """Read the servers of a client's file as catalogs. Raises WorkspaceError with the file's fault."""
    return read_servers_of(_text(path, content_of(path)), path)


def read_servers_of(text: str, path: Path | None = None) -> tuple[ClientServer, ...]:
    """Read the servers in the text of a client's file, or in a piece of one. Raises WorkspaceError."""
    try:
        return read_servers(text, _surroundings(path))
    except WorkspaceError as error:
        raise WorkspaceError(f"`{path}`: {error}" if path is not None else str(error)) from None


def read_typed_servers(text: str) -> tuple[ClientServer, ...]:
    """Read the servers in typed or pasted text: a client's JSON, the address of a server, or a command line.

    Raises WorkspaceError.
    """
    typed = text.strip("\ufeff \t\r\n")
    if typed.startswith(("{", '"', "/*", "//", "[mcp_servers")):
        return read_servers_of(typed)
    if typed.startswith(("http://", "https://")):
        host = urlsplit(typed.split(maxsplit=1)[0]).hostname or ""
        names = [part for part in host.split(".")[:-1] if part not in {"www", "mcp", "api"}]
        return read_servers_of(json.dumps({(names or [host or "server"])[-1]: {"url": typed}}))
    try:
        words = shlex.split(typed)
    except ValueError as error:
        raise WorkspaceError(f"it is no command: {str(error).lower()}") from None
    env: dict[str, str] = {}
    while words and _ASSIGNED.match(words[0]):
        name, _, env[name] = words.pop(0).partition("=")
    if not words:
        raise WorkspaceError("type a command or an address, or paste the configuration of a client")
    entry = {"command": words[0], "args": words[1:], "env": env}
    return read_servers_of(json.dumps({_name_of(words): entry}))


def import_servers(
    policy: Policy, servers: Iterable[ClientServer], places: Callable[[Catalog], Mapping[str, PlaceUse]]
) -> ServerImport:
    """Return the edit that adds servers to a policy as catalogs under free ids, except those that it has already.

    ``places``: the places for the process of each, as the person sees them.
    """
    taken = [catalog.catalog_id for catalog in policy.catalogs]
    added: dict[str, Catalog] = {}
    reasons: dict[str, str] = {}
    known: dict[str, str] = {}
    for server in servers:
        made = server.catalog
        if made is None:
            reasons[server.server_id] = server.refusal
            continue
        there = next((one for one in policy.catalogs if is_same_server(one, made)), None)
        if there is not None:
            reasons[server.server_id] = f"the policy has it already, as `{there.catalog_id}`"
            known[server.server_id] = there.catalog_id
            continue
        given = None if made.command is None else places(made)
        made = replace(made, catalog_id=catalog_id(server.server_id, taken), places=given)
        added[server.server_id] = made
        taken.append(added[server.server_id].catalog_id)
    edit = add_catalogs(policy, tuple(added.values())) if added else None
    return ServerImport(edit, {name: catalog.catalog_id for name, catalog in added.items()}, reasons, known)


def gateway_edit(
    file: ClientFile, catalogs: Sequence[Catalog], policy: Path, agent_id: str, wait: str = ""
) -> ClientEdit:
    """Return the edit of a client's file after which the client reaches the policy's servers only through the gateway.

    ``wait``: how long a question waits there, such as ``10m``; "" keeps the file's value. Writes nothing. Raises
    WorkspaceError for an unreadable file or a bad ``wait``.
    """
    before = content_of(file.path) if os.path.lexists(file.path) else None
    text = "" if before is None else _text(file.path, before)
    command = (*gateway_command(), "serve", str(policy.resolve()), "--agent", agent_id)
    if wait:
        try:
            ApprovalLimits(timeout_s=parse_duration(wait))
        except ValueError as error:
            raise WorkspaceError(f"the wait for an answer, `{wait}`: {error}") from None
        command = (*command, "--wait", wait)
    try:
        return ClientEdit(file, before, put_gateway(text, file.client, catalogs, command, _surroundings(file.path)))
    except WorkspaceError as error:
        raise WorkspaceError(f"`{file.path}`: {error}") from None


def write_client_file(change: ClientEdit) -> Path | None:
    """Write the file, whole or not at all, and return the backup beside it, None without a former file.

    Raises WorkspaceError, and leaves the file alone, if it has changed meanwhile or cannot be written.
    """
    path = change.file.path
    now = content_of(path) if os.path.lexists(path) else None
    if now != change.before:
        raise WorkspaceError(f"`{path}` was not written: another program changed it meanwhile")
    try:
        backup = None if now is None else _back_up(Path(os.path.realpath(path)), now)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, change.edit.text.encode(), mode=0o600 if now is None else None)
    except OSError as error:
        raise WorkspaceError(f"`{path}` was not written: {(error.strerror or str(error)).lower()}") from None
    return backup


def gateway_command() -> tuple[str, ...]:
    """Return the full command of this program, since a client does not search the PATH like a shell."""
    beside = Path(sys.executable).with_name("gatewright.exe" if sys.platform == "win32" else "gatewright")
    found = str(beside) if beside.is_file() else shutil.which("gatewright")
    return (found,) if found is not None else (sys.executable, "-m", "gatewright")


def _name_of(words: Sequence[str]) -> str:
    """Name a server: the package or script that a runner starts, else the command."""
    runner = PurePath(words[0]).stem.lower()
    started = [word for word in words[1:] if not word.startswith("-") and word not in _STEPS_OF_RUNNERS]
    name = started[0] if runner in _RUNNERS and started else words[0]
    stem = PurePath(name.replace("\\", "/")).name.rpartition("@")[0] or PurePath(name.replace("\\", "/")).name
    plain = stem.removesuffix(".py").removesuffix(".js").removesuffix(".exe")
    return plain.removeprefix("mcp-").removeprefix("server-").removesuffix("-mcp") or plain


def _back_up(path: Path, content: bytes) -> Path:
    """Copy the file beside itself, for the same readers; an older copy stays."""
    names = (f"{path.name}{BACKUP}" + (f"-{number}" if number > 1 else "") for number in range(1, 10_000))
    backup = next(one for name in names if not os.path.lexists(one := path.with_name(name)))
    write_atomically(backup, content, mode=stat.S_IMODE(path.stat().st_mode), follow=False)
    return backup


def _surroundings(path: Path | None) -> Surroundings:
    return Surroundings(Path.home(), None if path is None else _project(path))


def _project(path: Path) -> Path | None:
    """Return the folder of a file's project; None for a user's own file."""
    whole = path.absolute()
    if any(whole == client.user_file(sys.platform, Path.home(), os.environ) for client in CLIENTS):
        return None
    for written in (client.project_file for client in CLIENTS if client.project_file is not None):
        parts = Path(written).parts
        if whole.parts[-len(parts) :] == parts and whole.parents[len(parts) - 1] != Path.home():
            return whole.parents[len(parts) - 1]
    return None


def content_of(path: Path, most: int = MAX_BYTES) -> bytes:
    """Read an ordinary file whole, perhaps one from a stranger.

    Raises WorkspaceError, also for a file that is too large.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise WorkspaceError(f"`{path}` is no ordinary file")
        with path.open("rb") as stream:
            content = stream.read(most + 1)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise WorkspaceError(f"`{path}` cannot be read: {(said or type(error).__name__).lower()}") from None
    if len(content) > most:
        raise WorkspaceError(f"`{path}` is larger than {most // 1024 // 1024} MiB")
    return content


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise WorkspaceError(f"`{path}` is not UTF-8 text (line {line})") from None
