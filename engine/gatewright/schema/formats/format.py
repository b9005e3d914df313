"""What a provider's format does with the tools of one agent, and how a call comes back.

A format spells each tool (`fit`), says what the spelling changed (`ProviderLint`), and reads calls back (`reader`):
arguments that are valid in the provider's schema are, once restored, valid in the schema that the agent was shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gatewright.base.errors import JsonRefused
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import checked_object, parse_object
from gatewright.schema.formats.listing import Level, ToolListing
from gatewright.schema.formats.name import NameRule, fit_names, fitted_name
from gatewright.schema.formats.step import KEEP, Step
from gatewright.schema.walk import pointer_text, walk


@frozen
class ProviderLint:
    """What a spelling could not keep, at ``pointer`` in the shown schema, and what to do. ``code`` is kebab-case.

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
    """A tool in a provider's spelling, but for its name; ``body(name)`` is the JSON object to send."""

    body: Callable[[str], dict[str, Any]]
    step: Step = KEEP
    lints: tuple[ProviderLint, ...] = ()


@frozen
class Spelling:
    """How one provider spells: what it makes of a tool, its rule for names, how many tools it takes at once."""

    fit: Callable[[ToolListing], Fitted]
    names: NameRule
    max_tools: int | None = None


class Format:
    """One provider's spelling."""

    def __init__(self, name: str, provider: str, spelling: Spelling) -> None:
        self.name = name
        self.provider = provider
        self._spelling = spelling

    def __repr__(self) -> str:
        return f"Format({self.name})"

    def fitted(self, listing: ToolListing) -> Fitted:
        """The spelling of one tool, made once for each listing."""
        made: Fitted | None = listing.made.get(self)
        if made is None:
            made = listing.made[self] = self._spelling.fit(listing)
        return made

    def render(self, listing: ToolListing) -> dict[str, Any]:
        """One tool as JSON; its name is fitted without regard to other tools."""
        return self.fitted(listing).body(fitted_name(listing.name, self._spelling.names))

    def render_all(self, listings: Iterable[ToolListing]) -> list[dict[str, Any]]:
        """The tools of one agent as JSON, each under a name of its own."""
        known = tuple(listings)
        names = self.names(known)
        return [self.fitted(listing).body(names[listing.name]) for listing in known]

    def names(self, listings: Iterable[ToolListing]) -> dict[str, str]:
        """The name that the provider is given for each tool."""
        return fit_names((listing.name for listing in listings), self._spelling.names)

    def lints(self, listing: ToolListing) -> tuple[ProviderLint, ...]:
        """What the spelling of one tool changed or could not keep."""
        rule, found = self._spelling.names, list[ProviderLint]()
        given = fitted_name(listing.name, rule)
        if given != listing.name:
            reason = f"{self.provider} takes names of {rule.words}, so `{listing.name[:80]}` is sent as `{given}`"
            found.append(ProviderLint("name", self.provider, "", reason, "calls come back under the tool's own name"))
        reason, advice = (
            "the list of allowed values is empty, so no value fits",
            "leave the parameter out, or list values",
        )
        empty = [pointer_text(place) for place, node in walk(listing.schema) if node.get("enum") == []]
        found += [ProviderLint("no-value", self.provider, place, reason, advice) for place in sorted(empty)]
        return tuple(dict.fromkeys((*found, *self.fitted(listing).lints)))  # what two branches say alike is said once

    def lints_all(self, listings: Sequence[ToolListing]) -> dict[str, tuple[ProviderLint, ...]]:
        """The lints by tool name; what concerns all of them together stands under the empty name."""
        found = {listing.name: self.lints(listing) for listing in listings}
        most = self._spelling.max_tools
        if most is not None and len(listings) > most:
            reason = f"{self.provider} takes at most {most} tools in one request, and these are {len(listings)}"
            advice = "hide some from this agent or send them in parts"
            found[""] = (ProviderLint("too-many-tools", self.provider, "", reason, advice, "refused"),)
        return {name: lints for name, lints in found.items() if lints}

    def reader(self, listings: Iterable[ToolListing]) -> CallReader:
        """What reads calls to these tools back."""
        known = tuple(listings)
        sent = {given: own for own, given in self.names(known).items()}
        return CallReader(sent, {listing.name: self.fitted(listing) for listing in known})


@frozen
class CallReader:
    """Reads calls that came in a provider's spelling back into the tools' own."""

    _names: Mapping[str, str]
    _fitted: Mapping[str, Fitted]

    def restore(self, name: str, arguments: Any) -> tuple[str, Any]:
        """The tool's own name and arguments; what is unknown or unreadable is handed through for the gate to refuse.

        ``arguments`` is an object or its JSON text, as providers differ. Never raises.
        """
        own = self._names.get(name, name)
        fitted = self._fitted.get(own)
        if fitted is None or fitted.step is KEEP:
            return own, arguments
        try:
            value = parse_object(arguments) if isinstance(arguments, str | bytes) else checked_object(arguments)
            return own, fitted.step.back(value)
        except (JsonRefused, RecursionError):
            return own, arguments

    def spell(self, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The other way: a call as the provider would have sent it, for examples and for a replayed history."""
        fitted = self._fitted.get(name)
        given = next((sent for sent, own in self._names.items() if own == name), name)
        return given, arguments if fitted is None else fitted.step.forth(arguments)
