"""Packages that ``npx``, ``uvx`` and their like would run: read as packages, or refused with what to do."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.adapters.mcp_transport import ServerFailed
from gatewright.adapters.package_runner import Package, Registry, read_runner

NPM, PYPI = Registry.NPM, Registry.PYPI


def read(line: str) -> Package | None:
    command, *arguments = shlex.split(line)
    return read_runner(command, arguments)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("npx -y @scope/files ~/notes", Package(NPM, "@scope/files", arguments=("~/notes",))),
        ("npx @scope/files@1.2.3 -y --x", Package(NPM, "@scope/files", "1.2.3", arguments=("-y", "--x"))),
        ("npx files@latest", Package(NPM, "files")),
        ("npx files@next", Package(NPM, "files", "next")),
        ("npx 'files@^1.2 || 3.x'", Package(NPM, "files", "^1.2 || 3.x")),
        ("npx --package=@scope/files@2 serve a", Package(NPM, "@scope/files", "2", "serve", ("a",))),
        ("npx -y -p files -- serve --a", Package(NPM, "files", "", "serve", ("--a",))),
        ("/usr/local/bin/npx files", Package(NPM, "files")),
        (r"'C:\Program Files\nodejs\npx.cmd' files", Package(NPM, "files")),
        ("cmd /c npx -y files here", Package(NPM, "files", arguments=("here",))),
        ("npm exec -y files -- --port 3", Package(NPM, "files", arguments=("--port", "3"))),
        ("npm x --package=files -- serve --a", Package(NPM, "files", "", "serve", ("--a",))),
        ("pnpm dlx files a", Package(NPM, "files", arguments=("a",))),
        ("yarn dlx -q files", Package(NPM, "files")),
        ("bunx --bun files@0.1.0-rc.1", Package(NPM, "files", "0.1.0-rc.1")),
        ("bun x files", Package(NPM, "files")),
        ("uvx mcp-server-git --repository .", Package(PYPI, "mcp-server-git", arguments=("--repository", "."))),
        ("uvx mcp-server-git@1.2", Package(PYPI, "mcp-server-git", "==1.2")),
        ("uvx mcp-server-git@latest", Package(PYPI, "mcp-server-git")),
        ("uvx mcp-server-git==1.2", Package(PYPI, "mcp-server-git", "==1.2")),
        ("uvx --from 'mcp[cli]>=1, <2' mcp run", Package(PYPI, "mcp[cli]", ">=1,<2", "mcp", ("run",))),
        ("uvx --with a==1 --with b,c --python 3.12 d", Package(PYPI, "d", extras=("a==1", "b", "c"), python="3.12")),
        ("uv tool run --quiet d e", Package(PYPI, "d", arguments=("e",))),
        ("pipx run --spec d==2 e f", Package(PYPI, "d", "==2", "e", ("f",))),
        ("mcp-server-git --repository .", None),
        ("node dist/index.js", None),
        ("npm start", None),
        ("uv run server.py", None),
        ("sh -c 'exec server --quiet'", None),
    ],
)
def test_a_command_is_read_as_the_package_that_it_would_run(line: str, wanted: Package | None) -> None:
    assert read(line) == wanted


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("npx", "names no package"),
        ("npx -y", "names no package"),
        ("npx --package", "has no value"),
        ("npx -c 'files && more'", "`-c`"),
        ("npx --registry=http://me:pw@example.org files", "`--registry"),
        ("npx -p a -p b c", "several packages"),
        ("npx github:me/files", "no package of npm"),
        ("npx ./files", "no package of npm"),
        ("npx files@npm:other@1", "no package of npm"),
        ("npx https://example.org/files.tgz", "no package of npm"),
        ("npm exec files --port 3", "npm would read"),
        ("npm --silent exec files", "`--silent`"),
        ("uvx --index-url http://me:pw@example.org d", "`--index-url`"),
        ("uvx --from git+https://example.org/d d", "no package of PyPI"),
        ("uvx 'd @ https://example.org/d.whl'", "no package of PyPI"),
        ("uvx ./d", "no package of PyPI"),
        ("uvx --with ./e d", "no package of PyPI"),
        ("sh -c 'cd /srv && npx files'", "have `npx` fetch"),
        ("bash -lc 'exec uvx d'", "have `uvx` fetch"),
        ("env A=b npx files", "have `npx` fetch"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_do(line: str, said: str) -> None:
    with pytest.raises(ServerFailed) as refused:
        read(line)
    assert said in refused.value.reason
    assert refused.value.advice


@given(st.sampled_from(["npx", "uvx", "bunx", "pnpm dlx", "npm exec", "pipx run", "uv tool run"]), st.data())
def test_no_words_behind_a_runner_make_it_run(runner: str, data: st.DataObject) -> None:
    word = st.one_of(
        st.text(max_size=8), st.sampled_from(["-y", "-p", "--from", "--with", "--", "@a/b", "c@1", "=", "@"])
    )
    command, *steps = runner.split()
    with_words = [*steps, *data.draw(st.lists(word, max_size=6))]
    try:
        package = read_runner(command, with_words)
    except ServerFailed:
        return
    assert package is not None
    assert package.name
    assert not package.name.startswith(("-", ".", "/"))
    assert ":" not in package.name + package.wanted
    assert "/" not in package.wanted
