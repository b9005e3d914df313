"""Records kept for a workspace outside it: trusted definitions, tokens of HTTP clients, unsaved edits.

It has more than 450 lines because all of these files are opened and read in the same few steps.

A record is the SHA-256 of the exact definition (kind, policy file, id, resolved target), one per line; a manifest's
record ends with the SHA-256 of its content, since the operator trusted these very words. Trust in a folder covers
whatever it holds, since that is meant to change.

The records lie in the key folder, outside the workspace, so that write access to the policy's folder cannot forge any.

Each window has a journal for each policy, named by a `Lifeline`: while its process lives, no other takes it. Unsaved
texts of the memory page share one file for all windows of a policy.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from gatewright.base.amount import Clock, iso_utc, new_id
from gatewright.base.errors import GatewrightError, ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue, digest
from gatewright.base.late import in_own_thread
from gatewright.policy.document import Catalog, Confine, Policy
from gatewright.policyfile import write_policy_text
from gatewright.policyfile.readworkspace import EndpointsTable
from gatewright.policyfile.table import plain
from gatewright.record.folder import PrivateFolder
from gatewright.record.process import Lifeline, is_alive
from gatewright.sources.ground import is_inside, resolve_base
from gatewright.tools.pin import Listing, Pin, drift

FolderKind = Literal["source", "root", "place"]
"""The kinds of folders."""
NOT_TRUSTED = ("what starts it is not trusted yet", "`gatewright check --trust` trusts it")
WAITS_FOR_PLACES = (
    "nobody accepted yet which places its process gets",
    "`gatewright catalog places POLICY ID --accept` gives it what its command names",
)
_HELD = "this tool is no longer the one that you were given; go on without it"
_TRUST_FILE = "trusted"
_MOST_TRUST_BYTES = 1 << 24
_AT_ONCE = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


class TrustRecords:
    """The trust file of a user, in the key folder."""

    def __init__(self, key_folder: Path) -> None:
        self._keys = PrivateFolder(key_folder)
        self._path = key_folder / _TRUST_FILE
        self._known: tuple[tuple[int, ...], dict[str, str]] | None = None
        """The trust file as last read: every call of a catalog's tool asks it."""

    def trusts_folder(self, kind: FolderKind, policy_path: Path, name: str, folder: Path) -> bool:
        """Tell whether the operator trusted exactly this folder for a source or root of this policy."""
        return _record_digest(kind, policy_path, name, folder) in self._read()

    def trust_folder(self, kind: FolderKind, policy_path: Path, name: str, folder: Path) -> None:
        """Record the trust. Raises WorkspaceError if the key folder cannot be written."""
        self._add(_record_digest(kind, policy_path, name, folder))

    def manifest_test(self, policy_path: Path, catalog_id: str, manifest: Path) -> Callable[[bytes], bool] | None:
        """Return a function that recognises the content of this manifest that somebody trusted last; None if nobody
        did.
        """
        held = self._read().get(_record_digest("manifest", policy_path, catalog_id, manifest))
        return None if held is None else lambda content: _sha256(content) == held

    def trust_manifest(self, policy_path: Path, catalog_id: str, manifest: Path, content: bytes) -> None:
        """Record the trust in this content. Raises WorkspaceError if the key folder cannot be written."""
        self._add(_record_digest("manifest", policy_path, catalog_id, manifest), content=_sha256(content))

    def trusts_server(self, policy_path: Path, catalog: Catalog, module: str | None = None) -> bool:
        """Tell whether the operator trusted exactly this definition of a catalog's executor, and its outside places.

        The definition is the command, address or module, and its variables. ``module``: the digest of its module, if
        the caller has read it; None: that of its file.
        """
        return self._read().keys() >= _records_of(policy_path, catalog, module)

    def trust_server(self, policy_path: Path, catalog: Catalog) -> None:
        """Record the trust. Raises WorkspaceError if the key folder cannot be written."""
        self._add(*_records_of(policy_path, catalog))

    def untrusted_places(self, policy_path: Path, catalog: Catalog) -> tuple[str, ...]:
        """List a server's untrusted places outside, as written."""
        known = self._read()
        return tuple(one for one, record in _outside(policy_path, catalog).items() if record not in known)

    def trusts_endpoint(self, policy_path: Path, policy: Policy, target: str) -> bool:
        """Tell whether the operator trusted exactly this definition of a connecting endpoint."""
        return endpoint_digest(policy_path, policy, target) in self._read()

    def trust_endpoint(self, policy_path: Path, policy: Policy, target: str) -> None:
        """Record the trust. Raises WorkspaceError if the key folder cannot be written."""
        self._add(endpoint_digest(policy_path, policy, target))

    def _add(self, *fresh: str, content: str = "") -> None:
        records = sorted({**self._read(), **dict.fromkeys(fresh, content)}.items())
        try:
            self._keys.replace(
                _TRUST_FILE, "".join(f"{name} {held}".rstrip() + "\n" for name, held in records).encode()
            )
        except OSError as error:
            raise WorkspaceError(f"cannot record trust in `{self._path}`: {error.strerror or error}") from None

    def _read(self) -> dict[str, str]:
        """Return the records, each with the digest of its content, empty if that does not matter."""
        known = self._known
        try:
            facts = self._keys.look(_TRUST_FILE)
            if facts is None:
                return {}
            state = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
            if known is not None and known[0] == state:
                return known[1]
            lines = self._keys.read(_TRUST_FILE, _MOST_TRUST_BYTES).decode("ascii").splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise WorkspaceError(f"cannot read the trust file `{self._path}`: {error}") from None
        found = {name: content for name, _, content in (line.partition(" ") for line in lines)}
        self._known = state, found
        return found


