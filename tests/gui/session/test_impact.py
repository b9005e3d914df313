"""What is said of an edit against real decisions: each number in a sentence is counted again, call by call."""

import asyncio
import random
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gatewright.base.jsonvalue import JsonValue
from gatewright.policy import policyedit, rights, sourceedit
from gatewright.policy.document import Agent, PermissionRule, Policy
from gatewright.policy.edit import Edit, apply, edit_between, inverse
from gatewright.policy.right import Effect
from gatewright.policy.rule import ArgumentConstraints, PolicyRule, ToolRule
from gatewright.policy.verdict import Permission, Verdict
from gatewright.schema.formats import count_tokens
from gatewright.workspace import Workspace
from gatewright_gui.session.comparison import PROVIDER, call_impact, impact, model_impact
from gatewright_gui.session.effects import DANGEROUS, headline, reaches_of, risks_of
from gatewright_gui.session.impact import Gain, Impact, ImpactLine
from tests.support.right_cells import Cell, cells_of, drawn_call, is_of_policy, made_workspaces

T = TypeVar("T")
POLICY = """\
gatewright = 1

[agents.one]
tools = ["file", "memory_delete", "memory_search"]
sources = ["docs"]
tool_rules = [{ tool_name = "file", rule_type = { AllowedOperations = ["read", "list", "append"] } }]

[agents.two]
tools = ["file"]
sources = ["docs", "notes"]
tool_rules = [{ tool_name = "file", rule_type = { AllowedOperations = ["read", "replace", "delete"] } }]

[agents.three]
tools = []
sources = []

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_only"
permission_rules = [{ pattern = "drafts/**", permission = "read_write" }]

[[sources]]
id = "notes"
type = "file"
base_path = "notes"
default_permission = "append"
"""
FILES = {
    "docs": ("a.md", "b.txt", "drafts/c.md", "drafts/d.md", "old/e.md"),
    "notes": ("f.md", "g.txt", "drafts/h.md"),
}
OPERATIONS = {
    "read": Effect.READ,
    "list": Effect.READ,
    "load": Effect.CHANGE,
    "append": Effect.CHANGE,
    "insert": Effect.CHANGE,
    "replace": Effect.CHANGE,
    "delete": Effect.DELETE,
}
EXTRA: dict[str, dict[str, Any]] = {
    "append": {"content": "x"},
    "insert": {"line": 1, "content": "x"},
    "replace": {"old": "text", "new": "x"},
}
CALL_OF = {"memory_delete": {"note_id": "n"}, "memory_search": {"query": "q"}}
OPEN = {Verdict.DENY: 0, Verdict.ASK: 1, Verdict.ALLOW: 2}
CELLS, CALLS, EDITS = 850, 20, 100
Decided = dict[tuple[str, str, str], dict[str, Verdict]]
"""By agent, source and path: the verdict of each operation."""


def end_of(pieces: Generator[Any, None, T]) -> T:
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            found: T = end.value
            return found


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    for source, names in FILES.items():
        for name in names:
            path = tmp_path / "ws" / source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("text", "utf-8")
    (tmp_path / "ws" / "policy.toml").write_text(POLICY, "utf-8")
    with closing(Workspace.open(tmp_path / "ws", keys=tmp_path / "keys")) as opened:
        yield opened


def decided(workspace: Workspace) -> Decided:
    """Decide a call of every operation of every agent at every file."""
    found: Decided = {}
    for agent_id, agent in workspace.policy.agents.items():
        for source, names in FILES.items():
            if agent.sources is not None and source not in agent.sources:
                continue
            for name in names:
                calls = {op: {"op": op, "source": source, "path": name, **EXTRA.get(op, {})} for op in OPERATIONS}
                by_op = {op: workspace.decide(agent_id, "file", call).verdict for op, call in calls.items()}
                found[agent_id, source, name] = by_op
    return found


def gain_of(effect: Effect, before: Verdict, after: Verdict, *, again: bool = False) -> Gain:
    return Gain(effect, OPEN[after] > OPEN[before], after is Verdict.ASK, again)


