"""Tool and parameter names within a provider's limits, reversibly.

A name that fits stays. Any other gets its unfit characters replaced and a digest of the whole name behind it, so what a
name becomes depends on that name alone: adding a tool renames no other, and an answer to an older list cannot reach
another tool. Only where two come out alike, or a tool bears such a made name itself, is the digest longer, for each of
those that are alike: the short one then stands for nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

from gatewright.base.frozen import frozen

_SHORT = 8


@frozen
class NameRule:
    """Which names a provider takes: the pattern of whole names, the characters for it, its length, and in words."""

    pattern: str
    unfit: str
    max_length: int
    words: str
    first: str = ""
    """What is put before a name that starts with a character the rule does not take there."""

    def fits(self, name: str) -> bool:
        """Whether the provider takes ``name`` as it is."""
        return len(name) <= self.max_length and _whole(self.pattern).fullmatch(name) is not None


@lru_cache(maxsize=64)
def _whole(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@lru_cache(maxsize=32_768)
def fitted_name(name: str, rule: NameRule, digits: int = _SHORT) -> str:
    """``name`` as the provider takes it, without regard to other names."""
    if digits == _SHORT and rule.fits(name):
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    kept = re.sub(rf"(?:{rule.unfit})+", "_", name).strip("_")[: rule.max_length - digits - 2]
    if rule.first and not rule.fits(kept[:1]):
        kept = rule.first + kept
    return f"{kept.rstrip('_')}_{digest}" if kept.strip("_") else f"{rule.first or 'n'}_{digest}"


def fit_names(names: Iterable[str], rule: NameRule) -> dict[str, str]:
    """A different name for each of ``names``; the same whatever their order."""
    made = {name: fitted_name(name, rule) for name in names}
    fitted = {name: name for name, given in made.items() if name == given}
    taken, digits = set(fitted), _SHORT
    while len(fitted) < len(made):
        alike: dict[str, list[str]] = {}
        for name in made.keys() - fitted.keys():
            alike.setdefault(fitted_name(name, rule, digits), []).append(name)
        fitted |= {same[0]: given for given, same in alike.items() if len(same) == 1 and given not in taken}
        taken |= alike.keys()
        digits += _SHORT
    return {name: fitted[name] for name in made}
