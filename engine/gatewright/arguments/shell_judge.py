"""Judges one shell command: the programs that it may start, the files that its words and variables may name.

A word with unknown parts could name any file, even those of the policy, so it is refused, unless the command only
prints it to programs that read no file names from their input. A variable may have every value that the command sets
anywhere, in whatever order, or none; a shell that is fresh for the command, with a known environment, has no others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from gatewright.arguments import shell_program as programs
from gatewright.arguments.path import MAX_NAME_BYTES
from gatewright.arguments.shell_entry import (
    MOST_OFFERED,
    WRAPPERS,
    Entry,
    Inner,
    command_behind,
    entries_of,
    offer,
    programs_in,
    words_of,
)
from gatewright.arguments.shell_program import EVERY, Listing, ShellRules, runs_others, sets_variables
from gatewright.arguments.shell_word import (
    GLOB,
    GLOB_SIGNS,
    MARKS,
    MAX_FORMS,
    MOST_SHOWN,
    WITHOUT_MARKS,
    Refusal,
    Word,
    WordReader,
)
from gatewright.base.errors import Address
from gatewright.base.late import late_regex

if TYPE_CHECKING:
    from tree_sitter import Node

_SIGN = late_regex(r"[=@:,;]")
"""Signs behind or between which a program may read a part of an argument as a name."""
_MAX_SIGNS = 16


_MAX_DEPTH = 16
_Values = tuple[str, ...] | None
_PRESET = ("BASH", "COMP_", "GIT_", "READLINE_")
"""Prefixes of names with `_` that the shell, or its parent, sets."""


class Variables:
    """The variables of one command with the tree ``root``; ``is_fresh``: no earlier command set any."""

    def __init__(self, source: bytes, root: Callable[[], Node], *, is_fresh: bool) -> None:
        self._source, self._root, self._is_fresh = source, root, is_fresh
        self._reader = WordReader(source, lambda _: "", self.values)
        self._set: dict[str, list[tuple[Node, bool]]] | None = None
        self._known: dict[str, _Values] = {}
        self._depth = 0

    def values(self, name: str) -> _Values:
        """Return every value, with marks in patterns that a loop goes through; None if the values are unknown."""
        if not self._is_fresh:
            return None
        if self._set is None:
            self._set = self._settings()
        if name not in self._known:
            self._known[name] = None  # for a value made of the variable itself
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
        """Return where the command sets each variable, and whether a loop does.

        No variable counts as known if a program in the command sets others.
        """
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


_OPEN_VARIABLE = late_regex(r"[a-z_][A-Za-z0-9_]*")
_VARIABLE = late_regex(r"[A-Za-z_][A-Za-z0-9_]*")
SETTING = frozenset({"export", "readonly", "local"})
DECLARING = SETTING | {"unset", "declare", "typeset"}
_QUOTES = late_regex(r"['\"\\]")


class Named(NamedTuple):
    """A place that a word of a command may name, with its ``program`` (empty: the shell); ``lists``: it shows names."""

    text: str
    program: str
    lists: Listing | None = None


class Part(NamedTuple):
    """A call in a command, with the entry that allows it, or has it ask first, and the place of that in the policy."""

    text: str
    entry: str
    at: Address
    asks: bool = False


class Judge:
    """Judges one command.

    ``programs``: those it may start; ``words``: places it may name; ``only_reads``: it changes none of them; ``parts``:
    what decided each call.
    """

    def __init__(self, rules: ShellRules) -> None:
        self._rules = rules
        self.programs: dict[str, None] = {}
        self.words: dict[Named, None] = {}
        self.parts: dict[Part, None] = {}
        self.only_reads = True
        self._runner, self._is_text = "", True
        self._calls: set[tuple[str | Word, ...]] = set()
        self._noted: set[tuple[str, str, Listing | None]] = set()
        self._texts: list[Word] = []
        self._forms: dict[str, None] = {}

    def program(self, name: str, words: Sequence[Word]) -> None:
        """Refuse a call that the policy does not permit, or an option with which it would start another program."""
        if (call := (name, *words)) not in self._calls:
            self._calls.add(call)
            self._wrappers = 0
            self._judge_call(name, words, words)

    def variable(self, name: str) -> None:
        """Refuse a variable that may not be set; such variables change which programs the shell finds and starts."""
        allow, deny = self._rules.allow, self._rules.deny
        is_open = _OPEN_VARIABLE.fullmatch(name) or (f"{name}=" in allow and _VARIABLE.fullmatch(name))
        if not is_open or f"{name}=" in deny:
            reason = f"the command sets `{name[:40]}`, and such variables may change what is started"
            raise Refusal("variable", reason, "set only variables whose names begin with a small letter")

    def _judge_call(self, name: str, words: Sequence[Word], filled: Sequence[Word], *, more: bool = False) -> None:
        """Judge a call; ``filled``: its words as a wrapper fills them in; ``more``: unknown ones follow."""
        bare = name.rpartition("/")[2].lower()
        self.programs.setdefault(name)
        shown = _shown(name, words)
        self._forbid(name, bare, shown, filled, more=more)
        if bare in WRAPPERS:
            inner = command_behind(bare, filled, more=more)
            if inner is None:
                reason = f"what `{name}` would start cannot be read from its options"
                hint = f"write `{bare}` with plain options, then the command, its program written out"
                raise Refusal("wrapper", reason, hint)
            if inner.words:
                self._judge_inner(name, words, filled, inner)
                return
        named = self._permit(name, shown, filled, more=more)
        arguments = [word.head if word.literal is None else word.literal for word in filled]
        self.only_reads &= programs.only_reads(name, arguments)
        self._is_text &= programs.takes_only_text(name)
        option = self._option_that_runs(name, bare, filled, arguments, named, more=more)
        if option or runs_others(name):
            self._runner = self._runner or name
        lists = programs.listing(name, arguments)
        if programs.takes_whole_folder(bare, arguments):
            self.words.setdefault(Named(".", name, lists))
        is_known = all(word.forms is not None for word in words)
        opens_nothing = is_known or programs.opens_nothing(name, [word.literal for word in words])
        for word in words:
            if word.forms is not None:
                self.word(word, name, lists=lists)
            elif not opens_nothing or (word.splits and not word.counts):
                raise _not_known(f"`{_shown(word.text, ())}`, an argument of `{name}`,")
            elif not word.counts:
                self._texts.append(word)

    def _judge_inner(self, name: str, words: Sequence[Word], filled: Sequence[Word], inner: Inner) -> None:
        """Judge the command behind a wrapper in its place."""
        self._wrappers += 1
        if self._wrappers > _MAX_DEPTH:
            reason = f"more than {_MAX_DEPTH} programs in front of each other"
            raise Refusal("too-deep", reason, "use simpler commands")
        if "/" in name:
            self._permit(name, _shown(name, words), filled)
        if name.endswith("xargs"):  # it takes words from its input
            self._runner, self._is_text, self.only_reads = self._runner or name, False, False
        for word in inner.assigned:
            if word.literal != "-":
                self.variable(word.head.partition("=")[0])
        for word in words[: inner.at]:
            self.word(word, name)
        program = inner.words[0].literal
        if not program:
            what = f"`{_shown(inner.words[0].text, ())}`, the program behind `{name}`, is not written out"
            reason = f"{what}: it would be known only when the command runs"
            raise Refusal("dynamic-name", reason, "write the name of each program out in full")
        if program in DECLARING:
            raise Refusal("variable", f"`{program}` stands behind `{name}`", "set variables without other programs")
        self._judge_call(program, words[inner.at + 1 :], inner.words[1:], more=inner.more)

    def _forbid(self, name: str, bare: str, shown: str, words: Sequence[Word], *, more: bool) -> None:
        """Refuse a call that an entry of ``deny`` may name, and note the first one of ``ask``."""
        for kind, listed in (("deny", self._rules.deny), ("ask", self._rules.ask)):
            entries = entries_of(listed)
            for key in dict.fromkeys((name.lower(), bare, EVERY)):
                found = next((at for at, entry in entries.get(key, ()) if entry.may_name(words, more=more)), None)
                if found is None:
                    continue
                part = Part(shown, tuple(listed)[found], ("workspace", "shell", kind, found), asks=True)
                if kind == "ask":
                    self.parts.setdefault(part)
                    continue
                by = f"`{part.entry}` of " if " " in part.entry else ""
                reason = f"`{shown if by else name}` is denied by {by}`[workspace] shell`"
                raise self.not_allowed("denied", reason, at=part.at)

    def _permit(self, name: str, shown: str, words: Sequence[Word], *, more: bool = False) -> list[Entry]:
        """Return the entries that permit a call, the first of which is noted."""
        found: list[tuple[Address, str, Entry]] = []
        beside: list[str] = []
        for kind, listed in (("allow", self._rules.allow), ("ask", self._rules.ask)):
            entries, texts = entries_of(listed), tuple(listed)
            for at, entry in (*entries.get(name.lower(), ()), *(entries.get(EVERY, ()) if "/" not in name else ())):
                if entry.program == EVERY and runs_others(name):
                    beside.append(EVERY)
                elif entry.program == EVERY or entry.names(name, words, more=more):
                    found.append((("workspace", "shell", kind, at), texts[at], entry))
                elif entry.program == name:
                    beside.append(texts[at])
        if found:
            self.parts.setdefault(Part(shown, found[0][1], found[0][0]))
        elif beside and EVERY in beside:
            reason = f"`{name}` is there to run other programs, and `*` does not stand for it: `allow` must name it"
            raise self.not_allowed("runs-others", reason)
        elif beside:
            own = offer(beside)
            reason = f"`{shown}` does not begin with the words of {own} in `[workspace] shell`"
            raise Refusal(
                "not-allowed",
                reason,
                f"of `{name}` there is {own}: write these words first, out in full, and options behind them",
                ("workspace", "shell", "allow"),
            )
        else:
            reason = (
                f"`{name}` is not among the programs of `[workspace] shell`; to let it start, add it to `allow` there"
            )
            raise self.not_allowed("not-allowed", reason, at=("workspace", "shell", "allow"))
        return [entry for _, _, entry in found]

    def _option_that_runs(
        self,
        name: str,
        bare: str,
        words: Sequence[Word],
        arguments: Sequence[str],
        named: Sequence[Entry],
        *,
        more: bool,
    ) -> str:
        """Return the option of a program that starts another one, if ``allow`` has it."""
        if not programs.needs_plain_arguments(bare):
            return ""
        for at, word in enumerate(words):
            if word.literal is None and (at == 0 or word.splits or word.head[:1] in {"", "-"}):
                reason = f"an argument of `{name}` is not written out, and may be an option that starts another program"
                hint = "write options out in full; begin names of files with `./` or a folder, quote variables"
                raise Refusal("dynamic-option", reason, hint)
        if more and "--" not in arguments:
            reason = f"`{name}` gets arguments that are not written out, and may be options that start another program"
            raise Refusal("dynamic-option", reason, f"write `--` at the end of the command that `{name}` begins")
        option = programs.option_that_runs(bare, arguments)
        if option and f"{bare} {option}" not in self._rules.allow and not any(option in one.words for one in named):
            reason = f"`{name}` with `{option}` may start other programs; `allow` would have to name `{bare} {option}`"
            raise Refusal("option", reason, "an option in the command may start other programs; do without it")
        return option

    def word(self, word: Word, program: str, *, lists: Listing | None = None, expands: bool = True) -> None:
        """Note the places that a word may name, as far as its forms are known; ``expands``: the shell may expand it
        too.
        """
        for form in word.forms or ():
            noted = (form if expands else plain(form), program, lists)
            if noted in self._noted:
                continue
            self._noted.add(noted)
            places = places_in(noted[0])
            shown = lists if plain(form) == form else None  # a pattern lists its matches, at any depth
            if places is None:
                reason = "a pattern that may lead above the folder that it begins in"
                raise Refusal("unknown-word", reason, "leave `..` out of what stands behind a pattern")
            self._forms.setdefault(form)
            self.words |= {Named(place, program, shown): None for place in places}

    def text(self, word: Word) -> None:
        """Note a text that a program reads."""
        self._texts.append(word)

    def finish(self) -> None:
        """Judge what depends on the whole command."""
        self._judge_texts()
        self._judge_run()

    def _judge_texts(self) -> None:
        """Count a text that programs read, if one of them may read file names in it."""
        if self._is_text:
            return
        for word in self._texts:
            if word.forms is None and not word.counts:
                raise _not_known("a text that goes to a program")
            for form in word.forms or ():
                self._forms.setdefault(form)
                texts = _words_within(form) if self._runner else [line.strip() for line in plain(form).split("\n")]
                self.words |= {Named(text, self._runner): None for text in texts if text}

    def _judge_run(self) -> None:
        """Refuse what is denied, or ask, behind every program that runs others, wherever its words appear."""
        rules = self._rules
        if not self._runner or not (rules.deny or rules.ask):
            return
        words = {text: words_of(text) for text in (*rules.deny, *rules.ask)}
        known, found = set[str]().union(*words.values()), set[str]()
        for form in self._forms:
            found |= {*programs_in(form, known), *programs_in(_QUOTES.sub("", form), known)}
        for kind, listed in (("deny", rules.deny), ("ask", rules.ask)):
            for index, text in enumerate(listed):
                if not found.issuperset(words[text]):
                    continue
                at: Address = ("workspace", "shell", kind, index)
                if kind == "deny":
                    reason = f"`{text}` is denied by `[workspace] shell`, and `{self._runner}` may run it"
                    raise self.not_allowed("denied", reason, at=at)
                self.parts.setdefault(Part(self._runner, text, at, asks=True))

    def not_allowed(self, code: str, reason: str, *, at: Address | None = None) -> Refusal:
        """Return the refusal of a program, with the commands that the model may use."""
        listed = sorted(dict.fromkeys((*self._rules.allow, *self._rules.ask)))
        names = [one for one in listed if one != EVERY and not one.endswith("=")]
        shown, more = offer(names), ", ..." if len(names) > MOST_OFFERED else ""
        there = f"; there are {shown}{more}" if names else ""
        return Refusal(code, reason, f"the command needs a program that is not available to you{there}", at)


def _shown(name: str, words: Sequence[Word]) -> str:
    """Return a call as it is written, cut short."""
    text = " ".join((name, *(word.text for word in words)))
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def _words_within(form: str) -> list[str]:
    """Return the words of a text, as they are and as a shell would read them again."""
    said = plain(form)
    return [word for text in (said, _QUOTES.sub("", said)) for word in text.split()]


def _not_known(what: str) -> Refusal:
    reason = f"{what} is known only when the command runs, so that no level of a file can be held to it"
    return Refusal("unknown-word", reason, "write names of files out in full, without variables or substitutions")


def plain(form: str) -> str:
    """Return a form of a word with its marks turned back into signs."""
    return form.translate(WITHOUT_MARKS)


def places_in(form: str) -> list[str] | None:
    """Return the files that a form of a word may name, whole or behind an option or sign: `-fn`, `if=n`, `x=@n`.

    A pattern names the folders in which it begins, and itself if nothing fits it. None means that it may lead above
    them.
    """
    found = GLOB.search(form)
    if found is None:
        return [one for one in _names(form) if one]
    folder = form[: form.rfind("/", 0, found.start()) + 1]
    if any(map(_may_climb, form[len(folder) :].split("/"))):
        return None
    written = _names(plain(form))
    return [*(one.rstrip("/") or one[:1] or "." for one in _names(folder)), *(one for one in written if one)]


def _names(text: str) -> list[str]:
    """Return the text, and its parts behind signs or an option."""
    found = [text, *_SIGN.split(text), *(text[sign.end() :] for sign in islice(_SIGN.finditer(text), _MAX_SIGNS))]
    if text.startswith("-") and not text.startswith("--"):
        end = len(text.partition("/")[0])
        found += (text[at:] for at in range(max(2, end - MAX_NAME_BYTES), end + 1))
    return found


def _may_climb(step: str) -> bool:
    """Tell whether a step of a pattern is `..` or may match it: some shells let `.*` do that."""
    rest = step[1:]
    return step[:1] == "." and (
        MARKS["["] in rest or (rest.count(".") <= 1 and all(c in GLOB_SIGNS or c == "." for c in rest) and rest != "")
    )
