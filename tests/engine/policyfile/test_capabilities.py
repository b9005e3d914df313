"""Capabilities, tool settings and the required tools of a source as a file says them."""

import pytest

from gatewright.base.errors import Place
from gatewright.policy.capability import (
    AdvancedEdit,
    Capability,
    ClockRead,
    DbRead,
    DbWrite,
    EnvRead,
    Exec,
    FsRead,
    FsWrite,
    NetRead,
    NetWrite,
    WasmExec,
)
from gatewright.policy.document import OutputCheck, ToolSettings
from gatewright.policy.rule import MaxCalls, ToolRule
from gatewright.policy.verdict import SafetyTier, Verdict
from tests.engine.policyfile.catalog import load, policy_of

HEAD = "gatewright = 1\n"
SOURCE = '[[sources]]\nid = "d"\ntype = "file"\nbase_path = "x"\n'
CAPABILITIES = "[agents.a]\ntools = []\ncapabilities = "

SPELLINGS: list[tuple[str, Capability]] = [
    ("{ NetRead = { allowlist = ['*', '*.x.com', 'x.com:443'] } }", NetRead(("*", "*.x.com", "x.com:443"))),
    ("{ NetWrite = { allowlist = ['[::1]:80'] } }", NetWrite(("[::1]:80",))),
    ("{ FsRead = { prefixes = ['.', '/srv'] } }", FsRead((".", "/srv"))),
    ("{ FsWrite = { prefixes = ['notes'] } }", FsWrite(("notes",))),
    ("{ DbRead = { tables = ['*'] } }", DbRead(("*",))),
    ("{ DbWrite = { tables = ['notes'] } }", DbWrite(("notes",))),
    ("{ EnvRead = { vars = ['LANG'] } }", EnvRead(("LANG",))),
    ("{ Exec = { cpu_limit = '2m', mem_limit = '64MB' } }", Exec(120, 64_000_000)),
    ("{ Exec = { cpu_limit = 1.5, mem_limit = 4096 } }", Exec(1.5, 4096)),
    ("'Exec'", Exec()),
    ("{ WasmExec = { fuel = 1_000_000, memory = '1.5 MiB' } }", WasmExec(1_000_000, 1_572_864)),
    ("{ WasmExec = {} }", WasmExec()),
    ("'ClockRead'", ClockRead()),
    ("{ ClockRead = {} }", ClockRead()),
    ("'AdvancedEdit'", AdvancedEdit()),
]


@pytest.mark.parametrize(("written", "capability"), SPELLINGS)
def test_each_kind_of_capability_is_read(written: str, capability: Capability) -> None:
    loaded = load(f"{HEAD}{CAPABILITIES}[{written}]\n")

    assert not loaded.problems
    assert loaded.policy is not None
    assert loaded.policy.agents["a"].capabilities == (capability,)


def test_several_lists_of_one_kind_are_allowed() -> None:
    one, other = "{ NetRead = { allowlist = ['a.org'] } }", "{ NetRead = { allowlist = ['b.org'] } }"
    policy = policy_of(f"{HEAD}{CAPABILITIES}[{one}, {other}]\n")

    assert policy.agents["a"].capabilities == (NetRead(("a.org",)), NetRead(("b.org",)))


FAULTS = [
    ("['ClokRead']", "unknown-variant", 17, "ClockRead"),
    ("[{ netread = {} }]", "unknown-variant", 19, "NetRead"),
    ("['NetRead']", "bad-value", 17, None),
    ("[3]", "wrong-type", 17, None),
    ("[{ Exec = 3 }]", "wrong-type", 26, None),
    ("[{ Exec = {}, ClockRead = {} }]", "bad-value", 17, None),
    ("[{ NetRead = {} }]", "missing-key", 19, None),
    ("[{ NetRead = { allowlist = [] } }]", "bad-value", 43, None),
    ("[{ NetRead = { alowlist = ['*'], allowlist = ['*'] } }]", "unknown-key", 31, "allowlist"),
    ("[{ NetRead = { allowlist = ['http://x.com'] } }]", "bad-host", 44, None),
    ("[{ NetRead = { allowlist = ['x.com', 'x.com'] } }]", "duplicate", 53, None),
    ("[{ FsRead = { prefixes = ['a/../b'] } }]", "bad-prefix", 42, None),
    ('[{ FsRead = { prefixes = ["a\\u0000"] } }]', "bad-prefix", 42, None),
    ("[{ FsWrite = { prefixes = ['~/notes'] } }]", "bad-prefix", 43, None),
    ("[{ DbRead = { tables = [' '] } }]", "bad-value", 40, None),
    ("[{ Exec = { cpu_limit = 0 } }]", "bad-value", 40, None),
    ("[{ Exec = { mem_limit = '64 megs' } }]", "bad-value", 40, None),
    ("[{ WasmExec = { fuel = 0 } }]", "bad-value", 39, None),
    ("[{ ClockRead = { zone = 'x' } }]", "unknown-key", 33, None),
    ("['ClockRead', { ClockRead = {} }]", "duplicate", 30, None),
    ("['Exec', { Exec = { cpu_limit = 3 } }]", "duplicate", 25, None),
]


