"""Row "load a policy": a long policy file to a policy that can be enforced, one edit of it saved."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from gatewright import load_policy
from gatewright.policy.edit import AgentChange, Edit
from gatewright.workspace import Workspace
from tests.bench.measure import Effort, once
from tests.bench.row import Measured, Row, at_most, times_at_most

_RULES_OF_AN_AGENT = 25
_KINDS = (
    '{ AllowedOperations = ["read", "list", "append"] }',
    "{ MaxCalls = 40 }",
    '{ Cooldown = "100ms" }',
    '"ContinueLoop"',
    '{ RequiresConsent = { scope = "files" } }',
)


def load_a_policy(effort: Effort) -> Row:
    """Twice, to see whether it is linear in the file."""
    few, many = (50, 250) if effort.quick else (1_000, 5_000)
    rounds = 1 if effort.quick else 3
    figures: dict[str, Measured] = {}
    with TemporaryDirectory() as name:
        for rules in (few, many):
            path = Path(name, f"policy{rules}.toml")
            text = "".join(_lines(rules))
            path.write_text(text, "utf-8")
            figures[f"load_policy, {rules:,} rules"] = once(lambda: load_policy(path), rounds)  # noqa: B023 called at once
            figures[f"tomllib alone, {rules:,} rules"] = once(lambda: tomllib.loads(text), rounds)  # noqa: B023 called at once
            figures[f"save one edit, {rules:,} rules"] = once(_saving(path), rounds)
    first, last = (figures[f"load_policy, {rules:,} rules"] for rules in (few, many))
    return Row(
        "load a policy",
        f"{many:,} tool rules, {_RULES_OF_AN_AGENT} for each agent, strict reading with every check",
        tuple(name for name in figures if name.startswith("load_policy")),
        figures,
        (
            at_most(f"{many:,} rules", last, 600, "ms"),
            at_most("one edit of them saved", figures[f"save one edit, {many:,} rules"], 1_000, "ms"),
            times_at_most(f"{few:,} -> {many:,} rules (5x is linear)", last, first, 6),
        ),
        f"tomllib alone, {many:,} rules",
    )


def _saving(path: Path) -> Callable[[], None]:
    """One more edit of an agent, saved, at every call."""
    workspace, numbers = Workspace.open(path), count()

    def save() -> None:
        agent = next(iter(workspace.policy.agents.values()))
        after = replace(agent, description=f"One of many, number {next(numbers)}")
        workspace.apply(Edit("an edit", (AgentChange(agent, after),)))
        workspace.save()

    return save


def _lines(rules: int) -> Iterator[str]:
    yield "gatewright = 1\n"
    for number in range(rules):
        agent = f"agent_{number // _RULES_OF_AN_AGENT:04}"
        if number % _RULES_OF_AN_AGENT == 0:
            yield f'\n[agents.{agent}]\ndescription = "One of many"\ntools = ["file", "block"]\n'
        kind = _KINDS[number % len(_KINDS)]
        yield f'\n[[agents.{agent}.tool_rules]]\ntool_name = "file"\nrule_type = {kind}\npriority = {number % 10}\n'
