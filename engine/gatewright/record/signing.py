"""Signatures that anybody can check and only the holder of a key can make: Ed25519 (RFC 8032), by ``cryptography``."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from gatewright.record.folder import PrivateFolder, have_key


class Signer:
    """The key in a file of the key folder, which the first use makes. Raises OSError."""

    def __init__(self, keys: PrivateFolder, name: str) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(have_key(keys, name))
        self.public: bytes = self._key.public_key().public_bytes_raw()
        """The other half, 32 bytes."""

    def sign(self, data: bytes) -> bytes:
        """The signature, 64 bytes."""
        return self._key.sign(data)


def is_signed(public: bytes, data: bytes, signature: bytes) -> bool:
    """Tell whether the holder of the key's other half signed the data."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True
