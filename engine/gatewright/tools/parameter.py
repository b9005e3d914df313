"""One parameter of a tool, and the markers that tell the gate the meaning of its texts: paths, addresses, tables, ....

A marker stands on a text, on a list of texts, or on a field inside a pydantic model; ``marks`` holds the places.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from enum import Enum, StrEnum
from typing import Literal, get_args

from gatewright.arguments.url import DEFAULT_PORTS, WEB_SCHEMES
from gatewright.base.errors import RegistrationError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import ROOT_NAMES
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.schema.walk import Schema


class Role(StrEnum):
    """The meaning of a parameter's text to the gate."""

    PLAIN = "plain"
    PATH = "path"
    LABEL = "label"
    SOURCE = "source"
    URL = "url"
    HOST = "host"
    FILE = "file"
    TABLE = "table"
    VARIABLE = "variable"
    COMMAND = "command"


Effect = Literal["read", "write"]


@frozen
class PathParameter:
    """Marks a path inside a source: ``Annotated[str, PathParameter()]``."""


@frozen
class LabelParameter:
    """Marks the label of a block: ``Annotated[str, LabelParameter()]``; ``makes``: the call creates the block."""

    makes: bool = False


@frozen
class SourceParameter:
    """Marks the id of a source: ``Annotated[str, SourceParameter()]``."""


@frozen
class UrlParameter:
    """Marks a URL; ``effect`` tells whether the tool sends data there. The tool receives its canonical form.

    Raises RegistrationError for a scheme whose URLs have no host to judge.
    """

    schemes: tuple[str, ...] = WEB_SCHEMES
    effect: Effect = "read"

    def __post_init__(self) -> None:
        object.__setattr__(self, "schemes", tuple(self.schemes))
        _check_effect(self.effect)
        if not self.schemes:
            raise RegistrationError("a URL parameter accepts at least one scheme")
        for scheme in self.schemes:
            if scheme not in DEFAULT_PORTS:
                known = ", ".join(f"`{name}`" for name in DEFAULT_PORTS)
                raise RegistrationError(f"a URL parameter cannot accept the scheme `{scheme}`; it may be {known}")


@frozen
class HostParameter:
    """Marks a host, perhaps with ``:port``; ``effect`` tells whether the tool sends data there."""

    effect: Effect = "read"

    def __post_init__(self) -> None:
        _check_effect(self.effect)


@frozen
class FileParameter:
    """Marks a path on disk, relative to the workspace's folder or absolute; the tool receives the absolute one.

    A path below a source's base has that source's level as well. ``roots``: the path begins with the name of one of
    these roots of ``[workspace]`` and lies there (without a name: in the first), nowhere else.
    """

    writes: bool = False
    roots: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.roots:
            if name not in ROOT_NAMES:
                known = ", ".join(f"`{known}`" for known in ROOT_NAMES)
                raise RegistrationError(f"there is no root `{name}`; a path may be in {known}")


@frozen
class TableParameter:
    """Marks the name of a database table."""

    writes: bool = False


@frozen
class VariableParameter:
    """Marks the name of an environment variable."""


@frozen
class CommandParameter:
    """Marks a shell command; the tool receives its canonical form. ``[workspace]`` names the programs that it may
    start.
    """


Marker = (
    PathParameter
    | LabelParameter
    | SourceParameter
    | UrlParameter
    | HostParameter
    | FileParameter
    | TableParameter
    | VariableParameter
    | CommandParameter
)
MARKERS: tuple[type, ...] = get_args(Marker)
_ROLES: dict[type, Role] = {
    PathParameter: Role.PATH,
    LabelParameter: Role.LABEL,
    SourceParameter: Role.SOURCE,
    UrlParameter: Role.URL,
    HostParameter: Role.HOST,
    FileParameter: Role.FILE,
    TableParameter: Role.TABLE,
    VariableParameter: Role.VARIABLE,
    CommandParameter: Role.COMMAND,
}
_OF_ROLE: dict[Role, type[Marker]] = {
    Role.PATH: PathParameter,
    Role.LABEL: LabelParameter,
    Role.SOURCE: SourceParameter,
    Role.URL: UrlParameter,
    Role.HOST: HostParameter,
    Role.FILE: FileParameter,
    Role.TABLE: TableParameter,
    Role.VARIABLE: VariableParameter,
    Role.COMMAND: CommandParameter,
}


class Step(Enum):
    """A step into a value that has no name: to every item of a list, to every value of an object."""

    ITEMS = "items"
    VALUES = "values"


@frozen
class Mark:
    """A marker and its place inside the parameter's value; ``at`` empty: the value itself, or its items."""

    at: tuple[str | Step, ...]
    marker: Marker

    @property
    def role(self) -> Role:
        """The meaning of the text there."""
        return _ROLES[type(self.marker)]


@frozen
class Parameter:
    """A parameter as the model may give it. ``schema`` holds no description of its own.

    ``default``: the value if a call leaves it out, perhaps null; ``has_default``: it has one. ``definitions`` are the
    `$defs` that a recursive ``schema`` refers to. ``role`` and ``marks`` follow from each other: the role is the first
    mark's, and plain exactly without marks.
    """

    name: str
    schema: Schema = field(hash=False)
    required: bool
    role: Role = Role.PLAIN
    description: str = ""
    default: JsonValue = field(default=None, hash=False)
    definitions: Schema = field(default_factory=dict[str, object], hash=False)
    marks: tuple[Mark, ...] = ()
    has_default: bool = False

    @property
    def whole_schema(self) -> Schema:
        """Return the schema with the definitions that it refers to."""
        return {**self.schema, "$defs": self.definitions} if self.definitions else self.schema

    def __post_init__(self) -> None:
        if self.default is not None:
            object.__setattr__(self, "has_default", True)
        if self.marks:
            object.__setattr__(self, "role", self.marks[0].role)
        elif self.role is not Role.PLAIN:
            object.__setattr__(self, "marks", (Mark((), _OF_ROLE[self.role]()),))


def unavoidable_kinds(parameters: Iterable[Parameter]) -> frozenset[CapabilityKind]:
    """Return the kinds that every call needs, since a required parameter is marked.

    Paths in sources need none.
    """
    found = (kind_needed(mark.marker) for one in parameters if one.required for mark in one.marks if not mark.at)
    return frozenset(kind for kind in found if kind is not None)


def kind_needed(marker: Marker) -> CapabilityKind | None:
    """Return the kind of capability that must cover a text with ``marker``; None: no kind holds such texts."""
    match marker:
        case UrlParameter(effect=effect) | HostParameter(effect=effect):
            return CapabilityKind.NET_WRITE if effect == "write" else CapabilityKind.NET_READ
        case FileParameter(writes=writes):
            return CapabilityKind.FS_WRITE if writes else CapabilityKind.FS_READ
        case TableParameter(writes=writes):
            return CapabilityKind.DB_WRITE if writes else CapabilityKind.DB_READ
        case VariableParameter():
            return CapabilityKind.ENV_READ
        case CommandParameter():
            return CapabilityKind.EXEC
        case PathParameter() | LabelParameter() | SourceParameter():
            return None


def _check_effect(effect: str) -> None:
    if effect not in get_args(Effect):
        raise RegistrationError(f"the effect of a marker is `read` or `write`, not `{effect}`")
