"""Reads commands such as ``npx`` and ``uvx``, which fetch a package and run it, as the package that they mean.

Nobody runs these commands, since they would run whatever a registry has at that moment. `adapters.server_install`
installs the package once, in one version, and starts that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from gatewright.adapters.mcp_transport import ServerFailed
from gatewright.base.frozen import frozen
from gatewright.base.printable import printable
from gatewright.policy.verdict import Word


class Registry(Word):
    """The registry of a package."""

    NPM = "npm"
    PYPI = "pypi"


@frozen
class Package:
    """A package that a runner should run, with one of its programs and the program's arguments.

    ``wanted``: the version as written, a range or tag too; empty for the newest. ``program``: empty for the usual one.
    ``extras``: further packages to install. ``python``: the Python to use.
    """

    registry: Registry
    name: str
    wanted: str = ""
    program: str = ""
    arguments: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    python: str = ""

    @property
    def requirement(self) -> str:
        """The package as written, which distinguishes requirements, also for people."""
        glue = "@" if self.registry is Registry.NPM and self.wanted else ""
        more = f" with {', '.join(self.extras)}" if self.extras else ""
        return f"{self.name}{glue}{self.wanted}{more}" + (f" for Python {self.python}" if self.python else "")

    @property
    def version(self) -> str:
        """The exact version; empty if the registry has to choose."""
        exact = _EXACT[self.registry].fullmatch(self.wanted)
        return exact[1] if exact is not None else ""

    def at(self, version: str) -> Package:
        """Return the same package in exactly this version."""
        return replace(self, wanted=version if self.registry is Registry.NPM else f"=={version}")


def read_runner(command: str, arguments: Sequence[str]) -> Package | None:
    """Return the package that a command means; None for a command that fetches nothing. Raises ServerFailed."""
    words = [command, *arguments]
    shell = _stem(command)
    if shell in _SHELLS:
        inner = [word for text in arguments for word in text.split()]
        steps = [number for number in range(len(inner)) if _runner(inner[number:]) is not None]
        if shell == "cmd" and [word.casefold() for word in arguments[:1]] == ["/c"] and steps[:1] == [1]:
            return read_runner(arguments[1], arguments[2:])
        if steps:
            raise ServerFailed(
                f"`{printable(command)}` would have `{printable(inner[steps[0]])}` fetch a program and run it",
                f"write `{_stem(inner[steps[0]])}` as the command itself",
            )
        return None
    runner = _runner(words)
    return None if runner is None else runner.read(words[runner.words :], command)


@frozen
class _Runner:
    """The options of a runner. ``words``: the number of words in its name.

    ``flags`` and ``given`` (which take a value) do not matter here; ``package``: the option for the package if its
    program has another name; ``extra``: the option for further packages.
    """

    words: int
    registry: Registry
    flags: frozenset[str]
    given: frozenset[str] = frozenset()
    package: frozenset[str] = frozenset()
    extra: frozenset[str] = frozenset()
    python: frozenset[str] = frozenset()
    is_npm_exec: bool = False

    def read(self, words: Sequence[str], command: str) -> Package:
        """Read the words after the runner's name as a package. Raises ServerFailed."""
        rest, packages, extras, python, is_over = [*words], list[str](), list[str](), "", False
        while rest and rest[0].startswith("-"):
            option = rest.pop(0)
            if option == "--":
                is_over = True
                break
            name, equals, value = option.partition("=")
            if name in self.flags and (not equals or value in {"true", "false"}):
                continue
            if name not in self.given | self.package | self.extra | self.python:
                raise _unread(command, option)
            if not equals:
                if not rest:
                    raise ServerFailed(f"`{printable(option)}` of `{printable(command)}` has no value", _WRITE)
                value = rest.pop(0)
            if name in self.package:
                packages.append(value)
            elif name in self.extra:
                extras += value.split(",")
            elif name in self.python:
                python = value
        if self.is_npm_exec and not is_over and rest[1:2] == ["--"]:
            del rest[1]
        elif self.is_npm_exec and not is_over and any(word.startswith("-") for word in rest[1:]):
            raise ServerFailed(f"npm would read the options behind `{printable(rest[0])}` itself", "write `--` before")
        if not rest:
            raise ServerFailed(f"`{printable(command)}` names no package to run", _WRITE)
        if len(packages) > 1:
            raise ServerFailed(f"`{printable(command)}` installs several packages", "name one, that has it")
        said = packages[0] if packages else rest[0]
        name, wanted = _SPELLINGS[self.registry](said)
        more = tuple("".join(_SPELLINGS[self.registry](extra)) for extra in extras)
        program = rest[0] if packages else ""
        return Package(self.registry, name, wanted, program, tuple(rest[1:]), more, python)


