"""Tools that a program brings, and takes back, while its workspace is open."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.base.errors import AlreadyRegistered, PolicyInvalid, RegistrationError
from gatewright.gate import Status
from gatewright.policy.agentedit import describe_agent
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import ResultType, Tool, ToolRegistry, tool
from gatewright.tools.declaration import Normalization
from gatewright.tools.registry import operation
from gatewright.workspace import Workspace

POLICY = """\
gatewright = 1

[agents.lister]
tools = ["tide", "moon"]

[[agents.lister.tool_rules]]
tool_name = "tide"
rule_type = { MaxCalls = 1 }

[agents.everything]

[[catalogs]]
id = "station"
type = "host"
manifest = "tools.json"
trusted = true
"""


def made(name: str, answer: str = "", version: str = "1.0.0") -> Tool:
    @tool(name=name, version=version, safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING)
    async def give(station: str) -> str:
        """Give what the station measures."""
        return answer or f"{name} of {station}"

    return give


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "policy.toml").write_text(POLICY, "utf-8")
    registry = ToolRegistry()
    for name in ("tide", "moon"):
        registry.register(made(name))
    registry.write_manifest(folder / "tools.json")
    with Workspace.open(folder, keys=tmp_path / "keys") as opened:
        yield opened


def listed(workspace: Workspace, agent: str) -> set[str]:
    return {str(shown["name"]) for shown in workspace.view(agent).tools("mcp")}


def called(workspace: Workspace, agent: str, name: str, session: str = "s") -> tuple[Status, str | None]:
    arguments = json.dumps({"station": "Cuxhaven"})
    outcome = asyncio.run(workspace.call(agent, name, arguments, session=workspace.session(agent, session)))
    return outcome.status, outcome.decision.code


def test_a_late_tool_takes_the_place_of_its_definition_under_the_same_rules(workspace: Workspace) -> None:
    assert listed(workspace, "lister") == {"tide", "moon"}
    assert called(workspace, "lister", "tide", "before")[0] is Status.FAILED  # nobody here can run a definition
    revision = workspace.revision

    withdraw = workspace.tools.add(made("tide"))

    assert workspace.revision > revision
    assert workspace.is_executable("tide")
    assert not workspace.is_executable("moon")
    assert [called(workspace, "lister", "tide")[0] for _ in range(2)] == [Status.ALLOWED, Status.DENIED]
    assert workspace.selfcheck().differences == ()
    withdraw()
    withdraw()
    assert listed(workspace, "lister") == {"moon"}
    assert called(workspace, "lister", "tide", "after")[0] is Status.DENIED
    assert "withdrawn" in workspace.decide("lister", "tide", "{}").reason
    assert workspace.selfcheck().differences == ()


def test_a_tool_that_the_policy_does_not_know_waits_for_somebody_who_edits_it(workspace: Workspace) -> None:
    withdraw = workspace.tools.add(made("wind"))
    assert listed(workspace, "lister") == {"tide", "moon"}
    assert "wind" not in listed(workspace, "everything")
    assert workspace.decide("everything", "wind", '{"station": "x"}').code == "new-tool-held"

    workspace.apply(describe_agent(workspace.policy, "lister", "reads the station"))

    assert "wind" in listed(workspace, "everything")
    withdraw()
    assert "wind" not in listed(workspace, "everything")


def test_a_policy_may_name_a_late_tool_from_then_on_and_after_it_went(workspace: Workspace) -> None:
    withdraw = workspace.tools.add(made("wind"))
    text = workspace.text().replace('"moon"]', '"moon", "wind"]')
    workspace.apply(workspace.edit_between("type", workspace.text(), text))
    assert "wind" in listed(workspace, "lister")

    withdraw()

    assert listed(workspace, "lister") == {"tide", "moon"}
    assert not [one for one in workspace.current_problems() if one.is_error]
    workspace.save()
    assert not [one for one in workspace.reload() if one.is_error]
    with workspace.under(workspace.policy) as other:
        assert listed(other, "lister") == {"tide", "moon"}
    workspace.tools.add(made("wind", "again"))
    assert called(workspace, "lister", "wind")[0] is Status.ALLOWED


@pytest.mark.parametrize(
    ("tools", "error"),
    [
        ((made("block"),), AlreadyRegistered),
        ((made("wind"), made("wind", version="1.7.0")), AlreadyRegistered),
        (("wind",), RegistrationError),
    ],
)
def test_what_cannot_be_registered_changes_nothing(
    workspace: Workspace, tools: tuple[Tool, ...], error: type[Exception]
) -> None:
    for one in tools[:-1]:
        workspace.tools.add(one)
    before = workspace.gate.snapshot().registry.keys()
    with pytest.raises(error):
        workspace.tools.add(tools[-1])
    assert workspace.gate.snapshot().registry.keys() == before
    assert listed(workspace, "lister") == {"tide", "moon"}


class Gauge(Tool):
    """Works a gauge."""

    name = "gauge"
    result_type = ResultType.STRING
    normalization = Normalization.JSON

    @operation(tier=SafetyTier.READ_ONLY)
    async def read(self) -> str:
        """Give what it shows."""
        return "2.4 m"

    @operation(tier=SafetyTier.SIDE_EFFECTING)
    async def reset(self) -> str:
        """Put it to zero."""
        return "0 m"


def test_a_tool_that_misfits_what_the_policy_says_of_it_is_refused_whole(workspace: Workspace) -> None:
    registry = ToolRegistry()
    registry.register(Gauge())
    registry.write_manifest(workspace.folder / "tools.json")
    rule = '{ tool_name = "gauge", rule_type = { AllowedOperations = ["read"] } }'
    text = POLICY.replace('tools = ["tide", "moon"]', f'tools = ["gauge"]\ntool_rules = [{rule}]').split("[[agents")[0]
    text += "[[catalogs]]" + POLICY.split("[[catalogs]]")[1]
    (workspace.folder / "policy.toml").write_text(text, "utf-8")
    assert not [one for one in workspace.reload() if one.is_error]
    assert listed(workspace, "lister") == {"gauge"}
    revision = workspace.revision

    with pytest.raises(PolicyInvalid, match="gauge"):
        workspace.tools.add(made("gauge"))

    assert workspace.revision == revision
    assert not workspace.is_executable("gauge")
    workspace.tools.add(Gauge())
    assert workspace.is_executable("gauge")
    assert workspace.selfcheck().differences == ()


def test_another_process_has_the_tools_that_came_by_their_definitions(workspace: Workspace) -> None:
    gone = workspace.tools.add(made("moon"))
    workspace.tools.add(made("wind"))
    text = workspace.text().replace('"moon"]', '"moon", "wind"]')
    workspace.apply(workspace.edit_between("type", workspace.text(), text))
    gone()
    image = pickle.loads(pickle.dumps(workspace.image()))
    with Workspace.of_image(image) as other:
        assert listed(other, "lister") == listed(workspace, "lister") == {"tide", "wind"}
        assert other.view("lister").tools("mcp") == workspace.view("lister").tools("mcp")
        assert not other.is_executable("wind")
    before = replace(image, late=type(image.late)())
    assert image.is_read_alike(workspace.image())
    assert not before.is_read_alike(workspace.image())


def test_a_disposable_copy_has_the_tools_that_were_there_when_it_was_made(workspace: Workspace) -> None:
    withdraw = workspace.tools.add(made("tide"))
    gone = workspace.tools.add(made("moon"))
    gone()
    with closing(workspace.sandbox()) as copy:
        withdraw()
        assert listed(copy.workspace, "lister") == {"tide"}
    assert listed(workspace, "lister") == set()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(steps=st.lists(st.tuples(st.sampled_from(["tide", "moon", "wind"]), st.booleans()), max_size=12))
def test_shown_callable_and_registered_agree_whatever_comes_and_goes(
    workspace: Workspace, steps: list[tuple[str, bool]]
) -> None:
    undo: dict[str, Callable[[], None]] = {}
    for name, comes in steps:
        if comes and name not in undo:
            undo[name] = workspace.tools.add(made(name))
        elif not comes and name in undo:
            undo.pop(name)()
        assert {name for name in undo if name != "wind"} <= listed(workspace, "lister")
        assert workspace.selfcheck(("lister",)).differences == ()
    for withdraw in undo.values():
        withdraw()


def test_tools_that_come_and_go_from_many_threads_leave_nothing_behind(workspace: Workspace) -> None:
    before = workspace.gate.snapshot().registry.keys()

    def come_and_go(number: int) -> None:
        for _ in range(5):
            workspace.tools.add(made(f"late{number}"))()

    threads = [threading.Thread(target=come_and_go, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert workspace.gate.snapshot().registry.keys() == before
