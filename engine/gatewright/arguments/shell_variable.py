"""All that a variable of one command may hold, as far as the command itself tells.

The order of its parts does not count: a value that is set anywhere in it may be there everywhere, and so may none. A
shell that is fresh for the command, with an environment that is known, has no others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gatewright.arguments.shell_form import MAX_FORMS, Refusal, plain
from gatewright.arguments.shell_program import sets_variables
from gatewright.arguments.shell_word import WordReader

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_DEPTH = 16
_Values = tuple[str, ...] | None
_PRESET = ("BASH", "COMP_", "GIT_", "READLINE_")
"""Beginnings of names with `_` that the shell, or whoever starts it, gives a value."""


class Variables:
    """The variables of one command, whose tree ``root`` is; ``is_fresh``: no other one set any before."""

    def __init__(self, source: bytes, root: Callable[[], Node], *, is_fresh: bool) -> None:
        self._source, self._root, self._is_fresh = source, root, is_fresh
        self._reader = WordReader(source, lambda _: "", self.values)
        self._set: dict[str, list[tuple[Node, bool]]] | None = None
        self._known: dict[str, _Values] = {}
        self._depth = 0

    def values(self, name: str) -> _Values:
        """Every value, patterns that a loop goes through marked; None where they cannot be told."""
        if not self._is_fresh:
            return None
        if self._set is None:
            self._set = self._settings()
        if name not in self._known:
            self._known[name] = None  # where its value is made of itself
            self._known[name] = self._all(name, self._set)
        return self._known[name]

    def _all(self, name: str, settings: dict[str, list[tuple[Node, bool]]]) -> _Values:
        if not self._is_fresh or name == "_" or self._depth == _MAX_DEPTH:
            return None
        found = settings.get(name)
        if found is None:
            is_free = name[:1].islower() or ("_" in name and not name.startswith(_PRESET))
            return ("",) if is_free else None
        values = {"": None}
        self._depth += 1
        try:
            for node, is_loop in found:
                words = self._reader.words(node) if is_loop else [self._reader.word(node, keeps_blanks=True)]
                for word in words:
                    if word.forms is None or len(values) > MAX_FORMS:
                        return None
                    values |= dict.fromkeys(word.forms if is_loop else map(plain, word.forms))
        except Refusal:
            return None
        finally:
            self._depth -= 1
        return tuple(values)

    def _settings(self) -> dict[str, list[tuple[Node, bool]]]:
        """Where each variable is set, and whether a loop does it; no variable is known beside what sets others."""
        settings: dict[str, list[tuple[Node, bool]]] = {}
        programs: set[str] = set()
        stack = [self._root()]
        while stack:
            node = stack.pop()
            children = node.children
            stack += children
            if node.type == "command_name":
                programs.add(self._text(node))
            elif node.type == "variable_assignment":
                name, sign, *value = children
                held = settings.setdefault(self._text(name), [])
                held += ((one, False) for one in value)
                self._is_fresh &= sign.type == "=" and name.type == "variable_name"
            elif node.type == "for_statement":
                named = [child for child in children if child.type == "variable_name"]
                self._is_fresh &= len(named) == 1 and any(child.type == "in" for child in children)
                for name in named[:1]:
                    values = children[2 + children.index(name) :]
                    held = settings.setdefault(self._text(name), [])
                    held += ((one, True) for one in values if one.is_named and one.type != "do_group")
        names = ("".join(char for char in text if char not in "\\'\"\n") for text in programs)
        self._is_fresh &= "IFS" not in settings and not any(map(sets_variables, names))
        return settings

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode()