def counted_again(before: Decided, after: Decided) -> tuple[Counter[tuple[str, Gain]], Counter[tuple[str, Gain]]]:
    """Files by agent and kind of change: of the mildest verdict there, and of other operations."""
    first, again = Counter[tuple[str, Gain]](), Counter[tuple[str, Gain]]()
    for place in {**before, **after}:
        for effect in set(OPERATIONS.values()):
            names = [op for op, one in OPERATIONS.items() if one is effect]
            pairs = {op: tuple(side.get(place, {}).get(op, Verdict.DENY) for side in (before, after)) for op in names}
            was, now = (max((pair[at] for pair in pairs.values()), key=OPEN.__getitem__) for at in (0, 1))
            due = set[str]()
            if was is not now:
                at, mildest = (1, now) if OPEN[now] > OPEN[was] else (0, was)
                due = {op for op, pair in pairs.items() if pair[at] is mildest and pair[1 - at] is not mildest}
                first[place[0], gain_of(effect, was, now)] += 1
            changed = [pair for op, pair in pairs.items() if pair[0] is not pair[1] and op not in due]
            others = {gain_of(effect, *pair, again=True) for pair in changed}
            again.update((place[0], gain) for gain in others)
    return first, again


def told(found: Impact, *, again: bool) -> Counter[tuple[str, Gain]]:
    return Counter(
        {
            (agent, line.gain): line.files
            for line in found.lines
            for agent in line.agents
            if line.gain is not None and line.files and line.gain.again == again
        }
    )


def drawn_edit(workspace: Workspace, draw: random.Random) -> Edit:
    """An edit as one makes it in the window: a tick, a level, a rule, a source, a limit."""
    policy, tools = workspace.policy, workspace.catalog
    agent_id = draw.choice(list(policy.agents))
    agent, operation = policy.agents[agent_id], draw.choice(list(OPERATIONS))
    source = draw.choice(policy.sources)
    pattern = draw.choice(["drafts/**", "*.md", "*.txt", "old/**", "a.md"])
    match draw.randrange(9):
        case 0 | 1 | 2:
            chosen = draw.sample(list(OPERATIONS), draw.randint(1, 4))
            return rights.tick_operations(policy, tools, agent_id, "file", chosen, on=draw.random() < 0.6)
        case 3:
            name = draw.choice(list(CALL_OF))
            return rights.tick_operations(policy, tools, agent_id, name, [""], on=draw.random() < 0.6)
        case 4:
            rule = PermissionRule(pattern, draw.choice(list(Permission)))
            return sourceedit.add_rule(policy, source.source_id, rule, draw.randint(0, len(source.permission_rules)))
        case 5:
            sources = tuple(sorted(draw.sample(list(FILES), draw.randint(0, 2))))
            return edited_agent(policy, replace(agent, sources=sources))
        case 6:
            asks = {f"file.{operation}": draw.choice(list(Verdict)), **agent.approvals}
            return edited_agent(policy, replace(agent, approvals={} if draw.random() < 0.3 else asks))
        case 7:
            limit = ToolRule("file", ArgumentConstraints({"path": {"pattern": draw.choice(["^drafts/", "md$"])}}))
            kept = tuple(one for one in agent.tool_rules if not isinstance(one.rule_type, ArgumentConstraints))
            return edited_agent(policy, replace(agent, tool_rules=kept if draw.random() < 0.5 else (*kept, limit)))
        case _:
            when: dict[str, JsonValue] = {"properties": {"path": {"pattern": draw.choice(["md$", "^drafts/"])}}}
            rule = PolicyRule(
                "drawn", draw.choice([Verdict.DENY, Verdict.ASK]), tools=("file",), operations=(operation,), when=when
            )
            return policyedit.put_rule(policy, 0 if policy.rules else None, rule)


def edited_agent(policy: Policy, agent: Agent) -> Edit:
    return edit_between("an agent", policy, replace(policy, agents={**policy.agents, agent.agent_id: agent}))


def without_files(workspace: Workspace) -> dict[tuple[str, str], Verdict]:
    """Decide the tools whose calls name no file."""
    return {
        (agent_id, tool): workspace.decide(agent_id, tool, call).verdict
        for agent_id in workspace.policy.agents
        for tool, call in CALL_OF.items()
    }


