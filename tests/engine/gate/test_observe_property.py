"""The same calls in observe mode and enforced: the rows tell the same verdicts, and nothing passes that never may.

Policies and calls are generated; `GATEWRIGHT_OBSERVED_CALLS=10000` makes so many of them.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from gatewright.base.amount import plain_moment
from gatewright.gate import Outcome, Session, Status
from gatewright.gate.chain import RowKind, read_object
from gatewright.gate.selfcheck import selfcheck
from gatewright.policyfile.names import KnownTools
from gatewright.policyfile.reader import parse_policy
from tests.engine.gate.world import Operator, World
from tests.support.clock import ManualClock

CALLS = int(os.environ.get("GATEWRIGHT_OBSERVED_CALLS", "300"))
PER_POLICY = 25 if CALLS <= 1_000 else 100
UNTIL = plain_moment(float(round(time.time())) + 10 * 86_400)
OBSERVE = f'mode = "observe"\nobserve_until = "{UNTIL}"\n'
SOURCES = """
[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "{default}"
permission_rules = [
  {{ pattern = "secret/**", permission = "none" }},
  {{ pattern = "frozen.md", permission = "read_only" }},
  {{ pattern = "shared.md", permission = "partner" }},
]

[[sources]]
id = "all"
type = "file"
base_path = "."
default_permission = "read_write"
"""


class Generated(NamedTuple):
    """A call; ``never``: nothing may let it pass."""

    tool: str
    arguments: Any
    never: bool = False


KINDS: list[tuple[str, str, str]] = [
    ("counter", "{{ MaxCalls = {n} }}", ""),
    ("*", "{{ MaxCalls = {n} }}", ""),
    ("echo", '{{ Cooldown = "{n}s" }}', ""),
    ("counter", '{{ RateLimit = {{ calls = {n}, per = "20s" }} }}', ""),
    ("vault", '"RequiresPrecedingTools"', '"echo"'),
    ("echo", '"RequiresFollowingTools"', '"vault", "counter.down"'),
    ("*", '{{ ExclusiveGroups = [["vault", "fail"], ["counter.down", "echo"]] }}', ""),
    ("echo", '"StartConstraint"', ""),
    ("vault", '"ExitLoop"', ""),
    ("counter", '"ContinueLoop"', ""),
    ("counter", '"RequiredBeforeExit"', '"operation:up"'),
    ("echo", '"RequiredBeforeExitIf"', '"counter"'),
    ("fail", '{{ RequiresConsent = {{ scope = "s" }} }}', ""),
    ("fail", '{{ Periodic = "5s" }}', ""),
    ("counter", "{{ ArgumentConstraints = {{ by = {{ maximum = {n} }} }} }}", ""),
    ("counter", '{{ ArgumentConstraints = {{ op = {{ const = "up" }} }} }}', ""),
    ("echo", '{{ ArgumentConstraints = {{ text = {{ pattern = "^[a-c]*$" }} }} }}', ""),
    ("vault", '{{ ArgumentConstraints = {{ required = ["text"] }} }}', ""),
    ("file", '{{ AllowedOperations = ["read", "append", "patch"] }}', ""),
]
WHENS = [
    '{ properties = { text = { pattern = "^a" } } }',
    '{ properties = { by = { minimum = 3 } }, required = ["by"] }',
]


def policy_text(random: Random) -> tuple[str, str]:
    """One policy, enforced and observed: the agent, some of its policy rules, or both."""
    whole = random.random() < 0.6
    rows: list[str] = []
    for tool, kind, conditions in random.sample(KINDS, random.randrange(6)):
        written = kind.format(n=random.randrange(1, 6))
        rows.append(
            f'\n[[agents.a.tool_rules]]\ntool_name = "{tool}"\nrule_type = {written}\nconditions = [{conditions}]\n'
        )
    capabilities = '[{ NetRead = { allowlist = ["*"] } }, "AdvancedEdit"]' if random.random() < 0.3 else "[]"
    approvals = {key: random.choice(["allow", "ask", "deny"]) for key in ("privileged", "read_only", "counter.down")}
    said = ", ".join(f'"{key}" = "{value}"' for key, value in approvals.items() if random.random() < 0.4)
    default = random.choice(["allow", "allow", "ask", "deny"])
    ruled = f'\n[policy]\ndefault = "{default}"\n'
    marked = ruled
    for number in range(random.randrange(4)):
        effect = random.choice(["deny", "ask", "allow"])
        row = f'\n[[policy.rules]]\nname = "r{number}"\neffect = "{effect}"\n'
        row += f'tools = ["{random.choice(["echo", "counter", "vault", "fail", "file"])}"]\n'
        row += f"when = {random.choice(WHENS)}\n" if random.random() < 0.5 else ""
        ruled += row
        marked += row + (OBSERVE if effect != "allow" and random.random() < 0.6 else "")
    head = 'gatewright = 1\n[agents.a]\ntools = ["file", "echo", "counter", "vault", "fail"]\n'
    head += f"capabilities = {capabilities}\napprovals = {{ {said} }}\n"
    tail = "".join(rows) + SOURCES.format(default=random.choice(["read_write", "read_only", "admin"]))
    return head + tail + ruled, head + (OBSERVE if whole else "") + tail + marked


def make_call(random: Random) -> Generated:
    text = random.choice(["a", "b", "abc", "zz", "an apple"])
    place = random.choice(["open.md", "frozen.md", "shared.md", "secret/key.md", "none.md"])
    never = [
        Generated("echo", '{"text": ', never=True),
        Generated("echo", {"text": 7}, never=True),
        Generated("nothing", {}, never=True),
        Generated("block", {"op": "info", "label": "x"}, never=True),
        Generated("counter", {"op": "sideways"}, never=True),
        Generated("file", {"op": "read", "path": "../policy.toml"}, never=True),
        Generated("file", {"op": "read", "path": "policy.toml", "source": "all"}, never=True),
        Generated("file", {"op": "append", "path": "policy.toml", "content": "x", "source": "all"}, never=True),
        Generated("file", {"op": "append", "path": "open.md", "content": "[REDACTED]", "source": "docs"}, never=True),
    ]
    usual = [
        Generated("echo", {"text": text}),
        Generated("counter", {"op": random.choice(["up", "down"]), "by": random.randrange(1, 8)}),
        Generated("counter", {"op": "up"}),
        Generated("vault", random.choice([{}, {"text": text}])),
        Generated("fail", {"text": text}),
        Generated("file", {"op": "read", "path": place, "source": "docs"}),
        Generated("file", {"op": "append", "path": place, "content": "more", "source": "docs"}),
    ]
    return random.choice(never if random.random() < 0.2 else usual)


def rows_of(world: World, kind: RowKind) -> dict[str, dict[str, Any]]:
    """The first row of the kind of each call."""
    assert world.audit is not None
    found: dict[str, dict[str, Any]] = {}
    for row in world.audit.rows():
        if row.kind == kind:
            found.setdefault(row.call_id, dict(read_object(row.body) or {}))
    return found


async def test_the_same_calls_observed_and_enforced_tell_the_same_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Counter[str]()
    with closing(World(tmp_path)) as plain:
        known = KnownTools((*plain.registry.facts(),))
    for number in range(max(1, CALLS // PER_POLICY)):
        random = Random(number)
        texts = policy_text(random)
        while not all(parse_policy(text, file="policy.toml", known=known).policy for text in texts):
            texts = policy_text(random)  # some draws contradict themselves
        worlds: list[World] = []
        for name, text in zip(("enforced", "observed"), texts, strict=True):
            folder = tmp_path / f"{name}{number}"
            (folder / "docs" / "secret").mkdir(parents=True)
            for place in ("open.md", "frozen.md", "shared.md", "secret/key.md"):
                (folder / "docs" / place).write_text("text\n")
            (folder / "policy.toml").write_text(text)
            clock = ManualClock(time.time())
            monkeypatch.setattr("tests.engine.gate.world.ManualClock", lambda clock=clock: clock)
            worlds.append(World(folder, text))
        sessions: list[Session] = []
        made: list[tuple[Generated, list[Outcome]]] = []
        for at in range(PER_POLICY):
            if at % 12 == 0:
                sessions = [Session(), Session()]
            call = make_call(random)
            outcomes = [
                await world.call(call.tool, call.arguments, agent="a", session=session, approver=Operator())
                for world, session in zip(worlds, sessions, strict=True)
            ]
            made.append((call, outcomes))
            for world in worlds:
                world.clock.advance(random.randrange(4) if world is worlds[0] else 0)
            worlds[1].clock.advance(worlds[0].clock.wall_s() - worlds[1].clock.wall_s())
        true, noted = (rows_of(world, RowKind.POLICY_DECISION) for world in worlds)
        for call, (enforced, observed) in made:
            one, other = true[enforced.call_id], noted[observed.call_id]
            passed = other.get("enforced") is False
            where = (number, call, one, other)
            assert one["verdict"] == other["verdict"], where
            if passed or one["verdict"] == "allow":
                assert [one[key] for key in ("stage", "code", "rule")] == [
                    other[key] for key in ("stage", "code", "rule")
                ], where
            if call.never:
                assert observed.status is Status.DENIED, where
                assert not passed, where
            told[f"{other['verdict']}{' passed' if passed else ''}"] += 1
        assert not selfcheck(worlds[1].gate).differences, (number, selfcheck(worlds[1].gate).differences)
        for world in worlds:
            world.close()

    assert told["deny passed"] > CALLS / 20
    assert told["ask passed"] > CALLS / 100
    assert told["allow"] > CALLS / 20
    print(dict(told))
