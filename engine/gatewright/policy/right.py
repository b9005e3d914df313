"""Effective rights as values: what an agent may do with each operation, and why.

The app says off, ask first, on for deny, ask, allow. ``ticked`` is the checkbox, which the agent's own list and rules
decide; ``verdict`` is the result of all layers. A denied operation is hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, Literal, Protocol

from gatewright.base.errors import Address
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.capability import Capability, CapabilityKind
from gatewright.policy.rule import ANY_TOOL, ArgumentConstraints, PolicyRule, ToolRule
from gatewright.policy.verdict import Action, PathUse, SafetyTier, Verdict, Word

_FILES = frozenset({CapabilityKind.FS_READ, CapabilityKind.FS_WRITE})
_NET = frozenset({CapabilityKind.NET_READ, CapabilityKind.NET_WRITE})
_RUN = frozenset({CapabilityKind.EXEC, CapabilityKind.WASM_EXEC})
Limit = ToolRule | PolicyRule | Capability
"""A rule on the tool (from the agent, a source or the tool itself), a policy rule with a condition, or a grant with
bounds.
"""


class RightWord(Word):
    """The word for an operation's right, the same everywhere.

    ``BUT_PATHS``: allowed, but a text that is a path into a source meets the level there.
    """

    OFF = "off"
    ASK = "ask first"
    ALLOW = "allow"
    BY_PATH = "by path"
    BY_BLOCK = "by block"
    BY_VALUE = "by value"
    BUT_PATHS = "allow, but for paths"


class Effect(Word):
    """The worst that an operation does, in the order in which people ask for it."""

    READ = "reads"
    CHANGE = "changes"
    DELETE = "deletes"
    SEND = "sends"
    RUN = "runs"


class Layer(Word):
    """The layers that may turn an operation off or make it ask."""

    TOOLS = "tools"
    RULE = "rule"
    APPROVALS = "approvals"
    SOURCE = "source"
    CAPABILITY = "capability"
    POLICY = "policy"


@frozen
class Reason:
    """The reason for a verdict. ``code`` is stable; ``address`` leads to the deciding place in the policy, if it has
    one.

    ``rule_id``: the deciding rule's own id or name. ``message``: its author's words to the model.
    """

    layer: Layer
    verdict: Verdict
    code: str
    text: str
    address: Address | None = None
    rule_id: str | None = None
    message: str | None = None


class Selection(Protocol):
    """How a call's arguments select an operation; equal ways are the same value."""

    @property
    def fields(self) -> frozenset[str]:
        """The top-level fields that select the operation."""
        ...

    def declared(self, field: str) -> JsonValue:
        """The tool's own schema of the field; True if it has none."""
        ...

    def refused(self, field: str, constraint: JsonValue) -> frozenset[str]:
        """The operations that no call can select while ``field`` satisfies ``constraint``, a JSON Schema."""
        ...


@frozen
class PathArgument:
    """An argument that is, or looks like, a path on disk: its place (``edits[].path``) and its use.

    ``use`` None: unknown. ``confidence``: ``declared`` by the policy, else how sure discovery is.
    """

    argument: str
    use: PathUse | None
    confidence: Literal["declared", "high", "medium", "low"]

    @property
    def counts(self) -> bool:
        """True if the gate judges the argument as a path; whole paths in other arguments it judges anyway."""
        return self.use is not PathUse.NONE and self.confidence in {"declared", "high"}


