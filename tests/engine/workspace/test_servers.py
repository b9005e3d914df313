"""Tools of real MCP servers through the gate of a workspace: what starts them, what calls them, what ends them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewright.adapters.mcp_client import ServerStatus
from gatewright.base.amount import plain_moment
from gatewright.base.errors import WorkspaceError
from gatewright.gate import Approval, ApprovalRequest
from gatewright.policy import policyedit
from gatewright.policy.edit import CatalogChange, Edit
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.pin import Listing, Pin, accept, write_pin
from gatewright.workspace import Status, Workspace
from tests.support.bad_server import tool
from tests.support.checkout import ROOT
from tests.support.patience import until as eventually

GOOD = str(ROOT / "tests" / "support" / "good_server.py")
AGENT = """gatewright = 1

[agents.clerk]
tools = ["echo", "add", "picture", "fail", "slow", "count", "die"]
approvals = { privileged = "allow", fail = "ask" }

[[agents.clerk.tool_rules]]
tool_name = "echo"
rule_type = { ArgumentConstraints = { text = { maxLength = 5 } } }
"""
Open = Callable[..., Workspace]


def server(*words: str, more: str = "") -> str:
    args = json.dumps([GOOD, *words])
    head = '\n[[catalogs]]\nid = "far"\ntype = "mcp"\nconfine = "none"\n'
    return f"{head}command = {json.dumps(sys.executable)}\nargs = {args}\n{more}"


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> Listing:
    """What the good server lists, asked through a workspace."""
    folder = tmp_path_factory.mktemp("asked")
    (folder / "policy.toml").write_text(f"gatewright = 1\n{server('stdio')}")
    with Workspace.open(folder, keys=folder / "keys", trust=True) as workspace:
        return asyncio.run(workspace.servers.list("far"))


@pytest.fixture
def folder(tmp_path: Path, listing: Listing) -> Path:
    folder = tmp_path / "ws"
    (folder / "catalogs").mkdir(parents=True)
    (folder / "policy.toml").write_text(AGENT + server("stdio", str(tmp_path / "log")))
    (folder / "catalogs" / "far.json").write_bytes(write_pin(accept(Pin(listing), None)))
    return folder


@pytest.fixture
def opened(folder: Path) -> Iterator[Open]:
    held: list[Workspace] = []

    def make(*, trust: bool = True) -> Workspace:
        held.append(Workspace.open(folder, keys=folder.parent / "keys", trust=trust))
        return held[-1]

    yield make
    for workspace in held:
        workspace.close()


def log_of(folder: Path) -> str:
    log = folder.parent / "log"
    return log.read_text() if log.exists() else ""


def processes(folder: Path) -> list[str]:
    """The servers of this workspace that run: they are told its log."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(folder.parent / "log").encode() in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(process.name)
    return found


async def test_an_allowed_call_starts_the_server_and_gives_its_result(opened: Open) -> None:
    workspace = opened()
    assert workspace.servers.states["far"].status is ServerStatus.STOPPED
    outcome = await workspace.call("clerk", "add", {"a": 1, "b": 2})
    assert (outcome.status, outcome.output) == (Status.ALLOWED, '{\n  "total": 3\n}')
    assert json.loads(outcome.data or b"")["structuredContent"] == {"total": 3}
    assert workspace.servers.states["far"].status is ServerStatus.RUNNING


