"""A provider's format: the spelling of tools and their names, and the translation of calls back.

A format spells each tool (`fit`), reports the losses of the spelling (`ProviderLint`), and translates calls back
(`reader`): arguments that are valid in the provider's schema become, step by step, arguments that are valid in the
schema that the agent saw. A name that fits a provider's limits stays. In any other name the unfit characters are
replaced, and a digest of the whole name follows. The result depends on that name alone: a new tool renames no other,
and an answer to an older list cannot reach another tool. If two results are equal, or a tool has such a name from the
start, each of them gets a longer digest, and nobody has the short one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Protocol

from gatewright.base.errors import JsonRefused, SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import check_object, parse_object
from gatewright.schema.check import SchemaChecker
from gatewright.schema.operation import Level, ToolListing
from gatewright.schema.walk import Schema, as_list, as_object, pointer_text, walk

_SHORT = 8


@frozen
class NameRule:
    """The names that a provider takes: the pattern of whole names, their characters and length, and the rule in
    words.
    """

    pattern: str
    unfit: str
    max_length: int
    words: str
    first: str = ""
    """The prefix for a name whose first character the rule does not allow at the start."""

    def fits(self, name: str) -> bool:
        """Tell whether the provider takes ``name`` as it is."""
        return len(name) <= self.max_length and _whole(self.pattern).fullmatch(name) is not None


@lru_cache(maxsize=64)
def _whole(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@lru_cache(maxsize=32_768)
def fit_name(name: str, rule: NameRule, digits: int = _SHORT) -> str:
    """Fit ``name`` to the provider, without regard to other names."""
    if digits == _SHORT and rule.fits(name):
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    kept = re.sub(rf"(?:{rule.unfit})+", "_", name).strip("_")[: rule.max_length - digits - 2]
    if rule.first and not rule.fits(kept[:1]):
        kept = rule.first + kept
    return f"{kept.rstrip('_')}_{digest}" if kept.strip("_") else f"{rule.first or 'n'}_{digest}"


def fit_names(names: Iterable[str], rule: NameRule) -> dict[str, str]:
    """Return a different name for each of ``names``, which does not depend on their order."""
    made = {name: fit_name(name, rule) for name in names}
    fitted = {name: name for name, given in made.items() if name == given}
    taken, digits = set(fitted), _SHORT
    while len(fitted) < len(made):
        alike: dict[str, list[str]] = {}
        for name in made.keys() - fitted.keys():
            alike.setdefault(fit_name(name, rule, digits), []).append(name)
        fitted |= {same[0]: given for given, same in alike.items() if len(same) == 1 and given not in taken}
        taken |= alike.keys()
        digits += _SHORT
    return {name: fitted[name] for name in made}


class Step(Protocol):
    """One rewriting of a value:

    ``back`` from the provider's spelling, ``forth`` into it. Neither raises for a JSON value.
    """

    def back(self, value: Any) -> Any:
        """Return a provider's value as the tool's schema spells it."""
        ...

    def forth(self, value: Any) -> Any:
        """Return a value of the tool's schema as the provider spells it."""
        ...


@frozen
class Keep:
    """The step that changes nothing."""

    def back(self, value: Any) -> Any:
        """Return the same value."""
        return value

    def forth(self, value: Any) -> Any:
        """Return the same value."""
        return value


KEEP: Step = Keep()


@frozen
class Fields:
    """The step of an object: renamed keys, steps for its values, and keys whose null stands for an omission."""

    sent: Mapping[str, str]
    steps: Mapping[str, Step]
    nulls: frozenset[str] = frozenset()

    def back(self, value: Any) -> Any:
        """Return the object under its own keys, without such nulls; unchanged if two keys would become one."""
        table = as_object(value)
        if table is None:
            return value
        own = {given: name for name, given in self.sent.items()}
        result: dict[str, Any] = {}
        for given, item in table.items():
            name = own.get(given, given)
            if name in result:
                return table
            if item is not None or name not in self.nulls:
                result[name] = self.steps.get(name, KEEP).back(item)
        return result

    def forth(self, value: Any) -> Any:
        """Return the object under the provider's keys, with a null for each omission."""
        table = as_object(value)
        if table is None:
            return value
        spelled = {self.sent.get(name, name): self.steps.get(name, KEEP).forth(item) for name, item in table.items()}
        return {**spelled, **{self.sent.get(name, name): None for name in sorted(self.nulls) if name not in table}}


@frozen
class Items:
    """The step of an array: one step for all elements."""

    step: Step

    def back(self, value: Any) -> Any:
        """Take each element back."""
        array = as_list(value)
        return value if array is None else [self.step.back(item) for item in array]

    def forth(self, value: Any) -> Any:
        """Take each element forth."""
        array = as_list(value)
        return value if array is None else [self.step.forth(item) for item in array]


