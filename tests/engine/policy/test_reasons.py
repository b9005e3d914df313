"""What each denial and each ask at the boxes says: its layer, code, words, and where it leads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatewright.builtins import file_tool
from gatewright.policy.capability import NetRead
from gatewright.policy.document import Agent, Defaults, Policy, Source, ToolSettings
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import AllowedOperations, ArgumentConstraints, PolicyRule, RequiresConsent, ToolRule
from gatewright.policy.verdict import PathUse, Permission, SafetyTier, Verdict
from tests.engine.policy.test_layers import CLOCK, FETCH, FILE, first, granted, limited, policy_of, row

OTHERS = "append create delete diff insert list load patch reload replace save status"
ONLY_READ = ArgumentConstraints({"op": {"const": "read"}})
FEW, NONE = (ToolRule("file", AllowedOperations(frozenset(names))) for names in (("read",), ()))
BOTH = Source("both", "x", Permission.ADMIN, required_tools=(FEW, replace(NONE, priority=9)))
SAID = (
    (policy_of(sources=()), FILE, "read", "source deny no-source nowhere None None", "agent `a` has no file source"),
    (
        policy_of(Agent("a", sources=())),
        FILE,
        "read",
        "source deny no-source agents/a/sources None None",
        "agent `a` has no file source",
    ),
    (
        policy_of(sources=(Source("x", "x", Permission.NONE), Source("y", "y", Permission.NONE))),
        FILE,
        "read",
        "source deny no-level-permits sources/x None None",
        "no rule or default of `x`, `y` permits `read`",
    ),
    (
        policy_of(sources=(Source("x", "x", Permission.HUMAN),)),
        FILE,
        "append",
        "source ask level-asks nowhere None None",
        "every level of `x` that permits `append` asks first",
    ),
    (
        policy_of(sources=(limited("x", Permission.ADMIN, "read", "append"),)),
        FILE,
        "delete",
        "source deny source-operation-not-allowed sources/x/required_tools/0 needs None",
        "source `x` limits `file` to `append`, `read`",
    ),
    (
        policy_of(sources=(BOTH,)),
        FILE,
        "delete",
        "source deny source-operation-not-allowed sources/both/required_tools/1 None None",
        "source `both` limits `file` to no operation at all",
    ),
    (
        policy_of(Agent("a", tool_rules=(ToolRule("file", ONLY_READ, rule_id="only"),))),
        file_tool().facts(),
        "append",
        "rule deny argument-constraint agents/a/tool_rules/0 only None",
        "a constraint on `op` of `file` refuses " + ", ".join(f"`{name}`" for name in OTHERS.split()),
    ),
    (
        policy_of(None, PolicyRule("quiet", Verdict.DENY, message="ask dana")),
        FILE,
        "read",
        "policy deny policy-deny policy/rules/0 quiet ask dana",
        "policy rule `quiet` denies `file.read`: ask dana",
    ),
    (
        policy_of(None, PolicyRule("calm", Verdict.ASK)),
        CLOCK,
        "",
        "policy ask policy-ask policy/rules/0 calm None",
        "policy rule `calm` asks before `clock`",
    ),
    (
        policy_of(default=Verdict.DENY),
        CLOCK,
        "",
        "policy deny policy-default policy/default None None",
        "no policy rule allows `clock`, and the default of the policy denies",
    ),
    (
        policy_of(default=Verdict.ASK),
        FILE,
        "read",
        "policy ask policy-default policy/default None None",
        "no policy rule allows `file.read`, and the default of the policy asks first",
    ),
    (
        policy_of(),
        replace(CLOCK, held="it is new", origin="c"),
        "",
        "tools deny tool-held catalogs/c None None",
        "`clock` is held until the operator accepts it: it is new",
    ),
    (
        policy_of(),
        replace(CLOCK, outmoded=True),
        "",
        "tools deny outmoded-tool agents/a None None",
        "`clock` is outmoded: only an agent that lists it in its `tools` has it",
    ),
    (
        policy_of(defaults=Defaults(unlisted_tools=Verdict.DENY)),
        CLOCK,
        "",
        "tools deny unlisted-tool defaults/unlisted_tools None None",
        "agent `a` lists no tools and the defaults deny unlisted ones",
    ),
    (
        policy_of(Agent("a", tools=("file",))),
        CLOCK,
        "",
        "tools deny tool-not-listed agents/a/tools None None",
        "`clock` is not among the tools of agent `a`",
    ),
    (
        policy_of(Agent("a", tool_rules=(ToolRule("file", AllowedOperations(frozenset()), rule_id="shut"),))),
        FILE,
        "read",
        "rule deny operation-not-allowed agents/a/tool_rules/0 shut None",
        "`file` is limited to no operation at all for agent `a`",
    ),
    (
        policy_of(),
        replace(FILE, tool_rules=(ToolRule("file", AllowedOperations(frozenset({"read", "append"}))),)),
        "delete",
        "rule deny operation-not-allowed nowhere None None",
        "`file` is limited to `append`, `read` by its own rule",
    ),
    (
        policy_of(Agent("a", tool_rules=(ToolRule("clock", RequiresConsent(), rule_id="c"),))),
        CLOCK,
        "",
        "rule ask requires-consent agents/a/tool_rules/0 c None",
        "a person must allow `clock`",
    ),
    (
        policy_of(Agent("a", tool_rules=(ToolRule("*", RequiresConsent("time")),))),
        CLOCK,
        "",
        "rule ask requires-consent agents/a/tool_rules/0 None None",
        "a person must allow `clock` (consent group: time)",
    ),
    (
        policy_of(Agent("a", approvals={"clock": Verdict.DENY})),
        CLOCK,
        "",
        "approvals deny approvals-deny agents/a/approvals/clock None None",
        "`clock` is denied by the approvals key `clock`",
    ),
    (
        policy_of(Agent("a", approvals={"file": Verdict.ASK, "file.read": Verdict.DENY})),
        FILE,
        "read",
        "approvals deny approvals-deny agents/a/approvals/file.read None None",
        "`file.read` is denied by the approvals key `file.read`",
    ),
    (
        policy_of(defaults=Defaults(approvals={"read_only": Verdict.ASK})),
        FILE,
        "read",
        "approvals ask approval-needed defaults/approvals/read_only None None",
        "`file.read` asks first by the approvals key `read_only`",
    ),
    (
        policy_of(),
        replace(CLOCK, operations=(OperationFacts("", SafetyTier.PRIVILEGED),)),
        "",
        "approvals ask approval-needed nowhere None None",
        "`clock` asks first as its tier is privileged",
    ),
    (
        policy_of(),
        replace(FETCH, operations=(OperationFacts("get", SafetyTier.READ_ONLY, needs="user"),)),
        "get",
        "tools deny no-endpoint workspace/endpoints None None",
        "`fetch.get` needs an endpoint, and `[workspace] endpoints` has no `get`",
    ),
    (
        policy_of(),
        FETCH,
        "get",
        "capability deny capability-not-granted agents/a None None",
        "`fetch.get` needs NetRead, which agent `a` is not granted",
    ),
    (
        granted(NetRead(("a.org",))),
        FETCH,
        "search",
        "capability deny capability-unjudgeable agents/a/capabilities None None",
        "`fetch.search` names nothing that NetRead of agent `a` could be judged by",
    ),
    (
        policy_of(tools={"file": ToolSettings(operation_tiers={"burn": SafetyTier.READ_ONLY})}),
        FILE,
        "read",
        "rule deny rule-unknown-operation tools/file/operation_tiers None None",
        "a rule names `burn`, which `file` does not have, so the tool is closed",
    ),
    (
        policy_of(tools={"clock@1": ToolSettings(paths={"p": PathUse.READ})}),
        replace(CLOCK, texts=()),
        "",
        "rule deny rule-unknown-operation tools/clock@1/paths None None",
        "`paths` names `p`, which `clock` does not take, so the tool is closed",
    ),
)


@pytest.mark.parametrize(("policy", "facts", "operation", "told", "text"), SAID)
def test_reason_says_who_what_and_where(policy: Policy, facts: ToolFacts, operation: str, told: str, text: str) -> None:
    reason = first(row(policy, facts, operation))
    where = "/".join(map(str, reason.address or ("nowhere",)))

    by = f"{reason.layer} {reason.verdict} {reason.code} {where} {reason.rule_id} {reason.message}"
    assert (by, reason.text) == (told, text)
