"""The ``send_message`` tool: a message to the user, other agents, Discord or Bluesky; a port sends it.

Each policy has its own tool, whose schema holds only the recipients that it allows. The target is the operation, so
that a policy allows, asks about or denies each by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field

from gatewright.arguments.url import UrlRefused, UrlTarget, parse_url
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.result import COUNT, FLAG, TEXT, answer, fields, success
from gatewright.builtins.root_file import Input, RootTool
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.document import Policy
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import ExitLoop, ToolRule
from gatewright.policy.target import Assessment
from gatewright.policy.verdict import EVERY_ENDPOINT, TARGETS, SafetyTier, need_of
from gatewright.tools.context import ToolExecutionContext, WebPort
from gatewright.tools.declaration import Determinism, ResourceBounds, SideEffect
from gatewright.tools.operation import ArgumentIssue
from gatewright.tools.shape import ModelShape

MAX_CHARS = 10_000
OUTSIDE = ("discord", "bluesky")
"""The targets on the web."""
_RECIPIENT = {"agent": "id", "group": "name", "discord": "channel_id", "bluesky": "handle"}
_SHOWN = 80


@frozen
class Message:
    """A message to send. ``recipient``: an agent, a group, a channel or an account; empty for the user."""

    target: str
    recipient: str
    content: str
    metadata: Mapping[str, JsonValue]


@frozen
class MessagePort:
    """The sender of messages.

    ``send`` returns the outcome of one; ``fault`` tells the model why one could never be sent, else nothing. Without a
    port the tool only decides.
    """

    send: Callable[[Message, ToolExecutionContext], Awaitable[dict[str, JsonValue]]]
    fault: Callable[[Message], str]


class User(Input):
    """The user."""

    type: Annotated[Literal["user"], Field(description="The user, who is told by the program that runs you.")]


class Agent(Input):
    """Another agent."""

    type: Annotated[Literal["agent"], Field(description="Another agent, which finds the message in its inbox.")]
    id: Annotated[str, Field(max_length=256, description="The id of the agent.")]


class Group(Input):
    """Several agents."""

    type: Annotated[Literal["group"], Field(description="Several agents together.")]
    name: Annotated[str, Field(max_length=256, description="The name of the group.")]


class Discord(Input):
    """A channel on Discord."""

    type: Annotated[Literal["discord"], Field(description="A channel on Discord; at most 2,000 characters.")]
    channel_id: Annotated[str, Field(pattern="^[0-9]{1,20}$", description="The id of the channel.")]


class Bluesky(Input):
    """An account on Bluesky."""

    type: Annotated[
        Literal["bluesky"],
        Field(
            description="A public post on Bluesky that mentions the account; at most 300 characters with its handle."
        ),
    ]
    handle: Annotated[
        str,
        Field(max_length=253, pattern=r"^[A-Za-z0-9.-]+$", description="The account, `name.example.com`, without `@`."),
    ]


class SendMessage(Input):
    """What to send to whom."""

    target: Annotated[
        User | Agent | Group | Discord | Bluesky, Field(discriminator="type", description="Who gets the message.")
    ]
    content: Annotated[str, Field(min_length=1, max_length=MAX_CHARS, description="The text.")]
    metadata: Annotated[
        dict[str, Any] | None, Field(max_length=32, description="More for the program or agent that reads the message.")
    ] = None


class SendMessageTool(RootTool):
    """Sends one message.

    ``policy``: the policy whose endpoints it has; without a policy it has all kinds of endpoints.
    """

    name = "send_message"
    description = "Sends a message. The conversation ends with it: say all that is to be said."
    operation_field = "target.type"
    usage_rule = "When send_message is called, the conversation ends."
    examples = ({"target": {"type": "user"}, "content": "The notes are in order."},)
    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.NET_WRITE})
    determinism = Determinism.MAYBE
    operation_capabilities: ClassVar[Mapping[str, Collection[str]]] = MappingProxyType(
        {target: frozenset({"NetWrite"} if target in OUTSIDE else ()) for target in TARGETS}
    )
    resource_bounds = ResourceBounds(timeout_s=30.0)
    tool_rules = (ToolRule("send_message", ExitLoop(), priority=0),)
    needs = (EVERY_ENDPOINT,)
    leaves_copy = True
    output_schema = answer(
        fields({}, {"delivered": FLAG, "waiting": FLAG, "inboxes": COUNT, "message_id": TEXT, "uri": TEXT})
    )
    input_model = SendMessage
    texts = frozenset({"target", "content", "metadata"})

    def __init__(self, policy: Policy | None = None, port: MessagePort | None = None) -> None:
        self._endpoints, self._port = policy.endpoints if policy is not None else None, port
        self.is_executable = port is not None
        limits = {} if policy is None else policy.recipients
        if limits and isinstance(self._shape, ModelShape):
            self._shape = replace(self._shape, schema=_limit_recipients(self._shape.schema, limits))

    def facts(self) -> ToolFacts:
        """Return the facts of every tool; each target needs its endpoint, and an outside one is judged by its
        address.
        """
        facts = super().facts()
        judged = frozenset({CapabilityKind.NET_WRITE})
        rows = (
            replace(row, needs=need_of(row.name), judged=judged if row.name in OUTSIDE else row.judged)
            for row in facts.operations
        )
        return replace(facts, operations=tuple(rows))

    def web_targets(self, operation: str, web: WebPort | None) -> tuple[UrlTarget, ...]:
        """Return the server of the endpoint."""
        endpoint = None if self._endpoints is None else getattr(self._endpoints, operation, None)
        target = parse_url(endpoint.url, allow_private=True) if operation in OUTSIDE and endpoint is not None else None
        return () if target is None or isinstance(target, UrlRefused) else (replace(target, writes=True),)

    def missing_arguments(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """Return missing arguments, and a text that its target could never take."""
        found = super().missing_arguments(operation, arguments)
        why = "" if self._port is None else self._port.fault(message_of(arguments))
        return (*found, ArgumentIssue("/content", why)) if why else found

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Show the message to the person who is asked."""
        message = message_of(arguments)
        lines = "".join(f"+{line}\n" for line in message.content.splitlines())
        return Assessment(diff=f"to {words_of(message)}:\n{lines}")

    async def run(self, arguments: SendMessage, context: ToolExecutionContext) -> JsonValue:
        """Send it."""
        if self._port is None:
            raise ToolFailure(f"`{self.name}` cannot be executed here", code="not-supported")
        message = message_of(arguments.model_dump(mode="json"))
        return success(f"sent to {words_of(message)}", await self._port.send(message, context))


