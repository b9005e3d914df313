"""Allow, ask, deny, and which is stricter."""

from __future__ import annotations

from functools import lru_cache

from gatewright.base.word import Word


class Verdict(Word):
    """What a decision says; the order of strictness is allow < ask < deny."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def words(self) -> str:
        """As the app says it."""
        return "ask first" if self is Verdict.ASK else self.value


STRICTNESS = {verdict: rank for rank, verdict in enumerate(Verdict)}


def strictest(*verdicts: Verdict) -> Verdict:
    """The strictest of them; allow when there is none."""
    return max(verdicts, key=STRICTNESS.__getitem__, default=Verdict.ALLOW)


@lru_cache
def stricter(verdicts: frozenset[Verdict], than: Verdict) -> frozenset[Verdict]:
    """Those of them that are stricter than one."""
    return frozenset(verdict for verdict in verdicts if STRICTNESS[verdict] > STRICTNESS[than])
