"""Looking through the calls of a log by filter, as the Audit page and ``audit list`` do."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.base.amount import iso_utc
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import (
    AuditChoices,
    AuditEntry,
    AuditFilter,
    AuditIndex,
    AuditLog,
    AuditUnavailable,
    LoggedCall,
    RowKind,
)
from gatewright.gate.audit_index import words_of
from tests.support.clock import ManualClock
from tests.support.logged_calls import BEGIN_S, call_rows, fill_log

STATES = "asked", "failed", "unreached"
CALLS = 6_700  # with its first row a log of 20,101 rows


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with calls a minute apart, which no test changes."""
    folder = tmp_path_factory.mktemp("filled")
    fill_log(folder / "state", folder / "keys", CALLS)
    return folder / "state"


@pytest.fixture
def index(filled: Path) -> Generator[AuditIndex]:
    """An index of the whole log, read in several pieces."""
    made = whole(filled, 3_000)
    yield made
    made.close()


def whole(state: Path, most: int = 50_000) -> AuditIndex:
    made = AuditIndex(state)
    while made.read_older(most):
        pass
    return made


def found(index: AuditIndex, wanted: AuditFilter = AuditFilter()) -> tuple[LoggedCall, ...]:  # noqa: B008
    return index.calls(index.numbers(wanted))


def log_of(folder: Path) -> AuditLog:
    return AuditLog(folder / "state", folder / "keys")


def test_rows_of_a_call_are_one_call_newest_first_however_the_log_was_read(index: AuditIndex) -> None:
    calls = found(index)

    assert index.read_rows == (20_101, 20_101)
    assert [call.called for call in (calls[0], calls[-1])] == ["file.read", "LogOpened"]
    assert len(calls) == CALLS + 1
    assert [call.seq for call in calls] == sorted((call.seq for call in calls), reverse=True)
    assert all(call.last == call.seq + 2 for call in calls[:-1])
    assert Counter(call.verdict for call in calls) == {"allow": 5622, "deny": 609, "ask": 469, "": 1}
    newest = calls[0]
    assert (newest.agent, newest.client, newest.ended, newest.elapsed_ms) == ("researcher", "", "ToolCompleted", 0.4)
    assert newest.wall_s == pytest.approx(BEGIN_S + CALLS * 60, abs=0.01)


def test_tally_of_the_last_hours_reads_no_more_of_the_log_than_it_needs(filled: Path, index: AuditIndex) -> None:
    since_s = BEGIN_S + (CALLS - 700) * 60
    wanted = Counter((call.agent, call.verdict) for call in found(index, AuditFilter(since_s=since_s)))
    made = AuditIndex(filled)
    made.read_older(900)

    assert made.tally(BEGIN_S + (CALLS - 100) * 60)
    assert made.read_rows == (900, 20_101)
    tally = made.tally(since_s)

    assert {(agent, verdict): count for agent, row in tally.items() for verdict, count in row.items()} == wanted
    assert sum(wanted.values()) == 701
    made.close()


def test_tally_counts_every_call_of_the_moment_that_it_begins_with(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, tmp_path / "keys", clock=ManualClock(BEGIN_S))
    for number in range(4):
        log.append(call_rows(number, "a"))
    log.close()
    made = AuditIndex(tmp_path)
    made.read_older(6)

    assert made.tally(BEGIN_S) == {"a": {"allow": 4}}
    made.close()


FITTING: list[tuple[AuditFilter, Callable[[int], bool]]] = [
    (AuditFilter(agent="operator"), lambda number: number % 3 == 2),
    (AuditFilter(tool="file.append"), lambda number: number % 11 == 0),
    (AuditFilter(tool="file"), lambda _number: True),
    (AuditFilter(tool="append"), lambda _number: False),
    (AuditFilter(verdict="ask"), lambda number: number % 13 == 0 and number % 11 != 0),
    (AuditFilter(client="claude-code"), lambda number: number % 2 == 1),
    (AuditFilter(words=("READ", "`33.md`")), lambda number: number == 33),
    (AuditFilter(since_s=BEGIN_S + 600, until_s=BEGIN_S + 1200), lambda number: 10 <= number < 20),
    (AuditFilter(agent="archivist", verdict="deny"), lambda number: number % 33 == 0),
    (AuditFilter(text=("OPERATOR", "every", "file.read")), lambda number: number % 3 == 2 and number % 11 > 0),
    (AuditFilter(text=("claude", '"path":"33.md"')), lambda number: number == 33),
    (AuditFilter(state="asked"), lambda number: number % 13 == 0 and number % 11 != 0),
]


