"""The fields of the Console's form, one module for each way to fill something in."""

from gatewright_gui.pages.console.fields.group import ArrayBody, ObjectBody, UnionBody
from gatewright_gui.pages.console.fields.host import FieldHost
from gatewright_gui.pages.console.fields.row import FieldRow

__all__ = ["ArrayBody", "FieldHost", "FieldRow", "ObjectBody", "UnionBody"]
