"""Reads the configuration files of MCP clients: the servers that they name, as catalogs of a policy.

Others than the operator may read a policy, so it takes only the names of variables and headers from a client's file,
never their values. A server with a secret anywhere else makes no catalog.

More than 450 lines, since each client spells the same few facts of a server otherwise.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gatewright.adapters.client_notation import JSON, TOML, Notation, braced, notation_of, plain_entry
from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.printable import printable
from gatewright.gate.scrub import scrub_text
from gatewright.policy.document import Catalog, CatalogType
from gatewright.policyfile.reader import catalog_fault


@frozen
class Client:
    """A program that uses MCP servers. ``key`` holds the servers in its file; ``extra`` goes into each entry of ours.

    ``files``: the user's own configuration, by ``sys.platform``; ``project_file``: the one in a project's folder.
    ``notation``: of its files; ``env_key``: the key of an entry's variables; ``is_one_list``: its command is a list.
    """

    client_id: str
    name: str
    key: str
    files: Mapping[str, str]
    project_file: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict[str, str])
    notation: Notation = JSON
    env_key: str = "env"
    is_one_list: bool = False

    def entry(self, words: Sequence[str], env: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Write an entry of ours."""
        command: dict[str, JsonValue] = {"command": words[0], "args": [*words[1:]]}
        passed: list[JsonValue] = []
        if self.is_one_list:
            command = {"command": [*words]}
            env = braced(env)
        elif self.notation is TOML:  # Codex fills in nothing
            passed = [name for name, value in env.items() if value == f"${{env:{name}}}"]
            env = {name: value for name, value in env.items() if name not in passed}
        held: dict[str, JsonValue] = {self.env_key: dict(env)} if env else {}
        return {**self.extra, **command, **held, **({"env_vars": passed} if passed else {})}

    def user_file(self, platform: str, home: Path, environment: Mapping[str, str]) -> Path:
        """Return the path of this user's configuration, which may be missing."""
        written = self.files.get(platform, self.files["linux"])
        config = environment.get("XDG_CONFIG_HOME") or str(home / ".config")
        roaming = environment.get("APPDATA") or str(home / "AppData" / "Roaming")
        return Path(written.format(home=home, config=config, roaming=roaming))


CLIENTS = (
    Client(
        "claude-desktop",
        "Claude Desktop",
        "mcpServers",
        {
            "linux": "{config}/Claude/claude_desktop_config.json",
            "darwin": "{home}/Library/Application Support/Claude/claude_desktop_config.json",
            "win32": "{roaming}/Claude/claude_desktop_config.json",
        },
    ),
    Client(
        "claude-code", "Claude Code", "mcpServers", {"linux": "{home}/.claude.json"}, ".mcp.json", {"type": "stdio"}
    ),
    Client(
        "vscode",
        "VS Code",
        "servers",
        {
            "linux": "{config}/Code/User/mcp.json",
            "darwin": "{home}/Library/Application Support/Code/User/mcp.json",
            "win32": "{roaming}/Code/User/mcp.json",
        },
        ".vscode/mcp.json",
        {"type": "stdio"},
    ),
    Client("cursor", "Cursor", "mcpServers", {"linux": "{home}/.cursor/mcp.json"}, ".cursor/mcp.json"),
    Client("windsurf", "Windsurf", "mcpServers", {"linux": "{home}/.codeium/windsurf/mcp_config.json"}),
    Client(
        "zed",
        "Zed",
        "context_servers",
        {
            "linux": "{config}/zed/settings.json",
            "darwin": "{home}/.config/zed/settings.json",
            "win32": "{roaming}/Zed/settings.json",
        },
        ".zed/settings.json",
        {"source": "custom"},
    ),
    Client(
        "gemini-cli", "Gemini CLI", "mcpServers", {"linux": "{home}/.gemini/settings.json"}, ".gemini/settings.json"
    ),
    Client("amp", "Amp", "amp.mcpServers", {"linux": "{config}/amp/settings.json"}, ".amp/settings.json"),
    Client(
        "opencode",
        "opencode",
        "mcp",
        {"linux": "{config}/opencode/opencode.json", "darwin": "{home}/.config/opencode/opencode.json"},
        "opencode.json",
        {"type": "local"},
        env_key="environment",
        is_one_list=True,
    ),
    Client(
        "codex",
        "Codex",
        "mcp_servers",
        {"linux": "{home}/.codex/config.toml"},
        ".codex/config.toml",
        notation=TOML,
    ),
)


