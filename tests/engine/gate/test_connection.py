"""Connections of confined processes in the audit log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.gate import AuditEntry, AuditLog, RowKind
from gatewright.gate.port import AuditUnavailable
from gatewright.gate.record import Connection, ConnectionLog, Way
from tests.support.patience import pause_until


class HeldLog(AuditLog):
    """A log whose first writing takes until it is let go on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "state", folder / "keys")
        self.is_held = self.fails = False
        self.sizes: list[int] = []

    def append(self, entries: Sequence[AuditEntry], *, wait: bool = True) -> bool:
        self.sizes.append(len(entries))
        pause_until(lambda: not self.is_held)
        if self.fails:
            raise AuditUnavailable("no disk")
        return super().append(entries, wait=wait)


def rows(log: AuditLog) -> list[dict[str, Any]]:
    """The rows about connections, with the body among the columns."""
    found = [row.to_json() for row in log.rows() if row.kind == RowKind.CONNECTION]
    return [{**row, **dict(row.pop("body"))} for row in found]  # pyright: ignore


def connection(host: str = "a.org", **more: Any) -> Connection:
    """One that was made, unless ``more`` says otherwise."""
    return replace(Connection(host, 443, Way.CONNECT, allowed=True, sent=5, received=7), **more)


def test_each_connection_is_a_row_with_agent_and_tool(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "state", tmp_path / "keys")
    written = ConnectionLog(log, "writer", "shell_exec")
    written.tell(connection(address="93.184.216.34", elapsed_ms=12.345))
    written.tell(connection("b.org", allowed=False, code="host-not-granted", why="it is none of the hosts"))
    written.close()
    made, refused = rows(log)
    assert (made["agent"], made["tool"], made["call_id"]) == ("writer", "shell_exec", "")
    assert (made["host"], made["port"], made["allowed"], made["address"]) == ("a.org", 443, True, "93.184.216.34")
    assert (made["sent"], made["received"], made["elapsed_ms"], "code" in made) == (5, 7, 12.3, False)
    assert (refused["allowed"], refused["code"], refused["why"]) == (
        False,
        "host-not-granted",
        "it is none of the hosts",
    )
    assert log.verify().is_sound
    log.close()


def test_what_comes_faster_than_it_is_written_shares_rows_and_loses_no_number(tmp_path: Path) -> None:
    log = HeldLog(tmp_path)
    log.is_held = True
    written = ConnectionLog(log, "writer", "shell_exec")
    for number in range(3000):
        written.tell(connection(f"h{number % 500}.org"))
    log.is_held = False
    written.close()
    found = rows(log)
    assert max(log.sizes) <= 130
    assert sum(row.get("count", 1) for row in found) == 3000
    assert sum(row["sent"] for row in found) == 15_000
    log.close()


def test_log_that_cannot_be_written_is_told_with_the_next_and_loses_nothing(tmp_path: Path) -> None:
    log = HeldLog(tmp_path)
    log.fails = True
    written = ConnectionLog(log, "writer", "shell_exec")
    written.tell(connection())
    pause_until(lambda: len(log.sizes) == 1)
    written.close()
    with pytest.raises(AuditUnavailable):
        written.tell(connection("b.org"))
    written.close()
    log.fails = False
    with pytest.raises(AuditUnavailable):
        written.tell(connection("c.org"))
    written.close()
    written.tell(connection("d.org"))
    written.close()
    assert [row["host"] for row in rows(log)] == ["a.org", "b.org", "c.org", "d.org"]
    log.close()


@settings(max_examples=30)
@given(host=st.text(max_size=400), why=st.text(max_size=400), code=st.sampled_from(["", "x"]))
def test_nothing_that_a_program_names_spoils_a_row(
    tmp_path_factory: pytest.TempPathFactory, host: str, why: str, code: str
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = AuditLog(folder / "state", folder / "keys")
    written = ConnectionLog(log, "a", "b", clean=lambda text: text.replace("hunter2", "?"))
    written.tell(connection(f"hunter2{host}", why=why, code=code))
    written.close()
    (row,) = rows(log)
    assert len(json.dumps(row)) < 5000
    assert "hunter2" not in json.dumps(row)
    assert log.verify().is_sound
    log.close()


def test_secret_in_the_name_of_a_host_stands_in_no_row(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "state", tmp_path / "keys")
    written = ConnectionLog(log, "a", "b")
    secret = "ghp_" + "a1B2" * 9
    written.tell(connection(f"{secret}.evil.org", allowed=False, code="tls-name", why=f"TLS asks for `{secret}`"))
    written.close()
    assert secret not in json.dumps(rows(log))
    log.close()
