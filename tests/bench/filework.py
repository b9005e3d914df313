"""A workspace as people have them: files, thirty permission rules, tool rules, approvals, policy rules. And its gate.

What the tool and the log take for themselves is noted in a `Watch`, so that a measurement can leave it out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins import builtin_tools
from gatewright.builtins.file import FileTool
from gatewright.gate import AuditLog, Gate
from gatewright.memory.block_store import BlockStore
from gatewright.policy.document import Policy
from gatewright.policyfile import KnownTools, parse_policy
from gatewright.sources.basefolder import base_folder
from gatewright.sources.ground import Protection
from gatewright.sources.manager import SourceManager
from gatewright.tools import ToolRegistry
from gatewright.tools.context import Ports, ToolExecutionContext

AGENT = "archivist"
CPU = time.thread_time_ns
"""What calls of tens of microseconds are timed with: other work of a busy machine does not count."""

_FILES = 40
_LEVELS = (
    *((f"area{i:02}/private/**", "none") for i in range(10)),
    *((f"area{i:02}/*.lock", "read_only") for i in range(8)),
    ("secrets/", "none"),
    (".env*", "none"),
    ("**/*.key", "none"),
    ("build/**", "read_only"),
    ("drafts/final/**", "read_only"),
    ("drafts/**", "read_write"),
    ("**/CHANGELOG.md", "append"),
    ("reviews/**", "partner"),
    ("contracts/**", "human"),
    ("notes/**/*.bak", "none"),
    ("notes/**", "append"),
    ("inbox/**", "append"),
)
_RULES = """gatewright = 1

[agents.archivist]
description = "Files notes and drafts; may not delete"
tools = ["file", "block"]
sources = ["archive"]
approvals = { "file.create" = "ask", privileged = "deny" }

[[agents.archivist.tool_rules]]
tool_name = "file"
rule_type = { AllowedOperations = ["read", "list", "load", "save", "append", "replace", "create"] }

[[agents.archivist.tool_rules]]
tool_name = "file"
rule_type = { MaxCalls = 100000000 }

[[policy.rules]]
name = "no script among the notes"
effect = "deny"
tools = ["file"]
operations = ["append", "create"]
when = { properties = { path = { pattern = "^notes/.*[.](sh|py)$" } }, required = ["path"] }
message = "scripts do not belong among the notes"

[[sources]]
id = "archive"
type = "file"
base_path = "archive"
default_permission = "read_only"
"""
_RULE = """
[[sources.permission_rules]]
pattern = "{}"
permission = "{}"
"""
POLICY = _RULES + "".join(_RULE.format(*level) for level in _LEVELS)


@dataclass(slots=True)
class Watch:
    """Nanoseconds that the tool and the writing of rows took since they were last set to nothing.

    Only the thread that made it is watched; ``elsewhere`` counts the commits made by others.
    """

    tool: int = 0
    rows: int = 0
    elsewhere: int = 0
    thread: int = field(default_factory=threading.get_ident)


class WatchedFileTool(FileTool):
    """The ``file`` tool, with a watch on it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    async def execute(
        self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext
    ) -> JsonValue | bytes:
        began = CPU()
        try:
            return await super().execute(operation, arguments, context)
        finally:
            self._watch.tool += CPU() - began


class WatchedLog(AuditLog):
    """The audit log, with a watch on its commits."""

    watch: Watch

    def append(self, *rows: Any, **how: Any) -> Any:
        began = CPU()
        try:
            return super().append(*rows, **how)
        finally:
            if threading.get_ident() == self.watch.thread:
                self.watch.rows += CPU() - began
            else:
                self.watch.elsewhere += 1


@dataclass(frozen=True, slots=True)
class FileWork:
    """A gate over real files, and calls of its agent that are allowed."""

    gate: Gate
    watch: Watch

    @property
    def calls(self) -> list[dict[str, JsonValue]]:
        """Reading and appending in turns, over several files."""
        found: list[dict[str, JsonValue]] = []
        for i in range(_FILES):
            found.append({"op": "read", "path": _path(i)})
            found.append({"op": "append", "path": _path(i), "content": f"- {i}: seen, nothing to do\n"})
        return found


@contextmanager
def file_work(*, audited: bool = False) -> Generator[FileWork]:
    """The workspace in a folder of its own, which goes away afterwards."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder, watch = Path(name), Watch()
        _write_files(folder / "archive")
        registry = ToolRegistry()
        for tool in builtin_tools():
            registry.register(tool)
        blocks = BlockStore(folder / "state" / "blocks.sqlite")
        protection = Protection([folder / "policy.toml", folder / "state", folder / "keys"])
        sources = SourceManager(lambda: registry.register(WatchedFileTool(watch)), blocks, protection)
        log = WatchedLog(folder / "state", folder / "keys")
        log.watch = watch
        policy = _policy(registry, watch)
        sources.follow([(source, base_folder(folder / source.base_path)) for source in policy.sources])
        try:
            yield FileWork(Gate(policy, registry, ports=Ports(sources), audit=log if audited else None), watch)
        finally:
            log.close()
            blocks.close()


def _policy(registry: ToolRegistry, watch: Watch) -> Policy:
    known = KnownTools((*registry.facts(), WatchedFileTool(watch).facts()))
    loaded = parse_policy(POLICY, file="policy.toml", known=known)
    if loaded.policy is None:
        raise ValueError("\n".join(map(str, loaded.problems)))
    return loaded.policy


def _write_files(base: Path) -> None:
    for i in range(_FILES):
        path = base / _path(i)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"line {n} of note {i}\n" for n in range(40)), "utf-8")


def _path(number: int) -> str:
    return f"notes/2024/{number % 12 + 1:02}/note-{number:02}.md"
