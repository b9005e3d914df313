"""Messages to a channel on Discord, by its REST interface and the token of a bot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gatewright.adapters.service import SAID, Refused, Service, failure
from gatewright.adapters.web_request import CheckedNetwork

if TYPE_CHECKING:
    from gatewright.base.jsonvalue import JsonValue
    from gatewright.builtins import Message
    from gatewright.policy.scope import DiscordEndpoint
    from gatewright.tools.context import ToolExecutionContext

MAX_CHARS = 2_000
_NAME = "Discord"
_NONCE_CHARS = 25
_WORDS = {
    400: "did not take the message",
    401: "is not set up right here; go on without it",
    403: "does not let messages be sent to that channel; use another one",
    404: "has no such channel; use another one",
}


class Discord:
    """A bot. ``variables``: where its token is found."""

    def __init__(
        self, settings: DiscordEndpoint, network: Callable[[], CheckedNetwork] | None, variables: Mapping[str, str]
    ) -> None:
        self._service = Service(_NAME, settings.url, network, settings.token_env, variables)

    def fault(self, message: Message) -> str:
        """Whether it is too long."""
        count = len(message.content)
        if count <= MAX_CHARS:
            return ""
        return f"a message on Discord has at most {MAX_CHARS:,} characters, and this has {count:,}: shorten it"

    async def send(self, message: Message, context: ToolExecutionContext) -> dict[str, JsonValue]:
        """Post it. Whatever stands in it, nobody is pinged; the same call never posts twice."""
        token = self._service.secret()
        body: dict[str, object] = {
            "content": message.content,
            "allowed_mentions": {"parse": []},
            **({"nonce": context.call_id[-_NONCE_CHARS:], "enforce_nonce": True} if context.call_id else {}),
        }
        path = f"channels/{message.recipient}/messages"
        answer = await self._service.ask("POST", path, context, authorization=f"Bot {token}", body=body)
        if isinstance(answer, Refused):
            raise failure(_NAME, answer, _WORDS)
        return {"message_id": answer.get("id", "")[:SAID]}
