"""Reading ``endpoints`` of ``[workspace]``: where messages may go. It connects to nothing."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

from gatewright.arguments.url import UrlRefused, parse_url
from gatewright.base.regex import late_regex
from gatewright.base.report import shown
from gatewright.base.row import Row, name_error
from gatewright.base.shape import NAME, TEXT, Shape, by_name, several, table, told
from gatewright.policy.endpoint import (
    BLUESKY_URL,
    DISCORD_URL,
    TARGETS,
    AgentEndpoint,
    BlueskyEndpoint,
    DiscordEndpoint,
    Endpoints,
)

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
    token, channels = _variable(row, "token_env", "discord"), _words(row, "channels")
    _each(row, "channels", channels, _CHANNEL, "the id of a channel is a number, written as text")
    url = _address(row, DISCORD_URL)
    return None if token is None else DiscordEndpoint(token, channels, url)


def _bluesky(row: Row) -> BlueskyEndpoint | None:
    row.only(BLUESKY_KEYS, "the endpoint `bluesky`")
    handle = row.text("handle") if row.require("handle", "the endpoint `bluesky`") else None
    if handle is not None and not _HANDLE.fullmatch(handle):
        row.fault("handle", "bad-value", _BAD_HANDLE)
    password, handles = _variable(row, "password_env", "bluesky"), _words(row, "handles")
    _each(row, "handles", handles, _HANDLE, _BAD_HANDLE)
    url = _address(row, BLUESKY_URL)
    return None if handle is None or password is None else BlueskyEndpoint(handle, password, handles, url)


def _variable(row: Row, key: str, target: str) -> str | None:
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
