"""Edits of compositions and their steps: what follows them, what is refused, and what of the text they leave alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.base.errors import EditRefused
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy import compositionedit as edits
from gatewright.policy.composition import Composition, CompositionStep
from gatewright.policy.edit import Edit, inverse
from gatewright.workspace import Workspace

TEXT = """gatewright = 1

# who is who
[agents.a]
tools = [
  "file",
  "copy",  # for notes
  "twice",
]
sources = ["docs"]
approvals = { copy = "ask", "file.delete" = "deny" }

[[agents.a.tool_rules]]  # not too often
tool_name = "copy"
rule_type = { MaxCalls = 3 }

[[agents.a.tool_rules]]
tool_name = "file"
rule_type = "RequiresPrecedingTools"
conditions = ["copy"]

# about copies
[[compositions]]
name = "copy"  # its name
description = "Copies."
input = { type = "object", properties = { path = { type = "string" }, to = { type = "string" } } }
steps = [
  # first it reads
  { tool = "file", arguments = { op = "read", path = "$input.path" } },  # reads
  { tool = "file", arguments = { op = "read", path = "$input.to" }, when = {properties.input.required = ["to"]} },
  # then it writes
  { tool = "file", arguments = { op = "append", path = "$input.to", content = "$steps.0.data.content" } },  # writes
]

# twice the same
[[compositions]]
name = "twice"
[[compositions.steps]]
tool = "copy"  # the first time
arguments.path = "a.md"
# and again
[[compositions.steps]]
tool = "copy"
arguments = { path = "b.md", to = "$steps.0.label" }

[tools.copy]  # settings
timeout = 5

[[policy.rules]]
name = "late"
effect = "ask"
tools = ["file", "copy"]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return opened(tmp_path)


def opened(folder: Path) -> Workspace:
    (folder / "docs").mkdir()
    (folder / "policy.toml").write_text(TEXT, "utf-8")
    return Workspace.open(folder, keys=folder / "keys")


def named(workspace: Workspace, name: str) -> Composition:
    return next(one for one in workspace.policy.compositions if one.name == name)


def do(workspace: Workspace, make: Callable[[Composition], Edit], name: str = "copy") -> tuple[str, str]:
    """What stands in the text after an edit instead of what; the edit is taken back, and leaves nothing behind."""
    edit = make(named(workspace, name))
    workspace.apply(edit)
    after = workspace.text()
    workspace.apply(inverse(edit))
    assert workspace.text() == TEXT
    before_lines, after_lines = TEXT.splitlines(), after.splitlines()
    gone = [line for line in before_lines if line not in after_lines]
    new = [line for line in after_lines if line not in before_lines]
    return "\n".join(gone), "\n".join(new)


def refusal(workspace: Workspace, make: Callable[[Composition], Edit], name: str = "copy") -> str:
    with pytest.raises(EditRefused) as caught:
        workspace.apply(make(named(workspace, name)))
    assert workspace.text() == TEXT
    return str(caught.value)


def test_a_new_composition_comes_last_and_nobody_with_a_list_gets_it(workspace: Workspace) -> None:
    made = Composition("look", steps=(CompositionStep("file", {"op": "list"}),))
    gone, new = do(workspace, lambda _: edits.add_composition(workspace.policy, made))
    assert not gone
    assert new.splitlines() == ['name = "look"', 'steps = [{ tool = "file", arguments = { op = "list" } }]']


def test_a_copy_stands_behind_its_original_and_nobody_with_a_list_gets_it(workspace: Workspace) -> None:
    edit = edits.duplicate_composition(workspace.policy, named(workspace, "copy"), "copy_2")
    workspace.apply(edit)
    assert [one.name for one in workspace.policy.compositions] == ["copy", "copy_2", "twice"]
    assert workspace.policy.agents["a"].tools == ("file", "copy", "twice")
    identities = {step.identity for one in workspace.policy.compositions for step in one.steps}
    assert len(identities) == 8


def test_all_that_is_said_of_a_composition_follows_its_name(workspace: Workspace) -> None:
    gone, new = do(
        workspace,
        lambda row: edits.rename_composition(workspace.policy, workspace.catalog, row, "put"),
    )
    told = [line for line in gone.splitlines() if not line.startswith("approvals")]
    assert [line for line in new.splitlines() if not line.startswith("approvals")] == [
        line.replace("copy", "put") for line in told
    ]
    assert 'approvals = { "file.delete" = "deny", put = "ask" }' in new
    assert "# for notes" in new
    assert "# its name" in new
    assert "[tools.put]  # settings" in new
    assert 'tool = "put"  # the first time' in new
    assert 'conditions = ["put"]' in new


def test_what_is_said_of_a_composition_goes_with_it(workspace: Workspace) -> None:
    workspace.apply(edits.remove_composition(workspace.policy, workspace.catalog, named(workspace, "twice")))
    assert workspace.policy.agents["a"].tools == ("file", "copy")
    assert "twice" not in workspace.text()
    assert "about copies" in workspace.text()


