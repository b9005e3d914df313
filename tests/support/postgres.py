"""Real clusters of PostgreSQL, in folders of their own and on Unix sockets alone.

    def test_...(database: str) -> None: ...          # the URL of an empty database
    def test_...(own_cluster: Cluster) -> None: ...   # one to stop, kill or pause

No cluster outlives the process that started it, even if that is killed: something waits for its end. They forget what
the machine forgets, since nothing is synced, but nothing that only their own end could lose.
"""

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote, urlencode

import pytest

from tests.support.patience import pause_until

OWNER = "postgres"
"""The role that may do everything."""
PORT = 5432
"""Of the name of the socket; nothing listens there."""
SETTINGS: Mapping[str, object] = {
    "listen_addresses": "",
    "port": PORT,
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": 200,
    "shared_buffers": "32MB",
    "dynamic_shared_memory_type": "mmap",  # in the folder of the cluster, and gone with it
    "timezone": "UTC",
    "log_timezone": "UTC",
}
_DEBIAN, _MEMORY = Path("/usr/lib/postgresql"), Path("/dev/shm")
_ROOM = 1 << 30
_FIRST_OID = 16384
"""Of what did not come with the cluster."""
_LONGEST_PLACE = 60
"""A socket's path may have 107 bytes."""
_WATCH = """
read -r _
for file in "$0"/*/data/postmaster.pid; do
  [ -r "$file" ] && read -r pid <"$file" && grep -qsF "$0" "/proc/$pid/cmdline" || continue
  kill -QUIT "$pid"
  kill -CONT "$pid" $(cat "/proc/$pid/task/$pid/children")
  left=100
  while [ -e "/proc/$pid/exe" ] && [ $((left -= 1)) -gt 0 ]; do sleep 0.1; done
done
rm -rf "$0"
"""
"""What the shell does when the other end of its input is gone: it ends the clusters of a folder, and removes that."""


class NoPostgresError(RuntimeError):
    """PostgreSQL is not there, or a cluster did not start."""


