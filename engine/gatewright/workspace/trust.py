"""Which definitions from outside a workspace the operator has trusted, kept outside the workspace. It runs nothing.

A record is the SHA-256 of the exact definition (kind, policy file, id, resolved target), one per line; behind that of
a manifest stands the SHA-256 of what it said, since it is its words that are trusted. A folder is trusted as a place:
what is in it is meant to change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import digest
from gatewright.policy.document import Catalog, Confine, Policy
from gatewright.policyfile.plain import plain_endpoints
from gatewright.record.folder import PrivateFolder
from gatewright.workspace.location import is_inside, resolved

FolderKind = Literal["source", "root", "place"]
"""What a folder is named by."""
_FILE = "trusted"
_MOST_BYTES = 1 << 24


class TrustRecords:
    """The trust file of a user, in the key folder."""

    def __init__(self, key_folder: Path) -> None:
        self._keys = PrivateFolder(key_folder)
        self._path = key_folder / _FILE

    def trusts_folder(self, kind: FolderKind, policy_path: Path, name: str, folder: Path) -> bool:
        """Whether exactly this folder of a source or root of this policy was trusted."""
        return _digest(kind, policy_path, name, folder) in self._read()

    def trust_folder(self, kind: FolderKind, policy_path: Path, name: str, folder: Path) -> None:
        """Remember it. Raises WorkspaceError when the key folder cannot be written."""
        self._add(_digest(kind, policy_path, name, folder))

    def trusted_manifest(self, policy_path: Path, catalog_id: str, manifest: Path) -> Callable[[bytes], bool] | None:
        """Tells whether a content is the one of this manifest that was trusted last; None: none of it ever was."""
        held = self._read().get(_digest("manifest", policy_path, catalog_id, manifest))
        return None if held is None else lambda content: _sha256(content) == held

    def trust_manifest(self, policy_path: Path, catalog_id: str, manifest: Path, content: bytes) -> None:
        """Remember it with this content. Raises WorkspaceError when the key folder cannot be written."""
        self._add(_digest("manifest", policy_path, catalog_id, manifest), content=_sha256(content))

    def trusts_server(self, policy_path: Path, catalog: Catalog) -> bool:
        """Tell whether exactly this definition of a server (its command or address, and what is passed on) was trusted,
        and each place of it that lies outside.
        """
        return self._read().keys() >= _records_of(policy_path, catalog)

    def trust_server(self, policy_path: Path, catalog: Catalog) -> None:
        """Remember it. Raises WorkspaceError when the key folder cannot be written."""
        self._add(*_records_of(policy_path, catalog))

    def trusts_endpoint(self, policy_path: Path, policy: Policy, target: str) -> bool:
        """Whether exactly this definition of an endpoint that connects was trusted."""
        return endpoint_digest(policy_path, policy, target) in self._read()

    def trust_endpoint(self, policy_path: Path, policy: Policy, target: str) -> None:
        """Remember it. Raises WorkspaceError when the key folder cannot be written."""
        self._add(endpoint_digest(policy_path, policy, target))

    def _add(self, *fresh: str, content: str = "") -> None:
        records = sorted({**self._read(), **dict.fromkeys(fresh, content)}.items())
        try:
            self._keys.replace(_FILE, "".join(f"{name} {held}".rstrip() + "\n" for name, held in records).encode())
        except OSError as error:
            raise WorkspaceError(f"cannot record trust in `{self._path}`: {error.strerror or error}") from None

    def _read(self) -> dict[str, str]:
        """What was trusted, each with the digest of its content, empty where that does not matter."""
        try:
            lines = self._keys.read(_FILE, _MOST_BYTES).decode("ascii").splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise WorkspaceError(f"cannot read the trust file `{self._path}`: {error}") from None
        return {name: content for name, _, content in (line.partition(" ") for line in lines)}


def _digest(kind: str, policy_path: Path, name: str, folder: Path) -> str:
    return digest([kind, str(policy_path.resolve()), name, str(folder)])


def _records_of(policy_path: Path, catalog: Catalog) -> set[str]:
    """The records of a server that is trusted: its definition, and each of its places that lies outside."""
    folder = policy_path.parent
    paths = [resolved(place, folder) for place in catalog.place_folders]
    outside = {_digest("place", policy_path, catalog.catalog_id, path) for path in paths if not is_inside(path, folder)}
    return {server_digest(policy_path, catalog), *outside}


def server_digest(policy_path: Path, catalog: Catalog) -> str:
    """SHA-256 of the definition of a server, as it is trusted for this policy file; 64 hexadecimal digits."""
    how = [catalog.command, list(catalog.args), list(catalog.env), catalog.cwd, catalog.url, dict(catalog.headers_env)]
    free = [str(catalog.confine)] if catalog.confine is Confine.NONE else []
    return digest(["server", str(policy_path.resolve()), catalog.catalog_id, *how, *free])


def endpoint_digest(policy_path: Path, policy: Policy, target: str) -> str:
    """SHA-256 of where an endpoint connects to and with which secret, as it is trusted for this policy file."""
    definition = plain_endpoints(policy.endpoints).get(target)
    return digest(["endpoint", str(policy_path.resolve()), target, definition])


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
