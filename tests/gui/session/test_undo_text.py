"""Undo and redo leave the text that was there, letter by letter, whenever it was saved in between.

Random edits, saves, undos and redos through the session, on policies of many layouts; the text of each step is kept
beside the stack and compared.
"""

import pickle
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from gatewright.base.errors import EditRefused
from gatewright.policy import agentedit, policyedit, ruleedit, sourceedit
from gatewright.policy.document import Defaults, PermissionRule, Policy, Roots, Source
from gatewright.policy.edit import Edit
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import MaxCalls, PolicyRule
from gatewright.policy.verdict import Permission, Verdict
from gatewright.workspace import Workspace, create_workspace
from gatewright.workspace.policytext import WorkspaceImage
from gatewright_gui.session.document import Document
from tests.gui.session.opened import opened_document

LEVELS = tuple(Permission)
STRANGE = """# before all

gatewright   =   1   # what reads it


name="strange"  # said 'so'
# on the agents

   [agents . a ]   # the first
description = '''
two
lines'''
tools=["file" ,  # reads
   'block',]     # and blocks

sources = [ ]   # none yet
  # above the rules
[[agents.a.tool_rules]]  # rule one
tool_name = "file"
rule_type = {MaxCalls=3} # three

# between
[agents."b c"] # with a blank
tools = []


[agents.inline]
description = "inline"  # trails
tool_rules = [ { tool_name = "file", rule_type = { MaxCalls = 3 } },   # in one line
  # above the second
  { tool_name = "block", rule_type = { MaxCalls = 4 } } ]

[[sources]] # s1
id = "one"
type = "file"
base_path = "."     # here
watch = false  # not followed
# above its rules
permission_rules = [
  # the secrets
  { pattern = "secrets/", permission = "none", comment = "no" }, # trailing
  {pattern="*.md",permission="append"},

  # the last
  { pattern = "**", permission = "read_only" }
]

[[sources]]
id = "two"
type = "file"
base_path = "two"

  [[sources.permission_rules]]   # nested
  pattern = "x*"
  permission = "human"

[policy] # what holds for all
default = "ask"   # ask
rules = [ { name = "r1", effect = "deny", agents = ["a"] }, # one
          { name = "r2", effect = "ask" } ]
# at the end
"""
Make = Callable[[random.Random, Policy, Sequence[ToolFacts]], Edit]


def _agent(rng: random.Random, policy: Policy) -> str:
    if not policy.agents:
        raise EditRefused("nobody")
    return rng.choice(list(policy.agents))


def _source(rng: random.Random, policy: Policy) -> Source:
    if not policy.sources:
        raise EditRefused("no source")
    return rng.choice(policy.sources)


def _level(rng: random.Random, policy: Policy, _tools: Sequence[ToolFacts]) -> Edit:
    source = _source(rng, policy)
    if not source.permission_rules:
        return sourceedit.set_default_level(policy, source.source_id, rng.choice(LEVELS))
    row = rng.randrange(len(source.permission_rules))
    match rng.randrange(5):
        case 0:
            return sourceedit.set_level(policy, source.source_id, row, rng.choice(LEVELS))
        case 1:
            rule = PermissionRule(f"r{rng.randrange(99)}", rng.choice(LEVELS), rng.choice([None, "why"]))
            return sourceedit.set_rule(policy, source.source_id, row, rule)
        case 2:
            return sourceedit.remove_rule(policy, source.source_id, row)
        case 3:
            return sourceedit.move_rule(policy, source.source_id, row, rng.randrange(len(source.permission_rules)))
        case _:
            rule = PermissionRule(f"n{rng.randrange(99)}", rng.choice(LEVELS))
            return sourceedit.add_rule(policy, source.source_id, rule, row)


def _of_source(rng: random.Random, policy: Policy, _tools: Sequence[ToolFacts]) -> Edit:
    source = _source(rng, policy)
    match rng.randrange(4):
        case 0:
            return sourceedit.remove_source(policy, source.source_id)
        case 1:
            return sourceedit.change_source(policy, source.source_id, replace(source, watch=not source.watch))
        case 2:
            after = replace(source, source_id=f"s{rng.randrange(99)}")
            return sourceedit.change_source(policy, source.source_id, after)
        case _:
            return sourceedit.add_source(policy, Source(f"new{rng.randrange(99)}", "new"))