@frozen
class ClientServer:
    """A server of a client's file: its catalog, or the reason why it makes none.

    ``notes``: advice for the operator; ``is_disabled``: the client has switched it off. ``values``: the file's values
    for the catalog's variables, for the server alone.
    """

    server_id: str
    catalog: Catalog | None
    refusal: str = ""
    notes: tuple[str, ...] = ()
    is_disabled: bool = False
    values: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@frozen
class Surroundings:
    """The values of ``${userHome}`` and ``${workspaceFolder}`` in a client's file; None if unknown here."""

    home: Path
    workspace: Path | None = None

    @property
    def values(self) -> Mapping[str, str]:
        """Placeholder to value."""
        own = {"userHome": str(self.home), "env:HOME": str(self.home), "HOME": str(self.home)}
        own |= {"pathSeparator": os.sep, "/": os.sep}
        if self.workspace is not None:
            own |= {"workspaceFolder": str(self.workspace), "workspaceFolderBasename": self.workspace.name}
        return own


def client_named(client_id: str) -> Client:
    """Find the client with that id. Raises WorkspaceError, which names the known ones."""
    for client in CLIENTS:
        if client.client_id == client_id:
            return client
    raise WorkspaceError(f"no client `{client_id}`; known are {', '.join(client.client_id for client in CLIENTS)}")


def read_servers(text: str, around: Surroundings) -> tuple[ClientServer, ...]:
    """Read the servers of a client's file, or of a piece in the form that a server's documentation shows.

    Raises WorkspaceError for a text that is not JSON (comments and trailing commas are fine), or names no servers.
    """
    text, keys = _locate(text)
    notation = notation_of(text)
    found = cast("Mapping[str, JsonValue]", _inside(notation.value(text), keys))
    named = notation.names(text, keys)
    taken: set[str] = set()
    servers: list[ClientServer] = []
    for server_id, entry in found.items():
        twice = ("stands more than once in the file; the last one counts",) if named.count(server_id) > 1 else ()
        try:
            given = _Entry.model_validate(plain_entry(entry))
            catalog, notes = _catalog(server_id, given, around)
            catalog = replace(catalog, catalog_id=catalog_id(server_id, taken))
            if fault := catalog_fault(catalog):
                raise _Refused(fault)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"][:2] if part not in {"str", "_Program"})
            said = f"`{printable(where)}`: {first['msg'].lower()}" if where else "it is not an object"
            servers.append(ClientServer(server_id, None, scrub_text(said)[0], twice))
        except _Refused as refused:
            servers.append(ClientServer(server_id, None, scrub_text(str(refused))[0], twice))
        else:
            taken.add(catalog.catalog_id)
            is_off, values = given.disabled or not given.enabled, values_for(entry, catalog)
            told = (*twice, *(scrub_text(note)[0] for note in notes))
            servers.append(ClientServer(server_id, catalog, "", told, is_off, values))
    return tuple(servers)


def servers_key(text: str) -> tuple[str, ...]:
    """Return the keys that lead to the servers in a client's file; () if it names none."""
    value = notation_of(text).value(text) if text.strip("\ufeff \t\r\n") else {}
    return next((keys for keys in _PLACES if isinstance(_inside(value, keys), dict)), ())


_PLACES = (("mcp", "servers"), *dict.fromkeys((client.key,) for client in CLIENTS))


class _Program(BaseModel):
    """A command and its arguments in one object, as older files of Zed write it."""

    path: str
    args: list[str] = []
    env: dict[str, str | int | float | bool | None] | None = None


class _Entry(BaseModel):
    """One server in the words of the clients; each client uses some of these keys."""

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)

    command: str | _Program | None = None
    args: list[str] | None = None
    env: dict[str, str | int | float | bool | None] | None = None
    env_file: str | None = Field(None, alias="envFile")
    cwd: str | None = None
    url: str | None = None
    server_url: str | None = Field(None, alias="serverUrl")
    http_url: str | None = Field(None, alias="httpUrl")
    headers: dict[str, str] | None = None
    type: str | None = None
    source: str | None = None
    disabled: bool = False
    enabled: bool = True

    @property
    def address(self) -> str | None:
        """The address of a running server."""
        return self.http_url or self.server_url or self.url


_PLACEHOLDER = re.compile(r"\$\{([^${}]+)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9_.-]+")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)


