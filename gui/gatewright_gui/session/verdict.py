"""Words for what calls are answered and what files allow, in the language of the app."""

from gatewright.workspace.api import Permission, RightWord, Verdict
from gatewright_gui.qt.language import mark, tr

_WORDS = {Verdict.ALLOW: mark("allow"), Verdict.ASK: mark("ask first"), Verdict.DENY: mark("deny")}


def verdict_words(verdict: Verdict) -> str:
    """`allow`, `ask first` or `deny`."""
    return tr(_WORDS[verdict])


_RIGHTS = {
    RightWord.OFF: mark("off"),
    RightWord.ASK: mark("ask first"),
    RightWord.ALLOW: mark("allow"),
    RightWord.BY_PATH: mark("by path"),
    RightWord.BY_BLOCK: mark("by block"),
    RightWord.BY_VALUE: mark("by value"),
    RightWord.BUT_PATHS: mark("allow, but for paths"),
}


def right_words(word: RightWord) -> str:
    """The word for what an operation comes to: `off`, `ask first`, `allow`, `by path`, ...."""
    return tr(_RIGHTS[word])


_LEVELS = {
    Permission.NONE: mark("hidden"),
    Permission.READ_ONLY: mark("read only"),
    Permission.ASK: mark("ask first"),
    Permission.PARTNER: mark("changes ask"),
    Permission.HUMAN: mark("ask to change"),
    Permission.APPEND: mark("add only"),
    Permission.READ_WRITE: mark("read and write"),
    Permission.ADMIN: mark("full access"),
}


def permission_words(level: Permission) -> str:
    """The words for the level of a file or block: `hidden`, `read only`, `read and write`, ...."""
    return tr(_LEVELS[level])
