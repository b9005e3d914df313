"""Servers out of packages: one version installed into a folder of ours, without anything of it running, and started."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gatewright.adapters.confine import Confiner
from gatewright.adapters.host_proxy import HostProxy
from gatewright.adapters.mcp_transport import NotConfined, ServerFailed
from gatewright.adapters.package_runner import Package, read_runner
from gatewright.adapters.server_install import Installed, ServerInstaller
from gatewright.sources.roomplan import RoomPlanner
from gatewright.workspace import Workspace
from gatewright.workspace.gateway import CATALOG, policy_for_server
from tests.support.loopback import folder_served
from tests.support.real_servers import put_node
from tests.support.registry import SERVER_JS, make_wheel, npm_registry

SAY_JS = "#!/usr/bin/env node\nconsole.log(JSON.stringify(process.argv.slice(2)))\n"
SAY_PY = "import json, sys\ndef main():\n    print(json.dumps(sys.argv[1:]))\n"


def js(program: str = "say", text: str = SAY_JS, **more: object) -> dict[str, str]:
    return {"package.json": json.dumps({"bin": {program: "cli.js"}, **more}), "cli.js": text}


PACKAGES = {
    "say": {"1.0.0": js(), "1.1.0": js(), "2.0.0": js()},
    "@scope/say-server": {"0.1.0": js("other")},
    "two": {"1.0.0": {"package.json": '{"bin": {"a": "a.js", "b": "b.js"}}', "a.js": SAY_JS, "b.js": SAY_JS}},
    "none": {"1.0.0": {"package.json": "{}"}},
    "out": {"1.0.0": {"package.json": '{"bin": "../../../../../etc/passwd"}'}},
    "runs": {"1.0.0": js(scripts={"install": "echo ran > ../../ran", "postinstall": "echo ran > ../../ran"})},
    "needs": {"1.0.0": js("needs", dependencies={"runs": "1.0.0"})},
    "hello-server": {"1.0.0": js("hello-server", SERVER_JS), "1.1.0": js("hello-server", SERVER_JS)},
}


@pytest.fixture(scope="module")
def registry() -> Iterator[tuple[str, list[str]]]:
    with npm_registry(PACKAGES) as (address, asked):
        yield address, asked


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for version in ("1.0", "1.1"):
        make_wheel(folder, "say-py", version, {"say_py/__init__.py": SAY_PY}, {"say-py": "say_py:main"})
    make_wheel(folder, "bare", "1.0", {"bare.py": ""}, {})
    sdist = folder / "built-1.0"
    sdist.mkdir()
    (sdist / "setup.py").write_text(f"open({str(folder / 'ran')!r}, 'w').close()\n")
    shutil.make_archive(str(sdist), "gztar", folder, "built-1.0")
    return folder


@pytest.fixture
def environment(registry: tuple[str, list[str]], wheels: Path, tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": f"{put_node(tmp_path / 'bin')}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "npm_config_registry": registry[0],
        "npm_config_cache": str(tmp_path / "cache"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
    }


class Here:
    """An installer with what it is confined by, if at all."""

    def __init__(self, state: Path, environment: dict[str, str], confiner: Confiner | None) -> None:
        self.own, self.confiner = ServerInstaller(state, environment), confiner

    async def install(
        self, wanted: Package, version: str = "", *, scripts: bool = False, tell: Callable[[str], None] = lambda _: None
    ) -> Installed:
        return await self.own.install(wanted, version, confiner=self.confiner, scripts=scripts, tell=tell)


def confiner_in(folder: Path) -> Confiner:
    return Confiner(RoomPlanner(folder / "rooms"), lambda one: HostProxy(one.hosts, one.allow_private, lambda _: None))


CONFINED = pytest.param(
    True, marks=pytest.mark.skipif(bool(Confiner.why_not()), reason=Confiner.why_not() or "-"), id="confined"
)


@pytest.fixture(params=[CONFINED, pytest.param(False, id="plain")])
def confiner(request: pytest.FixtureRequest, tmp_path: Path) -> Confiner | None:
    return confiner_in(tmp_path / "state") if request.param else None


@pytest.fixture
def installer(tmp_path: Path, environment: dict[str, str], confiner: Confiner | None) -> Here:
    return Here(tmp_path / "state", environment, confiner)


def package(line: str) -> Package:
    command, *arguments = line.split()
    found = read_runner(command, arguments)
    assert found is not None
    return found


def said(installed: Installed, *arguments: str) -> list[str]:
    return json.loads(subprocess.check_output([*installed.command, *arguments], text=True))


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("npx -y say", "2.0.0"),
        ("npx say@1.0.0", "1.0.0"),
        ("npx say@^1", "1.1.0"),
        ("npx @scope/say-server", "0.1.0"),
        ("npx --package two b", "1.0.0"),
        ("uvx say-py", "1.1"),
        ("uvx say-py==1.0", "1.0"),
        ("uvx say-py<1.1", "1.0"),
        ("uvx --with bare --from say_py say-py", "1.1"),
    ],
)
async def test_a_package_is_installed_once_in_one_version_and_its_program_starts(
    installer: Here, tmp_path: Path, line: str, version: str
) -> None:
    told: list[str] = []
    installed = await installer.install(package(line), tell=told.append)
    assert installed.version == version
    assert said(installed, "a b", "-c") == ["a b", "-c"]
    assert len(told) == 2
    again = await installer.install(package(line), installed.version, tell=told.append)
    assert again == installed
    assert len(told) == 2
    assert not list((tmp_path / "state" / "servers").glob("*/.new-*"))


async def test_what_is_installed_moves_with_its_state_folder(installer: Here, tmp_path: Path) -> None:
    for line in ("npx say@1.0.0", "uvx say-py==1.0"):
        await installer.install(package(line))
    shutil.copytree(tmp_path / "state", tmp_path / "moved", symlinks=True)
    shutil.rmtree(tmp_path / "state")
    moved = Here(tmp_path / "moved", {"PATH": installer.own.environment["PATH"]}, installer.confiner)
    for line in ("npx say@1.0.0", "uvx say-py==1.0"):
        installed = await moved.install(package(line))
        assert str(tmp_path / "moved") in installed.command[-1]
        assert said(installed, "x") == ["x"]


async def test_no_address_of_a_registry_is_kept(
    installer: Here, tmp_path: Path, registry: tuple[str, list[str]]
) -> None:
    await installer.install(package("npx say"))
    (folder,) = (tmp_path / "state" / "servers" / "npm").iterdir()
    for file in (*folder.glob("*.json"), *folder.glob("node_modules/.*.json")):
        assert registry[0] not in file.read_text()
    assert "sha512-" in (folder / "package-lock.json").read_text()


@pytest.mark.parametrize("confiner", [CONFINED], indirect=True)
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("npx no-such", "no `no-such`"),
        ("npx say@7.0.0", "no version `7.0.0`"),
        ("npx two", "several programs: `a`, `b`"),
        ("npx --package two c", "no program `c`: `a`, `b`"),
        ("npx none", "no program"),
        ("npx out", "no file for its program"),
        ("uvx no-such", "no `no-such`"),
        ("uvx say-py==7", "no version `==7`"),
        ("uvx bare", "no program"),
        ("uvx --python 3.999 say-py", "`python3.999` is missing"),
    ],
)
async def test_what_cannot_be_installed_is_told_with_what_to_do_and_leaves_nothing(
    installer: Here, tmp_path: Path, line: str, reason: str
) -> None:
    with pytest.raises(ServerFailed) as failed:
        await installer.install(package(line))
    assert reason in failed.value.reason
    assert not [*(tmp_path / "state" / "servers").glob("*/*")]


async def test_a_python_without_its_pip_is_told_with_what_to_install(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    python = tmp_path / "bin" / "python3.999"
    python.write_text(
        '#!/bin/sh\ncase "$*" in *ensurepip*) echo "No module named ensurepip" >&2; exit 1;; esac\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    with pytest.raises(ServerFailed, match="No module named ensurepip") as failed:
        await ServerInstaller(tmp_path / "state", environment).install(package("uvx --python 3.999 say-py"))
    assert "with its venv" in failed.value.advice
    assert not [*(tmp_path / "state" / "servers").glob("*/*")]


async def test_an_installed_python_server_has_no_pip(tmp_path: Path, environment: dict[str, str]) -> None:
    installed = await ServerInstaller(tmp_path / "state", environment).install(package("uvx say-py"))
    assert [path.name for path in Path(installed.folder).glob("venv/lib/python*/site-packages/*.dist-info")] == [
        "say_py-1.1.dist-info"
    ]
    assert not list(Path(installed.folder).rglob("pip"))


@pytest.mark.parametrize("line", ["npx say", "uvx say-py"])
async def test_a_registry_that_cannot_be_reached_is_told_without_its_address(
    tmp_path: Path, environment: dict[str, str], confiner: Confiner | None, line: str
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://me:pass-word@127.0.0.1:{closed.getsockname()[1]}/"
        away = {**environment, "npm_config_registry": address, "PIP_INDEX_URL": address, "PIP_NO_INDEX": "0"}
        del away["PIP_FIND_LINKS"]
        with pytest.raises(ServerFailed) as failed:
            await Here(tmp_path / "state", away, confiner).install(package(line))
    assert "cannot be reached" in failed.value.reason
    assert "pass-word" not in str(failed.value)


async def test_install_scripts_run_when_that_was_allowed_and_never_before(
    installer: Here, tmp_path: Path, wheels: Path
) -> None:
    told: list[str] = []
    for line in ("npx runs@1.0.0", "npx needs@1.0.0"):
        installed = await installer.install(package(line), tell=told.append)
        assert installed.scripts == ("runs",)
        assert "--install-scripts" in told[-1]
        assert said(installed) == []
    with pytest.raises(ServerFailed, match="no wheel"):
        await installer.install(package("uvx built"))
    assert not list((tmp_path / "state").rglob("ran"))
    assert not (wheels / "ran").exists()

    for _ in range(2):
        assert (await installer.install(package("npx runs@1.0.0"), scripts=True)).scripts == ()
    assert list((tmp_path / "state").rglob("ran"))


async def test_an_installed_program_that_was_changed_is_not_started(installer: Here) -> None:
    for line in ("npx say@1.0.0", "uvx say-py==1.0"):
        installed = await installer.install(package(line))
        for file in Path(installed.folder).rglob("*"):
            if file.name == "cli.js" or file.parent.name == "say_py":
                file.unlink() if file.is_symlink() else None
                if file.suffix in {".js", ".py"}:
                    file.write_text(f"{file.read_text()}\n")
        with pytest.raises(ServerFailed, match="has changed since its installation: remove"):
            await installer.install(package(line))


async def test_a_cancelled_installation_leaves_nothing_and_the_next_one_works(installer: Here, tmp_path: Path) -> None:
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    def tell(_: str) -> None:
        loop.call_soon_threadsafe(began.set)

    work = asyncio.create_task(installer.install(package("uvx say-py"), tell=tell))
    await began.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (await installer.install(package("uvx say-py"))).version == "1.1"
    assert [path.name for path in (tmp_path / "state" / "servers" / "pypi").iterdir()] == ["say-py@1.1"]


async def test_two_processes_that_install_the_same_share_it(tmp_path: Path, environment: dict[str, str]) -> None:
    both = [ServerInstaller(tmp_path / "state", environment) for _ in range(2)]
    first, second = await asyncio.gather(*(one.install(package("npx say@1.1.0")) for one in both))
    assert first == second
    assert [path.name for path in (tmp_path / "state" / "servers" / "npm").iterdir()] == ["say@1.1.0"]


async def test_what_lies_in_the_state_folder_is_no_way_out_of_it(installer: Here, tmp_path: Path) -> None:
    (tmp_path / "state" / "servers").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state" / "servers" / "npm").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ServerFailed, match="symbolic link"):
        await installer.install(package("npx say"))
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_policy_keeps_the_command_and_its_pin_the_version(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(tmp_path / "keys"))
    folder, told = tmp_path / "here", list[str]()
    (folder / "one").mkdir(parents=True)
    path = policy_for_server(folder, "clerk", ("npx", "-y", "hello-server@^1.0.0", "one"), tell=told.append)
    assert 'places = { "./one" = "write" }' in path.read_text()
    assert told == [
        "installing `hello-server@^1.0.0`, which is done once",
        "installed `hello-server` 1.1.0",
        f"made `{path}`, which shows everything and enforces nothing yet",
        "the server reads and changes `./one`, and nothing else of yours",
    ]
    assert '"hello-server@^1.0.0"' in path.read_text()
    pin = json.loads((folder / "catalogs" / "server.json").read_text())["server"]
    assert (pin["package"], pin["package_version"]) == ("hello-server@^1.0.0", "1.1.0")

    pin_path = tmp_path / "there" / "catalogs" / "server.json"
    shutil.copytree(folder, tmp_path / "there", ignore=shutil.ignore_patterns(".gatewright"))
    pin_path.write_text(pin_path.read_text().replace('"1.1.0"', '"1.0.0"'))
    with Workspace.open(tmp_path / "there", trust=True) as workspace:
        outcome = asyncio.run(workspace.call("clerk", "hello", {}))
        assert outcome.output == "one"
        (installed,) = (workspace.state_folder / "servers" / "npm").iterdir()
        assert installed.name == "hello-server@1.0.0"
        assert workspace.servers.states[CATALOG].reason == ""


def test_an_untrusted_catalog_installs_nothing(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "policy.toml").write_text(
        'gatewright = 1\n[[catalogs]]\nid = "s"\ntype = "mcp"\ncommand = "npx"\nargs = ["hello-server"]\n'
    )
    with Workspace.open(tmp_path, keys=tmp_path / "keys") as workspace:
        with pytest.raises(ServerFailed, match="not trusted"):
            asyncio.run(workspace.servers.install("s"))
        with pytest.raises(ServerFailed, match="not trusted"):
            asyncio.run(workspace.servers.start("s"))
    assert not (tmp_path / ".gatewright" / "servers").exists()


PRYING_JS = """
const fs = require('fs'), net = require('net'), found = []
for (const path of [FILES])
  try { fs.statSync(path).isDirectory() ? fs.readdirSync(path) : fs.readFileSync(path); found.push(path) } catch {}
