"""The web tools in a whole workspace, on real loopback servers, without anything put in between."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gatewright.cli.main import main
from gatewright.gate import Status
from gatewright.policy.verdict import Verdict
from gatewright.workspace import Workspace
from tests.engine.builtins.webbench import TOOLS, Site, answer, bench_of, redirect, started
from tests.support.certificate import certificate

OPEN = "[workspace]\nweb = { allow_private = true }\n"
AGENT = f'[agents.a]\ntools = {json.dumps(TOOLS)}\ncapabilities = [{{ NetRead = {{ allowlist = ["*"] }} }}]\n'
LIMITED = (
    '[agents.b]\ntools = ["web_search", "web_fetch"]\ncapabilities = [{ NetRead = { allowlist = ["example.org"] } }]\n'
)


@pytest.fixture
async def site() -> AsyncGenerator[Site]:
    server, made = await started()
    yield made
    server.close()
    await server.wait_closed()


def written(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "policy.toml").write_text(f"gatewright = 1\n{text}", encoding="utf-8")
    return folder


async def test_page_of_this_machine_is_fetched_while_the_policy_opens_it(tmp_path: Path, site: Site) -> None:
    site.pages["/"] = answer("<h1>Local</h1>", content_type="text/html")
    url = f"http://localhost:{site.port}/"
    with Workspace.open(written(tmp_path / "ws", OPEN + AGENT), keys=tmp_path / "keys") as workspace:
        outcome = await workspace.call("a", "web_fetch", {"url": url})
        assert outcome.status is Status.ALLOWED, outcome.detail
        assert json.loads(outcome.data or b"")["data"]["content"].strip() == "# Local"
        written(workspace.folder, AGENT)
        workspace.reload()
        outcome = await workspace.call("a", "web_fetch", {"url": url})
        assert (outcome.status, outcome.code) == (Status.DENIED, "url-private")
    assert len(site.requests) == 1


async def test_redirect_from_loopback_to_the_metadata_of_a_cloud_is_not_followed(tmp_path: Path, site: Site) -> None:
    site.pages["/"] = redirect("http://169.254.169.254/latest/meta-data/")
    with Workspace.open(written(tmp_path / "ws", OPEN + AGENT), keys=tmp_path / "keys") as workspace:
        outcome = await workspace.call("a", "http_fetch", {"url": f"http://127.0.0.1:{site.port}/"})
        assert (outcome.status, outcome.code) == (Status.FAILED, "url-private")


async def test_disposable_copy_decides_and_reaches_nothing(tmp_path: Path, site: Site) -> None:
    site.pages["/"] = answer("live")
    arguments = {"url": f"http://127.0.0.1:{site.port}/"}
    with Workspace.open(written(tmp_path / "ws", OPEN + AGENT), keys=tmp_path / "keys") as workspace:
        sandbox = workspace.sandbox()
        try:
            copy = sandbox.workspace
            assert copy.decide("a", "web_fetch", arguments).verdict is Verdict.ALLOW
            assert [copy.is_executable(tool) for tool in (*TOOLS, "block")] == [False, False, False, True]
            assert [workspace.is_executable(tool) for tool in TOOLS] == [True, True, True]
            for tool, given in (("web_fetch", arguments), ("http_fetch", arguments), ("web_search", {"query": "tea"})):
                outcome = await copy.call("a", tool, given)
                assert (outcome.status, outcome.code) == (Status.FAILED, "not-in-copy")
        finally:
            sandbox.close()
    assert site.requests == []


def test_what_is_shown_is_callable_and_nothing_else(tmp_path: Path) -> None:
    with Workspace.open(written(tmp_path / "ws", AGENT + LIMITED), keys=tmp_path / "keys") as workspace:
        result = workspace.selfcheck()
        assert (result.checked > 0, result.differences) == (True, ())


async def test_command_line_calls_and_decides(
    tmp_path: Path, site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(tmp_path / "keys"))
    site.pages["/"] = answer("from the line")
    policy = written(tmp_path / "ws", OPEN + AGENT)

    async def ran(verb: str, url: str) -> tuple[int, str]:
        words = [verb, str(policy), "--agent", "a", "--tool", "web_fetch", "--args", json.dumps({"url": url}), "--json"]
        status = await asyncio.to_thread(main, words)
        return status, capsys.readouterr().out

    status, out = await ran("call", f"http://127.0.0.1:{site.port}/")
    assert (status, "from the line" in out) == (0, True)
    assert (await ran("decide", f"http://127.0.0.1:{site.port}/"))[0] == 0
    assert (await ran("decide", "http://169.254.169.254/"))[0] == 4
    assert len(site.requests) == 1


async def test_secure_server_sees_the_name_and_has_to_prove_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = certificate(tmp_path, "secure.example.com")
    context, named = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), list[str | None]()
    context.load_cert_chain(cert, key)
    context.sni_callback = lambda _socket, name, _context: named.append(name)
    async with bench_of(tmp_path, tls=context) as bench:
        bench.site.pages["/"] = answer("sealed")
        assert await bench.code("web_fetch", url="https://secure.example.com/") == "tls"
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        assert (await bench.data("web_fetch", url="https://secure.example.com/"))["content"] == "sealed"
        assert await bench.code("web_fetch", url="https://other.example.com/") == "tls"
        assert named == ["secure.example.com", "secure.example.com", "other.example.com"]
        assert bench.site.headers()["host"] == "secure.example.com"
        assert {address for address, _ in bench.names.dialled} == {"93.184.216.34"}