def _of_agent(rng: random.Random, policy: Policy, tools: Sequence[ToolFacts]) -> Edit:
    agent_id = _agent(rng, policy)
    match rng.randrange(6):
        case 0:
            return agentedit.remove_agent(policy, agent_id)
        case 1:
            return agentedit.rename_agent(policy, agent_id, f"agent-{rng.randrange(99)}")
        case 2:
            return agentedit.describe_agent(policy, agent_id, f"described {rng.randrange(99)}")
        case 3:
            return agentedit.duplicate_agent(policy, agent_id, f"copy-{rng.randrange(99)}")
        case 4:
            return agentedit.add_agent(policy, f"new-{rng.randrange(99)}")
        case _:
            return ruleedit.set_limit(policy, tools, agent_id, "file", MaxCalls(rng.randrange(1, 99)))


def _tool_rule(rng: random.Random, policy: Policy, _tools: Sequence[ToolFacts]) -> Edit:
    agent = policy.agents[_agent(rng, policy)]
    if not agent.tool_rules:
        raise EditRefused("no rule")
    at = rng.randrange(len(agent.tool_rules))
    return ruleedit.remove_rule(policy, ruleedit.RulePosition(agent.agent_id, at, agent.tool_rules[at]))


def _of_all(rng: random.Random, policy: Policy, _tools: Sequence[ToolFacts]) -> Edit:
    match rng.randrange(5):
        case 0 if policy.rules:
            return policyedit.remove_rules(policy, [rng.randrange(len(policy.rules))])
        case 1 if policy.rules:
            return policyedit.move_rules(policy, [0], rng.randrange(len(policy.rules)))
        case 2:
            return policyedit.add_rule(policy, PolicyRule(f"rule {rng.randrange(99)}", Verdict.ASK))
        case 3:
            return policyedit.set_field(policy, "roots", rng.choice([Roots(), Roots("shared"), Roots(tmp="t")]))
        case _:
            defaults = replace(rng.choice([policy.defaults, Defaults()]), max_output_bytes=rng.randrange(1, 9_999))
            return policyedit.set_field(policy, "defaults", defaults)


MAKES: tuple[Make, ...] = (_level, _level, _of_source, _of_agent, _of_agent, _tool_rule, _of_all)


def layouts(folder: Path, layout: str) -> Path:
    """A policy in its folder."""
    if layout == "strange":
        folder.mkdir()
        (folder / "policy.toml").write_text(STRANGE, "utf-8")
        return folder / "policy.toml"
    return create_workspace(folder, layout)


def _sent(document: Document) -> WorkspaceImage:
    """What another process is told of the workspace."""
    return cast("WorkspaceImage", pickle.loads(pickle.dumps(document.workspace.image())))


def _edit(rng: random.Random, document: Document) -> bool:
    """Make a random edit, now and then with a text that was typed; whether one came onto the stack."""
    workspace, make = document.workspace, rng.choice(MAKES)
    if rng.random() < 0.15:
        text, typed = workspace.text(), f"# typed {rng.random()}\n"
        edit, text = workspace.typed_edit("type", text, typed + text)
        return document.push(lambda _policy, _tools: workspace.with_text(edit, text))
    return document.push(lambda policy, tools: make(rng, policy, tools))


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("layout", ["demo", "strange", "coding-agent", "research-assistant", "runbook", "support-bot"])
async def test_each_step_of_undo_and_redo_has_the_text_that_was_there(
    tmp_path: Path, layout: str, newline: str
) -> None:
    policy = layouts(tmp_path / "w", layout)
    original = policy.read_text("utf-8").replace("\n", newline).encode()
    policy.write_bytes(original)
    async with opened_document(policy) as document:
        rng, stack = random.Random(f"{layout} {newline!r}"), document.undo_stack
        texts = [document.workspace.text()]
        twin = Workspace.of_image(_sent(document))
        for _ in range(60):
            match rng.randrange(10):
                case 0 | 1:
                    assert await document.save()
                    assert policy.read_bytes().decode() == document.workspace.text() == texts[stack.index()]
                    assert not document.is_dirty
                case 2 | 3:
                    document.undo()
                case 4:
                    document.redo()
                case _:
                    with suppress(EditRefused):
                        if _edit(rng, document):
                            del texts[stack.index() :]
                            texts.append(document.workspace.text())
            assert document.workspace.text() == texts[stack.index()]
            assert twin.follow(_sent(document)), "the worker process follows, and need not begin anew"
            assert twin.text() == texts[stack.index()]
        while stack.canUndo():
            document.undo()
            assert document.workspace.text() == texts[stack.index()]
        assert await document.save()
        assert policy.read_bytes() == original
        while stack.canRedo():
            document.redo()
            assert document.workspace.text() == texts[stack.index()]
        assert await document.save()
        assert policy.read_bytes().decode() == texts[-1]
