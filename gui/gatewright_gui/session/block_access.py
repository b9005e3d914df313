"""What each agent may do with a block by the tools `block` and `block_edit`: rights and the block's level together."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from gatewright.workspace.api import Action, Permission, Verdict, Workspace, frozen, strictest, verdict_for
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.verdict import permission_words, verdict_words

GROUPS: Mapping[str, str] = {
    "look": mark("Look"), "append": mark("Append"), "change": mark("Change"), "keep": mark("Pin, put away"),
}  # fmt: skip
TOOLS = ("block", "block_edit")
_MOST = (
    ("change", Permission.READ_WRITE, mark("ask to change")),
    ("append", Permission.APPEND, mark("ask to add")),
    ("look", Permission.READ_ONLY, mark("ask to read")),
)
"""From the most that one may do with a block: the level that comes to, and the words where each such call asks."""
_ARCHIVED = mark("the block is put away: agents read it and change nothing")
_OTHER_SOURCE = mark("the agent does not have the source of this file")


def mildest(verdicts: Iterable[Verdict]) -> Verdict:
    """The mildest of them; deny where there is none."""
    found = frozenset(verdicts)
    return next((verdict for verdict in (Verdict.ALLOW, Verdict.ASK) if verdict in found), Verdict.DENY)


@frozen
class BlockRight:
    """The right to one operation by all policy layers; ``why``: the deciding reason, empty where it is allowed."""

    tool: str
    operation: str
    actions: tuple[Action, ...]
    verdict: Verdict
    why: str = ""
    by_value: bool = False
    """Whether some calls of it are judged more strictly, by what is in them."""

    @property
    def group(self) -> str:
        """Among which operations it is told."""
        reads = self.actions == (Action.READ,)
        if self.tool == "block":
            return "look" if reads else "keep"
        return "append" if self.actions == (Action.APPEND,) else "change"


@frozen
class OperationAccess:
    """The verdict that an operation on one block comes to, and why."""

    right: BlockRight
    verdict: Verdict
    why: str

    @property
    def words(self) -> str:
        """For a tooltip: `block_edit append: ask first, its level asks: changes ask`."""
        words = f"{self.right.tool} {self.right.operation}: {verdict_words(self.verdict)}"
        words = f"{words}, {self.why}" if self.why else words
        more = tr("some calls are judged more strictly by what is in them")
        return f"{words}; {more}" if self.right.by_value else words


@frozen
class BlockAccess:
    """One agent's access to one block."""

    agent_id: str
    operations: tuple[OperationAccess, ...]

    def of(self, group: str) -> tuple[OperationAccess, ...]:
        """The operations of a group."""
        return tuple(one for one in self.operations if one.right.group == group)

    def best(self, group: str) -> Verdict:
        """The verdict of the mildest operation of a group; deny where there is none."""
        return mildest(one.verdict for one in self.of(group))

    @property
    def summary(self) -> tuple[str, str]:
        """The most that it may do, in the words for levels of files, and the colour for that."""
        for group, level, asks in _MOST:
            best = self.best(group)
            if best is not Verdict.DENY:
                return (tr(asks), "ask") if best is Verdict.ASK else (permission_words(level), str(level))
        return tr("no tool for it"), "none"


def block_rights(workspace: Workspace) -> Mapping[str, tuple[BlockRight, ...]]:
    """The rights of all agents on the tools of blocks, worked out in the worker process."""
    facts = {tool.name: tool for tool in workspace.catalog if tool.name in TOOLS and tool.origin == "built-in"}
    found: dict[str, tuple[BlockRight, ...]] = {}
    for agent_id in workspace.policy.agents:
        rights = workspace.rights(agent_id)
        found[agent_id] = tuple(
            BlockRight(
                name,
                operation.name,
                operation.actions,
                right.verdict,
                right.reasons[0].text.replace("`", "") if right.reasons and right.verdict is not Verdict.ALLOW else "",
                bool(right.by_value),
            )
            for name, tool in facts.items()
            for operation, right in zip(tool.operations, rights[name].operations, strict=True)
        )
    return found


@lru_cache(maxsize=256)
def access(
    agent_id: str,
    rights: tuple[BlockRight, ...],
    level: Permission,
    *,
    is_reachable: bool = True,
    archived: bool = False,
) -> BlockAccess:
    """Rights and level together; ``is_reachable``: whether the agent has the source of the file that a block is of.

    Kept, since a list of hundreds of blocks asks for the same few again and again.
    """
    return BlockAccess(
        agent_id, tuple(_access(right, level, is_reachable=is_reachable, archived=archived) for right in rights)
    )


def _access(right: BlockRight, level: Permission, *, is_reachable: bool, archived: bool) -> OperationAccess:
    if right.verdict is Verdict.DENY:
        return OperationAccess(right, right.verdict, right.why)
    if not is_reachable:
        return OperationAccess(right, Verdict.DENY, tr(_OTHER_SOURCE))
    if archived and right.actions != (Action.READ,):
        return OperationAccess(right, Verdict.DENY, tr(_ARCHIVED))
    by_level = strictest(*(verdict_for(level, action) for action in right.actions))
    verdict = strictest(right.verdict, by_level)
    if verdict is right.verdict:
        return OperationAccess(right, verdict, right.why)
    why = tr("its level asks: {level}") if verdict is Verdict.ASK else tr("its level denies it: {level}")
    return OperationAccess(right, verdict, why.format(level=permission_words(level)))
