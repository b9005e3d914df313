"""The level of a path by a source's rules, as a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gatewright.base.frozen import frozen
from gatewright.policy.document import Source
from gatewright.policy.glob import PermissionRules
from gatewright.policy.verdict import Permission
from gatewright.sources.manager import SourceManager


@frozen
class PathRow:
    """The level of one path by the rules of a source; ``index`` counts rules from 0, None means the default."""

    path: str
    permission: Permission
    outside: bool
    index: int | None
    pattern: str | None

    def to_json(self) -> dict[str, object]:
        """Shape: path, permission, outside, rule {index, pattern} or None."""
        rule = None if self.index is None else {"index": self.index, "pattern": self.pattern}
        return {"path": self.path, "permission": str(self.permission), "outside": self.outside, "rule": rule}


def path_rows(source: Source, base: Path, sources: SourceManager, paths: Iterable[str]) -> Iterator[PathRow]:
    """Yield the level of paths by a source's rules, with its real folder ``base``; protected files have none."""
    rules = PermissionRules(source.permission_rules, source.default_permission)
    for path in paths:
        found = rules.explain(path)
        if not found.outside and sources.protects(base / path):
            yield PathRow(path, sources.PROTECTED_LEVEL, outside=False, index=None, pattern=None)
        else:
            yield PathRow(path, found.permission, found.outside, found.index, found.pattern)
