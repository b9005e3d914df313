"""What the table of rules asks for, sent to the verbs for the source that is shown. It shows nothing."""

from collections.abc import Callable, Iterable

from gatewright.policy.document import PermissionRule
from gatewright.policy.permission import Permission
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs import sources


class RuleVerbs:
    """For one source at a time; `moved` is told where rules came to stand, and how many."""

    def __init__(self, document: Document, moved: Callable[[int, int], None]) -> None:
        self._document = document
        self._moved = moved
        self.source_id = ""

    def set_rule(self, index: int, rule: PermissionRule) -> bool:
        """Another pattern, level or comment."""
        return sources.set_rule(self._document, self.source_id, index, rule)

    def set_level(self, index: int, level: Permission) -> bool:
        """Another level."""
        return sources.set_level(self._document, self.source_id, index, level)

    def set_default(self, level: Permission) -> bool:
        """What no rule matches gets this level."""
        return sources.set_default_level(self._document, self.source_id, level)

    def move(self, indexes: tuple[int, ...], to: int) -> bool:
        """To where they are to stand."""
        done = sources.move_rules(self._document, self.source_id, indexes, to)
        if done:
            self._moved(to, len(indexes))
        return done

    def add(self, rule: PermissionRule, index: int) -> bool:
        """Before a row."""
        return sources.add_rule(self._document, self.source_id, rule, index)

    def remove(self, indexes: Iterable[int]) -> bool:
        """These rules."""
        return sources.remove_rules(self._document, self.source_id, indexes)
