"""Row, sentence, tips and matrix of a right hold one answer, that of the engine, in every cell of a policy."""

import dataclasses
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from gatewright.workspace import Workspace
from gatewright.workspace.api import (
    AgentDiff,
    Effect,
    JsonValue,
    OperationFacts,
    OperationRight,
    RightWord,
    ToolRight,
    Verdict,
    rights_changes,
)
from gatewright_gui.pages.access.tools.right_lines import rows_of
from gatewright_gui.pages.access.tools.row_state import RowState, Switch, asking_words, facts_of
from gatewright_gui.pages.access.tools.tool_tree import STATE, SWITCH, Column, ToolTreeModel
from gatewright_gui.pages.access.tools.why import verdict_sentence
from gatewright_gui.session.effects import reaches_of, risks_of
from gatewright_gui.session.path_share import path_shares
from gatewright_gui.session.right_columns import OPERATION_CELLS, column_under, layout_of
from tests.support.demo import copy_demo

MORE = """
[agents.helper]
tools = ["say", "write_text", "count", "block", "block_edit", "recall@2", "search", "memory_delete"]
sources = []

[agents.helper.approvals]
privileged = "allow"

[[agents.helper.tool_rules]]
tool_name = "recall"
rule_type = { MaxCalls = 3 }

[[agents.helper.tool_rules]]
tool_name = "count"
rule_type = { ArgumentConstraints = { number = { maximum = 9 } } }

[[catalogs]]
id = "hub"
type = "host"
manifest = "hub.json"
"""


def opened(folder: Path) -> Workspace:
    """The demo with an agent more, whose tools take texts, paths and numbers."""
    policy = copy_demo(folder / "demo")
    kinds = {"say": {"message": "string"}, "write_text": {"path": "string"}, "count": {"number": "integer"}}
    tools = [
        {
            "name": name,
            "inputSchema": {
                "type": "object",
                "properties": {key: {"type": kind} for key, kind in own.items()},
                "additionalProperties": False,
            },
        }
        for name, own in kinds.items()
    ]
    (policy.parent / "hub.json").write_text(json.dumps(tools), "utf-8")
    policy.write_text(policy.read_text("utf-8") + MORE, "utf-8")
    return Workspace.open(policy)


def cells(workspace: Workspace) -> Iterator[tuple[str, ToolRight, OperationRight]]:
    """Every operation of every agent."""
    for agent_id in workspace.policy.agents:
        for tool in workspace.rights(agent_id).values():
            for row in tool.operations:
                yield agent_id, tool, row


def test_the_sentence_says_no_more_than_the_word_of_the_right(tmp_path: Path) -> None:
    seen: set[RightWord] = set()
    for _, tool, row in cells(opened(tmp_path)):
        seen.add(row.word)
        sentence = verdict_sentence(tool, row)
        free = row.word is RightWord.ALLOW and not row.limits
        assert (sentence == "On, without asking.") is free
        assert ("depends on the block" in sentence) == bool(row.by_block)
        assert ("a text that is a path" in sentence) == bool(row.by_text)
        asks = row.verdict is Verdict.ASK or Verdict.ASK in row.depends | row.by_text
        assert (asking_words(tool, row) == "does not ask first") is not asks or row.is_hidden
    assert seen == set(RightWord)


BAD_ARGUMENTS = {"schema-mismatch", "arguments-mismatch", "no-user"}
"""The codes for arguments that do not fit, and for notes of a user while there is none: no right is asked then."""


