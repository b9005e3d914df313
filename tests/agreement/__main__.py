"""`python -m tests.agreement [--calls N] [--corpora FOLDER]`: compare over all tools, print what disagrees."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.agreement.compare import Tally, compared
from tests.agreement.world import strangers

CORPORA = Path(__file__).resolve().parents[3] / "shared" / "corpora"
SHOWN = 40


def main(words: list[str]) -> int:
    """Return the exit status: 1 for a disagreement, 2 if the corpora are missing."""
    parser = argparse.ArgumentParser("python -m tests.agreement", description="Do shown schema and gate agree?")
    parser.add_argument("--calls", type=int, default=100_000, help="how many calls at least (default 100,000)")
    parser.add_argument("--corpora", type=Path, default=CORPORA, help="the folder of real tools")
    chosen = parser.parse_args(words)
    if not chosen.corpora.is_dir():
        parser.error(f"no folder `{chosen.corpora}`")
    began, tally = time.monotonic(), Tally()
    every = list(strangers(chosen.corpora))
    cells = sum(len(stranger.limits) for stranger in every)
    each = -(-chosen.calls // cells)
    for stranger in every:
        compared(((stranger, number) for number in range(len(stranger.limits))), each, tally)
        stranger.__dict__.pop("cells", None)
    for line in tally.disagreements[:SHOWN]:
        print(line[:800])
    print(
        f"{len(every):,} tools, {tally.cells:,} views, {tally.calls:,} calls ({tally.valid:,} valid), "
        f"{tally.through_formats:,} through formats ({tally.valid_in_a_format:,} valid there): "
        f"{len(tally.disagreements):,} disagreements; {time.monotonic() - began:.0f} s"
    )
    return 1 if tally.disagreements else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
