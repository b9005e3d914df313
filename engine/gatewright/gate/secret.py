"""The secrets in a text: keyed values, known token shapes, unlabelled random strings.

Everything runs in time linear in the text: RE2 finds the places, and a bounded look around each judges it. After
`MAX_PLACES` places of one kind the rest of a text is withheld, which bounds the time for a hostile text. It misses a
password that is a plain word in the middle of a sentence. It wrongly removes a service's identifier that is as random
as a token (a JSON key that ends in ``id`` keeps its value, see ``scrub``).
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from gatewright.base.late import late_regex
from gatewright.base.pattern import LinearMatch, LinearPattern, compile_linear, linear_test

Span = tuple[int, int]

_KEY_NAMES = (
    r"pass(?:word|wd|phrase|code)|pwd|"
    r"(?:api|access|secret|private|signing|encryption|account|master|(?:shared|secret)[_. -]?access)[_. -]?key|"
    r"secret|token|credentials?|authorization|cookie|bearer"
)
_KEYED = rf"(?i)({_KEY_NAMES})\\{{0,4}}[\"'`]?[ \t]{{0,8}}(:=|=>|[:=])[ \t]{{0,8}}"
_SAID = (
    r"(?i)(?:\b(?:pass(?:word|phrase|code)|(?:api|secret|access)[ _-]?key|(?:(?:access|refresh|bearer)[ _-])?token|"
    r"secret)[ \t]{1,3}(?:is|was)[ \t]{0,2}:?|\blogin[ \t]{1,3}[^\s]{1,64}[ \t]{1,3}password|"
    r"--[a-z0-9-]{0,32}(?:pass(?:word|wd|phrase)|token|secret|(?:api|secret|access|private)-?key))[ \t]{1,3}"
)
_BEARER = r"(?i)\bbearer[ \t]+([A-Za-z0-9._~+/=-]{8,})"
_USERINFO = r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\"'<>\[\]]{0,128}:([^\s/@\"'<>]{1,256})@"
_LOGIN = r"(?:[ \t]-u|--(?:proxy-)?user)[ \t=]{1,3}[\"']?[^\s:\"']{1,64}:([^\s\"']{4,256})"
_GLUED = (
    r"\b(?:sshpass[ \t](?:[^\n|;&\"']*?[ \t])?-p[ \t]{0,4}|"
    r"(?:mysql(?:dump|admin|import|show|check|slap|pump|sh)?|mariadb(?:-(?:dump|admin|import|show|check|slap))?)[ \t]"
    r"(?:(?:[^\n|;&\"']|\"[^\"\n]*\"|'[^'\n]*')*?[ \t])?-p)"
    r"(\"[^\"\n]{1,256}\"|'[^'\n]{1,256}'|[^\s\"'|;&<>]{1,256})"
)
_SHAPES = (
    r"\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}\b|gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255}|"
    r"glpat-[A-Za-z0-9_-]{20,64}|sk-[A-Za-z0-9_-]{20,255}|[rs]k_(?:live|test)_[A-Za-z0-9]{10,255}|"
    r"xox[abeoprs]-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255}|AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,}|"
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{40,}|"
    r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}|hf_[A-Za-z0-9]{30,64}|do[opr]_v1_[a-f0-9]{64}|shp(?:at|ss|pa)_[a-fA-F0-9]{32}|"
    r"sbp_[a-f0-9]{40}|rubygems_[a-f0-9]{48}|xkeysib-[a-f0-9]{64}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|NRAK-[A-Z0-9]{27}|"
    r"key-[a-f0-9]{32}\b|amzn\.mws\.[a-f0-9-]{36}|pat-[a-z]{2}[0-9]-[a-f0-9-]{36}|"
    r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}|AGE-SECRET-KEY-1[0-9A-Z]{58})|"
    r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,100}|discord(?:app)?\.com/api/webhooks/[0-9]{5,25}/[A-Za-z0-9_-]{30,100}"
)
_BLOCK = (
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----((?:[A-Za-z0-9+/=\s\\:,]|-[A-Za-z0-9])*)"
    r"(?:-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?"
)
_HEXED = (
    r"(?i)(?:(?:key|auth)(?:_?base)?[\"'`]?(?:[ \t]{0,8}(?::=|=>|[:=])|[ \t]{1,3}(?:is|was))|"
    r"(?:api[ _-]?key|token|secret|--[a-z-]{0,32}key)(?:[ \t]{1,3}to)?|x-(?:amz|goog)-signature=)"
    r"[ \t]{0,8}[\"'`]?([0-9a-f]{32,256})\b"
)
_RUN = r"[A-Za-z0-9+/_=-]{24,}"
_HINT = rf"(?i)pass|pwd|mysql|mariadb|{_KEY_NAMES}|://[^/\s]*@|[ \t]-u[ \t]|-user|[A-Za-z0-9_-]{{14}}"

_SHORT_WORD = late_regex(r"[^\s:=]{0,13}")
_PLAIN = late_regex(r"[^\s\"'`,;&|<>(){}\[\]\\]{1,512}")
_QUOTE = late_regex(r"\\{0,4}[\"'`]")
_AUTHORIZATION = late_regex(
    r"[\"'`\\]*((?:basic|bearer|digest|token|negotiate|apikey|bot)[ \t]+)?([^\s\"'`,;&|<>(){}\[\]\\]{1,512})",
    re.IGNORECASE,
)
_HEX = late_regex(r"[0-9a-fA-F]*")
_WORD = late_regex(r"[A-Z]?[a-z]{3,}|(?<![A-Za-z])[A-Z]{2,}(?![a-z])")
_PIECES = late_regex(r"[/_=+-]")
_COOKIE_LINE = late_regex(r"[\"'`\\]*([\w.-]{1,64}=[^\s\"'`\\][^\r\n\"'`\\]{0,4096})")
_AFTER_LINE = late_regex(r"\r?\n[A-Za-z0-9+/]")
_LINE_BEFORE = late_regex(r"(?:^|\n)[A-Za-z0-9+/]{60,76}\r?\n\Z")
_FLIPS = late_regex(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")
_DOTTED = late_regex(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_COUNTED = late_regex(r"\d+[-_]?[A-Za-z]+")
_VARIABLE = late_regex(r"\$[A-Z_][A-Z0-9_]*|%[A-Z_]+%")
_ULID = late_regex(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_BEFORE_HASH = late_regex(r"(?:sha(?:1|256|384|512)[-:]|data:[\w/+.;=-]{1,80};base64,)\Z")
_PAGING = late_regex(
    r"(?:next|prev|previous|page|paging|pagination|continuation|sync|cursor|start|resume)[_.-]?\Z", re.I
)
_OPEN_KEY = late_regex(
    r"(?:public|pub|primary|foreign|unique|cache|partition|sort|row|group|routing|storage|object|host|lookup|idempotency)"
    r"[_. -]?\Z",
    re.I,
)
_PLACEHOLDERS = frozenset(
    """none null nil undefined true false string str text bool boolean int integer number float any object bytes array
    list required optional missing invalid incorrect empty wrong correct expired unknown default valid set unset hidden
    redacted password passwd pwd passphrase secret token key apikey value example placeholder needed enabled disabled
    yes no on off basic bearer oauth oauth2 cookie header file env stdin prompt ask input varchar char weak strong
    pass pw encrypted hashed stored generated random changed updated reset sent var let const""".split()  # noqa: SIM905 sixty words are easier to read as words
)
_MIN_RUN, _MAX_RUN = 24, 512
_MIN_BITS = 3.8
"""The bits of entropy per character in a random string."""
_ARMOUR_WIDTHS = (60, 64, 72, 76)
MAX_PLACES = 20_000
_NAME = string.ascii_letters + string.digits + "_.-"
_LOOK_BACK = 128


@cache
def _hints() -> Callable[[bytes], list[int]]:
    return linear_test(_HINT)


@lru_cache(maxsize=16)
def _pattern(text: str) -> LinearPattern:
    return compile_linear(text)


def secret_spans(text: str, *, unlabelled: bool = True) -> list[Span]:
    """The places of the secrets in ``text``, in order and without overlap.

    ``unlabelled`` False: ignore random strings without a label.
    """
    if _SHORT_WORD.fullmatch(text):
        return []
    hints = _hints()(text.encode())
    if hints and 0 not in hints:
        return []
    kinds = (*_KINDS, (_RUN, _random)) if unlabelled else _KINDS
    return _merge([span for pattern, judge in kinds for span in _judge(pattern, text, judge)])


def _judge(pattern: str, text: str, judge: Callable[[str, LinearMatch], Span | None]) -> Iterator[Span]:
    """The spans of the matches that are secrets; after too many, all the rest."""
    for count, match in enumerate(_pattern(pattern).finditer(text)):
        if count == MAX_PLACES:
            yield match.span()[0], len(text)
            return
        span = judge(text, match)
        if span is not None:
            yield span


def _merge(found: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            first, last = merged.pop()
            merged.append((first, max(end, last)))
        else:
            merged.append((start, end))
    return merged


def _before(text: str, at: int) -> str:
    return text[max(0, at - _LOOK_BACK) : at]


def _block(_text: str, match: LinearMatch) -> Span | None:
    """A private key in PEM armour, cut off or whole; a bare mention of the first line does not count."""
    return match.span() if len(match.group(1)) >= _MIN_RUN else None


def _shape(_text: str, match: LinearMatch) -> Span | None:
    return None if match.group().startswith("sk-") and wordy(match.group()) else match.span()


def _userinfo(_text: str, match: LinearMatch) -> Span | None:
    return None if _is_placeholder(match.group(1)) else match.span(1)


def _login(_text: str, match: LinearMatch) -> Span | None:
    """``curl -u name:password``; numbers are a user and a group."""
    return match.span(1) if is_dense(match.group(1)) and not match.group(1).isdigit() else None


def _glue(text: str, match: LinearMatch) -> Span | None:
    """``mysql -pSECRET`` and the like; numbers with a colon are ports."""
    start, end = match.span(1)
    if text[start] in "\"'":
        start, end = start + 1, end - 1
    value = text[start:end]
    is_ports = ":" in value and value.replace(":", "").isdigit()
    return None if is_ports or _is_placeholder(value) else (start, end)


def _bearer(_text: str, match: LinearMatch) -> Span | None:
    value = match.group(1)
    return match.span(1) if is_dense(value) or (len(value) >= _MIN_RUN and not wordy(value)) else None


def _hex_digits(text: str, match: LinearMatch) -> Span | None:
    """Hexadecimal digits after a word for a secret; anywhere else they are a hash or an id."""
    return None if names_open_key(_before(text, match.span()[0])) else match.span(1)


def names_open_key(before: str) -> bool:
    """Tell whether the words ``before`` the word key make it public: a public key, the key of a cache."""
    return _OPEN_KEY.search(before) is not None


def _prose(text: str, match: LinearMatch) -> Span | None:
    """``the password is x``: a quoted value, or one unlike any word."""
    start, end, quoted = _value_at(text, match.span()[1])
    value = text[start:end].rstrip(".!?:")
    if quoted:
        return None if " " in value or _is_placeholder(value) else (start, end)
    is_secret = is_dense(value) and len(value) >= 4 and not _COUNTED.fullmatch(value)
    return (start, start + len(value)) if is_secret else None


def _key_value(text: str, match: LinearMatch) -> Span | None:
    (start, at), key, separator = match.span(), match.group(1).casefold(), match.group(2)
    if key == "cookie":  # the rest of a header's line, which must contain `name=value`
        line = _COOKIE_LINE.match(text, at) if separator == ":" else None
        return line.span(1) if line else None
    if key == "authorization":
        return _authorization(text, at)
    first, last, quoted = _value_at(text, at)
    value = text[first:last]
    weak = key in ("token", "bearer") or key.startswith("credential")
    if _is_placeholder(value) or (weak and _PAGING.search(_before(text, start))):
        return None
    if key.endswith("key") and len(value) < 6:
        return None
    if quoted:
        return (first, last) if is_quoted_secret(value, weak=weak, phrase="phrase" in key) else None
    if text[last : last + 1] in ("(", "[", "{") or _DOTTED.fullmatch(value):
        return None
    value = value.rstrip(".!?") if separator == ":" else value
    if is_dense(value) and len(value) >= (8 if weak else 4):
        return first, first + len(value)
    if weak or not _stands_alone(text, start, first, last, separator):
        return None
    return first, last


def _stands_alone(text: str, start: int, first: int, last: int, separator: str) -> bool:
    """Tell whether a plain word after a key is a setting (its own line, a part of a query), not code or prose."""
    before = _before(text, start).rpartition("\n")[2].rstrip(_NAME)
    after = text[last : last + 1]
    value = text[first:last]
    if len(value) < 4 or (any(c.isupper() for c in value[1:]) and any(c.islower() for c in value)):
        return False
    if separator == "=":
        tight = text[first - 1] == "="
        return tight and (
            before[-1:] in ("?", "&", ";") or (before in ("", "export ", "set ") and after in ("", "\n", "\r"))
        )
    return separator == ":" and before.strip(" -") == "" and after in ("", "\n", "\r") and "_" not in value


def _value_at(text: str, at: int) -> tuple[int, int, bool]:
    """Start and end of the value that begins at ``at``, and whether it is quoted (perhaps with escapes)."""
    opening = _QUOTE.match(text, at)
    if opening is not None:
        first = opening.end()
        length = text[first : first + 4096].partition("\n")[0].find(opening.group())
        if length >= 0:
            return first, first + length, True
    match = _PLAIN.match(text, at)
    return at, match.end() if match else at, False


def _authorization(text: str, at: int) -> Span | None:
    match = _AUTHORIZATION.match(text, at)
    if match is None:
        return None
    scheme, value = match.groups()
    if _is_placeholder(value) or (scheme is None and _DOTTED.fullmatch(value)):
        return None
    long = 6 if scheme else 16
    return match.span(2) if is_dense(value) or (len(value) >= long and not wordy(value)) else None


def is_quoted_secret(value: str, *, weak: bool, phrase: bool = False) -> bool:
    """Tell whether the quoted text after a key is a secret; a sentence (a description, an error) is not."""
    if _is_placeholder(value):
        return False
    words = value.split()
    if len(words) > 1:
        return phrase or any(is_dense(word) and len(word) >= 6 and not _COUNTED.fullmatch(word) for word in words)
    return (len(value) >= 8 and is_dense(value)) if weak else True


def is_dense(value: str) -> bool:
    """Tell whether ``value`` mixes letters with digits or marks, unlike any word; digits alone count too."""
    letters = sum(c.isalpha() for c in value)
    digits = sum(c.isdigit() for c in value)
    marks = sum(c in "!@#$%^*+=~?/" for c in value)
    return bool(
        (letters and digits)
        or (letters and marks and value.isascii() and "//" not in value)
        or digits == len(value) > 3
    )


def _is_placeholder(value: str) -> bool:
    """Tell whether a word only stands for a secret: a type, a template, stars, our own marker."""
    plain = value.strip().casefold()
    return (
        plain.strip(".,;:!?*") in _PLACEHOLDERS
        or plain.startswith(("your", "${", "$(", "{", "<", "%s", "%(", "[", "(", "...", "xxx", "example"))
        or _VARIABLE.fullmatch(value) is not None
        or not plain.strip("*.x-_•")
    )


def _random(text: str, match: LinearMatch) -> Span | None:
    """A random string in a base64-like alphabet."""
    start, end = match.span()
    is_secret = (
        end - start <= _MAX_RUN
        and not _is_armoured(text, start, end)
        and looks_random(match.group())
        and not _BEFORE_HASH.search(_before(text, start))
    )
    return (start, end) if is_secret else None


def _is_armoured(text: str, start: int, end: int) -> bool:
    """Tell whether the run is a full line in a block of encoded data (a certificate, a mail attachment)."""
    if text[start - 1 : start] not in ("", "\n"):
        return False
    if end - start in _ARMOUR_WIDTHS and _AFTER_LINE.match(text, end):
        return True
    return _LINE_BEFORE.search(_before(text, start)) is not None


def looks_random(run: str) -> bool:
    """Tell whether a run of the alphabet is a secret, not a path, an identifier, an id, a hash or an alphabet."""
    if run.startswith(("sha256-", "sha384-", "sha512-")) or "abcdefgh" in run.casefold() or _ULID.fullmatch(run):
        return False
    if wordy(run):
        return False
    pieces = _PIECES.split(run)
    kept = "".join(piece for piece in pieces if not _HEX.fullmatch(piece) and not (len(piece) > 3 and wordy(piece)))
    if len(kept) < 20 or not (any(c.isdigit() for c in kept) or "+" in run or run.endswith("=")):
        return False
    shares = [count / len(run) for count in Counter(run).values()]
    return -sum(share * math.log2(share) for share in shares) >= _MIN_BITS


def wordy(text: str) -> bool:
    """Tell whether most of ``text`` is words, as in identifiers, paths and slugs."""
    marks = sum(c in "/_-=+." for c in text)
    words = sum(len(word) for word in _WORD.findall(text))
    letters = len(text) - marks
    return letters == 0 or (words >= 0.6 * letters and len(_FLIPS.findall(text)) <= 1 + letters // 8)


_KINDS: tuple[tuple[str, Callable[[str, LinearMatch], Span | None]], ...] = (
    (_BLOCK, _block),
    (_KEYED, _key_value),
    (_SAID, _prose),
    (_HEXED, _hex_digits),
    (_SHAPES, _shape),
    (_USERINFO, _userinfo),
    (_LOGIN, _login),
    (_GLUED, _glue),
    (_BEARER, _bearer),
)
