"""The vocabulary of a policy: verdicts, tiers, levels, tool names; hosts, path prefixes, endpoints.

Each tier and each level gives a verdict: allow, ask or deny. In the fixed table of levels, partner and human both mean
"ask before any writing". A tool is written as ``name`` or ``name@major``, all tools of a catalog as ``catalog:ID``; no
name of a tool has a colon.

Host patterns are ``*``, ``x.com``, ``*.x.com`` (x.com too), each with or without ``:port``. Names compare as A-labels
in lower case, addresses as addresses. Prefixes compare by whole components of canonical paths. Endpoints are those of
``[workspace] endpoints``, by target.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from functools import lru_cache
from typing import Protocol, TypeVar

from gatewright.arguments.url import Host, HostRefused, read_host
from gatewright.base.frozen import frozen


class Word(StrEnum):
    """A closed set of words that hash as plain text, in a fifth of the time that an enum takes."""

    __hash__ = str.__hash__


class Verdict(Word):
    """The outcome of a decision; the order of strictness is allow < ask < deny."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def words(self) -> str:
        """The app's word for the verdict."""
        return "ask first" if self is Verdict.ASK else self.value


class Mode(Word):
    """The effect of denials and asks: enforced, or only noted in the log for a time."""

    ENFORCE = "enforce"
    OBSERVE = "observe"


STRICTNESS = {verdict: rank for rank, verdict in enumerate(Verdict)}


def strictest(*verdicts: Verdict) -> Verdict:
    """The strictest of the verdicts; allow without any."""
    return max(verdicts, key=STRICTNESS.__getitem__, default=Verdict.ALLOW)


@lru_cache
def stricter(verdicts: frozenset[Verdict], than: Verdict) -> frozenset[Verdict]:
    """The verdicts that are stricter than ``than``."""
    return frozenset(verdict for verdict in verdicts if STRICTNESS[verdict] > STRICTNESS[than])


class SafetyTier(Word):
    """The power of an operation, from the least to the most; spelt as in the policy file's ``approvals``."""

    READ_ONLY = "read_only"
    SIDE_EFFECTING = "side_effecting"
    PRIVILEGED = "privileged"


TIER_DEFAULTS = {
    SafetyTier.READ_ONLY: Verdict.ALLOW,
    SafetyTier.SIDE_EFFECTING: Verdict.ALLOW,
    SafetyTier.PRIVILEGED: Verdict.ASK,
}
"""The verdict on a tier without an ``approvals`` key."""


def deciding_keys(tool: _Named, operation: str, tier: SafetyTier) -> tuple[str, ...]:
    """The keys of ``approvals`` that may decide an operation, the most specific first."""
    wide = tool.name, selector_of(tool.origin), str(tier)
    return (f"{tool.name}.{operation}", *wide) if operation else wide


class Permission(Word):
    """A level, from none (not even read or listed) to admin (delete too)."""

    NONE = "none"
    READ_ONLY = "read_only"
    ASK = "ask"
    PARTNER = "partner"
    HUMAN = "human"
    APPEND = "append"
    READ_WRITE = "read_write"
    ADMIN = "admin"


class Action(Word):
    """The effect of an operation on a file or block, the mildest first."""

    READ = "read"
    APPEND = "append"
    OVERWRITE = "overwrite"
    DELETE = "delete"


