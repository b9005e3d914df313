"""Effective rights as values: what an agent may do with each operation, and why. It does not compute them.

The words of the app are off, ask first, on; here they are deny, ask, allow. ``ticked`` is the checkbox: what the
agent's own list and rules say. ``verdict`` is what all layers together say; a denied operation is hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal, Protocol

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.problem import Address
from gatewright.base.word import Word
from gatewright.policy.kinds.capability import Capability, CapabilityKind
from gatewright.policy.rule import ANY_TOOL, ArgumentConstraints, PolicyRule, ToolRule
from gatewright.policy.verdict import Action, PathUse, SafetyTier, Verdict

_FILES = frozenset({CapabilityKind.FS_READ, CapabilityKind.FS_WRITE})
Limit = ToolRule | PolicyRule | Capability
"""A rule on the tool (of its sources or its own too), a policy rule with a condition, a grant with bounds."""


class RightWord(Word):
    """The word for what an operation comes to, the same wherever it is shown.

    ``BUT_PATHS``: allowed, but for texts that are paths into a source, which take its level.
    """

    OFF = "off"
    ASK = "ask first"
    ALLOW = "allow"
    BY_PATH = "by path"
    BY_BLOCK = "by block"
    BY_VALUE = "by value"
    BUT_PATHS = "allow, but for paths"


class Layer(Word):
    """Who may turn an operation off or make it ask."""

    TOOLS = "tools"
    RULE = "rule"
    APPROVALS = "approvals"
    SOURCE = "source"
    CAPABILITY = "capability"
    POLICY = "policy"


@frozen
class Reason:
    """Why a right is as it is. ``code`` is stable; ``address`` leads to the deciding place in the policy, if any.

    ``rule_id``: the deciding rule's own id or name. ``message``: what its author wants the model to be told.
    """

    layer: Layer
    verdict: Verdict
    code: str
    text: str
    address: Address | None = None
    rule_id: str | None = None
    message: str | None = None


class Selection(Protocol):
    """How the arguments of a call say which operation it is; equal ones are the same value."""

    @property
    def fields(self) -> frozenset[str]:
        """The top-level fields that carry it."""
        ...

    def declared(self, field: str) -> JsonValue:
        """What the tool's own schema says of the field; True where it says nothing."""
        ...

    def refused(self, field: str, constraint: JsonValue) -> frozenset[str]:
        """The operations that no call can name while ``field`` satisfies ``constraint``, a JSON Schema."""
        ...


@frozen
class PathArgument:
    """An argument that is a path on disk, or looks like one: its place (``edits[].path``) and what is done there.

    ``use`` None: nothing says. ``confidence``: ``declared`` where the policy says so, else how sure discovery is.
    """

    argument: str
    use: PathUse | None
    confidence: Literal["declared", "high", "medium", "low"]

    @property
    def counts(self) -> bool:
        """Whether a call is judged by it as by a path; the whole paths that other arguments hold are judged anyway."""
        return self.use is not PathUse.NONE and self.confidence in {"declared", "high"}


@frozen
class OperationFacts:
    """What the policy needs to know of an operation. ``actions``: the file or block actions it may turn out to be.

    ``capabilities``: the kinds that it needs; ``judged``: the kinds that some parameter of it can be judged by.
    ``parameters``: every name it takes, with its JSON Schema in ``schemas``; ``required``: those it cannot lack;
    ``defaulted``: those that have a default, null perhaps. ``paths``: those that are, or look like, paths on disk
    and that its author did not mark; ``places``: those that its author marked as paths in a source. ``needs``: what the
    policy has to provide for it (`Policy.provides`), or nothing. ``labels``: those marked as labels of blocks.
    ``disk_actions``: what is done at those marked as paths on disk; ``roots``: in which roots these lie, empty for
    anywhere. ``commands``: whether one is a shell command. ``holds_texts``: whether a call may hold a text of which
    nobody says that it is no path; ``takes_others``: whether that may stand in arguments that the schema does not name,
    as long as nothing closes them. ``deletes``: whether hints or its
    name say that it takes something away for good.
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
    labels: frozenset[str] = frozenset()
    disk_actions: frozenset[Action] = frozenset()
    roots: frozenset[str] = frozenset()
    commands: bool = False
    holds_texts: bool = False
    takes_others: bool = False
    deletes: bool = False

    @property
    def text_action(self) -> Action:
        """What is done at a path of which nothing says it: a writing unless the operation only reads."""
        return Action.READ if self.tier is SafetyTier.READ_ONLY else Action.OVERWRITE

    @property
    def destroys(self) -> bool:
        """Whether a call may delete a file, a block, a note, or what a stranger's tool keeps."""
        said = self.deletes and self.tier is not SafetyTier.READ_ONLY
        return said or Action.DELETE in self.actions or any(one.use is PathUse.DELETE for one in self.paths)

    @property
    def path_actions(self) -> frozenset[Action]:
        """What is done at the paths that count."""
        return frozenset(
            one.use.action if one.use is not None else self.text_action for one in self.paths if one.counts
        )

    @property
    def judgeable(self) -> frozenset[CapabilityKind]:
        """The kinds whose reach a call can be judged by, paths that nobody marked included."""
        return self.judged | _FILES if any(one.counts for one in self.paths) else self.judged


