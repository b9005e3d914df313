"""Mean water level per month, from levels.csv."""

import csv
from collections import defaultdict
from pathlib import Path


def monthly_means(path: Path) -> dict[str, float]:
    """Month (``2026-03``) to mean level in metres."""
    rows: dict[str, list[float]] = defaultdict(list)
    with path.open(newline="") as stream:
        for row in csv.DictReader(stream):
            rows[row["date"][:7]].append(float(row["level_m"]))
    return {month: sum(levels) / len(levels) for month, levels in sorted(rows.items())}


if __name__ == "__main__":
    for month, level in monthly_means(Path(__file__).with_name("levels.csv")).items():
        print(f"{month}  {level:.2f} m")