class Caller:
    """Makes random calls of operations, with values that their schemas take."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace, self.random = workspace, random.Random(34)
        base = workspace.folder / "workspace"
        self.files = [path.relative_to(base).as_posix() for path in base.rglob("*") if path.is_file()]
        self.base = base

    def decisions(self, agent_id: str, tool: ToolRight, row: OperationRight, count: int) -> dict[Verdict, list[str]]:
        """What the gate decides, by verdict with the codes, about so many calls whose arguments are fine."""
        found: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
        for _ in range(3 * count):
            decision = self.workspace.decide(agent_id, tool.facts.name, self.call(agent_id, tool, row))
            if decision.code not in BAD_ARGUMENTS:
                found[decision.verdict].append(decision.code)
            if sum(map(len, found.values())) == count:
                break
        return found

    def call(self, agent_id: str, tool: ToolRight, row: OperationRight) -> dict[str, JsonValue]:
        """Arguments of a call of an operation."""
        op = facts_of(tool, row)
        fields = tool.facts.selection.fields if tool.facts.selection is not None else frozenset[str]()
        made: dict[str, JsonValue] = dict.fromkeys(fields, op.name) if op.name else {}
        for name in sorted({*op.required, *op.parameters} - fields - {"source", "source_id"}):
            if name in op.required or self.random.random() < 0.3:
                made[name] = self.value(agent_id, op, name)
        return made

    def value(self, agent_id: str, op: OperationFacts, name: str) -> JsonValue:
        """A value of an argument: a file where it is a path, a label, a number, a text."""
        schema = op.schemas.get(name)
        schema = schema if isinstance(schema, dict) else {}
        paths = {one.argument for one in op.paths}
        if name in op.labels:
            labels = [one.label for one in self.workspace.blocks(agent_id).list()]
            return self.random.choice(labels or ["none"])
        if name in op.places:
            return self.random.choice(self.files)
        if name in paths:
            return str(self.base / self.random.choice(self.files))
        if op.roots and name == "path":
            return f"{self.random.choice(sorted(op.roots))}/{self.random.choice(['a.txt', 'b/c.md'])}"
        if "enum" in schema:
            return self.random.choice(cast("list[JsonValue]", schema["enum"]))
        match schema.get("type"):
            case "integer" | "number":
                return self.random.randint(1, 20)
            case "boolean":
                return self.random.random() < 0.5
            case "array":
                return ["word"]
            case "object":
                return {}
            case _:
                return self.random.choice(["word", "two words", *self.files[:2]])


def tree_of(workspace: Workspace, agent_id: str) -> ToolTreeModel:
    """The rows of an agent, with its files counted."""
    tree, policy = ToolTreeModel(NoVerbs()), workspace.policy
    agent = policy.agents[agent_id]
    tree.set_agent(agent, workspace.rights(agent_id), policy.sources_of(agent), policy.catalogs)
    tree.set_shares(path_shares(workspace, agent_id))
    return tree


class NoVerbs:
    """Nothing is ticked here."""

    def tick_tool(self, tool: str, on: bool) -> bool:
        raise AssertionError((tool, on))

    def tick_operation(self, tool: str, operation: str, on: bool) -> bool:
        raise AssertionError((tool, operation, on))

    def tick_many(self, operations: Mapping[str, Sequence[str]], on: bool) -> bool:
        raise AssertionError((operations, on))


def contradictions(state: RowState, switch: Switch | None, fact: str, found: Mapping[Verdict, list[str]]) -> list[str]:
    """What a row says and decisions about its calls deny."""
    deny, ask, allow = (found[verdict] for verdict in (Verdict.DENY, Verdict.ASK, Verdict.ALLOW))
    if state is RowState.OFF or fact.startswith("no effect: "):
        return ["a call is let in"] if allow or ask else []
    wrong = (
        (switch is Switch.ON and ask and not fact, "a call asks"),
        (switch is not Switch.ON and allow, "a call does not ask"),
        (deny and not fact, f"a call is denied: {deny}"),
        (deny and fact.startswith("all of ") and "," not in fact, f"not all of them: {deny}"),
        ((allow or ask) and fact.startswith("none of ") and "known" not in fact, "one of them"),
    )
    return [words for is_wrong, words in wrong if is_wrong]


def test_no_decision_contradicts_the_text_of_a_row(tmp_path: Path) -> None:
    workspace = opened(tmp_path)
    caller, seen, wrong = Caller(workspace), Counter[str](), list[object]()
    for agent_id in workspace.policy.agents:
        tree = tree_of(workspace, agent_id)
        for tool in tree.rights:
            for row in tool.operations:
                index = tree.index_of(tool.facts.name, row.operation or None)
                state, lit = RowState(index.data(STATE)), index.data(SWITCH)
                switch = None if lit is None else Switch(lit)
                fact = str(index.siblingAtColumn(Column.FACT).data())
                found = caller.decisions(agent_id, tool, row, 20)
                for words in contradictions(state, switch, fact, found):
                    wrong.append((agent_id, tool.facts.name, row.operation, switch, fact, words))
                seen.update({"decisions": sum(map(len, found.values())), str(switch): 1, "facts": bool(fact)})
    assert wrong == []
    assert seen["decisions"] > 2_000
    assert min(seen[str(one)] for one in (Switch.ON, Switch.ASK, Switch.LOCKED, None)) > 0
    assert seen["facts"] > 20


def test_the_matrix_and_the_lines_before_saving_say_it_too(tmp_path: Path) -> None:
    workspace = opened(tmp_path)
    layout = layout_of(workspace.catalog, workspace.policy.catalogs)
    for agent_id in workspace.policy.agents:
        rights = workspace.rights(agent_id)
        column = column_under(layout, workspace.policy, agent_id, rights)
        changes = {(one.tool, one.operation): one for one in rights_changes(agent_id, {}, rights)}
        for tool in layout.tools:
            if tool.name not in rights:
                continue
            for row in rights[tool.name].operations:
                cell = OPERATION_CELLS[column.cells[tool.start + tool.operations.index(row.operation)]]
                assert cell.but_paths is (row.ticked and row.word is RightWord.BUT_PATHS)
                limited = bool(row.limits) or Verdict.DENY in row.depends
                assert cell.is_limited is (row.ticked and not row.is_hidden and limited)
                if (tool.name, row.operation) in changes:
                    assert changes[tool.name, row.operation].word is row.word


def test_what_is_told_of_danger_is_the_fact_of_the_operation(tmp_path: Path) -> None:
    workspace = opened(tmp_path)
    risks = risks_of(workspace)
    told = {(agent, risk.danger.tool, risk.danger.operation) for risk in risks for agent in risk.agents}
    wanted: set[tuple[str, str, str]] = set()
    for agent_id, tool, row in cells(workspace):
        if row.ticked and row.verdict is Verdict.ALLOW:
            facts = facts_of(tool, row)
            is_risk = row.tier == "privileged" or facts.destroys or facts.effect in {Effect.RUN, Effect.SEND}
            wanted |= {(agent_id, tool.facts.name, row.operation)} if is_risk else set()
    assert told == wanted
    assert {("operator", "file_delete", ""), ("helper", "memory_delete", "")} <= told
    changes = rights_changes("helper", {}, workspace.rights("helper"))
    assert {one.tool for one in changes if one.danger == "deletes"} == {"memory_delete"}
    assert reaches_of(workspace, ["operator"])["operator"].shown > 0


def test_a_line_before_saving_names_what_a_right_goes_by(tmp_path: Path) -> None:
    workspace = opened(tmp_path)
    policy = workspace.policy
    helper = policy.agents["helper"]
    before = dataclasses.replace(policy, agents={**policy.agents, "helper": dataclasses.replace(helper, tools=())})
    diff = workspace.rights_under(before, "helper")
    changes = tuple(rights_changes("helper", diff, workspace.rights("helper")))
    lines = {line.what: line.then for line in rows_of(AgentDiff("helper", changes))}

    assert lines["say"] == "on: allow, but for paths"
    assert lines["block_edit.append"] == "on: by block"
    assert lines["write_text"] == "on: by path"
    assert lines["search"] == "on"


def test_a_bar_counts_what_the_gate_decides_at_each_file_and_block(tmp_path: Path) -> None:
    workspace = opened(tmp_path)
    base = workspace.folder / "workspace"
    files = [path for path in base.rglob("*") if path.is_file()]
    blocks = [one.label for one in workspace.blocks("helper").list() if not one.source_id]
    shares = path_shares(workspace, "helper")

    def counted(tool: str, calls: list[dict[str, JsonValue]]) -> tuple[int, int, int]:
        found = Counter(workspace.decide("helper", tool, call).verdict for call in calls)
        return found[Verdict.DENY], found[Verdict.ASK], found[Verdict.ALLOW]

    written = shares["write_text", ""]
    assert (written.deny, written.ask, written.allow) == counted("write_text", [{"path": str(one)} for one in files])
    assert written.elsewhere
    assert written.tells is (written.deny < written.files)
    told = shares["block", "info"]
    assert (told.files, told.blocks) == (len(blocks), len(blocks))  # helper has no source
    assert (told.deny, told.ask, told.allow) == counted("block", [{"op": "info", "label": one} for one in blocks])
    assert ("say", "") not in shares
