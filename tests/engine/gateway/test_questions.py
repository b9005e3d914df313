"""The question for the user of a client: all that was sent can be read in it, or it says what cannot."""

from __future__ import annotations

import json
import re
import unicodedata
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.adapters.mcp_call import question_of
from gatewright.base.printable import printable
from gatewright.gate import ApprovalRequest

UNSEEN = "\u202e\u2066\u200b\u2028\u2029\ufeff\x1b\x07\r\n\0\u00ad\U000e0041"
LONG = "x" * 30_000


def request(arguments: dict[str, Any], tool: str = "send", operation: str = "mail") -> ApprovalRequest:
    return ApprovalRequest(
        agent_id="a",
        tool=tool,
        operation=operation,
        arguments=MappingProxyType(arguments),
        reasons=("it asks",),
        diff=None,
        scope=None,
        digest="",
    )


@pytest.mark.parametrize("where", ["value", "key", "list", "object", "tool"])
@pytest.mark.parametrize("sign", UNSEEN)
def test_character_that_nobody_sees_is_written_out(sign: str, where: str) -> None:
    word = f"a{sign}b"
    sent: dict[str, Any] = {
        "value": {"to": word},
        "key": {word: 1},
        "list": {"to": ["x", [word]]},
        "object": {"to": {word: {"y": word}}},
        "tool": {"to": "x"},
    }[where]
    question = question_of(request(sent, tool=word if where == "tool" else "send"))
    assert sign not in question.replace("\n", "") if sign == "\n" else sign not in question
    assert all(unicodedata.category(c) not in {"Cc", "Cf", "Zl", "Zp"} for c in question if c != "\n")
    assert len(question.splitlines()) == 2


@pytest.mark.parametrize("names", [("body", "to"), ("to", "body"), ("a", "b", "to", "body"), ("z", "to", "body", "c")])
@pytest.mark.parametrize("long", [LONG, [LONG], {"x": LONG}, ["y"] * 9_000, "\u202e" * 9_000])
def test_what_is_short_is_whole_beside_what_is_long_which_says_that_it_is_cut(
    names: tuple[str, ...], long: Any
) -> None:
    sent = {name: long if name == "body" else f"eve+{name}@evil.org" for name in names}
    question = question_of(request(sent))
    for name in names:
        assert name == "body" or f'"{name}": "eve+{name}@evil.org"' in question
    shown, whole = re.findall(r"\[CUT: ([\d,]+) of ([\d,]+) characters are not shown\]", question)[0]
    body = printable(json.dumps(long, ensure_ascii=False))
    assert int(whole.replace(",", "")) == len(body)
    assert body[: len(body) - int(shown.replace(",", ""))] in question
    assert len(question) < 9_000


@pytest.mark.parametrize("number", [100, 5_000])
def test_of_too_many_arguments_it_is_said_how_many_are_not_shown(number: int) -> None:
    question = question_of(request({f"argument{index}": "v" * 200 for index in range(number)}))
    told = re.search(r"\[NOT SHOWN: ([\d,]+) more arguments\]$", question)
    shown = question.count('"argument')
    assert len(question) < 9_000
    assert shown + (int(told[1].replace(",", "")) if told else 0) == number


@given(
    st.dictionaries(
        st.text(max_size=30), st.recursive(st.text(max_size=60) | st.integers() | st.none(), st.lists), max_size=8
    )
)
def test_what_fits_is_there_to_the_letter(sent: dict[str, Any]) -> None:
    question = question_of(request(sent))
    if "[CUT" not in question and "[NOT SHOWN" not in question:
        _, *rows = question.split("\n")
        assert json.loads("{" + ",".join(rows) + "}") == sent