@frozen
class ToolFacts:
    """What the policy needs to know of a registered tool; a tool without operations has one, named ``""``.

    ``operation_names``: the operations in the tool's own order; empty for a tool without operations.
    ``tool_rules`` are the tool's own; ``selection`` is how calls name its operations, None where nothing says.
    ``extra_arguments``: what its schema says of arguments that it does not name, None where it says nothing.
    ``texts``: where its arguments hold texts (``edits[].path``), of which the policy may say that they are paths; None
    where nothing says.
    ``held``: why nobody may see it before the operator accepts it; empty where nothing is to be accepted.
    ``outmoded``: only agents that list it have it. ``source``: the source of a program that it belongs to: its places
    are keys there, and only who has the source sees it.
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
    operation_names: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        names = tuple([row.name for row in self.operations])
        object.__setattr__(self, "operation_names", () if names == ("",) else names)

    @property
    def has_operations(self) -> bool:
        """Whether it is gated operation by operation."""
        return not (len(self.operations) == 1 and not self.operations[0].name)

    def asked_by(self, rule: ToolRule, operation: OperationFacts) -> tuple[str, ...]:
        """The arguments that the rule makes a call of the operation give.

        Those it does not take are not asked for, and one with a default counts as given. A tool that names no argument
        at all is asked for whatever a rule on itself names.
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
        """Whether the field selects the operation and has no default."""
        if self.selection is None or name not in self.selection.fields:
            return False
        declared = self.selection.declared(name)
        return not isinstance(declared, dict) or "default" not in declared


@frozen
class OperationRight:
    """One row of the tree: the box, what all layers say, and every reason, the deciding one first.

    ``verdict`` is what a call comes to at best. What is stricter for some calls: ``by_path`` by the files they name
    (levels and rules of the sources, conditions on paths, bounds of grants on files), ``by_block`` by the level of the
    block or file behind a label, ``by_value`` by anything else in them (constraints, conditions of policy rules, bounds
    of other grants), ``by_text`` where a text that nobody declared is a path into a source. ``limits``: all that
    narrows its calls besides the levels; none for an operation that is denied.
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
        """The word for it, as strong as what calls come to and no stronger."""
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
        """What is stricter than the verdict for some calls, whatever they go by; texts that may be paths left out."""
        return self.by_path | self.by_block | self.by_value

    @property
    def is_hidden(self) -> bool:
        """Whether the model does not see it."""
        return self.verdict is Verdict.DENY

    @property
    def is_overruled(self) -> bool:
        """Whether the box is ticked and another layer turns the operation off."""
        return self.ticked and self.is_hidden

    @property
    def asks_for_some(self) -> bool:
        """Whether some calls ask first and others need not."""
        return self.verdict is Verdict.ALLOW and Verdict.ASK in self.depends


class ToolRight:
    """One tool of one agent: its facts and the right on each operation.

    ``listed``: whether the agent's list has it; ``reasons``: what closes it whole; ``ticked``: the operations whose box
    is ticked; ``shown``: those that the model sees. ``rows``: the rights on its operations in the tool's own order, or
    what works them out when they are asked for: a list of tools only needs to know what is shown. It does not change.
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
    def is_hidden(self) -> bool:
        """Whether the model does not see the tool at all."""
        return not self.shown
