"""How long edits of a 1 MB text take, ours beside the bare library doing the same; for tests and the benchmark.

The library's own of each: find (where there is something to find), splice, commit, and the bytes to be kept.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

import loro

from gatewright.blocks import TextSchema
from gatewright.blocks.block import Block
from gatewright.blocks.plan import Hand
from gatewright.blocks.schema import Append, Patch, Replace

TEXT = "a line of text to be edited here\n" * 15_000 + "needle 0\n" + "a line of text to be edited here\n" * 15_000
_HAND = Hand("bench", 1.0)


@dataclass(frozen=True, slots=True)
class Row:
    """Medians in seconds of processor time."""

    name: str
    ours_s: float
    library_s: float

    @property
    def factor(self) -> float:
        """The ratio of our time to the library's."""
        return self.ours_s / self.library_s


def measure(rounds: int = 40) -> tuple[Row, ...]:
    """The edits of a 1 MB text, taking turns with the library."""
    return tuple(_row(name, rounds, *pair) for name, pair in _pairs().items())


def _pairs() -> dict[str, tuple[Callable[[int], None], Callable[[int], None]]]:
    block = Block.create(TextSchema(), TEXT, hand=_HAND)
    document = loro.LoroDoc()
    text = document.get_text("body")
    text.insert(0, TEXT)
    document.commit()
    line = TEXT.count("\n", 0, TEXT.index("needle")) + 1

    def kept(act: Callable[[], object]) -> None:
        version = block.version
        act()
        block.updates_since(version)

    def bare(act: Callable[[], object]) -> None:
        version = document.oplog_vv
        act()
        document.commit()
        document.export(loro.ExportMode.Updates(version))

    def bare_replace(turn: int) -> None:
        held = text.to_string()
        text.splice(held.index("needle"), 8, f"needle {(turn + 1) % 10}")

    def bare_patch(turn: int) -> None:
        held = text.to_string()
        at = held.index("needle")
        text.update_by_line(f"{held[:at]}needle {(turn + 1) % 10}{held[at + 8 :]}", timeout_ms=5000)

    def our_replace(turn: int) -> None:
        block.edit(Replace(f"needle {turn % 10}", f"needle {(turn + 1) % 10}"), _HAND)

    def our_patch(turn: int) -> None:
        block.edit(Patch(f"@@ -{line} +{line} @@\n-needle {turn % 10}\n+needle {(turn + 1) % 10}\n"), _HAND)

    pairs: dict[str, tuple[Callable[[int], object], Callable[[int], object]]] = {
        "replace": (our_replace, bare_replace),
        "patch": (our_patch, bare_patch),
        "append": (lambda _: block.edit(Append("x"), _HAND), lambda _: text.push_str("x")),
    }
    found: dict[str, tuple[Callable[[int], None], Callable[[int], None]]] = {}
    for name, (ours, bares) in pairs.items():
        found[name] = (
            lambda turn, ours=ours: kept(lambda: ours(turn)),
            lambda turn, bares=bares: bare(lambda: bares(turn)),
        )
    return found


def _row(name: str, rounds: int, ours: Callable[[int], None], library: Callable[[int], None]) -> Row:
    rounds -= rounds % 10  # so that a needle is back at 0 for the next row
    taken: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            for act, times in ((ours, taken[0]), (library, taken[1])):
                started = time.thread_time()
                act(turn)
                times.append(time.thread_time() - started)
    finally:
        gc.enable()
    return Row(name, sorted(taken[0])[rounds // 2], sorted(taken[1])[rounds // 2])
