"""How commands print: JSON when asked, lines otherwise, errors on stderr."""

from __future__ import annotations

import codecs
import json
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from gatewright.base.printable import printable
from gatewright.cli.exit import UsageProblem


def print_json(value: object) -> None:
    """Indented JSON on stdout; what a terminal could obey is escaped in it."""
    _write(sys.stdout, printable(json.dumps(value, indent=2, ensure_ascii=False), keep="\n"))


def print_line(text: str) -> None:
    """One line on stdout, tabs kept; what a terminal could obey or cannot encode is escaped."""
    _write(sys.stdout, printable(text, keep="\t"))


def print_passage(lead: str, text: str) -> None:
    """A text after ``lead``, on stdout; each further line of it begins with a bar, so that none passes for ours."""
    first, *more = text.replace("\r\n", "\n").split("\n")
    for line in (lead + first, *(f"  | {line}" for line in more)):
        print_line(line)


def print_error(text: str, *, keep: str = "\t") -> None:
    """One line on stderr, escaped in the same way; ``keep``: what may stand in it as it is."""
    _write(sys.stderr, printable(text, keep=keep))


def print_text(text: str) -> None:
    """A result of several lines on stdout: to the letter into a pipe or a file, escaped on a terminal."""
    shown = printable(text.replace("\r\n", "\n"), keep="\n\t") if sys.stdout.isatty() else text
    _write(sys.stdout, shown)


class ErrorLog(logging.Handler):
    """Prints log lines as errors."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        print_error(self.format(record), keep="\n\t")


def read_argument(value: str) -> str | bytes:
    """The value itself, or all of stdin for ``-``, as it is: whether it is good text is for the gate to say."""
    return sys.stdin.buffer.read().removeprefix(codecs.BOM_UTF8) if value == "-" else value


def read_content(path: str) -> bytes:
    """The bytes of a file, or of stdin for ``-``; an unreadable one is a usage problem."""
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise UsageProblem(f"cannot read `{path}`: {why}") from None


def decode(content: bytes, what: str) -> str:
    """UTF-8 text; anything else is a usage problem."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{what} is not UTF-8 at byte {error.start}") from None


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    safe = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        print(safe, file=stream, flush=True)
    except BrokenPipeError:
        _silence(stream)
    except OSError:
        _silence(stream)
        raise


def _silence(stream: TextIO) -> None:
    """What is left to write goes nowhere, at the exit too, so that the exit code says what the command found."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
