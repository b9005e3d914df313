"""For any policy a sub-agent may do what its own agent may, minus what its callers are denied explicitly.

The verdicts of agents by themselves come from the gate; what is explicit is read from the generated policy alone.
"""

from __future__ import annotations

import json
from itertools import count, pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from gatewright.adapters import hook_exchange
from tests.engine.hooks.world import POLICY, TOOLS, HookWorld

AGENTS = ("a", "b", "c", "d")
READ, WRITE, NOTE = "claude.Read", "claude.Write", "claude.Note"
NAMED = (READ, WRITE, NOTE)
OPERATIONS = ("load", "save", "delete")
STRICTNESS = ("allow", "ask", "deny")
_REST = POLICY[POLICY.index("[[sources]]") : POLICY.index("[[policy.rules]]")]
Made = dict[str, Any]


def make_policy(dice: Random) -> Made:
    """Four agents and some rules, as data."""
    agents = {}
    for name in AGENTS:
        keys = [*NAMED, f"{NOTE}.save"]
        agents[name] = {
            "tools": [one for one in NAMED if dice.random() < 0.7],
            "approvals": {key: dice.choice(STRICTNESS) for key in keys if dice.random() < 0.4},
            "notes": dice.choice([OPERATIONS, dice.sample(OPERATIONS, dice.randrange(1, 3))]),
            "sub_agents": [one for one in AGENTS if one != name and dice.random() < 0.5],
            "delegate": "intersect" if dice.random() < 0.2 else "own",
        }
    rules = [
        {
            "effect": dice.choice(["deny", "deny", "ask", "allow"]),
            "agents": dice.sample(AGENTS, dice.randrange(1, 4)),
            "tools": dice.sample(NAMED, dice.randrange(1, 3)),
            "word": dice.choice(["", "one", "two"]),
        }
        for _ in range(dice.randrange(6))
    ]
    return {"agents": agents, "rules": rules}


def policy_text(policy: Made) -> str:
    """The policy file that says so."""
    parts = ["gatewright = 1"]
    for name, agent in policy["agents"].items():
        approvals = {"privileged": "allow", **agent["approvals"]}
        listed = json.dumps([*agent["tools"], "claude.Agent"])
        shown = ", ".join(f"{json.dumps(key)} = {json.dumps(verdict)}" for key, verdict in approvals.items())
        parts += [f"[agents.{name}]", f"tools = {listed}", 'sources = ["project"]', f"approvals = {{ {shown} }}"]
        parts += [f"sub_agents = {json.dumps(agent['sub_agents'])}", f"delegate = {json.dumps(agent['delegate'])}"]
        if NOTE in agent["tools"]:
            kind = f"{{ AllowedOperations = {json.dumps(agent['notes'])} }}"
            parts.append(f'tool_rules = [{{ tool_name = "{NOTE}", rule_type = {kind} }}]')
    parts.append(_REST)
    for number, rule in enumerate(policy["rules"]):
        parts += ["[[policy.rules]]", f'name = "rule {number}"']
        parts += [f"{key} = {json.dumps(rule[key])}" for key in ("effect", "agents", "tools")]
        if rule["word"]:
            where = f"{{ file_path = {{ pattern = {json.dumps(rule['word'])} }} }}"
            parts.append(f'when = {{ required = ["file_path"], properties = {where} }}')
    return "\n".join(parts)


def is_denied_explicitly(policy: Made, caller: str, tool: str, given: dict[str, str]) -> bool:
    """Tell whether a rule, a key of its `approvals` or its list of operations denies a caller this call."""
    for rule in policy["rules"]:
        fits = rule["word"] in given.get("file_path", "") and ("file_path" in given or not rule["word"])
        if rule["effect"] == "deny" and caller in rule["agents"] and tool in rule["tools"] and fits:
            return True
    agent, operation = policy["agents"][caller], given.get("op", "")
    if tool not in agent["tools"]:
        return False  # it was just never given
    said = agent["approvals"].get(f"{tool}.{operation}", agent["approvals"].get(tool))
    return said == "deny" or (tool == NOTE and operation not in agent["notes"])


