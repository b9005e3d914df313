"""Which tools and operations a policy may name. It runs none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from gatewright.base.frozen import frozen
from gatewright.base.problem import Severity
from gatewright.policy.composition import ORIGIN
from gatewright.policy.document import Catalog, Policy
from gatewright.policy.right import ToolFacts
from gatewright.policy.toolname import split_name


@frozen
class CatalogFacts:
    """What reading one catalog gave: its tools, and what is wrong as (severity, code, message).

    ``is_missing``: there is no manifest or pin, which is no error where the policy does without its tools.
    """

    facts: tuple[ToolFacts, ...] = ()
    problems: tuple[tuple[Severity, str, str], ...] = ()
    is_missing: bool = False


@frozen
class Rooted:
    """A tool that needs something of ``[workspace]``: of each group in ``needs`` one at least (`Policy.provides`)."""

    facts: ToolFacts
    needs: tuple[tuple[str, ...], ...]

    def lacks(self, provided: frozenset[str]) -> tuple[str, ...] | None:
        """The first group of which nothing is ``provided``; None: the tool is there."""
        return next((group for group in self.needs if provided.isdisjoint(group)), None)


Declare: TypeAlias = "Callable[[ToolFacts, str | None, tuple[str, ...] | None], ToolFacts]"
"""The facts of a registered (or catalogued) tool read with an operation field, or a list of operations.

Both arguments as ``ToolSettings`` has them. Raises AuthorMustFix in the words of the problem.
"""

Catalogs: TypeAlias = "Callable[[tuple[Catalog, ...]], tuple[CatalogFacts, ...]]"
"""Reads what says which tools the catalogs of a file have, in its order; no two of them give a tool of one name."""


Compose: TypeAlias = "Callable[[Policy, tuple[ToolFacts, ...]], tuple[ToolFacts, ...]]"
"""The facts of the tools that the compositions of a policy make of others, which come first."""


@frozen
class KnownTools:
    """The registered tools.

    Without ``declare`` no policy can name the operations of a tool; without ``catalogs`` none can add tools.
    ``rooted``: tools on files of the roots, which come behind those that a policy may name anyway. ``is_complete``:
    every catalog could be read; else a name that is not here may be one of its tools. Without ``compose`` there are no
    compositions.
    """

    facts: tuple[ToolFacts, ...]
    declare: Declare | None = None
    catalogs: Catalogs | None = None
    rooted: tuple[Rooted, ...] = ()
    is_complete: bool = True
    compose: Compose | None = None
    _by_name: Mapping[str, tuple[ToolFacts, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[str, tuple[ToolFacts, ...]] = {}
        for facts in self.facts:
            found[facts.name] = (*found.get(facts.name, ()), facts)
        object.__setattr__(self, "_by_name", found)

    @property
    def names(self) -> frozenset[str]:
        """The bare names of the registered tools."""
        return frozenset(self._by_name)

    def with_rooted(self) -> KnownTools:
        """With the tools on files of the roots; one that has the name and major version of another is left out."""
        taken = {(facts.name, facts.major) for facts in self.facts}
        more = tuple(one for one in self.rooted if (one.facts.name, one.facts.major) not in taken)
        return replace(self, facts=(*self.facts, *(one.facts for one in more)), rooted=more) if self.rooted else self

    def composed(self, policy: Policy) -> KnownTools:
        """With the tools that the policy's compositions make of these, in the place of those that were made before."""
        if self.compose is None or not (policy.compositions or any(one.origin == ORIGIN for one in self.facts)):
            return self
        others = tuple(facts for facts in self.facts if facts.origin != ORIGIN)
        return replace(self, facts=(*others, *self.compose(policy, others)))

    def there(self, provided: frozenset[str]) -> KnownTools:
        """Without the tools that a policy which provides this does not have."""
        absent = [one.facts for one in self.rooted if one.lacks(provided) is not None]
        return replace(self, facts=tuple(facts for facts in self.facts if facts not in absent)) if absent else self

    def of(self, written: str) -> tuple[ToolFacts, ...]:
        """The registered majors that ``name`` or ``name@major`` may stand for."""
        name, major = split_name(written)
        return tuple(facts for facts in self._by_name.get(name, ()) if major in {None, facts.major})
