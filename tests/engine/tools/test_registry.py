"""The registry: names and majors, undo, callbacks, threads."""

import threading
from typing import cast

import pytest

from gatewright.base.errors import AlreadyRegistered, RegistrationError
from gatewright.policy.rule import AllowedOperations, MaxCalls, ToolRule
from gatewright.tools import FunctionTool, Normalization, Tool, ToolRegistry, tool


def made(name: str, version: str = "1.0.0") -> FunctionTool:
    @tool(name=name, version=version)
    async def function() -> str:
        """Do it."""
        return name

    return function


def test_bare_name_means_the_highest_major() -> None:
    registry = ToolRegistry()
    for version in ("2.0.0", "10.1.0", "1.9.9"):
        registry.register(made("recall", version))

    highest, second = registry.get("recall"), registry.get("recall", 2)

    assert highest is not None
    assert highest.version == "10.1.0"
    assert second is not None
    assert second.version == "2.0.0"
    assert registry.get("recall", 3) is None
    assert registry.get("other") is None


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (ToolRule("plain", AllowedOperations(frozenset({"one"}))), "`plain` has no operations that a rule could allow"),
        (ToolRule("plain", MaxCalls(1), ("operation:one",)), "a rule names `one`, which `plain` does not have"),
    ],
)
def test_tool_whose_own_rule_does_not_fit_it_is_refused(rule: ToolRule, why: str) -> None:
    plain = made("plain")
    plain.tool_rules = (rule,)
    registry = ToolRegistry()

    with pytest.raises(RegistrationError, match=f"tool `plain`: one of its `tool_rules` does not fit it: {why}"):
        registry.register(plain)
    assert registry.tools() == ()


def test_same_name_and_major_is_never_a_replacement() -> None:
    registry = ToolRegistry()
    first = made("recall", "1.0.0")
    registry.register(first)

    with pytest.raises(AlreadyRegistered, match="`recall` with major version 1"):
        registry.register(made("recall", "1.5.0"))
    assert registry.get("recall") is first
    assert registry.revision == 1


def test_undo_withdraws_once() -> None:
    registry = ToolRegistry()
    withdraw = registry.register(made("a"))
    withdraw()
    later = made("a")
    registry.register(later)

    withdraw()

    assert registry.get("a") is later
    assert registry.revision == 3


def test_tools_are_in_the_order_of_name_and_major() -> None:
    registry = ToolRegistry()
    for name, version in (("b", "1.0.0"), ("a", "10.0.0"), ("a", "2.0.0")):
        registry.register(made(name, version))

    assert [(facts.name, facts.major) for facts in registry.facts()] == [("a", 2), ("a", 10), ("b", 1)]
    assert [found.name for found in registry.tools()] == ["a", "a", "b"]


def test_what_is_no_tool_is_refused() -> None:
    with pytest.raises(RegistrationError, match="`str` is no tool"):
        ToolRegistry().register(cast("Tool", "file"))


def test_tool_whose_declaration_was_spoilt_later_is_refused() -> None:
    spoilt = made("a")
    spoilt.normalization = None

    with pytest.raises(RegistrationError, match="declares no `normalization`"):
        ToolRegistry().register(spoilt)


def test_tool_that_never_got_a_function_is_refused() -> None:
    class Empty(Tool, abstract=True):
        name = "empty"
        description = "Does nothing."
        result_type = made("a").result_type
        normalization = Normalization.JSON

    with pytest.raises(RegistrationError, match="has no operations and no function"):
        ToolRegistry().register(Empty())


def test_snapshot_in_hand_does_not_change() -> None:
    registry = ToolRegistry()
    registry.register(made("a"))
    before = registry.tools()

    registry.register(made("b"))

    assert [found.name for found in before] == ["a"]


def test_only_one_of_many_threads_registers_a_name() -> None:
    registry = ToolRegistry()
    barrier = threading.Barrier(8)
    outcomes: list[str] = []

    def work(number: int) -> None:
        own = [made(f"own{number}_{i}") for i in range(20)]
        shared = [made(f"shared{i}") for i in range(20)]
        barrier.wait()
        for mine, ours in zip(own, shared, strict=True):
            registry.register(mine)
            try:
                registry.register(ours)
            except AlreadyRegistered:
                outcomes.append("refused")
            else:
                outcomes.append("registered")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert outcomes.count("registered") == 20
    assert len(registry.tools()) == registry.revision == 8 * 20 + 20
