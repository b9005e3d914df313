"""Row "block edit": edits of a 1 MB text, beside the bare library doing the same."""

from __future__ import annotations

from tests.bench.measure import Effort
from tests.bench.row import Figure, Measured, Row, times_at_most
from tests.engine.blocks.bench import TEXT, measure


def block_edit(effort: Effort) -> Row:
    """Each edit with everything that it takes to keep it, in microseconds."""
    found = measure(10 if effort.quick else 100)
    figures: dict[str, Measured] = {}
    for row in found:
        figures[row.name] = Figure(row.ours_s * 1e6)
        figures[f"{row.name}, library"] = Figure(row.library_s * 1e6)
    return Row(
        "block edit",
        f"a text of {len(TEXT):,} characters, edited in its middle and at its end",
        tuple(row.name for row in found),
        figures,
        tuple(times_at_most(row.name, figures[row.name], figures[f"{row.name}, library"], 3) for row in found),
        None,
        ("the library alone checks neither limits nor levels, and keeps no author",),
    )
