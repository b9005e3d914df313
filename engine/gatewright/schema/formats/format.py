"""What a provider's format does with a tool. It knows no provider."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gatewright.schema.walk import Schema

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class ToolListing:
    """A tool as an agent sees it, before any provider's spelling."""

    name: str
    description: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class ProviderLint:
    """What a provider would refuse or ignore, and what to do. ``code`` is stable and kebab-case."""

    code: str
    message: str
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """One provider's spelling: ``render`` gives a JSON object, ``lints`` says what the provider would not take."""

    name: str
    render: Callable[[ToolListing], dict[str, Any]]
    lints: Callable[[ToolListing], tuple[ProviderLint, ...]]


def name_lints(listing: ToolListing, provider: str) -> tuple[ProviderLint, ...]:
    """A lint for a name that providers of function calling refuse."""
    if _NAME.fullmatch(listing.name):
        return ()
    rule = f"{provider} takes names of 1 to 64 letters, digits, `_` and `-`"
    message = f"{rule}; `{listing.name[:80]}` is none, rename the tool"
    return (ProviderLint("name", message),)