def _record_digest(kind: str, policy_path: Path, name: str, folder: Path) -> str:
    return digest([kind, str(policy_path.resolve()), name, str(folder)])


def _records_of(policy_path: Path, catalog: Catalog, module: str | None = None) -> set[str]:
    """Return the records of a trusted catalog: its definition, and each of its places outside."""
    return {server_digest(policy_path, catalog, module), *_outside(policy_path, catalog).values()}


def _outside(policy_path: Path, catalog: Catalog) -> dict[str, str]:
    """Map each of a server's places outside to its record."""
    folder = policy_path.parent
    paths = {place: resolve_base(place, folder) for place in catalog.place_folders}
    return {
        place: _record_digest("place", policy_path, catalog.catalog_id, path)
        for place, path in paths.items()
        if not is_inside(path, folder)
    }


async def require_accepted(
    name: str, catalog: Catalog, listing: Listing, pin: Pin | None, record: Callable[[str, Listing], Pin]
) -> None:
    """Raise ToolFailure if the tool's present listing is not the accepted one, after passing it to ``record``."""
    definition = listing.definitions.get(name)
    if pin is not None and drift(pin, listing) != pin.drift:
        with suppress(GatewrightError):  # such a call holds the tool in any case
            await in_own_thread(record, catalog.catalog_id, listing)
    if definition is not None and pin is not None and pin.is_accepted(definition):
        return
    why = "does not list it any more" if definition is None else "lists another definition than the accepted one"
    who = "manifest" if catalog.kind.has_manifest else "server"
    detail = f"`{name}` is held: the {who} of catalog `{catalog.catalog_id}` {why}"
    raise ToolFailure(_HELD, code="held", detail=detail)


HOSTS = "hosts"
"""The folder, in the key folder, with a record of each file of a coding agent that holds our hook."""
_MOST_RECORD_BYTES = 1 << 27
_UNKNOWN_PLACES = "it names files that are closed to all tools: remove it, then install the hook again"


def host_places(key_folder: Path) -> tuple[Path, ...]:
    """List every file in which a coding agent with our hook looks for hooks, so that no tool may touch any of them.

    Raises WorkspaceError if one of the records cannot be read: nobody knows then which files it closed.
    """
    return tuple(dict.fromkeys(Path(place) for _, places in _host_records(key_folder) for place in places))


def gated_hosts(key_folder: Path) -> frozenset[str]:
    """Return the coding agents that have our hook. Raises WorkspaceError as `host_places` does."""
    return frozenset(host_id for host_id, _ in _host_records(key_folder))


