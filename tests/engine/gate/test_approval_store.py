"""The shared file of questions and standing approvals: what lasts how long, and what does not count."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.gate import Approval, ApprovalStore, Grant, Remember, approvalstore
from gatewright.gate.approval import MOST_SECONDS, ApprovalLimits, ApprovalRequest, Ask, IdRecord
from gatewright.gate.approvalstore import FILE_NAME, MOST_BYTES, ONCE_S, QuestionTooLarge, Subject, covers
from gatewright.record.folder import SHARED_KEY
from tests.engine.gate.asking import a_request, small_store
from tests.support.clock import ManualClock
from tests.support.patience import in_time

TEN_MINUTES = Approval(True, "dana", Remember.DURATION, 600.0)


def subject(*asks: Ask, digest: str = "d1", session: str = "session-1", tool: str = "vault", **more: str) -> Subject:
    return Subject(
        more.get("agent", "archivist"),
        more.get("user"),
        session,
        tool,
        more.get("operation", ""),
        more.get("tool_digest", "t1"),
        asks or (Ask("k1"),),
        lambda: digest,
    )


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> ApprovalStore:
    return small_store(tmp_path, clock)


def rows_of(folder: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(folder / "state" / FILE_NAME) as connection:
        return connection.execute("SELECT kind, row_id FROM sealed ORDER BY kind, row_id").fetchall()


def tamper(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / "state" / FILE_NAME)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_looking_writes_nothing(tmp_path: Path, store: ApprovalStore) -> None:
    assert store.find(subject()) is None
    assert (store.pending(), store.standing(), store.has_listener()) == ((), (), False)
    assert store.revoke("grant-1") is None
    assert store.answer("ask-1", TEN_MINUTES) is None
    assert list(tmp_path.iterdir()) == []


def test_who_let_go_of_the_file_and_opens_it_again_reads_what_changed_meanwhile(
    tmp_path: Path, clock: ManualClock, store: ApprovalStore
) -> None:
    looking, request = small_store(tmp_path, clock), a_request()
    assert store.post(request, 4)
    assert [asked.request_id for asked in looking.pending()] == [request.request_id]
    before = looking.version()
    looking.close()
    assert store.answer(request.request_id, Approval(False, "dana")) is not None
    assert looking.version() != before
    assert looking.pending() == ()
    assert list(looking.answers()) == [request.request_id]


def test_file_and_key_are_for_their_owner_alone(tmp_path: Path, store: ApprovalStore) -> None:
    store.remember(a_request(), TEN_MINUTES)
    modes = [
        stat.S_IMODE(path.stat().st_mode)
        for path in (
            tmp_path / "state" / FILE_NAME,
            tmp_path / "keys" / SHARED_KEY,
            *(tmp_path / "state").glob("*-wal"),
        )
    ]

    assert set(modes) == {0o600}
    assert [path.name.partition("-")[0] for path in (tmp_path / "keys").glob("*.anchor")] == ["approvals"]


def test_grant_for_once_is_spent_by_the_first_who_uses_it(store: ApprovalStore) -> None:
    grant = store.remember(a_request(), Approval(True, "dana"))

    assert store.find(subject()) == grant
    assert store.find(subject()) == grant
    assert not store.spend(replace(grant, who="eve"))
    assert [store.spend(grant) for _ in range(3)] == [True, False, False]
    assert store.find(subject()) is None


@pytest.mark.parametrize(
    ("approval", "scope", "digest", "asks", "seconds"),
    [
        (Approval(True, "dana"), None, "d1", {"k1", "k2"}, 60.0),
        (Approval(True, "dana", Remember.DURATION, 600.0), None, "", {"k1"}, 600.0),
        (Approval(True, "dana", Remember.SCOPE), "mail", "", {"k1"}, 2_592_000.0),
        (Approval(False, "dana", Remember.DURATION, 600.0), None, "d1", {"k1", "k2"}, 600.0),
    ],
    ids=["once", "duration", "scope", "refusal"],
)
def test_grant_holds_what_was_asked_and_answered(
    store: ApprovalStore,
    clock: ManualClock,
    approval: Approval,
    scope: str | None,
    digest: str,
    asks: set[str],
    seconds: float,
) -> None:
    shown = Ask("k1", "mail", about="a.md"), Ask("k2", once_only=True)
    grant = store.remember(a_request(scope="mail", operation="up", user_id="ann", asks=shown), approval)
    now_s = clock.wall_s()

    assert grant == Grant(
        grant.grant_id, approval.remember, "archivist", "ann", "session-1", "vault", "up", "t1", scope, digest,
        frozenset(asks), now_s, now_s + seconds, "dana", approval.approved, ("", "a.md"),
    )  # fmt: skip
    assert store.standing() == (grant,)


def test_lasting_grant_is_used_before_one_for_once(store: ApprovalStore) -> None:
    store.remember(a_request(), Approval(True, "dana"))
    lasting = store.remember(a_request(), TEN_MINUTES)

    assert store.find(subject()) == lasting


def test_grant_for_once_is_for_the_exact_call(store: ApprovalStore) -> None:
    store.remember(a_request(), Approval(True, "dana"))

    assert store.find(subject(digest="d2")) is None
    assert store.find(subject(session="session-2")) is None
    about_content = Ask("k1", once_only=True)
    grant = store.remember(a_request(digest="d3", asks=(about_content,)), Approval(True, "dana"))
    assert store.find(subject(about_content, digest="d3")) == grant
    assert grant.grant_id.startswith("grant-")


def test_grant_for_once_that_nobody_uses_is_soon_over(store: ApprovalStore, clock: ManualClock) -> None:
    grant = store.remember(a_request(), Approval(True, "dana"))
    clock.advance(ONCE_S)

    assert store.find(subject()) is None
    assert not store.spend(grant)


def test_grant_for_a_duration_lasts_exactly_so_long(store: ApprovalStore, clock: ManualClock) -> None:
    grant = store.remember(a_request(), TEN_MINUTES)
    clock.advance(599.0)

    assert store.find(subject(digest="d2", session="session-2")) == grant
    assert store.spend(grant)
    assert store.spend(grant)
    clock.advance(1.0)
    assert store.find(subject()) is None
    assert not store.spend(grant)
    assert store.standing() == ()


@pytest.mark.parametrize(
    "other",
    [
        subject(tool="echo"),
        subject(operation="up"),
        subject(agent="another"),
        subject(user="ann"),
        subject(tool_digest="t2"),
        subject(Ask("k1"), Ask("k2")),
        subject(Ask("k1", once_only=True)),
    ],
    ids=["tool", "operation", "agent", "user", "changed-tool", "new-ask", "ask-about-content"],
)
def test_grant_for_a_duration_covers_nothing_else(store: ApprovalStore, other: Subject) -> None:
    store.remember(a_request(), TEN_MINUTES)

    assert store.find(other) is None


def test_grant_for_a_scope_covers_every_tool_with_that_scope_in_the_session(
    store: ApprovalStore, clock: ManualClock
) -> None:
    asked = a_request(scope="mail", asks=(Ask("k1", "mail"), Ask("k2")))
    grant = store.remember(asked, Approval(True, "dana", Remember.SCOPE))
    clock.advance(1_000_000.0)

    assert store.find(subject(Ask("k9", "mail"), tool="echo", tool_digest="t9")) == grant
    assert store.find(subject(Ask("k1", "mail"), Ask("k2"))) == grant
    assert store.find(subject(Ask("k9", "mail"), Ask("k2"), tool="echo")) is None
    assert store.find(subject(Ask("k9", "post"), tool="echo")) is None
    assert store.find(subject(Ask("k1", "mail"), session="session-2")) is None


def test_scope_without_a_name_covers_the_same_operation_in_the_session(store: ApprovalStore) -> None:
    grant = store.remember(a_request(), Approval(True, "dana", Remember.SCOPE))

    assert store.find(subject(digest="d2")) == grant
    assert store.find(subject(tool="echo")) is None
    assert store.find(subject(session="session-2")) is None


def test_refusal_for_a_duration_forbids_the_identical_call_before_any_grant(
    store: ApprovalStore, clock: ManualClock
) -> None:
    grant = store.remember(a_request(), Approval(True, "dana", Remember.DURATION, 900.0))
    clock.advance(1.0)
    refusal = store.remember(a_request(), Approval(False, "eve", Remember.DURATION, 600.0))

    assert store.find(subject()) == refusal
    assert not refusal.approved
    assert store.find(subject(digest="d2")) == grant
    clock.advance(600.0)
    assert store.find(subject()) == grant


def test_revoked_grant_is_gone_for_every_process(tmp_path: Path, store: ApprovalStore, clock: ManualClock) -> None:
    grant, other = store.remember(a_request(), TEN_MINUTES), small_store(tmp_path, clock)
    version = store.version()

    assert other.find(subject()) == grant
    assert (store.version(), other.version()) == (version, version)
    assert other.revoke(grant.grant_id) == grant
    assert store.version() != version
    assert other.revoke(grant.grant_id) is None
    assert store.find(subject()) is None
    assert not store.spend(grant)


def test_what_is_over_leaves_the_file(tmp_path: Path, store: ApprovalStore, clock: ManualClock) -> None:
    for number in range(5):
        store.remember(a_request(digest=f"d{number}"), Approval(True, "dana"))
    clock.advance(ONCE_S)
    last = store.remember(a_request(), TEN_MINUTES)

    assert rows_of(tmp_path) == [("grant", last.grant_id)]
    clock.advance(600.0)
    assert store.revoke(last.grant_id) is None
    store.post(a_request(request_id="ask-1", expires_wall_s=clock.wall_s() + 45.0), 10)
    assert rows_of(tmp_path) == [("request", "ask-1")]
    clock.advance(45.0)
    store.remember(a_request(), TEN_MINUTES)
    assert [kind for kind, _ in rows_of(tmp_path)] == ["grant"]


@pytest.mark.parametrize("seconds", [None, 0.0, -5.0, float("nan"), float("inf"), 1e12])
def test_duration_that_is_none_counts_once(store: ApprovalStore, seconds: float | None) -> None:
    assert store.remember(a_request(), Approval(True, "dana", Remember.DURATION, seconds)).kind is Remember.ONCE


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE sealed SET body = replace(body, '\"dana\"', '\"eve\"')",
        "UPDATE sealed SET until_s = until_s + 100000",
        "UPDATE sealed SET agent = 'another'",
        "UPDATE sealed SET row_id = 'grant-0000000000000000'",
        "UPDATE sealed SET mac = '0000'",
        "UPDATE sealed SET mac = x'00ff'",
        "UPDATE sealed SET body = x'00ff'",
    ],
)
def test_changed_row_does_not_count_and_is_noted(
    tmp_path: Path, store: ApprovalStore, forgery: str, caplog: pytest.LogCaptureFixture
) -> None:
    grant = store.remember(a_request(), TEN_MINUTES)
    tamper(tmp_path, forgery)

    assert store.find(subject()) is None
    assert not store.spend(grant)
    assert store.standing() == ()
    assert "was not written by Gatewright" in store.notes[0]
    assert "was not written by Gatewright" in caplog.text


def test_row_made_without_the_key_does_not_count(tmp_path: Path, store: ApprovalStore, clock: ManualClock) -> None:
    store.remember(a_request(digest="other"), Approval(True, "dana"))
    forger = ApprovalStore(tmp_path / "state", tmp_path / "forged-keys", clock=clock)
    forger.remember(a_request(), TEN_MINUTES)

    assert store.find(subject()) is None
    assert [grant.digest for grant in store.standing()] == ["other"]
    assert store.notes


def test_a_hundred_thousand_forged_questions_count_for_nothing_and_keep_nobody_waiting(
    tmp_path: Path, store: ApprovalStore, clock: ManualClock
) -> None:
    asked = a_request()
    assert store.post(asked, 2)
    tamper(
        tmp_path,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) INSERT INTO sealed "
        "SELECT kind, 'forged-' || i, agent, digest, owner, until_s, body, mac FROM sealed, n",
    )
    began = time.process_time()
    opened = small_store(tmp_path, clock)

    assert [(one.request_id, one.waiting) for one in opened.pending()] == [(asked.request_id, 1)]
    assert opened.post(replace(asked, request_id="another"), 2)
    assert not opened.post(replace(asked, request_id="third"), 2)
    assert opened.answer("forged-7", TEN_MINUTES) is None
    for number in range(100):
        tamper(tmp_path, f"UPDATE sealed SET until_s = {number} WHERE kind = 'request' AND row_id = 'forged-1'")
        assert opened.find(subject()) is None
    assert (opened.standing(), len(opened.notes)) == ((), 20)
    assert in_time(time.process_time() - began, 2.0)  # at 10 us for each forged row and look it would be 100 s
    opened.close()
    store.close()


def test_row_of_another_workspace_does_not_count(tmp_path: Path, store: ApprovalStore, clock: ManualClock) -> None:
    store.remember(a_request(), TEN_MINUTES)
    store.close()
    copied = tmp_path / "elsewhere"
    copied.mkdir()
    (copied / FILE_NAME).write_bytes((tmp_path / "state" / FILE_NAME).read_bytes())
    other = ApprovalStore(copied, tmp_path / "keys", clock=clock)

    assert other.find(subject()) is None
    assert other.notes


def test_without_its_key_nothing_counts(tmp_path: Path, store: ApprovalStore, clock: ManualClock) -> None:
    store.remember(a_request(), TEN_MINUTES)
    (tmp_path / "keys" / SHARED_KEY).unlink()
    other = small_store(tmp_path, clock)

    assert other.find(subject()) is None
    assert other.notes


@pytest.mark.parametrize("how", ["find", "pending", "spend"])
def test_file_that_is_no_store_is_an_error_for_writers_and_nothing_for_readers(
    tmp_path: Path, clock: ManualClock, how: str
) -> None:
    once = ApprovalStore(clock=clock).remember(a_request(), Approval(True, "dana"))
    store = small_store(tmp_path, clock)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / FILE_NAME).write_text("this is no database, whatever its name says\n" * 30, "utf-8")
    given = {"find": (subject(),), "spend": (once,)}.get(how, ())

    assert getattr(store, how)(*given) in (None, (), False)
    assert "cannot be" in store.notes[0]
    with pytest.raises(WorkspaceError, match="cannot be"):
        store.remember(a_request(), TEN_MINUTES)


def test_link_is_not_followed(tmp_path: Path, store: ApprovalStore) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / FILE_NAME).symlink_to(tmp_path / "elsewhere.sqlite")

    with pytest.raises(WorkspaceError):
        store.post(a_request(request_id="ask-1"), 10)
    assert not (tmp_path / "elsewhere.sqlite").exists()


def test_file_that_is_removed_while_it_is_open_is_begun_anew(tmp_path: Path, store: ApprovalStore) -> None:
    store.remember(a_request(), TEN_MINUTES)
    for path in (tmp_path / "state").glob(f"{FILE_NAME}*"):
        path.unlink()

    assert store.find(subject()) is None
    again = store.remember(a_request(), TEN_MINUTES)
    assert store.find(subject()) == again


def test_question_is_listed_answered_and_taken(tmp_path: Path, store: ApprovalStore, clock: ManualClock) -> None:
    asked = a_request(request_id="ask-1", expires_wall_s=clock.wall_s() + 45.0, user_id="ann", scope="mail")
    operator = small_store(tmp_path, clock)

    assert store.post(asked, 10)
    assert operator.pending() == (asked,)
    answered = operator.answer("ask-1", Approval(True, "dana"))
    assert answered is not None
    assert operator.pending() == ()
    assert operator.answer("ask-1", Approval(False, "eve")) is None
    assert answered == Approval(True, "dana", grant_id=answered.grant_id)
    assert rows_of(tmp_path) == [("answer", "ask-1"), ("grant", answered.grant_id), ("request", "ask-1")]
    assert store.answers() == {"ask-1": answered}
    assert store.withdraw("ask-1") == answered
    assert store.answers() == {}
    assert [kind for kind, _ in rows_of(tmp_path)] == ["grant"]


@pytest.mark.parametrize("kept", [True, False])
def test_refusal_that_answers_a_question_is_kept_where_it_is_for_a_time(store: ApprovalStore, kept: bool) -> None:
    store.post(a_request(request_id="ask-1"), 10)
    refusal = Approval(False, "eve", Remember.DURATION, 600.0) if kept else Approval(False, "eve")
    answered = store.answer("ask-1", refusal)

    assert answered is not None
    assert [grant.grant_id for grant in store.standing()] == [answered.grant_id] * kept
    assert [grant.approved for grant in store.standing()] == [False] * kept


def test_question_is_over_with_its_time(store: ApprovalStore, clock: ManualClock) -> None:
    store.post(a_request(request_id="ask-1", expires_wall_s=clock.wall_s() + 45.0), 10)
    clock.advance(45.0)

    assert store.pending() == ()
    assert store.answer("ask-1", Approval(True, "dana")) is None


def test_question_too_large_to_look_through_is_refused(store: ApprovalStore) -> None:
    with pytest.raises(QuestionTooLarge, match="bytes"):
        store.post(a_request(request_id="ask-1", arguments={"text": "x" * MOST_BYTES}), 10)
    assert store.pending() == ()
    room = MOST_BYTES - len(canonical_json(a_request(request_id="ask-1", arguments={"text": ""}).to_json()))
    assert store.post(a_request(request_id="ask-1", arguments={"text": "x" * room}), 10)
    said = "the question has 1,048,577 bytes, more than the 1,048,576 that an operator may see"
    with pytest.raises(QuestionTooLarge, match=f"^{said}$"):
        store.post(a_request(request_id="ask-2", arguments={"text": "x" * (room + 1)}), 10)


def test_agent_has_only_so_many_calls_waiting(store: ApprovalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    posted = [store.post(a_request(request_id=f"ask-{n}", digest=f"d{n}"), 3) for n in range(5)]

    assert posted == [True, True, True, False, False]
    assert store.post(a_request(request_id="ask-8", user_id="ann"), 3)
    assert store.post(a_request("another", request_id="ask-9"), 3)
    monkeypatch.setattr(approvalstore, "MOST_QUESTIONS", 6)
    assert [store.post(a_request(f"agent{n}", request_id=f"asks-{n}"), 3) for n in range(2)] == [True, False]


def test_life_file_is_gone_once_nothing_hangs_on_it(tmp_path: Path, store: ApprovalStore) -> None:
    store.post(a_request(request_id="ask-1"), 10)
    listener, other = store.attach(), store.attach()
    alive = [len(list((tmp_path / where).glob("*.alive"))) for where in ("state", "keys")]
    store.withdraw("ask-1")
    store.detach(listener)
    store.detach(other)

    assert alive == [1, 1]
    assert list(tmp_path.rglob("*.alive")) == []
    assert not store.has_listener()


def test_operator_attends_the_state_folder_that_is_meant_by_whatever_name_and_no_other(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one/.gatewright", "two/.gatewright", "one/.gatewright/below")]
    stores = [ApprovalStore(folder, tmp_path / "keys") for folder in folders]
    for number, store in enumerate(stores):
        listener = store.attach()
        assert [other.has_listener() for other in stores] == [other is store for other in stores]
        assert not folders[number].exists()
        store.detach(listener)
    (tmp_path / "one").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "one")
    stores[0].attach()
    assert ApprovalStore(tmp_path / "link/.gatewright", tmp_path / "keys").has_listener()
    assert not ApprovalStore(folders[0], tmp_path / "other_keys").has_listener()
    for store in stores:
        store.close()


def test_operators_that_come_and_go_are_seen_by_all_who_look_meanwhile(tmp_path: Path) -> None:
    """Making the file and holding it are two steps, and who looks removes files that nobody holds."""
    stays = small_store(tmp_path)
    stays.attach()

    def come_and_go(_: int) -> int:
        seen = 0
        for _ in range(20):
            store = small_store(tmp_path)
            listener = store.attach()
            seen += small_store(tmp_path).has_listener()
            store.detach(listener)
            seen += small_store(tmp_path).has_listener()
            store.close()
        return seen

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(come_and_go, range(6))) == [40] * 6
    stays.close()
    assert not small_store(tmp_path).has_listener()
    assert list((tmp_path / "keys").glob("*.alive")) == []


def test_operator_who_leaves_takes_no_other_one_away(store: ApprovalStore) -> None:
    gone, left, stays = (store.attach() for _ in range(3))
    store.detach(gone)
    store.detach(left)

    assert store.has_listener()
    store.detach(stays)
    assert not store.has_listener()


def test_question_of_somebody_whose_life_file_is_not_held_is_gone(tmp_path: Path, clock: ManualClock) -> None:
    dead, other = small_store(tmp_path, clock), small_store(tmp_path, clock)
    dead.post(a_request(request_id="ask-1"), 10)
    dead.attach()
    assert (len(other.pending()), other.has_listener()) == (1, True)
    dead.close()

    assert (other.pending(), other.has_listener()) == ((), False)


def test_store_without_a_folder_lives_in_memory(clock: ManualClock) -> None:
    store = ApprovalStore(clock=clock)
    store.post(a_request(request_id="ask-1"), 10)
    answered = store.answer("ask-1", TEN_MINUTES)

    assert answered is not None
    assert store.find(subject()) == store.get(answered.grant_id)
    assert store.revoke(answered.grant_id) is not None
    assert ApprovalStore().remember(a_request(), TEN_MINUTES).expires_wall_s == pytest.approx(time.time() + 600, abs=60)


@pytest.mark.parametrize(
    ("changed", "covering"),
    [
        ({}, "once duration scope refusal"),
        ({"agent": "another"}, ""),
        ({"user": "ann"}, ""),
        ({"session": "session-2"}, "duration"),
        ({"digest": "d2"}, "duration scope"),
        ({"tool": "echo"}, "refusal"),
        ({"operation": "up"}, "refusal"),
        ({"tool_digest": "t2"}, "refusal"),
        ({"asks": [Ask("k2")]}, "refusal"),
        ({"asks": [Ask("k1"), Ask("k2")]}, "refusal"),
        ({"asks": [Ask("k1", "post")]}, "once duration scope refusal"),
        ({"asks": [Ask("k2", "post")]}, "refusal"),
        ({"asks": [Ask("k2", "mail")], "tool": "echo"}, "scope refusal"),
        ({"asks": [Ask("k1", "mail", once_only=True)]}, "once refusal"),
        ({"wall_s": 99.9}, "once duration scope refusal"),
        ({"wall_s": 100.0}, ""),
        ({"expires": None}, "once scope refusal"),
        ({"expires": None, "wall_s": 1e12}, "once scope refusal"),
    ],
    ids=str,
)
def test_grant_covers_what_is_the_same_in_all_that_counts_for_its_kind(changed: dict[str, Any], covering: str) -> None:
    asks, wall_s, expires_s = changed.get("asks", ()), changed.get("wall_s", 0.0), changed.get("expires", 100.0)
    others = {key: value for key, value in changed.items() if key not in {"asks", "wall_s", "expires"}}
    for name in ("once", "duration", "scope", "refusal"):
        kind, scope = Remember("once" if name == "refusal" else name), "mail" if name == "scope" else None
        grant = Grant(
            "g", kind, "archivist", None, "session-1", "vault", "", "t1", scope, "d1", frozenset({"k1"}), 0.0,
            expires_s, "dana", approved=name != "refusal",
        )  # fmt: skip
        assert covers(grant, subject(*asks, **others), wall_s) is (name in covering.split()), name


def test_grant_says_the_same_as_json() -> None:
    grant = Grant(
        "grant-1", Remember.SCOPE, "a", None, "s", "t", "o", "d", "mail", "", frozenset({"k2", "k1"}), 1.5, None, "dana"
    )

    assert Grant.from_json(grant.to_json()) == grant
    for wrong in (True, "1.5", None):
        with pytest.raises(TypeError, match="seconds"):
            Grant.from_json({**grant.to_json(), "granted": wrong})


ASK: dict[str, JsonValue] = {"key": "k1", "scope": "mail", "once_only": True, "about": "notes/a.md"}
RECORD: dict[str, JsonValue] = {"argument": "id", "value": 7, "record": {"id": 7}, "called": "t.o", "time": 3.5}
REQUEST: dict[str, JsonValue] = {
    "id": "ask-1",
    "agent": "a",
    "user": "u",
    "session": "s",
    "call": "c",
    "tool": "t",
    "operation": "o",
    "safety_tier": "privileged",
    "arguments": {"x": 1},
    "diff": "+x",
    "reasons": ["r1", "r2"],
    "scope": "mail",
    "asked": 1.5,
    "expires": 2.5,
    "waiting": 3,
    "digest": "d",
    "tool_digest": "td",
    "asks": [ASK],
    "client": "cli",
    "process": 9,
    "places": [["agents", "a", 0], []],
    "records": [RECORD],
}
ANSWERED: dict[str, JsonValue] = {
    "approved": True,
    "who": "dana",
    "remember": "duration",
    "seconds": 4.0,
    "grant": "grant-1",
    "code": "c",
    "reason": "why",
}
GRANT: dict[str, JsonValue] = {
    "id": "grant-1",
    "kind": "scope",
    "approved": False,
    "agent": "a",
    "user": "u",
    "session": "s",
    "tool": "t",
    "operation": "o",
    "tool_digest": "td",
    "scope": "mail",
    "digest": "d",
    "asks": ["k1", "k2"],
    "granted": 1.5,
    "expires": 2.5,
    "who": "dana",
    "about": ["", "notes/a.md"],
}


def test_what_is_kept_is_read_as_it_was_written_under_names_that_stay() -> None:
    ask = Ask("k1", "mail", once_only=True, about="notes/a.md")
    request = ApprovalRequest(
        "a", "t", "o", {"x": 1}, ("r1", "r2"), "+x", "mail", "d", "c", "s", "u", "td", "ask-1", 1.5, 2.5,
        safety_tier="privileged", asks=(ask,), waiting=3, client="cli", process_id=9,
        places=(("agents", "a", 0), ()), records=(IdRecord("id", 7, {"id": 7}, "t.o", 3.5),),
    )  # fmt: skip
    approval = Approval(True, "dana", Remember.DURATION, 4.0, "grant-1", "c", "why")
    grant = Grant(
        "grant-1", Remember.SCOPE, "a", "u", "s", "t", "o", "td", "mail", "d", frozenset({"k2", "k1"}), 1.5, 2.5,
        "dana", approved=False, about=("", "notes/a.md"),
    )  # fmt: skip

    assert (request.to_json(), ApprovalRequest.from_json(REQUEST)) == (REQUEST, request)
    assert ApprovalRequest.from_json(REQUEST).arguments == {"x": 1}
    assert (approval.to_json(), Approval.from_json(ANSWERED)) == (ANSWERED, approval)
    assert (grant.to_json(), Grant.from_json(GRANT)) == (GRANT, grant)


def test_what_older_versions_kept_is_read_without_what_they_did_not_know() -> None:
    def without(table: dict[str, JsonValue], *keys: str) -> dict[str, JsonValue]:
        return {key: value for key, value in table.items() if key not in keys}

    request = ApprovalRequest.from_json(without(REQUEST, "client", "process", "places", "records"))
    assert (request.client, request.process_id, request.places, request.records) == ("", 0, (), ())
    assert Ask.from_json({**without(ASK, "about"), "scope": None, "once_only": 1}) == Ask("k1")
    assert Grant.from_json({**without(GRANT, "about"), "user": None, "scope": None, "expires": None}).about == ()
    nowhere: list[list[JsonValue]] = [[None], [1.5]]
    for place in nowhere:
        with pytest.raises(TypeError, match="place"):
            ApprovalRequest.from_json({**REQUEST, "places": [[*place]]})
    for value in (True, 1.5, None):
        with pytest.raises(TypeError, match="an id"):
            ApprovalRequest.from_json({**REQUEST, "records": [{**RECORD, "value": value}]})


@pytest.mark.parametrize(
    ("approval", "lasts"),
    [
        (Approval(True, remember=Remember.DURATION, seconds=0.5), True),
        (Approval(False, remember=Remember.DURATION, seconds=MOST_SECONDS), True),
        (Approval(True, remember=Remember.DURATION, seconds=MOST_SECONDS + 1), False),
        (Approval(True, remember=Remember.DURATION, seconds=0), False),
        (Approval(True, remember=Remember.DURATION, seconds=float("nan")), False),
        (Approval(True, remember=Remember.DURATION), False),
        (Approval(True, remember=Remember.SCOPE), True),
        (Approval(False, remember=Remember.SCOPE), False),
        (Approval(True), False),
    ],
    ids=str,
)
def test_answer_lasts_for_a_time_that_can_be_kept_or_a_scope_that_was_allowed(approval: Approval, lasts: bool) -> None:
    assert approval.lasts is lasts


def test_limits_of_questions_are_bounded() -> None:
    week_s = 7 * 86_400.0
    assert ApprovalLimits(week_s, 0, 0).timeout_s == week_s
    assert (ApprovalLimits().timeout_s, ApprovalLimits().waiting, ApprovalLimits().per_minute) == (45.0, 10, 30)
    for wrong in ((0.0, 1, 1), (-1.0, 1, 1), (week_s + 1, 1, 1), (1.0, -1, 1), (1.0, 1, -1)):
        with pytest.raises(ValueError, match=r"timeout_s|waiting"):
            ApprovalLimits(*wrong)


def test_key_of_the_wrong_size_is_an_error(tmp_path: Path, store: ApprovalStore) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / SHARED_KEY).write_bytes(os.urandom(5))

    with pytest.raises(WorkspaceError, match="damaged"):
        store.remember(a_request(), TEN_MINUTES)


def test_a_key_folder_that_cannot_be_read_has_no_listener_and_says_so(tmp_path: Path, store: ApprovalStore) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "keys").symlink_to(tmp_path / "elsewhere")
    assert not store.has_listener()
    assert any("cannot be read" in note for note in store.notes)
    with pytest.raises(WorkspaceError, match="cannot be written"):
        store.attach()


def test_question_that_was_withdrawn_and_is_put_back_is_not_asked_again(
    tmp_path: Path, store: ApprovalStore, clock: ManualClock
) -> None:
    store.post(a_request(request_id="ask-0"), 10)
    store.post(a_request(request_id="ask-1", digest="d2"), 10)
    with sqlite3.connect(tmp_path / "state" / FILE_NAME) as connection:
        kept = connection.execute("SELECT * FROM sealed WHERE row_id = 'ask-1'").fetchone()
    store.withdraw("ask-1")
    with sqlite3.connect(tmp_path / "state" / FILE_NAME) as connection:
        connection.execute("INSERT INTO sealed VALUES (?, ?, ?, ?, ?, ?, ?, ?)", kept)
    connection.close()

    assert [one.request_id for one in small_store(tmp_path, clock).pending()] == ["ask-0"]
    assert store.answer("ask-1", TEN_MINUTES) is None
    assert rows_of(tmp_path) == [("request", "ask-0")]
