"""``state``: a PostgreSQL database as the state of many gateways."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from gatewright.base.amount import plural
from gatewright.cli.output import JsonOption, UsageProblem, print_json, print_line
from gatewright.record.folder import shared_url
from gatewright.record.migration import DUTIES, StateReport, enroll, initialize, migrate, report
from gatewright.record.shared import VERSION, SharedState

UrlOption = Annotated[
    str | None,
    typer.Option("--state", metavar="URL", help="the database, as postgresql://ROLE@HOST/NAME (else GATEWRIGHT_STATE)"),
]
_DUTIES = "; ".join(f"{name}: {what}" for name, what in DUTIES.items())


def init(
    url: UrlOption = None,
    tenant: Annotated[str, typer.Option("--tenant", metavar="NAME", help="whose state the members share")] = "main",
    member: Annotated[
        list[str] | None,
        typer.Option("--member", metavar="ROLE=DUTY,DUTY", help=f"a login role and what it may do ({_DUTIES})"),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make the state in an empty database, or admit more members to one.

    Needs a role that may make roles and owns the database. Without --member that role gets every duty.
    """
    members = dict(map(_member, member or ()))
    with closing(_state(url)) as state:
        _print(initialize(state, tenant, members), json=json)


def move(
    url: UrlOption = None,
    to: Annotated[int, typer.Option("--to", metavar="VERSION", help="the version that it shall have")] = VERSION,
    json: JsonOption = False,
) -> None:
    """Move the state to another version, all or nothing. An earlier version loses what it cannot hold."""
    with closing(_state(url)) as state:
        before, after = migrate(state, to)
    if json:
        print_json({"before": before, "after": after})
    else:
        print_line(f"version {after}" + ("" if before == after else f", before {before}"))


def status(url: UrlOption = None, json: JsonOption = False) -> None:
    """Say what the database holds, and who may do what there."""
    with closing(_state(url)) as state:
        _print(report(state), json=json)


def enroll_writer(
    writer: Annotated[str, typer.Argument(metavar="WRITER", help="the writer, as the denied call names it")],
    url: UrlOption = None,
    json: JsonOption = False,
) -> None:
    """Let the machine with that key write the log. Needs the duty `publish`."""
    with closing(_state(url)) as state:
        known = enroll(state, writer)
    if json:
        print_json(known.to_json())
    else:
        print_line(f"{known.writer} of {known.name} (role {known.login}) may write the log now")


def _member(words: str) -> tuple[str, tuple[str, ...]]:
    login, sign, duties = words.partition("=")
    found = tuple(filter(None, (duty.strip() for duty in duties.split(","))))
    if not (login and sign and found):
        raise UsageProblem(f"`{words}` is no member: ROLE=DUTY,DUTY with duties of {', '.join(DUTIES)}")
    return login, found


def _state(url: str | None) -> SharedState:
    found = shared_url(url)
    if found is None:
        raise UsageProblem("name the database: --state postgresql://ROLE@HOST/NAME, or GATEWRIGHT_STATE")
    return SharedState(found)


def _print(known: StateReport, *, json: bool) -> None:
    if json:
        print_json(known.to_json())
        return
    print_line(f"{known.place}: PostgreSQL {known.server}")
    if known.version is None:
        print_line("no state of Gatewright; `gatewright state init` makes one")
        return
    wanted = "" if known.version == VERSION else f", and this program needs {VERSION}"
    if known.rows is None:
        print_line(f"version {known.version}{wanted}; only an administrator sees its members")
        return
    print_line(f"version {known.version}{wanted}; the log has about {plural(known.rows, 'row')}")
    for one in known.members:
        what = ", ".join(one.duties) or "no duty"
        free = "; a superuser, whom no rule of the database binds" if one.is_superuser else ""
        print_line(f"  {one.login} of {one.tenant}: {what}{free}")
    for writer in known.writers:
        print_line(f"  {writer}")
