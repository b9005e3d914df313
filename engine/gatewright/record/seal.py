"""The seal of a row, HMAC-SHA-256 (RFC 2104, FIPS 180-4), and the files that its keys lie in."""

from __future__ import annotations

import errno
import hmac
import secrets
from collections.abc import Sequence

from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.record.folder import PrivateFolder

KEY_BYTES = 32
SHARED_KEY = "approvals.key"
"""The name of the key that approvals and sessions are sealed with."""


class Seal:
    """Seals rows with one key; the key is taken in once."""

    def __init__(self, key: bytes) -> None:
        self._keyed = hmac.new(key, digestmod="sha256")

    def __call__(self, row: Sequence[JsonValue], previous: str = "") -> str:
        """The MAC of a row in hexadecimal; ``previous``: the MAC that it follows. Raises TypeError, ValueError."""
        return self.digest(previous.encode() + canonical_json(row))

    def digest(self, data: bytes) -> str:
        """The MAC of the data. Unlike `hmac.digest` it lets no fork in while OpenSSL holds locks of its own."""
        mac = self._keyed.copy()
        mac.update(data)
        return mac.hexdigest()

    def is_on(self, row: Sequence[JsonValue], mac: object, previous: str = "") -> bool:
        """Whether that is the MAC of the row. Raises TypeError, ValueError where it is no row at all."""
        right = self(row, previous)
        return isinstance(mac, str) and hmac.compare_digest(right.encode(), mac.encode("utf-8", "replace"))


def find_key(keys: PrivateFolder, name: str) -> bytes | None:
    """The key in that file; None when there is none. Raises OSError, also when it is damaged."""
    try:
        key = keys.read(name, KEY_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(key) != KEY_BYTES:
        raise OSError(errno.EINVAL, "the key is damaged", str(keys.path / name))
    return key


def have_key(keys: PrivateFolder, name: str) -> bytes:
    """The key in that file, a new random one where there was none: processes that ask at once get the same.

    Raises OSError.
    """
    if keys.look(name) is None:
        keys.create(name, secrets.token_bytes(KEY_BYTES))
    key = find_key(keys, name)
    if key is None:
        raise FileNotFoundError(errno.ENOENT, "the key is gone", str(keys.path / name))
    return key
