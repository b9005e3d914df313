"""The endpoints for agents' messages (Discord, Bluesky), one for each target that the policy names.

Error texts contain no secret: those that we sent are removed from the server's words.

The protocol: https://atproto.com/specs/xrpc, com.atproto.server.createSession, com.atproto.identity.resolveHandle,
com.atproto.repo.createRecord, app.bsky.feed.post and app.bsky.richtext.facet.

Endpoints connect only after the operator trusted their exact definition, and only to checked addresses.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol, cast
from urllib.parse import urlencode

import regex

from gatewright.adapters.web_request import Answer, CheckedNetwork, request
from gatewright.arguments.url import UrlTarget, parse_url
from gatewright.base.amount import new_id
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.printable import printable
from gatewright.builtins import Message, MessagePort
from gatewright.gate.scrub import Secrets
from gatewright.memory.agentblocks import owner_of
from gatewright.memory.archive import Received, deliver
from gatewright.memory.block_store import BlockStore
from gatewright.policy.document import Policy
from gatewright.policy.verdict import BlueskyEndpoint, DiscordEndpoint
from gatewright.record.process import fork_safe_lock
from gatewright.tools.context import ToolExecutionContext

LONGEST_WAIT_S = 5.0
"""The longest wait in s that we accept from a service, once."""
_MARGIN_S = 2.0
_LEAST_WORD = 6
"""The length of the shortest secret, in characters, that we remove from a service's words."""
SAID = 200
"""The most characters of a service's words in a message."""
_UNREADABLE = "answered in a way that could not be read; the message may have been sent all the same"


@frozen
class Refused:
    """A service's refusal: the status, its own code, and its words without secrets."""

    status: int
    code: str
    said: str


class Service:
    """One service at ``url``; ``name`` in words. ``network`` makes the connecting network.

    The service's secret is the value of ``variable`` among ``variables``. The operator has named and trusted its
    address, so it may lie on a private network.
    """

    def __init__(
        self,
        name: str,
        url: str,
        network: Callable[[], CheckedNetwork] | None,
        variable: str,
        variables: Mapping[str, str],
    ) -> None:
        self.name = name
        self._url, self._network = url.rstrip("/"), network
        self._variable, self._variables = variable, variables

    def secret(self) -> str:
        """Return the secret. Raises ToolFailure if the variable is not set, or its value could not be sent."""
        value = self._set()
        if not value or not value.isascii() or not value.isprintable():
            how = "is not set" if not value else "holds what no header can"
            detail = f"the environment variable `{self._variable}`, with the secret for {self.name}, {how}"
            raise ToolFailure(f"{self.name} is not set up here; go on without it", code="not-set-up", detail=detail)
        return value

    def _set(self) -> str:
        return self._variables.get(self._variable, "").strip()

    async def ask(
        self,
        method: str,
        path: str,
        context: ToolExecutionContext,
        *,
        authorization: str = "",
        body: Mapping[str, object] | None = None,
    ) -> dict[str, str] | Refused:
        """Ask the service and return the texts of its JSON answer, or its refusal; after a short wait, ask once more.

        Raises ToolFailure without such an answer.
        """
        target = parse_url(f"{self._url}/{path}", allow_private=True)
        if not isinstance(target, UrlTarget):
            raise ToolFailure(f"{self.name} cannot be reached", code="no-endpoint", detail="its address cannot be used")
        data = None if body is None else json.dumps(body).encode()
        headers = [("Accept", "application/json"), *([("Authorization", authorization)] if authorization else [])]
        headers += [("Content-Type", "application/json")] if data is not None else []
        network = self._network() if self._network is not None else CheckedNetwork(allow_private=True)
        for last in (False, True):
            answer = await request(method, target, headers, network, body=data)
            if answer.status != 429:
                words = (*authorization.split(), *self._set().split())
                return self._read(answer, Secrets((authorization, self._set(), *words), least=_LEAST_WORD))
            wait_s, left_s = _wait_of(answer), context.remaining_s()
            too_long = wait_s > LONGEST_WAIT_S or (left_s is not None and wait_s + _MARGIN_S > left_s)
            if last or too_long:
                text = f"{self.name} takes no more messages now; try again in {math.ceil(wait_s)} s"
                raise ToolFailure(text, code="rate-limited")
            await asyncio.sleep(wait_s)
        raise AssertionError("the second answer ends the loop")

    def _read(self, answer: Answer, secrets: Secrets) -> dict[str, str] | Refused:
        try:
            given: object = json.loads(answer.body) if answer.body else {}
        except (ValueError, RecursionError):
            given = None
        data = cast("dict[str, object]", given) if isinstance(given, dict) else None
        texts = {key: secrets.out_of(str(said)) for key, said in (data or {}).items() if isinstance(said, str | int)}
        clean = {key: printable(" ".join(text.split())) for key, text in texts.items()}
        if 200 <= answer.status < 300 and data is not None and not answer.is_cut:
            return clean
        if 200 <= answer.status < 300:
            raise ToolFailure(f"{self.name} {_UNREADABLE}", code="bad-answer")
        code = clean.get("error") or clean.get("code", "")
        return Refused(answer.status, code[:SAID], clean.get("message", "")[:SAID])


