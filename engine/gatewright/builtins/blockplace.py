"""What the tools on blocks have in common: the label, and the words for a file without a block. It does no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.tools.blockport import FILE_LABEL
from gatewright.tools.parameter import LabelParameter

Label = Annotated[
    str, LabelParameter(), Field(description="Label of the block; those of files begin with `file:`.", max_length=4096)
]


def no_file_block(label: str, failure: ToolFailure) -> ToolFailure:
    """The failure, in better words where the label is that of a file which has no block yet."""
    if failure.code == "unknown-block" and label.startswith(FILE_LABEL):
        return ToolFailure("this file has no block yet: its text has to be taken into one first", code="no-block")
    return failure


def text_argument(arguments: Mapping[str, JsonValue], name: str) -> str | None:
    """An argument that is a text; None for any other."""
    value = arguments.get(name)
    return value if isinstance(value, str) else None