@pytest.mark.parametrize(
    ("wanted", "fits"),
    FITTING,
)
def test_filter_finds_exactly_the_calls_that_fit(
    index: AuditIndex, wanted: AuditFilter, fits: Callable[[int], bool]
) -> None:
    numbers = [int(call.call_id.removeprefix("call-"), 16) for call in found(index, wanted) if call.is_call]

    assert numbers == [number for number in range(CALLS, 0, -1) if fits(number)]


def test_calls_are_counted_by_time_and_verdict(index: AuditIndex) -> None:
    counts = index.counts(AuditFilter(agent="archivist"), BEGIN_S, 86_400)

    assert sum(count.count for count in counts) == CALLS // 3
    day = {count.verdict: count.count for count in counts if count.stretch == 0}
    assert sum(day.values()) == 1439 // 3
    assert set(day) == {"allow", "ask", "deny"}
    assert index.span() == (pytest.approx(BEGIN_S + 60, abs=0.01), pytest.approx(BEGIN_S + CALLS * 60, abs=0.01))


def test_last_calls_of_a_tool_by_an_agent_are_told_with_their_number_today(filled: Path, index: AuditIndex) -> None:
    since_s, today_s = BEGIN_S + (CALLS - 700) * 60, BEGIN_S + (CALLS - 30) * 60
    calls = [call for call in found(index, AuditFilter(since_s=since_s)) if call.verdict and call.wall_s is not None]
    keys = {(call.agent, call.tool, bool(call.client)) for call in calls}
    assert len(keys) > 2
    made = AuditIndex(filled)
    told = made.by_tool(since_s, today_s)
    assert {(one.agent, one.tool, one.by_client) for one in told} == keys
    for one in told:
        times = [
            call.wall_s or 0.0
            for call in calls
            if (call.agent, call.tool, bool(call.client)) == (one.agent, one.tool, one.by_client)
        ]
        assert (one.last_s, one.today) == (max(times), sum(time >= today_s for time in times))
    made.close()


def test_choices_are_what_the_log_names(index: AuditIndex) -> None:
    choices = index.choices()

    assert choices.agents == ("archivist", "operator", "researcher")
    assert choices.tools == ("file", "file.append", "file.read")
    assert choices.clients == ("claude-code",)


def test_rows_of_one_call_and_of_all_that_fit_are_those_of_the_log(filled: Path, index: AuditIndex) -> None:
    wanted = AuditFilter(agent="archivist", verdict="deny")
    call = found(index, wanted)[0]
    written = [row for row in AuditLog(filled, filled).rows() if row.call_id == call.call_id]
    rows = list(index.rows(wanted))

    assert list(index.rows_of(call)) == written
    assert len(rows) == 3 * len(index.numbers(wanted))
    assert [row.seq for row in rows] == sorted(row.seq for row in rows)
    assert rows[-3:] == written


def test_newest_calls_are_there_before_the_rest_is_read(filled: Path) -> None:
    index = AuditIndex(filled)
    more = index.read_older(900)
    calls = found(index)
    index.close()

    assert more
    assert len(calls) == 300
    assert index.read_rows[0] == 900


