"""A file and its block brought back into step after both, or the disk alone, changed. It decides, it writes nothing.

Four strategies: ``ours`` keeps the block's text, ``theirs`` takes the disk's, ``merge`` puts both together where they
do not conflict, ``ask`` only tells. Nothing of the disk is ever overwritten here: the block is what changes, and it is
then compared with the disk as it is now.
"""

from __future__ import annotations

from enum import StrEnum

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks.difftext import diff_text
from gatewright.sources.merge import MergeConflict, merge_texts
from gatewright.sources.state import FileState

_SHOWN_CONFLICTS = 20
_SHOWN_CHARS = 2_000
_MERGED_CHARS = 8 * 1024 * 1024


class Strategy(StrEnum):
    """Who gives way."""

    OURS = "ours"
    THEIRS = "theirs"
    MERGE = "merge"
    ASK = "ask"


class Outcome(StrEnum):
    """What comes of it. ``forgotten``: the file is gone and the block went with it."""

    NOTHING = "nothing"
    KEPT_BLOCK = "kept_block"
    TOOK_DISK = "took_disk"
    MERGED = "merged"
    CONFLICT = "conflict"
    FORGOTTEN = "forgotten"


@frozen
class Sides:
    """The texts: ``base`` None where it is not known, ``disk`` None where there is no file."""

    base: str | None
    block: str
    disk: str | None


@frozen
class Decision:
    """What to do: ``text`` is what the block is to hold (None: as it is)."""

    outcome: Outcome
    text: str | None = None
    conflicts: tuple[MergeConflict, ...] = ()
    why: str | None = None


def decide(state: FileState, strategy: Strategy, sides: Sides) -> Decision:
    """What a strategy makes of a state."""
    if state in {FileState.SYNCED, FileState.BLOCK_MODIFIED}:
        return Decision(Outcome.NOTHING)
    if strategy is Strategy.ASK:
        return Decision(Outcome.CONFLICT, why="nothing was done: whoever decides names a strategy")
    if strategy is Strategy.OURS:
        return Decision(Outcome.KEPT_BLOCK)
    if strategy is Strategy.THEIRS:
        return Decision(Outcome.FORGOTTEN) if sides.disk is None else Decision(Outcome.TOOK_DISK, sides.disk)
    return _merged(sides)


def _merged(sides: Sides) -> Decision:
    if sides.disk is None:
        if sides.block == sides.base:
            return Decision(Outcome.FORGOTTEN)
        return Decision(Outcome.CONFLICT, why="the file is gone and its block holds edits")
    if sides.base is None:
        return Decision(Outcome.CONFLICT, why="the text that both began with is not known")
    if sides.block == sides.base:
        return Decision(Outcome.TOOK_DISK, sides.disk)
    if len(sides.base) + len(sides.block) + len(sides.disk) > _MERGED_CHARS:
        return Decision(Outcome.CONFLICT, why="the texts are too long to be put together")
    found = merge_texts(sides.base, sides.block, sides.disk)
    if found.text is None:
        return Decision(Outcome.CONFLICT, conflicts=found.conflicts, why="both changed the same places")
    return Decision(Outcome.MERGED, found.text)


def told(relative: str, state: FileState, strategy: Strategy, decision: Decision, sides: Sides) -> dict[str, JsonValue]:
    """The decision for whoever asked; with both diffs where there is a conflict. Bounded."""
    row: dict[str, JsonValue] = {"path": relative, "state": str(state), "strategy": str(strategy)}
    row["outcome"] = str(decision.outcome)
    if decision.why is not None:
        row["why"] = decision.why
    if decision.outcome is Outcome.CONFLICT:
        row["conflicts"] = [_place(conflict) for conflict in decision.conflicts[:_SHOWN_CONFLICTS]]
        row["conflict_count"] = len(decision.conflicts)
        row["block_diff"] = None if sides.base is None else diff_text(relative, sides.base, sides.block)
        row["disk_diff"] = None if sides.base is None else diff_text(relative, sides.base, sides.disk or "")
    return row


def _place(conflict: MergeConflict) -> JsonValue:
    return {
        "base_line": conflict.base_line,
        "block_line": conflict.mine_line,
        "disk_line": conflict.other_line,
        "base": _cut(conflict.base),
        "block": _cut(conflict.mine),
        "disk": _cut(conflict.other),
    }


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}[cut, {len(text):,} characters]"