class _Refused(Exception):
    """The entry makes no catalog; the message says why."""


def catalog_id(name: str, taken: Iterable[str]) -> str:
    """Make a catalog's id, close to the server's name and different from all ``taken``."""
    plain = _NOT_IN_ID.sub("-", name).strip("-.")[:48] or "server"
    plain = f"server-{plain}" if _DEVICE.match(plain) else plain
    folded = {one.casefold() for one in taken}
    numbered = (plain if number == 1 else f"{plain}-{number}" for number in range(1, len(folded) + 2))
    return next(one for one in numbered if one.casefold() not in folded)


def variables_of(entry: JsonValue, catalog: Catalog) -> dict[str, JsonValue]:
    """Return the catalog's variables with their values from its entry in the client's file."""
    given = _Entry.model_validate(plain_entry(entry))
    env = dict(given.env or {})
    if isinstance(given.command, _Program):
        env |= given.command.env or {}
    found: dict[str, JsonValue] = {name: value for name, value in env.items() if name in catalog.env}
    for header, variable in catalog.headers_env.items():
        value = (given.headers or {}).get(header, "")
        if value and _header_variable(value) is None:
            found[variable] = value
    return found


def values_for(entry: JsonValue, catalog: Catalog) -> dict[str, str]:
    """Return the same as texts for a server, without empty values and those that only the client can fill in."""
    given = {name: value for name, value in variables_of(entry, catalog).items() if value is not None}
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
    return {name: text for name, text in texts.items() if text and not _PLACEHOLDER.search(text)}


def _catalog(server_id: str, given: _Entry, around: Surroundings) -> tuple[Catalog, list[str]]:
    notes: list[str] = []
    catalog = Catalog(server_id, CatalogType.MCP)
    _refuse_secret("its name", server_id)
    if given.command is not None:
        catalog = _add_command(catalog, given, around, notes)
    elif given.address:
        catalog = _add_address(catalog, given, around, notes)
    elif given.source == "extension" or "settings" in (given.model_extra or {}):
        raise _Refused("an extension of Zed runs it: the file does not say how it is started")
    else:
        raise _Refused("it has neither a `command` nor a `url`")
    if given.env_file:
        notes.append("the variables of its `envFile` do not reach the server: put their names into `env`")
    unknown = sorted(key for key in given.model_extra or {} if key not in _CLIENTS_OWN)
    if unknown:
        notes.append(f"not taken: {', '.join(f'`{printable(key)}`' for key in unknown[:8])}")
    return catalog, notes


_CLIENTS_OWN = frozenset({"alwaysAllow", "autoApprove", "description", "dev", "gallery", "name", "settings", "version"})
"""Keys that concern only how the client itself treats a server."""


def _add_command(catalog: Catalog, given: _Entry, around: Surroundings, notes: list[str]) -> Catalog:
    program = given.command if isinstance(given.command, _Program) else None
    command = program.path if program is not None else cast("str", given.command)
    args = [*(program.args if program is not None else ()), *(given.args or ())]
    env = {**(given.env or {}), **((program.env or {}) if program is not None else {})}
    if command.startswith("~/"):
        command = f"{around.home}{command[1:]}"
    places = ("the command", *(f"argument {number}" for number in range(1, len(args) + 1)))
    whole = [_fill_defaults(word, what, notes) for word, what in zip((command, *args), places, strict=True)]
    for before, word, what in zip(("", *whole), whole, places, strict=False):
        _refuse_secret(what, word, f"{before}={word}" if before.startswith("-") and "=" not in before else word)
    _refuse_secret("the command with its arguments", *_as_commands(whole))
    own = frozenset(env)
    whole = [_fill(word, what, around, own) for word, what in zip(whole, places, strict=True)]
    if kept := sorted(name for name in own if any(f"${{{name}}}" in word for word in whole)):
        told = ", ".join(f"`${{{name}}}`" for name in kept)
        notes.append(f"{told} stays as it is: the program gets the variable, and has to read it itself")
    names: list[str] = []
    for name in env:
        _refuse_secret("the name of a variable", name)
        if _VARIABLE.fullmatch(name):
            names.append(name)
        else:
            notes.append(f"`{printable(name)}` cannot name a variable, and is left out")
    if names:
        told = ", ".join(f"`{name}`" for name in names)
        notes.append(f"the values of {told} stay in the client's file: the policy has only the names")
    cwd = str(around.workspace) if around.workspace is not None else None
    if given.cwd:
        cwd = _fill_defaults(given.cwd, "`cwd`", notes)
        _refuse_secret("`cwd`", cwd)
        cwd = _fill(cwd, "`cwd`", around)
    return replace(catalog, command=whole[0], args=tuple(whole[1:]), env=tuple(names), cwd=cwd)


