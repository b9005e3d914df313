"""Installs MCP servers from packages, each in one version, into a folder of ours, from which they start.

Installing runs no code of a package without permission: no install script of npm, no build of a source distribution.
Each later start verifies the digest of the file that it runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import cast

from gatewright.adapters.confine import Confiner
from gatewright.adapters.install_steps import SCRATCH, StepFailed, Steps, Way, outside
from gatewright.adapters.mcp_transport import NotConfined, ServerFailed
from gatewright.adapters.package_runner import Package, Registry
from gatewright.adapters.server_process import loop_thread
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.late import in_own_thread
from gatewright.base.printable import printable
from gatewright.record.folder import PrivateFolder

FOLDER = "servers"
"""Folder below the state folder."""
_MARK = "installed.json"
_MOST_BYTES = 64 * 1024 * 1024
_ENVIRONMENT = re.compile(
    r"(PATH|HOME|LANG|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS|NODE_USE_SYSTEM_CA"
    r"|(npm_config|pip|uv)_\w+|(http|https|all|no)_proxy)",
    re.IGNORECASE,
)
"""Variables that say where registries are and how to reach them."""
_LAUNCHER = """\
import sys
from {module} import {name}
sys.argv[0] = {program!r}
sys.exit({called}())
"""
_ENTRY = re.compile(r"(?P<module>[A-Za-z_][\w.]*)\s*:\s*(?P<called>(?P<name>[A-Za-z_]\w*)(?:\.\w+)*)")
_MISSING = re.compile(r"No matching distribution found for ([A-Za-z0-9][\w.-]*)", re.ASCII)
_VERSIONS = re.compile(r"\(from versions: ([^)]*)\)")
_WORD = re.compile(r"\d[\w.+!-]*", re.ASCII)
_UNPACK = """\
import ensurepip, pathlib, sys, sysconfig, zipfile
folders = [sysconfig.get_config_var("WHEEL_PKG_DIR"), pathlib.Path(ensurepip.__file__).with_name("_bundled")]
wheels = [wheel for folder in folders if folder for wheel in pathlib.Path(folder).glob("pip-*.whl")]
zipfile.ZipFile(wheels[0]).extractall(sys.argv[1])
"""
"""A script that unpacks Python's own pip, which a server never needs: `venv` would take seconds to install it."""
_SCRIPTS = """\
import json
from importlib.metadata import distribution
print(json.dumps({e.name: e.value for e in distribution(NAME).entry_points if e.group == "console_scripts"}))
"""


