"""What is asked of arguments as terms that one chooses and reads: an argument, a relation, a value.

The terms of a policy rule's `when` hold all together, or any of them; those of a constraint are about one argument.
What terms cannot say stays a JSON Schema.
"""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from gatewright.workspace.api import JsonValue, folder_of, folder_pattern, frozen, is_folder, with_folder
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.argument import Argument, ArgumentKind

_SCALAR: frozenset[ArgumentKind] = frozenset({"text", "number", "whole", "any"})
_NUMBER: frozenset[ArgumentKind] = frozenset({"number", "whole", "any"})
_TEXT: frozenset[ArgumentKind] = frozenset({"text", "any"})
_LIST: frozenset[ArgumentKind] = frozenset({"list", "any"})
_PLAIN: frozenset[ArgumentKind] = frozenset({"text", "number", "whole", "truth", "any"})
_ALL: frozenset[ArgumentKind] = frozenset({"text", "number", "whole", "truth", "list", "any"})


@frozen
class Relation:
    """The relation of an argument to a value. ``keyword``: what says it in JSON Schema; empty: no value is asked for.

    ``kinds``: the arguments that it is offered for; ``is_not``: the keyword must not hold.
    """

    words: str
    keyword: str
    kinds: frozenset[ArgumentKind]
    is_not: bool = False
    is_folder: bool = False
    hint: str = mark("a value")
    short: str = ""
    """The words before a value that says the rest."""


RELATIONS = {
    one.words: one
    for one in (
        Relation(mark("over"), "exclusiveMinimum", _NUMBER, hint=mark("a number")),
        Relation(mark("at least"), "minimum", _NUMBER, hint=mark("a number")),
        Relation(mark("under"), "exclusiveMaximum", _NUMBER, hint=mark("a number")),
        Relation(mark("at most"), "maximum", _NUMBER, hint=mark("a number")),
        Relation(
            mark("in folder"), "pattern", _TEXT, is_folder=True, short=mark("in"), hint=mark("a folder, such as drafts")
        ),
        Relation(
            mark("not in folder"),
            "pattern",
            _TEXT,
            is_not=True,
            is_folder=True,
            short=mark("not in"),
            hint=mark("a folder, such as drafts"),
        ),
        Relation(mark("is"), "const", _PLAIN),
        Relation(mark("is not"), "const", _PLAIN, is_not=True),
        Relation(mark("is one of"), "enum", _SCALAR, hint=mark("values, separated by commas")),
        Relation(mark("is not one of"), "enum", _SCALAR, is_not=True, hint=mark("values, separated by commas")),
        Relation(mark("matches"), "pattern", _TEXT, hint=mark("a regular expression")),
        Relation(mark("does not match"), "pattern", _TEXT, is_not=True, hint=mark("a regular expression")),
        Relation(mark("holds"), "contains", _LIST, hint=mark("a value in the list")),
        Relation(mark("is at least"), "minLength", _TEXT, hint=mark("how many characters")),
        Relation(mark("is at most"), "maxLength", _TEXT, hint=mark("how many characters")),
        Relation(mark("is a multiple of"), "multipleOf", _NUMBER, hint=mark("a number")),
        Relation(mark("has at least"), "minItems", _LIST, hint=mark("how many items")),
        Relation(mark("has at most"), "maxItems", _LIST, hint=mark("how many items")),
        Relation(mark("is given"), "", _ALL),
        Relation(mark("is not given"), "", _ALL, is_not=True),
    )
}
"""By their words, in the order in which they are offered."""
_COUNTED = {
    "minItems": mark("items"), "maxItems": mark("items"),
    "minLength": mark("characters"), "maxLength": mark("characters"),
}  # fmt: skip
_NUMBERS = frozenset({"exclusiveMinimum", "minimum", "exclusiveMaximum", "maximum", "multipleOf"})


@frozen
class Term:
    """``or_absent``: it also holds for a call that leaves the argument out."""

    field: str
    relation: str
    value: JsonValue = None
    or_absent: bool = False

    @property
    def words(self) -> str:
        """The term as one reads it, e.g. `amount over 100`."""
        relation = RELATIONS[self.relation]
        value = f"{value_text(self.value)}{'/' * relation.is_folder}" if relation.keyword else ""
        parts = (self.field, tr(relation.short or relation.words), value, tr(_COUNTED.get(relation.keyword, "")))
        said = " ".join(filter(None, parts))
        if not relation.keyword or self.or_absent is relation.is_not:
            return said
        if relation.is_not:
            return tr("{term} (and {argument} is given)", term=said, argument=self.field)
        return tr("{term} (or no {argument} is given)", term=said, argument=self.field)


