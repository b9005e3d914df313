"""``git check-ignore`` as the judge of single patterns, in a repository of its own."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path


class GitOracle:
    """Answers which paths a pattern ignores. Folders end with ``/`` and are made on disk; files need not exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        self._run(["init", "-q", "."], b"")

    def ignored(self, pattern: str, paths: Iterable[str]) -> set[str]:
        """The paths that git ignores with that one pattern."""
        asked = list(paths)
        for path in asked:
            if path.endswith("/"):
                (self._folder / path).mkdir(parents=True, exist_ok=True)
        (self._folder / ".git/info/exclude").write_bytes(os.fsencode(pattern) + b"\n")
        sent = b"".join(b"./" + os.fsencode(path.removesuffix("/")) + b"\0" for path in asked)
        answer = self._run(
            ["-c", "core.ignorecase=false", "check-ignore", "--no-index", "-v", "-n", "-z", "--stdin"], sent
        )
        fields = answer.split(b"\0")[:-1]
        sources = fields[0::4]
        assert len(sources) == len(asked)
        return {path for path, source in zip(asked, sources, strict=True) if source}

    def _run(self, arguments: list[str], sent: bytes) -> bytes:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self._folder,
            env=self._environment,
            input=sent,
            capture_output=True,
            check=False,
        )
        assert done.returncode in {0, 1}, done.stderr
        return done.stdout
