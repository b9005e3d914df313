"""Marks the tests of real programs, which `./check outside` runs, and skips those whose program cannot be had."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.outside.agents import AGENTS, Agent, Room
from tests.outside.house import House, living
from tests.outside.programs import PROGRAMS, MissingError

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.outside)


def agent_of(host: str) -> Agent:
    """Return how a host is started; skip the test, plainly, if it cannot be."""
    try:
        _ = PROGRAMS[host].command
    except MissingError as error:
        pytest.skip(f"NOT RUN: {error}")
    return AGENTS[host]


@pytest.fixture
def agent(host: str) -> Agent:
    """The host that the test names."""
    return agent_of(host)


@pytest.fixture
def house(agent: Agent, room: Room) -> Iterator[House]:
    """A user who has that host."""
    with living(room, agent) as house:
        yield house


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """Folders of a user of its own."""
    return Room.make(tmp_path / "user")
