"""What is in force at one moment, as one value, and the keys that its proofs are made with. It runs no stage."""

from __future__ import annotations

import secrets

from gatewright.base.frozen import frozen
from gatewright.base.ids import new_id
from gatewright.compile.snapshot import Snapshot
from gatewright.gate.audit import AuditLog
from gatewright.gate.call import Services
from gatewright.gate.decision import Places


@frozen
class InForce:
    """What is in force at one moment, swapped as one: the compiled policy, where its parts stand, what it reaches."""

    snapshot: Snapshot
    places: Places
    services: Services
    keys: ProofKeys


class ProofKeys:
    """The key for new proofs and those of old ones: the audit log's where there is one, else one of this gate."""

    def __init__(self, audit: AuditLog | None) -> None:
        self._audit = audit
        self._own_id = new_id("gate")
        self._own = secrets.token_bytes(32)

    def current(self) -> tuple[str, bytes]:
        """The id of a key, and the key. It makes no file."""
        held = self._audit.proof_key() if self._audit is not None else None
        return held or (self._own_id, self._own)

    def find(self, key_id: str) -> bytes | None:
        """The key of that id, or None when it is not here."""
        if key_id == self._own_id:
            return self._own
        held = self._audit.proof_key(key_id) if self._audit is not None else None
        return held[1] if held else None
