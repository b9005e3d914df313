"""Answers from elsewhere: the links that let a person answer a question by chat or e-mail, and the pages behind them.

A link names a question, an address of the policy and a time, under a seal whose key lies in the key folder. The seal
also binds the whole question and the policy: once either has changed, the link answers nothing. Opening a page changes
nothing, since programs for chat and e-mail open links by themselves; only its form answers. Whoever has a link can
answer, in the name of the address that it was made for, and only once: an answered question is open no more.
`QuestionSender` sends links to webhooks of Slack and by SMTP; a failure to send stops no call.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import html
import json
import logging
import os
import queue
import smtplib
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from gatewright.adapters.web_request import CheckedNetwork, request
from gatewright.arguments.url import UrlTarget, parse_url
from gatewright.base.amount import Clock, SystemClock, format_duration, iso_utc
from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, Seal, digest
from gatewright.base.printable import printable
from gatewright.gate.approval import Approval, ApprovalRequest
from gatewright.gate.broker import PermissionBroker
from gatewright.policy.document import Questions
from gatewright.record.folder import SHARED_KEY, PrivateFolder, find_key, have_key

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LONGEST_S = 366 * 86_400.0
"""The longest life of a link; one to a question with an end lives as long as the question."""
MOST_BODY = 1024
"""The most bytes of a form."""
BODY_S = 30.0
"""The longest time for a form to arrive, in s."""
_PURPOSE = b"answer link\0"
_ANSWERS = {b"answer=allow": True, b"answer=deny": False}
_STYLE = (
    "body{font:16px/1.4 sans-serif;max-width:46em;margin:2em auto;padding:0 1em;color:#111;background:#fff}"
    "dt{font-weight:bold;margin-top:.8em}dd{margin:0}pre,dd{white-space:pre-wrap;overflow-wrap:anywhere}"
    "pre{background:#eee;padding:.6em;margin:0}button{font:inherit;padding:.6em 1.2em;margin:1em 1em 0 0}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
}
_log = logging.getLogger(__name__)


@frozen
class _Link:
    """The content of a link: question, address, end in seconds since 1970, and the digest that binds it."""

    question: str
    who: str
    until: float
    content: str


@frozen
class _Page:
    """An answer to a browser: ``body`` is HTML."""

    status: int
    body: str


class AnswerPages:
    """An ASGI application with a page for each link, to be mounted where ``link_base`` of the policy leads.

    ``policy`` returns the present settings of questions and the digest of the present policy; ``keys``: the key folder.
    """

    def __init__(
        self,
        broker: PermissionBroker,
        policy: Callable[[], tuple[Questions, str]],
        keys: Path,
        clock: Clock | None = None,
    ) -> None:
        self._broker, self._policy = broker, policy
        self._keys, self._clock = PrivateFolder(keys), clock or SystemClock()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Those that may answer now; none where the policy has no place for links."""
        settings, _ = self._policy()
        return settings.answer_by if settings.link_base is not None else ()

    @property
    def root(self) -> str | None:
        """The path of ``link_base``, without a slash at its end; None where the policy has no place for links."""
        settings, _ = self._policy()
        return None if settings.link_base is None else unquote(urlsplit(settings.link_base).path).rstrip("/")

    def link(self, question: ApprovalRequest, who: str) -> str:
        """The URL by which the address may answer the question.

        Raises WorkspaceError without a ``link_base``, for an address that the policy does not name, and without a key.
        """
        settings, policy = self._policy()
        if settings.link_base is None or who not in settings.answer_by:
            raise WorkspaceError("`questions` of `[workspace]` has no `link_base`, or no such address in `answer_by`")
        until = question.expires_wall_s or question.asked_wall_s + LONGEST_S
        try:
            key = have_key(self._keys, SHARED_KEY)
        except OSError as error:
            raise WorkspaceError(f"no link can be sealed: {error.strerror}") from error
        body = json.dumps([question.request_id, who, until, _content(question, policy)]).encode()
        text = base64.urlsafe_b64encode(body).decode().rstrip("=")
        return f"{settings.link_base.rstrip('/')}/{text}.{_seal(key).digest(text.encode())}"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request. It never raises because of one."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        if scope["type"] != "http":
            return
        try:
            page = await self._answer(scope, receive)
        except Exception:  # noqa: BLE001 a stranger's request, and stores that may fail: neither raises here
            _log.exception("a page for an answer failed")
            page = _message(503, "This cannot be done now.", "Nothing was answered. Try again later.")
        body = page.body.encode("utf-8", "replace")
        allowed = {"Allow": "GET, HEAD, POST"} if page.status == 405 else {}
        headers = {**_HEADERS, **allowed, "Content-Length": str(len(body))}
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        with suppress(OSError):  # the browser has gone
            await send({"type": "http.response.start", "status": page.status, "headers": pairs})
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _answer(self, scope: Message, receive: Receive) -> _Page:
        if scope["method"] not in {"GET", "HEAD", "POST"}:
            return _message(405, "This page cannot be used like that.")
        approved: bool | None = None
        if scope["method"] == "POST":
            try:
                body = await asyncio.wait_for(_read_body(receive), BODY_S)
            except TimeoutError:
                return _message(408, "The answer did not arrive in time.", "Nothing was answered.")
            if body is None or len(body) > MOST_BODY:
                return _message(413, "This is too long for an answer.", "Nothing was answered.")
            if (approved := _ANSWERS.get(body)) is None:
                return _message(400, "This is no answer.", "Nothing was answered.")
        token = str(scope["path"]).removeprefix(str(scope.get("root_path", ""))).removeprefix("/")
        return await asyncio.to_thread(self._open, token, approved)

    def _open(self, token: str, approved: bool | None) -> _Page:
        """The page of a link; ``approved``: the answer that its form gives, if any."""
        link, now_s = self._read(token), self._clock.wall_s()
        if link is None:
            return _message(404, "This link is not valid.", "It is incomplete, or was not made here.")
        if now_s >= link.until:
            return _message(410, "The time of this question is over.")
        if link.who not in self.addresses:
            return _message(403, "This address may not answer questions any more.")
        _, policy = self._policy()
        question = self._broker.grants.find_open(link.question)
        if question is None:
            return self._why_closed(link.question)
        if _content(question, policy) != link.content or (question.is_suspended and question.policy_digest != policy):
            return _message(409, "The policy or the question has changed since this link was sent.")
        if approved is None:
            return _question(question, link.who, now_s)
        if self._broker.answer(link.question, Approval(approved, link.who)) is None:
            return self._why_closed(link.question)
        return _message(200, "The call is allowed, once." if approved else "The call is denied.", _ONCE)

    def _why_closed(self, request_id: str) -> _Page:
        """The page of a question that is not open."""
        stale = next((one.why for one in self._broker.stale() if one.request.request_id == request_id), "")
        if stale:
            return _message(410, "This question is closed.", f"Why: {stale}.")
        if request_id in self._broker.grants.answers():
            return _message(410, "This question has been answered.", _ONCE)
        return _message(410, "This question is closed.", "It was answered, or its call waits no more.")

    def _read(self, token: str) -> _Link | None:
        """The content of a link; None unless it was made here, character by character."""
        text, _, mac = token.partition(".")
        key = find_key(self._keys, SHARED_KEY)
        if key is None or not token.isascii():
            return None
        if not hmac.compare_digest(_seal(key).digest(text.encode()), mac):
            return None
        question, who, until, content = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return _Link(question, who, until, content)


