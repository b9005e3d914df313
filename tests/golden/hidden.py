"""Finds names in a text that an agent must not see."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, cast

from gatewright.gate import Gate

_QUOTES = "[`\"']"
FORMATS = ("mcp", "openai", "anthropic")
ENGLISH = {
    *("append", "block", "build", "create", "delete", "down", "fail", "fetch", "file", "get", "info", "list", "load"),
    *("mixed", "news", "pages", "peek", "ping", "poke", "post", "put", "quote", "read", "replace", "rows", "save"),
    *(
        "setting",
        "shelf",
        "source",
        "up",
        "wait",
        "weather",
        "counter",
        "context",
        "search",
        "deliver",
        "crash",
        "echo",
    ),
}
"""Names that are also words that a sentence may need; between quotation marks they are names all the same."""


@dataclass(frozen=True)
class Hidden:
    """The names that one agent's model must not meet."""

    names: frozenset[str]

    def named_in(self, text: str) -> set[str]:
        """Return the hidden names in ``text``: in quotation marks of any kind, or as a word that is not English."""
        quoted = {name for name in self.names if re.search(rf"{_QUOTES}{re.escape(name)}(?:{_QUOTES}|\.)", text)}
        return quoted | {n for n in self.names - ENGLISH if re.search(rf"(?<!\w){re.escape(n)}(?!\w)", text)}


def hidden_from(gate: Gate, agent_id: str) -> Hidden:
    agent = gate.snapshot().agent(agent_id)
    assert agent is not None
    every: set[str] = set()
    seen: set[str] = set()
    of_tool: dict[str, set[str]] = {}
    for right in agent.rights.values():
        of_tool[right.facts.name] = operations = {op.name for op in right.facts.operations}
        every |= {right.facts.name, *operations}
    for tool in gate.view(agent_id).tools("mcp"):
        seen |= {tool["name"], *_told(tool["inputSchema"])}
        # a field of its results may be called as an operation of another tool is, never as one of its own
        seen |= _told(tool.get("outputSchema")) - of_tool.get(tool["name"], set())
    return Hidden(frozenset(every - seen - {""}))


def shown_to(gate: Gate, agent_id: str) -> dict[str, str]:
    """Return every text that the model gets before its first call, by its place."""
    view = gate.view(agent_id)
    return {
        "usage rules": view.usage_rules,
        **{name: json.dumps(view.tools(name), ensure_ascii=False) for name in FORMATS},
    }


def _told(schema: Any) -> set[str]:
    """Return the names of parameters and the values of enums, which the agent sees."""
    found: set[str] = set()
    if isinstance(schema, list):
        for item in cast("list[Any]", schema):
            found |= _told(item)
    elif isinstance(schema, dict):
        table = cast("dict[str, Any]", schema)
        found |= {str(value) for value in (*table.get("enum", ()), *table.get("properties", ()))}
        found |= {str(table["const"])} if "const" in table else set[str]()
        for item in table.values():
            found |= _told(item)
    return found
