"""The names that programs import: all there, loaded when they are asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gatewright

CONTRACT = {
    "load_policy",
    "save_policy",
    "Policy",
    "ToolRule",
    "Gate",
    "AgentView",
    "ToolRegistry",
    "Tool",
    "tool",
    "operation",
    "ToolCallAccumulator",
    "PermissionBroker",
    "DecisionProof",
    "Session",
    "SessionStore",
    "AuditLog",
    "ToolExecutionContext",
    "Verdict",
    "Violation",
}


def test_every_name_of_the_contract_is_there() -> None:
    assert set(gatewright.__all__) >= CONTRACT
    assert set(gatewright.__all__) <= set(dir(gatewright))


@pytest.mark.parametrize("name", gatewright.__all__)
def test_name_loads(name: str) -> None:
    assert getattr(gatewright, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute `Gatee`"):
        gatewright.__getattr__("Gatee")


def test_gate_has_every_verb_of_the_contract() -> None:
    for verb in ("view", "decide", "call", "call_many", "verify", "reload", "check"):
        assert callable(getattr(gatewright.Gate, verb))


def test_importing_the_package_loads_nothing_of_it() -> None:
    script = "import sys, gatewright; print([name for name in sys.modules if name.startswith('gatewright.')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
