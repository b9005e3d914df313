import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright.workspace import Workspace
from gatewright_gui.session.tokens import CHILD, CountFailed, TokenProcess, token_report
from tests.gui.session.opened import demo


@pytest.fixture
def counting() -> Iterator[TokenProcess]:
    process = TokenProcess([sys.executable, "-P", "-m", CHILD])
    yield process
    process.close()


def test_report_counts_what_the_view_counts(tmp_path: Path) -> None:
    workspace = Workspace.open(demo(tmp_path))
    try:
        for provider in ("mcp", "openai", "gemini"):
            report, counted = (
                token_report(workspace, "archivist", provider),
                workspace.view("archivist").tokens(provider),
            )

            assert dict(report.by_tool) == dict(counted.per_tool)
            assert (report.total.tokens, report.total.unrestricted) == (counted.total, counted.unrestricted)
            assert (report.exact, report.encoding) == (counted.exact, counted.encoding)
    finally:
        workspace.close()


def test_hidden_tool_saves_all_of_its_tokens(tmp_path: Path) -> None:
    workspace = Workspace.open(demo(tmp_path))
    try:
        report = token_report(workspace, "newcomer", "openai")
    finally:
        workspace.close()

    row = report.row_of("file")
    assert row is not None
    assert (row.is_shown, row.tokens, row.saving) == (False, 0, 1.0)
    assert row.unrestricted > 100
    assert report.row_of("nothing") is None


def test_process_counts_text_after_text_in_any_script(counting: TokenProcess) -> None:
    assert counting.count([]) == []
    first = counting.count(["hello world", "", "線\n\u2028é"])

    assert first[:2] == [2, 0]
    assert first[2] > 0
    assert counting.count(["hello world"]) == [2]


def test_process_that_cannot_be_started_or_ends_is_a_failure_every_time() -> None:
    for command in (["/no/such/program"], [sys.executable, "-c", "pass"], [sys.executable, "-c", "print('[1, 2]')"]):
        process = TokenProcess(command)
        for _ in range(2):
            with pytest.raises(CountFailed):
                process.count(["text"])
        process.close()
