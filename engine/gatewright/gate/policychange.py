"""What the audit log says of a policy that changed or was refused. It does not put any in force.

A changed policy is recorded with the first call after it, so that an edit without a call costs and writes nothing, and
every decision in the log stands behind the row of its policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.problem import Problem
from gatewright.compile.snapshot import Snapshot
from gatewright.gate.audit import AuditEntry
from gatewright.gate.chain import RowKind
from gatewright.policy.document import Policy
from gatewright.record.fork import fork_safe_lock

_MOST_WORDS, _MOST_REFUSED, _MOST_PROBLEMS, _LENGTH = 20, 20, 5, 300


@frozen
class Claim:
    """Rows that one writer took upon itself, and what to restore if it fails."""

    rows: tuple[AuditEntry, ...] = ()
    before: Snapshot | None = None
    refused: tuple[AuditEntry, ...] = ()


NOTHING = Claim()


class PolicyHistory:
    """The rows about the policy that are still to be written; there are never many."""

    def __init__(self, snapshot: Snapshot, file: str | None) -> None:
        self._lock = fork_safe_lock()
        self._recorded = snapshot
        self._refused: list[AuditEntry] = []
        self.file = file

    def refuse(self, problems: Iterable[Problem]) -> None:
        """A policy was not taken over."""
        from gatewright.gate.record import clean

        words: list[JsonValue] = [clean(str(problem), _LENGTH) for problem in problems if problem.is_error]
        body: dict[str, JsonValue] = {"refused": True, "file": self.file, "problems": words[:_MOST_PROBLEMS]}
        with self._lock:
            self._refused = [*self._refused, AuditEntry(RowKind.POLICY_CHANGED, body=body)][-_MOST_REFUSED:]

    def claim(self, in_force: Callable[[], Snapshot]) -> Claim:
        """The rows to be written before those of a call; whoever fails to write them gives them back.

        ``in_force`` is asked again under the lock, so that of several writers none goes back to an older policy.
        """
        if in_force() is self._recorded and not self._refused:
            return NOTHING
        with self._lock:
            before, refused, now = self._recorded, self._refused, in_force()
            changed = now.policy is not before.policy and now.policy_digest != before.policy_digest
            self._recorded, self._refused = now, []
            return Claim((*refused, *((self._changed(before, now),) if changed else ())), before, tuple(refused))

    def give_back(self, claim: Claim) -> None:
        """The rows could not be written."""
        if claim.before is None:
            return
        with self._lock:
            self._recorded = claim.before
            self._refused = [*claim.refused, *self._refused][-_MOST_REFUSED:]

    def _changed(self, before: Snapshot, now: Snapshot) -> AuditEntry:
        from gatewright.gate.record import clean

        words: list[JsonValue] = [clean(word, _LENGTH) for word in changes(before.policy, now.policy)]
        more = len(words) - _MOST_WORDS
        body: dict[str, JsonValue] = {
            "refused": False,
            "file": self.file,
            "before": before.policy_digest,
            "after": now.policy_digest,
            "changes": [*words[:_MOST_WORDS], *([f"and {more} more"] if more > 0 else [])],
        }
        return AuditEntry(RowKind.POLICY_CHANGED, body=body)


def changes(before: Policy, after: Policy) -> list[str]:
    """What differs, one short sentence for each agent, source and table."""
    found = [*_of("agent", before.agents, after.agents), *_of("settings of tool", before.tools, after.tools)]
    sources = ({s.source_id: s for s in policy.sources} for policy in (before, after))
    found += _of("source", *sources)
    found += _of("policy rule", _named(before), _named(after))
    if before.default != after.default:
        found.append(f"the default of the policy rules is `{after.default}`")
    if before.defaults != after.defaults:
        found.append("the defaults changed")
    return found or ["something else changed"]


def _named(policy: Policy) -> dict[str, object]:
    return {rule.name or f"#{index + 1}": rule for index, rule in enumerate(policy.rules)}


def _of(what: str, before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    gone = [f"{what} `{name}` is gone" for name in before if name not in after]
    fresh = [f"{what} `{name}` is new" for name in after if name not in before]
    changed = [f"{what} `{name}` changed" for name in after if name in before and before[name] != after[name]]
    return [*gone, *fresh, *changed]
