"""The JSON Schema of the policy file says the same as its reader, as far as a schema can."""

from __future__ import annotations

import ast
import copy
import json
import tomllib
from collections.abc import Iterator
from typing import Any, cast

import pytest
from jsonschema_rs import Draft7Validator

from gatewright.base.errors import Problem
from gatewright.policyfile import parse_policy, policy_schema
from tests.engine.policyfile.catalog import known_with
from tests.support.checkout import ROOT

SHAPE = frozenset({"unknown-key", "wrong-type", "missing-key", "key-of-other-type"})
"""Problems that are about the shape alone: which keys there are, and values of which type."""
NAMES = frozenset({"unknown-tool", "unknown-operation", "unknown-agent", "unknown-source"})
"""Problems that only the tools, agents and sources show which there are."""
WHOLE = """\
gatewright = 1
name = "n"
description = "d"
[defaults]
unlisted_tools = "deny"
new_tools = "hold"
max_output_bytes = 10
timeout = "2s"
approvals = { read_only = "ask" }
check_formats = true
[agents.a]
description = "d"
tools = ["file"]
sources = ["s"]
user_id = "u"
approvals = { "file.read" = "deny" }
capabilities = ["ClockRead", { NetRead = { allowlist = ["a.org"] } }, { Exec = { cpu_limit = 2, mem_limit = "1MB" } },
  { WasmExec = { fuel = 2, memory = 9 } }, { FsRead = { prefixes = ["n"] } }, { EnvRead = { vars = ["A"] } }]
[[agents.a.tool_rules]]
tool_name = "file"
rule_type = { RateLimit = { calls = 3, per = { secs = 3 } } }
conditions = ["operation:read"]
priority = 4
id = "i"
metadata = { any = [1] }
[[agents.a.tool_rules]]
tool_name = "file"
rule_type = { type = "MaxCalls", value = 3 }
[[agents.a.tool_rules]]
tool_name = "file"
rule_type = { ArgumentConstraints = { path = { maxLength = 3 }, required = ["path"] } }
[[agents.a.tool_rules]]
tool_name = "file"
rule_type = { type = "RequiresConsent", value = { scope = "s" } }
[[sources]]
id = "s"
type = "file"
base_path = "s"
default_permission = "append"
watch = true
max_file_bytes = 9
follow_symlinks = false
permission_rules = [{ pattern = "*", permission = "none", comment = "c" }]
required_tools = [{ tool_name = "file", rule_type = { AllowedOperations = ["read"] } }]
[[sources]]
id = "t"
type = "folder_changes"
base_path = "s"
[[catalogs]]
id = "h"
type = "host"
manifest = "h.json"
trusted = true
prefix = "p"
[[catalogs]]
id = "c"
type = "mcp"
command = "c"
args = ["x"]
env = ["E"]
cwd = "d"
confine = "policy"
places = { s = "read", "./d" = "snapshot" }
[[catalogs]]
id = "u"
type = "mcp"
url = "https://a.org/x"
headers_env = { H = "V" }
[tools.file]
timeout = 3
extra_arguments = "deny"
operation_tiers = { read = "read_only" }
safety_tier = "privileged"
scrub = false
trust = "outside"
description = "d"
[policy]
default = "ask"
[[policy.rules]]
name = "r"
effect = "deny"
agents = ["a"]
tools = ["file"]
operations = ["read"]
when = { properties = { path = { const = "x" } } }
times = { hours = "08:00-18:00", days = ["mon"], zone = "UTC" }
message = "m"
[workspace]
roots = { shared = "a", tmp = "b", vault = "c" }
questions = { wait = "2h", remind = "1h", answer_by = ["mailto:a@b.org", "slack:A"], link_base = "https://a.org/b" }
shell = { backend = "host", allow = ["ls"], deny = ["rm"], allow_substitution = false, confine = "policy" }
[workspace.web]
allow_private = true
search = ["duckduckgo", { engine = "google", api_key_env = "A", engine_id_env = "B" }]
[workspace.endpoints]
user = {}
agent = { agents = ["a"] }
group = { g = ["a"] }
discord = { token_env = "T", channels = ["1"], url = "https://a.org" }
bluesky = { handle = "a.org", password_env = "P", handles = ["b.org"], url = "https://a.org" }
"""
KNOWN = known_with()


@pytest.fixture(scope="module")
def schema() -> Draft7Validator:
    return Draft7Validator(policy_schema())


