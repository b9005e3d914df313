"""Reads a shell command: every program it starts, every file it redirects to, and one canonical text.

The reader parses the text with the grammar of bash and writes anew what will run: each word in quotes that leave it one
meaning, each program by its plain name. If the grammar understands a text differently from a shell, the shell still
gets the text that was judged. The reader refuses unknown constructs, and everything that the shell decides only while
the command runs: a program's name in a variable, arithmetic over variables, an indirect expansion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING

from gatewright.arguments.shell_judge import DECLARING, SETTING, Judge, Named, Part, Variables
from gatewright.arguments.shell_program import MOVING, ShellRules, names, runs_others, stands_for_itself
from gatewright.arguments.shell_word import (
    KEYWORDS,
    MOST_SHOWN,
    SUBSTITUTIONS,
    TOKENS,
    WRITE_PLAINLY,
    CommandRefused,
    Refusal,
    Word,
    WordReader,
    quote,
    quote_always,
)
from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex, once

if TYPE_CHECKING:
    from tree_sitter import Language, Node

MAX_COMMAND_BYTES = 16 * 1024
MAX_SIGNS = 1_000
"""The most of each of the signs ``| ( <``: after a syntax error the grammar searches for a way to go on, in time that
grows by their square.
"""
MAX_DEPTH = 64
"""The deepest nesting of commands in commands."""

Locate = Callable[[str, bool], "str | CommandRefused"]
"""Return the absolute path of a redirect's target (and True if it is written), or the refusal."""


@frozen
class ShellCommand:
    """An accepted command. ``text`` is canonical; ``programs`` are those that it may start, each once, in order.

    ``words``: the files and folders that its words may name; ``only_reads``: the command changes none of them.
    ``parts``: the entries that allow each of its calls, or have it ask first.
    """

    text: str
    programs: tuple[str, ...]
    words: tuple[Named, ...] = field(default=(), repr=False)
    only_reads: bool = False
    parts: tuple[Part, ...] = field(default=(), repr=False, compare=False)


def parse_command(text: str, rules: ShellRules, locate: Locate) -> ShellCommand | CommandRefused:
    """Read ``text``, or return the refusal. Never raises; takes time linear in the length, which is bounded."""
    refused = _text_refusal(text)
    if refused is not None:
        return refused
    try:
        return _Reader(text.encode(), rules, locate).read()
    except Refusal as refusal:
        return refusal.refused


def _text_refusal(text: str) -> CommandRefused | None:
    if not text.strip(" \t\n"):
        return CommandRefused("shell-empty", "the command is empty", "give a command")
    if len(text) > MAX_COMMAND_BYTES or len(text.encode("utf-8", "replace")) > MAX_COMMAND_BYTES:
        reason = f"the command is longer than {MAX_COMMAND_BYTES:,} bytes"
        return CommandRefused("shell-too-long", reason, "use shorter commands")
    if any(text.count(sign) > MAX_SIGNS for sign in "|(<"):
        reason = f"the command holds one of the signs | ( < more than {MAX_SIGNS:,} times"
        return CommandRefused("shell-too-long", reason, "use shorter commands")
    if _CONTROL.search(text):
        reason = "the command holds a control character or half of a surrogate pair"
        return CommandRefused("shell-control", reason, "leave control characters out of the command")
    return None


@cache
def _language() -> Language:
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


_NOT_NOW = "write the name of each program, and each place to write to, out in full"
_CONTROL = late_regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
"""Letters in words, for a shell. The grammar crashes on them, since its table of letters is too small for them."""
_BARE_NAME = late_regex(r"[A-Za-z0-9_./+-]+")
_FUNCTION = late_regex(r"[A-Za-z_][A-Za-z0-9_]*")
_STRUCTURE = names(
    "program list pipeline negated_command subshell compound_statement if_statement elif_clause else_clause "
    "while_statement for_statement do_group case_statement redirected_statement"
)
_WITH_WORDS = frozenset({"for_statement", "case_statement"})
_TESTED = frozenset({"unary_expression", "binary_expression", "parenthesized_expression"})
_WORDS = SUBSTITUTIONS | names(
    "word number raw_string string ansi_c_string concatenation simple_expansion expansion arithmetic_expansion "
    "brace_expression extglob_pattern"
)
_REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
_AFTER_END = names("then do done fi elif else esac } if while until for case { ( !")
_NO_END = names("if then elif else while until do ( { ! && || | |& & ; ;; ;& ;;&")
"""Tokens after which the end of a command would be a fault, or add nothing."""
_CASE_ENDS = frozenset({";;", ";&", ";;&"})
_FILES = {">": True, ">>": True, ">|": True, "&>": True, "&>>": True, "<": False}
_STREAMS = frozenset({"0", "1", "2"})
_DEVICES = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})