def test_a_composition_that_another_one_calls_stays(workspace: Workspace) -> None:
    said = refusal(workspace, lambda row: edits.remove_composition(workspace.policy, workspace.catalog, row))
    assert said == "the first step of `twice` calls `copy`: change that step first"


def test_a_step_that_moves_takes_references_to_its_result_along(workspace: Workspace) -> None:
    row = named(workspace, "copy")
    workspace.apply(edits.move_step(workspace.policy, row, row.steps[0], 1))
    steps = named(workspace, "copy").steps
    assert steps[0].arguments == {"op": "read", "path": "$input.to"}
    assert steps[2].arguments["content"] == "$steps.1.data.content"
    assert workspace.text().index("# then it writes") > workspace.text().index("# first it reads")


def test_a_new_step_moves_the_numbers_behind_it(workspace: Workspace) -> None:
    row = named(workspace, "copy")
    workspace.apply(edits.add_step(workspace.policy, row, CompositionStep("file", {"op": "list"}), row.steps[0]))
    assert named(workspace, "copy").steps[3].arguments["content"] == "$steps.1.data.content"


def test_no_step_comes_before_the_one_that_it_needs(workspace: Workspace) -> None:
    said = refusal(workspace, lambda row: edits.move_step(workspace.policy, row, row.steps[2], 0))
    assert said == "the third step needs the result of the first, before it"
    said = refusal(workspace, lambda row: edits.remove_step(workspace.policy, row, row.steps[0]))
    assert said == "the third step needs the result of the first: change that first"


CONDITIONS: list[tuple[JsonValue, JsonValue]] = [
    ({"steps": {"prefixItems": [{"required": ["data"]}]}}, {"steps": {"prefixItems": [{}, {"required": ["data"]}]}}),
    ({"steps": {"prefixItems": [{}, {"minimum": 1}]}}, {"steps": {"prefixItems": [{"minimum": 1}]}}),
    ({"input": {"required": ["to"]}}, {"input": {"required": ["to"]}}),
    ({"steps": {"minItems": 1}}, None),
]


@pytest.mark.parametrize(("before", "after"), CONDITIONS)
def test_a_condition_follows_the_results_that_it_is_about(
    workspace: Workspace, before: JsonValue, after: JsonValue
) -> None:
    row = named(workspace, "copy")
    asked = replace(row.steps[2], arguments={"op": "list"}, when={"properties": before})
    workspace.apply(edits.change_step(workspace.policy, row, row.steps[2], asked))
    if after is None:
        with pytest.raises(EditRefused, match="refers to results by number"):
            edits.move_step(workspace.policy, row, row.steps[0], 1)
    else:
        workspace.apply(edits.move_step(workspace.policy, row, row.steps[0], 1))
        assert named(workspace, "copy").steps[2].when == {"properties": after}


def test_an_argument_of_another_name_is_the_same_to_steps_and_conditions(workspace: Workspace) -> None:
    schema: dict[str, JsonValue] = {"properties": {"path": {"type": "string"}, "target": {"type": "string"}}}
    workspace.apply(edits.set_input(workspace.policy, named(workspace, "copy"), schema, {"to": "target"}))
    steps = named(workspace, "copy").steps
    assert [step.arguments["path"] for step in steps] == ["$input.path", "$input.target", "$input.target"]
    assert steps[1].when == {"properties": {"input": {"required": ["target"]}}}


def test_a_row_that_is_gone_is_not_taken_for_another(workspace: Workspace) -> None:
    row = named(workspace, "twice")
    step = named(workspace, "copy").steps[1]
    workspace.apply(edits.remove_step(workspace.policy, named(workspace, "copy"), step))
    with pytest.raises(EditRefused, match="no longer exists"):
        edits.change_step(workspace.policy, named(workspace, "copy"), step, step)
    workspace.apply(edits.remove_composition(workspace.policy, workspace.catalog, row))
    with pytest.raises(EditRefused, match="composition `twice` no longer exists"):
        edits.describe_composition(workspace.policy, row, "x")


FAULTS: list[tuple[CompositionStep, tuple[str | int, ...], str]] = [
    (CompositionStep("fil"), ("tool",), "`fil`"),
    (CompositionStep("file", {"op": "raed"}), ("arguments", "op"), "no operation `raed`"),
    (CompositionStep("file", {"path": "$steps.2.x"}), ("arguments", "path"), "comes too late"),
    (CompositionStep("file", {"path": "$input.pth"}), ("arguments", "path"), "`input` has no `pth`"),
    (CompositionStep("file", {"path": ["$stps.0"]}), ("arguments", "path", 0), "begins with `$input`"),
    (CompositionStep("file", {"path": None}), ("arguments", "path"), "null"),
    (CompositionStep("file", {}, {"propertes": {}}), ("when", "propertes"), "no keyword"),
    (CompositionStep("twice"), ("tool",), "may not come to itself"),
    (CompositionStep("copy"), ("tool",), "may not come to itself"),
]