@frozen
class Condition:
    """All of the terms hold, or with ``is_any`` one of them; without a term it always does."""

    terms: tuple[Term, ...] = ()
    is_any: bool = False

    @property
    def words(self) -> str:
        """The condition as one reads it."""
        word = tr("or") if self.is_any else tr("and")
        return f" {word} ".join(term.words for term in self.terms) or tr("always")


When = Mapping[str, JsonValue] | bool | None


def when_words(when: When) -> str:
    """The meaning of a rule's `when`, in words where terms can say it, else as TOML."""
    condition = condition_of(when)
    return condition.words if condition is not None else when_text(when)


def when_text(when: When) -> str:
    """A `when` as the value that stands in the file; empty for none."""
    from gatewright.workspace.api import literal  # it loads tomlkit, not for the first painting

    return "" if when is None else literal(dict(when) if isinstance(when, Mapping) else when)


def read_when(text: str) -> When:
    """A `when` typed as TOML. Raises ValueError saying what is wrong."""
    if not text.strip():
        return None
    try:
        value = tomllib.loads(f"when = {text.strip()}")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(tr("this is no TOML value: {reason}", reason=str(error).lower())) from None
    if value.keys() != {"when"} or not isinstance(value["when"], dict | bool):
        raise ValueError(tr("a condition is one table `{ ... }`, or true or false"))
    return cast("When", value["when"])


# terms to JSON Schema


def when_of(condition: Condition) -> When:
    """The JSON Schema that says the condition; None where it always holds."""
    parts = [_part(term) for term in condition.terms]
    if len(parts) < 2:
        return parts[0] if parts else None
    if condition.is_any:
        return {"anyOf": cast("JsonValue", parts)}
    return _merge(parts) or {"allOf": cast("JsonValue", parts)}


def _part(term: Term) -> dict[str, JsonValue]:
    relation = RELATIONS[term.relation]
    if not relation.keyword:
        given: dict[str, JsonValue] = {"required": [term.field]}
        return {"not": given} if relation.is_not else given
    value = folder_pattern(str(term.value)) if relation.is_folder else term.value
    said: JsonValue = {relation.keyword: {"const": value} if relation.keyword == "contains" else value}
    properties: JsonValue = {term.field: {"not": said} if relation.is_not else said}
    return {"properties": properties} if term.or_absent else {"properties": properties, "required": [term.field]}


def _merge(parts: list[dict[str, JsonValue]]) -> dict[str, JsonValue] | None:
    """All in one schema; None where two say something with the same keyword."""
    properties: dict[str, JsonValue] = {}
    required: list[JsonValue] = []
    rest: dict[str, JsonValue] = {}
    absent: dict[str, bool] = {}
    for part in parts:
        own, asks = cast("dict[str, dict[str, JsonValue]]", part.get("properties", {})), part.get("required", [])
        for name, schema in own.items():
            held = cast("dict[str, JsonValue]", properties.get(name, {}))
            if held.keys() & schema.keys() or absent.setdefault(name, not asks) is not (not asks):
                return None
            properties[name] = {**held, **schema}
        required += [name for name in cast("list[JsonValue]", asks) if name not in required]
        if "not" in part:
            if rest:
                return None
            rest["not"] = part["not"]
    said: dict[str, JsonValue] = {"properties": properties, "required": required, **rest}
    return {key: value for key, value in said.items() if value}


# JSON Schema to terms


def condition_of(when: When) -> Condition | None:
    """The condition that says the same as a `when`; None where terms cannot say it."""
    if when is None or when is True or when == {}:
        return Condition()
    if not isinstance(when, Mapping):
        return None
    for keyword in ("anyOf", "allOf"):
        branches = when.get(keyword)
        if len(when) == 1 and isinstance(branches, list):
            found = [_terms(one) if isinstance(one, dict) else () for one in branches]
            terms = tuple(term for some in found for term in some)
            return _same(Condition(terms, keyword == "anyOf"), when) if all(len(some) == 1 for some in found) else None
    return _same(Condition(_terms(when)), when)


def _same(condition: Condition, when: Mapping[str, JsonValue]) -> Condition | None:
    said = when_of(condition)
    is_same = condition.terms and isinstance(said, Mapping) and _without_order(said) == _without_order(when)
    return condition if is_same else None


def _without_order(when: Mapping[str, JsonValue]) -> object:
    """Without the order of what is required, which says nothing."""
    required = when.get("required")
    return {**when, "required": sorted(map(str, required))} if isinstance(required, list) else dict(when)


