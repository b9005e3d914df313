"""JSON requests to a service that messages go to: where it is, how long it wants to be left alone, why it refuses.

No secret is in any word that comes of it: what the server says is taken without those that it was sent.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from gatewright.adapters.secret import Secrets
from gatewright.adapters.web_request import Answer, CheckedNetwork, request
from gatewright.arguments.url import UrlTarget, parse_url
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.printable import printable

if TYPE_CHECKING:
    from gatewright.tools.context import ToolExecutionContext

LONGEST_WAIT_S = 5.0
"""A service that wants to be asked again sooner than that is waited for, once."""
_MARGIN_S = 2.0
_LEAST_WORD = 6
"""The characters of the shortest word of what a service was given that is taken out of what it says."""
SAID = 200
"""How much is shown of what a service says, in characters."""
_UNREADABLE = "answered in a way that could not be read; the message may have been sent all the same"


@frozen
class Refused:
    """A service's no: the status, its own code for it, and what it says, without secrets."""

    status: int
    code: str
    said: str


class Service:
    """One service at ``url``; ``name`` in words. ``network`` makes what connections are made by.

    Its secret is the value of ``variable`` among ``variables``.

    The operator named its address and trusts it, so it may be on a private network.
    """

    def __init__(
        self,
        name: str,
        url: str,
        network: Callable[[], CheckedNetwork] | None,
        variable: str,
        variables: Mapping[str, str],
    ) -> None:
        self.name = name
        self._url, self._network = url.rstrip("/"), network
        self._variable, self._variables = variable, variables

    def secret(self) -> str:
        """What it is asked with. Raises ToolFailure where the variable is not set, or its value could not be sent."""
        value = self._set()
        if not value or not value.isascii() or not value.isprintable():
            how = "is not set" if not value else "holds what no header can"
            detail = f"the environment variable `{self._variable}`, with the secret for {self.name}, {how}"
            raise ToolFailure(f"{self.name} is not set up here; go on without it", code="not-set-up", detail=detail)
        return value

    def _set(self) -> str:
        return self._variables.get(self._variable, "").strip()

    async def ask(
        self,
        method: str,
        path: str,
        context: ToolExecutionContext,
        *,
        authorization: str = "",
        body: Mapping[str, object] | None = None,
    ) -> dict[str, str] | Refused:
        """The texts of the JSON object that it answers, or its refusal; told to come back soon it is asked once more.

        Raises ToolFailure where there is no such answer.
        """
        target = parse_url(f"{self._url}/{path}", allow_private=True)
        if not isinstance(target, UrlTarget):
            raise ToolFailure(f"{self.name} cannot be reached", code="no-endpoint", detail="its address cannot be used")
        data = None if body is None else json.dumps(body).encode()
        headers = [("Accept", "application/json"), *([("Authorization", authorization)] if authorization else [])]
        headers += [("Content-Type", "application/json")] if data is not None else []
        network = self._network() if self._network is not None else CheckedNetwork(allow_private=True)
        for last in (False, True):
            answer = await request(method, target, headers, network, body=data)
            if answer.status != 429:
                words = (*authorization.split(), *self._set().split())
                return self._read(answer, Secrets((authorization, self._set(), *words), least=_LEAST_WORD))
            wait_s, left_s = _wait_of(answer), context.remaining_s()
            too_long = wait_s > LONGEST_WAIT_S or (left_s is not None and wait_s + _MARGIN_S > left_s)
            if last or too_long:
                text = f"{self.name} takes no more messages now; try again in {math.ceil(wait_s)} s"
                raise ToolFailure(text, code="rate-limited")
            await asyncio.sleep(wait_s)
        raise AssertionError("the second answer ends the loop")

    def _read(self, answer: Answer, secrets: Secrets) -> dict[str, str] | Refused:
        try:
            given: object = json.loads(answer.body) if answer.body else {}
        except (ValueError, RecursionError):
            given = None
        data = cast("dict[str, object]", given) if isinstance(given, dict) else None
        texts = {key: secrets.out_of(str(said)) for key, said in (data or {}).items() if isinstance(said, str | int)}
        told = {key: printable(" ".join(text.split())) for key, text in texts.items()}
        if 200 <= answer.status < 300 and data is not None and not answer.is_cut:
            return told
        if 200 <= answer.status < 300:
            raise ToolFailure(f"{self.name} {_UNREADABLE}", code="bad-answer")
        code = told.get("error") or told.get("code", "")
        return Refused(answer.status, code[:SAID], told.get("message", "")[:SAID])


def failure(name: str, refused: Refused, words: Mapping[int, str]) -> ToolFailure:
    """What a refusal is to the model (``words`` by status) and, in all detail, to the operator."""
    text = words.get(refused.status, f"did not take the message (status {refused.status})")
    if refused.status >= 500:
        text = "cannot take messages now; try again later"
    said = " ".join(part for part in (refused.code, refused.said) if part)
    detail = f"{name} {text}: it answered {refused.status}{f', {said}' if said else ''}"
    return ToolFailure(f"{name} {text}", code="not-sent", detail=detail)


def _wait_of(answer: Answer) -> float:
    """How long it wants to be left alone, in seconds; where it does not say, longer than is waited."""
    try:
        wait_s = float(answer.header("retry-after"))
    except ValueError:
        return 60.0
    return min(max(wait_s, 0.0), 86_400.0) if math.isfinite(wait_s) else 60.0
