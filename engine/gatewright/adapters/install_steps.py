"""The steps of an installation: npm, Python and pip, each with access only to its registries.

With a `Confiner` a step runs in a room with the target folder, the program, and the settings of the registries. npm and
pip themselves report those settings before that, outside, when nothing of the package has arrived.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import cast
from urllib import request
from urllib.parse import unquote, urlsplit

from gatewright.adapters.bubblewrap import is_seen
from gatewright.adapters.confine import PROXY_PORT, Confiner
from gatewright.adapters.mcp_transport import NotConfined, ServerFailed
from gatewright.adapters.package_runner import Package, Registry
from gatewright.adapters.server_process import Command, ServerProcess
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.printable import printable
from gatewright.gate.record import Connection
from gatewright.policy.target import Confinement, ProcessBounds
from gatewright.policy.verdict import check_host_pattern, covers
from gatewright.sources.roomview import Mount, MountKind

INSTALL_S = 900.0
SCRATCH = ".scratch"
"""Temporary folder inside the target, removed at the end."""
_MOST_BYTES = 64 * 1024 * 1024
_BOUNDS = ProcessBounds(processes=4096, files=65536)
_PROXY = f"http://127.0.0.1:{PROXY_PORT}"
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_ADDRESS = re.compile(r"\b\w+://\S+")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_INDEXES = """\
import json, sys
sys.path.insert(0, sys.argv[1])
from pip._internal.models.index import PyPI, TestPyPI
print(json.dumps([PyPI.simple_url, {one.netloc: one.file_storage_domain for one in (PyPI, TestPyPI)}]))
"""
"""A script that prints what pip itself knows of indexes: the usual one, and the hosts with an index's files."""
_NPM_LINE = re.compile(r"^(npm_execpath|npm_node_execpath)=(/.+)$", re.MULTILINE)
_PIP_LINE = re.compile(r"^(global|install|:env:)\.([\w-]+)=(['\"].*['\"])$", re.MULTILINE)
_SECTIONS = ("global", "install", ":env:")
"""The parts of pip's settings that matter for an installation; a later one overrides an earlier one."""
_OF_THIS_MACHINE = frozenset(
    (
        *("cache-dir", "config-file", "local-log", "log", "log-file", "prefix", "proxy", "python", "quiet", "report"),
        *("require-virtualenv", "root", "src", "target", "verbose"),
    )
)
"""Settings of pip about its target and its run, which ours replace."""
_PATHS_OF_PIP = frozenset({"cert", "client-cert", "constraint", "find-links", "index-url", "extra-index-url"})
_OF_REGISTRIES = re.compile(r"(npm_config|pip|uv)_|\w+_proxy$|HOME$", re.IGNORECASE)
_LISTING = ("config", "ls", "-l", "--json")
_PROXIES_OF_NPM = (("http", "proxy"), ("https", "https-proxy"))
_WHERE = "import json, sys; print(json.dumps([getattr(sys, '_base_executable', sys.executable), sys.base_prefix]))"
_MISSING = ("E404", "ETARGET", "No matching distribution", "Could not find a version")
_AWAY = re.compile(
    r"ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|EAI_FAIL|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|NewConnectionError"
    r"|NameResolutionError|ConnectTimeout|Connection refused|ENOTCACHED|ERR_SOCKET_TIMEOUT|ProxyError"
)


@frozen
class Way:
    """A program and its needs: the words that start it, and everything that it gets in a room.

    A room gets the ``folders`` of the program, and may read the ``files`` with settings of registries.
    """

    program: tuple[str, ...]
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str], hash=False, repr=False)


class StepFailed(ServerFailed):
    """A failed step of npm or pip; ``said``: its whole output, which may hold an address."""

    said = ""


