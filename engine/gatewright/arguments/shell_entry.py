"""Entries of the lists of ``[workspace] shell``, and the commands behind programs that only start another one.

An entry names a program, or a program with its first words: ``git``, ``git status``, ``npm run test:*``. What ``allow``
names has to stand there literally, right behind the program. What ``ask`` and ``deny`` name counts as soon as it may
stand there: behind options and their values, in other case, in a word that only the running command decides.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from gatewright.arguments.shell_program import EVERY
from gatewright.arguments.shell_word import FIRST_HOLE, GLOB, GLOB_SIGNS, MARKS, WITHOUT_MARKS, Hole, Word, quote
from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex
from gatewright.base.pattern import compile_linear

_QUOTED = late_regex(r"'[^']*'|\"[^\"$`\\]*\"")
_PROGRAM = late_regex(r"[^\s*?\[\]{}$`'\"\\|&;<>()=~#]+|\[")
_VARIABLE = late_regex(r"[A-Za-z_][A-Za-z0-9_]*=")
_NO_WORD = late_regex(r"[*?\[\]'\"(){}#]|(?:^| )~")
_TOKEN = late_regex(r"[^\s;|&()<>`'\"$={}]+")
_SHORT = late_regex(r"-[A-Za-z0-9]{1,3}")
_LETTERS = late_regex(r"-[A-Za-z0-9]+")
MOST_OFFERED = 20
"""The most entries that the model is told of."""


@frozen
class Entry:
    """One entry. ``ends``: no further word may follow; ``is_open``: it is written with ``:*``."""

    program: str
    words: tuple[str, ...] = ()
    ends: bool = False
    is_open: bool = False

    def names(self, program: str, words: Sequence[Word], *, more: bool) -> bool:
        """Tell whether a call surely begins with these words; ``more``: unknown words follow those of the call."""
        count = len(self.words)
        if program != self.program or len(words) < count or (self.ends and (more or len(words) > count)):
            return False
        return all(word.literal == said for word, said in zip(words, self.words, strict=False))

    def is_within(self, other: Entry) -> bool:
        """Tell whether the other entry, one of ``deny``, names every call that this one names."""
        said = tuple(word.lower() for word in other.words)
        is_same = other.program == EVERY or self.program.lower() == other.program.lower()
        return is_same and tuple(word.lower() for word in self.words[: len(said)]) == said

    def may_name(self, words: Sequence[Word], *, more: bool) -> bool:
        """Tell whether a call of the program may begin with these words, or have these options anywhere."""
        said = [word.lower() for word in self.words]
        if not all(more or _has_option(words, one) for one in said if one.startswith("-")):
            return False
        places = {0}
        for at, one in enumerate(said):
            if not one.startswith("-"):
                is_last = self.is_open and at == len(said) - 1
                places = {place for start in places for place in _places(words, start, one, more, is_last)}
        return bool(places)


def _places(words: Sequence[Word], start: int, said: str, more: bool, is_open: bool) -> Iterator[int]:
    """Yield each place behind the word where it may stand, as the first that is no option and no value of one."""
    for at in range(start, len(words)):
        word = words[at]
        if _may_be(word, said) or (is_open and (word.literal or "").lower().startswith(f"{said}:")):
            yield at + 1
        if not (_may_be_option(word) or (at > start and _may_be_option(words[at - 1]))):
            return
    if more:
        yield len(words)


def _may_be(word: Word, said: str) -> bool:
    if word.literal is not None:
        return word.literal.lower() == said
    if word.forms is not None and not any(map(GLOB.search, word.forms)):
        return any(form.lower() == said for form in word.forms)
    return word.splits or said.startswith(word.head.lower())


def _may_be_option(word: Word) -> bool:
    return word.head[:1] == "-" or (word.literal is None and (word.splits or not word.head))


def _has_option(words: Sequence[Word], said: str) -> bool:
    """Tell whether a call may have an option: shortened, with a value, or among other letters behind one dash."""
    letters = set[str]()
    for word in words:
        text = word.head.lower()
        if _may_be(word, said) or text.startswith(f"{said}=") or (word.literal is None and _may_be_option(word)):
            return True
        if len(text) > len("--") and text.startswith("--") and said.startswith(text.partition("=")[0]):
            return True
        if _LETTERS.fullmatch(text):
            letters |= set(text[1:])
    return _SHORT.fullmatch(said) is not None and letters.issuperset(said[1:])


@lru_cache(1024)
def read_entry(text: str) -> Entry:
    """Read an entry of a list. Raises ValueError with the fault of one that could never match."""
    said = text.removesuffix(":*")
    is_open = said != text
    if text == EVERY or _VARIABLE.fullmatch(text):
        return Entry(text)
    bare = _QUOTED.sub("q", said)
    ends = bare.endswith(" $")
    if ends or bare.endswith(" *"):
        said, bare = said[:-2], bare[:-2]
    if bare != bare.strip() or not bare or not bare.isprintable():
        raise ValueError("is empty, or has blanks around it or control characters in it")
    if found := next((sign for sign in ("&&", "||", "|", ";", "&", ">", "<", "$", "`", "\\") if sign in bare), ""):
        raise ValueError(f"holds `{found}`, and an entry is one command")
    if bare.endswith("*"):
        raise ValueError(f"ends in `*` without a blank: whole words count, as in `{bare.rstrip('*').rstrip(':')}:*`")
    first, *rest = bare.split()
    if _NO_WORD.search(" ".join(rest)):
        raise ValueError("holds a pattern or a quotation mark: `*` may stand only at its end, quotes around a word")
    if "=" in first:
        raise ValueError("sets a variable first: name the command alone, and the variable as `NAME=`")
    try:
        program, *words = shlex.split(said)
    except ValueError:
        program, words = "", []
    if not _PROGRAM.fullmatch(first) or program != first:
        raise ValueError("is neither the name of a program nor `*` nor `NAME=`")
    if program in WRAPPERS and words:
        raise ValueError(f"begins with `{program}`, which is seen through: name the command behind it")
    return Entry(program, tuple(words), ends, is_open)


@lru_cache(64)
def entries_of(listed: tuple[str, ...] | frozenset[str]) -> Mapping[str, tuple[tuple[int, Entry], ...]]:
    """Return the entries with their numbers, by their programs in small letters. Raises ValueError."""
    found: dict[str, tuple[tuple[int, Entry], ...]] = {}
    for at, text in enumerate(listed):
        entry = read_entry(text)
        key = entry.program.lower()
        found[key] = (*found.get(key, ()), (at, entry))
    return found


def words_of(text: str) -> set[str]:
    """Return the words of an entry as they may stand in a text, in small letters and without folders."""
    entry = read_entry(text)
    return {word.rpartition("/")[2].lower() for word in (entry.program, *entry.words)}


def offer(texts: Iterable[str]) -> str:
    """Return entries as the model is told of them."""
    entries = map(read_entry, islice(texts, MOST_OFFERED))
    return ", ".join(f"`{' '.join((one.program, *map(quote, one.words)))}`{' alone' * one.ends}" for one in entries)


def programs_in(form: str, known: Iterable[str]) -> Iterator[str]:
    """Yield the ``known`` programs that a form of a word may name, by a path or within a command."""
    for token in _TOKEN.findall(form):
        bare = token.rpartition("/")[2].lower()
        if GLOB.search(bare) is None:
            if bare in known:
                yield bare
            continue
        fits = compile_linear("".join(_pattern(bare)))
        yield from (name for name in known if fits.fullmatch(name))


def _pattern(pattern: str) -> Iterator[str]:
    """Yield the regular expression for everything that a pattern may match; brackets may match any letter."""
    for piece in re.split(f"({MARKS['[']}[^{MARKS[']']}]*{MARKS[']']}?|[{re.escape(GLOB_SIGNS)}])", pattern):
        mark = piece[:1]
        if mark == MARKS["["]:
            yield "." if piece.endswith(MARKS["]"]) else ".*"
        elif mark and mark in GLOB_SIGNS:
            yield {MARKS["*"]: ".*", MARKS["?"]: "."}.get(mark, re.escape(mark.translate(WITHOUT_MARKS)))
        else:
            yield re.escape(piece)


class _Wrapper(NamedTuple):
    """The options of a program in front of the command that it starts.

    ``alone``: options without a value, or with theirs behind; ``valued``: those whose value is the next word.
    ``operands``: the words between the options and the command.
    """

    alone: str = "$."
    valued: str = "$."
    operands: int = 0


WRAPPERS = {
    "command": _Wrapper("-p"),
    "env": _Wrapper("-[i0v]*(u.+)?|--(ignore-environment|null|debug|unset=.+)", "-[i0v]*u|--unset"),
    "ionice": _Wrapper("-t?([cn].+)?|--(ignore|class=.+|classdata=.+)", "-t?[cn]|--class(data)?"),
    "nice": _Wrapper("-n.+|-[0-9]+|--adjustment=.+", "-n|--adjustment"),
    "nohup": _Wrapper(),
    "setsid": _Wrapper("-[cfw]+|--(ctty|fork|wait)"),
    "stdbuf": _Wrapper("-[ioe].+|--(input|output|error)=.+", "-[ioe]|--(input|output|error)"),
    "time": _Wrapper("-[pvq]*(f.+)?|--(portability|verbose|quiet|format=.+)", "-[pvq]*f|--format"),
    "timeout": _Wrapper(
        "-[fpv]*([ks].+)?|--(foreground|preserve-status|verbose|(kill-after|signal)=.+)",
        "-[fpv]*[ks]|--kill-after|--signal",
        1,
    ),
    "xargs": _Wrapper(
        "-[0rtx]*([nPLdEs].+)?|-I.+|--(null|no-run-if-empty|verbose|exit|(max-args|max-procs|max-lines|replace)=.+)",
        "-[0rtx]*[nPLdEs]|-I|--max-args|--max-procs|--max-lines",
    ),
}
"""Programs that only start the command behind their options, so that this one is judged instead."""


class Inner(NamedTuple):
    """The command behind a wrapper: its words begin at ``at``, its program is the first of them.

    ``words``: as far as they are known when the wrapper has filled them in; ``assigned``: those that set a variable;
    ``more``: unknown ones follow.
    """

    at: int
    words: tuple[Word, ...]
    assigned: tuple[Word, ...]
    more: bool


def command_behind(wrapper: str, words: Sequence[Word], *, more: bool) -> Inner | None:
    """Find the command that a wrapper starts, which has no words if there is none; None if that is not certain."""
    known, at, filled = WRAPPERS[wrapper], 0, ""
    while at < len(words) and words[at].head[:1] == "-" and words[at].literal != "-":
        text, following = words[at].literal or "", words[at + 1].literal if at + 1 < len(words) else None
        at += 1
        if text == "--":
            break
        if re.fullmatch(known.valued, text) and following is not None:
            at += 1
            filled = following if text == "-I" else filled
        elif not re.fullmatch(known.alone, text):
            return None
        elif text.startswith(("-I", "--replace=")):
            filled = text.removeprefix("-I").removeprefix("--replace=")
    options = at = at + known.operands
    while wrapper == "env" and at < len(words) and ("=" in words[at].head or words[at].literal == "-"):
        at += 1
    is_written = all(word.literal is not None for word in words[:options])
    if not is_written or at > len(words) or (at == len(words) and more):
        return None
    inner = tuple(_filled(word, filled) if filled else word for word in words[at:])
    return Inner(at, inner, tuple(words[options:at]), more or (wrapper == "xargs" and not filled))


def _filled(word: Word, sign: str) -> Word:
    """Return a word in which the wrapper replaces the sign by a text of its input."""
    known, found, _ = word.head.partition(sign)
    return Word(f"{known}{chr(FIRST_HOLE)}", (Hole(sign),)) if found or word.literal is None else word
