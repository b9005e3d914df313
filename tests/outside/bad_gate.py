"""A gate that answers every hook with something that is no answer: nonsense, half a line, a megabyte, by a wrong key.

`serving_badly` serves the socket of a policy so, where the client in the file of a coding agent looks for its gate.
"""

import os
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from gatewright.adapters.hook_exchange import HELLO, MAC_BYTES, NONCE_BYTES, address, mac, open_folder
from gatewright.adapters.hook_socket import HookPlace


def _said(text: bytes, code: int = 0) -> bytes:
    return b"R" + bytes((code,)) + len(text).to_bytes(4, "big") + text


_HALF = b'{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "al'
BODIES = {
    "nothing": b"",
    "nonsense": b"\xff\x00nonsense",
    "half a line": _said(_HALF),
    "a megabyte": _said(b"x" * 1_000_000),
    "a list": _said(b"[1, 2]"),
    "two answers": _said(b'{"decision": "allow"}{"decision": "allow"}'),
    "less than it says": _said(b"{}" * 9)[:-9],
    "a failed program": _said(b"", 1),
    "the end": None,
    "a wrong key": _said(b"{}"),
    "a wrong proof": _said(b"{}"),
}
"""The answers, each in its turn; None ends the connection in its midst."""


class BadGate:
    """The gate. ``turn``: the number of the answer in `BODIES` that each hook gets now; ``given``: how many got it."""

    def __init__(self, place: HookPlace) -> None:
        self._place = place
        self.turn = 0
        self.given = Counter[int]()

    def begin(self, turn: int) -> None:
        """Take the next answer, as a turn of the model begins."""
        self.turn = turn

    def serve(self, listening: socket.socket) -> None:
        """Answer until the socket is shut."""
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            with client, suppress(OSError, EOFError):
                self.given[self.turn] += 1
                _answer(client, self._place, [*BODIES][self.turn])


@contextmanager
def serving_badly(place: HookPlace) -> Generator[BadGate]:
    """Serve the socket; the caller tells the gate when a turn of the model begins."""
    place.folder.mkdir(mode=0o700, exist_ok=True)
    gate = BadGate(place)
    with socket.socket(socket.AF_UNIX) as listening:
        place.socket.unlink(missing_ok=True)
        folder = open_folder(str(place.folder))
        listening.bind(address(folder, str(place.folder), place.socket.name))
        os.close(folder)
        place.socket.chmod(0o600)
        listening.listen(256)
        work = threading.Thread(target=gate.serve, args=(listening,))
        work.start()
        try:
            yield gate
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            work.join()


def _answer(client: socket.socket, place: HookPlace, name: str) -> None:
    key = Path(place.key).read_bytes() if name != "a wrong key" else os.urandom(32)
    ours = secrets.token_bytes(NONCE_BYTES)
    bound = place.name.encode() + _read(client, len(HELLO) + NONCE_BYTES)[len(HELLO) :] + ours
    client.sendall(ours + mac(key, b"gate", bound))
    size = int.from_bytes(_read(client, 4), "big")
    _read(client, 2 * MAC_BYTES + size)
    body = BODIES[name]
    size = 100 if body is None else len(body)
    whole = size.to_bytes(4, "big") + mac(key, b"reply", bound, body or b"") + (body or b"")
    client.sendall(whole if name != "a wrong proof" else whole[:4] + bytes(MAC_BYTES) + whole[4 + MAC_BYTES :])


def _read(client: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = client.recv(size - len(found))
        if not piece:
            raise EOFError
        found += piece
    return found
