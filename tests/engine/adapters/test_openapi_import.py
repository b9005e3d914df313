"""A document that is imported from the command line, and its tools called in whole workspaces, on a loopback server."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from gatewright.cli.main import main
from gatewright.gate import Status
from gatewright.policy.verdict import Verdict
from gatewright.workspace import Workspace
from tests.engine.adapters.test_openapi import document
from tests.engine.builtins.webbench import Site, answer, redirect, started

OPEN = "[workspace]\nweb = { allow_private = true }\n"
NET = '{ NetRead = { allowlist = ["127.0.0.1"] } }, { NetWrite = { allowlist = ["127.0.0.1"] } }'


@pytest.fixture
async def site() -> AsyncGenerator[Site]:
    server, made = await started()
    made.pages |= {"/v1/pets": answer('{"pets": []}', content_type="application/json"), "/v1/pets/7": answer("Tom")}
    yield made
    server.close()
    await server.wait_closed()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(tmp_path / "keys"))
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "policy.toml").write_text("gatewright = 1\n\n[agents.a]\ntools = []\n", "utf-8")
    return folder


def allow(folder: Path, *, operations: list[str] | None = None, net: str = NET, web: str = OPEN) -> None:
    """Give the agent the imported tool, below what the import wrote."""
    path = folder / "policy.toml"
    text = path.read_text("utf-8").replace("tools = []", f'tools = ["pets"]\ncapabilities = [{net}]')
    if operations is not None:
        rule = f'tool_name = "pets"\nrule_type = {{ AllowedOperations = {json.dumps(operations)} }}'
        text += f"\n[[agents.a.tool_rules]]\n{rule}\n"
    path.write_text(f'{text}\n[agents.a.approvals]\nprivileged = "allow"\n\n{web}', "utf-8")


def import_(folder: Path, value: Any, *more: str) -> int:
    path = folder.parent / "api.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return main(["catalog", "import", str(folder), "--openapi", str(path), "--id", "shop", *more])


def url_of(site: Site) -> str:
    return f"http://127.0.0.1:{site.port}/v1"


async def test_document_becomes_tools_that_are_gated_like_any_other(
    folder: Path, site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--url", url_of(site), "--trust", "--accept")
    assert await asyncio.to_thread(import_, folder, document(), *more) == 0
    said = capsys.readouterr()
    assert "5 operations in 1 tool" in said.err
    assert "SHOP_X_KEY" in said.err
    allow(folder, operations=["list", "get_one", "create"])
    with Workspace.open(folder) as workspace:
        assert workspace.problems == ()
        assert workspace.selfcheck().differences == ()
        (shown,) = workspace.view("a").tools("mcp")
        assert [branch["properties"]["operation"]["const"] for branch in shown["inputSchema"]["oneOf"]] == [  # pyright: ignore[reportArgumentType, reportCallIssue, reportIndexIssue]
            "list",
            "create",
            "get_one",
        ]
        outcome = await workspace.call("a", "pets", {"operation": "list"})
        assert (outcome.status, outcome.code) == (Status.FAILED, "not-set-up")
        monkeypatch.setenv("SHOP_X_KEY", "open-sesame-now")
        outcome = await workspace.call("a", "pets", {"operation": "list", "limit": 3})
        assert (outcome.status, outcome.output) == (Status.ALLOWED, '{"pets":[]}')
        assert site.headers()["x-key"] == "open-sesame-now"
        outcome = await workspace.call("a", "pets", {"operation": "delete", "petId": "7"})
        assert (outcome.status, outcome.decision.stage) == (Status.DENIED, "operation")
        sandbox = workspace.sandbox()
        try:
            outcome = await sandbox.workspace.call("a", "pets", {"operation": "list"})
            assert (outcome.status, outcome.code) == (Status.FAILED, "not-in-copy")
        finally:
            sandbox.close()
    args = ["--agent", "a", "--tool", "pets", "--args", '{"operation": "get_one", "petId": "7"}', "--json"]
    assert await asyncio.to_thread(main, ["call", str(folder), *args]) == 0
    assert "Tom" in capsys.readouterr().out
    args[5] = '{"operation": "delete", "petId": "7"}'
    assert await asyncio.to_thread(main, ["call", str(folder), *args]) == 4
    assert len(site.requests) == 2


async def test_server_of_a_catalog_is_judged_by_capability_and_place(folder: Path, site: Site) -> None:
    assert await asyncio.to_thread(import_, folder, document(), "--url", url_of(site), "--trust", "--accept") == 0
    before = (folder / "policy.toml").read_text("utf-8")
    call = {"operation": "list"}
    for net, web, code in (
        (NET, "", "url-private"),
        ('{ NetRead = { allowlist = ["example.org"] } }', OPEN, "host-not-granted"),
        ('{ NetWrite = { allowlist = ["*"] } }', OPEN, "capability-not-granted"),
    ):
        (folder / "policy.toml").write_text(before, "utf-8")
        allow(folder, net=net, web=web)
        with Workspace.open(folder) as workspace:
            outcome = await workspace.call("a", "pets", call)
            assert (outcome.status, outcome.code) == (Status.DENIED, code)
    assert site.requests == []


async def test_changed_address_is_not_asked_before_it_is_trusted(
    folder: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_X_KEY", "open-sesame-now")
    assert await asyncio.to_thread(import_, folder, document(), "--url", url_of(site), "--trust", "--accept") == 0
    allow(folder)
    path = folder / "policy.toml"
    with Workspace.open(folder) as workspace:
        path.write_text(path.read_text("utf-8").replace("127.0.0.1:", "localhost:"), "utf-8")
        workspace.reload()
        outcome = await workspace.call("a", "pets", {"operation": "list"})
        assert (outcome.status, outcome.code) == (Status.DENIED, "host-not-granted")
        path.write_text(path.read_text("utf-8").replace('allowlist = ["127.0.0.1"]', 'allowlist = ["*"]'), "utf-8")
        workspace.reload()
        outcome = await workspace.call("a", "pets", {"operation": "list"})
        assert (outcome.status, outcome.code) == (Status.FAILED, "not-run")
    assert site.requests == []


async def test_document_that_changed_holds_the_tool_again(
    folder: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_X_KEY", "open-sesame-now")
    assert await asyncio.to_thread(import_, folder, document(), "--url", url_of(site), "--trust", "--accept") == 0
    allow(folder)
    changed = document()
    changed["paths"]["/pets"]["delete"] = {"tags": ["Pets"], "responses": {}}
    assert await asyncio.to_thread(import_, folder, changed, "--trust") == 0
    with Workspace.open(folder) as workspace:
        assert workspace.view("a").tools("mcp") == []
        assert workspace.decide("a", "pets", {"operation": "list"}).verdict is Verdict.DENY
        workspace.accept_tools("shop", None)
        assert (await workspace.call("a", "pets", {"operation": "list"})).status is Status.ALLOWED


async def test_redirect_into_a_private_network_is_not_followed(
    folder: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_X_KEY", "open-sesame-now")
    assert await asyncio.to_thread(import_, folder, document(), "--url", url_of(site), "--trust", "--accept") == 0
    allow(folder)
    with Workspace.open(folder) as workspace:
        for location, code in (
            ("http://169.254.169.254/latest/meta-data/", "url-private"),
            (f"http://localhost:{site.port}/v1/pets/7", "host-not-granted"),
        ):
            site.pages["/v1/pets"] = redirect(location)
            outcome = await workspace.call("a", "pets", {"operation": "list"})
            assert (outcome.status, outcome.code) == (Status.FAILED, code)


def test_nothing_is_written_of_a_document_that_is_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / "policy.toml").read_bytes()
    assert import_(folder, "{") == 2
    assert import_(folder, document({"/a": {"get": 3}})) == 2
    assert "/paths/~1a/get" in capsys.readouterr().err
    assert import_(folder, document(servers=[])) == 2
    assert "--url" in capsys.readouterr().err
    assert import_(folder, document(), "--module", "x.wasm") == 2
    assert (folder / "policy.toml").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir() if path.suffix == ".json") == []


def test_untrusted_catalog_is_only_added(folder: Path) -> None:
    assert import_(folder, document()) == 1
    allow(folder)
    with Workspace.open(folder) as workspace:
        assert {"tools-held", "server-not-trusted"} <= {problem.code for problem in workspace.problems}
        assert workspace.view("a").tools("mcp") == []
        assert workspace.decide("a", "pets", {"operation": "list"}).verdict is Verdict.DENY