class Steps:
    """The steps that install one package into ``folder``; without ``confiner`` they run with our own rights."""

    def __init__(
        self, package: Package, folder: Path, environment: Mapping[str, str], confiner: Confiner | None
    ) -> None:
        self._package, self._folder, self._environment, self._confiner = package, folder, environment, confiner
        self._scratch = folder / SCRATCH

    async def npm(self, npm: str) -> Way:
        """Return the way to run npm with its registries. Raises ServerFailed."""
        if self._confiner is None:
            return Way((npm,))
        lines, said = await self._ask(npm, "run", "env", "--silent"), await self._ask(npm, *_LISTING)
        where = dict(cast("list[tuple[str, str]]", _NPM_LINE.findall(lines.decode("utf-8", "replace"))))
        settings = cast("dict[str, object]", json.loads(said))
        if len(where) < 2:
            raise self._no("npm does not say where it is")
        node, script = (os.path.realpath(where[name]) for name in ("npm_node_execpath", "npm_execpath"))
        scoped = (value for name, value in settings.items() if name.startswith("@") and name.endswith(":registry"))
        addresses = [str(value) for value in (settings.get("registry"), *scoped) if value]
        proxies = {scheme: str(settings.get(name) or "") for scheme, name in _PROXIES_OF_NPM}
        self._require_direct(addresses, proxies, settings.get("noproxy"))
        paths = [(name, str(settings.get(name) or "")) for name in ("userconfig", "globalconfig", "cafile")]
        own = {f"npm_config_{name}": value for name, value in paths if value}
        own |= {"npm_config_cache": str(self._scratch / "npm"), "npm_config_logs_max": "0"}
        own |= {"npm_config_proxy": _PROXY, "npm_config_https_proxy": _PROXY}
        kept = {
            name: value
            for name, value in self._environment.items()
            if name.lower().startswith("npm_config_") and name.lower() not in own
        }
        search = f"{Path(node).parent}:{self._environment.get('PATH', '')}"
        return Way(
            (node, script, "--noproxy="),
            (*outside(node, self._folder), *_unseen([str(Path(script).parents[1])])),
            self._readable([*self._certificates(), *(value for _, value in paths)]),
            tuple(_hosts(addresses)),
            {**self._base(), **kept, **own, "PATH": search},
        )

    async def python(self, python: str) -> Way:
        """Return the way to run a Python without network. Raises ServerFailed."""
        if self._confiner is None:
            return Way((python,))
        program, prefix = map(str, json.loads(await self._ask(python, "-I", "-c", _WHERE)))
        folders = (*outside(program, self._folder), *_unseen([os.path.realpath(prefix)]))
        return Way((program,), folders, environment=self._base())

    async def pip(self, python: Way, own: str, pip: str) -> Way:
        """Return the way to run the unpacked package ``pip`` for a fresh virtual environment of ``python``.

        ``own``: the environment's interpreter. Raises ServerFailed.
        """
        words = (own, pip)
        if self._confiner is None:
            return Way(words)
        settings = _settings_of_pip((await self._ask(*words, "config", "list")).decode("utf-8", "replace"))
        usual, files_of = cast(
            "tuple[str, dict[str, str]]", json.loads(await self._ask(own, "-I", "-c", _INDEXES, str(Path(pip).parent)))
        )
        index = settings.get("index-url", usual)
        is_none = settings.get("no-index", "").casefold() in {"1", "true", "yes", "on", "y", "t"}
        said = f"{settings.get('find-links', '')} " + (
            "" if is_none else f"{index} {settings.get('extra-index-url', '')}"
        )
        addresses = [word for word in said.split() if urlsplit(word).scheme in _DEFAULT_PORTS]
        addresses += [f"https://{files_of[name]}" for name in map(_host, addresses) if name in files_of]
        self._require_direct(addresses, dict.fromkeys(_DEFAULT_PORTS, settings.get("proxy", "")), None)
        given = {name: value for name, value in settings.items() if name not in _OF_THIS_MACHINE}
        paths = [word for name in _PATHS_OF_PIP & set(given) for word in (given[name], *given[name].split())]
        paths = [_of_address(path) if path.startswith("file:") else path for path in paths]
        environment = {f"PIP_{name.replace('-', '_').upper()}": value for name, value in given.items()}
        return Way(
            words,
            python.folders,
            self._readable(
                [*self._certificates(), *(unquote(urlsplit(path).path) if "://" in path else path for path in paths)]
            ),
            tuple(_hosts(addresses)),
            {**self._base(), **environment, "PIP_CONFIG_FILE": os.devnull, "PIP_PROXY": _PROXY},
        )

    async def run(self, way: Way, *words: str) -> bytes:
        """Run a step and return its output. Raises ServerFailed if it fails."""
        if self._confiner is None:
            return await self._ask(*way.program, *words)
        held = Confinement(
            programs=way.folders,
            hosts=way.hosts,
            allow_private=True,  # the user set them
            bounds=_BOUNDS,
            folder=str(self._folder),
            subject=f"installation of {self._package.name}",
        )
        reads = (Mount(MountKind.READ, path, origin=os.path.realpath(path)) for path in way.files)
        (self._scratch / "tmp").mkdir(parents=True, exist_ok=True)
        # a room's own variables would exclude the registries of this machine
        ours = ("/usr/bin/env", "no_proxy=", "NO_PROXY=", f"TMPDIR={self._scratch / 'tmp'}")
        command = Command(ours[0], (*ours[1:], *way.program, *words), way.environment, self._folder)
        try:
            room = await self._confiner.room(held, (*reads, Mount(MountKind.WRITE, str(self._folder))))
            try:
                stderr = bytearray()
                return await self._output(room.process(command, stderr), stderr, lambda: room.missed)
            finally:
                await room.close()
        except ToolFailure as error:
            raise NotConfined(str(error), error.detail) from None

    async def _ask(self, *words: str) -> bytes:
        """Run a program with our own rights, and return its output."""
        stderr = bytearray()
        return await self._output(
            ServerProcess(Command(words[0], words[1:], self._environment, self._folder), stderr), stderr
        )

    async def _output(
        self,
        starting: ServerProcess,
        stderr: bytearray,
        missed: Callable[[], Sequence[Connection]] = tuple,
    ) -> bytes:
        output = bytearray()
        try:
            async with asyncio.timeout(INSTALL_S), starting as process:
                process.end_input()
                async for chunk in process.chunks():
                    output += chunk[: _MOST_BYTES - len(output)]
                await process.has_ended.wait()
                code = process.returncode
        except TimeoutError:
            raise ServerFailed(
                f"`{printable(self._package.requirement)}` was not installed within {INSTALL_S / 60:g} minutes",
                "look whether the registry can be reached, then start it again",
            ) from None
        if code != 0:
            said = (bytes(stderr) + bytes(output)).decode("utf-8", "replace")
            failed = _failure(self._package, said, missed())
            failed.said = said
            raise failed
        return bytes(output)

    def _base(self) -> dict[str, str]:
        """Return the variables of every step, except those of npm and pip."""
        return {name: value for name, value in self._environment.items() if not _OF_REGISTRIES.match(name)}

    def _certificates(self) -> Iterator[str]:
        return (self._environment[name] for name in _CERTIFICATES if name in self._environment)

    def _readable(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the existing paths that no room has, except those that contain a home or the target folder."""
        found = (os.path.normpath(path) for path in paths if path.startswith("/") and Path(path).exists())
        held = (self._environment.get("HOME", "/"), str(self._folder))
        return _unseen([path for path in found if not any(covers(path, one) for one in held)])

    def _require_direct(self, addresses: Iterable[str], own: Mapping[str, str], leave_out: object) -> None:
        """Raise ServerFailed for a registry behind a proxy."""
        set_here = {name.lower(): value for name, value in self._environment.items() if value}
        without = ",".join(map(str, cast("list[object]", leave_out))) if isinstance(leave_out, list) else leave_out
        for address in addresses:
            parts = urlsplit(address)
            proxy = own.get(parts.scheme) or set_here.get(f"{parts.scheme}_proxy") or set_here.get("all_proxy")
            rules = {"no": str(without or set_here.get("no_proxy", ""))}
            is_direct = request.proxy_bypass_environment(parts.netloc.rpartition("@")[2], rules)  # pyright: ignore
            if proxy and not is_direct:
                raise ServerFailed(
                    f"`{printable(self._package.requirement)}` cannot be installed: its registry is reached through a"
                    " proxy here, which does not work for what is confined",
                    f"name `{parts.hostname}` in `no_proxy` where it can be reached without, else install the server"
                    " yourself and write the command of its program",
                )

    def _no(self, why: str) -> ServerFailed:
        return ServerFailed(f"`{printable(self._package.requirement)}` cannot be installed: {why}")


def outside(command: str, folder: Path) -> tuple[str, ...]:
    """Return the folders outside the system in which a program's parts lie; never a home, or a folder above one."""
    found = Path(command).resolve()
    if found.is_relative_to("/usr") or found.is_relative_to(folder):
        return ()
    whole = str(found.parents[1] if found.parent.name == "bin" else found.parent)
    return (str(found) if covers(whole, os.path.realpath(Path.home())) else whole,)


def _unseen(paths: Iterable[str]) -> tuple[str, ...]:
    """Drop the paths that every room has, a home, and anything above a home."""
    home = os.path.realpath(Path.home())
    return tuple(dict.fromkeys(path for path in paths if not is_seen(path) and not covers(path, home)))


def _hosts(addresses: Iterable[str]) -> Iterator[str]:
    """Yield the hosts of registries, with their ports."""
    for address in addresses:
        parts = urlsplit(address)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
        name = _host(address)
        host = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
        if name and check_host_pattern(host) is None and "*" not in host:
            yield host


def _host(address: str) -> str:
    return urlsplit(address).hostname or ""


def _settings_of_pip(said: str) -> dict[str, str]:
    """Read pip's settings for an installation, from its files and variables, with full paths."""
    rows = [(section, name, str(ast.literal_eval(value))) for section, name, value in _PIP_LINE.findall(said)]
    rows.sort(key=lambda row: _SECTIONS.index(row[0]))
    found = {name: value for _, name, value in rows}
    for name in _PATHS_OF_PIP & set(found):
        whole = _expand(found[name])
        found[name] = whole if Path(whole).exists() else " ".join(map(_expand, found[name].split()))
    return found


def _of_address(address: str) -> str:
    """Return the folder of a local index; a mirror keeps its files beside the folder ``simple``."""
    path = unquote(urlsplit(address).path).rstrip("/")
    return path.removesuffix("/simple")


def _expand(path: str) -> str:
    return str(Path(path).expanduser()) if path.startswith("~/") else path


def _failure(package: Package, said: str, missed: Sequence[Connection]) -> StepFailed:
    """Sum up the output of npm or pip in a few words, without addresses, which may contain a password."""
    named = printable(package.requirement)
    for one in missed:
        if one.code == "host-not-granted":
            asker = "npm" if package.registry is Registry.NPM else "pip"
            return StepFailed(
                f"`{named}` cannot be installed: `{printable(one.host)}:{one.port}`, which it asked for, is none of the"
                f" registries that {asker} is set for",
                "name the registry that has it there, or install the server yourself and write its command",
            )
    if missed or _AWAY.search(said):
        return StepFailed(
            f"`{named}` cannot be installed: the registry of {package.registry} cannot be reached",
            "the installation needs it once; an installed server starts without it",
        )
    if ("from versions: " in said and "from versions: none" not in said) or "ETARGET" in said:
        return StepFailed(f"`{package.name}` has no version `{package.wanted}` that fits", "name one that it has")
    if any(word in said for word in _MISSING):
        hint = ", or it has no wheel and would run its own code to be built" * (package.registry is Registry.PYPI)
        return StepFailed(f"the registry of {package.registry} has no `{named}`{hint}", "look how it is spelled")
    lines = [line for line in map(str.strip, said.splitlines()) if line and "complete log of this run" not in line]
    told = printable(_ADDRESS.sub("(an address)", lines[-1] if lines else ""))[:300]
    return StepFailed(f"`{named}` cannot be installed" + (f": `{told}`" if told else ""))
