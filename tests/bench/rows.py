"""The rows that the benchmark has, by name. A new row is a function here that takes an effort and gives a Row."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.bench.adapters import adapters
from tests.bench.agentspage import agents_page, one_tick
from tests.bench.arguments import argument_check
from tests.bench.auditlist import audit_list
from tests.bench.auditrow import audit
from tests.bench.blockedit import block_edit
from tests.bench.confinedstart import confined_start
from tests.bench.decision import decision, growth
from tests.bench.gateway import gateway
from tests.bench.globs import glob_levels
from tests.bench.hook import hook
from tests.bench.imported import imported_tools
from tests.bench.load import load_a_policy
from tests.bench.measure import Effort
from tests.bench.notesearch import note_search
from tests.bench.overlay import permission_overlay
from tests.bench.processes import command_start, processes
from tests.bench.rooms import rooms
from tests.bench.row import Row
from tests.bench.startrow import start
from tests.bench.tick import tick
from tests.bench.toollist import tool_list
from tests.bench.traced import telemetry
from tests.bench.whole import gate_overhead, whole_decide

ROWS: Mapping[str, Callable[[Effort], Row]] = {
    "decision": decision,
    "growth": growth,
    "whole decide": whole_decide,
    "gate overhead": gate_overhead,
    "telemetry": telemetry,
    "audit": audit,
    "audit list": audit_list,
    "gateway": gateway,
    "hook": hook,
    "processes": processes,
    "argument check": argument_check,
    "tool list": tool_list,
    "tick": tick,
    "imported tools": imported_tools,
    "load a policy": load_a_policy,
    "glob levels": glob_levels,
    "permission overlay": permission_overlay,
    "block edit": block_edit,
    "note search": note_search,
    "rooms": rooms,
    "confined start": confined_start,
    "adapters": adapters,
    "agents page": agents_page,
    "one tick": one_tick,
    "start": start,
    "command start": command_start,
}
