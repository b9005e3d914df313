"""Makes the schema of a shared state, moves it between versions, and admits members; everything or nothing.

An administrator's login does this: a superuser, or a role that may create roles and owns the database. The schema
belongs to ``gatewright_owner``, which nobody logs in as. A member is a login role with a tenant and duties: `DUTIES`.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from importlib.resources import files

from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.record.shared import VERSION, SharedConnection, SharedState, version_of

DUTIES: Mapping[str, str] = {
    "gateway": "runs agents: counts rates, asks, stops them",
    "answer": "answers questions, stops agents and lets them go",
    "publish": "publishes policies, enrolls writers",
    "read": "reads the log and what is in force",
}
_ROLES = {
    "gateway": "gatewright_gateway",
    "answer": "gatewright_answerer",
    "publish": "gatewright_publisher",
    "read": "gatewright_reader",
}
_OWNER = "gatewright_owner"
_OLDEST, _OLDEST_NAME = 140_000, "14"
_OTHERS = """SELECT format('%I.%I', nspname, relname)
  FROM pg_class JOIN pg_namespace AS space ON space.oid = relnamespace
  WHERE relkind IN ('r', 'p', 'v', 'm') AND nspname NOT IN ('pg_catalog', 'information_schema', 'gatewright')
  AND nspname NOT LIKE 'pg\\_toast%%' AND nspname NOT LIKE 'pg\\_temp%%'
  AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e') ORDER BY 1 LIMIT 3"""


@frozen
class Member:
    """A login role, its tenant and its duties. ``is_superuser``: no rule of the database binds it."""

    login: str
    tenant: str
    duties: tuple[str, ...]
    is_superuser: bool = False

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: login, tenant, duties, superuser."""
        return {
            "login": self.login,
            "tenant": self.tenant,
            "duties": [*self.duties],
            "superuser": self.is_superuser,
        }


@frozen
class Writer:
    """A machine that writes chains of the log; ``enrolled_by`` None: nobody has enrolled it."""

    writer: str
    tenant: str
    login: str
    name: str
    enrolled_by: str | None

    def __str__(self) -> str:
        by = f"enrolled by {self.enrolled_by}" if self.enrolled_by else "not enrolled"
        return f"{self.writer} of {self.name}, role {self.login}: {by}"

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: writer, tenant, login, name, enrolled_by."""
        return {
            "writer": self.writer,
            "tenant": self.tenant,
            "login": self.login,
            "name": self.name,
            "enrolled_by": self.enrolled_by,
        }