const end = () => { fs.writeFileSync('../../found.json', JSON.stringify(found)); process.exit() }
const proxy = new URL(process.env.https_proxy || 'http://127.0.0.1:9')
const ask = () => {
  const one = net.connect(proxy.port, proxy.hostname, () => one.write('CONNECT 127.0.0.1:PORT HTTP/1.1\\r\\n\\r\\n'))
  one.on('data', data => { if (/ 200 /.test(data)) found.push('through the proxy'); end() }).on('error', end)
}
net.connect(PORT, '127.0.0.1', () => { found.push('listener'); ask() }).on('error', ask)
"""
PRYING_PY = """
import json, os, socket, sys
found = []
for path in [FILES]:
    try:
        os.listdir(path) if os.path.isdir(path) else open(path).close()
        found.append(path)
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", PORT), 5).close()
    found.append("listener")
except OSError:
    pass
with open(sys.prefix + "/../found.json", "w") as out:
    json.dump(found, out)
"""


@pytest.mark.parametrize("line", ["npx prying@1.0.0", "uvx prying==1.0"])
async def test_an_install_script_reads_nothing_of_the_user_and_reaches_no_listener(
    tmp_path: Path, environment: dict[str, str], confiner: Confiner | None, line: str
) -> None:
    files = [tmp_path / "secret", tmp_path / "state" / "policy", tmp_path / ".ssh", tmp_path / ".ssh" / "id"]
    (tmp_path / ".ssh").mkdir()
    (tmp_path / "state").mkdir()
    for file in files:
        if not file.is_dir():
            file.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        port = listener.getsockname()[1]

        def prying(text: str) -> str:
            return text.replace("FILES", ", ".join(json.dumps(str(one)) for one in files)).replace("PORT", str(port))

        source = tmp_path / "sources" / "prying-1.0"
        source.mkdir(parents=True)
        (source / "pyproject.toml").write_text(
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        )
        (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: prying\nVersion: 1.0\n")
        make_wheel(source, "prying", "1.0", {"prying.py": SAY_PY}, {"prying": "prying:main"})
        built = "prying-1.0-py3-none-any.whl"
        (source / "backend.py").write_text(
            f"import shutil\ndef build_wheel(folder, *_):\n    shutil.copy({built!r}, folder)\n    return {built!r}\n"
            + prying(PRYING_PY)
        )
        shutil.make_archive(str(source), "gztar", source.parent, source.name)
        files_of_js = {**js(scripts={"install": "node pry.js"}), "pry.js": prying(PRYING_JS)}
        with npm_registry({"prying": {"1.0.0": files_of_js}}) as (address, _):
            own = {"npm_config_registry": address, "PIP_FIND_LINKS": str(source.parent)}
            here = Here(tmp_path / "state", environment | own, confiner)
            installed = await here.install(package(line), scripts=True)
        assert said(installed, "x") == ["x"]
        found = json.loads((Path(installed.folder) / "found.json").read_text())
        if confiner is None:
            assert found == [*map(str, files), "listener"]
            return
        assert found == []
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_the_files_of_npm_and_pip_say_which_registries_are_reached(
    tmp_path: Path, environment: dict[str, str], wheels: Path, confiner: Confiner | None
) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "say-py").symlink_to(wheels)
    plain = {name: environment[name] for name in ("PATH", "HOME")}
    with (
        npm_registry({"@scope/say-server": PACKAGES["@scope/say-server"]}) as (scoped, asked),
        folder_served(tmp_path) as at,
    ):
        (tmp_path / ".npmrc").write_text(f"registry=http://127.0.0.1:9/\n@scope:registry={scoped}\nnoproxy=127.0.0.1\n")
        (tmp_path / ".config" / "pip").mkdir(parents=True)
        (tmp_path / ".config" / "pip" / "pip.conf").write_text(
            f"[global]\nindex-url = http://127.0.0.1:9/\n[install]\nindex-url = {at}/index\nfind-links =\n"
        )
        here = Here(tmp_path / "state", plain, confiner)
        assert (await here.install(package("npx @scope/say-server"))).version == "0.1.0"
        assert (await here.install(package("uvx say-py"))).version == "1.1"
    assert asked


@pytest.mark.parametrize("confiner", [CONFINED], indirect=True)
async def test_a_file_on_a_host_that_is_no_registry_is_not_fetched_and_the_host_is_named(
    tmp_path: Path, environment: dict[str, str], wheels: Path, confiner: Confiner | None
) -> None:
    (tmp_path / "index" / "say-py").mkdir(parents=True)
    with folder_served(wheels) as elsewhere, folder_served(tmp_path) as address:
        name = "say_py-1.0-py3-none-any.whl"
        (tmp_path / "index" / "say-py" / "index.html").write_text(f'<a href="{elsewhere}/{name}">{name}</a>')
        own = {"PATH": environment["PATH"], "HOME": str(tmp_path), "PIP_INDEX_URL": f"{address}/index"}
        with pytest.raises(ServerFailed) as failed:
            await Here(tmp_path / "state", own, confiner).install(package("uvx say-py"))
    assert elsewhere.removeprefix("http://") in failed.value.reason


@pytest.mark.parametrize("confiner", [CONFINED], indirect=True)
@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy"])
@pytest.mark.parametrize("line", ["npx say@1.0.0", "uvx say-py==1.0"])
async def test_a_registry_behind_a_proxy_is_told_at_once_and_one_that_needs_none_is_reached(
    tmp_path: Path, environment: dict[str, str], confiner: Confiner | None, line: str, name: str
) -> None:
    with folder_served(Path(environment["PIP_FIND_LINKS"])) as address:
        proxied = {**environment, name: "http://me:pass-word@127.0.0.1:9", "PIP_FIND_LINKS": address}
        with pytest.raises(ServerFailed, match="through a proxy") as failed:
            await Here(tmp_path / "state", proxied, confiner).install(package(line))
        assert "pass-word" not in str(failed.value)
        here = Here(tmp_path / "state", {**proxied, "no_proxy": "127.0.0.1"}, confiner)
        assert said(await here.install(package(line)), "x") == ["x"]


async def test_where_nothing_can_be_confined_nothing_is_installed(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("gatewright.adapters.confine.why_no_room", lambda: "bubblewrap is missing: install it")
    here = Here(tmp_path / "state", environment, confiner_in(tmp_path / "state"))
    for line in ("npx say", "uvx say-py"):
        with pytest.raises(NotConfined, match="bubblewrap is missing: install it"):
            await here.install(package(line), tell=told.append)
    assert told == []
    assert not (tmp_path / "state").exists()


REACHABLE = "the registries are not asked: set GATEWRIGHT_TEST_REGISTRIES=1"


@pytest.mark.skipif(not os.environ.get("GATEWRIGHT_TEST_REGISTRIES"), reason=REACHABLE)
@pytest.mark.parametrize(
    "line", ["npx -y @modelcontextprotocol/server-memory@2026.8.31", "uvx mcp-server-time==2026.10.19"]
)
async def test_a_real_server_is_installed_from_its_registry(tmp_path: Path, line: str) -> None:
    installed = await ServerInstaller(tmp_path).install(package(line), confiner=confiner_in(tmp_path))
    assert Path(installed.command[-1]).is_file()
