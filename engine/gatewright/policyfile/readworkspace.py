"""Reads ``[workspace]``: roots, shell, web, memory, and the endpoints where messages may go."""

from __future__ import annotations

import ipaddress
import posixpath
import re
from collections.abc import Collection
from typing import TypedDict, cast

from gatewright.arguments.shell_program import EVERY, is_option_that_runs
from gatewright.arguments.url import UrlRefused, parse_url
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import late_regex
from gatewright.base.problem import Report, shown
from gatewright.base.row import Raw, Row, kind_of, name_error, option
from gatewright.base.shape import FLAG, NAME, TEXT, Shape, by_name, one_of, several, table, told
from gatewright.policy.document import (
    ROOT_NAMES,
    Confine,
    MemoryWeights,
    Roots,
    SearchEngine,
    SearchProvider,
    ShellBackend,
    ShellSettings,
    Web,
)
from gatewright.policy.scope import (
    BLUESKY_URL,
    DISCORD_URL,
    TARGETS,
    AgentEndpoint,
    BlueskyEndpoint,
    DiscordEndpoint,
    Endpoints,
)
from gatewright.policyfile.readagent import path_error
from gatewright.policyfile.readcatalog import CONFINES

VARIABLE = late_regex(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_CHANNEL = late_regex(r"[0-9]{1,20}")
_HANDLE = late_regex(
    r"(?=.{3,253}\Z)([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
)
_BAD_HANDLE = "the handle of an account is written `name.example.com`, without `@`"

_SECRET = told(NAME, "The name of the environment variable with the secret")
_AGENTS = several(NAME, 1)
AGENT_KEYS: dict[str, Shape] = {"agents": told(_AGENTS, "Who may get messages; absent: every agent")}
DISCORD_KEYS: dict[str, Shape] = {
    "token_env": _SECRET,
    "channels": told(several(TEXT, 1), "The ids of the channels; absent: any"),
    "url": told(NAME, "Another address of the service", DISCORD_URL),
}
BLUESKY_KEYS: dict[str, Shape] = {
    "handle": told(NAME, "The account that sends"),
    "password_env": _SECRET,
    "handles": told(several(TEXT, 1), "To whom; absent: anybody"),
    "url": told(NAME, "Another address of the service", BLUESKY_URL),
}
ENDPOINTS: dict[str, Shape] = {
    "user": told(table({}), "The person whom the agent works for"),
    "agent": told(table(AGENT_KEYS), "Other agents"),
    "group": told({**by_name(_AGENTS), "minProperties": 1}, "Groups of agents, `NAME = [agents]`"),
    "discord": told(table(DISCORD_KEYS, "token_env"), "Channels of Discord"),
    "bluesky": told(table(BLUESKY_KEYS, "handle", "password_env"), "Accounts of Bluesky"),
}


def read_endpoints(row: Row, agents: Collection[str]) -> Endpoints:
    """What the table says; ``agents``: the ids that it may name. What cannot be built is left out (an error)."""
    row.only(TARGETS, "`endpoints` of `[workspace]`")
    user, agent, group = row.table("user"), row.table("agent"), row.table("group")
    discord, bluesky = row.table("discord"), row.table("bluesky")
    if user is not None:
        user.only((), "the endpoint `user`")
    return Endpoints(
        user=user is not None,
        agent=None if agent is None else _agent(agent, agents),
        groups={} if group is None else _groups(group, agents),
        discord=None if discord is None else _discord(discord),
        bluesky=None if bluesky is None else _bluesky(bluesky),
    )


def _agent(row: Row, agents: Collection[str]) -> AgentEndpoint:
    row.only(AGENT_KEYS, "the endpoint `agent`")
    return AgentEndpoint(_agents(row, "agents", agents) if "agents" in row.raw else None)


def _groups(row: Row, agents: Collection[str]) -> dict[str, tuple[str, ...]]:
    if not row.raw:
        row.report.error(
            row.path, "missing-key", "the endpoint `group` names groups: `NAME = [agents]`", at_value=False
        )
    for name in row.raw:
        if why := name_error(name):
            row.report.error(row.at(name), "bad-value", f"the name of a group {why}", at_value=False)
    return {name: _agents(row, name, agents) for name in row.raw}


def _agents(row: Row, key: str, known: Collection[str]) -> tuple[str, ...]:
    found = _words(row, key) or ()
    for index, agent_id in enumerate(found):
        if agent_id not in known:
            near, message = row.report.near(agent_id, known), f"no agent is named {shown(agent_id)}"
            row.report.error(row.at(key, index), "unknown-agent", message, near=near)
    return found


def _discord(row: Row) -> DiscordEndpoint | None:
    row.only(DISCORD_KEYS, "the endpoint `discord`")
    token, channels = _secret_variable(row, "token_env", "discord"), _words(row, "channels")
    _each(row, "channels", channels, _CHANNEL, "the id of a channel is a number, written as text")
    url = _address(row, DISCORD_URL)
    return None if token is None else DiscordEndpoint(token, channels, url)


def _bluesky(row: Row) -> BlueskyEndpoint | None:
    row.only(BLUESKY_KEYS, "the endpoint `bluesky`")
    handle = row.text("handle") if row.require("handle", "the endpoint `bluesky`") else None
    if handle is not None and not _HANDLE.fullmatch(handle):
        row.fault("handle", "bad-value", _BAD_HANDLE)
    password, handles = _secret_variable(row, "password_env", "bluesky"), _words(row, "handles")
    _each(row, "handles", handles, _HANDLE, _BAD_HANDLE)
    url = _address(row, BLUESKY_URL)
    return None if handle is None or password is None else BlueskyEndpoint(handle, password, handles, url)


def _secret_variable(row: Row, key: str, target: str) -> str | None:
    name = row.text(key) if row.require(key, f"the endpoint `{target}`") else None
    if name is not None and not VARIABLE.fullmatch(name):
        row.fault(key, "bad-value", f"`{key}` is the name of an environment variable, never the secret itself")
        return None
    return name


def _words(row: Row, key: str) -> tuple[str, ...] | None:
    """A list of different texts, None when absent; an empty one is an error, since nobody is in it."""
    found = row.words(key)
    if found is not None and (not found or len(set(found)) < len(found)):
        row.fault(key, "bad-value", f"`{key}` names one or more, each once")
    return found


def _each(row: Row, key: str, words: tuple[str, ...] | None, pattern: re.Pattern[str], message: str) -> None:
    for index, word in enumerate(words or ()):
        if not pattern.fullmatch(word):
            row.report.error(row.at(key, index), "bad-value", message)


def _address(row: Row, usual: str) -> str:
    """``url``, or the usual address; the secret goes there, so it is not sent in the clear to another machine."""
    url = row.text("url")
    if url is None:
        return usual
    target = parse_url(url, allow_private=True)
    if isinstance(target, UrlRefused) or {"?", "#"} & set(url):
        row.fault("url", "bad-value", "`url` is the address of a server: `https://host/path`")
    elif target.scheme != "https" and not _is_this_machine(target.host):
        row.fault("url", "bad-value", "`url` begins with `https://`, since the secret is sent there")
    return url


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


MAX_PROVIDERS = 10
_ENGINES = {str(engine): engine for engine in SearchEngine}
_VARIABLE = told(NAME, "The name of the environment variable with the value")
_PROVIDER_KEYS: dict[str, Shape] = {
    "engine": one_of(_ENGINES),
    "url": told(NAME, "Its address; SearXNG needs one"),
    "api_key_env": _VARIABLE,
    "engine_id_env": _VARIABLE,
}
_NEEDS = {SearchEngine.SEARXNG: ("url",), SearchEngine.GOOGLE: ("api_key_env", "engine_id_env")}
_CALLED = {SearchEngine.SEARXNG: "SearXNG", SearchEngine.GOOGLE: "Google"}
_PROVIDERS: list[JsonValue] = [
    table({**_PROVIDER_KEYS, "engine": one_of([engine])}, "engine", *_NEEDS.get(engine, ())) for engine in SearchEngine
]
_BACKENDS = {str(one): one for one in ShellBackend}
_ROOTS: dict[str, Shape] = {
    "shared": told(NAME, "Read and written; where paths without a root's name begin"),
    "tmp": told(NAME, "Read and written"),
    "vault": told(NAME, "Files can only be copied out of it"),
}
_SHELL: dict[str, Shape] = {
    "backend": told(one_of(_BACKENDS), "Who runs shell commands", str(ShellBackend.DISABLED)),
    "allow": told(several(TEXT), "Programs, `program option`, and `NAME=`: a variable that may be set", []),
    "deny": told(several(TEXT), "Programs that may not be started, whatever `allow` says", []),
    "allow_substitution": told(FLAG, "Whether `$(...)` may stand in a command", default=False),
    "confine": told(
        one_of(CONFINES),
        "`policy`: levels and hosts hold for whatever a command starts; `none`: they do not",
        str(Confine.POLICY),
    ),
}
_WEB: dict[str, Shape] = {
    "allow_private": told(FLAG, "Whether addresses of private networks and this machine may be reached", default=False),
    "search": told(
        several({"anyOf": [one_of([SearchEngine.DUCKDUCKGO]), *_PROVIDERS]}, 1, MAX_PROVIDERS),
        "Who is asked to search, in this order",
        [str(SearchEngine.DUCKDUCKGO)],
    ),
}
_SHARE: Shape = {"type": "number", "minimum": 0, "maximum": 1}
_MEMORY: dict[str, Shape] = {
    "vector": told(_SHARE, "How much a note counts by what it means", MemoryWeights().vector),
    "text": told(_SHARE, "How much it counts by its words: the rest of 1", MemoryWeights().text),
}
WORKSPACE: dict[str, Shape] = {
    "roots": told(table(_ROOTS), "Folders for the tools of files, relative to this file"),
    "shell": told(table(_SHELL), "What shell commands may start"),
    "web": told(table(_WEB), "What web tools may reach"),
    "endpoints": told(table(ENDPOINTS), "Where messages may go"),
    "memory": told(table(_MEMORY), "How notes are ranked"),
    "closed": told(
        several(NAME), "Files and folders that no tool touches: relative to this file, `/...` or `~/...`", []
    ),
}
_MARGIN = 1e-6
_ENTRY = re.compile(r"[^\s*?\[\]{}$`'\"\\|&;<>()=~#]+|[A-Za-z_][A-Za-z0-9_]*=|\[")


class WorkspaceKeys(TypedDict):
    """What ``[workspace]`` says, by the names of the policy's own fields."""

    roots: Roots
    web: Web
    shell: ShellSettings
    endpoints: Endpoints
    memory: MemoryWeights
    closed: tuple[str, ...]


def read_workspace(row: Row | None, agents: Collection[str]) -> WorkspaceKeys:
    """What the table says; the defaults without it. ``agents``: the ids that it may name."""
    row = row or Row({}, (), Report())
    row.only(WORKSPACE, "`[workspace]`")
    roots, web, shell, endpoints = map(row.table, ("roots", "web", "shell", "endpoints"))
    memory = row.table("memory")
    return WorkspaceKeys(
        roots=_roots(roots) if roots else Roots(),
        web=_web(web) if web else Web(),
        shell=_shell(shell) if shell else ShellSettings(),
        endpoints=read_endpoints(endpoints, agents) if endpoints else Endpoints(),
        memory=_memory(memory) if memory else MemoryWeights(),
        closed=_closed(row),
    )


def _closed(row: Row) -> tuple[str, ...]:
    """The places as written."""
    found: list[str] = []
    for index, place in row.texts("closed"):
        at = row.at("closed", index)
        if why := path_error(place):
            row.report.error(at, "bad-value", f"a closed place {why}")
        elif place.startswith("~") and place.partition("/")[0] != "~":
            row.report.error(at, "bad-value", f"{shown(place)} is the folder of another user: only `~/...` is read")
        elif place in found:
            row.report.error(at, "duplicate", f"{shown(place)} stands here twice")
        else:
            found.append(place)
    return tuple(found)


def _memory(row: Row) -> MemoryWeights:
    """The weights; of one that is not given the rest of 1."""
    row.only(_MEMORY, "`memory` of `[workspace]`")
    vector, text = row.share("vector"), row.share("text")
    if vector is None:
        vector = MemoryWeights().vector if text is None else round(1 - text, 6)
    text = round(1 - vector, 6) if text is None else text
    if abs(vector + text - 1) > _MARGIN:
        row.fault("text", "bad-value", f"`vector` and `text` are 1 together, and these are {vector + text:g}")
        return MemoryWeights()
    return MemoryWeights(vector, text)


def _web(row: Row) -> Web:
    row.only(_WEB, "`web` of `[workspace]`")
    web = Web(row.flag("allow_private", otherwise=False))
    if "search" not in row.raw:
        return web
    entries = row.items("search")
    if not 0 < len(entries) <= MAX_PROVIDERS and isinstance(row.raw["search"], list):
        message = f"`search` names one to {MAX_PROVIDERS} of {', '.join(f'`{name}`' for name in _ENGINES)}"
        row.fault("search", "bad-value", message)
    found: list[SearchProvider] = []
    for index, entry in enumerate(entries):
        path, what = row.at("search", index), "an entry of `search`"
        if isinstance(entry, str):
            one, engine = Row({}, path, row.report), option(entry, path, row.report, what, _ENGINES)
        elif isinstance(entry, dict):
            one = Row(cast("Raw", entry), path, row.report)
            one.only(_PROVIDER_KEYS, what)
            engine = one.choice("engine", _ENGINES) if one.require("engine", what) else None
        else:
            row.report.error(path, "wrong-type", f"{what} must be text or a table, not {kind_of(entry)}")
            continue
        if engine is None:
            continue
        url, key, engine_id = one.text("url"), _variable(one, "api_key_env"), _variable(one, "engine_id_env")
        if url is not None and (isinstance(parse_url(url, allow_private=True), UrlRefused) or {"?", "#"} & set(url)):
            one.fault("url", "bad-value", "`url` is the address of a search engine: `https://host/path`")
        for needed in _NEEDS.get(engine, ()):
            if not one.require(needed, _CALLED[engine]):
                break
        found.append(SearchProvider(engine, url, key, engine_id))
    return Web(web.allow_private, tuple(found))


def _variable(row: Row, key: str) -> str | None:
    name = row.text(key)
    if name is not None and not VARIABLE.fullmatch(name):
        row.fault(key, "bad-value", f"`{key}` is the name of the environment variable with the value")
        return None
    return name


def _shell(row: Row) -> ShellSettings:
    row.only(_SHELL, "`[workspace] shell`")
    backend = row.choice("backend", _BACKENDS)
    return ShellSettings(
        backend or ShellBackend.DISABLED,
        _entries(row, "allow"),
        _entries(row, "deny"),
        row.flag("allow_substitution", otherwise=False),
        row.choice("confine", CONFINES) or Confine.POLICY,
    )


def _entries(row: Row, key: str) -> tuple[str, ...]:
    """The entries of one list; what could never match is an error."""
    found = row.words(key) or ()
    for index, entry in enumerate(found):
        if entry == EVERY or _ENTRY.fullmatch(entry) or (key == "allow" and is_option_that_runs(entry)):
            continue
        message = f"{shown(entry)} is neither the name of a program nor `*` nor `NAME=`"
        if key == "allow" and " " in entry:
            message += ", and no option that is known to start other programs"
        row.report.error((*row.at(key), index), "bad-value", message)
    return found


def _roots(row: Row) -> Roots:
    """The folders; one root inside another would be a way around what that one is for."""
    row.only(ROOT_NAMES, "the roots of `[workspace]`")
    folders: dict[str, str] = {}
    for name in ROOT_NAMES:
        folder = row.text(name)
        if folder is None:
            continue
        if why := path_error(folder):
            row.fault(name, "bad-value", f"the folder of root `{name}` {why}")
            continue
        normal = posixpath.normpath(folder)
        other = next((one for one, held in folders.items() if overlap(normal, posixpath.normpath(held))), None)
        if other is not None:
            message = f"the roots `{other}` and `{name}` may not lie in each other: {shown(folder)}"
            row.fault(name, "roots-overlap", message)
        folders[name] = folder
    return Roots(**folders)


def overlap(one: str, other: str) -> bool:
    """Whether two normal paths are the same, or one lies below the other."""
    first, second = _parts(one), _parts(other)
    shorter = min(len(first), len(second))
    return first[:shorter] == second[:shorter] and one.startswith("/") == other.startswith("/")


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]