@frozen
class Wrapped:
    """The step that wraps arguments into the only parameter of an object; unwrapped arguments stay as they are."""

    key: str

    def back(self, value: Any) -> Any:
        """Return the value under the key."""
        table = as_object(value)
        return table[self.key] if table is not None and set(table) == {self.key} else value

    def forth(self, value: Any) -> Any:
        """Put the value under the key."""
        return {self.key: value}


@frozen
class Chain:
    """Two steps in a row; on the way back ``outer`` comes first."""

    inner: Step
    outer: Step

    def back(self, value: Any) -> Any:
        """Go back through both."""
        return self.outer.back(self.inner.back(value))

    def forth(self, value: Any) -> Any:
        """Go forth through both."""
        return self.inner.forth(self.outer.forth(value))


@frozen
class Text:
    """The step of a value that the provider takes only as JSON text; a text outside JSON stays a text."""

    def back(self, value: Any) -> Any:
        """Read the value from the text."""
        if not isinstance(value, str):
            return value
        try:
            table = parse_object(f'{{"":{value}}}')
        except JsonRefused:
            return value
        return table[""] if len(table) == 1 else value

    def forth(self, value: Any) -> Any:
        """Write the JSON text."""
        return json.dumps(value, ensure_ascii=False)


@frozen
class Labels:
    """The step of values that the provider takes only as texts: each label stands for one value."""

    values: tuple[tuple[str, Any], ...]

    def back(self, value: Any) -> Any:
        """Return the value behind a label."""
        return next((own for label, own in self.values if label == value), value)

    def forth(self, value: Any) -> Any:
        """Return the label of a value."""
        return next((label for label, own in self.values if _same(own, value)), value)


@frozen
class Branch:
    """One alternative of a union: its schema as sent, its schema as the agent saw it, and its step."""

    sent: Schema
    own: Schema
    step: Step


class Either:
    """The step of a union: the first alternative that a value fits decides its spelling."""

    __slots__ = ("_branches", "_checkers")

    def __init__(self, branches: Sequence[Branch]) -> None:
        self._branches = tuple(branches)
        self._checkers: dict[tuple[int, bool], SchemaChecker | None] = {}

    def back(self, value: Any) -> Any:
        """Translate back by the first alternative whose sent schema accepts the value."""
        return self._step(value, sent=True).back(value)

    def forth(self, value: Any) -> Any:
        """Translate forth by the first alternative whose own schema accepts the value."""
        return self._step(value, sent=False).forth(value)

    def _step(self, value: Any, *, sent: bool) -> Step:
        for index, branch in enumerate(self._branches):
            checker = self._checker(index, branch, sent=sent)
            if checker is not None and checker.is_valid(value):
                return branch.step
        spelled = [branch.step for branch in self._branches if branch.step is not KEEP]
        return spelled[0] if len(spelled) == 1 else KEEP

    def _checker(self, index: int, branch: Branch, *, sent: bool) -> SchemaChecker | None:
        key = (index, sent)
        if key not in self._checkers:
            try:
                self._checkers[key] = SchemaChecker(branch.sent if sent else branch.own)
            except SchemaError:
                self._checkers[key] = None
        return self._checkers[key]


@frozen
class Named:
    """The step of a definition that refers to itself; ``table`` is complete once the whole schema is rewritten."""

    name: str
    table: Mapping[str, Step]

    def back(self, value: Any) -> Any:
        """Translate back by the definition's step."""
        return self.table.get(self.name, KEEP).back(value)

    def forth(self, value: Any) -> Any:
        """Translate forth by the definition's step."""
        return self.table.get(self.name, KEEP).forth(value)


def fields(sent: Mapping[str, str], steps: Mapping[str, Step], nulls: frozenset[str] = frozenset()) -> Step:
    """Return the step of an object; `KEEP` if it changes nothing."""
    changed = {name: step for name, step in steps.items() if step is not KEEP}
    renamed = {name: given for name, given in sent.items() if name != given}
    return Fields(renamed, changed, nulls) if changed or renamed or nulls else KEEP


def items(step: Step) -> Step:
    """Return the step of an array."""
    return KEEP if step is KEEP else Items(step)


def either(branches: Sequence[Branch]) -> Step:
    """Return the step of a union."""
    if all(branch.step is KEEP for branch in branches):
        return KEEP
    return branches[0].step if len(branches) == 1 else Either(branches)


def chain(inner: Step, outer: Step) -> Step:
    """Join two steps into one."""
    return outer if inner is KEEP else inner if outer is KEEP else Chain(inner, outer)


def _same(first: Any, second: Any) -> bool:
    return isinstance(first, bool) == isinstance(second, bool) and first == second