def test_every_number_of_files_is_that_of_the_decisions_that_change(workspace: Workspace) -> None:
    draw, kinds, made = random.Random(34), Counter[Gain](), 0
    before, notes_before = decided(workspace), without_files(workspace)
    while made < EDITS:
        edit = drawn_edit(workspace, draw)
        try:
            workspace.check(edit)
        except Exception:  # noqa: BLE001 whatever refuses it, the window makes no such edit
            continue
        if edit.is_empty:
            continue
        made += 1
        workspace.apply(edit)
        after, notes_after = decided(workspace), without_files(workspace)

        found = end_of(impact(workspace, edit, str))

        first, again = counted_again(before, after)
        said = [line.sentence for line in found.lines]
        assert told(found, again=False) == first, (edit, said)
        assert told(found, again=True) == again, (edit, said)
        for (agent_id, tool), verdict in notes_after.items():
            if verdict is not (was := notes_before[agent_id, tool]):
                effect = Effect.DELETE if tool == "memory_delete" else Effect.READ
                gain = gain_of(effect, was, verdict)
                [line] = [one for one in found.lines if one.gain == gain and not one.counts and agent_id in one.agents]
                assert tool in line.ways
        if not found.lines:
            assert (before, notes_before) == (after, notes_after), edit
        kinds.update(line.gain for line in found.lines if line.gain is not None)
        before, notes_before = after, notes_after
    assert len(kinds) > 12, kinds


def test_lines_since_the_file_are_those_of_all_edits_together(workspace: Workspace) -> None:
    draw = random.Random(7)
    before = decided(workspace)
    for _ in range(25):
        edit = drawn_edit(workspace, draw)
        try:
            workspace.check(edit)
        except Exception:  # noqa: BLE001 as above
            continue
        workspace.apply(edit)

    first, again = counted_again(before, decided(workspace))
    found = end_of(impact(workspace, None, str))

    assert told(found, again=False) == first
    assert told(found, again=True) == again


def test_models_see_as_many_operations_more_and_tokens_as_their_tools_have(workspace: Workspace) -> None:
    def seen() -> tuple[int, int]:
        listings = [one for agent_id in workspace.policy.agents for one in workspace.view(agent_id).listings()]
        operations = [one.schema["properties"]["op"]["enum"] if one.name == "file" else [""] for one in listings]
        counts = [
            sum(count_tokens(workspace.view(agent_id).listings(), PROVIDER).per_tool.values())
            for agent_id in workspace.policy.agents
        ]
        return sum(map(len, operations)), sum(counts)

    draw, changed = random.Random(5), 0
    while changed < 12:
        edit = drawn_edit(workspace, draw)
        try:
            workspace.check(edit)
        except Exception:  # noqa: BLE001 as above
            continue
        before = seen()
        workspace.apply(edit)
        after = seen()

        found = model_impact(workspace, edit)

        assert found.more - found.fewer == after[0] - before[0]
        assert found.tokens == after[1] - before[1]
        changed += before != after


def test_recorded_calls_that_change_are_counted(workspace: Workspace) -> None:
    calls = [("one", "read", "a.md"), ("one", "read", "b.txt"), ("two", "read", "a.md"), ("two", "replace", "a.md")]
    for agent_id, operation, path in calls:
        sent = {"op": operation, "source": "docs", "path": path, **EXTRA.get(operation, {})}
        asyncio.run(workspace.call(agent_id, "file", sent))
    rule = PermissionRule("*.md", Permission.NONE)
    edit = sourceedit.add_rule(workspace.policy, "docs", rule, 0)
    workspace.apply(edit)

    found = end_of(call_impact(workspace, edit))

    assert found.words == "2 of 4 recorded calls change"
    assert [(one.agent, one.before, one.after) for one in found.lines] == [
        ("two", Verdict.ALLOW, Verdict.DENY),
        ("one", Verdict.ALLOW, Verdict.DENY),
    ]


def test_nobody_gains_or_loses_by_a_tick_without_effect(workspace: Workspace) -> None:
    edit = rights.tick_operations(workspace.policy, workspace.catalog, "three", "file", ["delete"], on=True)
    workspace.apply(edit)

    found = end_of(impact(workspace, edit, str))

    assert (found.lines, found.nothing) == ((), "No one's access changes. 1 tick has no effect yet.")
    assert not found.opens


def test_equal_lines_are_one_for_all_their_agents_and_the_worst_comes_first(workspace: Workspace) -> None:
    base = workspace.policy
    copies = {f"copy{at}": replace(base.agents["one"], agent_id=f"copy{at}") for at in range(7)}
    workspace.apply(edit_between("copies", base, replace(base, agents={**base.agents, **copies})))
    policy = workspace.policy
    for name in ("one", *copies):
        policy = apply(policy, rights.tick_operations(policy, workspace.catalog, name, "file", ["delete"], on=True))
    level = sourceedit.add_rule(policy, "docs", PermissionRule("drafts/**", Permission.ADMIN), 0)
    edit = edit_between("all", workspace.policy, apply(policy, level))
    workspace.apply(edit)

    found = end_of(impact(workspace, edit, str))

    assert found.lines[0].sentence == "one and 8 others can now delete 2 files without asking (file.delete)"
    assert found.lines[0].is_dangerous
    assert found.lines[0].parts[1] == "delete"


