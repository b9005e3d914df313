"""The gateway in a client's configuration file, in place of the servers behind it.

The rest of the file stays, comments too. The variables of those servers move from their entries to the gateway's, which
hands each server the ones that its catalog names; the visible difference shows no value.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import cast

from gatewright.adapters.client_config import Client, Surroundings, read_servers, servers_key, variables_of
from gatewright.adapters.json_text import drop, members, put, read_json
from gatewright.base.errors import WeMustFix
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.printable import printable
from gatewright.gate.scrub import scrub_text
from gatewright.policy.document import Catalog

ENTRY_ID = "gatewright"
_HIDDEN = "..."
_WAIT = "--wait"
_SECRET = ("env", "headers")


@frozen
class GatewayEdit:
    """A client's file with the gateway in it: the whole ``text``, and a ``difference`` without values to show.

    ``replaced``: the servers that it replaces; ``direct``: the servers that the client still reaches without it, with
    the reason; ``handed``: the variables that the gateway gets from the file; ``entry``: its command, without them.
    """

    text: str
    entry: Mapping[str, JsonValue]
    difference: str
    replaced: tuple[str, ...]
    direct: Mapping[str, str]
    handed: tuple[str, ...]


def put_gateway(
    text: str, client: Client, catalogs: Sequence[Catalog], command: Sequence[str], around: Surroundings
) -> GatewayEdit:
    """Edit a client's file so that it starts ``command`` instead of the servers in ``catalogs``.

    A ``--wait`` in the gateway's old entry stays if the command has none. An empty ``text`` stands for a missing file.
    Raises WorkspaceError if it is not JSON.
    """
    before = text if text.strip("\ufeff \t\r\n") else "{}\n"
    keys = servers_key(before) or (client.key,)
    entries = _object(read_json(before), keys)
    served, direct = _split(before, entries, catalogs, around)
    env = _variables(entries, served, direct)
    own = [name for name, entry in entries.items() if _is_gateway(entry)]
    before_us = entries[own[0]] if own else None
    wait = () if _WAIT in command else _wait_of(before_us)
    entry: dict[str, JsonValue] = {**client.extra, "command": command[0], "args": [*command[1:], *wait]}
    kept = _object(before_us, ("env",))
    if kept or env:
        entry["env"] = {**kept, **env}
    after = before
    for name in (*own, *served):
        while name in {member.key for member in members(after, keys)}:
            after = drop(after, keys, name)
    after = put(after, keys, ENTRY_ID, entry)
    _check(before, after, keys, {*own, *served}, entry)
    bare = {key: value for key, value in entry.items() if key != "env"}
    return GatewayEdit(after, bare, _difference(text and before, after, keys), tuple(served), direct, tuple(env))


def _split(
    text: str, entries: Mapping[str, JsonValue], catalogs: Sequence[Catalog], around: Surroundings
) -> tuple[dict[str, Catalog], dict[str, str]]:
    """Split the servers into those with a catalog in the policy and the others, with the reason."""
    served: dict[str, Catalog] = {}
    direct: dict[str, str] = {}
    for server in read_servers(text, around) if entries else ():
        if _is_gateway(entries[server.server_id]):
            continue
        found = next((one for one in catalogs if server.catalog and _stands_for(one, server.catalog)), None)
        if found is not None:
            served[server.server_id] = found
        else:
            direct[server.server_id] = server.refusal or "the policy has no such catalog"
    return served, direct


def _stands_for(one: Catalog, other: Catalog) -> bool:
    return one.catalog_id.casefold() == other.catalog_id.casefold() or is_same_server(one, other)


def is_same_server(one: Catalog, other: Catalog) -> bool:
    """Tell whether two catalogs start or reach the same server, whatever their ids."""
    if one.command is None:
        return one.url is not None and one.url == other.url
    return (one.command, one.args) == (other.command, other.args)


def _variables(
    entries: Mapping[str, JsonValue], served: dict[str, Catalog], direct: dict[str, str]
) -> dict[str, JsonValue]:
    """Collect the servers' variables; if two servers differ on a value, the second one stays direct."""
    env: dict[str, JsonValue] = {}
    givers: dict[str, str] = {}
    for name, catalog in list(served.items()):
        given = variables_of(entries[name], catalog)
        clash = next((variable for variable in given if env.get(variable, given[variable]) != given[variable]), None)
        if clash is not None:
            del served[name]
            direct[name] = f"`{clash}` has another value for `{givers[clash]}`: the gateway has one environment"
            continue
        env |= given
        givers |= dict.fromkeys(given, name)
    return env


def _is_gateway(entry: JsonValue) -> bool:
    if not isinstance(entry, dict):
        return False
    command, args = entry.get("command"), entry.get("args")
    words = [command, *(args if isinstance(args, list) else ())]
    texts = [word for word in words if isinstance(word, str)]
    ours = any(PurePath(word.replace("\\", "/")).stem == "gatewright" or "gatewright.cli" in word for word in texts)
    return ours and "serve" in texts


def _wait_of(entry: JsonValue) -> tuple[JsonValue, ...]:
    args = entry.get("args") if isinstance(entry, dict) else None
    if not isinstance(args, list) or _WAIT not in args:
        return ()
    at = args.index(_WAIT)
    return tuple(args[at : at + 2])


def _check(before: str, after: str, keys: Sequence[str], gone: set[str], entry: JsonValue) -> None:
    """Verify that the edit did exactly this, whatever the text looks like."""
    wanted = read_json(before)
    inner = cast("dict[str, JsonValue]", wanted)
    for key in keys:
        inner = cast("dict[str, JsonValue]", inner.setdefault(key, {}))
    for name in gone:
        del inner[name]
    inner[ENTRY_ID] = entry
    if read_json(after) != wanted:
        raise WeMustFix("the edit of the client's file would change something else")


def _object(value: JsonValue, keys: Sequence[str]) -> dict[str, JsonValue]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _difference(before: str, after: str, keys: Sequence[str]) -> str:
    """Return a unified difference that hides values of variables and headers, and anything else like a secret."""
    old, new = (_without_values(text, keys).splitlines() for text in (before, after))
    return "\n".join(list(difflib.unified_diff(old, new, lineterm="", n=3))[2:])


def _without_values(text: str, keys: Sequence[str]) -> str:
    servers = [(*keys, server.key) for server in members(text, keys)]
    ways = [(*server, inner.key) for server in servers for inner in members(text, server)]
    holders = [way for way in (*ways, *((*way, "env") for way in ways if way[-1] == "command")) if way[-1] in _SECRET]
    hidden = [(member.value, member.end) for holder in holders for member in members(text, holder)]
    for start, end in sorted(hidden, reverse=True):
        text = f'{text[:start]}"{_HIDDEN}"{text[end:]}'
    return "\n".join(printable(scrub_text(line)[0], keep="\t") for line in text.splitlines())
