"""`python -m tests.bench [ROW ...] [--json FILE] [--quick]`: run rows, print them, keep them."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from tests.bench.measure import FULL, QUICK
from tests.bench.row import Row
from tests.bench.rows import ROWS
from tests.bench.table import summary, text_of


def main(words: list[str]) -> int:
    """The exit status: 0 whatever the figures say, 2 for a row that does not exist."""
    parser = argparse.ArgumentParser("python -m tests.bench", description="The benchmark of the project.")
    parser.add_argument("row", nargs="*", help=f"which rows (default all): {', '.join(ROWS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--quick", action="store_true", help="a tiny workload, only to see that it runs")
    chosen = parser.parse_args(words)
    unknown = [name for name in chosen.row if name not in ROWS]
    if unknown:
        parser.error(f"no row {', '.join(f'`{name}`' for name in unknown)}: {', '.join(ROWS)}")
    effort = QUICK if chosen.quick else FULL
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; * is ours\n")
    done: list[Row] = []
    for name in chosen.row or ROWS:
        done.append(ROWS[name](effort))
        print(text_of(done[-1]), end="\n\n", flush=True)
    print(summary(done))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([row.to_json() for row in done], indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
