"""Which processes serve a policy, as their state folder tells it."""

from dataclasses import replace
from pathlib import Path

from gatewright.gate.sessionstore import ClientSession, ServingBook, ServingProcess


def test_process_is_told_as_long_as_it_serves(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    one = ServingProcess("one", str(policy), 1, "stdio", "", ("a",), 2.0)
    two = ServingProcess("two", str(policy), 2, "http", "http://127.0.0.1:1/mcp", ("a", "b"), 1.0)
    first, second = (ServingBook(tmp_path / "state", tmp_path / "keys") for _ in range(2))
    first.tell(one)
    second.tell(two)
    first.tell(replace(one, clients=(ClientSession("c", "a", "s", None, None, 3.0),)))
    assert [(told.process_id, len(told.clients)) for told in second.list(policy)] == [("two", 0), ("one", 1)]
    assert second.list(tmp_path / "other.toml") == ()

    first.close()
    assert [path.suffix for path in (tmp_path / "state").iterdir()].count(".alive") == 1
    assert [told.process_id for told in second.list(policy)] == ["two"]
    third = ServingBook(tmp_path / "state", tmp_path / "keys")
    third.tell(replace(one, process_id="three"))
    assert [told.process_id for told in second.list(policy)] == ["two", "three"]
    third.close()
    second.close()
    assert ServingBook(tmp_path / "state", tmp_path / "keys").list(policy) == ()
