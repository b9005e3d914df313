"""`python -m tests.facts`: derives the facts of the built-in tools from their code and writes them to `tools.json`.

A start reads them there, since it needs those of all tools, and deriving them takes longer than anything else it does.
Run it after a change of a built-in tool.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from types import new_class
from typing import Any, cast

from gatewright.builtins import builtin_tools, file_tool, note_tools, root_tools
from gatewright.tools import Tool
from tests.support.checkout import ROOT

FILE = ROOT / "resources" / "gatewright_resources" / "tools.json"
NOT_DERIVED = frozenset({"tool_rules"})
"""The facts that the class itself says at a start."""


def every_tool() -> tuple[Tool, ...]:
    """The tools that the program brings."""
    return (*builtin_tools(), *note_tools(), *root_tools(), file_tool())


def read_early(tool: Tool) -> Tool:
    """The same tool of a class whose operations are read and checked when Python defines it."""
    kind = type(tool)
    own = {"operation_field": tool.operation_field} if "operation_field" in vars(kind) else {}
    return new_class(kind.__name__, (kind,), {"late": False}, lambda body: body.update(own))()


def text() -> str:
    """What the file should hold."""
    rows = [plain(Tool.facts(read_early(tool))) for tool in every_tool()]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def usual(one: Field[Any]) -> object:
    """The value of a field that nobody gives."""
    return one.default if one.default_factory is MISSING else one.default_factory()


def plain(value: Any) -> Any:
    """A value as JSON, without the fields that have their defaults."""
    if is_dataclass(value) and not isinstance(value, type):
        said = ((one, getattr(value, one.name)) for one in fields(value) if one.init and one.name not in NOT_DERIVED)
        return {one.name: plain(held) for one, held in said if held != usual(one)}
    if isinstance(value, frozenset):
        return sorted(map(plain, cast("frozenset[Any]", value)))
    if isinstance(value, tuple):
        return list(map(plain, cast("tuple[Any, ...]", value)))
    if isinstance(value, Mapping):
        return {key: plain(held) for key, held in cast("Mapping[str, Any]", value).items()}
    return value.value if isinstance(value, Enum) else value


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
