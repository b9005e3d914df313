"""What the tests of this folder declare over and over."""

from gatewright.tools import Normalization, ResultType, Tool, ToolExecutionContext

CONTEXT = ToolExecutionContext("tester", "session-1")


class ObjectTool(Tool, abstract=True):
    """The declarations that these tests do not care about."""

    description = "Keeps notes."
    result_type = ResultType.OBJECT
    normalization = Normalization.JSON
