"""One workspace with a tool of every kind of adapter, and a server on loopback that its HTTP tools reach."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wasmtime import wat2wasm

from gatewright.cli.main import main
from gatewright.workspace import Workspace
from tests.support.checkout import ROOT
from tests.support.loopback import Handler, served

TEXT_TOOL = """\
import json, sys

call = json.load(sys.stdin)
text = call["arguments"]["text"]
done = {"count": lambda: len(text.split()), "upper": text.upper}
print(json.dumps(done[call["arguments"]["op"]]()))
"""
"""A subprocess tool."""
ECHO_MODULE = """
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 1024))
    (i32.store (i32.const 4) (i32.const 65536))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.store (i32.const 4) (i32.load (i32.const 8)))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
"""
"""A WASM module that answers with the call that it was given."""
PET: dict[str, Any] = {"id": 7, "name": "Tom", "photoUrls": []}
VARIABLES = {"PETS_AUTHORIZATION": "Bearer of-the-pets-and-nobody-else", "PETS_API_KEY": "the-key-of-the-pets"}
"""The environment with the secret that the server of the pets demands."""
CALLS: dict[str, tuple[dict[str, Any], str, str]] = {
    "text": ({"op": "count", "text": "one two three"}, "op", "upper"),
    "echo": ({"op": "say", "text": "hello"}, "op", "shout"),
    "pet": ({"operation": "get_pet_by_id", "petId": 7}, "operation", "delete_pet"),
    "file": ({"op": "read", "path": "a.md"}, "op", "delete"),
    "note_words": ({"path": "a.md"}, "", ""),
}
"""For each tool: a call that agent `able` may make, the field of its operation, and a hidden operation."""
ANSWERS = {"text": "3", "echo": "hello", "pet": "Tom", "file": "one two", "note_words": "2"}
"""A part of the result of each of these calls."""
POLICY = """\
gatewright = 1

[workspace]
web = {{ allow_private = true }}

[agents.able]
tools = ["text", "echo", "pet", "file", "note_words"]
approvals = {{ privileged = "allow" }}
capabilities = ["WasmExec", {{ NetRead = {{ allowlist = ["127.0.0.1"] }} }}, {{ NetWrite = {{ allowlist = ["*"] }} }}]
{rules}
[agents.bare]
tools = []

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"

[[compositions]]
name = "note_words"
description = "Counts the words of a note."
input = {{ type = "object", properties = {{ path = {{ type = "string" }} }}, required = ["path"] }}
steps = [
  {{ tool = "file", arguments = {{ op = "read", path = "$input.path" }} }},
  {{ tool = "text", arguments = {{ op = "count", text = "$steps.0.data.content" }} }},
]
"""
CATALOGS = f"""
[[catalogs]]
id = "words"
type = "subprocess"
manifest = "text.json"
command = {json.dumps(sys.executable)}
args = ["text.py"]
places = {{ "./text.py" = "read" }}

[[catalogs]]
id = "module"
type = "wasm"
manifest = "echo.json"
module = "echo.wasm"
"""


def definition(name: str, *operations: str) -> dict[str, Any]:
    """A tool with some operations that take a text."""
    fields = {"op": {"type": "string", "enum": list(operations)}, "text": {"type": "string"}}
    schema = {"type": "object", "properties": fields, "required": ["op", "text"], "additionalProperties": False}
    words = "Works on a text."
    return {"name": name, "description": words, "inputSchema": schema, "annotations": {"readOnlyHint": True}, "run": {}}


def write_adapters(folder: Path, keys: Path, url: str) -> Path:
    """Write the workspace into a folder, with all of its catalogs trusted and accepted; its policy."""
    (folder / "docs").mkdir(parents=True)
    (folder / "docs/a.md").write_text("one two\n", "utf-8")
    (folder / "text.py").write_text(TEXT_TOOL, "utf-8")
    (folder / "echo.wasm").write_bytes(wat2wasm(ECHO_MODULE))
    for name, operations in {"text": ("count", "upper"), "echo": ("say", "shout")}.items():
        (folder / f"{name}.json").write_text(json.dumps([definition(name, *operations)]), "utf-8")
    policy = folder / "policy.toml"
    policy.write_text(f"gatewright = 1\n{CATALOGS}", "utf-8")
    document = str(ROOT / "tests" / "support" / "petstore.yaml")
    words = ["--id", "pets", "--openapi", document, "--url", f"{url}/api/v3", "--trust", "--accept"]
    assert main(["catalog", "import", str(policy), *words]) == 0
    with Workspace.open(policy, keys=keys, trust=True) as workspace:
        for catalog in ("words", "module"):
            workspace.accept_tools(catalog, None)
        shown = workspace.text().removeprefix("gatewright = 1\n")
    rules = ""
    for name, (arguments, field, _) in CALLS.items():
        if field:
            allowed = json.dumps([arguments[field]])
            rules += (
                f'\n[[agents.able.tool_rules]]\ntool_name = "{name}"\nrule_type = {{ AllowedOperations = {allowed} }}\n'
            )
    policy.write_text(POLICY.format(rules=rules) + shown, "utf-8")
    return policy


@contextmanager
def pets() -> Generator[str]:
    """A server of the pets, which has one and gives it to whoever may have it: its address."""

    class Pets(Handler):
        def take(self, body: bytes) -> None:
            is_ours = self.headers["Authorization"] == VARIABLES["PETS_AUTHORIZATION"]
            status = 404 if self.path != "/api/v3/pet/7" else 200 if is_ours else 401
            self.answer(status, json.dumps(PET).encode(), {"Content-Type": "application/json"})

    with served(Pets) as address:
        yield address
