"""Tool and operation names as a policy writes them, resolved against the known ones. It does not know rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.policy.tier import SafetyTier
from gatewright.policy.toolname import chosen_tools, split_name
from gatewright.policyfile.report import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gatewright.policy.right import ToolFacts
    from gatewright.policyfile.known import KnownTools
    from gatewright.policyfile.report import Report
    from gatewright.policyfile.scan import RawPath

TIERS = frozenset(str(tier) for tier in SafetyTier)


class Names:
    """Answers for one load; with ``known`` None (a text that was checked before) every name passes."""

    def __init__(self, known: KnownTools | None, report: Report) -> None:
        self._known = known
        self._report = report
        self._names = known.names if known else frozenset[str]()
        self._unsupported: Mapping[str, frozenset[str]] = known.unsupported if known else {}
        self._found: dict[str, tuple[ToolFacts, ...]] = {}
        self._chosen: dict[tuple[str, ...] | None, dict[str, ToolFacts]] = {}

    @property
    def known(self) -> KnownTools | None:
        """What the names are resolved against."""
        return self._known

    def tool(self, written: str, path: RawPath) -> tuple[ToolFacts, ...]:
        """The registered tools that ``written`` stands for; none is an error at ``path``."""
        if self._known is None:
            return ()
        if written not in self._found:
            self._found[written] = self._known.of(written)
        if not (found := self._found[written]):
            self._unknown_tool(written, path)
        return found

    def chosen(self, listed: tuple[str, ...] | None) -> dict[str, ToolFacts]:
        """The one major of each tool that an agent with this list of tools sees."""
        if self._known is None:
            return {}
        key = tuple(name for name in listed or () if split_name(name)[1] is not None)
        if key not in self._chosen:
            self._chosen[key] = chosen_tools(self._known.facts, key)
        return self._chosen[key]

    def operation(self, facts: ToolFacts, name: str, path: RawPath) -> None:
        """Check that the tool has an operation of that name."""
        if name in facts.operation_names:
            return
        if name in self._unsupported.get(facts.name, ()):
            message = f"operation {shown(name)} of `{facts.name}` is not supported yet"
            self._report.error(path, "not-supported", message)
            return
        near = self._report.near(name, facts.operation_names)
        self._report.error(path, "unknown-operation", f"`{facts.name}` has no operation {shown(name)}", near=near)

    def approval_key(self, key: str, path: RawPath) -> None:
        """Check a key of ``approvals``: a tier, a tool, or ``tool.operation`` (the longest tool name wins)."""
        if self._known is None or key in TIERS or key in self._names:
            return
        name = self._longest(key)
        if name in self._names:
            operation = key[len(name) + 1 :]
            facts = [facts for facts in self._known.of(name) if operation in facts.operation_names]
            if not facts:
                self.operation(self._known.of(name)[-1], operation, path)
        elif split_name(key)[1] is not None or "@" in key:
            message = f"{shown(key)}: approvals of one major version are not supported yet, name the tool without it"
            self._report.error(path, "not-supported", message)
        elif name:
            self._report.error(path, "not-supported", f"tool `{name}` is not supported yet")
        else:
            near = self._report.near(key, {*TIERS, *self._names})
            message = f"{shown(key)} is neither a tier nor a tool nor `tool.operation`"
            self._report.error(path, "unknown-tool", message, near=near)

    def _longest(self, key: str) -> str:
        """The longest known name that ``key`` is, or begins with before a dot; empty when there is none."""
        end = len(key)
        while end > 0:
            if key[:end] in self._names or key[:end] in self._unsupported:
                return key[:end]
            end = key.rfind(".", 0, end)
        return ""

    def _unknown_tool(self, written: str, path: RawPath) -> None:
        name, major = split_name(written)
        if name in self._names:
            text = f"`{name}` has no major version {major}"
            self._report.error(path, "unknown-tool", text, near=name)
        elif name in self._unsupported:
            self._report.error(path, "not-supported", f"tool `{name}` is not supported yet")
        else:
            near = self._report.near(name, self._names)
            self._report.error(path, "unknown-tool", f"no tool is named {shown(written)}", near=near)