def callers_of(policy: Made, line: list[str]) -> list[tuple[str, bool]]:
    """The callers of the last agent of a line, each with whether it bounds that one whole."""
    agents = policy["agents"]
    return [
        (one, other not in agents[one]["sub_agents"] or agents[one]["delegate"] == "intersect")
        for one, other in pairwise(line)
    ]


class _Hook:
    """The messages of one conversation after the other."""

    def __init__(self, world: HookWorld) -> None:
        self._world, self._numbers, self._talk = world, count(), ""
        self._gate = {"policy": str(world.policy), "key": str(world.place.key)}

    def begin(self) -> None:
        """Begin another conversation, and end the last."""
        if self._talk:
            self._send("a", self._world.message("SessionEnd", "", {}, "", session_id=self._talk))
        self._talk = f"talk-{next(self._numbers)}"

    def ask(self, agent: str, tool: str, given: dict[str, str], child: str = "") -> str:
        """The verdict on a call of an agent, or of its sub-agent of that kind."""
        whose = {"agent_type": child, "agent_id": f"id-{child}"} if child else {}
        more = {"session_id": self._talk, "permission_mode": "default", **whose}
        call_id = f"t{next(self._numbers)}"
        body = self._send(agent, self._world.message("PreToolUse", tool.partition(".")[2], given, call_id, **more))
        said: dict[str, Any] = json.loads(body[6 : 6 + int.from_bytes(body[2:6], "big")])
        return str(said["hookSpecificOutput"]["permissionDecision"])

    def _send(self, agent: str, message: bytes) -> bytes:
        connection = hook_exchange.Gate(self._gate, 0.0).connect()
        try:
            return connection.ask(b"event", "claude-code", agent, "60000", message)
        finally:
            connection.close()


def differences(world: HookWorld, policies: int, seed: int) -> list[str]:
    """Ask about sub-agents under generated policies; return where the answer is not what their policy means."""
    found, dice, hook, asked = list[str](), Random(seed), _Hook(world), set[str]()
    for _ in range(policies):
        policy = make_policy(dice)
        world.policy.write_text(policy_text(policy))
        for _ in range(4):
            line = [dice.choice(AGENTS)]
            for _ in range(dice.randrange(1, 4)):
                line.append(dice.choice([one for one in AGENTS if one not in line]))
            for _ in range(5):
                tool = dice.choice(NAMED)
                operation, name = dice.choice(OPERATIONS), dice.choice(["one.txt", "two.txt", "my.key"])
                given = {"op": operation} if tool == NOTE else {"file_path": name}
                hook.begin()
                for at, kind in enumerate(line[1:]):
                    start = {"description": "d", "prompt": "p", "subagent_type": kind}
                    assert hook.ask(line[0], "claude.Agent", start, line[at] if at else "") == "allow"
                wanted = hook.ask(line[-1], tool, given)
                for caller, is_whole in callers_of(policy, line):
                    if is_denied_explicitly(policy, caller, tool, given):
                        wanted = "deny"
                    if is_whole:
                        wanted = max(wanted, hook.ask(caller, tool, given), key=STRICTNESS.index)
                got = hook.ask(line[0], tool, given, line[-1])
                asked.add(got)
                if got != wanted:
                    found.append(f"{line} {tool} {given}: {got}, not {wanted}, under\n{policy_text(policy)}")
    assert asked == {*STRICTNESS}
    return found


async def test_a_sub_agent_has_its_own_rights_minus_explicit_denials_of_its_callers(tmp_path: Path) -> None:
    with TemporaryDirectory(prefix="gw", dir="/tmp") as run:
        text = {"type": "string"}
        start = dict.fromkeys(("prompt", "description", "subagent_type"), text)
        note = {"op": {"type": "string", "enum": [*OPERATIONS]}}
        more = [
            {
                "name": name,
                "description": name,
                "inputSchema": {"type": "object", "properties": keys, "required": needed},
            }
            for name, keys, needed in (("Agent", start, ["prompt"]), ("Note", note, ["op"]))
        ]
        world = HookWorld(tmp_path, Path(run), tools={"tools": [*TOOLS["tools"], *more]})
        try:
            await world.ask("Read", {"file_path": "a.txt"}, "first")  # which starts the gate
            assert differences(world, 8, Random().randrange(1 << 30)) == []
        finally:
            world.end()
