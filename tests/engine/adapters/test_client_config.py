"""The configuration files of MCP clients: read as catalogs, and with the gateway in them."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.adapters.client_config import (
    CLIENTS,
    Surroundings,
    catalog_id,
    client_named,
    read_servers,
)
from gatewright.adapters.client_notation import plain_entry
from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import JsonValue, drop, members, put, read_json
from gatewright.policy.document import Catalog, CatalogType
from gatewright.workspace.client_file import put_gateway

HOME = Path("/home/mo")
AROUND = Surroundings(HOME)
PROJECT = Surroundings(HOME, HOME / "work" / "site")
COMMAND = ("/opt/bin/gatewright", "serve", "/home/mo/policy.toml", "--agent", "desk")

CLAUDE_DESKTOP = """{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/mo/notes"]
    },
    "git host": {
      "command": "docker",
      "args": ["run", "-i", "--rm", "-e", "GIT_TOKEN", "example/git-server"],
      "env": {
        "GIT_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345"
      }
    }
  }
}
"""
CLAUDE_CODE = """{
  "mcpServers": {
    "tickets": {
      "type": "http",
      "url": "https://tickets.example.com/mcp",
      "headers": { "Authorization": "Bearer s3cr3t-value-of-mo" }
    },
    "time": { "type": "stdio", "command": "${HOME}/bin/time-server", "args": ["--level", "${LEVEL:-info}"], "env": {} }
  }
}
"""
VS_CODE = """\ufeff{
  // what we all use
  "inputs": [
    { "type": "promptString", "id": "key", "description": "Key of the weather service", "password": true },
  ],
  "servers": {
    "weather": {
      "type": "stdio",
      "command": "python",
      "args": ["${workspaceFolder}/tools/weather.py", "--quiet"], // ours
      "env": { "WEATHER_KEY": "${input:key}" },
      "envFile": "${workspaceFolder}/.env",
      "dev": { "watch": "tools/*.py" },
    },
    /* is switched on
       by hand */
    "docs": { "type": "sse", "url": "https://docs.example.com/sse", },
  },
}
"""
CURSOR = r"""{
  "mcpServers": {
    "notes": {
      "command": "C:\\Program Files\\Notes\\server.exe",
      "args": ["--root", "C:\\Users\\Mo\\Notes"],
      "disabled": true
    },
    "hub": { "url": "https://hub.example.com/mcp", "headers": { "X-Key": "${env:HUB_KEY}" }, "timeout": 30 }
  }
}
"""
WINDSURF = """{
\t"mcpServers": {
\t\t"remote": { "serverUrl": "https://remote.example.com/mcp", "headers": { "API_KEY": "abc" }, "disabledTools": [] },
\t\t"db": { "command": "db-server", "args": ["postgresql://mo:hunter22@db.example.com/main"] }
\t}
}
"""
ZED = """// Zed settings
{
  "theme": "One Dark",
  "context_servers": {
    "old": {
      "command": { "path": "old-server", "args": ["--stdio"], "env": { "OLD_KEY": "one" } },
      "settings": {},
    },
    "extension": { "source": "extension", "enabled": true, "settings": {} },
    "off": { "source": "custom", "enabled": false, "command": "off-server", "args": [], "env": {} },
  },
  "vim_mode": false,
}
"""
GEMINI = """{
  "theme": "x", // ours
  "mcpServers": {
    "db": { "command": "db-server", "cwd": "/srv/db", "env": { "DB_KEY": "$DB" }, "trust": true },
    "docs": { "httpUrl": "https://docs.example.com/mcp", "headers": { "X-Key": "abc" } },
  }
}
"""
AMP = """{
  "amp.notifications.enabled": true,
  "amp.mcpServers": {
    "browser": { "command": "npx", "args": ["-y", "browser-server"] },
    "hub": {
      "command": "npx", "args": ["mcp-remote", "https://h.example.com", "-H", "A:${AUTH}"], "env": { "AUTH": "B x" }
    }
  }
}
"""
OPENCODE = """{
  "$schema": "https://opencode.ai/config.json",
  // servers of the team
  "mcp": {
    "local": { "type": "local", "command": ["bun", "x", "my-server"], "environment": { "MY_KEY": "one" } },
    "far": { "type": "remote", "url": "https://far.example.com/mcp", "headers": { "Authorization": "{env:FAR_KEY}" } },
    "off": { "type": "local", "command": ["off-server"], "enabled": false }
  },
  "permission": { "edit": "ask" }
}
"""
CODEX = """# mine
model = "x"   # the large one