def failure(name: str, refused: Refused, words: Mapping[int, str]) -> ToolFailure:
    """Describe a refusal for the model (``words`` by status) and, with all details, for the operator."""
    text = words.get(refused.status, f"did not take the message (status {refused.status})")
    if refused.status >= 500:
        text = "cannot take messages now; try again later"
    said = " ".join(part for part in (refused.code, refused.said) if part)
    detail = f"{name} {text}: it answered {refused.status}{f', {said}' if said else ''}"
    return ToolFailure(f"{name} {text}", code="not-sent", detail=detail)


def _wait_of(answer: Answer) -> float:
    """Return how many seconds the service asks us to wait; if it does not say, longer than we ever wait."""
    try:
        wait_s = float(answer.header("retry-after"))
    except ValueError:
        return 60.0
    return min(max(wait_s, 0.0), 86_400.0) if math.isfinite(wait_s) else 60.0


MAX_CHARS = 2_000
_DISCORD = "Discord"
_NONCE_CHARS = 25
_DISCORD_WORDS = {
    400: "did not take the message",
    401: "is not set up right here; go on without it",
    403: "does not let messages be sent to that channel; use another one",
    404: "has no such channel; use another one",
}


class Discord:
    """A bot. ``variables``: the environment with its token."""

    def __init__(
        self, settings: DiscordEndpoint, network: Callable[[], CheckedNetwork] | None, variables: Mapping[str, str]
    ) -> None:
        self._service = Service(_DISCORD, settings.url, network, settings.token_env, variables)

    def fault(self, message: Message) -> str:
        """Reject a message that is too long."""
        count = len(message.content)
        if count <= MAX_CHARS:
            return ""
        return f"a message on Discord has at most {MAX_CHARS:,} characters, and this has {count:,}: shorten it"

    async def send(self, message: Message, context: ToolExecutionContext) -> dict[str, JsonValue]:
        """Post it, without a ping to anybody; the same call never posts twice."""
        token = self._service.secret()
        body: dict[str, object] = {
            "content": message.content,
            "allowed_mentions": {"parse": []},
            **({"nonce": context.call_id[-_NONCE_CHARS:], "enforce_nonce": True} if context.call_id else {}),
        }
        path = f"channels/{message.recipient}/messages"
        answer = await self._service.ask("POST", path, context, authorization=f"Bot {token}", body=body)
        if isinstance(answer, Refused):
            raise failure(_DISCORD, answer, _DISCORD_WORDS)
        return {"message_id": answer.get("id", "")[:SAID]}


MAX_GRAPHEMES = 300
MAX_BYTES = 3_000
_BLUESKY = "Bluesky"
_POST = "app.bsky.feed.post"
_GRAPHEME = regex.compile(r"\X")
_EXPIRED = frozenset({"ExpiredToken", "InvalidToken"})
_BLUESKY_WORDS = {401: "is not set up right here; go on without it", 404: "has no such account; use another one"}


@frozen
class _Session:
    """The server's answer to the password: a token for some hours, and the account's own id."""

    token: str
    did: str


