"""The adapter of catalogs of type `http`: a call becomes a request below its catalog's address.

`tools.http_request` shapes the request, and the web port decides where it may go, resolves and dials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

from gatewright.arguments.url import UrlTarget
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import Catalog
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResultType
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.http_request import RequestTemplates, base_address, read_requests

_SHOWN_URL = 500


class HttpAdapter:
    """The maker of requests for HTTP tools."""

    def check(self, definition: ToolDefinition, /) -> None:
        """Raises RegistrationError for a definition without valid requests."""
        _requests_of(definition)

    async def run(
        self,
        catalog: Catalog,
        definition: ToolDefinition,
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
        /,
    ) -> JsonValue | bytes:
        """Send a call's request and return the answer. Raises ToolFailure."""
        web, templates = context.require_web(), _requests_of(definition).of(context.operation)
        if len(templates) != 1:
            detail = f"the definition of `{definition.name}` has no request for `{context.operation}`"
            raise ToolFailure("this operation cannot be executed here", code="not-supported", detail=detail)
        base = base_address(catalog.url or "")
        request = templates[0].fill(base, arguments, allow_private=web.allow_private)
        return await web.send(
            replace(request, raw=definition.conduct.result_type is ResultType.BINARY),
            headers_env=catalog.headers_env,
            query_env=catalog.query_env,
            follow=_follower(arguments, context),
            bounds=context.bounds,
        )

    def close(self) -> None:
        """Do nothing: no connection outlives its call."""


@lru_cache(maxsize=512)
def _requests_of(definition: ToolDefinition) -> RequestTemplates:
    return read_requests(definition.run)


def _follower(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Callable[[UrlTarget], None]:
    """Return a check that refuses a redirect to any address that the call itself could not use."""

    def follow(target: UrlTarget) -> None:
        text = f"the server redirects to `{target.text[:_SHOWN_URL]}`, where this call may not go"
        if context.again is None:
            raise ToolFailure(text, code="redirected")
        try:
            context.again(arguments, (target,))
        except ToolFailure as error:
            raise ToolFailure(text, code=error.code, detail=f"{text}: {error.detail}") from None

    return follow
