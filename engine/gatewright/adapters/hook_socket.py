"""The Unix socket of the resident gate: its place, its one owner, and requests of clients that have proved the key.

The socket lies in a folder of the user alone; systemd may listen there and start the gate. A lock beside the keys makes
its gate the only one of its policy, so a socket in the way that nobody serves is a dead gate's and is replaced, if the
user owns it; anything else there is refused. Client and gate prove the key to each other over two nonces, to which
request and reply are bound; until then a connection may send a hundred bytes, in a few seconds. `hook_exchange` is the
other end and defines the words of both.
"""

from __future__ import annotations

import array
import asyncio
import errno
import hmac
import json
import logging
import os
import secrets
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from gatewright.adapters import hook_exchange
from gatewright.adapters.hook_exchange import HELLO, MAC_BYTES, MOST_BYTES, NONCE_BYTES, mac
from gatewright.base.errors import WorkspaceError
from gatewright.base.file import lock, write_atomically
from gatewright.base.frozen import frozen
from gatewright.record.folder import PrivateFolder, have_key

KEY_FILE = "hooks.key"
CLIENT_FILE = Path(__file__).with_name("hook_client.py")
MOST_CONNECTIONS = 256
MOST_UNPROVED = 96
"""The most connections that have not proved the key; further ones are closed at once."""
PROOF_S = 5.0
_BACKLOG = 1024
_MOST_DESCRIPTORS = 3
_SPACE = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
_FIRST_PASSED = 3
_END_S = 4.0
_SYSTEMD_S = 30.0
_UNIT = "gatewright-hooks"
_FOLDERS = "Folders="
_log = logging.getLogger(__name__)


@frozen
class HookPlace:
    """The place of a policy's socket: ``folder`` and ``name`` without suffix."""

    keys: Path
    folder: Path
    name: str

    @classmethod
    def of(cls, policy: Path, keys: Path) -> HookPlace:
        """Return the place for a policy file."""
        real = os.path.realpath(policy)
        return cls(keys, Path(hook_exchange.run_folder(str(keys))), hook_exchange.place_name(real))

    @property
    def socket(self) -> Path:
        """The socket."""
        return self.folder / (self.name + hook_exchange.SOCKET)

    @property
    def key(self) -> Path:
        """The file of the key that all clients and gates of the user share."""
        return self.keys / KEY_FILE

    def make_key(self) -> bytes:
        """Return the key, made if missing. Raises WorkspaceError."""
        try:
            return have_key(PrivateFolder(self.keys), KEY_FILE)
        except OSError as error:
            raise WorkspaceError(f"the key `{self.key}` cannot be used: {error.strerror}") from None


