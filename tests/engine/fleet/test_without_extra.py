"""The engine without the extra `fleet`: everything else runs, and what needs it says so."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = (
    "import sys; sys.modules['psycopg'] = None; from gatewright.cli.main import main; sys.exit(main(sys.argv[1:]))"
)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("state", "status", "--state", "postgresql:///x"), 2, "pip install 'gatewright[fleet]'"),
        (("policy-schema",), 0, ""),
    ],
)
def test_engine_runs_without_the_client_of_a_database(words: tuple[str, ...], status: int, said: str) -> None:
    ran = subprocess.run([sys.executable, "-c", WITHOUT, *words], capture_output=True, text=True, check=False)

    assert ran.returncode == status, ran.stderr
    assert said in ran.stderr
    assert ran.stderr.count("\n") == (1 if said else 0)