_WRITE = "write the package that it runs: `npx NAME@VERSION`, `uvx NAME@VERSION`"
_OF_NPM = frozenset(
    [
        "-y",
        "--yes",
        "-n",
        "--no",
        "-q",
        "--quiet",
        "-s",
        "--silent",
        "--no-install",
        "--prefer-offline",
        "--prefer-online",
        "--offline",
        "--no-audit",
        "--no-fund",
        "--ignore-existing",
        "--bun",
        "--verbose",
        "--loglevel",
        "--no-update-notifier",
    ]
)
_OF_UV = frozenset(
    [
        "-q",
        "--quiet",
        "-v",
        "--verbose",
        "--isolated",
        "--refresh",
        "-n",
        "--no-cache",
        "--offline",
        "--native-tls",
        "--system-certs",
        "--no-progress",
        "--no-config",
        "--no-env-file",
        "--managed-python",
        "--no-managed-python",
        "--no-python-downloads",
        "-U",
        "--upgrade",
    ]
)
_NPM = _Runner(1, Registry.NPM, _OF_NPM, package=frozenset({"-p", "--package"}))
_UV = _Runner(
    1,
    Registry.PYPI,
    _OF_UV,
    given=frozenset({"--color", "--cache-dir", "--python-preference"}),
    package=frozenset({"--from"}),
    extra=frozenset({"--with", "-w"}),
    python=frozenset({"--python", "-p"}),
)
_PIPX = _Runner(
    2,
    Registry.PYPI,
    frozenset({"--no-cache", "--verbose", "-v", "--quiet", "-q"}),
    package=frozenset({"--spec"}),
    python=frozenset({"--python"}),
)
_RUNNERS: Mapping[tuple[str, ...], _Runner] = {
    ("npx",): _NPM,
    ("pnpx",): _NPM,
    ("bunx",): _NPM,
    ("bun", "x"): replace(_NPM, words=2),
    ("npm", "exec"): replace(_NPM, words=2, is_npm_exec=True),
    ("npm", "x"): replace(_NPM, words=2, is_npm_exec=True),
    ("pnpm", "dlx"): replace(_NPM, words=2),
    ("yarn", "dlx"): replace(_NPM, words=2),
    ("uvx",): _UV,
    ("uv", "tool", "run"): replace(_UV, words=3),
    ("pipx", "run"): _PIPX,
}
_SHELLS = frozenset({"bash", "busybox", "cmd", "dash", "env", "fish", "ksh", "powershell", "pwsh", "sh", "zsh"})
_NPM_NAME = re.compile(r"(?:@[A-Za-z0-9~][\w.~-]*/)?[A-Za-z0-9~][\w.~-]*", re.ASCII)
_NPM_VERSION = re.compile(r"[\w.^~<>=*|+ -]*", re.ASCII)
_PYPI_NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?(?:\[[\w., -]*\])?", re.ASCII)
_PYPI_VERSION = re.compile(r"(?:(?:===?|~=|!=|<=?|>=?)\s*[\w.*+!-]+\s*(?:,\s*|$))*", re.ASCII)
_PLAIN_VERSION = re.compile(r"\d[\w.+!-]*", re.ASCII)
_EXACT = {
    Registry.NPM: re.compile(r"=?v?(\d+\.\d+\.\d+(?:[-+][\w.+-]+)?)", re.ASCII),
    Registry.PYPI: re.compile(r"===?\s*(\d[\w.+!-]*)", re.ASCII),
}


def _npm(text: str) -> tuple[str, str]:
    at = text.find("@", 1)
    name, wanted = (text, "") if at < 0 else (text[:at], text[at + 1 :])
    if not _NPM_NAME.fullmatch(name) or not _NPM_VERSION.fullmatch(wanted):
        raise _elsewhere(text, "npm")
    return name, "" if wanted == "latest" else wanted.strip()


def _pypi(text: str) -> tuple[str, str]:
    text = text.strip()
    start = re.match(r"[\w.\[\], -]*", text, re.ASCII)
    name = text[: start.end() if start is not None else 0].strip()
    wanted = text[len(name) :].strip()
    if wanted.startswith("@"):
        wanted = wanted[1:].strip()
        if wanted != "latest" and not _PLAIN_VERSION.fullmatch(wanted):
            raise _elsewhere(text, "PyPI")
        wanted = "" if wanted == "latest" else f"=={wanted}"
    if not _PYPI_NAME.fullmatch(name) or not _PYPI_VERSION.fullmatch(wanted):
        raise _elsewhere(text, "PyPI")
    return name, wanted.replace(" ", "")


_SPELLINGS: Mapping[Registry, Callable[[str], tuple[str, str]]] = {Registry.NPM: _npm, Registry.PYPI: _pypi}


def _runner(words: Sequence[str]) -> _Runner | None:
    """Return the runner that these words begin with. Raises ServerFailed for options before it (``npm -s exec``)."""
    if not words:
        return None
    name = _stem(words[0])
    steps = [word for word in words[1:] if not word.startswith("-")]
    for names, runner in _RUNNERS.items():
        if names[0] == name and tuple(steps[: len(names) - 1]) == names[1:]:
            if tuple(words[1 : len(names)]) != names[1:]:
                raise _unread(words[0], words[1])
            return runner
    return None


def _stem(word: str) -> str:
    """Return the name of a program, without folder and ending."""
    name = PurePath(word.replace("\\", "/")).name.casefold()
    return name.removesuffix(".cmd").removesuffix(".exe").removesuffix(".ps1")


def _unread(command: str, option: str) -> ServerFailed:
    why = f"`{printable(option)}` of `{printable(command)}` says how a package is fetched, which is not read here"
    hint = "leave it out (where packages come from is set for npm and pip themselves), or install the server yourself"
    return ServerFailed(why, f"{hint} and write its command")


def _elsewhere(text: str, registry: str) -> ServerFailed:
    return ServerFailed(
        f"`{printable(text)[:120]}` is no package of {registry} with a version",
        "what lies elsewhere is installed by hand: write the command that starts it",
    )
