"""A tool whose calls are HTTP requests: what they reach, and what of a call cannot be sent. It does no I/O itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gatewright.arguments.url import UrlRefused, UrlTarget, parse_url
from gatewright.base.errors import RegistrationError, ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.once import once
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Normalization, ResourceBounds
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.http_request import RequestTemplate, base_address, read_requests
from gatewright.tools.operation import ArgumentIssue
from gatewright.tools.port import WebPort
from gatewright.tools.result import normalized

_NET = frozenset({CapabilityKind.NET_READ, CapabilityKind.NET_WRITE})
_SHOWN_URL = 500


class HttpTool(DefinedTool, abstract=True):
    """A tool of a catalog of type `http`. ``run`` describes its requests, which go below ``url``.

    ``headers_env``: headers that each request gets from the environment variable that is named there. Raises
    RegistrationError for requests that cannot be made.
    """

    leaves_copy = True
    enforces_bounds = True
    normalization = Normalization.CUSTOM
    resource_bounds = ResourceBounds(timeout_s=30.0, network_bytes=10 * 1024 * 1024, max_requests=6)

    def __init__(
        self, definition: ToolDefinition, *, url: str, headers_env: Mapping[str, str], run: object, **rest: Any
    ) -> None:
        self._base, self._headers_env = base_address(url), headers_env
        self._requests = read_requests(run)
        super().__init__(definition, runner=self._send, **rest)
        self._author = self
        names = {spec.name for spec in self.operations}
        if not self._requests.is_single and names != set(self._requests.by_operation):
            raise RegistrationError(f"tool `{self.name}`: `run/operations` names other operations than its schema has")

    def facts(self) -> ToolFacts:
        """As of every tool; each operation needs the network, and is judged by where its requests go."""
        return self._web_facts

    @once
    def _web_facts(self) -> ToolFacts:
        facts = super().facts()
        return replace(facts, operations=tuple(self._with_needs(row) for row in facts.operations))

    def reached(self, operation: str, web: WebPort | None) -> tuple[UrlTarget | UrlRefused, ...]:
        """The server of the catalog, read or written to."""
        kinds = {request.writes for request in self._requests.of(operation)}
        base = parse_url(self._base.text, allow_private=web is not None and web.allow_private)
        return (base,) if isinstance(base, UrlRefused) else tuple(replace(base, writes=one) for one in sorted(kinds))

    def missing_arguments(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """What is missing, and what cannot stand in an address."""
        request = self._author.request_of(arguments)
        issues = tuple(request.issues(arguments)) if request is not None else ()
        return (*super().missing_arguments(operation, arguments), *issues)

    def request_of(self, arguments: Mapping[str, object]) -> RequestTemplate | None:
        """The request that the arguments call for, as the definition says; None: no single one."""
        names = self.operations_of(arguments) or ()
        found = self._requests.of(names[0]) if len(names) == 1 else ()
        return found[0] if len(found) == 1 else None

    def normalize(self, result: JsonValue | bytes) -> bytes:
        """A text and bytes as they are, anything else as canonical JSON."""
        return result.encode() if isinstance(result, str) else normalized(result)

    def text_for_model(self, result: JsonValue) -> str | None:
        """A text as it stands, anything else as canonical JSON."""
        return self.normalize(result).decode()

    async def _send(self, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> JsonValue | bytes:
        request, web = self.request_of(arguments), context.require_web()
        if request is None:
            raise ToolFailure(f"`{self.name}` makes one request for each call; name one operation", code="bad-argument")
        filled = request.filled(self._base, arguments, allow_private=web.allow_private)
        follow = _follower(arguments, context)
        return await web.send(filled, headers_env=self._headers_env, follow=follow, bounds=context.bounds)

    def _with_needs(self, row: OperationFacts) -> OperationFacts:
        writes = {request.writes for request in self._requests.of(row.name)}
        needs = {CapabilityKind.NET_WRITE if one else CapabilityKind.NET_READ for one in writes}
        return replace(row, capabilities=row.capabilities | needs, judged=row.judged | _NET)


def _follower(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Callable[[UrlTarget], None]:
    """Refuse a redirect to an address that the same call would not be carried out for."""

    def follow(target: UrlTarget) -> None:
        text = f"the server redirects to `{target.text[:_SHOWN_URL]}`, where this call may not go"
        if context.again is None:
            raise ToolFailure(text, code="redirected")
        try:
            context.again(arguments, (target,))
        except ToolFailure as error:
            raise ToolFailure(text, code=error.code, detail=f"{text}: {error.detail}") from None

    return follow
