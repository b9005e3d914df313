"""The operations that are privileged or delete, and are on without asking, as rows of a table."""

from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.table_model import RowModel
from gatewright_gui.session.rights_picture import Risk

_NAMED = 20
"""Agents that the tooltip names."""


class RiskModel(RowModel[Risk]):
    """One row per operation, the riskiest first."""

    headers = (mark("Operation"), mark("Why"), mark("Agents"))

    def text(self, row: Risk, column: int) -> str:
        """Cells."""
        return (*_words(row), f"{len(row.agents):,}: {', '.join(row.agents[:3])}")[column]

    def tip(self, row: Risk, _column: int) -> str:
        """With more of the agents."""
        agents, more = ", ".join(row.agents[:_NAMED]), len(row.agents) - _NAMED
        if more > 0:
            agents = tr("{names} and {count:,} more", names=agents, count=more)
        operation, why = _words(row)
        told = tr("{operation}, {why}, is on without asking for {agents}", operation=operation, why=why, agents=agents)
        return told + "\n" + tr("Enter or a click shows it")

    def spoken(self, row: Risk, column: int) -> str:
        """The row, at its first cell."""
        if column:
            return ""
        (operation, why), agents = _words(row), counted(len(row.agents), "agent", "agents")
        return tr("{operation}, {why}, on without asking for {agents}", operation=operation, why=why, agents=agents)


def _words(risk: Risk) -> tuple[str, str]:
    """The operation, and why it is a risk."""
    operation = f"{risk.tool}.{risk.operation}" if risk.operation else risk.tool
    return operation, tr("privileged") if risk.is_privileged else tr("deletes")
