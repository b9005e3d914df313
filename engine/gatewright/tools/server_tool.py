"""Tools of MCP servers and of HTTP servers, and proposals of tiers and side effects for foreign tools.

Annotations of MCP tools are hints (modelcontextprotocol.io, schema 2025-11-25, ToolAnnotations): a liar wants the lower
tier. If hints and name disagree, the higher tier is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, cast

from gatewright.arguments.url import UrlRefused, UrlTarget, parse_url
from gatewright.base.errors import RegistrationError, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.late import late_regex, once
from gatewright.base.printable import CHANGES, READS
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.verdict import SafetyTier
from gatewright.schema.flat import snake
from gatewright.schema.walk import Schema, as_object, properties_of
from gatewright.tools.context import WebPort
from gatewright.tools.declaration import (
    Determinism,
    Normalization,
    ResourceBounds,
    ResultType,
    SideEffect,
    kinds_of_effects,
)
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import Conduct, ToolDefinition
from gatewright.tools.http_request import base_address, read_requests
from gatewright.tools.operation import ArgumentIssue
from gatewright.tools.result import normal_bytes
from gatewright.tools.tool import Scrub

_BASE64 = late_regex(r"[A-Za-z0-9+/]+={0,2}")


class ServerTool(DefinedTool, abstract=True):
    """A tool whose runner returns the whole `CallToolResult` (see `check_answer`), which the host gets unchanged.

    The model reads the texts of its content; the output schema describes its structured part.
    """

    outside = True

    def output_part(self, result: JsonValue) -> JsonValue:
        """Return the structured part, null if the server sent none."""
        return result.get("structuredContent") if isinstance(result, dict) else None

    def scrub_result(self, result: JsonValue, scrub: Scrub) -> tuple[JsonValue, int]:
        """Remove secrets from texts; the bytes of images, sounds and files stay, since a match in them would be
        chance.
        """
        if not isinstance(result, dict) or not isinstance(content := result.get("content"), list):
            return scrub(result)
        rest, count = _scrub_object({**result, "content": []}, scrub)
        blocks: list[JsonValue] = []
        for block in content:
            kept, taken = _scrub_block(block, scrub)
            blocks.append(kept)
            count += taken
        return {**rest, "content": blocks}, count

    def text_for_model(self, result: JsonValue) -> str | None:
        """Return the texts of the content, one per line, with a word in place of other content."""
        return _text_of(result) if isinstance(result, dict) else None


def check_answer(answer: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a server's answer if it is a successful result.

    Raises ToolFailure with the server's words for a failed call.
    """
    content = answer.get("content", [])
    is_result = isinstance(content, list) and all(isinstance(block, dict) and "type" in block for block in content)
    if not is_result or not isinstance(answer.get("structuredContent", {}), dict):
        text = "the tool ran, but its server sent something that is no result; do not make this call again"
        raise ToolFailure(text, code="bad-result")
    if answer.get("isError") is True:
        raise ToolFailure(_text_of(answer) or "the tool gave no reason")
    return answer


def _text_of(answer: dict[str, JsonValue]) -> str:
    content = cast("list[dict[str, JsonValue]]", answer.get("content", []))
    if not content and "structuredContent" in answer:
        return canonical_json(answer["structuredContent"]).decode()
    return "\n".join(map(_block_words, content))


def _block_words(block: dict[str, JsonValue]) -> str:
    inner = block.get("resource")
    text = block.get("text", inner.get("text") if isinstance(inner, dict) else None)
    if isinstance(text, str):
        return text
    what = [str(block.get("type"))]
    for held in (block, inner if isinstance(inner, dict) else {}):
        what += [named for key in ("mimeType", "name", "uri") if isinstance(named := held.get(key), str)]
    return f"[{' '.join(what)}]"


def _scrub_object(value: dict[str, JsonValue], scrub: Scrub) -> tuple[dict[str, JsonValue], int]:
    kept, count = scrub(value)
    return cast("dict[str, JsonValue]", kept), count  # an object stays an object


def _scrub_block(block: JsonValue, scrub: Scrub) -> tuple[JsonValue, int]:
    if not isinstance(block, dict):
        return scrub(block)
    inner = block.get("resource")
    if isinstance(inner, dict):
        held, count = _scrub_beside("blob", inner, scrub)
        kept, more = _scrub_object({**block, "resource": {}}, scrub)
        return {**kept, "resource": held}, count + more
    return _scrub_beside("data", block, scrub)


def _scrub_beside(name: str, value: dict[str, JsonValue], scrub: Scrub) -> tuple[JsonValue, int]:
    """Remove the object's secrets, except from the base64 bytes under ``name``."""
    data = value.get(name)
    if not isinstance(data, str) or len(data) % 4 or _BASE64.fullmatch(data) is None:
        return scrub(value)
    kept, count = _scrub_object({key: held for key, held in value.items() if key != name}, scrub)
    return {**kept, name: data}, count


