"""Unix sockets below folders whose paths are longer than an address of one may be (108 bytes on Linux)."""

import os
import socket
from pathlib import Path


def bind_at(bound: socket.socket, path: Path | str) -> None:
    """Bind a socket of the Unix family to a path of any length, or to an abstract name (text)."""
    if isinstance(path, str):
        bound.bind(path)
        return
    folder = os.open(path.parent, os.O_PATH)
    try:
        bound.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
