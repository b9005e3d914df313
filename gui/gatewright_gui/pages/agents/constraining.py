"""Opens the dialog for a constraint and writes what was said in it. It knows no schema words."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from gatewright.policy.document import Agent
from gatewright.policy.right import ToolFacts
from gatewright_gui.pages.page import PageContext

if TYPE_CHECKING:
    from gatewright.base.jsonvalue import JsonValue
    from gatewright_gui.models.limitrow import LimitRow
    from gatewright_gui.session.verbs.constraint import ConstraintWish


TASK = "constrain"


class Constraining(QObject):
    """One dialog at a time."""

    def __init__(self, context: PageContext, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._window = parent

    def open(self, agent: Agent, facts: ToolFacts, operation: str | None, row: "LimitRow | None") -> None:
        """Ask for a new constraint on the row, or for another schema of one that stands."""
        self._context.tasks.start(self._ask(agent, facts, operation, row), TASK, replace=True)

    async def _ask(self, agent: Agent, facts: ToolFacts, operation: str | None, row: "LimitRow | None") -> None:
        from gatewright.policy.ruleedit import free_fields, taken_fields
        from gatewright_gui.pages.agents.constraint_dialog import Answers, ConstraintDialog, Subject
        from gatewright_gui.qt.dialog import shown
        from gatewright_gui.session.argument import Argument, arguments_of, example_fault, giving_of
        from gatewright_gui.session.verbs import limits as verbs
        from gatewright_gui.session.verbs.constraint import ConstraintWish

        document = self._context.document
        known = await self._context.deriver.derive(lambda workspace: arguments_of(workspace, facts.name))
        if known is None:
            return
        operations = row.operations if row else frozenset({operation}) if operation else None
        names = taken_fields(facts, operations) if row else free_fields(agent, facts, operations)
        if row is not None and row.field and row.field not in names:
            names = (row.field, *names)
        arguments = tuple(
            replace(known.get(name, Argument(name)), giving=giving_of(facts, name, operations)) for name in names
        )
        subject = Subject(agent.agent_id, facts.name, operations)
        standing, was = (row.standing, row.field) if row else (None, None)
        if row is not None:
            subject = replace(subject, field=row.field, schema=row.schema, required=row.is_required)

        def wish(field: str, schema: "JsonValue", required: bool) -> "ConstraintWish":
            return ConstraintWish(agent.agent_id, facts.name, field, schema, required, operations, standing, was)

        def refusal(field: str, schema: "JsonValue", required: bool) -> str:
            return verbs.constraint_refusal(document, wish(field, schema, required))

        answers = Answers(refusal, partial(example_fault, check_formats=document.policy.defaults.check_formats))
        dialog = ConstraintDialog(self._window.window(), subject, arguments, answers)
        if await shown(dialog):
            verbs.constrain(document, wish(dialog.field, dialog.schema, dialog.is_required))
