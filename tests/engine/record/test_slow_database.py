"""The proxy that makes a database slow, silent or unreachable does so, and nothing else."""

import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import psycopg
import pytest

from tests.support.patience import pause_until
from tests.support.postgres import Cluster
from tests.support.slow_database import Loss, Proxy, slow_database

FOREVER_S = 3600.0


@pytest.fixture
def proxy(database: str) -> Generator[Proxy]:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE kept (number int)")
    with slow_database(database) as made:
        yield made


def kept(proxy: Proxy) -> list[int]:
    """What the database holds, asked without the proxy."""
    with psycopg.connect(proxy.behind) as connection:
        return [number for (number,) in connection.execute("SELECT number FROM kept ORDER BY number").fetchall()]


def test_all_that_a_client_does_goes_through(proxy: Proxy) -> None:
    many = range(20_000)
    with psycopg.connect(proxy.url) as connection:
        assert connection.info.host == "127.0.0.1"
        with connection.cursor() as cursor, cursor.copy("COPY kept FROM STDIN") as copy:
            for number in many:
                copy.write_row([number])
        connection.commit()
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM nowhere")
        connection.rollback()
        rows = connection.execute("SELECT number FROM kept ORDER BY 1").fetchall()
        with connection.pipeline():
            connection.execute("LISTEN news")
            connection.execute("SELECT pg_notify('news', 'x')")
            connection.commit()
        assert [one.payload for one in connection.notifies(timeout=60, stop_after=1)] == ["x"]

    assert [number for (number,) in rows] == [*many]


@pytest.mark.parametrize("autocommit", [False, True], ids=["block", "alone"])
@pytest.mark.parametrize("pipeline", [False, True], ids=["simple", "pipeline"])
def test_the_answer_to_each_commit_comes_later_and_to_nothing_else(
    proxy: Proxy, autocommit: bool, pipeline: bool
) -> None:
    with psycopg.connect(proxy.url, autocommit=autocommit) as connection:
        proxy.commit_s = 0.05
        for number in range(3):
            began = time.monotonic()
            with connection.pipeline() if pipeline else nullcontext():
                connection.execute("INSERT INTO kept VALUES (%s)", [number])
                connection.commit()
            assert time.monotonic() - began >= 0.05
        proxy.commit_s = FOREVER_S
        connection.execute("SELECT * FROM kept")
        connection.rollback()
        connection.execute("BEGIN" if autocommit else "SELECT 1")
        connection.execute("INSERT INTO kept VALUES (9)")
        connection.rollback()

    assert proxy.commits == 3
    assert kept(proxy) == [0, 1, 2]


def test_each_connection_waits_for_its_own_commit(proxy: Proxy) -> None:
    proxy.commit_s = FOREVER_S
    with psycopg.connect(proxy.url) as first, psycopg.connect(proxy.url) as second, ThreadPoolExecutor(1) as threads:
        first.execute("INSERT INTO kept VALUES (1)")
        waits = threads.submit(first.commit)
        pause_until(lambda: proxy.commits == 1, "the first commit")
        proxy.commit_s = 0.0
        second.execute("INSERT INTO kept VALUES (2)")
        second.commit()
        assert not waits.done()

        proxy.cut()

        with pytest.raises(psycopg.OperationalError):
            waits.result()
    assert kept(proxy) == [1, 2]


@pytest.mark.parametrize("pipeline", [False, True], ids=["simple", "pipeline"])
@pytest.mark.parametrize("autocommit", [False, True], ids=["block", "alone"])
@pytest.mark.parametrize(("loss", "there"), [(Loss.ANSWER, [1]), (Loss.REQUEST, [])], ids=["answer", "request"])
def test_a_commit_is_lost_before_the_database_or_after_it(
    proxy: Proxy, loss: Loss, there: list[int], autocommit: bool, pipeline: bool
) -> None:
    with psycopg.connect(proxy.url, autocommit=autocommit) as connection:
        connection.execute("SELECT 1")
        proxy.loss = loss

        def keep() -> None:
            with connection.pipeline() if pipeline else nullcontext():
                connection.execute("INSERT INTO kept VALUES (%s)", [1])
                connection.commit()

        with pytest.raises(psycopg.OperationalError):
            keep()

    assert proxy.loss is None
    assert kept(proxy) == there


def test_the_call_of_a_function_that_writes_is_a_commit(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE kept (number int)")
        connection.execute(
            "CREATE FUNCTION keep(int) RETURNS void LANGUAGE sql BEGIN ATOMIC INSERT INTO kept VALUES ($1); END"
        )
    with slow_database(database, 0.0, "keep(") as proxy, psycopg.connect(proxy.url, autocommit=True) as connection:
        connection.execute("SELECT keep(%s)", [1])
        connection.execute("SELECT * FROM kept")
        with connection.transaction():
            connection.execute("SELECT keep(%s)", [2])
        assert proxy.commits == 2
        proxy.loss = Loss.REQUEST

        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT keep(%s)", [3])

        assert kept(proxy) == [1, 2]


def test_who_is_held_hears_nothing_and_then_everything(proxy: Proxy) -> None:
    with psycopg.connect(proxy.url, autocommit=True) as connection, ThreadPoolExecutor(2) as threads:
        proxy.hold()
        asked = threads.submit(connection.execute, "INSERT INTO kept VALUES (1)")
        another = threads.submit(psycopg.connect, proxy.url)
        began = time.process_time()
        while time.process_time() - began < 0.05:
            assert not asked.done()
            assert not another.done()
        assert kept(proxy) == []

        proxy.release()

        asked.result()
        another.result().close()
    assert kept(proxy) == [1]


def test_who_is_refused_is_told_at_once_and_taken_later_at_the_same_address(proxy: Proxy) -> None:
    with psycopg.connect(proxy.url) as connection:
        url = proxy.url
        proxy.refuse()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(url)

    proxy.accept()

    with psycopg.connect(url) as connection:
        connection.execute("SELECT 1")


def test_a_proxy_goes_on_when_its_database_does(own_cluster: Cluster) -> None:
    url = own_cluster.make_database()
    with slow_database(url) as proxy:
        own_cluster.stop()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(proxy.url)
        own_cluster.start()

        with psycopg.connect(proxy.through(own_cluster.url())) as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("postgres",)
