"""Catalogs in observe mode by real calls: what passes runs and is noted, and SPEC's list of what never passes holds."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gatewright.base.amount import plain_moment
from gatewright.gate import Outcome, Status
from gatewright.gate.chain import RowKind, read_object
from gatewright.gate.selfcheck import selfcheck
from gatewright.workspace import Workspace
from tests.support.adapterworkspace import ANSWERS, CALLS, VARIABLES, pets, write_adapters

OBSERVE = f'mode = "observe"\nobserve_until = "{plain_moment(float(round(time.time())) + 10 * 86_400)}"\n'
SEEDS = int(os.environ.get("GATEWRIGHT_OBSERVED_POLICIES", "4"))
OF_CATALOGS = ("text", "echo", "pet")


def rule(effect: str, *more: str) -> str:
    return f'\n[[policy.rules]]\nname = "r"\neffect = "{effect}"\n' + "".join(f"{one}\n" for one in more)


def tool_rule(tool: str, kind: str, *more: str) -> str:
    return f'\n[[agents.able.tool_rules]]\ntool_name = "{tool}"\nrule_type = {kind}\n' + "".join(
        f"{one}\n" for one in more
    )


LIMITS = {
    "a denial": rule("deny", 'tools = ["TOOL"]'),
    "a denial with a condition": rule("deny", "when = { minProperties = 1 }"),
    "an ask": rule("ask", 'tools = ["TOOL", "file"]'),
    "the default": '\n[policy]\ndefault = "deny"\n',
    "a limit": tool_rule("*", "{ MaxCalls = 0 }"),
    "the order": tool_rule("TOOL", '"RequiresPrecedingTools"', 'conditions = ["note_words"]'),
    "a consent": tool_rule("TOOL", '{ RequiresConsent = { scope = "s" } }'),
    "a constraint": tool_rule("TOOL", "{ ArgumentConstraints = CONSTRAINT }"),
}
CONSTRAINTS = {
    "text": '{ text = { pattern = "^z" } }',
    "echo": "{ text = { maxLength = 1 } }",
    "pet": "{ petId = { maximum = 1 } }",
}


def limit_of(name: str, tool: str) -> str:
    return LIMITS[name].replace("TOOL", tool).replace("CONSTRAINT", CONSTRAINTS[tool])


class Desk:
    """The same workspace with all its catalogs enforced, and observed."""

    def __init__(self, folder: Path, url: str) -> None:
        self.keys = folder / "keys"
        self.path = write_adapters(folder / "w", self.keys, url)
        self.text = self.path.read_text("utf-8")

    def open(self, more: str = "", *, observed: bool = True, trust: bool = True) -> Workspace:
        text = self.text + more
        if observed:
            text = re.sub(r'(\[\[catalogs\]\]\nid = "\w+"\n)', rf"\1{OBSERVE}", text)
        self.path.write_text(text, "utf-8")
        return Workspace.open(self.path, keys=self.keys, trust=trust)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with pets() as address:
        yield address


@pytest.fixture
def desk(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name, value in {**VARIABLES, "GATEWRIGHT_KEYS": str(tmp_path / "keys")}.items():
        monkeypatch.setenv(name, value)
    return Desk(tmp_path, url)


def last_decision(workspace: Workspace, outcome: Outcome) -> dict[str, Any]:
    rows = [row for row in workspace.audit.rows() if row.call_id == outcome.call_id]
    return dict(read_object(next(row.body for row in rows if row.kind == RowKind.POLICY_DECISION)) or {})


@pytest.mark.parametrize("limit", LIMITS)
async def test_what_an_observed_catalog_passes_runs_and_is_noted(desk: Desk, limit: str) -> None:
    for tool in OF_CATALOGS:
        more = limit_of(limit, tool)
        given = CALLS[tool][0]
        with desk.open(more, observed=False) as workspace:
            enforced = await workspace.call("able", tool, given)
            assert enforced.status is not Status.ALLOWED
        with desk.open(more) as workspace:
            observed = await workspace.call("able", tool, given)
            assert observed.status is Status.ALLOWED, (tool, observed.detail, observed.decision)
            assert ANSWERS[tool] in observed.output
            row = last_decision(workspace, observed)
            true, noted = enforced.decision, observed.decision
            assert (noted.verdict, noted.stage, noted.code) == (true.verdict, true.stage, true.code)
            assert (row["verdict"], row["stage"], row["enforced"]) == (str(true.verdict), true.stage, False)
            assert not selfcheck(workspace.gate).differences
            other = await workspace.call("able", "file", CALLS["file"][0])
            assert other.decision.enforced  # a tool of no catalog
            if limit in {"a denial with a condition", "an ask", "the default", "a limit"}:
                assert other.status is not Status.ALLOWED


PLACES = """
[workspace]
web = { allow_private = true }
closed = ["docs/closed", "docs/later.md"]
"""
WHOLE = '\n[[sources]]\nid = "whole"\ntype = "file"\nbase_path = "."\ndefault_permission = "admin"\n'
Call = tuple[str, Any]
_PIN = "catalogs/words.json"
ALWAYS: list[Call] = [
    ("text", '{"op": "count", '),
    ("text", '{"op": "count", "op": "count", "text": "a"}'),
    ("nothing", {}),
    ("block", {"op": "info", "label": "x"}),
    ("store", {}),
    *((tool, {**CALLS[tool][0], CALLS[tool][1]: CALLS[tool][2]}) for tool in (*OF_CATALOGS, "file")),
    *((tool, {**CALLS[tool][0], CALLS[tool][1]: "sideways"}) for tool in OF_CATALOGS),
    ("text", {"op": "count", "text": 7}),
    ("text", {"op": "count", "text": "one", "more": 1}),
    ("pet", {"operation": "get_pet_by_id", "petId": "seven"}),
    ("note_words", {}),
    ("file", {"op": "read", "path": "../policy.toml", "source": "docs"}),
    ("file", {"op": "read", "path": "/etc/passwd", "source": "docs"}),
    ("file", {"op": "read", "path": "out/policy.toml", "source": "docs"}),
    *(("file", {"op": "read", "path": f"docs/{place}", "source": "whole"}) for place in ("closed/a.md", "later.md")),
    *(("file", {"op": "read", "path": place, "source": "docs"}) for place in ("closed/a.md", "CLOSED/../closed/a.md")),
    *(("file", {"op": "read", "path": place, "source": "whole"}) for place in ("policy.toml", ".gatewright/x", _PIN)),
    ("note_words", {"path": "closed/a.md"}),
]
"""Calls that nothing may let pass, whatever is observed."""


def distrust(desk: Desk) -> None:
    desk.text = desk.text.replace('args = ["text.py"]', 'args = ["text.py", "other"]')
    desk.text = desk.text.replace("/api/v3", "/api/v4")


def drift(desk: Desk) -> None:
    for name in ("text", "echo"):
        path = desk.path.with_name(f"{name}.json")
        path.write_text(path.read_text("utf-8").replace("Works on", "Worked on"), "utf-8")


def take_places(desk: Desk) -> None:
    desk.text = desk.text.replace('places = { "./text.py" = "read" }\n', "")


TROUBLES: dict[str, tuple[Callable[[Desk], None], tuple[str, ...]]] = {
    "none": (lambda _: None, ()),
    "the stop": (lambda _: None, (*CALLS,)),
    "the stop of the agent": (lambda _: None, (*CALLS,)),
    "trust": (distrust, ("text", "pet")),
    "drift": (drift, ("text", "echo")),
    "confinement": (take_places, ("text",)),
}
"""What else stands against calls of some tools, however they are meant."""


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_nothing_of_what_is_never_passed_passes_whatever_is_observed(desk: Desk, trouble: str) -> None:
    (desk.path.parent / "docs/closed").mkdir()
    (desk.path.parent / "docs/closed/a.md").write_text("one two\n", "utf-8")
    (desk.path.parent / "docs/out").symlink_to("..")
    desk.text = desk.text.replace("\n[workspace]\nweb = { allow_private = true }\n", PLACES)
    make, shut = TROUBLES[trouble]
    make(desk)
    desk.text = desk.text.replace('tools = ["text"', 'LIMITS\ntools = ["text"') + WHOLE
    whole, passed = desk.text, 0
    for seed in range(SEEDS):
        random = Random(f"{trouble} {seed}")
        limits = [limit_of(name, random.choice(OF_CATALOGS)) for name in random.sample([*LIMITS], random.randrange(3))]
        limits = [*dict.fromkeys(one for one in limits if "[[policy.rules]]" not in one)]
        rules = random.choice(["", LIMITS["a denial with a condition"]])
        parts = random.sample(["agent", "rules", "catalogs"], random.randrange(1, 4))
        desk.text = whole.replace("LIMITS\n", OBSERVE if "agent" in parts else "")
        more = "".join(sorted(limits, key=lambda one: "[policy]" in one)) + rules
        more += OBSERVE if rules and "rules" in parts else ""
        with desk.open(more, observed="catalogs" in parts, trust=False) as workspace:
            if "stop" in trouble:
                workspace.gate.stops.pull("dana", "now", "able" if "agent" in trouble else "")
            for tool, given in [*ALWAYS, *((tool, CALLS[tool][0]) for tool in shut)]:
                outcome = await workspace.call("able", tool, given)
                where = (seed, parts, more, tool, given, outcome.decision)
                assert outcome.status is not Status.ALLOWED, where
                assert outcome.data is None, where
                if outcome.status is Status.DENIED:
                    assert outcome.decision.enforced, where
            usual = [(tool, CALLS[tool][0]) for tool in OF_CATALOGS if tool not in shut]
            made = [await workspace.call("able", tool, given) for tool, given in usual]
            passed += sum(not one.decision.enforced for one in made)
            assert not selfcheck(workspace.gate).differences, (seed, parts, more)
    assert passed or len(shut) == len(CALLS)
