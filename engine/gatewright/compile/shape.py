"""What the model sees of a tool for a set of shown operations: made once, shared by all agents that see the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from gatewright.base.json_copy import copied
from gatewright.base.once import once
from gatewright.compile.condition import Conditions
from gatewright.compile.declared import DeclaredTools
from gatewright.record.fork import fork_safe_lock
from gatewright.schema.check import SchemaChecker

if TYPE_CHECKING:
    from gatewright.compile.narrowing import Limit
    from gatewright.schema.formats import Format, ToolListing
    from gatewright.tools.tool import Tool

_MAX_SHAPES = 16_384
_NO_NAMES: frozenset[str] = frozenset()
_Key: TypeAlias = "tuple[str, int, frozenset[str], str | None, tuple[Limit, ...], bool, bool, bool]"


class ToolShape:
    """A tool with ``shown`` as its operations; checker and renderings are made when they are first asked for.

    ``narrowed``: the fields whose constraints the schema says, where it was made from a shape that says none;
    ``unsaid``: the fields whose constraints it does not say, and why (empty: words do). ``closed``: whether it takes no
    argument that it does not name; ``open_why``: why it does although it should not, empty where that does not hold.
    ``check_formats``: whether its checker asks that texts are what a known `format` says.
    ``tried``: what the self-check read off the listing (None) and the calls that it made, by operation.
    """

    def __init__(
        self,
        tool: Tool,
        shown: frozenset[str],
        listing: ToolListing,
        narrowed_from: ToolShape | None = None,
        *,
        check_formats: bool = False,
    ) -> None:
        self.tool = tool
        self.shown = shown
        self.listing = listing
        self.check_formats = check_formats
        self.narrowed = _NO_NAMES
        self.unsaid: tuple[tuple[str, str], ...] = ()
        self.closed = False
        self.open_why = ""
        self.tried: dict[str | None, Any] = {}
        self._narrowed_from = narrowed_from
        self._rendered: dict[tuple[Format, str], dict[str, Any]] = {}

    def limited(self, limits: tuple[Limit, ...], *, closed: bool = False) -> ToolShape:
        """The shape whose schema says the limits too, as far as it can; ``closed``: and takes no unknown argument."""
        from gatewright.compile.narrowing import narrowed
        from gatewright.schema.formats import ToolListing

        found = narrowed(
            self.tool, self.shown, self.listing.schema, limits, closed=closed, check_formats=self.check_formats
        )
        listing = self.listing
        if found.schema is not listing.schema:
            listing = ToolListing(listing.name, listing.description, found.schema, listing.output)
        other = ToolShape(self.tool, self.shown, listing, self, check_formats=self.check_formats)
        other.narrowed, other.unsaid = found.names, found.unsaid
        other.closed, other.open_why = closed and not found.open_why, found.open_why
        if found.checker is not None:
            vars(other)["checker"] = found.checker
        return other

    @property
    def whole(self) -> ToolShape:
        """The shape whose schema says no limits."""
        return self._narrowed_from or self

    @once
    def checker(self) -> SchemaChecker:
        """The compiled schema. Raises SchemaError."""
        return SchemaChecker(self.listing.schema, check_formats=self.check_formats)

    def compile(self) -> None:
        """Compile the checker now. Raises SchemaError."""
        _ = self.checker

    @once
    def usage_rule(self) -> str | None:
        """The tool's own usage rule, with those of the shown operations."""
        return self.tool.usage_rule_for(self.shown)

    def rendered(self, form: Format, name: str) -> dict[str, Any]:
        """The tool as JSON in a provider's format under ``name``, apart from what the gate checks against."""
        found = self._rendered.get((form, name))
        if found is None:
            found = self._rendered[form, name] = copied(form.fitted(self.listing).body(name))
        return found


class ShapeCache:
    """Shapes by tool, shown operations, description and limits; compiled conditions; tools as policies declare them.

    Safe from any thread.
    """

    def __init__(self) -> None:
        self.conditions = Conditions()
        self.declared = DeclaredTools()
        self._shapes: dict[_Key, ToolShape] = {}
        self._lock = fork_safe_lock()

    def shape(
        self,
        tool: Tool,
        shown: frozenset[str],
        description: str | None = None,
        *,
        limits: tuple[Limit, ...] = (),
        closed: bool = False,
        check_formats: bool = False,
        tells_output: bool = True,
    ) -> ToolShape | None:
        """The shape, or None when nothing is shown. Raises GatewrightError when the tool has no usable schema.

        ``description`` stands in place of the tool's own. ``limits``: what the schema says as far as it can;
        ``closed``: it takes no argument that it does not name. ``check_formats``: see ``ToolShape``.
        ``tells_output``: whether its listing has the schema of results.
        """
        key = (tool.name, tool.major, shown, description, limits, closed, check_formats, tells_output)
        found = self._shapes.get(key)
        if found is not None and found.tool is tool:
            return found
        if limits or closed:
            whole = self.shape(tool, shown, description, check_formats=check_formats, tells_output=tells_output)
            if whole is None:
                return None
            shape = whole.limited(limits, closed=closed)
        else:
            from gatewright.schema.formats.listing import ToolListing

            schema = tool.schema_for(shown)
            if schema is None:
                return None
            output = tool.told_output(shown) if tells_output else None
            listing = ToolListing(tool.name, tool.description_for(shown, description), schema, output)
            shape = ToolShape(tool, shown, listing, check_formats=check_formats)
        with self._lock:
            if len(self._shapes) >= _MAX_SHAPES:
                self._shapes.clear()
            self._shapes[key] = shape
        return shape