class _Who(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


@cache
def programs() -> Path:
    """The folder of the programs, the newest that Debian has, else those of PATH."""
    found = [(int(path.parts[-3]), path.parent) for path in _DEBIAN.glob("[0-9]*/bin/initdb")]
    if found:
        return max(found)[1]
    program = shutil.which("initdb")
    if program is None:
        raise NoPostgresError("these tests need PostgreSQL: `./check` installs it (Debian's package `postgresql`)")
    return Path(program).resolve().parent


@cache
def _who() -> _Who:
    """Who runs a cluster: an ordinary user that every Debian has, since the superuser must not."""
    if os.geteuid() != 0:
        return {}
    known = {one.pw_name: one for one in pwd.getpwall()}
    one = known.get("postgres") or known["nobody"]
    return {"user": one.pw_uid, "group": one.pw_gid, "extra_groups": []}


def _place() -> Path:
    """Where a folder is made: in memory if that has room, since a disk takes seconds for an empty database."""
    own = Path(tempfile.gettempdir())
    for place in sorted((own, _MEMORY, Path("/tmp")), key=lambda one: not one.is_relative_to(_MEMORY)):
        if place.is_dir() and os.access(place, os.W_OK) and len(os.fsencode(place)) <= _LONGEST_PLACE:
            is_open = all(one.stat().st_mode & 0o001 for one in (place, *place.parents))
            if (is_open or not _who()) and shutil.disk_usage(place).free >= _ROOM:
                return place
    raise NoPostgresError("no folder for a cluster: `/dev/shm` and `/tmp` are full, or others may not enter them")


def _run(folder: Path, *words: str | Path) -> None:
    """Run a program to its end, as who runs clusters. Raises NoPostgresError with what it said."""
    environment = {"PATH": os.defpath, "LC_ALL": "C", "HOME": str(folder)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False, **_who())
    if done.returncode:
        raise NoPostgresError(f"{words[0]} ended with status {done.returncode}: {done.stderr.strip()}")


def state_of(pid: int) -> str:
    """The state of a process in a letter: T halts, Z has ended, X is no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()]


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@dataclass(eq=False)
class Cluster:
    """A cluster in a folder of its own, where its socket is too."""

    folder: Path
    _process: subprocess.Popen[bytes] | None = None
    _numbers: Iterable[int] = field(default_factory=count)

    @property
    def pid(self) -> int:
        """The process that all others of it come from. Raises NoPostgresError if it does not run."""
        if self._process is None:
            raise NoPostgresError("the cluster does not run")
        return self._process.pid

    def start(self, **settings: object) -> None:
        """Start it, with settings of its own, and wait until it takes connections. Raises NoPostgresError."""
        words = [f"--{name}={value}" for name, value in {**SETTINGS, **settings}.items()]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [programs() / "postgres", "-D", self._data, "-k", self.folder, *words],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **_who(),
            )
        self._process = process
        pause_until(lambda: process.poll() is not None or self._is_ready(), "the start of PostgreSQL")
        if process.returncode is not None:
            self._process = None
            raise NoPostgresError(f"the cluster did not start:\n{self.log()[-2000:]}")

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it at once, as `pg_ctl stop -m immediate` does; orderly with SIGINT."""
        pid = self.pid
        _send([pid], how)
        self.resume()
        self._wait()

    def kill(self) -> None:
        """Let all its processes die at once, as a machine does."""
        pid = self.pid
        children = self._halt()
        _send([pid, *children], signal.SIGKILL)
        self._wait()
        pause_until(lambda: all(state_of(one) in "XZ" for one in children), "the end of PostgreSQL")

    def pause(self) -> None:
        """Let no process of it go on: it takes connections, and answers nobody."""
        self._halt()

    def resume(self) -> None:
        """Let all go on."""
        _send([*_children(self.pid), self.pid], signal.SIGCONT)

    def url(self, database: str = "postgres", user: str = OWNER) -> str:
        """The address of a database for a role, which needs no password."""
        return f"postgresql:///{quote(database)}?{urlencode({'host': self.folder, 'port': PORT, 'user': user})}"

    def make_database(self) -> str:
        """Make an empty database; its URL."""
        import psycopg
        from psycopg import sql

        name = f"state_{next(iter(self._numbers))}"
        made = sql.SQL("CREATE DATABASE {} TEMPLATE template0 STRATEGY file_copy").format(sql.Identifier(name))
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(made)
        return self.url(name)

    def clear(self) -> None:
        """Drop all databases and roles that were made, whoever uses them."""
        import psycopg
        from psycopg import sql

        with psycopg.connect(self.url(), autocommit=True) as connection:
            made = connection.execute("SELECT datname FROM pg_database WHERE oid >= %s", [_FIRST_OID]).fetchall()
            for (name,) in made:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
            roles = connection.execute("SELECT rolname FROM pg_roles WHERE oid >= %s", [_FIRST_OID]).fetchall()
            if roles:  # in one go, since one may have given rights to another
                names = sql.SQL(", ").join(sql.Identifier(name) for (name,) in roles)
                connection.execute(sql.SQL("DROP ROLE {}").format(names))

    def log(self) -> str:
        """What it wrote since it was made."""
        return (self.folder / "log").read_text("utf-8", "replace")

    def remove(self) -> None:
        """End it if it runs, and remove its folder."""
        if self._process is not None:
            self.stop()
        with suppress(FileNotFoundError):  # is there after `kill` alone, and names memory that nobody else removes
            memory = (self._data / "postmaster.pid").read_text("utf-8").splitlines()[6].split()[1]
            subprocess.run(["ipcrm", "-m", memory], check=False, capture_output=True)
        shutil.rmtree(self.folder)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _is_ready(self) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text("utf-8").splitlines()
        except FileNotFoundError:
            return False
        return lines[:1] == [str(self.pid)] and lines[7:8] != [] and lines[7].strip() == "ready"

    def _halt(self) -> list[int]:
        """Stop the process that makes others, then those that it made, which it returns."""
        pid = self.pid
        _send([pid], signal.SIGSTOP)
        pause_until(lambda: state_of(pid) in "TXZ", "PostgreSQL to halt")
        children = _children(pid)
        _send(children, signal.SIGSTOP)
        pause_until(lambda: all(state_of(one) in "TXZ" for one in children), "PostgreSQL to halt")
        return children

    def _wait(self) -> None:
        assert self._process is not None
        self._process.wait()
        self._process = None


@dataclass(eq=False)
class Clusters:
    """The clusters of this process. What is the same in all of them is made once."""

    folder: Path
    _seed: Path | None = None
    _made: list[Cluster] = field(default_factory=list[Cluster])

    def make(self) -> Cluster:
        """Make a cluster that is still to be started."""
        seed = self._seed = self._seed or self._make_seed()
        cluster = Cluster(self._make_folder(str(len(self._made))))
        subprocess.run(["cp", "-a", seed, cluster.folder / "data"], check=True)
        self._made.append(cluster)
        return cluster

    def remove(self) -> None:
        """End and remove all."""
        for cluster in self._made:
            if cluster.folder.exists():
                cluster.remove()

    def _make_seed(self) -> Path:
        folder = self._make_folder("seed")
        words = ("--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions", "--wal-segsize=1", "--auth=trust")
        _run(folder, programs() / "initdb", "-D", folder / "data", "-U", OWNER, *words)
        return folder / "data"

    def _make_folder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(0o700)
        if who := _who():
            os.chown(folder, who.get("user", -1), who.get("group", -1))
        return folder


@contextmanager
def clusters_of_this_process(place: Path | None = None) -> Generator[Clusters]:
    """Make room for clusters, in memory if no place is given, and remove all of them at the end."""
    programs()
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=place or _place()))
    folder.chmod(0o711)
    read_end, write_end = os.pipe()
    watch = subprocess.Popen(["sh", "-c", _WATCH, folder], stdin=read_end, start_new_session=True)
    os.close(read_end)
    made = Clusters(folder)
    try:
        yield made
        made.remove()
    finally:
        os.close(write_end)
        watch.wait()


@pytest.fixture(scope="session")
def clusters() -> Generator[Clusters]:
    """Room for clusters; nothing is made before the first is asked for."""
    with clusters_of_this_process() as made:
        yield made


@pytest.fixture(scope="session")
def cluster(clusters: Clusters) -> Cluster:
    """The cluster of all tests that leave it as it is."""
    made = clusters.make()
    made.start()
    return made


@pytest.fixture
def _unset_libpq(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the person who runs the tests has told libpq is not theirs."""
    for name in os.environ:
        if re.fullmatch(r"PG[A-Z]+", name):
            monkeypatch.delenv(name)


@pytest.fixture
def database(cluster: Cluster, _unset_libpq: None) -> Generator[str]:
    """The URL of an empty database. Whatever else the test makes in the cluster, roles too, is dropped after it."""
    yield cluster.make_database()
    cluster.clear()


@pytest.fixture
def own_cluster(clusters: Clusters, _unset_libpq: None) -> Generator[Cluster]:
    """A cluster of the test alone, started."""
    made = clusters.make()
    made.start()
    yield made
    made.remove()
