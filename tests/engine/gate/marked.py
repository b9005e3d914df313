"""Tools whose parameters are marked, for the tests of the arguments, capability, policy and permission stages."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from gatewright.policy.verdict import SafetyTier
from gatewright.tools import (
    FileParameter,
    HostParameter,
    Normalization,
    ResultType,
    SideEffect,
    TableParameter,
    Tool,
    UrlParameter,
    VariableParameter,
    operation,
    tool,
)
from gatewright.tools.context import ToolExecutionContext

_KIND: dict[str, Any] = {
    "safety_tier": SafetyTier.READ_ONLY,
    "result_type": ResultType.ARRAY,
    "normalization": Normalization.JSON,
}


@tool(required_capabilities=("EnvRead",), **_KIND)
async def settings_row(
    table: Annotated[str, TableParameter()], name: Annotated[str, VariableParameter()] | None = None
) -> list[str]:
    """Read the settings that a table and the environment hold.

    Args:
        table: Which table.
        name: Which variable.
    """
    return [table, name or ""]


@tool(side_effects=frozenset({SideEffect.NET_READ}), **_KIND)
async def fetch(url: Annotated[str, UrlParameter()]) -> list[str]:
    """Get a page.

    Args:
        url: Where it is.
    """
    return [url]


@tool(side_effects=frozenset({SideEffect.NET_WRITE}), **_KIND)
async def post(url: Annotated[str, UrlParameter(effect="write")], text: str = "") -> list[str]:
    """Send a text.

    Args:
        url: Where to.
        text: What.
    """
    return [url, text]


@tool(side_effects=frozenset({SideEffect.NET_READ}), **_KIND)
async def crawl(urls: list[Annotated[str, UrlParameter()]]) -> list[str]:
    """Get pages.

    Args:
        urls: Where they are.
    """
    return urls


@tool(side_effects=frozenset({SideEffect.NET_READ}), **_KIND)
async def ping(host: Annotated[str, HostParameter()] = "example.org") -> list[str]:
    """Ask a host whether it is there.

    Args:
        host: Which.
    """
    return [host]


@tool(side_effects=frozenset({SideEffect.NET_READ}), **_KIND)
async def weather(city: str) -> list[str]:
    """Tell the weather, from an address that is the tool's own.

    Args:
        city: Where.
    """
    return [city]


@tool(side_effects=frozenset({SideEffect.NET_READ}), **_KIND)
async def news(url: Annotated[str, UrlParameter()] | None = None) -> list[str]:
    """Read the news, somewhere.

    Args:
        url: Where.
    """
    return [url or "somewhere"]


@tool(side_effects=frozenset({SideEffect.FS_READ}), **_KIND)
async def peek(path: Annotated[str, FileParameter()]) -> list[str]:
    """Tell a path.

    Args:
        path: Which.
    """
    return [path]


@tool(side_effects=frozenset({SideEffect.FS_WRITE}), **_KIND)
async def poke(path: Annotated[str, FileParameter(writes=True)]) -> list[str]:
    """Write at a path.

    Args:
        path: Which.
    """
    return [path]


@tool(side_effects=frozenset({SideEffect.FS_READ, SideEffect.FS_WRITE}), **_KIND)
async def duplicate(
    source: Annotated[str, FileParameter()], target: Annotated[str, FileParameter(writes=True)]
) -> list[str]:
    """Copy a file.

    Args:
        source: What to copy.
        target: Where to.
    """
    return [source, target]


@tool(side_effects=frozenset({SideEffect.FS_READ}), **_KIND)
async def census(pattern: str) -> list[str]:
    """Count files that the tool itself finds.

    Args:
        pattern: Which.
    """
    return [pattern]


@tool(side_effects=frozenset({SideEffect.DB_READ}), **_KIND)
async def rows(table: Annotated[str, TableParameter()]) -> list[str]:
    """Read a table.

    Args:
        table: Which.
    """
    return [table]


@tool(**_KIND)
async def setting(name: Annotated[str, VariableParameter()]) -> list[str]:
    """Read a variable.

    Args:
        name: Which.
    """
    return [name]


@tool(side_effects=frozenset({SideEffect.PROCESS_SPAWN}), **_KIND)
async def build(goal: str = "all") -> list[str]:
    """Build.

    Args:
        goal: What.
    """
    return [goal]


@tool(**_KIND)
async def mixed(url: Annotated[str | int, UrlParameter()]) -> list[str]:
    """Take a text or a number.

    Args:
        url: Either.
    """
    return [str(url)]


class Target(BaseModel):
    """Where a message goes."""

    url: Annotated[str, UrlParameter(effect="write")]
    label: str = ""


class Delivery(BaseModel):
    """What goes where."""

    text: str
    targets: list[Target] = Field(min_length=1)
    mirror: Annotated[str, UrlParameter()] | None = None


class Deliver(Tool):
    """Sends a text to several places."""

    name = "deliver"
    description = "Sends a text to several places."
    safety_tier = SafetyTier.READ_ONLY
    side_effects = frozenset({SideEffect.NET_WRITE})
    result_type = ResultType.ARRAY
    normalization = Normalization.JSON
    input_model = Delivery

    async def run(self, arguments: Delivery, context: ToolExecutionContext) -> list[str]:
        """Tell where it would go."""
        return [target.url for target in arguments.targets]


class Pages(Tool):
    """Pages that are read and written."""

    name = "pages"
    description = "Reads and writes pages."
    safety_tier = SafetyTier.READ_ONLY
    result_type = ResultType.ARRAY
    normalization = Normalization.JSON

    @operation(capabilities=["NetRead"])
    async def get(self, url: Annotated[str, UrlParameter()]) -> list[str]:
        """Read a page."""
        return [url]

    @operation(capabilities=["NetWrite"])
    async def put(self, to: Annotated[str, UrlParameter(effect="write")]) -> list[str]:
        """Write a page."""
        return [to]


def marked_tools() -> tuple[Tool, ...]:
    return (
        fetch,
        post,
        crawl,
        ping,
        weather,
        news,
        peek,
        poke,
        duplicate,
        census,
        rows,
        setting,
        settings_row,
        build,
        mixed,
        Deliver(),
        Pages(),
    )
