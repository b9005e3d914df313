"""Scopes of capabilities as one line of text, and what is refused there."""

import pytest

from gatewright.base.errors import EditRefused, Report
from gatewright.policy.agentedit import read_scope, scope_example
from gatewright.policy.capability import (
    AdvancedEdit,
    Capability,
    CapabilityKind,
    ClockRead,
    DbRead,
    EnvRead,
    Exec,
    FsRead,
    NetRead,
    WasmExec,
    check_capabilities,
    kind_of,
)


@pytest.mark.parametrize(
    ("capability", "text"),
    [
        (NetRead(("*.example.org", "api.x.org:8443")), "*.example.org, api.x.org:8443"),
        (FsRead(("a,b", "notes")), '"a,b", notes'),
        (FsRead((" a", "b ")), '" a", "b "'),
        (DbRead(("*",)), "*"),
        (EnvRead(("LANG",)), "LANG"),
        (Exec(2.0, 64 * 2**20), "cpu 2 s, memory 64MiB"),
        (Exec(), ""),
        (WasmExec(1_000_000, None), "fuel 1000000"),
        (WasmExec(1), "fuel 1"),
        (WasmExec(10**18 - 1), f"fuel {'9' * 18}"),
        (ClockRead(), ""),
        (AdvancedEdit(), ""),
    ],
)
def test_a_scope_is_typed_as_it_is_shown(capability: Capability, text: str) -> None:
    assert capability.text == text
    assert read_scope(kind_of(capability), text) == capability


@pytest.mark.parametrize("kind", [kind for kind in CapabilityKind if scope_example(kind)])
def test_every_example_can_be_typed(kind: CapabilityKind) -> None:
    assert kind_of(read_scope(kind, scope_example(kind))) is kind


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (
            CapabilityKind.NET_READ,
            "",
            "an empty `allowlist` grants nothing: list what to grant, or leave `NetRead` out",
        ),
        (
            CapabilityKind.NET_READ,
            "http://x.org",
            "`http://x.org`: a host pattern is a host without scheme, user or path",
        ),
        (CapabilityKind.NET_READ, "a.org, a.org", "`a.org` stands here twice"),
        (CapabilityKind.FS_READ, "../up", "`../up`: a prefix may not contain `..`: name the folder itself"),
        (CapabilityKind.FS_READ, "a\x1fb", "`a\\u001fb`: a prefix may not hold control characters"),
        (CapabilityKind.FS_READ, "a\x7fb", "`a\\u007fb`: a prefix may not hold control characters"),
        (CapabilityKind.FS_READ, "a\\b", "`a\\b`: names in a prefix are separated by `/`"),
        (CapabilityKind.FS_READ, "~/b", "`~/b`: `~` is not expanded in a prefix"),
        (
            CapabilityKind.FS_READ,
            'notes, "open',
            "column 7: separate names by commas, and put a name with a comma in quotes",
        ),
        (CapabilityKind.DB_READ, "a\nb", "`a\\u000ab`: a name may not hold characters that cannot be seen"),
        (
            CapabilityKind.EXEC,
            "cpu soon",
            "column 1: a duration is `30`, `1.5 s`, `2 min`, `100 ms` or `1 h 30 min`",
        ),
        (CapabilityKind.EXEC, "fuel 3", "`fuel 3`: say `cpu` or `memory` and a value"),
        (CapabilityKind.EXEC, "cpu", "`cpu`: say `cpu` or `memory` and a value"),
        (CapabilityKind.EXEC, "cpu 1 s, cpu 2 s", "`cpu` stands here twice"),
        (
            CapabilityKind.EXEC,
            "memory lots",
            'a size is bytes (`65536`) or text with a unit (`"64MiB"`, `"500KB"`), from one byte up',
        ),
        (CapabilityKind.EXEC, "cpu 0", "`cpu_limit` must be longer than nothing"),
        (CapabilityKind.WASM_EXEC, "cpu 3", "`cpu 3`: say `fuel` or `memory` and a value"),
        *(
            (CapabilityKind.WASM_EXEC, f"fuel {fuel}", f"`{fuel}`: fuel is a whole number of units, at least 1")
            for fuel in ("0", "lots", "-1", f"1{'0' * 18}")
        ),
        (CapabilityKind.CLOCK_READ, "x", "`ClockRead` has no scope"),
    ],
)
def test_what_cannot_be_granted_is_refused_in_words(kind: CapabilityKind, text: str, said: str) -> None:
    with pytest.raises(EditRefused) as refused:
        read_scope(kind, text)
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        (' "a ", , b,', FsRead(("a ", "b"))),
        ("cpu 1 min 30 s", Exec(90.0)),
        ("memory 64", Exec(None, 64)),
        ('"fuel 1,000", memory 1', WasmExec(1000, 1)),
        ("fuel 1_000", WasmExec(1000)),
        (" ", AdvancedEdit()),
    ],
)
def test_a_scope_may_be_typed_in_other_ways(text: str, capability: Capability) -> None:
    assert read_scope(kind_of(capability), text) == capability


SIZE = 'a size is bytes (`65536`) or text with a unit (`"64MiB"`, `"500KB"`), from one byte up'
TIME = 'a duration is seconds (`30`), text with a unit (`"1.5s"`, `"2m"`, `"1h"`) or `{ secs, nanos }`'


@pytest.mark.parametrize(
    ("capabilities", "faults"),
    [
        ((Exec(0.0),), ["0.Exec.cpu_limit bad-value: `cpu_limit` must be longer than nothing"]),
        ((Exec(-1.0, 0),), [f"0.Exec.cpu_limit bad-duration: {TIME}", f"0.Exec.mem_limit bad-value: {SIZE}"]),
        (
            (WasmExec(0, 0),),
            ["0.WasmExec.fuel bad-value: `fuel` must be 1 or more", f"0.WasmExec.memory bad-value: {SIZE}"],
        ),
        ((WasmExec(1, 1), ClockRead()), []),
        (
            (NetRead(("a.org", "a.org", "b c")),),
            [
                "0.NetRead.allowlist.1 duplicate: `a.org` stands here twice",
                "0.NetRead.allowlist.2 bad-host: `b c`: the host holds a character that no host has",
            ],
        ),
        ((FsRead(("~",)),), ["0.FsRead.prefixes.0 bad-prefix: `~`: `~` is not expanded in a prefix"]),
        ((EnvRead((" A",)),), ["0.EnvRead.vars.0 bad-value: ` A`: a name may not begin or end with a space"]),
        ((Exec(), Exec(1.0)), ["1 duplicate: `Exec` is granted already"]),
        ((NetRead(("a",)), NetRead(("b",))), []),
        ((NetRead(("a",)), NetRead(("a",))), ["1 duplicate: `NetRead` is granted already"]),
    ],
)
def test_what_is_wrong_with_grants_made_in_code_is_told(
    capabilities: tuple[Capability, ...], faults: list[str]
) -> None:
    report = Report()
    check_capabilities(((one, (at,)) for at, one in enumerate(capabilities)), report)
    found = [f"{'.'.join(map(str, one.path))} {one.code}: {one.message}" for one in report.findings]
    assert found == faults
