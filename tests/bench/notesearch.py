"""Row "note search": one user's notes by meaning and by words, in a store on disk."""

from __future__ import annotations

import random
import tempfile
import time
from itertools import accumulate
from pathlib import Path

from gatewright.base.amount import SystemClock
from gatewright.memory.notes import NoteBook
from tests.bench.measure import Effort, quiet
from tests.bench.row import Figure, Measured, Row, at_most, p99_at_most

_PAIRS = [head + tail for head in "bcdfghklmnprstvz" for tail in "aeiou"]
_WORDS = 20_000
_CHUNK = 5_000
_BOTH, _ONE_WORD, _FRESH = "a sentence", "one word", "after a new note"


def note_search(effort: Effort) -> Row:
    """Whole searches, in milliseconds: of a sentence, of one word, and the first one after a note was kept."""
    count, calls = (300, 20) if effort.quick else (100_000 - 100, 300)
    rng = random.Random(7)
    words = ["".join(rng.choices(_PAIRS, k=rng.randint(1, 4))) for _ in range(_WORDS)]
    weights = list(accumulate(1 / (rank + 1) for rank in range(_WORDS)))

    def text(least: int, most: int) -> str:
        return " ".join(rng.choices(words, cum_weights=weights, k=rng.randint(least, most)))

    figures: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory() as folder:
        book = NoteBook(Path(folder), SystemClock())
        store = book.of("ada")
        for start in range(0, count, _CHUNK):
            store.save(*(text(8, 40) for _ in range(min(_CHUNK, count - start))))

        def search(least: int, most: int, *, fresh: bool = False) -> float:
            query = text(least, most)
            if fresh:
                store.save(text(8, 40))
            begin = time.perf_counter()
            store.search(query, top_k=5)
            return (time.perf_counter() - begin) * 1e3

        search(4, 8)
        with quiet():
            figures[_BOTH] = _figure([search(4, 8) for _ in range(calls)])
            figures[_ONE_WORD] = _figure([search(1, 1) for _ in range(calls)])
            figures[_FRESH] = _figure([search(4, 8, fresh=True) for _ in range(min(calls, 100))])
        book.close()
    both = figures[_BOTH]
    return Row(
        "note search",
        f"{count:,} notes of 8 to 40 words, words as frequent as in a language",
        (_BOTH, _ONE_WORD, _FRESH),
        figures,
        (at_most(_BOTH, both, 5, "ms"), p99_at_most(_BOTH, both, 50, "ms")),
        None,
        ("the first search of a process reads the model and the vectors, and is not counted",),
    )


def _figure(times_ms: list[float]) -> Figure:
    ordered = sorted(times_ms)
    return Figure(ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)], "ms")
