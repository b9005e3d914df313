"""A shared state from outside: made, moved, shown, refused; who may do what there; and what happens without it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.cli.main import main
from gatewright.compile.rule_test import Rate
from gatewright.gate import AuditEntry, AuditUnavailable, RowKind
from gatewright.gate.history import RatesUnavailable
from gatewright.gate.shared import SharedRates
from gatewright.policy.rule import RateLimit
from gatewright.record.migration import enroll, initialize, migrate, report
from gatewright.record.shared import VERSION
from tests.engine.fleet.conftest import Fleet
from tests.support.patience import in_time
from tests.support.postgres import Cluster

TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'gatewright'::regnamespace AND relkind IN ('r', 'p')"
RATE = Rate("k", RateLimit(3, 60.0))


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["state", *words])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_state_is_made_once_shown_and_taken_back_again(empty: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "status", "--state", empty.url)[1].endswith(
        "no state of Gatewright; `gatewright state init` makes one\n"
    )
    assert run(capsys, "init", "--state", empty.url)[0] == 0
    assert run(capsys, "init", "--state", empty.url)[0] == 0
    shown = json.loads(run(capsys, "status", "--state", empty.url, "--json")[1])

    assert (shown["version"], shown["needs"], shown["writers"]) == (VERSION, VERSION, [])
    assert shown["members"] == [
        {"login": "postgres", "tenant": "main", "duties": ["answer", "gateway", "publish", "read"], "superuser": True}
    ]
    assert run(capsys, "migrate", "--state", empty.url)[1] == f"version {VERSION}\n"


def test_every_version_goes_up_and_down_and_leaves_nothing_behind(fleet: Fleet) -> None:
    with fleet.as_owner() as connection:
        for number in range(VERSION, 0, -1):
            script = Path("resources/gatewright_resources/state").resolve() / f"{number:03}.down.sql"
            connection.execute("SET search_path = gatewright, pg_temp")
            connection.execute(script.read_bytes())
        left = connection.execute(TABLES).fetchall()
        functions = connection.execute("SELECT FROM pg_proc WHERE pronamespace = 'gatewright'::regnamespace").fetchall()

    assert (left, functions) == ([("versions",)], [])
    with pytest.raises(WorkspaceError, match=f"versions 1 to {VERSION}, not 0"):
        migrate(fleet.admin, 0)


@pytest.mark.parametrize(
    ("damage", "words", "sentence"),
    [
        ("INSERT INTO gatewright.versions VALUES (9)", ("migrate",), "has version 9, and this program knows versions"),
        ("INSERT INTO gatewright.versions VALUES (9)", ("init",), "has version 9 already"),
        ("DROP SCHEMA gatewright CASCADE; CREATE TABLE orders (n int)", ("init",), "another program (public.orders)"),
        ("DROP SCHEMA gatewright CASCADE", ("migrate",), "holds no state of Gatewright"),
        ("CREATE ROLE stranger LOGIN", ("init", "--member", "stranger=rule"), "knows no duty `rule`"),
        ("SELECT 1", ("init", "--member", "nobody_such=read"), "has no role `nobody_such`"),
        ("SELECT 1", ("init", "--member", "postgres"), "`postgres` is no member"),
        ("SELECT 1", ("init", "--tenant", "other", "--member", "postgres=read"), "in the tenant `main` already"),
        ("SELECT 1", ("enroll", "writer-0000000000000000"), "no writer `writer-0000000000000000`"),
        ("SELECT 1", ("migrate", "--to", "0"), "versions 1 to"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence_and_changes_nothing(
    fleet: Fleet, damage: str, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fleet.as_owner() as connection:
        for statement in damage.split(";"):
            connection.execute(statement.encode())
        before = connection.execute("SELECT count(*) FROM pg_class").fetchall()
        status, out, err = run(capsys, *words, "--state", fleet.url)
        after = connection.execute("SELECT count(*) FROM pg_class").fetchall()

    assert (status, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert before == after


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql:///nowhere?{rest}", 'database "nowhere" does not exist'),
        ("postgresql://nobody_such@/{name}?{rest}", 'role "nobody_such" does not exist'),
        ("postgresql://a@127.0.0.1:1/x", "onnection refused"),
        ("postgresql://a:secret@h/x", "holds a password"),
        ("postgresql://a@h/x?password=secret", "holds a password"),
        ("postgresql://[::1/x", "cannot be read"),
        ("postgresql://h/x?no_such=1", "cannot be read"),
        ("postgresql:///?service=no_such", 'definition of service "no_such" not found'),
        ("folder", "name the database"),
    ],
)
def test_wrong_address_is_said_in_a_sentence_without_a_secret(
    cluster: Cluster, url: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = urlsplit(cluster.url())
    rest = "&".join(one for one in parts.query.split("&") if "nobody_such" not in url or not one.startswith("user="))
    status, out, err = run(capsys, "status", "--state", url.format(rest=rest, name="postgres"))

    assert (status, out, "secret" in err) == (2, "", False)
    assert sentence in err


def test_role_without_duties_or_tenant_gets_nothing(fleet: Fleet) -> None:
    reader, gateway = fleet.member("reader", "read"), fleet.gateway("gateway")
    with fleet.as_owner() as connection:
        connection.execute("CREATE ROLE lost LOGIN; GRANT gatewright_gateway TO lost")

    with pytest.raises(RatesUnavailable, match="no duty that allows it"):
        SharedRates(reader).take([RATE], 0.0)
    with pytest.raises(RatesUnavailable, match="lost is no member of a tenant"):
        SharedRates(fleet.state("lost")).take([RATE], 0.0)
    with pytest.raises(WorkspaceError, match="no duty that allows it"):
        enroll(gateway, "writer-0000000000000000")
    assert report(reader).members == ()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE gatewright.rows SET body = ''",
        "DELETE FROM gatewright.rows",
        "TRUNCATE gatewright.rows",
        "INSERT INTO gatewright.rows (tenant) VALUES ('main')",
        "UPDATE gatewright.heads SET seq = 0",
        "UPDATE gatewright.members SET tenant = 'other'",
        "SELECT * FROM gatewright.secrets",
        "SELECT * FROM gatewright.members",
        "SELECT * FROM gatewright.starts",
        "DELETE FROM gatewright.starts",
        "UPDATE gatewright.rates SET latest_s = 0",
        "SELECT gatewright.open_day('2020-01-01')",
        "SELECT gatewright.enroll('writer-0000000000000000')",
        "SET ROLE gatewright_owner",
        "SET SESSION AUTHORIZATION postgres",
        "ALTER TABLE gatewright.rows DISABLE ROW LEVEL SECURITY",
        "CREATE TABLE gatewright.mine (n int)",
        "CREATE OR REPLACE FUNCTION gatewright.tenant() RETURNS text LANGUAGE sql AS 'SELECT ''other'''",
        "DROP SCHEMA gatewright CASCADE",
        "SELECT gatewright.append('{other}', 1, 1, '', a, a, a, a, a, a, a, a, a, '') FROM (SELECT ARRAY['']) AS b (a)",
        "SELECT gatewright.open_epoch('{other}')",
        "SELECT gatewright.introduce('{other}', 'x', decode(repeat('07', 32), 'hex'))",
    ],
)
def test_gateway_cannot_reach_past_its_duty(fleet: Fleet, statement: str) -> None:
    fleet.log(fleet.gateway("other"), "other").append([AuditEntry(RowKind.TOOL_INVOKED, "call-1")])
    ((other,),) = fleet.admin.ask("SELECT writer FROM gatewright.writers")
    gateway = fleet.gateway("gateway")
    question = "SELECT (SELECT count(*)::int FROM gatewright.rows), (SELECT min(seq)::int FROM gatewright.heads)"
    before = fleet.admin.ask(question)

    with pytest.raises(WorkspaceError, match=r"refused|cannot be used"):
        gateway.ask(statement.format(other=other))
    assert fleet.admin.ask(question) == before


def test_tenants_see_nothing_of_each_other(fleet: Fleet) -> None:
    here, there = fleet.gateway("here"), fleet.gateway("there", tenant="branch")
    logs = fleet.log(here, "desk"), fleet.log(there, "shop")
    logs[0].append([AuditEntry(RowKind.TOOL_INVOKED, "claim-1", "ann", "s", "file")])
    one = [Rate("k", RateLimit(1, 60.0))]

    assert [SharedRates(state).take(one, 0.0) for state in (here, there)] == [None, None]
    assert [len(list(log.rows())) for log in logs] == [2, 1]
    assert [len(log.claimed("claim-1")) for log in logs] == [1, 0]
    assert logs[0].digest(1) != logs[1].digest(1)
    assert there.ask("SELECT DISTINCT tenant FROM gatewright.heads") == [("branch",)]
    ((writer,),) = fleet.admin.ask("SELECT writer FROM gatewright.writers WHERE name = 'desk'")
    assert fleet.state("branch_publisher").ask("SELECT * FROM gatewright.enroll(%s)", (writer,)) == []


def test_runtime_roles_own_nothing_and_no_table_is_open(fleet: Fleet) -> None:
    fleet.log(fleet.gateway("one"))
    ask = fleet.admin.ask
    runtime = "('gatewright_gateway', 'gatewright_answerer', 'gatewright_publisher', 'gatewright_reader')"

    ours = "'gatewright'::regnamespace"
    owners = ask(f"SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = {ours}")
    open_tables = ask(f"{TABLES} AND relname <> 'versions' AND NOT (relrowsecurity AND relforcerowsecurity)")
    grown = ask(f"SELECT FROM pg_roles WHERE rolname IN {runtime} AND (rolsuper OR rolbypassrls OR rolcanlogin)")
    policies = ask(
        "SELECT tablename, cmd, qual FROM pg_policies WHERE schemaname = 'gatewright' AND NOT "
        "'gatewright_owner' = ANY (roles) ORDER BY tablename"
    )
    written = ask(
        "SELECT grantee, table_name, privilege_type FROM information_schema.role_table_grants "
        f"WHERE table_schema = 'gatewright' AND grantee IN {runtime} AND privilege_type <> 'SELECT'"
    )
    loose = ask(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'gatewright'::regnamespace "
        "AND (NOT prosecdef OR proconfig IS NULL OR has_function_privilege('public', oid, 'EXECUTE'))"
    )

    assert owners == [("gatewright_owner",)]
    assert (open_tables, grown, written, loose) == ([], [], [], [])
    assert {(name, command) for name, command, _ in policies} == {
        ("heads", "SELECT"),
        ("rows", "SELECT"),
        ("writers", "SELECT"),
    }
    assert all("gatewright.tenant()" in rule for _, _, rule in policies)


def test_database_that_stops_denies_at_once_and_goes_on_by_itself(own_fleet: Fleet, own_cluster: Cluster) -> None:
    gateway = own_fleet.gateway("one")
    log, rates = own_fleet.log(gateway), SharedRates(gateway)
    entry = [AuditEntry(RowKind.TOOL_INVOKED, "call-1")]
    log.append(entry)
    own_cluster.stop()

    with pytest.raises(AuditUnavailable, match="cannot be"):
        log.append(entry)
    with pytest.raises(RatesUnavailable, match="cannot be"):
        rates.take([RATE], 0.0)
    own_cluster.start()

    assert rates.take([RATE], 0.0) is None
    log.append(entry)
    assert log.verify().is_sound


def test_database_that_answers_nobody_denies_within_two_seconds(own_fleet: Fleet, own_cluster: Cluster) -> None:
    gateway = own_fleet.gateway("one")
    log, rates = own_fleet.log(gateway), SharedRates(gateway)
    entry = [AuditEntry(RowKind.TOOL_INVOKED, "call-1")]
    own_cluster.pause()
    lasted: list[float] = []
    for _ in range(3):  # a busy machine may delay any one of them
        began_s = time.monotonic()
        with pytest.raises(RatesUnavailable, match="in time"):
            rates.take([RATE], 0.0)
        lasted.append(time.monotonic() - began_s)
    with pytest.raises(AuditUnavailable, match="in time"):
        log.append(entry)
    own_cluster.resume()

    assert in_time(min(lasted), 2.0)
    log.append(entry)
    assert log.verify().is_sound


def test_read_only_database_denies(fleet: Fleet) -> None:
    gateway = fleet.gateway("one")
    log, rates = fleet.log(gateway), SharedRates(gateway)
    with fleet.as_owner() as connection:
        connection.execute("ALTER ROLE one SET default_transaction_read_only = on")
        connection.execute("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'one'")

    with pytest.raises(AuditUnavailable, match="read-only"):
        log.append([AuditEntry(RowKind.TOOL_INVOKED, "call-1")])
    with pytest.raises(RatesUnavailable, match="read-only"):
        rates.take([RATE], 0.0)


def test_initialization_says_who_may_do_what(fleet: Fleet) -> None:
    fleet.member("ada", "answer", "read")
    found = initialize(fleet.admin, "main", {"ada": ["publish"]})

    assert [(one.login, one.duties) for one in found.members if one.login == "ada"] == [
        ("ada", ("answer", "publish", "read"))
    ]