@pytest.mark.parametrize(
    ("tool", "given", "more", "verdict"),
    [
        ("echo", {"text": "longer than that"}, "", "deny"),
        ("echo", {"text": "x"}, '[policy]\ndefault = "ask"\n', "ask"),
        ("add", {"a": 1, "b": 2}, '[[policy.rules]]\nname = "no"\neffect = "deny"\ntools = ["add"]\n', "deny"),
        (
            "add",
            {"a": 1, "b": 2},
            '[[agents.clerk.tool_rules]]\ntool_name = "*"\nrule_type = { MaxCalls = 0 }\n',
            "deny",
        ),
    ],
)
async def test_an_observed_server_runs_what_is_denied_and_no_tool_that_is_not_trusted_or_has_changed(
    opened: Open, folder: Path, listing: Listing, tool: str, given: dict[str, Any], more: str, verdict: str
) -> None:
    until = plain_moment(float(round(time.time())) + 86_400)
    observe = f'mode = "observe"\nobserve_until = "{until}"\n'
    text = AGENT + more + server("stdio", str(folder.parent / "log"), more=observe)
    (folder / "policy.toml").write_text(text)
    strange = await opened(trust=False).call("clerk", tool, given)
    assert strange.status is not Status.ALLOWED
    assert log_of(folder) == ""

    made = await opened().call("clerk", tool, given)
    assert made.status is Status.ALLOWED, made.detail
    assert (made.decision.verdict, made.decision.enforced) == (verdict, False)
    assert str(given.get("text", 3)) in made.output
    misfit = await opened().call("clerk", tool, {name: [] for name in given})
    assert (misfit.status, misfit.decision.enforced) == (Status.DENIED, True)

    other = [{**one, "description": "Once upon a time."} for one in listing.tools]
    pin = accept(Pin(Listing.of(other, name="good", version="1.2.3")), None)
    (folder / "catalogs" / "far.json").write_bytes(write_pin(pin))
    changed = await opened().call("clerk", tool, given)
    assert (changed.status, changed.code) == (Status.FAILED, "held")


async def test_a_picture_reaches_the_host_whole(opened: Open) -> None:
    outcome = await opened().call("clerk", "picture", {})
    assert outcome.output == "a pixel\n[image image/png]"
    assert [block["type"] for block in json.loads(outcome.data or b"")["content"]] == ["text", "image"]


async def test_a_denied_call_starts_nothing(opened: Open, folder: Path) -> None:
    workspace = opened()
    for name, arguments in (("echo", {"text": "much too long"}), ("environment", {}), ("no_such", {})):
        assert (await workspace.call("clerk", name, arguments)).status is Status.DENIED
    assert workspace.servers.states["far"].status is ServerStatus.STOPPED
    assert log_of(folder) == ""


async def test_a_call_that_asks_runs_after_a_yes_and_not_after_a_no(opened: Open) -> None:
    workspace = opened()

    def answering(approved: bool) -> Any:
        async def answer(_: ApprovalRequest) -> Approval:
            return Approval(approved=approved, who="test")

        return answer

    refused = await workspace.call("clerk", "fail", {}, approver=answering(False))
    assert refused.status is Status.DENIED
    assert workspace.servers.states["far"].status is ServerStatus.STOPPED
    allowed = await workspace.call("clerk", "fail", {}, approver=answering(True))
    assert allowed.status is Status.FAILED
    assert "Error executing tool fail" in allowed.output


async def test_nothing_starts_before_its_definition_was_trusted(opened: Open, folder: Path) -> None:
    workspace = opened(trust=False)
    state = workspace.servers.states["far"]
    assert (state.status, state.advice) == (ServerStatus.NOT_TRUSTED, "`gatewright check --trust` trusts it")
    outcome = await workspace.call("clerk", "echo", {"text": "hi"})
    assert (outcome.status, outcome.code) == (Status.FAILED, "server-failed")
    assert "not trusted yet" in outcome.detail
    assert "not trusted" not in outcome.output
    with pytest.raises(WorkspaceError, match="not trusted yet"):
        await workspace.servers.start("far")
    assert log_of(folder) == ""


async def test_trust_is_of_the_exact_definition(opened: Open, folder: Path) -> None:
    opened().close()
    assert opened(trust=False).servers.states["far"].status is ServerStatus.STOPPED
    text = (folder / "policy.toml").read_text()
    (folder / "policy.toml").write_text(text + 'env = ["TOKEN"]\n')
    assert opened(trust=False).servers.states["far"].status is ServerStatus.NOT_TRUSTED


def test_looking_at_a_workspace_starts_no_server(opened: Open, folder: Path) -> None:
    workspace = opened()
    workspace.view("clerk").tools("anthropic")
    workspace.decide("clerk", "echo", {"text": "hi"})
    workspace.selfcheck()
    workspace.current_problems()
    workspace.reload()
    assert workspace.servers.states["far"].status is ServerStatus.STOPPED


async def test_a_call_that_takes_too_long_is_cancelled_at_the_server(opened: Open, folder: Path) -> None:
    with (folder / "policy.toml").open("a") as file:
        file.write("\n[tools.slow]\ntimeout = 4\n")
    workspace = opened()
    await workspace.servers.start("far")
    outcome = await workspace.call("clerk", "slow", {"seconds": 60})
    assert outcome.status is Status.TIMED_OUT
    await eventually(lambda: "slow cancelled" in log_of(folder))


