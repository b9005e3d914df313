"""One sentence: the smallest part that speaks of a hidden operation leaves, or the whole sentence. No layout."""

from __future__ import annotations

import re
from collections.abc import Callable

from gatewright.schema.prose.run import cut_runs, join_items
from gatewright.schema.prose.words import Words
from gatewright.schema.shapes.naming import is_verb

_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|resp|no|nr|fig)|\b[A-Za-z])\.$", re.IGNORECASE)
_END = re.compile(r"[.!?]+[\"'`)\]*”’]*(?=\s)")
_LEAD = re.compile(r"[\s`'\"\\“‘*(]*(?:(?:for|on|in|with|to|or|and)\s+)?[`'\"\\“‘*]*([A-Za-z_][\w-]*)", re.IGNORECASE)
_OPEN = frozenset(
    {"selects", "select", "are", "is", "following", "of", "for", "example", "note", "with", "by", "to", "like"}
)
_FIRST = re.compile(r"[\s`'\"\\“‘*]*([A-Za-z_][\w-]*)")
_SPLIT = re.compile(r",\s*(?:and/or|and|or)\s+|,\s+|\s+(?:and|or)\s+")
_NEEDS = frozenset(
    {"required", "optional", "only", "used", "needed", "valid", "allowed", "ignored", "accepted", "mandatory"}
    | {"available", "supported", "applies"}
)
_CLAUSE_START = re.compile(r"(?:(?:and |or |but )?(?:optional|required|ignored)|not|plus|defaults?)\b", re.IGNORECASE)
_USED_FOR = (
    r"(?:\b(?:[Rr]equired|[Oo]ptional|[Oo]nly|[Uu]sed|[Nn]eeded) (?:for|with|by|in|on) |\b(?:action|operation|mode)=)"
)
_POINTING = re.compile(r"\b(?:it|them|its|their)\b", re.IGNORECASE)
_REFERS_BACK = re.compile(
    r"\W*(?:(?:it|they|its|their|otherwise|alternatively|this|these|those)\b"
    r"|(?:get|use|set|find|take|pass|see|without|with|after|before)\s+(?:it|them|this)\b|(?:required|optional)[.!]?\s*$)",
    re.IGNORECASE,
)


def split_sentences(text: str) -> list[str]:
    """The sentences of ``text``, each with the white space after it."""
    depths = _depths(text)
    result, start = list[str](), 0
    for match in _END.finditer(text):
        if depths[match.start()] or _ABBREVIATION.search(text[start : match.start() + 1]):
            continue
        end = match.end() + len(text[match.end() :]) - len(text[match.end() :].lstrip())
        result.append(text[start:end])
        start = end
    return [*result, text[start:]] if start < len(text) else result


def clean_sentences(text: str, words: Words) -> str:
    """``text`` without what speaks of hidden operations; empty when nothing is left."""
    kept, was_dropped = list[str](), False
    for sentence in split_sentences(text):
        if was_dropped and _REFERS_BACK.match(sentence):
            continue
        body = sentence.rstrip()
        cleaned = clean_sentence(body, _meant(body, words)) if _speaks_of_hidden(body, words) else body
        was_dropped = not cleaned
        if cleaned:
            kept.append(cleaned + sentence[len(body) :])
    return "".join(kept).rstrip() + (text[len(text.rstrip()) :] if kept else "")


def _speaks_of_hidden(text: str, words: Words) -> bool:
    return words.hits(text) or bool(words.borne(text))


def _meant(text: str, words: Words) -> Words:
    """``words`` with those names strictly hidden that ``text`` uses as operations, though a parameter bears them."""
    mark = r"[`'\"]?"
    meant = {name for name in words.borne(text) if re.search(_USED_FOR + rf"{mark}{re.escape(name)}{mark}(?!\w)", text)}
    return Words(words.hidden, words.kept - meant, words.operations) if meant else words


def clean_sentence(sentence: str, words: Words) -> str:
    """One sentence cleaned; empty when it has to go."""
    for step in (_semicolons, _phrases, cut_runs, _parentheses, _tails, _definitions, _dashes, _comma_clauses):
        less = step(sentence, words)
        if not less:
            break
        sentence = less
        if not words.hits(sentence):
            return _tidy(sentence)
    head, _, end = _head_and_list(sentence)
    return _alone(head, end) if _stands_alone(head) and not words.hits(head) else ""