_ONCE = "A link answers once; you may close this page."


def _seal(key: bytes) -> Seal:
    return Seal(hmac.digest(key, _PURPOSE, "sha256"))


def _content(question: ApprovalRequest, policy: str) -> str:
    """The digest of all that a link is bound to; the number of identical calls may change."""
    return digest([replace(question, waiting=1).to_json(), policy])


async def _live(receive: Receive, send: Send) -> None:
    """Follow the life of a server that runs this application alone."""
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


async def _read_body(receive: Receive) -> bytes | None:
    """The body of a request, or the beginning of a long one; None if the client has gone."""
    body = b""
    while len(body) <= MOST_BODY:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return body


def _as_html(text: str) -> str:
    """A text as HTML in which nothing is invisible and nothing is markup."""
    return html.escape(printable(text.replace("\r\n", "\n"), keep="\n\t"))


def _html(status: int, title: str, content: str) -> _Page:
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{_as_html(title)}</title>'
    body = f"<h1>{_as_html(title)}</h1>{content}"
    return _Page(status, f'<!doctype html><html lang="en"><head>{head}<style>{_STYLE}</style></head>{body}</html>')


def _message(status: int, title: str, text: str = "") -> _Page:
    return _html(status, title, f"<p>{_as_html(text)}</p>" if text else "")