def message_of(arguments: Mapping[str, object]) -> Message:
    """Read the message from the arguments."""
    target, metadata = (
        cast("dict[str, JsonValue]", given) if isinstance(given := arguments.get(name), dict) else {}
        for name in ("target", "metadata")
    )
    kind = str(target.get("type", ""))
    return Message(kind, str(target.get(_RECIPIENT.get(kind, ""), "")), str(arguments.get("content", "")), metadata)


def words_of(message: Message) -> str:
    """Name the recipient in words."""
    shown = f"`{message.recipient[:_SHOWN]}`"
    words = {"agent": f"agent {shown}", "group": f"group {shown}", "discord": f"channel {shown} on Discord"}
    words |= {"user": "the user", "bluesky": f"{shown} on Bluesky"}
    return words.get(message.target, "nobody")


def _limit_recipients(schema: Mapping[str, Any], limits: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Limit the recipients in the schema to those of ``limits``, by target."""
    target = schema["properties"]["target"]
    branches: list[dict[str, Any]] = []
    for branch in target["oneOf"]:
        properties = dict(branch["properties"])
        kind = properties["type"]["const"]
        if kind in limits:
            properties[_RECIPIENT[kind]] = {**properties[_RECIPIENT[kind]], "enum": list(limits[kind])}
        branches.append({**branch, "properties": properties})
    return {**schema, "properties": {**schema["properties"], "target": {**target, "oneOf": branches}}}
