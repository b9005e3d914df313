"""The examples of the page on the policy file load as they stand there."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gatewright.gate import Gate
from gatewright.policy.rule import RuleKind
from gatewright.policy.verdict import Verdict
from gatewright.policyfile import CatalogFacts
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.registry import ToolRegistry
from tests.engine.policyfile.catalog import CALENDAR, STRANGERS, known_with, load, stranger

PAGE = Path(__file__).parents[3] / "docs" / "policy.md"
SOME: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
MAIL: dict[str, Any] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("recipients", "cc", "bcc"), SOME),
        "subject": {"type": "string"},
        "attachment": {"type": "string"},
    },
    "required": ["recipients"],
}
SEND_MAIL = DefinedTool(ToolDefinition("send_mail", "Sends a mail.", MAIL), origin="there")
KNOWN = known_with(
    *STRANGERS,
    SEND_MAIL,
    stranger("convert", input=None, target=None, route=None),
    manifests={"calendar.json": CatalogFacts(tuple(tool.facts() for tool in CALENDAR))},
)
BOTH: list[Any] = ["ann@example.org", "ben@example.org"]


def test_every_example_of_the_page_loads() -> None:
    found = re.findall(r"(<!-- not run: .*?-->\n)?```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    blocks = [block for dated, block in found if not dated]
    loaded = load("".join(blocks), known=KNOWN)

    assert len(blocks) >= 6
    assert not loaded.problems, "\n".join(map(str, loaded.problems))


def test_example_with_a_date_loads_when_the_date_lies_ahead() -> None:
    (block,) = re.findall(r"<!-- not run: .*?-->\n```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    ahead = (datetime.now(UTC) + timedelta(days=20)).isoformat(timespec="seconds")
    loaded = load("gatewright = 1\n" + re.sub(r"\d{4}-\d\d-\d\dT[0-9:]+Z", ahead, block), known=KNOWN)

    assert ahead in str(loaded.text)
    assert [problem.code for problem in loaded.problems] == ["no-source"]


def test_the_page_names_every_kind_of_rule() -> None:
    text = PAGE.read_text("utf-8")

    assert [kind.__name__ for kind in RuleKind.__args__ if kind.__name__ not in text] == []


@pytest.fixture(scope="module")
def recipes() -> Gate:
    """The gate of the page's recipes as they stand there."""
    part = PAGE.read_text("utf-8").partition("### Recipes for pins\n")[2]
    block = re.search(r"```toml\n(.*?)```", part, re.DOTALL)
    assert block is not None
    loaded = load(f"gatewright = 1\n{block[1]}", known=KNOWN)
    assert loaded.policy is not None
    registry = ToolRegistry()
    registry.register(SEND_MAIL)
    return Gate(loaded.policy, registry)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"cc": ["eve@example.org"]},
        {"cc": []},
        {"attachment": "reports/may.pdf"},
        {"attachment": "reports/2026/may-1.pdf"},
    ],
)
def test_recipes_allow_what_they_say(recipes: Gate, more: dict[str, Any]) -> None:
    assert (
        recipes.decide("clerk", "send_mail", {"recipients": BOTH, "subject": "x", **more}).verdict is not Verdict.DENY
    )


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"recipients": BOTH[:1]}, "argument-constraint"),
        ({"recipients": [*BOTH, "mal@example.org"]}, "argument-constraint"),
        ({"cc": ["mal@example.org"]}, "argument-constraint"),
        ({"bcc": ["ann@example.org"]}, "argument-constraint"),
        ({"bcc": []}, "argument-constraint"),
        ({"attachment": "reports/../keys.txt"}, "argument-constraint"),
        ({"attachment": "reports/./may.pdf"}, "argument-constraint"),
        ({"attachment": "other/may.pdf"}, "argument-constraint"),
        ({"CC": ["mal@example.org"]}, "schema-mismatch"),
    ],
)
def test_recipes_deny_the_rest(recipes: Gate, changed: dict[str, Any], code: str) -> None:
    decision = recipes.decide("clerk", "send_mail", {"recipients": BOTH, "subject": "x", **changed})

    assert (decision.stage, decision.code) == ("schema", code)


def test_recipes_deny_a_call_that_leaves_out_what_must_be_given(recipes: Gate) -> None:
    decision = recipes.decide("clerk", "send_mail", {"recipients": BOTH})

    assert (decision.code, decision.reason) == ("argument-constraint", "/subject: must be given")
