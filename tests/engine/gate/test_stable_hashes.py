"""The hash of a normalised result is the same in every process, locale and time zone, and on every machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.gate.hashing_process import hashes
from tests.support.checkout import ROOT

GOLDEN = {
    "unsorted": "3656d8db6a574485c24657c6e1e6efacc74a0ee9b51d0c5d7fa7c2e2ff3e6749",
    "numbers": "63683dacadb88c440d1c2fef1f3adca11763881814d779a67fa4281e5b54202c",
    "loud straße und İstanbul": "32ce663e9864b4d3d1a873f2f9d1bb1dd6984d40700f08b145399d6a6e2a95a4",
    "pixels": "40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880",
    "pieces": "2ac33ae9d32e1c34ccab55043c6551b1b04a140278cedadcfde6c5e25cbd6962",
    "file_read shared/a.txt": "c82a20498e80c68becfce58be688df7b6283d197568282a6626a0e6e035daf6c",
    "file_list shared": "051439d2e2a867c369d36956afe71d8f7d0d712d5c3baff71a8951dedfc9af1a",
    "file_search line": "d75553e2c5b7eeb84946873597a67726ec2bb7a2e43255a648e64c9e67ae05a9",
    "file read a.md": "81911822c489887e18f8cbf7bbeb159c82cc9ad30cf79315296d03d0efcebb5b",
    "file list .": "9343703173ee75680c4fcb5f426ada0b69130d53e79cb0488e792a72901daf1a",
    "both": "393eaac382157bb2540c91ef3f3da60af4cb92b7a28818511ff23729103ce45a",
}
"""Made once: whoever changes one changes what is in every log."""
ELSEWHERE = {
    "another order of sets": {"PYTHONHASHSEED": "1", "TZ": "Pacific/Kiritimati", "LC_ALL": "C.UTF-8"},
    "another locale": {"PYTHONHASHSEED": "4242", "TZ": "America/St_Johns", "LC_ALL": "tr_TR.UTF-8", "LANGUAGE": "de"},
    "no locale": {"PYTHONHASHSEED": "77", "TZ": "", "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


def test_hashes_are_those_of_every_machine(tmp_path: Path) -> None:
    assert hashes(tmp_path / "ws") == GOLDEN


@pytest.mark.parametrize("variables", ELSEWHERE.values(), ids=ELSEWHERE)
def test_hashes_are_the_same_in_every_process(tmp_path: Path, variables: dict[str, str]) -> None:
    folder = tmp_path / "a much longer name of a folder" / "ws"
    folder.mkdir(parents=True)
    words = [sys.executable, "-m", "tests.engine.gate.hashing_process", str(folder)]
    done = subprocess.run(words, capture_output=True, check=False, cwd=ROOT, env={**os.environ, **variables})
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout) == GOLDEN
