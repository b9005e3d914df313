"""The network of a room: programs in one reach the hosts that are granted, through the proxy, and nothing else."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from gatewright.adapters.confine import Confiner, Room
from gatewright.adapters.host_proxy import HostProxy
from gatewright.gate.record import Connection
from gatewright.policy.target import Confinement, Place, PlaceUse
from tests.engine.adapters.proxybench import Names
from tests.engine.adapters.test_confine import Plain, run
from tests.engine.builtins.webbench import Site, answer, redirect, started
from tests.support.certificate import certificate
from tests.support.patience import until

pytestmark = pytest.mark.skipif(bool(Confiner.why_not()), reason=Confiner.why_not() or "-")
GOOD = "good.example.com"
CURL = "curl -sS --fail --max-time 60"


@dataclass
class Network:
    """A room with one host, the site that all names lead to, without TLS and with it, and what was connected."""

    room: Room
    site: Site
    secure: Site
    told: list[Connection]

    async def run(self, script: str) -> tuple[int | None, str]:
        """The outcome of a script of bash in the room."""
        return await run(self.room, script)


@asynccontextmanager
async def network_of(folder: Path, *hosts: str) -> AsyncGenerator[Network]:
    (folder / "own").mkdir()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(folder / "own", GOOD))
    (server, site), (other, secure) = await started(), await started(context)
    site.pages["/"], secure.pages["/"] = answer("open"), answer("sealed")
    names, told = Names({80: site.port, 443: secure.port}), list[Connection]()
    confinement = Confinement(
        (Place(f"{folder}/own", PlaceUse.READ),),
        hosts=hosts,
        folder=f"{folder}/own",
        agent_id="a",
        subject="shell_exec",
    )
    confiner = Confiner(
        Plain(), lambda one: HostProxy(one.hosts, one.allow_private, told.append, network=names.network)
    )
    room = await confiner.room(confinement)
    try:
        yield Network(room, site, secure, told)
    finally:
        await room.close()
        for one in (server, other):
            one.close()
            await one.wait_closed()


async def test_curl_reaches_a_granted_host_and_no_other(tmp_path: Path) -> None:
    async with network_of(tmp_path, GOOD) as network:
        network.site.pages["/away"] = redirect("http://bad.example.com/")
        assert await network.run(f"{CURL} http://{GOOD}/") == (0, "open")
        assert await network.run(f"{CURL} --cacert cert.pem https://{GOOD}/") == (0, "sealed")
        assert await network.run(f"{CURL} --proxy $all_proxy --cacert cert.pem https://{GOOD}/") == (0, "sealed")
        for words in (
            "http://bad.example.com/",
            "https://bad.example.com/",
            "--proxy $all_proxy http://bad.example.com/",
            f"--connect-to {GOOD}:80:bad.example.com:80 --proxytunnel http://{GOOD}/",
            f"-L http://{GOOD}/away",
            f"-k --connect-to bad.example.com:443:{GOOD}:443 https://bad.example.com/",
        ):
            code, said = await network.run(f"{CURL} {words}")
            assert code not in {0, 127}, (words, said)
        allowed = {(one.host, one.port) for one in network.told if one.allowed}
        assert allowed == {(GOOD, 80), (GOOD, 443)}
        assert {one.code for one in network.told} == {"", "host-not-granted", "tls-name"}


def own_address() -> str:
    """An address of this machine that is not that of loopback, where it has one."""
    with suppress(OSError):
        return socket.gethostbyname(socket.gethostname())
    return "127.0.0.1"


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("hosts", [(), (GOOD,), ("*",)])
async def test_no_program_gets_past_the_proxy(tmp_path: Path, hosts: tuple[str, ...]) -> None:
    async with network_of(tmp_path, *hosts) as network:
        port = network.site.port
        address = own_address()
        for script in (
            f"{CURL} --noproxy '*' http://127.0.0.1:{port}/",
            f"{CURL} --noproxy '*' http://{address}:{port}/",
            f"{CURL} --noproxy '*' http://[::1]:{port}/",
            f"{CURL} --noproxy '*' http://{GOOD}/",
            f"{CURL} http://127.0.0.1:{port}/",
            f"{CURL} --proxy http://127.0.0.1:39128 http://127.0.0.1:{port}/",
            f"exec 3<>/dev/tcp/127.0.0.1/{port}",
            f"exec 3<>/dev/tcp/{address}/{port}",
            f"getent hosts {GOOD}",
        ):
            code, said = await network.run(script)
            assert code not in {0, 127}, (script, said)
        assert network.site.requests == []


async def test_many_processes_use_it_at_once_and_nothing_of_one_that_ended_stays(tmp_path: Path) -> None:
    async with network_of(tmp_path, GOOD) as network:
        assert (await network.run(f"{CURL} http://{GOOD}/"))[0] == 0
        before = open_files()
        for _ in range(3):
            script = f"for i in 1 2 3; do {CURL} http://{GOOD}/ & done; wait"
            found = await asyncio.gather(*(network.run(script) for _ in range(3)))
            assert found == [(0, "open" * 3)] * 3
        await until(lambda: open_files() <= before, "sockets to be let go")
        assert len(network.told) == 28