_NET = frozenset({CapabilityKind.NET_READ, CapabilityKind.NET_WRITE})


BOUNDS = ResourceBounds(timeout_s=30.0, network_bytes=10 * 1024 * 1024, max_requests=6)
"""The limits of a call if its definition sets none."""
_RESULTS = frozenset({ResultType.ANY, ResultType.OBJECT, ResultType.ARRAY, ResultType.STRING, ResultType.BINARY})
_OF_WORLD = frozenset({Determinism.MAYBE, Determinism.NON_DETERMINISTIC})


class HttpTool(DefinedTool, abstract=True):
    """A tool of a catalog of type `http`: the requests in the `run` of its definition, below ``url``.

    Raises RegistrationError for impossible requests.
    """

    enforces_bounds = True
    outside = True
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
        """Apply the definition's conduct. Raises RegistrationError for conduct that a request cannot have."""
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
        """Return the facts of every tool, except that each operation needs the network and its address is judged."""
        return self._web_facts

    @once
    def _web_facts(self) -> ToolFacts:
        facts = super().facts()
        return replace(facts, operations=tuple(self._with_needs(row) for row in facts.operations))

    def web_targets(self, operation: str, web: WebPort | None) -> tuple[UrlTarget | UrlRefused, ...]:
        """Return the catalog's server as a target, to read from or to write to."""
        kinds = {request.writes for request in self._requests.of(operation)}
        base = parse_url(self._base.text, allow_private=web is not None and web.allow_private)
        return (base,) if isinstance(base, UrlRefused) else tuple(replace(base, writes=one) for one in sorted(kinds))

    def missing_arguments(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """Return missing arguments, and those that do not fit into the request."""
        requests = self._requests.of(operation)
        issues = tuple(requests[0].issues(arguments)) if len(requests) == 1 else ()
        return (*super().missing_arguments(operation, arguments), *issues)

    def normalize(self, result: JsonValue | bytes) -> bytes:
        """Return a text and bytes as they are, any other value as canonical JSON."""
        return result.encode() if isinstance(result, str) else normal_bytes(result)

    def text_for_model(self, result: JsonValue) -> str | None:
        """Return a text as it is, any other value as canonical JSON."""
        return self.normalize(result).decode()

    def _with_needs(self, row: OperationFacts) -> OperationFacts:
        writes = {request.writes for request in self._requests.of(row.name)}
        needs = {CapabilityKind.NET_WRITE if one else CapabilityKind.NET_READ for one in writes}
        return replace(row, capabilities=row.capabilities | needs, judged=row.judged | _NET)


_ADDS = frozenset(
    {"add", "append", "attach", "book", "clone", "comment", "copy", "create", "duplicate", "fork", "insert"}
    | {"make", "mkdir", "post", "publish", "reply", "save", "schedule", "send", "submit", "subscribe", "tag", "upload"}
)
"""Verbs that destroy nothing, if a hint says so too."""
_UNDOUBTED = frozenset(
    re.findall(
        r"\w+",
        """
    append create delete drop edit exec execute insert install kill move put remove rename replace run send set update
    upsert write
    """,
    )
)
"""Words after which a reading verb at the start of a name proves nothing: `get_or_create`."""
_SPAWNS = frozenset({"bash", "cmd", "command", "exec", "powershell", "script", "shell", "terminal"})
_PATHS = frozenset({"path", "paths", "source", "destination"})
_FILES = frozenset({"dir", "directories", "directory", "file", "files", "folder", "folders"})
_ON_FILES = frozenset({SideEffect.FS_READ, SideEffect.FS_WRITE})
_TIERS = tuple(SafetyTier)


@frozen
class Proposal:
    """The proposed tier of a tool.

    ``operation_tiers``: the tier of each operation that was found; ``why``: the reason, for the operator.
    """

    tier: SafetyTier
    operation_tiers: Mapping[str, SafetyTier] = field(default_factory=dict[str, SafetyTier], hash=False)
    side_effects: frozenset[SideEffect] = frozenset()
    why: str = ""

    @property
    def capabilities(self) -> frozenset[CapabilityKind]:
        """The kinds that an agent must hold; for files the sources' levels decide instead."""
        return kinds_of_effects(self.side_effects - _ON_FILES)


def propose(definition: Schema, read: ToolDefinition, *, trusted: bool = False) -> Proposal:
    """Propose tiers and side effects for a definition, which ``read`` is as this program understood it.

    ``trusted``: believe its hints.
    """
    name, hints = str(definition.get("name", "")), as_object(definition.get("annotations")) or {}
    written = read.safety_tier if read.run is not None else None
    said, by_name = written or _tier_by_hints(hints), _tier_by_name(name)
    if said is None:
        tier = SafetyTier.READ_ONLY if by_name is SafetyTier.READ_ONLY else SafetyTier.PRIVILEGED
        why = "no hints; " + (f"by its name it {_WORDS[by_name]}" if by_name else "its name does not say what it does")
    elif trusted or by_name is None or _TIERS.index(by_name) <= _TIERS.index(said):
        tier, why = said, f"by its hints it {_WORDS[said]}"
    else:
        tier = SafetyTier.PRIVILEGED
        why = f"its hints say that it {_WORDS[said]}, its name that it {_WORDS[by_name]}"
    tiers: dict[str, SafetyTier] = {}
    for one in _operations(read):
        own, listed = _tier_by_name(one), read.operation_tiers.get(one) if read.run is not None else None
        if listed is not None:  # an imported document declares it by method
            tiers[one] = max(listed, own or listed, key=_TIERS.index)
        elif own is None:
            tiers[one] = tier
        elif hints.get("readOnlyHint") is True:  # a hint that the tool only reads holds for all its operations
            tiers[one] = tier if trusted else max(tier, own, key=_TIERS.index)
        else:
            reads = own is SafetyTier.READ_ONLY
            tiers[one] = own if reads else max(tier, SafetyTier.SIDE_EFFECTING, key=_TIERS.index)
    if tiers and read.run is not None and read.operation_tiers.keys() >= tiers.keys():
        tier, why = max(tiers.values(), key=_TIERS.index), "by the requests and the names of its operations"
    effects, declared = frozenset(_effects(name, definition, hints, tier, tiers)), read.conduct.side_effects
    if declared is not None:
        effects = declared if trusted else effects | declared
    return Proposal(tier, tiers, effects, why)


_WORDS = {
    SafetyTier.READ_ONLY: "only reads",
    SafetyTier.SIDE_EFFECTING: "adds without destroying",
    SafetyTier.PRIVILEGED: "may change or destroy",
}


def _tier_by_hints(hints: Schema) -> SafetyTier | None:
    """Read the tier from hints: ``destructiveHint`` counts as true unless ``readOnlyHint`` denies it; None without
    hints.
    """
    if hints.get("readOnlyHint") is True:
        return SafetyTier.READ_ONLY if hints.get("destructiveHint") is not True else SafetyTier.PRIVILEGED
    if hints.get("destructiveHint") is False:
        return SafetyTier.SIDE_EFFECTING
    if "readOnlyHint" in hints or "destructiveHint" in hints:
        return SafetyTier.PRIVILEGED
    return None


def _tier_by_name(name: str) -> SafetyTier | None:
    """Read the tier from the verbs in a name, mainly the first; None without a known verb."""
    words = _name_words(name)
    verbs = [word for word in words if word in READS or word in CHANGES]
    if not verbs:
        return None
    if verbs[0] in _ADDS and _SPAWNS.isdisjoint(words):
        return SafetyTier.SIDE_EFFECTING
    if verbs[0] in CHANGES or not _SPAWNS.isdisjoint(words):
        return SafetyTier.PRIVILEGED
    return SafetyTier.READ_ONLY if _UNDOUBTED.isdisjoint(verbs) else None


def _name_words(name: str) -> list[str]:
    return re.split(r"[^a-z0-9]+", snake(name))


def _operations(definition: ToolDefinition) -> tuple[str, ...]:
    """Return the operations found in the schema."""
    try:
        return tuple(spec.name for spec in DefinedTool(definition, origin="").operations)
    except (RegistrationError, RecursionError):
        return ()


def _effects(
    name: str, definition: Schema, hints: Schema, tier: SafetyTier, tiers: Mapping[str, SafetyTier]
) -> list[SideEffect]:
    """Guess the side effects: an open world from its hint, files and processes from name and arguments."""
    words = _name_words(name)
    writes = any(one is not SafetyTier.READ_ONLY for one in (*tiers.values(), *(() if tiers else (tier,))))
    found: list[SideEffect] = []
    if hints.get("openWorldHint") is True:
        found += [SideEffect.NET_READ, *([SideEffect.NET_WRITE] if writes else [])]
    arguments = properties_of(as_object(definition.get("inputSchema")) or {})
    if not _FILES.isdisjoint(words) and not _PATHS.isdisjoint(arguments):
        found += [SideEffect.FS_READ, *([SideEffect.FS_WRITE] if writes else [])]
    if not _SPAWNS.isdisjoint(words):
        found.append(SideEffect.PROCESS_SPAWN)
    return found
