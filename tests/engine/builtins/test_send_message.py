"""``send_message`` through a whole workspace: to the user, to agents, and to servers that behave as the real ones."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import EditRefused, PolicyInvalid, WorkspaceError
from gatewright.cli.main import main
from gatewright.gate import Decision, Outcome, Status
from gatewright.memory.archive import MAX_WAITING, Received
from gatewright.memory.block_store import BlockStore
from gatewright.policy.agentedit import remove_agent, rename_agent
from gatewright.policy.verdict import TARGETS, Verdict
from gatewright.workspace import Workspace
from tests.engine.builtins.messagebench import PASSWORD, TOKEN, Services, running

NET = '{ NetWrite = { allowlist = ["*"] } }'
AGENTS = """
[agents.a]
tools = ["send_message"]
capabilities = [{net}]
{more}

[agents.b]
tools = []

[agents.c]
tools = []
"""
INSIDE = 'user = {}\nagent = { agents = ["b", "c"] }\ngroup = { crew = ["b", "c"] }\n'
Target = dict[str, Any]
USER: Target = {"type": "user"}
AGENT: Target = {"type": "agent", "id": "b"}
CHANNEL: Target = {"type": "discord", "channel_id": "100"}
ACCOUNT: Target = {"type": "bluesky", "handle": "dana.example.com"}
Open = Callable[..., Workspace]


@pytest.fixture
def services() -> Iterator[Services]:
    with running() as made:
        yield made


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    monkeypatch.setenv("BOT", TOKEN)
    monkeypatch.setenv("APP", PASSWORD)
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(tmp_path / "keys"))
    made: list[Workspace] = []

    def make(endpoints: str = INSIDE, *, net: str = NET, more: str = "", trust: bool = True) -> Workspace:
        write(tmp_path / "ws", endpoints, net=net, more=more)
        made.append(Workspace.open(tmp_path / "ws", trust=trust))
        return made[-1]

    yield make
    for workspace in made:
        workspace.close()


def write(folder: Path, endpoints: str, *, net: str = NET, more: str = "") -> None:
    folder.mkdir(exist_ok=True)
    text = f"gatewright = 1\n{AGENTS.format(net=net, more=more)}[workspace.endpoints]\n{endpoints}"
    (folder / "policy.toml").write_text(text, encoding="utf-8")


async def send(workspace: Workspace, target: Target, content: str = "Hello", **more: Any) -> Outcome:
    return await workspace.call("a", "send_message", {"target": target, "content": content, **more})


async def sent(workspace: Workspace, target: Target, content: str = "Hello", **more: Any) -> dict[str, Any]:
    outcome = await send(workspace, target, content, **more)
    assert outcome.status is Status.ALLOWED, (outcome.output, outcome.detail)
    return json.loads(outcome.data or b"")


def decide(workspace: Workspace, target: Target) -> Decision:
    return workspace.decide("a", "send_message", {"target": target, "content": "x"})


def schema_of(workspace: Workspace) -> str:
    return json.dumps(workspace.view("a").tools("mcp"))


async def test_message_to_the_user_goes_to_whoever_listens_and_ends_the_loop(opened: Open) -> None:
    workspace, heard = opened(), list[Received]()
    workspace.messages.subscribe(heard.append)
    outcome = await send(workspace, USER, metadata={"urgent": True})
    assert (outcome.status, outcome.should_continue) == (Status.ALLOWED, False)
    assert [(one.sender, one.content, one.metadata) for one in heard] == [("a", "Hello", {"urgent": True})]
    assert workspace.inbox().list() == ()


async def test_message_to_the_user_waits_while_nobody_takes_it(opened: Open, caplog: pytest.LogCaptureFixture) -> None:
    workspace = opened()

    def broken(_message: Received) -> None:
        raise RuntimeError("no window")

    leave = workspace.messages.subscribe(broken)
    await sent(workspace, USER, "first")
    leave()
    await sent(workspace, USER, "second")
    assert [one.content for one in workspace.inbox().list()] == ["first", "second"]
    assert [one.content for one in workspace.inbox().take(limit=1)] == ["first"]
    assert [one.content for one in workspace.inbox().take()] == ["second"]
    assert workspace.inbox().take() == ()
    assert "a listener for messages raised" in caplog.text


async def test_message_to_an_agent_waits_in_its_inbox_for_another_process_too(opened: Open, tmp_path: Path) -> None:
    await sent(opened(), AGENT, metadata={"about": "notes"})
    with Workspace.open(tmp_path / "ws") as other:
        (one,) = other.inbox("b").list()
        assert (one.sender, one.content, one.metadata, one.group) == ("a", "Hello", {"about": "notes"}, "")
        assert other.inbox("c").list() == other.inbox().list() == ()
        with pytest.raises(WorkspaceError, match="no agent `nobody`"):
            other.inbox("nobody")


async def test_message_to_a_group_reaches_all_of_it_or_nobody(opened: Open) -> None:
    workspace = opened()
    group = {"type": "group", "name": "crew"}
    assert (await sent(workspace, group))["data"] == {"inboxes": 2, "waiting": True}
    assert [one.group for agent in ("b", "c") for one in workspace.inbox(agent).list()] == ["crew", "crew"]
    for _ in range(MAX_WAITING - 1):
        await sent(workspace, {"type": "agent", "id": "c"}, "x")
    outcome = await send(workspace, group, "one too many")
    assert (outcome.status, outcome.code) == (Status.FAILED, "inbox-full")
    assert len(workspace.inbox("b").list()) == 1


async def test_given_up_call_leaves_no_message(opened: Open) -> None:
    workspace = opened()
    store = BlockStore(workspace.state_folder / "memory.sqlite", keys=workspace.key_folder)
    with store.exclusive():  # the message cannot be kept yet
        call = asyncio.ensure_future(send(workspace, AGENT))
        while not any(thread.name.startswith("asyncio_") for thread in threading.enumerate()):
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    await asyncio.get_running_loop().shutdown_default_executor()
    assert workspace.inbox("b").list() == ()


def test_target_without_endpoint_is_named_nowhere_and_denied_at_the_operation(opened: Open) -> None:
    workspace = opened("user = {}\n")
    shown = json.dumps(workspace.view("a").tools("anthropic")) + workspace.view("a").usage_rules
    assert not any(word in shown.lower() for word in ("discord", "bluesky", "agent", "group", "channel", "handle"))
    decision = decide(workspace, CHANNEL)
    assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "operation", "no-endpoint")
    assert decision.rule is not None
    assert decision.rule.rule_id == "workspace.endpoints"
    assert "discord" not in (decision.model_message or "")


def test_tool_is_absent_without_any_endpoint_and_the_policy_says_so(opened: Open) -> None:
    workspace = opened("")
    assert [problem.code for problem in workspace.problems] == ["no-root"]
    assert "`[workspace] endpoints` names none: agent `a` will not see `send_message`" in str(workspace.problems[0])
    decision = decide(workspace, USER)
    assert (decision.stage, decision.code) == ("lookup", "not-available")
    assert "`[workspace] endpoints`" in decision.reason


def test_recipients_outside_the_policy_are_not_in_the_schema_and_denied(opened: Open) -> None:
    workspace = opened()
    assert decide(workspace, {"type": "agent", "id": "a"}).stage == "schema"
    workspace = opened("agent = {}\n")
    assert decide(workspace, {"type": "agent", "id": "a"}).verdict is Verdict.ALLOW
    workspace.apply(rename_agent(workspace.policy, "c", "d"))
    for agent_id, verdict in (("c", Verdict.DENY), ("d", Verdict.ALLOW)):
        assert decide(workspace, {"type": "agent", "id": agent_id}).verdict is verdict


def test_agent_that_an_endpoint_names_is_neither_renamed_nor_removed(opened: Open) -> None:
    workspace = opened()
    for edit in (rename_agent(workspace.policy, "b", "d"), remove_agent(workspace.policy, "c")):
        with pytest.raises(EditRefused, match=r"`\[workspace\] endpoints` names agent"):
            workspace.apply(edit)


def test_each_target_is_gated_by_itself(opened: Open, services: Services) -> None:
    rule = (
        '[[agents.a.tool_rules]]\ntool_name = "send_message"\nrule_type = { AllowedOperations = ["user", "discord"] }'
    )
    workspace = opened(INSIDE + services.toml, more=f'approvals = {{ "send_message.discord" = "ask" }}\n{rule}')
    verdicts = {target["type"]: decide(workspace, target).verdict for target in (USER, AGENT, CHANNEL, ACCOUNT)}
    assert [str(verdicts[name]) for name in ("user", "agent", "discord", "bluesky")] == ["allow", "deny", "ask", "deny"]
    change = workspace.gate.change("a", "send_message", {"target": CHANNEL, "content": "one\ntwo"})
    assert change == "to channel `100` on Discord:\n+one\n+two\n"


def test_selfcheck_counts_every_target_and_finds_no_difference(opened: Open, services: Services) -> None:
    found = [opened(endpoints).selfcheck(("a",)) for endpoints in (INSIDE + services.toml, "user = {}\n", "")]
    assert [one.differences for one in found] == [(), (), ()]
    assert [one.no_witness for one in found] == [(), (), ()]
    assert found[0].checked == found[1].checked == found[2].checked + len(TARGETS)


async def test_discord_gets_the_message_once_and_pings_nobody(opened: Open, services: Services) -> None:
    workspace = opened(services.toml)
    data = (await sent(workspace, CHANNEL, "@everyone look"))["data"]
    (message,) = services.messages
    assert data == {"message_id": "9000"}
    assert (message["channel"], message["content"]) == ("100", "@everyone look")
    assert message["allowed_mentions"] == {"parse": []}
    assert message["enforce_nonce"] is True


async def test_bluesky_post_mentions_the_account_and_the_session_is_kept(opened: Open, services: Services) -> None:
    workspace = opened(services.toml)
    data = (await sent(workspace, ACCOUNT, "Grüße 👋"))["data"]
    await sent(workspace, {"type": "bluesky", "handle": "bot.example.com"}, "To all")
    assert data["uri"].startswith("at://did:plc:bot/app.bsky.feed.post/")
    first, second = services.records
    assert (first["text"], first["mentioned"]) == (
        "@dana.example.com Grüße 👋",
        {"@dana.example.com": "did:plc:dana"},
    )
    assert (second["text"], second["mentioned"]) == ("To all", {})
    assert services.sessions == 1
    services.valid = "another"
    await sent(workspace, ACCOUNT, "again")
    assert (services.sessions, len(services.records)) == (2, 3)


@pytest.mark.parametrize(
    ("target", "content"),
    [(CHANNEL, "x" * 2_001), (ACCOUNT, "x" * 283), (ACCOUNT, "👨‍👩‍👧‍👦" * 150)],
)
async def test_message_that_is_too_long_is_refused_before_anybody_is_asked(
    opened: Open, services: Services, target: Target, content: str
) -> None:
    workspace = opened(services.toml)
    outcome = await send(workspace, target, content)
    assert (outcome.status, outcome.decision.stage) == (Status.DENIED, "arguments")
    assert "shorten it" in (outcome.output or "")
    assert services.asked == []


@pytest.mark.parametrize(("target", "content"), [(CHANNEL, "é" * 2_000), (ACCOUNT, "👩‍🚀" * 100 + "x" * 182)])
async def test_longest_message_is_taken(opened: Open, services: Services, target: Target, content: str) -> None:
    await sent(opened(services.toml), target, content)
    assert len(services.messages) + len(services.records) == 1


@pytest.mark.parametrize("target", [CHANNEL, ACCOUNT])
async def test_service_that_wants_a_moment_is_asked_again_and_one_that_wants_more_is_not(
    opened: Open, services: Services, target: Target
) -> None:
    workspace = opened(services.toml)
    services.waits = ["0.05"]
    await sent(workspace, target)
    count = len(services.asked)
    services.waits = ["37.2"]
    outcome = await send(workspace, target)
    assert (outcome.status, outcome.code) == (Status.FAILED, "rate-limited")
    assert "try again in 38 s" in (outcome.output or "")
    assert len(services.asked) == count + 1


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"type": "discord", "channel_id": "200"}, "does not let messages be sent to that channel"),
        ({"type": "discord", "channel_id": "300"}, "has no such channel"),
        ({"type": "bluesky", "handle": "nobody.example.com"}, "has no such account"),
    ],
)
async def test_refusals_are_told_so_that_the_model_can_act(
    opened: Open, services: Services, target: Target, words: str
) -> None:
    outcome = await send(opened(services.toml), target)
    assert (outcome.status, outcome.code) == (Status.FAILED, "not-sent")
    assert words in (outcome.output or "")


@pytest.mark.parametrize("wrong", ["wrong-secret-of-the-test", "sesame"])
@pytest.mark.parametrize(("target", "variable"), [(CHANNEL, "BOT"), (ACCOUNT, "APP")])
async def test_wrong_secret_is_told_and_shown_nowhere(
    opened: Open,
    services: Services,
    target: Target,
    variable: str,
    wrong: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    caplog.set_level(logging.DEBUG)
    services.echo = True
    monkeypatch.setenv(variable, wrong)
    workspace = opened(services.toml)
    outcome = await send(workspace, target)
    assert (outcome.status, outcome.code) == (Status.FAILED, "not-sent")
    assert "is not set up right here" in (outcome.output or "")
    assert "401" in (outcome.detail or "")
    monkeypatch.delenv(variable)
    missing = await send(workspace, target)
    assert (missing.code, variable in (missing.output or "")) == ("not-set-up", False)
    assert f"`{variable}`" in (missing.detail or "")
    monkeypatch.setenv(variable, TOKEN if variable == "BOT" else PASSWORD)
    await sent(workspace, target)
    workspace.close()
    told = json.dumps(outcome.to_json()) + json.dumps(missing.to_json()) + caplog.text
    kept = b"".join(path.read_bytes() for path in (tmp_path / "ws").rglob("*") if path.is_file())
    for secret in (wrong, TOKEN, PASSWORD, services.valid):
        assert not secret or (secret not in told and secret.encode() not in kept)


HOSTILE: dict[str, Callable[[str], tuple[int, Any, dict[str, str]]]] = {
    "its code": lambda secret: (400, {"error": f"no {secret}\n\x1b[2J", "message": ""}, {}),
    "a number's place": lambda secret: (400, {"code": {"a": secret}, "message": [secret]}, {}),
    "its words": lambda secret: (403, {"message": f"{'x' * 190}{secret}\r\nforged line"}, {}),
    "what it made": lambda secret: (200, {"id": secret, "uri": f"at://{secret}"}, {}),
    "a shape in its place": lambda secret: (200, {"id": {"a": secret}, "uri": [secret]}, {}),
    "a redirect": lambda secret: (302, {"message": secret}, {"Location": f"http://127.0.0.1:9/{secret}"}),
    "no JSON": lambda secret: (200, f"<html>{secret}".encode(), {}),
    "too deep": lambda secret: (200, b'{"id":' + b"[" * 200_000 + secret.encode(), {}),
    "no end": lambda secret: (200, b'{"id": "' + secret.encode() * 400_000, {}),
    "a bomb": lambda _secret: (200, zlib.compress(b'{"id": "' + b" " * 8_000_000), {"Content-Encoding": "deflate"}),
    "a long wait": lambda secret: (429, {"message": secret}, {"Retry-After": secret}),
}


@pytest.mark.parametrize("target", [CHANNEL, ACCOUNT], ids=["discord", "bluesky"])
@pytest.mark.parametrize("way", HOSTILE)
async def test_a_service_that_tells_the_secret_anywhere_tells_nobody(
    opened: Open, services: Services, caplog: pytest.LogCaptureFixture, way: str, target: Target
) -> None:
    workspace = opened(services.toml)
    services.hostile = HOSTILE[way]
    outcome = await send(workspace, target)
    told = f"{outcome.output}{outcome.detail}{outcome.data}{caplog.text}"
    workspace.close()
    logged = b"".join(path.read_bytes() for path in workspace.folder.rglob("*") if path.is_file())
    for secret in (TOKEN, PASSWORD):
        assert secret not in told
        assert secret.encode() not in logged
    assert (outcome.detail or "").isprintable()
    assert len(told) < 2_000
    assert len([path for path in services.asked if path.startswith(("/api", "/xrpc/com.atproto.repo."))]) == 1


@pytest.mark.parametrize("bad", ["100\n", "1/../../users/@me", "\u0661", "1?a=b", "1#", "%2e", "100\r\nX: y", ""])
def test_no_recipient_leads_elsewhere_in_the_address(opened: Open, services: Services, bad: str) -> None:
    endpoints = f'discord = {{ token_env = "BOT", url = "{services.url}/api/v10" }}\n'
    endpoints += f'bluesky = {{ handle = "bot.example.com", password_env = "APP", url = "{services.url}" }}\n'
    workspace = opened(endpoints)
    assert decide(workspace, {"type": "discord", "channel_id": bad}).stage == "schema"
    assert decide(workspace, {"type": "bluesky", "handle": f"a.example.com{bad or '/'}"}).stage == "schema"


async def test_call_that_is_given_up_leaves_no_connection(opened: Open, services: Services) -> None:
    workspace = opened(services.toml)
    services.is_hanging = True
    call = asyncio.ensure_future(send(workspace, CHANNEL))
    await asyncio.to_thread(services.hangs.wait, 5)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.to_thread(services.is_left.wait, 5)


async def test_endpoint_that_is_not_trusted_is_decided_and_never_asked(opened: Open, services: Services) -> None:
    workspace = opened(services.toml, trust=False)
    assert [problem.code for problem in workspace.problems] == ["endpoint-not-trusted"] * 2
    assert decide(workspace, CHANNEL).verdict is Verdict.ALLOW
    outcome = await send(workspace, CHANNEL)
    assert (outcome.status, outcome.code) == (Status.FAILED, "not-trusted")
    assert "trust" not in (outcome.output or "")
    workspace.trust_endpoint("discord")
    await sent(workspace, CHANNEL)
    assert (await send(workspace, ACCOUNT)).code == "not-trusted"
    write(workspace.folder, services.toml.replace('"BOT"', '"APP"'))
    workspace.reload()
    assert (await send(workspace, CHANNEL)).code == "not-trusted"
    assert len(services.asked) == 1


def test_check_trusts_one_endpoint_by_its_name_or_all(
    opened: Open, services: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(services.toml, trust=False)
    folder = str(tmp_path / "ws")
    assert main(["check", folder, "endpoints.discord", "--trust"]) == 0
    assert main(["check", folder]) == 0
    said = capsys.readouterr().err
    assert f"trusts `endpoints.discord` from now on: {services.url}/api/v10" in said
    assert said.count("endpoint-not-trusted") == 1 + 1
    assert main(["check", folder, "endpoints.user", "--trust"]) != 0
    assert main(["check", folder, "--trust"]) == 0
    assert "endpoint-not-trusted" not in capsys.readouterr().err.split("endpoints.bluesky")[-1]


def test_what_leaves_by_the_web_needs_the_capability(opened: Open, services: Services) -> None:
    workspace = opened("user = {}\n" + services.toml, net='{ NetWrite = { allowlist = ["discord.com"] } }')
    decision = decide(workspace, CHANNEL)
    assert (decision.stage, decision.code) == ("capability", "host-not-granted")
    workspace = opened("user = {}\n" + services.toml, net="")
    assert [operation for operation in ("discord", "bluesky") if operation in schema_of(workspace)] == []
    decision = decide(workspace, CHANNEL)
    assert (decision.stage, decision.code) == ("operation", "capability-not-granted")
    assert decide(workspace, USER).verdict is Verdict.ALLOW


async def test_in_a_disposable_copy_messages_are_decided_and_not_sent(opened: Open, services: Services) -> None:
    workspace = opened(INSIDE + services.toml)
    copy = workspace.sandbox()
    try:
        assert not copy.workspace.is_executable("send_message")
        for target in (USER, AGENT, CHANNEL, ACCOUNT):
            outcome = await send(copy.workspace, target)
            assert (outcome.decision.verdict, outcome.code) == (Verdict.ALLOW, "not-in-copy")
    finally:
        copy.close()
    assert services.asked == []
    assert workspace.inbox().list() == workspace.inbox("b").list() == ()


def test_command_line_prints_messages_to_the_user_and_reads_inboxes(
    opened: Open, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened().close()
    folder = str(tmp_path / "ws")
    call = ["call", folder, "--agent", "a", "--tool", "send_message", "--args"]
    assert main([*call, json.dumps({"target": USER, "content": "one\n\x1b[31mtwo"})]) == 0
    said = capsys.readouterr().out
    assert "  a: one\n  | \\u001b[31mtwo\n" in said
    assert main([*call, json.dumps({"target": USER, "content": "one"}), "--json"]) == 0
    assert [one["content"] for one in json.loads(capsys.readouterr().out)["messages"]] == ["one"]
    assert main([*call, json.dumps({"target": AGENT, "content": "for b"})]) == 0
    capsys.readouterr()
    assert main(["inbox", folder, "--agent", "b", "--take", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["from"], row["content"]) == ("a", "for b")
    assert main(["inbox", folder, "--agent", "b"]) == 0
    assert main(["inbox", folder]) == 0
    assert capsys.readouterr().out == ""
    assert main(["inbox", folder, "--agent", "nobody"]) == 2


@pytest.mark.parametrize(
    ("endpoints", "words"),
    [
        ("fax = {}\n", "unknown key `fax` in `endpoints`"),
        ("user = true\n", "`user` must be a table"),
        ("user = { name = 'x' }\n", "unknown key `name`"),
        ("agent = { agents = ['zz'] }\n", "no agent is named `zz`"),
        ("agent = { agents = [] }\n", "names one or more"),
        ("group = {}\n", "names groups"),
        ("group = { crew = ['b', 'b'] }\n", "each once"),
        ("discord = {}\n", "needs `token_env`"),
        ("discord = { token_env = 'not a name' }\n", "never the secret itself"),
        ("discord = { token_env = 'A', channels = ['general'] }\n", "is a number"),
        ("discord = { token_env = 'A', url = 'http://discord.com/api' }\n", "begins with `https://`"),
        ("discord = { token_env = 'A', url = 'https://x/?a=b' }\n", "is the address of a server"),
        ("bluesky = { password_env = 'A' }\n", "needs `handle`"),
        ("bluesky = { handle = '@bot', password_env = 'A' }\n", "is written `name.example.com`"),
    ],
)
def test_mistakes_in_endpoints_are_told(opened: Open, endpoints: str, words: str) -> None:
    with pytest.raises(PolicyInvalid) as error:
        opened(endpoints)
    assert any(words in str(problem) for problem in error.value.problems), error.value.problems
