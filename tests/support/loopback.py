"""A web server of this process on loopback, for as long as a test needs it."""

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """Takes what is asked, by either method, answers in one go, and writes no line about it."""

    def take(self, body: bytes) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        self.take(b"")

    def do_POST(self) -> None:
        self.take(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(ConnectionError):  # who asked may have heard enough
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 named so by the library
        pass


class _Files(SimpleHTTPRequestHandler):
    """Shows the files of a folder."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 named so by the library
        pass


@contextmanager
def served(handler: Callable[..., BaseHTTPRequestHandler], host: str = "127.0.0.1") -> Generator[str]:
    """Serve at the address that is given, without a path."""
    server = ThreadingHTTPServer((host, 0), handler)
    thread = Thread(target=partial(server.serve_forever, poll_interval=0.02))
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def folder_served(folder: Path, host: str = "127.0.0.1") -> AbstractContextManager[str]:
    """Serve what lies in a folder, such as an index of packages."""
    return served(partial(_Files, directory=str(folder)), host)
