"""Public posts on Bluesky that mention an account, by XRPC and the app password of ours.

The protocol: https://atproto.com/specs/xrpc, com.atproto.server.createSession, com.atproto.identity.resolveHandle,
com.atproto.repo.createRecord, app.bsky.feed.post and app.bsky.richtext.facet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import regex

from gatewright.adapters.service import SAID, Refused, Service, failure
from gatewright.adapters.web_request import CheckedNetwork
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen

if TYPE_CHECKING:
    from gatewright.base.jsonvalue import JsonValue
    from gatewright.builtins import Message
    from gatewright.policy.scope import BlueskyEndpoint
    from gatewright.tools.context import ToolExecutionContext

MAX_GRAPHEMES = 300
MAX_BYTES = 3_000
_NAME = "Bluesky"
_POST = "app.bsky.feed.post"
_GRAPHEME = regex.compile(r"\X")
_EXPIRED = frozenset({"ExpiredToken", "InvalidToken"})
_WORDS = {401: "is not set up right here; go on without it", 404: "has no such account; use another one"}


@frozen
class _Session:
    """What the server gives for the password: a token for some hours, and the account's own id."""

    token: str
    did: str


class Bluesky:
    """One account. ``variables``: where its app password is found.

    The session is kept for as long as the server takes it, since few may be made in a day.
    """

    def __init__(
        self, settings: BlueskyEndpoint, network: Callable[[], CheckedNetwork] | None, variables: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._service = Service(_NAME, settings.url, network, settings.password_env, variables)
        self._session: _Session | None = None

    def fault(self, message: Message) -> str:
        """Whether it is too long with the mention in front."""
        text, _ = self._text(message)
        count = sum(1 for _ in _GRAPHEME.finditer(text))
        if count <= MAX_GRAPHEMES and len(text.encode()) <= MAX_BYTES:
            return ""
        said = f"{count:,}" if count > MAX_GRAPHEMES else f"{len(text.encode()):,} bytes"
        return (
            f"a post on Bluesky has at most {MAX_GRAPHEMES} characters with the handle, and this has {said}: shorten it"
        )

    async def send(self, message: Message, context: ToolExecutionContext) -> dict[str, JsonValue]:
        """Post it, with the account mentioned so that it is notified; to the own account a post without mention."""
        session = await self._signed_in(context)
        text, mention = self._text(message)
        record: dict[str, object] = {"$type": _POST, "text": text, "createdAt": _now()}
        if mention:
            query = urlencode({"handle": message.recipient})
            found = await self._service.ask("GET", f"xrpc/com.atproto.identity.resolveHandle?{query}", context)
            if isinstance(found, Refused):
                raise failure(_NAME, found, {**_WORDS, 400: "has no such account; use another one"})
            feature = {"$type": "app.bsky.richtext.facet#mention", "did": found.get("did", "")}
            record["facets"] = [{"index": {"byteStart": 0, "byteEnd": len(mention.encode())}, "features": [feature]}]
        answer = await self._create(record, session, context)
        if isinstance(answer, Refused) and answer.code in _EXPIRED:
            self._session = None
            answer = await self._create(record, await self._signed_in(context), context)
        if isinstance(answer, Refused):
            raise failure(_NAME, answer, _WORDS)
        return {"uri": answer.get("uri", "")[:SAID]}

    def _text(self, message: Message) -> tuple[str, str]:
        """The text of the post, and the mention that it begins with, if it has one."""
        handle = message.recipient
        if handle.lower() == self._settings.handle.lower():
            return message.content, ""
        mention = f"@{handle}"
        return f"{mention} {message.content}", mention

    async def _signed_in(self, context: ToolExecutionContext) -> _Session:
        if self._session is None:
            body = {"identifier": self._settings.handle, "password": self._service.secret()}
            answer = await self._ask("com.atproto.server.createSession", context, body=body)
            if isinstance(answer, Refused):
                raise failure(_NAME, answer, _WORDS)
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
