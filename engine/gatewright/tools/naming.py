"""What names and versions of tools, operations and parameters may look like."""

from __future__ import annotations

import re
from functools import lru_cache

from gatewright.base.errors import RegistrationError
from gatewright.policy.verdict import tool_name_fault

_OPERATION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_SEMVER = re.compile(
    r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})"
    r"(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def check_tool_name(name: object) -> None:
    """Raises RegistrationError unless ``name`` is one that policies and protocols can write."""
    if why := tool_name_fault(name):
        raise RegistrationError(why)


def check_operation_name(name: str, tool_name: str) -> None:
    """Raises RegistrationError unless ``name`` is one that a policy can write."""
    if not _OPERATION.fullmatch(name):
        raise RegistrationError(
            f"`{name}` of tool `{tool_name}` is no operation name: letters, digits, `_`, `-`, `.`, up to 64"
        )


@lru_cache(maxsize=4096)
def major_of(version: str, tool_name: str) -> int:
    """The major number of a semantic version (semver.org, 2.0.0). Raises RegistrationError for any other text."""
    found = _SEMVER.fullmatch(version)
    if found is None:
        raise RegistrationError(f"version `{version}` of tool `{tool_name}` is not of the form `1.2.3`")
    return int(found[1])
