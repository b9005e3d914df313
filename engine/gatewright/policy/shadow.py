"""Permission rules that decide nothing, because rules above them match everything they match.

The proof is exact: it compares the languages of the patterns (as automata over classes of bytes) over all possible
paths; if that takes too many steps, it reports nothing. A rule that can decide some path may still decide no file of a
given tree: hit counts show that.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from gatewright.base.frozen import frozen
from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import GitPattern, Token, Wild, parse_git_pattern

_MAX_STEPS = 300_000
_MAX_TOKENS = 300
_SAMPLES = 48
_SLASH = ord("/")
_NAMES = ("", "q", "zz.q")
_FOLDERS = ("", "q/", "zz/q/")
_BELOW = ("", "/", "/q", "/q/")
_NO_NAMES = frozenset({"", ".", ".."})


@frozen
class Shadow:
    """Rule ``index`` (from 0) decides no path: the rules ``by`` above it match everything that it matches.

    ``harmless``: all of ``by`` give the same level, so removing the rule changes nothing.
    """

    index: int
    by: tuple[int, ...]
    harmless: bool


def find_shadows(rules: Sequence[PermissionRule], *, max_steps: int = _MAX_STEPS) -> tuple[Shadow, ...]:
    """Find the rules that can never decide, in order.

    ``max_steps``: the most steps for all proofs together.
    """
    patterns = [parse_git_pattern(rule.pattern) for rule in rules]
    machines, classes, budget = [_Machine(one) for one in patterns], _classes(patterns), _Budget(max_steps)
    found: list[Shadow] = []
    for index in range(1, len(patterns)):
        if machines[index].is_long or _decides_a_sample(machines, patterns[index], index):
            continue
        by = _hiders(machines, index, classes, budget)
        if by:
            level = rules[index].permission
            found.append(Shadow(index, by, all(rules[one].permission is level for one in by)))
    return tuple(found)


def _decides_a_sample(machines: Sequence[_Machine], pattern: GitPattern, index: int) -> bool:
    """Tell whether the pattern decides one of its sample words, which nearly always saves the proof.

    It builds no matcher, since every start of the program looks through the policy.
    """
    draw = random.Random(index)
    above = [one for one in machines[:index] if not one.is_long]
    for _ in range(_SAMPLES):
        word = "".join(_piece(draw, token) for token in _whole(pattern)) + draw.choice(_BELOW)
        if not _NO_NAMES.isdisjoint(word.removesuffix("/").split("/")) or not machines[index].takes(word):
            continue
        taker = next((at for at, one in enumerate(above) if one.takes(word)), None)
        if taker is None:
            return True
        above.insert(0, above.pop(taker))  # this pattern probably takes the next word, too
    return False


def _piece(draw: random.Random, token: Token) -> str:
    if isinstance(token, Wild):
        choices = _FOLDERS if token is Wild.DEEP_FOLDERS else (*_NAMES, "q/z") if token is Wild.DEEP_STAR else _NAMES
        return draw.choice(choices)
    liked = [code for code in token if chr(code).isalnum()] or sorted(token)
    return chr(draw.choice(liked)) if liked else ""


def _whole(pattern: GitPattern) -> tuple[Token, ...]:
    """The tokens that match a whole path."""
    tokens = pattern.tokens or ()
    return (Wild.DEEP_FOLDERS, *tokens) if pattern.basename else tokens


def _hiders(machines: Sequence[_Machine], index: int, classes: Sequence[int], budget: _Budget) -> tuple[int, ...]:
    above = [one for one in range(index) if not machines[one].is_long]
    for one in above:
        if _is_covered(machines[index], [machines[one]], classes, budget):
            return (one,)
    if not _is_covered(machines[index], [machines[one] for one in above], classes, budget):
        return ()
    needed = above
    for one in above:
        fewer = [other for other in needed if other != one]
        if _is_covered(machines[index], [machines[other] for other in fewer], classes, budget):
            needed = fewer
    return tuple(needed)


def _classes(patterns: Sequence[GitPattern]) -> tuple[int, ...]:
    """One byte for each class of bytes that no pattern distinguishes; ``/`` is a class of its own."""
    sets = {token for pattern in patterns for token in _whole(pattern) if not isinstance(token, Wild)}
    ordered = sorted(sets, key=sorted)
    kinds: dict[tuple[bool, ...], int] = {}
    for code in range(1, 256):
        if code != _SLASH:
            kinds.setdefault(tuple(code in one for one in ordered), code)
    return (*kinds.values(), _SLASH)


@dataclass(slots=True)
class _Budget:
    """The steps that remain for all proofs together."""

    steps: int


class _Machine:
    """An automaton for the paths that a pattern matches, directly or by a folder above; a state is a set of places, as
    bits.

    Place ``k`` stands before token ``k``; behind the last token the path itself matches, and ``inside`` it everything
    matches because a folder above did. A ``**/`` has a second place among its folders.
    """

    def __init__(self, pattern: GitPattern) -> None:
        self._tokens = _whole(pattern)
        self._folders_only = pattern.folders_only
        self.is_long = len(self._tokens) > _MAX_TOKENS
        count = len(self._tokens)
        self._matched = 1 << count
        self.inside = 1 << (count + 1)
        self._among = count + 2
        self._known: dict[tuple[int, int], int] = {}
        self.start = self._closure(1)

    def accepts(self, state: int, *, folder: bool) -> bool:
        """Tell whether the path so far matches; ``folder``: it ends with ``/``."""
        if state & self.inside:
            return True
        return not folder and not self._folders_only and bool(state & self._matched)

    def takes(self, word: str) -> bool:
        """Tell whether a path matches, given as one character per byte; a final ``/`` means a folder."""
        state = self.start
        for char in word:
            state = self.step(state, ord(char))
            if not state or state & self.inside:
                return bool(state)
        return self.accepts(state, folder=word.endswith("/"))

    def step(self, state: int, code: int) -> int:
        """The state after one more byte."""
        key = (state, code)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._closure(self._next(state, code))
        return found

    def _next(self, state: int, code: int) -> int:
        if state & self.inside:
            return self.inside
        if code == _SLASH and state & self._matched:
            return self.inside
        after = 0
        for place, token in enumerate(self._tokens):
            if state >> (self._among + place) & 1:
                after |= 1 << (self._among + place)
                if code == _SLASH:
                    after |= 1 << (place + 1)
            if not state >> place & 1:
                continue
            if token is Wild.DEEP_STAR or (token is Wild.STAR and code != _SLASH):
                after |= 1 << place
            elif not isinstance(token, Wild) and code in token:
                after |= 1 << (place + 1)
        return after

    def _closure(self, state: int) -> int:
        """The state together with the places that need no further byte."""
        for place, token in enumerate(self._tokens):
            if state >> place & 1 and isinstance(token, Wild):
                state |= 1 << (place + 1)
                if token is Wild.DEEP_FOLDERS:
                    state |= 1 << (self._among + place)
        return state


def _is_covered(one: _Machine, others: Sequence[_Machine], classes: Sequence[int], budget: _Budget) -> bool:
    """Tell whether ``others`` together match every path that ``one`` matches; False if the proof takes too long."""
    start: tuple[bool, int, tuple[int, ...]] = (True, one.start, tuple(other.start for other in others))
    seen: set[tuple[bool, int, tuple[int, ...]]] = {start}
    waiting: list[tuple[bool, int, tuple[int, ...]]] = [start]
    while waiting:
        after_slash, mine, theirs = waiting.pop()
        budget.steps -= len(classes) * (1 + len(others))
        if budget.steps < 0:
            return False
        for code in classes:
            if code == _SLASH and after_slash:
                continue
            stepped = one.step(mine, code)
            if not stepped:
                continue
            folder = code == _SLASH
            states = [other.step(state, code) for other, state in zip(others, theirs, strict=True)]
            if any(state & other.inside for other, state in zip(others, states, strict=True)):
                continue
            if one.accepts(stepped, folder=folder) and not any(
                other.accepts(state, folder=folder) for other, state in zip(others, states, strict=True)
            ):
                return False
            found = (folder, stepped, tuple(states))
            if found not in seen:
                seen.add(found)
                waiting.append(found)
    return True