def _add_address(catalog: Catalog, given: _Entry, around: Surroundings, notes: list[str]) -> Catalog:
    address = _fill_defaults(cast("str", given.address), "the address", notes)
    if scrub_text(address)[1]:
        raise _Refused("its address holds a secret, and a policy is read by others: name a header instead")
    url = _fill(address, "the address", around)
    if given.type == "sse" or url.rstrip("/").endswith("/sse"):
        notes.append("it says that it speaks the older SSE; Gatewright uses streamable HTTP at the same address")
    headers: dict[str, str] = {}
    for header, value in (given.headers or {}).items():
        own = f"{catalog.catalog_id}_{header}".upper()
        variable = _header_variable(value)
        _refuse_secret("the name of a header", header, variable or "")
        headers[header] = variable or re.sub(r"[^A-Z0-9_]+", "_", f"_{own}" if own[0].isdigit() else own)
    if headers:
        told = ", ".join(f"`{header}` from `{variable}`" for header, variable in headers.items())
        notes.append(
            f"takes its headers out of the environment: {told}, the whole value; the policy has only the names"
        )
    return replace(catalog, url=url, headers_env=headers)


def _header_variable(value: str) -> str | None:
    """Return the variable that is the whole value of a header."""
    found = _PLACEHOLDER.fullmatch(value)
    name = found[1].removeprefix("env:") if found is not None else ""
    return name if _VARIABLE.fullmatch(name) else None


_PARTS_WORDS = re.compile(r"[\s\"'|;&<>]")
_GLUED = re.compile(r"(-[A-Za-z])([^-].*)", re.DOTALL)


def _as_commands(words: Sequence[str]) -> Iterator[str]:
    """Yield the words as one command, then again with a blank between a one-letter flag and its value."""
    kept = [_PARTS_WORDS.sub("_", word) for word in words]
    yield " ".join(kept)
    yield " ".join(_GLUED.sub(r"\1 \2", word) if _GLUED.fullmatch(word) else word for word in kept)


def _refuse_secret(what: str, *texts: str) -> None:
    if any(scrub_text(text)[1] for text in texts):
        raise _Refused(
            f"{what} looks like a secret, and a policy is read by others: give the server its secret in a variable,"
            " if it takes one"
        )


def _fill_defaults(text: str, what: str, notes: list[str]) -> str:
    """Replace the placeholders that have a default by their default."""

    def default(found: re.Match[str]) -> str:
        _name, is_default, value = found[1].partition(":-")
        if not is_default:
            return found[0]
        notes.append(f"{what}: `{printable(found[0])}` counts as its default")
        return value

    return _PLACEHOLDER.sub(default, text)


def _fill(text: str, what: str, around: Surroundings, own: frozenset[str] = frozenset()) -> str:
    """Replace the placeholders by their values, but for variables of the entry's ``own``; refuse those that only the
    client can fill in.
    """

    def value(found: re.Match[str]) -> str:
        known = found[0] if found[1] in own else around.values.get(found[1])
        if known is None:
            raise _Refused(f"{what} needs `{printable(found[0])}`, which only the client can fill in")
        return known

    return _PLACEHOLDER.sub(value, text)


def _locate(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with the keys that lead to its servers; a piece of a file gets the missing braces."""
    piece = text.strip("\ufeff \t\r\n")
    if piece.startswith('"'):
        text = "{" + piece.rstrip(",") + "}"
    notation = notation_of(text)
    value, keys = notation.value(text), servers_key(text)
    if keys:
        return text, keys
    alone = value.values() if isinstance(value, dict) else ()
    if alone and all(isinstance(one, dict) and one.keys() & _MARKS for one in alone):
        return text, ()
    names = ", ".join(f"`{'.'.join(keys)}`" for keys in _PLACES)
    raise WorkspaceError(f"it names no MCP servers: it has none of {names}")


_MARKS = frozenset({"command", "url", "serverUrl", "httpUrl"})


def _inside(value: JsonValue, keys: Iterable[str]) -> JsonValue:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
