"""Servers on loopback that behave as Discord and Bluesky do, for the tests of messages."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import regex

from tests.support.loopback import Handler, served

TOKEN = "MTk4NjIyNDgz.Cl2FMQ.bot-token-of-the-test"
PASSWORD = "abcd-efgh-ijkl-mnop"
DISCORD, SESSIONS, RECORDS = "/api/v10/channels/", "/xrpc/com.atproto.server.createSession", "/xrpc/com.atproto.repo."
CHANNELS = {"100": "ours", "200": "closed"}
ACCOUNTS = {"bot.example.com": "did:plc:bot", "dana.example.com": "did:plc:dana"}


@dataclass
class Services:
    """What was sent to both. ``waits``: the `Retry-After` of the next answers; ``echo``: refusals tell the secret.

    ``hostile``: what it answers to a post instead, given the secret that it knows; `bytes` as they are.
    """

    url: str = ""
    asked: list[str] = field(default_factory=list[str])
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    records: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    waits: list[str] = field(default_factory=list[str])
    sessions: int = 0
    valid: str = ""
    echo: bool = False
    hostile: Callable[[str], tuple[int, Any, dict[str, str]]] | None = None
    is_hanging: bool = False
    hangs: threading.Event = field(default_factory=threading.Event)
    is_left: threading.Event = field(default_factory=threading.Event)
    nonces: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    @property
    def toml(self) -> str:
        """The endpoints of both, with these servers behind them."""
        discord = f'discord = {{ token_env = "BOT", channels = ["100", "200", "300"], url = "{self.url}/api/v10" }}'
        return f'{discord}\nbluesky = {{ handle = "bot.example.com", password_env = "APP", url = "{self.url}" }}\n'


def _handler(services: Services) -> type[Handler]:
    class Both(Handler):
        def take(self, body: bytes) -> None:
            self._serve(json.loads(body or b"{}"))

        def _answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.answer(status, data, {"Content-Type": "application/json", **(headers or {})})

        def _serve(self, body: dict[str, Any]) -> None:
            services.asked.append(self.path)
            if services.is_hanging:
                services.hangs.set()
                self.connection.recv(1)
                services.is_left.set()
                return
            if services.waits:
                wait = services.waits.pop(0)
                self._answer(429, {"message": "You are being rate limited.", "retry_after": 1}, {"Retry-After": wait})
            elif services.hostile is not None and self.path.startswith((DISCORD, RECORDS)):
                self._answer(*services.hostile(TOKEN if self.path.startswith(DISCORD) else PASSWORD))
            elif self.path.startswith(DISCORD):
                self._answer(*self._discord(body))
            elif self.path == SESSIONS:
                self._answer(*self._session(body))
            elif self.path.startswith(RECORDS):
                self._answer(*self._record(body))
            else:
                handle = parse_qs(urlsplit(self.path).query)["handle"][0]
                did = ACCOUNTS.get(handle)
                no = {"error": "InvalidRequest", "message": "Unable to resolve handle"}
                self._answer(200 if did else 400, {"did": did} if did else no)

        def _discord(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            channel, sent = self.path.removeprefix(DISCORD).split("/")[0], self.headers["Authorization"]
            if sent != f"Bot {TOKEN}":
                return 401, {"message": f"401: Unauthorized {sent if services.echo else ''}", "code": 0}
            if CHANNELS.get(channel) != "ours":
                known = channel in CHANNELS
                code = (403, "Missing Access", 50001) if known else (404, "Unknown Channel", 10003)
                return code[0], {"message": code[1], "code": code[2]}
            if not 0 < len(body["content"]) <= 2000:
                return 400, {"message": "Invalid Form Body", "code": 50035}
            if body.get("enforce_nonce") and body["nonce"] in services.nonces:
                return 200, services.nonces[body["nonce"]]
            made = {"id": str(9000 + len(services.messages)), "channel_id": channel, "content": body["content"]}
            services.messages.append({**body, "channel": channel})
            services.nonces[body.get("nonce", "")] = made
            return 200, made

        def _session(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            if body != {"identifier": "bot.example.com", "password": PASSWORD}:
                said = f"Invalid identifier or password {body['password'] if services.echo else ''}"
                return 401, {"error": "AuthenticationRequired", "message": said}
            services.sessions += 1
            services.valid = f"jwt-number-{services.sessions}"
            return 200, {"accessJwt": services.valid, "refreshJwt": "r", "did": "did:plc:bot", "handle": "bot"}

        def _record(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            if self.headers["Authorization"] != f"Bearer {services.valid}":
                return 400, {"error": "ExpiredToken", "message": "Token has expired"}
            record = body["record"]
            text = record["text"].encode()
            if len(regex.findall(r"\X", record["text"])) > 300 or len(text) > 3000:
                return 400, {"error": "InvalidRequest", "message": "Invalid app.bsky.feed.post record"}
            mentioned = {
                text[facet["index"]["byteStart"] : facet["index"]["byteEnd"]].decode(): facet["features"][0]["did"]
                for facet in record.get("facets", [])
            }
            services.records.append({**record, "repo": body["repo"], "mentioned": mentioned})
            return 200, {"uri": f"at://{body['repo']}/app.bsky.feed.post/{len(services.records)}", "cid": "c"}

    return Both


@contextmanager
def running() -> Generator[Services]:
    """Both services on one port of loopback."""
    services = Services()
    with served(_handler(services)) as services.url:
        yield services