class PathUse(Word):
    """How a tool uses a path argument; none: the argument is no path."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    NONE = "none"

    @property
    def action(self) -> Action:
        """The action that a level must permit; a write may also overwrite."""
        return {PathUse.DELETE: Action.DELETE, PathUse.WRITE: Action.OVERWRITE}.get(self, Action.READ)


_ROWS = {
    Permission.NONE: (Verdict.DENY, Verdict.DENY, Verdict.DENY, Verdict.DENY),
    Permission.READ_ONLY: (Verdict.ALLOW, Verdict.DENY, Verdict.DENY, Verdict.DENY),
    Permission.ASK: (Verdict.ASK, Verdict.ASK, Verdict.ASK, Verdict.ASK),
    Permission.PARTNER: (Verdict.ALLOW, Verdict.ASK, Verdict.ASK, Verdict.ASK),
    Permission.HUMAN: (Verdict.ALLOW, Verdict.ASK, Verdict.ASK, Verdict.ASK),
    Permission.APPEND: (Verdict.ALLOW, Verdict.ALLOW, Verdict.DENY, Verdict.DENY),
    Permission.READ_WRITE: (Verdict.ALLOW, Verdict.ALLOW, Verdict.ALLOW, Verdict.ASK),
    Permission.ADMIN: (Verdict.ALLOW, Verdict.ALLOW, Verdict.ALLOW, Verdict.ALLOW),
}
LEVEL_VERDICTS = {(level, action): row[at] for level, row in _ROWS.items() for at, action in enumerate(Action)}
"""The verdict of each level on each action."""


def verdict_for(level: Permission, action: Action) -> Verdict:
    """The verdict of ``level`` on ``action``."""
    return LEVEL_VERDICTS[level, action]


def reads_freely(level: Permission) -> bool:
    """Tell whether ``level`` lets a call read without a question, so that it may be read together with others."""
    return LEVEL_VERDICTS[level, Action.READ] is Verdict.ALLOW


def is_more_open(level: Permission, than: Permission) -> bool:
    """Tell whether ``level`` gives some action a milder verdict than ``than``."""
    return any(
        STRICTNESS[LEVEL_VERDICTS[level, action]] < STRICTNESS[LEVEL_VERDICTS[than, action]] for action in Action
    )


ANY_TOOL = "*"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}")
_DIGITS = 9
"""The most digits of a major; a longer number belongs to the name, since Python refuses to read thousands of digits."""


def tool_name_fault(name: object) -> str:
    """The fault of a ``name`` that policies and protocols cannot write; empty for a valid name."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return ""
    return f"`{name}` is no tool name: letters, digits, `_`, `-`, `.`, `/`, up to 128, a letter, digit or `_` first"


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def major(self) -> int: ...
    @property
    def origin(self) -> str: ...


_Tool = TypeVar("_Tool", bound=_Named)
_SELECTOR = "catalog:"


def selector_of(catalog_id: str) -> str:
    """The words for all tools of a catalog, ``catalog:ID``."""
    return _SELECTOR + catalog_id


def selected_catalog(written: str) -> str | None:
    """The id in ``catalog:ID``; None for the name of a tool."""
    return written.removeprefix(_SELECTOR) if written.startswith(_SELECTOR) else None


def split_name(written: str) -> tuple[str, int | None]:
    """``("recall", 2)`` for ``recall@2``; the major is None for a bare name, a tail that is no number, and
    ``catalog:ID``.
    """
    name, at, major = written.rpartition("@")
    is_major = at and name and major.isdecimal() and major.isascii() and len(major) <= _DIGITS
    return (name, int(major)) if is_major and not name.startswith(_SELECTOR) else (written, None)


def names_tool(written: str, tool: _Named) -> bool:
    """Tell whether ``written`` (bare, ``name@major``, ``catalog:ID`` or ``*``) names that tool."""
    if written.startswith(_SELECTOR):
        return written == selector_of(tool.origin)
    if "@" not in written:
        return written in (tool.name, ANY_TOOL)
    name, wanted = split_name(written)
    return name == tool.name and wanted in {None, tool.major}


def bare_names(written: Iterable[str], catalog: Iterable[_Named]) -> frozenset[str]:
    """The bare names behind ``written``; for ``catalog:ID`` those of all its tools in ``catalog``."""
    found = {split_name(one)[0] for one in written}
    chosen = {one for one in found if one.startswith(_SELECTOR)}
    if chosen:
        found -= chosen
        found |= {tool.name for tool in catalog if selector_of(tool.origin) in chosen}
    return frozenset(found)