def _host_records(key_folder: Path) -> Iterator[tuple[str, list[str]]]:
    folder = PrivateFolder(key_folder).folder(HOSTS)
    name = ""
    try:
        for name in folder.names():
            if name.endswith(".json"):
                with suppress(FileNotFoundError):  # taken out meanwhile
                    record = json.loads(folder.read(name, _MOST_RECORD_BYTES))
                    yield str(record["host_id"]), list(map(str, record["places"]))
    except OSError as error:
        place = folder.path / name
        raise WorkspaceError(f"`{place}` cannot be read: {error.strerror or error}; {_UNKNOWN_PLACES}") from None
    except (ValueError, TypeError, KeyError):
        raise WorkspaceError(f"`{folder.path / name}` is damaged; {_UNKNOWN_PLACES}") from None


_ADAPTERS = Path(__file__).parents[1] / "adapters"
HOOK_FILES = (
    _ADAPTERS / "hook_client.py",
    _ADAPTERS / "hook_exchange.py",
    _ADAPTERS / "__pycache__" / f"hook_exchange.{sys.implementation.cache_tag}.pyc",
)
"""The client of the resident gate, with its compiled form, which no tool may touch; programs that lie around it may
read it.
"""


def socket_places() -> Iterator[Path]:
    """Yield the folders of the resident gate's socket, which no tool and no process may touch."""
    if sys.platform != "win32":
        for run in (os.environ.get("XDG_RUNTIME_DIR"), f"/run/user/{os.getuid()}"):
            if run:
                yield Path(run) / "gatewright"


def server_digest(policy_path: Path, catalog: Catalog, module: str | None = None) -> str:
    """Return the SHA-256 of a catalog's executor, as trusted for this policy file; 64 hexadecimal digits.

    ``module``: the digest of its module, if known.
    """
    how = [catalog.command, list(catalog.args), list(catalog.env), catalog.cwd, catalog.url, dict(catalog.headers_env)]
    free = [str(catalog.confine)] if catalog.confine is Confine.NONE else []
    listed = [str(catalog.kind), catalog.manifest] if catalog.kind.has_manifest else []
    listed += [dict(catalog.query_env)] if catalog.query_env else []
    content = module_digest(policy_path.parent / catalog.module) if catalog.module and module is None else module
    run = [catalog.module, content] if catalog.module else []
    return digest(["server", str(policy_path.resolve()), catalog.catalog_id, *how, *free, *listed, *run])


def module_digest(path: Path) -> str:
    """Return the SHA-256 of the module in a file, 64 hexadecimal digits; empty without a readable one."""
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, _AT_ONCE)) as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return hashlib.file_digest(file, "sha256").hexdigest() if is_file else ""
    except (OSError, ValueError):
        return ""


def endpoint_digest(policy_path: Path, policy: Policy, target: str) -> str:
    """Return the SHA-256 of an endpoint's address and secret's name, as trusted for this policy file."""
    definition = plain(policy.endpoints, EndpointsTable).get(target)
    return digest(["endpoint", str(policy_path.resolve()), target, definition])


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


_TOKENS_FILE = "tokens.json"
_MOST_TOKENS_BYTES = 1 << 22
MOST_TOKENS = 1_000