@frozen
class OperationFacts:
    """The facts about an operation that the policy needs. ``actions``: its possible actions on files or blocks.

    ``capabilities``: the kinds that it needs; ``judged``: those kinds that the gate can judge by a parameter.
    ``parameters``: all names that it takes, with their JSON Schemas in ``schemas``; ``required``: those that a call
    must give; ``defaulted``: those with a default, perhaps null. ``paths``: those that are, or look like, paths on
    disk without the author's mark; ``places``: those marked as paths in a source; ``makes``: calls make a new file
    there; ``labels``: those marked as labels of blocks. ``needs``: a need that the policy must provide
    (`Policy.provides`), or empty. ``disk_actions``: the actions at arguments marked as paths on disk; ``roots``:
    the roots in which these lie, empty for anywhere. ``commands``: an argument is a shell command. ``holds_texts``:
    a call may contain a text that is a path; ``takes_others``: arguments that the schema does not name may contain
    one, if nothing refuses them. ``deletes``: its hints or name suggest that it destroys something for good.
    ``needs_grant``: a grant of files must cover its paths outside of the agent's sources.
    """

    name: str
    tier: SafetyTier
    actions: tuple[Action, ...] = ()
    description: str = ""
    capabilities: frozenset[CapabilityKind] = frozenset()
    parameters: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    judged: frozenset[CapabilityKind] = frozenset()
    schemas: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue], hash=False, repr=False)
    defaulted: frozenset[str] = frozenset()
    paths: tuple[PathArgument, ...] = ()
    needs: str = ""
    places: frozenset[str] = frozenset()
    makes: bool = False
    labels: frozenset[str] = frozenset()
    disk_actions: frozenset[Action] = frozenset()
    roots: frozenset[str] = frozenset()
    commands: bool = False
    holds_texts: bool = False
    takes_others: bool = False
    deletes: bool = False
    needs_grant: bool = False

    @property
    def text_action(self) -> Action:
        """The action at an undeclared path: a write, unless the operation only reads."""
        return Action.READ if self.tier is SafetyTier.READ_ONLY else Action.OVERWRITE

    @property
    def destroys(self) -> bool:
        """True if a call may delete a file, a block, a note, or data of a foreign tool."""
        said = self.deletes and self.tier is not SafetyTier.READ_ONLY
        return said or Action.DELETE in self.actions or any(one.use is PathUse.DELETE for one in self.paths)

    @property
    def effect(self) -> Effect:
        """The worst that a call does: run programs, delete, reach other hosts, change anything, or only read."""
        if self.commands or self.capabilities & _RUN:
            return Effect.RUN
        if self.destroys:
            return Effect.DELETE
        if self.capabilities & _NET:
            return Effect.SEND
        return Effect.READ if self.tier is SafetyTier.READ_ONLY else Effect.CHANGE

    @property
    def path_actions(self) -> frozenset[Action]:
        """The actions at the paths that the gate judges."""
        return frozenset(
            one.use.action if one.use is not None else self.text_action for one in self.paths if one.counts
        )

    @property
    def judgeable(self) -> frozenset[CapabilityKind]:
        """The kinds of capability that the gate can judge by an argument, including unmarked paths."""
        return self.judged | _FILES if any(one.counts for one in self.paths) else self.judged


@frozen
class ToolFacts:
    """The facts about a registered tool that the policy needs; a tool without operations has one, named ``""``.

    ``operation_names``: the operations in the tool's own order; empty for a tool without operations. ``tool_rules`` are
    the tool's own; ``selection`` says how calls select its operations, None if unknown. ``extra_arguments``: its
    schema's verdict on arguments that it does not name, None if it has none. ``texts``: the places of text arguments
    (``edits[].path``) that the policy may declare to be paths; None if unknown. ``held``: why the tool is hidden until
    the operator accepts it; empty for a tool in use. ``outmoded``: only agents whose policy lists it get it.
    ``source``: the program's source that brings it: its places are keys there, and only agents with that source see
    it. ``outside``: its results are words of somebody outside, which marks a session for AfterOutside.
    """

    name: str
    major: int
    operations: tuple[OperationFacts, ...]
    tier: SafetyTier
    origin: str = "built-in"
    needs_source: bool = False
    description: str = ""
    tool_rules: tuple[ToolRule, ...] = ()
    selection: Selection | None = None
    extra_arguments: Verdict | None = None
    texts: tuple[str, ...] | None = None
    held: str = ""
    outmoded: bool = False
    source: str = ""
    outside: bool = False
    operation_names: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        names = tuple([row.name for row in self.operations])
        object.__setattr__(self, "operation_names", () if names == ("",) else names)

    @property
    def has_operations(self) -> bool:
        """True if the gate decides each operation by itself."""
        return not (len(self.operations) == 1 and not self.operations[0].name)

    def mandatory_arguments(self, rule: ToolRule, operation: OperationFacts) -> tuple[str, ...]:
        """The arguments of the operation that the rule makes mandatory: those parameters that have no default.

        If the tool names no parameters at all, a rule on the tool itself requires whatever it lists.
        """
        kind = rule.rule_type
        if not isinstance(kind, ArgumentConstraints) or not rule.binds(operation.name):
            return ()
        names_none = rule.tool_name != ANY_TOOL and not any(row.parameters for row in self.operations)
        return tuple(
            name
            for name in kind.required
            if (names_none or name in operation.parameters or self._carries(name)) and name not in operation.defaulted
        )

    def _carries(self, name: str) -> bool:
        """Tell whether the field selects the operation and has no default."""
        if self.selection is None or name not in self.selection.fields:
            return False
        declared = self.selection.declared(name)
        return not isinstance(declared, dict) or "default" not in declared