def problems(text: str) -> list[Problem]:
    return [one for one in parse_policy(text, file="policy.toml", known=KNOWN).problems if one.severity == "error"]


def policies_of_the_tests() -> Iterator[tuple[str, str]]:
    """Every text in the tests, the demo and the documents that says it is a policy."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        source = path.read_text("utf-8")
        if "gatewright = 1" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "gatewright = 1\n" in node.value:
                yield str(path), node.value
    for folder in ("tests", "resources"):
        for path in sorted((ROOT / folder).rglob("*.toml")):
            yield str(path), path.read_text("utf-8")


def test_published_schema_changes_only_on_purpose() -> None:
    """`gatewright policy-schema > tests/golden/policy-schema.json` after a change that is meant."""
    published = (ROOT / "tests/golden/policy-schema.json").read_text("utf-8")

    assert policy_schema() == json.loads(published)


def test_every_policy_of_the_tests_and_the_demo_fits_exactly_when_the_reader_takes_its_shape(
    schema: Draft7Validator,
) -> None:
    fit, refused = 0, 0
    for path, text in policies_of_the_tests():
        try:
            plain = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
        if "gatewright" not in plain:
            continue
        found = problems(text)
        if all(one.code in NAMES for one in found):
            assert schema.is_valid(plain), (path, text, [str(error) for error in schema.iter_errors(plain)][:3])
            fit += 1
        elif any(one.code in SHAPE for one in found):
            assert not schema.is_valid(plain), (path, text, [str(one) for one in found])
            refused += 1
    assert fit > 100
    assert refused >= 4


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """All that is in the value, by path."""
    if path:
        yield path, value
    if isinstance(value, dict | list):
        held = cast("dict[str, object] | list[object]", value)
        for step, inner in held.items() if isinstance(held, dict) else enumerate(held):
            yield from places(inner, (*path, step))


def changed(plain: dict[str, Any], path: tuple[str | int, ...], how: str) -> dict[str, Any]:
    """A copy with the value at ``path`` of another type, without it, or with a key in it that nobody knows."""
    *above, last = path
    held: Any = (found := copy.deepcopy(plain))
    for step in above:
        held = held[step]
    if how == "remove":
        del held[last]
    elif how == "add":
        held[last]["nobody"] = 1
    else:
        held[last] = {"x": [1]} if isinstance(held[last], str | int | list) else "text"
    return found


@pytest.mark.parametrize("how", ["type", "remove", "add"])
def test_a_change_anywhere_is_refused_by_both_or_by_neither(schema: Draft7Validator, how: str) -> None:
    plain = tomllib.loads(WHOLE)
    assert schema.is_valid(plain), [str(error) for error in schema.iter_errors(plain)][:3]
    refused = 0
    for path, value in places(plain):
        if isinstance(path[-1], int) if how == "type" else how == "add" and not isinstance(value, dict):
            continue
        found = changed(plain, path, how)
        said = problems(as_toml(found))
        by_reader = any(one.code in SHAPE for one in said)
        by_schema = [str(error) for error in schema.iter_errors(found)]
        assert by_schema or not by_reader, (how, path, [str(one) for one in said])
        assert said or not by_schema, (how, path, by_schema)
        refused += by_reader
    assert refused > 15


def as_toml(plain: dict[str, Any]) -> str:
    """TOML with every value in its own line, as inline tables."""
    return "".join(f"{json.dumps(key)} = {inline(value)}\n" for key, value in plain.items())


def inline(value: object) -> str:
    match value:
        case dict():
            held = cast("dict[str, object]", value)
            return f"{{{', '.join(f'{json.dumps(key)} = {inline(one)}' for key, one in held.items())}}}"
        case list():
            return f"[{', '.join(map(inline, cast('list[object]', value)))}]"
        case _:
            return json.dumps(value)


def test_every_key_says_what_it_is_for() -> None:
    silent = [path for path, shape in keys(policy_schema()) if "description" not in shape]
    assert [path for path in silent if path[-1] not in {"type", "engine", "secs", "nanos"}] == []


def keys(shape: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The keys of tables by path; the values of kinds and capabilities are told on the page of the policy."""
    for name, inner in shape.get("properties", {}).items():
        yield (*path, name), inner
        if name not in {"rule_type", "capabilities"}:
            yield from keys(inner, (*path, name))
    for part in ("items", "additionalProperties"):
        if isinstance(shape.get(part), dict):
            yield from keys(shape[part], path)
    for inner in shape.get("anyOf", []):
        yield from keys(inner, path)