async def test_a_call_whose_caller_gives_up_is_cancelled_at_the_server(opened: Open, folder: Path) -> None:
    workspace = opened()
    call = asyncio.create_task(workspace.call("clerk", "slow", {"seconds": 60}))
    await eventually(lambda: "slow begins" in log_of(folder))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await eventually(lambda: "slow cancelled" in log_of(folder))


async def test_a_server_that_dies_in_mid_call_fails_it_plainly_and_is_there_for_the_next(opened: Open) -> None:
    workspace = opened()
    outcome = await workspace.call("clerk", "die", {})
    assert (outcome.status, outcome.code) == (Status.FAILED, "server-failed")
    assert "catalog `far`: the server was killed by SIGKILL during `tools/call`" in outcome.detail
    assert "SIGKILL" not in outcome.output
    assert (await workspace.call("clerk", "echo", {"text": "back"})).output == "back"


@pytest.mark.parametrize("way", ["error", "result", "stderr"])
async def test_a_variable_that_a_server_repeats_reaches_neither_the_model_nor_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    token = "correct horse battery"  # nothing that is taken for a secret wherever it stands
    monkeypatch.setenv("TOKEN", token)
    agent = 'gatewright = 1\n[agents.clerk]\ntools = ["one"]\napprovals = { privileged = "allow" }\n'
    raw = server("repeats", way, more='env = ["TOKEN"]\n').replace("good_server.py", "bad_server.py")
    (tmp_path / "policy.toml").write_text(agent + raw)
    (tmp_path / "catalogs").mkdir()
    listed = Listing.of([tool("one", description="Uses [REDACTED].")], name="raw", version="0")
    (tmp_path / "catalogs" / "far.json").write_bytes(write_pin(accept(Pin(listed), None)))
    with Workspace.open(tmp_path, keys=tmp_path / "keys", trust=True) as workspace:
        outcome = await workspace.call("clerk", "one", {})
        assert outcome.status is Status.FAILED
        assert "the token [REDACTED]" in (outcome.detail if way == "stderr" else outcome.output)
        assert token not in f"{outcome}{[*workspace.audit.rows()]}"


async def test_progress_of_the_server_reaches_the_caller(opened: Open) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    def tell(done: float, whole: float | None, words: str | None) -> None:
        told.append((done, whole, words))

    await opened().call("clerk", "count", {}, context=ToolExecutionContext("clerk", "", progress=tell))
    await eventually(lambda: len(told) == 3)
    assert told[0] == (1.0, 3.0, "at 1")


async def test_a_tool_that_is_not_the_accepted_one_any_more_is_not_called(
    opened: Open, folder: Path, listing: Listing
) -> None:
    other = [{**tool, "description": "Once upon a time."} for tool in listing.tools]
    pin = accept(Pin(Listing.of(other, name="good", version="1.2.3")), None)
    (folder / "catalogs" / "far.json").write_bytes(write_pin(pin))
    workspace = opened()
    outcome = await workspace.call("clerk", "echo", {"text": "hi"})
    assert (outcome.status, outcome.code) == (Status.FAILED, "held")
    assert "lists another definition than the accepted one" in outcome.detail
    assert log_of(folder) == ""
    assert (await workspace.call("clerk", "echo", {"text": "hi"})).status is Status.DENIED
    assert "echo" in workspace.catalog_states()[0].held


async def test_a_call_of_a_server_that_says_what_it_said_leaves_the_pin_as_it_is(
    opened: Open, folder: Path, listing: Listing
) -> None:
    file = folder / "catalogs" / "far.json"
    older = Listing.of(list(listing.tools), name="good", version="1.2.2", instructions=listing.instructions)
    file.write_bytes(before := write_pin(accept(Pin(older), None, instructions=True)))
    assert (await opened().call("clerk", "echo", {"text": "hi"})).status is Status.ALLOWED
    assert file.read_bytes() == before


