"""What a constraint is to be on, as a value. It does not know its schema."""

from dataclasses import dataclass

from gatewright.policy.ruleedit import Standing


@dataclass(frozen=True, slots=True)
class ConstraintWish:
    """An argument of a tool for some operations (None: all). `standing` and `was`: the one that stands, if any."""

    agent_id: str
    tool: str
    field: str
    operations: frozenset[str] | None = None
    standing: Standing | None = None
    was: str | None = None
