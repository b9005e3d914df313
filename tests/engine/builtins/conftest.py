from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.builtins.rootbench import RootBench, opened


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[RootBench]:
    """Everything is granted; what stops a call is what it names."""
    made = opened(tmp_path)
    yield made
    made.workspace.close()
