"""What a source's rules say of one path, as a value. It asks nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gatewright.policy.permission import Permission


@dataclass(frozen=True, slots=True)
class PathRow:
    """The level of one path by the rules of a source; ``index`` counts rules from 0, None is the default."""

    path: str
    permission: Permission
    outside: bool
    index: int | None
    pattern: str | None

    def to_json(self) -> dict[str, object]:
        """Shape: path, permission, outside, rule {index, pattern} or None."""
        rule = None if self.index is None else {"index": self.index, "pattern": self.pattern}
        return {"path": self.path, "permission": str(self.permission), "outside": self.outside, "rule": rule}
