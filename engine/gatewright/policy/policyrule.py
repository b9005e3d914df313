"""One row of ``[[policy.rules]]`` as a value.

Of the rules that match a call the strictest effect holds: deny before ask before allow, before the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.identity import new_identity
from gatewright.policy.verdict import Verdict


@frozen
class PolicyRule:
    """``agents``, ``tools``, ``operations`` None: all of them. ``when``: a JSON Schema over the canonical arguments.

    ``when`` None: always. ``message`` is for the operator and, on a denial, for the model too.
    """

    name: str
    effect: Verdict
    agents: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    operations: tuple[str, ...] | None = None
    when: Mapping[str, JsonValue] | bool | None = field(default=None, hash=False)
    message: str | None = None
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    @property
    def is_unconditional(self) -> bool:
        """Whether it holds whatever the arguments are."""
        return self.when is None or self.when is True or self.when == {}
