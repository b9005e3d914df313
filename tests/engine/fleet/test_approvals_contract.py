"""The contract of questions and answers, over a file and a real database: asked anywhere, answered once, spent once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.gate import Approval, ApprovalStore, PermissionBroker, Remember, Status
from gatewright.gate.approval import ApprovalRequest
from gatewright.gate.approvalstore import Subject
from tests.engine.fleet.conftest import Fleet
from tests.engine.gate.asking import Desk, a_request, asking_gate, soon
from tests.engine.gate.world import World
from tests.support.clock import ManualClock
from tests.support.patience import in_time

YES = Approval(True, "dana")
TEN_MINUTES = Approval(True, "dana", Remember.DURATION, 600.0)
T = TypeVar("T")
Opens = Callable[[], ApprovalStore]


@pytest.fixture(params=["file", "database"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Opens:
    """Open the same questions once more, as another process would."""
    clock = ManualClock()
    if request.param == "file":
        return lambda: ApprovalStore(tmp_path / "state", tmp_path / "keys", clock=clock)
    fleet: Fleet = request.getfixturevalue("fleet")
    fleet.member("desk", "gateway", "answer")
    return lambda: ApprovalStore(fleet.state("desk"), clock=clock)


def asked(number: int) -> ApprovalRequest:
    return replace(a_request(), request_id=f"ask-{number:016x}", digest=f"d{number}")


def at_once(stores: list[ApprovalStore], does: Callable[[ApprovalStore, int], T]) -> list[T]:
    """What each of them makes of the same moment."""
    with ThreadPoolExecutor(len(stores)) as pool:
        return list(pool.map(does, stores, range(len(stores))))


def subject_of(request: ApprovalRequest) -> Subject:
    names = request.agent_id, request.user_id, request.session_id, request.tool, request.operation
    return Subject(*names, request.tool_digest, request.asks, lambda: request.digest)


def test_question_posted_anywhere_is_seen_and_answered_everywhere_once(desk: Opens) -> None:
    here, there = desk(), desk()
    request = asked(1)
    assert here.post(request, 4)

    assert [one.request_id for one in there.pending()] == [request.request_id]
    answers = [store.answer(request.request_id, Approval(False, "dana")) for store in (there, here)]
    assert [one is not None for one in answers] == [True, False]
    assert (here.pending(), list(here.answers())) == ((), [request.request_id])
    taken = here.withdraw(request.request_id)
    assert taken is not None
    assert (taken.approved, here.withdraw(request.request_id), there.answers()) == (False, None, {})


def test_one_answer_of_many_at_one_moment_counts(desk: Opens) -> None:
    stores, request = [desk() for _ in range(4)], asked(1)
    assert stores[0].post(request, 4)
    answers = at_once(stores, lambda store, _: store.answer(request.request_id, TEN_MINUTES))

    assert sum(one is not None for one in answers) == 1
    assert len(stores[0].standing()) == 1


def test_approval_for_once_is_spent_once_however_many_try(desk: Opens) -> None:
    stores, request = [desk() for _ in range(4)], asked(1)
    grant = stores[0].remember(request, YES)
    spent = at_once(stores, lambda store, _: store.spend(grant))

    assert sum(spent) == 1
    assert stores[1].find(subject_of(request)) is None


def test_standing_approval_holds_until_it_is_revoked_anywhere(desk: Opens) -> None:
    here, there, request = desk(), desk(), asked(1)
    grant = here.remember(request, TEN_MINUTES)

    assert (there.find(subject_of(request)), there.spend(grant), there.spend(grant)) == (grant, True, True)
    assert there.revoke(grant.grant_id) == grant
    assert (here.find(subject_of(request)), here.spend(grant), here.standing()) == (None, False, ())


def test_calls_of_one_moment_with_one_form_share_their_suspended_question(desk: Opens) -> None:
    stores = [desk() for _ in range(4)]
    requests = [replace(asked(number), digest="same", call_id=f"claim-{number}", call_key="key") for number in range(4)]
    assert requests[0].is_suspended
    standing = at_once(stores, lambda store, number: store.suspend(requests[number]))

    assert len({one.request_id for one in standing if one is not None}) == 1
    assert len(stores[0].pending()) == 1


def test_no_more_wait_than_may(desk: Opens) -> None:
    store = desk()
    assert [store.post(asked(number), 2) for number in range(3)] == [True, True, False]
    assert len(desk().pending()) == 2


def test_operator_is_there_while_attached(desk: Opens) -> None:
    here, there = desk(), desk()
    assert not there.has_listener()
    listener = here.attach()
    time.sleep(0.6)
    assert there.has_listener()
    here.detach(listener)
    time.sleep(0.6)
    assert not there.has_listener()


def test_question_ends_with_its_process_which_may_be_silent_for_a_minute(fleet: Fleet) -> None:
    fleet.member("desk", "gateway", "answer")
    here, there = (ApprovalStore(fleet.state("desk"), clock=ManualClock()) for _ in range(2))
    assert here.post(asked(1), 4)
    for silent_s, left in ((60, 1), (130, 0)):
        with fleet.as_owner() as connection:
            connection.execute("UPDATE gatewright.processes SET seen = now() - %s * interval '1 s'", (silent_s,))
        fresh = ApprovalStore(fleet.state("desk"), clock=ManualClock())
        assert len(fresh.pending()) == left
    here.close()
    there.close()


def test_gateway_asks_and_spends_and_does_not_answer(fleet: Fleet) -> None:
    gateway = ApprovalStore(fleet.gateway("one"), clock=ManualClock())
    operator = ApprovalStore(fleet.member("ada", "answer"), clock=ManualClock())
    request = asked(1)
    assert gateway.post(request, 4)

    for forbidden in (
        lambda: gateway.answer(request.request_id, YES),
        lambda: gateway.remember(request, TEN_MINUTES),
    ):
        with pytest.raises(WorkspaceError, match="the role one may not answer questions"):
            forbidden()
    assert (len(gateway.pending()), gateway.standing()) == (1, ())
    assert operator.answer(request.request_id, YES) is not None
    grant = gateway.find(subject_of(request))
    assert grant is not None
    assert gateway.spend(grant)


def test_other_tenants_see_no_question(fleet: Fleet) -> None:
    here, there = (ApprovalStore(fleet.gateway(name, tenant=name), clock=ManualClock()) for name in ("main", "branch"))
    assert here.post(asked(1), 4)

    assert (there.pending(), there.has_listener(), there.version()) == ((), False, ())
    assert there.withdraw(asked(1).request_id) is None
    assert len(here.pending()) == 1


def test_question_is_told_at_another_desk_within_a_fifth_of_a_second(fleet: Fleet) -> None:
    fleet.member("desk", "gateway", "answer")
    here, there = (PermissionBroker(ApprovalStore(fleet.state("desk"))) for _ in range(2))
    told: dict[str, float] = {}

    def tell(pending: tuple[ApprovalRequest, ...]) -> None:
        for one in pending:
            told.setdefault(one.request_id, time.monotonic())

    leave, took = there.subscribe(tell), list[float]()
    for number in range(5):  # a busy machine may delay any one of them
        request, began_s = asked(number), time.monotonic()
        assert here.grants.post(request, 9)
        while request.request_id not in told:
            time.sleep(0.005)
        took.append(told[request.request_id] - began_s)
    leave()
    here.close()
    there.close()

    assert in_time(min(took), 0.2)


async def test_call_of_a_gateway_runs_once_after_an_answer_from_elsewhere(fleet: Fleet, tmp_path: Path) -> None:
    gateway = fleet.gateway("one")
    text = 'gatewright = 1\n\n[agents.archivist]\ntools = ["counter"]\napprovals = { counter = "ask" }\n'
    world = World(tmp_path, text, log=fleet.log(gateway))
    asking = asking_gate(world, store=ApprovalStore(gateway, clock=world.clock))
    desk = Desk(PermissionBroker(ApprovalStore(fleet.member("ada", "answer"), clock=world.clock)))

    call = asyncio.create_task(world.call("counter", {"op": "up"}))
    question = await desk.question()
    answered = await asyncio.to_thread(desk.broker.answer, question.request_id, YES)
    outcome = await soon(call)
    desk.leave()
    for broker in (desk.broker, asking):
        broker.close()
    log = fleet.log(gateway)
    kinds = [row.kind for row in log.rows() if row.call_id == outcome.call_id]
    world.close()

    assert answered is not None
    assert (outcome.status, world.counter.value) == (Status.ALLOWED, 1)
    assert [kinds.count(kind) for kind in ("ApprovalRequested", "ApprovalResolved", "ToolCompleted")] == [1, 1, 1]
    assert log.verify().problems == ()
    log.close()
