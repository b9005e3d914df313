"""What every format is given and how badly it may take it, as values. No spelling is here."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from gatewright.base.frozen import frozen
from gatewright.schema.walk import Schema

Level = Literal["refused", "looser", "narrower", "note"]


@frozen
class ToolListing:
    """A tool as an agent sees it, before any provider's spelling.

    ``output``: what its results are, as the model may be told. ``made``: what formats and token counts made of it,
    which lasts as long as it does.
    """

    name: str
    description: str
    schema: Schema
    output: Schema | None = None
    made: dict[object, Any] = field(default_factory=dict[object, Any], init=False, compare=False, repr=False)
