"""Marks the tests of real programs, which `./check outside` runs, and skips those whose program cannot be had."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.outside.agents import AGENTS, Agent, Room
from tests.outside.house import House, living
from tests.outside.models import COUNTS
from tests.outside.programs import PROGRAMS, MissingError

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.outside)


@pytest.fixture(autouse=True)
def count(request: pytest.FixtureRequest) -> Iterator[None]:
    """Take down how many calls the programs made in the test, for the summary."""
    COUNTS.clear()
    yield
    request.node.user_properties.append(("calls", sum(made() for made in COUNTS)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell how many calls were made under how many conditions by each program."""
    conditions, calls = Counter[str](), Counter[str]()
    for report in (one for reports in terminalreporter.stats.values() for one in reports):
        if isinstance(report, pytest.TestReport) and report.when == "teardown":
            made = sum(value for name, value in report.user_properties if name == "calls" and isinstance(value, int))
            host = next((one for one in AGENTS if f"[{one}" in report.nodeid), "several")
            conditions[host] += bool(made)
            calls[host] += made
    for host in filter(calls.get, (*AGENTS, "several")):
        terminalreporter.line(f"{host}: {calls[host]} calls in {conditions[host]} conditions")
    terminalreporter.line(f"in all: {calls.total()} calls in {conditions.total()} conditions")


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
