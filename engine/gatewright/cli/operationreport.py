"""What one tool's schema says of operations, as JSON and as lines for a person. It decides nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.cli.fieldnote import unlisted
from gatewright.schema import (
    OperationSet,
    PathCandidate,
    Survey,
    discover_operations,
    discover_paths,
    survey,
)

if TYPE_CHECKING:
    from gatewright.tools import ToolDefinition

OPEN_ENDED = "open-ended"
FREE = "free-string"
_USES = {"read": "reading", "write": "writing", "delete": "deleting"}
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@frozen
class OperationReport:
    """``found``: the reading that the JSON shows, a doubtful or an open one included; ``survey``: everything else.

    ``is_named``: the caller says what to read, so nothing is guessed; ``field``: the one that he names.
    """

    name: str
    found: OperationSet | None
    survey: Survey
    is_named: bool = False
    field: str | None = None
    paths: tuple[PathCandidate, ...] = ()

    @property
    def is_enforced(self) -> bool:
        """Whether ``found`` would count without a word of the policy, or was named by the caller."""
        return self.found is not None and bool(self.found.operations) and self.found.confidence != "low"

    def to_json(self) -> dict[str, object] | None:
        """Shape: field, shape, confidence, default, operations, suggested; open_ended and paths, if any; or None."""
        if self.found is None:
            return None
        shown = {**self.found.to_json(), **({"open_ended": self.open_ended()} if self.survey.open_ends else {})}
        return {**shown, "paths": self.path_rows()} if self.paths else shown

    def to_row(self) -> dict[str, object]:
        """Shape: name, operations (as `to_json`), open_ended, free, paths."""
        free = [one.to_json() for one in self.survey.free]
        row = {"name": self.name, "operations": self.to_json(), "open_ended": self.open_ended(), "free": free}
        return {**row, "paths": self.path_rows()}

    def path_rows(self) -> list[dict[str, object]]:
        """Shape of each: argument, use (null: nothing says), confidence."""
        return [{"argument": one.argument, "use": one.use(), "confidence": one.confidence} for one in self.paths]

    def open_ended(self) -> list[dict[str, str]]:
        """Shape of each: field, kind, reason."""
        return [{"field": end.field, "kind": end.kind, "reason": end.reason} for end in self.survey.open_ends]

    def lines(self) -> Iterator[str]:
        """For a person."""
        told = False
        if self.is_enforced and self.found is not None:
            yield from _table(self.name, self.found, "")
            told = True
        elif self.field:
            yield f"{self.name}: {unlisted(self.survey, self.field)}"
            told = True
        for end in self.survey.open_ends:
            yield f"{self.name}: {OPEN_ENDED}: {end.reason}"
            told = True
        guessed = [] if self.is_named else list(self._guessed())
        yield from guessed
        if not told and not guessed:
            yield f"{self.name}: no operations"
        for one in self.paths:
            use = one.use()
            done = f"for {_USES[use]}" if use else "for what its tier allows"
            sure = "" if one.confidence == "high" else ": not judged as one unless `[tools.NAME] paths` says so"
            yield f"{self.name}: `{one.argument}` looks like a path, {done} (confidence {one.confidence}){sure}"

    def _guessed(self) -> Iterator[str]:
        """What counts only once the policy says so."""
        for free in self.survey.free:
            names = ", ".join(free.suggested)
            yield f"{self.name}: `{free.field}` is free text" + (f"; its description names: {names}" if names else "")
            yield from _advice("to enforce a list", self.name, free.field, free.suggested or ("...",))
        doubtful = None if self.is_enforced else next((one for one in self.survey.readings if one.operations), None)
        if doubtful is not None:
            yield from _table(self.name, doubtful, ": off by default, since it may be an ordinary parameter")
            yield from _advice("to take it for operations all the same", self.name, doubtful.field, None)


def report_of(tool: ToolDefinition, field: str | None, operations: tuple[str, ...] | None) -> OperationReport:
    """What ``tool`` says, read with the field or the operations that the caller names. Raises SchemaError."""
    try:
        looked = survey(tool.input_schema, tool.description)
        paths = discover_paths(tool.input_schema, tool=tool.name, description=tool.description)
        if field is None and operations is None:
            # what would be enforced, else what should be looked at first
            told = [one for one in looked.free if one.suggested]
            ends = [OperationSet(end.field, (), OPEN_ENDED, "low") for end in looked.open_ends]
            likeliest = looked.found or next(iter((*told, *ends, *looked.readings, *looked.free)), None)
            return OperationReport(tool.name, likeliest, looked, paths=paths)
        found = None if field == "" else discover_operations(tool.input_schema, field=field, operations=operations)
    except RecursionError:
        raise SchemaError(f"the schema of `{tool.name}` is nested too deeply") from None
    return OperationReport(tool.name, found, looked, is_named=True, field=field, paths=paths)


def _table(name: str, found: OperationSet, note: str) -> Iterator[str]:
    default = f", left out means `{found.default}`" if found.default else ""
    also = f", also `{'`, `'.join(found.also)}`" if found.also else ""
    yield f"{name}: field `{found.field}`{also} ({found.shape}, confidence {found.confidence}{default}){note}"
    width = max((len(operation.name) for operation in found.operations), default=0)
    for operation in found.operations:
        required = ", ".join((*operation.required, *operation.inner_required)) or "nothing"
        optional = ", ".join((*operation.optional, *operation.inner_optional)) or "nothing"
        yield f"  {operation.name.ljust(width)}  needs {required}; may take {optional}"


def _advice(why: str, name: str, field: str, operations: tuple[str, ...] | None) -> Iterator[str]:
    """What to write into a policy."""
    yield f"  {why}, write into the policy:"
    yield f"    [tools.{_key(name)}]"
    yield f"    operation_field = {_text(field)}"
    if operations is not None:
        yield f"    operations = [{', '.join(map(_text, operations))}]"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
