"""Coding agents that run their tools themselves and ask a hook before each call: one module for each.

A host turns its own message into a `HostEvent` and a `HostAnswer` into the words that it obeys; the resident gate
decides between the two and knows no host.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from importlib import import_module
from types import MappingProxyType
from typing import Protocol

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.verdict import Verdict


class EventKind(StrEnum):
    """The moments of which a host tells its hook. ``other``: one that asks for no decision."""

    BEFORE = "before"
    AFTER = "after"
    FAILED = "failed"
    END = "end"
    OTHER = "other"


@frozen
class HostEvent:
    """One message of a host.

    ``tool``: its own name of the tool, ``arguments``: as the model gave them. ``conversation``: the id of its session;
    ``call_id``: its id of the call, empty if it gives none. ``folder``: where the host works. ``child``: the kind of
    the sub-agent that calls, empty for the agent itself. ``is_attended``: a person sits before the host and can answer
    a question there. ``result``: of a call that ended.
    """

    kind: EventKind
    tool: str = ""
    arguments: Mapping[str, JsonValue] = MappingProxyType({})
    conversation: str = ""
    call_id: str = ""
    folder: str = ""
    child: str = ""
    is_attended: bool = False
    result: JsonValue = None


@frozen
class HostAnswer:
    """The decision on a call before it runs. ``reason``: for the model, and for the person who is asked.

    ``arguments``: those that run in place of the model's, for a host that takes them.
    """

    verdict: Verdict
    reason: str = ""
    arguments: Mapping[str, JsonValue] | None = None


@frozen
class Reply:
    """The end of a hook's process, as the host reads it."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


@frozen
class Enforcement:
    """The decisions that a host really carries out.

    ``asks``: it can put a question to its person. ``changes``: its tools whose changed arguments run. ``fails_closed``:
    a hook that crashes or is too slow blocks the call. ``needs_trust``: it silently skips hooks that its person has not
    reviewed. ``open_ways``: the ways past the hook, each as a sentence for the operator.
    """

    asks: bool
    changes: frozenset[str]
    fails_closed: bool
    needs_trust: bool = False
    open_ways: tuple[str, ...] = ()


class Host(Protocol):
    """One coding agent."""

    host_id: str
    """As in ``[[catalogs]] id`` and on the command line."""
    title: str
    prefix: str
    """Of its built-in tools in a policy: ``prefix.name``."""
    enforcement: Enforcement
    shells: Mapping[str, str]
    """Its tools that run a command, each with the argument that holds it."""

    def read(self, message: Mapping[str, JsonValue]) -> HostEvent:
        """Read a message of the host. Raises ValueError for one that lacks what a decision needs."""
        ...

    def reply(self, event: HostEvent, answer: HostAnswer) -> Reply:
        """Spell an answer for the host. A question that it cannot ask becomes a denial."""
        ...


_MODULES = {
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini-cli": "gemini_cli",
    "opencode": "opencode",
    "copilot": "copilot",
    "cursor": "cursor",
    "vscode": "vscode",
}
HOST_IDS = tuple(_MODULES)


def load_host(host_id: str) -> Host:
    """Load the module of a host. Raises KeyError for an unknown id."""
    module = import_module(f"gatewright.adapters.hosts.{_MODULES[host_id]}")
    host: Host = module.HOST
    return host