def _terms(node: Mapping[str, JsonValue]) -> tuple[Term, ...]:
    properties, required = node.get("properties", {}), node.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return ()
    found = [
        term
        for name, schema in properties.items()
        if isinstance(schema, dict)
        for keyword, value in schema.items()
        for term in _read(name, keyword, value, or_absent=name not in required)
    ]
    found += [Term(name, "is given") for name in required if isinstance(name, str) and name not in properties]
    excluded = node.get("not")
    named = excluded.get("required") if isinstance(excluded, dict) else None
    if isinstance(named, list) and len(named) == 1:
        found.append(Term(str(named[0]), "is not given"))
    return tuple(found)


def _read(name: str, keyword: str, value: JsonValue, *, or_absent: bool) -> list[Term]:
    is_not = keyword == "not" and isinstance(value, dict) and len(value) == 1
    if is_not:
        ((keyword, value),) = cast("dict[str, JsonValue]", value).items()
    if keyword == "contains":
        value = value["const"] if isinstance(value, dict) and value.keys() == {"const"} else {}
    folder = folder_of(value) if keyword == "pattern" else None
    for words, one in RELATIONS.items():
        if one.keyword == keyword and one.is_not is is_not and one.is_folder is (folder is not None):
            plain = value if folder is None else folder
            scalars = plain if isinstance(plain, list) and keyword == "enum" else [plain]
            if all(isinstance(scalar, str | int | float) for scalar in scalars):
                return [Term(name, words, plain, or_absent)]
    return []


# the schema of one argument


def constraint_words(schema: JsonValue, *, required: bool = False) -> str:
    """A constraint in a few words; JSON where terms cannot say it. None: nothing is said of the value."""
    if required:
        must = tr("must be given")
        return must if schema is None else f"{must}, {constraint_words(schema)}"
    if isinstance(schema, dict) and isinstance(schema.get("items"), dict):
        rest: JsonValue = {key: value for key, value in schema.items() if key != "items"}
        each = tr("each {condition}", condition=constraint_words(schema["items"]))
        return f"{each}, {constraint_words(rest)}" if rest else each
    if terms := field_terms(schema):
        return ", ".join(
            tr("only {condition}", condition=term.words) if term.relation == "in folder" else term.words
            for term in terms
        )
    if schema is False:
        return tr("never")
    return tr("anything") if schema in ({}, True) else json.dumps(with_folder(schema), ensure_ascii=False)


def field_terms(schema: JsonValue) -> tuple[Term, ...]:
    """The terms that say the same, without the name of the argument; none where they cannot."""
    if not isinstance(schema, Mapping):
        return ()
    said: JsonValue = {key: value for key, value in schema.items() if key != "type"}
    found = condition_of({"properties": {"": said}, "required": [""]})
    return tuple(replace(one, or_absent=RELATIONS[one.relation].is_not) for one in found.terms) if found else ()


# values as text


def value_text(value: JsonValue) -> str:
    """A value as one types it."""
    if isinstance(value, list):
        return ", ".join(map(value_text, value))
    return value if isinstance(value, str) else json.dumps(value)


def read_value(relation: str, argument: Argument, text: str) -> JsonValue:
    """The value that was typed. Raises ValueError saying what is wanted."""
    how, text = RELATIONS[relation], text.strip()
    if not how.keyword:
        return None
    if not text:
        raise ValueError(tr("say what: {hint}", hint=tr(how.hint)))
    if how.is_folder:
        return read_folder(text)
    if how.keyword in _COUNTED:
        if not text.isdecimal():
            raise ValueError(tr("`{text}` is no whole number", text=text))
        return int(text)
    if how.keyword in _NUMBERS:
        return read_number(text)
    if how.keyword == "pattern":
        return text
    if how.keyword == "enum":
        return [_scalar(argument.kind, one.strip()) for one in text.split(",") if one.strip()]
    return _scalar("any" if how.keyword == "contains" else argument.kind, text)


def _scalar(kind: ArgumentKind, text: str) -> JsonValue:
    match kind:
        case "text":
            return text
        case "number" | "whole":
            return read_number(text)
        case "truth":
            if text.lower() not in {"true", "false"}:
                raise ValueError(tr("`{text}` is neither true nor false", text=text))
            return text.lower() == "true"
        case _:
            try:
                value = cast("JsonValue", json.loads(text))
            except (ValueError, RecursionError):
                return text
            return value if isinstance(value, str | int | float) else text


def read_folder(text: str) -> str:
    """A folder that was typed, without `/` at its end. Raises ValueError."""
    folder = text.rstrip("/")
    if "\\" in text or not is_folder(folder):
        raise ValueError(tr("`{text}` is no folder: names with `/` between them, none of them `..`", text=text))
    return folder


def read_number(text: str) -> int | float:
    """A number that was typed. Raises ValueError."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(tr("`{text}` is no number", text=text))
    return int(text) if text.lstrip("+-").isdecimal() else number