@frozen
class ProviderLint:
    """A loss of the spelling at ``pointer`` in the agent's schema, and its remedy. ``code`` is kebab-case.

    Levels: ``refused`` (the provider would not take the tool), ``looser`` (its schema accepts more than the gate will),
    ``narrower`` (it accepts less), ``note`` (nothing changes for calls).
    """

    code: str
    provider: str
    pointer: str
    reason: str
    advice: str
    level: Level = "note"

    @property
    def message(self) -> str:
        """The reason and the advice in one line."""
        return f"{self.reason}; {self.advice}" if self.advice else self.reason


@frozen
class Fitted:
    """A tool in a provider's spelling, except its name; ``body(name)`` is the JSON object to send."""

    body: Callable[[str], dict[str, Any]]
    step: Step = KEEP
    lints: tuple[ProviderLint, ...] = ()


@frozen
class Spelling:
    """A provider's spelling of tools, its rule for names, and the most tools that it takes at once."""

    fit: Callable[[ToolListing], Fitted]
    names: NameRule
    max_tools: int | None = None


class Format:
    """A format: the spelling of tools for one provider, with lints and the translation of calls."""

    def __init__(self, name: str, provider: str, spelling: Spelling) -> None:
        self.name = name
        self.provider = provider
        self._spelling = spelling

    def __repr__(self) -> str:
        return f"Format({self.name})"

    def fit(self, listing: ToolListing) -> Fitted:
        """Spell a tool; each listing is spelled once."""
        made: Fitted | None = listing.made.get(self)
        if made is None:
            made = listing.made[self] = self._spelling.fit(listing)
        return made

    def render(self, listing: ToolListing) -> dict[str, Any]:
        """Return one tool as JSON; its name is fitted without regard to other tools."""
        return self.fit(listing).body(fit_name(listing.name, self._spelling.names))

    def render_all(self, listings: Iterable[ToolListing]) -> list[dict[str, Any]]:
        """Return the tools of one agent as JSON, each under a different name."""
        known = tuple(listings)
        names = self.names(known)
        return [self.fit(listing).body(names[listing.name]) for listing in known]

    def names(self, listings: Iterable[ToolListing]) -> dict[str, str]:
        """Return the provider's name for each tool."""
        return fit_names((listing.name for listing in listings), self._spelling.names)

    def lints(self, listing: ToolListing) -> tuple[ProviderLint, ...]:
        """Return the losses and other changes in the spelling of one tool."""
        rule, found = self._spelling.names, list[ProviderLint]()
        given = fit_name(listing.name, rule)
        if given != listing.name:
            reason = f"{self.provider} takes names of {rule.words}, so `{listing.name[:80]}` is sent as `{given}`"
            found.append(ProviderLint("name", self.provider, "", reason, "calls come back under the tool's own name"))
        reason, advice = (
            "the list of allowed values is empty, so no value fits",
            "leave the parameter out, or list values",
        )
        empty = [pointer_text(place) for place, node in walk(listing.schema) if node.get("enum") == []]
        found += [ProviderLint("no-value", self.provider, place, reason, advice) for place in sorted(empty)]
        return tuple(dict.fromkeys((*found, *self.fit(listing).lints)))  # equal lints of two branches count once

    def lints_all(self, listings: Sequence[ToolListing]) -> dict[str, tuple[ProviderLint, ...]]:
        """Return the lints by tool name; the empty name has those of all tools together."""
        found = {listing.name: self.lints(listing) for listing in listings}
        most = self._spelling.max_tools
        if most is not None and len(listings) > most:
            reason = f"{self.provider} takes at most {most} tools in one request, and these are {len(listings)}"
            advice = "hide some from this agent or send them in parts"
            found[""] = (ProviderLint("too-many-tools", self.provider, "", reason, advice, "refused"),)
        return {name: lints for name, lints in found.items() if lints}

    def reader(self, listings: Iterable[ToolListing]) -> CallReader:
        """Return the reader of calls to these tools."""
        known = tuple(listings)
        sent = {given: own for own, given in self.names(known).items()}
        return CallReader(sent, {listing.name: self.fit(listing) for listing in known})


@frozen
class CallReader:
    """Translates calls in a provider's spelling back into the tools' own."""

    _names: Mapping[str, str]
    _fitted: Mapping[str, Fitted]

    def restore(self, name: str, arguments: Any) -> tuple[str, Any]:
        """Return the tool's own name and arguments; the gate refuses unknown tools and unreadable arguments later.

        ``arguments`` is an object or its JSON text, as providers differ. Never raises.
        """
        own = self._names.get(name, name)
        fitted = self._fitted.get(own)
        if fitted is None or fitted.step is KEEP:
            return own, arguments
        try:
            value = parse_object(arguments) if isinstance(arguments, str | bytes) else check_object(arguments)
            return own, fitted.step.back(value)
        except (JsonRefused, RecursionError):
            return own, arguments

    def spell(self, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Spell a call as the provider would have sent it, for examples and for a replayed history."""
        fitted = self._fitted.get(name)
        given = next((sent for sent, own in self._names.items() if own == name), name)
        return given, arguments if fitted is None else fitted.step.forth(arguments)
