"""What the tools of an agent cost in tokens, tool by tool, and what its limits save.

The texts are counted in a process of our own, started when the first count is asked for and shared by all windows.
Where it cannot be had, four bytes count as a token, which is said.
"""

import atexit
import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gatewright.workspace.api import Workspace, frozen

if TYPE_CHECKING:
    from gatewright.workspace.api import TokenCount, TokenCounter


CHILD = "gatewright_gui.session.token_child"


class CountFailed(Exception):
    """The counting process is not there or does not answer."""


@frozen
class TokenRow:
    """One tool; `tokens` is 0 where the model does not see it."""

    tool: str
    tokens: int
    unrestricted: int
    is_shown: bool = True

    @property
    def saving(self) -> float:
        """The share that is saved, 0 to 1; negative where a filtered schema takes more."""
        return (self.unrestricted - self.tokens) / self.unrestricted if self.unrestricted else 0.0


@frozen
class TokenReport:
    """All tools of one agent in one provider's spelling, in the order of the catalog."""

    agent_id: str
    provider: str
    rows: tuple[TokenRow, ...]
    exact: bool
    encoding: str
    total: TokenRow = field(init=False)

    def __post_init__(self) -> None:
        total = TokenRow("", sum(row.tokens for row in self.rows), sum(row.unrestricted for row in self.rows))
        object.__setattr__(self, "total", total)

    @property
    def by_tool(self) -> Mapping[str, int]:
        """The tokens of every tool that the model sees."""
        return {row.tool: row.tokens for row in self.rows if row.is_shown}

    def row_of(self, tool: str | None) -> TokenRow | None:
        """One tool's row; all of them together for None."""
        return self.total if tool is None else next((row for row in self.rows if row.tool == tool), None)


def count_words(tokens: int, *, exact: bool) -> str:
    """A number of tokens; an estimate is marked."""
    return f"{tokens:,}" if exact else f"~{tokens:,}"


def token_report(workspace: Workspace, agent_id: str, provider: str) -> TokenReport:
    """Count the tools of an agent. The first count takes a second or two: not on the GUI thread."""
    from gatewright.workspace.api import format_named

    view, form = workspace.view(agent_id), format_named(provider)
    shown, whole = _counted(
        lambda counter: (
            counter.count(view.listings(), form),
            counter.count(view.unrestricted_listings(), form),
        )
    )
    rows = tuple(
        TokenRow(tool, shown.per_tool.get(tool, 0), before, tool in shown.per_tool)
        for tool, before in whole.per_tool.items()
    )
    return TokenReport(agent_id, provider, rows, shown.exact, shown.encoding)


def _counted(count: "Callable[[TokenCounter], tuple[TokenCount, TokenCount]]") -> "tuple[TokenCount, TokenCount]":
    try:
        return count(_by_process())
    except CountFailed:
        return count(_by_bytes())


@lru_cache(maxsize=1)
def _by_process() -> "TokenCounter":
    from gatewright.workspace.api import TokenCounter

    if find_spec("toktok") is None or getattr(sys, "frozen", False):
        return _by_bytes()
    return TokenCounter(TokenProcess([sys.executable, "-P", "-m", CHILD]).count)


@lru_cache(maxsize=1)
def _by_bytes() -> "TokenCounter":
    from gatewright.workspace.api import TokenCounter

    return TokenCounter(None)


class TokenProcess:
    """A process that counts; it starts with the first question and ends with this one. Any thread may ask."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._is_out = False

    def count(self, texts: list[str]) -> list[int]:
        """The tokens of each text. Raises CountFailed, and from then on always."""
        if not texts:
            return []
        with self._lock:
            if self._is_out:
                raise CountFailed("the counting process ended")
            try:
                return self._asked(texts)
            except (OSError, ValueError, TypeError) as error:
                self._is_out = True
                self._end()
                raise CountFailed(str(error)) from None

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._is_out = True
            self._end()

    def _asked(self, texts: list[str]) -> list[int]:
        process = self._running()
        if process.stdin is None or process.stdout is None:
            raise ValueError("no pipes to the counting process")
        process.stdin.write(f"{json.dumps(texts)}\n")
        process.stdin.flush()
        counts = [int(count) for count in json.loads(process.stdout.readline())]
        if len(counts) != len(texts):
            raise ValueError("not as many counts as texts")
        return counts

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                self._command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
            )
            atexit.register(self.close)
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        atexit.unregister(self.close)
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        process.wait()
