"""The examples of the page on the policy file load as they stand there."""

import re
from pathlib import Path

from gatewright.policy.rule import RuleKind
from tests.engine.policyfile.catalog import load

PAGE = Path(__file__).parents[3] / "docs" / "policy.md"


def test_every_example_of_the_page_loads() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    loaded = load("".join(blocks))

    assert len(blocks) >= 6
    assert not loaded.problems, "\n".join(map(str, loaded.problems))


def test_the_page_names_every_kind_of_rule() -> None:
    text = PAGE.read_text("utf-8")

    assert [kind.__name__ for kind in RuleKind.__args__ if kind.__name__ not in text] == []
