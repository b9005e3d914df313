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
from gatewright_gui.qt.language import tr
from gatewright_gui.session.condition import Term, constraint_words, field_terms, value_text
from gatewright_gui.session.verdict import verdict_words


@frozen
class ValueWords:
    """`short` for a chip, empty where there is more to say than fits; `sentences`: all of it, such as
    `amount: allow up to 100, then ask first`.
    """

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
    def term(self) -> Term | None:
        """The one term that says all of the schema."""
        terms = field_terms(dict(self.schema))
        return terms[0] if len(terms) == 1 else None

    @property
    def limit(self) -> tuple[float, bool] | None:
        """The number above which the verdict holds, and whether the number itself is still below; None: no such."""
        term = self.term
        if term is None or term.relation not in (("over", "at least") if self.inside else ("under", "at most")):
            return None
        return float(str(term.value)), term.relation in {"over", "at most"}


def value_words(op: OperationFacts, right: OperationRight) -> ValueWords:
    """Of an operation; nothing where it does not go by values, or where they are not of the kind that has words."""
    clauses: list[_Clause] = []
    is_whole = True
    for limit in right.limits if right.by_value else ():
        found = _clauses(limit, op, right)
        is_whole = is_whole and found is not None
        clauses += [one for one in found or () if one.verdict in right.by_value]
    fields = {clause.field: [one for one in clauses if one.field == clause.field] for clause in clauses}
    told = {field: _field_words(right.verdict, held) for field, held in fields.items()}
    explained = frozenset(clause.verdict for clause in clauses) == right.by_value
    short = next(iter(told.values()))[0] if len(told) == 1 and is_whole and explained else ""
    return ValueWords(short, tuple(f"{field}: {words}" for field, (_, words) in told.items()))


def _clauses(
    limit: ToolRule | PolicyRule | Capability, op: OperationFacts, right: OperationRight
) -> list[_Clause] | None:
    """The clauses of a limit on values; None where it says something that has no words."""
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


def _field_words(base: Verdict, clauses: list[_Clause]) -> tuple[str, str]:
    """Short and whole; `base`: what all other values come to."""
    without = strictest(*(clause.verdict for clause in clauses if not clause.needed))
    more = (tr("{verdict} without it", verdict=verdict_words(without)),) if without is not Verdict.ALLOW else ()
    steps = [(limit, clause.verdict) for clause in clauses if (limit := clause.limit) is not None]
    if len(steps) == len(clauses):
        short, *words = _ladder(base, steps)
    else:
        short = _clause_words(clauses[0]) if len(clauses) == 1 else ""
        words = ["; ".join(_sentence(base, clause) for clause in clauses)]
    return short or tr("by {argument}", argument=clauses[0].field), ", ".join((*words, *more))


def _ladder(base: Verdict, steps: list[tuple[tuple[float, bool], Verdict]]) -> Iterator[str]:
    """The first number, then verdicts with the numbers from which on they hold, the lowest first."""
    last = base
    for (number, including), verdict in sorted(steps):
        if strictest(last, verdict) is last:
            continue  # a lower number comes to that already
        if last is base:
            first = (tr("up to {number}") if including else tr("below {number}")).format(number=f"{number:,g}")
            yield from (first, f"{verdict_words(base)} {first}", tr("then {verdict}", verdict=verdict_words(verdict)))
        else:
            text = tr("{verdict} over {number}") if including else tr("{verdict} from {number}")
            yield text.format(verdict=verdict_words(verdict), number=f"{number:,g}")
        last = verdict


def _clause_words(clause: _Clause) -> str:
    """`only a, b`, `not a, b`, `only in notes/`; empty where the schema lists no values and names no folder."""
    term = clause.term
    if term is None or term.relation not in {"is", "is one of", "in folder"}:
        return ""
    which = term.words if term.relation == "in folder" else value_text(term.value)
    return tr("not {values}", values=which) if clause.inside else tr("only {values}", values=which)


def _sentence(base: Verdict, clause: _Clause) -> str:
    fits, other = (clause.verdict, base) if clause.inside else (base, clause.verdict)
    said = {
        "verdict": verdict_words(fits),
        "condition": constraint_words(dict(clause.schema)),
        "other": verdict_words(other),
    }
    relation = next((term.relation for term in field_terms(dict(clause.schema))), "")
    if relation == "in folder":
        return tr("{verdict} {condition}, else {other}", **said)
    if relation.startswith(("is", "matches", "has")):
        return tr("{verdict} if it {condition}, else {other}", **said)
    return tr("{verdict} if {condition}, else {other}", **said)