@asynccontextmanager
async def listen(place: HookPlace) -> AsyncGenerator[tuple[socket.socket, bytes]]:
    """Listen at the place, as its only gate; yields socket and key. Raises WorkspaceError.

    A socket passed by the service manager (LISTEN_FDS) is used as it is.
    """
    key, keys = place.make_key(), PrivateFolder(place.keys)
    try:
        held = keys.open(hook_exchange.lock_name(place.name), os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise WorkspaceError(f"the folder of keys `{place.keys}` cannot be used: {error.strerror}") from None
    try:
        lock(held, 0.0)
        passed = _passed(place)
        listening = passed if passed is not None else _bind(place)
        where = os.fsencode(place.folder if passed is None else Path(passed.getsockname()).parent)
        os.ftruncate(held, 0)
        os.pwrite(held, where, 0)
        try:
            yield listening, key
        finally:
            listening.close()
            if passed is None:
                place.socket.unlink(missing_ok=True)
            os.ftruncate(held, 0)
    except BlockingIOError:
        raise WorkspaceError("another gate answers the hooks of this policy already") from None
    finally:
        os.close(held)


def _passed(place: HookPlace) -> socket.socket | None:
    """Return the socket that the service manager listens at for this process. Raises WorkspaceError for another one."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS") != "1":
        return None
    try:
        found = socket.socket(fileno=_FIRST_PASSED)
    except OSError as error:
        raise WorkspaceError(f"the service manager passed no socket: {error.strerror}") from None
    found.set_inheritable(False)
    if found.family != socket.AF_UNIX or found.type != socket.SOCK_STREAM:
        raise WorkspaceError("the service manager passed no Unix socket")
    name = found.getsockname()
    if not isinstance(name, str) or Path(name).name != place.socket.name:
        raise WorkspaceError(f"the service manager passed another socket than `{place.socket.name}`")
    found.setblocking(False)
    return found


def _bind(place: HookPlace) -> socket.socket:
    path, name = place.socket, place.socket.name
    try:
        place.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = hook_exchange.open_folder(str(place.folder))
    except hook_exchange.Refused as refused:
        raise WorkspaceError(f"{refused}, so no hook is answered there") from None
    except OSError as error:
        why = "it is a link or no folder" if error.errno in {errno.ELOOP, errno.ENOTDIR} else error.strerror
        raise WorkspaceError(f"the folder of sockets `{place.folder}` cannot be used: {why}") from None
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        at = hook_exchange.address(folder, str(place.folder), name)
        try:
            facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            pass
        else:
            if not stat.S_ISSOCK(facts.st_mode) or facts.st_uid != os.getuid():
                raise WorkspaceError(f"`{path}` is not a socket of yours, so no hook is answered there")
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(ConnectionRefusedError):
                probe.setblocking(False)
                probe.connect(at)
                raise WorkspaceError(f"another program serves `{path}`, so no hook is answered there")
            os.unlink(name, dir_fd=folder)
        made.bind(at)
        os.chmod(name, 0o600, dir_fd=folder)
        made.listen(_BACKLOG)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise WorkspaceError(f"no socket can be made at `{path}`: {error.strerror}") from None
    except BaseException:
        made.close()
        raise
    finally:
        os.close(folder)
    return made


class Lost(Exception):
    """The client ended, or does not keep to the protocol."""


class HookRequest:
    """A request of a client that has proved the key. ``kind`` and ``parts`` as the client wrote them."""

    def __init__(self, sock: socket.socket, key: bytes, place: bytes) -> None:
        self._sock, self._key, self._bound = sock, key, place
        self._loop = asyncio.get_running_loop()
        self.descriptors: list[int] = []
        self.kind, self.parts = "", tuple[bytes, ...]()

    async def prove(self) -> None:
        """Exchange proofs, and take the size of the request. Raises Lost."""
        hello = await self._read(len(HELLO) + NONCE_BYTES)
        if not hello.startswith(HELLO):
            raise Lost
        ours = secrets.token_bytes(NONCE_BYTES)
        self._bound += hello[len(HELLO) :] + ours
        await self._send(ours + mac(self._key, b"gate", self._bound))
        head = await self._read(4 + MAC_BYTES)
        size, proof = head[:4], head[4:]
        self._size = int.from_bytes(size, "big")
        if not hmac.compare_digest(proof, mac(self._key, b"size", self._bound, size)) or self._size > MOST_BYTES:
            raise Lost

    async def read(self) -> None:
        """Read the request. Raises Lost."""
        proof, body = await self._read(MAC_BYTES), await self._read(self._size)
        if not hmac.compare_digest(proof, mac(self._key, b"ask", self._bound, body)):
            raise Lost
        kind, _, rest = body.partition(b"\0")
        self.kind, self.parts = kind.decode("ascii", "replace"), tuple(rest.split(b"\0", 3))

    async def answer(self, body: bytes) -> None:
        """Send the reply. Raises Lost."""
        size = len(body).to_bytes(4, "big")
        await self._send(size + mac(self._key, b"reply", self._bound, body) + body)

    def started_by(self) -> tuple[str, ...]:
        """Return the words of the program that started the client; none where the system does not tell them."""
        try:
            facts = _facts(hook_exchange.peer(self._sock)[0], "stat")
            starter = int(facts.rpartition(b")")[2].split()[1])
            return tuple(os.fsdecode(_facts(starter, "cmdline")).split("\0")[:-1])
        except (OSError, ValueError, IndexError):
            return ()

    async def signals(self) -> AsyncGenerator[int]:
        """Yield the signals that the client passes on, until it ends."""
        while piece := await self._receive(1):
            yield piece[0]

    async def gone(self) -> None:
        """Wait for the end of the client."""
        while await self._receive(1):
            pass

    def close(self) -> None:
        """Close the connection and the descriptors that came with it."""
        self._sock.close()
        while self.descriptors:
            os.close(self.descriptors.pop())

    async def _read(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            piece = await self._receive(min(size - len(found), 1 << 16))
            if not piece:
                raise Lost
            found += piece
        return bytes(found)

    async def _receive(self, most: int) -> bytes:
        while True:
            try:
                data, ancillary, flags, _ = self._sock.recvmsg(most, _SPACE, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                await self._readable()
                continue
            except OSError:
                return b""
            for level, kind, content in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    numbers = array.array("i")
                    numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                    self.descriptors += numbers
            if flags & socket.MSG_CTRUNC or len(self.descriptors) > _MOST_DESCRIPTORS:
                raise Lost
            return data

    async def _readable(self) -> None:
        waiting = self._loop.create_future()
        number = self._sock.fileno()  # the socket itself would be spelt out, with two calls of the system
        self._loop.add_reader(number, lambda: waiting.done() or waiting.set_result(None))
        try:
            await waiting
        finally:
            self._loop.remove_reader(number)

    async def _send(self, data: bytes) -> None:
        try:
            await self._loop.sock_sendall(self._sock, data)
        except OSError:
            raise Lost from None


def _facts(process: int, name: str) -> bytes:
    """Return what the system tells of a process, without the objects that `open` makes for it. Raises OSError."""
    number = os.open(f"/proc/{process}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(number, 1 << 16), b""))
    finally:
        os.close(number)


Handle = Callable[[HookRequest], Awaitable[None]]
"""Answers a request; cancelled once its client has ended."""


class HookServer:
    """Takes connections at a socket and hands proved requests to ``handle``; strangers get nothing."""

    def __init__(self, listening: socket.socket, key: bytes, place: HookPlace, handle: Handle) -> None:
        self._listening, self._key, self._place, self._handle = listening, key, place.name.encode(), handle
        self._tasks: set[asyncio.Task[None]] = set()
        self._unproved = 0

    @property
    def is_idle(self) -> bool:
        """True while no client is connected."""
        return not self._tasks

    async def serve(self) -> None:
        """Take connections until cancelled, and then end all of them."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    sock, _ = await loop.sock_accept(self._listening)
                except OSError as error:  # no descriptor is left for a moment
                    _log.warning("a connection could not be taken: %s", error)
                    await asyncio.sleep(0.05)
                    continue
                if len(self._tasks) >= MOST_CONNECTIONS or self._unproved >= MOST_UNPROVED:
                    sock.close()
                    continue
                sock.setblocking(False)
                task = asyncio.create_task(self._take(sock))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def _take(self, sock: socket.socket) -> None:
        request = HookRequest(sock, self._key, self._place)
        try:
            if hook_exchange.peer(sock)[1] != os.getuid():
                return
            self._unproved += 1
            try:
                async with asyncio.timeout(PROOF_S):
                    await request.prove()
            finally:
                self._unproved -= 1
            async with asyncio.timeout(PROOF_S):
                await request.read()
            await self._handle(request)
        except (Lost, TimeoutError, OSError):
            pass
        except Exception:  # noqa: BLE001 nothing that a client sends may end the gate
            _log.exception("a request failed")
        finally:
            request.close()


def end_gate(policy: Path, keys: Path) -> None:
    """Tell the gate of a policy that nobody needs it any more, if it serves: it ends when nobody is connected."""
    told = ("--policy", str(policy), "--key", str(keys / KEY_FILE), "--timeout", str(_END_S))
    with suppress(OSError):
        words = (sys.executable, "-I", "-S", str(CLIENT_FILE), "end", *told)
        subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, check=False)


