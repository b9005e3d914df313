"""What a program puts together by hand: other collections than tuples count, and what is none says so at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from gatewright.gate import Gate
from gatewright.policy.capability import NetRead
from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.rule import ToolRule
from gatewright.policy.rulekind import AllowedOperations
from gatewright.tools.registry import ToolRegistry
from tests.engine.gate.world import CounterTool

KINDS: list[Callable[[Iterable[Any]], Any]] = [tuple, list, iter, lambda given: dict.fromkeys(given).keys()]


@pytest.mark.parametrize("of", KINDS)
def test_any_collection_counts_as_a_tuple_does(of: Callable[[Iterable[Any]], Any]) -> None:
    registry = ToolRegistry()
    registry.register(CounterTool())
    rule = ToolRule("counter", AllowedOperations(frozenset({"up"})))

    def agent() -> Agent:
        return Agent("a", tools=of(["counter"]), tool_rules=of([rule]), capabilities=of([NetRead(("*",))]))

    wanted = Policy(agents={"a": agent()})
    for policy in (Policy(agents=of([agent()])), Policy(agents={"a": agent()}, rules=of([]), catalogs=of([]))):
        gate = Gate(policy, registry)
        assert policy == wanted
        assert hash(policy) == hash(wanted)
        assert [gate.decide("a", "counter", {"op": op}).verdict for op in ("up", "down")] == ["allow", "deny"]
    source = Source("s", ".")
    assert Policy(sources=of([source])).source("s") == source


@pytest.mark.parametrize("wrong", ["counter", b"x", 7, object()])
@pytest.mark.parametrize("name", ["tools", "sources", "tool_rules", "capabilities"])
def test_one_text_or_nothing_of_the_kind_in_the_place_of_several_is_an_error(name: str, wrong: Any) -> None:
    with pytest.raises(TypeError, match=f"`{name}` of Agent takes several"):
        Agent("a", **{name: wrong})


@pytest.mark.parametrize("wrong", ["a", 7, ("a",), [None]])
def test_agents_that_are_none_are_an_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="`agents` of Policy takes"):
        Policy(agents=wrong)
