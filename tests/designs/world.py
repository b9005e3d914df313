"""A workspace with everything in it, which the tests of the designs share, and short words for calls of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from gatewright import Outcome, Session, Status, Tool, ToolExecutionContext, Workspace
from tests.support import loopback
from tests.support.bench import OpenBench, make
from tests.support.loopback import Handler

Result = TypeVar("Result")
NET = '{ NetRead = { allowlist = ["*"] } }, { NetWrite = { allowlist = ["*"] } }'
FILES = '{ FsRead = { prefixes = ["/"] } }, { FsWrite = { prefixes = ["/"] } }'
SEARX = {"results": [{"title": "A page", "url": "https://example.org/", "content": "about tea"}]}
PAGES = {
    "/page": ("text/html", "<h1>Tea</h1><p>Green.</p>"),
    "/search": ("application/json", json.dumps(SEARX)),
    "/ring": ("location", "/ring"),
}


def agent(name: str, tools: Sequence[str], *lines: str, rules: str = "") -> str:
    """The table of an agent that may call these tools, with further lines."""
    return "\n".join((f"\n[agents.{name}]", f"tools = {json.dumps(list(tools))}", *lines, rules, ""))


def only(name: str, tool: str, *operations: str) -> str:
    """A rule that lets an agent have these operations alone."""
    allowed = json.dumps(list(operations))
    return f'[[agents.{name}.tool_rules]]\ntool_name = "{tool}"\nrule_type = {{ AllowedOperations = {allowed} }}\n'


def rule(name: str, tool: str, kind: str, conditions: Sequence[str] = ()) -> str:
    """Any other rule of an agent."""
    said = f"conditions = {json.dumps(list(conditions))}\n"
    return f'[[agents.{name}.tool_rules]]\ntool_name = "{tool}"\nrule_type = {kind}\n{said}'


def source(name: str, base: str, level: str = "read_write", *, kind: str = "file", more: str = "") -> str:
    """A source with one level for everything in it."""
    rows = f'\n[[sources]]\nid = "{name}"\ntype = "{kind}"\nbase_path = "{base}"\n'
    return rows + (f'default_permission = "{level}"\n' if level else "") + more


def level(pattern: str, permission: str) -> str:
    """A level of the source before, by pattern."""
    return f'\n[[sources.permission_rules]]\npattern = "{pattern}"\npermission = "{permission}"\n'


@dataclass
class World(OpenBench):
    """An open workspace, and calls of it that wait for their end."""

    agent_id: str = "able"
    web: str = ""

    async def call_async(
        self, tool: str, agent: str = "", user: str | None = None, session: Session | None = None, **arguments: Any
    ) -> Outcome:
        """Call a tool."""
        agent_id = agent or self.agent_id
        context = ToolExecutionContext(agent_id, "", user_id=user) if user else None
        return await self.workspace.call(
            agent_id, tool, arguments, session=session, approver=self.answer, context=context
        )

    def call(self, tool: str, **more: Any) -> Outcome:
        """Call a tool and wait."""
        return self.run(self.call_async(tool, **more))

    @staticmethod
    def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine to its end."""
        return asyncio.run(coroutine)

    def result(self, tool: str, **more: Any) -> Any:
        """The result of a call that succeeds."""
        outcome = self.call(tool, **more)
        assert outcome.status is Status.ALLOWED, (outcome.output, outcome.detail)
        return json.loads(outcome.data or b"")

    def data(self, tool: str, **more: Any) -> Any:
        """The `data` of a built-in tool that succeeds."""
        return self.result(tool, **more)["data"]

    def refused(self, tool: str, **more: Any) -> str:
        """The code of a call that does not succeed."""
        outcome = self.call(tool, **more)
        assert outcome.status is not Status.ALLOWED, outcome.output
        assert outcome.output.startswith("Tool execution failed: ")
        return outcome.code

    def shown(self, agent: str = "", form: str = "mcp") -> dict[str, dict[str, Any]]:
        """The tools as the model of an agent gets them, by name."""
        return {str(one["name"]): one for one in self.workspace.view(agent or self.agent_id).tools(form)}


@contextmanager
def opened(folder: Path, policy: str, *, tools: Sequence[Tool] = (), web: str = "", **more: Any) -> Generator[World]:
    """A workspace with this policy, trusted; folders of its sources and roots are made."""
    made = make(folder, f"gatewright = 1\n{policy}", "docs", "shared", "tmp", "vault", "inbox")
    with Workspace.open(made, tools=tools, keys=folder / "keys", trust=True, **more) as workspace:
        yield World(workspace, web=web)


@contextmanager
def served(asked: list[str]) -> Generator[str]:
    """A server on loopback with these pages, of which some lead elsewhere: its address; ``asked`` gets each path."""

    class Pages(Handler):
        def take(self, body: bytes) -> None:
            asked.append(self.path)
            kind, text = PAGES.get(self.path.partition("?")[0], ("text/plain", ""))
            if kind == "location":
                return self.answer(302, b"", {"Location": f"{text}?{len(asked)}"})
            return self.answer(200 if text else 404, text.encode(), {"Content-Type": kind})

    with loopback.served(Pages) as address:
        yield address