@dataclass(frozen=True, slots=True)  # pydantic makes these, and does not understand `frozen`
class Token:
    """The agent, user and policy of a token's bearer. ``digest``: SHA-256 of the token, in hexadecimal.

    ``elicit``: questions go to the client's user if the client can ask, and not to the operator. ``made_wall_s``:
    seconds since 1970.
    """

    token_id: str
    policy: str
    agent_id: str
    user_id: str | None
    elicit: bool
    made_wall_s: float
    digest: str

    @property
    def made(self) -> str:
        """The time of its creation, for people and scripts."""
        return iso_utc(self.made_wall_s)

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: id, agent, user, elicit, made."""
        return {
            "id": self.token_id,
            "agent": self.agent_id,
            "user": self.user_id,
            "elicit": self.elicit,
            "made": self.made,
        }


@cache
def _tokens() -> TypeAdapter[tuple[Token, ...]]:
    return TypeAdapter(tuple[Token, ...])


class TokenBook:
    """The tokens of one policy file. Methods raise WorkspaceError for an unusable key folder."""

    def __init__(self, key_folder: Path, policy_path: Path, clock: Clock) -> None:
        self._clock = clock
        self._folder = PrivateFolder(key_folder)
        self._policy = str(policy_path.resolve())
        self._seen: tuple[object, tuple[Token, ...]] | None = None

    def add(self, agent_id: str, *, user_id: str | None = None, elicit: bool = False) -> tuple[Token, str]:
        """Make a token. The second value is the token itself, available only here."""
        secret = f"gw_{secrets.token_urlsafe(32)}"
        made = Token(
            new_id("token"), self._policy, agent_id, user_id, elicit, self._clock.wall_s(), _secret_digest(secret)
        )

        def add_token(before: tuple[Token, ...]) -> tuple[Token, ...]:
            if len(before) >= MOST_TOKENS:
                raise WorkspaceError(f"the limit is {MOST_TOKENS:,} tokens; revoke unused ones")
            return (*before, made)

        self._change(add_token)
        return made, secret

    def list(self) -> tuple[Token, ...]:
        """List this policy's tokens, oldest first; read a changed file again."""
        try:
            facts = self._folder.look(_TOKENS_FILE)
            state = facts and (facts.st_ino, facts.st_mtime_ns, facts.st_size)
            if self._seen is None or self._seen[0] != state:
                self._seen = (state, tuple(one for one in self._read() if one.policy == self._policy))
        except OSError as error:
            raise self._failure(error) from None
        return self._seen[1]

    def revoke(self, token_id: str) -> Token | None:
        """Revoke a token; None for an unknown id."""
        found = next((one for one in self.list() if one.token_id == token_id), None)
        if found is not None:
            self._change(lambda before: tuple(one for one in before if one.token_id != token_id))
        return found

    def find(self, secret: str) -> Token | None:
        """Find the token that a client presents; the time that it takes reveals nothing about other tokens."""
        digest, found = _secret_digest(secret), None
        for one in self.list():
            if hmac.compare_digest(one.digest, digest):
                found = one
        return found

    def _change(self, change: Callable[[tuple[Token, ...]], tuple[Token, ...]]) -> None:
        try:
            self._folder.make()
            with self._folder.exclusive():
                tokens = [asdict(one) for one in change(self._read())]
                self._folder.replace(_TOKENS_FILE, json.dumps(tokens, indent=1).encode())
        except OSError as error:
            raise self._failure(error) from None

    def _read(self) -> tuple[Token, ...]:
        try:
            return _tokens().validate_json(self._folder.read(_TOKENS_FILE, _MOST_TOKENS_BYTES))
        except FileNotFoundError:
            return ()
        except ValidationError:
            raise WorkspaceError(
                f"`{self._folder.path / _TOKENS_FILE}` holds no tokens: it was changed by hand"
            ) from None

    def _failure(self, error: OSError) -> WorkspaceError:
        return WorkspaceError(
            f"the tokens in `{self._folder.path / _TOKENS_FILE}` cannot be used: {error.strerror or error}"
        )


def _secret_digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


MOST_BYTES = 64 * 1024 * 1024
"""Limit of a journal's bytes: two texts of a policy, as JSON."""


@dataclass(frozen=True, slots=True)  # pydantic makes these, and does not understand `frozen`
class UnsavedPolicy:
    """A policy's ``text`` with ``steps`` unsaved edits, and the file's text that they started from."""

    grown_from: str
    text: str
    steps: int


@dataclass(frozen=True, slots=True)
class TypedText:
    """A typed, unsaved text, and its base: a text, or the number of a block's last step."""

    text: str
    over: str


MOST_TYPED = 100
"""Limit of a policy's unsaved typed texts; the latest stay."""


