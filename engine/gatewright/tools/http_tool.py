"""A tool whose calls are HTTP requests: their addresses, and the parts of a call that cannot be sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gatewright.arguments.url import UrlRefused, UrlTarget, parse_url
from gatewright.base.errors import RegistrationError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import once
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.tools.context import WebPort
from gatewright.tools.declaration import Determinism, Normalization, ResourceBounds, ResultType, SideEffect
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import Conduct, ToolDefinition
from gatewright.tools.http_request import base_address, read_requests
from gatewright.tools.operation import ArgumentIssue
from gatewright.tools.result import normal_bytes

_NET = frozenset({CapabilityKind.NET_READ, CapabilityKind.NET_WRITE})


BOUNDS = ResourceBounds(timeout_s=30.0, network_bytes=10 * 1024 * 1024, max_requests=6)
"""The limits of a call whose definition sets none."""
_RESULTS = frozenset({ResultType.ANY, ResultType.OBJECT, ResultType.ARRAY, ResultType.STRING, ResultType.BINARY})
_OF_WORLD = frozenset({Determinism.MAYBE, Determinism.NON_DETERMINISTIC})


class HttpTool(DefinedTool, abstract=True):
    """A tool of a catalog of type `http`: the requests in the `run` of its definition, below ``url``.

    Raises RegistrationError for impossible requests.
    """

    enforces_bounds = True
    normalization = Normalization.CUSTOM
    resource_bounds = BOUNDS

    def __init__(self, definition: ToolDefinition, *, url: str, **rest: Any) -> None:
        self._base, self._requests = base_address(url), read_requests(definition.run)
        super().__init__(definition, **rest)
        writes = {request.writes for request in self._requests.by_operation.values()}
        self.side_effects |= {SideEffect.NET_WRITE if one else SideEffect.NET_READ for one in writes}
        names = {spec.name for spec in self.operations}
        if not self._requests.is_single and names != set(self._requests.by_operation):
            raise RegistrationError(f"tool `{self.name}`: `run/operations` names other operations than its schema has")
        self._take(definition.conduct)

    def _take(self, conduct: Conduct) -> None:
        """Take over the definition's conduct. Raises RegistrationError for a conduct that no request has."""
        said = conduct.bounds
        if said.memory_bytes is not None or said.cpu_s is not None:
            raise RegistrationError(f"tool `{self.name}`: a request has no bounds of memory and processor time")
        if conduct.determinism not in _OF_WORLD:
            why = "what a server answers depends on more than the arguments and the workspace"
            raise RegistrationError(f"tool `{self.name}` is declared {conduct.determinism}, but {why}")
        if conduct.result_type not in _RESULTS:
            raise RegistrationError(f"tool `{self.name}`: the answer to a request is no {conduct.result_type}")
        self.determinism, self.result_type = conduct.determinism, conduct.result_type
        if conduct.normalization is Normalization.BINARY:
            self.normalization = Normalization.BINARY
        self.resource_bounds = replace(
            said,
            network_bytes=said.network_bytes or BOUNDS.network_bytes,
            max_requests=said.max_requests or BOUNDS.max_requests,
        )

    def facts(self) -> ToolFacts:
        """Return the facts of every tool; each operation needs the network, and is judged by its address."""
        return self._web_facts

    @once
    def _web_facts(self) -> ToolFacts:
        facts = super().facts()
        return replace(facts, operations=tuple(self._with_needs(row) for row in facts.operations))

    def web_targets(self, operation: str, web: WebPort | None) -> tuple[UrlTarget | UrlRefused, ...]:
        """Return the server of the catalog, read or written to."""
        kinds = {request.writes for request in self._requests.of(operation)}
        base = parse_url(self._base.text, allow_private=web is not None and web.allow_private)
        return (base,) if isinstance(base, UrlRefused) else tuple(replace(base, writes=one) for one in sorted(kinds))

    def missing_arguments(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """Return missing arguments, and those that cannot stand in an address."""
        requests = self._requests.of(operation)
        issues = tuple(requests[0].issues(arguments)) if len(requests) == 1 else ()
        return (*super().missing_arguments(operation, arguments), *issues)

    def normalize(self, result: JsonValue | bytes) -> bytes:
        """Return a text and bytes as they are, anything else as canonical JSON."""
        return result.encode() if isinstance(result, str) else normal_bytes(result)

    def text_for_model(self, result: JsonValue) -> str | None:
        """Return a text as it is, anything else as canonical JSON."""
        return self.normalize(result).decode()

    def _with_needs(self, row: OperationFacts) -> OperationFacts:
        writes = {request.writes for request in self._requests.of(row.name)}
        needs = {CapabilityKind.NET_WRITE if one else CapabilityKind.NET_READ for one in writes}
        return replace(row, capabilities=row.capabilities | needs, judged=row.judged | _NET)