@pytest.mark.parametrize(("written", "code", "column", "near"), FAULTS)
def test_a_fault_of_a_capability_is_named_with_its_place(
    written: str, code: str, column: int, near: str | None
) -> None:
    (problem,) = load(f"{HEAD}{CAPABILITIES}{written}\n").problems

    assert problem.is_error
    assert (problem.code, problem.place, problem.near_miss) == (code, Place("policy.toml", 4, column), near)


def test_the_settings_of_a_tool_are_read() -> None:
    tiers = "safety_tier = 'privileged'\noperation_tiers = { read = 'read_only', save = 'side_effecting' }\n"
    rest = "scrub = false\ndescription = 'Our files'\nextra_arguments = 'deny'\noutput = 'warn'\n"
    policy = policy_of(f"{HEAD}[tools.file]\ntimeout = '2s'\n{tiers}{rest}")

    assert policy.tools["file"] == ToolSettings(
        2,
        SafetyTier.PRIVILEGED,
        {"read": SafetyTier.READ_ONLY, "save": SafetyTier.SIDE_EFFECTING},
        scrub=False,
        output=OutputCheck.WARN,
        description="Our files",
        extra_arguments=Verdict.DENY,
    )


TOOL_FAULTS = [
    ("[tools.file]\nsafety_tier = 'privilegd'\n", "unknown-variant", 3, 15, "privileged"),
    ("[tools.file]\noperation_tiers = { raed = 'read_only' }\n", "unknown-operation", 3, 21, "read"),
    ("[tools.file]\noperation_tiers = { read = 'none' }\n", "unknown-variant", 3, 28, None),
    ("[tools.calc]\noperation_tiers = { read = 'read_only' }\n", "operations-on-plain-tool", 3, 1, None),
    ("[tools.file]\nextra_arguments = 'ask'\n", "unknown-variant", 3, 19, None),
    ("[tools.file]\noutput = 'of'\n", "unknown-variant", 3, 10, "off"),
    ("[tools.file]\nscrub = 'no'\n", "wrong-type", 3, 9, None),
    ("[tools.file]\ndescription = ' '\n", "bad-value", 3, 15, None),
    ("[tools.file]\noperations = ['read']\n", "operations-declared", 3, 1, None),
    ("[tools.file]\noperation_field = 'op'\n", "operations-declared", 3, 1, None),
    ("[tools.file]\ntimeout = 0\n", "bad-value", 3, 11, None),
]


@pytest.mark.parametrize(("body", "code", "line", "column", "near"), TOOL_FAULTS)
def test_a_fault_of_a_tools_settings_is_named_with_its_place(
    body: str, code: str, line: int, column: int, near: str | None
) -> None:
    (problem,) = load(HEAD + body).problems

    assert problem.is_error
    assert (problem.code, problem.place, problem.near_miss) == (code, Place("policy.toml", line, column), near)


REQUIRED = "[[sources.required_tools]]\ntool_name = 'file'\n"


def test_the_required_tools_of_a_source_are_read_with_their_places() -> None:
    loaded = load(
        f"{HEAD}{SOURCE}{REQUIRED}rule_type = {{ MaxCalls = 3 }}\nconditions = ['operation:save']\n"
        f"{REQUIRED}rule_type = 'Needed'\n"
    )

    assert not loaded.problems
    assert loaded.policy is not None
    first, second = loaded.policy.sources[0].required_tools
    assert first == ToolRule("file", MaxCalls(3), ("operation:save",))
    assert second.kind == "Needed"
    assert str(loaded.places.place(("sources", "d", "required_tools", 1))) == "policy.toml:10:1"


REQUIRED_FAULTS = [
    ("rule_type = 'ExitLoop'\n", "not-for-a-source", 8, 13, None),
    ("rule_type = { Periodic = '1m' }\n", "not-for-a-source", 8, 13, None),
    ("rule_type = { AllowedOperations = ['raed'] }\n", "unknown-operation", 8, 36, "read"),
    ("rule_type = 'Needed'\nid = ''\n", "bad-value", 9, 6, None),
    ("rule_type = { MaxCall = 3 }\n", "unknown-variant", 8, 13, "MaxCalls"),
    ("", "missing-key", 6, 1, None),
]


@pytest.mark.parametrize(("body", "code", "line", "column", "near"), REQUIRED_FAULTS)
def test_a_fault_of_a_required_tool_is_named_with_its_place(
    body: str, code: str, line: int, column: int, near: str | None
) -> None:
    (problem,) = load(f"{HEAD}{SOURCE}{REQUIRED}{body}").problems

    assert problem.is_error
    assert (problem.code, problem.place, problem.near_miss) == (code, Place("policy.toml", line, column), near)