[mcp_servers.tickets]
command = "npx"  # from the registry
args = ["-y", "tickets"]
env_vars = ["TICKETS_KEY"]
startup_timeout_sec = 20
[mcp_servers.tickets.env]
LEVEL = "info"

# a remote one
[mcp_servers."far away"]
url = "https://far.example.com/mcp"
bearer_token_env_var = "FAR_TOKEN"
http_headers = { "X-Team" = "abc" }
env_http_headers = { "X-Key" = "FAR_KEY" }
enabled = false

[tui]
theme = "dark"
"""


def mcp(catalog_id_: str, **keys: object) -> Catalog:
    return Catalog(catalog_id_, CatalogType.MCP, **keys)  # pyright: ignore[reportArgumentType]


WANTED = {
    "claude-desktop": (
        CLAUDE_DESKTOP,
        AROUND,
        (
            mcp("files", command="npx", args=("-y", "@modelcontextprotocol/server-filesystem", "/home/mo/notes")),
            mcp(
                "git-host",
                command="docker",
                args=("run", "-i", "--rm", "-e", "GIT_TOKEN", "example/git-server"),
                env=("GIT_TOKEN",),
            ),
        ),
    ),
    "claude-code": (
        CLAUDE_CODE,
        AROUND,
        (
            mcp(
                "tickets", url="https://tickets.example.com/mcp", headers_env={"Authorization": "TICKETS_AUTHORIZATION"}
            ),
            mcp("time", command="/home/mo/bin/time-server", args=("--level", "info")),
        ),
    ),
    "vscode": (
        VS_CODE,
        PROJECT,
        (
            mcp(
                "weather",
                command="python",
                args=("/home/mo/work/site/tools/weather.py", "--quiet"),
                env=("WEATHER_KEY",),
                cwd="/home/mo/work/site",
            ),
            mcp("docs", url="https://docs.example.com/sse"),
        ),
    ),
    "cursor": (
        CURSOR,
        AROUND,
        (
            mcp("notes", command=r"C:\Program Files\Notes\server.exe", args=("--root", r"C:\Users\Mo\Notes")),
            mcp("hub", url="https://hub.example.com/mcp", headers_env={"X-Key": "HUB_KEY"}),
        ),
    ),
    "windsurf": (
        WINDSURF,
        AROUND,
        (mcp("remote", url="https://remote.example.com/mcp", headers_env={"API_KEY": "REMOTE_API_KEY"}), None),
    ),
    "zed": (
        ZED,
        AROUND,
        (mcp("old", command="old-server", args=("--stdio",), env=("OLD_KEY",)), None, mcp("off", command="off-server")),
    ),
    "gemini-cli": (
        GEMINI,
        AROUND,
        (
            mcp("db", command="db-server", env=("DB_KEY",), cwd="/srv/db"),
            mcp("docs", url="https://docs.example.com/mcp", headers_env={"X-Key": "DOCS_X_KEY"}),
        ),
    ),
    "amp": (
        AMP,
        AROUND,
        (
            mcp("browser", command="npx", args=("-y", "browser-server")),
            mcp(
                "hub",
                command="npx",
                args=("mcp-remote", "https://h.example.com", "-H", "A:${AUTH}"),
                env=("AUTH",),
            ),
        ),
    ),
    "opencode": (
        OPENCODE,
        AROUND,
        (
            mcp("local", command="bun", args=("x", "my-server"), env=("MY_KEY",)),
            mcp("far", url="https://far.example.com/mcp", headers_env={"Authorization": "FAR_KEY"}),
            mcp("off", command="off-server"),
        ),
    ),
    "codex": (
        CODEX,
        AROUND,
        (
            mcp("tickets", command="npx", args=("-y", "tickets"), env=("LEVEL", "TICKETS_KEY")),
            mcp(
                "far-away",
                url="https://far.example.com/mcp",
                headers_env={
                    "X-Team": "FAR_AWAY_X_TEAM",
                    "X-Key": "FAR_KEY",
                    "Authorization": "FAR_AWAY_AUTHORIZATION",
                },
            ),
        ),
    ),
}


@pytest.mark.parametrize("client_id", WANTED)
def test_servers_of_each_client_are_read_as_catalogs(client_id: str) -> None:
    text, around, wanted = WANTED[client_id]
    assert tuple(server.catalog for server in read_servers(text, around)) == wanted


def test_every_client_of_the_table_has_a_sample_and_a_file_on_each_platform() -> None:
    assert {client.client_id for client in CLIENTS} == WANTED.keys()
    for client in CLIENTS:
        for platform in ("linux", "darwin", "win32"):
            assert client.user_file(platform, HOME, {}).is_relative_to(HOME)
    assert client_named("zed").user_file("linux", HOME, {"XDG_CONFIG_HOME": "/cfg"}) == Path("/cfg/zed/settings.json")
    with pytest.raises(WorkspaceError, match="no client `emacs`; known are claude-desktop"):
        client_named("emacs")


def test_switched_off_servers_are_marked_as_that() -> None:
    assert [server.is_disabled for server in read_servers(CURSOR, AROUND)] == [True, False]
    assert [server.is_disabled for server in read_servers(ZED, AROUND)] == [False, False, True]


def test_no_value_of_a_variable_or_header_leaves_the_file() -> None:
    for text, around, _ in WANTED.values():
        said = repr(read_servers(text, around))
        for secret in ("ghp_0123", "s3cr3t", "hunter22", "'one'", "'abc'"):
            assert secret not in said


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"command": "s", "args": ["--api-key", "f7a9c01b2d3e4f5a6b7c8d9e0f1a2b3c"]}, "argument 2 looks like a secret"),
        ({"command": "s", "args": ["--token=abcdefgh12345678"]}, "argument 1 looks like a secret"),
        ({"command": "s", "args": ["postgresql://mo:hunter22@db/x"]}, "argument 1 looks like a secret"),
        ({"url": "https://mo:hunter22@hub.example.com/mcp"}, "its address holds a secret"),
        ({"command": "s", "args": ["${input:folder}"]}, "argument 1 needs `${input:folder}`"),
        ({"command": "${workspaceFolder}/s"}, "the command needs `${workspaceFolder}`"),
        ({"command": "s", "args": "a b"}, "`args`: input should be a valid list"),
        ({"command": "s", "args": ["a", 7]}, "`args.1`: input should be a valid string"),
        ({"command": ["s", 7]}, "`args.0`"),
        ({"command": []}, "`command` may not be blank"),
        ({"args": []}, "neither a `command` nor a `url`"),
        ({"command": "s\x07"}, "`command` may not hold characters that cannot be seen"),
        ({"command": "s\ud800"}, "`command` may not hold characters that cannot be seen"),
        ({"command": " "}, "`command` may not be blank"),
        ({"command": "s", "args": ["a\u202eb"]}, "an entry of `args` may not hold characters that cannot be seen"),
        ({"command": "s", "cwd": "a\n"}, "`cwd` may not hold characters that cannot be seen"),
        ({"url": "ftp://hub.example.com/"}, "`url` is the address of a server"),
        ({"url": "https://mo@hub.example.com/"}, "`url` may not hold a user or a password"),
        ({"url": "https://hub.example.com/\n"}, "`url`"),
        ({"url": "https://hub.example.com/", "headers": {"A\r\nB": "x"}}, "is no name of a header"),
        ("s", "it is not an object"),
        (None, "it is not an object"),
    ],
)
def test_server_that_makes_no_catalog_says_why_and_the_others_are_read(entry: object, why: str) -> None:
    text = json.dumps({"mcpServers": {"bad": entry, "good": {"command": "good"}}})
    bad, good = read_servers(text, AROUND)
    assert bad.catalog is None
    assert why in bad.refusal
    assert "hunter22" not in bad.refusal
    assert good.catalog == mcp("good", command="good")


def test_control_character_as_it_is_spoils_its_own_server_alone() -> None:
    bad, good = read_servers('{"mcpServers": {"bad": {"command": "s\x07"}, "good": {"command": "good"}}}', AROUND)
    assert "cannot be seen" in bad.refusal
    assert good.catalog == mcp("good", command="good")


def test_what_is_not_taken_is_said() -> None:
    weather, docs = read_servers(VS_CODE, PROJECT)
    assert weather.notes == (
        "the values of `WEATHER_KEY` stay in the client's file: the policy has only the names",
        "the variables of its `envFile` do not reach the server: put their names into `env`",
    )
    assert docs.notes == ("it says that it speaks the older SSE; Gatewright uses streamable HTTP at the same address",)
    assert "not taken: `timeout`" in read_servers(CURSOR, AROUND)[1].notes
    [time] = [server for server in read_servers(CLAUDE_CODE, AROUND) if server.server_id == "time"]
    assert time.notes == ("argument 2: `${LEVEL:-info}` counts as its default",)


def test_name_that_stands_twice_counts_as_the_last_one_and_says_so() -> None:
    [server] = read_servers('{"mcpServers": {"a": {"command": "one"}, "a": {"command": "two"}}}', AROUND)
    assert server.catalog == mcp("a", command="two")
    assert server.notes == ("stands more than once in the file; the last one counts",)


def test_ids_of_catalogs_are_fit_for_files_and_never_equal() -> None:
    assert catalog_id("Git Host (new)", ()) == "Git-Host-new"
    assert catalog_id("git", ("Git", "git-2")) == "git-3"
    assert catalog_id("con", ()) == "server-con"
    assert catalog_id("\u65e5\u672c", ()) == "server"


@pytest.mark.parametrize(
    "text",
    [
        '"git": { "command": "git-server" },',
        '{ "git": { "command": "git-server" } }',
        '{ "mcp": { "servers": { "git": { "command": "git-server" } } } }',
    ],
)
def test_piece_of_a_configuration_is_read_too(text: str) -> None:
    assert [server.catalog for server in read_servers(text, AROUND)] == [mcp("git", command="git-server")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is not JSON"),
        ("{", "line 1 column 1"),
        ('{\n  "mcpServers": {"a"}\n}', "line 2 column 21"),
        ('{"mcpServers": []}', "names no MCP servers"),
        ('{"theme": "dark"}', "names no MCP servers"),
        ('{"mcpServers": {"a": NaN}}', "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
    ],
)
def test_text_without_servers_is_refused_with_the_place(text: str, why: str) -> None:
    with pytest.raises(WorkspaceError, match=re.escape(why)):
        read_servers(text, AROUND)


@pytest.mark.parametrize("client_id", WANTED)
def test_gateway_takes_the_place_of_the_servers_that_the_policy_has(client_id: str) -> None:
    text, around, wanted = WANTED[client_id]
    client = client_named(client_id)
    catalogs = [catalog for catalog in wanted if catalog is not None]
    edit = put_gateway(text, client, catalogs, COMMAND, around)

    before, after = client.notation.value(text), client.notation.value(edit.text)
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    entries = after[client.key]
    assert isinstance(entries, dict)
    gateway = plain_entry(entries["gatewright"])
    assert isinstance(gateway, dict)
    assert (gateway["command"], gateway["args"]) == (COMMAND[0], list(COMMAND[1:]))
    refused = {server.server_id for server in read_servers(text, around) if server.catalog is None}
    assert entries.keys() == {*refused, "gatewright"}
    assert edit.direct.keys() == refused
    assert {key: before[key] for key in before if key != client.key} == {
        key: after[key] for key in after if key != client.key
    }
    again = put_gateway(edit.text, client, catalogs, COMMAND, around)
    assert (again.text, again.difference) == (edit.text, "")


TICKETS = mcp("tickets", command="npx", env=("LEVEL", "TICKETS_KEY"))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_edit_of_toml_changes_the_tables_of_the_servers_alone(newline: str) -> None:
    text = CODEX.replace("\n", newline)
    edit = put_gateway(text, client_named("codex"), [TICKETS], COMMAND, AROUND)
    entry = f"[mcp_servers.gatewright]\ncommand = {json.dumps(COMMAND[0])}\nargs = {json.dumps(list(COMMAND[1:]))}\n"
    entry += 'env = { LEVEL = "info" }\nenv_vars = ["TICKETS_KEY"]\n'
    start, end = CODEX.index("[mcp_servers.tickets]"), CODEX.index("\n# a remote one")
    assert edit.text == f"{CODEX[:start]}{CODEX[end:]}\n{entry}".replace("\n", newline)
    assert "info" not in edit.difference
    assert "abc" not in edit.difference
    assert edit.direct == {"far away": "the policy has no such catalog"}


def test_toml_in_other_forms_is_edited_right_or_refused() -> None:
    catalogs = [mcp("a", command="x")]
    edit = put_gateway("[mcp_servers]\na.command = 'x'\n", client_named("codex"), catalogs, COMMAND, AROUND)
    assert [server.server_id for server in read_servers(edit.text, AROUND)] == ["gatewright"]
    for text, why in (("mcp_servers = { a = { command = 'x' } }", "write each server"), ("x = [", "it is not TOML")):
        with pytest.raises(WorkspaceError, match=why):
            put_gateway(text, client_named("codex"), catalogs, COMMAND, AROUND)


def test_edit_of_a_clients_file_keeps_comments_and_lines_that_it_is_not_about() -> None:
    edit = put_gateway(VS_CODE, client_named("vscode"), [mcp("weather", command="x")], COMMAND, PROJECT)
    assert (
        edit.text
        == """\ufeff{
  // what we all use
  "inputs": [
    { "type": "promptString", "id": "key", "description": "Key of the weather service", "password": true },
  ],
  "servers": {
    /* is switched on
       by hand */
    "docs": { "type": "sse", "url": "https://docs.example.com/sse", },
    "gatewright": {
      "type": "stdio",
      "command": "/opt/bin/gatewright",
      "args": [
        "serve",
        "/home/mo/policy.toml",
        "--agent",
        "desk"
      ]
    }
  },
}
"""
    )
    assert edit.direct == {"docs": "the policy has no such catalog"}


def test_gateway_gets_the_variables_of_the_servers_and_the_difference_shows_no_value() -> None:
    catalogs = [server.catalog for server in read_servers(CLAUDE_DESKTOP, AROUND) if server.catalog]
    edit = put_gateway(CLAUDE_DESKTOP, client_named("claude-desktop"), catalogs, COMMAND, AROUND)
    entry = json.loads(edit.text)["mcpServers"]["gatewright"]
    assert entry["env"] == {"GIT_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}
    assert edit.handed == ("GIT_TOKEN",)
    assert "ghp_" not in edit.difference
    assert '"GIT_TOKEN": "..."' in edit.difference
    headers = [server.catalog for server in read_servers(CLAUDE_CODE, AROUND) if server.catalog]
    edit = put_gateway(CLAUDE_CODE, client_named("claude-code"), headers, COMMAND, AROUND)
    assert json.loads(edit.text)["mcpServers"]["gatewright"]["env"] == {
        "TICKETS_AUTHORIZATION": "Bearer s3cr3t-value-of-mo"
    }
    assert "s3cr3t" not in edit.difference


def test_server_whose_variable_has_another_value_elsewhere_stays_direct() -> None:
    text = json.dumps({"mcpServers": {name: {"command": name, "env": {"API_KEY": name}} for name in ("a", "b")}})
    catalogs = [mcp(name, command=name, env=("API_KEY",)) for name in ("a", "b")]
    edit = put_gateway(text, client_named("cursor"), catalogs, COMMAND, AROUND)
    assert edit.replaced == ("a",)
    assert edit.direct == {"b": "`API_KEY` has another value for `a`: the gateway has one environment"}
    assert json.loads(edit.text)["mcpServers"]["gatewright"]["env"] == {"API_KEY": "a"}


def test_other_policy_takes_the_place_of_the_first_and_keeps_what_it_was_handed() -> None:
    catalogs = [server.catalog for server in read_servers(CLAUDE_DESKTOP, AROUND) if server.catalog]
    first = put_gateway(CLAUDE_DESKTOP, client_named("claude-desktop"), catalogs, COMMAND, AROUND)
    other = ("/opt/bin/gatewright", "serve", "/srv/other.toml", "--agent", "night")
    second = put_gateway(first.text, client_named("claude-desktop"), catalogs, other, AROUND)
    [entry] = json.loads(second.text)["mcpServers"].values()
    assert entry["args"][1] == "/srv/other.toml"
    assert entry["env"].keys() == {"GIT_TOKEN"}


@pytest.mark.parametrize("text", ["", "{}", "{\r\n}\r\n", '{"a": 1}', "// empty\n{ /* nothing */ }\n"])
def test_gateway_comes_into_a_file_without_servers(text: str) -> None:
    edit = put_gateway(text, client_named("zed"), [], COMMAND, AROUND)
    value = read_json(edit.text)
    assert isinstance(value, dict)
    assert value["context_servers"] == {
        "gatewright": {"source": "custom", "command": COMMAND[0], "args": list(COMMAND[1:])}
    }
    assert ("// empty" in edit.text, "nothing" in edit.text) == ("// empty" in text, "nothing" in text)
    assert "\n" not in edit.text.replace("\r\n", "") or "\r\n" not in text


VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('ab"\\/,{}[]*\n', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc/,"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)
COMMENTS = ('// x, } " \n', '/* , ] " \n */')
GAPS = st.sampled_from(["", " ", "\n  ", "\r\n\t", *COMMENTS])


def written(value: JsonValue, data: st.DataObject) -> str:
    """JSON with gaps of every sort between its parts, and trailing commas."""
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value)
    parts = (
        [f"{json.dumps(key)}{data.draw(GAPS)}:{data.draw(GAPS)}{written(one, data)}" for key, one in value.items()]
        if isinstance(value, dict)
        else [written(one, data) for one in value]
    )
    inside = ",".join(f"{data.draw(GAPS)}{part}{data.draw(GAPS)}" for part in parts)
    trailing = data.draw(st.sampled_from(["", ","])) + data.draw(GAPS)
    return f"{{{inside}{trailing}}}" if isinstance(value, dict) else f"[{inside}{trailing}]"


@given(st.data(), OBJECTS, st.sampled_from("abcde"), VALUES)
def test_edits_of_json_with_comments_do_what_they_say_and_keep_every_comment(
    data: st.DataObject, value: dict[str, JsonValue], key: str, new: JsonValue
) -> None:
    text = written({"top": value}, data)
    assert read_json(text) == {"top": value}
    assert [member.key for member in members(text, ("top",))] == list(value)
    changed = put(text, ("top",), key, new)
    assert read_json(changed) == {"top": {**value, key: new}}
    assert read_json(drop(text, ("top",), key)) == {"top": {one: v for one, v in value.items() if one != key}}
    if key not in value:
        assert [changed.count(mark.strip()) for mark in COMMENTS] == [text.count(mark.strip()) for mark in COMMENTS]


def test_values_for_a_server_are_texts_without_empty_ones_and_those_that_only_the_client_can_fill_in() -> None:
    env = {"KEY": "very-secret", "PORT": 8080, "DEBUG": True, "EMPTY": "", "NONE": None, "ASKED": "${input:token}"}
    (server,) = read_servers(json.dumps({"mcpServers": {"a": {"command": "x", "env": env}}}), Surroundings(Path("/h")))
    assert dict(server.values) == {"KEY": "very-secret", "PORT": "8080", "DEBUG": "true"}
    assert "very-secret" not in repr(server)


TOKENS = st.one_of(
    st.from_regex(r"ghp_[A-Za-z0-9]{36}", fullmatch=True),
    st.from_regex(r"AKIA[0-9A-Z]{16}", fullmatch=True),
    st.from_regex(r"glpat-[A-Za-z0-9]{20}", fullmatch=True),
)
PASSWORDS = st.from_regex(r"[A-Z][a-z]{3}[0-9]{3}[!$|;&'\" ]?[a-z]{4}", fullmatch=True)
PLACES_OF_TOKENS: dict[str, Callable[[str], JsonValue]] = {
    "command": lambda token: {"command": f"/opt/{token}/s"},
    "argument": lambda token: {"command": "s", "args": ["-v", token]},
    "glued to a flag": lambda token: {"command": "s", "args": ["run", f"-t{token}"]},
    "default": lambda token: {"command": "s", "args": ["--token", f"${{TOKEN:-{token}}}"]},
    "half a default": lambda token: {"command": "s", "args": [f"${{A:-{token[:4]}}}{token[4:]}"]},
    "program of Zed": lambda token: {"command": {"path": "s", "args": [token]}},
    "variable": lambda token: {"command": "s", "env": {token: "x"}},
    "variable of Zed": lambda token: {"command": {"path": "s", "env": {token: "x"}}},
    "cwd": lambda token: {"command": "s", "cwd": f"/srv/{token}"},
    "default in cwd": lambda token: {"command": "s", "cwd": f"${{DIR:-{token}}}"},
    "address": lambda token: {"url": f"https://hub.example.com/{token}/mcp"},
    "default in an address": lambda token: {"url": f"https://hub.example.com/${{KEY:-{token}}}"},
    "header": lambda token: {"url": "https://hub.example.com/", "headers": {token: "x"}},
    "variable of a header": lambda token: {
        "url": "https://hub.example.com/",
        "headers": {"A": f"${{{token.replace('-', '_')}}}"},
    },
    "key": lambda token: {"command": "s", token: "x"},
    "bad variable": lambda token: {"command": "s", "env": {token: ["x"]}},
    "list of words": lambda token: {"command": ["s", "-v", token]},
    "environment": lambda token: {"command": ["s"], "environment": {token: "x"}},
    "variable to pass": lambda token: {"command": "s", "env_vars": [token]},
    "variable of a token": lambda token: {"url": "https://hub.example.com/", "bearer_token_env_var": token},
    "header of Codex": lambda token: {"url": "https://hub.example.com/", "http_headers": {token: "x"}},
    "placeholder": lambda token: {"command": "s", "args": [f"${{input:{token}}}"]},
}
"""Places of an entry, each with an entry that has a token there."""


@pytest.mark.parametrize("place", PLACES_OF_TOKENS)
@given(token=TOKENS)
def test_no_token_is_taken_out_of_any_place_of_an_entry(place: str, token: str) -> None:
    [server] = read_servers(json.dumps({"mcpServers": {"a": PLACES_OF_TOKENS[place](token)}}), PROJECT)

    assert token not in repr(server)
    assert token.casefold() not in repr(server.catalog).casefold()


@given(token=TOKENS)
def test_no_token_is_taken_out_of_the_name_of_a_server(token: str) -> None:
    [server] = read_servers(json.dumps({"mcpServers": {f"git {token}": {"command": "s"}}}), AROUND)

    assert server.catalog is None
    assert token not in server.refusal


@given(
    st.sampled_from(["mysql", "/usr/bin/mysqldump", "mariadb", "mysqladmin"]),
    st.lists(st.sampled_from(["-u", "root", "--host", "db", "a b", "say 'x;y'", "notes"]), max_size=4),
    PASSWORDS,
    st.lists(st.sampled_from(["shop", "--table"]), max_size=2),
    st.booleans(),
)
def test_password_that_only_the_whole_command_shows_is_not_taken(
    program: str, before: list[str], password: str, after: list[str], is_run: bool
) -> None:
    command, *words = [*(["docker", "exec", "db"] if is_run else []), program, *before, f"-p{password}", *after]
    [server] = read_servers(json.dumps({"mcpServers": {"a": {"command": command, "args": words}}}), AROUND)

    assert server.catalog is None
    assert password not in server.refusal


@given(PASSWORDS, st.sampled_from(["sshpass -p {}", "sshpass -p{}", "curl -u mo:{}", "curl -umo:{}", "s --user mo:{}"]))
def test_password_that_a_flag_of_its_program_takes_is_not_taken(password: str, command: str) -> None:
    first, *rest = [word.format(password) for word in command.split()]
    [server] = read_servers(json.dumps({"mcpServers": {"a": {"command": first, "args": rest}}}), AROUND)

    assert server.catalog is None
    assert password not in server.refusal


@pytest.mark.parametrize(
    "words",
    [
        ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/home/mo/notes"],
        ["docker", "run", "-it", "--rm", "-p8080:80", "-u1000:1000", "-e", "GIT_TOKEN", "-v/srv:/srv", "example/git"],
        ["mysql", "-u", "root", "-p", "shop"],
        ["java", "-Xmx512m", "-Dfile.encoding=UTF-8", "-jar", "server.jar"],
        ["uv", "--directory", "${userHome}/work", "run", "server.py", "--port", "${PORT:-8080}"],
        ["python", "-mserver", "--token-file", "/run/secrets/token"],
    ],
)
def test_ordinary_commands_are_taken(words: list[str]) -> None:
    [server] = read_servers(json.dumps({"mcpServers": {"a": {"command": words[0], "args": words[1:]}}}), AROUND)

    assert server.refusal == ""
