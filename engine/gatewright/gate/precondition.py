"""What a call must bring whatever the policy says: a user where the tool works for one, and no mark of a secret.

A model that was shown `[REDACTED]` in place of a secret and writes it back would destroy the secret. A text that held
the mark before is not the model's doing, so only what the model sends counts.
"""

from __future__ import annotations

from gatewright.compile.finding import Finding
from gatewright.gate import message
from gatewright.gate.call import CallState
from gatewright.gate.scrub import MARKER, holds_marker
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.policy.permission import Action
from gatewright.policy.verdict import Verdict
from gatewright.tools.declaration import SideEffect

_WRITING = frozenset({Action.APPEND, Action.OVERWRITE})


def unmet(state: CallState) -> Finding | None:
    """The denial of a call that brings too little or the wrong thing; None when all is well."""
    tool = state.plan.tool
    if tool.needs_user and not state.user_id:
        reason = f"`{state.tool_name}` works for one user and the call has none: set the agent's `user_id`, or pass one"
        return Finding(Verdict.DENY, "no-user", reason, model=message.NO_USER)
    for one in state.chosen.each:
        if one.actions:  # else the effects of its tool tell
            writes = not _WRITING.isdisjoint(one.actions)
        else:
            writes = CapabilityKind.FS_WRITE in one.capabilities or SideEffect.DB_WRITE in tool.side_effects
        if writes:
            if not holds_marker(state.arguments):
                return None  # one look is enough for a batch of a thousand
            reason = f"the arguments hold `{MARKER}`, which stands for something that the model was not shown"
            return Finding(Verdict.DENY, "redaction-marker", reason, model=message.MARKED)
    return None
