"""What is to be said of an argument of a tool, as a value."""

from dataclasses import dataclass

from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.ruleedit import Standing


@dataclass(frozen=True, slots=True)
class ConstraintWish:
    """An argument of a tool for some operations (None: all). `standing` and `was`: the one that stands, if any.

    `schema` None: its value may be anything; `required`: a call must give it.
    """

    agent_id: str
    tool: str
    field: str
    schema: JsonValue
    required: bool = False
    operations: frozenset[str] | None = None
    standing: Standing | None = None
    was: str | None = None
