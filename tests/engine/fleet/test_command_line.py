"""Commands over a shared state, as people at several machines type them."""

from __future__ import annotations

import json
import re

import pytest

from gatewright.cli.main import main
from tests.engine.fleet.conftest import Fleet

READ = (
    "call",
    "work",
    "--agent",
    "archivist",
    "--tool",
    "file",
    "--args",
    '{"op": "read", "path": "notes/species.md"}',
)


class Machine:
    """A machine with a key folder of its own, where somebody types commands as a role; `work` is its own folder."""

    def __init__(self, fleet: Fleet, login: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url, self.folder = fleet.url_of(login), fleet.folder / login
        self._capsys = capsys
        assert self.run("init", "work", "--template", "demo")[0] == 0

    def run(self, *words: str) -> tuple[int, str, str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GATEWRIGHT_STATE", self.url)
            patch.setenv("GATEWRIGHT_KEYS", str(self.folder / "keys"))
            status = main([str(self.folder / word) if word == "work" else word for word in words])
        shown = self._capsys.readouterr()
        return status, shown.out, shown.err


def test_gateways_and_operator_share_log_and_stop(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    for login, duties in (("one", "gateway read"), ("two", "gateway read"), ("ada", "answer publish read")):
        fleet.member(login, *duties.split())
    one, two, ada = (Machine(fleet, login, capsys) for login in ("one", "two", "ada"))
    publisher = Machine(fleet, "postgres", capsys)

    assert one.run(*READ)[0] == 4
    for machine in (one, two):
        denied = machine.run(*READ)
        found = re.search(r"writer-[0-9a-f]{16}", denied[1])
        assert found is not None
        assert publisher.run("state", "enroll", found[0])[0] == 0
        assert machine.run(*READ)[0] == 0

    assert two.run("stop", "work", "--because", "it reads too much")[0] == 0
    status, out, _ = one.run(*READ)
    assert (status, "an operator has stopped your calls" in out) == (4, True)
    assert "may not let stopped agents go on" in two.run("go", "work")[2]
    said = ada.run("go", "work")[2]
    found = re.search(r"writer-[0-9a-f]{16}", said)
    assert found is not None
    assert one.run(*READ)[0] == 4
    assert ada.run("state", "enroll", found[0])[0] == 0
    assert ada.run("go", "work")[0] == 0
    assert one.run(*READ)[0] == 0

    assert json.loads(ada.run("audit", "verify", "work", "--json")[1])["sound"]
    kinds = [json.loads(line)["kind"] for line in one.run("audit", "export", "work")[1].splitlines()]
    assert [kinds.count(kind) for kind in ("ToolCompleted", "StopPulled", "StopLifted")] == [3, 1, 1]


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "list", "work"),
        ("audit", "observed", "work"),
        ("audit", "verify", "work", "--moved"),
    ],
)
def test_what_a_shared_state_does_not_do_yet_is_said(
    fleet: Fleet, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    fleet.gateway("one")
    status, _, err = Machine(fleet, "one", capsys).run(*words)

    assert status == 2
    assert re.search("not supported|cannot be listed|does not move", err)
