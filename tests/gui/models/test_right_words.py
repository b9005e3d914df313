"""Chip, sentence, tips and matrix of a right hold one answer, that of the engine, in every cell of a policy."""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gatewright.workspace import Workspace
from gatewright.workspace.api import (
    AgentDiff,
    Effect,
    JsonValue,
    OperationRight,
    RightWord,
    ToolRight,
    Verdict,
    rights_changes,
)
from gatewright_gui.pages.access.tools.right_lines import rows_of
from gatewright_gui.pages.access.tools.row_state import asking_words, facts_of, verdict_words
from gatewright_gui.pages.access.tools.why import verdict_sentence
from gatewright_gui.session.effects import reaches_of, risks_of
from gatewright_gui.session.path_share import path_shares
from gatewright_gui.session.right_columns import OPERATION_CELLS, column_under, layout_of
from gatewright_gui.session.value_words import value_words
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


def test_the_chip_says_the_word_of_the_right_and_the_sentence_no_more_than_it(tmp_path: Path) -> None:
    seen: set[RightWord] = set()
    for _, tool, row in cells(opened(tmp_path)):
        seen.add(row.word)
        chip, sentence = verdict_words(tool, row), verdict_sentence(tool, row)
        short = value_words(facts_of(tool, row), row).short
        assert chip == (short or str(row.word)) or (row.is_overruled and chip.startswith("no effect: "))
        free = row.word is RightWord.ALLOW and not row.limits
        assert (sentence == "Allowed: every layer lets it through.") is free
        assert ("depends on the block" in sentence) == bool(row.by_block)
        assert ("a text that is a path" in sentence) == bool(row.by_text)
        asks = row.verdict is Verdict.ASK or Verdict.ASK in row.depends | row.by_text
        assert (asking_words(tool, row) == "does not ask first") is not asks or row.is_hidden
    assert seen == set(RightWord)


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