@frozen
class StateReport:
    """A shared state as an administrator sees it. ``version`` None: the database holds no state."""

    place: str
    server: str
    version: int | None
    members: tuple[Member, ...] = ()
    writers: tuple[Writer, ...] = ()
    rows: int | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: place, server, version, needs, members, writers, rows (an estimate of the log's)."""
        return {
            "place": self.place,
            "server": self.server,
            "version": self.version,
            "needs": VERSION,
            "members": [one.to_json() for one in self.members],
            "writers": [one.to_json() for one in self.writers],
            "rows": self.rows,
        }


def initialize(state: SharedState, tenant: str, members: Mapping[str, Collection[str]]) -> StateReport:
    """Make the schema if there is none, and admit members: login role -> duties, of `DUTIES`.

    Without any the administrator becomes a member with all duties. Raises WorkspaceError, and then nothing has changed.
    """
    with _administering(state) as connection:
        version = version_of(connection)
        if version is None:
            _require_own_database(connection)
            _create(connection)
            _move(connection, 0, VERSION)
        elif version != VERSION:
            raise ValueError(f"has version {version} already; `gatewright state migrate` moves it to {VERSION}")
        (login,) = connection.execute("SELECT session_user").fetchone() or ("",)
        for name, duties in (members or {login: DUTIES}).items():
            _admit(connection, name, tenant, duties)
        return _report(state, connection)


def migrate(state: SharedState, to: int = VERSION) -> tuple[int, int]:
    """Move the schema to a version, up or down, and return both versions. Raises WorkspaceError."""
    with _administering(state) as connection:
        version = version_of(connection)
        if version is None:
            raise ValueError("holds no state of Gatewright; `gatewright state init` makes one")
        if version > VERSION:
            raise ValueError(f"has version {version}, and this program knows versions up to {VERSION}")
        if not 1 <= to <= VERSION:
            raise ValueError(f"can have the versions 1 to {VERSION}, not {to}")
        _move(connection, version, to)
        return version, to


def report(state: SharedState) -> StateReport:
    """Describe the state, also one of another version, or none. Raises WorkspaceError."""
    with _administering(state) as connection:
        return _report(state, connection)


def enroll(state: SharedState, writer: str) -> Writer:
    """Let a writer of the caller's tenant write the log. Raises WorkspaceError, also for one that nobody introduced."""
    found = state.ask("SELECT * FROM gatewright.enroll(%s)", (writer,))
    if not found:
        raise WorkspaceError(f"no writer `{writer}` has introduced itself to the database `{state.place}`")
    return Writer(*found[0])


@contextmanager
def _administering(state: SharedState) -> Generator[SharedConnection]:
    """One transaction of an administrator, without the limit of time of a call."""
    with state.failing(WorkspaceError), SharedConnection.connect(state.url, connect_timeout=5) as connection:
        if connection.info.server_version < _OLDEST:
            raise ValueError(f"runs PostgreSQL {connection.info.server_version // 10_000}; {_OLDEST_NAME} is needed")
        (encoding,) = connection.execute("SHOW server_encoding").fetchone() or ("",)
        if encoding != "UTF8":
            raise ValueError(f"has the encoding {encoding}, and UTF8 is needed")
        yield connection


def _require_own_database(connection: SharedConnection) -> None:
    others = [name for (name,) in connection.execute(_OTHERS).fetchall()]
    if others:
        raise ValueError(
            f"holds tables of another program ({', '.join(others)}); make a database for Gatewright alone: createdb"
        )


def _create(connection: SharedConnection) -> None:
    for role in (_OWNER, *_ROLES.values()):
        if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
            connection.execute(f"CREATE ROLE {_quoted(role)} NOLOGIN".encode())
    connection.execute(f"GRANT {_quoted(_OWNER)} TO CURRENT_USER".encode())
    connection.execute(f"CREATE SCHEMA gatewright AUTHORIZATION {_quoted(_OWNER)}".encode())
    with _as_owner(connection):
        connection.execute(
            "CREATE TABLE versions (version int PRIMARY KEY, applied timestamptz NOT NULL DEFAULT clock_timestamp(), "
            "applied_by name NOT NULL DEFAULT session_user)"
        )
        for role in _ROLES.values():
            connection.execute(f"GRANT USAGE ON SCHEMA gatewright TO {_quoted(role)}".encode())
            connection.execute(f"GRANT SELECT ON versions TO {_quoted(role)}".encode())


def _quoted(name: str) -> str:
    """The name as SQL names a thing."""
    return '"' + name.replace('"', '""') + '"'


def _move(connection: SharedConnection, version: int, to: int) -> None:
    with _as_owner(connection):
        for one in range(version + 1, to + 1):
            connection.execute(_script(one, "up"))
            connection.execute("INSERT INTO versions (version) VALUES (%s)", (one,))
        for one in range(version, to, -1):
            connection.execute(_script(one, "down"))
            connection.execute("DELETE FROM versions WHERE version = %s", (one,))


def _script(version: int, way: str) -> bytes:
    return files("gatewright_resources").joinpath("state", f"{version:03}.{way}.sql").read_bytes()


@contextmanager
def _as_owner(connection: SharedConnection) -> Generator[None]:
    connection.execute(f"SET LOCAL ROLE {_quoted(_OWNER)}".encode())
    connection.execute("SET LOCAL search_path = gatewright, pg_temp")
    yield
    connection.execute("RESET ROLE")
    connection.execute("RESET search_path")


def _admit(connection: SharedConnection, login: str, tenant: str, duties: Collection[str]) -> None:
    unknown = sorted(set(duties) - set(DUTIES))
    if unknown:
        raise ValueError(f"knows no duty `{unknown[0]}`: it is one of {', '.join(DUTIES)}")
    if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (login,)).fetchone() is None:
        raise ValueError(f"has no role `{login}`; make it first: createuser {login}")
    with _as_owner(connection):
        connection.execute(
            "INSERT INTO secrets VALUES (%s, %s) ON CONFLICT DO NOTHING", (tenant, secrets.token_bytes(32))
        )
        connection.execute("INSERT INTO members VALUES (%s, %s) ON CONFLICT DO NOTHING", (login, tenant))
        (there,) = connection.execute("SELECT tenant FROM members WHERE login = %s", (login,)).fetchone() or ("",)
    if there != tenant:
        raise ValueError(f"has the role `{login}` in the tenant `{there}` already, and a role has one tenant")
    for duty in duties:
        connection.execute(f"GRANT {_quoted(_ROLES[duty])} TO {_quoted(login)}".encode())


def _report(state: SharedState, connection: SharedConnection) -> StateReport:
    server = str(connection.info.parameter_status("server_version"))
    version = version_of(connection)
    if version is None:
        return StateReport(state.place, server, None)
    found = connection.execute(
        "SELECT rolname, rolsuper, array(SELECT given.rolname FROM pg_auth_members AS held "
        "JOIN pg_roles AS given ON given.oid = held.roleid WHERE held.member = one.oid) FROM pg_roles AS one "
        "WHERE rolcanlogin"
    ).fetchall()
    names = {role: duty for duty, role in _ROLES.items()}
    (is_owner,) = connection.execute("SELECT pg_has_role(%s, 'MEMBER')", (_OWNER,)).fetchone() or (False,)
    if not is_owner:
        return StateReport(state.place, server, version)
    with _as_owner(connection):
        tenants: dict[str, str] = dict(
            connection.execute("SELECT login, tenant FROM members ORDER BY login").fetchall()
        )
        known = "SELECT writer, tenant, login, name, enrolled_by FROM writers ORDER BY introduced"
        writers = tuple(Writer(*row) for row in connection.execute(known).fetchall())
        (rows,) = connection.execute(
            "SELECT coalesce(sum(greatest(reltuples, 0)), 0)::bigint FROM pg_class "
            "WHERE relispartition AND relkind = 'r' AND relnamespace = 'gatewright'::regnamespace"
        ).fetchone() or (None,)
    held = {
        login: (tuple(sorted(names[one] for one in roles if one in names)), is_super)
        for login, is_super, roles in found
    }
    members = tuple(Member(login, tenant, *held.get(login, ((), False))) for login, tenant in tenants.items())
    return StateReport(state.place, server, version, members, writers, rows)