def _tidy(text: str) -> str:
    text = re.sub(r"\(\s*[,;]?\s*\)", "", text)
    text = re.sub(r"[ \t]+([.,;:)])", r"\1", text)
    text = re.sub(r"(?<=\S)[ \t]{2,}(?=\S)", " ", text)
    text = re.sub(r"[,;:—–]+(?=[.!?]?$)(?<!:)", "", text)
    return text if re.search(r"\w", text) else ""


def _depths(text: str) -> list[int]:
    """How deep in brackets each character stands; all zero when the brackets do not match."""
    depth, result = 0, list[int]()
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return [0] * len(text)
        result.append(depth)
    return result if depth == 0 else [0] * len(text)


def _cut(text: str, joints: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """Split outside brackets: the pieces and the joints between them."""
    depths, pieces, seams, start = _depths(text), list[str](), list[str](), 0
    for match in joints.finditer(text):
        if match.start() >= start and not depths[match.start()]:
            pieces.append(text[start : match.start()])
            seams.append(match.group())
            start = match.end()
    return [*pieces, text[start:]], seams


def _leads(piece: str, words: Words) -> bool:
    """Whether ``piece`` begins with an operation's name or a word of doing."""
    match = _FIRST.match(piece)
    if match is None:
        return False
    start = piece[match.start(1) :].lower()
    spaced = any(start.startswith(re.sub(r"[-_]", " ", name.lower())) for name in words.hidden | words.operations)
    return words.is_name(match.group(1)) or is_verb(match.group(1)) or spaced


def _head_and_list(text: str) -> tuple[str, str, str]:
    """What introduces an enumeration, the enumeration, and the closing mark."""
    end = re.search(r"[.!]?\s*$", text)
    stop = end.start() if end else len(text)
    depths = _depths(text)
    for match in re.finditer(r":\s+", text[:stop]):
        if not depths[match.start()]:
            return text[: match.end()], text[match.end() : stop], text[stop:]
    return "", text[:stop], text[stop:]


def _capitalised(text: str, like: str) -> str:
    first = re.search(r"\w", like)
    return text[:1].upper() + text[1:] if first and first.group().isupper() else text


def _phrases(sentence: str, words: Words) -> str:
    """`Create, update, and delete rules`: a list of doings that may share what they are done to."""
    head, body, end = _head_and_list(sentence)
    raw, seams = _cut(body, _SPLIT)
    if not _leads(raw[0], words) or words.hits(head) or (not head and body[:1].islower()):
        return sentence
    pieces, joints = _glued(raw, seams, lambda piece: _leads(piece, words))
    if len(pieces) < 2:
        return sentence
    lighter = [piece if _is_dirty_lead(piece, words) else _lightened(piece, words) for piece in pieces]
    kept = [piece for piece in lighter if not _is_dirty(piece, words)]
    tail = _shared_tail(pieces, words)
    if not kept and _stands_alone(head):
        return _alone(head, end)
    if not kept or tail is None or kept == pieces or (pieces[0] != kept[0] and _POINTING.search(kept[0])):
        return sentence
    if tail:
        kept[-1] = f"{kept[-1]} {tail}"
    joined = _joined(kept, joints)
    return head + (joined if head else _capitalised(joined, pieces[0])) + end


def _glued(raw: list[str], seams: list[str], leads: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """Pieces that begin something, each with the pieces after it that do not."""
    pieces, joints = [raw[0]], list[str]()
    for piece, seam in zip(raw[1:], seams, strict=True):
        if leads(piece):
            pieces.append(piece)
            joints.append(seam)
        else:
            pieces[-1] += seam + piece
    return pieces, joints


def _joined(kept: list[str], joints: list[str]) -> str:
    conjunction = re.search(r"and/or|and|or", joints[-1])
    return join_items(kept, conjunction.group() if conjunction else "", oxford="," in joints[-1])


def _lightened(piece: str, words: Words) -> str:
    """A piece that is kept for its beginning, without the runs and remarks that name hidden operations."""
    return _parentheses(cut_runs(piece, words), words) if words.hits(piece) else piece


def _is_dirty_lead(piece: str, words: Words) -> bool:
    match = _LEAD.match(piece)
    if match is None:
        return False
    start = piece[match.start(1) :].casefold()
    spelled = (re.sub(r"[-_]", " ", name.casefold()) for name in words.hidden if re.search(r"[-_]", name))
    return match.group(1) in words.hidden or words.is_strict(match.group(1)) or any(map(start.startswith, spelled))


def _is_dirty(piece: str, words: Words) -> bool:
    return words.hits(piece) or _is_dirty_lead(piece, words)


def _shared_tail(pieces: list[str], words: Words) -> str | None:
    """What the last piece, when it goes, leaves to the ones before: empty for nothing, None when that is unclear."""
    last = pieces[-1]
    if not _is_dirty(last, words):
        return ""
    bare = all(len(piece.split()) == 1 for piece in pieces[:-1] if not piece.endswith((" on", " to")))
    if len(last.split()) == 1 or not bare:
        return "" if not bare or len(pieces) > 1 else None
    found = [match for match in re.finditer(r"[\w-]+", last) if words.is_hidden(match.group())]
    tail = last[found[-1].end() :].strip(" `'\"") if found else ""
    tail = re.sub(r"^of\s+", "", tail)
    return tail if tail and not words.hits(tail) else None


def _parentheses(sentence: str, words: Words) -> str:
    """A remark in brackets loses its hidden parts, or goes."""

    def cleaned(match: re.Match[str]) -> str:
        inner = match.group(2)
        if not words.hits(inner):
            return match.group()
        pieces, seams = _cut(inner, re.compile(r";\s+|,\s+"))
        joint = "; " if any(";" in seam for seam in seams) else ", "
        if joint == "; ":
            pieces = inner.split("; ")
        parts = [part for piece in pieces if (part := clean_sentence(piece, words) if words.hits(piece) else piece)]
        if (
            joint == ", "
            and any(words.hits(piece) for piece in pieces[:1])
            and not _CLAUSE_START.match(" ".join(parts))
        ):
            parts = []
        return f"{match.group(1)}({joint.join(parts)})" if parts else ""

    previous = ""
    while previous != sentence and words.hits(sentence):
        previous = sentence
        sentence = re.sub(r"(\s*)\(([^()]*)\)", cleaned, sentence)
    return sentence


def _tails(sentence: str, words: Words) -> str:
    """`for upload`, `except create`, `when action is 'move'` at the end of a clause."""
    mark = r"[`'\"]?"
    pattern = re.compile(
        rf"\s+(for|in|with|when|except(?: for)?)\s+(?:the\s+)?(?:\w+(?:\s*=\s*|\s+is\s+))?{mark}([\w-]+){mark}"
        r"(?:\s+(?:operations?|actions?|modes?|only|calls?))?(?=\s*(?:[.,;]|$)|\s+\(e\.g)"
    )

    def cut(match: re.Match[str]) -> str:
        before = re.findall(r"[\w-]+", sentence[: match.start()])
        if not words.is_strict(match.group(2)) or not before:
            return match.group()
        needs = before[-1].lower() in _NEEDS or any(word.lower() in (*_NEEDS, "must") for word in before[:1])
        return match.group() if needs and not match.group(1).startswith("except") else ""

    def first_of_several(match: re.Match[str]) -> str:
        goes = words.is_strict(match.group(2)) and words.is_name(match.group(3)) and not words.is_hidden(match.group(3))
        return match.group(1) if goes else match.group()

    several = re.compile(rf"(\s(?:for|in|with)\s+){mark}([\w-]+){mark},\s+(?={mark}([\w-]+))")
    sentence = pattern.sub(cut, several.sub(first_of_several, sentence))
    excepted = re.compile(rf"\s+except\s+(?:for\s+)?{mark}([\w-]+){mark}(?=\s)")
    return excepted.sub(lambda match: "" if words.is_strict(match.group(1)) else match.group(), sentence)


def _semicolons(sentence: str, words: Words) -> str:
    """`a: ...; b: ...` and `a does ...; b does ...`."""
    head, body, end = _head_and_list(sentence)
    if words.hits(head) or (head and words.is_name(head.strip(" :`'\"\n"))):
        head, body = "", head + body
    pieces, seams = _cut(body, re.compile(r";\s+"))
    if not seams:
        return sentence
    cleaned = [clean_sentence(piece, words) if words.hits(piece) else piece for piece in pieces]
    if not cleaned[0] and not all(_leads(piece, words) for piece in pieces):
        return ""
    kept = [
        re.sub(r"^(?:and|or)\s+", "", piece) if not index else piece
        for index, piece in enumerate(filter(None, cleaned))
    ]
    if not kept:
        return ""
    return (
        head
        + (kept[0] if head or cleaned[0] else _capitalised(kept[0], pieces[0]))
        + "".join("; " + piece for piece in kept[1:])
        + end
    )


def _definitions(sentence: str, words: Words) -> str:
    """`mode: a does this, b does that`: pieces that begin with a name, each with what is said of it."""
    head, body, end = _head_and_list(sentence)
    if not head:
        head, body = _opening(body, words)
    if words.hits(head):
        return sentence

    def leads(piece: str) -> bool:
        match = _LEAD.match(piece)
        return match is not None and words.is_name(match.group(1))

    pieces, joints = _glued(*_cut(body, _SPLIT), leads)
    if len(pieces) < 2 or not leads(pieces[0]):
        return sentence
    lighter = [piece if _is_dirty_lead(piece, words) else _lightened(piece, words) for piece in pieces]
    kept = [piece for piece in lighter if not _is_dirty(piece, words)]
    if not kept:
        return _alone(head, end) if _stands_alone(head) else ""
    joined = _joined(kept, joints)
    return head + (joined if head else _capitalised(joined, pieces[0])) + end


def _stands_alone(head: str) -> bool:
    """Whether an introduction says something when its enumeration is gone."""
    return (
        head.rstrip().endswith(":")
        and len(head.split()) > 2
        and head.rsplit(maxsplit=1)[-1].rstrip(":").lower() not in _OPEN
    )


def _alone(head: str, end: str) -> str:
    return head.rstrip().removesuffix(":") + end


def _opening(body: str, words: Words) -> tuple[str, str]:
    """The few words before the first quoted name (`Use action "a" to ..., "b" to ...`), and the rest."""
    match = re.match(r"((?:[A-Za-z]+\s+){1,4})(?=[`'\"]([\w-]+)[`'\"])", body)
    if match and words.is_name(match.group(2)):
        return match.group(1), body[match.end() :]
    return "", body


def _dashes(sentence: str, words: Words) -> str:
    """`statement — remark`: the remark goes alone."""
    pieces, seams = _cut(sentence, re.compile(r"\s+[—–-]\s+"))
    if not seams or words.hits(pieces[0]):
        return sentence
    end = "." if sentence.endswith(".") and not pieces[0].endswith(".") else ""
    return (
        pieces[0]
        + "".join(
            seam + piece.rstrip(".") for seam, piece in zip(seams, pieces[1:], strict=True) if not words.hits(piece)
        )
        + end
    )


def _starts_clause(piece: str) -> bool:
    word = re.match(r"or ([a-z]+)\b", piece)
    return _CLAUSE_START.match(piece) is not None or (word is not None and is_verb(word.group(1)))


def _comma_clauses(sentence: str, words: Words) -> str:
    """`Required for a, optional for b`: clauses that could each stand alone."""
    stop = len(sentence.rstrip(".!"))
    raw, seams = _cut(sentence[:stop], re.compile(r",\s+"))
    pieces, _ = _glued(raw, seams, _starts_clause)
    if len(pieces) < 2:
        return sentence
    kept = [piece for piece in pieces if not words.hits(piece)]
    if not kept or (kept[0] != pieces[0] and kept[0].startswith(("plus", "not "))):
        return ""
    kept[0] = _capitalised(re.sub(r"^(?:or|and|but)\s+", "", kept[0]), pieces[0]) if kept[0] != pieces[0] else kept[0]
    return ", ".join(kept) + sentence[stop:]