class Journal:
    """The journal of one window for one policy file. Methods block; any thread may call them, one at a time."""

    def __init__(self, folder: Path, policy_path: Path) -> None:
        self._folder = PrivateFolder(folder)
        self._policy = _name_of(policy_path)
        self._life = Lifeline(folder)
        self._own = ""

    def keep(self, unsaved: UnsavedPolicy) -> None:
        """Write the journal in place of the earlier one. Raises OSError and WorkspaceError."""
        self._folder.make()
        self._own = f"{self._policy}.{self._life.hold(self._policy)}.json"
        self._folder.replace(self._own, _plain().dump_json(unsaved))

    def forget(self) -> None:
        """Remove the journal, since everything is saved. Raises OSError."""
        if self._own:
            self._folder.delete(self._own)
            self._own = ""
        self._life.close()

    def close(self) -> None:
        """Leave the journal for the next process that opens the policy."""
        self._own = ""
        self._life.close()

    def leftovers(self) -> tuple[Mapping[str, UnsavedPolicy], tuple[str, ...]]:
        """Return the journals of ended processes for this policy, by name, the newest first, and sentences about
        ignored ones.
        """
        found: list[tuple[int, str, UnsavedPolicy]] = []
        ignored: list[str] = []
        try:
            names = [name for name in self._folder.names() if name.startswith(self._policy) and name.endswith(".json")]
        except OSError:
            return {}, ()  # an unreadable folder counts as empty; `keep` reports its fault
        for name in names:
            if is_alive(self._folder.path, name.split(".")[1]):
                continue
            try:
                facts = self._folder.look(name)
                if facts is None:
                    continue
                if hasattr(os, "getuid") and facts.st_uid != os.getuid():
                    ignored.append(f"unsaved changes in `{self._folder.path / name}` are ignored: they are not yours")
                    continue
                unsaved = _plain().validate_json(self._folder.read(name, MOST_BYTES), strict=True)
                found.append((facts.st_mtime_ns, name, unsaved))
            except (OSError, ValidationError) as error:
                reason = (error.strerror or "") if isinstance(error, OSError) else "the file is damaged"
                ignored.append(f"unsaved changes in `{self._folder.path / name}` are ignored: {reason}")
        return {name: unsaved for _, name, unsaved in sorted(found, key=lambda row: row[:2], reverse=True)}, tuple(
            ignored
        )

    def remove(self, name: str) -> None:
        """Remove the journal of another process. Raises OSError."""
        self._folder.delete(name)


class TypedTexts:
    """Texts typed on the memory page in the windows of one policy file and not saved, by name. Methods block."""

    def __init__(self, folder: Path, policy_path: Path) -> None:
        self._folder = PrivateFolder(folder)
        self._name = f"typed-{_name_of(policy_path)}.json"

    def read(self) -> dict[str, TypedText]:
        """Return all texts, the latest at the end; nothing if unreadable."""
        try:
            content = self._folder.read(self._name, MOST_BYTES)
            return _text_adapter().validate_json(content, strict=True)
        except (OSError, ValidationError):
            return {}

    def change(self, changes: Mapping[str, TypedText | None]) -> None:
        """Store these texts, and remove those whose value is None; the texts of other windows stay. Raises OSError."""
        self._folder.make()
        with self._folder.exclusive():
            before = self.read()
            rest = {name: typed for name, typed in before.items() if name not in changes}
            now = {**rest, **{name: typed for name, typed in changes.items() if typed is not None}}
            if now:
                self._folder.replace(self._name, _text_adapter().dump_json(dict(list(now.items())[-MOST_TYPED:])))
            elif before:
                self._folder.delete(self._name)


@cache
def _plain() -> TypeAdapter[UnsavedPolicy]:
    return TypeAdapter(UnsavedPolicy)


@cache
def _text_adapter() -> TypeAdapter[dict[str, TypedText]]:
    return TypeAdapter(dict[str, TypedText])


def _name_of(policy_path: Path) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(policy_path))).hexdigest()[:32]


def write_beside(policy_path: Path, text: str) -> Path:
    """Write unsaved text into a new file beside the policy, and return its path. Raises WorkspaceError."""
    number = 1
    target = policy_path.with_name(f"{policy_path.stem}.unsaved.toml")
    while os.path.lexists(target):
        number += 1
        target = policy_path.with_name(f"{policy_path.stem}.unsaved-{number}.toml")
    write_policy_text(target, text, expected=None)
    return target
