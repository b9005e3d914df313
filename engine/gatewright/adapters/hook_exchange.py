"""The client of the resident gate, which `hook_client` starts alone, and the words that it exchanges with the gate.

It imports nothing but modules in C, since every call of the agent waits for its start. It passes the host's message to
the gate over a Unix socket, where both prove the key, and prints the answer; without a gate it starts one. Whatever
goes wrong is a denial in the host's form, after half of the host's time at the latest. As `confined ID -- COMMAND` it
has the gate run an allowed command on its own standard streams, passes signals on, and ends as the command does.
It has more than 450 lines because it can take nothing from another module.
"""

import _socket
import posix
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence
    from typing import NoReturn
else:
    import _signal as signal

HELLO = b"GWH1"
NONCE_BYTES = MAC_BYTES = 32
MOST_BYTES = 8 << 20
"""The most bytes of a message."""
LOCK, SOCKET, START, LOG = ".lock", ".sock", ".start", ".log"
DENIED_EXIT = 2
_NOT_STARTED_EXIT = 126
_STEP_S = 0.005
_MOST_LOG = 400
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_FOLDER = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC
_FILE = posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC
GIVEN = ("LANG", "LC_ALL", "LC_CTYPE", "TERM", "COLORTERM", "COLUMNS", "LINES", "TZ", "NO_COLOR", "FORCE_COLOR", "CI")
"""The variables that a confined command gets from the host."""
_KEPT = ("HOME", "PATH", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME")
_SHA256 = next(
    one for one in ("_sha2", "_sha256", "hashlib") if one in sys.builtin_module_names or one in sys.stdlib_module_names
)
_JSON = "_json"
_KEPT_BEGINS = ("GATEWRIGHT_", "OTEL_")
_BLOCK_BYTES = 64
_INNER, _OUTER = (int.from_bytes(bytes((one,)) * _BLOCK_BYTES, "big") for one in (0x36, 0x5C))
_FALLBACKS = {
    "copilot": (0, '{"permissionDecision":"deny","permissionDecisionReason":%s}'),
    "cursor": (0, '{"permission":"deny","user_message":%s,"agent_message":%s}'),
}
"""The denial for hosts that do not take exit code 2 for one: exit code, and text with a place for the reason."""


end = posix._exit  # pyright: ignore


class Refused(Exception):
    """The reason why nothing may run."""


class _Again(Exception):
    """Nobody serves there at the moment."""

    def __str__(self) -> str:
        return "no gate serves the policy"


def main(words: list[str]) -> int:
    """Ask the gate, print the answer in the host's form, and return the exit code; never raises."""
    host = words[0] if words else ""
    try:
        if host == "confined":
            return _confined(words[1:])
        options, _ = _options(words[1:])
        deadline_s = time.monotonic() + float(options["timeout"]) / 2
        signal.signal(signal.SIGALRM, _late)
        signal.setitimer(signal.ITIMER_REAL, max(0.001, deadline_s - time.monotonic()))
        if host == "end":  # no file has a hook of this policy any more
            Gate(options, deadline_s).connect().ask(b"end")
            return 0
        message = _all_of(0)
        if "report" in options:  # the end of a call, which only a gate that serves already waits for
            return _report(host, options, message)
        connection = Gate(options, deadline_s).reach()
        left_ms = max(0, int((deadline_s - time.monotonic()) * 1000))
        answer = connection.ask(b"event", host, options["agent"], str(left_ms), message)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if answer[:1] == b"R":
            return _pass_answer(answer)
        raise Refused(answer[1:].decode("utf-8", "replace") if answer[:1] == b"F" else "the gate gave no answer")
    except BaseException as error:  # noqa: BLE001 a hook that fails lets the call pass in most hosts
        return _deny(host, error)


def _pass_answer(answer: bytes) -> int:
    """Print the gate's answer for the host, and return its exit code. Raises Refused for one that no host can read."""
    code, size = answer[1], int.from_bytes(answer[2:6], "big")
    said, more = answer[6 : 6 + size], answer[6 + size :]
    if code not in {0, DENIED_EXIT} or len(said) != size or (said and not _is_object(said.decode())):
        raise Refused("its answer cannot be read")  # most hosts would run the call
    _write(1, said)
    _write(2, more)
    return code


class _Plain:
    """The options of a reader of JSON, as the module in C asks for them."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def _is_object(text: str) -> bool:
    """Tell whether it is a JSON object and nothing else."""
    value, end_at = __import__(_JSON).make_scanner(_Plain)(text, 0)
    return isinstance(value, dict) and end_at == len(text)


def _report(host: str, options: dict[str, str], message: bytes) -> int:
    try:  # noqa: SIM105 contextlib takes too long to load
        Gate(options, 0.0).connect().ask(b"event", host, options["agent"], "0", message)
    except (_Again, OSError, Refused):
        pass
    return 0


def _deny(host: str, error: BaseException) -> int:
    signal.setitimer(signal.ITIMER_REAL, 0)
    reason = str(error) if isinstance(error, Refused | _Again) else f"{type(error).__name__}: {error}"
    if host == "confined":
        _write(2, f"gatewright: not run: {reason}\n".encode("utf-8", "replace"))
        return _NOT_STARTED_EXIT
    reason = f"gatewright: not allowed, because the gate gave no answer: {reason}"
    code, form = _FALLBACKS.get(host, (DENIED_EXIT, ""))
    if form:
        _write(1, form.replace("%s", _json(reason)).encode())
    _write(2, f"{reason}\n".encode("utf-8", "replace"))
    return code


def _json(text: str) -> str:
    """Write a text as JSON, without the module that takes longer to load than everything here."""
    plain = (one if " " <= one <= "~" and one not in '"\\' else f"\\u{min(ord(one), 0xFFFD):04x}" for one in text)
    return f'"{"".join(plain)}"'


def _late(*_: object) -> "NoReturn":
    raise Refused("it took longer than half of the time that the host gives a hook")


def _options(words: "Sequence[str]") -> tuple[dict[str, str], list[str]]:
    """Read `--name value` and plain words, until `--`; `--report` has no value."""
    options: dict[str, str] = {}
    rest = iter(words)
    plain: list[str] = []
    for word in rest:
        if word == "--":
            return options, [*plain, *rest]
        if word == "--report":
            options["report"] = ""
        elif word[:2] == "--":
            options[word[2:]] = next(rest, "")
        else:
            plain.append(word)
    return options, plain


def sha256(data: bytes) -> bytes:
    """Return the digest, by a module in C that loads much quicker than `hashlib`."""
    return bytes(__import__(_SHA256).sha256(data).digest())


def mac(key: bytes, *parts: bytes) -> bytes:
    """Return the HMAC-SHA256 of the parts, each with its length."""
    text = b"".join([len(part).to_bytes(8, "big") + part for part in parts])
    block = int.from_bytes(key.ljust(_BLOCK_BYTES, b"\0"), "big")
    inner = sha256((block ^ _INNER).to_bytes(_BLOCK_BYTES, "big") + text)
    return sha256((block ^ _OUTER).to_bytes(_BLOCK_BYTES, "big") + inner)


def place_name(policy: str) -> str:
    """Return the name of a policy's socket, from its real path."""
    return sha256(policy.encode("utf-8", "surrogateescape")).hex()[:24]


def lock_name(place: str) -> str:
    """Return the name of the lock beside the keys that the gate of a place holds; it names the folder of the socket."""
    return f"hooks-{place}{LOCK}"


def run_folder(keys: str) -> str:
    """Return the folder for sockets: the user's run-time folder, else one beside the keys.

    The variable of a host may be missing or strange, so the usual place counts too.
    """
    user = posix.getuid()
    given = posix.environ.get(b"XDG_RUNTIME_DIR", b"").decode("utf-8", "surrogateescape")
    for folder in (given, f"/run/user/{user}"):
        if folder[:1] == "/":
            try:
                facts = posix.stat(folder)
            except OSError:
                continue
            if facts.st_uid == user and facts.st_mode & 0o170077 == 0o040000:
                return f"{folder}/gatewright"
    return f"{keys}/run"


def open_folder(path: str) -> int:
    """Open our folder of sockets. Raises OSError, Refused for one that others may change."""
    number = posix.open(path, _FOLDER)
    facts = posix.fstat(number)
    if facts.st_uid != posix.getuid() or facts.st_mode & 0o077:
        posix.close(number)
        raise Refused(f"`{path}` is not a folder of yours alone")
    return number


def address(folder: int, path: str, name: str) -> str:
    """Return an address of any length for a name in an open folder."""
    near = f"/proc/self/fd/{folder}"
    return f"{near}/{name}" if posix.access(near, posix.F_OK) else f"{path}/{name}"


def peer(sock: _socket.socket) -> tuple[int, int]:
    """Return the process and the user of the other end."""
    facts = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(facts[:4], sys.byteorder), int.from_bytes(facts[4:8], sys.byteorder)


class Gate:
    """The gate of a policy, seen from outside."""

    def __init__(self, options: dict[str, str], deadline_s: float) -> None:
        self._options, self._deadline_s = options, deadline_s
        self._key_file = options["key"]
        self._policy = _real(options["policy"])
        self.place = place_name(self._policy)
        self._keys = self._key_file.rpartition("/")[0]
        self._folder = run_folder(self._keys)

    def reach(self) -> "Connection":
        """Connect, and start the gate if nobody serves. Raises Refused, OSError."""
        lock, life = -1, -1
        while True:
            try:
                return self.connect()
            except _Again:
                if time.monotonic() >= self._deadline_s:
                    raise Refused(f"no gate serves the policy{self._log()}") from None
            if lock < 0 and (lock := self._lock()) >= 0:
                continue  # who had the lock before may have started one
            if lock >= 0 and life < 0:
                life = self._start()
            elif life >= 0 and _has_ended(life):
                raise Refused(f"the gate ended at its start{self._log()}")
            time.sleep(_STEP_S)

    def connect(self) -> "Connection":
        """Connect to the gate and exchange proofs. Raises _Again if nobody serves, Refused, OSError."""
        try:
            path, key = self._served() or self._folder, self._key()
            folder = open_folder(path)
        except FileNotFoundError:
            raise _Again from None
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            sock.connect(address(folder, path, self.place + SOCKET))
        except (FileNotFoundError, ConnectionRefusedError):
            raise _Again from None
        finally:
            posix.close(folder)
        if peer(sock)[1] != posix.getuid():
            raise Refused("another user serves the socket of the gate")
        return Connection(sock, key, self.place)

    def _served(self) -> str:
        """Return the folder of the present gate's socket, which another environment may have given it."""
        number = posix.open(f"{self._keys}/{lock_name(self.place)}", _FILE)
        try:
            return posix.read(number, 4096).decode("utf-8", "surrogateescape")
        finally:
            posix.close(number)

    def _key(self) -> bytes:
        number = posix.open(self._key_file, _FILE)
        try:
            facts = posix.fstat(number)
            if facts.st_uid != posix.getuid() or facts.st_mode & 0o170077 != 0o100000 or facts.st_nlink != 1:
                raise Refused(f"the key `{self._key_file}` is not a file of yours alone")
            key = posix.read(number, NONCE_BYTES + 1)
        finally:
            posix.close(number)
        if len(key) != NONCE_BYTES:
            raise Refused(f"the key `{self._key_file}` is damaged")
        return key

    def _lock(self) -> int:
        """Lock the start of this gate for this process; -1 while another one has it."""
        import fcntl

        made = self._folder.rpartition("/")[0]
        for folder in (made, self._folder):
            if not posix.access(folder, posix.F_OK):
                _make_folder(folder)
        posix.close(open_folder(self._folder))
        flags = posix.O_RDWR | posix.O_CREAT | posix.O_NOFOLLOW | posix.O_CLOEXEC
        number = posix.open(f"{self._folder}/{self.place}{START}", flags, 0o600)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            posix.close(number)
            return -1
        return number

    def _start(self) -> int:
        """Start the gate as a process that outlives this one; return a pipe that ends with the gate."""
        ours, theirs = posix.pipe()
        posix.set_blocking(ours, False)
        child = posix.fork()
        if child:
            posix.close(theirs)
            posix.waitpid(child, 0)
            return ours
        try:
            posix.setsid()
            if posix.fork():
                end(0)
            self._become_gate(theirs)
        finally:
            end(127)

    def _become_gate(self, life: int) -> None:
        posix.chdir("/")
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_NOFOLLOW
        log = posix.open(f"{self._folder}/{self.place}{LOG}", flags, 0o600)
        null = posix.open("/dev/null", posix.O_RDWR)
        for number, source in enumerate((null, log, log, life)):
            kept = source if source > 3 else posix.dup(source)
            posix.dup2(kept, number)
        posix.closerange(4, 1 << 16)
        for number in _PASSED_ON:
            signal.signal(number, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 0)
        environment = {
            name: value
            for name, value in posix.environ.items()
            if (text := name.decode("ascii", "replace")) in _KEPT or text.startswith(_KEPT_BEGINS)
        }
        environment[b"GATEWRIGHT_KEYS"] = self._keys.encode("utf-8", "surrogateescape")
        words = [sys.executable, "-I", "-m", "gatewright", "serve", self._policy, "--hooks"]
        if "state" in self._options:
            words += ["--state", self._options["state"]]
        posix.execve(sys.executable, words, environment)

    def _log(self) -> str:
        """Return what the gate said last."""
        try:
            number = posix.open(f"{self._folder}/{self.place}{LOG}", _FILE)
            said = posix.read(number, 1 << 16).decode("utf-8", "replace").strip()[-_MOST_LOG:]
        except OSError:
            return ""
        return f": {said}" if said else ""


class Connection:
    """A connection to the gate, which has proved the key. Raises _Again if it ended meanwhile, Refused."""

    def __init__(self, sock: _socket.socket, key: bytes, place: str) -> None:
        self._sock, self._key = sock, key
        ours = posix.urandom(NONCE_BYTES)
        try:
            sock.send(HELLO + ours)
            answer = self.read(NONCE_BYTES + MAC_BYTES)
        except (ConnectionError, EOFError):
            raise _Again from None
        self._bound = place.encode() + ours + answer[:NONCE_BYTES]
        if not _is_same(answer[NONCE_BYTES:], mac(key, b"gate", self._bound)):
            raise Refused("whoever serves the socket of the gate does not have its key")

    def ask(self, kind: bytes, *parts: str | bytes, descriptors: "Sequence[int]" = ()) -> bytes:
        """Send a request and return the reply. Raises Refused for one that is not the gate's."""
        given = (one if isinstance(one, bytes) else one.encode("utf-8", "surrogateescape") for one in parts)
        body = b"\0".join((kind, *given))
        if len(body) > MOST_BYTES:
            raise Refused(f"the message has more than {MOST_BYTES:,} bytes")
        size = len(body).to_bytes(4, "big")
        head = size + mac(self._key, b"size", self._bound, size) + mac(self._key, b"ask", self._bound, body)
        if descriptors:
            numbers = b"".join(one.to_bytes(4, sys.byteorder) for one in descriptors)
            sent = self._sock.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])
            head = head[sent:]
        self._sock.sendall(head + body)
        __import__(_JSON)  # for the answer; it loads while the gate decides
        return self.reply()

    def reply(self) -> bytes:
        """Return the next reply."""
        try:
            head = self.read(4 + MAC_BYTES)
            size = int.from_bytes(head[:4], "big")
            if size > MOST_BYTES:
                raise Refused("the gate gave too long an answer")
            body = self.read(size)
        except (ConnectionError, EOFError):
            raise Refused("the gate ended before it answered") from None
        if not _is_same(head[4:], mac(self._key, b"reply", self._bound, body)):
            raise Refused("the answer is not the gate's")
        return body

    def close(self) -> None:
        """Close the connection."""
        self._sock.close()

    def pass_on(self, number: int, *_: object) -> None:
        """Send a signal to the running command."""
        try:
            self._sock.send(bytes((number,)))
        except OSError:
            return  # the gate has ended, and the command with it

    def read(self, size: int) -> bytes:
        """Return exactly ``size`` bytes. Raises EOFError, OSError."""
        found = b""
        while len(found) < size:
            piece = self._sock.recv(size - len(found))
            if not piece:
                raise EOFError
            found += piece
        return found