def test_rows_of_another_process_come_on_top_and_complete_what_was_begun(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    first, last = call_rows(1), call_rows(2)
    log.append([*first, *last[:1]])
    index = whole(tmp_path / "state")
    before = found(index)
    nothing = index.read_newer()
    log.append([*last[1:], *call_rows(3, verdict="deny")])
    changed = index.read_newer()
    after = found(index)
    log.append([AuditEntry(RowKind.CATALOG_ACCEPTED), *call_rows(4)])
    log.append([AuditEntry(RowKind.CATALOG_ACCEPTED)])
    assert [index.read_newer(), index.read_newer()] == [11, None]
    log.append([AuditEntry(RowKind.CATALOG_ACCEPTED)])
    assert (index.read_newer(), index.read_rows, index.read_older()) == (16, (16, 16), False)
    index.close()
    log.close()

    assert nothing is None
    assert [call.ended for call in before] == ["", "ToolCompleted", ""]
    assert changed == before[0].seq
    assert [call.ended for call in after] == ["ToolDenied", "ToolCompleted", "ToolCompleted", ""]


def test_call_that_asked_counts_by_its_last_decision_wherever_reading_began(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    asked, allowed = call_rows(1, verdict="ask"), call_rows(1)
    log.append([*asked[:2], *(row for number in range(2, 9) for row in call_rows(number)), *allowed[1:]])
    log.close()
    for most in (1, 2, 5, 100):
        index = whole(tmp_path / "state", most)
        call = found(index, AuditFilter(verdict="allow"))[-1]
        asks = index.numbers(AuditFilter(verdict="ask"))
        index.close()

        assert (call.call_id, call.seq, call.last, call.ended) == (asked[0].call_id, 2, 26, "ToolCompleted")
        assert len(asks) == 0


def test_calls_that_asked_that_failed_and_that_reached_nobody_are_found_with_their_answers(tmp_path: Path) -> None:
    log = log_of(tmp_path)

    def rows(number: int, verdict: str, *kinds: tuple[RowKind, Mapping[str, JsonValue]]) -> list[AuditEntry]:
        first = call_rows(number, verdict=verdict)[0]
        return [first, *(replace(first, kind=kind, body=dict(body)) for kind, body in kinds)]

    decided, asked, ended = RowKind.POLICY_DECISION, RowKind.APPROVAL_REQUESTED, RowKind.TOOL_COMPLETED
    said: dict[str, JsonValue] = {"approved": True, "who": "dana", "remember": "scope", "grant": "g1"}
    answered: list[tuple[RowKind, Mapping[str, JsonValue]]] = [(asked, {}), (RowKind.APPROVAL_RESOLVED, said)]
    answered.append((decided, {"verdict": "allow", "grant": "g1"}))
    log.append(rows(1, "ask", (decided, {"verdict": "ask"}), *answered, (ended, {})))
    log.append(rows(2, "allow", (decided, {"verdict": "allow", "grant": "g1"}), (RowKind.TOOL_FAILED, {})))
    log.append(rows(3, "ask", (decided, {"verdict": "ask"}), (asked, {})))
    log.append(rows(4, "ask", (decided, {"verdict": "ask"}), (RowKind.TOOL_DENIED, {"code": "unanswered"})))
    log.append(call_rows(5))
    log.close()
    for most in (1, 3, 100):
        index = whole(tmp_path / "state", most)
        by_state = {state: found(index, AuditFilter(state=state)) for state in STATES}
        of = {state: [int(call.call_id[-1]) for call in calls] for state, calls in by_state.items()}
        answers = {int(call.call_id[-1]): call.answer for call in found(index) if call.is_call}
        uses = index.grants(BEGIN_S - 1), index.grants(BEGIN_S * 2)
        by_dana = [call.call_id for call in found(index, AuditFilter(text=("dana",)))]
        index.close()

        assert of == {"asked": [4, 3, 1], "failed": [2], "unreached": [4]}
        assert answers.pop(1) == json.dumps(said, separators=(",", ":"), sort_keys=True)
        assert answers == {5: None, 4: None, 3: "", 2: None}
        assert uses == ({"g1": 2}, {})
        assert len(by_dana) == 1


def test_rows_that_belong_to_no_call_say_what_happened(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.append([AuditEntry(RowKind.POLICY_CHANGED, body={"refused": False, "changes": ["agent `a` is new", "b"]})])
    log.append([AuditEntry(RowKind.POLICY_CHANGED, body={"refused": True, "problems": ["line 3: no"]})])
    log.append([AuditEntry(RowKind.GRANT_REVOKED, agent="a", tool="file", body={"who": "Ann", "given_by": "Bo"})])
    log.append([AuditEntry(RowKind.CATALOG_ACCEPTED, body={"catalog": "github", "accepted": 4, "who": "Ann"})])
    log.close()
    index = whole(tmp_path / "state")
    told = [(call.kind, call.is_call, call.reason) for call in reversed(found(index))]
    index.close()

    assert told == [
        ("LogOpened", False, "the log begins"),
        ("PolicyChanged", False, "agent `a` is new; b"),
        ("PolicyChanged", False, "refused: line 3: no"),
        ("GrantRevoked", False, "Ann revoked a standing answer of Bo"),
        ("CatalogAccepted", False, "Ann accepted tools of catalog `github`: 4"),
    ]


def test_call_is_told_whole_and_its_arguments_in_short(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "state", tmp_path / "keys", clock=ManualClock(BEGIN_S))
    given: dict[str, JsonValue] = {"op": "read", "a": "a" * 98, "b": "b" * 99, "c": [1, {"d": None}]}
    log.append(call_rows(7, reason="why", client="cli", arguments=given | {f"n{at}": at for at in range(6)}))
    log.append([AuditEntry(RowKind.TOOL_INVOKED, "call-8", "a", "s", "echo", "", {"arguments": [1]})])
    shell: dict[str, JsonValue] = {"description": "Shows the state", "command": "git status  | head"}
    log.append(call_rows(9, arguments=shell))
    log.close()
    index = whole(tmp_path / "state")
    command, bare, call, opened = found(index)
    assert command.arguments == "git status  | head"
    assert list(index.split(AuditFilter())[1]) == [opened.seq]
    index.close()

    short = f'a={"a" * 98}  b={"b" * 98}…  c=[1, {{"d": null}}]  n0=0  n1=1  n2=2  n3=3  n4=4'
    names = "archivist", "session-0", "file", "read", "allow", "why", "cli", "ToolCompleted"
    assert call == LoggedCall(2, 4, BEGIN_S, "ToolInvoked", "call-0000000000000007", *names, 0.4, arguments=short)
    assert bare == LoggedCall(
        5, 5, BEGIN_S, "ToolInvoked", "call-8", "a", "s", "echo", "", "", "", "", "", None
    )  # fmt: skip
    assert (call.called, bare.called, opened.called) == ("file.read", "echo", "LogOpened")
    batch, odd = replace(call, operation='["append", "\\u0007read"]'), replace(call, operation='["append", "re')
    assert (batch.called, odd.called) == ("file.append, \\u0007read", 'file.["append", "re')
    assert opened.to_json() == {
        "time": iso_utc(BEGIN_S), "seq": 1, "last": 1, "kind": "LogOpened", "call_id": "", "agent": "", "session": "",
        "tool": "", "operation": "", "verdict": "", "reason": "the log begins", "client": "", "ended": "",
        "elapsed_ms": None, "within": "", "step": None, "steps": 0, "arguments": "", "callers": [], "started": 0,
        "answer": None,
    }  # fmt: skip
    assert replace(opened, wall_s=None).to_json()["time"] is None


def test_index_of_what_was_not_read_or_is_gone_is_empty(filled: Path, tmp_path: Path) -> None:
    def answers(index: AuditIndex) -> tuple[object, ...]:
        wanted = AuditFilter()
        counts = index.counts(wanted, 0.0, 1.0)
        return found(index), counts, list(index.rows(wanted)), index.span(), index.choices(), index.read_rows

    assert answers(AuditIndex(filled)) == ((), (), [], None, AuditChoices(), (0, 0))
    (tmp_path / "other").mkdir()
    (tmp_path / "other/audit.sqlite3").touch()
    assert (AuditIndex(tmp_path / "other").read_older(), AuditIndex(filled).tally(BEGIN_S + CALLS * 60 - 1)) == (
        False,
        {"researcher": {"allow": 1}},
    )
    log = log_of(tmp_path)
    log.append(call_rows(1))
    log.close()
    index = whole(tmp_path / "state")
    (call, _) = found(index)
    shutil.rmtree(tmp_path / "state")

    assert (index.read_newer(), index.read_newer(), index.read_older()) == (0, None, False)
    assert answers(index) == ((), (), [], None, AuditChoices(), (0, 0))
    assert (index.rows_of(call), index.tally(0.0)) == ((), {})
    index.close()


def test_where_there_is_no_log_there_is_no_call_and_the_first_one_shows(tmp_path: Path) -> None:
    index = AuditIndex(tmp_path / "state")
    log = log_of(tmp_path)

    assert (index.read_older(), index.read_newer(), index.span(), found(index)) == (False, None, None, ())
    log.append(call_rows(1))
    assert index.read_newer() == 0
    index.read_older()
    assert [call.called for call in found(index)] == ["file.read", "LogOpened"]
    log.close()
    index.close()


def test_calls_that_were_taken_out_of_the_log_are_shown_no_longer(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.append([*call_rows(1), *call_rows(2, "operator")])
    log.close()
    index = whole(tmp_path / "state")
    with closing(sqlite3.connect(log.path)) as connection:
        connection.execute("DELETE FROM rows WHERE agent = 'operator'")
        connection.commit()

    assert index.read_newer() == 0
    index.read_older()
    assert "operator" not in [call.agent for call in found(index)]
    index.close()


def test_spoiled_rows_are_still_shown(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.append([*call_rows(1), *call_rows(2)])
    log.close()
    with closing(sqlite3.connect(log.path)) as connection:
        connection.execute("UPDATE rows SET body = 'no json', time = 'yesterday' WHERE seq IN (1, 2, 3)")
        connection.execute("UPDATE rows SET agent = x'00ff', body = '{\"verdict\": [1], \"reason\": 7}' WHERE seq = 6")
        connection.execute("UPDATE rows SET agent = x'00ff' WHERE seq = 5")
        connection.commit()
    index = whole(tmp_path / "state")
    calls = found(index)
    index.close()

    assert [(call.verdict, call.wall_s is None, call.ended) for call in calls] == [
        ("[1]", False, "ToolCompleted"),
        ("", True, "ToolCompleted"),
        ("", True, ""),
    ]
    assert calls[0].agent == "\x00\ufffd"
    assert calls[2].reason == "unreadable"


def test_a_file_that_is_no_log_is_said_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/audit.sqlite3").write_bytes(b"no database at all" * 100)

    with pytest.raises(AuditUnavailable, match=r"the audit log `.*audit\.sqlite3` cannot be read"):
        AuditIndex(tmp_path / "state").read_older()


def test_index_in_the_file_of_somebody_else_cannot_hide_a_call(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.append([*call_rows(1), *call_rows(2, verdict="deny")])
    log.close()
    with closing(sqlite3.connect(log.path)) as connection:
        connection.execute("CREATE TABLE calls (seq INTEGER, call_id TEXT)")
        connection.commit()
    index = whole(tmp_path / "state")

    assert [call.verdict for call in found(index)] == ["deny", "allow", ""]
    index.close()


def test_log_that_took_the_place_of_another_is_read_anew(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.append([*call_rows(1), *call_rows(2)])
    log.close()
    index = whole(tmp_path / "state")
    (tmp_path / "state").rename(tmp_path / "old")
    again = log_of(tmp_path)
    again.append(call_rows(7, "operator"))
    again.close()

    assert index.read_newer() == 0
    index.read_older()
    assert [call.agent for call in found(index)] == ["operator", ""]
    index.close()


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        (RowKind.POLICY_CHANGED, {"changes": ["one", "two"]}, "one; two"),
        (RowKind.POLICY_CHANGED, {"refused": True, "problems": ["no"]}, "refused: no"),
        (RowKind.GRANT_REVOKED, {"who": "me", "given_by": "you"}, "me revoked a standing answer of you"),
        (RowKind.GRANT_REVOKED, {"x": 1}, "somebody revoked a standing answer of somebody"),
        (RowKind.CATALOG_ACCEPTED, {"catalog": "c", "accepted": 3}, "somebody accepted tools of catalog `c`: 3"),
        (
            RowKind.MEMORY_ADOPTED,
            {"who": "me", "files": ["memory.sqlite", "notes/a.sqlite"]},
            "me adopted memory from elsewhere: memory.sqlite; notes/a.sqlite",
        ),
        (RowKind.SESSION_DELETED, {"session": "x"}, "the session `x` was deleted with all its counts"),
        (RowKind.LOG_MOVED, {"who": "me", "from": "a", "to": "b"}, "me moved the log from `a` to `b`"),
        (RowKind.LOG_OPENED, {"anchor": 7}, "the log ended before row 7 of its anchor, and continues here"),
        (RowKind.LOG_OPENED, {"log": "x"}, "the log begins"),
        (
            RowKind.CONNECTION,
            {"host": "a.org", "port": 443, "allowed": True, "sent": 1200, "received": 5},
            "connected to `a.org:443`, 1,200 bytes sent and 5 received",
        ),
        (
            RowKind.CONNECTION,
            {"host": "a.org", "port": 443, "allowed": False, "why": "no", "count": 1000},
            "refused `a.org:443`, 1,000 times: no",
        ),
        (RowKind.CONNECTION, {"allowed": [], "port": "x", "count": "y"}, "refused `a host without a name:x`"),
        (
            RowKind.CONNECTION,
            {"allowed": True, "sent": {}},
            "connected to a host without a name, 0 bytes sent and 0 received",
        ),
        (
            RowKind.COPY_RETURNED,
            {"written_count": 3, "kept_back_count": 2, "folder": "/k"},
            "3 changes in a private copy were written back and 2 held back, in `/k`",
        ),
        (
            RowKind.COPY_RETURNED,
            {"unread": "too deep", "folder": "/k"},
            "nothing was written back from the private copy in `/k`: too deep",
        ),
        (RowKind.TOOL_INVOKED, {"x": 1}, ""),
        (RowKind.LOG_OPENED, [], "unreadable"),
        (RowKind.POLICY_CHANGED, {"changes": "one"}, ""),
        (RowKind.POLICY_CHANGED, {"refused": True}, "refused: "),
        (RowKind.CATALOG_ACCEPTED, {"who": "me"}, "me accepted tools of catalog ``: 0"),
        (RowKind.LOG_MOVED, {"who": "me"}, "me moved the log from `` to ``"),
    ],
)
def test_what_a_row_of_no_call_says_is_a_sentence(kind: RowKind, body: object, words: str) -> None:
    assert words_of(kind, json.dumps(body)) == words


@st.composite
def trees(draw: st.DrawFn) -> list[int | None]:
    """Of each call the one that it is a step of, which comes before it; None: of none."""
    count = draw(st.integers(1, 14))
    return [draw(st.one_of(st.none(), st.integers(0, at - 1))) if at else None for at in range(count)]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees(), piece=st.integers(2, 60))
def test_calls_and_their_steps_lead_to_each_other(
    tree: list[int | None], piece: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("steps")
    log, places = log_of(folder), list[tuple[int, int] | None]()
    for above in tree:
        places.append(None if above is None else (above, tree[: len(places)].count(above)))
        log.append(call_rows(len(places) - 1, within=places[-1]))
    assert log.verify().is_sound
    log.close()
    index = whole(folder / "state", piece)

    def name(number: int) -> str:
        return f"call-{number:016x}"

    def family(number: int) -> set[int]:
        return {number}.union(*(family(below) for below, above in enumerate(tree) if above == number))

    calls = {call.call_id: call for call in found(index) if call.is_call}
    for number, place in enumerate(places):
        call = calls[name(number)]
        assert (call.within, call.step) == (("", None) if place is None else (name(place[0]), place[1]))
        assert call.steps == tree.count(number)
        assert index.number_of(call.call_id) == call.seq
        together = {one.call_id for one in found(index, AuditFilter(within=call.call_id))}
        assert together == {name(one) for one in family(number)}
        assert {row.call_id for row in index.rows(AuditFilter(within=call.call_id))} == together
    assert index.number_of("call-of-nobody") is None
    index.close()


@pytest.mark.parametrize("within", ["call-8", 7, ["call-8"], {"a": 1}, None, "x" * 5_000], ids=repr)
@pytest.mark.parametrize("step", [0, -1, 1e300, "two", None, [3]], ids=repr)
def test_links_that_nobody_wrote_like_that_hang_nothing(tmp_path: Path, within: JsonValue, step: JsonValue) -> None:
    log = log_of(tmp_path)
    log.append([AuditEntry(RowKind.TOOL_INVOKED, "call-8", "a", "s", "x", "", {"within": within, "step": step})])
    log.close()
    index = whole(tmp_path / "state")
    call = found(index)[0]
    assert isinstance(call.within, str)
    assert call.step is None or isinstance(call.step, int)
    assert [one.call_id for one in found(index, AuditFilter(within="call-8"))] == ["call-8"]
    index.close()
