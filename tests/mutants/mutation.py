"""One small change of a module, and all those that can be made of its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
SWAPPED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
CODE = re.compile(r"[a-z][a-z0-9_-]*")
"""Text that something may depend on; sentences for people are left as they are."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """Where a module is changed: `start` and `end` are offsets into its UTF-8 bytes.

    `lines`: from 1, from the beginning of the statement on, since a constant has no line of its own that runs.
    `at_import`: it stands in no function.
    """

    lines: range
    at_import: bool
    start: int
    end: int
    was: str
    became: str

    def applied(self, source: str) -> str:
        """The changed source."""
        text = source.encode()
        return (text[: self.start] + self.became.encode() + text[self.end :]).decode()


def mutations(source: str) -> list[Mutation]:
    """Every change that leaves a module which Python can read, in the order of the source."""
    tree = ast.parse(source)
    return list(_Places(source, tree).of(tree))


class _Places:
    def __init__(self, source: str, tree: ast.Module) -> None:
        self._source = source.encode()
        starts = [0]
        for line in self._source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts
        self._statement_at = dict[int, int]()
        self._in_functions = set[int]()
        for node in ast.walk(tree):  # outer ones first
            if isinstance(node, ast.stmt):
                self._statement_at |= dict.fromkeys(range(node.lineno, (node.end_lineno or 0) + 1), node.lineno)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._in_functions.update(range(node.body[0].lineno, (node.end_lineno or 0) + 1))

    def of(self, node: ast.AST) -> Iterator[Mutation]:
        if _is_for_types(node):
            return
        for became in _replacements(node):
            yield self._change(node, became)
        types = {id(getattr(node, field, None)) for field in ("annotation", "returns")}
        match node:
            case ast.Call(func=ast.Name(id="cast"), args=[kind, _]):
                types.add(id(kind))
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id="os"), _, elsewhere]):
                types.add(id(elsewhere))  # only other systems come to it
            case ast.Call(func=ast.Name(id="field"), keywords=options):
                types |= {id(option) for option in options if option.arg in {"hash", "repr"}}
            case _:
                pass
        for child in ast.iter_child_nodes(node):
            if id(child) not in types and not isinstance(child, ast.JoinedStr):
                yield from self.of(child)

    def _change(self, node: ast.AST, became: str) -> Mutation:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        was = self._source[start:end].decode()
        lines = range(self._statement_at.get(node.lineno, node.lineno), node.end_lineno + 1)
        return Mutation(lines, node.lineno not in self._in_functions, start, end, was, became)


def _replacements(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in FLIPPED:
            yield _spelled(ast.Compare(left, [FLIPPED[type(op)]()], [right]))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _spelled(operand)
        case ast.BoolOp(op=op, values=values):
            for left_out in range(len(values)):
                rest = [value for i, value in enumerate(values) if i != left_out]
                yield _spelled(rest[0] if len(rest) == 1 else ast.BoolOp(op, rest))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPPED and not _is_text(left, right):
            yield _spelled(ast.BinOp(left, SWAPPED[type(op)](), right))
        case ast.IfExp(test=test, body=body, orelse=otherwise):
            yield _spelled(ast.IfExp(test, otherwise, body))
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value)):
            yield str(value + 1)
        case ast.Constant(value=str(value)) if CODE.fullmatch(value):
            yield repr(f"{value}x")
        case ast.Raise() | ast.Continue() | ast.Expr(value=ast.Call() | ast.Await()):
            yield "pass"
        case ast.Return(value=ast.Constant(value=None | False)):
            pass  # as good as the same
        case ast.Return(value=ast.expr()):
            yield "return None"
        case _:
            pass


def _spelled(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"


def _is_text(*nodes: ast.expr) -> bool:
    return any(isinstance(node, ast.JoinedStr | ast.Constant) and not _is_number(node) for node in nodes)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_for_types(node: ast.AST) -> bool:
    """Code that no answer depends on: what only the type checker reads, options of `@dataclass`, cache sizes."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")]):
            return True
        case ast.Subscript(value=ast.Name(id="Literal")):
            return True
        case ast.Call(func=ast.Name(id="dataclass" | "TypeVar" | "NewType" | "lru_cache")):
            return True
        case _:
            return False
