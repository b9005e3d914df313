"""One operation of a tool as a value, and what is wrong with arguments given to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from gatewright.base.frozen import frozen
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.policy.right import OperationFacts, PathArgument
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.schema.filter import joined_outputs
from gatewright.schema.walk import Schema
from gatewright.tools.needs import judged_kinds
from gatewright.tools.parameter import CommandParameter, FileParameter, Parameter, Role, required_kinds


@frozen
class ArgumentIssue:
    """One argument to mend: its RFC 6901 pointer, and words that a model can act on."""

    pointer: str
    message: str


@frozen
class OperationSpec:
    """One operation. ``actions``: what it may turn out to do to a file or block.

    ``one_of``: groups of parameters of which exactly one has to be given. ``capabilities`` None: those of the tool.
    ``output_schema``: of its results, where it has one of its own. ``taken``: the names of its parameters,
    ``required``: of those that every call has to give.
    """

    name: str
    description: str
    tier: SafetyTier
    actions: tuple[Action, ...] = ()
    usage_rule: str | None = None
    parameters: tuple[Parameter, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()
    capabilities: frozenset[CapabilityKind] | None = None
    output_schema: Schema | None = field(default=None, hash=False)
    taken: frozenset[str] = field(init=False, compare=False, repr=False)
    required: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "taken", frozenset(one.name for one in self.parameters))
        object.__setattr__(self, "required", tuple(one.name for one in self.parameters if one.required))

    def facts(
        self,
        capabilities: frozenset[CapabilityKind] = frozenset(),
        paths: tuple[PathArgument, ...] = (),
        *,
        holds_texts: bool = False,
        takes_others: bool = False,
        deletes: bool = False,
    ) -> OperationFacts:
        """What the policy needs to know of it; ``capabilities`` are the tool's, for an operation that says none."""
        markers = [mark.marker for parameter in self.parameters for mark in parameter.marks]
        files = [marker for marker in markers if isinstance(marker, FileParameter)]
        commands = any(isinstance(marker, CommandParameter) for marker in markers)
        done = frozenset(Action.OVERWRITE if marker.writes else Action.READ for marker in files)
        if commands:
            done |= {Action.READ, Action.OVERWRITE}
        elif files and self.actions:
            done = frozenset(self.actions)
        return OperationFacts(
            self.name,
            self.tier,
            self.actions,
            self.description,
            (capabilities if self.capabilities is None else self.capabilities) | required_kinds(self.parameters),
            tuple(parameter.name for parameter in self.parameters),
            self.required,
            judged_kinds(self.parameters),
            {parameter.name: parameter.whole_schema for parameter in self.parameters},
            frozenset(parameter.name for parameter in self.parameters if parameter.has_default),
            paths,
            places=frozenset(parameter.name for parameter in self.parameters if parameter.role is Role.PATH),
            labels=frozenset(parameter.name for parameter in self.parameters if parameter.role is Role.LABEL),
            disk_actions=done,
            roots=frozenset(root for marker in files for root in marker.roots),
            commands=commands,
            holds_texts=holds_texts,
            takes_others=takes_others,
            deletes=deletes,
        )


def joined_output(specs: Iterable[OperationSpec]) -> Schema | None:
    """The schema of results of any of the operations; None where one of them says none."""
    said = [spec.output_schema for spec in specs]
    known = [one for one in said if one is not None]
    return joined_outputs(known) if known and len(known) == len(said) else None


def issues_of(
    spec: OperationSpec, arguments: Mapping[str, object], *, ignored: Sequence[str] = (), closed: bool = True
) -> tuple[ArgumentIssue, ...]:
    """What is missing or too much in ``arguments``; ``ignored`` are names that belong to no operation.

    ``closed``: whether names that the operation does not take are issues as well.
    """
    given = [name for name in arguments if name not in ignored]
    taken = spec.taken
    if not spec.one_of and (not closed or taken.issuperset(given)) and all(map(arguments.__contains__, spec.required)):
        return ()
    subject = f"`{spec.name}`" if spec.name else "the call"
    found = [_issue(name, f"{subject} needs `{name}`") for name in spec.required if name not in arguments]
    for group in spec.one_of:
        names, chosen = " or ".join(f"`{name}`" for name in group), [name for name in group if name in arguments]
        if not chosen:
            found.append(ArgumentIssue("", f"{subject} needs {names}"))
        found += [_issue(name, f"{subject} takes {names}, only one of them") for name in chosen[1:]]
    if closed:
        found += [_issue(name, f"{subject} does not take this argument") for name in given if name not in taken]
    return tuple(found)


def _issue(name: str, message: str) -> ArgumentIssue:
    return ArgumentIssue("/" + name.replace("~", "~0").replace("/", "~1"), message)
