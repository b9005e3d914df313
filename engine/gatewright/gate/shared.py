"""Rates, the stop, sessions, and outcomes of calls with an id in a shared state, for any number of gateways."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from gatewright.base.amount import Clock, new_id
from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import canonical_json
from gatewright.compile.rule_test import Rate
from gatewright.gate.chain import read_object
from gatewright.gate.history import RatesUnavailable, Window
from gatewright.gate.port import AuditEntry, Log
from gatewright.gate.sessionstore import session_text
from gatewright.gate.stop import LOOK_S, Stop, StopSwitch, lifted, pulled, stop_fields, stops_in
from gatewright.policy.rule import RateLimit
from gatewright.record.process import fork_safe_lock, renew_after_fork
from gatewright.record.sealedtable import SealedRow
from gatewright.record.shared import SharedLifeline, SharedState, SharedTable

_FOR_EVER_S = 1e10
_BLIND_S = 2.0
_RENEW_S = 5.0


class SharedRates:
    """Rates that count over all gateways, by the clock of the database."""

    def __init__(self, state: SharedState) -> None:
        self._state = state

    def peek(self, key: str, rule: RateLimit, wall_s: float) -> Window:  # noqa: ARG002 the database has a clock
        """Implement the port."""
        found = self._ask("SELECT left_s, calls FROM gatewright.peek(%s, %s)", (key, float(rule.per_s)))
        return Window(rule.calls, tuple((float(left_s), int(calls)) for left_s, calls in found))

    def take(self, rates: Sequence[Rate], wall_s: float) -> tuple[Rate, float] | None:  # noqa: ARG002
        """Implement the port."""
        full = self._ask(
            "SELECT place, wait_s FROM gatewright.take(%s, %s, %s, %s)",
            (
                [rate.key for rate in rates],
                [rate.rule.calls for rate in rates],
                [float(rate.rule.per_s) for rate in rates],
                [rate.calls for rate in rates],
            ),
        )
        if not full:
            return None
        place, wait_s = full[0]
        return rates[int(place) - 1], min(float(wait_s), _FOR_EVER_S)

    def give_back(self, rates: Iterable[Rate], wall_s: float, ago_s: float) -> None:  # noqa: ARG002
        """Implement the port."""
        given = list(rates)
        self._ask(
            "SELECT gatewright.give_back(%s, %s, %s, %s)",
            (
                [rate.key for rate in given],
                [float(rate.rule.per_s) for rate in given],
                [rate.calls for rate in given],
                float(ago_s),
            ),
        )

    def close(self) -> None:
        """Close nothing: the state is closed by whoever opened it."""

    def _ask(self, question: str, params: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._state.ask(question, params, refusal=RatesUnavailable)


class SharedStops(StopSwitch):
    """The stop of a shared state: whoever runs agents pulls it, and who may answer questions lifts it.

    A thread looks four times a second, so that no call waits for the database. What nobody could read for two seconds
    stops all agents.
    """

    def __init__(self, state: SharedState, *, clock: Clock | None = None, audit: Log | None = None) -> None:
        super().__init__(clock=clock, audit=audit)
        self._table = SharedTable(state, ("stop",), "stops")
        self._read_s = -math.inf
        self.until_s = 0.0
        self._looks: threading.Thread | None = None
        self._ends = threading.Event()
        renew_after_fork(self)

    def renew(self) -> None:
        """Look anew in a child."""
        self._looks, self._ends = None, threading.Event()

    def look(self) -> tuple[Stop, ...]:
        """The stops that stand now, oldest first, whoever pulled them."""
        with self._lock:
            if self._looks is None or not self._looks.is_alive():
                self._refresh()
                self._looks = threading.Thread(target=self._go_on, args=(self._ends,), name="stop", daemon=True)
                self._looks.start()
        if time.monotonic() - self._read_s > _BLIND_S:
            why = "the stop cannot be read from the shared state"
            return (Stop("stop-unreadable", "", "somebody", why, self._clock.wall_s()),)
        return self.standing

    def pull(self, who: str, why: str = "", agent_id: str = "") -> Stop:
        """Stop all agents, or one, at every gateway. Raises WorkspaceError."""
        stop = Stop.of(who, why, agent_id, self._clock.wall_s())
        with self._table.changing() as change:
            change.put(
                SealedRow("stop", stop.stop_id, agent_id, "", "", None, canonical_json(stop_fields(stop)).decode())
            )
        self._refresh()
        with suppress(WorkspaceError):  # without a log it stands all the same
            self._append([pulled(stop)])
        return stop

    def lift(self, who: str, agent_id: str = "") -> tuple[Stop, ...]:
        """End the stop of all agents, or that of one, and return what stood; empty if none did.

        Raises WorkspaceError for a role that may not, and then the stop stands.
        """
        with self._table.changing() as change:
            rows = [row for row in change.rows if row.agent == agent_id]
            gone = _stops_of(rows)
            change.delete(rows)
            if gone:
                self._append([lifted(one, who) for one in gone])
        self._refresh()
        return gone

    def seal(self, *, begin: bool = False) -> None:
        """Do nothing: what is in the database stands there."""

    def close(self) -> None:
        """End the looking, and close the log."""
        self._ends.set()
        super().close()

    def _append(self, entries: Sequence[AuditEntry]) -> None:
        if self._audit is not None:
            self._audit.append(entries)

    def _refresh(self) -> None:
        with suppress(WorkspaceError):  # the next look may get through
            self.standing = _stops_of(self._table.rows())
            self._read_s = time.monotonic()

    def _go_on(self, ends: threading.Event) -> None:
        while not ends.wait(LOOK_S):
            self._refresh()


class SharedClaims:
    """The outcomes of calls with an id, which the database drops after a week."""

    def __init__(self, state: SharedState) -> None:
        self._state = state
        self._life = SharedLifeline(state, "calls")

    def keep(self, call_id: str, body: str) -> None:
        """Implement the port."""
        self._state.ask("SELECT gatewright.keep_outcome(%s, %s)", (call_id, body))

    def kept(self, call_id: str) -> str | None:
        """Implement the port."""
        found = self._state.ask("SELECT * FROM gatewright.kept_outcome(%s)", (call_id,))
        return str(found[0][0]) if found else None

    def life(self) -> SharedLifeline:
        """Shows that a call of this process runs: as long as the process lives."""
        return self._life

    def close(self) -> None:
        """Stop showing that this process lives."""
        self._life.close()


class SharedSessions:
    """Sessions as rows of a shared state, for a `SessionStore`.

    Who holds one has a lease, which a thread renews. If it runs out, because the database was away for longer, another
    gateway may hold the session; then only one of both can save, since each save names the version before it.
    """

    step_s = 0.05

    def __init__(self, state: SharedState) -> None:
        self._state = state
        self.place = state.place
        self._lock = fork_safe_lock()
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Hold nothing in a child."""
        self._held: dict[str, str] = {}
        self._renews: threading.Thread | None = None

    def read(self, name: str) -> dict[str, Any] | None:
        """Implement the port."""
        found = self._state.ask("SELECT version, body FROM gatewright.find_session(%s)", (name,))
        return {**(read_object(found[0][1]) or {}), "version": int(found[0][0])} if found else None

    def write(self, name: str, saved: Mapping[str, Any]) -> bool:
        """Implement the port."""
        text = session_text(name, saved).decode()
        asked = "SELECT gatewright.save_session(%s, %s, %s)"
        return bool(self._state.ask(asked, (name, saved["version"] - 1, text))[0][0])

    def names(self) -> list[str]:
        """Implement the port."""
        return [str(name) for (name,) in self._state.ask("SELECT * FROM gatewright.list_sessions()")]

    def has(self, name: str) -> bool:
        """Implement the port."""
        return self.read(name) is not None

    def delete(self, name: str) -> bool:
        """Implement the port."""
        return bool(self._state.ask("SELECT gatewright.delete_session(%s)", (name,))[0][0])

    def try_lock(self, name: str) -> str | None:
        """Implement the port."""
        holder = new_id("holder")
        if not self._take(name, holder):
            return None
        with self._lock:
            self._held[holder] = name
            if self._renews is None:
                self._renews = threading.Thread(target=self._go_on, name="sessions", daemon=True)
                self._renews.start()
        return holder

    def let_go(self, name: str, holder: str) -> None:
        """Implement the port; if the database is away, the lease runs out."""
        with self._lock:
            self._held.pop(holder, None)
        with suppress(WorkspaceError):
            self._state.ask("SELECT gatewright.let_go_session(%s, %s)", (name, holder))

    def _take(self, name: str, holder: str) -> bool:
        return bool(self._state.ask("SELECT gatewright.hold_session(%s, %s)", (name, holder))[0][0])

    def _go_on(self) -> None:
        while True:
            time.sleep(_RENEW_S)
            with self._lock:
                held = dict(self._held)
                if not held:
                    self._renews = None
                    return
            for holder, name in held.items():
                with suppress(WorkspaceError):  # the next time may get through
                    self._take(name, holder)


def _stops_of(rows: Iterable[SealedRow]) -> tuple[Stop, ...]:
    """The stops in rows, oldest first; one of all agents for a row that says none."""
    found = (stops_in(f'{{"stops": [{row.body}]}}'.encode()) or (_unread(row.row_id),) for row in rows)
    return tuple(sorted((stop for stops in found for stop in stops), key=lambda one: one.wall_s))


def _unread(stop_id: str) -> Stop:
    return Stop(stop_id, "", "somebody", "a stop in the shared state cannot be read", 0.0)