def can_use_systemd() -> bool:
    """Tell whether systemd answers for this user."""
    return _systemctl("show-environment")


def unit_files(place: HookPlace, units: Path) -> tuple[Path, Path]:
    """Return the socket and the service of a policy among the ``units`` of the user, existing or not."""
    return units / f"{_UNIT}@{place.name}.socket", units / f"{_UNIT}@{place.name}.service"


def write_units(place: HookPlace, policy: Path, units: Path, variables: Mapping[str, str]) -> None:
    """Have systemd listen at the place and start the gate for the first hook. Raises WorkspaceError."""
    if not f"{policy}{units}{place.socket}".isprintable():
        raise WorkspaceError(f"systemd takes no `{policy}`: the path has a line break or the like")
    files = unit_files(place, units)
    folders = _made_for(files[0]) or [str(one) for one in (units, *units.parents) if not one.exists()]
    about = f"[Unit]\nDescription=Gatewright, hooks of coding agents: {_unit_text(str(policy))}\n\n"
    words = ("-I", "-m", "gatewright", "serve", os.path.realpath(policy), "--hooks")
    run = " ".join(_unit_word(one, is_command=True) for one in (sys.executable, *words))
    given = "".join(f"Environment={_unit_word(f'{name}={value}')}\n" for name, value in variables.items())
    listens = f"ListenStream={_unit_text(str(place.socket))}\nSocketMode=0600\nDirectoryMode=0700\n"
    listens += f"Backlog={_BACKLOG}\nRemoveOnStop=yes\n\n[Install]\nWantedBy=sockets.target\n\n"
    listens += f"[X-Gatewright]\n{_FOLDERS}{json.dumps(folders)}\n"
    texts = f"{about}[Socket]\n{listens}", f"{about}[Service]\nExecStart={run}\n{given}"
    try:
        units.mkdir(parents=True, exist_ok=True)
        for file, text in zip(files, texts, strict=True):
            write_atomically(file, text.encode("utf-8", "surrogateescape"), mode=0o644, follow=False)
    except OSError as error:
        raise WorkspaceError(f"`{units}` cannot be written to: {error.strerror or error}") from None
    if not (_systemctl("daemon-reload") and _systemctl("enable", "--now", files[0].name)):
        remove_units(place, units)
        raise WorkspaceError(f"systemd does not take `{files[0].name}`, so it was removed again")


