"""The short form, for `./check`: three of the programs start, do what they may, and nothing else."""

import pytest

from tests.outside.house import House


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini-cli"])
def test_a_program_does_what_it_may_and_nothing_else(host: str, house: House) -> None:
    house.install("allowed")
    closed = house.room.project / "closed"
    closed.mkdir()
    calls = [
        *house.calls(2),
        house.agent.write(closed / "file", "no\n"),
        house.agent.shell("echo no > closed/command"),
    ]

    ended, model = house.run([[call] for call in calls])

    assert len(model.seen.results) == len(calls), ended
    assert house.marks() == {"mark-0": "done\n", "mark-1": "done\n"}, (ended, model.seen.results)
    assert list(closed.iterdir()) == [], (ended, model.seen.results)
    assert [(row.verdict, row.kinds[-1]) for row in house.rows()] == [
        ("allow", "ToolCompleted"),
        ("allow", "ToolCompleted"),
        ("deny", "ToolDenied"),
        ("deny", "ToolDenied"),
    ]
