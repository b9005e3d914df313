"""Host patterns of an allowlist: ``*``, ``x.com``, ``*.x.com`` (x.com too), each perhaps with ``:port``.

Names are compared as A-labels in lower case, addresses as addresses. It resolves nothing and knows no URL.
"""

from __future__ import annotations

import re
from functools import lru_cache

from gatewright.base.frozen import frozen
from gatewright.base.host import Host, HostRefused, read_host

EVERY_HOST = "*"
_WITH_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*):([^:\]]*)")


@frozen
class _Pattern:
    """``host`` None: every one; ``below``: names that end in it too; ``port`` None: every one."""

    host: Host | None
    below: bool
    port: int | None


def check_host_pattern(text: str) -> str | None:
    """What is wrong with a host pattern, or None."""
    read = _read(text)
    return read if isinstance(read, str) else None


def host_matches(pattern: str, host: str, port: int) -> bool:
    """Whether ``pattern`` covers ``host``, brackets or not, at ``port``. What is no pattern or no host never does."""
    read, given = _read(pattern), _host(host)
    if isinstance(read, str) or given is None or read.port not in {None, port}:
        return False
    if read.host is None or read.host == given:
        return True
    return read.below and given.address is None and given.text.endswith(f".{read.host.text}")


def is_every_host(pattern: str) -> bool:
    """Whether ``pattern`` leaves nothing out."""
    read = _read(pattern)
    return not isinstance(read, str) and read.host is None and read.port is None


@lru_cache(maxsize=4096)
def _read(text: str) -> _Pattern | str:
    """The pattern, or what is wrong with it."""
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
