"""Counting in a session: slots, gaps, phases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from gatewright.gate import Phase, Session
from gatewright.gate.session import Breach, Limit, Reservation

TWICE = (Limit("t", calls=2),)
GAP = (Limit("t", gap_s=5.0),)


def taken(session: Session, limits: tuple[Limit, ...], now_s: float = 0.0, operation: str = "") -> Reservation:
    result = session.reserve("t", operation, limits, now_s)
    assert isinstance(result, Reservation)
    return result


def test_released_slot_can_be_taken_again() -> None:
    session = Session()
    taken(session, TWICE)
    session.release(taken(session, TWICE))
    taken(session, TWICE)

    assert isinstance(session.reserve("t", "", TWICE, 0.0), Breach)


def test_released_slot_restores_the_start_before_it() -> None:
    session = Session()
    taken(session, GAP, 1.0)
    session.release(taken(session, (), 4.0))
    breach = session.breach(GAP, 5.5)

    assert breach is not None
    assert breach.wait_s == 0.5
    assert session.breach(GAP, 6.0) is None


def test_limit_on_operations_counts_only_those() -> None:
    session = Session()
    limits = (Limit("t", frozenset({"a"}), calls=1),)
    taken(session, limits, operation="b")

    assert session.breach(limits, 0.0) is None
    taken(session, limits, operation="a")
    assert session.breach(limits, 0.0) is not None


def test_threads_cannot_take_more_slots_than_there_are() -> None:
    session, limits = Session(), (Limit("t", calls=50),)

    def take(_number: int) -> Reservation | Breach:
        return session.reserve("t", "", limits, 0.0)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(take, range(400)))

    assert sum(isinstance(result, Reservation) for result in results) == 50


def test_phase_follows_success_and_end() -> None:
    session = Session()
    phases = [session.phase]
    session.succeeded("t", "")
    phases.append(session.phase)
    session.succeeded("t", "", ends_loop=True)
    phases.append(session.phase)
    session.begin_turn()

    assert phases == [Phase.START, Phase.OPEN, Phase.ENDED]
    assert session.should_continue
    assert session.has_succeeded("t")
