"""The databases that tests of the shared state are given are real, empty, and gone afterwards."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support import postgres
from tests.support.checkout import ROOT
from tests.support.patience import pause_until
from tests.support.postgres import Cluster, Clusters, NoPostgresError, clusters_of_this_process, state_of

STARTED = """
import sys
from pathlib import Path
from tests.support.postgres import clusters_of_this_process

with clusters_of_this_process(Path(sys.argv[1])) as clusters:
    cluster = clusters.make()
    cluster.start(fsync="on")
    cluster.pause()
    print(cluster.folder, cluster.pid, flush=True)
    sys.stdin.read()
"""


def numbers(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [number for (number,) in connection.execute("SELECT number FROM kept ORDER BY number").fetchall()]


def keep(url: str, number: int) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (number int)")
        connection.execute("INSERT INTO kept VALUES (%s)", [number])


def test_a_database_is_empty_and_encodes_all_characters(database: str) -> None:
    with psycopg.connect(database) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
        encoding = connection.execute("SHOW server_encoding").fetchone()

    assert tables == (0,)
    assert encoding == ("UTF8",)


def test_a_database_is_reached_by_its_socket_alone(database: str) -> None:
    with psycopg.connect(database) as connection:
        listens = connection.execute("SHOW listen_addresses").fetchone()
        beside = connection.execute("SELECT inet_server_addr()").fetchone()

    assert (listens, beside) == (("",), (None,))
    assert Path(str(conninfo_to_dict(database)["host"])).stat().st_mode & 0o777 == 0o700


def test_settings_of_the_person_who_runs_the_tests_do_not_reach_libpq(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not [name for name in os.environ if name.startswith("PG")]
    monkeypatch.setenv("PGPORT", "1")  # what an address says goes before it
    keep(database, 1)

    assert numbers(database) == [1]


def test_what_a_test_made_is_gone_after_it(cluster: Cluster) -> None:
    url = cluster.make_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE keeper CREATEROLE")
        connection.execute("CREATE ROLE gateway LOGIN IN ROLE keeper")
        connection.execute("CREATE DATABASE another")
        connection.execute("CREATE SCHEMA owned AUTHORIZATION gateway")
    with psycopg.connect(cluster.url(url.partition("///")[2].partition("?")[0], "gateway")) as user:
        assert user.execute("SELECT current_user").fetchone() == ("gateway",)
        user.commit()

        cluster.clear()  # while somebody is connected

    with psycopg.connect(cluster.url()) as connection:
        databases = connection.execute("SELECT datname FROM pg_database ORDER BY 1").fetchall()
        roles = connection.execute("SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_'").fetchall()
    assert databases == [("postgres",), ("template0",), ("template1",)]
    assert roles == [("postgres",)]
    assert cluster.make_database() != url
    cluster.clear()


def test_what_was_committed_is_there_after_a_cluster_was_stopped_or_killed(own_cluster: Cluster) -> None:
    url = own_cluster.make_database()
    keep(url, 1)

    own_cluster.stop()
    with pytest.raises(psycopg.OperationalError, match="Is the server running"):
        psycopg.connect(url)
    with pytest.raises(NoPostgresError, match="does not run"):
        own_cluster.stop()
    own_cluster.start()
    keep(url, 2)
    own_cluster.kill()
    own_cluster.start()
    keep(url, 3)
    own_cluster.stop(signal.SIGINT)
    own_cluster.start(default_transaction_read_only="on")

    assert numbers(url) == [1, 2, 3]
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        keep(url, 4)


def test_a_paused_cluster_answers_nobody_and_then_goes_on(own_cluster: Cluster) -> None:
    url = own_cluster.make_database()
    keep(url, 1)
    with psycopg.connect(url) as connection:
        own_cluster.pause()
        connection.pgconn.send_query(b"SELECT 1")
        began = time.process_time()
        while time.process_time() - began < 0.05:  # a running one answers in a hundredth of that
            connection.pgconn.consume_input()
        assert connection.pgconn.is_busy()

        own_cluster.resume()

        pause_until(lambda: connection.pgconn.consume_input() or not connection.pgconn.is_busy(), "the answer")
        assert connection.pgconn.get_result() is not None
        assert connection.pgconn.get_result() is None
    keep(url, 2)
    own_cluster.pause()  # and is removed so


def test_a_cluster_that_does_not_start_says_why(clusters: Clusters) -> None:
    cluster = clusters.make()

    with pytest.raises(NoPostgresError, match='unrecognized configuration parameter "no_such_setting"'):
        cluster.start(no_such_setting="on")
    cluster.remove()


def test_no_cluster_outlives_a_process_that_was_killed_even_on_a_disk_and_paused() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED, "/var/tmp"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        folder, pid = process.stdout.readline().split()
        assert Path(folder, "data", "postmaster.pid").exists()
        assert state_of(int(pid)) == "T"

        process.kill()

    pause_until(lambda: not Path(folder).parent.exists(), "the folder of the cluster to be removed")
    assert state_of(int(pid)) in "XZ"


def test_missingprograms_are_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    postgres.programs.cache_clear()
    monkeypatch.setattr(postgres, "_DEBIAN", Path("/nowhere"))
    monkeypatch.setenv("PATH", "/nowhere")
    try:
        with pytest.raises(NoPostgresError, match="these tests need PostgreSQL: "), clusters_of_this_process():
            pass
    finally:
        postgres.programs.cache_clear()
