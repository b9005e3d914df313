"""What field names and value names say about operations.

Names mislead, so a name alone decides little: a strong name needs a closed list of texts, a weak one needs verbs too.
"""

from __future__ import annotations

import re

from gatewright.base.regex import late_regex
from gatewright.schema.operation import Confidence

_STRONG = frozenset(
    {"op", "operation", "action", "command", "cmd", "verb", "subcommand", "operation_name", "operation_type"}
    | {"action_type", "action_name", "command_name", "command_type", "sub_command", "op_type", "op_name"}
)
_WEAK = frozenset({"mode", "method", "task", "request", "request_type"})
_TAGS = frozenset({"type", "kind", "tag", "t"})
_HTTP = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_FILTERING = late_regex(
    r"\b(filter(s|ed|ing)?|narrow|restrict|only (return|show|list|include)"
    r"|sort(s|ed|ing)?|order by|(output|display) format)\b",
    re.IGNORECASE,
)
_SETTINGS = frozenset(
    {"all", "any", "none", "both", "other", "true", "false", "yes", "no", "auto", "default", "asc", "desc"}
    | {"ascending", "descending", "json", "csv", "xml", "yaml", "html", "markdown", "md", "text", "table", "plain"}
    | {"hour", "day", "week", "month", "year", "today", "low", "medium", "high", "pending", "active", "inactive"}
    | {"done", "completed", "closed", "overdue", "public", "private", "newest", "oldest", "name", "date"}
)
_VERBS = frozenset(
    re.findall(
        r"\w+",
        """
    abort accept activate add allow analyze append apply approve archive assign attach authorize backup ban
    block build cancel check choose clean cleanup clear clone close commit compare configure connect continue convert
    copy create deactivate decline delete deny deploy describe detach detect diff disable disconnect download
    draft drop duplicate edit enable exec execute explore export fetch fill find flag forward generate get
    grant hide import info insert install invite invoke kill launch link list load lock log login logout mark
    merge mkdir modify mount move open overwrite patch pause peek pin ping pop post prepend preview prune
    publish pull purge push put query read rebase reconnect redo refresh register reject release reload remove
    rename reorganize replace reply reset resolve restart restore resume retrieve retry revert revoke rewrite rollback
    rotate run save scale scan schedule search select send set share show skip split start stash stat status stop
    submit subscribe suggest suspend switch sync tag terminate test touch transition unapprove unarchive unban
    unblock undo unflag ungroup uninstall unlink unlock unmerge unmount unpin unread unregister unshare
    unsubscribe update upgrade upload upsert validate verify view watch write
    """,
    )
)


def snake(name: str) -> str:
    """``actionType`` and ``action-type`` as ``action_type``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()


def is_verb(value: str) -> bool:
    """Whether an operation's name begins with a word of doing."""
    return snake(value).split("_")[0].split(".")[0].split(":")[0] in _VERBS


def property_confidence(
    name: str, values: tuple[str, ...], description: str, *, has_parts: bool = False
) -> Confidence | None:
    """How sure it is that a flat property with these values selects operations; None: it does not look so.

    ``has_parts``: beside it stands an object for each value, of the value's name.
    """
    plain = snake(name)
    verbs = sum(map(is_verb, values))
    if has_parts and plain in _TAGS and verbs * 2 > len(values) > 1:
        return "high"
    if plain in _STRONG:
        settings = sum(snake(value) in _SETTINGS for value in values)
        says_less = _FILTERING.search(description) or (settings and not verbs)
        return "low" if says_less and verbs * 2 <= len(values) else "high" if verbs else "medium"
    if plain not in _WEAK:
        return None
    if set(values) & _HTTP:
        return "low"
    if verbs * 2 > len(values) and len(values) > 1:
        return "high"
    return "low" if verbs else None


def tag_score(name: str) -> int:
    """How much a union's tag is named like one: 3 an operation word, 2 a weak one, 1 a tag, 0 anything else."""
    plain = snake(name)
    if plain in _STRONG:
        return 3
    return 2 if plain in _WEAK else 1 if plain in _TAGS else 0


def list_confidence(name: str, values: tuple[str, ...], description: str) -> Confidence | None:
    """The same for a list of values, such as ``actions``: what such a list holds is often data, so it is never sure."""
    plain = snake(name)
    if plain not in _STRONG and plain.removesuffix("s") not in _STRONG:
        return None
    doing = len(values) > 1 and sum(map(is_verb, values)) * 2 > len(values)
    return "low" if _FILTERING.search(description) or not doing else "medium"


_HOLDERS = frozenset(
    {"action", "actions", "command", "commands", "op", "operation", "operations", "ops", "request", "requests"}
    | {"select", "step", "steps", "edit", "edits", "change", "changes", "update", "updates", "mutation", "mutations"}
)


def nested_confidence(
    name: str, values: tuple[str, ...], description: str, *, holder: str, is_tag: bool, is_row: bool = False
) -> Confidence | None:
    """The same for a field inside ``holder``; ``is_tag``: it tells the variants of a union apart.

    ``is_row``: it stands in a list inside a list, where data have fields of such names.
    """
    plain, verbs = snake(name), sum(map(is_verb, values))
    if len(values) < 2:
        return None
    doing = verbs * 2 > len(values) or (is_tag and verbs * 2 == len(values))
    if is_tag and not holder and not (doing and plain in _STRONG):
        return "low"
    if plain in _STRONG:
        says_less = _FILTERING.search(description) or not doing or is_row or any(map(_is_placeholder, values))
        return "low" if says_less else "high"
    if not doing or set(values) & _HTTP or plain not in _WEAK | _TAGS:
        return None
    return "medium" if is_tag or snake(holder) in _HOLDERS else "low"


def _is_placeholder(value: str) -> bool:
    """Whether a value stands for those that a later version may send: no call asks for it."""
    return snake(value).startswith("unknown")


def is_operation_name(name: str) -> bool:
    """Whether a field is named like one that selects operations, whatever it takes."""
    return snake(name) in _STRONG