def pick_tools(catalog: Iterable[_Tool], listed: tuple[str, ...] | None) -> dict[str, _Tool]:
    """Pick one major per name, in catalog order: the one that ``listed`` names as ``name@major``, else the highest."""
    asked_for = [split_name(written) for written in listed or () if "@" in written]
    wanted = {name: major for name, major in asked_for if major is not None}
    chosen: dict[str, _Tool] = {}
    for facts in catalog:
        held = chosen.get(facts.name)
        asked = wanted.get(facts.name) if held is not None else None
        if held is None or facts.major == asked or (facts.major > held.major and held.major != asked):
            chosen[facts.name] = facts
    return chosen


EVERY_HOST = "*"
_WITH_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*):([^:\]]*)")


@frozen
class _Pattern:
    """A host pattern in parts.

    ``host`` None: every host; ``below``: also the names that end in it; ``port`` None: every port.
    """

    host: Host | None
    below: bool
    port: int | None


def check_host_pattern(text: str) -> str | None:
    """The fault of a host pattern, or None."""
    read = _read(text)
    return read if isinstance(read, str) else None


def host_matches(pattern: str, host: str, port: int) -> bool:
    """Tell whether ``pattern`` covers ``host``, with or without brackets, at ``port``.

    A malformed pattern covers nothing.
    """
    read, given = _read(pattern), _host(host)
    if isinstance(read, str) or given is None or read.port not in {None, port}:
        return False
    if read.host is None or read.host == given:
        return True
    return read.below and given.address is None and given.text.endswith(f".{read.host.text}")


def is_every_host(pattern: str) -> bool:
    """Tell whether ``pattern`` covers every host and port."""
    read = _read(pattern)
    return not isinstance(read, str) and read.host is None and read.port is None


@lru_cache(maxsize=4096)
def _read(text: str) -> _Pattern | str:
    """Read a pattern; a malformed one returns its fault as a text."""
    if "/" in text or "@" in text:
        return "a host pattern is a host without scheme, user or path"
    if text.count(":") > 1 and not text.startswith("["):
        return "an IPv6 address stands in brackets"
    port: int | None = None
    found = _WITH_PORT.fullmatch(text)
    name = found[1] if found is not None else text
    if found is not None:
        port = int(found[2]) if re.fullmatch(r"[0-9]{1,5}", found[2]) else 0
        if not 0 < port < 65536:
            return "the port of a host pattern is a number from 1 to 65535"
    if name == EVERY_HOST:
        return _Pattern(None, below=False, port=port)
    below = name.startswith("*.")
    rest = name[2:] if below else name
    if "*" in rest:
        return "`*` stands alone, or as `*.` before a name"
    host = read_host(rest)
    if isinstance(host, HostRefused):
        return host.reason
    if below and host.address is not None:
        return "`*.` stands before a name, not before an address"
    return _Pattern(host, below, port)


def _host(text: str) -> Host | None:
    host = read_host(f"[{text}]" if ":" in text and not text.startswith("[") else text)
    return host if isinstance(host, Host) else None


def check_prefix(text: str) -> str | None:
    """The fault of a prefix as written, or None.

    A prefix may contain ``..``, since the folder that it starts from is not known here.
    """
    if not text:
        return "a prefix is empty; `.` is the folder of the policy file"
    if "\0" in text:
        return "a prefix holds a NUL"
    if "\\" in text:
        return "names in a prefix are separated by `/`"
    if text.startswith("~"):
        return "`~` is not expanded in a prefix"
    return None


