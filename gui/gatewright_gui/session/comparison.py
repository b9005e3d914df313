"""Two calls beside each other: what they have in common, what differs, line by line. It calls and draws nothing."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from gatewright.blocks import diff_text
from gatewright_gui.session.calls import CallRecord, change_words, cut, visible

MAX_COMPARED = 200_000
"""Characters of one text that are compared; the rest is left out, which is said."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One thing that is known of both calls."""

    name: str
    first: str
    second: str
    verdicts: tuple[str, str] = ("", "")

    @property
    def differs(self) -> bool:
        """Whether the calls are not alike in it."""
        return self.first != self.second


@dataclass(frozen=True, slots=True)
class Comparison:
    """`first` is the earlier call. Diffs are unified, without a head; empty when the texts are equal."""

    first: CallRecord
    second: CallRecord
    facts: tuple[Pair, ...]
    stages: tuple[Pair, ...]
    arguments: str
    result: str

    @property
    def verdict_changed(self) -> bool:
        """Whether the gate judged them differently."""
        return self.first.verdict is not self.second.verdict


def compared(one: CallRecord, other: CallRecord) -> Comparison:
    """Compare two calls; takes time where they are large."""
    first, second = sorted((one, other), key=lambda record: record.number)
    return Comparison(
        first,
        second,
        tuple(_facts(first, second)),
        tuple(_stages(first, second)),
        _diff("arguments", _arguments(first), _arguments(second)),
        _diff("result", _result(first), _result(second)),
    )


def _facts(first: CallRecord, second: CallRecord) -> Iterator[Pair]:
    both = (first, second)
    verdicts = str(first.verdict), str(second.verdict)
    yield Pair("verdict", *verdicts, verdicts=verdicts)
    for name, words in (
        ("decided at stage", [f"{record.stage} \u00b7 {record.code}" for record in both]),
        ("reason", [record.detail or record.reason for record in both]),
        ("rule", [record.rule.rule_id if record.rule is not None else "none" for record in both]),
        ("for the model", [_message(record) for record in both]),
        ("agent", [visible(record.request.agent_id) for record in both]),
        ("call", [record.called for record in both]),
        ("how", [_how(record) for record in both]),
        ("ended", [(record.status or "only decided").replace("_", " ") for record in both]),
        ("result", [_size(record) for record in both]),
    ):
        yield Pair(name, words[0], words[1])


def _message(record: CallRecord) -> str:
    if record.model_message is not None:
        return record.model_message
    return "the result" if record.output is not None else "nothing yet"


def _how(record: CallRecord) -> str:
    return "run LIVE" if record.is_live else "run in the copy" if record.kind == "run" else "decided"


def _size(record: CallRecord) -> str:
    if record.output is None:
        return "none"
    digest = f", SHA-256 {record.output_hash[:12]}" if record.output_hash else ""
    return f"{record.output_bytes or len(record.output.encode('utf-8', 'replace')):,} bytes{digest}"


def _stages(first: CallRecord, second: CallRecord) -> Iterator[Pair]:
    ours, theirs = ({row.name: row for row in record.stages} for record in (first, second))
    for name in dict.fromkeys((*ours, *theirs)):
        rows = ours.get(name), theirs.get(name)
        verdicts = tuple("" if row is None else str(row.verdict) for row in rows)
        words = [f"{row.verdict} \u00b7 {row.reason}" if row is not None else "not reached" for row in rows]
        yield Pair(name, words[0], words[1], (verdicts[0], verdicts[1]))


def _arguments(record: CallRecord) -> str:
    text = record.request.text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2, sort_keys=True)
    except (ValueError, RecursionError):
        return text


def _result(record: CallRecord) -> str:
    text = record.model_text or ""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2) if len(text) <= MAX_COMPARED else text
    except (ValueError, RecursionError):
        return text


def _diff(name: str, old: str, new: str) -> str:
    if old == new:
        return ""
    told = change_words(diff_text(name, _lines(old), _lines(new)), "")[1]
    longest = max(len(old), len(new))
    more = (
        f"[only the first {MAX_COMPARED:,} of {longest:,} characters were compared]\n" if longest > MAX_COMPARED else ""
    )
    return cut(more + told) or more or "[they differ after what was compared]\n"


def _lines(text: str) -> str:
    short = text[:MAX_COMPARED]
    return short if short.endswith("\n") or not short else f"{short}\n"