_Work = tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""The version, the command's words, the files with their digests, and the packages whose install scripts did not
run.
"""


@frozen
class Installed:
    """An installed package in ``folder``, whose program ``command`` starts.

    ``reads``: further folders that the program reads, besides the system's. ``scripts``: the packages whose install
    scripts did not run. ``is_new``: this call installed it.
    """

    package: Package
    version: str
    folder: str
    command: tuple[str, ...]
    reads: tuple[str, ...]
    scripts: tuple[str, ...] = ()
    is_new: bool = field(default=False, compare=False)

    def at(self, folder: str) -> tuple[str, ...]:
        """Return the command with its paths below another ``folder``."""
        return tuple(
            f"{folder}{word.removeprefix(self.folder)}" if word.startswith(f"{self.folder}/") else word
            for word in self.command
        )


class ScriptsNeeded(ServerFailed):
    """Nothing was installed, since nobody permitted the code of ``packages`` to run."""

    def __init__(self, reason: str, advice: str, packages: tuple[str, ...] = ()) -> None:
        super().__init__(reason, advice)
        self.packages = packages


def scripts_advice(packages: Iterable[str]) -> str:
    """Advise on a failure that omitted install scripts may explain."""
    named = ", ".join(f"`{printable(name)}`" for name in [*packages][:8])
    return (
        f"the install scripts of {named} did not run: it may need them. Start it again in the window to allow them, or"
        " say --install-scripts"
    )


class ServerInstaller:
    """The installer for one workspace, whose state folder is ``state``; any thread and any loop may use it.

    ``environment``: the search path for programs, and the settings of registries.
    """

    def __init__(self, state: Path, environment: Mapping[str, str] | None = None) -> None:
        self._state, self._locks = state, dict[str, asyncio.Lock]()
        given = os.environ if environment is None else environment
        self.environment = {name: value for name, value in given.items() if _ENVIRONMENT.fullmatch(name)}

    async def install(
        self,
        package: Package,
        version: str = "",
        *,
        confiner: Confiner | None = None,
        scripts: bool = False,
        tell: Callable[[str], None] = lambda _: None,
    ) -> Installed:
        """Return the installed package; install it first if needed, and report that to ``tell``. Raises ServerFailed.

        ``version``: the version that this requirement led to before, if it leaves the version open. ``confiner``
        restricts the installing programs to the registries; None lets them run with our own rights. ``scripts`` permits
        install scripts. A cancelled installation leaves nothing behind.
        """
        return await loop_thread().run(self._install(package, package.version or version, confiner, scripts, tell))

    async def _install(
        self, package: Package, version: str, confiner: Confiner | None, scripts: bool, tell: Callable[[str], None]
    ) -> Installed:
        lock = self._locks.setdefault(package.requirement, asyncio.Lock())
        try:
            async with lock:
                found = await in_own_thread(self._find, package, version) if version else None
                if found is not None and not (scripts and found.scripts):
                    return found
                if confiner is not None:
                    await confiner.require()
                wanted = package.at(version) if version else package
                tell(f"installing `{wanted.requirement}`, which is done once")
                installed = await self._new(wanted, confiner, scripts)
                tell(f"installed `{replace(package, wanted='').requirement}` {installed.version}")
                if installed.scripts:
                    left_out = ", ".join(f"`{printable(name)}`" for name in installed.scripts[:8])
                    tell(f"the install scripts of {left_out} did not run: if it fails without, say --install-scripts")
                return replace(installed, package=package, is_new=True)
        except ToolFailure as error:
            raise NotConfined(str(error), error.detail) from None
        except (OSError, ValueError, LookupError) as error:
            said = (error.strerror if isinstance(error, OSError) else None) or error
            raise ServerFailed(f"`{printable(package.requirement)}` cannot be installed: {said}") from None

    def _find(self, package: Package, version: str) -> Installed | None:
        """Find the installation of this version. Raises ServerFailed if its files have changed."""
        folder = self._folder(package.registry).folder(_slug(package, version))
        try:
            mark = json.loads(folder.read(_MARK, _MOST_BYTES))
            words, scripts = (tuple(map(str, mark[key])) for key in ("command", "scripts"))
            digests = {str(name): str(digest) for name, digest in mark["digests"].items()}
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _damage(package, folder.path) from None
        if any(_digest(folder.path / name) != digest for name, digest in digests.items()):
            raise _damage(package, folder.path)
        is_node = words[0] == "node"
        first = os.path.realpath(self._program("node", _NODE)) if is_node else str(folder.path / words[0])
        command = (first, *(str(folder.path / word) for word in words[1:]))
        return Installed(package, version, str(folder.path), command, outside(first, folder.path), scripts)

    async def _new(self, package: Package, confiner: Confiner | None, scripts: bool) -> Installed:
        """Install a package in a folder beside its place, then move the folder there."""
        above = self._folder(package.registry)
        above.make()
        made = Path(os.path.realpath(above.path)) / f".new-{secrets.token_hex(8)}"
        made.mkdir(mode=0o700)
        try:
            work = self._from_npm if package.registry is Registry.NPM else self._from_pypi
            steps = Steps(package, made, self.environment, confiner)
            version, command, kept, left_out = await work(package, made, steps, scripts)
            await in_own_thread(shutil.rmtree, made / SCRATCH, ignore_errors=True)
            digests = {name: _digest(made / name) for name in kept}
            mark = {"package": package.requirement, "command": command, "scripts": left_out, "digests": digests}
            (made / _MARK).write_text(json.dumps(mark, indent=1))
            (made / _MARK).chmod(0o600)
            target = above.path / _slug(package, version)
            await in_own_thread(_move, made, target, anew=scripts)
            found = self._find(package, version)
            if found is None:
                raise _damage(package, target)
            return found
        finally:
            await in_own_thread(_remove, made)

    async def _from_npm(self, package: Package, folder: Path, steps: Steps, scripts: bool) -> _Work:
        npm, _ = self._program("npm", _NODE), self._program("node", _NODE)
        (folder / "package.json").write_text('{ "private": true }\n')
        wanted = f"{package.name}@{package.wanted}" if package.wanted else package.name
        quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error", "--fetch-retries=1")
        always = ("--save-exact", "--package-lock", "--omit-lockfile-registry-resolved", "--global=false")
        without = "--ignore-scripts" + ("=false" if scripts else "")
        await steps.run(await steps.npm(npm), "install", without, *quiet, *always, "--", wanted)
        base = folder / "node_modules" / package.name
        about = _object(base / "package.json")
        programs = about.get("bin", {})
        if isinstance(programs, str):
            programs = {package.name.rpartition("/")[2]: programs}
        files = {str(name): str(file) for name, file in cast("dict[object, object]", programs).items()}
        program, file = _program_of(package, files)
        start = (base / file).resolve()
        if not start.is_relative_to(folder.resolve()) or not start.is_file():
            raise ServerFailed(f"`{printable(package.requirement)}` has no file for its program `{printable(program)}`")
        with start.open("rb") as stream:
            is_script = b"node" in stream.readline(200) or start.suffix in {".js", ".mjs", ".cjs"}
        if not is_script:
            start.chmod(0o755)
        rows = cast("dict[str, dict[str, object]]", _object(folder / "package-lock.json")["packages"])
        wants = [
            name.rpartition("node_modules/")[2]
            for name, row in rows.items()
            if row.get("hasInstallScript") and not scripts
        ]
        name = str(start.relative_to(folder.resolve()))
        command = ("node", name) if is_script else (name,)
        version = str(rows[f"node_modules/{package.name}"]["version"])
        return version, command, (name, "package-lock.json"), tuple(wants)

    async def _from_pypi(self, package: Package, folder: Path, steps: Steps, scripts: bool) -> _Work:
        python = await steps.python(self._python(package))
        venv, report = folder / "venv", folder / "report.json"
        own, tool = str(venv / "bin" / "python"), folder / SCRATCH / "pip"
        try:
            await steps.run(python, "-m", "venv", "--without-pip", str(venv))
            await steps.run(python, "-I", "-c", _UNPACK, str(tool))
        except StepFailed as failed:
            raise ServerFailed(failed.reason, _PYTHON) from None
        binary = () if scripts else ("--only-binary", ":all:")
        quiet = ("--quiet", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--retries", "2")
        wanted = f"{package.name}{package.wanted}"
        pip, what = await steps.pip(python, own, str(tool / "pip")), (wanted, *package.extras)
        try:
            await steps.run(pip, "install", *quiet, *binary, "--report", str(report), *what)
        except StepFailed as failed:
            built = () if scripts else await _without_wheel(steps, pip, failed.said)
            if not built:
                raise
            words = f"`{printable(package.requirement)}` cannot be installed: `{built[0]}` has no wheel"
            raise ScriptsNeeded(words, scripts_advice(built), built) from None
        rows = cast("list[dict[str, dict[str, object]]]", _object(report).get("install", []))
        plain = _normal(package.name.partition("[")[0])
        versions = {_normal(str(row["metadata"]["name"])): str(row["metadata"]["version"]) for row in rows}
        script = _SCRIPTS.replace("NAME", repr(package.name.partition("[")[0]))
        said = await steps.run(replace(python, program=(own,)), "-I", "-c", script)
        program, entry = _program_of(package, {str(k): str(v) for k, v in json.loads(said or b"{}").items()})
        found = _ENTRY.match(entry)
        if found is None:
            raise ServerFailed(f"the program `{printable(program)}` of `{package.name}` starts `{printable(entry)}`")
        launcher = folder / "start" / "start.py"
        launcher.parent.mkdir()
        launcher.write_text(_LAUNCHER.format(**found.groupdict(), program=program))
        module = [str(file.relative_to(folder)) for file in _module(venv, found["module"])]
        lock = folder / "requirements.txt"
        lock.write_text("".join(f"{line}\n" for line in sorted(_pins(rows))))
        return versions[plain], ("venv/bin/python", "start/start.py"), ("start/start.py", lock.name, *module), ()

    def _program(self, name: str, advice: str) -> str:
        found = shutil.which(name, path=self.environment.get("PATH"))
        if found is None:
            raise ServerFailed(f"`{name}` is missing, which would install it", advice)
        return found

    def _python(self, package: Package) -> str:
        if not package.python:
            return self._program("python3", _PYTHON) if getattr(sys, "frozen", False) else sys.executable
        name = package.python if not package.python[0].isdigit() else f"python{package.python}"
        return self._program(name, _PYTHON)

    def _folder(self, registry: Registry) -> PrivateFolder:
        return PrivateFolder(self._state).folder(FOLDER).folder(registry)


_NODE = "install Node.js, which brings npm, and see that both are on the PATH"
_PYTHON = "install that Python, with its venv, and see that it is on the PATH"


def _damage(package: Package, folder: Path) -> ServerFailed:
    named = f"`{printable(package.requirement)}` has changed since its installation"
    return ServerFailed(named, f"remove `{folder}`, so that it is installed anew")


def _program_of(package: Package, programs: Mapping[str, str]) -> tuple[str, str]:
    """Choose the program to start, and its file. Raises ServerFailed, which names the programs that exist."""
    own = package.name.rpartition("/")[2].partition("[")[0]
    same = {_normal(name): name for name in programs}
    name = package.program or (next(iter(programs)) if len(set(programs.values())) == 1 else same.get(_normal(own), ""))
    if name in programs:
        return name, programs[name]
    shown = ", ".join(f"`{printable(one)}`" for one in list(programs)[:8])
    if not programs:
        raise ServerFailed(f"`{printable(package.requirement)}` has no program to start")
    what = f"no program `{printable(package.program)}`" if package.program else "several programs"
    option = "npx --package" if package.registry is Registry.NPM else "uvx --from"
    advice = f"say which one: `{option} {package.name} NAME`"
    raise ServerFailed(f"`{printable(package.requirement)}` has {what}: {shown}", advice)


def _slug(package: Package, version: str) -> str:
    """Return the folder's name for a package, by its version and the other parts of its requirement."""
    wish = [*sorted(package.extras), package.python, package.name.partition("[")[2], package.program]
    tail = f"-{hashlib.sha256(json.dumps(wish).encode()).hexdigest()[:8]}" if any(wish) else ""
    return f"{package.name.partition('[')[0].replace('/', '+')}@{version}{tail}"


