"""Which capabilities a tool declares, and the digest that tells one declaration from another."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import pytest
from pydantic import BaseModel

from gatewright.base.errors import RegistrationError
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins import builtin_tools, file_tool
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import Tool, ToolExecutionContext, operation, tool
from gatewright.tools.declaration import Normalization, ResultType, SideEffect
from gatewright.tools.parameter import UrlParameter
from tests.engine.tools.declared import ObjectTool

READ, EXEC = CapabilityKind.NET_READ, CapabilityKind.EXEC


def needed(one: Tool) -> dict[str, frozenset[CapabilityKind]]:
    return {row.name: row.capabilities for row in one.facts().operations}


class Shell(ObjectTool):
    name = "shell"
    side_effects = frozenset({SideEffect.PROCESS_SPAWN, SideEffect.NET_READ})

    @operation
    async def run(self, command: str, times: int = 1) -> JsonValue:
        """Run it."""
        return {"command": command, "times": times}

    @operation(capabilities=())
    async def info(self) -> JsonValue:
        """Tell about it."""
        return {}


def test_undeclared_needs_are_the_kinds_of_the_side_effects() -> None:
    assert needed(Shell()) == {"run": frozenset({EXEC, READ}), "info": frozenset()}


def test_facts_name_the_parameters_and_those_that_every_call_has() -> None:
    row = Shell().facts().operations[0]

    assert (row.parameters, row.required) == (("command", "times"), ("command",))


def test_declared_needs_take_the_place_of_side_effects() -> None:
    class Declared(Shell):
        name = "declared"
        required_capabilities = ("ClockRead",)
        operation_capabilities = {"info": {"EnvRead"}}  # noqa: RUF012 as an author writes it

        @operation
        async def info(self) -> JsonValue:
            """Tell about it."""
            return {}

    assert needed(Declared()) == {
        "run": frozenset({CapabilityKind.CLOCK_READ}),
        "info": frozenset({CapabilityKind.ENV_READ}),
    }


def test_function_declares_its_needs() -> None:
    @tool(required_capabilities=["NetRead"])
    async def look(host: str) -> dict[str, str]:
        """Look at it."""
        return {"host": host}

    assert needed(look) == {"": frozenset({READ})}


def test_required_address_needs_its_kind_and_can_be_judged_by_it() -> None:
    @tool()
    async def look(url: Annotated[str, UrlParameter()]) -> dict[str, str]:
        """Look at it."""
        return {"url": url}

    (row,) = look.facts().operations
    assert row.capabilities == {READ}
    assert READ in row.judged


def test_model_operations_declare_their_needs() -> None:
    class Op(StrEnum):
        GET = "get"
        PUT = "put"

    class Call(BaseModel):
        op: Op

    class Web(ObjectTool):
        name = "web"
        input_model = Call
        operation_capabilities = {"get": ["NetRead"], "put": ["NetRead", "NetWrite"]}  # noqa: RUF012 as an author writes it

        async def run(self, arguments: Call, context: ToolExecutionContext) -> JsonValue:
            return {"op": arguments.op, "by": context.agent_id}

    assert needed(Web()) == {"get": frozenset({READ}), "put": frozenset({READ, CapabilityKind.NET_WRITE})}


def test_unknown_kind_is_refused_with_the_likely_one() -> None:
    with pytest.raises(RegistrationError, match=r"`NetRaed` is no kind of capability \(did you mean `NetRead`"):

        class Wrong(ObjectTool):  # pyright: ignore[reportUnusedClass]
            name = "wrong"

            @operation(capabilities=["NetRaed"])
            async def get(self) -> JsonValue:
                """Get it."""
                return {}

    with pytest.raises(RegistrationError, match="`Magic`"):

        @tool(required_capabilities=["Magic"])
        async def wand() -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]
            """Wave it."""
            return {}


def test_one_text_is_no_collection_of_kinds() -> None:
    with pytest.raises(RegistrationError, match="not one text"):

        @tool(required_capabilities="NetRead")
        async def look() -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]
            """Look."""
            return {}


def test_needs_of_an_unknown_operation_are_refused() -> None:
    with pytest.raises(RegistrationError, match="`burn` of `operation_capabilities` is no operation"):

        class Wrong(Shell):  # pyright: ignore[reportUnusedClass]
            name = "wrong"
            operation_capabilities = {"burn": ["Exec"]}  # noqa: RUF012 as an author writes it


def test_file_and_block_tools_need_a_source_and_no_grant_but_for_patches() -> None:
    for one in (file_tool(), *builtin_tools()):
        if one.name in {"file", "block"}:
            grants = {name: kinds for name, kinds in needed(one).items() if kinds}
            assert grants == ({"patch": {CapabilityKind.ADVANCED_EDIT}} if one.name == "file" else {})


def test_digest_is_the_same_for_the_same_declaration_and_another_for_any_change() -> None:
    class Other(Shell):
        name = "shell"
        description = "Something else."

    class Milder(Shell):
        name = "shell"
        safety_tier = SafetyTier.READ_ONLY

    class Longer(Shell):
        name = "shell"

        @operation
        async def stop(self) -> JsonValue:
            """Stop it."""
            return {}

    digests = {one().digest for one in (Shell, Other, Milder, Longer)}
    assert Shell().digest == Shell().digest
    assert len(digests) == 4
    assert all(len(one) == 64 and set(one) <= set("0123456789abcdef") for one in digests)


def test_the_tier_of_a_tool_without_operations_is_part_of_its_digest() -> None:
    async def look(name: str) -> str:
        """Look at something.

        Args:
            name: What.
        """
        return name

    def of(tier: SafetyTier) -> Tool:
        return tool(safety_tier=tier, result_type=ResultType.STRING, normalization=Normalization.JSON)(look)

    assert of(SafetyTier.READ_ONLY).digest != of(SafetyTier.PRIVILEGED).digest
