"""Scopes of capabilities as one line of text, and what is refused there."""

import pytest

from gatewright.base.errors import EditRefused
from gatewright.policy.capabilityedit import read_scope, scope_example
from gatewright.policy.kinds.capability import (
    AdvancedEdit,
    Capability,
    CapabilityKind,
    ClockRead,
    EnvRead,
    Exec,
    FsRead,
    NetRead,
    WasmExec,
    kind_of,
)


@pytest.mark.parametrize(
    ("capability", "text"),
    [
        (NetRead(("*.example.org", "api.x.org:8443")), "*.example.org, api.x.org:8443"),
        (FsRead(("a,b", "notes")), '"a,b", notes'),
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
        (CapabilityKind.NET_READ, "", "grants nothing"),
        (CapabilityKind.NET_READ, "http://x.org", "http"),
        (CapabilityKind.NET_READ, "a.org, a.org", "stands here twice"),
        (CapabilityKind.FS_READ, "../up", "may not go up"),
        (CapabilityKind.FS_READ, 'notes, "open', "column 7"),
        (CapabilityKind.EXEC, "cpu soon", "column 1"),
        (CapabilityKind.EXEC, "fuel 3", "say `cpu` or `memory` and a value"),
        (CapabilityKind.EXEC, "memory lots", "a size is bytes"),
        (CapabilityKind.EXEC, "cpu 0", "longer than nothing"),
        (CapabilityKind.WASM_EXEC, "fuel 0", "at least 1"),
        (CapabilityKind.WASM_EXEC, "fuel lots", "a whole number of units"),
        (CapabilityKind.WASM_EXEC, "fuel -1", "a whole number of units"),
        (CapabilityKind.WASM_EXEC, f"fuel 1{'0' * 18}", "a whole number of units"),
        (CapabilityKind.CLOCK_READ, "x", "has no scope"),
    ],
)
def test_what_cannot_be_granted_is_refused_in_words(kind: CapabilityKind, text: str, said: str) -> None:
    with pytest.raises(EditRefused, match=said):
        read_scope(kind, text)