def _remove(folder: Path) -> None:
    """Remove a folder in which the children of a killed step may still write for a moment: nobody reports their end."""
    for _ in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.01)


def _move(made: Path, target: Path, *, anew: bool) -> None:
    """Move a finished folder to its name; a complete one that is there stays, unless ``anew``."""
    if anew or not (target / _MARK).is_file():
        with suppress(FileNotFoundError):
            shutil.rmtree(target)
    with suppress(FileExistsError, OSError):
        made.rename(target)


async def _without_wheel(steps: Steps, pip: Way, said: str) -> tuple[str, ...]:
    """Find the package that has versions but no wheel, from pip's words."""
    missing, known = _MISSING.search(said), _VERSIONS.search(said)
    if missing is None:
        return ()
    try:
        listed = await steps.run(pip, "index", "versions", "--disable-pip-version-check", missing[1])
    except ServerFailed:
        return ()
    found = re.search(r"Available versions: (.*)", listed.decode("utf-8", "replace"))
    versions = set(_WORD.findall(found[1])) if found is not None else set[str]()
    return (missing[1],) if versions - set(_WORD.findall(known[1] if known is not None else "")) else ()


def _module(venv: Path, name: str) -> Iterable[Path]:
    """Yield the file of a module in a venv."""
    for site in venv.glob("lib/python*/site-packages"):
        base = site.joinpath(*name.split("."))
        yield from (file for file in (base / "__init__.py", base.with_suffix(".py")) if file.is_file())


def _pins(rows: Iterable[Mapping[str, Mapping[str, object]]]) -> Iterable[str]:
    """Yield the packages of pip's report, each with its version and digest."""
    for row in rows:
        archive = cast("Mapping[str, Mapping[str, str]]", row["download_info"].get("archive_info", {}))
        digest = archive.get("hashes", {}).get("sha256", "")
        yield f"{row['metadata']['name']}=={row['metadata']['version']}" + (
            f" --hash=sha256:{digest}" if digest else ""
        )


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).casefold()


def _object(path: Path) -> dict[str, object]:
    with path.open("rb") as stream:
        value: object = json.loads(stream.read(_MOST_BYTES))
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
