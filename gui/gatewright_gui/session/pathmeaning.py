"""What the level of a path means: for the operations of the `file` tool, and for which agents. It draws nothing.

The table of levels is the engine's, and so is what each operation does; an agent also needs the operation on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gatewright.policy.document import Policy, Source
from gatewright.policy.permission import Action
from gatewright.policy.right import OperationFacts
from gatewright.policy.verdict import Verdict
from gatewright_gui.session.document import Document
from gatewright_gui.session.files import PathLevel

TOOL = "file"
_WORDS = {Verdict.ALLOW: "allow", Verdict.ASK: "ask first", Verdict.DENY: "deny"}


@dataclass(frozen=True, slots=True)
class PathMeaning:
    """`operations`: by verdict, in the tool's order. `agents`: those that have the source; `of`: how many there are."""

    operations: Mapping[Verdict, tuple[str, ...]]
    agents: tuple[str, ...]
    of: int

    @property
    def operations_line(self) -> str:
        """What the level says to the tool, in a line: of the most operations only that; empty without the tool."""
        said = [verdict for verdict in Verdict if self.operations.get(verdict)]
        if not said:
            return ""
        rest = max(said, key=lambda verdict: len(self.operations[verdict]))
        every = "every operation" if len(said) == 1 else "every other operation"
        named = [f"{_WORDS[verdict]}: {', '.join(self.operations[verdict])}" for verdict in said if verdict is not rest]
        return " \u00b7 ".join([*named, f"{_WORDS[rest]}: {every} of `{TOOL}`"])

    @property
    def all_operations(self) -> str:
        """Every operation, a line for each verdict."""
        named = {_WORDS[verdict]: names for verdict, names in self.operations.items() if names}
        return "\n".join(f"{word}: {', '.join(names)}" for word, names in named.items())

    @property
    def agents_line(self) -> str:
        """Who reaches the source, in a line."""
        if not self.of:
            return "there is no agent yet"
        if not self.agents:
            return "no agent has this source"
        one = len(self.agents) == 1
        count = f"{len(self.agents):,} of {self.of:,} agents {'has' if one else 'have'} this source"
        return f"{count}: {', '.join(self.agents)}"


def meaning_of(document: Document, source: Source, level: PathLevel) -> PathMeaning:
    """What the level of a path in a source means now."""
    facts = next((facts for facts in document.workspace.gate.snapshot().facts if facts.name == TOOL), None)
    policy = document.policy
    groups: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
    for operation in facts.operations if facts is not None else ():
        for verdict, words in _said(operation, level):
            groups[verdict].append(words)
    operations = {verdict: tuple(words) for verdict, words in groups.items()}
    return PathMeaning(operations, _agents(policy, source), len(policy.agents))


def _agents(policy: Policy, source: Source) -> tuple[str, ...]:
    return tuple(agent.agent_id for agent in policy.agents.values() if source in policy.sources_of(agent))


def _said(operation: OperationFacts, level: PathLevel) -> Iterable[tuple[Verdict, str]]:
    """What the level says to an operation; twice, where it depends on what the operation turns out to do."""
    verdicts = {level.verdict(action): action for action in reversed(operation.actions)}
    if len(verdicts) < 2:
        yield next(iter(verdicts), level.verdict(Action.READ)), operation.name
        return
    for verdict, action in verdicts.items():
        yield verdict, f"{operation.name} ({action})"
