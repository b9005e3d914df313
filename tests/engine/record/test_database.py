"""A file of ours that another one replaces while it is opened."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gatewright.record.database import Database


def test_file_that_is_replaced_while_it_is_opened_is_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, number in (("one", 1), ("two", 2)):
        with closing(Database(tmp_path / name, what="the file", busy_s=1.0)) as made, made.writing() as connection:
            connection.execute("CREATE TABLE kept (number)")
            connection.execute("INSERT INTO kept VALUES (?)", (number,))
    database = Database(tmp_path / "one", what="the file", busy_s=1.0)
    connect, times = database._connect, list[str]()  # pyright: ignore[reportPrivateUsage]

    def replaced_first(mode: str) -> Any:
        times.append(mode)
        if len(times) == 1:
            (tmp_path / "two").replace(tmp_path / "one")
        return connect(mode)

    monkeypatch.setattr(database, "_connect", replaced_first)
    with database.reading() as connection:
        assert connection is not None
        assert connection.execute("SELECT number FROM kept").fetchall() == [(2,)]
    database.close()

    assert times == ["ro", "ro"]
