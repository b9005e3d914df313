"""Which definitions from outside a workspace the operator has trusted, kept outside the workspace. It runs nothing.

A record is the SHA-256 of the exact definition (kind, policy file, id, resolved target), one per line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import digest
from gatewright.record import PrivateFolder

if TYPE_CHECKING:
    from pathlib import Path

_FILE = "trusted"
_MOST_BYTES = 1 << 24


class TrustRecords:
    """The trust file of a user, in the key folder."""

    def __init__(self, key_folder: Path) -> None:
        self._keys = PrivateFolder(key_folder)
        self._path = key_folder / _FILE

    def trusts_source(self, policy_path: Path, source_id: str, base: Path) -> bool:
        """Whether exactly this source folder of this policy was trusted."""
        return _digest("source", policy_path, source_id, base) in self._read()

    def trust_source(self, policy_path: Path, source_id: str, base: Path) -> None:
        """Remember it. Raises WorkspaceError when the key folder cannot be written."""
        self._add(_digest("source", policy_path, source_id, base))

    def trusts_root(self, policy_path: Path, name: str, folder: Path) -> bool:
        """Whether exactly this folder of a root of this policy was trusted."""
        return _digest("root", policy_path, name, folder) in self._read()

    def trust_root(self, policy_path: Path, name: str, folder: Path) -> None:
        """Remember it. Raises WorkspaceError when the key folder cannot be written."""
        self._add(_digest("root", policy_path, name, folder))

    def trusts_manifest(self, policy_path: Path, catalog_id: str, manifest: Path) -> bool:
        """Whether exactly this manifest of a catalog of this policy was trusted."""
        return _digest("manifest", policy_path, catalog_id, manifest) in self._read()

    def trust_manifest(self, policy_path: Path, catalog_id: str, manifest: Path) -> None:
        """Remember it. Raises WorkspaceError when the key folder cannot be written."""
        self._add(_digest("manifest", policy_path, catalog_id, manifest))

    def _add(self, record: str) -> None:
        records = self._read() | {record}
        try:
            self._keys.replace(_FILE, "".join(f"{record}\n" for record in sorted(records)).encode())
        except OSError as error:
            raise WorkspaceError(f"cannot record trust in `{self._path}`: {error.strerror or error}") from None

    def _read(self) -> frozenset[str]:
        try:
            return frozenset(self._keys.read(_FILE, _MOST_BYTES).decode("ascii").split())
        except FileNotFoundError:
            return frozenset()
        except (OSError, UnicodeDecodeError) as error:
            raise WorkspaceError(f"cannot read the trust file `{self._path}`: {error}") from None


def _digest(kind: str, policy_path: Path, name: str, folder: Path) -> str:
    return digest([kind, str(policy_path.resolve()), name, str(folder)])
