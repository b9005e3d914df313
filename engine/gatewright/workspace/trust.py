"""The operator's trust in definitions from outside a workspace, recorded outside the workspace.

A record is the SHA-256 of the exact definition (kind, policy file, id, resolved target), one per line; for a manifest
the SHA-256 of its content follows, since the trust is in its words. Trust in a folder is trust in a place, since its
content is meant to change.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from gatewright.base.errors import GatewrightError, ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import digest
from gatewright.base.thread import in_own_thread
from gatewright.policy.document import Catalog, Confine, Policy
from gatewright.policyfile.readworkspace import EndpointsTable
from gatewright.policyfile.table import plain
from gatewright.record.folder import PrivateFolder
from gatewright.tools.pin import Listing, Pin, drift
from gatewright.workspace.location import is_inside, resolve_base

FolderKind = Literal["source", "root", "place"]
"""The kinds of folders."""
NOT_TRUSTED = ("what starts it is not trusted yet", "`gatewright check --trust` trusts it")
WAITS_FOR_PLACES = (
    "nobody accepted yet which places its process gets",
    "`gatewright catalog places POLICY ID --accept` gives it what its command names",
)
_HELD = "this tool is no longer the one that you were given; go on without it"
_FILE = "trusted"
_MOST_BYTES = 1 << 24
_AT_ONCE = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


class TrustRecords:
    """The trust file of a user, in the key folder."""

    def __init__(self, key_folder: Path) -> None:
        self._keys = PrivateFolder(key_folder)
        self._path = key_folder / _FILE
        self._known: tuple[tuple[int, ...], dict[str, str]] | None = None
        """The file's last reading, since each call of a catalog's tool asks."""

    def trusts_folder(self, kind: FolderKind, policy_path: Path, name: str, folder: Path) -> bool:
        """Tell whether the operator trusted exactly this folder for a source or root of this policy."""
        return _digest(kind, policy_path, name, folder) in self._read()

    def trust_folder(self, kind: FolderKind, policy_path: Path, name: str, folder: Path) -> None:
        """Record the trust. Raises WorkspaceError if the key folder cannot be written."""
        self._add(_digest(kind, policy_path, name, folder))

    def trusted_manifest(self, policy_path: Path, catalog_id: str, manifest: Path) -> Callable[[bytes], bool] | None:
        """Return a test for the last trusted content of this manifest; None if none ever was."""
        held = self._read().get(_digest("manifest", policy_path, catalog_id, manifest))
        return None if held is None else lambda content: _sha256(content) == held

    def trust_manifest(self, policy_path: Path, catalog_id: str, manifest: Path, content: bytes) -> None:
        """Record the trust in this content. Raises WorkspaceError if the key folder cannot be written."""
        self._add(_digest("manifest", policy_path, catalog_id, manifest), content=_sha256(content))

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
            self._keys.replace(_FILE, "".join(f"{name} {held}".rstrip() + "\n" for name, held in records).encode())
        except OSError as error:
            raise WorkspaceError(f"cannot record trust in `{self._path}`: {error.strerror or error}") from None

    def _read(self) -> dict[str, str]:
        """Return the records, each with the digest of its content, empty if that does not matter."""
        known = self._known
        try:
            facts = self._keys.look(_FILE)
            if facts is None:
                return {}
            state = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
            if known is not None and known[0] == state:
                return known[1]
            lines = self._keys.read(_FILE, _MOST_BYTES).decode("ascii").splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise WorkspaceError(f"cannot read the trust file `{self._path}`: {error}") from None
        found = {name: content for name, _, content in (line.partition(" ") for line in lines)}
        self._known = state, found
        return found


def _digest(kind: str, policy_path: Path, name: str, folder: Path) -> str:
    return digest([kind, str(policy_path.resolve()), name, str(folder)])


def _records_of(policy_path: Path, catalog: Catalog, module: str | None = None) -> set[str]:
    """Return the records of a trusted catalog: its definition, and each of its places outside."""
    return {server_digest(policy_path, catalog, module), *_outside(policy_path, catalog).values()}


def _outside(policy_path: Path, catalog: Catalog) -> dict[str, str]:
    """Map each of a server's places outside to its record."""
    folder = policy_path.parent
    paths = {place: resolve_base(place, folder) for place in catalog.place_folders}
    return {
        place: _digest("place", policy_path, catalog.catalog_id, path)
        for place, path in paths.items()
        if not is_inside(path, folder)
    }


async def require_accepted(
    name: str, catalog: Catalog, listing: Listing, pin: Pin | None, record: Callable[[str, Listing], Pin]
) -> None:
    """Raises ToolFailure if the tool's present listing is not the accepted one; reports the listing to ``record``."""
    definition = listing.definitions.get(name)
    if pin is not None and drift(pin, listing) != pin.drift:
        with suppress(GatewrightError):  # this call holds it anyhow
            await in_own_thread(record, catalog.catalog_id, listing)
    if definition is not None and pin is not None and pin.is_accepted(definition):
        return
    why = "does not list it any more" if definition is None else "lists another definition than the accepted one"
    who = "manifest" if catalog.kind.has_manifest else "server"
    detail = f"`{name}` is held: the {who} of catalog `{catalog.catalog_id}` {why}"
    raise ToolFailure(_HELD, code="held", detail=detail)


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
