"""An audit log with many calls, made fast: whole calls as the gate records them, a minute apart."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import AuditEntry, AuditLog, RowKind
from tests.support.clock import ManualClock

BEGIN_S = 1_790_000_000.0
AGENTS = ("archivist", "researcher", "operator")
_ONE_BY_ONE, _BATCH = 10_000, 300


def call_rows(
    number: int,
    agent: str = "archivist",
    tool: str = "file",
    operation: str = "read",
    *,
    verdict: str = "allow",
    reason: str = "every stage passed",
    rule: str | None = None,
    client: str = "",
    arguments: dict[str, JsonValue] | None = None,
    within: tuple[int, int] | None = None,
) -> list[AuditEntry]:
    """The three rows of one call; ``within``: the number of the call that it is a step of, and of the step."""
    names = f"call-{number:016x}", agent, f"session-{number // 100}", tool, operation
    sent: dict[str, JsonValue] = {"arguments": arguments or {"op": operation, "path": f"{number}.md"}, "digest": "5f"}
    if client:
        sent["client"] = client
    if within is not None:
        sent |= {"within": f"call-{within[0]:016x}", "step": within[1]}
    decided: dict[str, JsonValue] = {
        "verdict": verdict,
        "stage": "permission" if verdict == "deny" else "approval",
        "code": "read-only" if verdict == "deny" else "",
        "reason": reason,
        "rule": rule,
        "decision": f"decision-{number}",
        "policy": "ab" * 32,
    }
    ended: dict[str, JsonValue] = {"code": "", "bytes": 117, "hash": "5f" * 32, "elapsed_ms": 0.4}
    is_made = verdict == "allow"
    return [
        AuditEntry(RowKind.TOOL_INVOKED, *names, sent),
        AuditEntry(RowKind.POLICY_DECISION, *names, decided),
        AuditEntry(RowKind.TOOL_COMPLETED if is_made else RowKind.TOOL_DENIED, *names, ended if is_made else {}),
    ]


def many_calls(numbers: Iterable[int]) -> Iterable[list[AuditEntry]]:
    """Calls of three agents: each eleventh is denied, each thirteenth asks, every other one came from a client."""
    for number in numbers:
        verdict = "deny" if number % 11 == 0 else "ask" if number % 13 == 0 else "allow"
        reason = f"`{number}.md` may be read only" if verdict == "deny" else "every stage passed"
        operation = "append" if verdict == "deny" else "read"
        client = "claude-code" if number % 2 else ""
        agent = AGENTS[number % len(AGENTS)]
        yield call_rows(number, agent, operation=operation, verdict=verdict, reason=reason, client=client)


def fill_log(state: Path, keys: Path, calls: int, *, begin_s: float = BEGIN_S) -> None:
    """Write these calls, a minute apart, in batches if there are many."""
    clock = ManualClock(begin_s)
    log = AuditLog(state, keys, clock=clock)
    batch: list[AuditEntry] = []
    for number, rows in enumerate(many_calls(range(1, calls + 1)), 1):
        clock.advance(60)
        batch += rows
        if calls <= _ONE_BY_ONE or len(batch) >= _BATCH or number == calls:
            log.append(batch)
            batch = []
    log.close()
