"""Every field of a stranger's tool that may be declared as what selects its operations: those that look like it first.

It decides nothing: the operator chooses. It looks through schemas, so not on the GUI thread.
"""

from dataclasses import replace
from typing import cast

from gatewright.workspace.api import (
    OperationSet,
    Schema,
    SchemaError,
    Survey,
    Workspace,
    discover_operations,
    inline_references,
)

MAX_FIELDS = 60
"""Fields of one tool that are looked at; a longer list would be no choice any more."""


def full_survey(workspace: Workspace, tool: str) -> Survey | None:
    """The survey of the engine, and behind it the other top-level lists and texts; None for an unknown tool."""
    survey, schema = workspace.survey(tool), workspace.tool_schema(tool)
    return None if survey is None or schema is None else with_other_fields(survey, schema)


def with_other_fields(survey: Survey, schema: Schema) -> Survey:
    """`survey`, with the top-level fields of `schema` that it leaves out and that can be declared."""
    known = {found.field for found in (*survey.readings, *survey.free)}
    inlined = inline_references(schema)
    properties: object = inlined.get("properties")
    names = list(cast("dict[str, object]", properties))[:MAX_FIELDS] if isinstance(properties, dict) else []
    readings = [_reading(inlined, name) for name in names]
    others = [found for found in readings if found is not None and found.field not in known]
    closed = tuple(found for found in others if found.operations)
    free = tuple(found for found in others if not found.operations)
    return replace(survey, readings=(*survey.readings, *closed), free=(*survey.free, *free))


def _reading(schema: Schema, field: str) -> OperationSet | None:
    """The list that the schema has there, or an empty one where it takes any text; None where it takes none."""
    try:
        closed = discover_operations(schema, field=field)
        if closed is not None:
            return closed
        return _free(schema, field) if "." not in field else None
    except SchemaError:
        return None


def _free(schema: Schema, field: str) -> OperationSet | None:
    trial = discover_operations(schema, field=field, operations=("any",))
    return None if trial is None else OperationSet(field, (), "free-string", "low", field_required=trial.field_required)
