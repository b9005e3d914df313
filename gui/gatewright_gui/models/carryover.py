"""Which arguments of one tool go on to another when that is chosen. It knows no widgets and checks no schema."""

from collections.abc import Mapping

from gatewright.base.jsonvalue import JsonValue
from gatewright_gui.models.branchfit import fit
from gatewright_gui.models.callform import CallForm
from gatewright_gui.session.calls import ShownTool


def carried(form: CallForm, values: Mapping[str, JsonValue], selector: str | None) -> dict[str, JsonValue]:
    """Those that have a field in `form` which holds them, but never what selects an operation there or here.

    `selector`: the argument that selected it there.
    """
    fields = form.shapes.fields(form.inner(()))
    left_out = {selector, form.selector}
    return {
        name: value
        for name, value in values.items()
        if name in fields and name not in left_out and fit(form.shapes, fields[name].schema, value)
    }


def carried_form(tool: ShownTool, before: CallForm | None, operation: str | None = None) -> CallForm:
    """The form of another tool, with what goes on from the one before. It begins with the operation, or with one that
    changes nothing.
    """
    form = CallForm(tool)
    if before is not None:
        form.set_values(carried(form, before.values_as_far(), before.selector))
    first = tool.first_operation(operation)
    if first is not None:
        form.choose_operation(first)
    return form
