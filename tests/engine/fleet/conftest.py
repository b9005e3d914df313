"""A shared state in a real PostgreSQL, with roles as an administrator would make them."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg import sql

from gatewright.gate.port import AuditUnavailable
from gatewright.gate.shared_log import SharedLog
from gatewright.record.migration import StateReport, enroll, initialize
from gatewright.record.shared import SharedState
from tests.support.postgres import Cluster


@dataclass(eq=False)
class Fleet:
    """The database of one test. ``url``: for its administrator."""

    url: str
    folder: Path
    admin: SharedState = field(init=False)
    _open: list[SharedState] = field(default_factory=list[SharedState])

    def __post_init__(self) -> None:
        self.admin = self.state()

    def state(self, login: str = "") -> SharedState:
        """The state, as that role sees it."""
        return self.state_at(self.url_of(login) if login else self.url)

    def url_of(self, login: str) -> str:
        """The URL of the database for a role."""
        return f"{self.url}&{urlencode({'user': login})}"

    def state_at(self, url: str) -> SharedState:
        """The state at that URL, closed at the end of the test."""
        state = SharedState(url)
        self._open.append(state)
        return state

    def make(self) -> StateReport:
        """Make the schema; the administrator may do everything in the tenant main."""
        return initialize(self.admin, "main", {})

    def member(self, login: str, *duties: str, tenant: str = "main") -> SharedState:
        """Admit a role, and make it first."""
        with self.as_owner() as connection:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(login)))
        initialize(self.admin, tenant, {login: duties})
        return self.state(login)

    def gateway(self, login: str, tenant: str = "main") -> SharedState:
        """Admit a role that runs agents, and reads the log."""
        return self.member(login, "gateway", "read", tenant=tenant)

    def log(self, state: SharedState, name: str = "desk") -> SharedLog:
        """The log of a gateway with a key folder of its own, enrolled."""
        log = SharedLog(state, self.folder / name, name=name)
        try:
            log.check()
        except AuditUnavailable as error:
            found = re.search(r"writer-[0-9a-f]{16}", str(error))
            enroll(self.publisher(state), found[0] if found else "")
            log.check()
        return log

    def publisher(self, state: SharedState) -> SharedState:
        """Somebody of the same tenant who may enroll a writer."""
        ((tenant,),) = state.ask("SELECT gatewright.tenant()")
        if tenant == "main":
            return self.admin
        ((there,),) = self.admin.ask("SELECT count(*) FROM pg_roles WHERE rolname = %s", (f"{tenant}_publisher",))
        name = f"{tenant}_publisher"
        return self.state(name) if there else self.member(name, "publish", tenant=str(tenant))

    def as_owner(self) -> psycopg.Connection[tuple[object, ...]]:
        """A connection of the superuser, whom no rule of the database binds."""
        return psycopg.connect(self.url, autocommit=True)

    def close(self) -> None:
        """Close every connection."""
        for state in self._open:
            state.close()


@pytest.fixture
def empty(database: str, tmp_path: Path) -> Generator[Fleet]:
    """A database in which nobody has made a state."""
    with closing(Fleet(database, tmp_path)) as made:
        yield made


@pytest.fixture
def fleet(empty: Fleet) -> Fleet:
    """A state whose administrator may do everything."""
    empty.make()
    return empty


@pytest.fixture
def own_fleet(own_cluster: Cluster, tmp_path: Path) -> Generator[Fleet]:
    """A state in a cluster that a test may stop."""
    with closing(Fleet(own_cluster.make_database(), tmp_path)) as made:
        made.make()
        yield made
