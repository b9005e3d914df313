"""A web for tests: names and public addresses that all lead to one real server on loopback."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from httpcore2 import AsyncNetworkStream, ConnectError

from gatewright.adapters.web import WebClient
from gatewright.adapters.web_request import CheckedNetwork, dial
from gatewright.builtins import builtin_tools
from gatewright.gate import AuditLog, Gate, Outcome
from gatewright.policy.document import Policy, Web
from gatewright.policyfile import KnownTools, parse_policy
from gatewright.tools import Tool, ToolRegistry
from gatewright.tools.context import Ports
from tests.support.patience import patient

PUBLIC, OTHER = "93.184.216.34", "151.101.1.1"
WHOLE = 'capabilities = [{ NetRead = { allowlist = ["*"] } }]\n'
TOOLS = ("web_fetch", "http_fetch", "web_search")
Handler = Callable[[asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes | str, *headers: str, status: int = 200, content_type: str = "text/plain") -> bytes:
    """A whole HTTP answer."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} X", *headers, f"Content-Length: {len(data)}"]
    lines += [f"Content-Type: {content_type}"] if content_type else []
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def redirect(location: str, status: int = 302) -> bytes:
    """An answer that leads elsewhere."""
    return answer("", f"Location: {location}", status=status)


@dataclass
class Site:
    """The server: what it answers by path, the requests that it got, and how many connections stand open."""

    port: int = 0
    pages: dict[str, bytes | Handler] = field(default_factory=dict[str, "bytes | Handler"])
    requests: list[str] = field(default_factory=list[str])
    bodies: list[bytes] = field(default_factory=list[bytes])
    is_idle: asyncio.Event = field(default_factory=asyncio.Event)
    is_asked: asyncio.Event = field(default_factory=asyncio.Event)
    open: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.is_idle.clear()
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head)
            self.bodies.append(await reader.readexactly(int(self.headers().get("content-length", "0"))))
            path = head.split(" ", 2)[1]
            page = self.pages.get(path, self.pages.get(path.partition("?")[0], answer("nothing here", status=404)))
            self.is_asked.set()
            if isinstance(page, bytes):
                writer.write(page)
                await writer.drain()
            else:
                sending = asyncio.ensure_future(page(writer))
                gone = asyncio.ensure_future(reader.read())
                await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
                sending.cancel()
                gone.cancel()
                await asyncio.gather(sending, gone, return_exceptions=True)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self.open -= 1
            if not self.open:
                self.is_idle.set()

    def headers(self, index: int = -1) -> dict[str, str]:
        """The headers of a request, with names in lower case."""
        rows = (line.partition(": ") for line in self.requests[index].split("\r\n")[1:] if line)
        return {name.lower(): value for name, _, value in rows}


@dataclass
class Names:
    """The resolver: each name has answers that follow one another, the last one for good. ``dialled``: where to."""

    site: Site
    known: dict[str, list[Sequence[str]]] = field(default_factory=dict[str, "list[Sequence[str]]"])
    asked: list[str] = field(default_factory=list[str])
    dialled: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    dead: set[str] = field(default_factory=set[str])
    is_down: bool = False

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.known.get(host, [(PUBLIC,)])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def dial(self, address: str, port: int, timeout_s: float | None) -> AsyncNetworkStream:
        self.dialled.append((address, port))
        if self.is_down:
            raise ConnectError("down")
        return await dial("127.0.0.1", 1 if address in self.dead else self.site.port, timeout_s)

    def network(self, allow_private: bool) -> CheckedNetwork:
        return CheckedNetwork(allow_private=allow_private, resolve=self.resolve, dial=self.dial)


@dataclass
class WebBench:
    """A gate over the web tools, whose web is one site."""

    gate: Gate
    site: Site
    names: Names
    folder: Path

    async def call(self, tool: str, **arguments: Any) -> Outcome:
        return await self.gate.call("a", tool, arguments)

    async def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the data of a call that must succeed."""
        outcome = await self.call(tool, **arguments)
        assert outcome.status == "allowed", (outcome.output, outcome.detail)
        return json.loads(outcome.data or b"")["data"]

    def ends(self) -> list[dict[str, Any]]:
        """Return the code in the log for each executed call, and the address to which it was redirected."""
        rows = [json.loads(row.body) for row in AuditLog(self.folder / "state", self.folder / "keys").rows()]
        return [{key: row[key] for key in ("led_to", "code") if key in row} for row in rows if "elapsed_ms" in row]

    async def code(self, tool: str, **arguments: Any) -> str:
        """Return the code of a call that must fail."""
        outcome = await self.call(tool, **arguments)
        assert outcome.status in {"denied", "failed"}, outcome.output
        return outcome.code


def policy_of(text: str, tools: Sequence[Tool]) -> Policy:
    """Return the policy that a text describes, with these tools."""
    known = KnownTools(tuple(tool.facts() for tool in tools))
    loaded = parse_policy(text, file="policy.toml", known=known)
    assert loaded.policy is not None, loaded.problems
    return loaded.policy


async def started(tls: ssl.SSLContext | None = None) -> tuple[asyncio.Server, Site]:
    """A site that runs on loopback until its server is closed."""
    site = Site()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    return server, site


@asynccontextmanager
async def gate_over_site(
    folder: Path,
    policy: str,
    tools: Sequence[Tool],
    *,
    web: Web | None = None,
    variables: dict[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncGenerator[WebBench]:
    """A running site, and a gate over these tools whose web leads there; at the end no connection may be open."""
    server, site = await started(tls)
    names, registry = Names(site), ToolRegistry()
    for tool in tools:
        registry.register(tool)
    audit = AuditLog(folder / "state", folder / "keys")
    client = WebClient(web or Web(), network=names.network, variables=variables or {})
    gate = Gate(policy_of(policy, tools), registry, ports=Ports(web=client, folder=str(folder)), audit=audit)
    try:
        yield WebBench(gate, site, names, folder)
        if site.requests:
            async with patient():
                await site.is_idle.wait()
    finally:
        gate.close()
        audit.close()
        server.close()
        await server.wait_closed()


def bench_of(
    folder: Path, *, agent: str = WHOLE, more: str = "", **given: Any
) -> AbstractAsyncContextManager[WebBench]:
    """The same with the built-in tools, of which an agent may call those of the web."""
    policy = f"gatewright = 1\n\n[agents.a]\ntools = {json.dumps(TOOLS)}\n{agent}\n{more}"
    return gate_over_site(folder, policy, builtin_tools(), **given)