def remove_units(place: HookPlace, units: Path) -> bool:
    """Stop and remove what `write_units` made; False if nothing is there. Raises WorkspaceError."""
    files = unit_files(place, units)
    if not any(map(os.path.lexists, files)):
        return False
    folders = _made_for(files[0])
    _systemctl("disable", "--now", *(file.name for file in files))
    try:
        for file in files:
            file.unlink(missing_ok=True)
    except OSError as error:
        raise WorkspaceError(f"`{units}` cannot be written to: {error.strerror or error}") from None
    _systemctl("daemon-reload")
    for folder in folders:
        with suppress(OSError):  # somebody else uses it by now
            Path(folder).rmdir()
    return True


def _made_for(file: Path) -> list[str]:
    """List the folders that were made for the units, the innermost first."""
    with suppress(OSError, ValueError):
        lines = file.read_text("utf-8", "surrogateescape").splitlines()
        return [str(one) for line in lines if line.startswith(_FOLDERS) for one in json.loads(line[len(_FOLDERS) :])]
    return []


def _systemctl(*words: str) -> bool:
    said = ("systemctl", "--user", *words)
    try:
        done = subprocess.run(said, capture_output=True, stdin=subprocess.DEVNULL, timeout=_SYSTEMD_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _unit_text(text: str) -> str:
    return text.replace("%", "%%")


def _unit_word(word: str, *, is_command: bool = False) -> str:
    """Quote a word for a unit: percent signs, quotes, and in a command dollar signs have a meaning there."""
    text = _unit_text(word).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text.replace("$", "$$") if is_command else text}"'
