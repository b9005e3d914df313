"""The capability stage: kinds, and how far each grant reaches, through the gate and a policy as people write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gatewright.gate import Decision
from gatewright.gate.scope import bounds_of
from gatewright.gate.stages.arguments import ARGUMENTS
from gatewright.gate.stages.permission import CAPABILITY
from gatewright.policy.capability import Capability, CapabilityKind, Exec, NetRead, WasmExec
from gatewright.policy.document import Agent
from gatewright.policy.target import CapabilityCheck
from gatewright.policy.verdict import Verdict
from gatewright.tools import ResourceBounds
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.marked import marked_tools
from tests.engine.gate.world import World

ALLOW = (Verdict.ALLOW, "approval", "allowed")
SOURCE = """
[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
"""


@pytest.fixture
def granting(make_world: MakeWorld) -> Any:
    def make(*capabilities: str) -> World:
        rows = "".join(f"  {{ {one} }},\n" for one in capabilities)
        return make_world(f"gatewright = 1\n\n[agents.archivist]\ncapabilities = [\n{rows}]\n{SOURCE}", *marked_tools())

    return make


def told(decision: Decision) -> tuple[Verdict, str, str]:
    return decision.verdict, decision.stage, decision.code


def line(decision: Decision) -> int | None:
    return decision.rule.line if decision.rule is not None else None


def test_tool_without_its_kind_is_hidden(granting: Any) -> None:
    world = granting("ClockRead = {}")
    for tool in ("fetch", "peek", "rows", "setting", "build"):
        decision = world.decide(tool, {})
        assert (decision.stage, decision.code) == ("lookup", "capability-not-granted"), tool


def test_host_within_the_allowlist_passes(granting: Any) -> None:
    world = granting('NetRead = { allowlist = ["*.example.org", "api.example.com:8443"] }')
    for url in ("https://example.org/", "https://a.B.example.org/x", "https://api.example.com:8443/"):
        assert told(world.decide("fetch", {"url": url})) == ALLOW, url


@pytest.mark.parametrize(
    "url",
    [
        "https://example.net/",
        "https://example.org.example.net/",
        "https://notexample.org/",
        "https://api.example.com/",
        "https://1.1.1.1/",
        "https://bücher.example/",
    ],
)
def test_host_outside_the_allowlist_is_denied_at_the_grant(granting: Any, url: str) -> None:
    world = granting("ClockRead = {}", 'NetRead = { allowlist = ["*.example.org", "api.example.com:8443"] }')
    decision = world.decide("fetch", {"url": url})
    assert told(decision) == (Verdict.DENY, "capability", "host-not-granted")
    assert line(decision) == 6
    assert "example" not in (decision.model_message or "")


def test_grants_of_one_kind_add_up_and_the_nearest_is_named(granting: Any) -> None:
    world = granting('NetRead = { allowlist = ["*.example.org"] }', 'NetRead = { allowlist = ["api.example.com"] }')
    for url in ("https://example.org/", "https://api.example.com/"):
        assert told(world.decide("fetch", {"url": url})) == ALLOW
    assert line(world.decide("fetch", {"url": "https://www.example.com/"})) == 6
    assert line(world.decide("fetch", {"url": "https://example.net/"})) == 4
    world = granting('NetRead = { allowlist = ["a.example.org"] }', 'NetRead = { allowlist = ["b.sample.org:8443"] }')
    assert line(world.decide("fetch", {"url": "https://c.sample.org/"})) == 6


def test_one_url_of_many_outside_the_grant_denies_the_call(granting: Any) -> None:
    world = granting('NetRead = { allowlist = ["*.example.org"] }')
    decision = world.decide("crawl", {"urls": ["https://a.example.org/", "https://example.net/"]})
    assert told(decision) == (Verdict.DENY, "capability", "host-not-granted")


def test_reading_from_a_host_does_not_grant_sending_to_it(granting: Any) -> None:
    world = granting('NetRead = { allowlist = ["*"] }', 'NetWrite = { allowlist = ["hooks.example.org"] }')
    assert told(world.decide("post", {"url": "https://hooks.example.org/"})) == ALLOW
    assert told(world.decide("post", {"url": "https://example.org/"})) == (
        Verdict.DENY,
        "capability",
        "host-not-granted",
    )
    nested = {"text": "x", "targets": [{"url": "https://hooks.example.org"}, {"url": "https://example.org"}]}
    assert world.decide("deliver", nested).code == "host-not-granted"


def test_optional_argument_of_a_kind_that_the_tool_does_not_need_is_judged_too(granting: Any) -> None:
    world = granting('NetWrite = { allowlist = ["*"] }')
    arguments = {"text": "x", "targets": [{"url": "https://example.org"}]}
    assert told(world.decide("deliver", arguments)) == ALLOW
    decision = world.decide("deliver", {**arguments, "mirror": "https://example.org"})
    assert told(decision) == (Verdict.DENY, "capability", "capability-not-granted")


def test_each_operation_needs_its_own_kind(granting: Any) -> None:
    world = granting('NetRead = { allowlist = ["*"] }')
    assert told(world.decide("pages", {"op": "get", "url": "https://example.org"})) == ALLOW
    decision = world.decide("pages", {"op": "put", "to": "https://example.org"})
    assert told(decision) == (Verdict.DENY, "operation", "capability-not-granted")


def test_bare_host_with_a_port_in_the_grant_needs_that_port(granting: Any) -> None:
    world = granting('NetRead = { allowlist = ["example.org:53"] }')
    assert told(world.decide("ping", {"host": "example.org:53"})) == ALLOW
    assert world.decide("ping", {"host": "example.org"}).code == "host-not-granted"


@pytest.mark.parametrize(
    ("tool", "limited", "whole"),
    [
        ("weather", 'NetRead = { allowlist = ["*.example.org", "*:443"] }', 'NetRead = { allowlist = ["*"] }'),
        ("census", 'FsRead = { prefixes = ["."] }', 'FsRead = { prefixes = ["/"] }'),
    ],
)
def test_tool_that_marks_nothing_is_there_with_an_unlimited_grant_only(
    granting: Any, tool: str, limited: str, whole: str
) -> None:
    arguments = {"weather": {"city": "Oslo"}, "census": {"pattern": "*"}}[tool]
    assert told(granting(limited).decide(tool, arguments)) == (Verdict.DENY, "lookup", "capability-unjudgeable")
    assert told(granting(whole).decide(tool, arguments)) == ALLOW


def test_call_that_leaves_out_what_it_would_be_judged_by_needs_an_unlimited_grant(granting: Any) -> None:
    limited = granting('NetRead = { allowlist = ["*.example.org"] }')
    decision = limited.decide("news", {})
    assert told(decision) == (Verdict.DENY, "capability", "capability-unjudgeable")
    assert line(decision) == 5
    assert told(limited.decide("news", {"url": "https://example.org/"})) == ALLOW
    assert told(granting('NetRead = { allowlist = ["*"] }').decide("news", {})) == ALLOW


def test_paths_count_by_whole_components(granting: Any) -> None:
    world = granting('FsRead = { prefixes = ["data/in"] }')
    for path in ("data/in", "data/in/a", "./data/in/../in/b"):
        assert told(world.decide("peek", {"path": path})) == ALLOW, path
    for path in ("data/inner", "data", "data/in/../out", "docs/a.md"):
        decision = world.decide("peek", {"path": path})
        assert told(decision) == (Verdict.DENY, "capability", "path-not-granted"), path
        assert line(decision) == 5


def test_prefixes_and_paths_are_compared_with_links_resolved(granting: Any, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    world = granting('FsRead = { prefixes = ["linked"] }')
    (world.folder / "linked").symlink_to(real)
    (world.folder / "plain").mkdir()
    (real / "out").symlink_to(world.folder / "plain")
    decision = world.decide("peek", {"path": "linked/a"})
    assert told(decision) == ALLOW
    assert decision.arguments == {"path": str(real / "a")}
    assert world.decide("peek", {"path": str(real / "a")}).verdict is Verdict.ALLOW
    assert world.decide("peek", {"path": "linked/out/a"}).code == "path-not-granted"


def test_an_attached_source_grants_other_tools_nothing(granting: Any) -> None:
    world = granting('FsRead = { prefixes = ["elsewhere"] }')
    assert world.decide("peek", {"path": "docs/a.md"}).code == "path-not-granted"
    (world.docs / "a.md").write_text("fine")
    assert told(world.decide("file", {"op": "read", "path": "a.md"})) == ALLOW


def test_reading_and_writing_below_a_prefix_are_granted_apart(granting: Any) -> None:
    world = granting('FsRead = { prefixes = ["."] }', 'FsWrite = { prefixes = ["out"] }')
    assert told(world.decide("duplicate", {"source": "in/a", "target": "out/a"})) == ALLOW
    assert world.decide("duplicate", {"source": "out/a", "target": "in/a"}).code == "path-not-granted"


def test_tables_and_variables_go_by_exact_name(granting: Any) -> None:
    world = granting('DbRead = { tables = ["public.users"] }', 'EnvRead = { vars = ["HOME"] }')
    assert told(world.decide("rows", {"table": "public.users"})) == ALLOW
    assert told(world.decide("setting", {"name": "HOME"})) == ALLOW
    for table in ("users", "Public.users", "public.users ", "*"):
        assert world.decide("rows", {"table": table}).code == "table-not-granted"
    for name in ("home", "PATH", "*"):
        assert world.decide("setting", {"name": name}).code == "variable-not-granted"
    everything = granting('DbRead = { tables = ["*"] }')
    assert told(everything.decide("rows", {"table": "anything"})) == ALLOW


def test_kind_without_arguments_passes_when_granted(granting: Any) -> None:
    assert told(granting("Exec = {}").decide("build", {})) == ALLOW


def test_checks_say_what_was_judged(granting: Any) -> None:
    world = granting('NetRead = { allowlist = ["*.example.org"] }')
    state = world.gate.state("archivist", "crawl", {"urls": ["https://a.example.org/", "https://b.example.net:8443/"]})
    plan = state.agent.plan("crawl") if state.agent else None
    assert plan is not None
    state.tool = state.plan = plan
    state.operation = state.chosen = plan.operations[""]
    state.arguments = {"urls": ["https://a.example.org/", "https://b.example.net:8443/"]}
    ARGUMENTS.run(state)
    CAPABILITY.run(state)
    assert state.checks == (
        CapabilityCheck(CapabilityKind.NET_READ, allowed=True, target="a.example.org:443"),
        CapabilityCheck(CapabilityKind.NET_READ, allowed=False, target="b.example.net:8443"),
    )


@pytest.mark.parametrize(
    ("own", "grants", "expected"),
    [
        ((None, None), [Exec()], (None, None)),
        ((5.0, 100), [Exec()], (5.0, 100)),
        ((5.0, 100), [Exec(2.0, 50)], (2.0, 50)),
        ((1.0, 10), [Exec(2.0, 50)], (1.0, 10)),
        ((None, None), [Exec(2.0, 50), Exec(3.0, 40)], (3.0, 50)),
        ((None, 100), [Exec(2.0, 50), Exec()], (None, 100)),
        ((None, None), [NetRead(("*",))], (None, None)),
    ],
)
def test_bounds_are_the_narrower_of_tool_and_grant(
    own: tuple[float | None, int | None], grants: list[Capability], expected: tuple[float | None, int | None]
) -> None:
    bounds = ResourceBounds(cpu_s=own[0], memory_bytes=own[1])
    found = bounds_of(bounds, {CapabilityKind.EXEC}, Agent("a", capabilities=tuple(grants)))
    assert (found.cpu_s, found.memory_bytes) == expected
    assert bounds_of(bounds, (), Agent("a", capabilities=tuple(grants))) == bounds


def test_modules_have_the_memory_of_the_grant() -> None:
    agent = Agent("a", capabilities=(WasmExec(1_000, 64), WasmExec(2_000, 32)))
    assert bounds_of(ResourceBounds(), {CapabilityKind.WASM_EXEC}, agent).memory_bytes == 64


def test_a_table_says_nothing_about_which_variables_a_tool_reads(granting: Any) -> None:
    world = granting('DbRead = { tables = ["prefs"] }', 'EnvRead = { vars = ["prefs"] }')
    decision = world.decide("settings_row", {"table": "prefs"})
    assert told(decision) == (Verdict.DENY, "capability", "capability-unjudgeable")


def test_an_equals_sign_is_refused_in_the_name_of_a_variable_only(granting: Any) -> None:
    world = granting('DbRead = { tables = ["a=b"] }', 'EnvRead = { vars = ["a"] }')
    assert told(world.decide("rows", {"table": "a=b"})) == ALLOW
    assert told(world.decide("setting", {"name": "a=b"})) == (Verdict.DENY, "arguments", "bad-name")
