"""Where the messages of agents go: one endpoint for each target that the policy names, and what hands them over.

Endpoints that connect do so only once the operator trusted their exact definition, and to checked addresses alone.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from gatewright.base.errors import ToolFailure
from gatewright.base.ids import new_id
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins import Message, MessagePort
from gatewright.memory.agentblocks import owner_of
from gatewright.memory.inbox import Received, deliver
from gatewright.policy.document import Policy
from gatewright.policy.scope import BlueskyEndpoint, DiscordEndpoint
from gatewright.record.process import fork_safe_lock
from gatewright.tools.context import ToolExecutionContext

if TYPE_CHECKING:
    from gatewright.adapters.web_request import CheckedNetwork
    from gatewright.memory.block_store import BlockStore

_GONE = "nobody of that name gets messages from you any more; go on without it"
_UNTRUSTED = "that target cannot be reached now; go on without it"
_log = logging.getLogger(__name__)


class Listener(Protocol):
    """Takes a message to the user. One that raises has not taken it."""

    def __call__(self, message: Received, /) -> object:
        """Show it to the user, or see to it."""
        ...


class Outside(Protocol):
    """What sends messages to another service. ``fault``: why one could never be sent, in words for the model."""

    def fault(self, message: Message) -> str:
        """Why it could never be sent; empty for nothing."""
        ...

    async def send(self, message: Message, context: ToolExecutionContext) -> dict[str, JsonValue]:
        """Send it; what is worth telling of it. Raises ToolFailure."""
        ...


class Messages:
    """The endpoints of one workspace. ``policy``: as it is now; ``trusts``: whether an endpoint's definition is.

    ``network`` makes what connections are made by; ``variables``: where secrets are found by their names.
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
        """What the tool sends by."""
        return MessagePort(self.send, self.fault)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Give messages to the user to ``listener`` from now on, in the loop of the call; the answer ends it."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def leave() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return leave

    def fault(self, message: Message) -> str:
        """Why a message could never be sent; empty for nothing."""
        outside = self._outside(message.target)
        return "" if outside is None else outside.fault(message)

    async def send(self, message: Message, context: ToolExecutionContext) -> dict[str, JsonValue]:
        """Hand a message to its endpoint; what became of it. Raises ToolFailure.

        One to the user goes to whoever listens; where nobody does, or takes it, into the inbox of the program.
        """
        policy = self._policy()
        endpoints = policy.endpoints
        limit = policy.recipients.get(message.target)
        if message.target not in endpoints.targets or (limit is not None and message.recipient not in limit):
            raise ToolFailure(_GONE, code="no-endpoint")
        if message.target == "user":
            told, is_taken = self._received(message, context), False
            for listener in self._listeners:
                try:
                    listener(told)
                    is_taken = True
                except Exception:  # noqa: BLE001 somebody else's function; the message is kept instead
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
        told = self._received(message, context)
        await asyncio.to_thread(deliver, self._store, owners, told, is_wanted=lambda: not context.cancelled)
        return {"waiting": True, **({"inboxes": len(owners)} if len(owners) > 1 else {})}

    def _received(self, message: Message, context: ToolExecutionContext) -> Received:
        group = message.recipient if message.target == "group" else ""
        now, user_id = self._store.clock.wall_s(), context.user_id or ""
        return Received(new_id("mem"), context.agent_id, message.content, message.metadata, now, user_id, group)

    def _outside(self, target: str) -> Outside | None:
        """What sends to that target as the policy is now; one for as long as its definition stays."""
        endpoints = self._policy().endpoints
        settings = {"discord": endpoints.discord, "bluesky": endpoints.bluesky}.get(target)
        if settings is None:
            return None
        with self._lock:
            if settings not in self._made:
                self._made = {one: made for one, made in self._made.items() if type(one) is not type(settings)}
                match settings:
                    case DiscordEndpoint():
                        from gatewright.adapters.discord import Discord

                        self._made[settings] = Discord(settings, self._network, self._variables)
                    case BlueskyEndpoint():
                        from gatewright.adapters.bluesky import Bluesky

                        self._made[settings] = Bluesky(settings, self._network, self._variables)
            return self._made[settings]
