"""What every format is given and how badly it may take it, as values. No spelling is here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from gatewright.schema.walk import Schema

Level = Literal["refused", "looser", "narrower", "note"]


@dataclass(frozen=True, slots=True)
class ToolListing:
    """A tool as an agent sees it, before any provider's spelling.

    ``made``: what formats and token counts made of it, which lasts as long as it does.
    """

    name: str
    description: str
    schema: Schema
    made: dict[object, Any] = field(default_factory=dict[object, Any], init=False, compare=False, repr=False)
