"""What the rows about the window share: a process of their own, and its times as figures. It measures nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.bench.row import Figure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def child(*words: str, compiled: Path | None = None) -> dict[str, Any]:
    """The last line of JSON of a part of `guichild`. ``compiled``: where Python keeps compiled modules."""
    environment = dict(os.environ)
    if compiled is not None:
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = str(compiled)
    command = [sys.executable, "-m", "tests.bench.guichild", *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=900, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def in_ms(taken: Sequence[int]) -> Figure:
    """Nanoseconds as a figure in milliseconds, with its 99th percentile."""
    ordered = sorted(taken)
    p99 = ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)]
    return Figure(middle(ordered) / 1e6, p99 / 1e6, "ms")


def middle(taken: Sequence[float]) -> float:
    """The median, of an even number the upper one."""
    return float(sorted(taken)[len(taken) // 2])
