"""What is told of a conversation, against the session that it is told of."""

from pathlib import Path

from gatewright.gate.session import Mark
from gatewright.workspace import Session, Workspace
from gatewright_gui.session.conversation import whole
from tests.support.demo import copy_demo

HOUR_S = 3_600.0


async def test_pause_is_not_said_to_be_over_before_it_is(tmp_path: Path) -> None:
    policy = copy_demo(tmp_path / "demo")
    policy.write_text(policy.read_text("utf-8").replace('Cooldown = "100ms"', 'Cooldown = "1h"'), "utf-8")
    workspace = Workspace.open(policy)
    try:
        session = Session()
        outcome = await workspace.call("operator", "file", {"op": "read", "path": "README.md"}, session=session)
        assert outcome.decision.verdict == "allow"
        start_s = session.facts().last_start_s("file", None, "")

        pause = next(fact for fact in whole(workspace, "operator", session).facts if fact.kind == "pause")

        assert start_s is not None
        assert pause.left_s is not None
        assert HOUR_S - 60 < pause.left_s < HOUR_S
        assert pause.seen_s + pause.left_s >= start_s + HOUR_S
    finally:
        workspace.close()


async def test_a_rule_after_outside_results_tells_the_result_that_marked_the_session(tmp_path: Path) -> None:
    policy = copy_demo(tmp_path / "demo")
    rule = '[[agents.operator.tool_rules]]\ntool_name = "file"\nrule_type = { AfterOutside = "ask" }\n'
    policy.write_text(policy.read_text("utf-8") + rule, "utf-8")
    with Workspace.open(policy) as workspace:
        session = Session(agent_id="operator")
        for mark in (None, Mark("web_fetch", "call-one", 0.0)):
            if mark is not None:
                session.mark(mark)
            found = [fact for fact in whole(workspace, "operator", session).facts if fact.kind == "outside"]
            assert [fact.holds for fact in found] == [mark is not None]
            assert found[0].text.startswith("asks after outside results")
            assert ("web_fetch" in found[0].text and "call-one" in found[0].text) is (mark is not None)
