"""What the host of an agent puts into the prompt from its memory, as the preview shows it."""

import asyncio
from collections.abc import Awaitable, Callable

from gatewright.workspace.api import AgentContext, GatewrightError, Workspace, frozen
from gatewright_gui.qt.language import counted

CountTokens = Callable[[str], Awaitable[int | None]]


@frozen
class ContextText:
    """The Markdown that is put in, and what there is to say of it; `problem`: why it is not known."""

    agent_id: str
    text: str
    words: str
    problem: str = ""


async def context_text(workspace: Workspace, agent_id: str, count: CountTokens) -> ContextText | None:
    """The context of an agent as it is now, read beside the window; None when nobody waits for it any more."""
    try:
        found = await asyncio.to_thread(_context, workspace, agent_id)
    except GatewrightError as error:
        return ContextText(agent_id, "", "", str(error))
    text, held, shown = found
    if not text:
        return ContextText(agent_id, "", "")
    tokens = await count(text)
    if tokens is None:
        return None
    cost = counted(tokens, "token", "tokens")
    return ContextText(agent_id, text, f"{held}, {shown}, ~{cost}")


def text_tokens(_: Workspace, text: str) -> int:
    """Count in the worker process."""
    from gatewright.workspace.api import count_text

    return count_text(text)


def _context(workspace: Workspace, agent_id: str) -> tuple[str, str, str]:
    found: AgentContext = workspace.context(agent_id)
    text = found.text
    return text, counted(len(found.blocks), "block", "blocks"), counted(len(text), "character", "characters")