def _question(question: ApprovalRequest, who: str, now_s: float) -> _Page:
    """The whole question, with the form that answers it."""
    rows = {
        "Agent": question.whose,
        "For user": question.user_id or "",
        "Tool": f"{question.tool} {question.operation}".strip(),
        "Kind": question.safety_tier,
        "Why it asks": "\n".join(question.reasons),
        "Scope": question.scope or "",
        "Arguments": _json(dict(question.arguments)),
        "Change": question.diff or "",
        "Objects behind ids": "\n".join(
            f"{one.argument} {one.value} stands for {_json(one.record)}, by {one.called}" for one in question.records
        ),
        "Conversation": question.conversation,
        "Call": question.call_key or question.call_id,
        "Session": question.session_id,
        "Program": question.client,
        "Asked": f"{format_duration(float(max(0, round(now_s - question.asked_wall_s))))} ago",
        "Waits until": iso_utc(question.expires_wall_s) if question.expires_wall_s is not None else "",
        "Identical calls that wait": str(question.waiting) if question.waiting > 1 else "",
        "You answer as": who,
    }
    exact = {"Arguments", "Change"}
    fields = "".join(
        f"<dt>{name}</dt><dd>{f'<pre>{_as_html(text)}</pre>' if name in exact else _as_html(text)}</dd>"
        for name, text in rows.items()
        if text
    )
    buttons = "".join(
        f'<button name="answer" value="{value}">{label}</button>'
        for value, label in (("allow", "Approve once"), ("deny", "Deny"))
    )
    title = f"May {question.agent_id} do this?"
    return _html(200, title, f'<dl>{fields}</dl><form method="post">{buttons}</form>')


def _json(value: JsonValue) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


