"""Policies written as different authors would: inline, dotted, tagged, commented, indented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import cast

from hypothesis import strategies as st

from gatewright.base.errors import RawPath
from gatewright.policy.capability import kind_of
from gatewright.policy.document import Agent, Defaults, Policy, Source, ToolSettings
from gatewright.policy.verdict import Verdict
from gatewright.policyfile.readagent import plain_agent, plain_source
from gatewright.policyfile.readrule import plain_rule
from gatewright.policyfile.render import key_text, literal
from gatewright.policyfile.table import plain

Data = Mapping[str, object]
Rows = Sequence[Data]
_FLAGS = st.booleans()


def dotted(path: RawPath) -> str:
    """The dotted key of a path; positions in lists are left out, as headers do."""
    return ".".join(key_text(part) for part in path if isinstance(part, str))


def header(path: RawPath) -> str:
    """``[path]``, or ``[[path]]`` when the path ends in a position."""
    return f"[[{dotted(path)}]]" if path and isinstance(path[-1], int) else f"[{dotted(path)}]"


class Author:
    """Writes one policy; every choice of style is drawn."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._numbers = count()
        self.blocks: list[str] = []

    def write(self, policy: Policy) -> str:
        top = {"gatewright": 1, "name": policy.name, "description": policy.description}
        root = "".join(self._line(key, literal(value)) for key, value in top.items() if value is not None)
        inline = self._chance() and self._chance()
        if inline and policy.agents:
            root += self._line("agents", literal({name: _whole(agent) for name, agent in policy.agents.items()}))
        else:
            for agent in policy.agents.values():
                root += self._agent(agent)
        if policy.defaults != Defaults():
            self._table(("defaults",), plain(policy.defaults))
        self._sources(policy.sources)
        self._catalogs([plain(catalog) for catalog in policy.catalogs])
        root += self._tools(policy.tools)
        self._policy(policy)
        return root + "".join(self.blocks)

    def _catalogs(self, rows: Rows) -> None:
        if rows and self._chance() and self._chance():
            self.blocks.insert(0, self._line("catalogs", self._value(rows)))
        else:
            self._rows(("catalogs", 0), rows)

    def _tools(self, tools: Mapping[str, ToolSettings]) -> str:
        """Tables, one inline table on top, inline tables in `[tools]`, or dotted keys on top."""
        tables = {name: self._settings(settings) for name, settings in tools.items()}
        how = self._draw(st.sampled_from(["tables", "tables", "inline", "lines", "dotted"]))
        if how == "inline" and tables:
            return self._line("tools", literal(tables))
        if how == "lines":
            self._table(("tools",), tables, apart=False)
        elif how == "dotted" and all(tables.values()):
            named = [
                (dotted(("tools", name, key)), value) for name, row in tables.items() for key, value in row.items()
            ]
            return "".join(self._line(key, self._value(value)) for key, value in named)
        else:
            for name, data in tables.items():
                self._table(("tools", name), data)
        return ""

    def _settings(self, settings: ToolSettings) -> Data:
        data = plain(settings)
        return data if settings.timeout_s is None else {**data, "timeout": settings.timeout_s}

    def _agent(self, agent: Agent) -> str:
        path: RawPath = ("agents", agent.agent_id)
        data, rules = plain_agent(agent), [self._rule(plain_rule(rule)) for rule in agent.tool_rules]
        if self._chance() and self._chance():
            prefix = dotted(path)
            lines = [(f"{prefix}.{key}", value) for key, value in data.items()]
            if rules:
                lines.append((f"{prefix}.tool_rules", rules))
            if lines:
                return "".join(self._line(key, self._value(value)) for key, value in lines)
        approvals = data.pop("approvals", None)
        if approvals is not None and self._chance():
            data["approvals"], approvals = approvals, None
        if rules and self._chance():
            data["tool_rules"], rules = rules, []
        capabilities: list[Data] = []
        if agent.capabilities and self._chance():
            capabilities = [{str(kind_of(entry)): entry.plain()} for entry in agent.capabilities]
            del data["capabilities"]
        if data or not (rules or approvals or capabilities) or self._chance():
            self._table(path, data)
        if isinstance(approvals, dict):
            self._table((*path, "approvals"), cast("Data", approvals))
        self._rows((*path, "capabilities", 0), capabilities)
        self._rows((*path, "tool_rules", 0), rules)
        return ""

    def _policy(self, policy: Policy) -> None:
        data: dict[str, object] = {} if policy.default is Verdict.ALLOW else {"default": str(policy.default)}
        rules = [plain(rule) for rule in policy.rules]
        if rules and self._chance():
            data["rules"], rules = rules, []
        if data or self._chance():
            self._table(("policy",), data)
        self._rows(("policy", "rules", 0), rules)

    def _rule(self, data: Mapping[str, object]) -> dict[str, object]:
        kind, adjacent = data["rule_type"], self._chance()
        if adjacent and isinstance(kind, str):
            kind = {"type": kind}
        elif adjacent:
            ((name, payload),) = cast("Data", kind).items()
            kind = {"type": name, "value": payload}
        return {**data, "rule_type": kind}

    def _sources(self, sources: Sequence[Source]) -> None:
        if sources and self._chance() and self._chance():
            rows = [
                {
                    **plain_source(source),
                    "permission_rules": [*map(plain, source.permission_rules)],
                    "required_tools": [self._rule(plain_rule(rule)) for rule in source.required_tools],
                }
                for source in sources
            ]
            self.blocks.insert(0, self._line("sources", self._value(rows)))
            return
        for source in sources:
            rules = [plain(rule) for rule in source.permission_rules]
            required = [self._rule(plain_rule(rule)) for rule in source.required_tools]
            data = plain_source(source)
            if self._chance():
                data["permission_rules"], rules = rules, []
            if required and self._chance():
                data["required_tools"], required = required, []
            self._table(("sources", 0), data)
            self._rows(("sources", 0, "permission_rules", 0), rules)
            self._rows(("sources", 0, "required_tools", 0), required)

    def _rows(self, path: RawPath, rows: Rows) -> None:
        for row in rows:
            self._table(path, row)

    def _table(self, path: RawPath, data: Mapping[str, object], *, apart: bool = True) -> None:
        split = {k: cast("Data", v) for k, v in data.items() if apart and isinstance(v, dict) and v and self._chance()}
        indent = "  " if self._chance() else ""
        lines = "".join(
            indent + self._line(key_text(key), self._value(value)) for key, value in data.items() if key not in split
        )
        gap = "\n" if self._chance() else ""
        self.blocks.append(f"{gap}{self._mark()}{indent}{header(path)}{self._tail()}\n{lines}")
        for key, table in split.items():
            sub = [self._line(key_text(k), self._value(v)) for k, v in table.items()]
            self.blocks.append(f"[{dotted(path)}.{key_text(key)}]\n{''.join(sub)}")

    def _value(self, value: object) -> str:
        if isinstance(value, list) and value and self._chance():
            last = "," if self._chance() else ""
            inner = ",\n".join(f"    {literal(entry)}" for entry in cast("list[object]", value))
            return f"[\n    # {next(self._numbers)}\n{inner}{last}{self._tail()}\n]"
        return literal(cast("object", value))

    def _line(self, key: str, value: str) -> str:
        return f"{self._mark()}{key} = {value}{self._tail()}\n"

    def _mark(self) -> str:
        return f"# mark {next(self._numbers)}\n" if self._chance() and self._chance() else ""

    def _tail(self) -> str:
        return f" # tail {next(self._numbers)}" if self._chance() and self._chance() else ""

    def _chance(self) -> bool:
        return self._draw(_FLAGS)


def _whole(agent: Agent) -> dict[str, object]:
    return plain_agent(agent) | {"tool_rules": [plain_rule(rule) for rule in agent.tool_rules]}


@st.composite
def styled(draw: st.DrawFn, policy: Policy) -> str:
    return Author(draw).write(policy)