def of_origin(facts: ToolFacts, origin: str) -> ToolFacts:
    """The same tool from somewhere else; the same object if it comes from there."""
    return facts if facts.origin == origin else replace(facts, origin=origin)


@frozen
class OperationRight:
    """One row of the tree: the box, the verdict of all layers, and every reason, the deciding one first.

    ``verdict`` is the mildest that a call can get. Some calls may get a stricter one: in ``by_path`` because of the
    files they name (levels and rules of the sources, conditions on paths, grants on files), in ``by_block`` because of
    the level of the block or file behind a label, in ``by_value`` because of anything else (constraints, conditions of
    policy rules, other grants), in ``by_text`` because of an undeclared text that is a path into a source. ``limits``:
    all that narrows its calls besides the levels; empty for a denied operation.
    """

    operation: str
    ticked: bool
    verdict: Verdict
    tier: SafetyTier
    reasons: tuple[Reason, ...] = ()
    by_path: frozenset[Verdict] = frozenset()
    by_value: frozenset[Verdict] = frozenset()
    limits: tuple[Limit, ...] = ()
    by_block: frozenset[Verdict] = frozenset()
    by_text: frozenset[Verdict] = frozenset()

    @property
    def word(self) -> RightWord:
        """The word for the right, exactly as strong as the verdicts of its calls."""
        if self.verdict is not Verdict.ALLOW:
            return RightWord.OFF if self.verdict is Verdict.DENY else RightWord.ASK
        if self.by_path:
            return RightWord.BY_PATH
        if self.by_block:
            return RightWord.BY_BLOCK
        if self.by_value:
            return RightWord.BY_VALUE
        return RightWord.BUT_PATHS if self.by_text else RightWord.ALLOW

    @property
    def depends(self) -> frozenset[Verdict]:
        """The verdicts stricter than ``verdict`` that some calls get, apart from undeclared texts."""
        return self.by_path | self.by_block | self.by_value

    @property
    def is_hidden(self) -> bool:
        """True if the model does not see the operation."""
        return self.verdict is Verdict.DENY

    @property
    def is_overruled(self) -> bool:
        """True if the box is ticked, but another layer turns the operation off."""
        return self.ticked and self.is_hidden

    @property
    def asks_for_some(self) -> bool:
        """True if some calls ask first and others do not."""
        return self.verdict is Verdict.ALLOW and Verdict.ASK in self.depends


class ToolRight:
    """One tool of one agent: its facts and the right on each operation.

    ``listed``: the agent's list has it; ``reasons``: why the whole tool is closed; ``ticked``: the operations with a
    tick; ``shown``: those that the model sees. ``rows``: the rights on its operations in the tool's own order, or a
    function that computes them on first use, since a list of tools only needs ``shown``.
    """

    __slots__ = ("_rows", "facts", "listed", "reasons", "shown", "ticked")

    def __init__(
        self,
        facts: ToolFacts,
        listed: bool,
        reasons: tuple[Reason, ...],
        ticked: frozenset[str],
        shown: frozenset[str],
        rows: tuple[OperationRight, ...] | Callable[[], tuple[OperationRight, ...]],
    ) -> None:
        self.facts = facts
        self.listed = listed
        self.reasons = reasons
        self.ticked = ticked
        self.shown = shown
        self._rows = rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolRight) and self.__reduce__() == other.__reduce__()

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # its rows are worked out late

    def __reduce__(self) -> tuple[Any, ...]:
        return ToolRight, (self.facts, self.listed, self.reasons, self.ticked, self.shown, self.operations)

    @property
    def operations(self) -> tuple[OperationRight, ...]:
        """The right on each operation, in the tool's own order."""
        rows = self._rows
        if callable(rows):
            rows = self._rows = rows()
        return rows

    @property
    def is_worked_out(self) -> bool:
        """True if ``operations`` has been computed."""
        return not callable(self._rows)

    @property
    def is_hidden(self) -> bool:
        """True if the model does not see the tool at all."""
        return not self.shown
