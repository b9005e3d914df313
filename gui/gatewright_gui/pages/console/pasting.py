"""A provider's whole call, pasted: told from plain arguments, its spelling undone. It puts nothing in by itself."""

from collections.abc import Callable

from gatewright.base.errors import GatewrightError
from gatewright_gui.models.pastedcall import PastedCall, pasted_call
from gatewright_gui.pages.page import PageContext

Put = Callable[[PastedCall, str, object], None]


class Pasting:
    """`put` gets a call with its name and arguments as the agent's own tools have them."""

    def __init__(self, context: PageContext | None, put: Put) -> None:
        self._context, self._put = context, put

    def take(self, text: str, agent_id: str | None, properties: frozenset[str]) -> bool:
        """Whether a text is a whole call, which is then put in; `properties`: arguments that it may be as well."""
        call = pasted_call(text, properties)
        if call is None:
            return False
        if self._context is None or agent_id is None:
            self._put(call, call.name, call.arguments)
        else:
            self._context.tasks.start(self._restore(self._context, call, agent_id), "console.paste", replace=True)
        return True

    async def _restore(self, context: PageContext, call: PastedCall, agent_id: str) -> None:
        """A provider's spelling is undone, as it is where a model's call comes in."""
        try:
            restored = await context.deriver.derive(
                lambda workspace: workspace.view(agent_id).restore(call.format, call.name, call.arguments)
            )
        except GatewrightError:
            restored = None
        name, arguments = restored or (call.name, call.arguments)
        self._put(call, name, arguments)