def covers(prefix: str, path: str) -> bool:
    """Tell whether ``path`` is ``prefix`` or lies below it; both must be absolute or both relative.

    A path with ``..`` is not canonical and never lies below a prefix.
    """
    if prefix.startswith("/") != path.startswith("/"):
        return False
    wanted, given = _parts(prefix), _parts(path)
    if ".." in wanted or ".." in given:
        return False
    return given[: len(wanted)] == wanted


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def common_depth(prefix: str, path: str) -> int:
    """The number of leading components that both paths share."""
    depth = 0
    for one, other in zip(_parts(prefix), _parts(path), strict=False):
        if one != other:
            break
        depth += 1
    return depth


TARGETS = ("user", "agent", "group", "discord", "bluesky")
"""The possible targets of a message; each needs an endpoint of its name."""
DISCORD_URL = "https://discord.com/api/v10"
BLUESKY_URL = "https://bsky.social"


@frozen
class AgentEndpoint:
    """The inboxes of other agents. ``agents``: only these; None means all agents of the policy."""

    agents: tuple[str, ...] | None = None


@frozen
class DiscordEndpoint:
    """A bot on Discord; ``token_env`` names the environment variable with its token.

    ``channels``: the ids of the channels that it may write to; None means all that Discord permits. ``url``: the
    address of Discord, if not the usual one.
    """

    token_env: str
    channels: tuple[str, ...] | None = None
    url: str = DISCORD_URL


@frozen
class BlueskyEndpoint:
    """The account ``handle`` on Bluesky; ``password_env`` names the environment variable with its app password.

    ``handles``: the accounts that its posts may address; None: any. ``url``: the server of the account.
    """

    handle: str
    password_env: str
    handles: tuple[str, ...] | None = None
    url: str = BLUESKY_URL


@frozen
class Endpoints:
    """``[workspace] endpoints``. ``user``: the program that runs the agents passes messages to the user.

    ``groups``: agents whose inboxes get one message together, by the name of the group.
    """

    user: bool = False
    agent: AgentEndpoint | None = None
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], hash=False)
    discord: DiscordEndpoint | None = None
    bluesky: BlueskyEndpoint | None = None

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets with an endpoint, in the order of `TARGETS`."""
        there = (self.user, self.agent, self.groups, self.discord, self.bluesky)
        return tuple(target for target, one in zip(TARGETS, there, strict=True) if one)

    @property
    def outside(self) -> dict[str, str]:
        """The targets with an endpoint at a service, each with its address."""
        there = {"discord": self.discord, "bluesky": self.bluesky}
        return {target: one.url for target, one in there.items() if one is not None}

    def definition(self, target: str) -> str:
        """The facts about a service that somebody must trust: its address, the secret that it gets, and the
        recipients.
        """
        if target == "discord" and (one := self.discord) is not None:
            whom = "every channel" if one.channels is None else f"the channels {', '.join(one.channels)}"
            return f"{one.url}\nwith the token in {one.token_env}, for {whom}"
        if target == "bluesky" and (other := self.bluesky) is not None:
            whom = "every account" if other.handles is None else f"the accounts {', '.join(other.handles)}"
            return f"{other.url}\nas {other.handle}, with the app password in {other.password_env}, for {whom}"
        return ""

    @property
    def agents(self) -> frozenset[str]:
        """Every agent that the endpoints name."""
        named = (self.agent.agents or ()) if self.agent is not None else ()
        return frozenset(named).union(*self.groups.values())

    def recipients(self, agents: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
        """The permitted recipients of each target that limits them; ``agents``: the agents of the policy."""
        found = {
            "agent": None if self.agent is None else tuple(agents) if self.agent.agents is None else self.agent.agents,
            "group": tuple(self.groups) or None,
            "discord": self.discord and self.discord.channels,
            "bluesky": self.bluesky and self.bluesky.handles,
        }
        return {target: whom for target, whom in found.items() if whom is not None}


def need_of(target: str) -> str:
    """The need of tools that send messages to that target, as `Policy.provides` names it."""
    return f"endpoint {target}"


EVERY_ENDPOINT = tuple(map(need_of, TARGETS))
"""The needs that any single endpoint meets."""
