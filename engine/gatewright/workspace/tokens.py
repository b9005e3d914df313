"""The tokens of the gateway's HTTP clients, each with its agent and user. The file has only the hash of a token.

They lie in the key folder, outside the workspace, so that write access to the policy's folder creates no token.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from gatewright.base.clock import Clock, iso_utc
from gatewright.base.errors import WorkspaceError
from gatewright.base.ids import new_id
from gatewright.base.jsonvalue import JsonValue
from gatewright.record.folder import PrivateFolder

_FILE = "tokens.json"
_MOST_BYTES = 1 << 22
MOST_TOKENS = 1_000


@dataclass(frozen=True, slots=True)  # pydantic makes these, and cannot read `frozen`
class Token:
    """The agent, user and policy of a token's bearer. ``digest``: SHA-256 of the token, in hexadecimal.

    ``elicit``: questions go to the client's user if the client can ask, and not to the operator. ``made_wall_s``:
    seconds since 1970.
    """

    token_id: str
    policy: str
    agent_id: str
    user_id: str | None
    elicit: bool
    made_wall_s: float
    digest: str

    @property
    def made(self) -> str:
        """Its time of creation, for people and scripts."""
        return iso_utc(self.made_wall_s)

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: id, agent, user, elicit, made."""
        return {
            "id": self.token_id,
            "agent": self.agent_id,
            "user": self.user_id,
            "elicit": self.elicit,
            "made": self.made,
        }


_TOKENS = TypeAdapter(tuple[Token, ...])


class TokenBook:
    """The tokens of one policy file. Methods raise WorkspaceError for an unusable key folder."""

    def __init__(self, key_folder: Path, policy_path: Path, clock: Clock) -> None:
        self._clock = clock
        self._folder = PrivateFolder(key_folder)
        self._policy = str(policy_path.resolve())
        self._seen: tuple[object, tuple[Token, ...]] | None = None

    def add(self, agent_id: str, *, user_id: str | None = None, elicit: bool = False) -> tuple[Token, str]:
        """Make a token. The second value is the token itself, available only here."""
        secret = f"gw_{secrets.token_urlsafe(32)}"
        made = Token(new_id("token"), self._policy, agent_id, user_id, elicit, self._clock.wall_s(), _digest(secret))

        def add_token(before: tuple[Token, ...]) -> tuple[Token, ...]:
            if len(before) >= MOST_TOKENS:
                raise WorkspaceError(f"the limit is {MOST_TOKENS:,} tokens; revoke unused ones")
            return (*before, made)

        self._change(add_token)
        return made, secret

    def list(self) -> tuple[Token, ...]:
        """List this policy's tokens, oldest first; read a changed file again."""
        try:
            facts = self._folder.look(_FILE)
            state = facts and (facts.st_ino, facts.st_mtime_ns, facts.st_size)
            if self._seen is None or self._seen[0] != state:
                self._seen = (state, tuple(one for one in self._read() if one.policy == self._policy))
        except OSError as error:
            raise self._failure(error) from None
        return self._seen[1]

    def revoke(self, token_id: str) -> Token | None:
        """Revoke a token; None for an unknown id."""
        found = next((one for one in self.list() if one.token_id == token_id), None)
        if found is not None:
            self._change(lambda before: tuple(one for one in before if one.token_id != token_id))
        return found

    def find(self, secret: str) -> Token | None:
        """Find a presented token of this policy, in a time that reveals nothing about the others."""
        digest, found = _digest(secret), None
        for one in self.list():
            if hmac.compare_digest(one.digest, digest):
                found = one
        return found

    def _change(self, change: Callable[[tuple[Token, ...]], tuple[Token, ...]]) -> None:
        try:
            self._folder.make()
            with self._folder.exclusive():
                tokens = [asdict(one) for one in change(self._read())]
                self._folder.replace(_FILE, json.dumps(tokens, indent=1).encode())
        except OSError as error:
            raise self._failure(error) from None

    def _read(self) -> tuple[Token, ...]:
        try:
            return _TOKENS.validate_json(self._folder.read(_FILE, _MOST_BYTES))
        except FileNotFoundError:
            return ()
        except ValidationError:
            raise WorkspaceError(f"`{self._folder.path / _FILE}` holds no tokens: it was changed by hand") from None

    def _failure(self, error: OSError) -> WorkspaceError:
        return WorkspaceError(f"the tokens in `{self._folder.path / _FILE}` cannot be used: {error.strerror or error}")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