def test_home_and_the_line_contradict_no_decision(tmp_path: Path) -> None:
    """850 cells, 20 calls each: what Home says that nobody can do, and what no line says to have changed."""
    workspaces = made_workspaces(tmp_path)
    draw, cells = random.Random(850), cells_of(workspaces)
    reaches = {id(one): all_reaches(one) for one in workspaces}
    dangers = {
        id(one): {(agent, risk.danger.tool, risk.danger.operation) for risk in risks_of(one) for agent in risk.agents}
        for one in workspaces
    }
    wrong, calls, free = list[str](), 0, 0
    for cell in draw.choices(cells, k=CELLS):
        reach = reaches[id(cell.workspace)][cell.agent_id]
        count, effect = reach.effects.get(cell.facts.effect), cell.facts.effect
        key = cell.agent_id, cell.tool.facts.name, cell.facts.name
        for _ in range(CALLS):
            found = decision(cell, cell.workspace, draw)
            if found is None:
                continue
            calls, free = calls + 1, free + (found is Verdict.ALLOW)
            if found is Verdict.ALLOW and (count is None or not count.free):
                wrong.append(f"{key} {effect}: allowed, and Home says that none is without asking")
            if found is Verdict.ASK and (count is None or not count.every):
                wrong.append(f"{key} {effect}: asks, and Home says that there is none")
            if found is Verdict.ALLOW and effect in DANGEROUS and key not in dangers[id(cell.workspace)]:
                wrong.append(f"{key} {effect}: allowed, and not among what could hurt")
    assert wrong == []
    assert calls > 4_000
    assert free > 1_000
    assert all(headline(reaches[id(one)], ()) for one in workspaces)


def test_a_decision_changes_only_where_a_line_says_so(tmp_path: Path) -> None:
    workspaces = made_workspaces(tmp_path)
    draw, cells = random.Random(851), cells_of(workspaces)
    wrong, changes = list[str](), 0
    for cell in draw.choices(cells, k=CELLS // 10):
        workspace, name = cell.workspace, cell.tool.facts.name
        calls = [call for _ in range(CALLS) if (call := drawn_call(cell, (*cell.words, *cell.paths), draw)) is not None]
        edit = rights.tick_operations(
            workspace.policy, workspace.catalog, cell.agent_id, name, [cell.facts.name], on=not cell.right.ticked
        )
        before = [workspace.decide(cell.agent_id, name, call) for call in calls]
        workspace.apply(edit)
        after = [workspace.decide(cell.agent_id, name, call) for call in calls]
        found = end_of(impact(workspace, edit, str))
        workspace.apply(inverse(edit))
        for was, now in zip(before, after, strict=True):
            if was.verdict is not now.verdict and (is_of_policy(was) or is_of_policy(now)):
                changes += 1
                more = OPEN[now.verdict] > OPEN[was.verdict]
                if not any(is_about(line, cell, more=more) for line in found.lines):
                    said = [line.sentence for line in found.lines] or [found.nothing]
                    wrong.append(f"{cell.agent_id} {name}.{cell.facts.name}: {was.verdict} -> {now.verdict}: {said}")
    assert wrong == []
    assert changes > 200


def is_about(line: ImpactLine, cell: Cell, *, more: bool) -> bool:
    way = f"{cell.tool.facts.name}.{cell.facts.name}" if cell.facts.name else cell.tool.facts.name
    gain = line.gain
    return gain is not None and gain.more == more and gain.effect is cell.facts.effect and way in line.ways


def all_reaches(workspace: Workspace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while left := [agent_id for agent_id in workspace.policy.agents if agent_id not in found]:
        found |= reaches_of(workspace, left)
    return found


def decision(cell: Cell, workspace: Workspace, draw: random.Random) -> Verdict | None:
    arguments = drawn_call(cell, (*cell.words, *cell.paths), draw)
    if arguments is None:
        return None
    found = workspace.decide(cell.agent_id, cell.tool.facts.name, arguments)
    return found.verdict if is_of_policy(found) else None
