"""A page of the documentation, and how its fences are carried out, in order and in one folder.

What the fences and the comments before them mean stands in docs/contributing.md.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft7Validator
from markdown_it import MarkdownIt

from gatewright.cli.main import main
from gatewright.policyfile import policy_schema
from tests.support.checkout import ROOT

RUN = frozenset({"sh", "console", "python", "toml", "json"})
_COMMENT = re.compile(r"<!-- (file|append|exit|not run): (.*?) -->")
_PLAIN_COMMAND = re.compile(r"gatewright [^|<>&;$`*\n]+")


@dataclass(frozen=True)
class Fence:
    """One fence: its language, text and first line, and the words of the comment before it."""

    language: str
    text: str
    line: int
    says: dict[str, str]


def fences(page: Path) -> list[Fence]:
    """Return the fences of a page, including those in lists."""
    found: list[Fence] = []
    says: dict[str, str] = {}
    for token in MarkdownIt().parse(page.read_text("utf-8")):
        if token.type == "html_block":
            says |= dict(_COMMENT.findall(token.content))
        elif token.type == "fence":
            assert token.map is not None
            found.append(Fence(token.info.strip(), token.content, token.map[0] + 1, says))
            says = {}
    return found


def code_spans(page: Path) -> list[str]:
    """Return the text of every code span in a page's paragraphs and tables."""
    tokens = MarkdownIt().enable("table").parse(page.read_text("utf-8"))
    return [one.content for token in tokens for one in token.children or () if one.type == "code_inline"]


class Run:
    """The state of a page that is carried out: the names of its Python code, and the files of its folder."""

    def __init__(self, page: Path, folder: Path, names: dict[str, Any] | None = None) -> None:
        self.page, self.folder = page, folder
        self.names: dict[str, Any] = {"__name__": "page", **(names or {})}
        self.printed, self._policy = "", ""

    def all(self) -> None:
        """Carry out every fence. AssertionError says page and line."""
        for fence in fences(self.page):
            place = f"{self.page.relative_to(ROOT)}:{fence.line}"
            if "not run" in fence.says or fence.language not in RUN:
                assert fence.language in RUN | {"", "text", "diff"}, f"{place}: what is `{fence.language}`?"
                continue
            try:
                self.fence(fence)
            except Exception as error:
                raise AssertionError(f"{place}: {type(error).__name__}: {error}") from error

    def fence(self, fence: Fence) -> None:
        """Carry out one fence."""
        if name := fence.says.get("file"):
            (self.folder / name).write_text(fence.text, "utf-8")
        if name := fence.says.get("append"):
            with (self.folder / name).open("a", encoding="utf-8") as file:
                file.write(f"\n{fence.text}")
        match fence.language:
            case "toml":
                self._toml(fence.text)
            case "json":
                json.loads(fence.text)
            case "python":
                if "file" not in fence.says:
                    self.python(fence.text)
            case _:
                self._shell(fence)

    def python(self, code: str) -> None:
        """Run a snippet, as the body of a coroutine if it contains `await`."""
        compiled = compile(code, self.page.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            if compiled.co_flags & inspect.CO_COROUTINE:
                asyncio.run(eval(compiled, self.names))
            else:
                exec(compiled, self.names)
        self.printed += out.getvalue()

    def _toml(self, text: str) -> None:
        self._policy = text if "gatewright = 1" in text else f"{self._policy}\n{text}"
        problems = [str(one) for one in _policy_part().iter_errors(tomllib.loads(self._policy))]
        assert not problems, problems

    def _shell(self, fence: Fence) -> None:
        done = [(words, self.command(words), wanted) for words, wanted in _commands(fence)]
        for index, (words, (status, out, err), wanted) in enumerate(done):
            code = int(fence.says.get("exit", "0")) if index == len(done) - 1 else 0
            assert status == code, f"`{words}` ended with {status}: {out}{err}"
            if wanted is not None:
                pattern = ".*".join(map(re.escape, wanted.strip().split("...")))
                told = (out or err).strip()
                assert re.fullmatch(pattern, told, re.DOTALL), f"`{words}` prints:\n{told}\nthe page says:\n{wanted}"

    def command(self, words: str) -> tuple[int, str, str]:
        """Run one command: the program in this process, anything else by the shell."""
        if _PLAIN_COMMAND.fullmatch(words):
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = main(shlex.split(words, comments=True)[1:])
            return status, out.getvalue(), err.getvalue()
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", words], cwd=self.folder, env={**os.environ, "PATH": path}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr


def _commands(fence: Fence) -> list[tuple[str, str | None]]:
    """Return the commands of a fence, each with the output that the page promises, or None."""
    text = fence.text.replace("\\\n", "")
    if fence.language == "sh":
        lines = [line.partition("  #")[0].strip() for line in text.splitlines()]
        return [(line, None) for line in lines if line and not line.startswith("#")]
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    split = [part.partition("\n") for part in parts]
    return [(words, printed if printed.strip() else None) for words, _, printed in split]


@cache
def _policy_part() -> Draft7Validator:
    """Return the schema of a policy whose first line may be missing."""
    schema = policy_schema()
    del schema["required"]
    return Draft7Validator(schema)
