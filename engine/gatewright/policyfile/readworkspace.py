"""Reads ``[workspace]``: roots, shell, web, memory, questions, and the endpoints where messages may go.

It exceeds 450 lines because it holds each of these tables with its checks.
"""

from __future__ import annotations

import ipaddress
import posixpath
import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, TypedDict, cast

from pydantic import Field

from gatewright.arguments.shell_entry import Entry, read_entry
from gatewright.arguments.url import UrlRefused, parse_url
from gatewright.base.errors import Report, shown
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import late_regex
from gatewright.base.row import Raw, Row, Shape, kind_of, name_error, one_of, option, several, table
from gatewright.policy.document import (
    Confine,
    MemoryWeights,
    Questions,
    Roots,
    SearchEngine,
    SearchProvider,
    ShellBackend,
    ShellSettings,
    Web,
)
from gatewright.policy.verdict import (
    BLUESKY_URL,
    DISCORD_URL,
    AgentEndpoint,
    BlueskyEndpoint,
    DiscordEndpoint,
    Endpoints,
)
from gatewright.policyfile.readagent import path_error
from gatewright.policyfile.table import Form, Name, Seconds, Table, keys_of, plain, read_keys

VARIABLE = late_regex(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_CHANNEL = late_regex(r"[0-9]{1,20}")
_HANDLE = late_regex(
    r"(?=.{3,253}\Z)([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
)
_BAD_HANDLE = "the handle of an account is written `name.example.com`, without `@`"
_ANSWERER = late_regex(
    r"mailto:[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
    r"|slack:[A-Za-z_][A-Za-z0-9_]{0,127}"
)
_BAD_ANSWERER = "it is `mailto:ADDRESS`, or `slack:` with the environment variable that has the URL of a webhook"
_SECRET = "an environment variable, never the secret itself"
_VALUE = "the environment variable with the value"


class AgentEndpointTable(Table, of=AgentEndpoint):
    """``endpoints.agent``."""

    agents: tuple[Name, ...] | None = Field(
        None, min_length=1, description="The agents that may get messages; absent: all"
    )


class DiscordTable(Table, of=DiscordEndpoint):
    """``endpoints.discord``."""

    token_env: Name = Field(description="The name of the environment variable with the secret")
    channels: tuple[str, ...] | None = Field(None, min_length=1, description="The ids of the channels; absent: any")
    url: Name = Field(DISCORD_URL, description="Another address of the service")


class BlueskyTable(Table, of=BlueskyEndpoint):
    """``endpoints.bluesky``."""

    handle: Name = Field(description="The account that sends")
    password_env: Name = Field(description="The name of the environment variable with the secret")
    handles: tuple[str, ...] | None = Field(
        None, min_length=1, description="The accounts that may get posts; absent: all"
    )
    url: Name = Field(BLUESKY_URL, description="Another address of the service")


class EndpointsTable(Table, of=Endpoints):
    """``[workspace] endpoints``."""

    user: Annotated[bool, Form(lambda: table({}), None, lambda _: {})] = Field(
        False, description="The person whom the agent works for"
    )
    agent: AgentEndpoint | None = Field(None, description="Other agents")
    groups: Mapping[str, Annotated[tuple[Name, ...], Field(min_length=1)]] = Field(
        {}, min_length=1, alias="group", description="Groups of agents, `NAME = [agents]`"
    )
    discord: DiscordEndpoint | None = Field(None, description="Channels of Discord")
    bluesky: BlueskyEndpoint | None = Field(None, description="Accounts of Bluesky")


def read_endpoints(row: Row, agents: Collection[str]) -> Endpoints:
    """Read the endpoints; ``agents``: the ids that they may name. Faulty ones are reported and left out."""
    read_keys(row, EndpointsTable, "`endpoints` of `[workspace]`")
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
    read_keys(row, AgentEndpointTable, "the endpoint `agent`")
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
    found = row.words(key)
    if found is not None:
        _check_words(row, key, found)
    for index, agent_id in enumerate(found or ()):
        if agent_id not in known:
            near, message = row.report.near(agent_id, known), f"no agent is named {shown(agent_id)}"
            row.report.error(row.at(key, index), "unknown-agent", message, near=near)
    return found or ()


def _discord(row: Row) -> DiscordEndpoint | None:
    found = read_keys(row, DiscordTable, "the endpoint `discord`")
    _check_variable(row, "token_env", found, _SECRET)
    _check_each(row, "channels", found, _CHANNEL, "the id of a channel is a number, written as text")
    _check_address(row, found)
    return DiscordEndpoint(**found) if "token_env" in found else None


def _bluesky(row: Row) -> BlueskyEndpoint | None:
    found = read_keys(row, BlueskyTable, "the endpoint `bluesky`")
    if not _HANDLE.fullmatch(found.get("handle", "name.example.com")):
        row.fault("handle", "bad-value", _BAD_HANDLE)
    _check_variable(row, "password_env", found, _SECRET)
    _check_each(row, "handles", found, _HANDLE, _BAD_HANDLE)
    _check_address(row, found)
    return BlueskyEndpoint(**found) if {"handle", "password_env"} <= found.keys() else None


def _check_variable(row: Row, key: str, found: dict[str, Any], message: str) -> None:
    """Report and drop a text that is no name of an environment variable."""
    if key in found and not VARIABLE.fullmatch(found[key]):
        row.fault(key, "bad-value", f"`{key}` is the name of {message}")
        del found[key]


def _check_words(row: Row, key: str, words: tuple[str, ...]) -> None:
    """Report a list with a repeated word, and an empty list, which permits nobody."""
    if not words or len(set(words)) < len(words):
        row.fault(key, "bad-value", f"`{key}` names one or more, each once")


def _check_each(row: Row, key: str, found: Mapping[str, Any], pattern: re.Pattern[str], message: str) -> None:
    if key in found:
        _check_words(row, key, found[key])
    for index, word in enumerate(found.get(key, ())):
        if not pattern.fullmatch(word):
            row.report.error(row.at(key, index), "bad-value", message)


def _check_address(row: Row, found: Mapping[str, Any], key: str = "url", why: str = "the secret is sent there") -> None:
    """Report a value that is no address, or would send a secret unencrypted to another machine."""
    if (url := found.get(key)) is None:
        return
    target = parse_url(url, allow_private=True)
    if isinstance(target, UrlRefused) or {"?", "#"} & set(url):
        row.fault(key, "bad-value", f"`{key}` is the address of a server: `https://host/path`")
    elif target.scheme != "https" and not _is_this_machine(target.host):
        row.fault(key, "bad-value", f"`{key}` begins with `https://`, since {why}")


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


MAX_PROVIDERS = 10
_ENGINES = {str(engine): engine for engine in SearchEngine}
_NEEDS = {SearchEngine.SEARXNG: ("url",), SearchEngine.GOOGLE: ("api_key_env", "engine_id_env")}
_CALLED = {SearchEngine.SEARXNG: "SearXNG", SearchEngine.GOOGLE: "Google"}


class ProviderTable(Table, of=SearchProvider):
    """An entry of ``search``."""

    engine: SearchEngine
    url: Name | None = Field(None, description="Its address; SearXNG needs one")
    api_key_env: Name | None = Field(None, description="The name of the environment variable with the value")
    engine_id_env: Name | None = Field(None, description="The name of the environment variable with the value")


def _providers_shape() -> Shape:
    keys = {key: one.shape for key, one in keys_of(ProviderTable).items()}
    entries: list[JsonValue] = [
        table({**keys, "engine": one_of([engine])}, "engine", *_NEEDS.get(engine, ())) for engine in SearchEngine
    ]
    return several({"anyOf": [one_of([SearchEngine.DUCKDUCKGO]), *entries]}, 1, MAX_PROVIDERS)


def _plain_provider(provider: SearchProvider) -> object:
    """The name of the engine alone, if everything else is as usual."""
    keys = plain(provider)
    return keys["engine"] if len(keys) == 1 else keys


class RootsTable(Table, of=Roots):
    """``[workspace] roots``."""

    shared: Name | None = Field(None, description="Read and written; where paths without a root's name begin")
    tmp: Name | None = Field(None, description="Read and written")
    vault: Name | None = Field(None, description="Files can only be copied out of it")


class WebTable(Table, of=Web):
    """``[workspace] web``."""

    allow_private: bool = Field(False, description="Allow addresses of private networks and of this machine")
    search: Annotated[
        tuple[SearchProvider, ...], Form(_providers_shape, None, lambda held: list(map(_plain_provider, held)))
    ] = Field(Web().search, description="The search engines, in the order to ask them")


class ShellTable(Table, of=ShellSettings):
    """``[workspace] shell``."""

    backend: ShellBackend = Field(ShellBackend.DISABLED, description="The runner of shell commands")
    allow: tuple[str, ...] = Field(
        (), description="Programs, or programs with their first words; `NAME=`: a variable that may be set"
    )
    ask: tuple[str, ...] = Field((), description="Programs, or programs with their first words, that ask first")
    deny: tuple[str, ...] = Field((), description="Those that may not be started, whatever `allow` and `ask` say")
    allow_substitution: bool = Field(False, description="Allow `$(...)` in commands")
    confine: Confine = Field(
        Confine.POLICY, description="`policy`: levels and hosts hold for whatever a command starts; `none`: they do not"
    )


class MemoryTable(Table, of=MemoryWeights):
    """``[workspace] memory``."""

    vector: float = Field(0.7, ge=0, le=1, description="The weight of a note's meaning")
    text: float = Field(0.3, ge=0, le=1, description="The weight of its words; both add up to 1")


MOST_ANSWERERS = 20
"""The most addresses that may answer by links."""


class QuestionsTable(Table, of=Questions):
    """``[workspace] questions``."""

    wait_s: Seconds = Field(
        Questions().wait_s, alias="wait", description="How long the question of a suspended call may wait for an answer"
    )
    remind_s: Seconds = Field(
        Questions().remind_s, alias="remind", description="After how long a question that still waits is called due"
    )
    answer_by: tuple[str, ...] = Field(
        (),
        max_length=MOST_ANSWERERS,
        description="Who may answer by a link: `mailto:ADDRESS`, or `slack:VARIABLE` with the URL of a webhook",
    )
    link_base: Name | None = Field(None, description="The URL where the links begin: `https://host/path`")


class WorkspaceTable(Table):
    """``[workspace]``."""

    roots: Roots = Field(Roots(), description="Folders for the tools of files, relative to this file")
    web: Web = Field(Web(), description="The reach of web tools")
    shell: ShellSettings = Field(ShellSettings(), description="The programs that shell commands may start")
    endpoints: Endpoints = Field(Endpoints(), description="The places where messages may go")
    memory: MemoryWeights = Field(MemoryWeights(), description="The ranking of notes")
    questions: Questions = Field(Questions(), description="How long questions of suspended calls wait, and who answers")
    closed: tuple[Name, ...] = Field(
        (), description="Files and folders that no tool touches: relative to this file, `/...` or `~/...`"
    )


MOST_WAIT_S = 366 * 86_400.0
"""The longest wait of a question."""
_MARGIN = 1e-6


class WorkspaceKeys(TypedDict):
    """The values of ``[workspace]``, by the names of the policy's own fields."""

    roots: Roots
    web: Web
    shell: ShellSettings
    endpoints: Endpoints
    memory: MemoryWeights
    questions: Questions
    closed: tuple[str, ...]


def read_workspace(row: Row | None, agents: Collection[str]) -> WorkspaceKeys:
    """Read the table; without it, return the defaults. ``agents``: the ids that it may name."""
    row = row or Row({}, (), Report())
    read_keys(row, WorkspaceTable, "`[workspace]`")
    roots, web, shell, endpoints = map(row.table, ("roots", "web", "shell", "endpoints"))
    memory, questions = map(row.table, ("memory", "questions"))
    return WorkspaceKeys(
        roots=_roots(roots) if roots else Roots(),
        web=_web(web) if web else Web(),
        shell=_shell(shell) if shell else ShellSettings(),
        endpoints=read_endpoints(endpoints, agents) if endpoints else Endpoints(),
        memory=_memory(memory) if memory else MemoryWeights(),
        questions=_questions(questions) if questions else Questions(),
        closed=_closed_places(row),
    )


def _questions(row: Row) -> Questions:
    """Times, addresses and links; a question waits for some time, and for a year at most."""
    found = read_keys(row, QuestionsTable, "`questions` of `[workspace]`")
    for field, key in (("wait_s", "wait"), ("remind_s", "remind")):
        if not 0 < found.get(field, 1) <= MOST_WAIT_S:
            row.fault(key, "bad-value", f"`{key}` is more than no time, and at most a year")
            del found[field]
    if found.get("answer_by"):
        _check_each(row, "answer_by", found, _ANSWERER, _BAD_ANSWERER)
    if len(found.get("answer_by", ())) > MOST_ANSWERERS:
        row.fault("answer_by", "bad-value", f"`answer_by` names at most {MOST_ANSWERERS}")
    _check_address(row, found, "link_base", "whoever reads a link can answer")
    return Questions(**found)


def _closed_places(row: Row) -> tuple[str, ...]:
    """Read the places as written."""
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
    """Read the weights; if one is missing, it is the other's complement to 1."""
    found = read_keys(row, MemoryTable, "`memory` of `[workspace]`")
    vector, text = found.get("vector"), found.get("text")
    if vector is None:
        vector = MemoryWeights().vector if text is None else round(1 - text, 6)
    text = round(1 - vector, 6) if text is None else text
    if abs(vector + text - 1) > _MARGIN:
        row.fault("text", "bad-value", f"`vector` and `text` are 1 together, and these are {vector + text:g}")
        return MemoryWeights()
    return MemoryWeights(vector, text)


def _web(row: Row) -> Web:
    web = Web(**read_keys(row, WebTable, "`web` of `[workspace]`"))
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
            if (engine := option(entry, path, row.report, what, _ENGINES)) is None:
                continue
            one, keys = Row({}, path, row.report), {"engine": engine}
        elif isinstance(entry, dict):
            one = Row(cast("Raw", entry), path, row.report)
            keys = read_keys(one, ProviderTable, what)
        else:
            row.report.error(path, "wrong-type", f"{what} must be text or a table, not {kind_of(entry)}")
            continue
        if (provider := _provider(one, keys)) is not None:
            found.append(provider)
    return Web(web.allow_private, tuple(found))


def _provider(row: Row, keys: dict[str, Any]) -> SearchProvider | None:
    if (engine := keys.get("engine")) is None:
        return None
    _check_variable(row, "api_key_env", keys, _VALUE)
    _check_variable(row, "engine_id_env", keys, _VALUE)
    url = keys.get("url")
    if url is not None and (isinstance(parse_url(url, allow_private=True), UrlRefused) or {"?", "#"} & set(url)):
        row.fault("url", "bad-value", "`url` is the address of a search engine: `https://host/path`")
    for needed in _NEEDS.get(engine, ()):
        if not row.require(needed, _CALLED[engine]):
            break
    return SearchProvider(**keys)


def _shell(row: Row) -> ShellSettings:
    found = read_keys(row, ShellTable, "`[workspace] shell`")
    entries = {key: _check_entries(row, key, found) for key in ("allow", "ask", "deny")}
    for key in ("allow", "ask"):
        for index, entry in entries[key].items():
            by = next((one for one in entries["deny"].values() if entry.is_within(one)), None)
            if by is not None:
                message = f"{shown(found[key][index])} never counts: `deny` names `{' '.join((by.program, *by.words))}`"
                row.report.warning(row.at(key, index), "never-allowed", message)
    return ShellSettings(**found)


def _check_entries(row: Row, key: str, found: Mapping[str, Any]) -> dict[int, Entry]:
    """Return the entries of a list; report those that could never match, or stand there twice."""
    seen: dict[Entry, str] = {}
    entries: dict[int, Entry] = {}
    for index, text in enumerate(found.get(key, ())):
        try:
            entry = read_entry(text)
        except ValueError as fault:
            row.report.error(row.at(key, index), "bad-value", f"{shown(text)} {fault}")
            continue
        entries[index] = entry
        if key != "allow" and entry.ends:
            message = f"{shown(text)}: `{key}` counts for all that begins so; leave out ` $`"
            row.report.error(row.at(key, index), "bad-value", message)
        if key == "ask" and entry.program.endswith("="):
            row.report.error(row.at(key, index), "bad-value", f"{shown(text)}: a variable is allowed or denied")
        if seen.setdefault(entry, text) is not text:
            message = f"{shown(text)} stands here already: {shown(seen[entry])}"
            row.report.error(row.at(key, index), "duplicate", message)
    return entries


def _roots(row: Row) -> Roots:
    """Read the folders; one root inside another would bypass the other's purpose."""
    roots = Roots(**read_keys(row, RootsTable, "the roots of `[workspace]`"))
    normal: dict[str, str] = {}
    for name, folder in roots.folders.items():
        if why := path_error(folder):
            row.fault(name, "bad-value", f"the folder of root `{name}` {why}")
            continue
        path = posixpath.normpath(folder)
        if (other := next((one for one, held in normal.items() if overlap(path, held)), None)) is not None:
            message = f"the roots `{other}` and `{name}` may not lie in each other: {shown(folder)}"
            row.fault(name, "roots-overlap", message)
        normal[name] = path
    return roots


def overlap(one: str, other: str) -> bool:
    """Tell whether two normal paths are equal, or one lies below the other."""
    first, second = _parts(one), _parts(other)
    shorter = min(len(first), len(second))
    return first[:shorter] == second[:shorter] and one.startswith("/") == other.startswith("/")


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]
