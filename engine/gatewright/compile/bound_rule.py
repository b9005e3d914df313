"""A tool rule where it stands: in the policy, at a source, or at the tool itself. It compiles and tests nothing."""

from __future__ import annotations

from gatewright.base.frozen import frozen
from gatewright.base.problem import Address
from gatewright.policy.rule import ToolRule


@frozen
class BoundRule:
    """A rule where it stands. ``address`` None: the tool's own. ``operations`` None: whatever the operation.

    ``source_id``: it binds only calls that go to that source. ``owner``: the tool whose own rule it is.
    """

    rule: ToolRule
    address: Address | None
    operations: frozenset[str] | None
    source_id: str | None = None
    owner: str | None = None

    def binds(self, operation: str) -> bool:
        """Whether a call of that operation comes under the rule."""
        return self.operations is None or operation in self.operations
