"""The value of a limit as text that one reads and types. It does not know rules or tools."""

import re
from typing import TypeVar

from gatewright.base.durationwords import duration_words, parse_duration_words
from gatewright.policy.rule import Cooldown, MaxCalls, Periodic, RateLimit, RequiresConsent, RuleKind

K = TypeVar("K", bound=RuleKind)
MAX_CALLS = 1_000_000
_RATE = re.compile(r"\s*(\d[\d,]*)\s*(?:calls?)?\s*(?:per|/|in|every)\s*(.+)", re.IGNORECASE)
RATE_EXAMPLE = "30 per 1 min"


def limit_text(kind: RuleKind) -> str:
    """The value as it can be typed again; empty for a kind without one."""
    match kind:
        case MaxCalls(calls):
            return str(calls)
        case Cooldown(seconds) | Periodic(seconds):
            return duration_words(seconds)
        case RateLimit(calls, per_s):
            return f"{calls:,} per {duration_words(per_s)}"
        case RequiresConsent(scope):
            return scope or ""
        case _:
            return ""


def read_limit(kind: RuleKind, text: str) -> RuleKind:
    """A limit of the same kind with the value that was typed. Raises ValueError saying what is accepted."""
    match kind:
        case MaxCalls():
            return MaxCalls(_calls(text))
        case Cooldown():
            return Cooldown(_seconds(text))
        case Periodic():
            return Periodic(_seconds(text))
        case RateLimit():
            found = _RATE.fullmatch(text)
            if found is None:
                raise ValueError(f"a rate is calls per time, such as `{RATE_EXAMPLE}`")
            per = found[2] if found[2][0].isdigit() else f"1 {found[2]}"  # `30 per min`
            return RateLimit(_calls(found[1]), _seconds(per))
        case RequiresConsent():
            return RequiresConsent(text.strip() or None)
        case _:
            raise ValueError("this rule has no value")


def limit_fault(kind: RuleKind, text: str) -> str:
    """What is wrong with a typed value; empty when nothing is."""
    try:
        read_limit(kind, text)
    except ValueError as error:
        return str(error)
    return ""


def _seconds(text: str) -> float:
    seconds = parse_duration_words(text)
    if seconds <= 0:
        raise ValueError("a time must be longer than nothing")
    return seconds


def _calls(text: str) -> int:
    plain = text.replace(",", "").strip()
    if not plain.isdecimal() or not 1 <= int(plain) <= MAX_CALLS:
        raise ValueError(f"calls are a whole number from 1 to {MAX_CALLS:,}")
    return int(plain)
