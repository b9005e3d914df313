"""The table of the designs: 149 rows, of which each is a test that bears its name."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.checkout import ROOT

HERE = Path(__file__).parent
SEEDS = {
    "test_seed_0_gating.py": 16,
    "test_seed_1_sources.py": 44,
    "test_seed_2_cathedral.py": 22,
    "test_seed_3_oxydra.py": 28,
    "test_seed_4_pattern.py": 17,
}
"""How many rows each design has; of CATHEDRAL those of adapters and isolation are in `test_adapters.py`."""
ADAPTERS = 5
WINDOW = 9
"""The rows of the card but for its packages, in `tests/gui/test_card.py`."""
PACKAGES = 8
DEFERRED = "test_hooks_are_refused_as_a_key_that_nobody_knows"
"""The one row that does not work: the contract puts it off."""


def rows(path: Path) -> list[str]:
    """The tests of a module, each once however many cases it has."""
    functions = ast.parse(path.read_text("utf-8")).body
    found = [one.name for one in functions if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [name for name in found if name.startswith("test_")]


def test_every_row_of_the_designs_is_a_test() -> None:
    seeds = {name: rows(HERE / name) for name in SEEDS}
    assert {name: len(found) for name, found in seeds.items()} == SEEDS
    adapters = [name for name in rows(HERE / "test_adapters.py") if not name.startswith("test_every_kind_of_tool")]
    window = rows(ROOT / "tests" / "gui" / "test_card.py")
    assert (len(adapters), len(window)) == (ADAPTERS, WINDOW)
    assert sum(SEEDS.values()) + ADAPTERS + WINDOW + PACKAGES == 149
    assert DEFERRED in seeds["test_seed_1_sources.py"]
