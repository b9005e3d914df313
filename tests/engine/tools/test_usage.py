"""The sentences that a model gets about its tools, and what they keep quiet about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.base.amount import duration_words
from gatewright.compile.view import UsageRow, rule_sentence, usage_rules
from gatewright.policy.rule import (
    AllowedOperations,
    ArgumentConstraints,
    ContinueLoop,
    Cooldown,
    ExclusiveGroups,
    ExitLoop,
    MaxCalls,
    Needed,
    Periodic,
    RateLimit,
    RequiredBeforeExit,
    RequiredBeforeExitIf,
    RequiresConsent,
    RequiresFollowingTools,
    RequiresPrecedingTools,
    RuleKind,
    StartConstraint,
    ToolRule,
)

SHOWN = {
    "file": frozenset({"append", "read"}),
    "send": frozenset({""}),
    "audit.log": frozenset({"search"}),
}
GROUPS = ExclusiveGroups((("send", "shell"), ("file", "send", "shell"), ("send", "audit.log")))


@pytest.mark.parametrize(
    ("kind", "conditions", "sentence"),
    [
        (
            AllowedOperations(frozenset({"read", "append", "delete"})),
            (),
            "Operations open to you: `append` and `read`.",
        ),
        (AllowedOperations(frozenset({"delete"})), (), None),
        (ContinueLoop(), (), "After a successful call you keep the turn."),
        (ExitLoop(), (), "A successful call ends your turn."),
        (StartConstraint(), (), "It has to succeed before any other tool is called."),
        (
            RequiresPrecedingTools(),
            ("send", "shell", "audit.log.search"),
            "It can be called once `send` and `audit.log.search` succeeded in this session.",
        ),
        (RequiresPrecedingTools(), ("shell", "audit.log.purge"), None),
        (
            RequiresFollowingTools(),
            ("send@2", "audit.log"),
            "It cannot be called any more once `send` or `audit.log` succeeded.",
        ),
        (RequiredBeforeExit(), (), "It has to succeed before you finish."),
        (RequiredBeforeExitIf(), ("send",), "Once `send` succeeded, it has to succeed too before you finish."),
        (RequiredBeforeExitIf(), ("shell",), None),
        (MaxCalls(1), (), "At most 1 call per session."),
        (MaxCalls(3), (), "At most 3 calls per session."),
        (Cooldown(30), (), "Calls have to start at least 30 s apart."),
        (RateLimit(5, 3600), (), "At most 5 calls per 1 h."),
        (Periodic(600), (), "It is due every 10 min."),
        (RequiresConsent(), (), "A person has to agree first."),
        (RequiresConsent("mail"), (), "A person has to agree first (scope `mail`)."),
        (GROUPS, (), "Only one of `file` and `send` can be used in a session."),
        (ExclusiveGroups((("file", "shell"),)), (), None),
        (ArgumentConstraints({"secret_field": {}}), (), "Some argument values are limited; a refusal says which."),
        (Needed(), (), None),
        (
            MaxCalls(2),
            ("operation:read", "operation:delete"),
            "For `read`: at most 2 calls per session.",
        ),
        (MaxCalls(2), ("operation:delete",), None),
    ],
)
def test_each_kind_has_its_sentence(kind: RuleKind, conditions: tuple[str, ...], sentence: str | None) -> None:
    assert rule_sentence(ToolRule("file", kind, conditions), SHOWN) == sentence


def test_section_has_one_bullet_per_tool_in_alphabetical_order() -> None:
    rows = [
        UsageRow("send", frozenset({""}), "Be brief.", (ToolRule("send", ExitLoop()), ToolRule("*", MaxCalls(2)))),
        UsageRow(
            "file",
            frozenset({"append", "read"}),
            None,
            (
                ToolRule("file", AllowedOperations(frozenset({"append", "read", "save"}))),
                ToolRule("file", AllowedOperations(frozenset({"append", "read"}))),
            ),
        ),
        UsageRow("quiet", frozenset({""})),
        UsageRow("hidden", frozenset(), "Never told.", (ToolRule("hidden", MaxCalls(1)),)),
    ]

    assert usage_rules(rows) == (
        "## Tool Usage Rules\n\n"
        "- `file`: Operations open to you: `append` and `read`.\n"
        "- `send`: Be brief. A successful call ends your turn. At most 2 calls per session.\n"
    )


def test_usage_rule_of_several_lines_stays_in_its_bullet() -> None:
    text = usage_rules([UsageRow("file", frozenset({"read"}), "One.\n\n## Two\n- `x`: three")])

    assert text == "## Tool Usage Rules\n\n- `file`: One. ## Two - `x`: three\n"


def test_nothing_to_say_is_no_section() -> None:
    assert usage_rules([]) == ""
    assert usage_rules([UsageRow("quiet", frozenset({""}))]) == ""


def test_end_of_the_loop_wins_over_going_on() -> None:
    rules = (ToolRule("send", ContinueLoop()), ToolRule("send", ExitLoop()))

    assert "keep the turn" not in usage_rules([UsageRow("send", frozenset({""}), None, rules)])


def test_end_for_one_operation_leaves_the_rest_going_on() -> None:
    rules = (ToolRule("file", ContinueLoop()), ToolRule("file", ExitLoop(), ("operation:append",)))
    text = usage_rules([UsageRow("file", frozenset({"append", "read"}), None, rules)])

    assert "you keep the turn. For `append`: a successful call ends your turn." in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.25, "250 ms"),
        (1.5, "1.5 s"),
        (30, "30 s"),
        (90, "1 min 30 s"),
        (3600, "1 h"),
        (90_061, "1 d 1 h 1 min 1 s"),
    ],
)
def test_durations_are_said_in_words(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


NAMES = st.sampled_from(["file", "send", "shell", "vault", "file.read", "vault.open", "shell@2"])
KINDS = st.one_of(
    st.sampled_from([RequiresPrecedingTools(), RequiresFollowingTools(), RequiredBeforeExitIf(), MaxCalls(1)]),
    st.lists(st.lists(NAMES, max_size=3).map(tuple), max_size=3).map(lambda groups: ExclusiveGroups(tuple(groups))),
    st.frozensets(st.sampled_from(["read", "erase"])).map(AllowedOperations),
)
CONDITIONS = st.lists(NAMES | st.sampled_from(["operation:read", "operation:erase"]), max_size=3).map(tuple)


@given(KINDS, CONDITIONS)
def test_no_sentence_names_anything_hidden(kind: RuleKind, conditions: tuple[str, ...]) -> None:
    shown = {"file": frozenset({"read"}), "send": frozenset({""})}
    text = rule_sentence(ToolRule("file", kind, conditions), shown) or ""

    assert not [word for word in ("shell", "vault", "open", "erase") if f"`{word}" in text or f".{word}`" in text]


def test_group_is_told_to_each_of_its_tools_whichever_the_rule_stands_on() -> None:
    rule = ToolRule("send", ExclusiveGroups((("send", "file.append"),)), ("operation:append",))
    shown = {"file": frozenset({"append", "read"}), "send": frozenset({""})}

    assert (
        rule_sentence(rule, shown, tool_name="file") == "Only one of `send` and `file.append` can be used in a session."
    )
    assert rule_sentence(rule, {**shown, "file": frozenset({"read"})}, tool_name="file") is None


def test_rules_of_a_source_are_told_for_its_files() -> None:
    limit = ToolRule("file", MaxCalls(2), ("operation:read", "operation:erase"))
    hidden = ToolRule("file", MaxCalls(1), ("operation:erase",))
    row = UsageRow("file", frozenset({"read"}), None, (), (("docs", limit), ("docs", hidden)))

    assert usage_rules([row]) == (
        "## Tool Usage Rules\n\n- `file`: For files of source `docs`: for `read`: at most 2 calls per session.\n"
    )
