"""A registry of npm packages on this machine, and wheels in a folder: what is installed in tests without a network."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from tests.support.loopback import Handler, served

SERVER_JS = """\
#!/usr/bin/env node
const rows = require('readline').createInterface({ input: process.stdin })
const answers = {
  initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } },
  'tools/list': { tools: [{ name: 'hello', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: process.argv.slice(2).join(' ') }] },
}
rows.on('line', line => {
  const { id, method } = JSON.parse(line)
  if (answers[method]) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method] }))
})
"""
"""A server that answers each call with the arguments of its command."""

Versions = Mapping[str, Mapping[str, str]]
"""The versions of a package, each with its files by name."""


@contextmanager
def npm_registry(packages: Mapping[str, Versions]) -> Generator[tuple[str, list[str]]]:
    """Its address and the paths that were asked for."""
    asked: list[str] = []

    class Registry(Handler):
        def take(self, body: bytes) -> None:
            path = unquote(self.path).lstrip("/")
            asked.append(path)
            name, _, file = path.partition("/-/")
            versions = packages.get(name)
            if versions is None:
                self.answer(404, b'{"error": "not found"}')
            elif file:
                self.answer(200, _tarball(versions[file.removesuffix(".tgz")]))
            else:
                self.answer(200, json.dumps(_about(name, versions, f"http://{self.headers['host']}")).encode())

    with served(Registry) as address:
        yield f"{address}/", asked


def make_wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str], scripts: Mapping[str, str], needs: str = ""
) -> None:
    """A wheel with these files, and console scripts by name with what they start; ``needs``: another package."""
    plain = name.replace("-", "_")
    info = f"{plain}-{version}.dist-info"
    entries = "".join(f"{script} = {target}\n" for script, target in scripts.items())
    whole = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + (f"Requires-Dist: {needs}\n" if needs else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{entries}",
    }
    record = "".join(f"{path},{_record(text)}\n" for path, text in whole.items()) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{plain}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in {**whole, f"{info}/RECORD": record}.items():
            wheel.writestr(path, text)


def _record(text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"sha256={digest},{len(text.encode())}"


def _about(name: str, versions: Versions, address: str) -> dict[str, object]:
    rows: dict[str, object] = {}
    for version, files in versions.items():
        body = _tarball(files)
        integrity = base64.b64encode(hashlib.sha512(body).digest()).decode()
        dist = {"tarball": f"{address}/{name}/-/{version}.tgz", "integrity": f"sha512-{integrity}"}
        rows[version] = {**json.loads(files["package.json"]), "name": name, "version": version, "dist": dist}
        if "install" in json.loads(files["package.json"]).get("scripts", {}):
            rows[version] = {**json.loads(json.dumps(rows[version])), "hasInstallScript": True}
    return {"name": name, "versions": rows, "dist-tags": {"latest": list(versions)[-1]}}


def _tarball(files: Mapping[str, str]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size, info.mode = len(text.encode()), 0o644
            archive.addfile(info, io.BytesIO(text.encode()))
    return _without_time(stream.getvalue())


def _without_time(zipped: bytes) -> bytes:
    """The same gzip stream whenever it is made: its head has the time."""
    return zipped[:4] + bytes(4) + zipped[8:]
