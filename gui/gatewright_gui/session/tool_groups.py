"""Tools by where they come from: our own, or those of one catalog. For the worker process: nothing of Qt is loaded."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from gatewright.workspace.api import Catalog, CatalogType, frozen
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.readings import BUILT_IN, COMPOSITION

T = TypeVar("T")
_KINDS = {
    CatalogType.MCP: mark("MCP server"),
    CatalogType.HTTP: mark("HTTP"),
    CatalogType.SUBPROCESS: mark("commands"),
    CatalogType.WASM: mark("module"),
    CatalogType.HOST: mark("program"),
}


@frozen
class ToolGroup:
    """The origin of tools: `origin` as they say it, `title` and `kind` in words; our own are of no kind."""

    origin: str
    title: str
    kind: str = ""

    @property
    def words(self) -> str:
        """Title and kind."""
        return f"{self.title}, {self.kind}" if self.kind else self.title


def group_of(origin: str, catalogs: Iterable[Catalog] = ()) -> ToolGroup:
    """The group of the tools of an origin; what is no catalog is a program with tools of its own."""
    if origin == BUILT_IN:
        return ToolGroup(origin, tr("Built-in tools"))
    if origin == COMPOSITION:
        return ToolGroup(origin, tr("Compositions"))
    kind = next((one.kind for one in catalogs if one.catalog_id == origin), CatalogType.HOST)
    return ToolGroup(origin, origin, tr(_KINDS[kind]))


def by_origin(
    tools: Iterable[T], origin_of: Callable[[T], str], catalogs: Iterable[Catalog] = ()
) -> dict[str, list[T]]:
    """The tools of each origin together: our own first, then the catalogs in the order of the policy."""
    found: dict[str, list[T]] = {BUILT_IN: [], **{one.catalog_id: [] for one in catalogs}}
    for tool in tools:
        found.setdefault(origin_of(tool), []).append(tool)
    return {origin: held for origin, held in found.items() if held}
