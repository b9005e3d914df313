"""What a layer of the policy, or a stage, objects to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.problem import Address
from gatewright.policy.verdict import Verdict


def _no_facts() -> dict[str, JsonValue]:
    return {}


@frozen
class Finding:
    """What a stage objects to: ask or deny, why, where in the policy, and the words for the model.

    ``model`` is without the prefix; None where the stage's verdict is ask. ``about``: the one place or block that it is
    about, so that it does not stand for others.
    """

    verdict: Verdict
    code: str
    reason: str
    address: Address | None = None
    rule_id: str | None = None
    model: str | None = None
    facts: Mapping[str, JsonValue] = field(default_factory=_no_facts, hash=False)
    scope: str | None = None
    about: str = ""