class Bluesky:
    """One account. ``variables``: the environment with its app password.

    A session is used as long as the server accepts it, since the server permits few a day.
    """

    def __init__(
        self, settings: BlueskyEndpoint, network: Callable[[], CheckedNetwork] | None, variables: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._service = Service(_BLUESKY, settings.url, network, settings.password_env, variables)
        self._session: _Session | None = None

    def fault(self, message: Message) -> str:
        """Reject a message that is too long together with the mention before it."""
        text, _ = self._text(message)
        count = sum(1 for _ in _GRAPHEME.finditer(text))
        if count <= MAX_GRAPHEMES and len(text.encode()) <= MAX_BYTES:
            return ""
        said = f"{count:,}" if count > MAX_GRAPHEMES else f"{len(text.encode()):,} bytes"
        return (
            f"a post on Bluesky has at most {MAX_GRAPHEMES} characters with the handle, and this has {said}: shorten it"
        )

    async def send(self, message: Message, context: ToolExecutionContext) -> dict[str, JsonValue]:
        """Post it and mention the account, which notifies it; a post to the own account has no mention."""
        session = await self._sign_in(context)
        text, mention = self._text(message)
        record: dict[str, object] = {"$type": _POST, "text": text, "createdAt": _now()}
        if mention:
            query = urlencode({"handle": message.recipient})
            found = await self._service.ask("GET", f"xrpc/com.atproto.identity.resolveHandle?{query}", context)
            if isinstance(found, Refused):
                raise failure(_BLUESKY, found, {**_BLUESKY_WORDS, 400: "has no such account; use another one"})
            feature = {"$type": "app.bsky.richtext.facet#mention", "did": found.get("did", "")}
            record["facets"] = [{"index": {"byteStart": 0, "byteEnd": len(mention.encode())}, "features": [feature]}]
        answer = await self._create(record, session, context)
        if isinstance(answer, Refused) and answer.code in _EXPIRED:
            self._session = None
            answer = await self._create(record, await self._sign_in(context), context)
        if isinstance(answer, Refused):
            raise failure(_BLUESKY, answer, _BLUESKY_WORDS)
        return {"uri": answer.get("uri", "")[:SAID]}

    def _text(self, message: Message) -> tuple[str, str]:
        """Return the text of the post, and the mention that it begins with."""
        handle = message.recipient
        if handle.lower() == self._settings.handle.lower():
            return message.content, ""
        mention = f"@{handle}"
        return f"{mention} {message.content}", mention

    async def _sign_in(self, context: ToolExecutionContext) -> _Session:
        if self._session is None:
            body = {"identifier": self._settings.handle, "password": self._service.secret()}
            answer = await self._ask("com.atproto.server.createSession", context, body=body)
            if isinstance(answer, Refused):
                raise failure(_BLUESKY, answer, _BLUESKY_WORDS)
            token, did = answer.get("accessJwt", ""), answer.get("did", "")
            if not (token and did and token.isascii() and token.isprintable()):
                raise ToolFailure("Bluesky answered in a way that could not be read", code="bad-answer")
            self._session = _Session(token, did)
        return self._session

    async def _create(
        self, record: Mapping[str, object], session: _Session, context: ToolExecutionContext
    ) -> dict[str, str] | Refused:
        body = {"repo": session.did, "collection": _POST, "record": record}
        return await self._ask("com.atproto.repo.createRecord", context, body=body, token=session.token)

    async def _ask(
        self, method: str, context: ToolExecutionContext, *, body: Mapping[str, object], token: str = ""
    ) -> dict[str, str] | Refused:
        bearer = f"Bearer {token}" if token else ""
        return await self._service.ask("POST", f"xrpc/{method}", context, authorization=bearer, body=body)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_GONE = "nobody of that name gets messages from you any more; go on without it"
_UNTRUSTED = "that target cannot be reached now; go on without it"
_log = logging.getLogger(__name__)


class Listener(Protocol):
    """Receives messages to the user; if it raises, the message was not taken."""

    def __call__(self, message: Received, /) -> object:
        """Show it to the user, or handle it."""
        ...


class Outside(Protocol):
    """Sends messages to another service."""

    def fault(self, message: Message) -> str:
        """Explain why the message can never be sent; empty if it can."""
        ...

    async def send(self, message: Message, context: ToolExecutionContext) -> dict[str, JsonValue]:
        """Send it and return facts for the model. Raises ToolFailure."""
        ...


class Messages:
    """The endpoints of one workspace. ``policy`` returns the present one; ``trusts`` judges an endpoint's definition.

    ``network`` makes the connecting network; ``variables``: the environment with the secrets.
    """

    def __init__(
        self,
        store: BlockStore,
        policy: Callable[[], Policy],
        trusts: Callable[[str], bool],
        *,
        network: Callable[[], CheckedNetwork] | None = None,
        variables: Mapping[str, str] = os.environ,
    ) -> None:
        self._store, self._policy, self._trusts = store, policy, trusts
        self._network, self._variables = network, variables
        self._lock = fork_safe_lock()
        self._listeners: tuple[Listener, ...] = ()
        self._made: dict[DiscordEndpoint | BlueskyEndpoint, Outside] = {}

    @property
    def port(self) -> MessagePort:
        """The port of the tool."""
        return MessagePort(self.send, self.fault)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Pass messages to the user on to ``listener``, in the loop of the call; the result ends that."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def leave() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return leave

    def fault(self, message: Message) -> str:
        """Explain why a message can never be sent; empty if it can."""
        outside = self._outside(message.target)
        return "" if outside is None else outside.fault(message)

    async def send(self, message: Message, context: ToolExecutionContext) -> dict[str, JsonValue]:
        """Pass a message to its endpoint and return the result. Raises ToolFailure.

        A message to the user goes to the listeners; if none takes it, into the inbox of the program.
        """
        policy = self._policy()
        endpoints = policy.endpoints
        limit = policy.recipients.get(message.target)
        if message.target not in endpoints.targets or (limit is not None and message.recipient not in limit):
            raise ToolFailure(_GONE, code="no-endpoint")
        if message.target == "user":
            received, is_taken = self._message_of(message, context), False
            for listener in self._listeners:
                try:
                    listener(received)
                    is_taken = True
                except Exception:  # noqa: BLE001 somebody else's function; the inbox gets the message
                    _log.exception("a listener for messages raised")
            return {"delivered": True} if is_taken else await self._put(("",), message, context)
        if message.target in {"agent", "group"}:
            agents = endpoints.groups[message.recipient] if message.target == "group" else (message.recipient,)
            return await self._put(tuple(map(owner_of, agents)), message, context)
        outside = self._outside(message.target)
        if outside is None:
            raise ToolFailure(_GONE, code="no-endpoint")
        if not self._trusts(message.target):
            detail = f"the endpoint `{message.target}` is not trusted yet: `gatewright check --trust` trusts it"
            raise ToolFailure(_UNTRUSTED, code="not-trusted", detail=detail)
        return await outside.send(message, context)

    async def _put(
        self, owners: Sequence[str], message: Message, context: ToolExecutionContext
    ) -> dict[str, JsonValue]:
        received = self._message_of(message, context)
        await asyncio.to_thread(deliver, self._store, owners, received, is_wanted=lambda: not context.cancelled)
        return {"waiting": True, **({"inboxes": len(owners)} if len(owners) > 1 else {})}

    def _message_of(self, message: Message, context: ToolExecutionContext) -> Received:
        group = message.recipient if message.target == "group" else ""
        now, user_id = self._store.clock.wall_s(), context.user_id or ""
        return Received(new_id("mem"), context.agent_id, message.content, message.metadata, now, user_id, group)

    def _outside(self, target: str) -> Outside | None:
        """Return the sender for a target of the present policy, the same one until its definition changes."""
        endpoints = self._policy().endpoints
        settings = {"discord": endpoints.discord, "bluesky": endpoints.bluesky}.get(target)
        if settings is None:
            return None
        with self._lock:
            if settings not in self._made:
                self._made = {one: made for one, made in self._made.items() if type(one) is not type(settings)}
                match settings:
                    case DiscordEndpoint():
                        self._made[settings] = Discord(settings, self._network, self._variables)
                    case BlueskyEndpoint():
                        self._made[settings] = Bluesky(settings, self._network, self._variables)
            return self._made[settings]
