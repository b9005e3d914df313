import json
from pathlib import Path
from typing import Any

from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import PermissionRules, check_pattern
from gatewright.policy.verdict import Permission


def patterns_of(written: list[str]) -> list[str]:
    return [line for line in written if line.strip() and not line.startswith("#")]


def test_real_ignore_files_agree_with_git(corpora: Path) -> None:
    data: dict[str, Any] = json.loads((corpora / "gitignore_rows.json").read_text("utf-8"))
    compared, disagreements = 0, list[str]()
    compiled: dict[str, PermissionRules | None] = {}
    for row_id, pattern_set, path, is_dir, expected, _ in data["rows"]:
        if pattern_set not in compiled:
            lines = patterns_of(data["pattern_sets"][pattern_set]["patterns"])
            plain = [PermissionRule(line, Permission.NONE) for line in lines]
            compiled[pattern_set] = (
                None if any(line.startswith("!") for line in lines) else PermissionRules(plain, Permission.ADMIN)
            )
        rules = compiled[pattern_set]
        if rules is None:
            continue
        compared += 1
        if (rules.level(path + "/" * is_dir) is Permission.NONE) is not expected:
            disagreements.append(row_id)
    assert disagreements == []
    assert compared > 5_000


def test_every_real_pattern_without_exclamation_mark_is_accepted(corpora: Path) -> None:
    data: dict[str, Any] = json.loads((corpora / "gitignore_rows.json").read_text("utf-8"))
    lines = {line for one in data["pattern_sets"].values() for line in patterns_of(one["patterns"])}
    refused = {line for line in lines if not line.startswith("!") and check_pattern(line)}
    assert refused == set()