def _confined(words: list[str]) -> int:
    """Have the gate run an allowed command on our standard streams, and end as it ends."""
    options, plain = _options(words)
    connection = Gate(options, 0.0).connect()
    for number in _PASSED_ON:
        signal.signal(number, connection.pass_on)
    named = [(name, posix.environ.get(name.encode())) for name in GIVEN]
    given = b"\n".join(name.encode() + b"=" + value for name, value in named if value and b"\n" not in value)
    answer = connection.ask(b"confined", plain[0], posix.getcwd(), given, plain[1], descriptors=(0, 1, 2))
    if answer[:1] != b"X":
        raise Refused(answer[1:].decode("utf-8", "replace"))
    code = int.from_bytes(answer[1:5], "big", signed=True)
    _write(2, answer[5:])
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        posix.kill(posix.getpid(), -code)
    return code if code >= 0 else 128 - code


def _real(path: str) -> str:
    """Return the path without links. Raises OSError for a file that is not there."""
    try:
        number = posix.open(path, posix.O_PATH | posix.O_CLOEXEC)
    except AttributeError:  # not Linux
        from posixpath import realpath

        return realpath(path)
    try:
        return posix.readlink(f"/proc/self/fd/{number}")
    finally:
        posix.close(number)


def _make_folder(path: str) -> None:
    try:
        posix.mkdir(path, 0o700)
    except FileExistsError:
        return  # another client was quicker


def _has_ended(life: int) -> bool:
    try:
        return posix.read(life, 1) == b""
    except BlockingIOError:
        return False


def _is_same(one: bytes, other: bytes) -> bool:
    from _operator import _compare_digest  # pyright: ignore

    return bool(_compare_digest(one, other))  # pyright: ignore


def _all_of(number: int) -> bytes:
    """Read everything. Raises Refused for too much."""
    pieces: list[bytes] = []
    size = 0
    while piece := posix.read(number, 1 << 16):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise Refused(f"the message has more than {MOST_BYTES:,} bytes")
    return b"".join(pieces)


def _write(number: int, data: bytes) -> None:
    while data:
        data = data[posix.write(number, data) :]
