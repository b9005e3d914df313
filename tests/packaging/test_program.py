"""Where the self-contained program starts. The program itself is built and tried by `packaging/verify`."""

import os
import runpy

import pytest

from tests.support.checkout import ROOT


@pytest.mark.parametrize("own", [None, "/home/libraries"])
def test_programs_that_it_starts_get_the_libraries_of_the_user_and_not_its_own(
    own: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/bundle")
    if own is not None:
        monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", own)
    monkeypatch.setenv("PYINSTALLER_RESET_ENVIRONMENT", "")
    monkeypatch.setattr("sys.argv", ["gatewright", "--version"])

    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "packaging" / "program.py"), run_name="__main__")

    assert (ended.value.code, capsys.readouterr().out.count(".")) == (0, 2)
    assert os.environ.get("LD_LIBRARY_PATH") == own
    assert "LD_LIBRARY_PATH_ORIG" not in os.environ
    assert os.environ["PYINSTALLER_RESET_ENVIRONMENT"] == "1"


def test_every_library_of_the_extra_for_a_shared_state_brings_its_licence_into_the_program() -> None:
    licences = runpy.run_path(str(ROOT / "packaging" / "licences.py"))

    found = licences["licence_files"]({"psycopg", "psycopg_pool", "psycopg_binary", "cryptography.x509"})

    owners = {goes.split("/")[1].replace("_", "-") for goes, _ in found if "/LICENSE" in goes}
    assert {"cryptography", "psycopg", "psycopg-binary", "psycopg-pool"} <= owners
