"""What a call comes to by the values of its arguments, in words: `amount: allow up to 100, then ask first`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gatewright.workspace.api import (
    ArgumentConstraints,
    Capability,
    FsRead,
    FsWrite,
    JsonValue,
    OperationFacts,
    OperationRight,
    PolicyRule,
    ToolRule,
    Verdict,
    frozen,
    path_condition,
    strictest,
)
from gatewright_gui.pages.agents.constraint import constraint_words

VERDICT_WORDS = {Verdict.ALLOW: "allow", Verdict.ASK: "ask first", Verdict.DENY: "deny"}
_LOW, _HIGH = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")


@frozen
class ValueWords:
    """`short` for a chip, empty where there is more to say than fits; `sentences`: all of it."""

    short: str
    sentences: tuple[str, ...]


@frozen
class _Clause:
    """Values of one argument that fit the schema (`inside`), or those that do not, come to the verdict."""

    field: str
    schema: Mapping[str, JsonValue]
    verdict: Verdict
    inside: bool
    needed: bool = True
    """Whether a call without the argument does not come to the verdict."""

    @property
    def limit(self) -> tuple[float, bool] | None:
        """The number above which the verdict holds, and whether the number itself is still below; None: no such."""
        words = _LOW if self.inside else _HIGH
        used = [word for word in (*_LOW, *_HIGH) if word in self.schema]
        number = self.schema.get(used[0]) if len(used) == 1 and used[0] in words else None
        if type(number) not in {int, float} or self.schema.keys() > {used[0], "type"}:
            return None
        return float(str(number)), used[0] in {"exclusiveMinimum", "maximum"}


def value_words(op: OperationFacts, right: OperationRight) -> ValueWords:
    """Of an operation; nothing where it does not go by values, or where they are not of the kind that has words."""
    clauses: list[_Clause] = []
    is_whole = True
    for limit in right.limits if right.by_value else ():
        found = _clauses(limit, op, right)
        is_whole = is_whole and found is not None
        clauses += [one for one in found or () if one.verdict in right.by_value]
    fields = {clause.field: [one for one in clauses if one.field == clause.field] for clause in clauses}
    told = {field: _told(right.verdict, held) for field, held in fields.items()}
    explained = frozenset(clause.verdict for clause in clauses) == right.by_value
    short = next(iter(told.values()))[0] if len(told) == 1 and is_whole and explained else ""
    return ValueWords(short, tuple(f"{field}: {words}" for field, (_, words) in told.items()))


def _clauses(
    limit: ToolRule | PolicyRule | Capability, op: OperationFacts, right: OperationRight
) -> list[_Clause] | None:
    """What a limit says of values; None where it says something that has no words."""
    match limit:
        case FsRead() | FsWrite():
            return []
        case ToolRule(rule_type=kind) if not isinstance(kind, ArgumentConstraints):
            return []
        case _ if path_condition(limit, op) is not None:
            return []
        case ToolRule(rule_type=ArgumentConstraints(fields)):
            outside = [_clause(name, schema, Verdict.DENY, inside=False) for name, schema in fields.items()]
            return [one for one in outside if one is not None] if None not in outside else None
        case PolicyRule(effect=effect, when=Mapping() as when) if when.keys() <= {"properties", "required", "type"}:
            spoken = when.get("properties")
            if not isinstance(spoken, Mapping) or len(spoken) != 1:
                return None
            [(name, schema)] = spoken.items()
            if effect is Verdict.ALLOW:
                found = _clause(name, schema, strictest(*right.by_value), inside=False)
            else:
                found = _clause(name, schema, effect, inside=True)
            needed = name in (*op.required, *op.defaulted) or "required" in when
            return [replace(found, needed=needed)] if found is not None else None
        case _:
            return None


def _clause(name: str, schema: JsonValue, verdict: Verdict, *, inside: bool) -> _Clause | None:
    if isinstance(schema, Mapping) and schema.keys() == {"not"}:
        return _clause(name, schema["not"], verdict, inside=not inside)
    return _Clause(name, schema, verdict, inside) if isinstance(schema, Mapping) and schema else None


def _told(base: Verdict, clauses: list[_Clause]) -> tuple[str, str]:
    """Short and whole; `base`: what all other values come to."""
    without = strictest(*(clause.verdict for clause in clauses if not clause.needed))
    more = (f"{VERDICT_WORDS[without]} without it",) if without is not Verdict.ALLOW else ()
    steps = [(limit, clause.verdict) for clause in clauses if (limit := clause.limit) is not None]
    if len(steps) == len(clauses):
        short, *words = _ladder(base, steps)
    else:
        short = _listed(clauses[0]) if len(clauses) == 1 else ""
        words = ["; ".join(_sentence(base, clause) for clause in clauses)]
    return short or f"by {clauses[0].field}", ", ".join((*words, *more))


def _ladder(base: Verdict, steps: list[tuple[tuple[float, bool], Verdict]]) -> Iterator[str]:
    """The first number, then verdicts with the numbers from which on they hold, the lowest first."""
    last = base
    for (number, including), verdict in sorted(steps):
        if strictest(last, verdict) is last:
            continue  # a lower number comes to that already
        if last is base:
            first = f"{'up to' if including else 'below'} {number:,g}"
            yield from (first, f"{VERDICT_WORDS[base]} {first}", f"then {VERDICT_WORDS[verdict]}")
        else:
            yield f"{VERDICT_WORDS[verdict]} {'over' if including else 'from'} {number:,g}"
        last = verdict


def _listed(clause: _Clause) -> str:
    """`only a, b` or `not a, b`; empty where the schema lists no values."""
    listed = clause.schema.get("enum", [clause.schema["const"]] if "const" in clause.schema else None)
    if not isinstance(listed, list) or clause.schema.keys() - {"enum", "const", "type"}:
        return ""
    return f"{'not' if clause.inside else 'only'} {', '.join(map(str, listed))}"


def _sentence(base: Verdict, clause: _Clause) -> str:
    fits, other = (clause.verdict, base) if clause.inside else (base, clause.verdict)
    words = constraint_words(dict(clause.schema))
    it = "it " if words.startswith(("is ", "matches ")) else ""
    return f"{VERDICT_WORDS[fits]} if {it}{words}, else {VERDICT_WORDS[other]}"
