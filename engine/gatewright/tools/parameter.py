"""One parameter of a tool, and the markers that tell the gate which texts are paths, labels or sources.

It does not know functions, nor how a path is checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from gatewright.base.jsonvalue import JsonValue
from gatewright.schema.walk import Schema


class Role(StrEnum):
    """What a parameter's text means to the gate."""

    PLAIN = "plain"
    PATH = "path"
    LABEL = "label"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class PathParameter:
    """Marks a path inside a source: ``Annotated[str, PathParameter()]``."""


@dataclass(frozen=True, slots=True)
class LabelParameter:
    """Marks the label of a block: ``Annotated[str, LabelParameter()]``."""


@dataclass(frozen=True, slots=True)
class SourceParameter:
    """Marks the id of a source: ``Annotated[str, SourceParameter()]``."""


_ROLES: dict[type, Role] = {PathParameter: Role.PATH, LabelParameter: Role.LABEL, SourceParameter: Role.SOURCE}


def role_among(metadata: Iterable[object]) -> Role:
    """The role that the first marker among ``metadata`` gives; plain without one."""
    return next((_ROLES[type(item)] for item in metadata if type(item) in _ROLES), Role.PLAIN)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as the model may give it. ``schema`` holds no description of its own; ``default`` None: none or null.

    ``definitions`` are the `$defs` that a recursive ``schema`` refers to.
    """

    name: str
    schema: Schema = field(hash=False)
    required: bool
    role: Role = Role.PLAIN
    description: str = ""
    default: JsonValue = field(default=None, hash=False)
    definitions: Schema = field(default_factory=dict[str, object], hash=False)