@pytest.mark.parametrize(("step", "place", "said"), FAULTS)
def test_what_is_wrong_with_a_step_is_said_where_it_is_and_refused(
    workspace: Workspace, step: CompositionStep, place: tuple[str | int, ...], said: str
) -> None:
    row = named(workspace, "copy")
    edit = edits.change_step(workspace.policy, row, row.steps[1], step)
    faults = workspace.faults(edit)
    assert [one[0][0] for one in faults] == ["compositions"] * len(faults)
    wanted = {("compositions", 0, "steps", 1, *place), ("compositions", 1, "steps", 0, *place)}
    assert any(path in wanted and said in message for path, message in faults)
    assert refusal(workspace, lambda _: edit)


def test_names_that_are_taken_or_none_are_refused(workspace: Workspace) -> None:
    for name in ("file", "twice", "a b", ""):
        assert refusal(
            workspace, lambda row, to=name: edits.rename_composition(workspace.policy, workspace.catalog, row, to)
        )


def test_more_than_sixteen_steps_are_refused(workspace: Workspace) -> None:
    row = named(workspace, "copy")
    while len(named(workspace, "copy").steps) < 16:
        workspace.apply(edits.add_step(workspace.policy, row, CompositionStep("file", {"op": "list"})))
    with pytest.raises(EditRefused, match="at most 16 steps"):
        workspace.apply(edits.add_step(workspace.policy, row, CompositionStep("file", {"op": "list"})))


def test_the_last_step_stays(workspace: Workspace) -> None:
    row = named(workspace, "twice")
    workspace.apply(edits.remove_step(workspace.policy, row, row.steps[1]))
    with pytest.raises(EditRefused, match="one step at least"):
        workspace.apply(edits.remove_step(workspace.policy, row, row.steps[0]))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return opened(tmp_path_factory.mktemp("ws"))


VALUES: st.SearchStrategy[JsonValue] = st.sampled_from(
    ["$input.path", "$input", "$steps.0", "$steps.1.data.2", "$$x", "a.md", 3, True, ["$input.to", {"x": "$steps.0"}]]
)
ABOUT_INPUT: dict[str, JsonValue] = {"properties": {"input": {"required": ["path"]}}}
CHANGED = st.builds(
    CompositionStep,
    st.sampled_from(["file", "copy", "twice", "nothing"]),
    st.dictionaries(st.sampled_from(["op", "path", "to", "content"]), VALUES, max_size=3),
    st.sampled_from([None, True, ABOUT_INPUT, {"properties": {"steps": {}}}]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_edits_taken_back_leave_the_text_byte_for_byte(kept: Workspace, data: st.DataObject) -> None:
    """Each on the way can be read again."""
    done: list[Edit] = []
    texts = [kept.text()]
    assert kept.text() == TEXT
    for _ in range(data.draw(st.integers(1, 6))):
        try:
            edit = drawn(kept, data)
            kept.apply(edit)
        except EditRefused:
            assert kept.text() == texts[-1]
            continue
        done.append(edit)
        texts.append(kept.text())
        assert not [one for one in kept.problems_of(texts[-1]) if one.is_error]
    for edit in reversed(done):
        assert kept.text() == texts.pop()
        kept.apply(inverse(edit))
    assert kept.text() == TEXT


def drawn(workspace: Workspace, data: st.DataObject) -> Edit:
    policy, catalog = workspace.policy, workspace.catalog
    row = data.draw(st.sampled_from(policy.compositions))
    step, number = data.draw(st.sampled_from(row.steps)), data.draw(st.integers(0, 3))
    name = data.draw(st.sampled_from(["copy", "twice", "x", "file", "y.z"]))
    made = data.draw(CHANGED)
    ways: dict[str, Callable[[], Edit]] = {
        "add": lambda: edits.add_composition(policy, Composition(name, "New.", steps=(made,))),
        "copy": lambda: edits.duplicate_composition(policy, row, name),
        "rename": lambda: edits.rename_composition(policy, catalog, row, name),
        "remove": lambda: edits.remove_composition(policy, catalog, row),
        "describe": lambda: edits.describe_composition(policy, row, name),
        "input": lambda: edits.set_input(policy, row, {"properties": {"at": {}, "path": {}}}, {"to": "at"}),
        "add step": lambda: edits.add_step(policy, row, made, step),
        "change step": lambda: edits.change_step(policy, row, step, made),
        "move step": lambda: edits.move_step(policy, row, step, number),
        "remove step": lambda: edits.remove_step(policy, row, step),
    }
    return ways[data.draw(st.sampled_from(sorted(ways)))]()