class _Reader:
    """Walks the tree of one command, judges it and writes it anew."""

    def __init__(self, source: bytes, rules: ShellRules, locate: Locate) -> None:
        self._source, self._rules, self._locate = source, rules, locate
        variables = Variables(source, lambda: self._root, is_fresh=rules.is_fresh)
        self._words_of = WordReader(source, self._substitution, variables.values)
        self._depth = 0
        self._is_relative = False
        self._judge = Judge(rules)

    def read(self) -> ShellCommand:
        """Return the command as it will run."""
        root = self._root
        self._require_whole(root)
        text = self._run(root.children)
        if not text:
            raise Refusal("empty", "the command holds nothing to do", "give a command")
        if self._is_relative and not MOVING.isdisjoint(self._judge.programs):
            reason = "a relative redirect beside `cd`: where it leads is known only when the command runs"
            raise Refusal("redirect", reason, "redirect to an absolute path, or call `cd` by itself before")
        self._judge.finish()
        judge = self._judge
        return ShellCommand(text, tuple(judge.programs), tuple(judge.words), judge.only_reads, tuple(judge.parts))

    @once
    def _root(self) -> Node:
        """The tree of the command.

        Reading stops at the first syntax error, since the search for a way to go on takes up to a second.
        """
        from tree_sitter import Parser

        ascii_only = _NOT_ASCII.sub(b"x", self._source)
        try:
            tree = Parser(_language()).parse(
                lambda offset, _point: ascii_only[offset:], progress_callback=lambda _offset, has_error: has_error
            )
        except ValueError:  # the callback stopped the parser
            raise Refusal("syntax", "the command cannot be read as shell", WRITE_PLAINLY) from None
        if tree.root_node.has_error:
            raise Refusal("syntax", "the command cannot be read as shell", WRITE_PLAINLY)
        return tree.root_node

    def _require_whole(self, root: Node) -> None:
        """Refuse a text of which the grammar dropped a part, since that part would be missing from what runs."""
        at, stack = 0, [root]
        while stack:
            node = stack.pop()
            if node.child_count and node.type not in {"string", "heredoc_redirect"}:
                stack += reversed(node.children)
                continue
            self._require_blank(at, node.start_byte)
            at = max(at, node.end_byte)
        self._require_blank(at, len(self._source))

    def _require_blank(self, start: int, end: int) -> None:
        between = self._source[start:end]
        rest = between.replace(b"\\\n", b"")
        if rest.strip(b" \t\n") or (between and not rest and start):  # also a line broken in the middle of a word
            raise Refusal("syntax", f"what stands at byte {start + 1} cannot be read as shell", WRITE_PLAINLY)

    def _require_one_line(self, start: int, end: int) -> None:
        if b"\n" in self._source[start:end].replace(b"\\\n", b""):
            raise Refusal("syntax", f"the line that ends at byte {start + 1} cannot be read as shell", WRITE_PLAINLY)

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode()

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Refusal("too-deep", f"commands in commands, more than {MAX_DEPTH} deep", "use simpler commands")

    # commands

    def _run(self, nodes: Iterable[Node], kind: str = "program") -> str:
        """Write commands one after the other, on one line."""
        out: list[str] = []
        self._structure(nodes, kind, out)
        return "".join(token if token == ";" or not at else f" {token}" for at, token in enumerate(out))

    def _structure(self, nodes: Iterable[Node], kind: str, out: list[str]) -> None:
        """Write a construct that contains commands: its own words as they are, the commands judged and written anew."""
        self._deeper()
        for at, node in enumerate(nodes):
            if not node.is_named:
                if node.type in _CASE_ENDS and kind != "case_item":
                    raise _unknown(node.type)
                self._token(node.type, out)
            elif kind in _WITH_WORDS and node.type == "variable_name":
                out.append(self._variable(node))
            elif kind in _WITH_WORDS and node.type in _WORDS:
                out.append(self._shell_words(node, kind))
            elif node.type in _REDIRECTS:
                if kind != "heredoc_redirect" and (at == 0 or kind != "redirected_statement"):
                    _end(out)
                self._redirect(node, out)
            elif node.type in _STRUCTURE:
                self._structure(node.children, node.type, out)
            elif node.type == "case_item":
                parts = node.children
                close = next((at for at, part in enumerate(parts) if part.type == ")"), len(parts))
                patterns = [self._words_of.word(part).text for part in parts[:close] if part.type not in {"(", "|"}]
                out.append(f"({'|'.join(patterns)})")
                self._structure(parts[close + 1 :], node.type, out)
            elif node.type != "comment":
                _end(out)
                self._command(node, out)
        self._depth -= 1

    def _token(self, token: str, out: list[str]) -> None:
        """Add a word or sign of the shell; ends of commands are written anew."""
        if token in {";", "\n"}:
            return
        if token not in TOKENS:
            raise _unknown(token)
        if token in _AFTER_END and not (token == "esac" and out[-1:] == ["in"]):
            _end(out)
        out.append(token)

    def _substitution(self, node: Node) -> str:
        if not self._rules.allow_substitution:
            reason = "the command holds a substitution, and `allow_substitution` of `[workspace] shell` is not set"
            raise Refusal("substitution", reason, "do without `$(...)`, backquotes and `<(...)`")
        opening = "$(" if node.type == "command_substitution" else node.children[0].type
        return f"{opening} {self._run(node.children[1:-1])} )"

    def _command(self, node: Node, out: list[str]) -> None:
        kind, children = node.type, node.children
        if kind == "command":
            self._simple(children, out)
        elif kind in {"variable_assignment", "variable_assignments"}:
            out += [self._assignment(one) for one in (children if kind.endswith("s") else (node,))]
        elif kind in {"declaration_command", "unset_command"}:
            name = self._text(children[0])
            if name not in SETTING and name != "unset":
                raise _unknown(name)
            self._judge.program(name, ())
            assigned = {"variable_assignment": self._assignment}
            out += [name, *(assigned.get(child.type, self._variable)(child) for child in children[1:])]
        elif kind == "test_command" and children[0].type == "[":
            words = [word for child in children[1:-1] for word in self._test_words(child)]
            self._judge.program("[", words)
            out += ["[", *(word.text for word in words), "]"]
        elif kind == "function_definition":
            self._function(children, out)
        else:
            raise _unknown(children[0].type if kind in {"test_command", "compound_statement"} else kind)

    def _simple(self, nodes: Sequence[Node], out: list[str]) -> None:
        name, words = None, list[Word]()
        for before, node in zip((None, *nodes), nodes, strict=False):
            if before is not None:
                self._require_one_line(before.end_byte, node.start_byte)
            if node.type == "variable_assignment":
                out.append(self._assignment(node))
            elif node.type in _REDIRECTS:
                self._redirect(node, out)
            elif node.type == "command_name":
                name = self._name(node.children[0])
                out.append(name if _BARE_NAME.fullmatch(name) and name not in KEYWORDS else quote_always(name))
            else:
                held = self._words_of.words(node)
                words += held
                out += (word.text for word in held)
        if name is None:
            raise _unknown("a command without a name")
        if name in DECLARING:  # the grammar reads it as a program, so nobody would judge the variable that it sets
            hint = "write words that set variables without quotes and first in their command"
            raise Refusal("variable", f"`{name}` is in quotes or not the first word of its command", hint)
        self._judge.program(name, words)

    def _name(self, node: Node) -> str:
        word = self._words_of.word(node)
        if not word.literal or node.type == "ansi_c_string":
            what = f"`{self._text(node)[:MOST_SHOWN]}` names a program and is not written out"
            reason = f"{what}: it would be known only when the command runs"
            raise Refusal("dynamic-name", reason, _NOT_NOW)
        return word.literal

    def _shell_words(self, node: Node, kind: str) -> str:
        """Write the words that a loop goes through, or the one that `case` compares."""
        is_loop = kind == "for_statement"
        words = self._words_of.words(node) if is_loop else [self._words_of.word(node, keeps_blanks=True)]
        for word in words:
            self._judge.word(word, "", expands=is_loop)
        return " ".join(word.text for word in words)

    def _test_words(self, node: Node) -> list[Word]:
        """Return the arguments of ``[``, in their order."""
        if node.type in _WORDS:
            return self._words_of.words(node)
        if node.type in _TESTED:
            self._deeper()
            found = [word for child in node.children for word in self._test_words(child)]
            self._depth -= 1
            return found
        if node.child_count:
            raise _unknown(node.type)
        return [Word(self._text(node))]

    def _function(self, nodes: Sequence[Node], out: list[str]) -> None:
        named = next((node for node in nodes if node.type == "word"), None)
        name = self._text(named) if named is not None else ""
        if stands_for_itself(name):
            reason = f"a function takes the place of `{name}`, which is judged by what the program does"
            raise self._judge.not_allowed("function", reason)
        if not _FUNCTION.fullmatch(name) or name in KEYWORDS or runs_others(name) or name not in self._rules.allow:
            reason = "a function takes the place of a program of its name, and `allow` does not name it"
            raise self._judge.not_allowed("function", reason)
        self._judge.program(name, ())
        bodies = [node for node in nodes if node.type == "compound_statement" and node.children[0].type == "{"]
        if len(bodies) != 1 or nodes[-1] != bodies[0]:
            raise _unknown("a function with this body")
        out.append(f"{name} () {self._run(bodies)}")

    # variables

    def _variable(self, node: Node) -> str:
        """Return the name of a variable that may be set; other variables change which programs the shell finds and
        starts.
        """
        name = self._text(node)
        self._judge.variable(name if node.type == "variable_name" else "")
        return name

    def _assignment(self, node: Node) -> str:
        name, sign, *value = node.children
        if sign.type not in {"=", "+="} or len(value) > 1 or any(one.type not in _WORDS for one in value):
            raise _unknown("an array" if name.type != "subscript" else "a subscript")
        if not value:
            return f"{self._variable(name)}{sign.type}"
        word = self._words_of.word(value[0], keeps_blanks=True)
        self._judge.word(word, "", expands=False)
        return f"{self._variable(name)}{sign.type}{word.text}"

    # redirects

    def _redirect(self, node: Node, out: list[str]) -> None:
        nodes = list(node.children)
        stream = self._text(nodes.pop(0)) if nodes[0].type == "file_descriptor" else ""
        sign, *rest = nodes
        if rest:
            self._require_one_line(sign.end_byte, rest[0].start_byte)
            if self._text(rest[0]).isdigit() and self._source[rest[0].end_byte : rest[0].end_byte + 1] in {b"<", b">"}:
                raise Refusal("syntax", "a number that may be a file or a stream", WRITE_PLAINLY)
        if stream and stream not in _STREAMS:
            raise Refusal("redirect", "a redirect of another stream than 0, 1 and 2", "redirect streams 0 to 2 only")
        if node.type == "heredoc_redirect":
            self._document(sign, rest, out)
        elif node.type == "herestring_redirect" and len(rest) == 1:
            word = self._words_of.word(rest[0], keeps_blanks=True)
            self._judge.text(word)
            out.append(f"{stream}<<< {word.text}")
        elif sign.type in {">&-", "<&-"} and not rest:
            out.append(f"{stream}{sign.type}")
        elif sign.type in {">&", "<&"} and len(rest) == 1 and self._text(rest[0]) in _STREAMS:
            out.append(f"{stream}{sign.type}{self._text(rest[0])}")
        elif sign.type in _FILES and len(rest) == 1:
            out.append(f"{stream}{sign.type} {quote(self._target(rest[0], writes=_FILES[sign.type]))}")
        else:
            raise Refusal(
                "redirect", "a redirect of a kind that is not judged", "write redirects last, one target each"
            )

    def _target(self, node: Node, *, writes: bool) -> str:
        words = self._words_of.words(node)
        target = words[0].literal if len(words) == 1 else None
        if not target:
            what = f"`{self._text(node)[:MOST_SHOWN]}`, the target of a redirect, is not written out"
            reason = f"{what}: it would be known only when the command runs"
            raise Refusal("redirect", reason, _NOT_NOW)
        if target in _DEVICES:
            return target
        self._is_relative = self._is_relative or not target.startswith("/")
        found = self._locate(target, writes)
        if isinstance(found, CommandRefused):
            raise Refusal.of(found)
        return found

    def _document(self, sign: Node, nodes: Sequence[Node], out: list[str]) -> None:
        """Write a here-document as a here-string; the rest of its line follows behind it."""
        start = nodes[0]
        bodies = [node for node in nodes if node.type == "heredoc_body"]
        ends = [node for node in nodes if node.type == "heredoc_end"]
        line = self._source.find(b"\n", start.end_byte) + 1
        if sign.type not in {"<<", "<<-"} or start.type != "heredoc_start" or len(ends) != 1 or not line:
            raise _unknown("a here-document of this kind")
        is_plain = any(sign in self._text(start) for sign in "'\"\\")
        parts = (
            [] if is_plain else [part for body in bodies for part in body.children if part.type != "heredoc_content"]
        )
        stop = self._source.rfind(b"\n", 0, ends[0].start_byte) + 1
        word = self._words_of.document(line, stop, parts, is_plain=is_plain, tabs=sign.type == "<<-")
        self._judge.text(word)
        out.append(f"<<< {word.text}" if stop > line else "< /dev/null")
        others = [node for node in nodes[1:] if node.type not in {"heredoc_body", "heredoc_end"}]
        if any(node.type in _WORDS for node in others):
            raise _unknown("an argument behind a here-document")
        self._structure(others, "heredoc_redirect", out)


def _unknown(what: str) -> Refusal:
    return Refusal("construct", f"`{what}` is not supported in shell commands", WRITE_PLAINLY)


def _end(out: list[str]) -> None:
    """End the preceding command, if there was one."""
    if out and out[-1] not in _NO_END and not out[-1].startswith("("):
        out.append(";")