MAIL_VARIABLE, FROM_VARIABLE = "GATEWRIGHT_MAIL", "GATEWRIGHT_MAIL_FROM"
TICK_S = 1.0
"""The pause between looks for questions that have become due."""
_MAIL_S = 20.0
_MOST_NAME = 100
_CLAIM = 32
_CLAIM_S = 3600.0
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class QuestionSender:
    """Sends each address a link to each new question, and once more when the question is due, in a thread.

    It counts as an operator, so calls wait for answers until ``close``. ``claims``: the folder in which the processes
    that send share the work: a file for each message, made before it is sent, and removed if that fails. ``variables``:
    the environment with the URLs of webhooks and of the mail server.
    """

    def __init__(
        self,
        broker: PermissionBroker,
        pages: AnswerPages,
        claims: PrivateFolder,
        clock: Clock | None = None,
        variables: Mapping[str, str] = os.environ,
    ) -> None:
        self._pages, self._clock, self._variables = pages, clock or SystemClock(), variables
        self._claims = claims
        self._news: queue.SimpleQueue[tuple[ApprovalRequest, ...]] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="question sender", daemon=True)
        self._thread.start()
        self._leave = broker.subscribe(self._news.put)

    def close(self) -> None:
        """Stop after the message that is on its way."""
        self._leave()
        self._closed.set()
        self._news.put(())
        self._thread.join()

    def _work(self) -> None:
        pending: tuple[ApprovalRequest, ...] = ()
        done: set[str] = set()
        while not self._closed.is_set():
            with suppress(queue.Empty):
                pending = self._news.get(timeout=TICK_S)
                self._forget(pending)
            now_s, addresses, known = self._clock.wall_s(), self._pages.addresses if pending else (), set[str]()
            for question in pending:
                is_due = question.is_due(now_s)
                for who in addresses:
                    claim = f"{question.request_id}.{digest([who, is_due])[:_CLAIM]}"
                    known.add(claim)
                    if claim not in done and not self._closed.is_set() and self._offer(question, who, claim, is_due):
                        done.add(claim)
            done &= known

    def _offer(self, question: ApprovalRequest, who: str, claim: str, is_due: bool) -> bool:
        """Send a question to one address, unless another process has done so or is about to; then return False."""
        what = printable(f"{question.tool} {question.operation}".strip())[:_MOST_NAME]
        words = f"{printable(question.whose)[:_MOST_NAME]} asks for {what}"
        try:
            self._claims.make()
            os.close(self._claims.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        except OSError as error:
            _log.warning("the question %s was not sent to %s: %s", question.request_id, who, error.strerror)
            return True
        try:
            self._send(who, f"Still waits: {words}" if is_due else words, self._pages.link(question, who))
        except Exception as error:  # noqa: BLE001 another's server; its words may quote what nobody may read
            why = str(error) if isinstance(error, WorkspaceError | ToolFailure) else type(error).__name__
            _log.warning("the question %s was not sent to %s: %s", question.request_id, who, why)
            with suppress(OSError):
                self._claims.delete(claim)
        return True

    def _forget(self, pending: tuple[ApprovalRequest, ...]) -> None:
        """Remove the claims of questions that are closed; young ones stay, since another process may know more."""
        with suppress(OSError):
            for name in self._claims.names():
                facts = self._claims.look(name)
                is_old = facts is not None and time.time() - facts.st_mtime > _CLAIM_S
                if is_old and all(one.request_id != name.partition(".")[0] for one in pending):
                    self._claims.delete(name)

    def _send(self, who: str, words: str, link: str) -> None:
        kind, _, place = who.partition(":")
        if kind == "slack":
            text = f"{html.escape(words, quote=False)}\n<{link}|Look at it and answer>"
            asyncio.run(self._post(place, json.dumps({"text": text, "unfurl_links": False}).encode()))
            return
        message = EmailMessage()
        message["To"], message["Subject"], message["From"] = place, words, self._variable(FROM_VARIABLE)
        message.set_content(f"{words}\n\nLook at it and answer:\n{link}\n\nWhoever has this link can answer, once.\n")
        self._mail(message)

    async def _post(self, variable: str, body: bytes) -> None:
        """Post to the webhook whose URL the variable holds."""
        target = parse_url(self._variable(variable), allow_private=True)
        if not isinstance(target, UrlTarget) or (target.scheme != "https" and target.host not in _LOCAL):
            raise ToolFailure(f"the variable `{variable}` holds no URL that begins with `https://`")
        headers = [("Content-Type", "application/json")]
        answer = await request("POST", target, headers, CheckedNetwork(allow_private=True), body=body)
        if not 200 <= answer.status < 300:
            raise ToolFailure(f"the webhook answered {answer.status}")

    def _mail(self, message: EmailMessage) -> None:
        """Hand a message to the mail server: over TLS, unless it is on this machine."""
        server = urlsplit(self._variable(MAIL_VARIABLE))
        host, safe = server.hostname or "", ssl.create_default_context()
        if server.scheme not in {"smtp", "smtps"} or not host:
            raise ToolFailure(f"the variable `{MAIL_VARIABLE}` is no `smtps://NAME:PASSWORD@HOST` or `smtp://HOST`")
        if server.scheme == "smtps":
            connection = smtplib.SMTP_SSL(host, server.port or 465, timeout=_MAIL_S, context=safe)
        else:
            connection = smtplib.SMTP(host, server.port or 587, timeout=_MAIL_S)
        with connection:
            if server.scheme == "smtp" and host not in _LOCAL:
                connection.starttls(context=safe)
            if server.username:
                connection.login(unquote(server.username), unquote(server.password or ""))
            connection.send_message(message)

    def _variable(self, name: str) -> str:
        if value := self._variables.get(name, "").strip():
            return value
        raise ToolFailure(f"the environment variable `{name}` is not set")
