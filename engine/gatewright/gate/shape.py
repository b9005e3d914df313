"""What the model sees of a tool for a set of shown operations: made once, shared by all agents that see the same.

It does not know agents or policies.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gatewright.gate.condition import Conditions
from gatewright.gate.jsoncopy import copied
from gatewright.schema.check import SchemaChecker
from gatewright.schema.formats import ToolListing, format_named

if TYPE_CHECKING:
    from gatewright.tools.tool import Tool

_MAX_SHAPES = 16_384


class ToolShape:
    """A tool with ``shown`` as its operations; checker and renderings are made when they are first asked for."""

    def __init__(self, tool: Tool, shown: frozenset[str], description: str | None, schema: dict[str, object]) -> None:
        self.tool = tool
        self.shown = shown
        self.listing = ToolListing(tool.name, tool.description_for(shown, description), schema)
        self._rendered: dict[str, dict[str, Any]] = {}

    @cached_property
    def checker(self) -> SchemaChecker:
        """The compiled schema. Raises SchemaError."""
        return SchemaChecker(self.listing.schema)

    def compile(self) -> None:
        """Compile the checker now. Raises SchemaError."""
        _ = self.checker

    @cached_property
    def usage_rule(self) -> str | None:
        """The tool's own usage rule, with those of the shown operations."""
        return self.tool.usage_rule_for(self.shown)

    def rendered(self, form: str) -> dict[str, Any]:
        """The tool as JSON in a provider's format, apart from what the gate checks against. Raises NotSupported."""
        found = self._rendered.get(form)
        if found is None:
            found = self._rendered[form] = copied(format_named(form).render(self.listing))
        return found


class ShapeCache:
    """Shapes by tool, shown operations and description, and compiled conditions; safe to use from any thread."""

    def __init__(self) -> None:
        self.conditions = Conditions()
        self._shapes: dict[tuple[str, int, frozenset[str], str | None], ToolShape] = {}
        self._lock = threading.Lock()

    def shape(self, tool: Tool, shown: frozenset[str], description: str | None = None) -> ToolShape | None:
        """The shape, or None when nothing is shown. Raises GatewrightError when the tool has no usable schema.

        ``description`` stands in place of the tool's own.
        """
        key = (tool.name, tool.major, shown, description)
        found = self._shapes.get(key)
        if found is not None and found.tool is tool:
            return found
        schema = tool.schema_for(shown)
        if schema is None:
            return None
        shape = ToolShape(tool, shown, description, schema)
        with self._lock:
            if len(self._shapes) >= _MAX_SHAPES:
                self._shapes.clear()
            self._shapes[key] = shape
        return shape