async def test_what_a_server_lists_anew_is_held_from_the_next_call_on(opened: Open, folder: Path) -> None:
    text = (folder / "policy.toml").read_text().replace('"die"]', '"die", "grow"]')
    (folder / "policy.toml").write_text(text)
    workspace = opened()
    assert (await workspace.call("clerk", "grow", {})).status is Status.ALLOWED
    assert (await workspace.call("clerk", "echo", {"text": "hi"})).status is Status.ALLOWED
    assert workspace.catalog_states()[0].held == ("new",)


async def test_a_catalog_that_is_defined_otherwise_is_another_one(opened: Open, folder: Path) -> None:
    workspace = opened()
    await workspace.servers.start("far")
    assert processes(folder)
    before = workspace.policy.catalogs[0]
    workspace.apply(Edit("change", (CatalogChange(before, replace(before, cwd="catalogs")),)))
    assert workspace.servers.states["far"].status is ServerStatus.NOT_TRUSTED
    await eventually(lambda: not processes(folder))


async def test_closing_the_workspace_stops_its_servers(opened: Open, folder: Path) -> None:
    workspace = opened()
    seen = (await workspace.servers.list("far")).name
    assert seen == "good"
    await asyncio.to_thread(workspace.close)
    assert not processes(folder)
    assert workspace.servers.states["far"].status is ServerStatus.STOPPED


async def test_who_subscribes_hears_of_each_change_of_state(opened: Open) -> None:
    workspace = opened()
    seen: list[ServerStatus] = []
    leave = workspace.servers.subscribe(lambda: seen.append(workspace.servers.states["far"].status))
    await workspace.servers.start("far")
    leave()
    await workspace.servers.stop("far")
    assert seen == [ServerStatus.STARTING, ServerStatus.RUNNING]


async def test_a_sandbox_decides_calls_of_server_tools_and_runs_none(opened: Open, folder: Path) -> None:
    workspace = opened()
    sandbox = workspace.sandbox()
    try:
        assert workspace.is_executable("echo")
        assert not sandbox.workspace.is_executable("echo")
        outcome = await sandbox.workspace.call("clerk", "echo", {"text": "hi"})
        assert (outcome.status, outcome.code) == (Status.FAILED, "not-in-copy")
    finally:
        sandbox.close()
    assert log_of(folder) == ""


@pytest.mark.parametrize("more", ['env = ["NOT_SET_ANYWHERE"]\n'])
async def test_a_variable_that_is_not_set_is_said_before_anything_starts(opened: Open, folder: Path, more: str) -> None:
    with (folder / "policy.toml").open("a") as file:
        file.write(more)
    with pytest.raises(WorkspaceError, match="`NOT_SET_ANYWHERE`, which the catalog passes on, is not set"):
        await opened().servers.start("far")


async def test_a_server_gets_path_home_and_language_and_what_its_catalog_names(
    opened: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "t")
    monkeypatch.setenv("OTHER", "o")
    text = (folder / "policy.toml").read_text().replace('"die"]', '"die", "environment"]')
    (folder / "policy.toml").write_text(text + 'env = ["TOKEN"]\n')
    outcome = await opened().call("clerk", "environment", {})
    seen = json.loads(outcome.data or b"")["structuredContent"]
    assert set(seen) - {"LC_CTYPE"} == {"TOKEN", *({"PATH", "HOME", "LANG"} & set(os.environ))}


async def test_values_that_are_lent_reach_the_definition_that_they_were_lent_to_alone(
    folder: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    text = (folder / "policy.toml").read_text().replace('"die"]', '"die", "environment"]')
    (folder / "policy.toml").write_text(text + 'env = ["TOKEN"]\n')
    workspace = opened()
    workspace.servers.lend("far", {"TOKEN": "lent", "LD_PRELOAD": "evil.so"})
    outcome = await workspace.call("clerk", "environment", {})
    seen = json.loads(outcome.data or b"")["structuredContent"]
    assert (seen.get("TOKEN"), "LD_PRELOAD" in seen) == ("lent", False)

    [catalog] = workspace.policy.catalogs
    other = replace(catalog, args=(*catalog.args[:2], "other"))
    workspace.apply(policyedit.add_catalog(workspace.policy, replace(other, catalog_id="other")))
    workspace.trust_server("other")
    with pytest.raises(WorkspaceError, match="`TOKEN`, which the catalog passes on, is not set"):
        await workspace.servers.start("other")
