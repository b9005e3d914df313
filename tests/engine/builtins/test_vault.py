"""The vault: nothing is read out of it but by copying, and each copy leaves two steps in the log."""

import json
from pathlib import Path
from typing import Any

import pytest

from gatewright.gate import Status
from gatewright.policy.verdict import Verdict
from tests.engine.builtins.rootbench import SECRET, RootBench, opened, policy_text

COPY = {"source_path": "vault/s.bin", "destination_path": "tmp/out/s.bin"}


async def test_bytes_are_copied_and_the_result_names_their_digest(bench: RootBench) -> None:
    content = bytes(range(256)) * 40
    bench.write("vault/s.bin", content)
    data = await bench.data("vault_copyto", **COPY)
    assert (data["bytes"], data["created"], len(data["sha256"])) == (len(content), True, 64)
    assert (bench.folder / "tmp/out/s.bin").read_bytes() == content
    bench.write("vault/s.bin", b"new")
    assert (await bench.data("vault_copyto", **COPY))["created"] is False
    assert (bench.folder / "tmp/out/s.bin").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("file_read", {"path": "vault/s.bin"}),
        ("read_file", {"path": "/vault/s.bin"}),
        ("file_list", {"path": "vault"}),
        ("file_search", {"query": "TOP", "path": "vault"}),
        ("file_write", {"path": "vault/s.bin", "content": "x"}),
        ("file_edit", {"path": "vault/s.bin", "old_text": "TOP", "new_text": "x"}),
        ("file_delete", {"path": "vault/s.bin"}),
        ("vault_copyto", {"source_path": "vault/s.bin", "destination_path": "vault/t.bin"}),
        ("vault_copyto", {"source_path": "shared/a", "destination_path": "shared/b"}),
        ("vault_copyto", {"source_path": "a", "destination_path": "shared/b"}),
    ],
)
async def test_no_other_way_leads_into_or_out_of_the_vault(
    bench: RootBench, tool: str, arguments: dict[str, Any]
) -> None:
    bench.write("vault/s.bin", SECRET)
    bench.write("shared/a", "x")
    for path in ("vault/s.bin", str(bench.folder / "vault/s.bin"), "/vault/../vault/s.bin"):
        given = {name: path if value == "vault/s.bin" else value for name, value in arguments.items()}
        outcome = await bench.call(tool, **given)
        assert (outcome.status, outcome.decision.stage) == (Status.DENIED, "arguments"), given
        assert SECRET not in (outcome.output or "")
    assert bench.text("vault/s.bin") == SECRET
    assert not (bench.folder / "vault/t.bin").exists()


async def test_link_from_an_open_root_into_the_vault_gives_nothing(bench: RootBench) -> None:
    bench.write("vault/s.bin", SECRET)
    (bench.folder / "shared/way").symlink_to(bench.folder / "vault")
    (bench.folder / "shared/file").symlink_to(bench.folder / "vault/s.bin")
    for path in ("shared/way/s.bin", "shared/file"):
        assert await bench.code("file_read", path=path) == "symlink"
    assert (await bench.data("file_search", query="TOP"))["hits"] == []


async def test_log_has_two_steps_under_one_call(bench: RootBench) -> None:
    bench.write("vault/s.bin", "x")
    await bench.data("vault_copyto", **COPY)
    rows = bench.rows()
    kinds = [kind for kind, _ in rows if kind not in {"LogOpened", "PolicyChanged"}]
    assert kinds == ["ToolInvoked", "CapabilityCheck", "CapabilityCheck", "PolicyDecision", "ToolCompleted"]
    read, write = (body for kind, body in rows if kind == "CapabilityCheck")
    for step, (body, does, kind, path) in enumerate(
        ((read, "read", "FsRead", "vault/s.bin"), (write, "write", "FsWrite", "tmp/out/s.bin")), 1
    ):
        checks = [{"kind": kind, "target": str(bench.folder / path), "allowed": True}]
        what = {"step": step, "steps": 2, "does": does, "path": path, "allowed": True}
        assert body == {"kinds": [kind], "checks": checks, **what}


async def test_step_that_is_not_granted_is_the_one_that_the_log_denies(tmp_path: Path) -> None:
    limited = 'capabilities = [{ FsRead = { prefixes = ["."] } }, { FsWrite = { prefixes = ["shared"] } }]\n'
    bench = opened(tmp_path, policy_text(capabilities=limited))
    bench.write("vault/s.bin", "x")
    assert await bench.code("vault_copyto", **COPY) == "path-not-granted"
    steps = [body["allowed"] for kind, body in bench.rows() if kind == "CapabilityCheck"]
    assert steps == [True, False]
    bench.workspace.close()


async def test_who_approves_sees_size_and_digest_and_never_the_content(tmp_path: Path) -> None:
    bench = opened(tmp_path, policy_text(agent='approvals = { vault_copyto = "ask" }\n'))
    bench.write("vault/s.bin", SECRET)
    bench.write("tmp/out/s.bin", "old")
    await bench.data("vault_copyto", **COPY)
    diff = bench.asked[-1].diff or ""
    assert "copies vault/s.bin (10 bytes, sha256:" in diff
    assert "which replaces 3 bytes" in diff
    told = json.dumps(bench.rows()) + diff + str(bench.asked)
    assert SECRET not in told
    bench.workspace.close()


async def test_level_over_the_vault_is_judged_as_reading(tmp_path: Path) -> None:
    rules = '[{ pattern = "no", permission = "none" }]'
    source = f'[[sources]]\nid = "kept"\ntype = "file"\nbase_path = "vault"\npermission_rules = {rules}\n'
    bench = opened(tmp_path, policy_text(more=source))
    bench.write("vault/s.bin", "x")
    bench.write("vault/no", "x")
    assert bench.decide("vault_copyto", **COPY).verdict is Verdict.ALLOW
    closed = bench.decide("vault_copyto", source_path="vault/no", destination_path="shared/x")
    assert (closed.stage, closed.code) == ("permission", "level-none")
    bench.workspace.close()


async def test_too_large_and_missing_are_told(bench: RootBench) -> None:
    with (bench.folder / "vault/s.bin").open("wb") as stream:
        stream.truncate(16 * 1024 * 1024 + 1)
    assert await bench.code("vault_copyto", **COPY) == "too-large"
    assert await bench.code("vault_copyto", source_path="vault/gone", destination_path="tmp/x") == "not-found"
    assert not (bench.folder / "tmp/x").exists()
