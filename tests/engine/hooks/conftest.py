"""The workspace of a coding agent, whose gate ends with the test."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.engine.hooks.world import HookWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[HookWorld]:
    with TemporaryDirectory(prefix="gw", dir="/tmp") as run:  # a short path, for the tests' own connections
        made = HookWorld(tmp_path, Path(run))
        try:
            yield made
        finally:
            made.end()
