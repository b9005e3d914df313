"""Truncate: no more than the agent's share of bytes reaches the model, and it is told how much there was."""

from __future__ import annotations

from gatewright.gate.call import CallState, Stage, StageResult


def cut(text: str, limit: int) -> str | None:
    """The first ``limit`` bytes of the UTF-8 text, whole characters only, and the suffix; None when it fits."""
    if len(text) * 4 <= limit:
        return None
    data = text.encode()
    if len(data) <= limit:
        return None
    head = data[:limit].decode("utf-8", "ignore")
    return f"{head}\n[output truncated — original size: {len(data):,} bytes]"


def _run(state: CallState) -> StageResult:
    shorter = cut(state.output or "", state.plan.max_output_bytes)
    if shorter is None:
        return StageResult(note="fits")
    state.output, state.truncated = shorter, True
    return StageResult(note="cut")


TRUNCATE = Stage("truncate", _run)
