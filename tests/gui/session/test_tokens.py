from pathlib import Path

from gatewright.workspace import Workspace
from gatewright_gui.session.tokens import token_report
from tests.gui.session.opened import demo


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
